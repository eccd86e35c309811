/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_stages: do the work of a worker for an image, on one core, with everything in memory:
 * compute the CRC32C of the stored bytes; decode the box of a random resized crop; resize it to 224
 * x 224, flip it or not, and finish it. Boxes and flips are the same in every run. Prints one JSON
 * line: microseconds for an image, and the CRC32C of all outputs, which is the same for every
 * ISA.
 *
 *   bench_stages FOLDER [--stored planes|jpeg|pixels] [--kernels auto|c|avx2|avx512]
 *                [--output u8|f16] [--images N] [--turns T]
 *
 * FOLDER: JPEG files; the program takes the first N, by name, that can be stored in this form.
 * `pixels`: RGB, resized to 256 x 256. u8 is NHWC; f16 is normalised and NCHW. The program reads,
 * packs and processes the files once before it calls measured(), whose instructions
 * benchmarks/stages counts.
 */
#include "support/finish_table.h"
#include "bench.h"
#include "augment/op.h"
#include "base/crc32c.h"
#include "image/image.h"
#include "image/jpeg/decode.h"
#include "image/pixels.h"
#include "image/planes/decode.h"
#include "image/planes/file.h"

#include <dirent.h>

#define MAX_IMAGES 1000u
#define SIDE 224u
#define PIXELS_SIDE 256u
#define CHANNELS 3u

struct image {
    uint8_t *data; /* as stored; owned */
    uint64_t size;
    uint32_t crc;
    struct pstk__image_info info;
};

struct bench {
    const char *folder;
    uint32_t stored; /* index of stored_names */
    uint32_t isa;
    uint32_t is_f16;
    uint32_t n_wanted, n_turns;
    struct image images[MAX_IMAGES];
    uint32_t n_images;
    uint32_t n_left_out; /* files that cannot be stored so */
    const struct pstk__image_decoder *decoder;
    const struct pstk__pixel_kernels *kernels;
    struct pstk__image_state *state;
    struct pstk__planes_encoder *encoder;
    struct pstk__arena arena;
    uint16_t table[CHANNELS * 256];
    struct pstk__affine line; /* the line of the table, as the workers have it */
    uint8_t out[CHANNELS * SIDE * SIDE * sizeof(uint16_t)]; /* the last image's */
};

enum stored { PLANES, JPEG, PIXELS, N_STORED };
static const char *const stored_names[N_STORED] = {"planes", "jpeg", "pixels"};

#define N_ISAS 5u
static const char *const isa_names[N_ISAS] = {
    [PSTK_KERNELS_AUTO] = "auto",     [PSTK_KERNELS_C] = "c",       [PSTK_KERNELS_AVX2] = "avx2",
    [PSTK_KERNELS_AVX512] = "avx512", [PSTK_KERNELS_NEON] = "neon",
};

/* ---- the work ------------------------------------------------------------------------------- */

static void take_rows(void *user, const uint8_t *rgb, uint64_t stride, uint32_t n_rows)
{
    pstk__resize_rows(user, rgb, stride, n_rows);
}

/* Decode what the resize needs of a box, into where it writes. */
static int render(struct bench *b, const struct pstk__image_decoder *decoder,
                  const struct image *image, const struct pstk__box *box,
                  const struct pstk__resize_config *config, struct pstk_error *err)
{
    struct pstk__resize r;
    const struct pstk__row_sink sink = {.rows = take_rows, .user = &r, .channels = 3};
    const size_t mark = b->arena.used;
    int rc = pstk__resize_begin(&r, &b->arena, b->kernels, config);
    if (rc == 0) {
        const struct pstk__box part = {.left = box->left + r.x.begin,
                                       .top = box->top + r.y.begin,
                                       .width = r.x.end - r.x.begin,
                                       .height = r.y.end - r.y.begin};
        rc = pstk__image_decode(
            b->state, &(const struct pstk__coded){decoder, image->data, image->size, &image->info},
            &part, &sink, err);
    }
    pstk__arena_reset(&b->arena, mark);
    return rc;
}

