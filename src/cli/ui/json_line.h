/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_line: a line of JSON as Python writes it, made strict. Python's json module writes NaN and
 * Infinity for numbers that are none, and half of a pair of UTF-16 for a byte of a file name that
 * is not UTF-8; parsers refuse both.
 */
#ifndef PSTK_CLI_JSON_LINE_H
#define PSTK_CLI_JSON_LINE_H

#include <stddef.h>

/* Return a copy (owned, free()) in which NaN and Infinity are null, and a lone surrogate, \u0000
 * and a byte that is no UTF-8 are '?'. All else stays, also what is no JSON. *size: its bytes. */
char *json_line_strict(const char *line, size_t *size);

#endif
