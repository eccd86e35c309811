/* SPDX-License-Identifier: Apache-2.0 */
#include "support/cuda_fake_fixture.h"

static const uint64_t elsewhere = 1; /* neither pinned nor of a device */

/* ---- without a device ---- */

TEST(while_it_is_not_open_there_is_no_driver)
{
    int n = -1;
    CHECK_EQ(cudaGetDeviceCount(&n), cudaErrorInsufficientDriver);
    CHECK_EQ(n, 0);
    CHECK_EQ(cudaGetLastError(), cudaErrorInsufficientDriver);
    CHECK_EQ(cudaGetLastError(), cudaSuccess);
    CHECK_EQ(cudaDriverGetVersion(&n), cudaSuccess);
    CHECK_EQ(n, 0);
}

TEST(a_driver_without_devices_is_told_apart_from_none)
{
    int n = -1;
    void *p = NULL;
    cuda_fake_open(&(struct cuda_fake_config){.no_driver = cudaErrorNoDevice});
    CHECK_EQ(cudaGetDeviceCount(&n), cudaErrorNoDevice);
    CHECK_EQ(cudaMalloc(&p, 1), cudaErrorNoDevice);
    CHECK_EQ(cudaDriverGetVersion(&n), cudaSuccess);
    CHECK_EQ(n, 13000);
    CHECK_EQ(cudaRuntimeGetVersion(&n), cudaSuccess);
    CHECK_EQ(n, 13000);
    cuda_fake_close();
    cuda_fake_open(&(struct cuda_fake_config){.no_driver = cudaErrorInsufficientDriver});
    CHECK_EQ(cudaSetDevice(0), cudaErrorInsufficientDriver);
    CHECK_EQ(cuda_fake_close(), 0);
}

/* ---- order in time ---- */

TEST(a_stream_runs_its_operations_in_order)
{
    open_slow();
    uint32_t n = 0, list[32];
    const cudaStream_t s = stream_open();
    for (uint32_t i = 0; i < 32; i++) {
        const struct append a = {&n, list, i};
        CHECK_EQ(cuda_fake_enqueue(s, append, &a, sizeof a, NULL, 0), cudaSuccess);
    }
    CHECK_EQ(cudaStreamSynchronize(s), cudaSuccess);
    CHECK_EQ(n, 32);
    for (uint32_t i = 0; i < 32; i++)
        CHECK_EQ(list[i], i);
    cudaStreamDestroy(s);
    CHECK_EQ(cuda_fake_close(), 0);
}

TEST(a_destroyed_stream_still_runs_what_it_has)
{
    open_slow();
    uint32_t n = 0, list[8];
    const cudaStream_t s = stream_open();
    for (uint32_t i = 0; i < 8; i++) {
        const struct append a = {&n, list, i};
        cuda_fake_enqueue(s, append, &a, sizeof a, NULL, 0);
    }
    CHECK_EQ(cudaStreamDestroy(s), cudaSuccess);
    CHECK_EQ(cuda_fake_close(), 0);
    CHECK_EQ(n, 8);
}

TEST(an_event_is_done_when_its_stream_has_come_there)
{
    open_plain();
    const cudaStream_t s = stream_open();
    const cudaEvent_t e = event_open();
    CHECK_EQ(cudaEventQuery(e), cudaSuccess); /* never recorded */
    CHECK_EQ(cudaEventSynchronize(e), cudaSuccess);
    cuda_fake_hold(s);
    CHECK_EQ(cudaEventRecord(e, s), cudaSuccess);
    CHECK_EQ(cudaEventQuery(e), cudaErrorNotReady);
    CHECK_EQ(cudaStreamQuery(s), cudaErrorNotReady);
    CHECK_EQ(cudaPeekAtLastError(), cudaSuccess); /* the query is no error */
    cuda_fake_let(s);
    CHECK_EQ(cudaEventSynchronize(e), cudaSuccess);
    CHECK_EQ(cudaEventQuery(e), cudaSuccess);
    CHECK_EQ(cudaStreamSynchronize(s), cudaSuccess);
    CHECK_EQ(cudaStreamQuery(s), cudaSuccess);
    cudaEventDestroy(e);
    cudaStreamDestroy(s);
    CHECK_EQ(cuda_fake_close(), 0);
}

