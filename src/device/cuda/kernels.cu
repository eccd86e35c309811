/* SPDX-License-Identifier: Apache-2.0 */
/* cuda/kernels: runs cuda/arithmetic.h on the device. Only device code, for nvcc and NVRTC.
 * cuda/kernels.c launches it. */
#include "device/cuda/arithmetic.h"
#include "device/cuda/kernel_list.h"

static constexpr uint32_t BLOCK = PSTK__CUDA_BLOCK;

template <uint32_t channels, uint32_t dtype, uint32_t layout, uint32_t exact, uint32_t run>
static __device__ __forceinline__ void pixels(const struct pstk__cuda_pixels &p)
{
    const struct pstk__pixels_kind kind = {channels, dtype, layout, exact, run};
    const uint64_t n_units = pstk__pixels_n_units(&p, kind), step = (uint64_t)gridDim.x * BLOCK;
    const void *table = nullptr;
    if constexpr (!exact) {
        constexpr uint32_t n_words = channels * 256 * (dtype == PSTK_F32 ? 4 : 2) / 4;
        __shared__ uint32_t copy[n_words];
        for (uint32_t i = threadIdx.x; i < n_words; i += BLOCK)
            copy[i] = ((const uint32_t *)p.table)[i];
        __syncthreads();
        table = copy;
    }
    for (uint32_t image = blockIdx.y; image < p.n_rows; image += gridDim.y)
        for (uint64_t unit = (uint64_t)blockIdx.x * BLOCK + threadIdx.x; unit < n_units;
             unit += step)
            pstk__pixels_thread(&p, table, kind, image, unit);
}

/* from = 0: the dtypes are arguments, for casts without a kernel of their own; all threads take the
 * same branches. */
template <uint32_t to, uint32_t from>
static __device__ __forceinline__ void cast(const struct pstk__cuda_cast &c)
{
    const uint64_t unit = (uint64_t)blockIdx.x * BLOCK + threadIdx.x;
    if constexpr (from == 0) {
        if (unit < c.n)
            pstk__cast_thread(&c, c.to, c.from, 1, unit);
    } else {
        constexpr uint32_t run = 16 / (to == PSTK_I64 ? 8 : 4);
        if (unit * run < c.n)
            pstk__cast_thread(&c, to, from, run, unit);
    }
}

/* Return the time. The clock moves in steps of up to a microsecond. */
static __device__ uint64_t now_ns()
{
    uint64_t ns;
    asm __volatile__("mov.u64 %0, %globaltimer;" : "=l"(ns));
    return ns;
}

#define KERNEL extern "C" __global__ void __launch_bounds__(BLOCK)

#define PIXELS(channels, dtype, layout, exact, run)                                                \
    KERNEL PSTK__PIXELS_KERNEL(channels, dtype, layout, exact,                                     \
                               run)(const __grid_constant__ struct pstk__cuda_pixels p)            \
    {                                                                                              \
        pixels<channels, PSTK_##dtype, PSTK_##layout, exact, run>(p);                              \
    }
PSTK__PIXELS_KERNELS(PIXELS)

#define CAST(to, from)                                                                             \
    KERNEL PSTK__CAST_KERNEL(to, from)(const __grid_constant__ struct pstk__cuda_cast c)           \
    {                                                                                              \
        cast<PSTK_##to, PSTK_##from>(c);                                                           \
    }
PSTK__CAST_KERNELS(CAST)

KERNEL pstk_cast_any(const __grid_constant__ struct pstk__cuda_cast c)
{
    cast<0, 0>(c);
}

KERNEL pstk_spin(uint64_t ns)
{
    const uint64_t begin = now_ns();
    while (now_ns() - begin < ns) {
    }
}
