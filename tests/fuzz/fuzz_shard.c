/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_shard: any bytes as a header and the index pages behind it, as they are and with right
 * checksums. Every extent of a page that passes lies within the data and has a record's size.
 */
#include "base/crc32c.h"
#include "base/little.h"
#include "format/pstk/shard.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define HEAD_SIZE 48

static void check_page(const struct pstk__shard_header *h, uint32_t page, const uint8_t *bytes)
{
    const struct pstk__page_location location = {
        .shard = "x.pstk",
        .tag = h->tag,
        .page = page,
        .n_records = h->n_records,
        .data_end = h->data_end,
        .index_offset = h->index_offset,
        .head_size = HEAD_SIZE,
    };
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    int r = pstk__page_check(&location, bytes, &err);
    if (r < 0 && (r != err.code || err.message[0] == 0))
        abort();
    uint64_t first = (uint64_t)page * PSTK__PAGE_RECORDS;
    for (uint64_t i = first; r == 0 && i < first + PSTK__PAGE_RECORDS && i < h->n_records; i++) {
        uint64_t offset, n;
        pstk__page_extent(bytes, i, &offset, &n);
        if (offset % PSTK__RECORD_ALIGN || offset < PSTK__HEADER_SIZE || n < HEAD_SIZE ||
            n > PSTK__MAX_RECORD_SIZE || offset > h->data_end || n > h->data_end - offset)
            abort();
    }
}

static void check_shard(const uint8_t *header, const uint8_t *pages, size_t n_pages)
{
    struct pstk__shard_header h;
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    int r = pstk__shard_header_check(&h, header, "x.pstk", &err);
    if (r < 0 && (r != err.code || err.message[0] == 0))
        abort();
    if (r < 0)
        return;
    if (h.file_size > PSTK__MAX_SHARD_SIZE || h.n_records < 1 || h.data_end > h.index_offset)
        abort();
    for (size_t p = 0; p < n_pages; p++)
        check_page(&h, (uint32_t)p, pages + p * PSTK__INDEX_PAGE);
}

/* The input is short: what it says of the header goes over a sound one, the rest over pages. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t header[PSTK__HEADER_SIZE], pages[2 * PSTK__INDEX_PAGE];
    if (size >= sizeof header) {
        memcpy(header, data, sizeof header);
        check_shard(header, NULL, 0);
    }
    struct pstk__shard_header h = {.n_records = 600, .data_end = 4096 + 600 * 64};
    uint64_t offsets[510];
    pstk__shard_header_derive(&h, NULL);
    pstk__shard_header_encode(&h, header);
    for (uint32_t p = 0; p < 2; p++) {
        uint32_t n = p ? 91 : 509;
        for (uint32_t i = 0; i <= n; i++)
            offsets[i] = 4096 + 64ull * (509 * p + i);
        pstk__page_encode(pages + 4096 * p, p, h.tag, n, offsets);
    }
    /* Edits of 4 bytes: place (u16) in header and pages, then two bytes to write there. */
    for (size_t at = 0; at + 4 <= size; at += 4) {
        size_t to = pstk__get16(data + at) % (sizeof header + sizeof pages - 1);
        for (size_t k = 0; k < 2; k++)
            *(to + k < sizeof header ? &header[to + k] : &pages[to + k - sizeof header]) =
                data[at + 2 + k];
    }
    for (int seal = 0; seal < 2; seal++) {
        check_shard(header, pages, 2);
        pstk__put32(header + 4092, pstk__crc32c(0, header, 4092));
        for (uint32_t p = 0; p < 2; p++)
            pstk__put32(pages + 4096 * p, pstk__crc32c(0, pages + 4096 * p + 4, 4092));
    }
    check_shard(header, pages, 2);
    return 0;
}
