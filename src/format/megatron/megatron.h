/* SPDX-License-Identifier: Apache-2.0 */
/*
 * megatron: tokens as Megatron-LM keeps them, an entry of format.c: pairs of PREFIX.bin, which has
 * tokens alone, and PREFIX.idx, which says where sequences and documents begin. They are read in
 * place, in one of two ways:
 *
 * - A sample is a document. The field `tokens` is an array of its tokens.
 * - The caller names a fixed shape {n} for `tokens`. Then a sample is n tokens in a row, across
 *   documents; the last token of a sample is the first of the next, so that n - 1 inputs have n - 1
 *   targets. What is left at the end of a file, fewer than n - 1 tokens, is no sample. The field
 *   `starts` is an array of I32: the places in the sample where documents begin.
 */
#ifndef PSTK_FORMAT_MEGATRON_H
#define PSTK_FORMAT_MEGATRON_H

#include "format/format.h"

#define PSTK__MEGATRON_TOKENS "tokens"
#define PSTK__MEGATRON_STARTS "starts"
/* Advice about a .bin that has no .idx. */
#define PSTK__MEGATRON_RAW "docs/how-to/tokens.md packs raw tokens, as nanoGPT writes them"

extern const struct pstk__format pstk__format_megatron;

#endif
