/* SPDX-License-Identifier: Apache-2.0 */
#include "support/cuda_fake_fixture.h"

/* ---- contexts ---- */

static void *on_a_fresh_thread(void *arg)
{
    void (*const *f)(void) = arg;
    (*f)();
    return NULL;
}

/* Return a bit for each device with a context after f ran on a new thread. */
static uint32_t contexts_after(void (*f)(void))
{
    pthread_t t;
    open_plain();
    pthread_create(&t, NULL, on_a_fresh_thread, &f);
    pthread_join(t, NULL);
    const struct cuda_fake_stats s = stats();
    cuda_fake_reset();
    cuda_fake_close();
    return s.devices[0].has_context | s.devices[1].has_context << 1;
}

static void only_ask(void)
{
    int n;
    char id[16];
    void *f;
    struct cudaDeviceProp p;
    cudaGetDeviceCount(&n);
    cudaGetDevice(&n);
    cudaDriverGetVersion(&n);
    cudaRuntimeGetVersion(&n);
    cudaDeviceGetPCIBusId(id, sizeof id, 1);
    cudaDeviceGetAttribute(&n, cudaDevAttrPciBusId, 1);
    cudaGetDeviceProperties(&p, 1);
    cudaGetErrorName(cudaGetLastError());
    cudaGetDriverEntryPointByVersion("cuInit", &f, 12000, cudaEnableDefault, NULL);
}

static void set_one(void)
{
    cudaSetDevice(1);
}

static void exchange(void)
{
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    cudaThreadExchangeStreamCaptureMode(&mode);
}

static void set_one_and_work(void)
{
    cudaSetDevice(1);
    exchange();
    cudaFree(NULL);
    cudaEventDestroy(event_open());
    cudaStreamDestroy(stream_open());
}

static void query_a_default_stream(void)
{
    cudaStreamQuery(NULL);
}

TEST(contexts_appear_where_cuda_makes_them)
{
    CHECK_EQ(contexts_after(only_ask), 0);
    CHECK_EQ(contexts_after(set_one), 2);
    CHECK_EQ(contexts_after(exchange), 1);
    CHECK_EQ(contexts_after(set_one_and_work), 2);
    CHECK_EQ(contexts_after(query_a_default_stream), 1);
}

static void *entry(const char *symbol, unsigned version)
{
    void *f = NULL;
    cudaGetDriverEntryPointByVersion(symbol, &f, version, cudaEnableDefault, NULL);
    return f;
}

TEST(a_pushed_context_is_the_current_device_until_it_is_popped)
{
    open_plain();
    int (*push)(void *), (*pop)(void **), (*get)(void **), (*retain)(void **, int), d = -1;
    int (*of)(cudaStream_t, void **);
    *(void **)&push = entry("cuCtxPushCurrent", 12000);
    *(void **)&pop = entry("cuCtxPopCurrent", 12000);
    *(void **)&get = entry("cuCtxGetCurrent", 12000);
    *(void **)&retain = entry("cuDevicePrimaryCtxRetain", 12000);
    *(void **)&of = entry("cuStreamGetCtx", 12000);
    void *one = NULL, *now = &d;
    CHECK(push && pop && get && retain && of);
    CHECK_EQ(get(&now), 0);
    CHECK(now == NULL);
    CHECK_EQ(push(NULL), 201);
    CHECK_EQ(pop(&now), 201);
    CHECK_EQ(retain(&one, 1), 0);
    CHECK_EQ(push(one), 0);
    CHECK_EQ(cudaGetDevice(&d), cudaSuccess);
    CHECK_EQ(d, 1);
    const cudaStream_t s = stream_open();
    CHECK_EQ(stats().devices[1].n_streams, 1);
    CHECK_EQ(pop(&now), 0);
    CHECK(now == one);
    CHECK_EQ(cudaGetDevice(&d), cudaSuccess);
    CHECK_EQ(d, 0);
    CHECK_EQ(stats().devices[0].has_context, 0); /* nothing ran there by accident */
    CHECK_EQ(of(s, &now), 0);
    CHECK(now == one);
    CHECK_EQ(cudaPeekAtLastError(), cudaSuccess); /* the driver leaves it alone */
    CHECK_EQ(cudaStreamDestroy(s), cudaSuccess);  /* this did run on device 0 */
    CHECK_EQ(stats().devices[0].has_context, 1);
    CHECK_EQ(cuda_fake_close(), 0);
}

