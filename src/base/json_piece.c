/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json_piece.h"

#include <stddef.h>

/* Return whether the byte is white space by RFC 8259. */
static int is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

const char *pstk__json_skip_space(const char *at, const char *end)
{
    while (at < end && is_space(*at))
        at++;
    return at;
}

/* Skip the rest of a text between quotes. 1: it ended. */
static int scan_text(struct pstk__json_scan *scan, const char **at, const char *end)
{
    const char *c = *at;
    for (; c < end; c++) {
        if (scan->is_escaped)
            scan->is_escaped = 0; /* an escaped byte never ends the text */
        else if (*c == '\\')
            scan->is_escaped = 1;
        else if (*c == '"')
            break;
    }
    scan->in_text = c == end;
    *at = scan->in_text ? end : c + 1;
    return !scan->in_text;
}

enum pstk__json_scan_result pstk__json_scan(struct pstk__json_scan *scan, const char **at,
                                            const char *end)
{
    while (*at < end) {
        if (scan->in_text) {
            if (scan_text(scan, at, end) && scan->depth == 0)
                return PSTK__JSON_ENDED;
            continue;
        }
        const char c = **at;
        if (c == '"') {
            scan->in_text = 1;
        } else if (c == '[' || c == '{') {
            scan->n_separators++;
            if (++scan->depth > scan->max_depth && scan->max_depth)
                return PSTK__JSON_TOO_DEEP;
        } else if (c == ']' || c == '}') {
            if (scan->depth == 0)
                return PSTK__JSON_ENDED; /* the value was a word before this byte */
            if (--scan->depth == 0) {
                ++*at;
                return PSTK__JSON_ENDED;
            }
        } else if (scan->depth) {
            scan->n_separators += c == ',' || c == ':';
        } else if (c == ',' || c == ':' || is_space(c)) {
            return PSTK__JSON_ENDED; /* the value was a word before this byte */
        }
        ++*at;
    }
    return PSTK__JSON_GOES_ON;
}

/* Read the value that begins at w->at. 0, or -1. */
static int take(struct pstk__json_walk *walk, struct pstk__json_piece *piece)
{
    const char *to = walk->at;
    struct pstk__json_scan scan = {.depth = 0};
    *piece = (struct pstk__json_piece){.at = to};
    const enum pstk__json_scan_result found = pstk__json_scan(&scan, &to, walk->end);
    const int is_cut = found == PSTK__JSON_GOES_ON && (scan.depth || scan.in_text);
    if (is_cut || to == walk->at)
        return -1;
    piece->size = (uint64_t)(to - walk->at);
    piece->n_separators = scan.n_separators;
    walk->at = pstk__json_skip_space(to, walk->end);
    return 0;
}

/* Read one expected byte and the space after it. 0, or -1: another byte is there. */
static int take_byte(struct pstk__json_walk *walk, char c)
{
    if (walk->at == walk->end || *walk->at != c)
        return -1;
    walk->at = pstk__json_skip_space(walk->at + 1, walk->end);
    return 0;
}

int pstk__json_walk_begin(struct pstk__json_walk *walk, const char *at, const char *end, char open)
{
    *walk = (struct pstk__json_walk){
        .at = pstk__json_skip_space(at, end), .end = end, .close = open == '[' ? ']' : '}'};
    return take_byte(walk, open) == 0;
}

int pstk__json_walk_next(struct pstk__json_walk *walk, struct pstk__json_piece *key,
                         struct pstk__json_piece *value)
{
    if (take_byte(walk, walk->close) == 0)
        return 0;
    if (walk->begun && take_byte(walk, ',') < 0)
        return -1;
    walk->begun = 1;
    if (walk->close == '}' && (walk->at == walk->end || *walk->at != '"' || take(walk, key) < 0 ||
                               take_byte(walk, ':') < 0))
        return -1;
    return take(walk, value) < 0 ? -1 : 1;
}
