/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dlpack: the unversioned structs of https://dmlc.github.io/dlpack/latest/c_api.html. Used by
 * share and capsule.
 */
#ifndef PSTK_DLPACK_H
#define PSTK_DLPACK_H

#include <stdint.h>

enum { DL_CPU = 1, DL_CUDA = 2 };                              /* DLDeviceType */
enum { DL_INT = 0, DL_UINT = 1, DL_FLOAT = 2, DL_BFLOAT = 4 }; /* DLDataTypeCode */

struct dl_tensor {
    void *data;
    int32_t device_type, device_id;
    int32_t n_dims;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides; /* elements */
    uint64_t byte_offset;
};

struct DLManagedTensor {
    struct dl_tensor tensor;
    void *manager;
    void (*deleter)(struct DLManagedTensor *self);
};

#endif
