/* SPDX-License-Identifier: Apache-2.0 */
/*
 * planes/write: writes an image's coefficients as planes. For packing. Deterministic: the same
 * image and skeleton give the same bytes on every machine.
 */
#ifndef PSTK_PLANES_WRITE_H
#define PSTK_PLANES_WRITE_H

#include "base/arena.h"
#include "image/jpeg/coefficients.h"
#include "image/planes/kernels.h"
#include "image/planes/sets.h"

/* The input of a record: the image with its coefficients, its skeleton, and the settings of the
 * coder. */
struct pstk__planes_source {
    const struct pstk__planes_kernels *kernels; /* NULL: the best; all give the same bytes */
    const struct pstk__planes_set *sets;        /* all sets; NULL: no built-in tables are used */
    uint32_t n_lanes; /* lanes of the coder, for tests and benchmarks; 0: chosen by the number of
                         symbols */
    const struct pstk__jpeg_image *image; /* frame, blocks, orientation, rebuild, parameters */
    const void *skeleton;                 /* the image's skeleton, as one zstd frame */
    uint64_t skeleton_size;               /* bytes of the frame */
};

/* Write to out[0, capacity). Returns the size; 0 when it would exceed capacity; or ENOMEM. Takes
 * memory from the arena and gives it back. */
int64_t pstk__planes_write(const struct pstk__planes_source *source, uint8_t *out,
                           uint64_t capacity, struct pstk__arena *arena, struct pstk_error *err);
/* Return the largest number of arena bytes that a write takes. */
uint64_t pstk__planes_write_scratch(const struct pstk__jpeg_frame *f);

#endif
