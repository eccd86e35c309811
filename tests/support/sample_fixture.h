/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample_fixture: a data set of one record, laid out by hand as FORMAT.md says, in memory, and one
 * sample of it written by the sample stage. No shard, no manifest, no reader.
 */
#ifndef PSTK_TEST_SAMPLE_FIXTURE_H
#define PSTK_TEST_SAMPLE_FIXTURE_H

#include "base/codec.h"
#include "base/crc32c.h"
#include "sample/sample.h"

#include <stdlib.h>
#include <string.h>

#define EPOCH 3u
#define SEED 11u
#define SHARD "shard-7.pstk"

/* ---- a data set of one record, by hand ---------------------------------------------------------
 */

enum { IMG, TEXT, LAB, HALF, VEC, BIG, VAR, N_FIELDS };

static const struct pstk_field fields[N_FIELDS] = {
    {.name = "img", .kind = PSTK_FIELD_IMAGE},
    {.name = "text", .kind = PSTK_FIELD_UTF8},
    {.name = "lab", .kind = PSTK_FIELD_SCALAR, .dtype = PSTK_I32},
    {.name = "half", .kind = PSTK_FIELD_SCALAR, .dtype = PSTK_F16},
    {.name = "vec", .kind = PSTK_FIELD_NDARRAY, .dtype = PSTK_F32, .n_dims = 2, .shape = {2, 3}},
    {.name = "big", .kind = PSTK_FIELD_NDARRAY, .dtype = PSTK_U16, .n_dims = 1, .shape = {2500}},
    {.name = "var", .kind = PSTK_FIELD_NDARRAY, .dtype = PSTK_U16, .n_dims = 1, .shape = {0}},
};

static const int32_t label = -5;
static const uint16_t half = 0x3e00; /* 1.5 */
static const float vec[6] = {1, 2, 3, 4, 5, 6};
static uint16_t big[2500];
static const uint16_t var[3] = {7, 8, 9};
static const char text[] = "penstock";

static const struct pstk__format hand_format = {.name = "hand"};

struct image {
    uint32_t width, height;
    uint8_t *rgb;
};

struct fixture {
    struct pstk__source source;
    struct pstk__field_view views[N_FIELDS];
    uint8_t *bytes; /* bytes of the record */
    uint64_t size;
    uint8_t *stored; /* stored bytes of img where it is compressed */
};

static inline uint8_t draw_byte(void)
{
    static uint32_t state = 1;
    state = state * 1664525u + 1013904223u;
    return (uint8_t)(state >> 24);
}

static inline void view_set(struct pstk__field_view *v, const void *data, uint64_t size)
{
    *v = (struct pstk__field_view){.data = data,
                                   .stored_size = (uint32_t)size,
                                   .plain_size = (uint32_t)size,
                                   .stored_crc = pstk__crc32c(0, data, size),
                                   .plain_crc = pstk__crc32c(0, data, size)};
}

static inline int view_compress(struct fixture *f, uint32_t field)
{
    struct pstk__field_view *v = &f->views[field];
    struct pstk__encoder *e;
    if (pstk__encoder_open(&e, 3, NULL, 0, NULL) < 0)
        return -1;
    const uint64_t bound = pstk__encoder_bound(v->plain_size);
    f->stored = malloc(bound);
    const int64_t n = pstk__encoder_encode(e, v->data, v->plain_size, f->stored, bound, NULL);
    pstk__encoder_close(e);
    v->data = f->stored;
    v->stored_size = (uint32_t)n;
    v->stored_crc = pstk__crc32c(0, f->stored, (size_t)n);
    v->codec = PSTK_CODEC_ZSTD;
    f->source.schema.fields[field].codec = PSTK_CODEC_ZSTD;
    return n < 0 ? -1 : 0;
}

/* Lay the record out as FORMAT.md says; limits as tight as the manifest would have them. */
static inline int fixture_lay(struct fixture *f)
{
    struct pstk__source *s = &f->source;
    for (uint32_t i = 0; i < N_FIELDS; i++) {
        s->limits.max_stored[i] = f->views[i].stored_size;
        s->limits.max_plain[i] = f->views[i].plain_size;
        s->limits.max_width[i] = f->views[i].width;
        s->limits.max_height[i] = f->views[i].height;
    }
    f->size = pstk__record_size(&s->schema, f->views);
    s->limits.max_size = f->size;
    free(f->bytes);
    f->bytes = calloc(1, f->size);
    if (f->bytes == NULL)
        return -1;
    pstk__record_head(&s->schema, 77, 5, f->views, f->bytes);
    uint64_t at = s->schema.head_size;
    for (uint32_t i = 0; i < N_FIELDS; i++) {
        if (s->schema.entry[i] < 0)
            continue;
        memcpy(f->bytes + at, f->views[i].data, f->views[i].stored_size);
        at += pstk__record_aligned(f->views[i].stored_size);
    }
    return 0;
}

