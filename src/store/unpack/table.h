/* SPDX-License-Identifier: Apache-2.0 */
/* table: the files of a data set of which some are compressed, found by their paths. */
#ifndef PSTK_UNPACK_TABLE_H
#define PSTK_UNPACK_TABLE_H

#include "store/cache/cache.h"
#include "store/patience.h"
#include "store/unpack/file_list.h"
#include "store/unpack/access_points.h"

#include <pthread.h>
#include <stdatomic.h>

/* What was seen of an entry that another makes; where there is no room, of all that are made. */
struct pstk__packed_wait {
    struct pstk__patience patience;
    struct pstk__cache_progress making;
    uint64_t motion; /* of the cache, where is_making is 0 */
    int is_making;
};

/* A file. */
struct pstk__packed {
    struct pstk__access_points_of of; /* packing 0: it is not compressed */
    uint64_t points_size; /* bytes of its access points file; 0: it is unpacked into the cache */
    uint32_t head_crc;    /* of its access points file */
    /* 1: it is compressed, and all bytes of it have checksums in the file, as far as is known
     * before it is unpacked. */
    uint32_t is_checked;
    struct pstk__packed_wait gave_up; /* with `opening` (below); zeros: nobody has */
};

/* All of them, read-only after open, except what says that it is guarded. */
struct pstk__packed_files {
    const struct pstk__store *store; /* borrowed */
    char *folder;                    /* owned */
    struct pstk__texts names;
    struct pstk__packed *at; /* owned; names.n */
    uint64_t n_bytes;        /* of all files, compressed */
    uint64_t place[2];       /* digest of the folder's absolute path */
    uint32_t data_owner;     /* user of the folder */
    char *cache_path;        /* owned; folder for caches, or NULL */
    uint64_t cache_size;     /* bytes, or 0 */
    pthread_mutex_t opening; /* guards the next */
    int has_mutex;
    struct pstk__cache *cache; /* owned; NULL: not open */
    char *points;              /* owned; folder of the access points files; NULL: not known yet */
    uint32_t *places;          /* owned; numbers by the hash of their path; PSTK__NO_FILE: free */
    uint64_t mask;             /* places - 1 */
    uint64_t patience_ns;      /* how long others may make no progress; tests have less */
    _Atomic int is_stopped;    /* 1: nobody wants entries any more */
};

#define PSTK__NO_FILE UINT32_MAX

/* Copies; without packings and points. On failure close is due all the same. */
int pstk__packed_open(struct pstk__packed_files *table, const struct pstk__unpack_files *files,
                      struct pstk_error *err);
void pstk__packed_close(struct pstk__packed_files *table);
/* The number of the file at a path, or PSTK__NO_FILE. */
uint32_t pstk__packed_find(const struct pstk__packed_files *table, const char *path);
/* 0, or EINVAL: the path is too long. */
int pstk__packed_path(const struct pstk__packed_files *table, uint64_t i, char *path, size_t size);
/* Set the folder of the access points files: that of the index at this path. */
int pstk__packed_place(struct pstk__packed_files *table, const char *index_path,
                       struct pstk_error *err);
/* 1: the file is unpacked as a whole. */
static inline int pstk__packed_is_cached(const struct pstk__packed *packed)
{
    return packed->of.packing && packed->points_size == 0;
}
/* Open the cache entry of such a file; makes it, if there is none. damaged: an open one that a
 * read found damaged, or NULL; it is dropped first. EBADMSG: it cannot be; ENOTSUP: no folder for
 * caches is set; ETIMEDOUT: another process makes it, and makes no progress; ECANCELED: is_stopped
 * was set; others of the cache and of whole.h; the message says what to do. */
int pstk__packed_entry(struct pstk__packed_files *table, uint64_t i,
                       const struct pstk__file *damaged, struct pstk__file *file,
                       struct pstk_error *err);
/* Unpack such a file, which may have an entry in the cache, to see that it is well; its bytes are
 * compared with those of the entry. As pstk__packed_entry; EBADMSG: it is damaged. */
int pstk__packed_check(struct pstk__packed_files *table, uint64_t i,
                       int (*progress)(void *user, uint64_t n), void *user, struct pstk_error *err);
/* The path of a file's points. 0 or EINVAL. */
int pstk__packed_access_points(const struct pstk__packed_files *table, uint64_t i, char *path,
                               size_t size);

#endif
