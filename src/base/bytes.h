/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bytes: a growing piece of memory that is written from its start to its end. A write that finds no
 * memory sets `failed`, and later writes do nothing: a caller checks once, after the last one.
 */
#ifndef PSTK_BYTES_H
#define PSTK_BYTES_H

#include <stdint.h>

/* An all-zero struct is empty. */
struct pstk__bytes {
    uint8_t *data; /* owned */
    uint64_t size; /* bytes written */
    uint64_t capacity;
    int failed; /* 1: memory ran out since the last clear */
};

/* Empty the buffer, and keep its memory. */
void pstk__bytes_clear(struct pstk__bytes *bytes);
/* Append room for `size` bytes, not zeroed; NULL: no memory. The next write may move it. */
void *pstk__bytes_room(struct pstk__bytes *bytes, uint64_t size);
/* Append a copy of `size` bytes. */
void pstk__bytes_put(struct pstk__bytes *bytes, const void *data, uint64_t size);
/* Append a text, without its terminating 0. */
void pstk__bytes_text(struct pstk__bytes *bytes, const char *text);
/* Append a text that is formatted as by printf. */
void pstk__bytes_format(struct pstk__bytes *bytes, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Append a number. */
void pstk__bytes_u8(struct pstk__bytes *bytes, uint8_t value);
void pstk__bytes_u32(struct pstk__bytes *bytes, uint32_t value);
void pstk__bytes_i64(struct pstk__bytes *bytes, int64_t value);
void pstk__bytes_f32(struct pstk__bytes *bytes, double value);
void pstk__bytes_f64(struct pstk__bytes *bytes, double value);
/* Append `size` bytes of 0. */
void pstk__bytes_zeros(struct pstk__bytes *bytes, uint64_t size);
void pstk__bytes_free(struct pstk__bytes *bytes);

#endif