TEST(driver_functions_come_in_versions)
{
    enum cudaDriverEntryPointQueryResult r;
    void *f = &r;
    cuda_fake_open(&(struct cuda_fake_config){.driver_version = 12040});
    CHECK_EQ(cudaGetDriverEntryPoint("cuNoSuchThing", &f, 0, &r), cudaSuccess);
    CHECK(f == NULL);
    CHECK_EQ(r, cudaDriverEntryPointSymbolNotFound);
    CHECK_EQ(cudaGetDriverEntryPointByVersion("cuStreamGetCtx", &f, 9000, 0, &r), cudaSuccess);
    CHECK(f == NULL);
    CHECK_EQ(r, cudaDriverEntryPointVersionNotSufficent);
    CHECK(entry("cuCtxGetDevice", 12000) != NULL);
    CHECK(entry("cuCtxGetDevice", 13000) == entry("cuCtxGetDevice", 12000)); /* an old driver */
    cuda_fake_close();
    open_plain();
    CHECK(entry("cuCtxGetDevice", 13000) != entry("cuCtxGetDevice", 12000));
    CHECK_EQ(cuda_fake_close(), 0);
}

TEST(devices_are_told_apart_by_bus_and_number)
{
    char id[16];
    int n = -1;
    open_plain();
    CHECK_EQ(cudaGetDeviceCount(&n), cudaSuccess);
    CHECK_EQ(n, 2);
    CHECK_EQ(cudaDeviceGetPCIBusId(id, sizeof id, 1), cudaSuccess);
    CHECK_STR(id, "0000:11:00.0");
    CHECK_EQ(cudaDeviceGetPCIBusId(id, 12, 1), cudaErrorInvalidValue);
    CHECK_EQ(cudaSetDevice(2), cudaErrorInvalidDevice);
    CHECK_EQ(cudaDeviceGetAttribute(&n, cudaDevAttrPciBusId, 1), cudaSuccess);
    CHECK_EQ(n, 0x11);
    CHECK_EQ(cuda_fake_close(), 0);
}

/* ---- errors ---- */

static void *peek_elsewhere(void *arg)
{
    *(cudaError_t *)arg = cudaPeekAtLastError();
    return NULL;
}

TEST(the_last_error_is_the_threads_and_stays_until_it_is_got)
{
    open_plain();
    cudaError_t other = cudaErrorUnknown;
    pthread_t t;
    CHECK_EQ(cudaSetDevice(9), cudaErrorInvalidDevice);
    CHECK_EQ(cudaSetDevice(0), cudaSuccess);
    pthread_create(&t, NULL, peek_elsewhere, &other);
    pthread_join(t, NULL);
    CHECK_EQ(other, cudaSuccess);
    CHECK_EQ(cudaPeekAtLastError(), cudaErrorInvalidDevice);
    CHECK_EQ(cudaGetLastError(), cudaErrorInvalidDevice);
    CHECK_EQ(cudaPeekAtLastError(), cudaSuccess);
    CHECK_STR(cudaGetErrorName(cudaErrorInvalidDevice), "cudaErrorInvalidDevice");
    CHECK_STR(cudaGetErrorString(cudaSuccess), "no error");
    CHECK_EQ(cuda_fake_close(), 0);
}

TEST(every_error_has_its_name)
{
    CHECK_STR(cudaGetErrorName(cudaErrorIllegalAddress), "cudaErrorIllegalAddress");
    CHECK_STR(cudaGetErrorName(cudaErrorNotReady), "cudaErrorNotReady");
    CHECK_STR(cudaGetErrorName((cudaError_t)12345), "unrecognized error code");
}

TEST(a_poisoned_device_answers_everything_with_its_error_and_runs_nothing)
{
    open_plain();
    uint32_t n = 0, list[2];
    const struct append a = {&n, list, 0};
    const cudaStream_t s = stream_open();
    const cudaEvent_t e = event_open();
    uint8_t *d = device_open(SIZE), *h = pinned_open(SIZE);
    cuda_fake_hold(s);
    cuda_fake_enqueue(s, append, &a, sizeof a, NULL, 0);
    cudaEventRecord(e, s);
    cuda_fake_poison(0, cudaErrorIllegalAddress);
    cuda_fake_let(s);
    CHECK_EQ(cudaEventSynchronize(e), cudaErrorIllegalAddress);
    CHECK_EQ(cudaEventQuery(e), cudaErrorIllegalAddress);
    CHECK_EQ(cudaStreamSynchronize(s), cudaErrorIllegalAddress);
    CHECK_EQ(copy_in(d, h, SIZE, s), cudaErrorIllegalAddress);
    CHECK_EQ(cudaGetLastError(), cudaErrorIllegalAddress);
    CHECK_EQ(cudaGetLastError(), cudaErrorIllegalAddress); /* it cannot be cleared */
    CHECK_EQ(cudaFree(d), cudaErrorIllegalAddress);
    CHECK_EQ(cudaFreeHost(h), cudaErrorIllegalAddress);
    CHECK_EQ(cudaEventDestroy(e), cudaErrorIllegalAddress);
    CHECK_EQ(stats().n_streams, 1);
    CHECK_EQ(cudaStreamDestroy(s), cudaErrorIllegalAddress);
    CHECK_EQ(cudaSetDevice(0), cudaErrorIllegalAddress);
    CHECK_EQ(cudaSetDevice(1), cudaSuccess); /* the other one is well */
    cudaEventDestroy(event_open());
    CHECK_EQ(cuda_fake_close(), 0); /* all was given back */
    CHECK_EQ(n, 0);
}

