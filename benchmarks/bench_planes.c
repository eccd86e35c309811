/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_planes: measure the JPEG files of a folder as coefficient planes, on one core. Prints how
 * many files are stored as planes, and the reasons of the others; bytes and symbols, by part; and
 * the time of an image by each ISA: to open (header, tables), to decode all strips, to make all
 * pixels, to pack, and to rebuild the file. For comparison it measures libjpeg-turbo's decode of
 * the whole file. The ISAs take turns within a run, so their ratios are those of one state of
 * the machine.
 *
 *   bench_planes FOLDER [--runs R] [--files N]
 *
 * With --runs 0 it prints one line of sizes: files, how many stay JPEGs, the mean of (bytes stored
 * / bytes of the file), and the sum of the bytes stored by the sum of the files.
 */
#include "bench.h"
#include "base/codec.h"
#include "image/image.h"
#include "image/jpeg/coefficients.h"
#include "image/jpeg/decode.h"
#include "image/planes/decode.h"
#include "image/planes/file.h"
#include "image/planes/read.h"

#include <dirent.h>

#define MAX_FILES 2000u
#define N_ISAS (PSTK_KERNELS_NEON + 1u)
#define MEMORY (1u << 30) /* bytes of the arena; untouched pages cost nothing */

struct stored {
    uint8_t *file, *field; /* owned */
    uint64_t file_size, field_size, plain_size;
    struct pstk__image_info info;
};

/* Bytes of all fields by section, and symbols by run. */
struct totals {
    uint64_t head, list, models, padding, strips, states, skeleton;
    uint64_t blocks, map_bytes, values, wide;
    uint64_t n_strips, n_tables, n_sets, n_few_lanes, n_some_lanes;
};

struct reason {
    char text[96];
    uint32_t n;
};

struct bench {
    struct stored image[MAX_FILES];
    uint32_t n_images, n_files, n_equivalent;
    uint64_t file_bytes, all_bytes; /* sums over the files stored, and over all */
    uint64_t stored_bytes;          /* sum over all: fields, and files that stay as they are */
    double ratios;                  /* the sum of stored bytes / file bytes */
    struct reason reasons[16];
    struct totals totals;
    struct pstk__arena arena;
    struct pstk__planes_encoder *encoder;
    struct pstk__decoder *decoder;
    struct pstk__planes_tables tables[N_ISAS];
    struct pstk__image_state *state[N_ISAS]; /* NULL: this CPU lacks the ISA */
    uint64_t sum;                            /* so that no decode is dead code */
    /* seconds for all images, by ISA */
    struct bench_runs open[N_ISAS], strips[N_ISAS], pixels[N_ISAS];
    struct bench_runs file, plain, pack;
};

/* ---- files ---------------------------------------------------------------------------------- */

static uint8_t *read_file(const char *folder, const char *name, uint64_t *size)
{
    char path[4096];
    uint8_t *data = NULL;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "rb");
    const long end = f && fseek(f, 0, SEEK_END) == 0 ? ftell(f) : -1;
    if (end > 0 && fseek(f, 0, SEEK_SET) == 0)
        data = malloc((size_t)end);
    if (data && fread(data, 1, (size_t)end, f) != (size_t)end)
        bench_die(path, NULL);
    if (f)
        fclose(f);
    *size = end > 0 ? (uint64_t)end : 0;
    return data;
}

static void count_reason(struct bench *b, const char *text)
{
    const uint32_t most = sizeof b->reasons / sizeof *b->reasons;
    uint32_t i = 0;
    while (i + 1 < most && b->reasons[i].n && strcmp(b->reasons[i].text, text) != 0)
        i++;
    snprintf(b->reasons[i].text, sizeof b->reasons[i].text, "%.90s",
             i + 1 < most ? text : "others");
    b->reasons[i].n++;
}

/* Why a file stays as it is: what reading it says, or what planes do. */
static void find_reason(struct bench *b, const uint8_t *data, uint64_t size)
{
    struct pstk__jpeg_image image;
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    const int r = pstk__jpeg_image_read(&image, data, size, UINT64_MAX, &b->arena, &err);
    if (r < 0)
        count_reason(b, err.message);
    else if (image.smoothed)
        count_reason(b, "libjpeg smooths its blocks");
    else if (pstk__jpeg_backend_check(&image.frame, &err) < 0)
        count_reason(b, err.message);
    else
        count_reason(b, "planes would not be smaller");
    pstk__arena_reset(&b->arena, 0);
}

