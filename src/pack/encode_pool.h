/* SPDX-License-Identifier: Apache-2.0 */
/*
 * encode_pool: the compression threads of a writer. Blocks go in in order, are encoded by any
 * thread, and come out in the same order. At most 4 blocks a thread, and 256 MiB of values or one
 * block, are under way. With one thread the pool makes none: push encodes.
 *
 * The writer's thread, the one caller of these functions, also calls emit. The pool's threads only
 * encode: they see the blocks under way and their own encoders, nothing of the writer.
 */
#ifndef PSTK_ENCODE_POOL_H
#define PSTK_ENCODE_POOL_H

#include "pack/block.h"

struct pstk__encode_pool;

struct pstk__encode_dictionary {
    void *bytes; /* NULL: none */
    uint64_t size;
};

struct pstk__encode_config {
    const struct pstk__schema *schema;                  /* borrowed for the pool's life */
    const struct pstk__encode_dictionary *dictionaries; /* by field; borrowed for open */
    uint32_t n_threads;                                 /* >= 1 */
    /* Called in push and drain, on their caller's thread, holding no lock, for each block in the
     * order of push; the block is borrowed for the call. An error ends that push or drain. */
    int (*emit)(void *user, struct pstk__block *b, struct pstk_error *err);
    void *user;
};

int pstk__encode_pool_open(struct pstk__encode_pool **out, const struct pstk__encode_config *config,
                           struct pstk_error *err);
/* An empty block to fill; returns owned, or NULL when memory is out. */
struct pstk__block *pstk__encode_pool_block(struct pstk__encode_pool *pool);
/* Takes the block, on failure too. Emits what is done. After a failure only close may follow. */
int pstk__encode_pool_push(struct pstk__encode_pool *pool, struct pstk__block *b,
                           struct pstk_error *err);
/* Emit all that was pushed. */
int pstk__encode_pool_drain(struct pstk__encode_pool *pool, struct pstk_error *err);
/* Stop the threads, free; what was not emitted is lost. NULL is fine. */
void pstk__encode_pool_close(struct pstk__encode_pool *pool);

#endif
