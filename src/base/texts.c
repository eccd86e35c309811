/* SPDX-License-Identifier: Apache-2.0 */
#include "base/texts.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

int pstk__texts_open(struct pstk__texts *texts, uint64_t n, uint64_t bytes)
{
    pstk__texts_close(texts);
    if (bytes > UINT32_MAX || n > bytes) /* each text has its terminating 0 */
        return -EFBIG;
    if (n == 0)
        return 0;
    texts->bytes = malloc(bytes);
    texts->begin = malloc(n * sizeof *texts->begin);
    if (!texts->bytes || !texts->begin) {
        pstk__texts_close(texts);
        return -ENOMEM;
    }
    texts->max_n = n;
    texts->max_bytes = bytes;
    return 0;
}

void pstk__texts_add(struct pstk__texts *texts, const char *text, uint64_t size)
{
    assert(texts->n < texts->max_n && size < texts->max_bytes - texts->size);
    texts->begin[texts->n++] = (uint32_t)texts->size;
    memcpy(texts->bytes + texts->size, text, size);
    texts->bytes[texts->size + size] = 0;
    texts->size += size + 1;
}

const char *pstk__texts_get(const struct pstk__texts *texts, uint64_t i)
{
    return texts->bytes + texts->begin[i];
}

int pstk__texts_copy(struct pstk__texts *texts, const struct pstk__texts *from)
{
    const int r = pstk__texts_open(texts, from->n, from->size);
    for (uint64_t i = 0; r == 0 && i < from->n; i++) {
        const char *text = pstk__texts_get(from, i);
        pstk__texts_add(texts, text, strlen(text));
    }
    return r;
}

int pstk__texts_equal(const struct pstk__texts *a, const struct pstk__texts *b)
{
    /* Zeros separate the texts, so equal bytes mean equal texts. */
    return a->n == b->n && a->size == b->size &&
           (a->n == 0 || !memcmp(a->bytes, b->bytes, a->size));
}

void pstk__texts_close(struct pstk__texts *texts)
{
    free(texts->bytes);
    free(texts->begin);
    *texts = (struct pstk__texts){0};
}

int pstk__text_ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);
    return n > m && strcmp(text + n - m, end) == 0;
}
