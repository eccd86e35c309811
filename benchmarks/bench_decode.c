/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_decode: decode JPEGs on one core, each file in three ways, in turn: the whole image by
 * plain libjpeg-turbo (the ceiling of loaders that decode everything); the whole image through the
 * decoder table; the box of a random resized crop (8..100 % of the area, ratio 3/4..4/3). Prints
 * medians over turns, and ratios, as one JSON line. Seconds are CPU time of the thread, which a
 * busy machine disturbs less. The consumer takes rows and does nothing.
 *
 *   bench_decode [FOLDER] [TURNS]     without a folder: images that the program makes
 */
#include "image/image.h"
#include "image/jpeg/decode.h"
#include "support/jpeg_writer.h"

#include <dirent.h>
#include <math.h>
#include <penstock/format.h>
#include <time.h>

#define MAX_FILES 1000u
#define MAX_TURNS 99u

struct file {
    uint8_t *data;
    size_t size;
    struct pstk__image_info info;
};

struct bench {
    struct file files[MAX_FILES];
    uint32_t n_files;
    uint32_t max_width, max_height;
    uint8_t *row; /* max_width pixels */
    struct pstk__arena arena;
    struct pstk__image_state *state;
    struct jpeg_decompress_struct plain; /* libjpeg as it comes, one object for all files */
    struct jpeg_error_mgr errors;
    uint64_t random; /* xorshift64 state */
    uint64_t sum;    /* sum of sampled bytes, so that no decode is dead code */
};

static double uniform(struct bench *b)
{
    b->random ^= b->random << 13;
    b->random ^= b->random >> 7;
    b->random ^= b->random << 17;
    return (double)(b->random >> 11) * 0x1p-53;
}

/* As torchvision.transforms.RandomResizedCrop draws it. */
static struct pstk__box random_box(struct bench *b, const struct pstk__image_info *info)
{
    double area = (double)info->width * info->height;
    for (int i = 0; i < 10; i++) {
        double target = area * (0.08 + 0.92 * uniform(b));
        double ratio = exp(log(0.75) + (log(4.0 / 3) - log(0.75)) * uniform(b));
        double width = rint(sqrt(target * ratio)), height = rint(sqrt(target / ratio));
        if (width < 1 || height < 1 || width > info->width || height > info->height)
            continue;
        struct pstk__box box = {.width = (uint32_t)width, .height = (uint32_t)height};
        box.left = (uint32_t)(uniform(b) * (info->width - box.width + 1));
        box.top = (uint32_t)(uniform(b) * (info->height - box.height + 1));
        return box;
    }
    return (struct pstk__box){.width = info->width, .height = info->height};
}

static void take_rows(void *user, const uint8_t *rgb, uint64_t stride, uint32_t n_rows)
{
    struct bench *b = user;
    for (uint32_t k = 0; k < n_rows; k++, rgb += stride) {
        b->sum += rgb[0];
    }
}

/* ---- the ways to decode: one file; 0 or -1 --------------------------------------------------- */

static int plain_whole(struct bench *b, const struct file *f)
{
    struct jpeg_decompress_struct *c = &b->plain;
    jpeg_mem_src(c, f->data, f->size);
    jpeg_read_header(c, TRUE);
    c->out_color_space = c->num_components == 4 ? JCS_CMYK : JCS_RGB;
    jpeg_start_decompress(c);
    while (c->output_scanline < c->output_height) {
        jpeg_read_scanlines(c, &b->row, 1);
        take_rows(b, b->row, 0, 1);
    }
    jpeg_finish_decompress(c);
    return 0;
}

static int table_box(struct bench *b, const struct file *f, struct pstk__box box)
{
    const struct pstk__row_sink sink = {.rows = take_rows, .user = b, .channels = 3};
    return pstk__image_decode(
        b->state, &(const struct pstk__coded){&pstk__image_jpeg, f->data, f->size, &f->info}, &box,
        &sink, NULL);
}

static int table_whole(struct bench *b, const struct file *f)
{
    return table_box(b, f, (struct pstk__box){.width = f->info.width, .height = f->info.height});
}

static int table_random(struct bench *b, const struct file *f)
{
    return table_box(b, f, random_box(b, &f->info));
}

static int (*const ways[])(struct bench *b, const struct file *f) = {plain_whole, table_whole,
                                                                     table_random};
#define N_WAYS 3u

/* ---- files ---------------------------------------------------------------------------------- */

/* Keep a file that decodes; takes data. */
static void keep(struct bench *b, uint8_t *data, size_t size)
{
    struct file *f = &b->files[b->n_files];
    *f = (struct file){.data = data, .size = size};
    if (pstk__image_jpeg.probe(data, size, PSTK__MAX_PIXELS, &f->info, NULL) < 0 ||
        pstk_image_check(data, size, PSTK__MAX_PIXELS, NULL, NULL, NULL) < 0) {
        free(data);
        return;
    }
    b->n_files++;
    b->max_width = f->info.width > b->max_width ? f->info.width : b->max_width;
    b->max_height = f->info.height > b->max_height ? f->info.height : b->max_height;
}

