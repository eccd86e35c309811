/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coalesce: joins rows that lie close together in a file into one read. Pure. The rows come one at
 * a time, in order; each joins the span before it or begins one.
 *
 * Invariants: the numbers of a span's rows are consecutive; its begin is that of its first row, its
 * end the largest of all; its memory is the size of its aligned read. All spans together stay
 * within limits.memory.
 */
#ifndef PSTK_COALESCE_H
#define PSTK_COALESCE_H

#include <stdint.h>

/* The limits of spans. Files end below 2^44 and all limits lie below 2^62: no sum overflows. */
struct pstk__span_limits {
    uint64_t memory; /* bytes of I/O memory of all spans together */
    uint64_t single; /* bytes of I/O memory of one span */
    uint64_t joined; /* bytes of the file from the begin of a span to the end of a row that joins */
    uint64_t gap;    /* bytes between two rows that are cheaper to read than to skip */
    uint32_t offset_align; /* alignment of a read's begin and end in the file; any number >= 1 */
    uint32_t memory_align; /* alignment of a read's address in memory; any number >= 1 */
};

/* Rows that one read covers. */
struct pstk__span {
    uint32_t file;       /* number of the file */
    uint32_t first, n;   /* rows */
    uint64_t begin, end; /* bytes of the file that the rows need */
    uint64_t memory;     /* bytes of I/O memory of the read; set by join */
};

enum pstk__span_fate {
    PSTK__SPAN_JOINED,  /* the row is now part of the last span */
    PSTK__SPAN_BEGUN,   /* the row begins a new span, and its memory is set */
    PSTK__SPAN_REFUSED, /* no memory is left for the row; nothing has changed */
};

/* Join a row to a span, or begin one. last: the span of the row before, or an older one; NULL:
 * there is none. row: a span of this one row, n = 1, begin <= end. *memory: bytes of all spans,
 * updated. */
enum pstk__span_fate pstk__span_join(const struct pstk__span_limits *limits,
                                     struct pstk__span *last, struct pstk__span *row,
                                     uint64_t *memory);
/* Return the offset in the file of a span's read, and its size. */
uint64_t pstk__span_offset(const struct pstk__span_limits *limits, const struct pstk__span *span);
uint64_t pstk__span_size(const struct pstk__span_limits *limits, const struct pstk__span *span);

#endif
