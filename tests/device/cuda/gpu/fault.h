/* SPDX-License-Identifier: Apache-2.0 */
/* fault: a trainer's kernel with an error in it, which ends its process's use of the GPU. */
#ifndef PSTK_TEST_FAULT_H
#define PSTK_TEST_FAULT_H

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Queue a kernel that writes where no memory is; returns what its launch says. */
cudaError_t fault_launch(cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
