/* SPDX-License-Identifier: Apache-2.0 */
/* cuda/kernels: chooses the kernel and its number of blocks. */
#include "device/cuda/kernels.h"

#include "device/cuda/arithmetic.h"
#include "device/cuda/kernel_list.h"

#define MAX_GRID_Y 65535u /* blocks: a limit of CUDA */
/* Units that a thread takes one after another when its first steps are large compared with one
 * unit: the copy of a table of up to 4 KiB, or the sums for a unit smaller than 48 bytes. */
#define TURNS 4u

#define PIXELS_NUMBER(channels, dtype, layout, exact, run)                                         \
    NUMBER_##channels##_##dtype##_##layout##_##exact##_##run,
#define CAST_NUMBER(to, from) NUMBER_##to##_##from,
enum {
    PSTK__PIXELS_KERNELS(PIXELS_NUMBER) PSTK__CAST_KERNELS(CAST_NUMBER) NUMBER_CAST_ANY,
    NUMBER_SPIN,
    N_NUMBERS
};
_Static_assert(N_NUMBERS == PSTK__CUDA_KERNELS, "a module has room for every kernel");

#define NAME_OF(name) #name
#define TEXT(name) NAME_OF(name)
#define PIXELS_NAME(channels, dtype, layout, exact, run)                                           \
    TEXT(PSTK__PIXELS_KERNEL(channels, dtype, layout, exact, run)),
#define CAST_NAME(to, from) TEXT(PSTK__CAST_KERNEL(to, from)),
static const char *const names[PSTK__CUDA_KERNELS] = {
    PSTK__PIXELS_KERNELS(PIXELS_NAME) PSTK__CAST_KERNELS(CAST_NAME) "pstk_cast_any", "pstk_spin"};

cudaError_t pstk__cuda_kernels_open(struct pstk__cuda_module *module, int32_t index)
{
    return pstk__cuda_module_open(module, index, names);
}

struct grid {
    uint32_t x, y;  /* blocks */
    uint32_t block; /* threads */
};

/* Launch a kernel. argument: the kernel's one parameter; copied. */
static cudaError_t launch(const struct pstk__cuda_module *module, uint32_t number, struct grid grid,
                          const void *argument, cudaStream_t stream)
{
    void *arguments[] = {(void *)(uintptr_t)argument}; /* the driver only reads it, by its manual */
    return (cudaError_t)module->launch(module->functions[number], grid.x, grid.y, 1, grid.block, 1,
                                       1, 0, stream, arguments, NULL);
}

static uint32_t blocks_of(uint64_t n_threads)
{
    return (uint32_t)((n_threads + PSTK__CUDA_BLOCK - 1) / PSTK__CUDA_BLOCK);
}

static uint32_t pixels_number(struct pstk__pixels_kind kind)
{
#define PIXELS_CASE(c, d, l, e, r)                                                                 \
    if (kind.channels == (c) && kind.dtype == PSTK_##d && kind.layout == PSTK_##l &&               \
        kind.exact == (e) && kind.run == (r))                                                      \
        return NUMBER_##c##_##d##_##l##_##e##_##r;
    PSTK__PIXELS_KERNELS(PIXELS_CASE)
#undef PIXELS_CASE
    return PSTK__CUDA_KERNELS;
}

static uint32_t cast_number(uint32_t to, uint32_t from)
{
    if (pstk__cast_run(to, from) == 1)
        return NUMBER_CAST_ANY;
#define CAST_CASE(t, f)                                                                            \
    if (to == PSTK_##t && from == PSTK_##f)                                                        \
        return NUMBER_##t##_##f;
    PSTK__CAST_KERNELS(CAST_CASE)
#undef CAST_CASE
    return PSTK__CUDA_KERNELS;
}

/* Sides are below 2^16: an image has less than 2^34 units, and the grid fits. */
cudaError_t pstk__cuda_pixels(const struct pstk__cuda_module *module,
                              const struct pstk__cuda_pixels *pixels, cudaStream_t stream)
{
    const struct pstk__pixels_kind kind = pstk__pixels_kind(pixels);
    const uint64_t n_units = pstk__pixels_n_units(pixels, kind);
    const uint32_t number = pixels_number(kind);
    if (number == PSTK__CUDA_KERNELS)
        return cudaErrorInvalidValue;
    if (n_units == 0 || pixels->n_rows == 0)
        return cudaSuccess;
    const uint32_t turns = kind.exact && kind.run > 1 && kind.layout == PSTK_NCHW ? 1 : TURNS;
    const struct grid grid = {.x = blocks_of((n_units + turns - 1) / turns),
                              .y = pixels->n_rows < MAX_GRID_Y ? pixels->n_rows : MAX_GRID_Y,
                              .block = PSTK__CUDA_BLOCK};
    return launch(module, number, grid, pixels, stream);
}

/* 2^31 - 1 blocks are more elements than any device has memory for. */
cudaError_t pstk__cuda_cast(const struct pstk__cuda_module *module,
                            const struct pstk__cuda_cast *cast, cudaStream_t stream)
{
    const uint32_t run = pstk__cast_run(cast->to, cast->from),
                   number = cast_number(cast->to, cast->from);
    if (cast->n == 0)
        return cudaSuccess;
    if (number == PSTK__CUDA_KERNELS)
        return cudaErrorInvalidValue;
    const struct grid grid = {
        .x = blocks_of((cast->n + run - 1) / run), .y = 1, .block = PSTK__CUDA_BLOCK};
    return launch(module, number, grid, cast, stream);
}

cudaError_t pstk__cuda_spin(const struct pstk__cuda_module *module, uint64_t ns,
                            cudaStream_t stream)
{
    const struct grid one = {.x = 1, .y = 1, .block = 1};
    return ns == 0 ? cudaSuccess : launch(module, NUMBER_SPIN, one, &ns, stream);
}
