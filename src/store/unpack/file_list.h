/* SPDX-License-Identifier: Apache-2.0 */
/* file_list: the files of a data set, some of which may be compressed, as its format lists them. */
#ifndef PSTK_UNPACK_FILE_LIST_H
#define PSTK_UNPACK_FILE_LIST_H

#include "base/texts.h"
#include "store/index/location.h"
#include "store/store.h"

#include <penstock/format.h>

/* The files of a data set. Borrows all for the call of open, except the store. */
struct pstk__unpack_files {
    const struct pstk__store *store; /* borrowed for its life */
    const char *folder;
    const struct pstk__texts *names; /* below the folder */
    const uint64_t *sizes;           /* bytes */
    const int64_t *changed_ns;       /* as store.h */
    const char *cache;               /* folder for caches, or NULL */
    uint64_t cache_size;             /* bytes of its entries at most; 0: auto */
    const char *format;              /* of the data set */
    /* What is known of file i: the number of its packing (packing.h, whole.h), 0: none; and, if it
     * is not 0, the bytes that it unpacks to. NULL: nothing is, so first bytes and names count. */
    void (*known)(const void *user, uint64_t i, uint32_t *packing, uint64_t *unpacked);
    const void *known_user;
    /* 1: a file with these first bytes is not compressed, whatever it looks like; NULL: nobody
     * knows. */
    int (*is_plain)(const uint8_t *head, uint64_t n);
    /* NULL: a damaged file fails the open at once. Else each one is handed on, and the open fails
     * after the last; a non-zero result ends it with ECANCELED. On the caller's thread. */
    int (*on_bad)(void *user, const struct pstk_error *bad);
    void *bad_user;
    uint32_t n_threads; /* to find points */
    struct pstk__index_watch watch;
};

#endif
