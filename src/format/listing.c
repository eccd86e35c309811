/* SPDX-License-Identifier: Apache-2.0 */
#include "format/listing.h"

#include "base/error.h"

#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MAX_FILES 1048576u
#define MAX_NAMES (1u << 31) /* max bytes of all names */

/* Names that were gathered, each with its 0. */
struct gathered {
    char *bytes; /* owned */
    uint64_t size, max, n;
};

static int gather(struct gathered *gathered, const char *name, size_t length)
{
    if (gathered->n >= MAX_FILES || gathered->size + length + 1 > MAX_NAMES)
        return PSTK_EFBIG;
    if (gathered->size + length + 1 > gathered->max) {
        const uint64_t max = 2 * (gathered->size + length + 1);
        char *bytes = realloc(gathered->bytes, max);
        if (!bytes)
            return PSTK_ENOMEM;
        gathered->bytes = bytes;
        gathered->max = max;
    }
    memcpy(gathered->bytes + gathered->size, name, length);
    gathered->bytes[gathered->size + length] = 0;
    gathered->size += length + 1;
    gathered->n++;
    return 0;
}

static int ends_with(const char *name, const char *end, int any_case)
{
    const size_t n = strlen(name), n_end = strlen(end);
    return any_case ? n >= n_end && strcasecmp(name + n - n_end, end) == 0
                    : pstk__text_ends_with(name, end);
}

int pstk__listing_is_wanted(const char *wanted, const char *name, int any_case)
{
    char one[64];
    for (const char *at = wanted; *at; at += strspn(at, " ")) {
        const size_t n = strcspn(at, " ");
        snprintf(one, sizeof one, "%.*s", (int)n, at);
        if (one[0] == '.' ? ends_with(name, one, any_case)
                          : fnmatch(one, name, any_case ? FNM_CASEFOLD : 0) == 0)
            return 1;
        at += n;
    }
    return 0;
}

/* ---- braces ---------------------------------------------------------------------------------- */

/* One pair of braces. */
struct braces {
    const char *open, *close; /* '{' and '}' */
    uint64_t first, last;     /* range of numbers */
    int n_digits;             /* min digits of a number; 0: alternatives, not numbers */
};

static int read_number(const char **at, uint64_t *number)
{
    const char *begin = *at;
    *number = 0;
    for (; **at >= '0' && **at <= '9' && *at - begin < 18; ++*at)
        *number = 10 * *number + (uint64_t)(**at - '0');
    return (int)(*at - begin);
}

/* Find the first pair at or after `text`. 0: there is none. */
static int find_braces(const char *text, struct braces *braces)
{
    braces->open = strchr(text, '{');
    braces->close = braces->open ? strchr(braces->open, '}') : NULL;
    if (!braces->close)
        return 0;
    const char *at = braces->open + 1;
    const int n = read_number(&at, &braces->first);
    braces->n_digits = 0;
    if (n == 0 || at[0] != '.' || at[1] != '.')
        return 1;
    at += 2;
    const int has_last = read_number(&at, &braces->last);
    if (has_last && at == braces->close)
        braces->n_digits = n;
    return 1;
}

static int expand(struct gathered *gathered, const char *pattern, uint32_t depth);

/* Replace the braces with `text`, and expand the rest. */
static int expand_one(struct gathered *gathered, const char *pattern, const struct braces *braces,
                      const char *text, size_t length, uint32_t depth)
{
    char name[PATH_MAX];
    const int n = snprintf(name, sizeof name, "%.*s%.*s%s", (int)(braces->open - pattern), pattern,
                           (int)length, text, braces->close + 1);
    return n < 0 || (size_t)n >= sizeof name ? PSTK_EINVAL : expand(gathered, name, depth + 1);
}

static int expand_numbers(struct gathered *gathered, const char *pattern,
                          const struct braces *braces, uint32_t depth)
{
    if (braces->last < braces->first)
        return PSTK_EINVAL;
    int r = 0;
    for (uint64_t i = braces->first; r == 0 && i <= braces->last; i++) {
        char number[24];
        const int n =
            snprintf(number, sizeof number, "%0*llu", braces->n_digits, (unsigned long long)i);
        r = expand_one(gathered, pattern, braces, number, (size_t)n, depth);
    }
    return r;
}

/* Append all names of a pattern. EINVAL: it is no pattern, or too long. The recursion ends, because
 * a pattern has at most 8 pairs of braces. */
