/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory: allocations of the devices, and host memory that is pinned. A device allocation has pages
 * of its own, with one that nobody may touch behind them, at an address that is never used again.
 */
#include "state.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE 4096u /* x86-64's; also the unit in which the driver pins */
#define FRESH 0xcd

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define UNDER_ASAN
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#define UNDER_ASAN
#endif

#ifdef UNDER_ASAN
void __asan_poison_memory_region(void const volatile *p, size_t size);
void __asan_unpoison_memory_region(void const volatile *p, size_t size);

static void fence(const struct cuda_fake__range *r)
{
    __asan_poison_memory_region(r->begin, r->mapped);
}

static void unfence(const struct cuda_fake__range *r, uint64_t size)
{
    __asan_unpoison_memory_region(r->begin, size);
}
#else
static void fence(const struct cuda_fake__range *r)
{
    (void)r;
}

static void unfence(const struct cuda_fake__range *r, uint64_t size)
{
    (void)r;
    (void)size;
}
#endif

static uint64_t whole_pages(uint64_t size)
{
    return (size + PAGE - 1) / PAGE * PAGE;
}

struct cuda_fake__range *cuda_fake__range_of(const void *p)
{
    const uintptr_t at = (uintptr_t)p;
    for (struct cuda_fake__range *r = cuda_fake__state.ranges; r; r = r->next)
        if (at >= (uintptr_t)r->begin && at - (uintptr_t)r->begin < r->size)
            return r;
    return NULL;
}

void cuda_fake__range_run(struct cuda_fake__range *r, int on)
{
    if (r->device < 0)
        return;
    if (on && r->n_running++ == 0)
        unfence(r, r->size);
    if (!on && --r->n_running == 0)
        fence(r);
}

