/* SPDX-License-Identifier: Apache-2.0 */
#include "command/formats.h"

#include <stdio.h>
#include <string.h>

#include "ui/unit.h"

void formats_add(struct formats *formats, const char *name, uint64_t n)
{
    uint32_t i = 0;
    while (i < formats->n_names && strcmp(formats->of[i].name, name) != 0)
        i++;
    formats->n += n;
    if (i == FORMATS_MAX)
        return; /* cannot happen: there are fewer names */
    formats->n_names = i < formats->n_names ? formats->n_names : i + 1;
    formats->of[i].name = name;
    formats->of[i].n += n;
}

const char *formats_text(const struct formats *formats, char text[FORMATS_TEXT])
{
    char n[UNIT_SIZE];
    size_t at = 0;
    text[0] = 0;
    for (uint32_t i = 0; i < formats->n_names && at < FORMATS_TEXT; i++)
        at += (size_t)snprintf(text + at, FORMATS_TEXT - at, "%s%s %s", at ? ", " : "",
                               unit_count(n, formats->of[i].n), formats->of[i].name);
    return text;
}
