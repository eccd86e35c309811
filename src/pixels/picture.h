/* SPDX-License-Identifier: Apache-2.0 */
/*
 * picture: a whole image in memory, the operand of the functions of this folder. Operations that
 * need more than one row at a time (a histogram, a blur, a rotation) work on pictures.
 *
 * All functions of this folder are pure: they allocate nothing, draw no random numbers, and give
 * the same bytes with every ISA of their kernels (enum pstk_kernels). Plain C is the reference.
 */
#ifndef PSTK_PIXELS_PICTURE_H
#define PSTK_PIXELS_PICTURE_H

#include <stdint.h>

/* Bytes after the last pixel that kernels may read and overwrite. */
#define PSTK__PICTURE_PAD 64u

/* Gray, RGB or RGBA of 8 bits, rows from top to bottom without bytes between them. */
struct pstk__picture {
    uint8_t *pixels;        /* borrowed; pstk__picture_room bytes, 64-byte aligned */
    uint32_t width, height; /* pixels, at least 1 */
    uint32_t channels;      /* 1, 3 or 4 */
};

/* Return the bytes of the pixels. */
static inline uint64_t pstk__picture_size(const struct pstk__picture *picture)
{
    return (uint64_t)picture->width * picture->height * picture->channels;
}

/* Return the largest number of bytes that a picture of n_pixels takes in memory. */
static inline uint64_t pstk__picture_room(uint64_t n_pixels, uint32_t channels)
{
    return (n_pixels * channels + PSTK__PICTURE_PAD + 63) & ~(uint64_t)63;
}

#endif
