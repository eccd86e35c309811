/* SPDX-License-Identifier: Apache-2.0 */
/* archive_writer: a ZIP archive of stored members, made in memory. */
#ifndef PSTK_ARCHIVE_WRITER_H
#define PSTK_ARCHIVE_WRITER_H

#include "base/crc32.h"
#include "base/little.h"

#include <string.h>

/* An archive being written. */
struct written {
    uint8_t bytes[8192];
    uint64_t size;
    uint8_t entries[1024];
    uint64_t entries_size;
    uint32_t n;
    int is_large; /* 1: all sizes and offsets are in zip64's fields */
    uint64_t entry[4], local[4];
};

static inline void archive_put(struct written *written, const void *bytes, uint64_t size)
{
    memcpy(written->bytes + written->size, bytes, size);
    written->size += size;
}

/* The zip64 field: n numbers of 64 bits. */
static inline uint32_t archive_put_large(uint8_t *to, const uint64_t *numbers, uint32_t n)
{
    pstk__put16(to, 1);
    pstk__put16(to + 2, (uint16_t)(8 * n));
    for (uint32_t i = 0; i < n; i++)
        pstk__put64(to + 4 + (size_t)8 * i, numbers[i]);
    return 4 + 8 * n;
}

static inline void archive_add(struct written *written, const char *name, const void *data,
                               uint32_t size)
{
    uint8_t local[256] = "PK\3\4", *entry = written->entries + written->entries_size;
    const uint32_t n = (uint32_t)strlen(name);
    const uint64_t numbers[] = {size, size, written->size};
    uint32_t local_size = 30 + n, entry_size = 46 + n;
    written->local[written->n] = written->size;
    written->entry[written->n++] = written->entries_size;
    struct pstk__crc32 tables;
    pstk__crc32_init(&tables);
    const uint32_t crc = pstk__crc32_continue(&tables, 0, data, size);
    memset(entry, 0, 46);
    memcpy(entry, "PK\1\2", 4);
    pstk__put32(local + 14, crc);
    pstk__put32(entry + 16, crc);
    for (uint32_t i = 0; i < 2; i++) {
        pstk__put32(local + 18 + (size_t)4 * i, written->is_large ? UINT32_MAX : size);
        pstk__put32(entry + 20 + (size_t)4 * i, written->is_large ? UINT32_MAX : size);
    }
    pstk__put32(entry + 42, written->is_large ? UINT32_MAX : (uint32_t)written->size);
    pstk__put16(local + 26, (uint16_t)n);
    pstk__put16(entry + 28, (uint16_t)n);
    memcpy(local + 30, name, n);
    memcpy(entry + 46, name, n);
    if (written->is_large) {
        const uint32_t local_extra = archive_put_large(local + local_size, numbers, 2);
        const uint32_t entry_extra = archive_put_large(entry + entry_size, numbers, 3);
        pstk__put16(local + 28, (uint16_t)local_extra);
        pstk__put16(entry + 30, (uint16_t)entry_extra);
        local_size += local_extra;
        entry_size += entry_extra;
    }
    archive_put(written, local, local_size);
    archive_put(written, data, size);
    written->entries_size += entry_size;
}

/* Write the directory and the end. */
static inline void archive_finish(struct written *written, const char *comment)
{
    uint8_t end64[56] = "PK\6\6", locator[20] = "PK\6\7", end[22] = "PK\5\6";
    const uint64_t offset = written->size;
    archive_put(written, written->entries, written->entries_size);
    if (written->is_large) {
        pstk__put64(end64 + 4, 44);
        pstk__put64(end64 + 24, written->n);
        pstk__put64(end64 + 32, written->n);
        pstk__put64(end64 + 40, written->entries_size);
        pstk__put64(end64 + 48, offset);
        pstk__put64(locator + 8, written->size);
        pstk__put32(locator + 16, 1);
        archive_put(written, end64, sizeof end64);
        archive_put(written, locator, sizeof locator);
    }
    pstk__put16(end + 8, written->is_large ? UINT16_MAX : (uint16_t)written->n);
    pstk__put16(end + 10, written->is_large ? UINT16_MAX : (uint16_t)written->n);
    pstk__put32(end + 12, written->is_large ? UINT32_MAX : (uint32_t)written->entries_size);
    pstk__put32(end + 16, written->is_large ? UINT32_MAX : (uint32_t)offset);
    pstk__put16(end + 20, (uint16_t)strlen(comment));
    archive_put(written, end, sizeof end);
    archive_put(written, comment, strlen(comment));
}

#endif
