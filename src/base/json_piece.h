/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_piece: where the values of a JSON text begin and end. Pure: it copies and allocates
 * nothing, and takes time in proportion to the text.
 * With it, a reader parses a large text value by value, where a parser would build a tree of all of
 * it. It looks at brackets, texts, commas and colons alone: whether a piece is JSON is for the
 * parser of that piece to find.
 */
#ifndef PSTK_JSON_PIECE_H
#define PSTK_JSON_PIECE_H

#include <stdint.h>

/* The bytes of one value within a larger text, without the space around it. */
struct pstk__json_piece {
    const char *at;        /* borrowed; NULL: there is none */
    uint64_t size;         /* bytes, at least 1 */
    uint64_t n_separators; /* commas, colons and opening brackets outside of texts: a parser's tree
                              has at most this many values and 1 */
};

/* How far a scan for the end of a value has come. All zero before the value's first byte. */
struct pstk__json_scan {
    uint32_t depth;     /* open brackets, whichever they are: the parser sees to their kinds */
    uint32_t max_depth; /* 0: any */
    int in_text;        /* between quotes, */
    int is_escaped;     /* and after a backslash */
    uint64_t n_separators;
};

enum pstk__json_scan_result {
    PSTK__JSON_GOES_ON, /* the value goes on, or is a word or number that ends here */
    PSTK__JSON_ENDED,
    PSTK__JSON_TOO_DEEP,
};

/* Scan [*at, end); *at becomes the first byte after the value, or end. A value that comes in
 * several parts is scanned part by part. */
enum pstk__json_scan_result pstk__json_scan(struct pstk__json_scan *scan, const char **at,
                                            const char *end);

/* A walk over the values of a list or an object. */
struct pstk__json_walk {
    const char *at, *end; /* what is left of the text */
    char close;           /* the bracket that ends it */
    int begun;            /* 1: a value came before */
};

/* Begin a walk over the list (open is '[') or object ('{') that begins the text [at, end). 0: the
 * text begins otherwise; w->at is where. */
int pstk__json_walk_begin(struct pstk__json_walk *walk, const char *at, const char *end, char open);
/* 1: *value is the next one and, of an object, *key its key in quotes. 0: there are no more; w->at
 * is after the closing bracket. -1: this is not JSON; w->at is where. */
int pstk__json_walk_next(struct pstk__json_walk *walk, struct pstk__json_piece *key,
                         struct pstk__json_piece *value);
/* The first byte of [at, end) that is not a space, or end. */
const char *pstk__json_skip_space(const char *at, const char *end);

#endif
