/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda/kernels: what the device does to an output once its rows are there. Launches only: memory,
 * order and events are the caller's. The arithmetic, element by element, is in cuda/arithmetic.h,
 * which the host compiles as well: what it gives is what the CPU's kernels give, bit for bit.
 */
#ifndef PSTK_CUDA_KERNELS_H
#define PSTK_CUDA_KERNELS_H

#include "device/cuda/argument.h"
#include "device/cuda/module.h"

/* Load the kernels into device `index`, whose context is current; pstk__cuda_module_close, also
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
