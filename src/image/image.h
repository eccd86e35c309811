/* SPDX-License-Identifier: Apache-2.0 */
/* image: the list of the decoders, and what one thread decodes images of all encodings with. */
#ifndef PSTK_IMAGE_H
#define PSTK_IMAGE_H

#include "image/decoder.h"

#include <penstock/penstock.h>

/* The decoder of an encoding, NULL when there is none: for JPEGs, that of their files. */
const struct pstk__image_decoder *pstk__image_decoder(uint32_t encoding);
/* Find the encoding by the first bytes (JPEG: Pillow's rules) and probe. */
int pstk__image_probe(const void *data, uint64_t size, uint64_t max_pixels,
                      struct pstk__image_info *info, struct pstk_error *err);

/* Bytes of arena that decoding images up to this size may need beyond what open took, with any
 * decoder: progressive and interlaced images are held whole. An upper bound; no image has more than
 * max_pixels, so a wide one and a high one do not add up to a huge one. */
uint64_t pstk__image_scratch_within(uint32_t max_width, uint32_t max_height, uint64_t max_pixels);
/* The same for one image of this size. */
uint64_t pstk__image_scratch(uint32_t width, uint32_t height);

/* A state of every decoder, for one thread. */
struct pstk__image_state;
/* Make them, with kernels of a variant (enum pstk_kernels; AUTO: the best that runs here; ENOTSUP);
 * borrows the arena for its life. Returns owned. After this, decode never calls malloc. */
int pstk__image_state_open(struct pstk__image_state **out, struct pstk__arena *arena,
                           uint32_t variant, struct pstk_error *err);
/* NULL is nothing to close. */
void pstk__image_state_close(struct pstk__image_state *state);
/* Decode a box of an image by the decoder that it names, one of the list. Results as of that
 * decoder's decode. */
int pstk__image_decode(struct pstk__image_state *state, const struct pstk__coded *image,
                       const struct pstk__box *box, const struct pstk__row_sink *sink,
                       struct pstk_error *err);

/* "libjpeg-turbo 2.1.5" or the like. Static storage. */
const char *pstk__image_library(void);
#endif
