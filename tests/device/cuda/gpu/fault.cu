/* SPDX-License-Identifier: Apache-2.0 */
#include "fault.h"

static __global__ void fault(int *nowhere)
{
    *nowhere = 1;
}

cudaError_t fault_launch(cudaStream_t stream)
{
    fault<<<1, 1, 0, stream>>>((int *)64); /* the first pages are nobody's */
    return cudaGetLastError();
}