static int work(struct bench *b, uint32_t i)
{
    static const struct pstk_random_resized_crop_params by = {0.08, 1.0, 3.0 / 4.0, 4.0 / 3.0};
    const struct pstk__random_key key = {.seed = 1, .sample_id = i};
    const struct image *image = &b->images[i];
    struct pstk__random random;
    if (pstk__crc32c(0, image->data, image->size) != image->crc)
        return PSTK_EBADMSG;
    pstk__random_init(&random, &key);
    const struct pstk__box box =
        pstk__random_resized_crop_box(&random, image->info.width, image->info.height, &by);
    const struct pstk__resize_config config = {
        .channels = CHANNELS,
        .in_width = box.width,
        .in_height = box.height,
        .out_width = SIDE,
        .out_height = SIDE,
        .crop = {.width = SIDE, .height = SIDE},
        .finish = {.channels = CHANNELS,
                   .dtype = b->is_f16 ? PSTK_F16 : PSTK_U8,
                   .layout = b->is_f16 ? PSTK_NCHW : PSTK_NHWC,
                   .flip = pstk__random_unit(&random) < 0.5,
                   .width = SIDE,
                   .plane = SIDE * SIDE,
                   .table = b->table,
                   .affine = &b->line},
        .out = b->out,
        .out_stride = SIDE * (b->is_f16 ? sizeof(uint16_t) : CHANNELS),
    };
    return render(b, b->decoder, image, &box, &config, NULL);
}

/* All images once; 0 or the first error. Callgrind finds it by its name. */
static __attribute__((noinline)) int measured(struct bench *b)
{
    int rc = 0;
    for (uint32_t i = 0; i < b->n_images && rc == 0; i++)
        rc = work(b, i);
    return rc;
}

/* ---- images --------------------------------------------------------------------------------- */

static uint8_t *read_file(const char *path, uint64_t *size)
{
    FILE *f = fopen(path, "rb");
    uint8_t *data = NULL;
    const long end = f && fseek(f, 0, SEEK_END) == 0 ? ftell(f) : -1;
    if (end > 0 && fseek(f, 0, SEEK_SET) == 0)
        data = malloc((size_t)end);
    if (data && fread(data, 1, (size_t)end, f) != (size_t)end) {
        free(data);
        data = NULL;
    }
    if (f)
        fclose(f);
    *size = (uint64_t)end;
    return data;
}

/* Replace the image's bytes by `size` others, copied. */
static int replace(struct image *image, const uint8_t *data, uint64_t size)
{
    uint8_t *copy = malloc(size);
    if (!copy)
        return -1;
    memcpy(copy, data, size);
    free(image->data);
    image->data = copy;
    image->size = size;
    return 0;
}

static int to_planes(struct bench *b, struct image *image)
{
    struct pstk__planes_file file;
    if (pstk__planes_encode(b->encoder, image->data, image->size, 0, &file, NULL) != 1)
        return -1;
    return replace(image, file.stored, file.stored_size);
}

static int to_pixels(struct bench *b, struct image *image)
{
    static uint8_t pixels[CHANNELS * PIXELS_SIDE * PIXELS_SIDE];
    const struct pstk__box whole = {.width = image->info.width, .height = image->info.height};
    const struct pstk__resize_config config = {
        .channels = CHANNELS,
        .in_width = whole.width,
        .in_height = whole.height,
        .out_width = PIXELS_SIDE,
        .out_height = PIXELS_SIDE,
        .crop = {.width = PIXELS_SIDE, .height = PIXELS_SIDE},
        .finish = {.channels = CHANNELS,
                   .dtype = PSTK_U8,
                   .layout = PSTK_NHWC,
                   .width = PIXELS_SIDE},
        .out = pixels,
        .out_stride = CHANNELS * PIXELS_SIDE,
    };
    if (render(b, &pstk__image_jpeg, image, &whole, &config, NULL) < 0)
        return -1;
    image->info = (struct pstk__image_info){.encoding = PSTK_ENCODING_PIXELS,
                                            .width = PIXELS_SIDE,
                                            .height = PIXELS_SIDE,
                                            .channels = CHANNELS,
                                            .bit_depth = 8,
                                            .orientation = 1};
    return replace(image, pixels, sizeof pixels);
}

