/* SPDX-License-Identifier: Apache-2.0 */
/* op_tensor: the tensor reference of the operations, named by their entries. */
#ifndef PSTK_OP_TENSOR_H
#define PSTK_OP_TENSOR_H

#include "augment/op.h"

/* For operations without a tensor reference: it is refused. */
extern const struct pstk__op_tensor pstk__op_tensor_none;
/* For random operations, which draw other operations. */
extern const struct pstk__op_tensor pstk__op_tensor_random_colour;
extern const struct pstk__op_tensor pstk__op_tensor_random_blur;
extern const struct pstk__op_tensor pstk__op_tensor_random_warp;

extern const struct pstk__op_tensor pstk__op_tensor_brightness;
extern const struct pstk__op_tensor pstk__op_tensor_contrast;
extern const struct pstk__op_tensor pstk__op_tensor_saturation;
extern const struct pstk__op_tensor pstk__op_tensor_hue;
extern const struct pstk__op_tensor pstk__op_tensor_gamma;
extern const struct pstk__op_tensor pstk__op_tensor_sharpness;
extern const struct pstk__op_tensor pstk__op_tensor_autocontrast;
extern const struct pstk__op_tensor pstk__op_tensor_grayscale;
extern const struct pstk__op_tensor pstk__op_tensor_gaussian_blur;
extern const struct pstk__op_tensor pstk__op_tensor_affine;
extern const struct pstk__op_tensor pstk__op_tensor_perspective;
extern const struct pstk__op_tensor pstk__op_tensor_rotate;

#endif
