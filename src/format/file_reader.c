/* SPDX-License-Identifier: Apache-2.0 */
#include "format/file_reader.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

#define PROGRESS (16u << 20) /* bytes between two reports */

int pstk__file_reader_open(struct pstk__file_reader *reader, const struct pstk__scan *scan,
                           struct pstk_error *err)
{
    *reader = (struct pstk__file_reader){.scan = scan, .err = err, .file = {.fd = -1}};
    pstk__file_reader_adapt(reader, 0);
    reader->max = 2 * reader->read;
    reader->buffer = malloc(reader->max);
    if (!reader->buffer)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory to index %s", scan->path);
    const int r = scan->store->open(scan->store, &reader->file, scan->path);
    return r < 0 ? pstk__store_fail_open(scan->store, -r, PSTK_STAGE_OPEN, scan->path, err) : 0;
}

void pstk__file_reader_close(struct pstk__file_reader *reader)
{
    pstk__file_end(&reader->file);
    free(reader->buffer);
    reader->buffer = NULL;
}

/* Make room for `size` bytes. */
static int grow(struct pstk__file_reader *reader, uint64_t size)
{
    if (size <= reader->max)
        return 0;
    uint8_t *buffer = realloc(reader->buffer, size);
    if (!buffer)
        return pstk__fail(reader->err, PSTK_ENOMEM, PSTK_STAGE_OPEN,
                          "no memory for %llu bytes of %s", (unsigned long long)size,
                          reader->scan->path);
    reader->buffer = buffer;
    reader->max = size;
    return 0;
}

int64_t pstk__file_reader_fill(struct pstk__file_reader *reader, uint64_t wanted)
{
    const uint64_t end = reader->begin + reader->n;
    if (reader->at >= reader->begin && reader->at + wanted <= end)
        return (int64_t)(end - reader->at);
    uint64_t kept = 0;
    if (reader->at >= reader->begin && reader->at < end) {
        kept = end - reader->at;
        memmove(reader->buffer, reader->buffer + (reader->at - reader->begin), kept);
    }
    reader->begin = reader->at;
    reader->n = kept;
    const int r = grow(reader, wanted);
    if (r < 0)
        return r;
    uint64_t more = wanted - kept > reader->read ? wanted - kept : reader->read;
    more = more < reader->max - kept ? more : reader->max - kept;
    const int64_t n =
        pstk__file_read(&reader->file, reader->buffer + kept, more, reader->at + kept);
    if (n < 0) {
        char why[PSTK__WHY];
        return pstk__fail_errno(reader->err, (int)-n, PSTK_STAGE_OPEN, "cannot read %s%s",
                                reader->scan->path, pstk__file_why(&reader->file, (int)-n, why));
    }
    reader->n += (uint64_t)n;
    return (int64_t)reader->n;
}

int pstk__file_reader_report(struct pstk__file_reader *reader)
{
    const struct pstk__scan *scan = reader->scan;
    const uint64_t done = reader->at < scan->size ? reader->at : scan->size;
    const uint64_t n = done - reader->reported;
    if (!scan->progress || n == 0 || (n < PROGRESS && done < scan->size))
        return 0;
    reader->reported = done;
    return scan->progress(scan->user, n) ? PSTK_ECANCELED : 0;
}
