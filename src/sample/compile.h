/* SPDX-License-Identifier: Apache-2.0 */
/* compile: the checks that kinds of outputs share, and those of outputs that follow an image
 * (compile_follow.c, compile_points.c). Each check refuses settings that the kind or the field does
 * not have, and sets dtype, n_dims and shape. Each function of passes adds the passes after the
 * first. */
#ifndef PSTK_COMPILE_H
#define PSTK_COMPILE_H

#include "sample/plan.h"

const struct pstk_field *pstk__compile_field(const struct pstk__plan *p, uint32_t i);
/* Fail with EINVAL: the output needs a field of another kind. */
int pstk__compile_wrong_kind(const struct pstk__plan *p, uint32_t i, const char *output,
                             const char *wanted, struct pstk_error *err);
/* Append a pass, which takes the result of the last one. */
void pstk__compile_pass(struct pstk__output *o, struct pstk__pass pass);
/* Return the layout of byte pixels whose rows differ from image to image. */
struct pstk__row_layout pstk__compile_pixels(uint32_t channels);
/* Return the layout of a row of the tensor, with elements of another dtype. */
struct pstk__row_layout pstk__compile_row(const struct pstk__output *o, uint32_t dtype);

/* Check the settings of an output. EINVAL: a member is set that outputs of this kind do not use
 * (compile_settings.c), which the caller must have meant. */
int pstk__check_settings(const struct pstk_output *output, uint32_t i, struct pstk_error *err);

/* Check a ragged output, and make its passes. Boxes and the outputs that follow them are ragged
 * too. */
int pstk__check_ragged(struct pstk__plan *p, uint32_t i, struct pstk_error *err);
int pstk__passes_ragged(struct pstk__plan *p, uint32_t i, struct pstk_error *err);

/* Set the image output that output i follows. */
int pstk__compile_image(struct pstk__plan *p, uint32_t i, struct pstk_error *err);
/* Check outputs that follow an image, and make their passes. The image is checked, or compiled,
 * before. */
int pstk__check_boxes(struct pstk__plan *p, uint32_t i, struct pstk_error *err);
int pstk__check_per_box(struct pstk__plan *p, uint32_t i, struct pstk_error *err);
int pstk__check_keypoints(struct pstk__plan *p, uint32_t i, struct pstk_error *err);
int pstk__check_polygons(struct pstk__plan *p, uint32_t i, struct pstk_error *err);
/* Find the fields of lengths between the boxes field and output i's field. Returns 1, or 0 if the
 * field has neither the rows of the boxes nor rows below them. */
int pstk__compile_levels(struct pstk__plan *p, uint32_t i, uint32_t boxes_field);
/* Make the pass of a ragged output, with memory for the lengths. */
int pstk__passes_nested(struct pstk__plan *p, uint32_t i, struct pstk_error *err);
int pstk__passes_polygons(struct pstk__plan *p, uint32_t i, struct pstk_error *err);
int pstk__passes_keypoints(struct pstk__plan *p, uint32_t i, struct pstk_error *err);
int pstk__check_mask(struct pstk__plan *p, uint32_t i, struct pstk_error *err);
int pstk__passes_mask(struct pstk__plan *p, uint32_t i, struct pstk_error *err);

#endif
