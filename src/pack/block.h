/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block: a sequence of records that are being packed. The writer's thread fills it, a thread of the
 * encode_pool (or the writer's) encodes it, the writer's thread writes it into a shard. A block
 * belongs to one thread at a time; the pool's lock passes it on.
 */
#ifndef PSTK_BLOCK_H
#define PSTK_BLOCK_H

#include "base/codec.h"
#include "image/planes/file.h"
#include "record/record.h"

/* A block is full when its values reach this size. It is large enough that passing it on costs
 * nothing compared with compression, and small enough to keep all threads busy. */
#define PSTK__BLOCK_SIZE (1u << 20) /* bytes */
#define PSTK__BLOCK_RECORDS 4096

struct pstk__block {
    uint8_t *plain;      /* values of all records, one after another; owned */
    uint64_t plain_size; /* bytes */
    uint64_t plain_capacity;
    uint8_t *stored; /* owned; compressed values */
    uint64_t stored_capacity;
    struct pstk__field_view *views; /* n_fields for each record; encode sets data; owned */
    uint32_t n_records;
    uint32_t record_capacity;
    int done;                /* guarded by the pool's lock */
    int result;              /* result of encode */
    struct pstk_error error; /* error of encode */
};

/* One thread's encoders. */
struct pstk__encoders {
    struct pstk__encoder *field[PSTK_MAX_FIELDS]; /* encoder of each field; NULL: not zstd; owned */
    struct pstk__planes_encoder *planes;          /* NULL: no field has the codec planes; owned */
};

/* Make room for one more record with `size` bytes of values. On failure nothing changes. */
int pstk__block_reserve(struct pstk__block *b, const struct pstk__schema *schema, uint64_t size,
                        struct pstk_error *err);
/* Append a record after reserve. views: for each field, the known facts of an image. Copies the
 * values and views. */
void pstk__block_add(struct pstk__block *b, const struct pstk__schema *schema,
                     const struct pstk_value *values, const struct pstk__field_view *views);
int pstk__block_full(const struct pstk__block *b);
/* Compress and checksum all records; returns the result and stores it in b->result. Called on the
 * thread that owns the block and the encoders, with no lock held. */
int pstk__block_encode(struct pstk__block *b, const struct pstk__schema *schema,
                       const struct pstk__encoders *encoders);
/* Empty the block for reuse; frees memory beyond the needs of ordinary records. */
void pstk__block_reset(struct pstk__block *b);
/* Return an empty block, owned; NULL if there is no memory. */
struct pstk__block *pstk__block_open(void);
/* Free a block. NULL is fine. */
void pstk__block_close(struct pstk__block *b);

#endif
