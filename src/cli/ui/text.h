/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text: names, notes and messages from other people, made safe to print. A terminal obeys control
 * characters, and a shell obeys most punctuation; neither may obey the name of a file.
 */
#ifndef PSTK_CLI_TEXT_H
#define PSTK_CLI_TEXT_H

#include <stdio.h>

/* Print a text. Control characters (C0, DEL, C1) and bytes that are not UTF-8 are printed as \x1b;
 * the other UTF-8 is unchanged. */
void text_print(FILE *file, const char *text);
/* Return a copy of the text that text_print prints (owned, free()), or NULL when out of memory. */
char *text_copy(const char *text);
/* Print a text as text_print does, in lines of at most 91 columns, and a newline. The cursor is
 * already at column `indent`, where the lines after the first begin, too. */
void text_print_wrapped(FILE *file, const char *text, int indent);
/* Print one line of JSON with DEL and C1 as \u0080. Only strings of JSON can hold them, so the
 * meaning is unchanged. */
void text_print_json(FILE *file, const char *json);
/* Print a path as one word of a command line. A shell reads it as the path, and no command takes it
 * for an option. */
void text_print_word(FILE *file, const char *path);
/* Return the bytes of the well-formed UTF-8 character at `text`, which is not empty; 0: there is
 * none. */
int text_character(const char *text);
/* Return 1 when the text is well-formed UTF-8 (RFC 3629). */
int text_is_utf8(const char *text);

#endif
