/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_fake/kernels: the driver's modules, whose kernels run where streams are threads of the host.
 * A launch that would leave out a part of the work is a hazard. */
#include "device/cuda/arithmetic.h"
#include "device/cuda/kernel_list.h"
#include "state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define N_ACCESSES 4u

/* One launch, as cuLaunchKernel is given it. */
struct launch {
    const struct kernel *kernel;
    uint64_t n_threads; /* along x */
    cudaStream_t stream;
    const void *argument;
};

struct kernel {
    const char *name;
    cudaError_t (*launch)(const struct launch *);
    struct pstk__pixels_kind pixels;
    uint32_t to, from; /* casts; 0: any */
};

static cudaError_t wrong(const struct kernel *k)
{
    cuda_fake__enter();
    cuda_fake__hazard(CUDA_FAKE_USE, "a launch of %s that does not fit it", k->name);
    cuda_fake__leave();
    return cudaErrorInvalidValue;
}

static void run_pixels(void *user)
{
    const struct pstk__cuda_pixels *p = user;
    const struct pstk__pixels_kind kind = pstk__pixels_kind(p);
    const uint64_t n_units = pstk__pixels_n_units(p, kind);
    for (uint32_t image = 0; image < p->n_rows; image++)
        for (uint64_t unit = 0; unit < n_units; unit++)
            pstk__pixels_thread(p, p->table, kind, image, unit);
}

/* Threads go on to further units and images: any number of them does all. */
static cudaError_t launch_pixels(const struct launch *l)
{
    const struct pstk__cuda_pixels *p = l->argument;
    const struct pstk__pixels_kind kind = pstk__pixels_kind(p), *of = &l->kernel->pixels;
    const uint64_t row = p->channels * (uint64_t)p->height * p->width,
                   size = pstk__size_of(p->dtype);
    const uint32_t n_valid = p->n_valid < p->n_rows ? p->n_valid : p->n_rows;
    if (kind.channels != of->channels || kind.dtype != of->dtype || kind.layout != of->layout ||
        kind.exact != of->exact || kind.run != of->run)
        return wrong(l->kernel);
    const struct cuda_fake_access accesses[N_ACCESSES] = {
        {.pointer = p->out, .size = row * p->n_rows * size, .write = 1},
        {.pointer = n_valid ? p->in : NULL, .size = row * n_valid},
        {.pointer = n_valid ? p->flips : NULL, .size = p->flips ? n_valid : 0},
        {.pointer = kind.exact ? NULL : p->table,
         .size = kind.exact ? 0 : 256 * p->channels * size}};
    return cuda_fake_enqueue(l->stream, run_pixels, p, sizeof *p, accesses, N_ACCESSES);
}

static void run_cast(void *user)
{
    const struct pstk__cuda_cast *c = user;
    const uint32_t run = pstk__cast_run(c->to, c->from);
    for (uint64_t unit = 0; unit * run < c->n; unit++)
        pstk__cast_thread(c, c->to, c->from, run, unit);
}

static cudaError_t launch_cast(const struct launch *l)
{
    const struct pstk__cuda_cast *c = l->argument;
    const uint32_t run = pstk__cast_run(c->to, c->from);
    const int is_its =
        run == 1 ? l->kernel->from == 0 : l->kernel->to == c->to && l->kernel->from == c->from;
    if (!is_its || l->n_threads * run < c->n)
        return wrong(l->kernel);
    const struct cuda_fake_access accesses[2] = {
        {.pointer = c->out, .size = c->n * pstk__size_of(c->to), .write = 1},
        {.pointer = c->in, .size = c->n * pstk__size_of(c->from)}};
    return cuda_fake_enqueue(l->stream, run_cast, c, sizeof *c, accesses, 2);
}