/* Takes data. */
static void keep(struct bench *b, uint8_t *data, uint64_t size)
{
    struct pstk__planes_file file;
    struct stored *s = &b->image[b->n_images];
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    const int r = pstk__planes_encode(b->encoder, data, size, 0, &file, &err);
    if (r < 0)
        bench_die("encode", &err);
    b->n_files++;
    b->all_bytes += size;
    b->stored_bytes += r ? file.stored_size : size;
    b->ratios += r ? (double)file.stored_size / (double)size : 1;
    if (r == 0) {
        find_reason(b, data, size);
        free(data);
        return;
    }
    *s = (struct stored){.file = data,
                         .file_size = size,
                         .field = malloc(file.stored_size),
                         .field_size = file.stored_size,
                         .plain_size = file.plain_size};
    if (s->field == NULL)
        bench_die("memory", NULL);
    memcpy(s->field, file.stored, file.stored_size);
    if (pstk__image_planes.probe(s->field, s->field_size, UINT64_MAX, &s->info, &err) < 0)
        bench_die("probe", &err);
    b->n_equivalent += file.equivalent;
    b->file_bytes += size;
    b->n_images++;
}

static void read_folder(struct bench *b, const char *folder, uint32_t most)
{
    DIR *d = opendir(folder);
    struct dirent *e;
    while (d && b->n_files < most && (e = readdir(d)) != NULL) {
        uint64_t size;
        uint8_t *data = e->d_name[0] != '.' ? read_file(folder, e->d_name, &size) : NULL;
        if (data)
            keep(b, data, size);
    }
    if (d)
        closedir(d);
}

/* ---- what the fields hold ------------------------------------------------------------------- */

static void count_row(struct totals *t, const struct pstk__block_row *row)
{
    const int8_t *value = row->values;
    for (uint32_t i = 0; i < row->n_blocks; i++) {
        const uint64_t map = row->maps[i];
        t->map_bytes += map ? (71 - (uint32_t)__builtin_clzll(map)) / 8 : 0;
        for (int n = __builtin_popcountll(map); n > 0; n--, t->values++)
            t->wide += *value++ == PSTK__PLANES_WIDE;
    }
    t->blocks += row->n_blocks;
}

static void open_reader(struct bench *b, const struct stored *s, uint32_t isa,
                        struct pstk__planes_reader *r)
{
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    b->tables[isa].kernels = pstk__planes_kernels(isa);
    if (pstk__planes_open(r, s->field, s->field_size, &s->info, &b->tables[isa], &b->arena, &err) <
        0)
        bench_die("open", &err);
}

/* Return how many tables an image has of its own. */
static uint32_t count_tables(const struct pstk__planes_reader *r)
{
    struct pstk__planes_models models = {.n = 0};
    uint32_t n = 0;
    if (r->header.models_size > 0)
        pstk__planes_models_read(&models, r->header.models, r->header.models_size,
                                 r->header.set > 0);
    for (uint32_t i = 0; i < models.n; i++)
        n += models.data[i] != NULL;
    return n;
}

static void count_image(struct bench *b, const struct stored *s)
{
    static struct pstk__planes_reader r;
    struct totals *t = &b->totals;
    open_reader(b, s, PSTK_KERNELS_AUTO, &r);
    const struct pstk__planes_header *h = &r.header;
    const uint64_t list = PSTK__PLANES_ENTRY_SIZE * (uint64_t)h->n_strips;
    uint64_t strips = 0;
    for (uint32_t i = 0; i < h->n_strips; i++)
        strips += pstk__planes_entry_read(h, i).size;
    t->head += (uint64_t)(h->models - s->field) - list;
    t->list += list;
    t->models += h->models_size;
    t->padding += (uint64_t)(h->skeleton - h->models) - h->models_size - strips;
    t->strips += strips;
    t->states += 4ull * h->n_lanes * h->n_strips;
    t->skeleton += h->skeleton_size;
    t->n_strips += h->n_strips;
    t->n_tables += count_tables(&r);
    t->n_sets += h->set > 0;
    t->n_few_lanes += h->n_lanes == PSTK__RANS_FEW_LANES;
    t->n_some_lanes += h->n_lanes == PSTK__RANS_SOME_LANES;
    for (uint32_t c = 0; c < h->frame.n_components; c++)
        for (uint32_t y = 0; y < h->frame.component[c].rows; y++) {
            struct pstk__block_row row;
            if (pstk__planes_row(&r, c, y, 0, h->frame.component[c].stride, &row, NULL) < 0)
                bench_die("row", NULL);
            count_row(t, &row);
        }
    pstk__arena_reset(&b->arena, 0);
}

/* ---- the measured; seconds ------------------------------------------------------------------ */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void drop_rows(void *user, const uint8_t *rgb, uint64_t stride, uint32_t n_rows)
{
    struct bench *b = user;
    (void)stride;
    b->sum += rgb[0] + n_rows;
}

