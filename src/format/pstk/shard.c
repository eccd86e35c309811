/* SPDX-License-Identifier: Apache-2.0 */
#include "format/pstk/shard.h"

#include "base/crc32c.h"
#include "base/error.h"
#include "base/little.h"

#include <stdio.h>
#include <string.h>

static const char magic[8] = {'P', 'S', 'T', 'K', 'S', 'H', 'R', 'D'};

/* Positions in a header and in an index page; FORMAT.md has the tables. */
enum {
    AT_VERSION = 8,
    AT_FLAGS = 12,
    AT_SCHEMA_CRC = 16,
    AT_TAG = 20,
    AT_N_RECORDS = 24,
    AT_DATA_END = 32,
    AT_INDEX_OFFSET = 40,
    AT_FILE_SIZE = 48,
    AT_N_PAGES = 56,
    AT_INDEX_CRC = 64,
    AT_ZERO = 68,
    AT_IDENTITY = 72,
    AT_ZEROS = 88,
    AT_CRC = PSTK__HEADER_SIZE - 4,

    PAGE_NUMBER = 4,
    PAGE_TAG = 8,
    PAGE_COUNT = 12,
    PAGE_OFFSETS = 16,
};

#define IDENTITY_PRIME ((1ull << 61) - 1)

_Static_assert(PAGE_OFFSETS + 8 * (PSTK__PAGE_RECORDS + 1) == PSTK__INDEX_PAGE,
               "an index page is full of offsets");

uint64_t pstk__shard_n_pages(uint64_t n_records)
{
    return n_records / PSTK__PAGE_RECORDS + (n_records % PSTK__PAGE_RECORDS != 0);
}

uint32_t pstk__shard_tag(const char *maker, uint64_t sequence, uint32_t content)
{
    char rest[40];
    int n = snprintf(rest, sizeof rest, "/%llu/%08x", (unsigned long long)sequence, content);
    return pstk__crc32c(pstk__crc32c(0, maker, strlen(maker)), rest, (size_t)n);
}

int pstk__shard_header_derive(struct pstk__shard_header *h, struct pstk_error *err)
{
    if (h->n_records < 1 || h->n_records > PSTK__MAX_SHARD_RECORDS ||
        h->data_end < PSTK__HEADER_SIZE || h->data_end > PSTK__MAX_SHARD_SIZE)
        return pstk__fail(err, PSTK_EFBIG, PSTK_STAGE_SHARD,
                          "a shard has %llu records and its data end at byte %llu; must be 1 to "
                          "2^32-1 records and at most 16 TiB (use smaller shards)",
                          (unsigned long long)h->n_records, (unsigned long long)h->data_end);
    h->index_offset = (h->data_end + PSTK__INDEX_PAGE - 1) / PSTK__INDEX_PAGE * PSTK__INDEX_PAGE;
    h->n_pages = pstk__shard_n_pages(h->n_records);
    h->file_size = h->index_offset + h->n_pages * PSTK__INDEX_PAGE;
    if (h->file_size > PSTK__MAX_SHARD_SIZE)
        return pstk__fail(err, PSTK_EFBIG, PSTK_STAGE_SHARD,
                          "a shard has %llu bytes; must be at most 16 TiB (use smaller shards)",
                          (unsigned long long)h->file_size);
    return 0;
}

uint32_t pstk__shard_header_encode(struct pstk__shard_header *h, void *bytes)
{
    uint8_t *b = bytes;
    memset(b, 0, PSTK__HEADER_SIZE);
    memcpy(b, magic, sizeof magic);
    pstk__put32(b + AT_VERSION, PSTK_FORMAT_VERSION);
    pstk__put32(b + AT_SCHEMA_CRC, h->schema_crc);
    pstk__put32(b + AT_TAG, h->tag);
    pstk__put64(b + AT_N_RECORDS, h->n_records);
    pstk__put64(b + AT_DATA_END, h->data_end);
    pstk__put64(b + AT_INDEX_OFFSET, h->index_offset);
    pstk__put64(b + AT_FILE_SIZE, h->file_size);
    pstk__put64(b + AT_N_PAGES, h->n_pages);
    pstk__put32(b + AT_INDEX_CRC, h->index_crc);
    pstk__put64(b + AT_IDENTITY, h->identity[0]);
    pstk__put64(b + AT_IDENTITY + 8, h->identity[1]);
    h->crc = pstk__crc32c(0, b, AT_CRC);
    pstk__put32(b + AT_CRC, h->crc);
    return h->crc;
}

/* Fail for damage in bytes [offset, offset + length) of a shard file. */
#define FAIL_BYTES(err, name, offset, length, ...)                                                 \
    (pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_SHARD, __VA_ARGS__),                                 \
     pstk__fail_at(err, PSTK_EBADMSG, name, PSTK_NONE, offset, length), PSTK_EBADMSG)

/* Check magic, checksum, version and flags. The checksum comes early, so that a flipped bit counts
 * as damage, and only an intact header as another version. */
