/* SPDX-License-Identifier: Apache-2.0 */
#include "base/texts.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

int pstk__texts_open(struct pstk__texts *t, uint64_t n, uint64_t bytes)
{
    pstk__texts_close(t);
    if (bytes > UINT32_MAX || n > bytes) /* each has its 0 */
        return -EFBIG;
    if (n == 0)
        return 0;
    t->bytes = malloc(bytes);
    t->begin = malloc(n * sizeof *t->begin);
    if (!t->bytes || !t->begin) {
        pstk__texts_close(t);
        return -ENOMEM;
    }
    t->max_n = n;
    t->max_bytes = bytes;
    return 0;
}

void pstk__texts_add(struct pstk__texts *t, const char *text, uint64_t size)
{
    assert(t->n < t->max_n && size < t->max_bytes - t->size);
    t->begin[t->n++] = (uint32_t)t->size;
    memcpy(t->bytes + t->size, text, size);
    t->bytes[t->size + size] = 0;
    t->size += size + 1;
}

const char *pstk__texts_get(const struct pstk__texts *t, uint64_t i)
{
    return t->bytes + t->begin[i];
}

int pstk__texts_equal(const struct pstk__texts *a, const struct pstk__texts *b)
{
    /* The zeros part the texts: bytes that are the same are the same texts. */
    return a->n == b->n && a->size == b->size &&
           (a->n == 0 || !memcmp(a->bytes, b->bytes, a->size));
}

void pstk__texts_close(struct pstk__texts *t)
{
    free(t->bytes);
    free(t->begin);
    *t = (struct pstk__texts){0};
}
