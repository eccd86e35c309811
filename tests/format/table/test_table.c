/* SPDX-License-Identifier: Apache-2.0 */
#include "support/test.h"

#include "format/table/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Parse bytes in memory of exactly their size. The row borrows *copy and *room. */
static int parse(const struct pstk__table_kind *kind, const char *bytes, size_t size, int is_end,
                 struct pstk__table_row *row, char **copy, char **room)
{
    *copy = malloc(size ? size : 1);
    *room = malloc(size ? size : 1);
    if (!*copy || !*room)
        abort();
    memcpy(*copy, bytes, size);
    memset(row, 0xee, sizeof *row);
    return kind->parse(kind, *copy, size, is_end, *room, row);
}

/* The cells of a row as one text: "a|b|c". */
static void check_row(const struct pstk__table_kind *kind, const char *bytes, const char *wanted)
{
    struct pstk__table_row row;
    char *copy, *room, text[4096] = "";
    CHECK_EQ(parse(kind, bytes, strlen(bytes), 1, &row, &copy, &room), 1);
    for (uint32_t i = 0; i < row.n_cells; i++) {
        const struct pstk__cell *cell = &row.cells[i];
        const size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%.*s%s%.*s", i ? "|" : "",
                 (int)(cell->key ? cell->key_size : 0), cell->key ? cell->key : "",
                 cell->key ? "=" : "", (int)cell->size, cell->text);
        CHECK(cell->at <= strlen(bytes));
    }
    CHECK_STR(text, wanted);
    free(copy);
    free(room);
}

static void check_wrong(const struct pstk__table_kind *kind, const char *bytes, size_t size,
                        uint64_t at, const char *word)
{
    struct pstk__table_row row;
    char *copy, *room;
    CHECK_EQ(parse(kind, bytes, size, 1, &row, &copy, &room), -1);
    CHECK_EQ(row.wrong_at, at);
    if (!strstr(row.wrong, word))
        CHECK_STR(row.wrong, word);
    free(copy);
    free(room);
}

#define WRONG(kind, bytes, at, word) check_wrong(&(kind), bytes, sizeof(bytes) - 1, at, word)

TEST(csv_has_the_values_of_rfc_4180)
{
    check_row(&pstk__table_csv, "a,b,c\nd", "a|b|c");
    check_row(&pstk__table_csv, "a,b,c", "a|b|c");
    check_row(&pstk__table_csv, "a,b,c\r\n", "a|b|c");
    check_row(&pstk__table_csv, "a,b\r", "a|b"); /* CR LF that was cut */
    check_row(&pstk__table_csv, "\"a,\"\"b\"\"\r\n\",\"\",c\n", "a,\"b\"\r\n||c");
    check_row(&pstk__table_csv, "\"\"\"\"\n", "\"");
    check_row(&pstk__table_csv, "5\" disk,x\"y\"\n", "5\" disk|x\"y\"");
    check_row(&pstk__table_csv, ",\n", "|");
    check_row(&pstk__table_csv, "\"\"\n", "");
    check_row(&pstk__table_csv, " a , b \n", " a | b ");
    check_row(&pstk__table_tsv, "a,b\tc\n", "a,b|c");
}

TEST(empty_lines_are_no_rows)
{
    struct pstk__table_row row;
    char *copy, *room;
    CHECK_EQ(parse(&pstk__table_csv, "\r\na", 3, 0, &row, &copy, &room), 1);
    CHECK(row.n_cells == 0 && row.size == 2 && row.n_lines == 1);
    free(copy);
    free(room);
    CHECK_EQ(parse(&pstk__table_json, " \t\r\n{", 5, 0, &row, &copy, &room), 1);
    CHECK(row.n_cells == 0 && row.size == 4 && row.n_lines == 1);
    free(copy);
    free(room);
}

TEST(lines_in_quotes_are_counted)
{
    struct pstk__table_row row;
    char *copy, *room;
    CHECK_EQ(parse(&pstk__table_csv, "\"a\n\nb\",c\nd", 10, 0, &row, &copy, &room), 1);
    CHECK(row.n_cells == 2 && row.size == 9 && row.n_lines == 3);
    free(copy);
    free(room);
}

TEST(csv_that_is_wrong_is_refused_where_it_is)
{
    WRONG(pstk__table_csv, "a,\"b\nc", 2, "no closing quote");
    WRONG(pstk__table_csv, "a,\"b\"c\n", 5, "after its closing quote");
    WRONG(pstk__table_csv, "a\rb\n", 1, "carriage return");
    WRONG(pstk__table_csv, "a,\0b\n", 2, "NUL");
    WRONG(pstk__table_csv, "a,\"\0\"\n", 3, "NUL");
    char many[PSTK__TABLE_MAX_CELLS + 2];
    memset(many, ',', sizeof many);
    check_wrong(&pstk__table_csv, many, sizeof many, PSTK__TABLE_MAX_CELLS, "63 columns");
}