static int check_kind(const uint8_t *b, const char *name, struct pstk_error *err)
{
    if (memcmp(b, magic, sizeof magic) != 0)
        return FAIL_BYTES(err, name, 0, sizeof magic,
                          "%s: bytes 0 to 7 are not PSTKSHRD: the header is damaged, or the file "
                          "is not a penstock shard",
                          name);
    uint32_t crc = pstk__crc32c(0, b, AT_CRC);
    if (crc != pstk__get32(b + AT_CRC))
        return FAIL_BYTES(err, name, 0, PSTK__HEADER_SIZE,
                          "%s: the header (bytes 0 to 4095) is damaged: its checksum is %08x, but "
                          "it states %08x; restore the file from a copy",
                          name, crc, pstk__get32(b + AT_CRC));
    uint32_t version = pstk__get32(b + AT_VERSION);
    if (version > PSTK_FORMAT_VERSION)
        return pstk__fail(
            err, PSTK_ENOTSUP, PSTK_STAGE_SHARD,
            "%s: a newer penstock wrote it: its version is %u; this penstock reads version %d",
            name, version, PSTK_FORMAT_VERSION);
    if (version == 0)
        return FAIL_BYTES(err, name, AT_VERSION, 4,
                          "%s: the version in the header is 0, which is not a version", name);
    if (version < PSTK_FORMAT_VERSION)
        return pstk__fail(
            err, PSTK_ENOTSUP, PSTK_STAGE_SHARD,
            "%s is of version %u; this library reads version %d (pack again, to another directory)",
            name, version, PSTK_FORMAT_VERSION);
    uint32_t flags = pstk__get32(b + AT_FLAGS);
    if (flags != 0)
        return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_SHARD,
                          "%s: the header has flags 0x%x that this version does not know; reading "
                          "it needs a newer penstock",
                          name, flags);
    return 0;
}

static int is_zero(const uint8_t *b, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (b[i])
            return 0;
    return 1;
}

int pstk__shard_header_check(struct pstk__shard_header *h, const void *bytes, const char *name,
                             struct pstk_error *err)
{
    const uint8_t *b = bytes;
    memset(h, 0, sizeof *h);
    int r = check_kind(b, name, err);
    if (r < 0)
        return r;
    *h = (struct pstk__shard_header){
        .schema_crc = pstk__get32(b + AT_SCHEMA_CRC),
        .tag = pstk__get32(b + AT_TAG),
        .n_records = pstk__get64(b + AT_N_RECORDS),
        .data_end = pstk__get64(b + AT_DATA_END),
        .index_crc = pstk__get32(b + AT_INDEX_CRC),
        .crc = pstk__get32(b + AT_CRC),
        .identity = {pstk__get64(b + AT_IDENTITY), pstk__get64(b + AT_IDENTITY + 8)},
    };
    if (h->data_end % PSTK__RECORD_ALIGN || pstk__shard_header_derive(h, NULL) < 0)
        return FAIL_BYTES(err, name, AT_N_RECORDS, 16,
                          "%s: the header is impossible: %llu records whose data end at byte %llu",
                          name, (unsigned long long)h->n_records, (unsigned long long)h->data_end);
    if (h->index_offset != pstk__get64(b + AT_INDEX_OFFSET) ||
        h->file_size != pstk__get64(b + AT_FILE_SIZE) || h->n_pages != pstk__get64(b + AT_N_PAGES))
        return FAIL_BYTES(err, name, AT_INDEX_OFFSET, 24,
                          "%s: the header contradicts itself: index offset, file size and number "
                          "of pages do not follow from %llu records and a data end of %llu",
                          name, (unsigned long long)h->n_records, (unsigned long long)h->data_end);
    if (h->identity[0] >= IDENTITY_PRIME || h->identity[1] >= IDENTITY_PRIME)
        return FAIL_BYTES(err, name, AT_IDENTITY, 16,
                          "%s: the header's identity lanes are out of range", name);
    if (!is_zero(b + AT_ZERO, 4) || !is_zero(b + AT_ZEROS, AT_CRC - AT_ZEROS))
        return FAIL_BYTES(err, name, AT_ZERO, AT_CRC - AT_ZERO,
                          "%s: the header has bytes that must be zero and are not", name);
    return 0;
}

uint32_t pstk__page_encode(void *bytes, uint32_t page, uint32_t tag, uint32_t n,
                           const uint64_t *offsets)
{
    uint8_t *b = bytes;
    memset(b, 0, PSTK__INDEX_PAGE);
    pstk__put32(b + PAGE_NUMBER, page);
    pstk__put32(b + PAGE_TAG, tag);
    pstk__put32(b + PAGE_COUNT, n);
    for (uint32_t i = 0; i <= n; i++)
        pstk__put64(b + PAGE_OFFSETS + 8 * i, offsets[i]);
    uint32_t crc = pstk__crc32c(0, b + 4, PSTK__INDEX_PAGE - 4);
    pstk__put32(b, crc);
    return crc;
}

