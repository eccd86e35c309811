/* SPDX-License-Identifier: Apache-2.0 */
/* cuda/kernels: launches of what cuda/arithmetic.h says. */
#include "arithmetic.h"

static constexpr uint32_t BLOCK = 256;        /* threads */
static constexpr uint32_t MAX_GRID_Y = 65535; /* blocks: a limit of CUDA */
/* Units that a thread takes one after another where the work before the first is much beside one:
 * the copy of a table of up to 3 KiB, or the sums for a unit smaller than 48 bytes. */
static constexpr uint32_t TURNS = 4;

template <uint32_t dtype, uint32_t layout, uint32_t exact, uint32_t run>
static __global__ void __launch_bounds__(BLOCK)
    pixels(const __grid_constant__ struct pstk__cuda_pixels p)
{
    const struct pstk__pixels_kind kind = {dtype, layout, exact, run};
    const uint64_t n_units = pstk__pixels_n_units(&p, kind), step = (uint64_t)gridDim.x * BLOCK;
    const void *table = nullptr;
    if constexpr (!exact) {
        constexpr uint32_t n_words = 3 * 256 * (dtype == PSTK_F32 ? 4 : 2) / 4;
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

/* from = 0: dtypes that no kernel of its own is for; all threads take the same branches. */
template <uint32_t to, uint32_t from>
static __global__ void __launch_bounds__(BLOCK)
    cast(const __grid_constant__ struct pstk__cuda_cast c)
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

/* The clock moves in steps of up to a microsecond. */
static __device__ uint64_t now_ns()
{
    uint64_t ns;
    asm __volatile__("mov.u64 %0, %globaltimer;" : "=l"(ns));
    return ns;
}

static __global__ void spin(uint64_t ns)
{
    const uint64_t begin = now_ns();
    while (now_ns() - begin < ns) {
    }
}

/* ---- launches ------------------------------------------------------------------------------- */

static uint32_t blocks_of(uint64_t n_threads)
{
    return (uint32_t)((n_threads + BLOCK - 1) / BLOCK);
}

/* The launch's own result: the last error may be of a call before it, and stays as it was. */
template <typename argument>
static cudaError_t launch(void (*kernel)(argument), dim3 grid, uint32_t block, argument a,
                          cudaStream_t stream)
{
    void *arguments[] = {&a};
    const cudaError_t r =
        cudaLaunchKernel((const void *)kernel, grid, dim3(block), arguments, 0, stream);
    if (r != cudaSuccess)
        (void)cudaGetLastError();
    return r;
}

using pixels_kernel = void (*)(struct pstk__cuda_pixels);

template <uint32_t dtype, uint32_t exact> pixels_kernel pixels_of(struct pstk__pixels_kind kind)
{
    constexpr uint32_t full = dtype == PSTK_F32 ? 4 : 8;
    if (kind.layout == PSTK_NCHW)
        return kind.run == 1 ? pixels<dtype, PSTK_NCHW, exact, 1>
                             : pixels<dtype, PSTK_NCHW, exact, full>;
    return kind.run == 1 ? pixels<dtype, PSTK_NHWC, exact, 1>
                         : pixels<dtype, PSTK_NHWC, exact, full>;
}

static pixels_kernel pixels_of(struct pstk__pixels_kind kind)
{
    if (kind.dtype == PSTK_F32)
        return pixels_of<PSTK_F32, 0>(kind);
    if (!kind.exact)
        return pixels_of<PSTK_F16, 0>(kind);
    return kind.dtype == PSTK_F16 ? pixels_of<PSTK_F16, 1>(kind) : pixels_of<PSTK_BF16, 1>(kind);
}

using cast_kernel = void (*)(struct pstk__cuda_cast);

static cast_kernel cast_of(uint32_t to, uint32_t from)
{
    if (pstk__cast_run(to, from) == 1)
        return cast<0, 0>;
    if (to == PSTK_I32)
        return cast<PSTK_I32, PSTK_U16>;
    return from == PSTK_U8    ? cast<PSTK_I64, PSTK_U8>
           : from == PSTK_U16 ? cast<PSTK_I64, PSTK_U16>
                              : cast<PSTK_I64, PSTK_I32>;
}

/* Sides are below 2^16: an image has less than 2^34 units, and the grid fits. */
cudaError_t pstk__cuda_pixels(const struct pstk__cuda_pixels *p, cudaStream_t stream)
{
    const struct pstk__pixels_kind kind = pstk__pixels_kind(p);
    const uint64_t n_units = pstk__pixels_n_units(p, kind);
    if (n_units == 0 || p->n_rows == 0)
        return cudaSuccess;
    const uint32_t turns = kind.exact && kind.run > 1 && kind.layout == PSTK_NCHW ? 1 : TURNS;
    const dim3 grid(blocks_of((n_units + turns - 1) / turns),
                    p->n_rows < MAX_GRID_Y ? p->n_rows : MAX_GRID_Y);
    return launch(pixels_of(kind), grid, BLOCK, *p, stream);
}

/* 2^31 - 1 blocks are more elements than any device has memory for. */
cudaError_t pstk__cuda_cast(const struct pstk__cuda_cast *c, cudaStream_t stream)
{
    const uint32_t run = pstk__cast_run(c->to, c->from);
    if (c->n == 0)
        return cudaSuccess;
    return launch(cast_of(c->to, c->from), dim3(blocks_of((c->n + run - 1) / run)), BLOCK, *c,
                  stream);
}

cudaError_t pstk__cuda_spin(uint64_t ns, cudaStream_t stream)
{
    return ns == 0 ? cudaSuccess : launch(spin, dim3(1), 1, ns, stream);
}
