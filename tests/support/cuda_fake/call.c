/* SPDX-License-Identifier: Apache-2.0 */
/* call: what happens at the beginning and at the end of every function, whichever it is. */
#include "state.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct cuda_fake__state cuda_fake__state = {.lock = PTHREAD_MUTEX_INITIALIZER,
                                            .progress = PTHREAD_COND_INITIALIZER};

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define UNDER_TSAN
#endif
#endif
#ifdef __SANITIZE_THREAD__
#define UNDER_TSAN
#endif

#ifdef UNDER_TSAN
void AnnotateIgnoreSyncBegin(const char *file, int line);
void AnnotateIgnoreSyncEnd(const char *file, int line);
void AnnotateIgnoreReadsBegin(const char *file, int line);
void AnnotateIgnoreReadsEnd(const char *file, int line);
void AnnotateIgnoreWritesBegin(const char *file, int line);
void AnnotateIgnoreWritesEnd(const char *file, int line);
void __tsan_acquire(void *address);
void __tsan_release(void *address);

void cuda_fake__hide(void)
{
    AnnotateIgnoreSyncBegin(__FILE__, __LINE__);
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
}

void cuda_fake__show(void)
{
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
    AnnotateIgnoreSyncEnd(__FILE__, __LINE__);
}

void cuda_fake__release(void *order)
{
    cuda_fake__show();
    __tsan_release(order);
    cuda_fake__hide();
}

void cuda_fake__acquire(void *order)
{
    cuda_fake__show();
    __tsan_acquire(order);
    cuda_fake__hide();
}
#else
void cuda_fake__hide(void)
{
}

void cuda_fake__show(void)
{
}

void cuda_fake__release(void *order)
{
    (void)order;
}

void cuda_fake__acquire(void *order)
{
    (void)order;
}
#endif

void cuda_fake__enter(void)
{
    cuda_fake__hide();
    pthread_mutex_lock(&cuda_fake__state.lock);
}

void cuda_fake__leave(void)
{
    pthread_mutex_unlock(&cuda_fake__state.lock);
    cuda_fake__show();
}

struct cuda_fake__thread *cuda_fake__thread(void)
{
    static __thread struct cuda_fake__thread thread;
    if (thread.generation != cuda_fake__state.generation) {
        memset(&thread, 0, sizeof thread);
        thread.generation = cuda_fake__state.generation;
    }
    return &thread;
}

void cuda_fake__hazard(enum cuda_fake_hazard kind, const char *format, ...)
{
    struct cuda_fake_stats *c = &cuda_fake__state.counts;
    if (c->n_hazards < CUDA_FAKE_TEXTS) {
        va_list args;
        va_start(args, format);
        vsnprintf(c->texts[c->n_hazards], CUDA_FAKE_TEXT_SIZE, format, args);
        va_end(args);
    }
    c->n_hazards++;
    c->hazards[kind]++;
}

static void count(const char *name)
{
    struct cuda_fake__state *f = &cuda_fake__state;
    uint32_t i = 0;
    while (i < f->n_functions && strcmp(f->functions[i].name, name) != 0)
        i++;
    if (i == f->n_functions && i < CUDA_FAKE__FUNCTIONS) {
        f->functions[i].name = name;
        f->functions[i].n = 0;
        f->n_functions++;
    }
    if (i < CUDA_FAKE__FUNCTIONS)
        f->functions[i].n++;
    f->counts.n_calls++;
}

/* Return the error that cuda_fake_fail wants of this call. Every order counts the call. */
static cudaError_t injected(const char *name)
{
    struct cuda_fake__state *f = &cuda_fake__state;
    cudaError_t code = cudaSuccess;
    for (int i = 0; i < CUDA_FAKE__ORDERS; i++) {
        struct cuda_fake__order *o = &f->orders[i];
        if (o->left == 0 || (o->function && strcmp(o->function, name) != 0))
            continue;
        if (--o->left == 0 && code == cudaSuccess)
            code = o->code;
    }
    f->counts.n_injected += code != cudaSuccess;
    return code;
}

