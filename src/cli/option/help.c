/* SPDX-License-Identifier: Apache-2.0 */
#include "option/help.h"

#include <string.h>

#include "command.h"
#include "option/option.h"

#define WIDTH 92  /* columns of a line */
#define COLUMN 30 /* the column where the text of an option begins */

const char *help_value(const struct option_row *row, char text[HELP_VALUE_SIZE])
{
    size_t n = 0;
    text[0] = 0;
    for (const struct choice *choice = row->values; choice && choice->name && n < HELP_VALUE_SIZE;
         choice++)
        n += (size_t)snprintf(text + n, HELP_VALUE_SIZE - n, "%s%s", n ? "|" : "", choice->name);
    if (row->value && n < HELP_VALUE_SIZE)
        snprintf(text + n, HELP_VALUE_SIZE - n, "%s%s", n ? "|" : "", row->value);
    return text;
}

const char *help_line(const char **text, size_t *length)
{
    const char *line = *text;
    if (!line || !*line)
        return NULL;
    *length = strcspn(line, "\n");
    *text = line + *length + (line[*length] == '\n');
    return line;
}

/* Print words from `column` on, in lines that begin at `indent`. Returns the column after them. */
static int print_words(FILE *file, const char *text, size_t length, int indent, int column)
{
    const char *end = text + length;
    while (text < end) {
        const int n = (int)strcspn(text, " \n"), fits = text + n < end ? n : (int)(end - text);
        const int is_first = column <= indent;
        if (!is_first && column + 1 + fits > WIDTH) {
            fprintf(file, "\n%*s", indent, "");
            column = indent;
        } else if (!is_first) {
            fputc(' ', file);
            column++;
        }
        fprintf(file, "%.*s", fits, text);
        column += fits;
        text += fits;
        text += text < end;
    }
    return column;
}

/* Print a text: paragraphs filled, and lines that begin with two blanks unchanged. */
static void print_text(FILE *file, const char *text)
{
    const char *line;
    size_t length;
    while ((line = help_line(&text, &length))) {
        if (length >= 2 && strncmp(line, "  ", 2) == 0)
            fprintf(file, "%.*s", (int)length, line);
        else
            print_words(file, line, length, 0, 0);
        fputc('\n', file);
    }
}

static void print_option(FILE *file, const struct option_row *row)
{
    char value[HELP_VALUE_SIZE], initial[96] = "";
    help_value(row, value);
    int column = option_letter(row) ? fprintf(file, "  -%c, --%s", row->code, row->name)
                                    : fprintf(file, "  --%s", row->name);
    if (value[0])
        column += fprintf(file, " %s", value);
    if (column >= COLUMN - 1) {
        fputc('\n', file);
        column = 0;
    }
    fprintf(file, "%*s", COLUMN - column, "");
    column = print_words(file, row->text, strlen(row->text), COLUMN, COLUMN);
    if (row->initial) {
        snprintf(initial, sizeof initial, "(default: %s)", row->initial);
        print_words(file, initial, strlen(initial), COLUMN, column);
    }
    fputc('\n', file);
}

static void print_options(FILE *file, const struct option_row *row)
{
    if (row->text && row->name)
        fputs("\noptions:\n", file);
    for (; row->text; row++) {
        if (row->name)
            print_option(file, row);
        else
            fprintf(file, "\n%s:\n", row->text);
    }
}

void help_print(FILE *file, const struct command *command)
{
    char status[512];
    fprintf(file, "usage: penstock %s%s%s%s\n\n", command->name, command->operands[0] ? " " : "",
            command->operands, command->options->text ? " [options]" : "");
    print_text(file, command->text);
    print_options(file, command->options);
    fputs("\nexamples:\n", file);
    const char *text = command->examples, *line;
    size_t length;
    while ((line = help_line(&text, &length)))
        fprintf(file, "  %.*s\n", (int)length, line);
    snprintf(status, sizeof status, "exit status: %s", command->exit_status);
    fputc('\n', file);
    print_text(file, status);
}

void help_print_all(FILE *file)
{
    fputs("usage: penstock COMMAND ...\n"
          "\n"
          "Data for training, packed once into record files or read where it lies (folders,\n"
          "tar, TFRecord, MDS, Megatron, NumPy): streamed, decoded and augmented in an order\n"
          "that a seed repeats.\n"
          "\n"
          "commands:\n",
          file);
    for (size_t i = 0; commands[i]; i++)
        fprintf(file, "  %-8s %s\n", commands[i]->name, commands[i]->summary);
    fputs("\n"
          "`penstock COMMAND --help` has options and examples; `penstock --version` the version.\n"
          "\n"
          "examples:\n"
          "  penstock pack imagenet/train train      # folders of images become a data set\n"
          "  penstock bench train                    # how fast is it here, and what limits it?\n"
          "  penstock info 'shards/*.tar'            # what is in these archives?\n"
          "  penstock show train --ids 0..15 -o sheet.png\n",
          file);
}
