/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda/module: chooses among the images that the build made from cuda/kernels.cu, and finds the
 * kernels in the one that fits a device. Machine code (a cubin) runs on devices of the same major
 * compute capability, from its minor number on. The driver compiles PTX for any later device. In a
 * fat binary the driver finds a fitting image by itself.
 */
#ifndef PSTK_CUDA_MODULE_H
#define PSTK_CUDA_MODULE_H

#include <cuda_runtime_api.h>

#include <stdint.h>

enum pstk__cuda_image_kind {
    PSTK__CUDA_CUBIN = 0,
    PSTK__CUDA_PTX = 1,    /* text that ends with a zero */
    PSTK__CUDA_FATBIN = 2, /* arch is 0 */
};

struct pstk__cuda_image {
    const uint8_t *data;
    uint64_t size; /* bytes */
    uint32_t arch; /* compute capability: 10 * major + minor */
    uint32_t kind; /* enum pstk__cuda_image_kind */
};

/* The build (scripts/cuda-kernels) makes these. */
extern const struct pstk__cuda_image pstk__cuda_images[];
extern const uint32_t pstk__cuda_n_images;

/* Choose the image for a device of this compute capability: machine code before PTX, and of each
 * the newest that fits. Returns NULL when no image fits. */
const struct pstk__cuda_image *pstk__cuda_image_choose(const struct pstk__cuda_image *images,
                                                       uint32_t n_images, int major, int minor);

#define PSTK__CUDA_KERNELS                                                                         \
    46u /* kernels of kernel_list.h, pstk_cast_any and pstk_spin included                          \
         */

/* The kernels in one context. */
struct pstk__cuda_module {
    void *handle;                        /* CUmodule; owned */
    void *functions[PSTK__CUDA_KERNELS]; /* CUfunction, in kernels.c's order */
    int (*unload)(void *);               /* cuModuleUnload */
    int (*launch)(void *, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int,
                  unsigned int, unsigned int, cudaStream_t, void **, void **); /* cuLaunchKernel */
};

/* Load the image that fits device `index`, whose context is current, and find `names` in it,
 * PSTK__CUDA_KERNELS of them. Call close also after a failure. */
cudaError_t pstk__cuda_module_open(struct pstk__cuda_module *module, int32_t index,
                                   const char *const *names);
/* Unload the kernels. The context must be current, and no kernel may run. A zeroed module that was
 * never opened is fine. */
void pstk__cuda_module_close(struct pstk__cuda_module *module);

#endif
