/* SPDX-License-Identifier: Apache-2.0 */
/* pages: the man page and the shells' completions, written at build time from the commands' tables,
 * so that they list the options that the parser takes. Not part of the command. */
#ifndef PSTK_CLI_PAGES_H
#define PSTK_CLI_PAGES_H

#include <stddef.h>
#include <stdio.h>

struct command;
struct option_row;

/* Each function writes one complete file. */
void write_man(FILE *file);
void write_bash(FILE *file);
void write_zsh(FILE *file);
void write_fish(FILE *file);

/* Return the words that an option's value can be, for completion, as in "full sequential"; "" when
 * it can be any. */
#define PAGES_WORDS_SIZE 96
const char *pages_words(const struct option_row *row, char text[PAGES_WORDS_SIZE]);
/* Return the length of the first clause of an option's text. A completion shows no more. */
size_t pages_clause(const struct option_row *row);
/* Return 1 when the option's value is a path. */
int pages_is_file(const struct option_row *row);

/* The kind of an operand, which follows from its name: "DATA" is a folder. A number, and a name
 * that the user chooses, have no completion. */
enum pages_operand { PAGES_FOLDER, PAGES_PATH, PAGES_NUMBER, PAGES_FIELD };
#define PAGES_OPERANDS 4

/* Find the kind of each operand of a command. Returns their number; any further operands are of the
 * last kind. */
size_t pages_operands(const struct command *command, enum pages_operand kinds[PAGES_OPERANDS]);
/* Return 1 when the kinds differ, so that the place of an operand matters. */
int pages_is_mixed(const struct command *command);

/* A filter that prints the names of the fields in the output of `penstock info`. */
#define PAGES_FIELD_NAMES "sed -n '1,/^  field /d; /^$/q; s/^  \\([^ ]\\{1,\\}\\) .*/\\1/p'"

#endif
