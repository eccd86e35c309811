/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_resize: measure the pixel kernels of each ISA that this CPU runs, on one core. The work
 * is Pillow's bilinear resize to 224 x 224 of RandomResizedCrop's crops of 500 x 375 and 256 x 256
 * images, with weights computed for every image, and the source in the cache (warm) or in memory
 * (cold); the parts of that resize; and the finish of rows by dtype and layout. Prints medians of
 * several turns. Pixels with 1 and 4 channels have one case each, with ratios to 3 channels by the
 * same ISA; so have the other filters, u8 NHWC, from the cache.
 * benchmarks/bench_resize_pillow.py measures Pillow on the same crops.
 */
#include "support/finish_table.h"
#include "bench.h"
#include "augment/op.h"

#define N_CROPS 64u
#define SIDE 224u
#define N_ROUNDS 15
#define COLD_SIZE (256u << 20) /* bytes of sources: more than a cache keeps between two uses */
#define MAX_CASES 180

struct source {
    const char *name;
    uint32_t width, height;
    struct pstk__box crops[N_CROPS];
};

struct bench {
    struct pstk__arena arena;
    uint8_t *memory; /* COLD_SIZE */
    uint8_t *wide;   /* reference: rows after the horizontal pass */
    void *out;       /* SIDE x SIDE x 4 floats */
    void *tables[4]; /* for u8, f16, bf16, f32 */
    struct pstk__affine lines[4];
    size_t cold; /* offset in `memory`: the bytes that were not used for longest */
};

enum what { PLAIN, WEIGHTS, RESIZE, FINISH };

/* One figure: what, by whom, on what. */
struct bench_case {
    char name[64];
    enum what what;
    const struct pstk__pixel_kernels *kernels;
    const struct source *source;
    uint32_t channels, dtype, layout, flip, cold, by_table;
    uint32_t filter; /* enum pstk_filter; 0: bilinear */
    struct bench_runs runs;
};

static const char *const isas[5] = {"", "C", "AVX2", "AVX-512", "NEON"};
static const uint32_t dtypes[4] = {PSTK_U8, PSTK_F16, PSTK_BF16, PSTK_F32};
static const char *const dtype_names[4] = {"u8", "f16", "bf16", "f32"};

static void axes(struct bench *b, const struct pstk__pixel_kernels *k, const struct pstk__box *crop,
                 struct pstk__axis *x, struct pstk__axis *y)
{
    const struct pstk__axis_config across = {.in = crop->width, .out = SIDE, .n_out = SIDE};
    const struct pstk__axis_config down = {.in = crop->height, .out = SIDE, .n_out = SIDE};
    if (pstk__axis_init(x, &b->arena, k, &across) < 0 ||
        pstk__axis_init(y, &b->arena, k, &down) < 0)
        abort();
}

static void reference_pass(uint8_t *out, size_t out_step, const uint8_t *in, size_t in_step,
                           const struct pstk__axis *a)
{
    for (uint32_t i = 0; i < a->n_out; i++)
        for (uint32_t c = 0; c < 3; c++) {
            uint32_t sum = 1u << 21;
            for (uint32_t k = 0; k < a->n[i]; k++)
                sum += in[(a->first[i] + k) * in_step + c] *
                       (uint32_t)a->weights[(size_t)k * a->n_out + i];
            out[i * out_step + c] = (uint8_t)(sum >> 22);
        }
}

static void reference(struct bench *b, const struct source *s, const struct pstk__box *crop)
{
    struct pstk__axis x, y;
    axes(b, pstk__pixel_kernels(PSTK_KERNELS_C), crop, &x, &y);
    const uint8_t *in = b->memory + ((size_t)crop->top * s->width + crop->left) * 3;
    for (uint32_t r = 0; r < crop->height; r++)
        reference_pass(b->wide + (size_t)r * SIDE * 3, 3, in + (size_t)r * s->width * 3, 3, &x);
    for (uint32_t i = 0; i < SIDE; i++)
        reference_pass((uint8_t *)b->out + (size_t)i * 3, SIDE * 3, b->wide + (size_t)i * 3,
                       SIDE * 3, &y);
}

