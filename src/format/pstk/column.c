/* SPDX-License-Identifier: Apache-2.0 */
#include "format/pstk/column.h"

#include "base/crc32c.h"
#include "base/error.h"
#include "base/little.h"

#include <stdio.h>
#include <string.h>

static const char magic[8] = {'P', 'S', 'T', 'K', 'C', 'O', 'L', 'M'};

/* Positions in a header and in a page; FORMAT.md has the tables. */
enum {
    AT_VERSION = 8,
    AT_FLAGS = 12,
    AT_TAG = 16,
    AT_SHARD_CRC = 20,
    AT_N_RECORDS = 24,
    AT_DTYPE = 32,
    AT_PAGES_CRC = 36,
    AT_N_PAGES = 40,
    AT_FILE_SIZE = 48,
    AT_ZERO = 56,
    AT_NAME = 64,
    AT_ZEROS = AT_NAME + PSTK_MAX_COLUMN_NAME,
    AT_CRC = PSTK__COLUMN_PAGE - 4,

    PAGE_NUMBER = 4,
    PAGE_TAG = 8,
    PAGE_COUNT = 12,
    PAGE_VALUES = 16,
};

_Static_assert(PAGE_VALUES + PSTK__COLUMN_VALUES == PSTK__COLUMN_PAGE, "a page is full of values");
_Static_assert(PSTK__COLUMN_VALUES % 8 == 0, "values of every size fill a page");

int pstk__column_text_ok(const char *text, size_t max)
{
    const size_t n = strlen(text);
    return n >= 1 && n <= max &&
           strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-") == n;
}

int pstk__column_name_ok(const char *name)
{
    return pstk__column_text_ok(name, PSTK_MAX_COLUMN_NAME - 1);
}

uint32_t pstk__column_per_page(uint32_t dtype)
{
    return PSTK__COLUMN_VALUES / pstk_dtype_size(dtype);
}

static uint32_t page_tag(const struct pstk__column_header *h)
{
    char text[PSTK_MAX_COLUMN_NAME + 32];
    const int n =
        snprintf(text, sizeof text, "%08x/%s/%s", h->tag, h->name, pstk_dtype_name(h->dtype));
    return pstk__crc32c(0, text, (size_t)n);
}

static uint64_t count_pages(uint64_t n_records, uint32_t dtype)
{
    const uint64_t per_page = pstk__column_per_page(dtype);
    return n_records / per_page + (n_records % per_page != 0);
}

uint64_t pstk__column_file_size(uint64_t n_records, uint32_t dtype)
{
    return (1 + count_pages(n_records, dtype)) * PSTK__COLUMN_PAGE; /* below 2^45 */
}

void pstk__column_header_derive(struct pstk__column_header *h)
{
    h->n_pages = count_pages(h->n_records, h->dtype);
    h->file_size = pstk__column_file_size(h->n_records, h->dtype);
    h->page_tag = page_tag(h);
}

uint32_t pstk__column_header_encode(struct pstk__column_header *h, void *bytes)
{
    uint8_t *b = bytes;
    memset(b, 0, PSTK__COLUMN_PAGE);
    memcpy(b, magic, sizeof magic);
    pstk__put32(b + AT_VERSION, PSTK_FORMAT_VERSION);
    pstk__put32(b + AT_TAG, h->tag);
    pstk__put32(b + AT_SHARD_CRC, h->shard_crc);
    pstk__put64(b + AT_N_RECORDS, h->n_records);
    pstk__put32(b + AT_DTYPE, h->dtype);
    pstk__put32(b + AT_PAGES_CRC, h->pages_crc);
    pstk__put64(b + AT_N_PAGES, h->n_pages);
    pstk__put64(b + AT_FILE_SIZE, h->file_size);
    memcpy(b + AT_NAME, h->name, strlen(h->name));
    h->crc = pstk__crc32c(0, b, AT_CRC);
    pstk__put32(b + AT_CRC, h->crc);
    return h->crc;
}

