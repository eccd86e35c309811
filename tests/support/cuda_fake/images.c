/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_fake/images: in place of what scripts/cuda-kernels makes; the fake driver reads for which
 * devices each is. */
#include "device/cuda/module.h"

#define IMAGE(text, capability, of_kind)                                                           \
    {                                                                                              \
        .data = (const uint8_t *)(text), .size = sizeof(text), .arch = (capability),               \
        .kind = (of_kind)                                                                          \
    }

const struct pstk__cuda_image pstk__cuda_images[] = {
    IMAGE("cubin sm_75", 75, PSTK__CUDA_CUBIN), IMAGE("cubin sm_80", 80, PSTK__CUDA_CUBIN),
    IMAGE("cubin sm_86", 86, PSTK__CUDA_CUBIN), IMAGE("cubin sm_90", 90, PSTK__CUDA_CUBIN),
    IMAGE("ptx sm_90", 90, PSTK__CUDA_PTX),
};
const uint32_t pstk__cuda_n_images = sizeof pstk__cuda_images / sizeof *pstk__cuda_images;
