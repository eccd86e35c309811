/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_record: any bytes as a record of a schema with one field of each kind, as they are and with
 * a right head checksum; then every field is checked and decoded, also where its checksum is wrong.
 * Views lie within the bytes, and nothing is larger than the limits. The bytes are a list of each
 * kind, too, and the values of fields that share axes.
 */
#include "base/codec.h"
#include "base/crc32c.h"
#include "base/little.h"
#include "record/axes.h"
#include "record/list.h"
#include "record/value.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAX_PLAIN 4096

static const struct pstk_field fields[] = {
    {.name = "img", .kind = PSTK_FIELD_IMAGE},
    {.name = "cls", .kind = PSTK_FIELD_SCALAR, .dtype = PSTK_U16},
    {.name = "txt", .kind = PSTK_FIELD_UTF8, .codec = PSTK_CODEC_ZSTD},
    {.name = "fix", .kind = PSTK_FIELD_NDARRAY, .dtype = PSTK_U8, .n_dims = 1, .shape = {3}},
};

#define N_FIELDS (sizeof fields / sizeof fields[0])

static void decode_field(const struct pstk__record *r, uint32_t i)
{
    const struct pstk__field_view *v = &r->fields[i];
    uint8_t *plain = malloc(v->plain_size ? v->plain_size : 1);
    void *memory = aligned_alloc(64, pstk__decoder_size());
    struct pstk__decoder *d = pstk__decoder_init(memory, pstk__decoder_size());
    if (plain && d) {
        int code = pstk__codec_decode(d, v->codec, NULL, v->data, v->stored_size, plain,
                                      v->plain_size, NULL);
        if (code != 0 && code != PSTK_EBADMSG)
            abort();
    }
    free(memory);
    free(plain);
}

static void parse(const struct pstk__schema *s, const uint8_t *bytes, size_t size)
{
    struct pstk__record_limits limits = {.max_size = 1 << 20};
    struct pstk__record_location location = {
        .shard = "x.pstk", .tag = 0, .number = 0, .size = size};
    struct pstk__record r;
    struct pstk_error err;
    for (uint32_t i = 0; i < N_FIELDS; i++) {
        limits.max_stored[i] = limits.max_plain[i] = MAX_PLAIN;
        limits.max_width[i] = limits.max_height[i] = 64;
    }
    if (size >= 16) { /* a record of any shard and number */
        location.tag = pstk__get32(bytes + 4);
        location.number = pstk__get64(bytes + 8);
    }
    pstk_error_init(&err, sizeof err);
    int code = pstk__record_parse(&r, s, &limits, &location, bytes, size, &err);
    if (code < 0 && (code != err.code || err.message[0] == 0))
        abort();
    for (uint32_t i = 0; code == 0 && i < N_FIELDS; i++) {
        const struct pstk__field_view *v = &r.fields[i];
        if (!v->data || v->data < bytes || v->data + v->stored_size > bytes + size ||
            v->data + v->stored_size + v->gap > bytes + size || v->plain_size > MAX_PLAIN ||
            v->width > 64 || v->height > 64)
            abort();
        if (v->checksum != PSTK__CHECKSUM_HEAD && v->offset % PSTK__RECORD_ALIGN)
            abort();
        if (pstk__record_check_field(&r, i, &err) == 0 && !pstk__field_gap_is_zero(v))
            abort();
        if (v->checksum != PSTK__CHECKSUM_HEAD)
            decode_field(&r, i);
    }
}

/* Give the entry of a field a stored size that takes `room` bytes, a multiple of 16, with its gap,
 * which becomes zero. */
static void fit(uint8_t *entry, uint8_t *field, uint32_t room)
{
    const uint32_t gap = room ? pstk__get32(entry) % PSTK__RECORD_ALIGN : 0;
    pstk__put32(entry, room - gap);
    memset(field + room - gap, 0, gap);
}

/* Any bytes as a list: what is whole lies within them, and reads back as the same bytes. */
static void read_list(uint32_t kind, const uint8_t *data, size_t size)
{
    struct pstk__list list;
    struct pstk__field_view item;
    char text[160];
    if (pstk__list_check(kind, data, size, text))
        return;
    if (pstk__list_begin(&list, kind, data, size, text))
        abort();
    while (list.i < list.n) {
        if (pstk__list_next(&list, &item, text) || item.data < data ||
            item.data + item.plain_size > data + size || item.flags & ~PSTK__FIELD_PALETTE)
            abort();
        if (item.encoding)
            pstk__list_check_image(kind, &item, text);
    }
    if (pstk__list_end(&list, text))
        abort();
}

/* The bytes in three parts: lengths, runs and a list, which share axes. */
static void check_axes(const uint8_t *data, size_t size)
{
    static const struct pstk_field shared[] = {
        {.name = "img", .kind = PSTK_FIELD_IMAGE},
        {.name = "len",
         .kind = PSTK_FIELD_NDARRAY,
         .dtype = PSTK_I8,
         .n_dims = 1,
         .rows = "o",
         .splits = "r"},
        {.name = "rle",
         .kind = PSTK_FIELD_RLE,
         .dtype = PSTK_U32,
         .n_dims = 1,
         .of = "img",
         .rows = "r"},
        {.name = "txt", .kind = PSTK_FIELD_BYTES_LIST, .rows = "o"},
    };
    const size_t n_lengths = size ? data[0] % 8 : 0, rest = size > 9 ? size - 9 : 0;
    const size_t n_runs = rest / 8 * 4;
    if (rest < 8)
        return;
    const struct pstk__field_view views[4] = {{.width = data[0], .height = 3}};
    const struct pstk_value values[] = {
        {NULL, 0}, {data + 1, n_lengths}, {data + 9, n_runs}, {data + 9 + n_runs, rest - n_runs}};
    struct pstk__schema s;
    uint32_t field = 99;
    char text[320];
    if (pstk__schema_init(&s, shared, 4, NULL) < 0)
        abort();
    for (uint32_t i = 1; i < 4; i++)
        if (pstk__value_check(&shared[i], values[i].data, values[i].size, text))
            return;
    if (pstk__axes_check(&s, values, views, &field, text) && (field > 3 || !text[0]))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pstk__schema s;
    for (uint32_t kind = PSTK_FIELD_UTF8_LIST; kind <= PSTK_FIELD_MASK_LIST; kind++)
        read_list(kind, data, size);
    check_axes(data, size);
    if (pstk__schema_init(&s, fields, N_FIELDS, NULL) < 0)
        abort();
    parse(&s, data, size);
    if (size < s.head_size)
        return 0;
    uint8_t *sealed = malloc(size);
    if (!sealed)
        return 0;
    memcpy(sealed, data, size);
    pstk__put32(sealed, pstk__crc32c(0, sealed + 4, s.head_size - 4));
    parse(&s, sealed, size);
    /* Its sizes made to fit, so that the bytes behind the head are reached, and the gaps zero. */
    const uint32_t whole = (uint32_t)(size - s.head_size) / PSTK__RECORD_ALIGN * PSTK__RECORD_ALIGN;
    const uint32_t second = whole / 2 / PSTK__RECORD_ALIGN * PSTK__RECORD_ALIGN;
    fit(sealed + 16, sealed + s.head_size, second);
    fit(sealed + 16 + PSTK__RECORD_ENTRY, sealed + s.head_size + second, whole - second);
    memset(sealed + s.fixed_end, 0, s.head_size - s.fixed_end);
    pstk__put32(sealed, pstk__crc32c(0, sealed + 4, s.head_size - 4));
    parse(&s, sealed, s.head_size + whole);
    free(sealed);
    return 0;
}
