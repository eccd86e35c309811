/* SPDX-License-Identifier: Apache-2.0 */
#include "record/translate.h"

#include "base/little.h"
#include "record/feature.h"

#include <stdio.h>

/* ---- text ------------------------------------------------------------------------------------ */

static int is_space(uint8_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Read what Python's int() takes, without underscores: spaces, a sign, digits. 1: *magnitude, below
 * 2^64, and *negative. */
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
    for (; at < end; at++)
        if (*at < '0' || *at > '9' || __builtin_mul_overflow(*magnitude, 10u, magnitude) ||
            __builtin_add_overflow(*magnitude, (uint64_t)(*at - '0'), magnitude))
            return 0;
    return 1;
}

/* The largest magnitude of an integer dtype with this sign. */
static uint64_t most(uint32_t dtype, int negative)
{
    const uint32_t bits = 8 * pstk_dtype_size(dtype);
    const int is_signed =
        dtype == PSTK_I8 || dtype == PSTK_I16 || dtype == PSTK_I32 || dtype == PSTK_I64;
    if (!is_signed)
        return negative ? 0 : UINT64_MAX >> (64 - bits);
    return (UINT64_MAX >> (65 - bits)) + (negative != 0);
}

static const char *translate_integer(const struct pstk_field *field, const uint8_t *data,
                                     uint64_t size, void *plain, char text[160])
{
    uint64_t magnitude;
    int negative;
    if (!read_integer(data, size, &magnitude, &negative)) {
        snprintf(text, 160, "is '%.*s'; must be an integer", (int)(size < 40 ? size : 40),
                 (const char *)data);
        for (char *c = text; *c; c++)
            *c = (uint8_t)*c < 32 || (uint8_t)*c > 126 ? '?' : *c;
        return text;
    }
    if (magnitude > most(field->dtype, negative)) {
        snprintf(text, 160, "is %s%llu, which does not fit in its dtype", negative ? "-" : "",
                 (unsigned long long)magnitude);
        return text;
    }
    uint8_t bytes[8];
    pstk__put64(bytes, negative ? 0 - magnitude : magnitude);
    memcpy(plain, bytes, pstk_dtype_size(field->dtype));
    return NULL;
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
    return codec == PSTK__FOREIGN_TEXT_INTEGER ? (int64_t)pstk_dtype_size(field->dtype) : -1;
}

const char *pstk__translate(uint32_t codec, const struct pstk_field *field, const void *data,
                            uint64_t size, void *plain, uint64_t plain_size, char text[160])
{
    if (is_feature(codec))
        return pstk__feature_translate(codec - PSTK__FOREIGN_FEATURE, field, data, size, plain,
                                       plain_size, text);
    if (codec == PSTK__FOREIGN_TEXT_INTEGER)
        return translate_integer(field, data, size, plain, text);
    snprintf(text, 160, "has a codec of number %u, which does not exist", codec);
    return text;
}