static uint8_t *read_file(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    uint8_t *data = NULL;
    long end = f && fseek(f, 0, SEEK_END) == 0 ? ftell(f) : -1;
    if (end > 0 && fseek(f, 0, SEEK_SET) == 0)
        data = malloc((size_t)end);
    if (data && fread(data, 1, (size_t)end, f) != (size_t)end) {
        free(data);
        data = NULL;
    }
    if (f)
        fclose(f);
    *size = (size_t)end;
    return data;
}

static void read_folder(struct bench *b, const char *folder)
{
    DIR *d = opendir(folder);
    struct dirent *e;
    while (d && b->n_files < MAX_FILES && (e = readdir(d)) != NULL) {
        char path[4096];
        size_t size;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        uint8_t *data = e->d_name[0] == '.' ? NULL : read_file(path, &size);
        if (data)
            keep(b, data, size);
    }
    if (d)
        closedir(d);
}

static void make_files(struct bench *b)
{
    for (uint32_t i = 0; i < 40; i++) {
        const struct jpeg_spec spec = {.width = 400 + i * 5,
                                       .height = 300 + i * 5,
                                       .n_components = 3,
                                       .h = 2,
                                       .v = 2,
                                       .interleaved = 1};
        size_t size;
        uint8_t *data = jpeg_write(&spec, &size);
        keep(b, data, size);
    }
}

/* ---- measuring ------------------------------------------------------------------------------ */

static int compare(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Every file in every way, in changing order; seconds by way. */
static int run_turn(struct bench *b, uint32_t turn, double *seconds)
{
    for (uint32_t i = 0; i < b->n_files; i++)
        for (uint32_t k = 0; k < N_WAYS; k++) {
            uint32_t v = (turn + i + k) % N_WAYS;
            double start = cpu_seconds();
            if (ways[v](b, &b->files[i]) < 0)
                return -1;
            seconds[v] += cpu_seconds() - start;
        }
    return 0;
}

static int measure(struct bench *b, uint32_t n_turns)
{
    double rates[N_WAYS][MAX_TURNS];
    for (uint32_t turn = 0; turn <= n_turns; turn++) { /* turn 0 warms up and is overwritten */
        double seconds[N_WAYS] = {0};
        if (run_turn(b, turn, seconds) < 0)
            return -1;
        for (uint32_t v = 0; v < N_WAYS; v++)
            rates[v][turn ? turn - 1 : 0] = b->n_files / seconds[v];
    }
    for (uint32_t v = 0; v < N_WAYS; v++)
        qsort(rates[v], n_turns, sizeof rates[v][0], compare);
    uint32_t middle = n_turns / 2;
    double plain = rates[0][middle], whole = rates[1][middle], boxes = rates[2][middle];
    printf("{\"benchmark\": \"decode\", \"library\": \"%s\", \"files\": %u, \"turns\": %u, "
           "\"plain_images_per_second\": %.1f, \"table_images_per_second\": %.1f, "
           "\"boxes_images_per_second\": %.1f, \"table_ratio\": %.3f, \"boxes_ratio\": %.3f}\n",
           pstk__image_library(), b->n_files, n_turns, plain, whole, boxes, whole / plain,
           boxes / plain);
    return 0;
}

int main(int argc, char **argv)
{
    static struct bench b = {.random = 0x9e3779b97f4a7c15u};
    uint32_t n_turns = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 7;
    int r = -1;

    if (argc > 1)
        read_folder(&b, argv[1]);
    else
        make_files(&b);
    b.row = malloc((size_t)b.max_width * 4 + 1);
    b.plain.err = jpeg_std_error(&b.errors);
    jpeg_create_decompress(&b.plain);
    if (b.n_files == 0 || n_turns == 0 || n_turns > MAX_TURNS || !b.row)
        fprintf(stderr, "usage: bench_decode [FOLDER of JPEG files] [TURNS, 1..%u]\n", MAX_TURNS);
    else if (pstk__arena_open(&b.arena, pstk__image_scratch(b.max_width, b.max_height)) == 0 &&
             pstk__image_state_open(&b.state, &b.arena, PSTK_KERNELS_AUTO, NULL) == 0)
        r = measure(&b, n_turns);
    jpeg_destroy_decompress(&b.plain);
    pstk__image_state_close(b.state);
    pstk__arena_close(&b.arena);
    for (uint32_t i = 0; i < b.n_files; i++)
        free(b.files[i].data);
    free(b.row);
    return r < 0;
}
