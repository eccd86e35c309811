/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dump_image: reads lines "CHANNELS FILE" from standard input, and writes for each what the
 * decoders make of the file to standard output: "ok WIDTH HEIGHT ORIENTATION\n" and the pixels of
 * 1, 3 or 4 channels, or "error NAME MESSAGE\n". A "d" before the channels asks for the decoder of
 * damaged JPEGs. "check FILE" gives the result of pstk_image_check_damaged: "0 0\n", or
 * "NAME DAMAGED MESSAGE\n"; "library x" names the release of libjpeg. For tests/image/pillow_*.py.
 */
#include "base/arena.h"
#include "image/image.h"
#include "image/jpeg/damaged.h"

#include <penstock/format.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FILE_SIZE (1u << 30)

struct pixels {
    uint8_t *data;
    uint32_t channels;
    size_t row_size;
    size_t used;
};

static void keep_rows(void *user, const uint8_t *rgb, uint64_t stride, uint32_t n_rows)
{
    struct pixels *p = user;
    for (uint32_t k = 0; k < n_rows; k++, rgb += stride) {
        memcpy(p->data + p->used, rgb, p->row_size);
        p->used += p->row_size;
    }
}

static uint8_t *read_file(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    uint8_t *data = NULL;
    long end = -1;
    if (!f)
        return NULL;
    if (fseek(f, 0, SEEK_END) == 0)
        end = ftell(f);
    if (end >= 0 && end < (long)MAX_FILE_SIZE && fseek(f, 0, SEEK_SET) == 0)
        data = malloc((size_t)end + 1);
    if (data && fread(data, 1, (size_t)end, f) != (size_t)end) {
        free(data);
        data = NULL;
    }
    fclose(f);
    *size = (size_t)end;
    return data;
}

static int decode(const uint8_t *data, size_t size, int damaged, struct pstk__image_info *info,
                  struct pixels *pixels, struct pstk_error *err)
{
    struct pstk__arena arena = {0};
    struct pstk__image_state *state = NULL;
    const struct pstk__row_sink sink = {
        .rows = keep_rows, .user = pixels, .channels = pixels->channels};

    int r = pstk__image_probe(data, size, PSTK__MAX_PIXELS, info, err);
    if (r < 0)
        return r;
    pixels->row_size = (size_t)info->width * pixels->channels;
    pixels->data = malloc(pixels->row_size * info->height);
    if (!pixels->data)
        return PSTK_ENOMEM;
    r = pstk__arena_open(&arena, pstk__image_scratch(info->width, info->height));
    if (r == 0)
        r = pstk__image_state_open(&state, &arena, PSTK_KERNELS_AUTO, err);
    const struct pstk__box box = {.width = info->width, .height = info->height};
    if (r == 0)
        r = pstk__image_decode(
            state,
            &(const struct pstk__coded){damaged ? &pstk__image_damaged
                                                : pstk__image_decoder(info->encoding),
                                        data, size, info},
            &box, &sink, err);
    pstk__image_state_close(state);
    pstk__arena_close(&arena);
    return r;
}

static int dump(const char *path, uint32_t channels, int damaged)
{
    struct pstk__image_info info = {0};
    struct pixels pixels = {.channels = channels};
    struct pstk_error err;
    size_t size = 0;

    pstk_error_init(&err, sizeof err);
    uint8_t *data = read_file(path, &size);
    if (!data) {
        fprintf(stderr, "dump_image: cannot read %s\n", path);
        return -1;
    }
    int r = decode(data, size, damaged, &info, &pixels, &err);
    if (r < 0)
        printf("error %s %s\n", pstk_error_name(r), err.message);
    else
        printf("ok %u %u %u\n", info.width, info.height, info.orientation);
    if (r == 0)
        fwrite(pixels.data, 1, pixels.used, stdout);
    free(pixels.data);
    free(data);
    return fflush(stdout);
}

static int check(const char *path)
{
    struct pstk_error err;
    uint32_t damaged = 0;
    size_t size = 0;
    pstk_error_init(&err, sizeof err);
    uint8_t *data = read_file(path, &size);
    if (!data)
        return -1;
    const int r = pstk_image_check_damaged(data, size, 0, &damaged, &err);
    printf("%s %u %s\n", r < 0 ? pstk_error_name(r) : "0", damaged, r < 0 ? err.message : "");
    free(data);
    return fflush(stdout);
}

static int answer(const char *line)
{
    const int damaged = line[0] == 'd';
    if (strncmp(line, "library ", 8) == 0) {
        printf("%s\n", pstk__image_library());
        return fflush(stdout);
    }
    if (strncmp(line, "check ", 6) == 0)
        return check(line + 6);
    line += damaged;
    if (line[0] < '1' || line[0] > '4' || line[1] != ' ')
        return 2;
    return dump(line + 2, (uint32_t)(line[0] - '0'), damaged);
}

int main(void)
{
    char line[4096];
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        if (answer(line) != 0)
            return 1;
    }
    return 0;
}
