/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_fake_fixture: what the tests of the fake CUDA runtime have in common. */
#ifndef PSTK_TEST_CUDA_FAKE_FIXTURE_H
#define PSTK_TEST_CUDA_FAKE_FIXTURE_H

#include "support/cuda_fake/cuda_fake.h"
#include "support/test.h"

#include <pthread.h>
#include <time.h>

#define SIZE 4096u

static inline void open_plain(void)
{
    cuda_fake_open(&(struct cuda_fake_config){.n_devices = 2, .seed = 1, .quiet = 1});
}

static inline void open_slow(void)
{
    cuda_fake_open(
        &(struct cuda_fake_config){.n_devices = 2, .max_delay_us = 2000, .seed = 2, .quiet = 1});
}

static inline cudaStream_t stream_open(void)
{
    cudaStream_t s = NULL;
    cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
    return s;
}

static inline cudaEvent_t event_open(void)
{
    cudaEvent_t e = NULL;
    cudaEventCreateWithFlags(&e, cudaEventDisableTiming);
    return e;
}

static inline uint8_t *device_open(size_t size)
{
    void *p = NULL;
    cudaMalloc(&p, size);
    return p;
}

static inline uint8_t *pinned_open(size_t size)
{
    void *p = NULL;
    cudaHostAlloc(&p, size, cudaHostAllocDefault);
    if (p)
        memset(p, 1, size);
    return p;
}

static inline struct cuda_fake_stats stats(void)
{
    struct cuda_fake_stats s;
    cuda_fake_stats(&s);
    return s;
}

static inline uint64_t hazards(enum cuda_fake_hazard kind)
{
    return stats().hazards[kind];
}

/* Closes quietly what a test left on purpose; returns 1 if there were just these hazards. */
static inline int close_with(enum cuda_fake_hazard kind, uint64_t n)
{
    const struct cuda_fake_stats s = stats();
    const int good = s.hazards[kind] == n && s.n_hazards == n;
    cuda_fake_reset();
    cuda_fake_close();
    return good;
}

static inline int copy_in(void *to, const void *from, size_t size, cudaStream_t s)
{
    return (int)cudaMemcpyAsync(to, from, size, cudaMemcpyHostToDevice, s);
}

static inline int copy_out(void *to, const void *from, size_t size, cudaStream_t s)
{
    return (int)cudaMemcpyAsync(to, from, size, cudaMemcpyDeviceToHost, s);
}

struct append {
    uint32_t *n, *list, value;
};

static inline void append(void *user)
{
    const struct append *a = user;
    a->list[(*a->n)++] = a->value;
}

static inline void nap(void *user)
{
    const struct timespec t = {0, *(const long *)user};
    nanosleep(&t, NULL);
}

/* A race on purpose, behind TSan's back. */
__attribute__((no_sanitize("thread"), noinline, unused)) static void meddle(uint8_t *p,
                                                                            uint8_t value)
{
    *p = value;
}

enum { READ, WRITE };

static inline void touch(uint8_t *d, uint32_t begin, uint32_t end, int write, cudaStream_t s)
{
    const struct cuda_fake_access a = {d + begin, end - begin, (uint32_t)write};
    const long ns = 0;
    cuda_fake_enqueue(s, nap, &ns, sizeof ns, &a, 1);
}

#endif
