/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json: the one JSON object that --json prints, made with jansson. An object or array is owned by
 * the caller until it is put into another one or printed. When memory runs out, the process ends,
 * because a missing key would be a wrong answer.
 */
#ifndef PSTK_CLI_JSON_H
#define PSTK_CLI_JSON_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct json_t; /* jansson's type */

struct json_t *json_make_object(void);
struct json_t *json_make_array(void);
/* Put a value into an object. `key` and `text` are copied. */
void json_put_text(struct json_t *object, const char *key, const char *text); /* NULL: null */
void json_put_count(struct json_t *object, const char *key, uint64_t value);  /* PSTK_NONE: null */
void json_put_real(struct json_t *object, const char *key, double value);     /* not finite: null */
void json_put_bool(struct json_t *object, const char *key, int value);
void json_put_null(struct json_t *object, const char *key);
void json_put(struct json_t *object, const char *key, struct json_t *takes);
/* Append to an array. */
void json_append(struct json_t *array, struct json_t *takes);
void json_append_text(struct json_t *array, const char *text);
void json_append_count(struct json_t *array, uint64_t value);
void json_append_whole(struct json_t *array, int64_t value);
void json_append_real(struct json_t *array, double value); /* not finite: null */
/* Print as one line to standard output, then free; more may follow. */
void json_print_line(struct json_t *takes);
/* Print as the last line. Returns `status`, or STATUS_DAMAGED when the write failed. */
int json_print(struct json_t *takes, int status);
/* Return the first element of an array (owned) and free the array. */
struct json_t *json_take_first(struct json_t *takes);
/* Return the object in a file, owned; NULL when it holds none. */
struct json_t *json_read(const char *path);
/* Return a string of an object, borrowed. NULL when there is no such string, or no object. */
const char *json_text(const struct json_t *object, const char *key);
/* Return a number of an object; `otherwise` when there is no such number, or no object. */
uint64_t json_count(const struct json_t *object, const char *key, uint64_t otherwise);
/* Return a number of an object, unrounded; NAN when there is no such number, or no object. */
double json_figure(const struct json_t *object, const char *key);
/* Return a value of an object, borrowed. NULL when it is missing or null. */
const struct json_t *json_get(const struct json_t *object, const char *key);
/* Return the number of elements of an array or object; 0 for other values and NULL. */
size_t json_n(const struct json_t *value);
/* Return an element of an array, borrowed; NULL after the last one. */
const struct json_t *json_at(const struct json_t *array, size_t i);
/* Return a number; NAN for other values and NULL. */
double json_number(const struct json_t *value);
/* Call `see` for each key of an object, in its order. It borrows. */
void json_each(const struct json_t *object,
               void (*see)(void *user, const char *key, const struct json_t *value), void *user);
/* Return a scalar value as text, owned: the string itself, a number, "yes" or "no". NULL for null
 * and for other values. */
char *json_plain(const struct json_t *value);
/* Parse text as one JSON object, owned; NULL when it is not one. */
struct json_t *json_parse(const char *text, size_t size);
/* Return another reference to a value, to put it into a second object. */
struct json_t *json_share(const struct json_t *value);
/* Write a value as one line of JSON for an HTML script element: it has no '<', '>' or '&'.
 * Numbers have 7 digits at most. */
void json_write_html(FILE *file, const struct json_t *value);
/* Copy the values of `from` that an object lacks or has as null; objects that both have are filled
 * in the same way. */
void json_fill(struct json_t *object, const struct json_t *from);
/* Free without printing. NULL is fine. */
void json_drop(struct json_t *takes);

#endif
