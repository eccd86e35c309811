/* SPDX-License-Identifier: Apache-2.0 */
#include "pages.h"

#include "command.h"
#include "option/option.h"

static void put_names(FILE *file)
{
    for (size_t i = 0; commands[i]; i++)
        fprintf(file, "%s%s", i ? " " : "", commands[i]->name);
}

/* Write one case for each option that takes a value, with the values to complete. An option that
 * takes any value gets an empty case. */
static void put_values(FILE *file, const struct command *command)
{
    char words[PAGES_WORDS_SIZE];
    for (const struct option_row *row = command->options; row->text; row++) {
        if (!row->name || !option_takes_value(row))
            continue;
        fprintf(file, "    \"%s --%s\"", command->name, row->name);
        if (option_letter(row))
            fprintf(file, " | \"%s -%c\"", command->name, option_letter(row));
        pages_words(row, words);
        if (pages_is_file(row))
            fputs(") _penstock_paths -f ;;\n", file);
        else if (words[0])
            fprintf(file, ") COMPREPLY=($(compgen -W \"%s\" -- \"$word\")) ;;\n", words);
        else
            fputs(") ;;\n", file);
    }
}

static void put_options(FILE *file, const struct command *command)
{
    fprintf(file, "    %s) options=\"--help", command->name);
    for (const struct option_row *row = command->options; row->text; row++)
        if (row->name)
            fprintf(file, " --%s", row->name);
    fputs("\" ;;\n", file);
}

static const char *const offers[] = {[PAGES_FOLDER] = "_penstock_paths -d",
                                     [PAGES_PATH] = "_penstock_paths -f",
                                     [PAGES_NUMBER] = ":",
                                     [PAGES_FIELD] = "_penstock_fields"};

/* Write one case for each operand that is not a folder. A command with operands of several kinds
 * has no option before them, so the number of the word is enough. One without operands gets none.
 */
static void put_operands(FILE *file, const struct command *command)
{
    enum pages_operand kinds[PAGES_OPERANDS];
    const size_t n = pages_operands(command, kinds);
    if (n == 0)
        fprintf(file, "    \"%s \"*) ;;\n", command->name);
    for (size_t i = 0; i < n; i++)
        if (pages_is_mixed(command))
            fprintf(file, "    \"%s %zu\") %s ;;\n", command->name, i + 2, offers[kinds[i]]);
        else if (kinds[i] != PAGES_FOLDER)
            fprintf(file, "    \"%s \"*) %s ;;\n", command->name, offers[kinds[i]]);
}

void write_bash(FILE *file)
{
    fputs("# SPDX-License-Identifier: Apache-2.0\n"
          "# Completion of penstock's command lines in bash.\n"
          "_penstock_paths()\n"
          "{\n"
          "    compopt -o filenames 2>/dev/null\n"
          "    mapfile -t COMPREPLY < <(compgen \"$1\" -- \"$word\")\n"
          "}\n"
          "\n"
          "_penstock_fields()\n"
          "{\n"
          "    local data=${COMP_WORDS[2]/#\\~\\//$HOME/}\n"
          "    COMPREPLY=($(compgen -W \"$(\"${COMP_WORDS[0]}\" info -- \"$data\" 2>/dev/null |\n"
          "        " PAGES_FIELD_NAMES ")\" -- \"$word\"))\n"
          "}\n"
          "\n"
          "_penstock()\n"
          "{\n"
          "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} options=\n"
          "    local command=${COMP_WORDS[1]}\n"
          "    COMPREPLY=()\n"
          "    if ((COMP_CWORD == 1)); then\n"
          "        COMPREPLY=($(compgen -W \"",
          file);
    put_names(file);
    fputs(" help --help --version\" -- \"$word\"))\n"
          "        return\n"
          "    fi\n"
          "    # bash cuts --option=value into three words\n"
          "    if [[ $word == = ]]; then\n"
          "        word=\n"
          "    elif [[ $before == = ]]; then\n"
          "        before=${COMP_WORDS[COMP_CWORD-2]}\n"
          "    fi\n"
          "    case \"$command $before\" in\n"
          "    \"help help\") COMPREPLY=($(compgen -W \"",
          file);
    put_names(file);
    fputs("\" -- \"$word\")) && return ;;\n", file);
    for (size_t i = 0; commands[i]; i++)
        put_values(file, commands[i]);
    fputs("    *) _penstock_others ;;\n"
          "    esac\n"
          "}\n"
          "\n"
          "# An option's name, or a path.\n"
          "_penstock_others()\n"
          "{\n"
          "    case $command in\n",
          file);
    for (size_t i = 0; commands[i]; i++)
        put_options(file, commands[i]);
    fputs("    *) return ;;\n"
          "    esac\n"
          "    if [[ $word == -* ]]; then\n"
          "        COMPREPLY=($(compgen -W \"$options\" -- \"$word\"))\n"
          "        return\n"
          "    fi\n"
          "    case \"$command $COMP_CWORD\" in\n",
          file);
    for (size_t i = 0; commands[i]; i++)
        put_operands(file, commands[i]);
    fputs("    *) _penstock_paths -d ;;\n"
          "    esac\n"
          "}\n"
          "\n"
          "complete -F _penstock penstock\n",
          file);
}
