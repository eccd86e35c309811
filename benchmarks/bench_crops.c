/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_crops: what each stage of a random resized crop of planes takes, on one core, with
 * everything in memory: checksum, tables, the strips' runs and the passes around them, inverse DCT,
 * upsampling, colour, resize and finish, to 224 x 224. The kernels of an ISA are wrapped in
 * functions that read the CPU's counter of time before and after. A figure is the least of all
 * turns for each crop and stage, summed over the crops: so waits for other processes do not count.
 * Compare two builds by running their programs in turn, several times.
 *
 *   bench_crops FOLDER [--kernels auto|c|avx2|avx512|neon] [--output u8|f16|f32]
 *                      [--images N] [--crops C] [--turns T]
 *
 * Prints microseconds a crop, nanoseconds a unit, and at the end what a reader would read that
 * read only the strips that a crop needs.
 */
#include "support/finish_table.h"
#include "bench.h"
#include "augment/op.h"
#include "base/crc32c.h"
#include "image/image.h"
#include "image/jpeg/decode.h"
#include "image/planes/file.h"
#include "image/planes/read.h"

#include <dirent.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#define MAX_IMAGES 1000u
#define MAX_CROPS 8u
#define SIDE 224u
#define CHANNELS 3u
#define PAGE 4096u

/* Return the counter of time that takes the fewest instructions to read. */
static inline uint64_t read_ticks(void)
{
#if defined(__x86_64__)
    return __rdtsc();
#elif defined(__aarch64__)
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
    return (uint64_t)(1e9 * bench_now());
#endif
}

enum stage {
    CHECKSUM,
    TABLES, /* header, models and tables */
    COUNTS, /* runs */
    MAPS,
    VALUES,
    DC,
    WIDE,
    MAP_PASSES,
    VALUE_PASS,
    DC_PASSES,
    WIDE_PASS,
    INVERSE,
    UPSAMPLING,
    COLOUR,
    WEIGHTS,
    ACROSS,
    DOWN,
    FINISH,
    WHOLE,
    N_STAGES
};
static const char *const stage_names[N_STAGES] = {
    [CHECKSUM] = "checksum",
    [TABLES] = "header, models, tables",
    [COUNTS] = "run of counts",
    [MAPS] = "run of maps",
    [VALUES] = "run of values",
    [DC] = "runs of DC",
    [WIDE] = "runs of wide values",
    [MAP_PASSES] = "contexts of maps, maps",
    [VALUE_PASS] = "contexts of values",
    [DC_PASSES] = "contexts of DC, sums",
    [WIDE_PASS] = "counts of wide and bits",
    [INVERSE] = "scatter, inverse DCT",
    [UPSAMPLING] = "upsampling",
    [COLOUR] = "colour",
    [WEIGHTS] = "weights",
    [ACROSS] = "resize across",
    [DOWN] = "resize down",
    [FINISH] = "finish",
    [WHOLE] = "whole",
};
static const char *const unit_names[N_STAGES] = {
    [CHECKSUM] = "byte",     [TABLES] = "table",    [COUNTS] = "symbol",   [MAPS] = "symbol",
    [VALUES] = "symbol",     [DC] = "symbol",       [WIDE] = "symbol",     [MAP_PASSES] = "block",
    [VALUE_PASS] = "block",  [DC_PASSES] = "block", [WIDE_PASS] = "value", [INVERSE] = "block",
    [UPSAMPLING] = "sample", [COLOUR] = "pixel",    [WEIGHTS] = "output",  [ACROSS] = "slot",
    [DOWN] = "row",          [FINISH] = "row",      [WHOLE] = "crop",
};

struct image {
    uint8_t *data; /* the field; owned */
    uint64_t size;
    uint32_t crc;
    struct pstk__image_info info;
    double least[MAX_CROPS][N_STAGES]; /* ticks */
};

/* The reads for the crops, if a reader read only the strips that they need. */
struct reads {
    double strips, needed_strips, bytes, strip_bytes, needed, pages, needed_pages;
    double blocks, needed_blocks;
};

