/* SPDX-License-Identifier: Apache-2.0 */
#include "option/ignored.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "ui/message.h"

#define SHOWN 3 /* names */

static int is_table(const struct dirent *entry)
{
    static const char *const endings[] = {".csv", ".tsv", ".jsonl", ".ndjson"};
    const char *dot = strrchr(entry->d_name, '.');
    for (size_t i = 0; dot && dot != entry->d_name && i < sizeof endings / sizeof endings[0]; i++)
        if (entry->d_name[0] != '.' && strcasecmp(dot, endings[i]) == 0)
            return 1;
    return 0;
}

/* Return 1 for the name of a table that would be the data set if it had a column file_name. */
static int is_metadata(const char *name)
{
    return strcmp(name, "metadata.csv") == 0 || strcmp(name, "metadata.jsonl") == 0;
}

uint32_t ignored_tables(const char *path, const char *format, char text[IGNORED_SIZE])
{
    struct dirent **tables;
    text[0] = 0;
    const int n = strcmp(format, "folder") == 0 ? scandir(path, &tables, is_table, alphasort) : 0;
    if (n <= 0) {
        if (n == 0 && strcmp(format, "folder") == 0)
            free(tables);
        return 0;
    }
    size_t used = 0;
    int n_metadata = 0;
    for (int i = 0; i < n; i++) {
        const char *name = tables[i]->d_name;
        n_metadata += is_metadata(name);
        if (i < SHOWN)
            used +=
                (size_t)snprintf(text + used, IGNORED_SIZE - used, "%s%.60s", i ? ", " : "", name);
        free(tables[i]);
    }
    free(tables);
    if (n > SHOWN)
        used += (size_t)snprintf(text + used, IGNORED_SIZE - used, " and %d more", n - SHOWN);
    snprintf(text + used, IGNORED_SIZE - used, "%s%s",
             n == 1 ? " lies in it and is not read: " : " lie in it and are not read: ",
             n_metadata < n ? n == 1 ? "if it lists the images, open it as the data set"
                                     : "if one lists the images, open it as the data set"
             : n == 1       ? "it has no column file_name"
                            : "neither has a column file_name");
    return (uint32_t)n;
}

#define IMAGES "%llu image%s next to the class folders%s%s %s left out, as ImageFolder does"

void ignored_say_images(uint64_t n, const char *path)
{
    if (n)
        message_say(IMAGES, (unsigned long long)n, n == 1 ? "" : "s", " of ", path,
                    n == 1 ? "is" : "are");
}

void ignored_say_files(const struct pstk_dataset_info *info, const char *path)
{
    if (info->left_out[0])
        message_say("%s", info->left_out);
    else
        ignored_say_images(info->n_left_out, path);
}

const char *ignored_files(const struct pstk_dataset_info *info, char text[IGNORED_SIZE])
{
    const uint64_t n = info->n_left_out;
    if (info->left_out[0])
        return info->left_out;
    text[0] = 0;
    if (n)
        snprintf(text, IGNORED_SIZE, IMAGES, (unsigned long long)n, n == 1 ? "" : "s", "", "",
                 n == 1 ? "is" : "are");
    return text;
}
