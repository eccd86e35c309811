/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block: a run of records on their way into a shard. The writer's thread fills it, a thread of the
 * encode_pool (or the writer's) encodes it, the writer's thread writes it into a shard. A block
 * belongs to one thread at a time; the pool's lock passes it on.
 */
#ifndef PSTK_BLOCK_H
#define PSTK_BLOCK_H

#include "base/codec.h"
#include "image/planes/file.h"
#include "record/record.h"

/* A block is full at this size of its values. Large enough that passing it on costs nothing
 * compared with compression, small enough to keep all threads busy. */
#define PSTK__BLOCK_SIZE (1u << 20) /* bytes */
#define PSTK__BLOCK_RECORDS 4096

struct pstk__block {
    uint8_t *plain;      /* owned; values of all records, end to end */
    uint64_t plain_size; /* bytes */
    uint64_t plain_capacity;
    uint8_t *stored; /* owned; compressed values */
    uint64_t stored_capacity;
    struct pstk__field_view *views; /* owned; n_fields for each record; encode sets data */
    uint32_t n_records;
    uint32_t record_capacity;
    int done;                /* guarded by the pool's lock */
    int result;              /* of encode */
    struct pstk_error error; /* of encode */
};

/* One thread's encoders. */
struct pstk__encoders {
    struct pstk__encoder *field[PSTK_MAX_FIELDS]; /* owned; by field; NULL: not zstd */
    struct pstk__planes_encoder *planes;          /* owned; NULL: no field has the codec planes */
};

/* Make room for one more record with `size` bytes of values. On failure nothing changes. */
int pstk__block_reserve(struct pstk__block *b, const struct pstk__schema *schema, uint64_t size,
                        struct pstk_error *err);
/* Append a record after reserve; views: of each field, what is known of an image; copies. */
void pstk__block_add(struct pstk__block *b, const struct pstk__schema *schema,
                     const struct pstk_value *values, const struct pstk__field_view *views);
int pstk__block_full(const struct pstk__block *b);
/* Compress and checksum all records; returns the result and stores it in b->result. Called on the
 * thread that owns the block and the encoders, with no lock held. */
int pstk__block_encode(struct pstk__block *b, const struct pstk__schema *schema,
                       const struct pstk__encoders *encoders);
/* Empty the block for reuse; frees memory beyond the needs of ordinary records. */
void pstk__block_reset(struct pstk__block *b);
/* Return an empty block, owned, or NULL when there is no memory. */
struct pstk__block *pstk__block_open(void);
/* NULL is fine. */
void pstk__block_close(struct pstk__block *b);

#endif
