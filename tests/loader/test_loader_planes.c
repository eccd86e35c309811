/* SPDX-License-Identifier: Apache-2.0 */
/* A loader gives the same bytes for JPEGs stored unchanged and stored as planes. */
#include "support/jpeg_writer.h"
#include "support/sample_set.h"
#include "support/test.h"

#define N_SAMPLES 12
#define N_OUTPUTS 5

static char plain_path[4200], planes_path[4200];
static uint32_t n_readers = 2; /* 1 under TSan, to which the kernel's writes are invisible */

/* Each of another kind, most large enough for several strips. */
static const struct jpeg_spec specs[N_SAMPLES] = {
    {.width = 331,
     .height = 257,
     .n_components = 3,
     .h = 1,
     .v = 1,
     .interleaved = 1,
     .quality = 85},
    {.width = 640,
     .height = 411,
     .n_components = 3,
     .h = 2,
     .v = 2,
     .interleaved = 1,
     .quality = 75},
    {.width = 301,
     .height = 500,
     .n_components = 3,
     .h = 2,
     .v = 1,
     .interleaved = 1,
     .quality = 95},
    {.width = 299,
     .height = 301,
     .n_components = 3,
     .h = 1,
     .v = 2,
     .interleaved = 1,
     .quality = 60},
    {.width = 513,
     .height = 388,
     .n_components = 1,
     .h = 1,
     .v = 1,
     .interleaved = 1,
     .quality = 90},
    {.width = 257,
     .height = 256,
     .n_components = 4,
     .h = 1,
     .v = 1,
     .interleaved = 1,
     .quality = 80},
    {.width = 400,
     .height = 300,
     .n_components = 3,
     .h = 2,
     .v = 2,
     .interleaved = 1,
     .quality = 85,
     .progressive = 1},
    {.width = 250,
     .height = 260,
     .n_components = 3,
     .h = 1,
     .v = 1,
     .interleaved = 1,
     .quality = 99,
     .rgb = 1},
    {.width = 321,
     .height = 240,
     .n_components = 3,
     .h = 4,
     .v = 1,
     .interleaved = 1,
     .quality = 85,
     .restart = 7},
    {.width = 320, .height = 241, .n_components = 3, .h = 1, .v = 1, .quality = 70},
    {.width = 15, .height = 9, .n_components = 3, .h = 2, .v = 2, .interleaved = 1, .quality = 50},
    {.width = 1, .height = 1, .n_components = 1, .h = 1, .v = 1, .interleaved = 1, .quality = 50},
};

static void make_set(const char *path, uint32_t codec)
{
    struct pstk_field field = {.name = "jpg", .kind = PSTK_FIELD_IMAGE, .codec = codec};
    struct pstk_writer_settings s;
    struct pstk_writer *w;
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    pstk_writer_settings_init(&s, sizeof s);
    s.path = path;
    s.fields = &field;
    s.n_fields = 1;
    s.n_threads = 2;
    int r = pstk_writer_open(&w, &s, &err);
    for (uint32_t i = 0; r == 0 && i < N_SAMPLES; i++) {
        struct pstk_value v = {0};
        uint8_t *file = jpeg_write(&specs[i], &v.size);
        v.data = file;
        r = pstk_writer_add(w, &v, 1, &err);
        free(file);
    }
    if (r == 0)
        r = pstk_writer_commit(&w, &err);
    if (r < 0) {
        printf("# %s\n", err.message);
        exit(99);
    }
}

/* Writes which codec the bytes handed over have, and their size. */
static int tell(void *user, const struct pstk_sample *sample, void *row, uint64_t row_size)
{
    (void)user;
    uint32_t *told = row;
    told[0] = sample->codec;
    told[1] = (uint32_t)sample->data_size;
    return row_size == 8 ? 0 : PSTK_EINVAL;
}

static const struct pstk_op crop_ops[] = {
    {.kind = PSTK_OP_RANDOM_RESIZED_CROP,
     .width = 64,
     .height = 48,
     .params.random_resized_crop = {0.08, 1.0, 3.0 / 4, 4.0 / 3}},
    {.kind = PSTK_OP_RANDOM_FLIP, .params.random_flip = {0.5}},
};
static const struct pstk_op whole_ops[] = {{.kind = PSTK_OP_RESIZE, .width = 40, .height = 50}};

static const struct pstk_output outputs[N_OUTPUTS] = {
    {.name = "crop",
     .field = "jpg",
     .kind = PSTK_OUTPUT_IMAGE,
     .image.ops = crop_ops,
     .image.n_ops = 2},
    {.name = "whole",
     .field = "jpg",
     .kind = PSTK_OUTPUT_IMAGE,
     .image.ops = whole_ops,
     .image.n_ops = 1,
     .dtype = PSTK_F16,
     .image.layout = PSTK_NCHW,
     .image.exif_orientation = 1},
    {.name = "file", .field = "jpg", .kind = PSTK_OUTPUT_BYTES},
    {.name = "plain",
     .field = "jpg",
     .kind = PSTK_OUTPUT_CALLBACK,
     .dtype = PSTK_U32,
     .callback.n_dims = 1,
     .callback.shape = {2},
     .callback.decode = tell},
    {.name = "stored",
     .field = "jpg",
     .kind = PSTK_OUTPUT_CALLBACK,
     .dtype = PSTK_U32,
     .callback.n_dims = 1,
     .callback.shape = {2},
     .callback.decode = tell,
     .callback.stored = 1},
};

static struct pstk_settings base(const char *path, uint32_t n_outputs)
{
    struct pstk_settings s;
    pstk_settings_init(&s, sizeof s);
    s.path = path;
    s.outputs = outputs;
    s.n_outputs = n_outputs;
    s.batch_size = 4;
    s.seed = 5;
    s.n_threads = 2;
    s.reading.reader = n_readers == 1 ? PSTK_READER_THREADS : PSTK_READER_AUTO;
    return s;
}