static int expand(struct gathered *gathered, const char *pattern, uint32_t depth)
{
    struct braces braces;
    if (depth > 8)
        return PSTK_EINVAL;
    if (!find_braces(pattern, &braces))
        return gather(gathered, pattern, strlen(pattern));
    if (braces.n_digits)
        return expand_numbers(gathered, pattern, &braces, depth);
    int r = 0;
    for (const char *at = braces.open + 1; r == 0;) {
        const size_t n = strcspn(at, ",}");
        r = expand_one(gathered, pattern, &braces, at, n, depth);
        if (at + n >= braces.close)
            break;
        at += n + 1;
    }
    return r;
}

/* ---- folders --------------------------------------------------------------------------------- */

struct filter {
    struct gathered *gathered; /* result, or NULL: stop at the first name */
    const char *wanted;        /* as in listing.h; NULL: all */
    const char *glob;          /* pattern that replaces `wanted`, or NULL */
};

/* A pstk__store_name_fn: add a name that matches. */
static int add_name(void *user, const char *name)
{
    const struct filter *filter = user;
    const int is_one = filter->glob
                           ? fnmatch(filter->glob, name, FNM_PERIOD) == 0
                           : !filter->wanted || pstk__listing_is_wanted(filter->wanted, name, 0);
    if (name[0] == '.' || !is_one)
        return 0;
    return filter->gathered ? gather(filter->gathered, name, strlen(name)) : 1;
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Sort the names by their bytes. */
static int sort_names(struct gathered *gathered)
{
    const char **names = calloc(gathered->n + 1, sizeof *names);
    char *sorted = malloc(gathered->size + 1);
    if (!names || !sorted) {
        free(names);
        free(sorted);
        return PSTK_ENOMEM;
    }
    const char *at = gathered->bytes;
    for (uint64_t i = 0; i < gathered->n; i++, at += strlen(at) + 1)
        names[i] = at;
    qsort(names, gathered->n, sizeof *names, compare_texts);
    char *to = sorted;
    for (uint64_t i = 0; i < gathered->n; i++)
        to = stpcpy(to, names[i]) + 1;
    free(names);
    free(gathered->bytes);
    gathered->bytes = sorted;
    gathered->max = gathered->size + 1;
    return 0;
}

/* ---- a path ---------------------------------------------------------------------------------- */

/* 1: the first `size` bytes of a path lead to a folder. */
static int is_folder(const struct pstk__store *store, const char *path, size_t size)
{
    struct pstk__store_entry entry;
    char folder[PATH_MAX];
    if (!store->look || size >= sizeof folder)
        return 0;
    snprintf(folder, sizeof folder, "%.*s", (int)size, path);
    return store->look(store, folder, &entry) == 0 && entry.kind == PSTK__STORE_FOLDER;
}

/* Return the bytes of the path up to the last '/' before its first braces or its last part. Braces
 * before that are in the names of existing folders. */
static size_t folder_of(const struct pstk__store *store, const char *path)
{
    const char *open = strchr(path, '{'), *slash = strrchr(path, '/');
    while (open && slash && slash > open && !is_folder(store, path, (size_t)(slash - path)))
        for (slash--; slash > path && *slash != '/';)
            slash--;
    return slash && *slash == '/' ? (size_t)(slash - path) : 0;
}

int pstk__listing_is_pattern(const struct pstk__store *store, const char *path)
{
    struct braces braces;
    const char *names = path + folder_of(store, path), *slash = strrchr(path, '/');
    const int is_one = find_braces(names, &braces) || strpbrk(slash ? slash : path, "*?");
    return is_one && !is_folder(store, path, strlen(path));
}

int pstk__listing_probe(const struct pstk__store *store, const char *path, const char *wanted,
                        struct pstk_error *err)
{
    struct filter filter = {.wanted = wanted};
    int r = pstk__listing_is_wanted(wanted, path, 0) ? pstk__store_find_file(store, path) : 0;
    if (r < 0)
        return pstk__fail_errno(err, -r, PSTK_STAGE_OPEN, "cannot open %s", path);
    if (r > 0 ||
        (pstk__listing_is_wanted(wanted, path, 0) && pstk__listing_is_pattern(store, path)))
        return 1;
    r = store->list ? store->list(store, path, add_name, &filter) : 0;
    if (r >= 0 || r == -ENOENT || r == -ENOTDIR)
        return r == 1;
    return pstk__fail_errno(err, -r, PSTK_STAGE_OPEN, "cannot open %s", path);
}

/* Fail because a path could not be opened. A wildcard in it was taken for a part of a name. */
static int fail_open(int r, const char *path, struct pstk_error *err)
{
    if (r != -ENOENT || !strpbrk(path, "*?"))
        return pstk__fail_errno(err, -r, PSTK_STAGE_OPEN, "cannot open %s", path);
    return pstk__fail(err, PSTK_ENOENT, PSTK_STAGE_OPEN,
                      "no such file or directory: %s; * and ? are wildcards only in the last part "
                      "of a path, and not with braces",
                      path);
}

/* 1: only the last part has wildcards, so its folder is missing. */
static int has_pattern_last(const char *path)
{
    const char *slash = strrchr(path, '/');
    const size_t wildcard = strcspn(path, "*?");
    return path[wildcard] && (!slash || path + wildcard > slash) && !strchr(path, '{');
}

static int fail_list(int r, const char *path, struct pstk_error *err)
{
    if (r == PSTK_ENOMEM)
        return pstk__fail(err, r, PSTK_STAGE_OPEN, "no memory to list the files of %s", path);
    if (r == PSTK_EFBIG)
        return pstk__fail(err, r, PSTK_STAGE_OPEN,
                          "%s matches more than %u files: join them into larger files", path,
                          MAX_FILES);
    if (r == -ENOENT && has_pattern_last(path))
        return pstk__fail_errno(err, ENOENT, PSTK_STAGE_OPEN, "cannot open the folder of %s", path);
    if (r != PSTK_EINVAL)
        return fail_open(r, path, err);
    return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                      "%s is not a pattern: must have numbers that rise, as {000..127}, or "
                      "alternatives, as {a,b}, in at most 8 pairs of braces",
                      path);
}

