/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_line: makes a line of JSON from Python strict. Python's json module writes NaN and Infinity,
 * and a lone surrogate for a byte of a file name that is not UTF-8; parsers refuse both.
 */
#ifndef PSTK_CLI_JSON_LINE_H
#define PSTK_CLI_JSON_LINE_H

#include <stddef.h>

/* Return a copy (owned, free()) in which NaN and Infinity are null, and a lone surrogate, \u0000
 * and an invalid byte of UTF-8 are '?'. Everything else stays, also invalid JSON. *size: bytes of
 * the copy. */
char *json_line_strict(const char *line, size_t *size);

#endif
