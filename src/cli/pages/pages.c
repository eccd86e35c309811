/* SPDX-License-Identifier: Apache-2.0 */
/* usage: pages MAN BASH ZSH FISH: write these four files. */
#include "pages.h"

#include <string.h>

#include "command.h"
#include "option/option.h"

const char *pages_words(const struct option_row *row, char text[PAGES_WORDS_SIZE])
{
    size_t n = 0;
    text[0] = 0;
    for (const struct choice *choice = row->values; choice && choice->name && n < PAGES_WORDS_SIZE;
         choice++)
        n += (size_t)snprintf(text + n, PAGES_WORDS_SIZE - n, "%s%s", n ? " " : "", choice->name);
    return text;
}

size_t pages_clause(const struct option_row *row)
{
    static const char *const ends[] = {"; ", ": ", " ("};
    size_t n = strlen(row->text);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        const char *end = strstr(row->text, ends[i]);
        if (end && (size_t)(end - row->text) < n)
            n = (size_t)(end - row->text);
    }
    return n;
}

int pages_is_file(const struct option_row *row)
{
    return row->value && strcmp(row->value, "FILE") == 0;
}

size_t pages_operands(const struct command *command, enum pages_operand kinds[PAGES_OPERANDS])
{
    size_t n = 0;
    for (const char *word = command->operands; *word && n < PAGES_OPERANDS; n++) {
        const size_t length = strcspn(word, " ");
        kinds[n] = strncmp(word, "[PATH]", length) == 0       ? PAGES_PATH
                   : strncmp(word, "[FILE.npy]", length) == 0 ? PAGES_PATH
                   : strncmp(word, "READINGS", length) == 0   ? PAGES_PATH
                   : strncmp(word, "ID", length) == 0         ? PAGES_NUMBER
                   : strncmp(word, "NAME", length) == 0       ? PAGES_NUMBER
                   : strncmp(word, "FIELD", length) == 0      ? PAGES_FIELD
                                                              : PAGES_FOLDER;
        word += length + strspn(word + length, " ");
    }
    return n;
}

int pages_is_mixed(const struct command *command)
{
    enum pages_operand kinds[PAGES_OPERANDS];
    const size_t n = pages_operands(command, kinds);
    for (size_t i = 1; i < n; i++)
        if (kinds[i] != kinds[0])
            return 1;
    return 0;
}

/* Write one file. Returns 0, or -1 after a message. */
static int write_page(const char *path, void (*write)(FILE *file))
{
    FILE *file = fopen(path, "w");
    if (!file) {
        perror(path);
        return -1;
    }
    write(file);
    const int has_failed = ferror(file);
    if (fclose(file) == 0 && !has_failed)
        return 0;
    perror(path);
    return -1;
}

int main(int argc, char **argv)
{
    static void (*const writers[])(FILE * file) = {write_man, write_bash, write_zsh, write_fish};
    const int n = (int)(sizeof writers / sizeof *writers);
    if (argc != n + 1) {
        fputs("usage: pages MAN BASH ZSH FISH\n", stderr);
        return 2;
    }
    for (int i = 0; i < n; i++)
        if (write_page(argv[i + 1], writers[i]) < 0)
            return 1;
    return 0;
}