/* Find the names of a path, below *folder. */
static int find_names(struct gathered *gathered, const struct pstk__store *store, const char *path,
                      const char *wanted, size_t *folder)
{
    struct filter filter = {.gathered = gathered, .wanted = wanted};
    *folder = folder_of(store, path);
    const char *names = path + *folder + (path[*folder] == '/');
    const int is_pattern = pstk__listing_is_pattern(store, path);
    if (pstk__listing_is_wanted(wanted, path, 0) && pstk__store_has_file(store, path))
        return gather(gathered, names, strlen(names));
    if (is_pattern && strchr(names, '{'))
        return expand(gathered, names, 0);
    if (pstk__listing_is_wanted(wanted, path, 0) && is_pattern) {
        char parent[PATH_MAX];
        filter.glob = names;
        snprintf(parent, sizeof parent, "%.*s", (int)*folder, path);
        const int r = store->list(store,
                                  *folder          ? parent
                                  : path[0] == '/' ? "/"
                                                   : ".",
                                  add_name, &filter);
        return r < 0 ? r : sort_names(gathered);
    }
    *folder = strlen(path);
    while (*folder > 1 && path[*folder - 1] == '/')
        --*folder;
    const int r = store->list(store, path, add_name, &filter);
    return r < 0 ? r : sort_names(gathered);
}

/* Set size and time of each file. *missing: on failure the number of the file that cannot be
 * opened. missing NULL: such a file has neither. */
static int look_at_files(struct pstk__listing *listing, const struct pstk__store *store,
                         uint64_t *missing, struct pstk_error *err)
{
    for (uint64_t i = 0; i < listing->names.n; i++) {
        if (missing)
            *missing = i;
        char path[PATH_MAX];
        struct pstk__file file;
        const char *name = pstk__texts_get(&listing->names, i);
        const int n = snprintf(path, sizeof path, "%s/%s", listing->folder, name);
        if (n < 0 || (size_t)n >= sizeof path)
            return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, "the path is too long: %.400s...",
                              path);
        int r = store->open(store, &file, path);
        if (r == 0)
            r = store->stat(&file, &listing->sizes[i], &listing->changed_ns[i]);
        pstk__file_end(&file);
        if (r < 0 && missing)
            return fail_open(r, path, err);
    }
    return 0;
}

static int copy_names(struct pstk__texts *names, const struct gathered *gathered)
{
    const char *at = gathered->bytes;
    const int r = pstk__texts_open(names, gathered->n, gathered->size);
    for (uint64_t i = 0; r == 0 && i < gathered->n; i++, at += strlen(at) + 1)
        pstk__texts_add(names, at, strlen(at));
    return r;
}

int pstk__listing_names(struct pstk__texts *names, const struct pstk__store *store,
                        const char *path)
{
    struct gathered gathered = {0};
    struct filter filter = {.gathered = &gathered};
    int r = store->list(store, path, add_name, &filter);
    r = r < 0 ? r : sort_names(&gathered);
    r = r < 0 ? r : copy_names(names, &gathered);
    free(gathered.bytes);
    return r;
}

