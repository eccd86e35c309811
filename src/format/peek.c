/* SPDX-License-Identifier: Apache-2.0 */
#include "format/peek.h"

#include <stdlib.h>

int pstk__peek_open(struct pstk__peek *peek, uint64_t read)
{
    *peek = (struct pstk__peek){.bytes = malloc(PSTK__PEEK_SIZE), .read = read};
    return peek->bytes ? 0 : PSTK_ENOMEM;
}

const uint8_t *pstk__peek_at(struct pstk__peek *peek, const struct pstk__file *file, uint64_t at,
                             uint64_t size, int64_t *n)
{
    *n = (int64_t)size;
    if (at >= peek->begin && at + size <= peek->begin + peek->n)
        return peek->bytes + (at - peek->begin);
    *n = pstk__file_read(file, peek->bytes, size > peek->read ? size : peek->read, at);
    peek->begin = at;
    peek->n = *n < 0 ? 0 : (uint64_t)*n;
    return peek->n >= size ? peek->bytes : NULL;
}

void pstk__peek_close(struct pstk__peek *peek)
{
    free(peek->bytes);
    *peek = (struct pstk__peek){0};
}
