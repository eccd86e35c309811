/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample_set: a small data set for tests, made anew in a temporary directory: an image as raw
 * pixels of varied size, a label, a token array, none to four boxes, a text of varied length.
 */
#ifndef PSTK_TEST_SAMPLE_SET_H
#define PSTK_TEST_SAMPLE_SET_H

#include <penstock/format.h>
#include <penstock/penstock.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SAMPLE_SET_TOKENS 16

/* Remove a directory of files. */
static inline void sample_set_remove(const char *path)
{
    DIR *d = opendir(path);
    struct dirent *e;
    while (d && (e = readdir(d)))
        unlinkat(dirfd(d), e->d_name, 0);
    if (d)
        closedir(d);
    rmdir(path);
}

/* A fresh path below TMPDIR or /tmp; not made. */
static inline void sample_set_path(char *path, size_t size)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(path, size, "%s/penstock-test-XXXXXX", tmp && tmp[0] ? tmp : "/tmp");
    if (!mkdtemp(path))
        exit(99);
    rmdir(path);
}

/* Return a byte that depends on its sample and place. */
static inline uint8_t sample_set_byte(uint64_t sample, uint64_t i)
{
    uint64_t x = (sample + 1) * 0x9E3779B97F4A7C15u + i * 0xC2B2AE3D27D4EB4Fu;
    return (uint8_t)((x ^ x >> 29) >> 13);
}

static inline int sample_set_add(struct pstk_writer *w, uint64_t i, struct pstk_error *err)
{
    static uint8_t pixels[64 * 64 * 3];
    uint32_t height = 5 + (uint32_t)(i * 7 % 23), width = 4 + (uint32_t)(i * 5 % 31);
    for (uint32_t k = 0; k < height * width * 3; k++)
        pixels[k] = sample_set_byte(i, k);
    int64_t label = (int64_t)i * 3 - 7;
    uint16_t tokens[SAMPLE_SET_TOKENS];
    for (uint32_t k = 0; k < SAMPLE_SET_TOKENS; k++)
        tokens[k] = (uint16_t)(i * 100 + k);
    char text[64];
    snprintf(text, sizeof text, "%.*s#%llu", (int)(i % 40),
             "the quick brown fox jumps over the lazy dog", (unsigned long long)i);
    float boxes[4][4];
    for (uint32_t k = 0; k < 16; k++)
        boxes[k / 4][k % 4] = (float)(i * 16 + k);
    struct pstk_value v[] = {{pixels, (uint64_t)height * width * 3},
                             {&label, sizeof label},
                             {tokens, sizeof tokens},
                             {boxes, i * 3 % 5 * sizeof boxes[0]},
                             {text, strlen(text)}};
    const struct pstk_pixels pixels_of = {
        .size = sizeof pixels_of, .height = height, .width = width, .channels = 3, .bit_depth = 8};
    return pstk_writer_add_pixels(w, v, 5, &pixels_of, 1, err);
}

/* Write n samples to `path`; exits with a message when that fails. */
static inline void sample_set_make(const char *path, uint64_t n, uint64_t shard_size,
                                   uint32_t codec)
{
    struct pstk_field fields[] = {{.name = "img", .kind = PSTK_FIELD_IMAGE, .codec = codec},
                                  {.name = "cls", .kind = PSTK_FIELD_SCALAR, .dtype = PSTK_I64},
                                  {.name = "tokens",
                                   .kind = PSTK_FIELD_NDARRAY,
                                   .dtype = PSTK_U16,
                                   .n_dims = 1,
                                   .shape = {SAMPLE_SET_TOKENS}},
                                  {.name = "boxes",
                                   .kind = PSTK_FIELD_NDARRAY,
                                   .dtype = PSTK_F32,
                                   .n_dims = 2,
                                   .shape = {0, 4}},
                                  {.name = "text", .kind = PSTK_FIELD_UTF8, .codec = codec}};
    struct pstk_error err;
    struct pstk_writer_settings s;
    struct pstk_writer *w;
    pstk_error_init(&err, sizeof err);
    pstk_writer_settings_init(&s, sizeof s);
    s.path = path;
    s.fields = fields;
    s.n_fields = 5;
    s.shard_size = shard_size;
    s.dictionary_size = 1;
    int r = pstk_writer_open(&w, &s, &err);
    for (uint64_t i = 0; r == 0 && i < n; i++)
        r = sample_set_add(w, i, &err);
    if (r == 0)
        r = pstk_writer_commit(&w, &err);
    if (r < 0) {
        printf("Bail out! could not write the test's data set: %s\n", err.message);
        exit(99);
    }
}

#endif
