/* SPDX-License-Identifier: Apache-2.0 */
/* device: devices, their contexts, which of them is current, and the driver's functions for that.
 */
#include "state.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

static struct cuda_fake__device *device_of(int index)
{
    struct cuda_fake__state *f = &cuda_fake__state;
    return index >= 0 && (uint32_t)index < f->config.n_devices ? &f->devices[index] : NULL;
}

void cuda_fake__context(struct cuda_fake__device *d)
{
    if (d->has_context)
        return;
    void *p = mmap(NULL, CUDA_FAKE__REGION_SIZE, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    d->has_context = 1;
    d->region = p == MAP_FAILED ? NULL : p;
    d->region_used = p == MAP_FAILED ? CUDA_FAKE__REGION_SIZE : 0;
}

void cuda_fake__region_free(struct cuda_fake__device *d)
{
    if (d->region)
        munmap(d->region, CUDA_FAKE__REGION_SIZE);
    d->region = NULL;
}

int cuda_fake__is_device(const void *p)
{
    const uintptr_t at = (uintptr_t)p;
    for (int i = 0; i < CUDA_FAKE_DEVICES; i++) {
        const uintptr_t begin = (uintptr_t)cuda_fake__state.devices[i].region;
        if (begin && at >= begin && at - begin < CUDA_FAKE__REGION_SIZE)
            return 1;
    }
    return 0;
}

int cuda_fake__current(void)
{
    const struct cuda_fake__thread *t = cuda_fake__thread();
    return t->n_stack > 0 ? t->stack[t->n_stack - 1] : t->device;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    cudaError_t e = cuda_fake__begin("cudaGetDeviceCount", 0);
    if (e == cudaSuccess && !count)
        e = cudaErrorInvalidValue;
    if (count)
        *count = e == cudaSuccess ? (int)cuda_fake__state.config.n_devices : 0;
    return cuda_fake__end(e, 0);
}

cudaError_t cudaDriverGetVersion(int *driverVersion)
{
    const struct cuda_fake__state *f = &cuda_fake__state;
    cudaError_t e = cuda_fake__begin("cudaDriverGetVersion", CUDA_FAKE__BARE);
    if (e == cudaSuccess && !driverVersion)
        e = cudaErrorInvalidValue;
    if (e == cudaSuccess) { /* 0: there is none */
        const int has = f->config.no_driver != cudaErrorInsufficientDriver ||
                        f->config.driver_version < f->config.runtime_version;
        *driverVersion = f->open && has ? f->config.driver_version : 0;
    }
    return cuda_fake__end(e, 0);
}

cudaError_t cudaRuntimeGetVersion(int *runtimeVersion)
{
    const struct cuda_fake__state *f = &cuda_fake__state;
    cudaError_t e = cuda_fake__begin("cudaRuntimeGetVersion", CUDA_FAKE__BARE);
    if (e == cudaSuccess && !runtimeVersion)
        e = cudaErrorInvalidValue;
    if (e == cudaSuccess)
        *runtimeVersion = f->open ? f->config.runtime_version : CUDART_VERSION;
    return cuda_fake__end(e, 0);
}

/* Since CUDA 12 this makes the context at once. */
cudaError_t cudaSetDevice(int device)
{
    cudaError_t e = cuda_fake__begin("cudaSetDevice", 0);
    struct cuda_fake__device *d = device_of(device);
    if (e == cudaSuccess && !d)
        e = cudaErrorInvalidDevice;
    if (e == cudaSuccess) {
        struct cuda_fake__thread *t = cuda_fake__thread();
        cuda_fake__context(d);
        t->device = device;
        t->n_stack += t->n_stack == 0;
        t->stack[t->n_stack - 1] = device;
        e = d->poison;
    }
    return cuda_fake__end(e, 0);
}

cudaError_t cudaGetDevice(int *device)
{
    cudaError_t e = cuda_fake__begin("cudaGetDevice", 0);
    if (e == cudaSuccess && !device)
        e = cudaErrorInvalidValue;
    if (e == cudaSuccess)
        *device = cuda_fake__current();
    return cuda_fake__end(e, 0);
}

/* Devices 0, 1, ... are 0000:10:00.0, 0000:11:00.0, ... */
cudaError_t cudaDeviceGetPCIBusId(char *pciBusId, int len, int device)
{
    cudaError_t e = cuda_fake__begin("cudaDeviceGetPCIBusId", 0);
    if (e == cudaSuccess && !device_of(device))
        e = cudaErrorInvalidDevice;
    if (e == cudaSuccess && (!pciBusId || len < 13))
        e = cudaErrorInvalidValue;
    if (e == cudaSuccess)
        snprintf(pciBusId, (size_t)len, "0000:%02X:00.0", 0x10 + device);
    else if (pciBusId && len > 0)
        snprintf(pciBusId, (size_t)len, "0000:"); /* a failure may leave anything */
    return cuda_fake__end(e, 0);
}

static int attribute(enum cudaDeviceAttr attr, int device, int *value)
{
    switch ((int)attr) {
    case cudaDevAttrMaxThreadsPerBlock:
        return *value = 1024, 0;
    case cudaDevAttrWarpSize:
        return *value = 32, 0;
    case cudaDevAttrMultiProcessorCount:
        return *value = 132, 0;
    case cudaDevAttrPciBusId:
        return *value = 0x10 + device, 0;
    case cudaDevAttrAsyncEngineCount:
        return *value = 3, 0;
    case cudaDevAttrComputeCapabilityMajor:
        return *value = cuda_fake__state.config.arch / 10, 0;
    case cudaDevAttrComputeCapabilityMinor:
        return *value = cuda_fake__state.config.arch % 10, 0;
    case cudaDevAttrHostNumaId:
        return *value = -1, 0;
    case cudaDevAttrCanMapHostMemory:
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrStreamPrioritiesSupported:
    case cudaDevAttrCanUseHostPointerForRegisteredMem:
    case cudaDevAttrHostRegisterSupported:
        return *value = 1, 0;
    case cudaDevAttrIntegrated:
    case cudaDevAttrComputeMode:
    case cudaDevAttrPciDeviceId:
    case cudaDevAttrPciDomainId:
    case cudaDevAttrPageableMemoryAccess:
    case cudaDevAttrPageableMemoryAccessUsesHostPageTables:
    case cudaDevAttrHostRegisterReadOnlySupported:
        return *value = 0, 0;
    default:
        return -1;
    }
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attr, int device)
{
    cudaError_t e = cuda_fake__begin("cudaDeviceGetAttribute", 0);
    if (e == cudaSuccess && !device_of(device))
        e = cudaErrorInvalidDevice;
    if (e == cudaSuccess && (!value || attribute(attr, device, value) != 0))
        e = cudaErrorInvalidValue;
    return cuda_fake__end(e, 0);
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device)
{
    cudaError_t e = cuda_fake__begin("cudaGetDeviceProperties", 0);
    if (e == cudaSuccess && !device_of(device))
        e = cudaErrorInvalidDevice;
    if (e == cudaSuccess && !prop)
        e = cudaErrorInvalidValue;
    if (e == cudaSuccess) {
        memset(prop, 0, sizeof *prop);
        snprintf(prop->name, sizeof prop->name, "Fake GPU %d", device);
        prop->totalGlobalMem = (size_t)cuda_fake__state.config.device_memory;
        prop->warpSize = 32;
        prop->major = 9;
        prop->multiProcessorCount = 132;
        prop->pciBusID = 0x10 + device;
        prop->asyncEngineCount = 3;
        prop->unifiedAddressing = 1;
        prop->hostRegisterSupported = 1;
    }
    return cuda_fake__end(e, 0);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *leastPriority, int *greatestPriority)
{
    cudaError_t e = cuda_fake__begin("cudaDeviceGetStreamPriorityRange", CUDA_FAKE__CONTEXT);
    if (e == cudaSuccess && leastPriority)
        *leastPriority = 0;
    if (e == cudaSuccess && greatestPriority)
        *greatestPriority = -5;
    return cuda_fake__end(e, 0);
}

void cuda_fake_poison(int device, cudaError_t code)
{
    cuda_fake__enter();
    struct cuda_fake__device *d = device_of(device);
    if (d)
        d->poison = code;
    cuda_fake__leave();
}

/* ---- the driver. A context is its device's address; results are those of the runtime. ---- */

static int driver_begin(const char *name)
{
    return (int)cuda_fake__begin(name, 0);
}

static int driver_end(int result)
{
    return (int)cuda_fake__end((cudaError_t)result, CUDA_FAKE__DRIVER);
}

static struct cuda_fake__device *device_of_context(const void *context)
{
    struct cuda_fake__state *f = &cuda_fake__state;
    for (uint32_t i = 0; i < f->config.n_devices; i++)
        if (context == &f->devices[i] && f->devices[i].has_context)
            return &f->devices[i];
    return NULL;
}

static int driver_init(unsigned flags)
{
    (void)flags;
    return driver_end(driver_begin("cuInit"));
}

static int driver_push(void *context)
{
    int e = driver_begin("cuCtxPushCurrent");
    struct cuda_fake__thread *t = cuda_fake__thread();
    const struct cuda_fake__device *d = device_of_context(context);
    if (e == 0 && (!d || t->n_stack == CUDA_FAKE__STACK))
        e = cudaErrorDeviceUninitialized; /* CUDA_ERROR_INVALID_CONTEXT */
    if (e == 0)
        t->stack[t->n_stack++] = d->index;
    return driver_end(e);
}

static int driver_pop(void **context)
{
    int e = driver_begin("cuCtxPopCurrent");
    struct cuda_fake__thread *t = cuda_fake__thread();
    if (e == 0 && t->n_stack == 0)
        e = cudaErrorDeviceUninitialized;
    if (e == 0) {
        t->n_stack--;
        if (context)
            *context = &cuda_fake__state.devices[t->stack[t->n_stack]];
    }
    return driver_end(e);
}

static int driver_get(void **context)
{
    int e = driver_begin("cuCtxGetCurrent");
    const struct cuda_fake__thread *t = cuda_fake__thread();
    if (e == 0 && !context)
        e = cudaErrorInvalidValue;
    if (e == 0)
        *context = t->n_stack > 0 ? &cuda_fake__state.devices[t->stack[t->n_stack - 1]] : NULL;
    return driver_end(e);
}

static int driver_set(void *context)
{
    int e = driver_begin("cuCtxSetCurrent");
    struct cuda_fake__thread *t = cuda_fake__thread();
    const struct cuda_fake__device *d = device_of_context(context);
    if (e == 0 && context && !d)
        e = cudaErrorDeviceUninitialized;
    if (e == 0 && !context) {
        t->n_stack -= t->n_stack > 0;
    } else if (e == 0) {
        t->n_stack += t->n_stack == 0;
        t->stack[t->n_stack - 1] = d->index;
    }
    return driver_end(e);
}

static int context_device(int *device, const void *context)
{
    int e = driver_begin("cuCtxGetDevice");
    const struct cuda_fake__thread *t = cuda_fake__thread();
    const struct cuda_fake__device *d = device_of_context(context);
    if (e == 0 && (context ? !d : t->n_stack == 0))
        e = cudaErrorDeviceUninitialized;
    if (e == 0 && !device)
        e = cudaErrorInvalidValue;
    if (e == 0)
        *device = d ? d->index : cuda_fake__current();
    return driver_end(e);
}

static int driver_device(int *device)
{
    return context_device(device, NULL);
}

static int driver_device_v13(int *device, void *context)
{
    return context_device(device, context);
}

static int driver_retain(void **context, int device)
{
    int e = driver_begin("cuDevicePrimaryCtxRetain");
    struct cuda_fake__device *d = device_of(device);
    if (e == 0 && !d)
        e = cudaErrorInvalidDevice;
    if (e == 0 && !context)
        e = cudaErrorInvalidValue;
    if (e == 0) {
        cuda_fake__context(d);
        *context = d;
    }
    return driver_end(e);
}

/* The runtime holds the primary context as well, so that it stays. */
static int driver_let_go(int device)
{
    int e = driver_begin("cuDevicePrimaryCtxRelease");
    if (e == 0 && !device_of(device))
        e = cudaErrorInvalidDevice;
    return driver_end(e);
}

static int driver_state(int device, unsigned *flags, int *active)
{
    int e = driver_begin("cuDevicePrimaryCtxGetState");
    const struct cuda_fake__device *d = device_of(device);
    if (e == 0 && !d)
        e = cudaErrorInvalidDevice;
    if (e == 0 && flags)
        *flags = 0;
    if (e == 0 && active)
        *active = (int)d->has_context;
    return driver_end(e);
}

static int driver_stream_context(cudaStream_t stream, void **context)
{
    int e = driver_begin("cuStreamGetCtx");
    const int is_default = !stream || stream == cudaStreamLegacy || stream == cudaStreamPerThread;
    const struct cuda_fake__thread *t = cuda_fake__thread();
    if (e == 0 && is_default && t->n_stack == 0)
        e = cudaErrorDeviceUninitialized;
    const struct CUstream_st *s = e == 0 && !is_default ? cuda_fake__stream(stream) : NULL;
    if (e == 0 && !is_default && !s)
        e = cudaErrorInvalidResourceHandle;
    if (e == 0 && !context)
        e = cudaErrorInvalidValue;
    if (e == 0)
        *context = &cuda_fake__state.devices[s ? s->device : cuda_fake__current()];
    return driver_end(e);
}

typedef void (*function)(void);

/* In descending versions of a name: the first that is not too new is the one. */
static const struct {
    const char *name;
    int version;
    function f;
} entries[] = {
    {"cuInit", 2000, (function)driver_init},
    {"cuCtxPushCurrent", 4000, (function)driver_push},
    {"cuCtxPopCurrent", 4000, (function)driver_pop},
    {"cuCtxGetCurrent", 4000, (function)driver_get},
    {"cuCtxSetCurrent", 4000, (function)driver_set},
    {"cuCtxGetDevice", 13000, (function)driver_device_v13},
    {"cuCtxGetDevice", 2000, (function)driver_device},
    {"cuDevicePrimaryCtxRetain", 7000, (function)driver_retain},
    {"cuDevicePrimaryCtxRelease", 11000, (function)driver_let_go},
    {"cuDevicePrimaryCtxGetState", 7000, (function)driver_state},
    {"cuStreamGetCtx", 9020, (function)driver_stream_context},
    {"cuModuleLoadData", 2000, (function)cuda_fake__module_load},
    {"cuModuleUnload", 2000, (function)cuda_fake__module_unload},
    {"cuModuleGetFunction", 2000, (function)cuda_fake__module_function},
    {"cuLaunchKernel", 4000, (function)cuda_fake__module_launch},
};

static cudaError_t entry_point(const char *name, const char *symbol, void **to, int version,
                               enum cudaDriverEntryPointQueryResult *status)
{
    cudaError_t e = cuda_fake__begin(name, 0);
    if (e == cudaSuccess && (!symbol || !to))
        e = cudaErrorInvalidValue;
    if (e != cudaSuccess)
        return cuda_fake__end(e, 0);
    if (version == 0)
        version = cuda_fake__state.config.runtime_version;
    if (version > cuda_fake__state.config.driver_version)
        version = cuda_fake__state.config.driver_version;
    enum cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
    *to = NULL;
    for (size_t i = 0; i < sizeof entries / sizeof *entries && !*to; i++) {
        if (strcmp(entries[i].name, symbol) != 0)
            continue;
        result = cudaDriverEntryPointVersionNotSufficent;
        if (entries[i].version <= version) {
            memcpy(to, &entries[i].f, sizeof *to);
            result = cudaDriverEntryPointSuccess;
        }
    }
    if (status)
        *status = result;
    return cuda_fake__end(cudaSuccess, 0);
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **funcPtr,
                                             unsigned int cudaVersion, unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult *driverStatus)
{
    (void)flags;
    return entry_point("cudaGetDriverEntryPointByVersion", symbol, funcPtr, (int)cudaVersion,
                       driverStatus);
}

cudaError_t cudaGetDriverEntryPoint(const char *symbol, void **funcPtr, unsigned long long flags,
                                    enum cudaDriverEntryPointQueryResult *driverStatus)
{
    (void)flags;
    return entry_point("cudaGetDriverEntryPoint", symbol, funcPtr, 0, driverStatus);
}
