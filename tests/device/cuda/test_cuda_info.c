/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptions of GPUs, and measurements of their copies, on devices of the fake. */
#include "device/cuda/info.h"

#include "support/cuda_fake/cuda_fake.h"
#include "support/test.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#define BLOCK 12345u /* bytes: no other allocation is as large */
#define INSTANT 1e-9 /* seconds: every kind ends after its first runs */

/* ---- faults ---------------------------------------------------------------------------------- */

static atomic_int refuse_thread, refuse_block;

typedef void *(*thread_body)(void *);
int __real_pthread_create(pthread_t *t, const pthread_attr_t *a, thread_body body, void *arg);
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *a, thread_body body, void *arg);
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *a, thread_body body, void *arg)
{
    return atomic_exchange(&refuse_thread, 0) ? EAGAIN : __real_pthread_create(t, a, body, arg);
}

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size)
{
    return size == BLOCK && atomic_exchange(&refuse_block, 0) ? NULL : __real_malloc(size);
}

/* ---- which devices there are ----------------------------------------------------------------- */

TEST(devices_are_counted_without_touching_one)
{
    struct cuda_fake_stats s;
    CHECK_EQ(pstk__cuda_count(), PSTK_ENOTSUP); /* closed: no driver */
    cuda_fake_open(&(struct cuda_fake_config){.n_devices = 3});
    CHECK_EQ(pstk__cuda_count(), 3);
    cuda_fake_stats(&s);
    CHECK_EQ(s.devices[0].has_context + s.devices[1].has_context + s.devices[2].has_context, 0);
    CHECK_EQ(cuda_fake_close(), 0);
}

TEST(a_driver_without_devices_has_none_and_an_old_one_is_no_driver)
{
    cuda_fake_open(&(struct cuda_fake_config){.no_driver = cudaErrorNoDevice});
    CHECK_EQ(pstk__cuda_count(), 0);
    cuda_fake_close();
    cuda_fake_open(&(struct cuda_fake_config){.no_driver = cudaErrorInsufficientDriver});
    CHECK_EQ(pstk__cuda_count(), PSTK_ENOTSUP);
    cuda_fake_close();
}

TEST(the_programs_pending_error_stays_and_ours_does_not)
{
    struct pstk_device d = {.size = sizeof d};
    cuda_fake_open(&(struct cuda_fake_config){.no_driver = cudaErrorNoDevice});
    cudaGetLastError();
    pstk__cuda_count();
    CHECK_EQ(cudaPeekAtLastError(), cudaSuccess);
    cuda_fake_close();
    cuda_fake_open(NULL);
    pstk__cuda_describe(5, &d);
    CHECK_EQ(cudaPeekAtLastError(), cudaSuccess);
    cudaMalloc(NULL, 1);
    pstk__cuda_count();
    pstk__cuda_describe(0, &d);
    CHECK_EQ(cudaGetLastError(), cudaErrorInvalidValue);
    CHECK_EQ(cuda_fake_close(), 0);
}

TEST(a_device_is_described_without_touching_it)
{
    struct pstk_device d = {.size = sizeof d};
    struct cuda_fake_stats s;
    cuda_fake_open(&(struct cuda_fake_config){
        .n_devices = 2, .device_memory = 1 << 20, .driver_version = 12080});
    pstk__cuda_describe(1, &d);
    CHECK_STR(d.name, "Fake GPU 1");
    CHECK_STR(d.bus_id, "0000:11:00.0");
    CHECK_EQ(d.memory, 1 << 20);
    CHECK_EQ(d.major, 9);
    CHECK_EQ(d.minor, 0);
    CHECK_EQ(d.driver, 12080);
    CHECK_EQ(d.runtime, 13000);
    CHECK(d.numa_node >= -1);
    cuda_fake_stats(&s);
    CHECK_EQ(s.devices[1].has_context, 0);
    CHECK_EQ(cuda_fake_close(), 0);
}