struct bench {
    const char *folder;
    uint32_t isa, dtype, n_wanted, n_crops, n_turns;
    struct image images[MAX_IMAGES];
    uint32_t n_images;
    struct pstk__planes_encoder *encoder;
    struct pstk__arena arena;
    struct pstk__planes_reader reader;
    struct pstk__planes_tables tables;
    float table[CHANNELS * 256]; /* elements of dtype */
    struct pstk__affine affine;
    struct reads reads;
    uint8_t out[CHANNELS * SIDE * SIDE * sizeof(float)];
};

/* ---- wrapped kernels ------------------------------------------------------------------------ */

static const struct pstk__planes_kernels *planes_kernels;
static const struct pstk__jpeg_kernels *jpeg_kernels;
static const struct pstk__pixel_kernels *pixel_kernels;
static uint64_t ticks[N_STAGES];
static double units[N_STAGES]; /* counted in the first turn */
static uint32_t counts_units, run_stage, n_wide;
static uint64_t overhead; /* ticks that reading the counter twice takes */

static inline void end(uint32_t stage, uint64_t start, double n)
{
    const uint64_t t = read_ticks() - start;
    ticks[stage] += t > overhead ? t - overhead : 0;
    if (counts_units)
        units[stage] += n;
}

/* Runs come in a fixed order: the pass before a run says which it is. */
static int wrapped_run(struct pstk__rans_reader *r, uint8_t *out, const uint8_t *table, uint32_t n)
{
    if (run_stage == WIDE && n_wide == 0)
        run_stage = COUNTS;
    const uint64_t start = read_ticks();
    const int rc = planes_kernels->run(r, out, table, n);
    end(run_stage, start, n);
    if (run_stage == WIDE && ++n_wide == 3)
        n_wide = 0;
    run_stage = run_stage == VALUES ? DC : run_stage;
    return rc;
}

static uint32_t wrapped_max(const uint8_t *counts, uint32_t n)
{
    const uint64_t start = read_ticks();
    const uint32_t most = planes_kernels->most(counts, n);
    end(MAP_PASSES, start, n);
    run_stage = MAPS;
    return most;
}

static uint32_t wrapped_map_tables(uint8_t *out, const uint8_t *counts, uint32_t n,
                                   const uint8_t tables[8])
{
    const uint64_t start = read_ticks();
    const uint32_t all = planes_kernels->map_tables(out, counts, n, tables);
    end(MAP_PASSES, start, 0);
    return all;
}

static uint32_t wrapped_maps(uint64_t *maps, const uint8_t **bytes, const uint8_t *counts,
                             uint32_t n, uint64_t *all)
{
    const uint64_t start = read_ticks();
    const uint32_t bits = planes_kernels->maps(maps, bytes, counts, n, all);
    end(MAP_PASSES, start, 0);
    run_stage = VALUES;
    return bits;
}

static void wrapped_value_tables(uint8_t *out, const uint64_t *maps, const uint8_t *counts,
                                 uint32_t n, const uint8_t tables[9][64])
{
    const uint64_t start = read_ticks();
    planes_kernels->value_tables(out, maps, counts, n, tables);
    end(VALUE_PASS, start, n);
}

static uint32_t wrapped_count_wide(const int8_t *values, uint32_t n)
{
    const uint64_t start = read_ticks();
    const uint32_t wide = planes_kernels->count_wide(values, n);
    end(WIDE_PASS, start, n);
    if (run_stage == WIDE && wide > 0)
        n_wide = 1; /* two runs of wide values follow */
    return wide;
}

static uint32_t wrapped_count_bits(const uint64_t *maps, uint32_t n)
{
    const uint64_t start = read_ticks();
    const uint32_t bits = planes_kernels->count_bits(maps, n);
    end(WIDE_PASS, start, 0);
    return bits;
}

static void wrapped_low_tables(uint8_t *out, const uint8_t *high, uint32_t n,
                               const uint8_t tables[2])
{
    const uint64_t start = read_ticks();
    planes_kernels->low_tables(out, high, n, tables);
    end(DC_PASSES, start, 0);
}

static void wrapped_sum_dc(int16_t *dc, const uint8_t *high, const uint8_t *low, uint32_t n,
                           int16_t before)
{
    const uint64_t start = read_ticks();
    planes_kernels->sum_dc(dc, high, low, n, before);
    end(DC_PASSES, start, n);
    run_stage = WIDE;
    n_wide = 0;
}

