/* SPDX-License-Identifier: Apache-2.0 */
#include "formats.h"

#include <stdio.h>
#include <string.h>

#include "unit.h"

void formats_add(struct formats *f, const char *name)
{
    uint32_t i = 0;
    while (i < f->n_names && strcmp(f->of[i].name, name) != 0)
        i++;
    f->n++;
    if (i == FORMATS_MAX)
        return; /* cannot be: there are fewer names */
    f->n_names = i < f->n_names ? f->n_names : i + 1;
    f->of[i].name = name;
    f->of[i].n++;
}

const char *formats_text(const struct formats *f, char text[FORMATS_TEXT])
{
    char n[UNIT_SIZE];
    size_t at = 0;
    text[0] = 0;
    for (uint32_t i = 0; i < f->n_names && at < FORMATS_TEXT; i++)
        at += (size_t)snprintf(text + at, FORMATS_TEXT - at, "%s%s %s", at ? ", " : "",
                               unit_count(n, f->of[i].n), f->of[i].name);
    return text;
}
