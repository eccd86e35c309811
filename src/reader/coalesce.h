/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coalesce: rows that lie close together in a file become one read. Pure: one row at a time, in the
 * order of the rows, joins the span before it or begins one.
 *
 * Invariants: a span's rows follow each other without a gap in their numbers; its begin is that of
 * its first row, its end the largest of all; its memory is what its aligned read takes. All spans
 * together stay within limits.memory.
 */
#ifndef PSTK_COALESCE_H
#define PSTK_COALESCE_H

#include <stdint.h>

/* What spans may be. Files end below 2^44 and all limits lie below 2^62: no sum overflows. */
struct pstk__span_limits {
    uint64_t memory; /* bytes of I/O memory of all spans together */
    uint64_t single; /* bytes of I/O memory of one span */
    uint64_t joined; /* bytes of the file from the begin of a span to the end of a row that joins */
    uint64_t gap;    /* bytes between two rows that are cheaper read than skipped */
    uint32_t offset_align; /* of a read's begin and end in the file; a power of two or not, >= 1 */
    uint32_t memory_align; /* of a read's place in memory; a power of two or not, >= 1 */
};

/* Rows that one read gets. */
struct pstk__span {
    uint32_t file;       /* number of it */
    uint32_t first, n;   /* rows */
    uint64_t begin, end; /* bytes of the file that the rows need */
    uint64_t memory;     /* bytes of I/O memory of the read; set by join */
};

enum pstk__span_fate {
    PSTK__SPAN_JOINED,  /* the row is part of the last span now */
    PSTK__SPAN_BEGUN,   /* the row begins a span: itself, with its memory set */
    PSTK__SPAN_REFUSED, /* no memory is left for the row: nothing has changed */
};

/* Decide where a row belongs. last: the span that the row before it belongs to, or an older one;
 * NULL: there is none. row: a span of this one row, n = 1, begin <= end. *memory: bytes of all
 * spans, kept up. */
enum pstk__span_fate pstk__span_join(const struct pstk__span_limits *limits,
                                     struct pstk__span *last, struct pstk__span *row,
                                     uint64_t *memory);
/* Where the read of a span begins in the file, and its size. */
uint64_t pstk__span_offset(const struct pstk__span_limits *limits, const struct pstk__span *span);
uint64_t pstk__span_size(const struct pstk__span_limits *limits, const struct pstk__span *span);

#endif