cudaError_t cuda_fake__unsafe(const char *name)
{
    const struct cuda_fake__state *f = &cuda_fake__state;
    const struct cuda_fake__thread *t = cuda_fake__thread();
    const int forbidden = f->capture == 1 ? t->mode == cudaStreamCaptureModeGlobal
                          : f->capture == 2
                              ? f->capturing == t && t->mode != cudaStreamCaptureModeRelaxed
                              : 0;
    if (!forbidden)
        return cudaSuccess;
    cuda_fake__hazard(CUDA_FAKE_CAPTURE, "%s during a capture", name);
    return cudaErrorStreamCaptureUnsupported;
}

/* A thread without a context gets that of its device. */
static cudaError_t need_context(void)
{
    struct cuda_fake__thread *t = cuda_fake__thread();
    if (t->n_stack == 0)
        t->stack[t->n_stack++] = t->device;
    struct cuda_fake__device *d = &cuda_fake__state.devices[cuda_fake__current()];
    cuda_fake__context(d);
    return d->poison;
}

cudaError_t cuda_fake__begin(const char *name, uint32_t flags)
{
    const struct cuda_fake__state *f = &cuda_fake__state;
    cuda_fake__enter();
    count(name);
    cudaError_t e = injected(name);
    if (e != cudaSuccess || flags & CUDA_FAKE__BARE)
        return e;
    if (!f->open)
        return cudaErrorInsufficientDriver;
    if (f->config.no_driver != cudaSuccess)
        return f->config.no_driver;
    if (flags & CUDA_FAKE__CONTEXT)
        e = need_context();
    if (e == cudaSuccess && flags & CUDA_FAKE__UNSAFE)
        e = cuda_fake__unsafe(name);
    return e;
}

/*
 * cudaErrorNotReady is no error to CUDA: cudaGetLastError does not tell it (CUDA C++ Programming
 * Guide, "Error Checking").
 */
cudaError_t cuda_fake__end(cudaError_t error, uint32_t flags)
{
    if (error != cudaSuccess && error != cudaErrorNotReady && !(flags & CUDA_FAKE__DRIVER))
        cuda_fake__thread()->last = error;
    cuda_fake__leave();
    return error;
}

/* A poisoned context's error cannot be cleared. */
static cudaError_t last_error(int clear)
{
    cuda_fake__enter();
    struct cuda_fake__thread *t = cuda_fake__thread();
    const struct cuda_fake__device *d = &cuda_fake__state.devices[cuda_fake__current()];
    cudaError_t e = t->last;
    if (e == cudaSuccess && t->n_stack > 0)
        e = d->poison;
    if (clear)
        t->last = cudaSuccess;
    cuda_fake__leave();
    return e;
}

cudaError_t cudaGetLastError(void)
{
    return last_error(1);
}

cudaError_t cudaPeekAtLastError(void)
{
    return last_error(0);
}

struct error_text {
    cudaError_t code;
    const char *name, *text;
};

#define ERROR(code, text)                                                                          \
    {                                                                                              \
        code, #code, text                                                                          \
    }

