/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda/bounce: copies from memory that could not be page-locked, through a small ring of
 * page-locked bounce buffers. The caller may reuse its memory once copy returns. One thread.
 */
#ifndef PSTK_CUDA_BOUNCE_H
#define PSTK_CUDA_BOUNCE_H

#include <cuda_runtime_api.h>

#include <stdint.h>

#define PSTK__BOUNCE_PIECES 4u
#define PSTK__BOUNCE_SIZE (2u << 20) /* bytes of a piece, which takes some 100 us to copy */

struct pstk__bounce {
    uint8_t *memory;                         /* page-locked, all pieces; owned; NULL: not open */
    cudaEvent_t copied[PSTK__BOUNCE_PIECES]; /* recorded after the last copy from the piece; owned
                                              */
    uint32_t next;                           /* number of the next piece */
};

cudaError_t pstk__bounce_open(struct pstk__bounce *bounce);
/* Wait for the copies, and free all; half-open is fine. */
void pstk__bounce_close(struct pstk__bounce *bounce);
/* Queue a copy of `size` bytes to the device. Waits while all pieces are under way. */
cudaError_t pstk__bounce_copy(struct pstk__bounce *bounce, void *to, const void *from,
                              uint64_t size, cudaStream_t stream);

#endif
