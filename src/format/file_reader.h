/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file_reader: reads a file of a data set once from begin to end for an index. Reads are large if
 * the file is read in full, and small if most of its bytes are skipped. One thread.
 */
#ifndef PSTK_FORMAT_FILE_READER_H
#define PSTK_FORMAT_FILE_READER_H

#include "format/indexed.h"

/* Max unwanted bytes that are read instead of skipped. */
#define PSTK__FILE_READER_SMALL 65536
/* Bytes of one read of a skipping reader. */
#define PSTK__FILE_READER_HEADER 4096

struct pstk__file_reader {
    const struct pstk__scan *scan; /* borrowed */
    struct pstk_error *err;        /* borrowed */
    struct pstk__file file;        /* owned */
    uint8_t *buffer;               /* owned */
    uint64_t max;                  /* bytes of the buffer */
    uint64_t begin, n;             /* range of the file in the buffer */
    uint64_t at;                   /* position of the next wanted byte, set by the caller */
    uint64_t read;                 /* bytes of one read */
    uint64_t reported;             /* bytes reported as done */
};

/* Open the file. Call close even after a failure. ENOMEM, other errors of the store. */
int pstk__file_reader_open(struct pstk__file_reader *reader, const struct pstk__scan *scan,
                           struct pstk_error *err);
void pstk__file_reader_close(struct pstk__file_reader *reader);
/* Read so that the buffer has at least `wanted` bytes from reader->at on, or all that the file has;
 * the buffer grows as needed. Returns the number of these bytes, or an error. */
int64_t pstk__file_reader_fill(struct pstk__file_reader *reader, uint64_t wanted);
/* Choose the size of reads by the bytes of the last item. */
static inline void pstk__file_reader_adapt(struct pstk__file_reader *reader, uint64_t size)
{
    reader->read =
        size > PSTK__FILE_READER_SMALL ? PSTK__FILE_READER_HEADER : 4 * PSTK__FILE_READER_SMALL;
}
/* Return the bytes at reader->at, after fill. */
static inline const uint8_t *pstk__file_reader_bytes(const struct pstk__file_reader *reader)
{
    return reader->buffer + (reader->at - reader->begin);
}
/* Report the bytes before reader->at as done, now and then; at the end of the file all of them.
 * ECANCELED: the caller of the scan ended it. */
int pstk__file_reader_report(struct pstk__file_reader *reader);

#endif
