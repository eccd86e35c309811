/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_piece: finds the begin and end of the values of a JSON text. Pure: it copies and allocates
 * nothing, and takes time in proportion to the text. It lets a reader parse a large text value by
 * value, instead of building a tree of all of it. It reads brackets, texts, commas and colons only:
 * the parser of a piece decides whether the piece is valid JSON.
 */
#ifndef PSTK_JSON_PIECE_H
#define PSTK_JSON_PIECE_H

#include <stdint.h>

/* The bytes of one value within a larger text, without the space around it. */
struct pstk__json_piece {
    const char *at;        /* borrowed; NULL: there is none */
    uint64_t size;         /* bytes, at least 1 */
    uint64_t n_separators; /* commas, colons and opening brackets outside of texts: a parser's tree
                              has at most 1 value more */
};

/* The state of a scan for the end of a value. All zero before the value's first byte. */
struct pstk__json_scan {
    uint32_t depth;     /* open brackets of either kind: the parser checks that the kinds match */
    uint32_t max_depth; /* deepest nesting allowed; 0: any */
    int in_text;        /* 1: between quotes, */
    int is_escaped;     /* 1: after a backslash there */
    uint64_t n_separators;
};

enum pstk__json_scan_result {
    PSTK__JSON_GOES_ON, /* the value goes on, or is a word or number that ends here */
    PSTK__JSON_ENDED,
    PSTK__JSON_TOO_DEEP,
};

/* Scan [*at, end); *at becomes the first byte after the value, or end. A value that arrives in
 * several parts is scanned part by part. */
enum pstk__json_scan_result pstk__json_scan(struct pstk__json_scan *scan, const char **at,
                                            const char *end);

/* A walk over the values of a list or an object. */
struct pstk__json_walk {
    const char *at, *end; /* the rest of the text */
    char close;           /* closing bracket of the list or object */
    int begun;            /* 1: a value was read before */
};

/* Begin a walk over the list (open is '[') or object ('{') that begins the text [at, end). 0: the
 * text begins otherwise; w->at is the wrong byte. */
int pstk__json_walk_begin(struct pstk__json_walk *walk, const char *at, const char *end, char open);
/* Read the next value. 1: *value is it and, in an object, *key its key in quotes. 0: there are no
 * more; w->at is after the closing bracket. -1: the text is not JSON; w->at is the wrong byte. */
int pstk__json_walk_next(struct pstk__json_walk *walk, struct pstk__json_piece *key,
                         struct pstk__json_piece *value);
/* Return the first byte of [at, end) that is not a space, or end. */
const char *pstk__json_skip_space(const char *at, const char *end);

#endif
