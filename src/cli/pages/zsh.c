/* SPDX-License-Identifier: Apache-2.0 */
#include "pages.h"

#include <string.h>

#include "../command.h"
#include "../option.h"

/* Write text inside the single quotes of a specification, where brackets and colons have a meaning.
 */
static void put(FILE *file, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '\'')
            fputs("'\\''", file);
        else
            fprintf(file, "%s%c", strchr("[]:\\", text[i]) ? "\\" : "", text[i]);
    }
}

static void put_option(FILE *file, const struct option_row *row)
{
    char words[PAGES_WORDS_SIZE];
    const char *equals = option_takes_value(row) ? "=" : "";
    if (option_letter(row))
        fprintf(file, "        '(-%c --%s)'{-%c%s,--%s%s}'[", option_letter(row), row->name,
                option_letter(row), option_takes_value(row) ? "+" : "", row->name, equals);
    else
        fprintf(file, "        '--%s%s[", row->name, equals);
    put(file, row->text, pages_clause(row));
    fputc(']', file);
    pages_words(row, words);
    if (option_takes_value(row)) {
        fputc(':', file);
        put(file, row->value ? row->value : row->name, strlen(row->value ? row->value : row->name));
        fputc(':', file);
        if (pages_is_file(row))
            fputs("_files", file);
        else if (words[0])
            fprintf(file, "(%s)", words);
        else
            fputc(' ', file);
    }
    fputs("' \\\n", file);
}

void write_zsh(FILE *file)
{
    fputs("#compdef penstock\n"
          "# SPDX-License-Identifier: Apache-2.0\n"
          "# Completion of penstock's command lines in zsh.\n"
          "local -a commands\n"
          "commands=(\n",
          file);
    for (size_t i = 0; commands[i]; i++) {
        fprintf(file, "    '%s:", commands[i]->name);
        put(file, commands[i]->summary, strlen(commands[i]->summary));
        fputs("'\n", file);
    }
    fputs(")\n"
          "if ((CURRENT == 2)); then\n"
          "    _describe command commands\n"
          "    _arguments '--help[list the commands]' '--version[print the version]'\n"
          "    return\n"
          "fi\n"
          "local command=$words[2]\n"
          "shift words\n"
          "((CURRENT--))\n"
          "case $command in\n"
          "help)\n"
          "    _describe command commands\n"
          "    ;;\n",
          file);
    for (size_t i = 0; commands[i]; i++) {
        fprintf(file, "%s)\n    _arguments \\\n", commands[i]->name);
        for (const struct option_row *row = commands[i]->options; row->text; row++)
            if (row->name)
                put_option(file, row);
        fputs("        '(-h --help)'{-h,--help}'[print help]' \\\n"
              "        '*:folder:_files -/'\n"
              "    ;;\n",
              file);
    }
    fputs("esac\n", file);
}
