/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CSV as in RFC 4180, with LF or CR LF at the end of a line. A quote inside a value that does not
 * begin with a quote is an ordinary character, as for other readers.
 */
#include "format/table/table.h"

#include <stdio.h>
#include <string.h>

/* The parsing of a row. */
struct parse {
    const char *bytes;
    uint64_t size, at;
    int is_end;
    char delimiter;
    char *room; /* unused rest of the caller's room */
    struct pstk__table_row *row;
};

enum { MORE = 0, DONE = 1, WRONG = -1 };

static int wrong(struct parse *parse, uint64_t at, const char *what)
{
    snprintf(parse->row->wrong, sizeof parse->row->wrong, "%s", what);
    parse->row->wrong_at = at;
    return WRONG;
}

static int wrong_nul(struct parse *parse)
{
    return wrong(parse, parse->at, "a NUL byte stands here: the table is damaged, or is not text");
}

/* Take a value in quotes, whose first quote is at parse->at. */
static int take_quoted(struct parse *parse, struct pstk__cell *cell)
{
    const uint64_t begin = parse->at++;
    uint64_t from = parse->at;
    int is_whole = 1; /* 1: the value contains no quote */
    char *to = parse->room;
    for (;; parse->at++) {
        if (parse->at == parse->size)
            return parse->is_end ? wrong(parse, begin, "a quoted value has no closing quote")
                                 : MORE;
        const char c = parse->bytes[parse->at];
        if (c == 0)
            return wrong_nul(parse);
        parse->row->n_lines += c == '\n';
        if (c != '"')
            continue;
        if (parse->at + 1 == parse->size && !parse->is_end)
            return MORE;
        memcpy(to, parse->bytes + from, parse->at - from);
        to += parse->at - from;
        if (parse->at + 1 == parse->size || parse->bytes[parse->at + 1] != '"')
            break;
        *to++ = '"';
        from = ++parse->at + 1;
        is_whole = 0;
    }
    cell->raw = parse->bytes + begin + 1;
    cell->raw_size = parse->at - begin - 1;
    cell->text = is_whole ? cell->raw : parse->room;
    cell->size = is_whole ? cell->raw_size : (uint64_t)(to - parse->room);
    parse->room = to;
    parse->at++;
    return DONE;
}

static int take_bare(struct parse *parse, struct pstk__cell *cell)
{
    cell->text = cell->raw = parse->bytes + parse->at;
    for (; parse->at < parse->size; parse->at++) {
        const char c = parse->bytes[parse->at];
        if (c == parse->delimiter || c == '\n' || c == '\r')
            break;
        if (c == 0)
            return wrong_nul(parse);
    }
    if (parse->at == parse->size && !parse->is_end)
        return MORE;
    cell->size = cell->raw_size = (uint64_t)(parse->bytes + parse->at - cell->text);
    return DONE;
}

/* Take the end of a value. *is_last: the row ends here. */
static int take_end(struct parse *parse, int *is_last)
{
    *is_last = parse->at == parse->size;
    if (*is_last)
        return parse->is_end ? DONE : MORE;
    const char c = parse->bytes[parse->at];
    if (c == '\r' && parse->at + 1 == parse->size && !parse->is_end)
        return MORE;
    const int is_pair =
        c == '\r' && parse->at + 1 < parse->size && parse->bytes[parse->at + 1] == '\n';
    const int is_cut =
        c == '\r' &&
        parse->at + 1 == parse->size; /* the pair CR LF may be cut at the end of the bytes */
    *is_last = c == '\n' || is_pair || is_cut;
    if (*is_last || c == parse->delimiter) {
        parse->at += 1 + (is_pair != 0);
        parse->row->n_lines += *is_last != 0;
        return DONE;
    }
    return wrong(parse, parse->at,
                 c == '\r' ? "a carriage return has no line feed after it: end lines in LF or CR "
                             "LF, or quote the value"
                           : "a value goes on after its closing quote: quotes in it must be "
                             "doubled");
}

static int parse_csv(const struct pstk__table_kind *kind, const char *bytes, uint64_t size,
                     int is_end, char *room, struct pstk__table_row *row)
{
    struct parse parse = {.bytes = bytes,
                          .size = size,
                          .is_end = is_end,
                          .delimiter = kind->delimiter,
                          .room = room,
                          .row = row};
    int is_last = 0, r = DONE;
    row->n_cells = 0;
    row->n_lines = 0;
    while (!is_last) {
        if (row->n_cells == PSTK__TABLE_MAX_CELLS) {
            wrong(&parse, parse.at, "");
            snprintf(row->wrong, sizeof row->wrong, "the row has more than %d columns",
                     PSTK__TABLE_MAX_CELLS);
            return WRONG;
        }
        struct pstk__cell *cell = &row->cells[row->n_cells++];
        *cell = (struct pstk__cell){.at = parse.at};
        if (parse.at == size && !is_end)
            return MORE;
        r = parse.at < size && bytes[parse.at] == '"' ? take_quoted(&parse, cell)
                                                      : take_bare(&parse, cell);
        r = r == DONE ? take_end(&parse, &is_last) : r;
        if (r != DONE)
            return r;
    }
    row->size = parse.at;
    if (row->n_cells == 1 && row->cells[0].at == 0 && row->cells[0].raw_size == 0 &&
        (size == 0 || bytes[0] != '"'))
        row->n_cells = 0;
    return DONE;
}

const struct pstk__table_kind pstk__table_csv = {
    .name = "CSV", .endings = ".csv", .delimiter = ',', .has_header = 1, .parse = parse_csv};
const struct pstk__table_kind pstk__table_tsv = {
    .name = "TSV", .endings = ".tsv", .delimiter = '\t', .has_header = 1, .parse = parse_csv};
