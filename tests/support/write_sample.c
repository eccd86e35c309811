/* SPDX-License-Identifier: Apache-2.0 */
/*
 * write_sample --merge OUT PART...: pstk_merge.
 * write_sample --task PACK TASK ATTEMPT OUT [N_RECORDS ...]: the same records as the part of a
 * task. write_sample OUT [N_RECORDS [N_THREADS [SHARD_SIZE [PART N_PARTS]]]]: a data set that has
 * every kind of field, every codec, every shape of ndarray. The content is a pure function of the
 * record's number, so that a second reader can be checked against the same function.
 */
#include "support/merging.h"
#include "support/tiny_images.h"

#include <penstock/format.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_FIELDS 28
#define FIRST_LIST 23 /* number of the first of the four fields that are lists */
#define MAX_OBJECTS 5
#define TEXT_MAX 4096

static const struct pstk_field fields[N_FIELDS] = {
    {.name = "image", .kind = PSTK_FIELD_IMAGE},
    {.name = "image_zstd", .kind = PSTK_FIELD_IMAGE, .codec = PSTK_CODEC_ZSTD},
    {.name = "bytes", .kind = PSTK_FIELD_BYTES},
    {.name = "bytes_zstd", .kind = PSTK_FIELD_BYTES, .codec = PSTK_CODEC_ZSTD, .codec_level = 1},
    {.name = "text", .kind = PSTK_FIELD_UTF8},
    {.name = "text_zstd", .kind = PSTK_FIELD_UTF8, .codec = PSTK_CODEC_ZSTD, .codec_level = 9},
    {.name = "u8", .kind = PSTK_FIELD_SCALAR, .dtype = PSTK_U8},
    {.name = "i16", .kind = PSTK_FIELD_SCALAR, .dtype = PSTK_I16},
    {.name = "f32", .kind = PSTK_FIELD_SCALAR, .dtype = PSTK_F32},
    {.name = "i64", .kind = PSTK_FIELD_SCALAR, .dtype = PSTK_I64},
    {.name = "fixed", .kind = PSTK_FIELD_NDARRAY, .dtype = PSTK_U16, .n_dims = 2, .shape = {3, 5}},
    {.name = "large",
     .kind = PSTK_FIELD_NDARRAY,
     .dtype = PSTK_F64,
     .n_dims = 3,
     .shape = {2, 3, 100}},
    {.name = "fixed_zstd",
     .kind = PSTK_FIELD_NDARRAY,
     .dtype = PSTK_I32,
     .codec = PSTK_CODEC_ZSTD,
     .n_dims = 1,
     .shape = {64}},
    {.name = "one_variable",
     .kind = PSTK_FIELD_NDARRAY,
     .dtype = PSTK_F16,
     .n_dims = 2,
     .shape = {0, 4}},
    {.name = "variable", .kind = PSTK_FIELD_NDARRAY, .dtype = PSTK_I8, .n_dims = 2},
    {.name = "variable_zstd",
     .kind = PSTK_FIELD_NDARRAY,
     .dtype = PSTK_BF16,
     .codec = PSTK_CODEC_ZSTD,
     .n_dims = 3,
     .shape = {0, 2, 0}},
    {.name = "boxes",
     .kind = PSTK_FIELD_BOXES,
     .dtype = PSTK_F32,
     .n_dims = 2,
     .shape = {0, 4},
     .of = "image",
     .rows = "objects",
     .box_format = PSTK_BOX_FORMAT_XYWH,
     .coordinates = PSTK_COORDINATES_PIXELS},
    {.name = "labels",
     .kind = PSTK_FIELD_NDARRAY,
     .dtype = PSTK_I64,
     .n_dims = 1,
     .rows = "objects"},
    {.name = "keypoints",
     .kind = PSTK_FIELD_KEYPOINTS,
     .dtype = PSTK_F64,
     .codec = PSTK_CODEC_ZSTD,
     .n_dims = 3,
     .shape = {0, 2, 3},
     .of = "image",
     .rows = "objects",
     .coordinates = PSTK_COORDINATES_UNIT},
    {.name = "points",
     .kind = PSTK_FIELD_POLYGONS,
     .dtype = PSTK_I16,
     .codec = PSTK_CODEC_ZSTD,
     .n_dims = 2,
     .shape = {0, 2},
     .of = "image",
     .rows = "points",
     .coordinates = PSTK_COORDINATES_PIXELS},
    {.name = "object_points",
     .kind = PSTK_FIELD_NDARRAY,
     .dtype = PSTK_I8,
     .codec = PSTK_CODEC_ZSTD,
     .n_dims = 1,
     .rows = "objects",
     .splits = "points"},
    {.name = "runs",
     .kind = PSTK_FIELD_RLE,
     .dtype = PSTK_U32,
     .codec = PSTK_CODEC_ZSTD,
     .n_dims = 1,
     .of = "image_zstd",
     .rows = "runs"},
    {.name = "object_runs",
     .kind = PSTK_FIELD_NDARRAY,
     .dtype = PSTK_U64,
     .n_dims = 1,
     .rows = "objects",
     .splits = "runs"},
    {.name = "captions", .kind = PSTK_FIELD_UTF8_LIST, .codec = PSTK_CODEC_ZSTD, .rows = "objects"},
    {.name = "pictures", .kind = PSTK_FIELD_IMAGE_LIST},
    {.name = "blobs", .kind = PSTK_FIELD_BYTES_LIST},
    {.name = "masks", .kind = PSTK_FIELD_MASK_LIST, .of = "image", .rows = "objects"},
    {.name = "mask", .kind = PSTK_FIELD_MASK, .codec = PSTK_CODEC_ZSTD, .of = "image_zstd"},
};

