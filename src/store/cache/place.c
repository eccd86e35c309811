/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the folder for caches, and what its entries may have, in a program's environment. */
#include "base/environment.h"
#include "base/error.h"

#include <penstock/foreign.h>

#include <stdio.h>
#include <string.h>

#define MIN_SIZE (UINT64_C(1) << 20)
#define MAX_SIZE (UINT64_MAX >> 1)
#define MAX_DIGITS 18

static const char *value_of(const char *const *environment, const char *name)
{
    const char *value = pstk__environment_get(environment, name);
    return value ? value : "";
}

static void find_folder(const char *const *environment, char *path, uint64_t path_size)
{
    const char *own = value_of(environment, "PENSTOCK_CACHE");
    const char *xdg = value_of(environment, "XDG_CACHE_HOME");
    const char *home = value_of(environment, "HOME");
    int n = 0;
    path[0] = 0;
    if (own[0])
        n = snprintf(path, path_size, "%s", own);
    else if (xdg[0] == '/')
        n = snprintf(path, path_size, "%s/penstock", xdg);
    else if (home[0] == '/')
        n = snprintf(path, path_size, "%s/.cache/penstock", home);
    if (n < 0 || (uint64_t)n >= path_size)
        path[0] = 0;
}

/* Read a size such as 500M. Returns 0 for any other text. */
static uint64_t read_size(const char *text)
{
    static const char suffixes[] = "KMGTkmgt";
    const size_t n = strspn(text, "0123456789");
    const char *suffix = text[n] ? strchr(suffixes, text[n]) : NULL;
    uint64_t size = 0;
    if (n == 0 || n > MAX_DIGITS || (text[n] && (!suffix || text[n + 1])))
        return 0;
    for (size_t i = 0; i < n; i++)
        size = 10 * size + (uint64_t)(text[i] - '0');
    const int shift = suffix ? 10 * ((int)(suffix - suffixes) % 4 + 1) : 0;
    return size <= MAX_SIZE >> shift ? size << shift : 0;
}

int pstk_find_cache(const char *const *environment, char *path, uint64_t path_size,
                    uint64_t *cache_size, struct pstk_error *err)
{
    const char *text = value_of(environment, "PENSTOCK_CACHE_SIZE");
    if (path && path_size)
        find_folder(environment, path, path_size);
    if (!cache_size)
        return 0;
    *cache_size = read_size(text);
    if (*cache_size >= MIN_SIZE || !text[0] || strcmp(text, "0") == 0)
        return 0;
    *cache_size = 0;
    return pstk__fail(
        err, PSTK_EINVAL, PSTK_STAGE_OPEN,
        "PENSTOCK_CACHE_SIZE: value is '%.80s'; must be a size such as 256M, at least "
        "1M and below 2^63 bytes",
        text);
}
