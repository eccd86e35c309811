/* SPDX-License-Identifier: Apache-2.0 */
/*
 * texts: a list of short texts in two pieces of memory.
 * A text takes its bytes, its terminating 0 and 4 bytes: a list of millions of pointers to memory
 * of their own would take ten times that.
 */
#ifndef PSTK_TEXTS_H
#define PSTK_TEXTS_H

#include <stdint.h>

/* An all-zero struct is an empty list. */
struct pstk__texts {
    char *bytes;        /* owned; each text with its terminating 0 */
    uint32_t *begin;    /* owned; offset of text i in bytes */
    uint64_t n;         /* texts */
    uint64_t size;      /* used part of `bytes`, below 2^32 */
    uint64_t max_n;     /* capacity, texts */
    uint64_t max_bytes; /* capacity, bytes */
};

/* Make room for n texts of `bytes` bytes in all, their terminating zeros included; the old contents
 * are freed. 0 or -ENOMEM; -EFBIG: 2^32 bytes or more. */
int pstk__texts_open(struct pstk__texts *texts, uint64_t n, uint64_t bytes);
/* Append a copy of `size` bytes, which contain no 0. The list has room. */
void pstk__texts_add(struct pstk__texts *texts, const char *text, uint64_t size);
/* Return text i < n, terminated by 0. */
const char *pstk__texts_get(const struct pstk__texts *texts, uint64_t i);
/* Replace a list by a copy of another. Returns as pstk__texts_open. */
int pstk__texts_copy(struct pstk__texts *texts, const struct pstk__texts *from);
/* Return 1 for the same texts in the same order. */
int pstk__texts_equal(const struct pstk__texts *a, const struct pstk__texts *b);
/* Free the texts; the list is then empty. */
void pstk__texts_close(struct pstk__texts *texts);

/* Return 1 when a text ends with `end`, and is longer. */
int pstk__text_ends_with(const char *text, const char *end);

#endif
