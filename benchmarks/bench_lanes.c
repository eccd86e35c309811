/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_lanes: what 4, 16 and 64 lanes of the coder of planes cost: the JPEG files of each folder,
 * written with each number of lanes; bytes of the field, and the time to decode all strips by each
 * ISA, an image. From that come the two numbers of symbols in planes/write.c between which the
 * writer chooses. Lanes take turns within a run, so that their ratios are those of one machine
 * state; a time is the least of all runs, summed over the images.
 *
 *   bench_lanes [--runs R] FOLDER...
 */
#include "bench.h"
#include "base/little.h"
#include "image/jpeg/coefficients.h"
#include "image/planes/read.h"
#include "image/planes/write.h"

#include <dirent.h>
#include <penstock/penstock.h>

#define MEMORY (1u << 30) /* bytes of the arena; untouched pages cost nothing */
#define MAX_FIELD (64u << 20)
#define N_ISAS (PSTK_KERNELS_NEON + 1u)
#define N_LANES 3u

static const uint32_t lanes[N_LANES] = {PSTK__RANS_FEW_LANES, PSTK__RANS_SOME_LANES,
                                        PSTK__RANS_LANES};

/* Sums over the images of a folder. */
struct sums {
    uint64_t n_images, n_strips, symbols;
    uint64_t bytes[N_LANES];
    double ns[N_LANES][N_ISAS];
};

struct bench {
    struct pstk__arena arena;
    uint8_t *field[N_LANES]; /* MAX_FIELD bytes each */
    uint64_t size[N_LANES];
    struct pstk__planes_tables tables;
    struct pstk__planes_set sets[PSTK__PLANES_N_SETS];
    uint32_t runs;
    uint64_t sum; /* so that no decode is dead code */
};

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

/* Count the symbols of a reader's strips: each block has a count and two bytes of DC; then there
 * are map bytes, values and wide ones. */
static uint64_t count_symbols(struct pstk__planes_reader *r)
{
    const struct pstk__jpeg_frame *f = &r->header.frame;
    uint64_t n = 0;
    for (uint32_t c = 0; c < f->n_components; c++)
        for (uint32_t y = 0; y < f->component[c].rows; y++) {
            struct pstk__block_row row;
            if (pstk__planes_row(r, c, y, 0, f->component[c].stride, &row, NULL) < 0)
                bench_die("row", NULL);
            const int8_t *value = row.values;
            for (uint32_t i = 0; i < row.n_blocks; i++) {
                const uint64_t map = row.maps[i];
                n += 3 + (map ? (71 - (uint32_t)__builtin_clzll(map)) / 8 : 0);
                for (int k = __builtin_popcountll(map); k > 0; k--)
                    n += 1 + 2 * (*value++ == PSTK__PLANES_WIDE);
            }
        }
    return n;
}

/* Return nanoseconds to decode all strips, by asking for a row of each. */
static double time_strips(struct bench *b, uint32_t lane, const struct pstk__image_info *info,
                          uint32_t isa, uint64_t *symbols)
{
    static struct pstk__planes_reader r;
    b->tables.kernels = pstk__planes_kernels(isa);
    if (pstk__planes_open(&r, b->field[lane], b->size[lane], info, &b->tables, &b->arena, NULL) < 0)
        bench_die("open", NULL);
    const struct pstk__planes_header *h = &r.header;
    const uint32_t v = h->frame.n_components == 1 ? 1 : h->frame.component[0].v;
    const double start = now_ns();
    for (uint32_t k = 0; k < h->n_strips; k++) {
        struct pstk__block_row row;
        if (pstk__planes_row(&r, 0, k * h->strip_height * v, 0, 1, &row, NULL) < 0)
            bench_die("strip", NULL);
        b->sum += (uint64_t)row.dc[0];
    }
    const double ns = now_ns() - start;
    if (symbols)
        *symbols += count_symbols(&r);
    return ns;
}

