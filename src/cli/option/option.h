/* SPDX-License-Identifier: Apache-2.0 */
/* option: one option of a command, as a row of the command's table. */
#ifndef PSTK_CLI_OPTION_H
#define PSTK_CLI_OPTION_H

#include <stdint.h>

/* A name and its value. A table ends with a NULL name. */
struct choice {
    const char *name;
    uint32_t value;
};

/*
 * One row of a command's table. The parser, --help, the man page and the shells' completions all
 * come from this table. A row without a name is the heading of the rows below it.
 */
struct option_row {
    const char *name;            /* without dashes; NULL: a heading */
    int code;                    /* result of options_next; a letter is also the short name */
    const char *value;           /* name of its value: "N"; FILE: a path; NULL: see values */
    const struct choice *values; /* all its values, except `value`; both NULL: the option takes no
                                    value */
    const char *initial;         /* default value, for people; NULL: none */
    const char *text;            /* effect of the option; NULL: the end of the table */
};

#define OPTION_END                                                                                 \
    {                                                                                              \
        .text = NULL                                                                               \
    }
#define OPTION_JSON(what)                                                                          \
    {                                                                                              \
        .name = "json", .code = OPT_JSON, .text = what                                             \
    }

/* Return 1 when the row is an option that takes a value. */
static inline int option_takes_value(const struct option_row *row)
{
    return row->value || row->values;
}

/* Return the option's letter, or 0 when it has none. */
static inline int option_letter(const struct option_row *row)
{
    return row->code > ' ' && row->code <= '~' ? row->code : 0;
}

#endif