static double time_pixels(struct bench *b, const struct pstk__image_decoder *decoder, uint32_t isa,
                          int is_file)
{
    const struct pstk__row_sink sink = {.rows = drop_rows, .user = b, .channels = 3};
    const double start = now();
    for (uint32_t i = 0; i < b->n_images; i++) {
        const struct stored *s = &b->image[i];
        const struct pstk__box all = {.width = s->info.width, .height = s->info.height};
        if (pstk__image_decode(b->state[isa],
                               &(const struct pstk__coded){decoder, is_file ? s->file : s->field,
                                                           is_file ? s->file_size : s->field_size,
                                                           &s->info},
                               &all, &sink, NULL) < 0)
            bench_die("decode", NULL);
    }
    return now() - start;
}

/* Open, and then all strips, by asking for a row of each. */
static void time_strips(struct bench *b, uint32_t isa)
{
    static struct pstk__planes_reader r;
    double open = 0, strips = 0;
    for (uint32_t i = 0; i < b->n_images; i++) {
        const double start = now();
        open_reader(b, &b->image[i], isa, &r);
        const double opened = now();
        const struct pstk__planes_header *h = &r.header;
        const uint32_t v = h->frame.n_components == 1 ? 1 : h->frame.component[0].v;
        for (uint32_t k = 0; k < h->n_strips; k++) {
            struct pstk__block_row row;
            if (pstk__planes_row(&r, 0, k * h->strip_height * v, 0, 1, &row, NULL) < 0)
                bench_die("strip", NULL);
            b->sum += (uint64_t)row.dc[0];
        }
        open += opened - start;
        strips += now() - opened;
        pstk__arena_reset(&b->arena, 0);
    }
    bench_add(&b->open[isa], open);
    bench_add(&b->strips[isa], strips);
}

static double time_file(struct bench *b)
{
    const double start = now();
    for (uint32_t i = 0; i < b->n_images; i++) {
        const struct stored *s = &b->image[i];
        uint8_t *out = malloc(s->plain_size);
        if (out == NULL || pstk__planes_decode(b->decoder,
                                               &(const struct pstk__planes_field){
                                                   s->field, s->field_size, s->info.width,
                                                   s->info.height, s->plain_size},
                                               out, &b->arena, NULL) < 0)
            bench_die("file", NULL);
        b->sum += out[0];
        free(out);
    }
    return now() - start;
}

static double time_pack(struct bench *b)
{
    const double start = now();
    for (uint32_t i = 0; i < b->n_images; i++) {
        struct pstk__planes_file file;
        if (pstk__planes_encode(b->encoder, b->image[i].file, b->image[i].file_size, 0, &file,
                                NULL) != 1)
            bench_die("pack", NULL);
        b->sum += file.stored[0];
    }
    return now() - start;
}

/* ---- the table ------------------------------------------------------------------------------ */

static void print_sizes(const struct bench *b)
{
    const struct totals *t = &b->totals;
    const double n = b->n_images, blocks = (double)t->blocks;
    const double sum =
        (double)(t->head + t->list + t->models + t->padding + t->strips + t->skeleton) / 100;
    printf("%u files, %.0f bytes a file; %u stored, %u of them as equivalents\n", b->n_files,
           (double)b->all_bytes / b->n_files, b->n_images, b->n_equivalent);
    for (uint32_t i = 0; i < 16 && b->reasons[i].n > 0; i++)
        printf("  %4u stay JPEGs: %s\n", b->reasons[i].n, b->reasons[i].text);
    printf("bytes of the fields by those of their files: %.4f\n\n",
           sum * 100 / (double)b->file_bytes);
    printf("%-28s %12s %8s\n", "bytes an image", "", "%");
    const struct {
        const char *name;
        uint64_t bytes;
    } rows[] = {{"head", t->head},
                {"list of strips", t->list},
                {"models", t->models},
                {"zero bytes between", t->padding},
                {"strips: symbols", t->strips - t->states},
                {"strips: states", t->states},
                {"skeleton", t->skeleton}};
    for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++)
        printf("%-28s %12.1f %8.2f\n", rows[i].name, (double)rows[i].bytes / n,
               (double)rows[i].bytes / sum);
    printf("%-28s %12.1f\n%-28s %12.1f\n%-28s %12.1f\n", "strips an image", (double)t->n_strips / n,
           "own tables an image", (double)t->n_tables / n, "blocks an image", blocks / n);
    printf("%-28s %12llu\n", "images with built-in tables", (unsigned long long)t->n_sets);
    printf("%-28s %12llu\n%-28s %12llu\n\n", "images of 4 lanes",
           (unsigned long long)t->n_few_lanes, "images of 16 lanes",
           (unsigned long long)t->n_some_lanes);
    printf("symbols a block: counts 1, maps %.3f, values %.3f, dc 2, wide 2 x %.4f: %.3f\n\n",
           (double)t->map_bytes / blocks, (double)t->values / blocks, (double)t->wide / blocks,
           3 + (double)(t->map_bytes + t->values + 2 * t->wide) / blocks);
}

