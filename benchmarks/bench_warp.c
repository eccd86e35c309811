/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_warp: measure transforms, copies and blurs of a 224 x 224 RGB picture in the cache, by each
 * ISA of the kernels that this CPU runs, on one core. The ceiling of a copy is memcpy of as
 * many bytes. Prints medians of several turns, and the lowest. benchmarks/bench_warp_pillow.py
 * measures Pillow and torchvision on the same.
 */
#include "bench.h"
#include "pixels/blur.h"
#include "pixels/rotation.h"
#include "support/picture.h"

#define SIDE 224u
#define N_ROUNDS 7
#define N_CALLS 5

enum what {
    COPY,
    SCALE_NEAREST,
    NEAREST,
    BILINEAR,
    BICUBIC,
    PERSPECTIVE_NEAREST,
    PERSPECTIVE_BILINEAR,
    PERSPECTIVE_BICUBIC,
    FLIP_HORIZONTAL,
    FLIP_VERTICAL,
    TURN_90,
    TURN_180,
    PAD_REFLECT,
    CROP,
    BLUR_BOXES,
    BLUR_GAUSSIAN,
    N_CASES
};

static const char *const names[N_CASES] = {
    "memcpy",
    "affine nearest, scale 0.8",
    "affine nearest, 30 degrees",
    "affine bilinear, 30 degrees",
    "affine bicubic, 30 degrees",
    "perspective nearest",
    "perspective bilinear",
    "perspective bicubic",
    "flip horizontal",
    "flip vertical",
    "turn 90",
    "turn 180",
    "pad reflect, 4 of 216",
    "crop at -4, -4",
    "blur by boxes, radius 2",
    "blur by weights, 23 x 23, sigma 2",
};

struct bench {
    struct pstk__picture in, out, small;
    void *scratch;
    const struct pstk__warp_kernels *warp;
    const struct pstk__blur_kernels *blur;
};

static const uint8_t fill[4] = {1, 2, 3, 4};
static const double scale[6] = {0.8, 0, 20, 0, 0.8, 20};
static const double perspective[8] = {1.1, 0.1, -20, -0.05, 1.05, 5, 0.0004, -0.0002};

/* A copy of one kind. */
static void copy(const struct bench *b, uint32_t what)
{
    if (what == COPY)
        memcpy(b->out.pixels, b->in.pixels, pstk__picture_size(&b->in));
    else if (what == FLIP_HORIZONTAL)
        pstk__copy_flip_horizontal(b->warp, &b->out, &b->in);
    else if (what == FLIP_VERTICAL)
        pstk__copy_flip_vertical(&b->out, &b->in);
    else if (what == TURN_90 || what == TURN_180)
        pstk__copy_turn(b->warp, &b->out, &b->in, what == TURN_90 ? PSTK__TURN_90 : PSTK__TURN_180);
    else if (what == PAD_REFLECT)
        pstk__copy_pad(&b->out, &b->small, 4, 4, PSTK_PAD_REFLECT, fill);
    else
        pstk__copy_crop(&b->out, &b->in, -4, -4, fill);
}

static void work(const struct bench *b, uint32_t what)
{
    const struct pstk__rotation_params params = {.angle = 30};
    const struct pstk__blur_params weights = {{23, 23}, {2, 2}};
    struct pstk__rotation rotation;
    if (what == SCALE_NEAREST) {
        pstk__warp_affine(b->warp, &b->out, &b->in, scale, PSTK__WARP_NEAREST, fill);
    } else if (what >= NEAREST && what <= BICUBIC) {
        pstk__rotation_init(&rotation, &params, SIDE, SIDE);
        pstk__warp_rotation(b->warp, &b->out, &b->in, &rotation, what - NEAREST, fill);
    } else if (what >= PERSPECTIVE_NEAREST && what <= PERSPECTIVE_BICUBIC) {
        pstk__warp_perspective(b->warp, &b->out, &b->in, perspective, what - PERSPECTIVE_NEAREST,
                               fill);
    } else if (what == BLUR_BOXES) {
        pstk__blur_box_gaussian(b->blur, &b->out, &b->in, (const float[2]){2, 2}, b->scratch);
    } else if (what == BLUR_GAUSSIAN) {
        pstk__blur_gaussian(b->blur, &b->out, &b->in, &weights, b->scratch);
    } else {
        copy(b, what);
    }
}

/* Microseconds a picture: the lowest of some calls. */
static double measure(const struct bench *b, uint32_t what)
{
    double least = 0;
    for (uint32_t i = 0; i < N_CALLS; i++) {
        const double begin = bench_now();
        work(b, what);
        const double passed = (bench_now() - begin) * 1e6;
        least = i == 0 || passed < least ? passed : least;
    }
    return least;
}

static int open_bench(struct bench *b)
{
    b->scratch = malloc(pstk__blur_scratch(SIDE, SIDE, 3));
    if (b->scratch == NULL || picture_open(&b->in, SIDE, SIDE, 3) < 0 ||
        picture_open(&b->out, SIDE, SIDE, 3) < 0)
        return -1;
    uint64_t state = 88172645463325252ull;
    for (uint64_t i = 0; i < pstk__picture_size(&b->in); i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        b->in.pixels[i] = (uint8_t)(state >> 33);
    }
    b->small = (struct pstk__picture){b->in.pixels, SIDE - 8, SIDE - 8, 3};
    return 0;
}

int main(void)
{
    static const char *const isas[5] = {"", "C", "AVX2", "AVX-512", "NEON"};
    static struct bench_runs runs[5][N_CASES];
    struct bench b;
    if (open_bench(&b) < 0)
        return 1;
    for (uint32_t round = 0; round < N_ROUNDS; round++)
        for (uint32_t v = PSTK_KERNELS_C; v <= PSTK_KERNELS_NEON; v++) {
            b.warp = pstk__warp_kernels(v);
            b.blur = pstk__blur_kernels(v);
            for (uint32_t what = 0; b.warp && b.blur && what < N_CASES; what++)
                bench_add(&runs[v][what], measure(&b, what));
        }
    printf("microseconds a picture of 224 x 224 x 3: median, lowest; ratios of the lowest\n");
    for (uint32_t v = PSTK_KERNELS_C; v <= PSTK_KERNELS_NEON; v++)
        for (uint32_t what = 0; runs[v][0].n > 0 && what < N_CASES; what++) {
            const double least = bench_worst(&runs[v][what], 0);
            printf("%-8s %-36s %8.1f %8.1f  %5.2f of memcpy  %5.1f x C\n", isas[v], names[what],
                   bench_median(&runs[v][what]), least, bench_worst(&runs[v][COPY], 0) / least,
                   bench_worst(&runs[PSTK_KERNELS_C][what], 0) / least);
        }
    picture_close(&b.in);
    picture_close(&b.out);
    free(b.scratch);
    return 0;
}
