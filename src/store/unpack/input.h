/* SPDX-License-Identifier: Apache-2.0 */
/*
 * input: a compressed file that is read once, from its begin to its end, and the buffers of what
 * unpacks it. It is the file that the data set lists: its size and its time of change are checked
 * before the first byte is read and after the last. One thread.
 */
#ifndef PSTK_UNPACK_INPUT_H
#define PSTK_UNPACK_INPUT_H

#include "store/store.h"
#include "store/unpack/packing.h"

#define PSTK__UNPACK_READ (256u << 10) /* bytes of the file at once */

struct pstk__unpack_input {
    const char *path;
    const char *name;    /* as the data set lists it, for messages */
    const char *packing; /* "gzip", for messages */
    /* What the file was when it was listed. */
    uint64_t size;      /* bytes */
    int64_t changed_ns; /* as store.h */
    /* Report n more bytes of the file as done; a non-zero result: stop with ECANCELED. Or NULL. */
    int (*progress)(void *user, uint64_t n);
    void *user;
    struct pstk__file file;    /* owned once it is open; before, its fd is -1 */
    uint8_t *buffer;           /* borrowed; PSTK__UNPACK_READ bytes */
    struct pstk__unpack_io io; /* in: what was read into the buffer; out: the owner's */
    uint64_t n_read;           /* bytes of the file */
    uint64_t reported;         /* of these */
};

/* The byte of the file that comes next. */
static inline uint64_t pstk__unpack_input_at(const struct pstk__unpack_input *input)
{
    return input->n_read - input->io.n_in;
}

/* Open the file at its path. EBADMSG: it was changed or replaced since it was listed; others of the
 * store. */
int pstk__unpack_input_open(struct pstk__unpack_input *input, const struct pstk__store *store,
                            struct pstk_error *err);
/* Have the next bytes of the file in io.in, which is empty. 1; 0: it ends, for
 * pstk__unpack_input_end to check; ECANCELED; others of the store. */
int pstk__unpack_input_more(struct pstk__unpack_input *input, struct pstk_error *err);
/* Check, after the last byte, that all of the file which was listed was read: what was made of its
 * bytes is of that file, then. EBADMSG: it was changed, replaced or cut meanwhile; others of the
 * store. */
int pstk__unpack_input_end(const struct pstk__unpack_input *input, struct pstk_error *err);
/* Fail at the byte that comes next. repair: what to do. Returns code. */
int pstk__unpack_input_fail(const struct pstk__unpack_input *input, int code, const char *why,
                            const char *repair, struct pstk_error *err);

#endif
