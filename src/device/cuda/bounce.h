/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda/bounce: copies from memory that could not be page-locked, through a small ring of bounce
 * buffers that are. The caller's memory is free once copy returns. One thread.
 */
#ifndef PSTK_CUDA_BOUNCE_H
#define PSTK_CUDA_BOUNCE_H

#include <cuda_runtime_api.h>

#include <stdint.h>

#define PSTK__BOUNCE_PIECES 4u
#define PSTK__BOUNCE_SIZE (2u << 20) /* bytes of a piece: some 100 us of copying */

struct pstk__bounce {
    uint8_t *memory;                         /* pinned, all pieces; owned; NULL = not open */
    cudaEvent_t copied[PSTK__BOUNCE_PIECES]; /* after the last copy from the piece; owned */
    uint32_t next;                           /* piece */
};

cudaError_t pstk__bounce_open(struct pstk__bounce *bounce);
/* Half-open is fine. Waits for the copies. */
void pstk__bounce_close(struct pstk__bounce *bounce);
/* Queue a copy of `size` bytes to the device. Waits while all pieces are under way. */
cudaError_t pstk__bounce_copy(struct pstk__bounce *bounce, void *to, const void *from,
                              uint64_t size, cudaStream_t stream);

#endif