static void wrapped_inverse(uint8_t *out, size_t stride, const struct pstk__block_row *blocks,
                            const uint16_t *quant)
{
    const uint64_t start = read_ticks();
    jpeg_kernels->inverse(out, stride, blocks, quant);
    end(INVERSE, start, blocks->n_blocks);
}

static void wrapped_h2v1(uint8_t *out, const uint8_t *in, uint32_t n)
{
    const uint64_t start = read_ticks();
    jpeg_kernels->h2v1(out, in, n);
    end(UPSAMPLING, start, 2 * n);
}

static void wrapped_h2v2(uint8_t *out, const uint8_t *near, const uint8_t *far, uint32_t n)
{
    const uint64_t start = read_ticks();
    jpeg_kernels->h2v2(out, near, far, n);
    end(UPSAMPLING, start, 2 * n);
}

static void wrapped_h1v2(uint8_t *out, const uint8_t *near, const uint8_t *far, uint32_t n,
                         uint32_t bias)
{
    const uint64_t start = read_ticks();
    jpeg_kernels->h1v2(out, near, far, n, bias);
    end(UPSAMPLING, start, n);
}

static uint32_t color; /* color type of the image */

static void wrapped_rgb(uint8_t *rgb, const uint8_t *const samples[4], uint32_t n)
{
    const uint64_t start = read_ticks();
    jpeg_kernels->rgb[color](rgb, samples, n);
    end(COLOUR, start, n);
}

static void wrapped_weights(struct pstk__axis *a, const struct pstk__filter *f, uint32_t first_out)
{
    const uint64_t start = read_ticks();
    pixel_kernels->axis_weights(a, f, first_out);
    end(WEIGHTS, start, a->n_out);
}

static uint32_t wrapped_across_init(void *across, const struct pstk__axis *axis, uint32_t channels,
                                    uint32_t flip)
{
    const uint64_t start = read_ticks();
    const uint32_t left = pixel_kernels->across_init(across, axis, channels, flip);
    end(WEIGHTS, start, 0);
    return left;
}

static void wrapped_resize_rows(uint8_t *slot, const uint8_t *const *rows, const void *across)
{
    const uint64_t start = read_ticks();
    pixel_kernels->resize_rows(slot, rows, across);
    end(ACROSS, start, 1);
}

static void wrapped_resize_column(uint8_t *out, const struct pstk__column *c)
{
    const uint64_t start = read_ticks();
    pixel_kernels->resize_column(out, c);
    end(DOWN, start, 1);
}

static void wrapped_lookup_init(void *lookup, const struct pstk__finish *f)
{
    const uint64_t start = read_ticks();
    pixel_kernels->lookup_init(lookup, f);
    end(FINISH, start, 0);
}

static void wrapped_finish_row(void *out, const uint8_t *pixels, const struct pstk__finish *f)
{
    const uint64_t start = read_ticks();
    pixel_kernels->finish_row(out, pixels, f);
    end(FINISH, start, 1);
}

static struct pstk__planes_kernels wrapped_planes;
static struct pstk__jpeg_kernels wrapped_jpeg;
static struct pstk__pixel_kernels wrapped_pixels;

static void wrap(void)
{
    wrapped_planes = *planes_kernels;
    wrapped_planes.run = wrapped_run;
    wrapped_planes.most = wrapped_max;
    wrapped_planes.map_tables = wrapped_map_tables;
    wrapped_planes.maps = wrapped_maps;
    wrapped_planes.value_tables = wrapped_value_tables;
    wrapped_planes.count_wide = wrapped_count_wide;
    wrapped_planes.count_bits = wrapped_count_bits;
    wrapped_planes.low_tables = wrapped_low_tables;
    wrapped_planes.sum_dc = wrapped_sum_dc;
    wrapped_jpeg = *jpeg_kernels;
    wrapped_jpeg.inverse = wrapped_inverse;
    wrapped_jpeg.h2v1 = wrapped_h2v1;
    wrapped_jpeg.h2v2 = wrapped_h2v2;
    wrapped_jpeg.h1v2 = wrapped_h1v2;
    for (uint32_t i = 0; i < sizeof wrapped_jpeg.rgb / sizeof wrapped_jpeg.rgb[0]; i++)
        wrapped_jpeg.rgb[i] = wrapped_rgb;
    wrapped_pixels = *pixel_kernels;
    wrapped_pixels.axis_weights = wrapped_weights;
    wrapped_pixels.across_init = wrapped_across_init;
    wrapped_pixels.resize_rows = wrapped_resize_rows;
    wrapped_pixels.resize_column = wrapped_resize_column;
    wrapped_pixels.lookup_init = wrapped_lookup_init;
    wrapped_pixels.finish_row = wrapped_finish_row;
    overhead = UINT64_MAX;
    for (int i = 0; i < 10000; i++) {
        const uint64_t start = read_ticks(), t = read_ticks() - start;
        overhead = t < overhead ? t : overhead;
    }
}

