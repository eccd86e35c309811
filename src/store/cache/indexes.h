/* SPDX-License-Identifier: Apache-2.0 */
/*
 * indexes: the sidecars (sidecar.h) in the folder for caches, and those of rewritten tables next to
 * these. Both the name and the magic of a file must fit, because other programs may use the cache's
 * folder as well.
 */
#ifndef PSTK_CACHE_INDEXES_H
#define PSTK_CACHE_INDEXES_H

#include <stdint.h>

#include <penstock/types.h>

struct pstk__cache_indexes {
    int dir;           /* owned; -1: the folder does not exist */
    uint64_t n, bytes; /* indexes and points, and their bytes */
    uint64_t n_checksums,
        checksum_bytes; /* files of verify, and their bytes; some cannot be made again */
    uint64_t n_writing,
        writing_bytes;  /* files being written, or left by a killed process, and their bytes */
    uint64_t n_refused; /* files that could not be removed */
};

/* Open a folder of the cache that has such files. is_removing: EPERM if others can write to it, as
 * in cache.h. */
int pstk__cache_indexes_open(struct pstk__cache_indexes *indexes, const char *cache_path,
                             const char *folder, int is_removing, struct pstk_error *err);
void pstk__cache_indexes_close(struct pstk__cache_indexes *indexes);
/* Count the files. 0 or a negative errno. */
int pstk__cache_indexes_count(struct pstk__cache_indexes *indexes);
/* Remove and count indexes, points, files of dead processes, and checksums if with_checksums. The
 * file of a living process stays; n_writing is 0. 0 or a negative errno. */
int pstk__cache_indexes_remove(struct pstk__cache_indexes *indexes, int with_checksums);

#endif
