/* SPDX-License-Identifier: Apache-2.0 */
#include "format/pstk/manifest_columns.h"

#include <string.h>

/* Parse the field and the fact of a column, which it has both or neither. */
static void parse_fact(struct pstk__parse *parse, json_t *object,
                       struct pstk__manifest_column *column)
{
    if (!json_object_get(object, "field") && !json_object_get(object, "fact"))
        return;
    const int field =
        pstk__schema_find(&parse->m->schema, pstk__parse_text(parse, object, "field"));
    column->fact = pstk__column_fact_parse(pstk__parse_text(parse, object, "fact"));
    column->field = (uint32_t)field;
    if (field < 0)
        pstk__parse_fail_key(parse, "field", "does not name a field");
    if (column->fact == 0)
        pstk__parse_fail_key(parse, "fact", "must be value, size, length, width or height");
}

/* Keys of a column, except that of its CRCs. */
static const char *const keys[] = {"name", "dtype", "files", "field", "fact"};

static int is_key(const char *name)
{
    size_t i = 0;
    while (i < sizeof keys / sizeof keys[0] && strcmp(keys[i], name) != 0)
        i++;
    return i < sizeof keys / sizeof keys[0];
}

/* Read 8 hex digits: plain ones, which is faster, or with escapes. -1: the piece is something else.
 */
static int parse_crc(struct pstk__parse *parse, const struct pstk__json_piece *text, uint32_t *crc)
{
    char hex[9] = "";
    if (text->size == 10 && text->at[0] == '"')
        memcpy(hex, text->at + 1, 8);
    if (pstk__parse_hex(hex, crc) == 0)
        return 0;
    json_t *value = pstk__parse_piece(parse, text);
    const int r = json_is_string(value) ? pstk__parse_hex(json_string_value(value), crc) : -1;
    json_decref(value);
    return r;
}

/* Parse the header CRCs of a column's files, one by one. */
static void parse_crcs(struct pstk__parse *parse, const struct pstk__json_piece *piece,
                       struct pstk__manifest_column *column)
{
    struct pstk__parse_list list = pstk__parse_list_begin(parse, piece, "header_crc32c");
    struct pstk__json_piece text;
    while (list.n && pstk__parse_next(parse, &list.walk, NULL, &text)) {
        uint32_t crc = 0;
        if (parse_crc(parse, &text, &crc) < 0)
            pstk__parse_fail_key(parse, "header_crc32c",
                                 "has an element that is not 8 lower-case hex digits");
        else if (pstk__manifest_add_column_crc(column, crc, parse->err) < 0)
            parse->code = PSTK_ENOMEM;
    }
}

/* Parse all of a column except its CRCs, whose list becomes *crcs: an object of known keys. Returns
 * owned. */
static json_t *column_object(struct pstk__parse *parse, const struct pstk__json_piece *piece,
                             struct pstk__json_piece *crcs)
{
    struct pstk__json_walk walk;
    struct pstk__json_piece key, value;
    json_t *object = json_object();
    if (!object)
        parse->code = pstk__parse_no_memory(parse);
    else if (!pstk__json_walk_begin(&walk, piece->at, piece->at + piece->size, '{'))
        pstk__parse_fail_key(parse, "", "is not an object");
    while (pstk__parse_next(parse, &walk, &key, &value)) {
        json_t *text = pstk__parse_piece(parse, &key);
        const char *name = text ? json_string_value(text) : "";
        const int is_crcs = strcmp(name, "header_crc32c") == 0;
        if (is_crcs ? crcs->at != NULL : json_object_get(object, name) != NULL)
            pstk__parse_fail_key(parse, name, "appears twice");
        else if (!is_crcs && !is_key(name))
            pstk__parse_fail_key(parse, name, "is unknown to this version");
        json_t *parsed = is_crcs ? NULL : pstk__parse_piece(parse, &value);
        if (is_crcs)
            *crcs = value;
        else if (parsed && json_object_set_new(object, name, parsed) < 0)
            parse->code = pstk__parse_no_memory(parse);
        json_decref(text);
    }
    return object;
}

static void parse_column(struct pstk__parse *parse, const struct pstk__json_piece *piece)
{
    struct pstk__json_piece crcs = {0};
    struct pstk__manifest_column column = {.fact = PSTK_COLUMN_ADDED};
    json_t *object = column_object(parse, piece, &crcs);
    pstk__parse_copy_text(parse, object, "name", column.name, sizeof column.name);
    pstk__parse_copy_text(parse, object, "files", column.files, sizeof column.files);
    column.dtype = pstk_dtype_parse(pstk__parse_text(parse, object, "dtype"));
    if (column.dtype == 0)
        pstk__parse_fail_key(parse, "dtype", "is not a dtype that this version knows");
    parse_fact(parse, object, &column);
    json_decref(object);
    if (parse->code == 0)
        parse->code = pstk__manifest_add_column(parse->m, &column, parse->err);
    if (parse->code == 0)
        parse_crcs(parse, &crcs, &parse->m->columns[parse->m->n_columns - 1]);
}

void pstk__parse_columns(struct pstk__parse *parse, const struct pstk__json_piece *piece)
{
    struct pstk__json_piece value;
    struct pstk__parse_list list = pstk__parse_list_begin(parse, piece, "extra.columns");
    if (list.n > PSTK__MAX_COLUMNS)
        pstk__parse_fail_key(parse, "extra.columns", "has %llu elements; must be at most %d",
                             (unsigned long long)list.n, PSTK__MAX_COLUMNS);
    parse->list = "extra.columns";
    for (parse->index = 0; list.n && pstk__parse_next(parse, &list.walk, NULL, &value);
         parse->index++)
        parse_column(parse, &value);
    parse->list = NULL;
}