uint64_t pstk__page_offset(const void *bytes, uint32_t i)
{
    return pstk__get64((const uint8_t *)bytes + PAGE_OFFSETS + 8 * (uint64_t)i);
}

uint32_t pstk__page_crc(const void *bytes)
{
    return pstk__get32(bytes);
}

uint32_t pstk__shard_index_crc(uint32_t index_crc, uint32_t page_crc)
{
    uint8_t bytes[4];
    pstk__put32(bytes, page_crc);
    return pstk__crc32c(index_crc, bytes, sizeof bytes);
}

void pstk__page_extent(const void *bytes, uint64_t record, uint64_t *offset, uint64_t *size)
{
    uint32_t i = (uint32_t)(record % PSTK__PAGE_RECORDS);
    *offset = pstk__page_offset(bytes, i);
    *size = pstk__page_offset(bytes, i + 1) - *offset;
}

static uint64_t page_at(const struct pstk__page_location *location)
{
    return location->index_offset + (uint64_t)location->page * PSTK__INDEX_PAGE;
}

#define FAIL_PAGE(err, p, fmt, ...)                                                                \
    FAIL_BYTES(err, (p)->shard, page_at(p), PSTK__INDEX_PAGE,                                      \
               "%s: index page %u (bytes %llu to %llu) " fmt, (p)->shard, (p)->page,               \
               (unsigned long long)page_at(p),                                                     \
               (unsigned long long)page_at(p) + PSTK__INDEX_PAGE - 1, __VA_ARGS__)

/* Check the offsets of n records: each step is a valid record size, from the data's begin to its
 * end. */
static int check_offsets(const struct pstk__page_location *location, const uint8_t *b, uint32_t n,
                         int last, struct pstk_error *err)
{
    uint64_t from = pstk__page_offset(b, 0);
    if (location->page == 0 ? from != PSTK__HEADER_SIZE : from < PSTK__HEADER_SIZE)
        return FAIL_PAGE(err, location, "begins its records at byte %llu",
                         (unsigned long long)from);
    if (from % PSTK__RECORD_ALIGN)
        return FAIL_PAGE(err, location, "begins its records at byte %llu, which is not aligned",
                         (unsigned long long)from);
    for (uint32_t i = 1; i <= n; i++) {
        uint64_t to = pstk__page_offset(b, i);
        if (to > location->data_end || to < from || to - from < location->head_size ||
            to - from > PSTK__MAX_RECORD_SIZE || to % PSTK__RECORD_ALIGN)
            return FAIL_PAGE(err, location, "states that record %llu is the bytes [%llu, %llu)",
                             (unsigned long long)location->page * PSTK__PAGE_RECORDS + i - 1,
                             (unsigned long long)from, (unsigned long long)to);
        from = to;
    }
    if (last && from != location->data_end)
        return FAIL_PAGE(err, location,
                         "ends its records at byte %llu, not at %llu as the header says",
                         (unsigned long long)from, (unsigned long long)location->data_end);
    return 0;
}

int pstk__page_check(const struct pstk__page_location *location, const void *bytes,
                     struct pstk_error *err)
{
    const uint8_t *b = bytes;
    uint32_t crc = pstk__crc32c(0, b + 4, PSTK__INDEX_PAGE - 4);
    if (crc != pstk__page_crc(b))
        return FAIL_PAGE(err, location, "is damaged: its checksum is %08x, but it states %08x", crc,
                         pstk__page_crc(b));
    if (pstk__get32(b + PAGE_NUMBER) != location->page ||
        pstk__get32(b + PAGE_TAG) != location->tag)
        return FAIL_PAGE(err, location,
                         "is misplaced: it is page %u of the shard with tag %08x, not %08x",
                         pstk__get32(b + PAGE_NUMBER), pstk__get32(b + PAGE_TAG), location->tag);
    uint64_t n_pages = pstk__shard_n_pages(location->n_records);
    if (location->page >= n_pages)
        return FAIL_PAGE(err, location, "is one too many: the shard has %llu",
                         (unsigned long long)n_pages);
    int last = location->page + 1 == n_pages;
    uint64_t n = location->n_records - (uint64_t)location->page * PSTK__PAGE_RECORDS;
    n = last ? n : PSTK__PAGE_RECORDS;
    if (pstk__get32(b + PAGE_COUNT) != n)
        return FAIL_PAGE(err, location, "states that it has %u records, not %llu",
                         pstk__get32(b + PAGE_COUNT), (unsigned long long)n);
    size_t used = PAGE_OFFSETS + 8 * (n + 1);
    if (!is_zero(b + used, PSTK__INDEX_PAGE - used))
        return FAIL_PAGE(err, location, "has offsets past its last record (%s)",
                         "they must be zero");
    return check_offsets(location, b, (uint32_t)n, last, err);
}
