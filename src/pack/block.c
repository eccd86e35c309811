/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/block.h"

#include "base/crc32c.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>

#define KEEP_SIZE (4u * PSTK__BLOCK_SIZE) /* bytes of a buffer that reset keeps */

struct pstk__block *pstk__block_open(void)
{
    return calloc(1, sizeof(struct pstk__block));
}

void pstk__block_close(struct pstk__block *b)
{
    if (!b)
        return;
    free(b->plain);
    free(b->stored);
    free(b->views);
    free(b);
}

void pstk__block_reset(struct pstk__block *b)
{
    if (b->plain_capacity > KEEP_SIZE) {
        free(b->plain);
        b->plain = NULL;
        b->plain_capacity = 0;
    }
    if (b->stored_capacity > KEEP_SIZE) {
        free(b->stored);
        b->stored = NULL;
        b->stored_capacity = 0;
    }
    b->plain_size = 0;
    b->n_records = 0;
    b->done = 0;
    b->result = 0;
}

/* Sizes stay below 2^33 (a full block and one record of < 2^32 bytes), so doubling cannot
 * overflow. */
static int reserve(uint8_t **bytes, uint64_t *capacity, uint64_t size)
{
    if (*bytes && size <= *capacity)
        return 0;
    uint64_t wanted = *capacity * 2 > size ? *capacity * 2 : size;
    wanted = wanted < 4096 ? 4096 : wanted;
    uint8_t *p = realloc(*bytes, wanted);
    if (!p)
        return PSTK_ENOMEM;
    *bytes = p;
    *capacity = wanted;
    return 0;
}

static int reserve_record(struct pstk__block *b, const struct pstk__schema *schema)
{
    if (b->n_records < b->record_capacity)
        return 0;
    uint32_t capacity = b->record_capacity ? b->record_capacity * 2 : 16;
    struct pstk__field_view *views =
        realloc(b->views, (size_t)capacity * schema->n_fields * sizeof *views);
    if (!views)
        return PSTK_ENOMEM;
    b->views = views;
    b->record_capacity = capacity;
    return 0;
}

int pstk__block_reserve(struct pstk__block *b, const struct pstk__schema *schema, uint64_t size,
                        struct pstk_error *err)
{
    int r = reserve(&b->plain, &b->plain_capacity, b->plain_size + size);
    if (r == 0)
        r = reserve_record(b, schema);
    return r < 0 ? pstk__fail(err, r, PSTK_STAGE_WRITE, "out of memory for a record of %llu bytes",
                              (unsigned long long)size)
                 : 0;
}

void pstk__block_add(struct pstk__block *b, const struct pstk__schema *schema,
                     const struct pstk_value *values, const struct pstk__field_view *views)
{
    struct pstk__field_view *v = b->views + (size_t)b->n_records * schema->n_fields;
    for (uint32_t i = 0; i < schema->n_fields; i++) {
        v[i] = views[i];
        v[i].plain_size = (uint32_t)values[i].size;
        if (values[i].size > 0)
            memcpy(b->plain + b->plain_size, values[i].data, values[i].size);
        b->plain_size += values[i].size;
    }
    b->n_records++;
}

int pstk__block_full(const struct pstk__block *b)
{
    return b->plain_size >= PSTK__BLOCK_SIZE || b->n_records >= PSTK__BLOCK_RECORDS;
}

/* Return the maximum size of the encoded values, in bytes. Planes are used only if they are smaller
 * than the plain value. */
static uint64_t stored_bound(const struct pstk__block *b, const struct pstk__schema *schema,
                             const struct pstk__encoders *encoders)
{
    uint64_t size = 0;
    const struct pstk__field_view *v = b->views;
    for (uint32_t k = 0; k < b->n_records; k++, v += schema->n_fields)
        for (uint32_t i = 0; i < schema->n_fields; i++) {
            if (encoders->field[i])
                size += pstk__encoder_bound(v[i].plain_size);
            else if (schema->fields[i].codec == PSTK_CODEC_PLANES)
                size += v[i].plain_size;
        }
    return size;
}

/* A buffer for encoded values. */
struct output {
    uint8_t *at;
    uint64_t room;
};

