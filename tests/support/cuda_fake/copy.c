/* SPDX-License-Identifier: Apache-2.0 */
/* copy: operations that touch memory: copies, memsets, kernels. */
#include "state.h"

#include <stdlib.h>
#include <string.h>

#define SAMPLE 64u

static uint64_t mix(uint64_t sum, const uint8_t *p, uint64_t size)
{
    uint64_t word, i = 0;
    for (; i + 8 <= size; i += 8) {
        memcpy(&word, p + i, 8);
        sum = (sum ^ word) * 0x9e3779b97f4a7c15u;
        sum ^= sum >> 29;
    }
    for (; i < size; i++)
        sum = (sum ^ p[i]) * 0x100000001b3u;
    return sum;
}

/* Sum all bytes of a source, or pieces that a careless writer is unlikely to miss. */
static uint64_t sum_of(const void *from, uint64_t size)
{
    const struct cuda_fake_config *c = &cuda_fake__state.config;
    const uint8_t *p = from;
    if (size <= c->whole_check || size <= SAMPLE)
        return mix(size, p, size);
    uint64_t sum = size;
    for (uint64_t i = 0; i + SAMPLE <= size; i += c->check_stride)
        sum = mix(sum, p + i, SAMPLE);
    return mix(sum, p + size - SAMPLE, SAMPLE);
}

void cuda_fake__op_run(struct cuda_fake__op *op)
{
    uint64_t sum = op->sum;
    cuda_fake__show();
    if (op->kind == CUDA_FAKE__KERNEL) {
        op->fn(op->staged);
    } else if (op->kind == CUDA_FAKE__MEMSET) {
        memset(op->to, op->value, op->size);
    } else {
        memmove(op->to, op->from, op->size);
        if (op->checked)
            sum = sum_of(op->from, op->size);
    }
    cuda_fake__hide();
    if (sum != op->sum) {
        pthread_mutex_lock(&cuda_fake__state.lock);
        cuda_fake__hazard(CUDA_FAKE_SOURCE,
                          "host memory changed before its copy of %llu bytes ended",
                          (unsigned long long)op->size);
        pthread_mutex_unlock(&cuda_fake__state.lock);
    }
}

/* The kind and the range of an address. */
struct place {
    struct cuda_fake__range *range; /* NULL: pageable */
    int is_device;
};

/* 0, or -1 with a hazard: memory that an operation cannot touch. */
static int place_of(struct place *out, const void *p, uint64_t size, const char *name)
{
    out->range = cuda_fake__range_of(p);
    out->is_device = out->range ? out->range->device >= 0 : cuda_fake__is_device(p);
    const struct cuda_fake__range *r = out->range;
    if (out->is_device && !r) {
        cuda_fake__hazard(CUDA_FAKE_BOUNDS, "%s touches device memory that is not allocated", name);
        return -1;
    }
    const uint64_t offset = r ? (uint64_t)((const uint8_t *)p - r->begin) : 0;
    if (r && size > r->size - offset) {
        cuda_fake__hazard(CUDA_FAKE_BOUNDS, "%s touches bytes %llu..%llu of %s of %llu", name,
                          (unsigned long long)offset, (unsigned long long)(offset + size),
                          r->device >= 0 ? "an allocation" : "pinned memory",
                          (unsigned long long)r->size);
        return -1;
    }
    return 0;
}

static struct cuda_fake__op *op_open(enum cuda_fake__kind kind, const char *name, uint32_t n_ranges)
{
    struct cuda_fake__op *op = calloc(1, sizeof *op);
    if (!op)
        abort();
    op->kind = kind;
    op->name = name;
    op->ranges = n_ranges ? calloc(n_ranges, sizeof(struct cuda_fake__range *)) : NULL;
    if (n_ranges && !op->ranges)
        abort();
    return op;
}

