/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch: turns rows that are read together into extents, extents into spans, and spans into reads.
 * The steps of a lane's reader for the rows of a task and for those of a block alike:
 *
 *   plan_row, each row  ->  resolve  ->  lay_out  ->  place  ->  queue  ->  ... page_done,
 * span_done
 *
 * All functions but span_read run on the lane's reader thread, which holds no lock.
 */
#ifndef PSTK_FETCH_H
#define PSTK_FETCH_H

#include "loader/pipeline.h"

enum { PSTK__READ_SPAN = 0, PSTK__READ_PAGE = 1 }; /* pstk__read.user */

/* The result of planning a row. */
enum pstk__row_plan {
    PSTK__ROW_KNOWN, /* its extent is known */
    PSTK__ROW_WAITS, /* its page is pinned and being read */
    PSTK__ROW_SLOW,  /* it is left to the slow path */
    PSTK__ROW_LATER, /* no page frame, read or file is free: it is planned again */
};

/* Find the extents of a row's sample, or begin to read the page that holds them. Sets at, page,
 * slow. */
enum pstk__row_plan pstk__fetch_plan_row(struct pstk__lane *l, struct pstk__row_io *io,
                                         uint64_t id);
/* Turn the page of a row into extents. Returns 0 while the page is being read. */
int pstk__fetch_resolve_row(struct pstk__lane *l, struct pstk__row_io *io);
/* Lay the rows that are read by themselves out as spans. Rows that do not fit in the limits take
 * the slow path. Rows that lie next to each other do so in each of their files: extent 0 of all
 * rows comes before extent 1. */
void pstk__fetch_lay_out(struct pstk__lane *l, struct pstk__fetch *fetch,
                         const struct pstk__span_limits *limits);
/* Assign memory_size bytes to spans and rows. fixed: the memory is the lane's I/O memory. */
void pstk__fetch_place(const struct pstk__lane *l, struct pstk__fetch *fetch, uint8_t *memory,
                       int fixed);
/* Queue the reads, but leave those of a task that the page cache holds to its worker. Returns 0 if
 * some are not queued yet. */
int pstk__fetch_queue(struct pstk__lane *l, struct pstk__fetch *fetch);
/* Return 1 if all reads were queued and are done. */
static inline int pstk__fetch_is_done(const struct pstk__fetch *fetch)
{
    return fetch->next_span == fetch->n_spans && fetch->n_left == 0;
}
/* Take the tasks that workers gave back into the lane's free ones, and unpin the files that they
 * read. Returns the number of files. */
uint32_t pstk__fetch_take_back(struct pstk__lane *l);
/* Count a span's bytes, or, if bytes are missing, leave its rows to the slow path. Thread: the one
 * that owns the task. */
void pstk__fetch_span_read(struct pstk__span_io *span_io);
/* Finish a read: of a page, of a span. */
void pstk__fetch_page_done(struct pstk__lane *l, struct pstk__page *page);
void pstk__fetch_span_done(struct pstk__lane *l, struct pstk__span_io *span_io);

#endif