static int keep_names(struct pstk__listing *listing, const struct gathered *gathered,
                      const char *path, size_t folder)
{
    listing->folder = folder ? strndup(path, folder) : strdup(path[0] == '/' ? "/" : ".");
    listing->sizes = calloc(gathered->n, sizeof *listing->sizes);
    listing->changed_ns = calloc(gathered->n, sizeof *listing->changed_ns);
    return !listing->folder || !listing->sizes || !listing->changed_ns
               ? PSTK_ENOMEM
               : copy_names(&listing->names, gathered);
}

static int list_path(struct pstk__listing *listing, const struct pstk__store *store,
                     const char *path, const char *wanted, uint64_t *missing,
                     struct pstk_error *err)
{
    struct gathered gathered = {0};
    size_t folder;
    *listing = (struct pstk__listing){0};
    int r = find_names(&gathered, store, path, wanted, &folder);
    if (r < 0)
        r = fail_list(r, path, err);
    else if (gathered.n == 0)
        r = pstk__fail(err, PSTK_ENOENT, PSTK_STAGE_OPEN,
                       "%s matches no file: check the pattern, and that the data is mounted", path);
    else if (keep_names(listing, &gathered, path, folder) < 0)
        r = fail_list(PSTK_ENOMEM, path, err);
    else
        r = look_at_files(listing, store, missing, err);
    free(gathered.bytes);
    if (r < 0)
        pstk__listing_close(listing);
    return r;
}

int pstk__listing_open(struct pstk__listing *listing, const struct pstk__store *store,
                       const char *path, const char *wanted, struct pstk_error *err)
{
    uint64_t missing;
    return list_path(listing, store, path, wanted, &missing, err);
}

int pstk__listing_salvage(struct pstk__listing *listing, const struct pstk__store *store,
                          const char *path, const char *wanted, struct pstk_error *err)
{
    return list_path(listing, store, path, wanted, NULL, err);
}

int pstk__listing_of(struct pstk__listing *listing, const struct pstk__store *store,
                     const char *folder, const struct pstk__texts *names, uint64_t *missing,
                     struct pstk_error *err)
{
    *listing = (struct pstk__listing){0};
    if (missing)
        *missing = PSTK_NONE;
    const struct gathered gathered = {.bytes = names->bytes, .size = names->size, .n = names->n};
    const int r = keep_names(listing, &gathered, folder, strlen(folder)) < 0
                      ? fail_list(PSTK_ENOMEM, folder, err)
                      : look_at_files(listing, store, missing, err);
    if (r < 0)
        pstk__listing_close(listing);
    return r;
}

/* Write the name that a compressed file has once it is unpacked. */
static void name_unpacked(const char *name, char *unpacked, size_t size)
{
    static const struct {
        const char *end, *becomes;
    } ends[] = {{".gz", ""}, {".zst", ""}, {".zstd", ""}, {".tgz", ".tar"}};
    snprintf(unpacked, size, "%s", name);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (pstk__text_ends_with(name, ends[i].end)) {
            const size_t n = strlen(name) - strlen(ends[i].end);
            snprintf(unpacked, size, "%.*s%s", (int)n, name, ends[i].becomes);
        }
}

/* 1: the name is in a sorted listing. */
static int is_listed(const struct pstk__listing *listing, const char *name)
{
    uint64_t low = 0, n = listing->names.n;
    while (n > 0) {
        const uint64_t half = n / 2;
        const int order = strcmp(pstk__texts_get(&listing->names, low + half), name);
        if (order == 0)
            return 1;
        low += order < 0 ? half + 1 : 0;
        n = order < 0 ? n - half - 1 : half;
    }
    return 0;
}

int pstk__listing_lone(const struct pstk__listing *listing, const struct pstk__store *store,
                       const char *path, const char *packed, char *name, size_t size)
{
    struct gathered gathered = {0};
    struct filter filter = {.gathered = &gathered, .wanted = packed};
    char unpacked[PATH_MAX];
    int r = store->list ? store->list(store, path, add_name, &filter) : -ENOTDIR;
    r = r == -ENOTDIR || r == -ENOENT ? 0 : r < 0 ? r : sort_names(&gathered);
    const char *at = gathered.bytes;
    for (uint64_t i = 0; r == 0 && i < gathered.n; i++, at += strlen(at) + 1) {
        name_unpacked(at, unpacked, sizeof unpacked);
        if (!is_listed(listing, unpacked)) {
            snprintf(name, size, "%s", at);
            r = 1;
        }
    }
    free(gathered.bytes);
    return r;
}

void pstk__listing_close(struct pstk__listing *listing)
{
    pstk__texts_close(&listing->names);
    free(listing->folder);
    free(listing->sizes);
    free(listing->changed_ns);
    *listing = (struct pstk__listing){0};
}
