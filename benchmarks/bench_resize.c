/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_resize: Pillow's bilinear resize to 224 x 224, one core, weights computed for every image;
 * beside it a straightforward two-pass loop with the same weights. Crop sizes are those of
 * RandomResizedCrop on 500 x 375 images. benchmarks/bench_resize_pillow.py measures Pillow on them.
 */
#include "clock.h"
#include "op.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IMAGE_WIDTH 500u
#define IMAGE_HEIGHT 375u
#define N_CROPS 64u
#define SIDE 224u

struct bench {
    struct pstk__arena arena;
    uint8_t *image; /* IMAGE_WIDTH x IMAGE_HEIGHT */
    uint8_t *wide;  /* reference: rows after the horizontal pass */
    void *out;
    uint16_t table[768];
    struct pstk__box crops[N_CROPS];
};

static void reference_pass(uint8_t *out, size_t out_step, const uint8_t *in, size_t in_step,
                           const struct pstk__axis *a)
{
    for (uint32_t i = 0; i < a->n_out; i++)
        for (uint32_t c = 0; c < 3; c++) {
            uint32_t sum = 1u << 21;
            for (uint32_t k = 0; k < a->n[i]; k++)
                sum += in[(a->first[i] + k) * in_step + c] *
                       (uint32_t)a->weights[(size_t)i * a->n_taps + k];
            out[i * out_step + c] = (uint8_t)(sum >> 22);
        }
}

static void reference(struct bench *b, const struct pstk__box *crop)
{
    struct pstk__axis x, y;
    if (pstk__axis_init(&x, &b->arena, crop->width, SIDE, 0, SIDE) < 0 ||
        pstk__axis_init(&y, &b->arena, crop->height, SIDE, 0, SIDE) < 0)
        abort();
    const uint8_t *in = b->image + ((size_t)crop->top * IMAGE_WIDTH + crop->left) * 3;
    for (uint32_t r = 0; r < crop->height; r++)
        reference_pass(b->wide + (size_t)r * SIDE * 3, 3, in + (size_t)r * IMAGE_WIDTH * 3, 3, &x);
    for (uint32_t i = 0; i < SIDE; i++)
        reference_pass((uint8_t *)b->out + (size_t)i * 3, SIDE * 3, b->wide + (size_t)i * 3,
                       SIDE * 3, &y);
}

static void resize(struct bench *b, const struct pstk__box *crop, uint32_t dtype)
{
    const int half = dtype == PSTK_F16;
    const struct pstk__resize_config config = {
        .in_width = crop->width,
        .in_height = crop->height,
        .out_width = SIDE,
        .out_height = SIDE,
        .window = {0, 0, SIDE, SIDE},
        .finish = {.dtype = dtype,
                   .layout = half ? PSTK_NCHW : PSTK_NHWC,
                   .flip = half,
                   .width = SIDE,
                   .plane = SIDE * SIDE,
                   .table = b->table},
        .out = b->out,
        .out_stride = half ? SIDE * 2 : SIDE * 3,
    };
    struct pstk__resize r;
    if (pstk__resize_begin(&r, &b->arena, pstk__pixel_kernels(PSTK_VARIANT_AUTO), &config) < 0)
        abort();
    const size_t first = (size_t)(crop->top + r.y.begin) * IMAGE_WIDTH + crop->left + r.x.begin;
    pstk__resize_rows(&r, b->image + first * 3, IMAGE_WIDTH * 3, r.y.end - r.y.begin);
}

static void axes(struct bench *b, const struct pstk__box *crop)
{
    struct pstk__axis x, y;
    if (pstk__axis_init(&x, &b->arena, crop->width, SIDE, 0, SIDE) < 0 ||
        pstk__axis_init(&y, &b->arena, crop->height, SIDE, 0, SIDE) < 0)
        abort();
}

/* Milliseconds an image, best of several rounds. */
static double measure(struct bench *b, int what)
{
    double best = 1e9;
    for (int round = 0; round < 9; round++) {
        const uint64_t begin = pstk__clock_ns();
        for (uint32_t i = 0; i < N_CROPS; i++) {
            pstk__arena_reset(&b->arena, 0);
            if (what == 0)
                reference(b, &b->crops[i]);
            else if (what == 1)
                axes(b, &b->crops[i]);
            else
                resize(b, &b->crops[i], what == 2 ? PSTK_U8 : PSTK_F16);
        }
        const double ms = (double)(pstk__clock_ns() - begin) / 1e6 / N_CROPS;
        best = ms < best ? ms : best;
    }
    return best;
}

int main(void)
{
    static struct bench b;
    b.image = malloc((size_t)IMAGE_WIDTH * IMAGE_HEIGHT * 3);
    b.wide = malloc((size_t)IMAGE_HEIGHT * SIDE * 3);
    b.out = malloc((size_t)SIDE * SIDE * 3 * 2);
    if (b.image == NULL || b.wide == NULL || b.out == NULL ||
        pstk__arena_open(&b.arena, 4u << 20) < 0)
        return 1;
    struct pstk__random random;
    pstk__random_init(&random, &(struct pstk__random_key){.seed = 1});
    for (size_t i = 0; i < (size_t)IMAGE_WIDTH * IMAGE_HEIGHT * 3; i++)
        b.image[i] = (uint8_t)pstk__random_u32(&random);
    double pixels = 0;
    for (uint32_t i = 0; i < N_CROPS; i++) {
        b.crops[i] = pstk__random_resized_crop_box(&random, IMAGE_WIDTH, IMAGE_HEIGHT,
                                                   (double[2]){0.08, 1.0},
                                                   (double[2]){3.0 / 4.0, 4.0 / 3.0});
        pixels += (double)b.crops[i].width * b.crops[i].height / N_CROPS;
    }
    pstk__finish_table(b.table, PSTK_F16, PSTK_IMAGENET_MEAN, PSTK_IMAGENET_STD);
    const double plain = measure(&b, 0), weights = measure(&b, 1);
    const double u8 = measure(&b, 2), half = measure(&b, 3);
    printf("crops of %.0f pixels on average to %u x %u, ms an image, variant %u\n", pixels, SIDE,
           SIDE, pstk__pixel_kernels(PSTK_VARIANT_AUTO)->variant);
    printf("%-44s %7.4f\n", "weights alone", weights);
    printf("%-44s %7.4f\n", "straightforward two passes, u8", plain);
    printf("%-44s %7.4f  %4.1f x\n", "penstock, u8 NHWC", u8, plain / u8);
    printf("%-44s %7.4f  %4.1f x\n", "penstock, f16 NCHW normalised and flipped", half,
           plain / half);
    if (getenv("PENSTOCK_BENCH_CROPS") != NULL) /* for bench_resize_pillow.py */
        for (uint32_t i = 0; i < N_CROPS; i++)
            printf("crop %u %u %u %u\n", b.crops[i].left, b.crops[i].top, b.crops[i].width,
                   b.crops[i].height);
    free(b.image);
    free(b.wide);
    free(b.out);
    pstk__arena_close(&b.arena);
    return 0;
}
