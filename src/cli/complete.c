/* SPDX-License-Identifier: Apache-2.0 */
#include "complete.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <penstock/format.h>

#include "command.h"
#include "option/opening.h"
#include "option/options.h"
#include "ui/message.h"

#define MAX_OPTION 64 /* bytes of an option with its dashes */
#define MAX_SECONDS 1 /* time for indexing a data set, to list its fields */

/* The unfinished command line, with the words that bash cut joined again. */
struct line {
    char *bytes; /* all words */
    char **words;
    int n;
    const char *last;
    size_t cut;   /* bytes of `last` before the word that bash counts */
    size_t fixed; /* bytes of `last` before the part that has candidates: "--layout=" */
};

static int is_break(const char *word)
{
    return word[0] && !word[strspn(word, "=:")];
}

static void join(struct line *line, int n_words, char **words)
{
    size_t size = 0;
    for (int i = 0; i < n_words; i++)
        size += strlen(words[i]) + 1;
    char *end = malloc(size);
    *line = (struct line){.bytes = end, .words = calloc((size_t)n_words + 1, sizeof *line->words)};
    if (!line->bytes || !line->words)
        message_no_memory();
    for (int i = 0; i < n_words; i++) {
        const int is_part = line->n > 0 && (is_break(words[i]) || is_break(words[i - 1]));
        if (is_part)
            end--;
        else
            line->words[line->n++] = end;
        line->last = line->words[line->n - 1];
        line->cut = (size_t)(end - line->last);
        end = stpcpy(end, words[i]) + 1;
        if (is_part && is_break(words[i]))
            line->cut = strlen(line->last);
    }
}

/* Print a candidate and its help (NULL: none), if the typed part is its beginning. */
static void offer(const struct line *line, const char *name, const char *text)
{
    /* a candidate shows only the first clause */
    static const char *const ends[] = {"; ", ": ", " (", "\n"};
    const char *typed = line->last + line->fixed;
    if (strncmp(name, typed, strlen(typed)) != 0)
        return;
    if (line->cut <= line->fixed)
        printf("%.*s%s", (int)(line->fixed - line->cut), line->last + line->cut, name);
    else
        fputs(name + (line->cut - line->fixed), stdout);
    size_t n = text ? strlen(text) : 0;
    for (size_t i = 0; text && i < sizeof ends / sizeof *ends; i++) {
        const char *end = strstr(text, ends[i]);
        if (end && (size_t)(end - text) < n)
            n = (size_t)(end - text);
    }
    printf("%s%.*s\n", n ? "\t" : "", (int)n, n ? text : "");
}

static void offer_commands(const struct line *line)
{
    for (size_t i = 0; commands[i]; i++)
        offer(line, commands[i]->name, commands[i]->summary);
}

static void offer_option(const struct line *line, const char *name, int letter, const char *text)
{
    char word[MAX_OPTION];
    if (letter) {
        snprintf(word, sizeof word, "-%c", letter);
        offer(line, word, text);
    }
    snprintf(word, sizeof word, "--%s", name);
    offer(line, word, text);
}

static void offer_options(const struct line *line, const struct command *command)
{
    offer_option(line, "help", 'h', "print help");
    for (const struct option_row *row = command->options; row->text; row++)
        if (row->name)
            offer_option(line, row->name, option_letter(row), row->text);
}

/* Stop the opening after MAX_SECONDS: a pstk_progress_fn; user: start of the opening. */
static int on_progress(void *user, uint64_t n_done, uint64_t n_total)
{
    const time_t *begin = user;
    (void)n_done;
    (void)n_total;
    return time(NULL) - *begin > MAX_SECONDS;
}

