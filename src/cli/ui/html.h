/* SPDX-License-Identifier: Apache-2.0 */
/* html: writes text from other people into an HTML page, so that none of it is markup. */
#ifndef PSTK_CLI_HTML_H
#define PSTK_CLI_HTML_H

#include <stdio.h>

/* Write text as text_print does (text.h), with each of & < > " ' as a character reference, so that
 * it may stand between tags and in a quoted attribute. */
void html_text(FILE *file, const char *text);
/* Write a cell of a table: <td>text</td>, or <th scope="row">; NULL: a dash that is marked as no
 * value. */
void html_cell(FILE *file, const char *text);
void html_row_head(FILE *file, const char *text);
/* Write the beginning of a table: its class, its caption (NULL: none) and the heads of its columns,
 * ended by NULL. It ends by html_table_end. */
void html_table(FILE *file, const char *kind, const char *caption, const char *const *heads);
void html_table_end(FILE *file);

#endif