/* Numerical Recipes' generator: 32 bits of state, and the same in Python in one line. */
static uint32_t step(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 16;
}

struct record {
    uint8_t noise[300], text[TEXT_MAX], scalars[8];
    uint8_t fixed[30], large[4800], squares[256];
    uint8_t pairs[64 * 8], grid[16 + 15 * 15], cube[24 + 7 * 2 * 5 * 2];
    uint8_t pixels[9 * 7 * 3];
    uint16_t mask[3 * 5]; /* a PNG of 5 x 3 pixels */
    /* values of the objects */
    float boxes[MAX_OBJECTS][4];
    int64_t labels[MAX_OBJECTS];
    double keypoints[MAX_OBJECTS][2][3];
    int16_t points[MAX_OBJECTS * 3][2];
    int8_t object_points[MAX_OBJECTS];
    uint32_t runs[MAX_OBJECTS * 3];
    uint64_t object_runs[MAX_OBJECTS];
    uint64_t n_objects, n_points, n_runs;
};

static uint64_t write_text(char *text, uint64_t k)
{
    int n = snprintf(text, TEXT_MAX, "{\"id\": %llu, \"name\": \"größe №%llu\", \"tags\": [",
                     (unsigned long long)k, (unsigned long long)(k * k));
    for (uint64_t i = 0; i < k % 13; i++)
        n += snprintf(text + n, TEXT_MAX - (size_t)n, "\"tag %llu of this record\", ",
                      (unsigned long long)(i * k % 31));
    n += snprintf(text + n, TEXT_MAX - (size_t)n, "\"end\"]}");
    return (uint64_t)n;
}

static void fill(struct record *r, uint64_t k)
{
    uint32_t state = (uint32_t)k + 1;
    for (size_t i = 0; i < sizeof r->noise; i++)
        r->noise[i] = (uint8_t)step(&state);
    memcpy(r->scalars, &k, sizeof k);
    for (size_t i = 0; i < sizeof r->fixed; i++)
        r->fixed[i] = (uint8_t)(k + i);
    for (size_t i = 0; i < sizeof r->large; i++)
        r->large[i] = (uint8_t)(k * 7 + i * 3);
    for (size_t i = 0; i < sizeof r->squares; i++)
        r->squares[i] = (uint8_t)(i % 4 == 0 ? i / 4 + k % 5 : 0);
    for (size_t i = 0; i < sizeof r->pairs; i++)
        r->pairs[i] = (uint8_t)(k ^ i);
    for (size_t i = 0; i < sizeof r->pixels; i++)
        r->pixels[i] = (uint8_t)(k + i * 5);
    for (size_t i = 0; i < sizeof r->mask / sizeof *r->mask; i++)
        r->mask[i] = (uint16_t)(k % 3 * 256 + i);
}

