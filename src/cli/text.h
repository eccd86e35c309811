/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text: names, notes and messages that somebody else wrote, made safe to print. A terminal obeys
 * control characters, and a shell obeys most others: neither must obey a file's name.
 */
#ifndef PSTK_CLI_TEXT_H
#define PSTK_CLI_TEXT_H

#include <stdio.h>

/* Print text with its control characters (C0, DEL, C1) and every byte that is no UTF-8 as \x1b.
 * Other UTF-8 stays as it is. */
void text_print(FILE *file, const char *text);
/* Return a copy of what text_print prints; owned, free(); NULL: out of memory. */
char *text_copy(const char *text);
/* Print text as text_print does, in lines of at most 91 columns, and a newline. The lines after the
 * first begin at column `indent`, the first where the cursor is: it is there, too. */
void text_print_wrapped(FILE *file, const char *text, int indent);
/* Print one line of JSON with DEL and C1 as \u0080. In JSON only strings hold them, and mean the
 * same. */
void text_print_json(FILE *file, const char *json);
/* Print a path as one word of a command line: what a shell reads from it is the path, and no
 * command takes it for an option. */
void text_print_word(FILE *file, const char *path);
/* 1 when the text is well-formed UTF-8 (RFC 3629). */
int text_is_utf8(const char *text);

#endif
