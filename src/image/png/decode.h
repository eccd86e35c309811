/* SPDX-License-Identifier: Apache-2.0 */
/* png/decode: the decoder of PNG files, by libpng. */
#ifndef PSTK_PNG_DECODE_H
#define PSTK_PNG_DECODE_H

#include "image/decoder.h"

extern const struct pstk__image_decoder pstk__image_png;
/* The decoder that also decodes files whose fault comes after their rows, as Pillow loads them
 * (png/rows). */
extern const struct pstk__image_decoder pstk__image_png_damaged;

/* Read the header of a file of one channel, including 16-bit gray. Returns the same as a decoder's
 * probe; EBADMSG: it has more channels. */
int pstk__png_probe_samples(const void *data, uint64_t size, uint64_t max_pixels,
                            struct pstk__image_info *info, struct pstk_error *err);
/* Decode such a file whole, to its samples as coded: gray of few bits is not scaled, palette
 * indices stay indices. `sink` has 1 channel for u8, or 2 for u16 when the file has 16 bits. Takes
 * as much of the arena as the decoder's scratch returns. Returns the same as a decoder's decode. */
int pstk__png_samples(struct pstk__arena *arena, const struct pstk__coded *image,
                      const struct pstk__row_sink *sink, struct pstk_error *err);
#endif
