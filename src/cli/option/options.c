/* SPDX-License-Identifier: Apache-2.0 */
#include "option/options.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "option/help.h"
#include "ui/message.h"

#define MAX_NAMES 63 /* options of one command, without --help */
#define MAX_WORD 32  /* bytes; longer words get no guess */

/* Return the edit distance, with swaps of neighbours as one edit. Both words are shorter than
 * MAX_WORD. */
static int distance(const char *a, const char *b)
{
    int rows[3][MAX_WORD + 1];
    int n = (int)strlen(a), m = (int)strlen(b);
    for (int j = 0; j <= m; j++)
        rows[0][j] = j;
    for (int i = 1; i <= n; i++) {
        int *now = rows[i % 3];
        const int *up = rows[(i + 2) % 3], *up2 = rows[(i + 1) % 3];
        now[0] = i;
        for (int j = 1; j <= m; j++) {
            int best = up[j - 1] + (a[i - 1] != b[j - 1]);
            if (up[j] + 1 < best)
                best = up[j] + 1;
            if (now[j - 1] + 1 < best)
                best = now[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                up2[j - 2] + 1 < best)
                best = up2[j - 2] + 1;
            now[j] = best;
        }
    }
    return rows[n % 3][m];
}

const char *option_nearest(const char *text, const char *const *names)
{
    const char *nearest = NULL;
    size_t length = strlen(text);
    int best = length <= 3   ? 1
               : length <= 6 ? 2
                             : 3; /* a word with more edits is not a typing error */
    if (length == 0 || length >= MAX_WORD)
        return NULL;
    for (; *names; names++) {
        int d = strlen(*names) < MAX_WORD ? distance(text, *names) : best + 1;
        if (d <= best) {
            nearest = *names;
            best = d - 1;
        }
    }
    return nearest;
}

static int unknown_option(const struct options *options)
{
    if (optopt && isprint(optopt) && !strchr("-", optopt)) {
        const char *word = options->argv[optind - 1];
        if (word[0] != '-' || word[1] != '-')
            return message_usage("%s has no option -%c; `penstock %s --help` lists them",
                                 options->command->name, optopt, options->command->name);
    }
    const char *names[MAX_NAMES + 2];
    char word[256];
    int n = 0;
    for (const struct option_row *row = options->command->options; row->text && n < MAX_NAMES;
         row++)
        if (row->name)
            names[n++] = row->name;
    names[n++] = "help";
    names[n] = NULL;
    const char *typed = options->argv[optind - 1];
    snprintf(word, sizeof word, "%s", typed + strspn(typed, "-"));
    word[strcspn(word, "=")] = 0;
    const char *near = option_nearest(word, names);
    if (near)
        return message_usage("%s has no option --%s; did you mean --%s?", options->command->name,
                             word, near);
    return message_usage("%s has no option --%s; `penstock %s --help` lists them",
                         options->command->name, word, options->command->name);
}

/* The tables that getopt_long reads. */
struct tables {
    struct option option[MAX_NAMES + 2];
    char letters[2 * MAX_NAMES + 3];
};

static void make_tables(struct tables *tables, const struct option_row *row)
{
    int n = 0, n_letters = snprintf(tables->letters, sizeof tables->letters, ":h");
    for (; row->text && n < MAX_NAMES; row++) {
        const int takes = option_takes_value(row);
        if (!row->name)
            continue;
        tables->option[n++] =
            (struct option){row->name, takes ? required_argument : no_argument, NULL, row->code};
        if (option_letter(row))
            n_letters +=
                snprintf(tables->letters + n_letters, sizeof tables->letters - (size_t)n_letters,
                         "%c%s", row->code, takes ? ":" : "");
    }
    tables->option[n++] = (struct option){"help", no_argument, NULL, 'h'};
    tables->option[n] = (struct option){NULL, 0, NULL, 0};
}

int options_next(struct options *options)
{
    struct tables tables;
    opterr = 0;
    optopt = 0;
    make_tables(&tables, options->command->options);
    int c = getopt_long(options->argc, options->argv, tables.letters, tables.option, NULL);
    if (c == -1)
        return 0;
    if (c == 'h') {
        help_print(stdout, options->command);
        options->status = message_finish(STATUS_OK);
        return -1;
    }
    if (c == ':') {
        options->status = message_usage("%s: %s needs a value", options->command->name,
                                        options->argv[optind - 1]);
        return -1;
    }
    if (c == '?') {
        /* optopt is the code of a long option that got a value but takes none */
        for (const struct option *option = tables.option; optopt && option->name; option++) {
            if (option->val == optopt && option->has_arg == no_argument) {
                options->status =
                    message_usage("%s: --%s takes no value", options->command->name, option->name);
                return -1;
            }
        }
        options->status = unknown_option(options);
        return -1;
    }
    return c;
}

