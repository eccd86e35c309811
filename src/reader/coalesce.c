/* SPDX-License-Identifier: Apache-2.0 */
#include "reader/coalesce.h"

#include <stddef.h>

static uint64_t align_down(uint64_t x, uint64_t a)
{
    return x / a * a;
}

static uint64_t align_up(uint64_t x, uint64_t a)
{
    return (x + a - 1) / a * a;
}

/* Return 1 if the row follows the span in number, and lies close enough to it in the file. */
static int is_near(const struct pstk__span_limits *limits, const struct pstk__span *last,
                   const struct pstk__span *row)
{
    return last->file == row->file && last->first + last->n == row->first &&
           row->begin >= last->begin && row->begin <= last->end + limits->gap &&
           row->end - last->begin <= limits->joined;
}

enum pstk__span_fate pstk__span_join(const struct pstk__span_limits *limits,
                                     struct pstk__span *last, struct pstk__span *row,
                                     uint64_t *memory)
{
    const int joins = last && is_near(limits, last, row);
    struct pstk__span whole = joins ? *last : *row;
    if (joins) {
        whole.end = row->end > last->end ? row->end : last->end;
        whole.n++;
    }
    whole.memory = align_up(pstk__span_size(limits, &whole), limits->memory_align);
    const uint64_t all = *memory - (joins ? last->memory : 0) + whole.memory;
    if (all > limits->memory || whole.memory > limits->single)
        return PSTK__SPAN_REFUSED;
    *memory = all;
    *(joins ? last : row) = whole;
    return joins ? PSTK__SPAN_JOINED : PSTK__SPAN_BEGUN;
}

uint64_t pstk__span_offset(const struct pstk__span_limits *limits, const struct pstk__span *span)
{
    return align_down(span->begin, limits->offset_align);
}

uint64_t pstk__span_size(const struct pstk__span_limits *limits, const struct pstk__span *span)
{
    return align_up(span->end, limits->offset_align) - pstk__span_offset(limits, span);
}
