/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda/kernels: launches the kernels that finish an output once its rows have arrived. Memory,
 * order and events are the caller's. cuda/arithmetic.h has the arithmetic for each element; the
 * host compiles it as well, and its results are the CPU kernels', bit for bit.
 */
#ifndef PSTK_CUDA_KERNELS_H
#define PSTK_CUDA_KERNELS_H

#include "device/cuda/argument.h"
#include "device/cuda/module.h"

/* Load the kernels into device `index`, whose context is current. Call pstk__cuda_module_close also
 * after a failure. */
cudaError_t pstk__cuda_kernels_open(struct pstk__cuda_module *module, int32_t index);
cudaError_t pstk__cuda_pixels(const struct pstk__cuda_module *module,
                              const struct pstk__cuda_pixels *pixels, cudaStream_t stream);
cudaError_t pstk__cuda_cast(const struct pstk__cuda_module *module,
                            const struct pstk__cuda_cast *cast, cudaStream_t stream);
/* Keep one multiprocessor, and so the stream, busy for ns nanoseconds, to simulate a training step.
 */
cudaError_t pstk__cuda_spin(const struct pstk__cuda_module *module, uint64_t ns,
                            cudaStream_t stream);

#endif
