/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda/finish: converts deferred rows on the device, output by output. It is set up once, and then
 * only launches kernels.
 */
#ifndef PSTK_CUDA_FINISH_H
#define PSTK_CUDA_FINISH_H

#include "device/cuda/kernels.h"
#include "sample/layout.h"

/* One deferred output. Addresses are offsets until it is launched. */
struct pstk__cuda_output {
    uint32_t is_image;
    uint64_t rows, flips;            /* bytes from the start of an arrival buffer */
    uint64_t final;                  /* bytes from the slot's start */
    struct pstk__cuda_pixels pixels; /* image: all members except these addresses */
    struct pstk__cuda_cast cast;     /* tensor: all members except these addresses */
};

struct pstk__cuda_finish {
    const struct pstk__cuda_module *module; /* borrowed; set between init and the first launch */
    uint32_t n_outputs;                     /* deferred outputs */
    struct pstk__cuda_output outputs[PSTK__MAX_OUTPUTS];
};

/* Return the bytes of device memory that the tables take. */
uint64_t pstk__cuda_finish_size(const struct pstk__plan *plan);
/* Set up. tables: device memory of that size; a copy in the stream fills it, and the call waits for
 * the copy. */
cudaError_t pstk__cuda_finish_init(struct pstk__cuda_finish *finish, const struct pstk__plan *plan,
                                   const struct pstk__layout *layout, uint8_t *tables,
                                   cudaStream_t stream);
/* Queue the kernels of a batch of n_valid rows, from an arrival buffer to a slot. */
cudaError_t pstk__cuda_finish_launch(const struct pstk__cuda_finish *finish, const uint8_t *arrival,
                                     uint8_t *slot, uint32_t n_valid, cudaStream_t stream);

#endif