static struct pstk__finish finish_of(const struct bench *b, const struct bench_case *c)
{
    const uint32_t i = c->dtype == PSTK_U8     ? 0
                       : c->dtype == PSTK_F16  ? 1
                       : c->dtype == PSTK_BF16 ? 2
                                               : 3;
    return (struct pstk__finish){.channels = c->channels,
                                 .dtype = c->dtype,
                                 .layout = c->layout,
                                 .flip = c->flip,
                                 .width = SIDE,
                                 .plane = SIDE * SIDE,
                                 .table = b->tables[i],
                                 .affine = c->by_table ? NULL : &b->lines[i]};
}

static uint64_t stride_of(const struct bench_case *c)
{
    return (uint64_t)SIDE * pstk_dtype_size(c->dtype) * (c->layout == PSTK_NCHW ? 1 : c->channels);
}

static void resize(struct bench *b, const struct bench_case *c, const uint8_t *image,
                   const struct pstk__box *crop)
{
    const uint64_t stride = (uint64_t)c->source->width * c->channels;
    const struct pstk__resize_config config = {
        .channels = c->channels,
        .filter = c->filter,
        .in_width = crop->width,
        .in_height = crop->height,
        .out_width = SIDE,
        .out_height = SIDE,
        .crop = {0, 0, SIDE, SIDE},
        .finish = finish_of(b, c),
        .out = b->out,
        .out_stride = stride_of(c),
    };
    struct pstk__resize r;
    if (pstk__resize_begin(&r, &b->arena, c->kernels, &config) < 0)
        abort();
    const uint8_t *first =
        image + (crop->top + r.y.begin) * stride + ((size_t)crop->left + r.x.begin) * c->channels;
    pstk__resize_rows(&r, first, stride, r.y.end - r.y.begin);
}

static void finish(struct bench *b, const struct bench_case *c)
{
    struct pstk__finish f = finish_of(b, c);
    void *lookup = pstk__arena_get(&b->arena, PSTK__LOOKUP_SIZE);
    if (lookup == NULL)
        abort();
    if (f.dtype != PSTK_U8) {
        c->kernels->lookup_init(lookup, &f);
        f.lookup = lookup;
    }
    for (uint32_t y = 0; y < SIDE; y++)
        c->kernels->finish_row((uint8_t *)b->out + y * stride_of(c),
                               b->memory + (size_t)y * SIDE * c->channels, &f);
}

/* The next image that has not been used for long. */
static const uint8_t *cold_image(struct bench *b, const struct source *s)
{
    const size_t size = (size_t)s->width * s->height * 3;
    if (b->cold + size > COLD_SIZE)
        b->cold = 0;
    const uint8_t *image = b->memory + b->cold;
    b->cold += size;
    return image;
}

/* Return milliseconds an image. */
static double measure(struct bench *b, const struct bench_case *c)
{
    const double begin = bench_now();
    for (uint32_t i = 0; i < N_CROPS; i++) {
        struct pstk__axis x, y;
        pstk__arena_reset(&b->arena, 0);
        const struct pstk__box *crop = &c->source->crops[i];
        if (c->what == PLAIN)
            reference(b, c->source, crop);
        else if (c->what == WEIGHTS)
            axes(b, c->kernels, crop, &x, &y);
        else if (c->what == RESIZE)
            resize(b, c, c->cold ? cold_image(b, c->source) : b->memory, crop);
        else
            finish(b, c);
    }
    return (bench_now() - begin) * 1e3 / N_CROPS;
}

static void source_init(struct source *s, const char *name, uint32_t width, uint32_t height)
{
    struct pstk__random random;
    pstk__random_init(&random, &(struct pstk__random_key){.seed = 1});
    *s = (struct source){.name = name, .width = width, .height = height};
    for (uint32_t i = 0; i < N_CROPS; i++)
        s->crops[i] = pstk__random_resized_crop_box(
            &random, width, height,
            &(struct pstk_random_resized_crop_params){0.08, 1.0, 3.0 / 4.0, 4.0 / 3.0});
}

