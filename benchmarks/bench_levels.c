/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_levels: is each level of vector instructions faster than the one below it? It applies every
 * operation that has kernels to a picture of 224 x 224, and finishes rows of it in every dtype and
 * layout, with C, AVX2 and AVX-512, or C and NEON. Levels take turns call by call, so that a noisy
 * machine slows both alike. It prints, for each level and the one below, the median of the ratios
 * of their times and its 99 % interval, as a table in Markdown. A level that loses should go: its
 * table of kernels then names the function of the level below, and the ratio is 1.
 *
 *   bench_levels [--pairs N] [WORD]      N pairs of calls a row, default 400; only rows with WORD
 *
 * Times of operations include the work around the kernels, as a loader has it, too; the picture is
 * in cache, and copied before the clock starts.
 */
#include "bench.h"
#include "augment/canvas.h"
#include "base/arena.h"
#include "pixels/resize.h"
#include "pixels/resize_kernels.h"

#include <penstock/draw.h>

#include <math.h>

#define SIDE 224u
#define WIDE 320u /* pixels of a side of what resizes read */
#define MAX_BYTES (WIDE * WIDE * 4u)
#define MAX_ROOM (448u * 448u * 4u) /* bytes of the largest picture that is made */
#define MAX_PAIRS 4096u
#define LOSS 1.02 /* a ratio that is more than a call of the function below */
#define WARM 3u   /* calls of each level before its pairs */

static const struct level {
    uint32_t isa;
    const char *name;
} levels[] = {
    {PSTK_KERNELS_C, "C"},
#if defined(__aarch64__)
    {PSTK_KERNELS_NEON, "NEON"},
#else
    {PSTK_KERNELS_AVX2, "AVX2"},
    {PSTK_KERNELS_AVX512, "AVX-512"},
#endif
};
#define N_LEVELS (sizeof levels / sizeof levels[0])

/* One row of the table. */
struct row {
    char name[80];
    struct pstk_op op;
    uint32_t side;              /* pixels of a side of the picture */
    uint32_t channels;          /* channels of the picture */
    uint32_t flags;             /* enum pstk_op_flag of the op */
    struct pstk__finish finish; /* in place of op where its dtype is set */
};

static struct bench {
    uint32_t n_pairs;
    const char *word; /* or NULL: all rows */
    uint8_t in[MAX_BYTES];
    float out[SIDE * SIDE * 3];
    struct pstk__arena arena;
    float table[PSTK__MAX_CHANNELS * 256];
    struct pstk__affine affine;
    uint8_t lookup[PSTK__LOOKUP_SIZE] __attribute__((aligned(64)));
} bench;

/* ---- one call -------------------------------------------------------------------------------- */

/* Copy the picture to memory that an op may change. */
static void begin(struct pstk__canvas *canvas, const struct row *row)
{
    pstk__arena_reset(&bench.arena, 0);
    *canvas = (struct pstk__canvas){
        .arena = &bench.arena,
        .picture = {.pixels = pstk__arena_get(&bench.arena, MAX_ROOM),
                    .width = row->side,
                    .height = row->side,
                    .channels = row->channels},
        .spare = pstk__arena_get(&bench.arena, MAX_ROOM),
        .room = MAX_ROOM,
    };
    if (!canvas->picture.pixels || !canvas->spare)
        bench_die("no memory for pictures", NULL);
    memcpy(canvas->picture.pixels, bench.in, (size_t)row->side * row->side * row->channels);
}

static void apply(struct pstk__canvas *canvas, const struct row *row)
{
    struct pstk_op op = row->op;
    op.flags |= row->flags;
    if (pstk__canvas_run(canvas, &op, 1) < 0)
        bench_die(row->name, NULL);
}

/* Finish all rows of the picture: the lookup is made once, as for an image. */
static void finish(const struct row *row, uint32_t isa)
{
    const struct pstk__pixel_kernels *kernels = pstk__pixel_kernels(isa);
    const uint64_t size = pstk_dtype_size(row->finish.dtype);
    struct pstk__finish f = row->finish;
    const uint64_t step = f.layout == PSTK_NCHW ? f.width : (uint64_t)f.width * f.channels;
    if (f.dtype != PSTK_U8) {
        kernels->lookup_init(bench.lookup, &f);
        f.lookup = bench.lookup;
    }
    for (uint32_t y = 0; y < SIDE; y++)
        kernels->finish_row((uint8_t *)bench.out + y * step * size,
                            bench.in + (uint64_t)y * f.width * f.channels, &f);
}

/* Return nanoseconds of one call. */
static double call(const struct row *row, uint32_t isa)
{
    struct pstk__canvas_kernels kernels;
    struct pstk__canvas canvas;
    pstk__canvas_kernels_init(&kernels, isa);
    begin(&canvas, row);
    canvas.kernels = &kernels;
    const double start = bench_now();
    if (row->finish.width)
        finish(row, isa);
    else
        apply(&canvas, row);
    return 1e9 * (bench_now() - start);
}

/* ---- pairs ----------------------------------------------------------------------------------- */

