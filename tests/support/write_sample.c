/* SPDX-License-Identifier: Apache-2.0 */
/*
 * write_sample --merge OUT PART...: pstk_merge.
 * write_sample --task PACK TASK ATTEMPT OUT [N_RECORDS ...]: the same records as the part of a
 * task. write_sample OUT [N_RECORDS [N_THREADS [SHARD_SIZE [PART N_PARTS]]]]: a data set that has
 * every kind of field, every codec, every shape of ndarray. The content is a pure function of the
 * record's number, so that a second reader can be checked against the same function.
 */
#include "support/tiny_images.h"

#include <penstock/format.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_FIELDS 16
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
    };
    if (k % 4 == 1)
        v[0] = (struct pstk_value){tiny_png, sizeof tiny_png};
    if (k % 4 != 2)
        return pstk_writer_add(w, v, N_FIELDS, err);
    v[0] = (struct pstk_value){r.pixels, sizeof r.pixels};
    const struct pstk_pixels pixels = {
        .size = sizeof pixels, .height = 9, .width = 7, .channels = 3, .bit_depth = 8};
    return pstk_writer_add_pixels(w, v, N_FIELDS, &pixels, 1, err);
}

static uint64_t number(int argc, char **argv, int i, uint64_t otherwise)
{
    return argc > i ? strtoull(argv[i], NULL, 10) : otherwise;
}

static int merge(const char *out, char **parts, uint32_t n_parts)
{
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    int r = pstk_merge((const char *const *)parts, n_parts, out, 0, &err);
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
