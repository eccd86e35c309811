/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_mds: the first byte says what the others are: an index.json, or a shard whose columns the
 * second byte chooses. Rows of a shard that passes lie within it, and what is viewed of their
 * values does, too.
 */
#include "base/little.h"
#include "format/mds/scan.h"
#include "record/translate.h"
#include "record/value.h"
#include "support/memory_store.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct {
    const char *encoding;
    uint64_t size;
} columns[] = {{"ndarray", 0}, {"ndarray:int16", 0}, {"pil", 0},     {"jpeg_array", 0},
               {"str_int", 0}, {"list[png]", 0},     {"float32", 4}, {"str", 0}};

static void check_failure(int r, const struct pstk_error *err)
{
    if (r != err->code || err->message[0] == 0)
        abort();
}

static void fuzz_index(const uint8_t *data, size_t size)
{
    struct pstk__mds *mds;
    struct pstk__texts names = {0};
    struct pstk_error err;
    uint64_t digest[2] = {1, 2};
    pstk_error_init(&err, sizeof err);
    const int r =
        pstk__mds_index_parse(&mds, &names, digest, (const char *)data, size, "index.json", &err);
    if (r < 0) {
        check_failure(r, &err);
        if (mds || names.n)
            abort();
        return;
    }
    if (mds->n_shards == 0 || names.n != mds->n_shards || mds->columns.n < 1 ||
        mds->columns.n > PSTK_MAX_FIELDS || mds->columns.fixed_size == 0)
        abort();
    for (uint64_t i = 0; i < names.n; i++) {
        const char *name = pstk__texts_get(&names, i);
        if (name[0] == '/' || name[0] == 0 || strncmp(name, "../", 3) == 0 || strstr(name, "/../"))
            abort();
    }
    pstk__texts_close(&names);
    free(mds);
}

/* View a value in memory of its own, and translate it. */
static void check_value(const struct pstk__index_field *field, const uint8_t *data, uint64_t size)
{
    struct pstk__field_view view;
    char text[160];
    uint8_t *value = malloc(size ? size : 1);
    if (!value)
        return;
    if (size)
        memcpy(value, data, size);
    if (!pstk__mds_view(&view, field, value, size, text)) {
        if (view.data < value || view.stored_size > size ||
            view.data + view.stored_size > value + size || view.stored_size > field->max_size ||
            view.plain_size > field->max_plain)
            abort();
        uint8_t *plain = malloc(view.plain_size ? view.plain_size : 1);
        if (plain && view.codec != PSTK_CODEC_NONE &&
            !pstk__translate(view.codec, &field->field, view.data, view.stored_size, plain,
                             view.plain_size, text) &&
            pstk__value_check(&field->field, plain, view.plain_size, text))
            abort();
        free(plain);
    }
    free(value);
}

static void check_rows(const struct pstk__mds *mds, const struct pstk__index_rows *rows,
                       const struct pstk__inferred_schema *found, const uint8_t *data, size_t size)
{
    for (uint64_t i = 0; i < rows->n; i++) {
        const uint64_t *cells = rows->cells + i * rows->n_columns;
        struct pstk__mds_offsets offsets;
        if (cells[0] > size || cells[1] > size - cells[0] || cells[1] > found->max_record)
            abort();
        pstk__mds_find_offsets(&offsets, &mds->columns, data + cells[0]);
        if (offsets.begin[mds->columns.n] != cells[1])
            abort();
        for (uint32_t c = 0; c < mds->columns.n; c++)
            check_value(&found->fields[c], data + cells[0] + offsets.begin[c],
                        offsets.begin[c + 1] - offsets.begin[c]);
    }
}

static void fuzz_shard(const uint8_t *data, size_t size, uint8_t chosen)
{
    struct pstk__mds *mds = calloc(1, sizeof *mds + sizeof mds->shards[0]);
    struct pstk__inferred_schema *found = calloc(1, sizeof *found);
    struct pstk__index_rows rows = {0};
    struct memory_store memory = memory_store_of();
    struct pstk_error err;
    char text[160], name[2] = "a";
    int code;
    pstk_error_init(&err, sizeof err);
    for (size_t i = 0; i < 8; i++, name[0]++)
        if (chosen >> i & 1)
            pstk__mds_add(&mds->columns, name, columns[i].encoding, columns[i].size, &code, text);
    mds->n_shards = 1;
    mds->shards[0].size = size;
    mds->shards[0].n_samples = size >= 4 ? pstk__get32(data) : 0;
    memory.files[0] = (struct memory_file){".mds", data, size};
    const struct pstk__scan scan = {
        .store = &memory.store, .name = "x.mds", .path = "x.mds", .size = size, .own = mds};
    int r = mds->columns.n ? pstk__mds_infer(&scan, NULL, found, &err) : -1;
    if (r == 0 && found->n_fields)
        r = pstk__mds_scan(&scan, &rows, found, &err);
    if (r < 0 && mds->columns.n)
        check_failure(r, &err);
    if (r == 0 && found->n_fields)
        check_rows(mds, &rows, found, data, size);
    pstk__index_rows_close(&rows);
    free(found);
    free(mds);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2 || size > 1u << 20)
        return 0;
    if (data[0] & 1)
        fuzz_shard(data + 2, size - 2, data[1]);
    else
        fuzz_index(data + 1, size - 1);
    return 0;
}
