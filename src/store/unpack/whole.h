/* SPDX-License-Identifier: Apache-2.0 */
/*
 * whole: the table of compression formats whose files are unpacked as a whole, from begin to end,
 * and a function that unpacks a file and passes on its bytes piece by piece.
 */
#ifndef PSTK_UNPACK_WHOLE_H
#define PSTK_UNPACK_WHOLE_H

#include "store/store.h"
#include "store/unpack/packing.h"

struct pstk__whole_stream;

struct pstk__whole {
    const char *name;
    const char *repair;  /* advice about damage, for messages */
    const char *smaller; /* advice about PSTK__UNPACK_LARGE; NULL: step never returns it */
    const char *missing; /* package that the build lacked; NULL: none */
    /* Begin a file of `size` bytes that unpacks to `unpacked` bytes; PSTK_NONE: unknown. Returns
     * owned; NULL: out of memory. */
    struct pstk__whole_stream *(*open)(uint64_t size, uint64_t unpacked);
    /* Unpack further. Returns MORE, LARGE, MEMORY or BAD of enum pstk__unpacking. */
    enum pstk__unpacking (*step)(struct pstk__whole_stream *stream, struct pstk__unpack_io *io,
                                 const char **why);
    int (*is_complete)(const struct pstk__whole_stream *stream);
    /* 1: all bytes unpacked have checksums in the file. NULL: always 0. */
    int (*is_checked)(const struct pstk__whole_stream *stream);
    void (*close)(struct pstk__whole_stream *stream);
};

/* Numbers of the entries, after those of packing.h. */
#define PSTK__WHOLE_BZIP2 3
#define PSTK__WHOLE_BROTLI 4
#define PSTK__WHOLE_SNAPPY 5
#define PSTK__N_WHOLE 5

extern const struct pstk__whole pstk__whole_zstd, pstk__whole_bzip2, pstk__whole_brotli,
    pstk__whole_snappy;
/* Return the entry of a number from 2 to PSTK__N_WHOLE. */
const struct pstk__whole *pstk__whole_of(uint32_t number);

struct pstk__whole_job {
    const struct pstk__store *store;
    const char *path; /* path of the file */
    const char *name; /* name in the data set, for messages */
    uint32_t packing; /* number of its packing */
    /* The state of the file when it was listed; checked before the first read and after the last.
     */
    uint64_t size;      /* bytes */
    int64_t changed_ns; /* time of change, as in store.h */
    uint64_t unpacked;  /* bytes that it must unpack to; PSTK_NONE: any number, which the call then
                           sets */
    int is_checked;     /* 1: all bytes have checksums in the file; the call sets it */
    /* Receives the next bytes; a result below 0 ends the call. NULL: the bytes are only counted. */
    int (*take)(void *user, const void *bytes, uint64_t n, struct pstk_error *err);
    void *take_user;
    /* As in struct pstk__pass. */
    int (*progress)(void *user, uint64_t n);
    void *user;
};

/* Unpack a file. 0; EBADMSG: it is damaged, with its byte, unpacks to another number of bytes, or
 * was changed since it was listed: discard the bytes received; ENOTSUP: this build has no library
 * for it, or it needs a window above 128 MiB; ECANCELED; ENOMEM; other errors of store and take. */
int pstk__whole_unpack(struct pstk__whole_job *job, struct pstk_error *err);

#endif
