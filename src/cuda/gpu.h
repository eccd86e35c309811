/* SPDX-License-Identifier: Apache-2.0 */
/* cuda/gpu: a GPU behind the device table. Absent from a build, its entry says so when asked. */
#ifndef PSTK_CUDA_GPU_H
#define PSTK_CUDA_GPU_H

struct pstk__device_ops;

extern const struct pstk__device_ops pstk__cuda_ops;

#endif
