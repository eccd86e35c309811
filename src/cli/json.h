/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json: the one JSON object that --json prints, on jansson. Objects and arrays are owned until put
 * into another one or printed. Out of memory ends the process: nothing here may drop a key.
 */
#ifndef PSTK_CLI_JSON_H
#define PSTK_CLI_JSON_H

#include <stdint.h>

struct json_t; /* jansson's */

struct json_t *json_make_object(void);
struct json_t *json_make_array(void);
/* Put a value into an object. `key` and `text`: copies. */
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
/* Print to standard output as one line, and free. Returns `status`, or STATUS_DAMAGED when it
 * could not be written. */
int json_print(struct json_t *takes, int status);
/* Return the first element of an array, owned; the array is freed. */
struct json_t *json_take_first(struct json_t *takes);
/* Return a copy (free()) of a text of the object in a file, or NULL: there is no such text. */
char *json_file_text(const char *path, const char *key);
/* Free without printing; NULL is fine. */
void json_drop(struct json_t *takes);

#endif