/* Fail for damage in bytes [offset, offset + length) of a column file. */
#define FAIL_BYTES(err, file, offset, length, ...)                                                 \
    (pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_SHARD, __VA_ARGS__),                                 \
     pstk__fail_at(err, PSTK_EBADMSG, file, PSTK_NONE, offset, length), PSTK_EBADMSG)

static int is_zero(const uint8_t *b, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (b[i])
            return 0;
    return 1;
}

/* Check magic, checksum, version, flags and dtype. The checksum comes early, so that a flipped bit
 * counts as damage, and only an intact header as another version. */
static int check_kind(const uint8_t *b, const char *file, struct pstk_error *err)
{
    if (memcmp(b, magic, sizeof magic) != 0)
        return FAIL_BYTES(
            err, file, 0, sizeof magic,
            "%s: bytes 0 to 7 are not PSTKCOLM: the header is damaged, or the file is "
            "not a column",
            file);
    const uint32_t crc = pstk__crc32c(0, b, AT_CRC);
    if (crc != pstk__get32(b + AT_CRC))
        return FAIL_BYTES(err, file, 0, PSTK__COLUMN_PAGE,
                          "%s: the header (bytes 0 to 4095) is damaged: its checksum is %08x, but "
                          "it states %08x; restore the file from a copy",
                          file, crc, pstk__get32(b + AT_CRC));
    const uint32_t version = pstk__get32(b + AT_VERSION), flags = pstk__get32(b + AT_FLAGS);
    const uint32_t dtype = pstk__get32(b + AT_DTYPE);
    if (version != PSTK_FORMAT_VERSION)
        return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_SHARD,
                          "%s is of version %u; this library reads columns of version %d", file,
                          version, PSTK_FORMAT_VERSION);
    if (flags != 0)
        return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_SHARD,
                          "%s: the header has flags 0x%x that this version does not know; reading "
                          "it needs a newer penstock",
                          file, flags);
    if (pstk_dtype_size(dtype) == 0)
        return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_SHARD,
                          "%s: the header has the dtype %u, which this version does not know", file,
                          dtype);
    return 0;
}

/* Check the name, and the zeros after it. */
static int check_name(const uint8_t *b, const char *file, struct pstk_error *err)
{
    const char *name = (const char *)b + AT_NAME;
    const size_t n = strnlen(name, PSTK_MAX_COLUMN_NAME);
    if (n < PSTK_MAX_COLUMN_NAME && pstk__column_name_ok(name) &&
        is_zero(b + AT_NAME + n, PSTK_MAX_COLUMN_NAME - n))
        return 0;
    return FAIL_BYTES(err, file, AT_NAME, PSTK_MAX_COLUMN_NAME,
                      "%s: the header's name is not one that a column may have", file);
}

int pstk__column_header_check(struct pstk__column_header *h, const void *bytes, const char *file,
                              struct pstk_error *err)
{
    const uint8_t *b = bytes;
    memset(h, 0, sizeof *h);
    int r = check_kind(b, file, err);
    if (r == 0)
        r = check_name(b, file, err);
    if (r < 0)
        return r;
    *h = (struct pstk__column_header){
        .tag = pstk__get32(b + AT_TAG),
        .shard_crc = pstk__get32(b + AT_SHARD_CRC),
        .n_records = pstk__get64(b + AT_N_RECORDS),
        .dtype = pstk__get32(b + AT_DTYPE),
        .pages_crc = pstk__get32(b + AT_PAGES_CRC),
        .crc = pstk__get32(b + AT_CRC),
    };
    memcpy(h->name, b + AT_NAME, sizeof h->name);
    if (h->n_records < 1 || h->n_records > UINT32_MAX)
        return FAIL_BYTES(err, file, AT_N_RECORDS, 8, "%s: the header is impossible: %llu records",
                          file, (unsigned long long)h->n_records);
    pstk__column_header_derive(h);
    if (h->n_pages != pstk__get64(b + AT_N_PAGES) || h->file_size != pstk__get64(b + AT_FILE_SIZE))
        return FAIL_BYTES(err, file, AT_N_PAGES, 16,
                          "%s: the header contradicts itself: file size and number of pages do not "
                          "follow from %llu records of %s",
                          file, (unsigned long long)h->n_records, pstk_dtype_name(h->dtype));
    if (!is_zero(b + AT_ZERO, AT_NAME - AT_ZERO) || !is_zero(b + AT_ZEROS, AT_CRC - AT_ZEROS))
        return FAIL_BYTES(err, file, AT_ZERO, AT_CRC - AT_ZERO,
                          "%s: the header has bytes that must be zero and are not", file);
    return 0;
}

