/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cuda/module.h"

#include "device/cuda/context.h"

#include <string.h>

static int fits(const struct pstk__cuda_image *image, int major, int minor)
{
    const int arch = (int)image->arch;
    if (image->kind == PSTK__CUDA_CUBIN)
        return arch / 10 == major && arch % 10 <= minor;
    return arch <= 10 * major + minor;
}

const struct pstk__cuda_image *pstk__cuda_image_choose(const struct pstk__cuda_image *images,
                                                       uint32_t n_images, int major, int minor)
{
    const struct pstk__cuda_image *best = NULL;
    for (uint32_t i = 0; i < n_images; i++) {
        const struct pstk__cuda_image *image = &images[i];
        if (!fits(image, major, minor))
            continue;
        if (!best || (image->kind == best->kind ? image->arch > best->arch
                                                : image->kind == PSTK__CUDA_CUBIN))
            best = image;
    }
    return best;
}

/* Return the image for the device; NULL: no image fits, or *code is an error. */
static const struct pstk__cuda_image *image_of(int32_t index, cudaError_t *code)
{
    int major = 0, minor = 0;
    *code = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, index);
    if (*code == cudaSuccess)
        *code = cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, index);
    if (*code != cudaSuccess)
        return NULL;
    const struct pstk__cuda_image *image =
        pstk__cuda_image_choose(pstk__cuda_images, pstk__cuda_n_images, major, minor);
    if (!image)
        *code = cudaErrorNoKernelImageForDevice;
    return image;
}

/* Driver and runtime number errors alike. */
cudaError_t pstk__cuda_module_open(struct pstk__cuda_module *module, int32_t index,
                                   const char *const *names)
{
    int (*load)(void **, const void *) = NULL;
    int (*find)(void **, void *, const char *) = NULL;
    cudaError_t code;
    const struct pstk__cuda_image *image = image_of(index, &code);
    if (code == cudaSuccess)
        code = pstk__cuda_driver_function("cuModuleLoadData", &load);
    if (code == cudaSuccess)
        code = pstk__cuda_driver_function("cuModuleGetFunction", &find);
    if (code == cudaSuccess)
        code = pstk__cuda_driver_function("cuModuleUnload", &module->unload);
    if (code == cudaSuccess)
        code = pstk__cuda_driver_function("cuLaunchKernel", &module->launch);
    if (code == cudaSuccess)
        code = (cudaError_t)load(&module->handle, image->data);
    for (uint32_t i = 0; i < PSTK__CUDA_KERNELS && code == cudaSuccess; i++)
        code = (cudaError_t)find(&module->functions[i], module->handle, names[i]);
    return code;
}

void pstk__cuda_module_close(struct pstk__cuda_module *module)
{
    if (module->handle)
        (void)module->unload(
            module->handle); /* its result is ignored: a faulted context keeps everything */
    module->handle = NULL;
}