static int open_bench(struct bench *b)
{
    b->memory = malloc(COLD_SIZE);
    b->wide = malloc((size_t)1024 * SIDE * 3);
    b->out = calloc((size_t)SIDE * SIDE * 4, sizeof(float));
    if (b->memory == NULL || b->wide == NULL || b->out == NULL ||
        pstk__arena_open(&b->arena, 4u << 20) < 0)
        return -1;
    uint64_t state = 1;
    for (size_t i = 0; i + 8 <= COLD_SIZE; i += 8) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        memcpy(b->memory + i, &state, 8);
    }
    for (uint32_t i = 1; i < 4; i++) {
        static const float mean[4] = {0.485f, 0.456f, 0.406f, 0.5f};
        static const float deviation[4] = {0.229f, 0.224f, 0.225f, 0.5f};
        b->tables[i] = malloc((size_t)1024 * pstk_dtype_size(dtypes[i]));
        if (b->tables[i] == NULL)
            return -1;
        finish_table(b->tables[i], dtypes[i], 4, mean, deviation);
        pstk__affine_init(&b->lines[i], b->tables[i], dtypes[i], 4);
    }
    return 0;
}

static void add(struct bench_case *cases, uint32_t *n, struct bench_case c)
{
    if (*n < MAX_CASES)
        cases[(*n)++] = c;
}

static void add_isa(struct bench_case *cases, uint32_t *n, uint32_t isa,
                    const struct source sources[2])
{
    const struct pstk__pixel_kernels *k = pstk__pixel_kernels(isa);
    if (k == NULL)
        return;
    struct bench_case c = {.kernels = k, .source = &sources[0], .what = WEIGHTS, .channels = 3};
    snprintf(c.name, sizeof c.name, "%s: weights of both axes", isas[isa]);
    add(cases, n, c);
    c.what = RESIZE;
    for (uint32_t i = 0; i < 12; i++) {
        static const char *const targets[3] = {"u8 NHWC", "u8 NCHW", "f16 NCHW flipped"};
        const uint32_t target = i / 2 % 3;
        c.source = &sources[i / 6];
        c.cold = i & 1;
        c.layout = target == 0 ? PSTK_NHWC : PSTK_NCHW;
        c.dtype = target == 2 ? PSTK_F16 : PSTK_U8;
        c.flip = target == 2;
        snprintf(c.name, sizeof c.name, "%s: %s, %s, %s", isas[isa], c.source->name,
                 c.cold ? "cold" : "warm", targets[target]);
        add(cases, n, c);
    }
    c.what = FINISH;
    c.source = &sources[0];
    c.flip = c.cold = 0;
    for (uint32_t i = 1; i < 12; i++) {
        c.dtype = dtypes[i / 2 % 4];
        c.layout = i & 1 ? PSTK_NCHW : PSTK_NHWC;
        c.by_table = i >= 8;
        if (c.by_table) /* the 16-bit dtypes once more */
            c.dtype = dtypes[1 + (i - 8) / 2];
        snprintf(c.name, sizeof c.name, "%s: finish 224 x 224, %s %s%s", isas[isa],
                 dtype_names[c.by_table ? 1 + (i - 8) / 2 : i / 2], i & 1 ? "NCHW" : "NHWC",
                 c.by_table ? ", by table" : "");
        add(cases, n, c);
    }
}

/* A crop and a finish of images of 1 and 4 channels, u8, and f16 by its line. */
static void add_channels(struct bench_case *cases, uint32_t *n, uint32_t isa,
                         const struct source *source)
{
    const struct pstk__pixel_kernels *k = pstk__pixel_kernels(isa);
    for (uint32_t i = 0; i < 12 && k; i++) {
        struct bench_case c = {.kernels = k, .source = source, .channels = i & 1 ? 4 : 1};
        c.what = i < 6 ? RESIZE : FINISH;
        c.dtype = i / 2 % 3 == 2 ? PSTK_F16 : PSTK_U8;
        c.layout = i / 2 % 3 == 0 ? PSTK_NHWC : PSTK_NCHW;
        c.flip = i == 4 || i == 5;
        snprintf(c.name, sizeof c.name, "%s: %u channels, %s, %s %s%s", isas[isa], c.channels,
                 i < 6 ? "500 x 375, warm" : "finish 224 x 224", dtype_names[i / 2 % 3 == 2],
                 c.layout == PSTK_NHWC ? "NHWC" : "NCHW", c.flip ? " flipped" : "");
        add(cases, n, c);
    }
}