static void put_stored(struct pstk__field_view *v, struct output *output, uint64_t size,
                       uint8_t codec)
{
    v->data = output->at;
    v->stored_size = (uint32_t)size;
    v->stored_crc = pstk__crc32c(0, output->at, size);
    v->codec = codec;
    output->at += size;
    output->room -= size;
}

static int encode_zstd(struct pstk__field_view *v, struct pstk__encoder *encoder,
                       struct output *output, struct pstk_error *err)
{
    int64_t n =
        pstk__encoder_encode(encoder, v->data, v->plain_size, output->at, output->room, err);
    if (n < 0)
        return (int)n;
    if (n < (int64_t)v->plain_size)
        put_stored(v, output, (uint64_t)n, PSTK_CODEC_ZSTD);
    return 0;
}

static int encode_planes(struct pstk__field_view *v, struct pstk__planes_encoder *encoder,
                         int exact_only, struct output *output, struct pstk_error *err)
{
    struct pstk__planes_file file;
    int r = pstk__planes_encode(encoder, v->data, v->plain_size, exact_only, &file, err);
    if (r < 0)
        return r;
    v->passthrough =
        (uint16_t)(file.plain_size > UINT32_MAX ? PSTK_PASSTHROUGH_NO_GAIN : file.passthrough);
    if (v->passthrough)
        return 0;
    if (file.equivalent) {
        v->plain_size = (uint32_t)file.plain_size;
        v->plain_crc = pstk__crc32c(0, file.plain, file.plain_size);
        v->flags |= PSTK__FIELD_EQUIVALENT;
    }
    memcpy(output->at, file.stored, file.stored_size);
    put_stored(v, output, file.stored_size, PSTK_CODEC_PLANES);
    return 0;
}

/* Encode one value and fill in its view. A value that does not shrink is stored unchanged. */
static int encode_value(struct pstk__field_view *v, const struct pstk_field *field,
                        struct pstk__encoder *zstd, struct pstk__planes_encoder *planes,
                        struct output *output, struct pstk_error *err)
{
    v->plain_crc = pstk__crc32c(0, v->data, v->plain_size);
    v->stored_crc = v->plain_crc;
    v->stored_size = v->plain_size;
    v->codec = PSTK_CODEC_NONE;
    v->passthrough = 0;
    if (v->flags & PSTK__FIELD_DAMAGED)
        v->passthrough = field->codec == PSTK_CODEC_PLANES ? PSTK_PASSTHROUGH_DAMAGED : 0;
    if (v->plain_size == 0 || v->flags & PSTK__FIELD_DAMAGED)
        return 0;
    if (zstd)
        return encode_zstd(v, zstd, output, err);
    if (field->codec == PSTK_CODEC_PLANES && v->encoding == PSTK_ENCODING_JPEG)
        return encode_planes(v, planes, field->codec_level == 1, output, err);
    if (field->codec == PSTK_CODEC_PLANES)
        v->passthrough = PSTK_PASSTHROUGH_NOT_JPEG;
    return 0;
}

static int encode_all(struct pstk__block *b, const struct pstk__schema *schema,
                      const struct pstk__encoders *encoders)
{
    uint64_t bound = stored_bound(b, schema, encoders);
    if (reserve(&b->stored, &b->stored_capacity, bound) < 0)
        return pstk__fail(&b->error, PSTK_ENOMEM, PSTK_STAGE_WRITE,
                          "out of memory for %llu bytes of compressed records",
                          (unsigned long long)bound);
    const uint8_t *plain = b->plain;
    struct pstk__field_view *v = b->views;
    struct output output = {.at = b->stored, .room = bound};
    for (uint32_t k = 0; k < b->n_records; k++, v += schema->n_fields) {
        for (uint32_t i = 0; i < schema->n_fields; i++) {
            v[i].data = plain;
            plain += v[i].plain_size;
            if (schema->entry[i] < 0)
                continue;
            int r = encode_value(&v[i], &schema->fields[i], encoders->field[i], encoders->planes,
                                 &output, &b->error);
            if (r < 0)
                return r;
        }
    }
    return 0;
}

int pstk__block_encode(struct pstk__block *b, const struct pstk__schema *schema,
                       const struct pstk__encoders *encoders)
{
    pstk_error_init(&b->error, sizeof b->error);
    b->result = encode_all(b, schema, encoders);
    return b->result;
}
