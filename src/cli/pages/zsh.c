/* SPDX-License-Identifier: Apache-2.0 */
#include "pages.h"

#include <string.h>

#include "command.h"
#include "option/option.h"

/* Write a text for use in the single quotes of a specification, where brackets and colons are
 * special. */
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

static const char *const offers[] = {[PAGES_FOLDER] = "folder:_files -/",
                                     [PAGES_PATH] = "path:_files",
                                     [PAGES_NUMBER] = "number: ",
                                     [PAGES_FIELD] = "field:_penstock_fields"};

static void put_operands(FILE *file, const struct command *command)
{
    enum pages_operand kinds[PAGES_OPERANDS];
    const size_t n = pages_operands(command, kinds);
    if (n > 0 && !pages_is_mixed(command))
        fprintf(file, "        '*:%s'\n", offers[kinds[0]]);
    for (size_t i = 0; i < n && pages_is_mixed(command); i++)
        fprintf(file, "        '%zu:%s'%s\n", i + 1, offers[kinds[i]], i + 1 < n ? " \\" : "");
}

void write_zsh(FILE *file)
{
    fputs("#compdef penstock\n"
          "# SPDX-License-Identifier: Apache-2.0\n"
          "# Completion of penstock's command lines in zsh.\n"
          "_penstock_fields() {\n"
          "    local -a fields\n"
          "    fields=(${(f)\"$($program info -- ${~${(Q)words[2]}} 2>/dev/null |\n"
          "        " PAGES_FIELD_NAMES ")\"})\n"
          "    compadd -a fields\n"
          "}\n"
          "local program=${(Q)words[1]}\n"
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
        fputs("        '(-h --help)'{-h,--help}'[print help]' \\\n", file);
        put_operands(file, commands[i]);
        fputs("    ;;\n", file);
    }
    fputs("esac\n", file);
}
