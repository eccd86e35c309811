/* SPDX-License-Identifier: Apache-2.0 */
#include "format/tfrecord/walk.h"

#include "base/error.h"
#include "format/tfrecord/frame.h"
#include "record/schema.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

int pstk__tfrecord_walk_open(struct pstk__tfrecord_walk *walk, const struct pstk__scan *scan,
                             struct pstk_error *err)
{
    walk->n = walk->begin = walk->length = walk->next = 0;
    return pstk__file_reader_open(&walk->reader, scan, err);
}

void pstk__tfrecord_walk_close(struct pstk__tfrecord_walk *walk)
{
    pstk__file_reader_close(&walk->reader);
}

int pstk__tfrecord_walk_fail(struct pstk__tfrecord_walk *walk, int code, const char *fmt, ...)
{
    char what[400];
    const struct pstk__scan *scan = walk->reader.scan;
    const uint64_t record = walk->n - (walk->n > 0);
    va_list args;
    va_start(args, fmt);
    if (vsnprintf(what, sizeof what, fmt, args) < 0)
        what[0] = 0;
    va_end(args);
    pstk__fail(walk->reader.err, code, PSTK_STAGE_OPEN,
               "%s: record %" PRIu64 " (byte %" PRIu64 "): %s", scan->path, record, walk->begin,
               what);
    return pstk__fail_at(walk->reader.err, code, scan->name, record, walk->begin, 0);
}

/* Fail because the 12 bytes at the begin of a record are not the head of one. The message says what
 * they may be. */
static int fail_head(struct pstk__tfrecord_walk *walk, const uint8_t *head)
{
    const int is_gzip = head[0] == 0x1f && head[1] == 0x8b;
    const int is_zlib = head[0] == 0x78 && (head[0] << 8 | head[1]) % 31 == 0;
    if (walk->begin == 0 && is_gzip) /* the first file of the data set is not compressed */
        return pstk__tfrecord_walk_fail(
            walk, PSTK_ENOTSUP,
            "the file is compressed by gzip, the first of the data set is not: "
            "unpack this one by gunzip");
    if (walk->begin == 0 && is_zlib)
        return pstk__tfrecord_walk_fail(
            walk, PSTK_ENOTSUP,
            "the file is compressed by zlib, so no record can be read by itself: write it again "
            "with gzip or without compression, or unpack it by pigz -dz");
    return pstk__tfrecord_walk_fail(
        walk, PSTK_EBADMSG,
        "%s: the checksum of its length is %08x, but these bytes state %08x; copy the file again%s",
        walk->begin ? "no record begins here, or its length is damaged"
                    : "this is not a TFRecord file, or its first length is damaged",
        pstk__tfrecord_mask(pstk__crc32c(0, head, 8)), pstk__get32(head + 8),
        walk->begin ? "" : ", or take it out of the data set");
}

int pstk__tfrecord_walk_next(struct pstk__tfrecord_walk *walk)
{
    struct pstk__file_reader *reader = &walk->reader;
    const uint64_t file_size = reader->scan->size;
    reader->at = walk->begin = walk->next;
    const int r = pstk__file_reader_report(reader);
    if (r < 0 || walk->begin == file_size)
        return r;
    const int64_t n = pstk__file_reader_fill(reader, PSTK__TFRECORD_HEAD);
    if (n < 0)
        return (int)n;
    walk->n++;
    const uint8_t *head = pstk__file_reader_bytes(reader);
    if (n < PSTK__TFRECORD_HEAD || file_size - walk->begin < PSTK__TFRECORD_FRAME)
        return pstk__tfrecord_walk_fail(walk, PSTK_EBADMSG,
                                        "the file ends within the frame of a record: it is cut "
                                        "short; copy it again");
    if (!pstk__tfrecord_head(head, &walk->length))
        return fail_head(walk, head);
    if (walk->length > file_size - walk->begin - PSTK__TFRECORD_FRAME)
        return pstk__tfrecord_walk_fail(walk, PSTK_EBADMSG,
                                        "the file ends at byte %" PRIu64 ", within the %" PRIu64
                                        " bytes of the record: it is cut short; copy it again",
                                        file_size, walk->length);
    if (walk->length + PSTK__TFRECORD_FRAME > PSTK__MAX_RECORD_SIZE)
        return pstk__tfrecord_walk_fail(
            walk, PSTK_EFBIG,
            "the record has %" PRIu64 " bytes; must have less than 4 GiB: split it", walk->length);
    walk->next = walk->begin + walk->length + PSTK__TFRECORD_FRAME;
    pstk__file_reader_adapt(reader, walk->length);
    return 1;
}

int pstk__tfrecord_walk_data(struct pstk__tfrecord_walk *walk, const uint8_t **data)
{
    const uint64_t size = walk->next - walk->begin;
    walk->reader.at = walk->begin;
    const int64_t n = pstk__file_reader_fill(&walk->reader, size);
    if (n < 0)
        return (int)n;
    if ((uint64_t)n < size)
        return pstk__tfrecord_walk_fail(walk, PSTK_EBADMSG,
                                        "the file became shorter while it was indexed");
    *data = pstk__file_reader_bytes(&walk->reader) + PSTK__TFRECORD_HEAD;
    return 0;
}
