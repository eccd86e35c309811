/* SPDX-License-Identifier: Apache-2.0 */
/* finish_c: finishes rows of u8 pixels in plain C: the reference for the other ISAs. */
#include "pixels/resize_kernels_c.h"

#include <string.h>

#define INLINE static inline __attribute__((always_inline))

/* Steps along a row: between pixels of input and output, and between channels. */
struct walk {
    int64_t step;    /* bytes between pixels */
    uint64_t across; /* elements between output pixels */
    uint64_t plane;  /* elements between the channels of an output pixel */
};

INLINE struct walk walk_of(const struct pstk__finish *finish, uint32_t channels)
{
    const int apart = finish->layout == PSTK_NCHW;
    return (struct walk){.step = finish->flip ? -(int64_t)channels : (int64_t)channels,
                         .across = apart ? 1 : channels,
                         .plane = apart ? finish->plane : 1};
}

/* `channels` is a constant for the compiler, here and below. */
INLINE void finish_u8(uint8_t *out, const uint8_t *in, const struct pstk__finish *finish,
                      uint32_t channels)
{
    const struct walk walk = walk_of(finish, channels);
    if (finish->flip)
        in += (size_t)channels * (finish->width - 1);
    for (uint32_t i = 0; i < finish->width; i++, in += walk.step, out += walk.across)
        for (uint32_t c = 0; c < channels; c++)
            out[c * walk.plane] = in[c];
}

INLINE void finish_16(uint16_t *out, const uint8_t *in, const struct pstk__finish *finish,
                      uint32_t channels)
{
    const uint16_t *table = finish->table;
    const struct walk walk = walk_of(finish, channels);
    if (finish->flip)
        in += (size_t)channels * (finish->width - 1);
    for (uint32_t i = 0; i < finish->width; i++, in += walk.step, out += walk.across)
        for (uint32_t c = 0; c < channels; c++)
            out[c * walk.plane] = table[256 * c + in[c]];
}

INLINE void finish_32(uint32_t *out, const uint8_t *in, const struct pstk__finish *finish,
                      uint32_t channels)
{
    const uint32_t *table = finish->table;
    const struct walk walk = walk_of(finish, channels);
    if (finish->flip)
        in += (size_t)channels * (finish->width - 1);
    for (uint32_t i = 0; i < finish->width; i++, in += walk.step, out += walk.across)
        for (uint32_t c = 0; c < channels; c++)
            out[c * walk.plane] = table[256 * c + in[c]];
}

INLINE void finish_sized(void *out, const uint8_t *in, const struct pstk__finish *finish,
                         uint32_t channels)
{
    switch (pstk_dtype_size(finish->dtype)) {
    case 1:
        finish_u8(out, in, finish, channels);
        break;
    case 2:
        finish_16(out, in, finish, channels);
        break;
    default:
        finish_32(out, in, finish, channels);
        break;
    }
}

void pstk__finish_row_c(void *out, const uint8_t *pixels, const struct pstk__finish *finish)
{
    const int is_copy = finish->dtype == PSTK_U8 && !finish->flip;
    if (is_copy && (finish->layout == PSTK_NHWC || finish->channels == 1))
        memcpy(out, pixels, (size_t)finish->channels * finish->width);
    else if (finish->channels == 1)
        finish_sized(out, pixels, finish, 1);
    else if (finish->channels == 3)
        finish_sized(out, pixels, finish, 3);
    else
        finish_sized(out, pixels, finish, 4);
}

void pstk__lookup_init_c(void *lookup, const struct pstk__finish *finish)
{
    (void)lookup;
    (void)finish;
}