/* The ratio of a level's times to those of the one below. */
struct ratio {
    double median, low, high; /* with the bounds of its 99 % interval */
    double ns[2];             /* medians of the times, of the level below first */
};

/* Return the median of n sorted values, and its 99 % interval by ranks, which are binomial. */
static double middle(const double *sorted, uint32_t n, double *low, double *high)
{
    const double half = 2.576 * sqrt(n) / 2;
    const uint32_t from = n / 2 > half ? n / 2 - (uint32_t)half : 0;
    const uint32_t to = n / 2 + (uint32_t)half;
    *low = sorted[from];
    *high = sorted[to < n ? to : n - 1];
    return sorted[n / 2];
}

static struct ratio compare(const struct row *row, uint32_t below, uint32_t isa)
{
    static double times[2][MAX_PAIRS], ratios[MAX_PAIRS];
    struct ratio found;
    double ignored;
    for (uint32_t i = 0; i < WARM; i++) {
        call(row, below);
        call(row, isa);
    }
    for (uint32_t i = 0; i < bench.n_pairs; i++) {
        const uint32_t first = i % 2;
        times[first][i] = call(row, first ? isa : below);
        times[!first][i] = call(row, first ? below : isa);
        ratios[i] = times[1][i] / times[0][i];
    }
    qsort(ratios, bench.n_pairs, sizeof *ratios, bench_compare);
    found.median = middle(ratios, bench.n_pairs, &found.low, &found.high);
    for (uint32_t k = 0; k < 2; k++) {
        qsort(times[k], bench.n_pairs, sizeof **times, bench_compare);
        found.ns[k] = middle(times[k], bench.n_pairs, &ignored, &ignored);
    }
    return found;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static int is_here(uint32_t isa)
{
    return pstk__pixel_kernels(isa) != NULL;
}

static void print_head(void)
{
    printf("| kernel | C, us |");
    for (uint32_t i = 1; i < N_LEVELS; i++)
        printf(" %s, us, / %s |", levels[i].name, levels[i - 1].name);
    printf("\n|---|--:|");
    for (uint32_t i = 1; i < N_LEVELS; i++)
        printf("--:|");
    printf("\n");
}

static void print(const struct row *row)
{
    if (bench.word && !strstr(row->name, bench.word))
        return;
    printf("| %s |", row->name);
    for (uint32_t i = 1; i < N_LEVELS; i++) {
        if (!is_here(levels[i].isa)) {
            printf(" |");
            continue;
        }
        const struct ratio r = compare(row, levels[i - 1].isa, levels[i].isa);
        if (i == 1)
            printf(" %.1f |", r.ns[0] / 1000);
        printf(" %.1f, %.2f (%.2f to %.2f)%s |", r.ns[1] / 1000, r.median, r.low, r.high,
               r.low > LOSS ? " **loses**" : "");
    }
    printf("\n");
    fflush(stdout);
}

static void print_op(const char *name, struct pstk_op op, uint32_t side, uint32_t channels)
{
    struct row row = {.op = op, .side = side, .channels = channels};
    snprintf(row.name, sizeof row.name, "%s", name);
    print(&row);
}

/* An operation by the tensor reference, which has kernels of its own. */
static void print_tensor(const char *name, struct pstk_op op)
{
    struct row row = {.op = op, .side = SIDE, .channels = 3, .flags = PSTK_OP_TENSOR};
    snprintf(row.name, sizeof row.name, "%s, tensor", name);
    print(&row);
}

static void print_both(const char *name, struct pstk_op op)
{
    print_op(name, op, SIDE, 3);
    print_tensor(name, op);
}

static void print_resizes(void)
{
    static const char *const filters[] = {"",        "nearest", "box",    "bilinear",
                                          "hamming", "bicubic", "lanczos"};
    static const uint32_t sides[] = {128, SIDE, 448};
    char name[64];
    for (uint32_t filter = PSTK_FILTER_NEAREST; filter <= PSTK_FILTER_LANCZOS; filter++)
        for (uint32_t i = 0; i < 3; i++) {
            struct pstk_op op = pstk_resize(sides[i], sides[i]);
            op.filter = filter;
            snprintf(name, sizeof name, "resize %u to %u, %s", WIDE, sides[i], filters[filter]);
            print_op(name, op, WIDE, 3);
        }
    print_op("resize 320 to 224, bilinear, RGBA", pstk_resize(SIDE, SIDE), WIDE, 4);
    print_op("resize 320 to 224, bilinear, gray", pstk_resize(SIDE, SIDE), WIDE, 1);
}

static void print_warps(void)
{
    static const char *const filters[] = {"", "nearest", "", "bilinear", "", "bicubic"};
    static const double turn[6] = {0.97, -0.2, 20, 0.2, 0.97, -15};
    static const double start[8] = {0, 0, 223, 0, 223, 223, 0, 223};
    static const double end[8] = {20, 10, 200, 4, 210, 215, 6, 200};
    struct pstk_op perspective = {.kind = PSTK_OP_PERSPECTIVE};
    char name[64];
    pstk_perspective_matrix(perspective.params.perspective.matrix, start, end);
    for (uint32_t filter = PSTK_FILTER_NEAREST; filter <= PSTK_FILTER_BICUBIC; filter += 2) {
        snprintf(name, sizeof name, "affine, %s", filters[filter]);
        print_op(name, pstk_affine(turn, filter), SIDE, 3);
        if (filter != PSTK_FILTER_BICUBIC)
            print_tensor(name, pstk_affine(turn, filter));
        snprintf(name, sizeof name, "rotate, %s", filters[filter]);
        print_op(name, pstk_rotate(30, filter, 0), SIDE, 3);
        snprintf(name, sizeof name, "perspective, %s", filters[filter]);
        perspective.filter = filter;
        print_op(name, perspective, SIDE, 3);
        if (filter != PSTK_FILTER_BICUBIC)
            print_tensor(name, perspective);
    }
}

static void print_colours(void)
{
    static const struct {
        const char *name;
        uint32_t kind;
        double value;
    } colours[] = {
        {"brightness", PSTK_OP_BRIGHTNESS, 1.3},   {"contrast", PSTK_OP_CONTRAST, 0.7},
        {"saturation", PSTK_OP_SATURATION, 1.3},   {"hue", PSTK_OP_HUE, 0.1},
        {"sharpness", PSTK_OP_SHARPNESS, 1.5},     {"posterize", PSTK_OP_POSTERIZE, 4},
        {"solarize", PSTK_OP_SOLARIZE, 128},       {"invert", PSTK_OP_INVERT, 0},
        {"autocontrast", PSTK_OP_AUTOCONTRAST, 0}, {"equalize", PSTK_OP_EQUALIZE, 0},
    };
    for (size_t i = 0; i < sizeof colours / sizeof *colours; i++)
        print_both(colours[i].name, pstk_adjust(colours[i].kind, colours[i].value));
    print_both("grayscale, 1 channel", pstk_grayscale(1));
    print_both("grayscale, 3 channels", pstk_grayscale(3));
}

static void print_others(void)
{
    print_both("gaussian blur 9", pstk_gaussian_blur(9, 1.5));
    print_op("box blur 2", pstk_box_blur(2), SIDE, 3);
    print_op("jpeg 75", pstk_jpeg(75), SIDE, 3);
    print_op("flip", pstk_flip_horizontal(), SIDE, 3);
}

static void print_finishes(void)
{
    static const struct pstk__normalisation normal = {
        .is_set = 1, .mean = {0.485f, 0.456f, 0.406f}, .deviation = {0.229f, 0.224f, 0.225f}};
    static const uint32_t dtypes[] = {PSTK_U8, PSTK_F16, PSTK_BF16, PSTK_F32};
    for (uint32_t d = 0; d < 4; d++)
        for (uint32_t layout = PSTK_NHWC; layout <= PSTK_NCHW; layout++)
            for (uint32_t affine = 0; affine <= (dtypes[d] == PSTK_F16 || dtypes[d] == PSTK_BF16);
                 affine++) {
                struct row row = {.side = SIDE, .channels = 3};
                row.finish = (struct pstk__finish){.channels = 3,
                                                   .dtype = dtypes[d],
                                                   .layout = layout,
                                                   .width = SIDE,
                                                   .plane = SIDE * SIDE,
                                                   .table = bench.table};
                snprintf(row.name, sizeof row.name, "finish %s %s%s", pstk_dtype_name(dtypes[d]),
                         layout == PSTK_NCHW ? "NCHW" : "NHWC",
                         dtypes[d] == PSTK_U8 ? ""
                         : affine             ? ", affine"
                                              : ", table");
                if (dtypes[d] != PSTK_U8)
                    pstk__normalisation_table(bench.table, dtypes[d], 3, &normal);
                if (affine) {
                    pstk__affine_init(&bench.affine, bench.table, dtypes[d], 3);
                    row.finish.affine = &bench.affine;
                }
                print(&row);
            }
}

/* A smooth picture with some noise, as photographs are. */
static void fill(void)
{
    uint64_t state = 1;
    for (uint32_t i = 0; i < MAX_BYTES; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bench.in[i] = (uint8_t)((i / 3 % WIDE + i / 3 / WIDE * 2) / 4 + (state >> 40) % 16 + 20);
    }
}

int main(int argc, char **argv)
{
    bench.n_pairs = 400;
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--pairs") == 0 && i + 1 < argc)
            bench.n_pairs = (uint32_t)strtoul(argv[++i], NULL, 10);
        else
            bench.word = argv[i];
    if (bench.n_pairs < 20 || bench.n_pairs > MAX_PAIRS)
        bench_die("--pairs: must be 20 to 4096", NULL);
    if (pstk__arena_open(&bench.arena, 2 * MAX_ROOM + (64 << 20)) < 0)
        bench_die("no memory", NULL);
    fill();
    print_head();
    print_resizes();
    print_warps();
    print_colours();
    print_others();
    print_finishes();
    pstk__arena_close(&bench.arena);
    return 0;
}
