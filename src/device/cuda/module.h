/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda/module: the images that the build made of cuda/kernels.cu, and the kernels of the one that
 * fits a device. A machine's code (a cubin) runs on devices of its compute capability's major
 * number, from its minor number on; the driver compiles PTX for any later device; in a fat binary
 * the driver finds what fits by itself.
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

/* Made by the build: scripts/cuda-kernels. */
extern const struct pstk__cuda_image pstk__cuda_images[];
extern const uint32_t pstk__cuda_n_images;

/* The image for a device of this compute capability: machine code before PTX, and of each the
 * newest that fits. NULL: none does. */
const struct pstk__cuda_image *pstk__cuda_image_choose(const struct pstk__cuda_image *images,
                                                       uint32_t n_images, int major, int minor);

#define PSTK__CUDA_KERNELS 46u /* that kernel_list.h names, with pstk_cast_any and pstk_spin */

/* The kernels in one context. */
struct pstk__cuda_module {
    void *handle;                        /* CUmodule; owned */
    void *functions[PSTK__CUDA_KERNELS]; /* CUfunction, as kernels.c numbers them */
    int (*unload)(void *);               /* cuModuleUnload */
    int (*launch)(void *, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int,
                  unsigned int, unsigned int, cudaStream_t, void **, void **); /* cuLaunchKernel */
};

/* Load the image that fits device `index`, whose context is current, and find `names` in it:
 * PSTK__CUDA_KERNELS of them. After a failure close is due as well. */
cudaError_t pstk__cuda_module_open(struct pstk__cuda_module *module, int32_t index,
                                   const char *const *names);
/* Its context is current, and no kernel of it runs. One that was not opened, but zeroed, is fine.
 */
void pstk__cuda_module_close(struct pstk__cuda_module *module);

#endif
