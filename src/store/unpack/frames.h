/* SPDX-License-Identifier: Apache-2.0 */
/* frames: checks whether all frames of a zstd file have checksums, by their heads (RFC 8878,
 * 3.1.1.1). */
#ifndef PSTK_UNPACK_FRAMES_H
#define PSTK_UNPACK_FRAMES_H

#include "base/little.h"

#include <string.h>

#define PSTK__FRAME_HEAD 5 /* bytes of the magic number and the descriptor */
#define PSTK__FRAME_MAGIC 0xfd2fb528u

/* State of the check. All zeros: no frame was read yet. */
struct pstk__frames {
    uint8_t head[PSTK__FRAME_HEAD]; /* head of the current frame */
    uint32_t n_head;                /* bytes of the head read so far */
    int is_unchecked;               /* 1: a frame has no checksum */
};

/* Take n bytes of one frame that were read; is_end: the frame ends after them. */
static inline void pstk__frames_add(struct pstk__frames *frames, const uint8_t *bytes, uint64_t n,
                                    int is_end)
{
    const uint32_t left = PSTK__FRAME_HEAD - frames->n_head;
    const uint32_t part = n < left ? (uint32_t)n : left;
    if (part)
        memcpy(frames->head + frames->n_head, bytes, part);
    frames->n_head += part;
    if (!is_end)
        return;
    /* Skippable frames contain no data, so they need no checksum. */
    if (frames->n_head == PSTK__FRAME_HEAD && pstk__get32(frames->head) == PSTK__FRAME_MAGIC &&
        !(frames->head[4] & 4))
        frames->is_unchecked = 1;
    frames->n_head = 0;
}

#endif