/* A fact that cannot be found stays unknown, and the others are reported. */
TEST(every_answer_that_fails_leaves_its_member_unknown)
{
    struct pstk_device d;
    cuda_fake_open(NULL);
    cuda_fake_fail("cudaGetDeviceProperties", 1, cudaErrorUnknown);
    d = (struct pstk_device){.size = sizeof d};
    pstk__cuda_describe(0, &d);
    CHECK(d.name[0] == 0 && d.memory == 0 && d.major == 0 && d.driver == 13000);
    cuda_fake_fail("cudaDeviceGetPCIBusId", 1, cudaErrorUnknown);
    d = (struct pstk_device){.size = sizeof d};
    pstk__cuda_describe(0, &d);
    CHECK(d.name[0] != 0 && d.bus_id[0] == 0 && d.numa_node == -1 && d.pcie_width == 0);
    CHECK_EQ(cudaPeekAtLastError(), cudaSuccess);
    CHECK_EQ(cuda_fake_close(), 0);
}

/* ---- what copies do alone -------------------------------------------------------------------- */

static int all_measured(const struct pstk_copy_rates *r)
{
    return r->to_device > 0 && r->to_host > 0 && r->pageable_to_device > 0 && r->on_device > 0;
}

static struct pstk_error new_error(void)
{
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    return err;
}

TEST(all_kinds_are_measured_and_all_is_given_back)
{
    struct pstk_copy_rates r = {.size = sizeof r};
    struct pstk_error err = new_error();
    struct cuda_fake_stats s;
    cuda_fake_open(&(struct cuda_fake_config){.n_devices = 2});
    CHECK_EQ(pstk__cuda_measure(1, 1 << 20, 0.05, &r, &err), 0);
    CHECK(all_measured(&r));
    cuda_fake_stats(&s);
    CHECK(s.n_h2d > 0 && s.n_d2h > 0 && s.n_d2d > 0 && s.n_pageable > 0);
    CHECK_EQ(s.n_allocations + s.n_pinned + s.n_registrations + s.n_streams + s.n_events, 0);
    CHECK_EQ(cuda_fake_close(), 0);
}

TEST(neither_another_device_nor_the_callers_thread_gets_a_context)
{
    struct pstk_copy_rates r = {.size = sizeof r};
    struct cuda_fake_stats s;
    int current = -1;
    cuda_fake_open(&(struct cuda_fake_config){.n_devices = 3});
    CHECK_EQ(pstk__cuda_measure(2, BLOCK, INSTANT, &r, NULL), 0);
    cuda_fake_stats(&s);
    CHECK_EQ(s.devices[0].has_context + s.devices[1].has_context, 0);
    CHECK_EQ(s.devices[2].has_context, 1);
    cudaGetDevice(&current);
    CHECK_EQ(current, 0);
    CHECK_EQ(cuda_fake_close(), 0);
}

/* Except for the rounding of milliseconds in float32. */
static int is_rate(double rate, double wanted)
{
    return rate > wanted * 0.999 && rate < wanted * 1.001;
}

TEST(rates_are_those_of_the_devices_clock)
{
    static const uint32_t ns_per_kib[] = {100, 1000, 7000};
    for (uint32_t i = 0; i < 3; i++) {
        struct pstk_copy_rates r = {.size = sizeof r};
        const double wanted = 1024e9 / ns_per_kib[i];
        cuda_fake_open(&(struct cuda_fake_config){
            .clock_by_hand = 1, .copy_ns_per_kib = ns_per_kib[i], .max_delay_us = 100, .seed = 3});
        CHECK_EQ(pstk__cuda_measure(0, 1 << 16, 0.1, &r, NULL), 0);
        CHECK_EQ(cuda_fake_close(), 0);
        printf("# %.0f, %.0f, %.0f, %.0f bytes/s of %.0f\n", r.to_device, r.to_host,
               r.pageable_to_device, r.on_device, wanted);
        CHECK(is_rate(r.to_device, wanted));
        CHECK(is_rate(r.to_host, wanted));
        CHECK(is_rate(r.on_device, wanted));
    }
}

TEST(a_capture_elsewhere_in_the_program_is_not_broken)
{
    struct pstk_copy_rates r = {.size = sizeof r};
    cuda_fake_open(NULL);
    cuda_fake_capture(1);
    CHECK_EQ(pstk__cuda_measure(0, BLOCK, INSTANT, &r, NULL), 0);
    cuda_fake_capture(0);
    CHECK_EQ(cuda_fake_close(), 0);
}