TEST(a_wait_is_for_the_record_before_it_not_for_later_ones)
{
    open_plain();
    const cudaStream_t a = stream_open(), b = stream_open();
    const cudaEvent_t e = event_open();
    cudaEventRecord(e, a);
    CHECK_EQ(cudaStreamWaitEvent(b, e, 0), cudaSuccess);
    CHECK_EQ(cudaStreamSynchronize(a), cudaSuccess);
    cuda_fake_hold(a);
    cudaEventRecord(e, a);
    CHECK_EQ(cudaStreamSynchronize(b), cudaSuccess); /* or it hangs */
    CHECK_EQ(cudaStreamWaitEvent(b, e, 0), cudaSuccess);
    CHECK_EQ(cudaEventDestroy(e), cudaSuccess); /* the wait goes on without it */
    CHECK_EQ(cudaStreamQuery(b), cudaErrorNotReady);
    cuda_fake_let(a);
    CHECK_EQ(cudaStreamSynchronize(b), cudaSuccess);
    cudaStreamDestroy(a);
    cudaStreamDestroy(b);
    CHECK_EQ(cuda_fake_close(), 0);
}

TEST(events_belong_to_a_device_for_records_but_not_for_waits)
{
    open_plain();
    const cudaStream_t s0 = stream_open();
    const cudaEvent_t e0 = event_open();
    CHECK_EQ(cudaSetDevice(1), cudaSuccess);
    const cudaStream_t s1 = stream_open();
    CHECK_EQ(cudaEventRecord(e0, s1), cudaErrorInvalidResourceHandle);
    CHECK_EQ(cudaGetLastError(), cudaErrorInvalidResourceHandle);
    CHECK_EQ(cudaEventRecord(e0, NULL), cudaErrorInvalidResourceHandle); /* device 1's default */
    CHECK_EQ(cudaEventRecord(e0, s0), cudaSuccess); /* whichever device is current */
    CHECK_EQ(cudaStreamWaitEvent(s1, e0, 0), cudaSuccess);
    CHECK_EQ(cudaStreamSynchronize(s1), cudaSuccess);
    CHECK_EQ(cudaEventQuery(e0), cudaSuccess);
    const struct append a = {NULL, NULL, 0};
    CHECK_EQ(cuda_fake_enqueue(s0, append, &a, sizeof a, NULL, 0), cudaErrorInvalidResourceHandle);
    cudaEventDestroy(e0);
    cudaStreamDestroy(s0);
    cudaStreamDestroy(s1);
    CHECK_EQ(cuda_fake_close(), 0);
}

TEST(events_with_timing_measure_the_time_between_them)
{
    open_plain();
    const cudaStream_t s = stream_open();
    cudaEvent_t a, b;
    const cudaEvent_t untimed = event_open();
    const long ns = 3000000;
    float ms = -1;
    cudaEventCreateWithFlags(&a, cudaEventDefault);
    cudaEventCreateWithFlags(&b, cudaEventDefault);
    CHECK_EQ(cudaEventElapsedTime(&ms, a, b), cudaErrorInvalidResourceHandle); /* no record */
    cudaEventRecord(a, s);
    CHECK_EQ(cudaEventElapsedTime(&ms, a, b), cudaErrorInvalidResourceHandle);
    CHECK_EQ(cudaEventElapsedTime(&ms, b, a), cudaErrorInvalidResourceHandle);
    cuda_fake_enqueue(s, nap, &ns, sizeof ns, NULL, 0);
    cuda_fake_hold(s);
    cudaEventRecord(b, s);
    cudaEventRecord(untimed, s);
    CHECK_EQ(cudaEventElapsedTime(&ms, a, b), cudaErrorNotReady);
    cuda_fake_let(s);
    cudaStreamSynchronize(s);
    CHECK_EQ(cudaEventElapsedTime(&ms, a, b), cudaSuccess);
    CHECK(ms >= 3.0f && ms < 3000.0f);
    CHECK_EQ(cudaEventElapsedTime(&ms, a, untimed), cudaErrorInvalidResourceHandle);
    cudaEventDestroy(a);
    cudaEventDestroy(b);
    cudaEventDestroy(untimed);
    cudaStreamDestroy(s);
    CHECK_EQ(cuda_fake_close(), 0);
}

/* ---- copies ---- */

