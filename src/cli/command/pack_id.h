/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack_id: identifies the pack that a numbered part belongs to. The processes that pack the parts
 * do not talk to each other, so each computes the id from what all of them share.
 */
#ifndef PSTK_CLI_PACK_ID_H
#define PSTK_CLI_PACK_ID_H

#include "command/tree.h"

#define PACK_ID_SIZE 32 /* hex digits */

/* Two hashes of 64 bits: FNV-1a (Fowler, Noll, Vo), and a variant with another multiplier, start
 * and a shift, so that both never collide for the same reason. They find mistakes, not attacks. */
struct pack_hash {
    uint64_t a, b;
};

struct pack_hash pack_hash_begin(void);
/* Add a text with its terminating 0, which separates it from the next. */
void pack_hash_add(struct pack_hash *hash, const char *text);
/* Add a number as a decimal text. */
void pack_hash_add_number(struct pack_hash *hash, uint64_t number);
/* Write the hash in hex. Returns `text`. */
const char *pack_hash_text(const struct pack_hash *hash, char text[PACK_ID_SIZE + 1]);

/* Write the id of the pack of all files of `tree`: a hash of their paths and classes in their
 * order, and of the note, which records the options. The contents of the files are not hashed,
 * because each process would have to read all of them. Returns `text`. */
const char *pack_id_of(const struct tree *tree, const char *note, char text[PACK_ID_SIZE + 1]);

#endif
