/* SPDX-License-Identifier: Apache-2.0 */
/*
 * megatron: tokens in Megatron-LM's files, an entry of format.c: pairs of PREFIX.bin, which has
 * only tokens, and PREFIX.idx, which has the begins of sequences and documents. They are read in
 * place, in one of two ways:
 *
 * - A sample is a document. The field `tokens` is an array of its tokens.
 * - The caller names a fixed shape {n} for `tokens`. Then a sample is n successive tokens, across
 *   documents. The last token of a sample is the first of the next, so that n - 1 inputs have n - 1
 *   targets. Fewer than n - 1 tokens left at the end of a file are no sample. The field `starts` is
 *   an array of I32: the positions in the sample where documents begin.
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