static uint64_t used(const struct pstk_batch *b, uint32_t i)
{
    const struct pstk_tensor *t = &b->tensors[i];
    if (t->offsets)
        return (uint64_t)t->offsets[b->n_valid];
    uint64_t size = b->n_valid * pstk_dtype_size(t->dtype);
    for (uint32_t d = 1; d < t->n_dims; d++)
        size *= (uint64_t)t->shape[d];
    return size;
}

/* Outputs [0, n) of two epochs are the same bytes. */
static int loaders_agree(const struct pstk_settings *a, const struct pstk_settings *b, uint32_t n)
{
    struct pstk_loader *loaders[2] = {NULL, NULL};
    struct pstk_batch *batch[2];
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    int agree = pstk_open(&loaders[0], a, &err) == 0 && pstk_open(&loaders[1], b, &err) == 0;
    for (int k = 0; agree && k < 2 * N_SAMPLES / 4 + 1; k++) {
        int r[2];
        for (int i = 0; i < 2; i++)
            r[i] = pstk_next(loaders[i], &batch[i], NULL, 20000000000, &err);
        agree = r[0] == r[1] && r[0] >= 0;
        for (uint32_t i = 0; agree && r[0] == 1 && i < n; i++)
            agree = used(batch[0], i) == used(batch[1], i) &&
                    memcmp(batch[0]->tensors[i].data, batch[1]->tensors[i].data,
                           used(batch[0], i)) == 0;
        for (int i = 0; i < 2; i++)
            if (r[i] == 1)
                pstk_release(&batch[i], NULL);
    }
    if (!agree)
        printf("# %s (threads %u, kernels %u)\n", err.message, b->n_threads, b->reading.kernels);
    pstk_close(&loaders[0]);
    pstk_close(&loaders[1]);
    return agree;
}

TEST(planes_give_the_pixels_and_the_files_that_jpegs_give)
{
    const struct pstk_settings plain = base(plain_path, 4);
    struct pstk_settings s = base(planes_path, 4);
    for (s.n_threads = 1; s.n_threads <= 3; s.n_threads++)
        CHECK(loaders_agree(&plain, &s, 4));
}

TEST(every_isa_gives_the_same_pixels)
{
    const struct pstk_settings plain = base(plain_path, 2);
    struct pstk_settings s = base(planes_path, 2);
    uint32_t n = 0;
    for (s.reading.kernels = PSTK_KERNELS_C; s.reading.kernels <= PSTK_KERNELS_NEON;
         s.reading.kernels++) {
        struct pstk_loader *probe = NULL;
        if (pstk_open(&probe, &s, NULL) < 0)
            continue; /* this CPU lacks it */
        pstk_close(&probe);
        CHECK(loaders_agree(&plain, &s, 2));
        n++;
    }
    CHECK(n >= 1);
}

/* Counts the samples that a callback got as planes, by the output that asks for stored bytes, and
 * by the one that does not. */
static int count_planes(uint32_t n[2])
{
    const struct pstk_settings s = base(planes_path, N_OUTPUTS);
    struct pstk_loader *loader = NULL;
    struct pstk_batch *b;
    n[0] = n[1] = 0;
    int r = pstk_open(&loader, &s, NULL);
    while (r >= 0 && (r = pstk_next(loader, &b, NULL, 20000000000, NULL)) == 1) {
        for (uint32_t i = 0; i < b->n_valid; i++)
            for (uint32_t k = 0; k < 2; k++) {
                const uint32_t *told = b->tensors[3 + k].data;
                n[k] += told[2 * i] == PSTK_CODEC_PLANES;
            }
        pstk_release(&b, NULL);
    }
    pstk_close(&loader);
    return r;
}

TEST(a_callback_gets_the_file_or_what_is_stored_as_it_asks)
{
    uint32_t n[2];
    struct pstk_dataset *d = NULL;
    struct pstk_field_stats stats = {.size = sizeof stats};
    CHECK_EQ(pstk_dataset_open(&d, planes_path, NULL, NULL), 0);
    CHECK_EQ(pstk_dataset_get_field(d, 0, NULL, &stats), 0);
    pstk_dataset_close(&d);
    CHECK_EQ(count_planes(n), 0);
    CHECK_EQ(n[0], 0);
    CHECK_EQ(n[1], stats.n_codec[PSTK_CODEC_PLANES]);
    CHECK_EQ(n[1], N_SAMPLES);
    CHECK_EQ(stats.n_equivalent, 0);
    CHECK(stats.stored_bytes < stats.plain_bytes);
}

TEST(verify_decodes_planes_both_ways)
{
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    CHECK_EQ(pstk_verify(planes_path, 1, 2, NULL, NULL, NULL, &err), 0);
}

int main(void)
{
    static const struct test_case cases[] = {
        CASE(planes_give_the_pixels_and_the_files_that_jpegs_give),
        CASE(every_isa_gives_the_same_pixels),
        CASE(a_callback_gets_the_file_or_what_is_stored_as_it_asks),
        CASE(verify_decodes_planes_both_ways),
    };
    const char *reader = getenv("PENSTOCK_TEST_READER");
    n_readers = reader && strcmp(reader, "threads") == 0 ? 1 : 2;
    sample_set_path(plain_path, sizeof plain_path);
    make_set(plain_path, PSTK_CODEC_NONE);
    sample_set_path(planes_path, sizeof planes_path);
    make_set(planes_path, PSTK_CODEC_PLANES);
    int r = RUN_CASES(cases);
    sample_set_remove(plain_path);
    sample_set_remove(planes_path);
    return r;
}