/* A file whose coefficients are in the arena. */
static void measure(struct bench *b, const struct pstk__jpeg_image *image, struct sums *sums)
{
    const struct pstk__image_info info = {.width = image->frame.width,
                                          .height = image->frame.height};
    double least[N_LANES][N_ISAS] = {{0}};
    const size_t mark = b->arena.used;
    for (uint32_t i = 0; i < N_LANES; i++) {
        const struct pstk__planes_source source = {
            .sets = b->sets, .n_lanes = lanes[i], .image = image, .skeleton = ""};
        const int64_t n = pstk__planes_write(&source, b->field[i], MAX_FIELD, &b->arena, NULL);
        if (n <= 0)
            bench_die("write", NULL);
        b->size[i] = (uint64_t)n;
        sums->bytes[i] += (uint64_t)n;
    }
    for (uint32_t run = 0; run < b->runs; run++)
        for (uint32_t v = PSTK_KERNELS_C; v < N_ISAS; v++)
            for (uint32_t i = 0; i < N_LANES && pstk__planes_kernels(v); i++) {
                const int is_first = run == 0 && v == PSTK_KERNELS_C && i == 0;
                const double ns = time_strips(b, i, &info, v, is_first ? &sums->symbols : NULL);
                least[i][v] = run == 0 || ns < least[i][v] ? ns : least[i][v];
                pstk__arena_reset(&b->arena, mark);
            }
    for (uint32_t i = 0; i < N_LANES; i++)
        for (uint32_t v = 0; v < N_ISAS; v++)
            sums->ns[i][v] += least[i][v];
    sums->n_images++;
    sums->n_strips += pstk__get16(b->field[0] + 18);
}

static void measure_file(struct bench *b, const char *path, struct sums *sums)
{
    static uint8_t data[MAX_FIELD];
    struct pstk__jpeg_image image;
    FILE *f = fopen(path, "rb");
    const size_t size = f ? fread(data, 1, sizeof data, f) : 0;
    if (f)
        fclose(f);
    if (size > 0 && size < sizeof data &&
        pstk__jpeg_image_read(&image, data, size, UINT64_MAX, &b->arena, NULL) == 0) {
        image.rebuild = PSTK__JPEG_REBUILD_SCANS;
        measure(b, &image, sums);
    }
    pstk__arena_reset(&b->arena, 0);
}

static void print(const char *folder, const struct sums *sums)
{
    static const char *const names[N_ISAS] = {"", "C", "AVX2", "AVX-512", "NEON"};
    const double n = (double)sums->n_images;
    printf("%s: %llu images, %.0f symbols a strip\n", folder, (unsigned long long)sums->n_images,
           (double)sums->symbols / (double)sums->n_strips);
    printf("  %-22s %10s %10s %10s\n  %-22s", "lanes", "4", "16", "64", "bytes an image");
    for (uint32_t i = 0; i < N_LANES; i++)
        printf(" %10.1f", (double)sums->bytes[i] / n);
    for (uint32_t v = PSTK_KERNELS_C; v < N_ISAS; v++) {
        if (!pstk__planes_kernels(v))
            continue;
        printf("\n  ns an image, %-9s", names[v]);
        for (uint32_t i = 0; i < N_LANES; i++)
            printf(" %10.0f", sums->ns[i][v] / n);
        printf("\n  ns a symbol, %-9s", names[v]);
        for (uint32_t i = 0; i < N_LANES; i++)
            printf(" %10.3f", sums->ns[i][v] / (double)sums->symbols);
    }
    printf("\n");
}

static void measure_folder(struct bench *b, const char *folder)
{
    struct sums sums = {0};
    DIR *d = opendir(folder);
    const struct dirent *e;
    while (d && (e = readdir(d)) != NULL) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (e->d_name[0] != '.')
            measure_file(b, path, &sums);
    }
    if (d)
        closedir(d);
    if (sums.n_images == 0)
        bench_die("no JPEG file in a folder", NULL);
    print(folder, &sums);
}

int main(int argc, char **argv)
{
    static struct bench b = {.runs = 9};
    int first = 1;
    if (argc > 3 && strcmp(argv[1], "--runs") == 0) {
        b.runs = (uint32_t)atoi(argv[2]);
        first = 3;
    }
    if (first >= argc || b.runs < 1) {
        fprintf(stderr, "usage: bench_lanes [--runs R] FOLDER...\n");
        return 1;
    }
    pstk__planes_sets_init(b.sets);
    if (pstk__arena_open(&b.arena, MEMORY) < 0)
        bench_die("memory", NULL);
    for (uint32_t i = 0; i < N_LANES; i++)
        if ((b.field[i] = malloc(MAX_FIELD)) == NULL)
            bench_die("memory", NULL);
    for (int i = first; i < argc; i++)
        measure_folder(&b, argv[i]);
    for (uint32_t i = 0; i < N_LANES; i++)
        free(b.field[i]);
    pstk__arena_close(&b.arena);
    return b.sum == 0;
}
