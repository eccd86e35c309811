/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command: a subcommand, and the exit statuses that scripts rely on. Subcommands use the library
 * through include/penstock/ only.
 */
#ifndef PSTK_CLI_COMMAND_H
#define PSTK_CLI_COMMAND_H

enum status {
    STATUS_OK = 0,
    STATUS_DAMAGED = 1, /* damaged data, refused input, a failing machine */
    STATUS_USAGE = 2,   /* usage, path, file type, an intact but newer version */
    STATUS_SIGNAL = 128 /* plus the signal's number: 130 for Ctrl-C */
};

struct option_row;

/* A subcommand. Each text consists of paragraphs of any length with an empty line between them. A
 * line that begins with two blanks is printed unchanged. */
struct command {
    const char *name;
    const char *summary;              /* one line, for the list of commands */
    const char *operands;             /* "SRC OUT" */
    const char *text;                 /* effect of the command */
    const struct option_row *options; /* ended by OPTION_END */
    const char *examples;             /* command lines, possibly with comments */
    const char *exit_status;          /* "0 packed; 1 ..." */
    int (*run)(const struct command *self, int argc, char **argv); /* returns an exit status */
};

extern const struct command command_pack;
extern const struct command command_merge;
extern const struct command command_column;
extern const struct command command_info;
extern const struct command command_verify;
extern const struct command command_get;
extern const struct command command_export;
extern const struct command command_show;
extern const struct command command_bench;
extern const struct command command_order;
extern const struct command command_doctor;
extern const struct command command_page;
extern const struct command command_top;
extern const struct command command_cache;

/* All commands, in the order in which a newcomer needs them; ended by NULL. */
extern const struct command *const commands[];
/* Return the command of that name, or NULL. */
const struct command *command_find(const char *name);

#endif
