/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scatter: chooses the memory of the reads that a worker makes by itself (residency.h). Rows that
 * are the stored bytes of a field go from the page cache straight into the slot; all other bytes go
 * to the worker's spare buffer, which stays in its core's cache, or to the task's piece.
 *
 *   begin, each task -> parts, each read of the worker -> settle -> learn, each row
 *
 * Where a field lies in its extent is known only once the record's head is read, so it is taken
 * from the rows before: most data sets have rows of one size. A row whose field turns out to lie
 * elsewhere, or to be stored otherwise, is put together again in the memory of its extent. So each
 * check of a record sees what it sees without this, and reports it in the same words.
 *
 * A crop of stored pixels is not read so. Its record has one checksum over all pixels, so all are
 * read. By vectors, one for each row of pixels and one for each gap between two, a crop of 224 of
 * 256 pixels took 119 us of CPU with its checksum; through the spare buffer it took 100, through
 * the piece 136.
 *
 * Each worker has a state, which no other thread uses.
 */
#ifndef PSTK_SCATTER_H
#define PSTK_SCATTER_H

#include "reader/residency.h"
#include "sample/row.h"

#define PSTK__SCATTER_PLACES 4u /* outputs whose rows are read into the slot */

struct pstk__pipeline;
struct pstk__record;
struct pstk__row_io;
struct pstk__span_io;
struct pstk__task;

/* The position of a field in the extents of a row. */
struct pstk__scatter_position {
    uint32_t extent;  /* index */
    uint32_t is_last; /* 1: nothing but the gap after it follows in the extent */
    uint64_t offset;  /* bytes from the begin of the extent */
};

/* An output whose rows may be the stored bytes of its field. */
struct pstk__scatter_place {
    uint32_t output, field;
    uint32_t is_ragged, is_image;
    uint32_t n_same;  /* rows in a row that were stored bytes at `seen`, at most SETTLED */
    uint32_t is_used; /* 1: the reads of the task under way go by `used` */
    uint64_t room;    /* bytes of a row */
    struct pstk__scatter_position seen, used; /* of the last row; of the rows of the task */
};

struct pstk__scatter {
    uint32_t n_places; /* in the order of their fields */
    struct pstk__scatter_place places[PSTK__SCATTER_PLACES];
    uint8_t *spare;      /* borrowed */
    uint64_t spare_size; /* bytes */
    uint64_t spare_used; /* bytes of the row under way */
};

/* Find the outputs. spare: memory of pipeline->spare_size bytes; borrowed. */
void pstk__scatter_init(struct pstk__scatter *scatter, const struct pstk__pipeline *pipeline,
                        uint8_t *spare);
/* Begin a task: use what its predecessors have shown. */
void pstk__scatter_begin(struct pstk__scatter *scatter);
/* Begin a row: the spare buffer is free again. */
void pstk__scatter_row(struct pstk__scatter *scatter);
/* Fill the parts of a span's read, and return their number, at least 1. */
uint32_t pstk__scatter_parts(struct pstk__scatter *scatter, const struct pstk__task *task,
                             struct pstk__span_io *span_io, struct iovec parts[PSTK__READ_PARTS]);
/* Point the fields of a parsed record to the bytes that lie in the rows of the slot, or put these
 * bytes to where the record has them. */
void pstk__scatter_settle(const struct pstk__scatter *scatter, const struct pstk__row_io *io,
                          struct pstk__record *record, struct pstk__row *rows);
/* Learn from a row that is written. */
void pstk__scatter_learn(struct pstk__scatter *scatter, const struct pstk__row_io *io,
                         uint32_t n_extents, const struct pstk__record *record,
                         const struct pstk__row *rows);

#endif
