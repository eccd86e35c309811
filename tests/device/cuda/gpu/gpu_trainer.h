/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_trainer: a trainer on a real GPU that sees only the public headers. Its step copies all of a
 * batch to page-locked memory when the stream gets there, which is long after the batch was
 * released; what it copied is then compared with the batch that a second loader, on the host, gives
 * for the same place. And the data set and settings that it trains with.
 */
#ifndef PSTK_TEST_GPU_TRAINER_H
#define PSTK_TEST_GPU_TRAINER_H

#include "support/sample_set.h"
#include "support/test.h"

#include <cuda_runtime_api.h>

#define N_SAMPLES 23u
#define N_OUTPUTS 10u
#define MAX_STEPS 64u
#define PINNED_SIZE (192u << 20) /* an epoch of two outputs of 299 x 299 f32 takes 50 MB */
#define LONG 60000000000         /* ns: a test that waits so long hangs */

#define CHECK_CUDA(call)                                                                           \
    do {                                                                                           \
        const cudaError_t code_ = (call);                                                          \
        if (code_ != cudaSuccess) {                                                                \
            printf("# %s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorName(code_));       \
            test_state.failed = 1;                                                                 \
            return;                                                                                \
        }                                                                                          \
    } while (0)

/* ---- steps ----------------------------------------------------------------------------------- */

/* Page-locked memory for what steps copy: given out piece by piece, taken back all at once. */
struct pinned {
    uint8_t *memory;
    uint64_t used;
};

static struct pinned pinned;

static inline void *pinned_get(uint64_t size)
{
    const uint64_t at = pinned.used;
    if (size > PINNED_SIZE - at) {
        printf("# the test's page-locked memory is too small\n");
        return NULL;
    }
    pinned.used += (size + 63) / 64 * 64;
    return pinned.memory + at;
}

/* The parts of a batch that a step saw. */
struct step {
    struct pstk_batch batch; /* pointers into the rest */
    struct pstk_tensor tensors[N_OUTPUTS];
    int64_t *device_offsets[N_OUTPUTS];
};

static inline void *copy_of(const void *from, uint64_t size)
{
    void *to = pinned_get(size);
    if (to && from)
        memcpy(to, from, size);
    return to;
}

/* Copy what the host is told, and queue copies of what is on the device. 1, or 0 with a message. */
static inline int step_queue(struct step *s, const struct pstk_batch *b, cudaStream_t stream)
{
    const uint64_t n = b->n_rows, offsets_size = (n + 1) * sizeof(int64_t);
    cudaError_t code = cudaSuccess;
    *s = (struct step){.batch = *b};
    s->batch.tensors = s->tensors;
    s->batch.sample_ids = copy_of(b->sample_ids, b->n_valid * sizeof(uint64_t));
    s->batch.replacement_ids = copy_of(b->replacement_ids, b->n_valid * sizeof(uint64_t));
    if (b->crops)
        s->batch.crops = copy_of(b->crops, b->n_tensors * n * sizeof *b->crops);
    for (uint32_t i = 0; i < b->n_tensors && code == cudaSuccess; i++) {
        const struct pstk_tensor *from = &b->tensors[i];
        struct pstk_tensor *to = &s->tensors[i];
        *to = *from;
        to->name = copy_of(from->name, strlen(from->name) + 1); /* it goes with the loader */
        to->data = pinned_get(from->size);
        if (!to->name || !to->data)
            return 0;
        memset(to->data, 0xee, from->size);
        if (from->size)
            code =
                cudaMemcpyAsync(to->data, from->data, from->size, cudaMemcpyDeviceToHost, stream);
        if (code != cudaSuccess || !from->offsets)
            continue;
        to->offsets = copy_of(from->offsets, offsets_size);
        s->device_offsets[i] = pinned_get(offsets_size);
        if (!to->offsets || !s->device_offsets[i])
            return 0;
        code = cudaMemcpyAsync(s->device_offsets[i], from->device_offsets, offsets_size,
                               cudaMemcpyDeviceToHost, stream);
    }
    if (code != cudaSuccess)
        printf("# the step's copies: %s\n", cudaGetErrorName(code));
    return code == cudaSuccess;
}

static inline int tensor_equal(const struct pstk_tensor *a, const struct pstk_tensor *b,
                               const int64_t *device_offsets, uint32_t n_rows)
{
    const uint64_t offsets_size = (n_rows + 1) * sizeof(int64_t);
    if (strcmp(a->name, b->name) != 0 || a->dtype != b->dtype || a->layout != b->layout ||
        a->kind != b->kind || a->n_dims != b->n_dims || a->size != b->size ||
        memcmp(a->shape, b->shape, sizeof a->shape) != 0 ||
        memcmp(a->strides, b->strides, sizeof a->strides) != 0 || !a->offsets != !b->offsets)
        return 0;
    if (a->offsets && (memcmp(a->offsets, b->offsets, offsets_size) != 0 ||
                       memcmp(device_offsets, b->offsets, offsets_size) != 0))
        return 0;
    return a->size == 0 || memcmp(a->data, b->data, a->size) == 0;
}

/* After the stream is done: is it the host's batch? Says what differs. */
static inline int step_equal(const struct step *s, const struct pstk_batch *host)
{
    const struct pstk_batch *b = &s->batch;
    const uint64_t ids_size = host->n_valid * sizeof(uint64_t);
    if (b->n_valid != host->n_valid || b->n_rows != host->n_rows ||
        b->n_tensors != host->n_tensors || b->epoch != host->epoch ||
        b->position != host->position || b->next_position != host->next_position ||
        b->index != host->index || memcmp(b->sample_ids, host->sample_ids, ids_size) != 0 ||
        memcmp(b->replacement_ids, host->replacement_ids, ids_size) != 0 ||
        !b->crops != !host->crops ||
        (b->crops &&
         memcmp(b->crops, host->crops, b->n_tensors * b->n_rows * sizeof *b->crops) != 0)) {
        printf("# what batch %llu tells differs\n", (unsigned long long)b->index);
        return 0;
    }
    for (uint32_t i = 0; i < b->n_tensors; i++)
        if (!tensor_equal(&s->tensors[i], &host->tensors[i], s->device_offsets[i], b->n_rows)) {
            printf("# epoch %llu, batch %llu: %s (%s, %lld wide) differs\n",
                   (unsigned long long)b->epoch, (unsigned long long)b->index,
                   host->tensors[i].name, pstk_dtype_name(host->tensors[i].dtype),
                   (long long)host->tensors[i].shape[host->tensors[i].layout == PSTK_NCHW ? 3 : 2]);
            return 0;
        }
    return 1;
}

/* ---- what is trained with -------------------------------------------------------------------- */

static char trainer_path[4200];

static inline int trainer_add(struct pstk_writer *w, uint64_t i, struct pstk_error *err)
{
    static uint8_t pixels[64 * 64 * 3];
    const uint32_t height = 5 + (uint32_t)(i * 7 % 23), width = 4 + (uint32_t)(i * 5 % 31);
    const int64_t label = (int64_t)i * 3 - 7;
    uint16_t tokens[SAMPLE_SET_TOKENS];
    int32_t places[5];
    uint8_t bytes[7];
    char text[64];
    for (uint32_t k = 0; k < height * width * 3; k++)
        pixels[k] = sample_set_byte(i, k);
    for (uint32_t k = 0; k < SAMPLE_SET_TOKENS; k++)
        tokens[k] = (uint16_t)(i * 4099 + k * 257);
    for (uint32_t k = 0; k < 5; k++)
        places[k] = (int32_t)(i * 100003 + k) * (k % 2 ? -1 : 1);
    for (uint32_t k = 0; k < 7; k++)
        bytes[k] = sample_set_byte(i + 100, k);
    snprintf(text, sizeof text, "%.*s#%llu", (int)(i % 40),
             "the quick brown fox jumps over the lazy dog", (unsigned long long)i);
    const struct pstk_value v[] = {{pixels, (uint64_t)height * width * 3},
                                   {&label, sizeof label},
                                   {tokens, sizeof tokens},
                                   {places, sizeof places},
                                   {bytes, sizeof bytes},
                                   {text, strlen(text)}};
    const struct pstk_pixels pixels_of = {
        .size = sizeof pixels_of, .height = height, .width = width, .channels = 3, .bit_depth = 8};
    return pstk_writer_add_pixels(w, v, 6, &pixels_of, 1, err);
}

/* Small images of varied size, and a field of every dtype that a device casts. */
static inline int trainer_make(const char *path, struct pstk_error *err)
{
    const struct pstk_field fields[] = {
        {.name = "img", .kind = PSTK_FIELD_IMAGE, .codec = PSTK_CODEC_ZSTD},
        {.name = "cls", .kind = PSTK_FIELD_SCALAR, .dtype = PSTK_I64},
        {.name = "tokens",
         .kind = PSTK_FIELD_NDARRAY,
         .dtype = PSTK_U16,
         .n_dims = 1,
         .shape = {SAMPLE_SET_TOKENS}},
        {.name = "places",
         .kind = PSTK_FIELD_NDARRAY,
         .dtype = PSTK_I32,
         .n_dims = 1,
         .shape = {5}},
        {.name = "bytes", .kind = PSTK_FIELD_NDARRAY, .dtype = PSTK_U8, .n_dims = 1, .shape = {7}},
        {.name = "text", .kind = PSTK_FIELD_UTF8, .codec = PSTK_CODEC_ZSTD}};
    struct pstk_writer_settings s;
    struct pstk_writer *w;
    pstk_writer_settings_init(&s, sizeof s);
    s.path = path;
    s.fields = fields;
    s.n_fields = 6;
    s.shard_size = 65536;
    s.dictionary_size = 1;
    int r = pstk_writer_open(&w, &s, err);
    for (uint64_t i = 0; r == 0 && i < N_SAMPLES; i++)
        r = trainer_add(w, i, err);
    return r == 0 ? pstk_writer_commit(&w, err) : r;
}

/* A row that depends on its sample and its draw. */
static inline int trainer_decode(void *user, const struct pstk_sample *sample, void *row,
                                 uint64_t row_size)
{
    (void)user;
    for (uint64_t i = 0; i < row_size; i++)
        ((uint8_t *)row)[i] =
            (uint8_t)(sample->random[i % 2] >> i % 57 ^ ((const uint8_t *)sample->data)[0]);
    return 0;
}

static const struct pstk_op image_ops[] = {
    {.kind = PSTK_OP_RANDOM_RESIZED_CROP,
     .width = 9,
     .height = 7,
     .params.random_resized_crop = {0.08, 1.0, 3.0 / 4, 4.0 / 3}},
    {.kind = PSTK_OP_RANDOM_FLIP, .params.random_flip = {0.5}},
};
static const struct pstk_op wide_ops[] = {
    {.kind = PSTK_OP_RESIZE, .width = 16, .height = 6},
    {.kind = PSTK_OP_RANDOM_FLIP, .params.random_flip = {0.5}},
    {.kind = PSTK_OP_NORMALIZE, .params.normalize = {{0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}}},
};

/* Deferred and not, ragged and not, fields twice, every kernel of a cast. The images come first. */
static const struct pstk_output trainer_outputs[N_OUTPUTS] = {
    {.name = "image",
     .field = "img",
     .kind = PSTK_OUTPUT_IMAGE,
     .image.ops = image_ops,
     .image.n_ops = 2,
     .dtype = PSTK_F32,
     .image.layout = PSTK_NCHW},
    {.name = "wide",
     .field = "img",
     .kind = PSTK_OUTPUT_IMAGE,
     .image.ops = wide_ops,
     .image.n_ops = 3,
     .dtype = PSTK_F16,
     .image.layout = PSTK_NHWC},
    {.field = "cls", .kind = PSTK_OUTPUT_SCALAR},
    {.field = "tokens", .kind = PSTK_OUTPUT_TENSOR, .dtype = PSTK_I64},
    {.name = "tokens32", .field = "tokens", .kind = PSTK_OUTPUT_TENSOR, .dtype = PSTK_I32},
    {.name = "tokens as they are", .field = "tokens", .kind = PSTK_OUTPUT_TENSOR},
    {.field = "places", .kind = PSTK_OUTPUT_TENSOR, .dtype = PSTK_I64},
    {.field = "bytes", .kind = PSTK_OUTPUT_TENSOR, .dtype = PSTK_F32},
    {.field = "text", .kind = PSTK_OUTPUT_BYTES},
    {.name = "own",
     .field = "cls",
     .kind = PSTK_OUTPUT_CALLBACK,
     .dtype = PSTK_F32,
     .callback.n_dims = 1,
     .callback.shape = {11},
     .callback.decode = trainer_decode},
};

static inline struct pstk_settings trainer_settings(void)
{
    struct pstk_settings s;
    pstk_settings_init(&s, sizeof s);
    s.path = trainer_path;
    s.outputs = trainer_outputs;
    s.n_outputs = N_OUTPUTS;
    s.batch_size = 4;
    s.seed = 17;
    s.n_threads = 2;
    s.observe.report_crops = 1;
    s.device.kind = PSTK_CUDA;
    return s;
}

/* ---- the trainer ----------------------------------------------------------------------------- */

struct trainer {
    struct pstk_loader *loader; /* on the device */
    struct pstk_loader *host;   /* the loader to compare with */
    cudaStream_t stream;
    struct step steps[MAX_STEPS];
    uint32_t n_steps;
    struct pstk_error err; /* error of the last call */
};

static inline void trainer_close(struct trainer *t)
{
    pstk_close(&t->loader);
    pstk_close(&t->host);
    if (t->stream)
        cudaStreamDestroy(t->stream);
    t->stream = NULL;
}

/* 1, or 0 with a message. */
static inline int trainer_open(struct trainer *t, const struct pstk_settings *s)
{
    struct pstk_settings on_host = *s;
    on_host.device.kind = PSTK_HOST;
    on_host.device.index = 0;
    trainer_close(t);
    *t = (struct trainer){0};
    pstk_error_init(&t->err, sizeof t->err);
    pinned.used = 0;
    const int ok = cudaSetDevice(s->device.index) == cudaSuccess &&
                   cudaStreamCreateWithFlags(&t->stream, cudaStreamNonBlocking) == cudaSuccess &&
                   pstk_open(&t->host, &on_host, &t->err) == 0 &&
                   pstk_open(&t->loader, s, &t->err) == 0;
    if (!ok)
        printf("# open: %s\n", t->err.message);
    return ok;
}

static inline int trainer_next(struct trainer *t, struct pstk_batch **b, cudaStream_t stream)
{
    const int r = pstk_next(t->loader, b, stream, LONG, &t->err);
    if (r < 0)
        printf("# next: %s\n", t->err.message);
    return r;
}

/* Queue a step on a batch that the stream may use. 1, or 0 with a message. */
static inline int trainer_step(struct trainer *t, const struct pstk_batch *b, cudaStream_t stream)
{
    return t->n_steps < MAX_STEPS && step_queue(&t->steps[t->n_steps++], b, stream);
}

/* Compare the steps, which are over, and forget them. */
static inline int trainer_compare(struct trainer *t)
{
    int equal = 1;
    for (uint32_t i = 0; i < t->n_steps && equal; i++) {
        const struct pstk_batch *b = &t->steps[i].batch;
        struct pstk_batch *host;
        equal = pstk_seek(t->host, b->epoch, b->position, &t->err) == 0 &&
                pstk_next(t->host, &host, NULL, LONG, &t->err) == 1;
        if (!equal) {
            printf("# host: %s\n", t->err.message);
            break;
        }
        equal = step_equal(&t->steps[i], host);
        pstk_release(&host, NULL);
    }
    t->n_steps = 0;
    pinned.used = 0;
    return equal;
}

/* A step on each batch of an epoch, the stream up to spin_us behind, each batch released at once;
 * compared at its end. Number of batches, or -1. */
static inline int trainer_epoch(struct trainer *t, uint32_t spin_us)
{
    struct pstk_batch *b;
    int n = 0, r, ok = 1;
    while (ok && (r = trainer_next(t, &b, t->stream)) != 0) {
        if (r < 0)
            return -1;
        ok = pstk_stream_spin(t->loader, t->stream, spin_us * 1000 * (uint64_t)(n % 3), NULL) == 0;
        ok = trainer_step(t, b, t->stream) && ok;
        pstk_release(&b, t->stream);
        n++;
    }
    ok = cudaStreamSynchronize(t->stream) == cudaSuccess && ok;
    return trainer_compare(t) && ok ? n : -1;
}

#endif