static const struct error_text errors[] = {
    ERROR(cudaSuccess, "no error"),
    ERROR(cudaErrorInvalidValue, "invalid argument"),
    ERROR(cudaErrorMemoryAllocation, "out of memory"),
    ERROR(cudaErrorInitializationError, "initialization error"),
    ERROR(cudaErrorCudartUnloading, "driver shutting down"),
    ERROR(cudaErrorInvalidConfiguration, "invalid configuration argument"),
    ERROR(cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy"),
    ERROR(cudaErrorInsufficientDriver, "CUDA driver version is insufficient for CUDA runtime "
                                       "version"),
    ERROR(cudaErrorInvalidDeviceFunction, "invalid device function"),
    ERROR(cudaErrorNoDevice, "no CUDA-capable device is detected"),
    ERROR(cudaErrorInvalidDevice, "invalid device ordinal"),
    ERROR(cudaErrorDeviceUninitialized, "invalid device context"),
    ERROR(cudaErrorNoKernelImageForDevice, "no kernel image is available for execution on the "
                                           "device"),
    ERROR(cudaErrorECCUncorrectable, "uncorrectable ECC error encountered"),
    ERROR(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    ERROR(cudaErrorSymbolNotFound, "named symbol not found"),
    ERROR(cudaErrorNotReady, "device not ready"),
    ERROR(cudaErrorIllegalAddress, "an illegal memory access was encountered"),
    ERROR(cudaErrorLaunchTimeout, "the launch timed out and was terminated"),
    ERROR(cudaErrorAssert, "device-side assert triggered"),
    ERROR(cudaErrorHostMemoryAlreadyRegistered, "part or all of the requested memory range is "
                                                "already mapped"),
    ERROR(cudaErrorHostMemoryNotRegistered, "pointer does not correspond to a registered memory "
                                            "region"),
    ERROR(cudaErrorMisalignedAddress, "misaligned address"),
    ERROR(cudaErrorLaunchFailure, "unspecified launch failure"),
    ERROR(cudaErrorNotPermitted, "operation not permitted"),
    ERROR(cudaErrorNotSupported, "operation not supported"),
    ERROR(cudaErrorSystemNotReady, "system not yet initialized"),
    ERROR(cudaErrorSystemDriverMismatch, "system has unsupported display driver / cuda driver "
                                         "combination"),
    ERROR(cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing"),
    ERROR(cudaErrorUnknown, "unknown error"),
};

static const struct error_text *error_of(cudaError_t error)
{
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].code == error)
            return &errors[i];
    return NULL;
}

const char *cudaGetErrorName(cudaError_t error)
{
    const struct error_text *e = error_of(error);
    return e ? e->name : "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t error)
{
    const struct error_text *e = error_of(error);
    return e ? e->text : "unrecognized error code";
}

/* It makes a context, which surprises: https://github.com/pytorch/pytorch/pull/148594 */
cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
    cudaError_t e = cuda_fake__begin("cudaThreadExchangeStreamCaptureMode", CUDA_FAKE__CONTEXT);
    if (e == cudaSuccess && (!mode || (unsigned)*mode > cudaStreamCaptureModeRelaxed))
        e = cudaErrorInvalidValue;
    if (e == cudaSuccess) {
        struct cuda_fake__thread *t = cuda_fake__thread();
        const enum cudaStreamCaptureMode old = t->mode;
        t->mode = *mode;
        *mode = old;
    }
    return cuda_fake__end(e, 0);
}

void cuda_fake_capture_stream(cudaStream_t stream)
{
    cuda_fake__enter();
    cuda_fake__state.captured = stream;
    cuda_fake__leave();
}

void cuda_fake_capture(int what)
{
    cuda_fake__enter();
    cuda_fake__state.capture = what;
    cuda_fake__state.capturing = cuda_fake__thread();
    cuda_fake__leave();
}

void cuda_fake_fail(const char *function, uint64_t nth, cudaError_t code)
{
    struct cuda_fake__state *f = &cuda_fake__state;
    cuda_fake__enter();
    for (int i = 0; i < CUDA_FAKE__ORDERS; i++) {
        if (f->orders[i].left == 0) {
            f->orders[i] = (struct cuda_fake__order){function, nth, code};
            break;
        }
    }
    cuda_fake__leave();
}

void cuda_fake_fail_none(void)
{
    cuda_fake__enter();
    memset(cuda_fake__state.orders, 0, sizeof cuda_fake__state.orders);
    cuda_fake__leave();
}

uint64_t cuda_fake_calls(const char *function)
{
    const struct cuda_fake__state *f = &cuda_fake__state;
    cuda_fake__enter();
    uint64_t n = function ? 0 : f->counts.n_calls;
    for (uint32_t i = 0; function && i < f->n_functions; i++)
        if (strcmp(f->functions[i].name, function) == 0)
            n = f->functions[i].n;
    cuda_fake__leave();
    return n;
}

uint32_t cuda_fake_functions(const char **names, uint32_t capacity)
{
    const struct cuda_fake__state *f = &cuda_fake__state;
    cuda_fake__enter();
    const uint32_t n = f->n_functions;
    for (uint32_t i = 0; i < n && i < capacity; i++)
        names[i] = f->functions[i].name;
    cuda_fake__leave();
    return n;
}
