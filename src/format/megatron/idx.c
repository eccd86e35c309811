/* SPDX-License-Identifier: Apache-2.0 */
#include "format/megatron/idx.h"

#include "base/little.h"

#include <inttypes.h>
#include <stdio.h>

#define MAX_COUNT                                                                                  \
    (1ull << 40) /* limit on sequences and on documents: products with 8 do not overflow */

enum { MAGIC = 0, VERSION = 9, DTYPE = 17, N_SEQUENCES = 18, N_BOUNDARIES = 26 };

/* Dtypes by the code in the file. */
static const uint8_t dtypes[] = {0,        PSTK_U8,  PSTK_I8,  PSTK_I16, PSTK_I32,
                                 PSTK_I64, PSTK_F64, PSTK_F32, PSTK_U16};

#define WRONG(where, ...) (*at = (where), snprintf(text, 160, __VA_ARGS__), text)

const char *pstk__megatron_idx_parse(struct pstk__megatron_idx *idx, const uint8_t *bytes,
                                     uint64_t size, uint64_t file_size, uint64_t *at,
                                     char text[160])
{
    *idx = (struct pstk__megatron_idx){0};
    if (size < PSTK__MEGATRON_HEAD)
        return WRONG(size, "the file ends within its head of %d bytes: copy it again",
                     PSTK__MEGATRON_HEAD);
    if (memcmp(bytes + MAGIC, PSTK__MEGATRON_MAGIC, PSTK__MEGATRON_MAGIC_SIZE) != 0)
        return WRONG(MAGIC, "the file does not begin as an .idx of Megatron-LM");
    const uint64_t version = pstk__get64(bytes + VERSION);
    if (version != 1)
        return WRONG(VERSION, "its version is %" PRIu64 "; must be 1", version);
    const uint8_t code = bytes[DTYPE];
    idx->dtype = code < sizeof dtypes ? dtypes[code] : 0;
    if (!idx->dtype)
        return WRONG(DTYPE, "the code of its dtype is %u; must be from 1 to 8", code);
    idx->n_sequences = pstk__get64(bytes + N_SEQUENCES);
    idx->n_boundaries = pstk__get64(bytes + N_BOUNDARIES);
    if (idx->n_sequences > MAX_COUNT || idx->n_boundaries > MAX_COUNT || idx->n_boundaries == 0)
        return WRONG(N_SEQUENCES,
                     "it has %" PRIu64 " sequences and %" PRIu64
                     " boundaries of documents; must be below 2^40, and 1 boundary or more",
                     idx->n_sequences, idx->n_boundaries);
    idx->lengths = PSTK__MEGATRON_HEAD;
    idx->pointers = idx->lengths + 4 * idx->n_sequences;
    idx->boundaries = idx->pointers + 8 * idx->n_sequences;
    const uint64_t end = idx->boundaries + 8 * idx->n_boundaries;
    if (file_size == end || file_size == end + idx->n_sequences) /* with modes */
        return NULL;
    return WRONG(file_size < end ? file_size : end,
                 "the file has %" PRIu64 " bytes; its counts need %" PRIu64
                 ", or with modes %" PRIu64 ": copy it again",
                 file_size, end, end + idx->n_sequences);
}
