/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block: a run of records on their way into a shard. The writer's thread fills it, one thread of
 * the encode_pool (or the writer's) encodes it, the writer's thread writes it. A block belongs to
 * one thread at a time; the pool's lock hands it over.
 */
#ifndef PSTK_BLOCK_H
#define PSTK_BLOCK_H

#include "base/codec.h"
#include "image/planes/file.h"
#include "record/record.h"

/* A block is closed when its values reach this: large enough that handing it over costs nothing
 * compared with the compression, small enough to keep all threads busy. */
#define PSTK__BLOCK_SIZE (1u << 20) /* bytes */
#define PSTK__BLOCK_RECORDS 4096

struct pstk__block {
    uint8_t *plain;      /* owned; the values of all records end to end */
    uint64_t plain_size; /* bytes */
    uint64_t plain_capacity;
    uint8_t *stored; /* owned; what was compressed */
    uint64_t stored_capacity;
    struct pstk__field_view *views; /* owned; n_fields a record; data is set by encode */
    uint32_t n_records;
    uint32_t record_capacity;
    int done;                /* guarded by the pool's lock */
    int result;              /* of encode */
    struct pstk_error error; /* of encode */
};

/* One thread's encoders. */
struct pstk__encoders {
    struct pstk__encoder *field[PSTK_MAX_FIELDS]; /* owned; by field; NULL: its codec is not zstd */
    struct pstk__planes_encoder *planes;          /* owned; NULL: no field's codec is planes */
};

/* Room for one more record of `size` bytes of values; nothing is changed when it fails. */
int pstk__block_reserve(struct pstk__block *b, const struct pstk__schema *schema, uint64_t size,
                        struct pstk_error *err);
/* Append a record after reserve; views: encoding, width and height of each field; copies. */
void pstk__block_add(struct pstk__block *b, const struct pstk__schema *schema,
                     const struct pstk_value *values, const struct pstk__field_view *views);
int pstk__block_full(const struct pstk__block *b);
/* Compress and checksum all records; the result is also kept in b->result. Called on the thread
 * that the block and the encoders belong to, holding no lock. */
int pstk__block_encode(struct pstk__block *b, const struct pstk__schema *schema,
                       const struct pstk__encoders *encoders);
/* Empty it for reuse; memory beyond what ordinary records need is given back. */
void pstk__block_reset(struct pstk__block *b);
/* Returns owned, empty; or NULL. */
struct pstk__block *pstk__block_open(void);
/* NULL is fine. */
void pstk__block_close(struct pstk__block *b);

#endif