/* k % 6 objects; the first one has no runs, and so no mask. */
static void fill_objects(struct record *r, uint64_t k)
{
    r->n_objects = k % (MAX_OBJECTS + 1);
    r->n_points = r->n_runs = 0;
    for (uint64_t i = 0; i < r->n_objects; i++) {
        for (uint32_t d = 0; d < 4; d++)
            r->boxes[i][d] = (float)(i + d) + 0.5f;
        r->labels[i] = (int64_t)(k * i % 7);
        for (uint32_t d = 0; d < 6; d++)
            r->keypoints[i][d / 3][d % 3] = (double)(d % 3 == 2 ? k % 3 : 1) / (double)(1 + i);
        r->object_points[i] = (int8_t)(i % 4);
        for (uint64_t j = 0; j < i % 4; j++, r->n_points++)
            r->points[r->n_points][0] = r->points[r->n_points][1] = (int16_t)(r->n_points - 2);
        r->object_runs[i] = i ? 3 : 0;
        for (uint32_t j = 0; i && j < 3; j++) /* a PNG of 5 x 3 pixels */
            r->runs[r->n_runs++] = j == 1 ? 13 : 1;
    }
}

/* A list of n items: texts, bytes or images, by kind. Returns owned in value->data. */
static int make_list(struct pstk_value *value, uint32_t kind, uint64_t n, struct pstk_error *err)
{
    static const char words[] = "größe";
    struct pstk_list_item items[MAX_OBJECTS];
    void *data;
    memset(items, 0, sizeof items);
    for (uint64_t i = 0; i < n; i++) {
        items[i].data = kind == PSTK_FIELD_IMAGE_LIST && i % 2 ? (const void *)tiny_jpeg : tiny_png;
        items[i].size = kind == PSTK_FIELD_IMAGE_LIST && i % 2 ? sizeof tiny_jpeg : sizeof tiny_png;
        if (kind == PSTK_FIELD_UTF8_LIST)
            items[i] = (struct pstk_list_item){.data = words, .size = i < 2 ? i : sizeof words - 1};
        if (kind == PSTK_FIELD_BYTES_LIST)
            items[i] = (struct pstk_list_item){.data = words, .size = i};
        if (kind == PSTK_FIELD_MASK_LIST)
            items[i] = (struct pstk_list_item){.data = tiny_mask, .size = sizeof tiny_mask};
    }
    const int r = pstk_list_build(kind, items, n, &data, &value->size, err);
    value->data = data;
    return r;
}

/* Shape and elements of a value whose shape has several variable dimensions; its size. */
static uint64_t shaped(uint8_t *out, const uint64_t *shape, uint32_t n_dims, uint32_t element)
{
    uint64_t n = element;
    memcpy(out, shape, n_dims * sizeof *shape);
    for (uint32_t i = 0; i < n_dims; i++)
        n *= shape[i];
    for (uint64_t i = 0; i < n; i++)
        out[n_dims * sizeof *shape + i] = (uint8_t)(i / 2);
    return n_dims * sizeof *shape + n;
}

