/* SPDX-License-Identifier: Apache-2.0 */
/*
 * input: a compressed file that is read once from begin to end, and the buffers of its unpacker.
 * Its size and its time of change are compared with the data set's list before the first byte is
 * read and after the last. One thread.
 */
#ifndef PSTK_UNPACK_INPUT_H
#define PSTK_UNPACK_INPUT_H

#include "store/store.h"
#include "store/unpack/packing.h"

#define PSTK__UNPACK_READ (256u << 10) /* bytes of the file in one read */

struct pstk__unpack_input {
    const char *path;
    const char *name;    /* name in the data set, for messages */
    const char *packing; /* name of the packing, for messages: "gzip" */
    /* The state of the file when it was listed. */
    uint64_t size;      /* bytes */
    int64_t changed_ns; /* time of change, as in store.h */
    /* Receives the n bytes of the file done since the last call; a non-zero result ends with
     * ECANCELED. May be NULL. */
    int (*progress)(void *user, uint64_t n);
    void *user;
    struct pstk__file file;    /* owned once it is open; its fd is -1 before */
    uint8_t *buffer;           /* borrowed; PSTK__UNPACK_READ bytes */
    struct pstk__unpack_io io; /* in: the bytes read into the buffer; out: set by the owner */
    uint64_t n_read;           /* bytes of the file read */
    uint64_t reported;         /* part of n_read that was reported as progress */
};

/* Return the position in the file of the next byte. */
static inline uint64_t pstk__unpack_input_at(const struct pstk__unpack_input *input)
{
    return input->n_read - input->io.n_in;
}

/* Open the file at its path. EBADMSG: it was changed or replaced since it was listed; other errors
 * of the store. */
int pstk__unpack_input_open(struct pstk__unpack_input *input, const struct pstk__store *store,
                            struct pstk_error *err);
/* Read the next bytes of the file into io.in, which is empty. 1; 0: the file has ended, and
 * pstk__unpack_input_end must check it; ECANCELED; other errors of the store. */
int pstk__unpack_input_more(struct pstk__unpack_input *input, struct pstk_error *err);
/* Check after the last byte that the whole listed file was read, so that its unpacked bytes belong
 * to that file. EBADMSG: the file was changed, replaced or cut meanwhile; other errors of the
 * store. */
int pstk__unpack_input_end(const struct pstk__unpack_input *input, struct pstk_error *err);
/* Fail at the next byte of the file. repair: the advice in the message. Returns code. */
int pstk__unpack_input_fail(const struct pstk__unpack_input *input, int code, const char *why,
                            const char *repair, struct pstk_error *err);

#endif
