/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_megatron: the first byte is the length of samples (0: documents), the second the bytes of
 * the .bin in units of 2; the others are a .idx. Rows that pass lie within the .bin.
 */
#include "base/crc32c.h"
#include "base/little.h"
#include "format/megatron/megatron.h"
#include "format/megatron/scan.h"
#include "support/memory_store.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_starts(const struct pstk__index_rows *rows, const uint64_t *cells,
                         uint64_t length)
{
    const uint64_t at = cells[PSTK__MEGATRON_VALUE], size = cells[PSTK__MEGATRON_VALUE_SIZE];
    if (at > rows->n_values || size > rows->n_values - at || size < 4 || size % 4)
        abort();
    const uint8_t *value = rows->values + at;
    if (pstk__get32(value) != pstk__crc32c(0, value + 4, size - 4))
        abort();
    for (uint64_t i = 4; i < size; i += 4)
        if (pstk__get32(value + i) >= length ||
            (i > 4 && pstk__get32(value + i) <= pstk__get32(value + i - 4)))
            abort();
}

static void check_rows(const struct pstk__index_rows *rows,
                       const struct pstk__inferred_schema *found, uint64_t length,
                       uint64_t bin_size)
{
    const uint64_t item = pstk_dtype_size(found->fields[0].field.dtype);
    for (uint64_t i = 0; i < rows->n; i++) {
        const uint64_t *cells = rows->cells + i * rows->n_columns;
        if (cells[0] > bin_size || cells[1] > bin_size - cells[0] ||
            cells[1] > found->fields[0].max_size || cells[1] % item)
            abort();
        if (length && cells[1] != length * item)
            abort();
        if (length)
            check_starts(rows, cells, length);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t bin[512];
    if (size < 2 || size > 1u << 20 || data[0] == 1)
        return 0;
    const struct pstk__megatron own = {.length = data[0]};
    const uint64_t bin_size = 2ull * data[1];
    struct pstk__inferred_schema *found = calloc(1, sizeof *found);
    struct pstk__index_rows rows = {0};
    struct memory_store memory = memory_store_of();
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    memory.files[0] = (struct memory_file){".idx", data + 2, size - 2};
    memory.files[1] = (struct memory_file){".bin", bin, bin_size};
    const struct pstk__scan scan = {
        .store = &memory.store, .name = "x.bin", .path = "x.bin", .size = bin_size, .own = &own};
    int r = found ? pstk__megatron_infer(&scan, NULL, found, &err) : PSTK_ENOMEM;
    if (r == 0)
        r = pstk__megatron_scan(&scan, &rows, found, &err);
    if (r == 0)
        check_rows(&rows, found, own.length, bin_size);
    else if (found && (r != err.code || err.message[0] == 0))
        abort();
    pstk__index_rows_close(&rows);
    free(found);
    return 0;
}