static int add(struct pstk_writer *w, uint64_t k, struct pstk_error *err)
{
    static struct record r;
    const uint64_t grid[2] = {k % 16, (k / 2) % 16}, cube[3] = {k % 8, 2, k % 6};
    fill(&r, k);
    fill_objects(&r, k);
    uint64_t text = write_text((char *)r.text, k);
    struct pstk_value v[N_FIELDS] = {
        [0] = {tiny_jpeg, sizeof tiny_jpeg},
        [1] = {tiny_png, sizeof tiny_png},
        [2] = {r.noise, k % sizeof r.noise},
        [3] = {k % 3 ? (const void *)r.text : (const void *)r.noise, k % 200},
        [4] = {r.text, text},
        [5] = {r.text, text},
        [6] = {r.scalars, 1},
        [7] = {r.scalars, 2},
        [8] = {r.scalars, 4},
        [9] = {r.scalars, 8},
        [10] = {r.fixed, sizeof r.fixed},
        [11] = {r.large, sizeof r.large},
        [12] = {r.squares, sizeof r.squares},
        [13] = {r.pairs, k % 64 * 8},
        [14] = {r.grid, shaped(r.grid, grid, 2, 1)},
        [15] = {r.cube, shaped(r.cube, cube, 3, 2)},
        [16] = {r.boxes, r.n_objects * sizeof r.boxes[0]},
        [17] = {r.labels, r.n_objects * sizeof r.labels[0]},
        [18] = {r.keypoints, r.n_objects * sizeof r.keypoints[0]},
        [19] = {r.points, r.n_points * sizeof r.points[0]},
        [20] = {r.object_points, r.n_objects},
        [21] = {r.runs, r.n_runs * sizeof r.runs[0]},
        [22] = {r.object_runs, r.n_objects * sizeof r.object_runs[0]},
        [27] = {r.mask, sizeof r.mask},
    };
    int result = 0;
    for (uint32_t i = FIRST_LIST; result == 0 && i < FIRST_LIST + 4; i++)
        result = make_list(&v[i], fields[i].kind, fields[i].rows[0] ? r.n_objects : k % 3, err);
    if (k % 4 == 1)
        v[0] = (struct pstk_value){tiny_png, sizeof tiny_png};
    const struct pstk_pixels pixels[2] = {{.size = sizeof pixels[0],
                                           .field = 27,
                                           .height = 3,
                                           .width = 5,
                                           .channels = 1,
                                           .bit_depth = 16},
                                          {.size = sizeof pixels[0],
                                           .field = 0,
                                           .height = 9,
                                           .width = 7,
                                           .channels = 3,
                                           .bit_depth = 8}};
    if (k % 4 == 2)
        v[0] = (struct pstk_value){r.pixels, sizeof r.pixels};
    if (result == 0)
        result = pstk_writer_add_pixels(w, v, N_FIELDS, pixels, k % 4 == 2 ? 2 : 1, err);
    for (uint32_t i = FIRST_LIST; i < FIRST_LIST + 4; i++)
        pstk_free((void *)(uintptr_t)v[i].data);
    return result;
}

static uint64_t number(int argc, char **argv, int i, uint64_t otherwise)
{
    return argc > i ? strtoull(argv[i], NULL, 10) : otherwise;
}

static int merge(const char *out, char **parts, uint32_t n_parts)
{
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    int r = merge_parts((const char *const *)parts, n_parts, out, 0, &err);
    if (r < 0)
        fprintf(stderr, "write_sample: %s\n", err.message);
    return r < 0;
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"cat", "dog", "größe"};
    struct pstk_writer_settings s;
    struct pstk_writer *w;
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    if (argc < 2)
        return fprintf(stderr, "usage: write_sample OUT [N [THREADS [SHARD_SIZE [PART N]]]]\n"), 2;
    if (argc > 3 && strcmp(argv[1], "--merge") == 0)
        return merge(argv[2], argv + 3, (uint32_t)argc - 3);
    pstk_writer_settings_init(&s, sizeof s);
    if (argc > 5 && strcmp(argv[1], "--task") == 0) {
        s.pack_id = argv[2];
        s.task = argv[3];
        s.attempt = (uint32_t)number(argc, argv, 4, 0);
        argc -= 4;
        argv += 4;
    }
    s.path = argv[1];
    s.fields = fields;
    s.n_fields = N_FIELDS;
    s.n_threads = (uint32_t)number(argc, argv, 3, 1);
    s.shard_size = number(argc, argv, 4, 256 << 10);
    const uint64_t part = number(argc, argv, 5, 0), n_parts = number(argc, argv, 6, 1);
    s.part = s.task ? 0 : (uint32_t)part;
    s.n_parts = s.task ? 0 : (uint32_t)n_parts;
    s.dictionary_size = 2048;
    s.note = "write_sample \"quoted\" \\ größe";
    s.names = names;
    s.n_names = 3;
    uint64_t n = number(argc, argv, 2, 1200);
    int r = pstk_writer_open(&w, &s, &err);
    /* Part i of n holds the records [N i / n, N (i + 1) / n): what a single pack would hold there.
     */
    for (uint64_t k = n * part / n_parts; r == 0 && k < n * (part + 1) / n_parts; k++)
        r = add(w, k, &err);
    if (r == 0)
        r = pstk_writer_commit(&w, &err);
    else
        pstk_writer_abort(&w);
    if (r < 0)
        fprintf(stderr, "write_sample: %s\n", err.message);
    return r < 0;
}