void options_last(struct options *options, struct options_last *last)
{
    struct tables tables;
    const char *word = options->argv[options->argc - 1], *value = NULL;
    const size_t length = strlen(word);
    int c;
    *last = (struct options_last){.row = NULL};
    opterr = 0;
    make_tables(&tables, options->command->options);
    while ((c = getopt_long(options->argc, options->argv, tables.letters, tables.option, NULL)) !=
           -1) {
        value = optarg;
        if (!value || strlen(value) > length || value != word + length - strlen(value))
            continue;
        for (const struct option_row *row = options->command->options; row->text; row++)
            if (row->name && row->code == c)
                last->row = row;
        last->value = last->row ? value : NULL;
    }
    const char *before = options->argv[optind - 1];
    last->has_ended = strcmp(before, "--") == 0 && before != word && before != value;
    last->n_operands = options_n_operands(options);
    if (last->n_operands > 0 && options->argv[options->argc - 1] == word)
        last->n_operands--;
}

int options_operands(struct options *options, int n_min, int n_max, const char *names)
{
    int n = options_n_operands(options);
    if (n < n_min) {
        options->status = message_usage("%s needs %s; `penstock %s --help` shows examples",
                                        options->command->name, names, options->command->name);
        return -1;
    }
    if (n_max && n > n_max) {
        options->status =
            message_usage("%s takes %s, but there is also '%s'", options->command->name, names,
                          options_operand(options, n_max));
        return -1;
    }
    return 0;
}

const char *options_operand(const struct options *options, int i)
{
    return options->argv[optind + i];
}

int options_n_operands(const struct options *options)
{
    return options->argc - optind;
}

/* Read a decimal number at *text and move *text past it. */
static int read_count(const char **text, uint64_t *out)
{
    char *end;
    if (!isdigit((unsigned char)**text))
        return -1;
    errno = 0;
    unsigned long long value = strtoull(*text, &end, 10);
    if (errno)
        return -1;
    *text = end;
    *out = value;
    return 0;
}

int option_count(const char *option, const char *text, struct range range, uint64_t *out)
{
    const char *rest = text;
    uint64_t value;
    if (read_count(&rest, &value) == 0 && !*rest && value >= range.min && value <= range.max) {
        *out = value;
        return 0;
    }
    if (range.max == UINT64_MAX)
        message_say("%s: value is '%s'; must be a whole number, at least %llu and below 2^64",
                    option, text, (unsigned long long)range.min);
    else
        message_say("%s: value is '%s'; must be a whole number from %llu to %llu", option, text,
                    (unsigned long long)range.min, (unsigned long long)range.max);
    return -1;
}

int option_count32(const char *option, const char *text, struct range range, uint32_t *out)
{
    uint64_t value;
    if (range.max > UINT32_MAX)
        range.max = UINT32_MAX;
    if (option_count(option, text, range, &value) < 0)
        return -1;
    *out = (uint32_t)value;
    return 0;
}

/* Return the shift of a size's suffix, or -1 when there is no valid suffix. Moves *text past it. */
static int read_suffix(const char **text)
{
    static const char letters[] = "KMGT";
    if (!**text)
        return 0;
    const char *letter = strchr(letters, toupper((unsigned char)**text));
    if (!letter)
        return -1;
    (*text)++;
    if (**text == 'i')
        (*text)++;
    if (**text == 'B')
        (*text)++;
    return 10 * (int)(letter - letters + 1);
}

int option_bytes(const char *option, const char *text, struct range range, uint64_t *out)
{
    const char *rest = text;
    uint64_t value;
    int shift = -1;
    if (read_count(&rest, &value) == 0)
        shift = read_suffix(&rest);
    if (shift >= 0 && !*rest && value <= UINT64_MAX >> shift && value << shift >= range.min &&
        value << shift <= range.max) {
        *out = value << shift;
        return 0;
    }
    message_say("%s: value is '%s'; must be a size such as 256M, from %llu to %llu bytes", option,
                text, (unsigned long long)range.min, (unsigned long long)range.max);
    return -1;
}

int option_real(const char *option, const char *text, double min, double max, double *out)
{
    char *end;
    double value = strtod(text, &end);
    if (end != text && !*end && isfinite(value) && value >= min && value <= max) {
        *out = value;
        return 0;
    }
    message_say("%s: value is '%s'; must be a number from %g to %g", option, text, min, max);
    return -1;
}

int option_choice(const char *option, const char *text, const struct choice *choices, uint32_t *out)
{
    char list[256] = "";
    size_t n = 0;
    for (const struct choice *choice = choices; choice->name; choice++) {
        if (strcmp(choice->name, text) == 0) {
            *out = choice->value;
            return 0;
        }
        if (n < sizeof list)
            n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", n ? ", " : "", choice->name);
    }
    message_say("%s: value is '%s'; must be one of %s", option, text, list);
    return -1;
}

const char *option_choice_name(const struct choice *choices, uint32_t value)
{
    for (; choices->name; choices++)
        if (choices->value == value)
            return choices->name;
    return "?";
}
