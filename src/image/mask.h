/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/mask: images whose samples are class numbers, as PNG files or pixels of one channel. The
 * samples keep their numbers: nothing is scaled, and no palette is looked up.
 */
#ifndef PSTK_IMAGE_MASK_H
#define PSTK_IMAGE_MASK_H

#include "image/decoder.h"

/* Return 1 when an image of this encoding and these channels can be a mask. */
static inline int pstk__mask_known(uint32_t encoding, uint32_t channels)
{
    return channels == 1 && (encoding == PSTK_ENCODING_PNG || encoding == PSTK_ENCODING_PIXELS);
}

/* Read the header of a mask's file, which is PNG. Returns the same as a decoder's probe. */
int pstk__mask_probe(const void *data, uint64_t size, uint64_t max_pixels,
                     struct pstk__image_info *info, struct pstk_error *err);
/* Return the bytes of a sample: 1 or 2. */
static inline uint32_t pstk__mask_sample_size(const struct pstk__image_info *info)
{
    return info->bit_depth == 16 ? 2 : 1;
}

/* Check that a mask agrees with `info`. With decode != 0 also check that all of it decodes without
 * damage. EBADMSG, ENOMEM. */
int pstk__mask_check(const void *data, uint64_t size, const struct pstk__image_info *info,
                     int decode, struct pstk_error *err);
/* Decode a whole mask to height x width samples at `out`: u8, or u16 for 16-bit samples. EBADMSG,
 * ENOMEM. */
int pstk__mask_decode(const void *data, uint64_t size, const struct pstk__image_info *info,
                      void *out, struct pstk_error *err);
/* Decode a mask row by row, with memory of an arena, which has room for pstk__mask_scratch bytes.
 * EBADMSG, ENOMEM. The sink has one channel for each byte of a sample. */
int pstk__mask_rows(struct pstk__arena *arena, const void *data, uint64_t size,
                    const struct pstk__image_info *info, const struct pstk__row_sink *sink,
                    struct pstk_error *err);
/* Return the bytes of arena for masks up to this size and of at most max_pixels pixels. */
uint64_t pstk__mask_scratch(uint32_t max_width, uint32_t max_height, uint64_t max_pixels);
#endif
