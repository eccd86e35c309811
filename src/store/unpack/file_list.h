/* SPDX-License-Identifier: Apache-2.0 */
/* file_list: the files of a data set, by its format's list; some may be compressed. */
#ifndef PSTK_UNPACK_FILE_LIST_H
#define PSTK_UNPACK_FILE_LIST_H

#include "base/texts.h"
#include "store/index/location.h"
#include "store/store.h"

#include <penstock/format.h>

/* The files of a data set. All pointers except the store are borrowed for the call of open. */
struct pstk__unpack_files {
    const struct pstk__store *store; /* borrowed for its life */
    const char *folder;
    const struct pstk__texts *names; /* paths below the folder */
    const uint64_t *sizes;           /* bytes */
    const int64_t *changed_ns;       /* times of change, as in store.h */
    const char *cache;               /* folder for caches, or NULL */
    uint64_t cache_size;             /* max bytes of its entries; 0: auto */
    const char *format;              /* format of the data set */
    /* Set the known facts about file i: the number of its packing (packing.h, whole.h), 0: none,
     * and if that is not 0, its unpacked bytes. NULL: nothing is known, so first bytes and names
     * decide. */
    void (*known)(const void *user, uint64_t i, uint32_t *packing, uint64_t *unpacked);
    const void *known_user;
    /* 1: a file with these first bytes is not compressed, even if they look so; NULL: unknown. */
    int (*is_plain)(const uint8_t *head, uint64_t n);
    /* Receives each damaged file on the caller's thread; the open then fails after the last file. A
     * non-zero result ends it with ECANCELED. NULL: the first damaged file fails the open. */
    int (*on_bad)(void *user, const struct pstk_error *bad);
    void *bad_user;
    uint32_t n_threads; /* threads that find points */
    struct pstk__index_watch watch;
};

#endif