/* Return whether the nth call was reached. */
static int fails_cleanly(uint64_t n, cudaError_t code)
{
    struct pstk_copy_rates r = {.size = sizeof r};
    struct pstk_error err = new_error();
    struct cuda_fake_stats s;
    cuda_fake_open(NULL);
    cuda_fake_fail(NULL, n, code);
    const int result = pstk__cuda_measure(0, BLOCK, INSTANT, &r, &err);
    cuda_fake_stats(&s);
    const uint64_t bad = cuda_fake_close();
    if (bad != 0)
        printf("# call %llu: something was left behind\n", (unsigned long long)n);
    if (bad != 0 || (result == 0 && !all_measured(&r)) ||
        (result < 0 && (err.code != result || err.message[0] == 0 || s.n_injected == 0)))
        return -1;
    return s.n_injected > 0;
}

TEST(a_failure_of_any_call_is_reported_or_harmless_and_leaves_nothing)
{
    const cudaError_t codes[] = {cudaErrorMemoryAllocation, cudaErrorLaunchFailure};
    for (int i = 0; i < 2; i++) {
        uint64_t n = 1;
        int reached;
        while ((reached = fails_cleanly(n, codes[i])) == 1)
            n++;
        CHECK_EQ(reached, 0);
        CHECK(n > 40);
    }
}

TEST(memory_that_is_not_to_be_had_is_named)
{
    struct pstk_copy_rates r = {.size = sizeof r};
    struct pstk_error err = new_error();
    cuda_fake_open(&(struct cuda_fake_config){.device_memory = 3 << 20});
    CHECK_EQ(pstk__cuda_measure(0, 2 << 20, INSTANT, &r, &err), PSTK_ENOMEM);
    CHECK(strstr(err.message, "2 x 2.0 MiB of its memory") != NULL);
    CHECK_EQ(err.native, cudaErrorMemoryAllocation);
    CHECK_EQ(cuda_fake_close(), 0);
    cuda_fake_open(&(struct cuda_fake_config){.pinned_limit = 1 << 20});
    CHECK_EQ(pstk__cuda_measure(0, 2 << 20, INSTANT, &r, &err), PSTK_ENOMEM);
    CHECK(strstr(err.message, "page-locked") != NULL);
    atomic_store(&refuse_block, 1);
    CHECK_EQ(pstk__cuda_measure(0, BLOCK, INSTANT, &r, &err), PSTK_ENOMEM);
    CHECK(strstr(err.message, "host memory") != NULL);
    CHECK_EQ(cuda_fake_close(), 0);
}

TEST(a_thread_that_cannot_start_is_an_error)
{
    struct pstk_copy_rates r = {.size = sizeof r};
    struct pstk_error err = new_error();
    cuda_fake_open(NULL);
    atomic_store(&refuse_thread, 1);
    CHECK(pstk__cuda_measure(0, BLOCK, INSTANT, &r, &err) < 0);
    CHECK(strstr(err.message, "thread") != NULL);
    CHECK_EQ(cuda_fake_calls(NULL), 0);
    CHECK_EQ(cuda_fake_close(), 0);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(devices_are_counted_without_touching_one),
        CASE(a_driver_without_devices_has_none_and_an_old_one_is_no_driver),
        CASE(the_programs_pending_error_stays_and_ours_does_not),
        CASE(a_device_is_described_without_touching_it),
        CASE(every_answer_that_fails_leaves_its_member_unknown),
        CASE(all_kinds_are_measured_and_all_is_given_back),
        CASE(neither_another_device_nor_the_callers_thread_gets_a_context),
        CASE(rates_are_those_of_the_devices_clock),
        CASE(a_capture_elsewhere_in_the_program_is_not_broken),
        CASE(a_failure_of_any_call_is_reported_or_harmless_and_leaves_nothing),
        CASE(memory_that_is_not_to_be_had_is_named),
        CASE(a_thread_that_cannot_start_is_an_error),
    };
    return RUN_CASES(cases);
}