TEST(json_has_its_values)
{
    check_row(&pstk__table_json, "{\"a\": 1, \"b\" : \"x\", \"c\":null,\"d\":true}\n",
              "a=1|b=x|c=null|d=true");
    check_row(&pstk__table_json, "{\"a\":[1,{\"b\":\"]\\\"\"}], \"c\":-0.5e+3}",
              "a=[1,{\"b\":\"]\\\"\"}]|c=-0.5e+3");
    check_row(&pstk__table_json, "{\"\\u0061\\n\":\"\\u00e9\\ud83d\\ude00\\/\\\\\"}",
              "a\n=\xc3\xa9\xf0\x9f\x98\x80/\\");
    check_row(&pstk__table_json, "{\"a\":[12345678901234567890,-1E+999,\"x\\u0000\\\\u0000\\\"\"]}",
              "a=[12345678901234567890,-1E+999,\"x\\u0000\\\\u0000\\\"\"]");
    check_row(&pstk__table_json,
              "{\"a\":NaN, \"b\": Infinity "
              ",\"c\":-Infinity,\"d\":[NaN,{\"x\":-Infinity},Infinity,\"NaN\"]}",
              "a=NaN|b=Infinity|c=-Infinity|d=[NaN,{\"x\":-Infinity},Infinity,\"NaN\"]");
}

TEST(json_that_is_wrong_is_refused_where_it_is)
{
    WRONG(pstk__table_json, "[1]\n", 0, "JSON object");
    WRONG(pstk__table_json, "{\"a\":1} x\n", 8, "the line goes on after its JSON object");
    WRONG(pstk__table_json, "{\"a\":\n", 5, "ends here");
    WRONG(pstk__table_json, "{}\n", 0, "empty");
    WRONG(pstk__table_json, "{\"a\":1,\"a\":2}\n", 7, "twice");
    static const char *const words[] = {"nan",  "inf",   "+Infinity",  "-NaN",    "NaN1",
                                        "1NaN", "NaNe5", "Infinity.5", "-Infinit"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        char line[64];
        int n = snprintf(line, sizeof line, "{\"a\":%s}\n", words[i]);
        check_wrong(&pstk__table_json, line, (uint64_t)n, 5, "not a JSON value");
        n = snprintf(line, sizeof line, "{\"a\":[1,%s]}\n", words[i]);
        check_wrong(&pstk__table_json, line, (uint64_t)n, 5, "not JSON");
    }
    WRONG(pstk__table_json, "{\"a\":{NaN:1}}\n", 5, "not JSON");
    WRONG(pstk__table_json, "{\"a\":01}\n", 5, "not a JSON value");
    WRONG(pstk__table_json, "{\"a\":1.}\n", 5, "not a JSON value");
    WRONG(pstk__table_json, "{\"a\":[1,]}\n", 5, "not JSON");
    WRONG(pstk__table_json, "{\"a\":[01]}\n", 5, "not JSON");
    WRONG(pstk__table_json, "{\"a\":[-]}\n", 5, "not JSON");
    WRONG(pstk__table_json, "{\"a\":[1-2]}\n", 5, "not JSON");
    WRONG(pstk__table_json, "{\"a\":[\"\\u000\"]}\n", 5, "not JSON");
    WRONG(pstk__table_json, "{\"a\":[{\"b\":1,\"b\":2}]}\n", 5, "not JSON");
    WRONG(pstk__table_json, "{\"a\":[\n", 5, "ends here");
    WRONG(pstk__table_json, "{\"a\":\"\\u0000\"}\n", 5, "JSON string");
    WRONG(pstk__table_json, "{\"a\":\"\\ud83d\"}\n", 5, "JSON string");
    WRONG(pstk__table_json, "{\"a\":\"\\q\"}\n", 5, "JSON string");
    WRONG(pstk__table_json, "{\"a\":\"\xff\"}\n", 5, "JSON string");
    WRONG(pstk__table_json, "{\"a\":\"\t\"}\n", 5, "JSON string");
    WRONG(pstk__table_json, "{\"a\":1,\0}\n", 7, "NUL");
}

/* More is asked for at every cut but after the row, and what is there in full does not depend on
 * what follows. */
static void check_cuts(const struct pstk__table_kind *kind, const char *bytes)
{
    struct pstk__table_row row;
    char *copy, *room;
    const size_t size = strlen(bytes);
    for (size_t cut = 0; cut <= size; cut++) {
        const int r = parse(kind, bytes, cut, 0, &row, &copy, &room);
        CHECK_EQ(r, cut == size);
        free(copy);
        free(room);
        parse(kind, bytes, cut, 1, &row, &copy, &room); /* must not read out of bounds */
        free(copy);
        free(room);
    }
}

TEST(a_row_that_is_cut_needs_more)
{
    check_cuts(&pstk__table_csv, "a,\"b\"\"\r\n\",,c\r\n");
    check_cuts(&pstk__table_json, "{\"a\":\"\\u00e9\",\"b\":[1,2],\"c\":1.5}\n");
}

TEST(tables_are_known_by_their_names)
{
    CHECK(pstk__table_of("a/labels.csv") == &pstk__table_csv);
    CHECK(pstk__table_of("LABELS.CSV") == &pstk__table_csv);
    CHECK(pstk__table_of("a.tsv") == &pstk__table_tsv);
    CHECK(pstk__table_of("a.jsonl") == &pstk__table_json);
    CHECK(pstk__table_of("a.ndjson") == &pstk__table_json);
    CHECK(pstk__table_of("a.json") == NULL && pstk__table_of(".csv") == NULL);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(csv_has_the_values_of_rfc_4180),
        CASE(empty_lines_are_no_rows),
        CASE(lines_in_quotes_are_counted),
        CASE(csv_that_is_wrong_is_refused_where_it_is),
        CASE(json_has_its_values),
        CASE(json_that_is_wrong_is_refused_where_it_is),
        CASE(a_row_that_is_cut_needs_more),
        CASE(tables_are_known_by_their_names),
    };
    return RUN_CASES(cases);
}
