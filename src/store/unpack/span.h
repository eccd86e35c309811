/* SPDX-License-Identifier: Apache-2.0 */
/*
 * span: the bytes of a file from one point to the next, which are unpacked chunk by chunk into a
 * buffer. Its memory is fixed, and it never allocates. One thread at a time.
 */
#ifndef PSTK_UNPACK_SPAN_H
#define PSTK_UNPACK_SPAN_H

#include "store/store.h"
#include "store/unpack/access_points.h"

#define PSTK__SPAN_CHUNKS 24 /* chunks of the buffer; a span of usual files has about 17 */

/* The position of damage, a byte of the compressed file or of its access points file, and its
 * reason, static text. */
struct pstk__damage {
    uint64_t packed;
    const char *why; /* NULL: none */
    int in_points;   /* 1: the access points file is damaged, not the compressed file */
    int is_replaced; /* 1: the access points file is intact, but was replaced */
};

/* A span. */
struct pstk__span {
    struct pstk__access_point point;
    /* Invariant: the buffer has the checked bytes from begin to end, and point.begin <= begin <=
     * end <= point.end. */
    uint64_t begin, end;
    uint64_t packed; /* next byte of the file to read */
    struct pstk__unpack_io io;
    uint8_t *buffer, *input;                            /* borrowed */
    struct pstk__unpacker *unpackers[PSTK__N_PACKINGS]; /* NULL: no file needs this one */
};

/* Return the bytes of memory that a span takes for files of these packings, a set of bits by
 * number. */
uint64_t pstk__span_memory(uint32_t packings);
/* Initialise a span in such memory, 64-byte aligned. 0 or ENOMEM. */
int pstk__span_init(struct pstk__span *span, uint8_t *memory, uint32_t packings);
/* Begin at the point span->point. 0 or a negative errno; EBADMSG with *damage. */
int pstk__span_begin(struct pstk__span *span, const struct pstk__access_points *points,
                     struct pstk__damage *damage);
/* Continue at the end of this span with the next one, which begins at `point`. */
void pstk__span_continue(struct pstk__span *span, const struct pstk__access_point *point);
/* Copy up to `size` bytes at `offset`, which lies in the span, not before span->begin. Returns
 * their number, at least 1, or a negative errno. After a failure, call begin first. */
int64_t pstk__span_read(struct pstk__span *span, const struct pstk__access_points *points,
                        const struct pstk__file *file, void *to, uint64_t size, uint64_t offset,
                        struct pstk__damage *damage);

#endif
