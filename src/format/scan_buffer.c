/* SPDX-License-Identifier: Apache-2.0 */
#include "format/scan_buffer.h"

#include <stdlib.h>

int pstk__scan_buffer_open(struct pstk__scan_buffer *buffer, uint64_t read)
{
    *buffer = (struct pstk__scan_buffer){.bytes = malloc(PSTK__SCAN_BUFFER_SIZE), .read = read};
    return buffer->bytes ? 0 : PSTK_ENOMEM;
}

const uint8_t *pstk__scan_buffer_at(struct pstk__scan_buffer *buffer, const struct pstk__file *file,
                                    uint64_t at, uint64_t size, int64_t *n)
{
    *n = (int64_t)size;
    if (at >= buffer->begin && at + size <= buffer->begin + buffer->n)
        return buffer->bytes + (at - buffer->begin);
    *n = pstk__file_read(file, buffer->bytes, size > buffer->read ? size : buffer->read, at);
    buffer->begin = at;
    buffer->n = *n < 0 ? 0 : (uint64_t)*n;
    return buffer->n >= size ? buffer->bytes : NULL;
}

void pstk__scan_buffer_close(struct pstk__scan_buffer *buffer)
{
    free(buffer->bytes);
    *buffer = (struct pstk__scan_buffer){0};
}
