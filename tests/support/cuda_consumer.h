/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_consumer: a trainer on the fake CUDA runtime. Its step is a kernel that reads all of a batch
 * into host memory when the stream gets there, which may be long after the batch was released; what
 * it read is then compared with the naive loop. And the data set and settings that it trains with.
 */
#ifndef PSTK_TEST_CUDA_CONSUMER_H
#define PSTK_TEST_CUDA_CONSUMER_H

#include "cuda_fake.h"
#include "support/oracle.h"
#include "support/test.h"

/* The parts of a batch that a step saw. */
struct seen {
    struct pstk_batch batch; /* pointers into the rest */
    struct pstk_tensor tensors[PSTK__MAX_OUTPUTS];
    const void *from[PSTK__MAX_OUTPUTS]; /* device memory */
    int64_t *device_offsets[PSTK__MAX_OUTPUTS];
    const int64_t *offsets_from[PSTK__MAX_OUTPUTS];
};

static inline void *seen_copy(const void *from, uint64_t size)
{
    void *to = malloc(size ? size : 1);
    if (from && size)
        memcpy(to, from, size);
    return to;
}

/* Copy the facts of a batch that the host has, and make memory for the data that a step reads. */
static inline struct seen *seen_open(const struct pstk_batch *b)
{
    struct seen *s = calloc(1, sizeof *s);
    s->batch = *b;
    s->batch.tensors = s->tensors;
    s->batch.sample_ids = seen_copy(b->sample_ids, b->n_rows * sizeof(uint64_t));
    s->batch.replacement_ids = seen_copy(b->replacement_ids, b->n_rows * sizeof(uint64_t));
    s->batch.crops = NULL;
    for (uint32_t i = 0; i < b->n_tensors; i++) {
        struct pstk_tensor *t = &s->tensors[i];
        uint64_t size = (b->n_rows + 1) * sizeof(int64_t);
        *t = b->tensors[i];
        s->from[i] = t->data;
        t->data = seen_copy(NULL, t->size);
        memset(t->data, 0xee, t->size ? t->size : 1);
        if (!t->offsets)
            continue;
        s->offsets_from[i] = t->device_offsets;
        s->device_offsets[i] = seen_copy(NULL, size);
        t->offsets = seen_copy(t->offsets, size);
    }
    return s;
}

static inline void seen_free(struct seen *s)
{
    for (uint32_t i = 0; i < s->batch.n_tensors; i++) {
        free(s->tensors[i].data);
        free((void *)(uintptr_t)s->tensors[i].offsets);
        free(s->device_offsets[i]);
    }
    free((void *)(uintptr_t)s->batch.sample_ids);
    free((void *)(uintptr_t)s->batch.replacement_ids);
    free(s);
}

/* The kernel. */
static inline void seen_run(void *user)
{
    struct seen *s = *(struct seen **)user;
    for (uint32_t i = 0; i < s->batch.n_tensors; i++) {
        if (s->tensors[i].size)
            memcpy(s->tensors[i].data, s->from[i], s->tensors[i].size);
        if (s->offsets_from[i])
            memcpy(s->device_offsets[i], s->offsets_from[i],
                   (s->batch.n_rows + 1) * sizeof(int64_t));
    }
}

/* Queue `kernel`, which reads no more than a step does, on the stream. */
static inline cudaError_t seen_queue(struct seen *s, void (*kernel)(void *), cudaStream_t stream)
{
    struct cuda_fake_access accesses[2 * PSTK__MAX_OUTPUTS];
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->batch.n_tensors; i++) {
        if (s->tensors[i].size)
            accesses[n++] =
                (struct cuda_fake_access){.pointer = s->from[i], .size = s->tensors[i].size};
        if (s->offsets_from[i])
            accesses[n++] = (struct cuda_fake_access){.pointer = s->offsets_from[i],
                                                      .size = (s->batch.n_rows + 1) * 8};
    }
    return cuda_fake_enqueue(stream, kernel, &s, sizeof s, accesses, n);
}

/* Queue a step on the stream. */
static inline cudaError_t seen_step(struct seen *s, cudaStream_t stream)
{
    return seen_queue(s, seen_run, stream);
}

/* After the stream is done: is it what the naive loop gives? */
static inline int seen_equal(struct oracle *o, const struct seen *s)
{
    for (uint32_t i = 0; i < s->batch.n_tensors; i++)
        if (s->device_offsets[i] && memcmp(s->device_offsets[i], s->tensors[i].offsets,
                                           (s->batch.n_rows + 1) * sizeof(int64_t)) != 0) {
            printf("# offsets on the device differ\n");
            return 0;
        }
    return oracle_equal(o, &s->batch);
}

/* ---- what is trained with -----------------------------------------------------------------------
 */

