/* SPDX-License-Identifier: Apache-2.0 */
#include "format/through.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

#define PROGRESS (16u << 20) /* bytes between two reports */

int pstk__through_open(struct pstk__through *through, const struct pstk__scan *scan,
                       struct pstk_error *err)
{
    *through = (struct pstk__through){.scan = scan, .err = err, .file = {.fd = -1}};
    pstk__through_adapt(through, 0);
    through->max = 2 * through->read;
    through->buffer = malloc(through->max);
    if (!through->buffer)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory to index %s", scan->path);
    const int r = scan->store->open(scan->store, &through->file, scan->path);
    return r < 0 ? pstk__store_fail_open(scan->store, -r, PSTK_STAGE_OPEN, scan->path, err) : 0;
}

void pstk__through_close(struct pstk__through *through)
{
    pstk__file_end(&through->file);
    free(through->buffer);
    through->buffer = NULL;
}

/* Make room for so many bytes. */
static int grow(struct pstk__through *through, uint64_t size)
{
    if (size <= through->max)
        return 0;
    uint8_t *buffer = realloc(through->buffer, size);
    if (!buffer)
        return pstk__fail(through->err, PSTK_ENOMEM, PSTK_STAGE_OPEN,
                          "no memory for %llu bytes of %s", (unsigned long long)size,
                          through->scan->path);
    through->buffer = buffer;
    through->max = size;
    return 0;
}

int64_t pstk__through_fill(struct pstk__through *through, uint64_t wanted)
{
    const uint64_t end = through->begin + through->n;
    if (through->at >= through->begin && through->at + wanted <= end)
        return (int64_t)(end - through->at);
    uint64_t kept = 0;
    if (through->at >= through->begin && through->at < end) {
        kept = end - through->at;
        memmove(through->buffer, through->buffer + (through->at - through->begin), kept);
    }
    through->begin = through->at;
    through->n = kept;
    const int r = grow(through, wanted);
    if (r < 0)
        return r;
    uint64_t more = wanted - kept > through->read ? wanted - kept : through->read;
    more = more < through->max - kept ? more : through->max - kept;
    const int64_t n =
        pstk__file_read(&through->file, through->buffer + kept, more, through->at + kept);
    if (n < 0) {
        char why[PSTK__WHY];
        return pstk__fail_errno(through->err, (int)-n, PSTK_STAGE_OPEN, "cannot read %s%s",
                                through->scan->path, pstk__file_why(&through->file, (int)-n, why));
    }
    through->n += (uint64_t)n;
    return (int64_t)through->n;
}

int pstk__through_report(struct pstk__through *through)
{
    const struct pstk__scan *scan = through->scan;
    const uint64_t done = through->at < scan->size ? through->at : scan->size;
    const uint64_t n = done - through->reported;
    if (!scan->progress || n == 0 || (n < PROGRESS && done < scan->size))
        return 0;
    through->reported = done;
    return scan->progress(scan->user, n) ? PSTK_ECANCELED : 0;
}
