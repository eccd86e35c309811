/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json: the one JSON object that --json prints, made with jansson. An object or array is owned by
 * the caller until it is put into another one or printed. When memory runs out, the process ends,
 * because a missing key would be a wrong answer.
 */
#ifndef PSTK_CLI_JSON_H
#define PSTK_CLI_JSON_H

#include <stdint.h>

struct json_t; /* jansson's */

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
/* Print as one line to standard output, then free; more may follow. */
void json_print_line(struct json_t *takes);
/* The same as the last line. Returns `status`, or STATUS_DAMAGED when the
 * write failed. */
int json_print(struct json_t *takes, int status);
/* Return the first element of an array (owned) and free the array. */
struct json_t *json_take_first(struct json_t *takes);
/* Return the object that a file holds, owned; NULL when it holds none. */
struct json_t *json_read(const char *path);
/* Return a string of an object, borrowed. NULL when there is no such string, or no object. */
const char *json_text(const struct json_t *object, const char *key);
/* Return a number of an object; `otherwise` when there is no such number, or no object. */
uint64_t json_count(const struct json_t *object, const char *key, uint64_t otherwise);
/* Free without printing. NULL is fine. */
void json_drop(struct json_t *takes);

#endif
