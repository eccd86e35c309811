/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files: a bounded table of open shard files, least recently used first out. L2. One thread.
 * A slot is pinned while reads on it are in flight; only unpinned slots are evicted.
 */
#ifndef PSTK_FILES_H
#define PSTK_FILES_H

#include "format/format.h"

struct pstk__files;

/* capacity: slots, >= 1. direct: open for O_DIRECT; where the file system refuses, files are
 * buffered and *rungs gets PSTK_RUNG_NO_DIRECT (at acquire). borrows source and rungs for its life.
 */
int pstk__files_open(struct pstk__files **out, const struct pstk__source *source, uint32_t capacity,
                     int direct, uint32_t *rungs, struct pstk_error *err);
/* Pin the file of a shard: *slot and *fd. Opens and checks it if need be. 1: the slot holds a new
 * fd, tell the reader; 0: as before; EBUSY: every slot is pinned; else an error naming the file. */
int pstk__files_acquire(struct pstk__files *f, uint32_t shard, uint32_t *slot, int *fd,
                        struct pstk_error *err);
void pstk__files_release(struct pstk__files *f, uint32_t slot);
/* Closes all. NULL is fine. */
void pstk__files_close(struct pstk__files *f);
/* The number of slots that suits n_shards and RLIMIT_NOFILE for each of n_tables tables that read
 * all the shards: half of the limit in all, as the program has files of its own. */
uint32_t pstk__files_capacity(uint64_t n_shards, uint32_t n_tables);

#endif
