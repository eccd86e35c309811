/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spot: a folder where an index may lie, and the file of its lock. Anybody who can write next to
 * the data may have made the folder. The library makes files only in a folder that is no link and
 * belongs to this user or root (for root also to the data's owner), and opens them through the
 * folder's descriptor. It does not use an index that is a link or lies in a linked folder. It
 * trusts an index by the owner of the opened file, and reads through that descriptor.
 */
#ifndef PSTK_INDEX_SPOT_H
#define PSTK_INDEX_SPOT_H

#include <penstock/types.h>

#include <limits.h>

struct pstk__index_location {
    const char *data;   /* folder of the data set */
    const char *cache;  /* folder for caches, or NULL */
    const char *format; /* begin of the file's name */
    const char *ending; /* ending of the file's name; NULL: ".index" */
    const char *what;   /* kind of file for messages; NULL: "index" */
    uint64_t key[2]; /* digest of all that the index depends on, except sizes and times of files */
    uint64_t path_digest[2]; /* digest of the data set's absolute path, for the name in `cache` */
};

struct pstk__index_spot {
    char folder[PATH_MAX];
    char index[PATH_MAX];
    char lock[PATH_MAX];
};

/* The reason why a spot cannot be written to. */
struct pstk__index_refusal {
    int native;      /* errno, positive */
    const char *why; /* reason, static storage; NULL: the text of errno */
};

static inline int pstk__index_refuse(struct pstk__index_refusal *refusal, int native,
                                     const char *why)
{
    *refusal = (struct pstk__index_refusal){native, why};
    return -1;
}

static inline const char *pstk__index_what(const struct pstk__index_location *location)
{
    return location->what ? location->what : "index";
}

/* 1: the library uses a file that `user` wrote for data of `data_owner`; both are user ids. */
int pstk__index_trusts(uint32_t user, uint32_t data_owner);
/* Set the paths of a spot. 0, or EINVAL: a path is too long. */
int pstk__index_spot_of(const struct pstk__index_location *location, int in_cache,
                        struct pstk__index_spot *spot);
/* Open the index if its owner is trusted. Returns the descriptor, owned; -1: there is none, or it
 * is not used: then *why is the reason, static storage. */
int pstk__index_spot_read(const struct pstk__index_location *location,
                          const struct pstk__index_spot *spot, const char **why);
/* Open the folder for writing, and make it if it is missing. Returns the descriptor, owned; -1: it
 * cannot be written to. */
int pstk__index_spot_open(const struct pstk__index_location *location, int in_cache,
                          const struct pstk__index_spot *spot, struct pstk__index_refusal *refusal);

#endif
