/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spot: a folder where an index may lie, and the file of its lock. The folder may have been made by
 * anybody who can write next to the data. Files are made only in a folder that is this user's or
 * root's (by root also in that of the data's owner), which is no link, by its descriptor. An index
 * that is a link, or lies in one, is not used. Its owner is that of the opened file, which is then
 * read by its descriptor.
 */
#ifndef PSTK_INDEX_SPOT_H
#define PSTK_INDEX_SPOT_H

#include <penstock/types.h>

#include <limits.h>

struct pstk__index_location {
    const char *data;   /* folder of the data set */
    const char *cache;  /* folder for caches, or NULL */
    const char *format; /* begins the name of the file */
    const char *ending; /* ends it; NULL: ".index" */
    const char *what;   /* it is, for messages; NULL: "index" */
    uint64_t key[2]; /* digest of all that the index depends on, except sizes and times of files */
    uint64_t place[2]; /* digest of the absolute path of the data set, for its name in `cache` */
};

struct pstk__index_spot {
    char folder[PATH_MAX];
    char index[PATH_MAX];
    char lock[PATH_MAX];
};

/* Why a spot is not for writing. */
struct pstk__index_refusal {
    int native;      /* errno, positive */
    const char *why; /* static storage; NULL: as errno says */
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

/* 1: what this user wrote for data of that owner is used; both are user ids. */
int pstk__index_trusts(uint32_t user, uint32_t data_owner);
/* 0, or EINVAL: a path is too long. */
int pstk__index_spot_of(const struct pstk__index_location *location, int in_cache,
                        struct pstk__index_spot *spot);
/* Open the index whose owner is trusted. Returns the descriptor, owned; -1: there is none; or there
 * is one that is not used: *why, static storage. */
int pstk__index_spot_read(const struct pstk__index_location *location,
                          const struct pstk__index_spot *spot, const char **why);
/* Open the folder for writing, and make it if it is missing. Returns the descriptor, owned; -1: it
 * is not for writing. */
int pstk__index_spot_open(const struct pstk__index_location *location, int in_cache,
                          const struct pstk__index_spot *spot, struct pstk__index_refusal *refusal);

#endif
