/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nothing is allocated between the first batch and close. The program's own malloc family counts;
 * it stands before libc's for every library, libjpeg's and libpng's calls included.
 */
#include "reader/reader.h"
#include "support/png_writer.h"
#include "support/sample_set.h"
#include "support/test.h"
#include "support/tiny_images.h"

#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t size);
extern void *__libc_memalign(size_t align, size_t size);
extern void __libc_free(void *p);

static _Atomic long n_calls;

void *malloc(size_t size)
{
    atomic_fetch_add_explicit(&n_calls, 1, memory_order_relaxed);
    return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    atomic_fetch_add_explicit(&n_calls, 1, memory_order_relaxed);
    return __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
    atomic_fetch_add_explicit(&n_calls, 1, memory_order_relaxed);
    return __libc_realloc(p, size);
}

void *memalign(size_t align, size_t size)
{
    atomic_fetch_add_explicit(&n_calls, 1, memory_order_relaxed);
    return __libc_memalign(align, size);
}

void *aligned_alloc(size_t align, size_t size)
{
    return memalign(align, size);
}

int posix_memalign(void **p, size_t align, size_t size)
{
    *p = memalign(align, size);
    return *p ? 0 : ENOMEM;
}

void free(void *p)
{
    __libc_free(p);
}

static char path[4200], coded[4200];
static const struct pstk_mix *mix;       /* mix of the loaders, or NULL */
static const struct pstk_mosaic *mosaic; /* the same */

/* Batches of two epochs after the first allocate `want` times in all. */
static long count_allocations(uint32_t reader, const char *data, const struct pstk_output *outputs,
                              uint32_t n_outputs)
{
    struct pstk_settings s;
    struct pstk_loader *loader;
    struct pstk_batch *b;
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    pstk_settings_init(&s, sizeof s);
    s.path = data;
    s.outputs = outputs;
    s.n_outputs = n_outputs;
    s.batch_size = 8;
    s.n_threads = 2;
    s.reading.reader = reader;
    s.observe.report_crops = 1;
    s.mix = mix;
    s.mosaic = mosaic;
    s.bad_sample = mix ? PSTK_BAD_REPLACE : PSTK_BAD_ERROR; /* negative labels */
    if (pstk_open(&loader, &s, &err) < 0) {
        printf("# %s\n", err.message);
        return -1;
    }
    if (pstk_next(loader, &b, NULL, -1, &err) != 1) {
        printf("# %s\n", err.message);
        return -1;
    }
    pstk_release(&b, NULL);
    long before = n_calls;
    int r = 0;
    for (int epoch = 0; epoch < 2; epoch++)
        while ((r = pstk_next(loader, &b, NULL, -1, &err)) == 1)
            pstk_release(&b, NULL);
    if (pstk_seek(loader, 7, 3, &err) == 0)
        r = pstk_next(loader, &b, NULL, -1, &err);
    pstk_release(&b, NULL);
    long after = n_calls;
    if (r < 0)
        printf("# %s\n", err.message);
    pstk_close(&loader);
    return r < 0 ? -1 : after - before;
}

/* A data set of PNG files of every kind, with and without alpha, and of a JPEG. 0, or -1. */
static int write_coded(const char *to)
{
    static const int colors[] = {PNG_COLOR_TYPE_PALETTE, PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_RGB,
                                 PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB_ALPHA};
    struct pstk_field fields[] = {{.name = "img", .kind = PSTK_FIELD_IMAGE}};
    struct pstk_writer_settings s;
    struct pstk_writer *w;
    pstk_writer_settings_init(&s, sizeof s);
    s.path = to;
    s.fields = fields;
    s.n_fields = 1;
    int r = pstk_writer_open(&w, &s, NULL);
    for (uint32_t i = 0; r == 0 && i < 60; i++) {
        const struct png_spec spec = {.width = 40 + i,
                                      .height = 30,
                                      .color = colors[i % 5],
                                      .depth = 8,
                                      .interlaced = i / 5 & 1,
                                      .transparent = i / 10 & 1};
        size_t size;
        uint8_t *file = png_write(&spec, &size);
        const struct pstk_value png = {file, size}, jpeg = {tiny_jpeg, sizeof tiny_jpeg};
        r = pstk_writer_add(w, i % 6 ? &png : &jpeg, 1, NULL);
        free(file);
    }
    return r == 0 ? pstk_writer_commit(&w, NULL) : r;
}

