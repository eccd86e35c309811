/* SPDX-License-Identifier: Apache-2.0 */
/* help: what --help prints, made of the commands' texts and tables. */
#ifndef PSTK_CLI_HELP_H
#define PSTK_CLI_HELP_H

#include <stdio.h>

struct command;
struct option_row;

/* Print the commands, and `penstock COMMAND --help`. */
void help_print_all(FILE *file);
void help_print(FILE *file, const struct command *command);
/* Return what an option's value is called: "N", "nhwc|nchw", "host|cuda|cuda:N"; "": it takes
 * none. */
#define HELP_VALUE_SIZE 96
const char *help_value(const struct option_row *row, char text[HELP_VALUE_SIZE]);
/* One line of a text: *text moves past it; the line is the `length` bytes from the result on,
 * without its end. NULL after the last. */
const char *help_line(const char **text, size_t *length);

#endif
