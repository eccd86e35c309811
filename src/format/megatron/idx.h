/* SPDX-License-Identifier: Apache-2.0 */
/* idx: the head of a PREFIX.idx, and where its arrays lie. Pure. */
#ifndef PSTK_MEGATRON_IDX_H
#define PSTK_MEGATRON_IDX_H

#include <penstock/types.h>

#define PSTK__MEGATRON_HEAD 34 /* bytes */
#define PSTK__MEGATRON_MAGIC "MMIDIDX\0\0"
#define PSTK__MEGATRON_MAGIC_SIZE 9

/* Invariants: the arrays lie within the file, in this order, after its head; n_sequences bytes of
 * modes may follow them. */
struct pstk__megatron_idx {
    uint32_t dtype;        /* of tokens: enum pstk_dtype */
    uint64_t n_sequences;  /* below 2^40 */
    uint64_t n_boundaries; /* of documents, which are one fewer; 1 to 2^40 */
    uint64_t lengths;      /* byte of the file: i32 for each sequence, tokens */
    uint64_t pointers;     /* i64 for each sequence: byte of PREFIX.bin */
    uint64_t boundaries;   /* i64 for each: number of a sequence */
};

/* Parse the first bytes of a file of file_size bytes; there are `size` of them, at least
 * PSTK__MEGATRON_HEAD unless the file is shorter. Returns NULL, or what is wrong, as a sentence in
 * `text`, with the byte in *at. */
const char *pstk__megatron_idx_parse(struct pstk__megatron_idx *idx, const uint8_t *bytes,
                                     uint64_t size, uint64_t file_size, uint64_t *at,
                                     char text[160]);

#endif
