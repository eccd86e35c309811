/* SPDX-License-Identifier: Apache-2.0 */
/* image: lists the decoders, and holds one thread's states of all of them. */
#ifndef PSTK_IMAGE_H
#define PSTK_IMAGE_H

#include "image/decoder.h"

#include <penstock/penstock.h>

/* Return the decoder of an encoding, NULL when there is none. For JPEG it is the decoder of files.
 */
const struct pstk__image_decoder *pstk__image_decoder(uint32_t encoding);
/* Return the decoder that also decodes damaged files of an encoding, when Pillow loads them; NULL:
 * there is none. It is slower than the other one. */
const struct pstk__image_decoder *pstk__image_damaged_decoder(uint32_t encoding);
/* Find the encoding by the first bytes (JPEG by Pillow's rules) and read the header. */
int pstk__image_probe(const void *data, uint64_t size, uint64_t max_pixels,
                      struct pstk__image_info *info, struct pstk_error *err);

/* Return the bytes of arena that any decoder may need in addition to open, for images up to this
 * size. Progressive and interlaced images are held whole. An upper bound; because no image has more
 * than max_pixels, the largest width and height do not multiply. */
uint64_t pstk__image_scratch_within(uint32_t max_width, uint32_t max_height, uint64_t max_pixels);
/* Return the bytes of arena that any decoder may need in addition to open, for one image of this
 * size. */
uint64_t pstk__image_scratch(uint32_t width, uint32_t height);

/* The states of all decoders, for one thread. */
struct pstk__image_state;
/* Make the states, with kernels of an ISA (enum pstk_kernels; AUTO: the best that run here;
 * ENOTSUP). Borrows the arena for its life. Returns owned. After this, decode never calls
 * malloc. */
int pstk__image_state_open(struct pstk__image_state **out, struct pstk__arena *arena, uint32_t isa,
                           struct pstk_error *err);
/* Free the states; NULL is fine. */
void pstk__image_state_close(struct pstk__image_state *state);
/* Decode a box of an image with the decoder that the image names, which must be in the list.
 * Returns what that decoder returns. */
int pstk__image_decode(struct pstk__image_state *state, const struct pstk__coded *image,
                       const struct pstk__box *box, const struct pstk__row_sink *sink,
                       struct pstk_error *err);

/* Return "libjpeg-turbo 2.1.5" or similar. Static storage. */
const char *pstk__image_library(void);
#endif
