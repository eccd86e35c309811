/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg/memory: libjpeg's memory manager on a worker's arena. Nothing is freed one by one: the
 * decoder resets the arena after each image.
 */
#ifndef PSTK_JPEG_MEMORY_H
#define PSTK_JPEG_MEMORY_H

#include "base/arena.h"

#include <stdio.h>
#include <jpeglib.h>

struct pstk__jpeg_memory {
    struct jpeg_memory_mgr pub;           /* first: libjpeg passes back a pointer to it */
    struct pstk__arena *arena;            /* borrowed */
    struct jvirt_barray_control *barrays; /* requested for this image, newest first; in the arena */
};

/* Fill in the manager's table. */
void pstk__jpeg_memory_init(struct pstk__jpeg_memory *memory, struct pstk__arena *arena);
/* Forget the last image's arrays. Call it after resetting the arena, before the next image. */
void pstk__jpeg_memory_begin(struct pstk__jpeg_memory *memory);
/* Return the rows of blocks of one of this image's arrays, counted from the last one requested,
 * which is 0. libjpeg requests one for each component, in order. */
JBLOCKARRAY pstk__jpeg_memory_blocks(const struct pstk__jpeg_memory *memory, uint32_t index);

#endif
