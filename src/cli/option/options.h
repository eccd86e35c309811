/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options: reads a command line and the values in it. An error is printed as one sentence. The
 * functions that read a value return 0, or -1 after a message.
 */
#ifndef PSTK_CLI_OPTIONS_H
#define PSTK_CLI_OPTIONS_H

#include <getopt.h> /* optarg */
#include <stdint.h>

#include "command.h"
#include "option/option.h"

/* One pass over argv. */
struct options {
    const struct command *command;
    int argc;
    char **argv;
    int status; /* exit status, after options_next returned -1 */
};

/* Return the next option's code; 0 at the end; -1 when the command is done, with options->status
 * set: --help was printed, or an error was. The option's value is getopt's `optarg`. */
int options_next(struct options *options);
/* Check the number of operands, after the last option. Returns 0, or -1 after a message when there
 * are not n_min..n_max of them (n_max 0: any number). `names` is their name in the message. */
int options_operands(struct options *options, int n_min, int n_max, const char *names);
/* Return operand i. */
const char *options_operand(const struct options *options, int i);
int options_n_operands(const struct options *options);

/* The last word of an unfinished command line. */
struct options_last {
    const struct option_row *row; /* option whose value the word is or contains; NULL: no value */
    const char *value;            /* the value in the word; NULL: no value */
    int n_operands;               /* operands before it */
    int has_ended;                /* 1: a word -- ended the options before the word */
};

/* Find the meaning of the last word of options->argv, which is not the first. Errors in other words
 * are ignored. The operands come last afterwards, as after options_next. */
void options_last(struct options *options, struct options_last *last);

struct range {
    uint64_t min, max;
};

int option_count(const char *option, const char *text, struct range range, uint64_t *out);
int option_count32(const char *option, const char *text, struct range range, uint32_t *out);
/* Read a number of bytes, with K, M, G or T for powers of 1024. */
int option_bytes(const char *option, const char *text, struct range range, uint64_t *out);
int option_real(const char *option, const char *text, double min, double max, double *out);
int option_choice(const char *option, const char *text, const struct choice *choices,
                  uint32_t *out);
/* Return the name of a value, or "?" when it has none. */
const char *option_choice_name(const struct choice *choices, uint32_t value);

/* Return the entry of `names` (ended by NULL) that `text` was probably meant to be, or NULL. */
const char *option_nearest(const char *text, const char *const *names);

#endif
