/* SPDX-License-Identifier: Apache-2.0 */
/* cuda/module: which image a device gets, and its kernels in the fake driver. */
#include "device/cuda/kernels.h"
#include "support/cuda_fake/cuda_fake.h"
#include "support/test.h"

#include <penstock/types.h>

#define IMAGE(capability, of_kind)                                                                 \
    {                                                                                              \
        .arch = (capability), .kind = (of_kind)                                                    \
    }

static const struct pstk__cuda_image images[] = {
    IMAGE(75, PSTK__CUDA_CUBIN),  IMAGE(80, PSTK__CUDA_CUBIN), IMAGE(86, PSTK__CUDA_CUBIN),
    IMAGE(90, PSTK__CUDA_PTX),    IMAGE(90, PSTK__CUDA_CUBIN), IMAGE(100, PSTK__CUDA_CUBIN),
    IMAGE(103, PSTK__CUDA_CUBIN),
};
#define N_IMAGES ((uint32_t)(sizeof images / sizeof *images))

/* 100 * kind + arch, or -1. */
static int chosen(int major, int minor)
{
    const struct pstk__cuda_image *image = pstk__cuda_image_choose(images, N_IMAGES, major, minor);
    return image ? (int)(100000 * image->kind + image->arch) : -1;
}

TEST(a_device_gets_the_newest_machine_code_of_its_major_number)
{
    CHECK_EQ(chosen(7, 5), 75);
    CHECK_EQ(chosen(8, 0), 80);
    CHECK_EQ(chosen(8, 6), 86);
    CHECK_EQ(chosen(8, 9), 86); /* 8.6 runs on 8.9 */
    CHECK_EQ(chosen(9, 0), 90);
    CHECK_EQ(chosen(10, 1), 100); /* not 10.3 */
    CHECK_EQ(chosen(10, 3), 103);
}

TEST(a_device_without_machine_code_gets_ptx_that_is_not_newer)
{
    CHECK_EQ(chosen(12, 0), 100000 * PSTK__CUDA_PTX + 90);
    CHECK_EQ(chosen(13, 0), 100000 * PSTK__CUDA_PTX + 90);
    CHECK_EQ(chosen(7, 0), -1); /* 7.5 does not run on 7.0, nor does PTX of 9.0 */
    CHECK_EQ(chosen(6, 1), -1);
}

TEST(a_fat_binary_is_left_to_the_driver)
{
    const struct pstk__cuda_image fat[] = {IMAGE(0, PSTK__CUDA_FATBIN)};
    CHECK(pstk__cuda_image_choose(fat, 1, 7, 5) == &fat[0]);
    CHECK(pstk__cuda_image_choose(fat, 1, 12, 1) == &fat[0]);
}

static cudaError_t open_on(int arch)
{
    struct pstk__cuda_module m = {0};
    cuda_fake_open(&(struct cuda_fake_config){.arch = arch});
    cudaSetDevice(0);
    const cudaError_t code = pstk__cuda_kernels_open(&m, 0);
    pstk__cuda_module_close(&m);
    return cuda_fake_close() == 0 ? code : cudaErrorUnknown;
}

TEST(the_driver_takes_the_image_that_was_chosen)
{
    const int archs[] = {75, 80, 86, 89, 90, 100, 120, 130};
    for (size_t i = 0; i < sizeof archs / sizeof *archs; i++)
        CHECK_EQ(open_on(archs[i]), cudaSuccess);
    CHECK_EQ(open_on(70), cudaErrorNoKernelImageForDevice);
}

TEST(an_error_while_loading_kernels_is_returned_and_leaves_nothing)
{
    const char *calls[] = {"cuModuleLoadData", "cuModuleGetFunction", "cudaDeviceGetAttribute"};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        struct pstk__cuda_module m = {0};
        cuda_fake_open(NULL);
        cudaSetDevice(0);
        cuda_fake_fail(calls[i], 2 - (i == 0), cudaErrorMemoryAllocation);
        CHECK_EQ(pstk__cuda_kernels_open(&m, 0), cudaErrorMemoryAllocation);
        pstk__cuda_module_close(&m);
        CHECK_EQ(cuda_fake_close(), 0);
    }
}

TEST(a_launch_that_no_kernel_is_for_is_refused)
{
    struct pstk__cuda_module m = {0};
    cuda_fake_open(NULL);
    cudaSetDevice(0);
    CHECK_EQ(pstk__cuda_kernels_open(&m, 0), cudaSuccess);
    struct pstk__cuda_pixels p = {
        .n_rows = 1, .height = 2, .width = 2, .channels = 3, .dtype = PSTK_U8, .layout = PSTK_NHWC};
    CHECK_EQ(pstk__cuda_pixels(&m, &p, NULL), cudaErrorInvalidValue);
    p.dtype = PSTK_F32;
    p.channels = 2;
    CHECK_EQ(pstk__cuda_pixels(&m, &p, NULL), cudaErrorInvalidValue);
    const struct pstk__cuda_cast nothing = {.to = PSTK_I64, .from = PSTK_U8};
    CHECK_EQ(pstk__cuda_cast(&m, &nothing, NULL), cudaSuccess);
    pstk__cuda_module_close(&m);
    CHECK_EQ(cuda_fake_close(), 0);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(a_device_gets_the_newest_machine_code_of_its_major_number),
        CASE(a_device_without_machine_code_gets_ptx_that_is_not_newer),
        CASE(a_fat_binary_is_left_to_the_driver),
        CASE(the_driver_takes_the_image_that_was_chosen),
        CASE(an_error_while_loading_kernels_is_returned_and_leaves_nothing),
        CASE(a_launch_that_no_kernel_is_for_is_refused),
    };
    return RUN_CASES(cases);
}
