/* SPDX-License-Identifier: Apache-2.0 */
#include "pages.h"

#include <string.h>

#include "../command.h"
#include "../option.h"

/* Write text in single quotes. */
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

void write_fish(FILE *file)
{
    fputs(
        "# SPDX-License-Identifier: Apache-2.0\n"
        "# Completion of penstock's command lines in fish.\n"
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
        fprintf(file,
                "complete -c penstock -n '__fish_seen_subcommand_from %s' "
                "-a '(__fish_complete_directories)'\n",
                commands[i]->name);
        for (const struct option_row *row = commands[i]->options; row->text; row++)
            if (row->name)
                put_option(file, commands[i], row);
    }
}