TEST(a_copy_from_pinned_memory_reads_when_it_runs)
{
    open_plain();
    const cudaStream_t s = stream_open();
    uint8_t *d = device_open(SIZE), *h = pinned_open(SIZE), seen[4];
    cuda_fake_hold(s);
    CHECK_EQ(copy_in(d, h, SIZE, s), cudaSuccess);
    meddle(&h[2], 77); /* too early */
    cuda_fake_let(s);
    CHECK_EQ(cudaStreamSynchronize(s), cudaSuccess);
    CHECK_EQ(cuda_fake_read(seen, d, 4), 0);
    CHECK_EQ(seen[2], 77);
    CHECK_EQ(hazards(CUDA_FAKE_SOURCE), 1);
    h[2] = 78; /* now it may */
    CHECK_EQ(copy_in(d, h, SIZE, s), cudaSuccess);
    CHECK_EQ(cudaStreamSynchronize(s), cudaSuccess);
    CHECK_EQ(hazards(CUDA_FAKE_SOURCE), 1);
    CHECK_EQ(stats().n_pageable, 0);
    CHECK_EQ(stats().n_h2d, 2 * SIZE);
    CHECK(close_with(CUDA_FAKE_SOURCE, 1));
}

TEST(a_source_that_an_earlier_operation_writes_is_no_changed_one)
{
    open_plain();
    const cudaStream_t s = stream_open();
    uint8_t *d = device_open(2 * SIZE), *h = pinned_open(SIZE), seen = 0;
    cuda_fake_hold(s);
    CHECK_EQ(copy_out(h, d, SIZE, s), cudaSuccess); /* 0xcd over what h has now */
    CHECK_EQ(cudaMemsetAsync(d + SIZE, 0, SIZE, s), cudaSuccess);
    CHECK_EQ(copy_in(d + SIZE, h, SIZE, s), cudaSuccess);
    cuda_fake_let(s);
    CHECK_EQ(cudaStreamSynchronize(s), cudaSuccess);
    CHECK_EQ(cuda_fake_read(&seen, d + SIZE, 1), 0);
    CHECK_EQ(seen, 0xcd);
    cudaFree(d);
    cudaFreeHost(h);
    cudaStreamDestroy(s);
    CHECK_EQ(cuda_fake_close(), 0);
}

TEST(a_large_source_is_sampled)
{
    cuda_fake_open(
        &(struct cuda_fake_config){.whole_check = 1024, .check_stride = 8192, .quiet = 1});
    const cudaStream_t s = stream_open();
    uint8_t *d = device_open(65536), *h = pinned_open(65536);
    const struct {
        uint32_t at;
        uint64_t found;
    } cases[] = {{0, 1}, {64, 1}, {8192 + 63, 2}, {8192 + 64, 2}, {65535, 3}};
    for (uint32_t i = 0; i < 5; i++) {
        cuda_fake_hold(s);
        copy_in(d, h, 65536, s);
        meddle(&h[cases[i].at], (uint8_t)(2 + i));
        cuda_fake_let(s);
        cudaStreamSynchronize(s);
        CHECK_EQ(hazards(CUDA_FAKE_SOURCE), cases[i].found);
    }
    CHECK(close_with(CUDA_FAKE_SOURCE, 3));
}

TEST(a_copy_from_pageable_memory_is_staged_before_it_returns)
{
    open_plain();
    const cudaStream_t s = stream_open();
    uint8_t *d = device_open(SIZE), h[SIZE] = {5}, seen = 0;
    cuda_fake_hold(s);
    CHECK_EQ(copy_in(d, h, SIZE, s), cudaSuccess);
    h[0] = 6;
    cuda_fake_let(s);
    cudaStreamSynchronize(s);
    CHECK_EQ(cuda_fake_read(&seen, d, 1), 0);
    CHECK_EQ(seen, 5);
    CHECK_EQ(stats().n_pageable, 1);
    cudaFree(d);
    cudaStreamDestroy(s);
    CHECK_EQ(cuda_fake_close(), 0);
}

TEST(a_copy_to_pageable_memory_has_ended_when_it_returns)
{
    open_slow();
    const cudaStream_t s = stream_open();
    uint8_t *d = device_open(SIZE), h[SIZE] = {0};
    for (int i = 0; i < 8; i++) {
        CHECK_EQ(cudaMemsetAsync(d, 40 + i, SIZE, s), cudaSuccess);
        CHECK_EQ(copy_out(h, d, SIZE, s), cudaSuccess);
        CHECK_EQ(h[0], 40 + i);
        CHECK_EQ(h[SIZE - 1], 40 + i);
    }
    cudaFree(d);
    cudaStreamDestroy(s);
    CHECK_EQ(cuda_fake_close(), 0);
}

