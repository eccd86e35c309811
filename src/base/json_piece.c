/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json_piece.h"

#include <stddef.h>

/* Space is what RFC 8259 has. */
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

/* After the text whose first quote is at `at`; NULL: it has no last one. */
static const char *skip_text(const char *at, const char *end)
{
    for (at++; at < end; at++) {
        if (*at == '"')
            return at + 1;
        if (*at == '\\')
            at++; /* the next byte is escaped: it does not end the text */
    }
    return NULL;
}

/* After a list or object. Brackets are counted, whichever they are: the parser sees to their kinds.
 * NULL: it has no end. */
static const char *skip_container(const char *at, const char *end, uint64_t *n_separators)
{
    uint64_t depth = 0;
    while (at < end) {
        switch (*at) {
        case '"':
            at = skip_text(at, end);
            if (!at)
                return NULL;
            continue;
        case '[':
        case '{':
            depth++;
            ++*n_separators;
            break;
        case ',':
        case ':':
            ++*n_separators;
            break;
        case ']':
        case '}':
            if (--depth == 0)
                return at + 1;
            break;
        default:
            break;
        }
        at++;
    }
    return NULL;
}

/* After a number or a word. */
static const char *skip_word(const char *at, const char *end)
{
    while (at < end && !is_space(*at) && *at != ',' && *at != ':' && *at != ']' && *at != '}')
        at++;
    return at;
}

/* Take the value that begins at w->at. 0, or -1. */
static int take(struct pstk__json_walk *walk, struct pstk__json_piece *piece)
{
    const char *from = walk->at, *to = NULL;
    *piece = (struct pstk__json_piece){.at = from};
    if (from == walk->end)
        return -1;
    if (*from == '"')
        to = skip_text(from, walk->end);
    else if (*from == '[' || *from == '{')
        to = skip_container(from, walk->end, &piece->n_separators);
    else
        to = skip_word(from, walk->end);
    if (!to || to == from)
        return -1;
    piece->size = (uint64_t)(to - from);
    walk->at = pstk__json_skip_space(to, walk->end);
    return 0;
}

/* Take one byte and the space after it. 0, or -1: another stands there. */
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
