/* SPDX-License-Identifier: Apache-2.0 */
/* The loader with a GPU when calls fail: what is delivered is right, the rest is an error that says
 * what CUDA said, nothing hangs or stays behind. On the fake CUDA runtime. */
#include "support/cuda_consumer.h"

/* Open, an epoch, close, with the nth call of the device failing. Returns whether one did. */
static int with_failure(uint64_t nth, cudaError_t code, int *ok)
{
    struct pstk_settings s = base();
    struct cuda_fake_config c = {.seed = nth, .max_delay_us = 20};
    struct cuda_fake_stats stats;
    struct pstk_error err = error_now();
    struct pstk_loader *loader = NULL;
    struct oracle o;
    cudaStream_t stream;
    s.device.measure = nth % 2;
    cuda_fake_open(&c);
    cudaSetDevice(0);
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    *ok = oracle_open_for(&o, &s) == 0;
    cuda_fake_fail(NULL, nth, code);
    int r = pstk_open(&loader, &s, &err);
    if (r == 0)
        r = epoch_on(loader, &o, stream, &err);
    else
        *ok = *ok && loader == NULL;
    /* All batches, right; or an error that says what CUDA said. */
    if (r < 0)
        *ok = *ok && err.code == r && err.message[0] && r != -1;
    else
        *ok = *ok && r == (int)pstk_n_batches(loader);
    pstk_close(&loader);
    cuda_fake_fail_none();
    oracle_close(&o);
    cudaStreamDestroy(stream);
    cuda_fake_stats(&stats);
    /* If the driver does not take the context at close, nothing in it can be freed. */
    const int locked_out =
        r >= 0 && cuda_fake_calls("cuCtxPushCurrent") > cuda_fake_calls("cuCtxPopCurrent");
    if (cuda_fake_close() != 0 && !locked_out)
        *ok = 0;
    if (!*ok)
        printf("# call %llu failing with %d: %d, \"%s\"\n", (unsigned long long)nth, (int)code, r,
               err.message);
    return stats.n_injected > 0;
}

TEST(any_failed_call_is_an_error_or_all_batches_are_right)
{
    const cudaError_t codes[] = {cudaErrorUnknown, cudaErrorMemoryAllocation};
    for (int i = 0; i < 2; i++) {
        int ok = 1, fired = 1;
        for (uint64_t nth = 1 + (uint64_t)i; fired; nth += test_stride(3, 4)) {
            fired = with_failure(nth, codes[i], &ok);
            CHECK(ok);
        }
    }
}

static int open_fails(const struct cuda_fake_config *c, int32_t index, uint32_t batch_size,
                      struct pstk_error *err)
{
    struct pstk_settings s = base();
    struct pstk_loader *loader = NULL;
    *err = error_now();
    s.device.index = index;
    s.batch_size = batch_size;
    cuda_fake_open(c);
    int r = pstk_open(&loader, &s, err);
    if (loader || err->code != r || cudaPeekAtLastError() != cudaSuccess)
        r = 1;
    pstk_close(&loader);
    return cuda_fake_close() == 0 ? r : 1;
}

TEST(open_says_which_driver_device_or_memory_is_missing)
{
    struct pstk_error err;
    struct cuda_fake_config none = {.no_driver = cudaErrorInsufficientDriver};
    CHECK_EQ(open_fails(&none, 0, 4, &err), PSTK_ENOTSUP);
    struct cuda_fake_config old = {.no_driver = cudaErrorInsufficientDriver,
                                   .driver_version = 12020};
    CHECK_EQ(open_fails(&old, 0, 4, &err), PSTK_ENOTSUP);
    CHECK(strstr(err.message, "12.2"));
    CHECK(strstr(err.message, "update the driver"));
    struct cuda_fake_config no_device = {.no_driver = cudaErrorNoDevice};
    CHECK_EQ(open_fails(&no_device, 0, 4, &err), PSTK_ENOTSUP);
    CHECK(strstr(err.message, "cudaErrorNoDevice"));
    CHECK_EQ(err.native, cudaErrorNoDevice);
    struct cuda_fake_config not_ready = {.no_driver = cudaErrorSystemNotReady};
    CHECK_EQ(open_fails(&not_ready, 0, 4, &err), PSTK_ENOTSUP);
    CHECK(strstr(err.message, "cudaErrorSystemNotReady"));
    CHECK(strstr(err.message, "start nvidia-fabricmanager"));
    CHECK_EQ(err.native, cudaErrorSystemNotReady);
    struct cuda_fake_config mismatch = {.no_driver = cudaErrorSystemDriverMismatch};
    CHECK_EQ(open_fails(&mismatch, 0, 4, &err), PSTK_ENOTSUP);
    CHECK(strstr(err.message, "restart the machine"));
    struct cuda_fake_config two = {.n_devices = 2};
    CHECK_EQ(open_fails(&two, 2, 4, &err), PSTK_EINVAL);
    CHECK(strstr(err.message, "device_index"));
    CHECK_EQ(open_fails(&two, -1, 4, &err), PSTK_EINVAL);
    struct cuda_fake_config small = {.device_memory = 20000};
    CHECK_EQ(open_fails(&small, 0, 4, &err), PSTK_ENOMEM);
    CHECK(strstr(err.message, "n_device_slots"));
    CHECK(strstr(err.message, "batch_size"));
    CHECK_EQ(err.native, cudaErrorMemoryAllocation);
    struct cuda_fake_config no_pinned = {.no_register = cudaErrorMemoryAllocation,
                                         .no_pinned = cudaErrorMemoryAllocation};
    CHECK_EQ(open_fails(&no_pinned, 0, 4, &err), PSTK_ENOMEM);
    CHECK(strstr(err.message, "page-locked"));
}