TEST(registered_memory_is_pinned_within_its_bounds)
{
    static _Alignas(4096) uint8_t h[4 * SIZE];
    open_plain();
    const cudaStream_t s = stream_open();
    uint8_t *d = device_open(4 * SIZE);
    CHECK_EQ(cudaHostRegister(h, SIZE + 100, cudaHostRegisterPortable), cudaSuccess);
    CHECK_EQ(cudaHostRegister(h + SIZE, 1, 0), cudaErrorHostMemoryAlreadyRegistered);
    CHECK_EQ(cudaHostRegister(h + SIZE + 200, 1, 0), cudaErrorHostMemoryAlreadyRegistered);
    CHECK_EQ(cudaHostRegister(h + 2 * SIZE, SIZE, 0), cudaSuccess);
    CHECK_EQ(cudaHostRegister(h + 3 * SIZE, SIZE, cudaHostRegisterReadOnly), cudaErrorNotSupported);
    CHECK_EQ(copy_in(d, h + 10, SIZE, s), cudaSuccess);
    CHECK_EQ(stats().n_pageable, 0);
    CHECK_EQ(copy_in(d, h + 3 * SIZE, SIZE, s), cudaSuccess);
    CHECK_EQ(stats().n_pageable, 1);
    CHECK_EQ(copy_in(d, h + 101, SIZE, s), cudaErrorInvalidValue);
    CHECK_EQ(hazards(CUDA_FAKE_BOUNDS), 1);
    CHECK_EQ(stats().n_registrations, 2);
    CHECK_EQ(stats().n_pinned_bytes, SIZE + 100 + SIZE);
    cudaStreamSynchronize(s);
    CHECK_EQ(cudaHostUnregister(h + 1), cudaErrorHostMemoryNotRegistered);
    CHECK_EQ(hazards(CUDA_FAKE_USE), 1);
    CHECK_EQ(cudaHostUnregister(h), cudaSuccess);
    CHECK_EQ(cudaHostUnregister(h + 2 * SIZE), cudaSuccess);
    CHECK_EQ(stats().n_registrations, 0);
    cuda_fake_reset();
    cuda_fake_close();
}

TEST(a_copy_goes_the_way_it_says)
{
    open_plain();
    const cudaStream_t s = stream_open();
    uint8_t *d = device_open(SIZE), *h = pinned_open(SIZE);
    CHECK_EQ(cudaMemcpyAsync(d, h, SIZE, cudaMemcpyDeviceToHost, s), cudaErrorInvalidValue);
    CHECK_EQ(cudaMemcpyAsync(h, h, SIZE, cudaMemcpyHostToDevice, s), cudaErrorInvalidValue);
    CHECK_EQ(hazards(CUDA_FAKE_BOUNDS), 2);
    CHECK_EQ(cudaMemcpyAsync(d, h, SIZE, (enum cudaMemcpyKind)9, s),
             cudaErrorInvalidMemcpyDirection);
    CHECK_EQ(cudaMemcpyAsync(d, h, SIZE, cudaMemcpyDefault, s), cudaSuccess);
    CHECK_EQ(cudaMemcpyAsync(d, NULL, 0, cudaMemcpyDefault, s), cudaSuccess);
    CHECK_EQ(stats().n_copies, 1);
    CHECK(close_with(CUDA_FAKE_BOUNDS, 2));
}

TEST(a_copy_may_use_another_devices_stream_and_cross_devices_a_kernel_may_not)
{
    open_plain();
    const cudaStream_t s0 = stream_open();
    uint8_t *d0 = device_open(SIZE), *h = pinned_open(SIZE), seen = 0;
    cudaSetDevice(1);
    const cudaStream_t s1 = stream_open();
    uint8_t *d1 = device_open(SIZE);
    CHECK_EQ(copy_in(d0, h, SIZE, s0), cudaSuccess);
    CHECK_EQ(cudaMemcpyAsync(d1, d0, SIZE, cudaMemcpyDeviceToDevice, s0), cudaSuccess);
    CHECK_EQ(cudaStreamSynchronize(s0), cudaSuccess);
    CHECK_EQ(cuda_fake_read(&seen, d1 + SIZE - 1, 1), 0);
    CHECK_EQ(seen, 1);
    CHECK_EQ(stats().n_d2d, SIZE);
    CHECK_EQ(cudaMemsetAsync(d0, 0, 1, s0), cudaErrorInvalidResourceHandle);
    CHECK_EQ(stats().n_hazards, 0);
    const struct cuda_fake_access a = {d0, 1, 0};
    CHECK_EQ(cuda_fake_enqueue(s1, append, &a, sizeof a, &a, 1), cudaErrorInvalidValue);
    CHECK(close_with(CUDA_FAKE_BOUNDS, 1));
}

