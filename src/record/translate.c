/* SPDX-License-Identifier: Apache-2.0 */
#include "record/translate.h"

#include "base/little.h"
#include "image/image.h"
#include "record/feature.h"
#include "record/list.h"
#include "record/ustar.h"

#include <stdio.h>

/* ---- text ------------------------------------------------------------------------------------ */

static int is_space(uint8_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Read an integer as Python's int() does, without underscores: spaces, a sign, digits. Returns 1
 * and sets *magnitude, below 2^64, and *negative; 0: it is no number; -1: its magnitude is 2^64 or
 * more. */
static int read_integer(const uint8_t *text, uint64_t size, uint64_t *magnitude, int *negative)
{
    const uint8_t *at = text, *end = text + size;
    while (at < end && is_space(*at))
        at++;
    while (end > at && is_space(end[-1]))
        end--;
    *negative = at < end && *at == '-';
    at += at < end && (*at == '-' || *at == '+');
    *magnitude = 0;
    if (at == end)
        return 0;
    int is_large = 0;
    for (; at < end; at++) {
        if (*at < '0' || *at > '9')
            return 0;
        is_large |= __builtin_mul_overflow(*magnitude, 10u, magnitude);
        is_large |= __builtin_add_overflow(*magnitude, (uint64_t)(*at - '0'), magnitude);
    }
    return is_large ? -1 : 1;
}

/* Return the largest magnitude of an integer dtype with this sign. */
static uint64_t most(uint32_t dtype, int negative)
{
    const uint32_t bits = 8 * pstk_dtype_size(dtype);
    const int is_signed =
        dtype == PSTK_I8 || dtype == PSTK_I16 || dtype == PSTK_I32 || dtype == PSTK_I64;
    if (!is_signed)
        return negative ? 0 : UINT64_MAX >> (64 - bits);
    return (UINT64_MAX >> (65 - bits)) + (negative != 0);
}

/* Report a text that is refused, with its first MAX_SHOWN bytes; these and a name fit in 160 bytes.
 */
static const char *refuse_integer(const struct pstk_field *field, const uint8_t *data,
                                  uint64_t size, int is_number, char text[160])
{
    enum { MAX_SHOWN = 24 };
    const int n = snprintf(text, 160, "is '%.*s%s'", (int)(size < MAX_SHOWN ? size : MAX_SHOWN),
                           (const char *)data, size > MAX_SHOWN ? "..." : "");
    for (char *c = text; *c; c++)
        *c = (uint8_t)*c < 32 || (uint8_t)*c > 126 ? '?' : *c;
    char *rest = text + n;
    const size_t room = 160 - (size_t)n;
    if (is_number)
        snprintf(rest, room, ", which does not fit in %s; fields={\"%s\": \"utf8\"} reads text",
                 pstk_dtype_name(field->dtype), field->name);
    else
        snprintf(rest, room, "; must be an integer; fields={\"%s\": \"utf8\"} reads text",
                 field->name);
    return text;
}

static const char *translate_integer(const struct pstk_field *field, const uint8_t *data,
                                     uint64_t size, void *plain, char text[160])
{
    uint64_t magnitude;
    int negative;
    if (pstk_dtype_size(field->dtype) == 0) {
        snprintf(text, 160, "has no dtype");
        return text;
    }
    const int is_number = read_integer(data, size, &magnitude, &negative);
    if (is_number > 0 && magnitude <= most(field->dtype, negative)) {
        uint8_t bytes[8];
        pstk__put64(bytes, negative ? 0 - magnitude : magnitude);
        memcpy(plain, bytes, pstk_dtype_size(field->dtype));
        return NULL;
    }
    return refuse_integer(field, data, size, is_number != 0, text);
}

/* ---- arrays ---------------------------------------------------------------------------------- */

uint64_t pstk__translated_dim(const uint8_t *head, uint32_t i)
{
    const uint32_t width = 1u << (head[0] & 3);
    uint64_t n = 0;
    memcpy(&n, head + 1 + (uint64_t)i * width, width);
    return n;
}

/* Return the bytes before the elements; 0 if the value ends before them. */
static uint64_t array_head(const uint8_t *data, uint64_t size)
{
    const uint64_t head = size ? 1 + ((uint64_t)(data[0] >> 2) << (data[0] & 3)) : 1;
    return head <= size ? head : 0;
}

static int64_t array_size(const uint8_t *data, uint64_t size)
{
    const uint64_t head = array_head(data, size);
    return head ? (int64_t)(size - head + 8 * (uint64_t)(data[0] >> 2)) : -1;
}

static const char *translate_array(const uint8_t *data, uint64_t size, uint8_t *plain)
{
    const uint64_t head = array_head(data, size);
    for (uint32_t i = 0; i < data[0] >> 2; i++, plain += 8)
        pstk__put64(plain, pstk__translated_dim(data, i));
    if (size > head)
        memcpy(plain, data + head, size - head);
    return NULL;
}

/* ---- lists of images ------------------------------------------------------------------------- */

static uint64_t aligned(uint64_t at)
{
    return (at + PSTK__LIST_ALIGN - 1) / PSTK__LIST_ALIGN * PSTK__LIST_ALIGN;
}

/* Fewer than 2^30 sizes below 2^32 are added: no overflow. */
static int64_t image_list_size(const uint8_t *data, uint64_t size)
{
    const uint64_t n = size >= 4 ? pstk__get32(data) : 0;
    if (size < 4 || n > (size - 4) / 4)
        return -1;
    uint64_t at = pstk__list_head_size(PSTK_FIELD_IMAGE_LIST, (uint32_t)n), sum = 0;
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t one = pstk__get32(data + 4 + 4 * i);
        sum += one;
        at = aligned(at) + one;
    }
    return sum == size - 4 - 4 * n ? (int64_t)at : -1;
}