void cuda_fake__range_free(struct cuda_fake__range *r)
{
    struct cuda_fake__range **link = &cuda_fake__state.ranges;
    while (*link != r)
        link = &(*link)->next;
    *link = r->next;
    while (r->touches) {
        struct cuda_fake__touch *next = r->touches->next;
        free(r->touches);
        r->touches = next;
    }
    if (r->device >= 0) {
        /* A late reader here reads nothing that anybody may map. */
        unfence(r, r->mapped);
        mmap(r->begin, r->mapped, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
        cuda_fake__state.devices[r->device].n_allocated -= r->size;
    } else if (!r->registered) {
        free(r->begin);
    }
    free(r);
}

static struct cuda_fake__range *range_open(void *begin, uint64_t size, int device)
{
    struct cuda_fake__range *r = calloc(1, sizeof *r);
    if (!r)
        abort();
    r->next = cuda_fake__state.ranges;
    r->begin = begin;
    r->size = size;
    r->device = device;
    cuda_fake__state.ranges = r;
    return r;
}

/* May size bytes more be pinned? */
static int pinned_fits(uint64_t size)
{
    uint64_t sum = size;
    for (const struct cuda_fake__range *r = cuda_fake__state.ranges; r; r = r->next)
        sum += r->device < 0 ? r->size : 0;
    return cuda_fake__state.config.pinned_limit == 0 || sum <= cuda_fake__state.config.pinned_limit;
}

cudaError_t cudaMemGetInfo(size_t *free_size, size_t *total)
{
    cudaError_t e = cuda_fake__begin("cudaMemGetInfo", CUDA_FAKE__CONTEXT);
    if (e == cudaSuccess && (!free_size || !total))
        e = cudaErrorInvalidValue;
    if (e == cudaSuccess) {
        *total = (size_t)cuda_fake__state.config.device_memory;
        *free_size = *total - (size_t)cuda_fake__state.devices[cuda_fake__current()].n_allocated;
    }
    return cuda_fake__end(e, 0);
}

static cudaError_t allocate(void **out, uint64_t size)
{
    struct cuda_fake__device *d = &cuda_fake__state.devices[cuda_fake__current()];
    const uint64_t mapped = whole_pages(size);
    *out = NULL;
    if (size > cuda_fake__state.config.device_memory - d->n_allocated ||
        mapped + PAGE > CUDA_FAKE__REGION_SIZE - d->region_used)
        return cudaErrorMemoryAllocation;
    uint8_t *p = d->region + d->region_used;
    if (mprotect(p, mapped, PROT_READ | PROT_WRITE) != 0)
        return cudaErrorMemoryAllocation;
    d->region_used += mapped + PAGE;
    d->n_allocated += size;
    memset(p, FRESH, mapped);
    struct cuda_fake__range *r = range_open(p, size, d->index);
    r->mapped = mapped;
    fence(r);
    *out = p;
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **devPtr, size_t size)
{
    cudaError_t e = cuda_fake__begin("cudaMalloc", CUDA_FAKE__CONTEXT | CUDA_FAKE__UNSAFE);
    if (e == cudaSuccess && !devPtr)
        e = cudaErrorInvalidValue;
    if (e == cudaSuccess && size == 0)
        *devPtr = NULL;
    else if (e == cudaSuccess)
        e = allocate(devPtr, size);
    return cuda_fake__end(e, 0);
}

/* The bytes behind the end, up to the page's: a kernel that wrote there went too far. */
static void check_tail(const struct cuda_fake__range *r)
{
    unfence(r, r->mapped);
    for (uint64_t i = r->size; i < r->mapped; i++) {
        if (r->begin[i] != FRESH) {
            cuda_fake__hazard(CUDA_FAKE_BOUNDS, "byte %llu of an allocation of %llu was written",
                              (unsigned long long)i, (unsigned long long)r->size);
            return;
        }
    }
}

static void wait_idle(const struct cuda_fake__range *r)
{
    while (r->n_pending > 0)
        pthread_cond_wait(&cuda_fake__state.progress, &cuda_fake__state.lock);
}

static void check_over(const struct cuda_fake__range *r, enum cuda_fake_hazard kind,
                       const char *name)
{
    const struct cuda_fake__touch *t =
        cuda_fake__untouched(r, r->begin, r->size, 0, cuda_fake__host_clock());
    if (t)
        cuda_fake__hazard(kind, "%s of %llu bytes, and nobody waited for the %s of %s", name,
                          (unsigned long long)r->size, t->write ? "write" : "read", t->name);
}

/* Waits for the whole device, as CUDA's does, but is no excuse for not having waited before. */
static void release_device(struct cuda_fake__range *r)
{
    check_over(r, CUDA_FAKE_FREE, "cudaFree");
    r->tried = 1; /* while the lock is away below, it is this thread's */
    cuda_fake__device_drain(r->device);
    wait_idle(r);
    check_tail(r);
    cuda_fake__range_free(r);
}

cudaError_t cudaFree(void *devPtr)
{
    cudaError_t e = cuda_fake__begin("cudaFree", CUDA_FAKE__CONTEXT | CUDA_FAKE__UNSAFE);
    struct cuda_fake__range *r = devPtr ? cuda_fake__range_of(devPtr) : NULL;
    if (r && (r->device < 0 || r->begin != devPtr))
        r = NULL;
    if (e == cudaSuccess && devPtr && !r) {
        cuda_fake__hazard(CUDA_FAKE_USE, "cudaFree of what is not allocated");
        e = cudaErrorInvalidValue;
    }
    if (e == cudaSuccess && r)
        release_device(r);
    else if (r)
        r->tried = 1;
    return cuda_fake__end(e, 0);
}

/*
 * Pages are pinned, not bytes: two registrations do not share one. (Whether every driver refuses
 * that is not known; one that does exists, so that code must not rely on it.)
 */
static int overlaps_pinned(const void *p, uint64_t size)
{
    const uintptr_t begin = (uintptr_t)p / PAGE, end = ((uintptr_t)p + size - 1) / PAGE;
    for (const struct cuda_fake__range *r = cuda_fake__state.ranges; r; r = r->next) {
        const uintptr_t b = (uintptr_t)r->begin / PAGE;
        const uintptr_t e = ((uintptr_t)r->begin + r->size - 1) / PAGE;
        if (r->device < 0 && b <= end && begin <= e)
            return 1;
    }
    return 0;
}

cudaError_t cudaHostRegister(void *ptr, size_t size, unsigned int flags)
{
    const struct cuda_fake_config *c = &cuda_fake__state.config;
    cudaError_t e = cuda_fake__begin("cudaHostRegister", CUDA_FAKE__CONTEXT | CUDA_FAKE__UNSAFE);
    if (e == cudaSuccess && (!ptr || size == 0 || flags > 15))
        e = cudaErrorInvalidValue;
    if (e == cudaSuccess)
        e = c->no_register;
    if (e == cudaSuccess && flags & (cudaHostRegisterReadOnly | cudaHostRegisterIoMemory))
        e = cudaErrorNotSupported; /* as cudaDevAttrHostRegisterReadOnlySupported says */
    if (e == cudaSuccess && overlaps_pinned(ptr, size))
        e = cudaErrorHostMemoryAlreadyRegistered;
    if (e == cudaSuccess && !pinned_fits(size))
        e = cudaErrorMemoryAllocation;
    if (e == cudaSuccess)
        range_open(ptr, size, -1)->registered = 1;
    return cuda_fake__end(e, 0);
}

static void release_host(struct cuda_fake__range *r, const char *name)
{
    check_over(r, CUDA_FAKE_HOST_FREE, name);
    r->tried = 1;
    wait_idle(r);
    cuda_fake__range_free(r);
}

static struct cuda_fake__range *pinned_of(const void *p, uint32_t registered)
{
    struct cuda_fake__range *r = cuda_fake__range_of(p);
    return r && r->device < 0 && r->begin == p && r->registered == registered ? r : NULL;
}

cudaError_t cudaHostUnregister(void *ptr)
{
    cudaError_t e = cuda_fake__begin("cudaHostUnregister", CUDA_FAKE__CONTEXT | CUDA_FAKE__UNSAFE);
    struct cuda_fake__range *r = pinned_of(ptr, 1);
    if (e == cudaSuccess && !r) {
        cuda_fake__hazard(CUDA_FAKE_USE, "cudaHostUnregister of what is not registered");
        e = ptr ? cudaErrorHostMemoryNotRegistered : cudaErrorInvalidValue;
    }
    if (e == cudaSuccess)
        release_host(r, "cudaHostUnregister");
    else if (r)
        r->tried = 1;
    return cuda_fake__end(e, 0);
}

cudaError_t cudaHostAlloc(void **pHost, size_t size, unsigned int flags)
{
    const struct cuda_fake_config *c = &cuda_fake__state.config;
    cudaError_t e = cuda_fake__begin("cudaHostAlloc", CUDA_FAKE__CONTEXT | CUDA_FAKE__UNSAFE);
    if (e == cudaSuccess && (!pHost || flags > 7))
        e = cudaErrorInvalidValue;
    if (e == cudaSuccess)
        e = c->no_pinned;
    if (e == cudaSuccess && !pinned_fits(size))
        e = cudaErrorMemoryAllocation;
    if (e == cudaSuccess) {
        *pHost = NULL;
        void *p = NULL;
        if (size > SIZE_MAX / 2 || (size > 0 && posix_memalign(&p, PAGE, whole_pages(size)) != 0))
            e = cudaErrorMemoryAllocation;
        if (p) {
            memset(p, FRESH, size);
            range_open(p, size, -1);
        }
        *pHost = p;
    }
    return cuda_fake__end(e, 0);
}

cudaError_t cudaFreeHost(void *ptr)
{
    cudaError_t e = cuda_fake__begin("cudaFreeHost", CUDA_FAKE__CONTEXT | CUDA_FAKE__UNSAFE);
    struct cuda_fake__range *r = ptr ? pinned_of(ptr, 0) : NULL;
    if (e == cudaSuccess && ptr && !r) {
        cuda_fake__hazard(CUDA_FAKE_USE, "cudaFreeHost of what is not allocated");
        e = cudaErrorInvalidValue;
    }
    if (e == cudaSuccess && r)
        release_host(r, "cudaFreeHost");
    else if (r)
        r->tried = 1;
    return cuda_fake__end(e, 0);
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *ptr)
{
    cudaError_t e = cuda_fake__begin("cudaPointerGetAttributes", CUDA_FAKE__CONTEXT);
    if (e == cudaSuccess && !attributes)
        e = cudaErrorInvalidValue;
    if (e == cudaSuccess) {
        const struct cuda_fake__range *r = cuda_fake__range_of(ptr);
        memset(attributes, 0, sizeof *attributes);
        attributes->type = !r               ? cudaMemoryTypeUnregistered
                           : r->device >= 0 ? cudaMemoryTypeDevice
                                            : cudaMemoryTypeHost;
        attributes->device = !r ? -1 : r->device >= 0 ? r->device : cuda_fake__current();
        union {
            const void *c;
            void *p;
        } pointer = {.c = ptr};
        attributes->devicePointer = r ? pointer.p : NULL;
        attributes->hostPointer = r && r->device >= 0 ? NULL : pointer.p;
    }
    return cuda_fake__end(e, 0);
}

int cuda_fake_read(void *to, const void *device_memory, uint64_t size)
{
    cuda_fake__enter();
    struct cuda_fake__range *r = cuda_fake__range_of(device_memory);
    const uint8_t *from = device_memory;
    const struct cuda_fake__touch *t = NULL;
    int e = -1;
    if (!r || r->device < 0 || size > r->size - (uint64_t)(from - r->begin))
        cuda_fake__hazard(CUDA_FAKE_BOUNDS, "cuda_fake_read of %llu bytes outside of memory",
                          (unsigned long long)size);
    else if ((t = cuda_fake__untouched(r, from, size, 1, cuda_fake__host_clock())) != NULL)
        cuda_fake__hazard(CUDA_FAKE_RACE, "cuda_fake_read, and nobody waited for %s", t->name);
    else
        e = 0;
    if (e == 0) {
        cuda_fake__range_run(r, 1);
        cuda_fake__show();
        memcpy(to, from, size);
        cuda_fake__hide();
        cuda_fake__range_run(r, 0);
    }
    cuda_fake__leave();
    return e;
}
