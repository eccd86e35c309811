/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options: reading a command line, and the values in it. What is wrong is printed in one sentence;
 * the value functions return 0, or -1 after having printed it.
 */
#ifndef PSTK_CLI_OPTIONS_H
#define PSTK_CLI_OPTIONS_H

#include <getopt.h> /* optarg */
#include <stdint.h>

#include "command.h"
#include "option.h"

/* One pass over argv. */
struct options {
    const struct command *command;
    int argc;
    char **argv;
    int status; /* exit status, once next returned -1 */
};

/* Return the next option's code; 0 at the end; -1 when the command is done (o->status): --help was
 * printed, or something was wrong and said. The option's value is getopt's `optarg`. */
int options_next(struct options *options);
/* After the end: the operands. Returns 0, or -1 when there are not n_min..n_max (0 = any) of them;
 * `names` is how to call them. */
int options_operands(struct options *options, int n_min, int n_max, const char *names);
/* Operand i. */
const char *options_operand(const struct options *options, int i);
int options_n_operands(const struct options *options);

struct range {
    uint64_t min, max;
};

int option_count(const char *option, const char *text, struct range range, uint64_t *out);
int option_count32(const char *option, const char *text, struct range range, uint32_t *out);
/* Bytes: a number with K, M, G or T (powers of 1024). */
int option_bytes(const char *option, const char *text, struct range range, uint64_t *out);
int option_real(const char *option, const char *text, double min, double max, double *out);
int option_choice(const char *option, const char *text, const struct choice *choices,
                  uint32_t *out);
/* The name of a value, "?" when there is none. */
const char *option_choice_name(const struct choice *choices, uint32_t value);

/* The entry of `names` (ended by NULL) that `text` was probably meant to be, or NULL. */
const char *option_nearest(const char *text, const char *const *names);

#endif
