/* SPDX-License-Identifier: Apache-2.0 */
/*
 * encode_pool: the compression threads of a writer. Any thread encodes a block; the blocks come out
 * in the order in which they went in. At most 4 blocks a thread are in the pool, and at most 256
 * MiB of values, or one block if it is larger. With n_threads 1 the pool starts no thread: push
 * encodes.
 *
 * One thread, the writer's, calls all functions below, and emit runs on it. The pool's threads only
 * encode: they see blocks in the pool and their own encoders, nothing else of the writer.
 */
#ifndef PSTK_ENCODE_POOL_H
#define PSTK_ENCODE_POOL_H

#include "pack/block.h"

struct pstk__encode_pool;

struct pstk__encode_dictionary {
    void *bytes; /* NULL: no dictionary */
    uint64_t size;
};

struct pstk__encode_config {
    const struct pstk__schema *schema;                  /* borrowed for the pool's life */
    const struct pstk__encode_dictionary *dictionaries; /* by field; borrowed for open */
    uint32_t n_threads;                                 /* >= 1 */
    /* Called in push and drain for each block, in the order of push, on their caller's thread, with
     * no lock held; borrows the block for the call. An error ends that push or drain. */
    int (*emit)(void *user, struct pstk__block *b, struct pstk_error *err);
    void *user;
};

int pstk__encode_pool_open(struct pstk__encode_pool **out, const struct pstk__encode_config *config,
                           struct pstk_error *err);
/* Return an empty block to fill, owned; NULL if there is no memory. */
struct pstk__block *pstk__encode_pool_block(struct pstk__encode_pool *pool);
/* Add a block, and emit blocks that are done. Takes the block, also on failure. After a failure
 * only close may be called. */
int pstk__encode_pool_push(struct pstk__encode_pool *pool, struct pstk__block *b,
                           struct pstk_error *err);
/* Wait for all blocks and emit them. */
int pstk__encode_pool_drain(struct pstk__encode_pool *pool, struct pstk_error *err);
/* Stop the threads and free; blocks not yet emitted are lost. NULL is fine. */
void pstk__encode_pool_close(struct pstk__encode_pool *pool);

#endif
