/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_fake/kernels: the launches of cuda/kernels.h where streams are threads of the host. */
#include "cuda/arithmetic.h"
#include "cuda_fake.h"

#include <errno.h>
#include <time.h>

#define N_ACCESSES 4u

static void run_pixels(void *user)
{
    const struct pstk__cuda_pixels *p = user;
    const struct pstk__pixels_kind kind = pstk__pixels_kind(p);
    const uint64_t n_units = pstk__pixels_n_units(p, kind);
    for (uint32_t image = 0; image < p->n_rows; image++)
        for (uint64_t unit = 0; unit < n_units; unit++)
            pstk__pixels_thread(p, p->table, kind, image, unit);
}

cudaError_t pstk__cuda_pixels(const struct pstk__cuda_pixels *p, cudaStream_t stream)
{
    const struct pstk__pixels_kind kind = pstk__pixels_kind(p);
    const uint64_t row = 3 * (uint64_t)p->height * p->width, size = pstk__size_of(p->dtype);
    const uint32_t n_valid = p->n_valid < p->n_rows ? p->n_valid : p->n_rows;
    if (row == 0 || p->n_rows == 0)
        return cudaSuccess;
    const struct cuda_fake_access accesses[N_ACCESSES] = {
        {.pointer = p->out, .size = row * p->n_rows * size, .write = 1},
        {.pointer = n_valid ? p->in : NULL, .size = row * n_valid},
        {.pointer = n_valid ? p->flips : NULL, .size = p->flips ? n_valid : 0},
        {.pointer = kind.exact ? NULL : p->table, .size = kind.exact ? 0 : 3 * 256 * size}};
    const cudaError_t r = cuda_fake_enqueue(stream, run_pixels, p, sizeof *p, accesses, N_ACCESSES);
    if (r != cudaSuccess)
        (void)cudaGetLastError();
    return r;
}

static void run_cast(void *user)
{
    const struct pstk__cuda_cast *c = user;
    const uint32_t run = pstk__cast_run(c->to, c->from);
    for (uint64_t unit = 0; unit * run < c->n; unit++)
        pstk__cast_thread(c, c->to, c->from, run, unit);
}

cudaError_t pstk__cuda_cast(const struct pstk__cuda_cast *c, cudaStream_t stream)
{
    if (c->n == 0)
        return cudaSuccess;
    const struct cuda_fake_access accesses[2] = {
        {.pointer = c->out, .size = c->n * pstk__size_of(c->to), .write = 1},
        {.pointer = c->in, .size = c->n * pstk__size_of(c->from)}};
    const cudaError_t r = cuda_fake_enqueue(stream, run_cast, c, sizeof *c, accesses, 2);
    if (r != cudaSuccess)
        (void)cudaGetLastError();
    return r;
}

static void run_spin(void *user)
{
    const uint64_t ns = *(const uint64_t *)user;
    struct timespec left = {.tv_sec = (time_t)(ns / 1000000000u),
                            .tv_nsec = (long)(ns % 1000000000u)};
    while (nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
}

cudaError_t pstk__cuda_spin(uint64_t ns, cudaStream_t stream)
{
    if (ns == 0)
        return cudaSuccess;
    const cudaError_t r = cuda_fake_enqueue(stream, run_spin, &ns, sizeof ns, NULL, 0);
    if (r != cudaSuccess)
        (void)cudaGetLastError();
    return r;
}