static void run_spin(void *user)
{
    const uint64_t ns = *(const uint64_t *)user;
    struct timespec left = {.tv_sec = (time_t)(ns / 1000000000u),
                            .tv_nsec = (long)(ns % 1000000000u)};
    if (cuda_fake__state.config.clock_by_hand) {
        cuda_fake_pass(ns);
        return;
    }
    while (nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
}

static cudaError_t launch_spin(const struct launch *l)
{
    return cuda_fake_enqueue(l->stream, run_spin, l->argument, sizeof(uint64_t), NULL, 0);
}

/* ---- modules --------------------------------------------------------------------------------- */

#define NAME_OF(name) #name
#define TEXT(name) NAME_OF(name)
#define PIXELS(c, d, l, e, r)                                                                      \
    {.name = TEXT(PSTK__PIXELS_KERNEL(c, d, l, e, r)),                                             \
     .launch = launch_pixels,                                                                      \
     .pixels = {c, PSTK_##d, PSTK_##l, e, r}},
#define CAST(t, f)                                                                                 \
    {.name = TEXT(PSTK__CAST_KERNEL(t, f)),                                                        \
     .launch = launch_cast,                                                                        \
     .to = PSTK_##t,                                                                               \
     .from = PSTK_##f},

static const struct kernel kernels[] = {PSTK__PIXELS_KERNELS(PIXELS) PSTK__CAST_KERNELS(CAST){
                                            .name = "pstk_cast_any", .launch = launch_cast},
                                        {.name = "pstk_spin", .launch = launch_spin}};
#define N_KERNELS (sizeof kernels / sizeof *kernels)

/* A CUmodule. Its functions are the addresses in `functions`, each of which points back. */
struct cuda_fake__module {
    struct cuda_fake__module *next;
    int device;
    const struct cuda_fake__module *functions[N_KERNELS];
};

/* An image is text: "cubin sm_80" or "ptx sm_90". */
static int is_for(const char *image, int arch)
{
    int of = 0;
    if (sscanf(image, "ptx sm_%d", &of) == 1)
        return of <= arch;
    return sscanf(image, "cubin sm_%d", &of) == 1 && of / 10 == arch / 10 && of <= arch;
}

int cuda_fake__module_load(void **out, const void *image)
{
    int e = (int)cuda_fake__begin("cuModuleLoadData", CUDA_FAKE__CONTEXT);
    if (e == 0 && !is_for(image, cuda_fake__state.config.arch))
        e = cudaErrorNoKernelImageForDevice;
    if (e == 0) {
        struct cuda_fake__module *m = calloc(1, sizeof *m);
        if (!m)
            abort();
        m->device = cuda_fake__current();
        for (size_t i = 0; i < N_KERNELS; i++)
            m->functions[i] = m;
        m->next = cuda_fake__state.modules;
        cuda_fake__state.modules = m;
        cuda_fake__state.n_modules++;
        *out = m;
    }
    return (int)cuda_fake__end((cudaError_t)e, CUDA_FAKE__DRIVER);
}

/* Code goes from the device. Whether the driver waits for what runs it is not documented. */
int cuda_fake__module_unload(void *module)
{
    int e = (int)cuda_fake__begin("cuModuleUnload", CUDA_FAKE__CONTEXT);
    const struct cuda_fake__module *m = module;
    cuda_fake__state.n_modules--;
    if (e == 0 && m->device != cuda_fake__current())
        e = cudaErrorInvalidResourceHandle;
    if (e == 0) {
        struct cuda_fake__module **at = &cuda_fake__state.modules;
        if (cuda_fake__is_running(m))
            cuda_fake__hazard(CUDA_FAKE_USE, "cuModuleUnload while a kernel of the module runs");
        cuda_fake__device_drain(m->device);
        while (*at != m)
            at = &(*at)->next;
        *at = m->next;
        free(module);
    }
    return (int)cuda_fake__end((cudaError_t)e, CUDA_FAKE__DRIVER);
}

void cuda_fake__modules_free(void)
{
    struct cuda_fake__state *f = &cuda_fake__state;
    while (f->modules) {
        struct cuda_fake__module *m = f->modules;
        f->modules = m->next;
        free(m);
    }
    f->n_modules = 0;
}

int cuda_fake__module_function(void **out, void *module, const char *name)
{
    int e = (int)cuda_fake__begin("cuModuleGetFunction", CUDA_FAKE__CONTEXT);
    struct cuda_fake__module *m = module;
    *out = NULL;
    for (size_t i = 0; i < N_KERNELS && e == 0; i++)
        if (strcmp(kernels[i].name, name) == 0)
            *out = &m->functions[i];
    if (e == 0 && !*out)
        e = cudaErrorSymbolNotFound;
    return (int)cuda_fake__end((cudaError_t)e, CUDA_FAKE__DRIVER);
}

/* Launches report their error, and leave the runtime's last one alone. */
int cuda_fake__module_launch(void *function, unsigned int grid_x, unsigned int grid_y,
                             unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                             unsigned int block_z, unsigned int shared, cudaStream_t stream,
                             void **arguments, void **extra)
{
    const struct cuda_fake__module *const *f = function;
    const struct kernel *k = &kernels[f - (*f)->functions];
    const struct launch l = {.kernel = k,
                             .n_threads = (uint64_t)grid_x * block_x,
                             .stream = stream,
                             .argument = arguments[0]};
    if (grid_x == 0 || grid_y == 0 || grid_y > 65535 || grid_z != 1 || block_y != 1 ||
        block_z != 1 || shared != 0 || extra || (*f)->device != cuda_fake__current() ||
        block_x != (k->launch == launch_spin ? 1u : PSTK__CUDA_BLOCK))
        return (int)wrong(k);
    const int was_clean = cudaPeekAtLastError() == cudaSuccess;
    struct cuda_fake__thread *thread = cuda_fake__thread();
    thread->launching = *f;
    const cudaError_t e = k->launch(&l);
    thread->launching = NULL;
    if (e != cudaSuccess && was_clean)
        (void)cudaGetLastError();
    return (int)e;
}
