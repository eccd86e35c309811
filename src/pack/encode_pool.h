/* SPDX-License-Identifier: Apache-2.0 */
/*
 * encode: the compression threads of a writer. L2. Blocks go in in order, are encoded by any
 * thread, and come out in the same order, in the caller's thread. At most 4 blocks a thread, and
 * 256 MiB of values or one block, are under way. With one thread no thread is made.
 */
#ifndef PSTK_ENCODE_H
#define PSTK_ENCODE_H

#include "pack/block.h"

struct pstk__encode_window;

struct pstk__encode_dictionary {
    void *bytes; /* NULL: none */
    uint64_t size;
};

struct pstk__encode_config {
    const struct pstk__schema *schema;                  /* borrowed for the window's life */
    const struct pstk__encode_dictionary *dictionaries; /* by field; borrowed for open */
    uint32_t n_threads;                                 /* >= 1 */
    /* Takes what comes out; the block is borrowed for the call. */
    int (*emit)(void *user, struct pstk__block *b, struct pstk_error *err);
    void *user;
};

int pstk__encode_window_open(struct pstk__encode_window **out,
                             const struct pstk__encode_config *config, struct pstk_error *err);
/* An empty block to fill; returns owned, or NULL when memory is out. */
struct pstk__block *pstk__encode_window_block(struct pstk__encode_window *w);
/* Takes the block, on failure too. Emits what is done. After a failure only close may follow. */
int pstk__encode_window_push(struct pstk__encode_window *w, struct pstk__block *b,
                             struct pstk_error *err);
/* Emit all that was pushed. */
int pstk__encode_window_drain(struct pstk__encode_window *w, struct pstk_error *err);
/* Stop the threads, free; what was not emitted is lost. NULL is fine. */
void pstk__encode_window_close(struct pstk__encode_window *w);

#endif
