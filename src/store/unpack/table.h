/* SPDX-License-Identifier: Apache-2.0 */
/* table: the files of a data set, found by path; some of them are compressed. */
#ifndef PSTK_UNPACK_TABLE_H
#define PSTK_UNPACK_TABLE_H

#include "store/cache/cache.h"
#include "store/patience.h"
#include "store/unpack/file_list.h"
#include "store/unpack/access_points.h"

#include <pthread.h>
#include <stdatomic.h>

/* The last observation of an entry that another process or thread makes; if room is lacking, of all
 * entries that are being made. */
struct pstk__packed_wait {
    struct pstk__patience patience;
    struct pstk__cache_progress making;
    uint64_t motion; /* number from pstk__cache_motion, if is_making is 0 */
    int is_making;
};

/* A file of the data set. */
struct pstk__packed {
    struct pstk__access_points_of of; /* packing 0: it is not compressed */
    uint64_t points_size; /* bytes of its access points file; 0: the file is unpacked into the cache
                           */
    uint32_t head_crc;    /* checksum of the header of its access points file */
    /* 1: the file is compressed, and all its bytes have checksums in it; for a file that was not
     * unpacked yet, as far as known. */
    uint32_t is_checked;
    struct pstk__packed_wait gave_up; /* observation of the last thread that gave up, guarded by
                                         `opening`; zeros: none */
};

/* All files of a data set. Read-only after open, except the members that a comment calls guarded.
 */
struct pstk__packed_files {
    const struct pstk__store *store; /* borrowed */
    char *folder;                    /* owned */
    struct pstk__texts names;
    struct pstk__packed *at; /* names.n files, owned */
    uint64_t n_bytes;        /* compressed bytes of all files */
    uint64_t path_digest[2]; /* digest of the folder's absolute path */
    uint32_t data_owner;     /* user id of the folder's owner */
    char *cache_path;        /* folder for caches, owned, or NULL */
    uint64_t cache_size;     /* limit in bytes, or 0: auto */
    pthread_mutex_t opening; /* guards the next */
    int has_mutex;
    struct pstk__cache *cache; /* guarded by `opening`; owned; NULL: not open */
    char *points;              /* folder of the access points files, owned; NULL: not known yet */
    uint32_t *buckets; /* numbers of files by the hash of their path, owned; PSTK__NO_FILE: free */
    uint64_t mask;     /* number of buckets - 1 */
    uint64_t patience_ns;   /* ns that another maker may make no progress; shorter in tests */
    _Atomic int is_stopped; /* 1: nobody wants entries any more */
};

#define PSTK__NO_FILE UINT32_MAX

/* Copy the list of files, without packings and points. Call close even on failure. */
int pstk__packed_open(struct pstk__packed_files *table, const struct pstk__unpack_files *files,
                      struct pstk_error *err);
void pstk__packed_close(struct pstk__packed_files *table);
/* Return the number of the file at a path, or PSTK__NO_FILE. */
uint32_t pstk__packed_find(const struct pstk__packed_files *table, const char *path);
/* Write the path of a file. 0, or EINVAL: the path is too long. */
int pstk__packed_path(const struct pstk__packed_files *table, uint64_t i, char *path, size_t size);
/* Set the folder of the access points files to the folder of the index at this path. */
int pstk__packed_set_folder(struct pstk__packed_files *table, const char *index_path,
                            struct pstk_error *err);
/* 1: the file is unpacked as a whole. */
static inline int pstk__packed_is_cached(const struct pstk__packed *packed)
{
    return packed->of.packing && packed->points_size == 0;
}
/* Open the cache entry of such a file, and make it if there is none. damaged: an open entry that a
 * read found damaged, and that is dropped first, or NULL. EBADMSG: it cannot be dropped, or the
 * file is damaged; ENOTSUP: no folder for caches is set; ETIMEDOUT: another process makes the
 * entry, and makes no progress; ECANCELED: is_stopped was set; other errors of the cache and of
 * whole.h; messages have advice. */
int pstk__packed_entry(struct pstk__packed_files *table, uint64_t i,
                       const struct pstk__file *damaged, struct pstk__file *file,
                       struct pstk_error *err);
/* Unpack such a file to check it, and compare its bytes with those of its entry, if it has one.
 * Errors as pstk__packed_entry; EBADMSG: the file is damaged. */
int pstk__packed_check(struct pstk__packed_files *table, uint64_t i,
                       int (*progress)(void *user, uint64_t n), void *user, struct pstk_error *err);
/* Write the path of a file's access points file. 0 or EINVAL. */
int pstk__packed_access_points(const struct pstk__packed_files *table, uint64_t i, char *path,
                               size_t size);

#endif