/* A crop of each source by the other filters. */
static void add_filters(struct bench_case *cases, uint32_t *n, uint32_t isa,
                        const struct source sources[2])
{
    static const char *const names[7] = {[PSTK_FILTER_NEAREST] = "nearest",
                                         [PSTK_FILTER_BOX] = "box",
                                         [PSTK_FILTER_HAMMING] = "hamming",
                                         [PSTK_FILTER_BICUBIC] = "bicubic",
                                         [PSTK_FILTER_LANCZOS] = "lanczos"};
    const struct pstk__pixel_kernels *k = pstk__pixel_kernels(isa);
    for (uint32_t i = 0; i < 14 && k; i++) {
        struct bench_case c = {.kernels = k,
                               .source = &sources[i / 7],
                               .what = RESIZE,
                               .channels = 3,
                               .dtype = PSTK_U8,
                               .layout = PSTK_NHWC,
                               .filter = i % 7};
        if (names[c.filter] == NULL)
            continue;
        snprintf(c.name, sizeof c.name, "%s: %s, %s", isas[isa], c.source->name, names[c.filter]);
        add(cases, n, c);
    }
}

/* Return the figure of the same by the same ISA, of 3 channels. */
static const struct bench_case *of_three(const struct bench_case *cases, uint32_t n,
                                         const struct bench_case *c)
{
    for (uint32_t k = 0; k < n; k++) {
        const struct bench_case *o = &cases[k];
        if (o->channels == 3 && o->kernels == c->kernels && o->what == c->what &&
            o->source == c->source && o->dtype == c->dtype && o->layout == c->layout &&
            o->flip == c->flip && o->filter == c->filter && !o->cold && !o->by_table)
            return o;
    }
    return NULL;
}

/* Medians, the lowest in brackets, and the ratio of medians to the same of plain C. */
static void report(const struct bench_case *cases, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const double ms = bench_median(&cases[i].runs);
        const char *what = strchr(cases[i].name, ':');
        printf("%-52s %7.4f (%.4f)", cases[i].name, ms, bench_worst(&cases[i].runs, 0));
        for (uint32_t k = 0; k < i && what; k++)
            if (strncmp(cases[k].name, "C:", 2) == 0 && strcmp(cases[k].name + 1, what) == 0)
                printf("  %5.1f x C", bench_median(&cases[k].runs) / ms);
        const struct bench_case *three =
            cases[i].channels % 3 ? of_three(cases, n, &cases[i]) : NULL;
        if (three)
            printf("  %5.2f of the time of 3 channels", ms / bench_median(&three->runs));
        printf("\n");
    }
}

int main(void)
{
    static struct bench b;
    static struct source sources[2];
    static struct bench_case cases[MAX_CASES];
    uint32_t n = 0;
    if (open_bench(&b) < 0)
        return 1;
    source_init(&sources[0], "500 x 375", 500, 375);
    source_init(&sources[1], "256 x 256", 256, 256);
    add(cases, &n,
        (struct bench_case){
            .name = "straightforward two passes", .what = PLAIN, .source = &sources[0]});
    for (uint32_t v = PSTK_KERNELS_C; v <= PSTK_KERNELS_NEON; v++) {
        add_isa(cases, &n, v, sources);
        add_channels(cases, &n, v, &sources[0]);
        add_filters(cases, &n, v, sources);
    }
    for (int round = 0; round < N_ROUNDS; round++)
        for (uint32_t i = 0; i < n; i++)
            bench_add(&cases[i].runs, measure(&b, &cases[i]));
    printf("ms an image, median (lowest); random crops resized to %u x %u\n", SIDE, SIDE);
    report(cases, n);
    if (getenv("PENSTOCK_BENCH_CROPS") != NULL) /* for bench_resize_pillow.py */
        for (uint32_t i = 0; i < 2 * N_CROPS; i++) {
            const struct source *s = &sources[i / N_CROPS];
            const struct pstk__box *c = &s->crops[i % N_CROPS];
            printf("crop %u %u %u %u %u %u\n", s->width, s->height, c->left, c->top, c->width,
                   c->height);
        }
    for (uint32_t i = 1; i < 4; i++)
        free(b.tables[i]);
    free(b.memory);
    free(b.wide);
    free(b.out);
    pstk__arena_close(&b.arena);
    return 0;
}
