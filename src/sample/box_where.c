/* SPDX-License-Identifier: Apache-2.0 */
#include "sample/box_where.h"

#include "base/cast.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* An operator comes before those that are a prefix of it. */
static const struct {
    const char *text;
    enum pstk__comparison comparison;
} comparisons[] = {{"==", PSTK__EQUAL},    {"!=", PSTK__NOT_EQUAL}, {"<=", PSTK__AT_MOST},
                   {">=", PSTK__AT_LEAST}, {"<", PSTK__LESS},       {">", PSTK__GREATER}};

int pstk__box_where_parse(struct pstk__box_where *where, char column[PSTK_MAX_NAME],
                          const char *text)
{
    const size_t n = sizeof comparisons / sizeof comparisons[0];
    text += strspn(text, " ");
    const size_t length = strcspn(text, " =!<>");
    if (length == 0 || length >= PSTK_MAX_NAME)
        return -1;
    memcpy(column, text, length);
    column[length] = 0;
    text += length + strspn(text + length, " ");
    size_t i = 0;
    while (i < n && strncmp(text, comparisons[i].text, strlen(comparisons[i].text)) != 0)
        i++;
    if (i == n)
        return -1;
    where->comparison = comparisons[i].comparison;
    text += strlen(comparisons[i].text);
    text += strspn(text, " ");
    if (!text[0] || text[strspn(text, "+-0123456789 ")])
        return -1;
    char *end;
    errno = 0;
    where->value = strtoll(text, &end, 10);
    return errno || end == text || end[strspn(end, " ")] ? -1 : 0;
}

/* Compare a number with the condition's. Returns -1, 0 or 1; 2 for NaN, which fits only !=. */
static int compare(const uint8_t *number, uint32_t dtype, int64_t value)
{
    int64_t whole = 0;
    uint64_t large = 0;
    double real = 0;
    if (pstk__cast_fits(dtype, PSTK_I64)) {
        pstk__cast(&whole, PSTK_I64, number, dtype);
        return (whole > value) - (whole < value);
    }
    if (dtype == PSTK_U64) {
        memcpy(&large, number, sizeof large);
        return value < 0 ? 1 : (large > (uint64_t)value) - (large < (uint64_t)value);
    }
    pstk__cast(&real, PSTK_F64, number, dtype);
    return real != real ? 2 : (real > (double)value) - (real < (double)value);
}

static int fits(enum pstk__comparison comparison, int order)
{
    switch (comparison) {
    case PSTK__EQUAL:
        return order == 0;
    case PSTK__NOT_EQUAL:
        return order != 0;
    case PSTK__LESS:
        return order == -1;
    case PSTK__AT_MOST:
        return order == -1 || order == 0;
    case PSTK__GREATER:
        return order == 1;
    case PSTK__AT_LEAST:
        return order == 1 || order == 0;
    }
    return 0;
}

void pstk__box_where_apply(const struct pstk__box_where *where, const void *numbers, uint32_t dtype,
                           struct pstk__boxes *boxes)
{
    const uint8_t *at = numbers;
    const uint32_t size = pstk_dtype_size(dtype);
    for (uint32_t i = 0; i < boxes->n; i++, at += size) {
        const int is_excluded = !fits(where->comparison, compare(at, dtype, where->value));
        boxes->boxes[i].is_excluded = (uint32_t)is_excluded;
        boxes->n_excluded += (uint32_t)is_excluded;
    }
}
