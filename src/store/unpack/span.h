/* SPDX-License-Identifier: Apache-2.0 */
/*
 * span: a part of a file, from a point to the next, being unpacked chunk by chunk into a buffer.
 * Memory is fixed: nothing is allocated. One thread at a time.
 */
#ifndef PSTK_UNPACK_SPAN_H
#define PSTK_UNPACK_SPAN_H

#include "store/store.h"
#include "store/unpack/access_points.h"

#define PSTK__SPAN_CHUNKS 24 /* of the buffer: a span has 17 or so, of usual files */

/* Damage: the byte of the compressed file, or of its access points file, and static text. */
struct pstk__damage {
    uint64_t packed;
    const char *why; /* NULL: none */
    int in_points;   /* 1: the access points file is damaged, not the file */
    int is_replaced; /* 1: no, it is another than it was */
};

/* A span. */
struct pstk__span {
    struct pstk__access_point point;
    /* Invariant: the buffer has the checked bytes from begin to end; point.begin <= begin <= end <=
     * point.end. */
    uint64_t begin, end;
    uint64_t packed; /* byte of the file that is read next */
    struct pstk__unpack_io io;
    uint8_t *buffer, *input;                            /* borrowed */
    struct pstk__unpacker *unpackers[PSTK__N_PACKINGS]; /* NULL: no file needs it */
};

/* Bytes of memory of a span for files of these packings, a set of bits by number. */
uint64_t pstk__span_memory(uint32_t packings);
/* In such memory, 64-byte aligned. 0 or ENOMEM. */
int pstk__span_init(struct pstk__span *span, uint8_t *memory, uint32_t packings);
/* Begin at the point of span->point. 0 or a negative errno; EBADMSG with *damage. */
int pstk__span_begin(struct pstk__span *span, const struct pstk__access_points *points,
                     struct pstk__damage *damage);
/* Go on from the end of this span to the one that follows, whose point is at its end. */
void pstk__span_continue(struct pstk__span *span, const struct pstk__access_point *point);
/* Copy up to `size` bytes at `offset`, which is in the span and not before span->begin: how many,
 * at least 1, or a negative errno. After a failure begin is due. */
int64_t pstk__span_read(struct pstk__span *span, const struct pstk__access_points *points,
                        const struct pstk__file *file, void *to, uint64_t size, uint64_t offset,
                        struct pstk__damage *damage);

#endif
