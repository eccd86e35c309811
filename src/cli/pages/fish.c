/* SPDX-License-Identifier: Apache-2.0 */
#include "pages.h"

#include <string.h>

#include "command.h"
#include "option/option.h"

/* Write a text in single quotes. */
static void put(FILE *file, const char *text, size_t length)
{
    fputc('\'', file);
    for (size_t i = 0; i < length; i++)
        fprintf(file, "%s%c", strchr("'\\", text[i]) ? "\\" : "", text[i]);
    fputc('\'', file);
}

static void put_option(FILE *file, const struct command *command, const struct option_row *row)
{
    char words[PAGES_WORDS_SIZE];
    fprintf(file, "complete -c penstock -n '__fish_seen_subcommand_from %s' -l %s", command->name,
            row->name);
    if (option_letter(row))
        fprintf(file, " -s %c", option_letter(row));
    pages_words(row, words);
    if (pages_is_file(row))
        fputs(" -r -F", file);
    else if (option_takes_value(row))
        fputs(" -x", file);
    if (words[0])
        fprintf(file, " -a '%s'", words);
    fputs(" -d ", file);
    put(file, row->text, pages_clause(row));
    fputc('\n', file);
}

static const char *const offers[] = {[PAGES_FOLDER] = "(__fish_complete_directories)",
                                     [PAGES_PATH] = NULL,
                                     [PAGES_NUMBER] = NULL,
                                     [PAGES_FIELD] = "(__penstock_fields)"};

/* Write one line for operands of one kind, or else one line for each operand, by the number of the
 * words before it; nothing without operands. */
static void put_operands(FILE *file, const struct command *command)
{
    enum pages_operand kinds[PAGES_OPERANDS];
    const size_t n = pages_operands(command, kinds);
    const int is_mixed = pages_is_mixed(command);
    for (size_t i = 0; i < (is_mixed ? n : n > 0); i++) {
        if (kinds[i] == PAGES_NUMBER)
            continue;
        fprintf(file, "complete -c penstock -n '__fish_seen_subcommand_from %s", command->name);
        if (is_mixed)
            fprintf(file, "; and test (count (commandline -opc)) -eq %zu", i + 2);
        fputs(kinds[i] == PAGES_PATH ? "' -F\n" : "' -a '", file);
        if (kinds[i] != PAGES_PATH)
            fprintf(file, "%s'\n", offers[kinds[i]]);
    }
}

void write_fish(FILE *file)
{
    fputs(
        "# SPDX-License-Identifier: Apache-2.0\n"
        "# Completion of penstock's command lines in fish.\n"
        "function __penstock_fields\n"
        "    set -l words (commandline -opc)\n"
        "    $words[1] info -- $words[3] 2>/dev/null |\n"
        "        " PAGES_FIELD_NAMES "\n"
        "end\n"
        "complete -c penstock -f\n"
        "complete -c penstock -n __fish_use_subcommand -l help -d 'list the commands'\n"
        "complete -c penstock -n __fish_use_subcommand -l version -d 'print the version'\n"
        "complete -c penstock -n __fish_use_subcommand -a help -d 'print the help of a command'\n",
        file);
    for (size_t i = 0; commands[i]; i++) {
        fprintf(file, "complete -c penstock -n __fish_use_subcommand -a %s -d ", commands[i]->name);
        put(file, commands[i]->summary, strlen(commands[i]->summary));
        fputc('\n', file);
    }
    for (size_t i = 0; commands[i]; i++) {
        put_operands(file, commands[i]);
        for (const struct option_row *row = commands[i]->options; row->text; row++)
            if (row->name)
                put_option(file, commands[i], row);
    }
}
