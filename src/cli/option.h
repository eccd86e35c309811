/* SPDX-License-Identifier: Apache-2.0 */
/* option: one option of a command, as a row of the command's table. */
#ifndef PSTK_CLI_OPTION_H
#define PSTK_CLI_OPTION_H

#include <stdint.h>

/* A name and the value that it stands for; tables end with a NULL name. */
struct choice {
    const char *name;
    uint32_t value;
};

/*
 * One row of a command's table, the one source of what the parser takes and of what --help, the man
 * page and the shells' completions list. A row without a name is the heading of those below it.
 */
struct option_row {
    const char *name;            /* without dashes; NULL: a heading */
    int code;                    /* what options_next returns; a letter is its short name, too */
    const char *value;           /* what to call its value: "N"; FILE: a path; NULL: see values */
    const struct choice *values; /* all that it can be, except `value`; both NULL: it takes none */
    const char *initial;         /* its value where it is not given, for people; NULL: none */
    const char *text;            /* what it does; NULL: the table has ended */
};

#define OPTION_END                                                                                 \
    {                                                                                              \
        .text = NULL                                                                               \
    }
#define OPTION_JSON(what)                                                                          \
    {                                                                                              \
        .name = "json", .code = OPT_JSON, .text = what                                             \
    }

/* 1 when the row is an option that takes a value. */
static inline int option_takes_value(const struct option_row *row)
{
    return row->value || row->values;
}

/* The option's letter, 0: it has none. */
static inline int option_letter(const struct option_row *row)
{
    return row->code > ' ' && row->code <= '~' ? row->code : 0;
}

#endif
