/* SPDX-License-Identifier: Apache-2.0 */
/* help: the text of --help, made from the commands' texts and option tables. */
#ifndef PSTK_CLI_HELP_H
#define PSTK_CLI_HELP_H

#include <stdio.h>

struct command;
struct option_row;

/* Print the list of commands, or the help of one command. */
void help_print_all(FILE *file);
void help_print(FILE *file, const struct command *command);
/* Return the name of an option's value: "N", "nhwc|nchw", "host|cuda|cuda:N"; "" when the option
 * takes none. */
#define HELP_VALUE_SIZE 96
const char *help_value(const struct option_row *row, char text[HELP_VALUE_SIZE]);
/* Return the next line of a text, `length` bytes without the newline, and move *text past it. NULL
 * after the last line. */
const char *help_line(const char **text, size_t *length);

#endif