/* Offer the fields of the data set at `path`, as it was typed. */
static void offer_fields(const struct line *line, const char *path)
{
    char cache[OPENING_PATH_SIZE], whole[OPENING_PATH_SIZE];
    const char *home = strncmp(path, "~/", 2) == 0 ? getenv("HOME") : NULL;
    time_t begin = time(NULL);
    opening_find_cache(cache);
    const struct pstk_foreign foreign = {.size = sizeof foreign,
                                         .field_size = sizeof(struct pstk_field),
                                         .on_progress = on_progress,
                                         .user = &begin,
                                         .cache_path = cache[0] ? cache : NULL};
    struct pstk_dataset *dataset;
    struct pstk_field field;
    snprintf(whole, sizeof whole, "%s%s", home ? home : "", path + (home ? 1 : 0));
    if (pstk_dataset_open(&dataset, whole, &foreign, NULL) < 0)
        return;
    for (uint32_t i = 0; pstk_dataset_get_field(dataset, i, &field, NULL) == 0; i++)
        offer(line, field.name, NULL);
    pstk_dataset_close(&dataset);
}

enum kind { NOTHING, FILES, FOLDERS, FIELDS };

/* Return the kind of value that a name in --help stands for: "[FILE.npy]" is a file. A number, and
 * a name that the user chooses, have no candidates. */
static enum kind kind_of(const char *name)
{
    static const struct choice kinds[] = {
        {"FILE", FILES},  {"PATH", FILES},     {"READINGS", FILES}, {"DATA", FOLDERS},
        {"DIR", FOLDERS}, {"FOLDER", FOLDERS}, {"OUT", FOLDERS},    {"PART", FOLDERS},
        {"SRC", FOLDERS}, {"FIELD", FIELDS},
    };
    name += *name == '[';
    const size_t length = strcspn(name, ". ]");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strlen(kinds[i].name) == length && strncmp(kinds[i].name, name, length) == 0)
            return (enum kind)kinds[i].value;
    return NOTHING;
}

/* Return the name of operand `number`: with "PART... OUT" all after the first are OUT. */
static const char *operand_name(const struct command *command, int number)
{
    const char *name = command->operands;
    for (; number > 0 && *name; number--) {
        const char *next = name + strcspn(name, " ");
        next += strspn(next, " ");
        if (!*next && strstr(command->operands, "..."))
            return name;
        name = next;
    }
    return name;
}

/* Offer values for a name in --help; path: the data set, or NULL. */
static void offer_kind(const struct line *line, const char *name, const char *path)
{
    const enum kind kind = kind_of(name);
    if (kind == FIELDS && path)
        offer_fields(line, path);
    else if (kind == FILES || kind == FOLDERS)
        puts(kind == FILES ? ":file" : ":directory");
}

static void offer_of_command(struct line *line, const struct command *command)
{
    struct options options = {.command = command, .argc = line->n, .argv = line->words};
    struct options_last last;
    options_last(&options, &last);
    const char *path = last.n_operands ? options_operand(&options, 0) : NULL;
    if (last.row) {
        line->fixed = strlen(line->last) - strlen(last.value);
        for (const struct choice *choice = last.row->values; choice && choice->name; choice++)
            offer(line, choice->name, NULL);
        offer_kind(line, last.row->value ? last.row->value : "", path);
    } else if (line->last[0] == '-' && !last.has_ended) {
        offer_options(line, command);
    } else {
        offer_kind(line, operand_name(command, last.n_operands), path);
    }
}

int complete(int n_words, char **words)
{
    struct line line;
    if (n_words < 1)
        return STATUS_OK;
    join(&line, n_words, words);
    const struct command *command = command_find(line.words[0]);
    if (line.n == 1) {
        offer_commands(&line);
        offer(&line, "help", "print the help of a command");
        offer(&line, "--help", "list the commands");
        offer(&line, "--version", "print the version");
    } else if (line.n == 2 && strcmp(line.words[0], "help") == 0) {
        offer_commands(&line);
    } else if (command) {
        offer_of_command(&line, command);
    }
    free(line.words);
    free(line.bytes);
    return message_finish(STATUS_OK);
}
