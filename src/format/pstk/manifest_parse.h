/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manifest_parse: walks the text of a manifest and takes values from it, each checked for its type
 * and its range. manifest_json.c and manifest_columns.c know the keys, and get jansson from here.
 *
 * The parse keeps the first failure; after it, nothing is walked or parsed, and values are 0, "" or
 * NULL. Failures name the key, with its position in a list, or the line. One thread.
 */
#ifndef PSTK_MANIFEST_PARSE_H
#define PSTK_MANIFEST_PARSE_H

#include "base/json_piece.h"
#include "format/pstk/manifest.h"

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

/* One parse. All pointers are borrowed. */
struct pstk__parse {
    struct pstk__manifest *m;
    const char *name; /* name of the file, for messages */
    const char *text; /* the whole file */
    struct pstk_error *err;
    int code;         /* code of the first failure, which *err describes; 0: none yet */
    const char *list; /* list of the current object; NULL: the top object */
    size_t index;     /* position of the current object in that list */
};

/* A list that is parsed element by element. */
struct pstk__parse_list {
    struct pstk__json_walk walk;
    uint64_t n; /* elements */
};

/* Fail because of a key of the current object. */
void pstk__parse_fail_key(struct pstk__parse *parse, const char *key, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Fail because of the byte `at` of the text. */
void pstk__parse_fail_at(struct pstk__parse *parse, const char *at, const char *what);
/* Return ENOMEM, and describe it in *err; the caller sets `code`. */
int pstk__parse_no_memory(const struct pstk__parse *parse);

/* Take the next piece of a walk. 1: *value and, in an object, *key; 0: no more, or a failure. */
int pstk__parse_next(struct pstk__parse *parse, struct pstk__json_walk *walk,
                     struct pstk__json_piece *key, struct pstk__json_piece *value);
/* Parse a piece as a tree of its own. Returns owned, or NULL. */
json_t *pstk__parse_piece(struct pstk__parse *parse, const struct pstk__json_piece *piece);
/* Begin a list of the top object; an empty one if the value is missing or not a list. */
struct pstk__parse_list pstk__parse_list_begin(struct pstk__parse *parse,
                                               const struct pstk__json_piece *piece,
                                               const char *name);
/* Parse element i of a list, which must be an object, and set the position for messages. Returns
 * owned. */
json_t *pstk__parse_element(struct pstk__parse *parse, struct pstk__parse_list *list,
                            const char *list_name, size_t i);

/* Return the value of a key, of this type, borrowed, or NULL. noun: name of the type in messages.
 */
json_t *pstk__parse_get(struct pstk__parse *parse, json_t *object, const char *key, json_type type,
                        const char *noun);
/* Return a text, borrowed; never NULL. */
const char *pstk__parse_text(struct pstk__parse *parse, json_t *object, const char *key);
/* Copy a text into the `size` bytes at `to`, or fail: it is too long. */
void pstk__parse_copy_text(struct pstk__parse *parse, json_t *object, const char *key, char *to,
                           size_t size);
/* Return a number 0 .. max, of at most 63 bits: jansson refuses larger numbers. */
uint64_t pstk__parse_number(struct pstk__parse *parse, json_t *object, const char *key,
                            uint64_t max);
uint32_t pstk__parse_crc(struct pstk__parse *parse, json_t *object, const char *key);
/* Parse 8 lower-case hex digits. -1: the text is something else. */
int pstk__parse_hex(const char *text, uint32_t *value);

/* Refuse keys that are not in `known`, so that no key of a newer writer is ignored. */
void pstk__parse_check_keys(struct pstk__parse *parse, json_t *object, const char *const *known,
                            size_t n);
#define PSTK__PARSE_CHECK_KEYS(p, o, known)                                                        \
    pstk__parse_check_keys(p, o, known, sizeof(known) / sizeof((known)[0]))

#endif