/* ---- the work ------------------------------------------------------------------------------- */

static void take_rows(void *user, const uint8_t *rgb, uint64_t stride, uint32_t n_rows)
{
    pstk__resize_rows(user, rgb, stride, n_rows);
}

/* As planes/decode does it. */
static int decode(struct bench *b, const struct image *image, const struct pstk__box *box,
                  const struct pstk__row_sink *sink)
{
    const struct pstk__block_source source = {.row = pstk__planes_row, .user = &b->reader};
    const struct pstk__backend_config config = {.frame = &b->reader.header.frame,
                                                .kernels = &wrapped_jpeg,
                                                .source = &source,
                                                .box = box,
                                                .sink = sink};
    const uint64_t start = read_ticks();
    b->tables.kernels = &wrapped_planes;
    int rc = pstk__planes_open(&b->reader, image->data, image->size, &image->info, &b->tables,
                               &b->arena, NULL);
    end(TABLES, start, 1);
    run_stage = COUNTS;
    color = b->reader.header.frame.color;
    if (rc == 0)
        rc = pstk__jpeg_backend_rows(&config, &b->arena, NULL);
    return rc;
}

static struct pstk__box crop_of(const struct bench *b, uint32_t i, uint32_t crop, uint32_t *flip)
{
    static const struct pstk_random_resized_crop_params by = {0.08, 1.0, 3.0 / 4.0, 4.0 / 3.0};
    const struct pstk__random_key key = {.seed = 1 + crop, .sample_id = i};
    const struct pstk__image_info *info = &b->images[i].info;
    struct pstk__random random;
    pstk__random_init(&random, &key);
    const struct pstk__box box =
        pstk__random_resized_crop_box(&random, info->width, info->height, &by);
    *flip = pstk__random_unit(&random) < 0.5;
    return box;
}

static int work(struct bench *b, uint32_t i, uint32_t crop)
{
    const struct image *image = &b->images[i];
    const size_t mark = b->arena.used;
    struct pstk__resize r;
    uint32_t flip;
    const struct pstk__box box = crop_of(b, i, crop, &flip);
    const uint64_t start = read_ticks();
    const int is_whole = pstk__crc32c(0, image->data, image->size) == image->crc;
    end(CHECKSUM, start, (double)image->size);
    const struct pstk__resize_config config = {
        .channels = CHANNELS,
        .in_width = box.width,
        .in_height = box.height,
        .out_width = SIDE,
        .out_height = SIDE,
        .crop = {.width = SIDE, .height = SIDE},
        .finish = {.channels = CHANNELS,
                   .dtype = b->dtype,
                   .layout = b->dtype == PSTK_U8 ? PSTK_NHWC : PSTK_NCHW,
                   .flip = flip,
                   .width = SIDE,
                   .plane = SIDE * SIDE,
                   .table = b->table,
                   .affine = &b->affine},
        .out = b->out,
        .out_stride = SIDE * (b->dtype == PSTK_U8 ? CHANNELS : pstk_dtype_size(b->dtype)),
    };
    int rc = is_whole ? pstk__resize_begin(&r, &b->arena, &wrapped_pixels, &config) : PSTK_EBADMSG;
    const struct pstk__row_sink sink = {.rows = take_rows, .user = &r, .channels = CHANNELS};
    const struct pstk__box part = {.left = box.left + r.x.begin,
                                   .top = box.top + r.y.begin,
                                   .width = r.x.end - r.x.begin,
                                   .height = r.y.end - r.y.begin};
    if (rc == 0)
        rc = decode(b, image, &part, &sink);
    pstk__arena_reset(&b->arena, mark);
    return rc;
}