static inline int fixture_open(struct fixture *f, const void *img, uint64_t size, uint32_t encoding,
                               uint32_t width, uint32_t height)
{
    *f = (struct fixture){.source = {.format = &hand_format, .n_samples = 1, .n_shards = 1}};
    if (pstk__schema_init(&f->source.schema, fields, N_FIELDS, NULL) < 0)
        return -1;
    for (uint32_t i = 0; i < 2500; i++)
        big[i] = (uint16_t)(i * 7);
    view_set(&f->views[IMG], img, size);
    f->views[IMG].encoding = (uint8_t)encoding;
    f->views[IMG].channels = 3;
    f->views[IMG].bit_depth = 8;
    f->views[IMG].width = width;
    f->views[IMG].height = height;
    view_set(&f->views[TEXT], text, sizeof text - 1);
    view_set(&f->views[LAB], &label, sizeof label);
    view_set(&f->views[HALF], &half, sizeof half);
    view_set(&f->views[VEC], vec, sizeof vec);
    view_set(&f->views[BIG], big, sizeof big);
    view_set(&f->views[VAR], var, sizeof var);
    return fixture_lay(f);
}

static inline void fixture_close(struct fixture *f)
{
    free(f->bytes);
    free(f->stored);
}

static inline int fixture_parse(const struct fixture *f, uint64_t available, struct pstk__record *r,
                                struct pstk_error *err)
{
    const struct pstk__record_location location = {
        .shard = SHARD, .tag = 77, .number = 5, .file_offset = 4096, .size = f->size};
    return pstk__record_parse(r, &f->source.schema, &f->source.limits, &location, f->bytes,
                              available, err);
}

static inline struct image image_make(uint32_t width, uint32_t height)
{
    struct image m = {width, height, malloc((size_t)width * height * 3)};
    for (size_t i = 0; m.rgb && i < (size_t)width * height * 3; i++)
        m.rgb[i] = draw_byte();
    return m;
}

/* ---- running -----------------------------------------------------------------------------------
 */

struct run {
    struct pstk__plan *plan;
    struct pstk__sampler *sampler;
    struct pstk__row rows[8];
    struct pstk_crop crops[8];
    struct pstk_error err;
};

static inline struct pstk_settings settings_of(const struct pstk_output *outputs, uint32_t n)
{
    return (struct pstk_settings){.size = sizeof(struct pstk_settings),
                                  .output_size = sizeof(struct pstk_output),
                                  .op_size = sizeof(struct pstk_op),
                                  .batch_size = 4,
                                  .outputs = outputs,
                                  .n_outputs = n,
                                  .seed = SEED};
}

static inline void run_close(struct run *r)
{
    for (uint32_t i = 0; i < 8; i++)
        free(r->rows[i].data);
    pstk__sampler_close(r->sampler);
    pstk__plan_close(r->plan);
    *r = (struct run){0};
}

static inline int run_open(struct run *r, const struct fixture *f, const struct pstk_settings *s)
{
    *r = (struct run){0};
    pstk_error_init(&r->err, sizeof r->err);
    int rc = pstk__plan_open(&r->plan, s, &f->source, &r->err);
    if (rc == 0)
        rc = pstk__sampler_open(&r->sampler, r->plan, &r->err);
    for (uint32_t i = 0; rc == 0 && i < s->n_outputs; i++) {
        r->rows[i].data = malloc(pstk__output_rows(&r->plan->outputs[i])->row_size);
        r->rows[i].crop = &r->crops[i];
        rc = r->rows[i].data == NULL ? PSTK_ENOMEM : 0;
    }
    return rc;
}

static inline int run_write(struct run *r, const struct fixture *f, uint64_t sample_id)
{
    struct pstk__record record;
    const struct pstk__sample_key key = {sample_id, EPOCH, 9};
    const int rc = fixture_parse(f, f->size, &record, &r->err);
    return rc < 0 ? rc : pstk__sample_write(r->sampler, &record, 0, &key, r->rows, &r->err);
}

/* Open, write one sample. */
static inline int run_all(struct run *r, const struct fixture *f, const struct pstk_output *outputs,
                          uint32_t n, uint64_t sample_id)
{
    const struct pstk_settings s = settings_of(outputs, n);
    const int rc = run_open(r, f, &s);
    return rc < 0 ? rc : run_write(r, f, sample_id);
}

/* ---- a small image that most of the cases below use --------------------------------------------
 */

static struct image small_image;

static inline int small_open(struct fixture *f)
{
    if (small_image.rgb == NULL)
        small_image = image_make(40, 30);
    return fixture_open(f, small_image.rgb, 40 * 30 * 3, PSTK_ENCODING_PIXELS, 40, 30);
}

#endif