/* A device that fails in the middle of things; what next says then. */
static int fails_with(cudaError_t code, struct pstk_error *err)
{
    struct pstk_settings s = base();
    struct pstk_loader *loader;
    struct pstk_batch *b;
    cudaStream_t stream;
    cuda_fake_open(NULL);
    cudaSetDevice(0);
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    if (pstk_open(&loader, &s, NULL) < 0 || pstk_next(loader, &b, stream, LONG, NULL) != 1)
        return 0;
    cuda_fake_poison(0, code);
    pstk_release(&b, stream);
    int r = 0;
    for (int i = 0; i < 10 && r >= 0; i++) {
        r = pstk_next(loader, &b, stream, LONG, err);
        if (r == 1)
            pstk_release(&b, stream);
    }
    const int seen_by_us = cudaStreamSynchronize(stream) == code; /* not swallowed */
    pstk_close(&loader);
    cudaStreamDestroy(stream);
    return cuda_fake_close() == 0 && seen_by_us ? r : 0;
}

TEST(a_fault_of_the_trainers_own_kernel_is_reported_as_that)
{
    struct pstk_error err = error_now();
    CHECK_EQ(fails_with(cudaErrorIllegalAddress, &err), PSTK_EIO);
    CHECK_EQ(err.native, cudaErrorIllegalAddress);
    CHECK(strstr(err.message, "cudaErrorIllegalAddress"));
    CHECK(strstr(err.message, "kernels of its own"));
}

TEST(broken_hardware_is_not_the_programs_fault)
{
    struct pstk_error err = error_now();
    CHECK_EQ(fails_with(cudaErrorECCUncorrectable, &err), PSTK_EIO);
    CHECK(strstr(err.message, "cudaErrorECCUncorrectable"));
    CHECK(!strstr(err.message, "kernels of its own") && strstr(err.message, "hardware"));
}

/* A device-wide wait would break the capture: close knows what to wait for without one. */
TEST(a_release_that_failed_breaks_no_capture_at_close)
{
    struct pstk_settings s = base();
    struct pstk_error err = error_now();
    struct pstk_loader *loader;
    struct pstk_batch *b;
    cudaStream_t stream;
    cuda_fake_open(&(struct cuda_fake_config){.max_delay_us = 2000});
    cudaSetDevice(0);
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
    CHECK_EQ(pstk_next(loader, &b, stream, LONG, NULL), 1);
    struct seen *step = seen_open(b);
    CHECK_EQ(seen_step(step, stream), cudaSuccess);
    cuda_fake_fail("cudaStreamIsCapturing", 1, cudaErrorUnknown);
    pstk_release(&b, stream);
    int r;
    while ((r = pstk_next(loader, &b, stream, LONG, &err)) == 1)
        pstk_release(&b, stream);
    CHECK_EQ(r, PSTK_EIO);
    CHECK_EQ(err.native, cudaErrorUnknown);
    cuda_fake_capture(1);
    pstk_close(&loader);
    cuda_fake_capture(0);
    CHECK_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    seen_free(step);
    cudaStreamDestroy(stream);
    CHECK_EQ(cuda_fake_close(), 0);
}

TEST(a_samples_error_comes_in_order_after_whole_batches)
{
    struct pstk_settings s = base();
    struct pstk_error err = error_now();
    struct pstk_loader *loader;
    struct pstk_batch *b;
    cuda_fake_open(NULL);
    s.order.kind = PSTK_ORDER_SEQUENTIAL;
    s.memory.max_pixels = 600; /* a later sample is larger */
    CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
    int n = 0, r;
    while ((r = pstk_next(loader, &b, NULL, LONG, &err)) == 1 && ++n)
        pstk_release(&b, NULL);
    CHECK_EQ(r, PSTK_EFBIG);
    CHECK(n > 0);
    CHECK_EQ(err.position / 4, n);
    CHECK_EQ(pstk_next(loader, &b, NULL, LONG, &err), PSTK_EFBIG);
    CHECK_EQ(pstk_seek(loader, 0, 0, NULL), 0);
    CHECK_EQ(pstk_next(loader, &b, NULL, LONG, &err), 1);
    pstk_release(&b, NULL);
    pstk_close(&loader);
    CHECK_EQ(cuda_fake_close(), 0);
}

int main(void)
{
    consumer_begin();
    const struct test_case cases[] = {
        CASE(any_failed_call_is_an_error_or_all_batches_are_right),
        CASE(open_says_which_driver_device_or_memory_is_missing),
        CASE(a_fault_of_the_trainers_own_kernel_is_reported_as_that),
        CASE(broken_hardware_is_not_the_programs_fault),
        CASE(a_release_that_failed_breaks_no_capture_at_close),
        CASE(a_samples_error_comes_in_order_after_whole_batches),
    };
    int failed = RUN_CASES(cases);
    consumer_end();
    return failed;
}