static void turn(struct bench *b, uint32_t *crc)
{
    for (uint32_t i = 0; i < b->n_images; i++)
        for (uint32_t crop = 0; crop < b->n_crops; crop++) {
            double *least = b->images[i].least[crop];
            memset(ticks, 0, sizeof ticks);
            const uint64_t start = read_ticks();
            if (work(b, i, crop) < 0)
                bench_die("an image cannot be decoded", NULL);
            end(WHOLE, start, 1);
            for (uint32_t s = 0; s < N_STAGES; s++)
                least[s] =
                    least[s] == 0 || (double)ticks[s] < least[s] ? (double)ticks[s] : least[s];
            if (counts_units)
                *crc =
                    pstk__crc32c(*crc, b->out, CHANNELS * SIDE * SIDE * pstk_dtype_size(b->dtype));
        }
}

/* ---- what would be read --------------------------------------------------------------------- */

static double pages_of(uint64_t begins, uint64_t ends)
{
    return (double)((ends + PAGE - 1) / PAGE - begins / PAGE);
}

/* Count for a crop. The field begins at any multiple of 16 of its shard: the mean over the
 * remainders follows from pages of a random one. */
static void count_reads(struct bench *b, uint32_t i, uint32_t crop)
{
    struct reads *reads = &b->reads;
    const struct image *image = &b->images[i];
    const struct pstk__planes_header *h = &b->reader.header;
    const size_t mark = b->arena.used;
    uint32_t flip, n_luma;
    const struct pstk__box box = crop_of(b, i, crop, &flip);
    b->tables.kernels = planes_kernels;
    if (pstk__planes_open(&b->reader, image->data, image->size, &image->info, &b->tables, &b->arena,
                          NULL) < 0)
        bench_die("open", NULL);
    const uint32_t height = 8 * h->strip_height * h->frame.max_v;
    const uint32_t first = box.top / height, last = (box.top + box.height - 1) / height;
    const uint64_t at = 16 * ((i * 7919ull + crop * 104729ull) % (PAGE / 16));
    const uint64_t head = (uint64_t)(h->strips - image->data);
    const uint64_t begins = at + head + b->reader.offsets[first];
    const uint64_t ends = at + head + b->reader.offsets[last + 1];
    for (uint32_t s = 0; s < h->n_strips; s++)
        reads->blocks += pstk__planes_strip_blocks(h, s, &n_luma);
    for (uint32_t c = 0; c < h->frame.n_components; c++) {
        const uint32_t w = 8 * h->frame.max_h / h->frame.component[c].h,
                       v = 8 * h->frame.max_v / h->frame.component[c].v;
        reads->needed_blocks += ((box.left + box.width - 1) / w - box.left / w + 1.0) *
                                ((box.top + box.height - 1) / v - box.top / v + 1.0);
    }
    reads->strips += h->n_strips;
    reads->needed_strips += last - first + 1;
    reads->bytes += (double)image->size;
    reads->strip_bytes += (double)b->reader.offsets[h->n_strips];
    reads->needed += (double)(head + ends - begins);
    reads->pages += pages_of(at, at + image->size);
    reads->needed_pages += pages_of(at, at + head) + pages_of(begins, ends) -
                           (begins / PAGE < (at + head + PAGE - 1) / PAGE ? 1 : 0);
    pstk__arena_reset(&b->arena, mark);
}

static void print_reads(struct bench *b)
{
    const struct reads *r = &b->reads;
    for (uint32_t i = 0; i < b->n_images; i++)
        for (uint32_t crop = 0; crop < b->n_crops; crop++)
            count_reads(b, i, crop);
    const double n = (double)b->n_images * b->n_crops;
    printf("\nstrips %.2f, of %.0f bytes; a crop needs %.2f of them (%.1f %%), and %.1f %% of the "
           "blocks\n",
           r->strips / n, r->strip_bytes / r->strips, r->needed_strips / n,
           100 * r->needed_strips / r->strips, 100 * r->needed_blocks / r->blocks);
    printf("bytes of the field %.0f; head, tables and those strips %.0f (%.1f %%)\n", r->bytes / n,
           r->needed / n, 100 * r->needed / r->bytes);
    printf("pages of %u bytes %.2f; of these %.2f (%.1f %%)\n", PAGE, r->pages / n,
           r->needed_pages / n, 100 * r->needed_pages / r->pages);
}

