/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_value: writes values as JSON text. Numbers are the shortest text that reads back as the same
 * value of their dtype. Infinities and NaN are Infinity, -Infinity and NaN, as Python's json module
 * writes and reads them.
 */
#ifndef PSTK_EXPORT_JSON_VALUE_H
#define PSTK_EXPORT_JSON_VALUE_H

#include "export/array.h"
#include "base/bytes.h"

/* Append a text of `size` bytes, UTF-8, in quotes. Bytes that are not UTF-8 become U+FFFD. */
void pstk__json_text(struct pstk__bytes *to, const char *text, uint64_t size);
/* Append one element. */
void pstk__json_number(struct pstk__bytes *to, uint32_t dtype, const void *element);
/* Append a scalar as a number, an array as nested lists. */
void pstk__json_array(struct pstk__bytes *to, const struct pstk__array *array);
/* Append the texts of a checked UTF8_LIST as a list. */
void pstk__json_texts(struct pstk__bytes *to, const void *data, uint64_t size);

#endif