static void print_line(const struct bench *b, const char *folder)
{
    printf("%-40s %5u files %5u stay JPEGs  mean %.4f  sum %.4f\n", folder, b->n_files,
           b->n_files - b->n_images, b->ratios / b->n_files,
           (double)b->stored_bytes / (double)b->all_bytes);
}

static void print_times(const struct bench *b)
{
    static const char *const names[N_ISAS] = {"", "C", "AVX2", "AVX-512", "NEON"};
    const struct totals *t = &b->totals;
    const double us = 1e6 / b->n_images, plain = bench_median(&b->plain);
    const double symbols = 3 * (double)t->blocks + (double)(t->map_bytes + t->values + 2 * t->wide);
    printf("%-10s %10s %10s %10s %12s %12s %14s\n", "us an image", "open", "strips", "pixels",
           "ns a symbol", "GB/s pixels", "x libjpeg");
    uint64_t pixels = 0;
    for (uint32_t i = 0; i < b->n_images; i++)
        pixels += (uint64_t)b->image[i].info.width * b->image[i].info.height;
    for (uint32_t v = PSTK_KERNELS_C; v < N_ISAS; v++)
        if (b->state[v] != NULL)
            printf("%-10s %10.1f %10.1f %10.1f %12.3f %12.3f %14.2f\n", names[v],
                   bench_median(&b->open[v]) * us, bench_median(&b->strips[v]) * us,
                   bench_median(&b->pixels[v]) * us, bench_median(&b->strips[v]) * 1e9 / symbols,
                   3e-9 * (double)pixels / bench_median(&b->pixels[v]),
                   plain / bench_median(&b->pixels[v]));
    printf("libjpeg-turbo, the file %18.1f\npack %38.1f\nrebuild the file %26.1f\n", plain * us,
           bench_median(&b->pack) * us, bench_median(&b->file) * us);
}

/* ---- the whole ------------------------------------------------------------------------------ */

static void open_bench(struct bench *b)
{
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    if (pstk__arena_open(&b->arena, MEMORY) < 0)
        bench_die("memory", NULL);
    if (pstk__planes_encoder_open(&b->encoder, &err) < 0)
        bench_die("encoder", &err);
    b->decoder = pstk__decoder_init(aligned_alloc(64, pstk__decoder_size()), pstk__decoder_size());
    for (uint32_t v = PSTK_KERNELS_C; v < N_ISAS; v++)
        if (pstk__planes_kernels(v) != NULL && pstk__jpeg_kernels(v) != NULL &&
            pstk__image_state_open(&b->state[v], &b->arena, v, &err) < 0)
            bench_die("decoders", &err);
}

static void close_bench(struct bench *b)
{
    for (uint32_t v = 0; v < N_ISAS; v++)
        pstk__image_state_close(b->state[v]);
    for (uint32_t i = 0; i < b->n_images; i++) {
        free(b->image[i].file);
        free(b->image[i].field);
    }
    pstk__planes_encoder_close(b->encoder);
    free(b->decoder);
    pstk__arena_close(&b->arena);
}

int main(int argc, char **argv)
{
    static struct bench b;
    uint32_t runs = 7, files = MAX_FILES;
    for (int i = 2; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--runs") == 0)
            runs = (uint32_t)atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--files") == 0)
            files = (uint32_t)atoi(argv[i + 1]);
    }
    if (argc < 2 || argc % 2 || runs > BENCH_RUNS_MAX || files > MAX_FILES) {
        fprintf(stderr, "usage: bench_planes FOLDER [--runs R] [--files N]\n");
        return 1;
    }
    open_bench(&b);
    read_folder(&b, argv[1], files);
    if (runs == 0) {
        print_line(&b, argv[1]);
        close_bench(&b);
        return b.n_files == 0;
    }
    if (b.n_images == 0)
        bench_die("no file of the folder can be stored as planes", NULL);
    for (uint32_t i = 0; i < b.n_images; i++)
        count_image(&b, &b.image[i]);
    for (uint32_t k = 0; k < runs; k++) {
        for (uint32_t v = PSTK_KERNELS_C; v < N_ISAS; v++)
            if (b.state[v] != NULL) {
                time_strips(&b, v);
                bench_add(&b.pixels[v], time_pixels(&b, &pstk__image_planes, v, 0));
            }
        bench_add(&b.plain, time_pixels(&b, &pstk__image_jpeg, PSTK_KERNELS_C, 1));
        bench_add(&b.file, time_file(&b));
        bench_add(&b.pack, time_pack(&b));
    }
    print_sizes(&b);
    print_times(&b);
    close_bench(&b);
    return b.sum == 0;
}
