/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_column: any bytes as the header and the pages of a column file, as they are and with right
 * checksums. The values of a page that passes lie within the page.
 */
#include "base/crc32c.h"
#include "base/little.h"
#include "format/pstk/column.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_code(int r, const struct pstk_error *err)
{
    if (r < 0 && (r != err->code || err->message[0] == 0))
        abort();
}

static void check_column(const uint8_t *header, const uint8_t *pages, uint64_t n_pages)
{
    struct pstk__column_header h;
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    const int r = pstk__column_header_check(&h, header, "x.c.pcol", &err);
    check_code(r, &err);
    if (r < 0)
        return;
    if (!pstk__column_name_ok(h.name) || h.file_size != 4096 * (1 + h.n_pages) || h.n_records < 1)
        abort();
    for (uint64_t p = 0; p < n_pages && p < h.n_pages; p++) {
        const struct pstk__column_page page = pstk__column_page_of(&h, "x.c.pcol", p);
        const uint8_t *bytes = pages + p * PSTK__COLUMN_PAGE;
        const void *values;
        const int ok = pstk__column_page_check(&page, bytes, &values, &err);
        check_code(ok, &err);
        if (ok == 0 &&
            ((const uint8_t *)values < bytes ||
             (const uint8_t *)values + (uint64_t)page.n * page.size > bytes + PSTK__COLUMN_PAGE))
            abort();
    }
}

/* The input is short: what it says goes over a sound file of two pages. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t file[3 * PSTK__COLUMN_PAGE];
    static const uint16_t values[2200] = {1, 2, 3};
    struct pstk__column_header h = {.n_records = 2200, .dtype = PSTK_U16, .name = "c"};
    pstk__column_header_derive(&h);
    pstk__column_header_encode(&h, file);
    for (uint32_t p = 0; p < 2; p++) {
        const struct pstk__column_page page = pstk__column_page_of(&h, "x.c.pcol", p);
        pstk__column_page_encode(file + 4096 * (1 + p), &page, values + 2040 * p);
    }
    /* Edits of 4 bytes: place (u16) in the file, then two bytes to write there. */
    for (size_t at = 0; at + 4 <= size; at += 4)
        memcpy(file + pstk__get16(data + at) % (sizeof file - 1), data + at + 2, 2);
    for (int seal = 0; seal < 2; seal++) {
        check_column(file, file + 4096, 2);
        pstk__put32(file + 4092, pstk__crc32c(0, file, 4092));
        for (uint32_t p = 1; p < 3; p++)
            pstk__put32(file + 4096 * p, pstk__crc32c(0, file + 4096 * p + 4, 4092));
    }
    check_column(file, file + 4096, 2);
    return 0;
}