static const char *translate_image_list(const uint8_t *data, uint8_t *plain, char text[160])
{
    const uint32_t n = pstk__get32(data);
    const uint8_t *from = data + 4 + 4 * (uint64_t)n;
    uint64_t at = pstk__list_head_size(PSTK_FIELD_IMAGE_LIST, n);
    memset(plain, 0, at);
    for (uint32_t i = 0; i < n; i++) {
        struct pstk__image_info info;
        struct pstk_error why;
        const uint32_t size = pstk__get32(data + 4 + 4 * (uint64_t)i);
        pstk_error_init(&why, sizeof why);
        if (pstk__image_probe(from, size, UINT64_MAX, &info, &why) < 0) {
            snprintf(text, 160, "has item %u: %.120s", i, why.message);
            return text;
        }
        const struct pstk__field_view item = {.plain_size = size,
                                              .encoding = (uint8_t)info.encoding,
                                              .channels = info.channels,
                                              .bit_depth = info.bit_depth,
                                              .width = info.width,
                                              .height = info.height,
                                              .flags = info.has_palette ? PSTK__FIELD_PALETTE : 0};
        pstk__list_put_head(PSTK_FIELD_IMAGE_LIST, n, i, &item, plain);
        memset(plain + at, 0, aligned(at) - at);
        at = aligned(at);
        memcpy(plain + at, from, size);
        at += size;
        from += size;
    }
    return NULL;
}

/* ---- names ----------------------------------------------------------------------------------- */

static const char *translate_name(const uint8_t *data, uint64_t size, char *plain,
                                  uint64_t plain_size, char text[160])
{
    char name[PSTK__USTAR_MAX_NAME];
    if (size == PSTK__USTAR_HEADER) {
        const uint32_t n = pstk__ustar_name(data, name);
        const char *from = pstk__ustar_trim(name);
        if (plain_size <= n - (uint64_t)(from - name)) {
            memcpy(plain, from, plain_size);
            return NULL;
        }
    }
    snprintf(text, 160, "is in a header that holds no such name");
    return text;
}

/* ---- all ------------------------------------------------------------------------------------- */

static int is_feature(uint32_t codec)
{
    return codec >= PSTK__FOREIGN_FEATURE && codec < PSTK__FOREIGN_FEATURE_END;
}

int64_t pstk__translated_size(uint32_t codec, const struct pstk_field *field, const void *data,
                              uint64_t size)
{
    if (is_feature(codec))
        return pstk__feature_plain_size(codec - PSTK__FOREIGN_FEATURE, field, data, size);
    switch (codec) {
    case PSTK__FOREIGN_TEXT_INTEGER:
        return (int64_t)pstk_dtype_size(field->dtype);
    case PSTK__FOREIGN_SHAPED_ARRAY:
        return array_size(data, size);
    case PSTK__FOREIGN_IMAGE_LIST:
        return image_list_size(data, size);
    default: /* USTAR_NAME: the parser that sets it knows the size of the name */
        return -1;
    }
}

const char *pstk__translate(uint32_t codec, const struct pstk_field *field, const void *data,
                            uint64_t size, void *plain, uint64_t plain_size, char text[160])
{
    if (is_feature(codec))
        return pstk__feature_translate(codec - PSTK__FOREIGN_FEATURE, field, data, size, plain,
                                       plain_size, text);
    if (codec == PSTK__FOREIGN_TEXT_INTEGER)
        return translate_integer(field, data, size, plain, text);
    if (codec == PSTK__FOREIGN_SHAPED_ARRAY)
        return translate_array(data, size, plain);
    if (codec == PSTK__FOREIGN_IMAGE_LIST)
        return translate_image_list(data, plain, text);
    if (codec == PSTK__FOREIGN_USTAR_NAME)
        return translate_name(data, size, plain, plain_size, text);
    snprintf(text, 160, "has a codec of number %u, which does not exist", codec);
    return text;
}
