/* SPDX-License-Identifier: Apache-2.0 */
/* pages: the man page and the shells' completions, written at build from the commands' tables, so
 * that they list what the parser takes. Not part of the command. */
#ifndef PSTK_CLI_PAGES_H
#define PSTK_CLI_PAGES_H

#include <stddef.h>
#include <stdio.h>

struct command;
struct option_row;

/* Each writes one file whole. */
void write_man(FILE *file);
void write_bash(FILE *file);
void write_zsh(FILE *file);
void write_fish(FILE *file);

/* Return the words that an option's value can be, for completion: "full sequential"; "": any. */
#define PAGES_WORDS_SIZE 96
const char *pages_words(const struct option_row *row, char text[PAGES_WORDS_SIZE]);
/* Return the length of the first clause of an option's text, which is all that a completion shows.
 */
size_t pages_clause(const struct option_row *row);
/* 1 when the option's value is a path. */
int pages_is_file(const struct option_row *row);

/* What an operand is, by its name: "DATA" is a folder. */
enum pages_operand { PAGES_FOLDER, PAGES_PATH, PAGES_NUMBER, PAGES_FIELD };
#define PAGES_OPERANDS 4

/* What each of a command's operands is. Returns their number; more of them are as the last. */
size_t pages_operands(const struct command *command, enum pages_operand kinds[PAGES_OPERANDS]);
/* 1 where they differ, and the place of one matters. */
int pages_is_mixed(const struct command *command);

/* A filter that leaves the names of the fields of what `penstock info` prints. */
#define PAGES_FIELD_NAMES "sed -n '1,/^  field /d; /^$/q; s/^  \\([^ ]\\{1,\\}\\) .*/\\1/p'"

#endif
