/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dump_image: reads lines "CHANNELS FILE" from standard input, and writes for each what the
 * decoders make of the file to standard output: "ok WIDTH HEIGHT ORIENTATION\n" and the pixels of
 * 1, 3 or 4 channels, or "error NAME MESSAGE\n". For tests/image/pillow_decode.py.
 */
#include "base/arena.h"
#include "image/image.h"

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

static int decode(const uint8_t *data, size_t size, struct pstk__image_info *info,
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
            &(const struct pstk__coded){pstk__image_decoder(info->encoding), data, size, info},
            &box, &sink, err);
    pstk__image_state_close(state);
    pstk__arena_close(&arena);
    return r;
}

static int dump(const char *path, uint32_t channels)
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
    int r = decode(data, size, &info, &pixels, &err);
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

int main(void)
{
    char path[4096];
    while (fgets(path, sizeof path, stdin)) {
        path[strcspn(path, "\n")] = 0;
        if (path[0] < '1' || path[0] > '4' || path[1] != ' ')
            return 2;
        if (dump(path + 2, (uint32_t)(path[0] - '0')) != 0)
            return 1;
    }
    return 0;
}