TEST(the_nth_call_fails_once_and_does_nothing)
{
    open_plain();
    void *p = NULL;
    cuda_fake_fail("cudaMalloc", 2, cudaErrorMemoryAllocation);
    uint8_t *d = device_open(1);
    const cudaEvent_t e = event_open();
    CHECK_EQ(cudaMalloc(&p, 1), cudaErrorMemoryAllocation);
    CHECK(p == NULL);
    CHECK_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
    CHECK_EQ(stats().n_allocations, 1);
    CHECK_EQ(cudaMalloc(&p, 1), cudaSuccess);
    cuda_fake_fail(NULL, 2, cudaErrorUnknown);
    CHECK_EQ(cudaFree(p), cudaSuccess);
    CHECK_EQ(cudaFree(d), cudaErrorUnknown);
    CHECK_EQ(stats().n_injected, 2);
    CHECK_EQ(stats().n_allocations, 0); /* it is still there, but not for want of trying */
    cuda_fake_fail("cudaLaunchKernel", 1, cudaErrorLaunchOutOfResources);
    CHECK_EQ(cuda_fake_enqueue(NULL, append, &d, sizeof d, NULL, 0), cudaErrorLaunchOutOfResources);
    CHECK_EQ(stats().n_kernels, 0);
    cuda_fake_fail("cudaEventDestroy", 1, cudaErrorUnknown);
    cuda_fake_fail_none();
    CHECK_EQ(cudaEventDestroy(e), cudaSuccess);
    CHECK_EQ(cuda_fake_close(), 0);
}

TEST(calls_are_counted_by_name_and_in_all)
{
    open_plain();
    const char *names[8];
    cudaFree(device_open(1));
    cudaFree(NULL);
    CHECK_EQ(cuda_fake_calls("cudaMalloc"), 1);
    CHECK_EQ(cuda_fake_calls("cudaFree"), 2);
    CHECK_EQ(cuda_fake_calls("cudaHostAlloc"), 0);
    CHECK_EQ(cuda_fake_calls(NULL), 3);
    CHECK_EQ(cuda_fake_functions(names, 8), 2);
    CHECK_STR(names[0], "cudaMalloc");
    CHECK_STR(names[1], "cudaFree");
    cuda_fake_reset();
    CHECK_EQ(cuda_fake_calls(NULL), 0);
    CHECK_EQ(cuda_fake_functions(names, 8), 0);
    CHECK_EQ(cuda_fake_close(), 0);
}

/* ---- capture ---- */

static uint32_t unsafe_that_fail(uint8_t *d, cudaStream_t s, cudaEvent_t e)
{
    uint32_t n = 0;
    void *p = NULL;
    uint8_t h;
    const cudaError_t no = cudaErrorStreamCaptureUnsupported;
    n += cudaEventQuery(e) == no;
    n += cudaEventSynchronize(e) == no;
    n += cudaStreamQuery(s) == no;
    n += cudaStreamSynchronize(s) == no;
    n += cudaDeviceSynchronize() == no;
    n += cudaMalloc(&p, 1) == no;
    n += cudaFree(p) == no;
    n += cudaHostAlloc(&p, 1, 0) == no;
    n += cudaFreeHost(p) == no;
    n += cudaHostRegister(&h, 1, 0) == no;
    n += cudaHostUnregister(&h) == no;
    n += copy_in(d, &h, 1, s) == (int)no; /* pageable */
    return n;
}

