/* SPDX-License-Identifier: Apache-2.0 */
/* picture: pictures in memory of their own, for tests. */
#ifndef PSTK_TEST_PICTURE_H
#define PSTK_TEST_PICTURE_H

#include "pixels/picture.h"

#include <stdlib.h>
#include <string.h>

/* 0, or -1 where memory ends; the picture may be closed either way. */
static inline int picture_open(struct pstk__picture *picture, uint32_t width, uint32_t height,
                               uint32_t channels)
{
    const uint64_t size = pstk__picture_room((uint64_t)width * height, channels);
    *picture = (struct pstk__picture){aligned_alloc(64, (size_t)size), width, height, channels};
    if (picture->pixels == NULL)
        return -1;
    memset(picture->pixels, 0xee, (size_t)size);
    return 0;
}

static inline void picture_close(struct pstk__picture *picture)
{
    free(picture->pixels);
    picture->pixels = NULL;
}

#endif
