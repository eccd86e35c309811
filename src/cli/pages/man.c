/* SPDX-License-Identifier: Apache-2.0 */
/* usage: man FILE: write the man page. The build runs it; it is no part of the command. */
#include <penstock/types.h>
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "option/help.h"
#include "option/option.h"

static const char head[] =
    ".SH NAME\n"
    "penstock \\- pack, check, show and measure data sets for training\n"
    ".SH SYNOPSIS\n"
    ".B penstock\n"
    ".I COMMAND\n"
    ".RI [ ARGUMENT ...]\n"
    ".br\n"
    ".B penstock\n"
    ".I COMMAND\n"
    ".B \\-\\-help\n"
    ".br\n"
    ".B penstock \\-\\-version\n"
    ".SH DESCRIPTION\n"
    "A data set is a folder with a manifest and shards of records. penstock packs one from a "
    "folder\n"
    "of images, and streams it through decoding and augmentation into batches, in an order that "
    "seed\n"
    "and epoch alone decide.\n"
    ".PP\n"
    "Results go to standard output, progress and messages to standard error. With\n"
    ".B \\-\\-json\n"
    "the result is one JSON object. Sizes are bytes with K, M, G or T (powers of 1024). Control\n"
    "characters and bytes that are not UTF-8, in names, notes and messages, are printed as "
    "\\ex1b.\n"
    ".SH COMMANDS\n";

static const char tail[] =
    ".SH EXIT STATUS\n"
    ".TP\n"
    ".B 0\n"
    "Success.\n"
    ".TP\n"
    ".B 1\n"
    "Damaged data, refused input, or a machine that failed (memory, space).\n"
    ".TP\n"
    ".B 2\n"
    "Wrong usage, path or file type, or an intact data set of a newer version.\n"
    ".TP\n"
    ".B 130\n"
    "Ended by Ctrl-C (143 by SIGTERM, 129 by SIGHUP): pack and merge leave what was there before,\n"
    "show the older picture, and the last line says so. A second Ctrl-C kills.\n"
    ".SH EXAMPLES\n"
    "What did rank 3 of 8 see at step 1700 of epoch 2?\n"
    ".PP\n"
    ".nf\n"
    "penstock order train \\-\\-epoch 2 \\-\\-seed 1 \\-\\-batch\\-size 256 \\-\\-rank 3 "
    "\\-\\-world 8 \\e\n"
    "    \\-\\-start\\-batch 1700 \\-\\-batches 1\n"
    ".fi\n"
    ".PP\n"
    "Pack on four machines, join on one:\n"
    ".PP\n"
    ".nf\n"
    "penstock pack imagenet/train part0 \\-\\-part 0/4\n"
    "penstock merge part0 part1 part2 part3 train\n"
    ".fi\n";

/* Write a text that roff prints literally. A line must not begin with a dot or quote. */
static void put(FILE *file, const char *text, size_t length)
{
    if (length && (*text == '.' || *text == '\''))
        fputs("\\&", file);
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '\\')
            fputs("\\e", file);
        else if (text[i] == '-')
            fputs("\\-", file);
        else
            fputc(text[i], file);
    }
}

static void put_text(FILE *file, const char *text)
{
    put(file, text, strlen(text));
}

/* Write paragraphs; lines that begin with two blanks are unchanged. */
static void put_paragraphs(FILE *file, const char *text)
{
    const char *line;
    size_t length;
    int is_fixed = 0;
    while ((line = help_line(&text, &length))) {
        const int was_fixed = is_fixed;
        is_fixed = length >= 2 && strncmp(line, "  ", 2) == 0;
        if (is_fixed != was_fixed)
            fputs(is_fixed ? ".nf\n" : ".fi\n", file);
        if (length == 0)
            fputs(".PP\n", file);
        put(file, line, length);
        if (length)
            fputc('\n', file);
    }
    if (is_fixed)
        fputs(".fi\n", file);
}

static void put_option(FILE *file, const struct option_row *row)
{
    char value[HELP_VALUE_SIZE];
    fputs(".TP\n", file);
    if (option_letter(row))
        fprintf(file, "\\fB\\-%c\\fR, ", option_letter(row));
    fputs("\\fB\\-\\-", file);
    put_text(file, row->name);
    fputs("\\fR", file);
    if (option_takes_value(row)) {
        fputs(" \\fI", file);
        put_text(file, help_value(row, value));
        fputs("\\fR", file);
    }
    fputc('\n', file);
    put_text(file, row->text);
    if (row->initial) {
        fputs(" (default: ", file);
        put_text(file, row->initial);
        fputc(')', file);
    }
    fputc('\n', file);
}

static void put_command(FILE *file, const struct command *command)
{
    fputs(".SS penstock ", file);
    put_text(file, command->name);
    if (command->operands[0])
        fputc(' ', file);
    put_text(file, command->operands);
    fputs(command->options->text ? " [options]\n" : "\n", file);
    put_paragraphs(file, command->text);
    for (const struct option_row *row = command->options; row->text; row++) {
        if (row->name) {
            put_option(file, row);
        } else {
            fputs(".PP\n", file);
            put_text(file, row->text);
            fputs(":\n", file);
        }
    }
    fputs(".PP\n.nf\n", file);
    const char *text = command->examples, *line;
    size_t length;
    while ((line = help_line(&text, &length))) {
        put(file, line, length);
        fputc('\n', file);
    }
    fputs(".fi\n.PP\nexit status: ", file);
    put_text(file, command->exit_status);
    fputc('\n', file);
}

static void write_man(FILE *file)
{
    fputs(".\\\" SPDX-License-Identifier: Apache-2.0\n", file);
    fprintf(file, ".TH PENSTOCK 1 \"\" \"penstock %s\" \"User Commands\"\n", pstk_version());
    fputs(head, file);
    for (size_t i = 0; commands[i]; i++)
        put_command(file, commands[i]);
    fputs(tail, file);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fputs("usage: man FILE\n", stderr);
        return 2;
    }
    FILE *file = fopen(argv[1], "w");
    if (!file) {
        perror(argv[1]);
        return 1;
    }
    write_man(file);
    const int has_failed = ferror(file);
    if (fclose(file) == 0 && !has_failed)
        return 0;
    perror(argv[1]);
    return 1;
}