/* ---- images --------------------------------------------------------------------------------- */

static uint8_t *read_file(const char *path, uint64_t *size)
{
    FILE *f = fopen(path, "rb");
    uint8_t *data = NULL;
    const long length = f && fseek(f, 0, SEEK_END) == 0 ? ftell(f) : -1;
    if (length > 0 && fseek(f, 0, SEEK_SET) == 0)
        data = malloc((size_t)length);
    if (data && fread(data, 1, (size_t)length, f) != (size_t)length) {
        free(data);
        data = NULL;
    }
    if (f)
        fclose(f);
    *size = (uint64_t)length;
    return data;
}

/* The arena grows with the largest image. */
static int make_room(struct bench *b, const struct pstk__image_info *info)
{
    const struct pstk__resize_bounds bounds = {.channels = CHANNELS,
                                               .max_in_width = info->width,
                                               .max_in_height = info->height,
                                               .min_out_width = SIDE,
                                               .min_out_height = SIDE,
                                               .max_crop_width = SIDE,
                                               .max_crop_height = SIDE};
    const uint64_t size =
        pstk__image_scratch(info->width, info->height) + pstk__resize_scratch(&bounds);
    if (size <= b->arena.size)
        return 0;
    pstk__arena_close(&b->arena);
    return pstk__arena_open(&b->arena, size);
}

/* Store a file as planes. -1: it is left out. */
static int add(struct bench *b, const char *name)
{
    struct image *image = &b->images[b->n_images];
    struct pstk__planes_file planes;
    char path[4096];
    uint64_t size;
    snprintf(path, sizeof path, "%s/%s", b->folder, name);
    uint8_t *file = read_file(path, &size);
    int rc = file ? pstk__image_jpeg.probe(file, size, PSTK__MAX_PIXELS, &image->info, NULL) : -1;
    if (rc == 0)
        rc = make_room(b, &image->info);
    if (rc == 0)
        rc = pstk__planes_encode(b->encoder, file, size, 0, &planes, NULL) == 1 ? 0 : -1;
    if (rc == 0 && (image->data = malloc(planes.stored_size)) != NULL) {
        memcpy(image->data, planes.stored, planes.stored_size);
        image->size = planes.stored_size;
        image->crc = pstk__crc32c(0, image->data, image->size);
        b->n_images++;
    }
    free(file);
    return rc;
}

