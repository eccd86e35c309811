/* SPDX-License-Identifier: Apache-2.0 */
/*
 * indexes: the sidecars (sidecar.h) that lie in the folder for caches, and those of rewritten
 * tables next to these. A file is one of those if its name is as theirs are, and its magic is
 * theirs: the folder of the cache may be one that other programs use as well.
 */
#ifndef PSTK_CACHE_INDEXES_H
#define PSTK_CACHE_INDEXES_H

#include <stdint.h>

#include <penstock/types.h>

struct pstk__cache_indexes {
    int dir;                              /* owned; -1: there is no such folder */
    uint64_t n, bytes;                    /* indexes and points */
    uint64_t n_checksums, checksum_bytes; /* those of verify, which cannot always be made again */
    uint64_t n_writing, writing_bytes;    /* being written, or left by a killed process */
    uint64_t n_refused;                   /* could not be removed */
};

/* Open a folder of the cache that has such files. is_removing: as for cache.h, EPERM where others
 * can write to it. */
int pstk__cache_indexes_open(struct pstk__cache_indexes *indexes, const char *cache_path,
                             const char *folder, int is_removing, struct pstk_error *err);
void pstk__cache_indexes_close(struct pstk__cache_indexes *indexes);
/* Count them. 0 or a negative errno. */
int pstk__cache_indexes_count(struct pstk__cache_indexes *indexes);
/* Remove and count indexes, points, what dead processes left, and checksums if with_checksums. What
 * a living process writes stays; n_writing is 0. 0 or a negative errno. */
int pstk__cache_indexes_remove(struct pstk__cache_indexes *indexes, int with_checksums);

#endif
