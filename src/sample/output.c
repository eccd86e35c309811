/* SPDX-License-Identifier: Apache-2.0 */
/* output: the constructors of outputs. Pure; plan.c checks their arguments. */
#include <penstock/penstock.h>

struct pstk_output pstk_output_image(const char *field, const struct pstk_op *ops, uint32_t n_ops,
                                     uint32_t dtype, uint32_t layout)
{
    return (struct pstk_output){.field = field,
                                .kind = PSTK_OUTPUT_IMAGE,
                                .dtype = dtype,
                                .image.layout = layout,
                                .image.ops = ops,
                                .image.n_ops = n_ops};
}

struct pstk_output pstk_output_scalar(const char *field, uint32_t dtype)
{
    return (struct pstk_output){.field = field, .kind = PSTK_OUTPUT_SCALAR, .dtype = dtype};
}

struct pstk_output pstk_output_tensor(const char *field, uint32_t dtype)
{
    return (struct pstk_output){.field = field, .kind = PSTK_OUTPUT_TENSOR, .dtype = dtype};
}

struct pstk_output pstk_output_bytes(const char *field)
{
    return (struct pstk_output){.field = field, .kind = PSTK_OUTPUT_BYTES};
}

struct pstk_output pstk_output_ragged(const char *field)
{
    return (struct pstk_output){.field = field, .kind = PSTK_OUTPUT_RAGGED};
}

struct pstk_output pstk_output_callback(const char *field, uint32_t dtype, pstk_decode_fn decode,
                                        void *user)
{
    return (struct pstk_output){.field = field,
                                .kind = PSTK_OUTPUT_CALLBACK,
                                .dtype = dtype,
                                .callback.decode = decode,
                                .callback.user = user};
}

struct pstk_output pstk_output_mask(const char *field, uint32_t fill, uint32_t dtype)
{
    return (struct pstk_output){
        .field = field, .kind = PSTK_OUTPUT_MASK, .dtype = dtype, .follow.fill = fill};
}

struct pstk_output pstk_output_boxes(const char *field)
{
    return (struct pstk_output){.field = field, .kind = PSTK_OUTPUT_BOXES};
}

struct pstk_output pstk_output_per_box(const char *field)
{
    return (struct pstk_output){.field = field, .kind = PSTK_OUTPUT_PER_BOX};
}

struct pstk_output pstk_output_keypoints(const char *field)
{
    return (struct pstk_output){.field = field, .kind = PSTK_OUTPUT_KEYPOINTS};
}

struct pstk_output pstk_output_polygons(const char *field)
{
    return (struct pstk_output){.field = field, .kind = PSTK_OUTPUT_POLYGONS};
}
