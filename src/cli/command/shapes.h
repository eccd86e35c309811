/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shapes: the targets of an image: its class, and the mask, boxes, polygons and keypoints that
 * follow it through the operations. They are further outputs of the pipeline, and are drawn into
 * the image's picture.
 */
#ifndef PSTK_CLI_SHAPES_H
#define PSTK_CLI_SHAPES_H

#include <penstock/format.h>

#include "command/consumer.h"
#include "option/pipeline.h"
#include "ui/canvas.h"

enum shape {
    SHAPE_CLASS, /* number below a picture */
    SHAPE_MASK,
    SHAPE_BOXES,
    SHAPE_BOX_CLASSES,
    SHAPE_POLYGONS,
    SHAPE_CORNERS, /* number of corners of each polygon */
    SHAPE_KEYPOINTS,
    N_SHAPES
};

struct shapes {
    struct pstk_dataset *dataset; /* owned; has the names of the classes */
    int output[N_SHAPES];         /* number among the pipeline's outputs; -1: the image has none */
};

/* Find the targets of the pipeline's image, the first field of each kind, and add an output for
 * each. Call it after pipeline_build. Returns 0, or an exit status after a message. The caller
 * always calls shapes_close. */
int shapes_open(struct shapes *shapes, struct pipeline *pipeline);
/* Draw the targets of a batch of one row into the picture of its image. Returns 0, or a negative
 * result with err filled in. */
int shapes_draw(const struct shapes *shapes, struct consumer *consumer,
                const struct pstk_batch *batch, const struct area *picture, struct pstk_error *err);
/* Write the sample's id, and the name of its class, below its picture. */
int shapes_write(const struct shapes *shapes, struct consumer *consumer,
                 const struct pstk_batch *batch, const struct area *line, struct pstk_error *err);
void shapes_close(struct shapes *shapes);

#endif
