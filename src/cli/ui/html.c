/* SPDX-License-Identifier: Apache-2.0 */
#include "ui/html.h"

#include <stdlib.h>

#include "ui/message.h"
#include "ui/text.h"

void html_text(FILE *file, const char *text)
{
    char *safe = text_copy(text);
    if (!safe)
        message_no_memory();
    for (const char *c = safe; *c; c++) {
        switch (*c) {
        case '&':
            fputs("&amp;", file);
            break;
        case '<':
            fputs("&lt;", file);
            break;
        case '>':
            fputs("&gt;", file);
            break;
        case '"':
            fputs("&quot;", file);
            break;
        case '\'':
            fputs("&#39;", file);
            break;
        default:
            putc(*c, file);
        }
    }
    free(safe);
}

void html_cell(FILE *file, const char *text)
{
    if (!text) {
        fputs("<td class=\"none\" title=\"not known\">&ndash;</td>", file);
        return;
    }
    fputs("<td>", file);
    html_text(file, text);
    fputs("</td>", file);
}

void html_row_head(FILE *file, const char *text)
{
    fputs("<tr><th scope=\"row\">", file);
    html_text(file, text);
    fputs("</th>", file);
}

void html_table(FILE *file, const char *kind, const char *caption, const char *const *heads)
{
    fprintf(file, "<div class=\"scroll\"><table class=\"%s\">", kind);
    if (caption) {
        fputs("<caption>", file);
        html_text(file, caption);
        fputs("</caption>", file);
    }
    fputs("<thead><tr>", file);
    for (; *heads; heads++) {
        fputs("<th scope=\"col\">", file);
        html_text(file, *heads);
        fputs("</th>", file);
    }
    fputs("</tr></thead><tbody>\n", file);
}

void html_table_end(FILE *file)
{
    fputs("</tbody></table></div>\n", file);
}
