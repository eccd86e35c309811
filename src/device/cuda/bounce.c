/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cuda/bounce.h"

#include <string.h>

cudaError_t pstk__bounce_open(struct pstk__bounce *bounce)
{
    *bounce = (struct pstk__bounce){0};
    void *memory = NULL;
    cudaError_t code = cudaHostAlloc(&memory, (size_t)PSTK__BOUNCE_PIECES * PSTK__BOUNCE_SIZE,
                                     cudaHostAllocDefault);
    if (code == cudaSuccess)
        bounce->memory = memory;
    for (uint32_t i = 0; code == cudaSuccess && i < PSTK__BOUNCE_PIECES; i++)
        code = cudaEventCreateWithFlags(&bounce->copied[i],
                                        cudaEventDisableTiming | cudaEventBlockingSync);
    return code;
}

void pstk__bounce_close(struct pstk__bounce *bounce)
{
    for (uint32_t i = 0; i < PSTK__BOUNCE_PIECES; i++)
        if (bounce->copied[i]) {
            cudaEventSynchronize(bounce->copied[i]);
            cudaEventDestroy(bounce->copied[i]);
        }
    if (bounce->memory)
        cudaFreeHost(bounce->memory);
    *bounce = (struct pstk__bounce){0};
}

cudaError_t pstk__bounce_copy(struct pstk__bounce *bounce, void *to, const void *from,
                              uint64_t size, cudaStream_t stream)
{
    cudaError_t code = cudaSuccess;
    for (uint64_t at = 0; code == cudaSuccess && at < size; at += PSTK__BOUNCE_SIZE) {
        const uint32_t piece = bounce->next++ % PSTK__BOUNCE_PIECES;
        const uint64_t n = size - at < PSTK__BOUNCE_SIZE ? size - at : PSTK__BOUNCE_SIZE;
        uint8_t *memory = bounce->memory + (uint64_t)piece * PSTK__BOUNCE_SIZE;
        code = cudaEventSynchronize(bounce->copied[piece]);
        if (code != cudaSuccess)
            break;
        memcpy(memory, (const uint8_t *)from + at, n);
        code = cudaMemcpyAsync((uint8_t *)to + at, memory, n, cudaMemcpyHostToDevice, stream);
        if (code == cudaSuccess)
            code = cudaEventRecord(bounce->copied[piece], stream);
    }
    return code;
}
