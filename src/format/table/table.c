/* SPDX-License-Identifier: Apache-2.0 */
#include "format/table/table.h"

#include <string.h>
#include <strings.h>

static const struct pstk__table_kind *const kinds[] = {&pstk__table_csv, &pstk__table_tsv,
                                                       &pstk__table_json};

/* 1: the path ends in one of these endings, whatever its case. */
static int has_ending(const char *path, const char *endings)
{
    const size_t length = strlen(path);
    for (const char *at = endings; *at; at += strspn(at, " ")) {
        const size_t n = strcspn(at, " ");
        if (length > n && strncasecmp(path + length - n, at, n) == 0)
            return 1;
        at += n;
    }
    return 0;
}

const struct pstk__table_kind *pstk__table_of(const char *path)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (has_ending(path, kinds[i]->endings))
            return kinds[i];
    return NULL;
}
