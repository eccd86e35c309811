/* SPDX-License-Identifier: Apache-2.0 */
/*
 * through: a file of a data set, read once from its begin to its end for an index. Reads are large
 * where the file is read through, and small where most of its bytes are skipped. One thread.
 */
#ifndef PSTK_FORMAT_THROUGH_H
#define PSTK_FORMAT_THROUGH_H

#include "format/indexed.h"

/* Up to so many bytes, what is not wanted is read through, not skipped. */
#define PSTK__THROUGH_SMALL 65536
/* Bytes that a skipping reader reads at once. */
#define PSTK__THROUGH_HEADER 4096

struct pstk__through {
    const struct pstk__scan *scan; /* borrowed */
    struct pstk_error *err;        /* borrowed */
    struct pstk__file file;        /* owned */
    uint8_t *buffer;               /* owned */
    uint64_t max;                  /* bytes of it */
    uint64_t begin, n;             /* bytes of the file that it has */
    uint64_t at;                   /* of what is wanted next; the caller's to set */
    uint64_t read;                 /* bytes to read at once */
    uint64_t reported;             /* bytes */
};

/* Open the file. Close ends it, also after a failure. ENOMEM, others of the store. */
int pstk__through_open(struct pstk__through *through, const struct pstk__scan *scan,
                       struct pstk_error *err);
void pstk__through_close(struct pstk__through *through);
/* Have at least `wanted` bytes from through->at on in the buffer, or all that the file has: as many
 * as it returns, or an error. The buffer grows to what is wanted. */
int64_t pstk__through_fill(struct pstk__through *through, uint64_t wanted);
/* Choose the size of reads by the bytes of what was found last. */
static inline void pstk__through_adapt(struct pstk__through *through, uint64_t size)
{
    through->read = size > PSTK__THROUGH_SMALL ? PSTK__THROUGH_HEADER : 4 * PSTK__THROUGH_SMALL;
}
/* The bytes at through->at, after fill. */
static inline const uint8_t *pstk__through_bytes(const struct pstk__through *through)
{
    return through->buffer + (through->at - through->begin);
}
/* Report what lies before through->at as done, now and then; at the end of the file all of it.
 * ECANCELED: the caller of the scan wants no more. */
int pstk__through_report(struct pstk__through *through);

#endif