static void op_touch(struct cuda_fake__op *op, const struct CUstream_st *s,
                     struct cuda_fake__range *r, const void *p, uint64_t size, uint32_t write)
{
    if (!r)
        return;
    cuda_fake__touch(r, p, size, write, s, op->name);
    op->ranges[op->n_ranges++] = r;
}

static void *copy_of(const void *from, uint64_t size)
{
    void *p = malloc(size ? size : 1);
    if (!p)
        abort();
    cuda_fake__show(); /* the caller's bytes: TSan shall see that they are read now */
    if (size)
        memcpy(p, from, size);
    cuda_fake__hide();
    return p;
}

static cudaError_t direction(enum cudaMemcpyKind kind, const struct place *to,
                             const struct place *from)
{
    const enum cudaMemcpyKind real =
        (enum cudaMemcpyKind)((from->is_device ? 2 : 0) + (to->is_device ? 1 : 0));
    if ((unsigned)kind > cudaMemcpyDefault)
        return cudaErrorInvalidMemcpyDirection;
    if (kind == cudaMemcpyDefault || kind == real)
        return cudaSuccess;
    cuda_fake__hazard(CUDA_FAKE_BOUNDS, "cudaMemcpyAsync of another direction than it says");
    return cudaErrorInvalidValue;
}

static void count_copy(const struct place *to, const struct place *from, uint64_t size)
{
    struct cuda_fake_stats *c = &cuda_fake__state.counts;
    c->n_copies++;
    c->n_pageable += !to->range || !from->range;
    if (from->is_device)
        *(to->is_device ? &c->n_d2d : &c->n_d2h) += size;
    else if (to->is_device)
        c->n_h2d += size;
}

/* A source in pageable memory is staged, a destination in it waited for. */
static cudaError_t copy(struct CUstream_st *s, void *dst, const void *src, uint64_t size,
                        enum cudaMemcpyKind kind)
{
    struct cuda_fake__state *f = &cuda_fake__state;
    struct place to, from;
    if (place_of(&to, dst, size, "cudaMemcpyAsync") != 0 ||
        place_of(&from, src, size, "cudaMemcpyAsync") != 0)
        return cudaErrorInvalidValue;
    cudaError_t e = direction(kind, &to, &from);
    if (e == cudaSuccess && (!to.range || !from.range))
        e = cuda_fake__unsafe("cudaMemcpyAsync of pageable memory");
    if (e != cudaSuccess)
        return e;
    cuda_fake__stream_tick(s);
    count_copy(&to, &from, size);
    struct cuda_fake__op *op = op_open(CUDA_FAKE__COPY, "cudaMemcpyAsync", 2);
    op->to = dst;
    op->from = src;
    op->size = size;
    if (to.is_device != from.is_device)
        op->engine = to.is_device ? CUDA_FAKE__TO_DEVICE : CUDA_FAKE__TO_HOST;
    if (!from.range) {
        op->staged = copy_of(src, size);
        op->from = op->staged;
    } else if (!from.is_device &&
               !cuda_fake__untouched(from.range, src, size, 1, cuda_fake__host_clock())) {
        /* Else an operation is still to write there, and what there is now says nothing. */
        cuda_fake__show();
        op->sum = sum_of(src, size);
        cuda_fake__hide();
        op->checked = 1;
    }
    op_touch(op, s, from.range, src, size, 0);
    op_touch(op, s, to.range, dst, size, 1);
    cuda_fake__stream_push(s, op);
    if (!to.range) {
        const struct cuda_fake__clock clock = s->clock;
        cuda_fake__stream_drain(s);
        e = f->devices[s->device].poison;
        cuda_fake__join(cuda_fake__host_clock(), &clock);
        cuda_fake__acquire(s);
    }
    return e;
}

