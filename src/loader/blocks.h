/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blocks: a windowed order read by whole blocks, each once. The cache of a lane, of fixed size.
 *
 * A block is read ahead. When a way comes near its next window, the window's blocks are requested,
 * in the order in which ways come near. Rows find the block that has their bytes. A row is read by
 * itself if its block is absent, because the loader has just begun or has sought. If blocks are
 * small, the row requests its block and waits.
 *
 *   ABSENT -> PLANNED (its extents are being found) -> BARE (known, no memory yet) -> READING ->
 * READY
 *
 * A block leaves, from BARE or READY, when its windows are past and no task that uses it is
 * unfinished. All functions run on the lane's reader thread, except open and close, which run
 * before it starts and after it ends.
 */
#ifndef PSTK_BLOCKS_H
#define PSTK_BLOCKS_H

#include "loader/fetch.h"
#include "reader/heap.h"

/* memory: borrowed, page aligned, need->memory bytes. */
int pstk__blocks_open(struct pstk__blocks **out, struct pstk__lane *lane,
                      const struct pstk__blocks_footprint *need, void *memory,
                      struct pstk_error *err);
void pstk__blocks_close(struct pstk__blocks *blocks);

/* Return 1 if another task can be listed; 0: too many tasks are unfinished, list one later. */
int pstk__blocks_have_room(struct pstk__blocks *blocks);
/* Number a task that is about to be planned. */
void pstk__blocks_list(struct pstk__blocks *blocks, struct pstk__task *task);
/* Find the block of position k of a slot's epoch for a task. Sets pick, block and row of io; block
 * is NULL if the row must be read by itself. Requests the next blocks. */
void pstk__blocks_find(struct pstk__blocks *blocks, const struct pstk__task *task, uint64_t k,
                       struct pstk__row_io *io);
/* Take a row's extents from its block. Returns 0 while the block is being read. If the block has no
 * memory yet, io->block becomes NULL, and the row is read by itself. */
int pstk__blocks_resolve(struct pstk__blocks *blocks, struct pstk__row_io *io);
/* Plan, place and queue the requested blocks. Returns 1 if it got anything done. */
int pstk__blocks_advance(struct pstk__blocks *blocks);
/* Count a finished span of a block's fetch. */
void pstk__blocks_span_done(struct pstk__blocks *blocks, struct pstk__span_io *span_io);

#endif