TEST(streams_share_pinned_memory_by_the_same_rules)
{
    open_plain();
    const cudaStream_t a = stream_open(), b = stream_open();
    uint8_t *h = pinned_open(SIZE);
    touch(h, 0, SIZE, WRITE, a);
    touch(h, 0, SIZE, READ, b);
    CHECK(close_with(CUDA_FAKE_RACE, 1));
}

TEST(pointer_attributes_give_the_kind_and_device_of_memory)
{
    struct cudaPointerAttributes a;
    open_plain();
    cudaSetDevice(1);
    uint8_t *d = device_open(SIZE), *h = pinned_open(SIZE);
    CHECK_EQ(cudaPointerGetAttributes(&a, d + 5), cudaSuccess);
    CHECK_EQ(a.type, cudaMemoryTypeDevice);
    CHECK_EQ(a.device, 1);
    CHECK(a.devicePointer == d + 5 && a.hostPointer == NULL);
    CHECK_EQ(cudaPointerGetAttributes(&a, h), cudaSuccess);
    CHECK_EQ(a.type, cudaMemoryTypeHost);
    CHECK_EQ(cudaPointerGetAttributes(&a, &elsewhere), cudaSuccess);
    CHECK_EQ(a.type, cudaMemoryTypeUnregistered);
    cudaFree(d);
    cudaFreeHost(h);
    CHECK_EQ(cuda_fake_close(), 0);
}

/* ---- memory ---- */

TEST(accesses_outside_of_an_allocation_are_refused_and_reported)
{
    open_plain();
    const cudaStream_t s = stream_open();
    uint8_t *d = device_open(SIZE), *h = pinned_open(2 * SIZE), *gone = device_open(SIZE);
    CHECK_EQ(copy_in(d + 1, h, SIZE, s), cudaErrorInvalidValue);
    CHECK_EQ(hazards(CUDA_FAKE_BOUNDS), 1);
    CHECK_EQ(cudaMemsetAsync(d, 0, SIZE + 1, s), cudaErrorInvalidValue);
    CHECK_EQ(hazards(CUDA_FAKE_BOUNDS), 2);
    CHECK_EQ(cudaMemsetAsync(h, 0, SIZE, s), cudaErrorInvalidValue);
    CHECK_EQ(hazards(CUDA_FAKE_BOUNDS), 3);
    const struct cuda_fake_access far = {d + SIZE - 1, 2, 1}, host = {&elsewhere, 8, 0};
    CHECK_EQ(cuda_fake_enqueue(s, append, &far, sizeof far, &far, 1), cudaErrorInvalidValue);
    CHECK_EQ(hazards(CUDA_FAKE_BOUNDS), 4);
    CHECK_EQ(cuda_fake_enqueue(s, append, &far, sizeof far, &host, 1), cudaErrorInvalidValue);
    CHECK_EQ(hazards(CUDA_FAKE_BOUNDS), 5);
    CHECK_EQ(cudaFree(gone), cudaSuccess);
    CHECK_EQ(copy_in(gone, h, 1, s), cudaErrorInvalidValue);
    CHECK_EQ(hazards(CUDA_FAKE_BOUNDS), 6);
    CHECK_EQ(cuda_fake_read(h, d + 1, SIZE), -1);
    CHECK_EQ(hazards(CUDA_FAKE_BOUNDS), 7);
    CHECK_EQ(cudaFree(gone), cudaErrorInvalidValue);
    CHECK_EQ(hazards(CUDA_FAKE_USE), 1);
    CHECK_EQ(cudaMemsetAsync(d, 0, SIZE, s), cudaSuccess);
    CHECK_EQ(stats().n_hazards, 8);
    cuda_fake_reset();
    cuda_fake_close();
}

