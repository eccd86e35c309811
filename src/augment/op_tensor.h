/* SPDX-License-Identifier: Apache-2.0 */
/* op_tensor: what operations do by the tensor reference, for the entries to name. */
#ifndef PSTK_OP_TENSOR_H
#define PSTK_OP_TENSOR_H

#include "augment/op.h"

/* Of operations that have no such reference: it is refused. */
extern const struct pstk__op_tensor pstk__op_tensor_none;
/* Of random operations, which draw others. */
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