#define N_SAMPLES 23
#define LONG 20000000000 /* ns: a test that waits so long hangs */

static char consumer_path[4200];

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

/* Deferred and not, ragged and not, one field twice. */
static const struct pstk_output outputs[] = {
    {.name = "image",
     .field = "img",
     .kind = PSTK_OUTPUT_IMAGE,
     .image.ops = image_ops,
     .image.n_ops = 2,
     .dtype = PSTK_F32,
     .image.layout = PSTK_NCHW},
    {.field = "cls", .kind = PSTK_OUTPUT_SCALAR},
    {.field = "tokens", .kind = PSTK_OUTPUT_TENSOR, .dtype = PSTK_I64},
    {.field = "text", .kind = PSTK_OUTPUT_BYTES},
    {.name = "wide",
     .field = "img",
     .kind = PSTK_OUTPUT_IMAGE,
     .image.ops = wide_ops,
     .image.n_ops = 3,
     .dtype = PSTK_F16,
     .image.layout = PSTK_NHWC},
    {.name = "plain", .field = "tokens", .kind = PSTK_OUTPUT_TENSOR},
    {.field = "boxes", .kind = PSTK_OUTPUT_RAGGED},
};
#define N_OUTPUTS (sizeof outputs / sizeof outputs[0])

static inline struct pstk_settings base(void)
{
    struct pstk_settings s;
    pstk_settings_init(&s, sizeof s);
    s.path = consumer_path;
    s.outputs = outputs;
    s.n_outputs = N_OUTPUTS;
    s.batch_size = 4;
    s.seed = 17;
    s.n_threads = 2;
    if (getenv("PENSTOCK_TEST_READER")) /* TSan does not see what the kernel writes */
        s.reading.reader = PSTK_READER_THREADS;
    s.device.kind = PSTK_CUDA;
    return s;
}

static inline int oracle_open_for(struct oracle *o, const struct pstk_settings *s)
{
    struct pstk_settings host = *s;
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    host.device.kind = PSTK_HOST;
    host.device.index = 0;
    int r = oracle_open(o, &host, &err);
    if (r < 0)
        printf("# oracle: %s\n", err.message);
    return r;
}

static inline struct pstk_error error_now(void)
{
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    return err;
}

/* A failure made to order may hit the trainer's own calls, which then does them again. */
static inline int step(struct seen *s, cudaStream_t stream)
{
    return seen_step(s, stream) == cudaSuccess || seen_step(s, stream) == cudaSuccess;
}

static inline int synchronize(cudaStream_t stream)
{
    return cudaStreamSynchronize(stream) == cudaSuccess ||
           cudaStreamSynchronize(stream) == cudaSuccess;
}

/* A step on each batch of an epoch, released at once; compared at its end. Number of batches, or an
 * error of the loader, or -1 where a batch differed. */
static inline int epoch_on(struct pstk_loader *loader, struct oracle *o, cudaStream_t stream,
                           struct pstk_error *err)
{
    struct seen *steps[N_SAMPLES + 1];
    struct pstk_batch *b;
    int n = 0, r, equal = 1;
    while ((r = pstk_next(loader, &b, stream, LONG, err)) == 1) {
        steps[n] = seen_open(b);
        equal = step(steps[n++], stream) && equal;
        pstk_release(&b, stream);
    }
    equal = synchronize(stream) && equal;
    for (int i = 0; i < n; i++) {
        equal = equal && (r < 0 || seen_equal(o, steps[i]));
        seen_free(steps[i]);
    }
    return r < 0 ? r : equal ? n : -1;
}

/* Two epochs on the fake as it is configured; 1 when all is well, then and after. */
static inline int device_equals_oracle(const struct pstk_settings *s,
                                       const struct cuda_fake_config *c)
{
    struct oracle o;
    struct pstk_loader *loader = NULL;
    struct pstk_error err = error_now();
    cudaStream_t stream = NULL;
    cuda_fake_open(c);
    cudaSetDevice(s->device.index);
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    int ok = oracle_open_for(&o, s) == 0 && pstk_open(&loader, s, &err) == 0;
    for (int epoch = 0; epoch < 2 && ok; epoch++) {
        int n = epoch_on(loader, &o, stream, &err);
        ok = n == (int)pstk_n_batches(loader);
    }
    if (!ok)
        printf("# %s\n", err.message);
    pstk_close(&loader);
    oracle_close(&o);
    cudaStreamDestroy(stream);
    return cuda_fake_close() == 0 && ok;
}

static inline void consumer_begin(void)
{
    sample_set_path(consumer_path, sizeof consumer_path);
    sample_set_make(consumer_path, N_SAMPLES, 65536, PSTK_CODEC_ZSTD);
}

static inline void consumer_end(void)
{
    sample_set_remove(consumer_path);
}

#endif
