/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack_id: which pack a numbered part is of. The processes that pack the parts do not talk to each
 * other, so each computes the id from what all of them must have alike.
 */
#ifndef PSTK_CLI_PACK_ID_H
#define PSTK_CLI_PACK_ID_H

#include "tree.h"

#define PACK_ID_SIZE 32 /* hex digits */

/* Write the id of the pack of all files of `tree`: a hash of their paths and classes in their
 * order, and of the note, which records the options. The contents of the files do not count, which
 * would all have to be read by each process. Returns `text`. */
const char *pack_id_of(const struct tree *tree, const char *note, char text[PACK_ID_SIZE + 1]);

#endif