/* The arena grows with the largest image seen; nothing is allocated in it now. */
static int make_room(struct bench *b, const struct pstk__image_info *info)
{
    const struct pstk__resize_bounds bounds = {.channels = CHANNELS,
                                               .max_in_width = info->width,
                                               .max_in_height = info->height,
                                               .min_out_width = SIDE,
                                               .min_out_height = SIDE,
                                               .max_crop_width = PIXELS_SIDE,
                                               .max_crop_height = PIXELS_SIDE};
    const uint64_t size =
        pstk__image_scratch(info->width, info->height) + pstk__resize_scratch(&bounds);
    if (size <= b->arena.size)
        return 0;
    pstk__image_state_close(b->state);
    b->state = NULL;
    pstk__arena_close(&b->arena);
    if (pstk__arena_open(&b->arena, size) < 0)
        return -1;
    return pstk__image_state_open(&b->state, &b->arena, b->isa, NULL);
}

/* Read a file and store it as asked. -1: it is left out. */
static int add(struct bench *b, const char *name)
{
    struct image *image = &b->images[b->n_images];
    char path[4096];
    int rc = -1;
    snprintf(path, sizeof path, "%s/%s", b->folder, name);
    image->data = read_file(path, &image->size);
    if (image->data &&
        pstk__image_jpeg.probe(image->data, image->size, PSTK__MAX_PIXELS, &image->info, NULL) ==
            0 &&
        pstk_image_check(image->data, image->size, PSTK__MAX_PIXELS, NULL, NULL, NULL) == 0 &&
        make_room(b, &image->info) == 0)
        rc = b->stored == PLANES   ? to_planes(b, image)
             : b->stored == PIXELS ? to_pixels(b, image)
                                   : 0;
    if (rc < 0) {
        free(image->data);
        image->data = NULL;
        return -1;
    }
    image->crc = pstk__crc32c(0, image->data, image->size);
    b->n_images++;
    return 0;
}

