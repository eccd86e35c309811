/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_tfrecord: any bytes as a TFRecord file, as they are and with the checksums that make records
 * of them; and any bytes as the data of one record. What the scan finds agrees with the file, and
 * every feature of an intact record is translated within the sizes that the scan measured.
 */
#include "base/error.h"
#include "format/tfrecord/example.h"
#include "format/tfrecord/frame.h"
#include "format/tfrecord/scan.h"
#include "record/translate.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- a store of one file in memory ----------------------------------------------------------- */

static const uint8_t *file_bytes;
static uint64_t file_size;

static int memory_open(const struct pstk__store *s, struct pstk__file *f, const char *path)
{
    (void)path;
    *f = (struct pstk__file){.store = s, .fd = -1};
    return 0;
}

static int64_t memory_read(const struct pstk__file *f, void *buffer, uint64_t size, uint64_t offset)
{
    (void)f;
    const uint64_t left = offset < file_size ? file_size - offset : 0;
    const uint64_t n = size < left ? size : left;
    if (n > 0)
        memcpy(buffer, file_bytes + offset, n);
    return (int64_t)n;
}

static void memory_close(struct pstk__file *f)
{
    *f = (struct pstk__file){.fd = -1};
}

static const struct pstk__store memory = {
    .name = "memory", .open = memory_open, .read_at = memory_read, .close = memory_close};

/* ---- what is found --------------------------------------------------------------------------- */

/* Translate a feature in memory of exactly its size. */
static void read_feature(const struct pstk__index_field *field, const struct pstk__feature *feature)
{
    struct pstk__field_view view;
    char text[160];
    pstk__tfrecord_view(&view, field, feature->data, feature->size);
    if (view.codec == PSTK_CODEC_NONE && view.plain_size != view.stored_size)
        abort();
    const char *wrong = NULL;
    if (view.codec != PSTK_CODEC_NONE) {
        uint8_t *plain = malloc(view.plain_size ? view.plain_size : 1);
        wrong = pstk__translate(view.codec, &field->field, view.data, view.stored_size, plain,
                                view.plain_size, text);
        free(plain);
    }
    if (!wrong && view.plain_size > pstk__tfrecord_max_plain(field))
        abort();
    if (wrong && !wrong[0])
        abort();
}

static void read_record(const struct pstk__inferred_schema *found, const uint8_t *record,
                        uint64_t size)
{
    struct pstk__example example;
    struct pstk__feature feature;
    uint64_t length;
    if (!pstk__tfrecord_head(record, &length) || length != size - PSTK__TFRECORD_FRAME)
        abort();
    uint8_t *exact = malloc(length ? length : 1);
    if (length)
        memcpy(exact, record + PSTK__TFRECORD_HEAD, length);
    if (found->fields[0].coding != PSTK__TFRECORD_WHOLE &&
        pstk__tfrecord_intact(record + PSTK__TFRECORD_HEAD, length) &&
        pstk__example_begin(&example, exact, length))
        for (uint32_t guess = 0; pstk__example_next(&example, &feature) > 0; guess++) {
            const int i = pstk__tfrecord_find(found, feature.key, feature.key_size, guess);
            if (i >= 0)
                read_feature(&found->fields[i], &feature);
        }
    free(exact);
}

static void check(const uint8_t *bytes, uint64_t size)
{
    static struct pstk__inferred_schema found;
    struct pstk_error err;
    struct pstk__index_rows rows = {.n_columns = PSTK__TFRECORD_N_COLUMNS};
    const struct pstk__scan scan = {
        .store = &memory, .name = "x.tfrecord", .path = "x.tfrecord", .size = size};
    memset(&found, 0, sizeof found);
    pstk_error_init(&err, sizeof err);
    file_bytes = bytes;
    file_size = size;
    int r = pstk__tfrecord_infer(&scan, NULL, &found, &err);
    if (r == 0 && found.n_fields == 0 && size > 0)
        abort();
    if (r == 0 && size > 0)
        r = pstk__tfrecord_scan(&scan, &rows, &found, &err);
    if (r < 0 && (r != err.code || !err.message[0]))
        abort();
    uint64_t at = 0;
    for (uint64_t i = 0; i < rows.n; i++) {
        const uint64_t *cells = rows.cells + i * rows.n_columns;
        if (cells[PSTK__TFRECORD_BEGIN] != at || cells[PSTK__TFRECORD_SIZE] > size - at ||
            cells[PSTK__TFRECORD_SIZE] > found.max_record)
            abort();
        if (r == 0)
            read_record(&found, bytes + at, cells[PSTK__TFRECORD_SIZE]);
        at += cells[PSTK__TFRECORD_SIZE];
    }
    if (r == 0 && at != size)
        abort();
    pstk__index_rows_close(&rows);
}

/* Set the checksums of all records whose lengths fit. */
static void mend(uint8_t *bytes, uint64_t size)
{
    for (uint64_t at = 0; size - at >= PSTK__TFRECORD_FRAME;) {
        const uint64_t length = pstk__get64(bytes + at);
        pstk__put32(bytes + at + 8, pstk__tfrecord_mask(pstk__crc32c(0, bytes + at, 8)));
        if (length > size - at - PSTK__TFRECORD_FRAME)
            return;
        const uint64_t end = at + PSTK__TFRECORD_HEAD + length;
        pstk__put32(bytes + end,
                    pstk__tfrecord_mask(pstk__crc32c(0, bytes + at + PSTK__TFRECORD_HEAD, length)));
        at = end + PSTK__TFRECORD_TAIL;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *exact = calloc(1, size ? size : 1); /* so that a read past it is seen */
    uint8_t *one = calloc(1, size + PSTK__TFRECORD_FRAME);
    if (exact && one && size > 0) {
        memcpy(exact, data, size);
        check(exact, size);
        mend(exact, size);
        check(exact, size);
        memcpy(one + PSTK__TFRECORD_HEAD, data, size);
        pstk__put64(one, size);
        mend(one, size + PSTK__TFRECORD_FRAME);
        check(one, size + PSTK__TFRECORD_FRAME);
    }
    free(exact);
    free(one);
    return 0;
}
