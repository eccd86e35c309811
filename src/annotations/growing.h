/* SPDX-License-Identifier: Apache-2.0 */
/* growing: bytes that are appended to. Memory that lacks is noted, and asked for once at the end.
 */
#ifndef PSTK_GROWING_H
#define PSTK_GROWING_H

#include <stdint.h>

/* All zero is empty. */
struct pstk__growing {
    uint8_t *at;   /* owned */
    uint64_t size; /* bytes */
    uint64_t room; /* bytes */
    int failed;    /* 1: memory lacked; the bytes are not whole */
};

/* Append n bytes, 1 or more, that the caller writes. Returns the first; NULL: memory lacks. */
uint8_t *pstk__growing_get(struct pstk__growing *bytes, uint64_t n);
/* Append n bytes. */
void pstk__growing_add(struct pstk__growing *bytes, const void *data, uint64_t n);
void pstk__growing_add_u8(struct pstk__growing *bytes, uint8_t value);
void pstk__growing_add_u32(struct pstk__growing *bytes, uint32_t value);
void pstk__growing_add_i64(struct pstk__growing *bytes, int64_t value);
void pstk__growing_add_f32(struct pstk__growing *bytes, double value);
void pstk__growing_add_f64(struct pstk__growing *bytes, double value);
/* Forget the bytes, and keep the memory. */
void pstk__growing_clear(struct pstk__growing *bytes);
void pstk__growing_close(struct pstk__growing *bytes);

#endif