/* Not instrumented: ASan would stop it at once. */
__attribute__((no_sanitize("address"))) static void write_behind(void *user)
{
    uint8_t *const *p = user;
    (*p)[100] = 0;
}

TEST(a_write_past_an_allocation_is_found_when_the_allocation_is_freed)
{
    open_plain();
    const cudaStream_t s = stream_open();
    uint8_t *d = device_open(100);
    const struct cuda_fake_access a = {d, 100, 1};
    cuda_fake_enqueue(s, write_behind, &d, sizeof d, &a, 1);
    cudaStreamSynchronize(s);
    CHECK_EQ(cudaFree(d), cudaSuccess);
    CHECK(close_with(CUDA_FAKE_BOUNDS, 1));
}

TEST(memory_is_filled_with_rubbish_and_limited)
{
    cuda_fake_open(&(struct cuda_fake_config){.device_memory = 10000, .pinned_limit = 5000});
    uint8_t *d = device_open(6000), seen[2];
    size_t n_free = 0, total = 0;
    void *p = NULL;
    CHECK_EQ(cuda_fake_read(seen, d + 5998, 2), 0);
    CHECK_EQ(seen[0], 0xcd);
    CHECK_EQ(seen[1], 0xcd);
    CHECK_EQ(cudaMemGetInfo(&n_free, &total), cudaSuccess);
    CHECK_EQ(n_free, 4000);
    CHECK_EQ(total, 10000);
    CHECK_EQ(cudaMalloc(&p, 4001), cudaErrorMemoryAllocation);
    CHECK_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
    CHECK_EQ(cudaFree(d), cudaSuccess);
    d = device_open(10000);
    CHECK(d != NULL);
    CHECK_EQ(stats().devices[0].n_allocated, 10000);
    uint8_t *h = pinned_open(3000);
    CHECK(h != NULL);
    CHECK_EQ(cudaHostAlloc(&p, 3000, 0), cudaErrorMemoryAllocation);
    CHECK_EQ(cudaFreeHost(h), cudaSuccess);
    CHECK_EQ(cudaFree(d), cudaSuccess);
    CHECK_EQ(cudaFree(NULL), cudaSuccess);
    CHECK_EQ(cudaFreeHost(NULL), cudaSuccess);
    CHECK_EQ(cuda_fake_close(), 0);
}

TEST(pinning_can_be_refused_and_that_is_a_last_error)
{
    static uint8_t h[SIZE];
    void *p = NULL;
    cuda_fake_open(&(struct cuda_fake_config){.no_register = cudaErrorNotSupported,
                                              .no_pinned = cudaErrorMemoryAllocation});
    CHECK_EQ(cudaHostRegister(h, SIZE, 0), cudaErrorNotSupported);
    CHECK_EQ(cudaPeekAtLastError(), cudaErrorNotSupported);
    CHECK_EQ(cudaHostAlloc(&p, SIZE, 0), cudaErrorMemoryAllocation);
    CHECK_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
    CHECK_EQ(cuda_fake_close(), 0);
}

TEST(memory_given_back_before_its_use_has_ended_is_reported)
{
    static _Alignas(4096) uint8_t r[SIZE];
    open_slow();
    const cudaStream_t s = stream_open();
    uint8_t *d = device_open(SIZE), *h = pinned_open(SIZE);
    cudaHostRegister(r, SIZE, 0);
    copy_in(d, h, SIZE, s);
    copy_in(d, r, SIZE, s);
    CHECK_EQ(cudaFreeHost(h), cudaSuccess);
    CHECK_EQ(hazards(CUDA_FAKE_HOST_FREE), 1);
    CHECK_EQ(cudaHostUnregister(r), cudaSuccess);
    CHECK_EQ(hazards(CUDA_FAKE_HOST_FREE), 2);
    CHECK_EQ(cudaFree(d), cudaSuccess); /* ran to its end by now, but nobody can know */
    CHECK_EQ(hazards(CUDA_FAKE_FREE), 1);
    d = device_open(SIZE);
    cudaMemsetAsync(d, 0, SIZE, s);
    CHECK_EQ(cudaStreamSynchronize(s), cudaSuccess);
    CHECK_EQ(cudaFree(d), cudaSuccess);
    CHECK_EQ(stats().n_hazards, 3);
    cudaHostRegister(r, SIZE, 0);
    d = device_open(SIZE);
    copy_in(d, r, SIZE, s);
    CHECK_EQ(cudaHostUnregister(r), cudaSuccess);
    CHECK_EQ(cudaStreamQuery(s), cudaSuccess); /* it did wait */
    CHECK_EQ(cudaFree(d), cudaSuccess);
    CHECK_EQ(hazards(CUDA_FAKE_HOST_FREE), 3);
    cuda_fake_reset();
    cudaStreamDestroy(s);
    CHECK_EQ(cuda_fake_close(), 0);
}

