/* SPDX-License-Identifier: Apache-2.0 */
/* idx: the head of a PREFIX.idx, and the positions of its arrays. Pure. */
#ifndef PSTK_MEGATRON_IDX_H
#define PSTK_MEGATRON_IDX_H

#include <penstock/types.h>

#define PSTK__MEGATRON_HEAD 34 /* bytes */
#define PSTK__MEGATRON_MAGIC "MMIDIDX\0\0"
#define PSTK__MEGATRON_MAGIC_SIZE 9

/* A parsed head. Invariants: the arrays lie within the file, in this order, after its head;
 * n_sequences bytes of modes may follow them. */
struct pstk__megatron_idx {
    uint32_t dtype;        /* dtype of tokens: enum pstk_dtype */
    uint64_t n_sequences;  /* below 2^40 */
    uint64_t n_boundaries; /* boundaries of documents, one more than documents; 1 to 2^40 */
    uint64_t lengths;      /* begin of an i32 for each sequence, its tokens; byte of the file */
    uint64_t pointers;     /* begin of an i64 for each sequence, its byte of PREFIX.bin */
    uint64_t boundaries;   /* begin of an i64 for each boundary, the number of a sequence */
};

/* Parse the first `size` bytes of a file of file_size bytes, at least PSTK__MEGATRON_HEAD unless
 * the file is shorter. Returns NULL, or the reason of a failure as a sentence in `text`, with its
 * byte in *at. */
const char *pstk__megatron_idx_parse(struct pstk__megatron_idx *idx, const uint8_t *bytes,
                                     uint64_t size, uint64_t file_size, uint64_t *at,
                                     char text[160]);

#endif
