/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file_reader: a file of a data set, read once from its begin to its end for an index. Reads are
 * large where the file is read through, and small where most of its bytes are skipped. One thread.
 */
#ifndef PSTK_FORMAT_FILE_READER_H
#define PSTK_FORMAT_FILE_READER_H

#include "format/indexed.h"

/* Up to so many bytes, what is not wanted is read through, not skipped. */
#define PSTK__FILE_READER_SMALL 65536
/* Bytes that a skipping reader reads at once. */
#define PSTK__FILE_READER_HEADER 4096

struct pstk__file_reader {
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
int pstk__file_reader_open(struct pstk__file_reader *reader, const struct pstk__scan *scan,
                           struct pstk_error *err);
void pstk__file_reader_close(struct pstk__file_reader *reader);
/* Have at least `wanted` bytes from reader->at on in the buffer, or all that the file has: as many
 * as it returns, or an error. The buffer grows to what is wanted. */
int64_t pstk__file_reader_fill(struct pstk__file_reader *reader, uint64_t wanted);
/* Choose the size of reads by the bytes of what was found last. */
static inline void pstk__file_reader_adapt(struct pstk__file_reader *reader, uint64_t size)
{
    reader->read =
        size > PSTK__FILE_READER_SMALL ? PSTK__FILE_READER_HEADER : 4 * PSTK__FILE_READER_SMALL;
}
/* The bytes at reader->at, after fill. */
static inline const uint8_t *pstk__file_reader_bytes(const struct pstk__file_reader *reader)
{
    return reader->buffer + (reader->at - reader->begin);
}
/* Report what lies before reader->at as done, now and then; at the end of the file all of it.
 * ECANCELED: the caller of the scan wants no more. */
int pstk__file_reader_report(struct pstk__file_reader *reader);

#endif