/* A copy may go to a stream of another device than the current one; a kernel or memset may not. */
cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    cudaError_t e = cuda_fake__begin("cudaMemcpyAsync", CUDA_FAKE__CONTEXT);
    struct CUstream_st *s = e == cudaSuccess ? cuda_fake__stream(stream) : NULL;
    if (e == cudaSuccess && !s)
        e = cudaErrorInvalidResourceHandle;
    if (e == cudaSuccess)
        e = cuda_fake__state.devices[s->device].poison;
    if (e == cudaSuccess && count > 0)
        e = !dst || !src ? cudaErrorInvalidValue : copy(s, dst, src, count, kind);
    return cuda_fake__end(e, 0);
}

cudaError_t cudaMemsetAsync(void *devPtr, int value, size_t count, cudaStream_t stream)
{
    cudaError_t e = cuda_fake__begin("cudaMemsetAsync", CUDA_FAKE__CONTEXT);
    struct CUstream_st *s = e == cudaSuccess ? cuda_fake__stream(stream) : NULL;
    struct place to = {NULL, 0};
    if (e == cudaSuccess && (!s || s->device != cuda_fake__current()))
        e = cudaErrorInvalidResourceHandle;
    if (e == cudaSuccess && count > 0 && place_of(&to, devPtr, count, "cudaMemsetAsync") != 0)
        e = cudaErrorInvalidValue;
    if (e == cudaSuccess && count > 0 && (!to.range || !to.is_device)) {
        cuda_fake__hazard(CUDA_FAKE_BOUNDS, "cudaMemsetAsync of what is not device memory");
        e = cudaErrorInvalidValue;
    }
    if (e == cudaSuccess && count > 0) {
        cuda_fake__stream_tick(s);
        struct cuda_fake__op *op = op_open(CUDA_FAKE__MEMSET, "cudaMemsetAsync", 1);
        op->to = devPtr;
        op->value = value;
        op->size = count;
        op_touch(op, s, to.range, devPtr, count, 1);
        cuda_fake__stream_push(s, op);
        cuda_fake__state.counts.n_memsets++;
    }
    return cuda_fake__end(e, 0);
}

/* A kernel reads and writes its own device's memory, and host memory if pinned. */
static int kernel_may(const struct CUstream_st *s, const struct cuda_fake_access *a)
{
    struct place p;
    if (a->size == 0)
        return 1;
    if (place_of(&p, a->pointer, a->size, "a kernel") != 0)
        return 0;
    if (p.range && (!p.is_device || p.range->device == s->device))
        return 1;
    cuda_fake__hazard(CUDA_FAKE_BOUNDS, "a kernel touches %s",
                      p.range ? "another device's memory" : "pageable memory");
    return 0;
}

cudaError_t cuda_fake_enqueue(cudaStream_t stream, void (*fn)(void *user), const void *user,
                              uint64_t user_size, const struct cuda_fake_access *accesses,
                              uint32_t n_accesses)
{
    cudaError_t e = cuda_fake__begin("cudaLaunchKernel", CUDA_FAKE__CONTEXT);
    struct CUstream_st *s = e == cudaSuccess ? cuda_fake__stream(stream) : NULL;
    if (e == cudaSuccess && (!s || s->device != cuda_fake__current()))
        e = cudaErrorInvalidResourceHandle;
    for (uint32_t i = 0; e == cudaSuccess && i < n_accesses; i++)
        e = kernel_may(s, &accesses[i]) ? cudaSuccess : cudaErrorInvalidValue;
    if (e == cudaSuccess) {
        cuda_fake__stream_tick(s);
        struct cuda_fake__op *op = op_open(CUDA_FAKE__KERNEL, "a kernel", n_accesses);
        op->fn = fn;
        op->code = cuda_fake__thread()->launching;
        op->staged = copy_of(user, user_size);
        for (uint32_t i = 0; i < n_accesses; i++) {
            const struct cuda_fake_access *a = &accesses[i];
            if (a->size)
                op_touch(op, s, cuda_fake__range_of(a->pointer), a->pointer, a->size, a->write);
        }
        cuda_fake__stream_push(s, op);
        cuda_fake__state.counts.n_kernels++;
    }
    return cuda_fake__end(e, 0);
}