static int compare_names(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static void read_folder(struct bench *b)
{
    struct dirent **entries;
    const int n = scandir(b->folder, &entries, NULL, compare_names);
    for (int i = 0; i < n; i++) {
        const char *name = entries[i]->d_name;
        if (name[0] != '.' && b->n_images < b->n_wanted)
            b->n_left_out += add(b, name) < 0;
        free(entries[i]);
    }
    if (n >= 0)
        free(entries);
}

/* ---- measuring ------------------------------------------------------------------------------ */

/* Once more than is measured: caches are warm then, and the outputs are summed up. */
static int check(struct bench *b, uint32_t *crc)
{
    const size_t size = sizeof b->out / (b->is_f16 ? 1 : sizeof(uint16_t));
    int rc = 0;
    *crc = 0;
    for (uint32_t i = 0; i < b->n_images && rc == 0; i++) {
        rc = work(b, i);
        *crc = pstk__crc32c(*crc, b->out, size);
    }
    return rc;
}

static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int measure(struct bench *b)
{
    struct bench_runs turns = {0};
    uint64_t n_bytes = 0;
    uint32_t crc;
    int rc = check(b, &crc);
    for (uint32_t i = 0; i < b->n_turns && rc == 0; i++) {
        const double start = cpu_seconds();
        rc = measured(b);
        bench_add(&turns, 1e6 * (cpu_seconds() - start) / b->n_images);
    }
    if (rc < 0)
        return rc;
    for (uint32_t i = 0; i < b->n_images; i++)
        n_bytes += b->images[i].size;
    printf("{\"benchmark\": \"stages\", \"stored\": \"%s\", \"kernels\": \"%s\", "
           "\"output\": \"%s\", \"library\": \"%s\", \"images\": %u, \"left_out\": %u, "
           "\"mean_bytes\": %.1f, \"turns\": %d, \"microseconds\": %.2f, \"crc32c\": \"%08x\"}\n",
           stored_names[b->stored], isa_names[b->kernels->isa], b->is_f16 ? "f16" : "u8",
           pstk__image_library(), b->n_images, b->n_left_out, (double)n_bytes / b->n_images,
           turns.n, bench_median(&turns), crc);
    return 0;
}

/* ---- the command line ----------------------------------------------------------------------- */

static int parse_name(const char *value, const char *const *names, uint32_t n, uint32_t *index)
{
    for (*index = 0; *index < n; ++*index)
        if (strcmp(value, names[*index]) == 0)
            return 0;
    return -1;
}

static int parse_count(const char *value, uint32_t max, uint32_t *count)
{
    char *end;
    const unsigned long n = strtoul(value, &end, 10);
    *count = (uint32_t)n;
    return *end || n < 1 || n > max ? -1 : 0;
}

static int parse(struct bench *b, int argc, char **argv)
{
    static const char *const outputs[] = {"u8", "f16"};
    int rc = argc % 2 == 0 ? 0 : -1;
    for (int i = 2; i + 1 < argc && rc == 0; i += 2) {
        const char *option = argv[i], *value = argv[i + 1];
        if (strcmp(option, "--stored") == 0)
            rc = parse_name(value, stored_names, N_STORED, &b->stored);
        else if (strcmp(option, "--kernels") == 0)
            rc = parse_name(value, isa_names, N_ISAS, &b->isa);
        else if (strcmp(option, "--output") == 0)
            rc = parse_name(value, outputs, 2, &b->is_f16);
        else if (strcmp(option, "--images") == 0)
            rc = parse_count(value, MAX_IMAGES, &b->n_wanted);
        else if (strcmp(option, "--turns") == 0)
            rc = parse_count(value, BENCH_RUNS_MAX, &b->n_turns);
        else
            rc = -1;
    }
    if (rc < 0)
        fprintf(stderr,
                "usage: bench_stages FOLDER [--stored planes|jpeg|pixels]\n"
                "       [--kernels auto|c|avx2|avx512] [--output u8|f16] [--images 1..%u] "
                "[--turns 1..%d]\n",
                MAX_IMAGES, BENCH_RUNS_MAX);
    b->folder = argv[1];
    return rc;
}

static int run(struct bench *b)
{
    static const struct pstk__image_decoder *const decoders[N_STORED] = {
        &pstk__image_planes, &pstk__image_jpeg, &pstk__image_pixels};
    b->decoder = decoders[b->stored];
    b->kernels = pstk__pixel_kernels(b->isa);
    if (!b->kernels)
        return fprintf(stderr, "bench_stages: this CPU lacks these kernels\n"), -1;
    if (pstk__planes_encoder_open(&b->encoder, NULL) < 0)
        return perror("bench_stages"), -1;
    finish_table(b->table, PSTK_F16, CHANNELS, PSTK_IMAGENET_MEAN, PSTK_IMAGENET_STD);
    pstk__affine_init(&b->line, b->table, PSTK_F16, CHANNELS);
    read_folder(b);
    if (b->n_images == 0)
        return fprintf(stderr, "bench_stages: %s: no JPEG files\n", b->folder), -1;
    const int rc = measure(b);
    if (rc < 0)
        fprintf(stderr, "bench_stages: an image cannot be decoded\n");
    return rc;
}

int main(int argc, char **argv)
{
    static struct bench b = {.n_wanted = MAX_IMAGES, .n_turns = 9};
    int rc = parse(&b, argc, argv);
    if (rc < 0)
        return 2;
    rc = run(&b);
    pstk__planes_encoder_close(b.encoder);
    pstk__image_state_close(b.state);
    pstk__arena_close(&b.arena);
    for (uint32_t i = 0; i < b.n_images; i++)
        free(b.images[i].data);
    return rc < 0;
}