TEST(unsafe_calls_break_a_capture_unless_the_threads_mode_permits_them)
{
    const struct {
        int what;
        enum cudaStreamCaptureMode mode;
        uint32_t n;
    } cases[] = {
        {0, cudaStreamCaptureModeGlobal, 0},      {1, cudaStreamCaptureModeGlobal, 12},
        {1, cudaStreamCaptureModeThreadLocal, 1}, {1, cudaStreamCaptureModeRelaxed, 1},
        {2, cudaStreamCaptureModeGlobal, 12},     {2, cudaStreamCaptureModeThreadLocal, 12},
        {2, cudaStreamCaptureModeRelaxed, 1}}; /* 1: cudaDeviceSynchronize, which none permits */
    for (uint32_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        open_plain();
        const cudaStream_t s = stream_open();
        const cudaEvent_t e = event_open();
        uint8_t *d = device_open(1);
        enum cudaStreamCaptureMode mode = cases[i].mode;
        CHECK_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
        CHECK_EQ(mode, cudaStreamCaptureModeGlobal);
        cuda_fake_capture(cases[i].what);
        CHECK_EQ(unsafe_that_fail(d, s, e), cases[i].n);
        CHECK_EQ(cudaEventRecord(e, s), cudaSuccess); /* these are never unsafe */
        CHECK_EQ(cudaStreamWaitEvent(s, e, 0), cudaSuccess);
        CHECK_EQ(cudaMemsetAsync(d, 0, 1, s), cudaSuccess);
        cuda_fake_capture(0);
        CHECK(close_with(CUDA_FAKE_CAPTURE, cases[i].n));
    }
}

static void *capture_own(void *arg)
{
    (void)arg;
    cuda_fake_capture(2);
    return NULL;
}

TEST(a_thread_local_capture_is_nobody_elses_business)
{
    open_plain();
    pthread_t t;
    cudaFree(NULL);
    pthread_create(&t, NULL, capture_own, NULL);
    pthread_join(t, NULL);
    uint8_t *d = device_open(1);
    CHECK(d);
    CHECK_EQ(cudaFree(d), cudaSuccess);
    CHECK_EQ(cuda_fake_close(), 0);
}

TEST(nothing_may_touch_a_captured_stream_whatever_the_mode)
{
    for (unsigned flags = 0; flags < 2; flags++) { /* a blocking stream, and one that is not */
        enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
        enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
        const cudaError_t no = cudaErrorStreamCaptureUnsupported,
                          implicit = flags ? cudaSuccess : cudaErrorStreamCaptureImplicit;
        cudaStream_t s, other;
        open_plain();
        CHECK_EQ(cudaStreamCreateWithFlags(&s, flags), cudaSuccess);
        CHECK_EQ(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking), cudaSuccess);
        const cudaEvent_t e = event_open();
        CHECK_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
        cuda_fake_capture_stream(s);
        CHECK_EQ(cudaStreamIsCapturing(s, &status), cudaSuccess);
        CHECK_EQ(status, cudaStreamCaptureStatusActive);
        CHECK_EQ(cudaStreamIsCapturing(other, &status), cudaSuccess);
        CHECK_EQ(status, cudaStreamCaptureStatusNone);
        CHECK_EQ(cudaStreamIsCapturing(NULL, &status), implicit);
        CHECK_EQ(cudaEventRecord(e, other), cudaSuccess);
        CHECK_EQ(cudaStreamSynchronize(other), cudaSuccess);
        CHECK_EQ(hazards(CUDA_FAKE_CAPTURE), 0);
        CHECK_EQ(cudaStreamSynchronize(s), no);
        CHECK_EQ(cudaStreamQuery(s), no);
        CHECK_EQ(cudaDeviceSynchronize(), no);
        CHECK_EQ(cudaEventRecord(e, s), cudaSuccess); /* it would be of the graph */
        CHECK_EQ(hazards(CUDA_FAKE_CAPTURE), 4);
        CHECK_EQ(cudaStreamSynchronize(NULL), implicit);
        CHECK_EQ(cudaEventRecord(e, NULL), cudaSuccess);
        CHECK(close_with(CUDA_FAKE_CAPTURE, flags ? 4 : 6));
    }
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(contexts_appear_where_cuda_makes_them),
        CASE(a_pushed_context_is_the_current_device_until_it_is_popped),
        CASE(driver_functions_come_in_versions),
        CASE(devices_are_told_apart_by_bus_and_number),
        CASE(the_last_error_is_the_threads_and_stays_until_it_is_got),
        CASE(every_error_has_its_name),
        CASE(a_poisoned_device_answers_everything_with_its_error_and_runs_nothing),
        CASE(the_nth_call_fails_once_and_does_nothing),
        CASE(calls_are_counted_by_name_and_in_all),
        CASE(unsafe_calls_break_a_capture_unless_the_threads_mode_permits_them),
        CASE(a_thread_local_capture_is_nobody_elses_business),
        CASE(nothing_may_touch_a_captured_stream_whatever_the_mode),
    };
    return RUN_CASES(cases);
}