/* ---- what is left behind ---- */

TEST(everything_left_behind_is_counted)
{
    static uint8_t h[SIZE];
    open_plain();
    cudaSetDevice(1);
    device_open(100);
    pinned_open(10);
    stream_open();
    event_open();
    event_open();
    cudaHostRegister(h, SIZE, 0);
    touch(device_open(10), 0, 10, WRITE, NULL); /* the default stream is nobody's */
    const struct cuda_fake_stats s = stats();
    CHECK_EQ(s.devices[1].n_allocations, 2);
    CHECK_EQ(s.devices[1].n_allocated, 110);
    CHECK_EQ(s.devices[1].n_streams, 1);
    CHECK_EQ(s.devices[1].n_events, 2);
    CHECK_EQ(s.n_pinned, 1);
    CHECK_EQ(s.n_registrations, 1);
    CHECK_EQ(cuda_fake_close(), 2 + 1 + 1 + 2 + 1);
}

TEST(handles_that_are_not_alive_are_refused_and_reported)
{
    open_plain();
    const cudaStream_t s = stream_open(), other_s = stream_open();
    const cudaEvent_t e = event_open(), other_e = event_open();
    cudaStreamDestroy(s);
    cudaEventDestroy(e);
    CHECK_EQ(cudaEventRecord(other_e, other_s), cudaSuccess);
    CHECK_EQ(cudaStreamSynchronize(s), cudaErrorInvalidResourceHandle);
    CHECK_EQ(cudaStreamDestroy(s), cudaErrorInvalidResourceHandle);
    CHECK_EQ(cudaEventQuery(e), cudaErrorInvalidResourceHandle);
    CHECK_EQ(cudaEventRecord(e, NULL), cudaErrorInvalidResourceHandle);
    CHECK_EQ(cudaStreamWaitEvent(NULL, e, 0), cudaErrorInvalidResourceHandle);
    CHECK_EQ(cudaEventDestroy(e), cudaErrorInvalidResourceHandle);
    CHECK(close_with(CUDA_FAKE_USE, 6));
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(while_it_is_not_open_there_is_no_driver),
        CASE(a_driver_without_devices_is_told_apart_from_none),
        CASE(a_stream_runs_its_operations_in_order),
        CASE(a_destroyed_stream_still_runs_what_it_has),
        CASE(an_event_is_done_when_its_stream_has_come_there),
        CASE(a_wait_is_for_the_record_before_it_not_for_later_ones),
        CASE(events_belong_to_a_device_for_records_but_not_for_waits),
        CASE(events_with_timing_measure_the_time_between_them),
        CASE(a_copy_from_pinned_memory_reads_when_it_runs),
        CASE(a_source_that_an_earlier_operation_writes_is_no_changed_one),
        CASE(a_large_source_is_sampled),
        CASE(a_copy_from_pageable_memory_is_staged_before_it_returns),
        CASE(a_copy_to_pageable_memory_has_ended_when_it_returns),
        CASE(registered_memory_is_pinned_within_its_bounds),
        CASE(a_copy_goes_the_way_it_says),
        CASE(a_copy_may_use_another_devices_stream_and_cross_devices_a_kernel_may_not),
        CASE(streams_share_pinned_memory_by_the_same_rules),
        CASE(pointer_attributes_give_the_kind_and_device_of_memory),
        CASE(accesses_outside_of_an_allocation_are_refused_and_reported),
        CASE(a_write_past_an_allocation_is_found_when_the_allocation_is_freed),
        CASE(memory_is_filled_with_rubbish_and_limited),
        CASE(pinning_can_be_refused_and_that_is_a_last_error),
        CASE(memory_given_back_before_its_use_has_ended_is_reported),
        CASE(everything_left_behind_is_counted),
        CASE(handles_that_are_not_alive_are_refused_and_reported),
    };
    return RUN_CASES(cases);
}