static int compare_names(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* N files spread over the folder's names. */
static void read_folder(struct bench *b)
{
    struct dirent **entries;
    const int n = scandir(b->folder, &entries, NULL, compare_names);
    const uint32_t step = n > 0 && b->n_wanted < (uint32_t)n ? (uint32_t)n / b->n_wanted : 1;
    for (int i = 0; i < n; i++) {
        if ((uint32_t)i % step == 0 && entries[i]->d_name[0] != '.' && b->n_images < b->n_wanted)
            add(b, entries[i]->d_name);
        free(entries[i]);
    }
    if (n >= 0)
        free(entries);
}

/* ---- the table ------------------------------------------------------------------------------ */

static double ticks_a_second(void)
{
    const double start = bench_now();
    const uint64_t first = read_ticks();
    while (bench_now() - start < 0.2)
        ;
    return (double)(read_ticks() - first) / (bench_now() - start);
}

static void print(const struct bench *b, uint32_t crc)
{
    static const char *const names[] = {"auto", "C", "AVX2", "AVX-512", "NEON"};
    const double rate = ticks_a_second(), n = (double)b->n_images * b->n_crops;
    double sums[N_STAGES] = {0}, known = 0;
    for (uint32_t i = 0; i < b->n_images; i++)
        for (uint32_t crop = 0; crop < b->n_crops; crop++)
            for (uint32_t s = 0; s < N_STAGES; s++)
                sums[s] += b->images[i].least[crop][s];
    printf("%u images, %u crops of each, %s, %s; outputs %08x\n", b->n_images, b->n_crops,
           names[pixel_kernels->isa],
           b->dtype == PSTK_F32   ? "f32 NCHW"
           : b->dtype == PSTK_F16 ? "f16 NCHW"
                                  : "u8 NHWC",
           crc);
    printf("%-26s %10s %7s %12s\n", "stage", "us a crop", "%", "ns a unit");
    for (uint32_t s = 0; s < N_STAGES; s++) {
        const double us = 1e6 * sums[s] / rate / n;
        if (s == WHOLE)
            printf("%-26s %10.2f %7.1f\n", "rest", us - known, 100 - 100 * known / us);
        printf("%-26s %10.2f %7.1f %12.3f ns a %s\n", stage_names[s], us,
               100 * sums[s] / sums[WHOLE], units[s] > 0 ? 1e3 * us * n / units[s] : 0,
               unit_names[s]);
        known += us;
    }
}

/* ---- the command line ----------------------------------------------------------------------- */

static uint32_t number(const char *text, uint32_t most)
{
    const unsigned long n = strtoul(text, NULL, 10);
    return n < 1 ? 1 : n > most ? most : (uint32_t)n;
}

static int parse(struct bench *b, int argc, char **argv)
{
    for (int i = 2; i + 1 < argc; i += 2) {
        const char *option = argv[i], *value = argv[i + 1];
        if (strcmp(option, "--kernels") == 0)
            b->isa = strcmp(value, "c") == 0        ? PSTK_KERNELS_C
                     : strcmp(value, "avx2") == 0   ? PSTK_KERNELS_AVX2
                     : strcmp(value, "avx512") == 0 ? PSTK_KERNELS_AVX512
                     : strcmp(value, "neon") == 0   ? PSTK_KERNELS_NEON
                                                    : PSTK_KERNELS_AUTO;
        else if (strcmp(option, "--output") == 0)
            b->dtype = strcmp(value, "f32") == 0   ? PSTK_F32
                       : strcmp(value, "f16") == 0 ? PSTK_F16
                                                   : PSTK_U8;
        else if (strcmp(option, "--images") == 0)
            b->n_wanted = number(value, MAX_IMAGES);
        else if (strcmp(option, "--crops") == 0)
            b->n_crops = number(value, MAX_CROPS);
        else if (strcmp(option, "--turns") == 0)
            b->n_turns = number(value, 1000);
        else
            return -1;
    }
    b->folder = argc > 1 ? argv[1] : NULL;
    return argc > 1 && argc % 2 == 0 ? 0 : -1;
}

int main(int argc, char **argv)
{
    static struct bench b = {.dtype = PSTK_U8, .n_wanted = MAX_IMAGES, .n_crops = 3, .n_turns = 9};
    uint32_t crc = 0;
    if (parse(&b, argc, argv) < 0) {
        fprintf(stderr, "usage: bench_crops FOLDER [--kernels auto|c|avx2|avx512|neon] [--output "
                        "u8|f16|f32]\n       [--images N] [--crops C] [--turns T]\n");
        return 2;
    }
    planes_kernels = pstk__planes_kernels(b.isa);
    jpeg_kernels = pstk__jpeg_kernels(b.isa);
    pixel_kernels = pstk__pixel_kernels(b.isa);
    if (!planes_kernels || !jpeg_kernels || !pixel_kernels)
        bench_die("this CPU lacks these kernels", NULL);
    if (pstk__planes_encoder_open(&b.encoder, NULL) < 0)
        bench_die("encoder", NULL);
    wrap();
    if (b.dtype != PSTK_U8)
        finish_table(b.table, b.dtype, CHANNELS, PSTK_IMAGENET_MEAN, PSTK_IMAGENET_STD);
    if (b.dtype == PSTK_F16)
        pstk__affine_init(&b.affine, b.table, b.dtype, CHANNELS);
    read_folder(&b);
    if (b.n_images == 0)
        bench_die("no file of the folder can be stored as planes", NULL);
    for (uint32_t i = 0; i < b.n_turns; i++) {
        counts_units = i == 0;
        turn(&b, &crc);
    }
    print(&b, crc);
    print_reads(&b);
    pstk__planes_encoder_close(b.encoder);
    pstk__arena_close(&b.arena);
    for (uint32_t i = 0; i < b.n_images; i++)
        free(b.images[i].data);
    return 0;
}
