/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg/memory: libjpeg's memory manager over a worker's arena. Nothing is freed one by one: the
 * decoder gives an image's memory back as a whole by resetting the arena.
 */
#ifndef PSTK_JPEG_MEMORY_H
#define PSTK_JPEG_MEMORY_H

#include "base/arena.h"

#include <stdio.h>
#include <jpeglib.h>

struct pstk__jpeg_memory {
    struct jpeg_memory_mgr pub;           /* first: libjpeg gives back a pointer to it */
    struct pstk__arena *arena;            /* borrowed */
    struct jvirt_barray_control *barrays; /* requested for this image, newest first; arena */
};

/* Fill in the table. */
void pstk__jpeg_memory_init(struct pstk__jpeg_memory *memory, struct pstk__arena *arena);
/* Forget the arrays of the image before. Call after resetting the arena, before the next image. */
void pstk__jpeg_memory_begin(struct pstk__jpeg_memory *memory);

#endif
