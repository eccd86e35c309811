/* SPDX-License-Identifier: Apache-2.0 */
/*
 * whole: the table of ways to compress files that are unpacked as a whole, from the begin to the
 * end; and unpacking one. What it gives is handed on piece by piece.
 */
#ifndef PSTK_UNPACK_WHOLE_H
#define PSTK_UNPACK_WHOLE_H

#include "store/store.h"
#include "store/unpack/packing.h"

struct pstk__whole_stream;

struct pstk__whole {
    const char *name;
    const char *repair;  /* as of struct pstk__packing */
    const char *smaller; /* what to do about LARGE; NULL: step never returns it */
    const char *missing; /* the package that the build lacked; NULL: it is there */
    /* Begin a file of `size` bytes that unpacks to `unpacked`, or PSTK_NONE. Returns owned; NULL:
     * no memory. */
    struct pstk__whole_stream *(*open)(uint64_t size, uint64_t unpacked);
    /* Go on. MORE, LARGE, MEMORY or BAD, as of struct pstk__packing. */
    enum pstk__unpacking (*step)(struct pstk__whole_stream *stream, struct pstk__unpack_io *io,
                                 const char **why);
    int (*is_complete)(const struct pstk__whole_stream *stream);
    /* 1: all that was unpacked has checksums in the file. NULL: it never has. */
    int (*is_checked)(const struct pstk__whole_stream *stream);
    void (*close)(struct pstk__whole_stream *stream);
};

/* Numbers, after those of packing.h. */
#define PSTK__WHOLE_BZIP2 3
#define PSTK__WHOLE_BROTLI 4
#define PSTK__WHOLE_SNAPPY 5
#define PSTK__N_WHOLE 5

extern const struct pstk__whole pstk__whole_zstd, pstk__whole_bzip2, pstk__whole_brotli,
    pstk__whole_snappy;
/* Of a number from 2 to PSTK__N_WHOLE. */
const struct pstk__whole *pstk__whole_of(uint32_t number);

struct pstk__whole_job {
    const struct pstk__store *store;
    const char *path; /* of the file */
    const char *name; /* as the data set lists it, for messages */
    uint32_t packing; /* number */
    /* What the file was when it was listed; checked before the first read and after the last. */
    uint64_t size;      /* bytes */
    int64_t changed_ns; /* as store.h */
    uint64_t unpacked;  /* bytes that it must unpack to; PSTK_NONE: any number, which is set */
    int is_checked;     /* set: 1, all of it has checksums in the file */
    /* Take the next bytes. <0 ends it. NULL: they are counted. */
    int (*take)(void *user, const void *bytes, uint64_t n, struct pstk_error *err);
    void *take_user;
    /* As of struct pstk__pass. */
    int (*progress)(void *user, uint64_t n);
    void *user;
};

/* Unpack a file. 0; EBADMSG: it is damaged, with its byte, unpacks to another number of bytes, or
 * is no longer the one that was listed: what was taken counts for nothing; ENOTSUP: this build has
 * no library for it, or it needs a window above 128 MiB; ECANCELED; ENOMEM; others of store and
 * take. */
int pstk__whole_unpack(struct pstk__whole_job *job, struct pstk_error *err);

#endif