/* Each number of channels alone: what one output has left in memory would serve another. */
TEST(images_of_1_3_and_4_channels_allocate_nothing)
{
    const float mean[4] = {0.5f, 0.5f, 0.5f, 0}, deviation[4] = {0.2f, 0.2f, 0.2f, 1};
    CHECK_EQ(write_coded(coded), 0);
    for (uint32_t channels = 1; channels <= 4; channels++) {
        if (channels == 2)
            continue;
        struct pstk_op ops[] = {pstk_random_resized_crop(16, 16), pstk_random_flip(0.5),
                                pstk_normalize_channels(channels, mean, deviation)};
        struct pstk_output image = {.field = "img",
                                    .kind = PSTK_OUTPUT_IMAGE,
                                    .image.ops = ops,
                                    .image.channels = channels};
        for (uint32_t dtype = 0; dtype < 2; dtype++) {
            image.dtype = dtype ? PSTK_F16 : PSTK_U8;
            image.image.n_ops = dtype ? 3 : 2;
            CHECK_EQ(count_allocations(PSTK_READER_AUTO, path, &image, 1), 0);
            CHECK_EQ(count_allocations(PSTK_READER_AUTO, coded, &image, 1), 0);
        }
    }
}

TEST(nothing_is_allocated_between_first_batch_and_close)
{
    struct pstk_op ops[] = {pstk_random_resized_crop(16, 16), pstk_random_flip(0.5)};
    const struct pstk_output outputs[] = {
        {.field = "img",
         .kind = PSTK_OUTPUT_IMAGE,
         .image.ops = ops,
         .image.n_ops = 2,
         .dtype = PSTK_F16},
        {.field = "cls", .kind = PSTK_OUTPUT_SCALAR},
        {.field = "text", .kind = PSTK_OUTPUT_BYTES},
    };
    CHECK_EQ(count_allocations(PSTK_READER_THREADS, path, outputs, 3), 0);
    struct pstk_machine m = {.size = sizeof m};
    pstk__reader_probe(&m);
    if (m.io_uring != 1)
        SKIP("io_uring is not permitted here");
    CHECK_EQ(count_allocations(PSTK_READER_IO_URING, path, outputs, 3), 0);
}

TEST(mixing_allocates_nothing)
{
    struct pstk_op ops[] = {pstk_random_resized_crop(16, 16)};
    const struct pstk_output outputs[] = {pstk_output_image("img", ops, 1, PSTK_F16, PSTK_NCHW),
                                          pstk_output_scalar("cls", 0)};
    struct pstk_mix both;
    pstk_mix_init(&both, sizeof both);
    both.image = "img";
    both.label = "cls";
    both.n_classes = 200;
    both.mixup_alpha = both.cutmix_alpha = 1;
    both.mode = PSTK_MIX_ELEM;
    mix = &both;
    for (both.targets = PSTK_MIX_DENSE; both.targets <= PSTK_MIX_PAIRS; both.targets++)
        CHECK_EQ(count_allocations(PSTK_READER_AUTO, path, outputs, 2), 0);
    mix = NULL;
}

TEST(mosaics_allocate_nothing)
{
    struct pstk_op ops[] = {pstk_random_resized_crop(16, 16)};
    const struct pstk_output outputs[] = {pstk_output_image("img", ops, 1, PSTK_U8, PSTK_NCHW),
                                          pstk_output_scalar("cls", 0)};
    struct pstk_mosaic given;
    pstk_mosaic_init(&given, sizeof given);
    given.image = "img";
    mosaic = &given;
    CHECK_EQ(count_allocations(PSTK_READER_AUTO, path, outputs, 2), 0);
    mosaic = NULL;
}

/* Given a packed folder of real or made JPEGs, among them progressive ones: libjpeg too. */
TEST(libjpeg_allocates_nothing_either)
{
    const char *data = getenv("PENSTOCK_TEST_PACKED");
    if (!data)
        SKIP("PENSTOCK_TEST_PACKED names no packed JPEG data set");
    struct pstk_op ops[] = {pstk_random_resized_crop(224, 224), pstk_random_flip(0.5)};
    const struct pstk_output outputs[] = {{.field = "jpg",
                                           .kind = PSTK_OUTPUT_IMAGE,
                                           .image.ops = ops,
                                           .image.n_ops = 2,
                                           .dtype = PSTK_U8}};
    CHECK_EQ(count_allocations(PSTK_READER_AUTO, data, outputs, 1), 0);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(nothing_is_allocated_between_first_batch_and_close),
        CASE(images_of_1_3_and_4_channels_allocate_nothing),
        CASE(mixing_allocates_nothing),
        CASE(mosaics_allocate_nothing),
        CASE(libjpeg_allocates_nothing_either),
    };
    sample_set_path(path, sizeof path);
    sample_set_path(coded, sizeof coded);
    sample_set_make(path, 60, 65536, PSTK_CODEC_ZSTD);
    int r = RUN_CASES(cases);
    sample_set_remove(path);
    sample_set_remove(coded);
    return r;
}