struct pstk__column_page pstk__column_page_of(const struct pstk__column_header *h, const char *file,
                                              uint64_t page)
{
    const uint32_t per_page = pstk__column_per_page(h->dtype);
    const uint64_t left = h->n_records - page * per_page;
    return (struct pstk__column_page){.file = file,
                                      .tag = h->page_tag,
                                      .page = (uint32_t)page,
                                      .n = left < per_page ? (uint32_t)left : per_page,
                                      .size = pstk_dtype_size(h->dtype)};
}

uint32_t pstk__column_page_encode(void *bytes, const struct pstk__column_page *page,
                                  const void *values)
{
    uint8_t *b = bytes;
    memset(b, 0, PSTK__COLUMN_PAGE);
    pstk__put32(b + PAGE_NUMBER, page->page);
    pstk__put32(b + PAGE_TAG, page->tag);
    pstk__put32(b + PAGE_COUNT, page->n);
    memcpy(b + PAGE_VALUES, values, (size_t)page->n * page->size);
    const uint32_t crc = pstk__crc32c(0, b + 4, PSTK__COLUMN_PAGE - 4);
    pstk__put32(b, crc);
    return crc;
}

#define FAIL_PAGE(err, p, fmt, ...)                                                                \
    FAIL_BYTES(err, (p)->file, (1 + (uint64_t)(p)->page) * PSTK__COLUMN_PAGE, PSTK__COLUMN_PAGE,   \
               "%s: page %u (bytes %llu to %llu) " fmt, (p)->file, (p)->page,                      \
               (unsigned long long)(1 + (uint64_t)(p)->page) * PSTK__COLUMN_PAGE,                  \
               (unsigned long long)(2 + (uint64_t)(p)->page) * PSTK__COLUMN_PAGE - 1, __VA_ARGS__)

int pstk__column_page_check(const struct pstk__column_page *page, const void *bytes,
                            const void **values, struct pstk_error *err)
{
    const uint8_t *b = bytes;
    const size_t size = (size_t)page->n * page->size;
    const uint32_t crc = pstk__crc32c(0, b + 4, PSTK__COLUMN_PAGE - 4);
    if (crc != pstk__get32(b))
        return FAIL_PAGE(err, page, "is damaged: its checksum is %08x, but it states %08x", crc,
                         pstk__get32(b));
    if (pstk__get32(b + PAGE_NUMBER) != page->page || pstk__get32(b + PAGE_TAG) != page->tag)
        return FAIL_PAGE(err, page,
                         "belongs elsewhere: it is page %u with the tag %08x, but must have %08x",
                         pstk__get32(b + PAGE_NUMBER), pstk__get32(b + PAGE_TAG), page->tag);
    if (pstk__get32(b + PAGE_COUNT) != page->n)
        return FAIL_PAGE(err, page, "states %u values; must have %u", pstk__get32(b + PAGE_COUNT),
                         page->n);
    if (!is_zero(b + PAGE_VALUES + size, PSTK__COLUMN_VALUES - size))
        return FAIL_PAGE(err, page, "has bytes after its %u values that are not zero", page->n);
    *values = b + PAGE_VALUES;
    return 0;
}

uint32_t pstk__column_page_crc(const void *bytes)
{
    return pstk__get32(bytes);
}

uint32_t pstk__column_pages_crc(uint32_t pages_crc, uint32_t page_crc)
{
    uint8_t bytes[4];
    pstk__put32(bytes, page_crc);
    return pstk__crc32c(pages_crc, bytes, sizeof bytes);
}
