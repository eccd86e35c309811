/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/merge.h"

#include "base/crc32c.h"
#include "base/error.h"
#include "base/file.h"
#include "record/record.h"
#include "format/pstk/shard.h"
#include "format/pstk/tally.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_PATH 4096 /* bytes, the terminating 0 included */
#define MAX_STEPS 40  /* of symbolic links, as the kernel has it */

/* One part, and where its dictionaries are in the list of the whole. */
struct part {
    const char *path;               /* borrowed */
    struct pstk__manifest manifest; /* owned */
    uint32_t *dictionaries;         /* owned; number in the merged manifest of each */
    struct pstk__identity identity; /* of its shards' headers, joined */
};

struct merge {
    struct part *parts; /* owned; sorted by part number */
    uint32_t n_parts;
    struct pstk__manifest manifest; /* of the whole */
    struct pstk__staging *staging;  /* borrowed */
    pstk_progress_fn on_progress;   /* NULL: nobody asks */
    void *user;
    uint64_t n_done, n_total; /* bytes of shards */
};

/* ---- how far is it, and shall it go on? ------------------------------------------------------ */

/* 0, or ECANCELED, without a message: the caller wants no more of it. */
static int go_on(const struct merge *g, uint64_t n_done)
{
    return g->on_progress && g->on_progress(g->user, n_done, g->n_total) ? PSTK_ECANCELED : 0;
}

/* The staging's on_copy. */
static int watch_copy(void *user, uint64_t n_bytes)
{
    const struct merge *g = user;
    return go_on(g, g->n_done + n_bytes);
}

/* ---- do the parts belong together? -------------------------------------------------------------
 */

static int load_parts(struct merge *g, const char *const *paths, struct pstk_error *err)
{
    g->parts = calloc(g->n_parts, sizeof *g->parts);
    if (!g->parts)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "out of memory");
    for (uint32_t i = 0; i < g->n_parts; i++) {
        if (!paths[i] || !*paths[i])
            return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, "parts[%u] is empty", i);
        struct part *p = &g->parts[i];
        p->path = paths[i];
        int r = pstk__manifest_load(&p->manifest, p->path, err);
        if (r < 0)
            return r;
        p->dictionaries = calloc((size_t)p->manifest.n_dictionaries + 1, sizeof *p->dictionaries);
        if (!p->dictionaries)
            return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "%s: out of memory", p->path);
    }
    return 0;
}

static int compare_parts(const void *a, const void *b)
{
    uint32_t x = ((const struct part *)a)->manifest.part,
             y = ((const struct part *)b)->manifest.part;
    return (x > y) - (x < y);
}

/* Sorted by part number, the parts must be 0, 1, ... n - 1 of n. */
static int check_complete(struct merge *g, struct pstk_error *err)
{
    for (uint32_t i = 0; i < g->n_parts; i++) {
        const struct pstk__manifest *m = &g->parts[i].manifest;
        if (m->n_parts != g->parts[0].manifest.n_parts)
            return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                              "%s is part of %u, %s of %u: they were not packed together",
                              g->parts[0].path, g->parts[0].manifest.n_parts, g->parts[i].path,
                              m->n_parts);
    }
    qsort(g->parts, g->n_parts, sizeof *g->parts, compare_parts);
    for (uint32_t i = 1; i < g->n_parts; i++)
        if (g->parts[i].manifest.part == g->parts[i - 1].manifest.part)
            return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                              "%s and %s are both part %u: give each part once",
                              g->parts[i - 1].path, g->parts[i].path, g->parts[i].manifest.part);
    uint32_t n = g->parts[0].manifest.n_parts;
    for (uint32_t i = 0; i < n; i++)
        if (i >= g->n_parts || g->parts[i].manifest.part != i)
            return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                              "part %u of %u is missing: give all parts", i, n);
    return 0;
}

static int check_same(const struct part *a, const struct part *b, struct pstk_error *err)
{
    const struct pstk__manifest *x = &a->manifest, *y = &b->manifest;
    int same = x->schema.crc == y->schema.crc && x->schema.n_fields == y->schema.n_fields;
    for (uint32_t i = 0; same && i < x->schema.n_fields; i++) /* level included */
        same = memcmp(&x->schema.fields[i], &y->schema.fields[i], sizeof x->schema.fields[i]) == 0;
    if (!same)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "%s and %s have different fields, codecs or levels: pack all parts with "
                          "the same settings",
                          a->path, b->path);
    same = pstk__texts_equal(&x->names, &y->names);
    if (!same)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "%s and %s have different class names: pack all parts from the same "
                          "folders",
                          a->path, b->path);
    return 0;
}

/* ---- do the parts stay? ------------------------------------------------------------------- */

static int file_path(char path[MAX_PATH], const char *directory, const char *file,
                     struct pstk_error *err)
{
    int n = snprintf(path, MAX_PATH, "%s/%s", directory, file);
    return n > 0 && n < MAX_PATH ? 0
                                 : pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                                              "%s: the path is too long", directory);
}

static int is_directory(const char *path, const struct stat *directory)
{
    struct stat s;
    return stat(path, &s) == 0 && s.st_dev == directory->st_dev && s.st_ino == directory->st_ino;
}

/* Put what a symbolic link says in its place. 0: it is none. */
static int follow(char path[MAX_PATH])
{
    char target[MAX_PATH];
    ssize_t n = readlink(path, target, sizeof target - 1);
    if (n < 0)
        return 0;
    target[n] = 0;
    size_t at = target[0] == '/' ? 0 : (size_t)(strrchr(path, '/') + 1 - path);
    n = snprintf(path + at, MAX_PATH - at, "%s", target);
    return n < (ssize_t)(MAX_PATH - at);
}

/* Does a file lead into the directory by symbolic links, in however many steps? */
static int leads_into(const struct stat *directory, const char *folder, const char *file)
{
    char path[MAX_PATH], parent[MAX_PATH];
    if (file_path(path, folder, file, NULL) < 0)
        return 0;
    for (int n = 0; n < MAX_STEPS && follow(path); n++) {
        size_t size = (size_t)(strrchr(path, '/') + 1 - path);
        memcpy(parent, path, size);
        parent[size] = 0;
        if (is_directory(parent, directory))
            return 1;
    }
    return 0;
}

static int check_part_apart(const struct part *p, const char *out, const struct stat *whole,
                            struct pstk_error *err)
{
    const struct pstk__manifest *m = &p->manifest;
    if (is_directory(p->path, whole))
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "%s is one of the parts, and these stay: name another directory", out);
    for (uint32_t i = 0; i < m->n_shards + m->n_dictionaries; i++) {
        const char *file =
            i < m->n_shards ? m->shards[i].file : m->dictionaries[i - m->n_shards].file;
        if (leads_into(whole, p->path, file))
            return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                              "%s/%s is a symbolic link into %s, and would lead to nothing when "
                              "that is replaced: name another directory",
                              p->path, file, out);
    }
    return 0;
}

/* The parts stay, so nothing of them can be replaced by the whole. */
static int check_apart(const struct merge *g, const char *out, struct pstk_error *err)
{
    struct stat whole;
    int r = 0;
    if (stat(out, &whole) < 0)
        return 0; /* it is still to be made */
    for (uint32_t i = 0; r == 0 && i < g->n_parts; i++)
        r = check_part_apart(&g->parts[i], out, &whole, err);
    return r;
}

/* ---- identity -------------------------------------------------------------------------------- */

/* The header of a file that is the part's shard s, and no stranger. */
static int read_header(struct pstk__shard_header *h, const char *path, const struct part *p,
                       const struct pstk__manifest_shard *s, struct pstk_error *err)
{
    uint8_t bytes[PSTK__HEADER_SIZE];
    int fd = pstk__file_open(path);
    if (fd < 0)
        return pstk__file_fail(err, -fd, PSTK_STAGE_SHARD, path, path);
    int64_t n = pstk__file_pread(fd, bytes, sizeof bytes, 0);
    off_t size = lseek(fd, 0, SEEK_END);
    close(fd);
    if (n < 0)
        return pstk__fail_errno(err, (int)-n, PSTK_STAGE_SHARD, "%s: cannot be read", path);
    if (n < (int64_t)sizeof bytes || size < 0 || (uint64_t)size != s->bytes)
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_SHARD,
                          "%s: has %lld bytes, its manifest says %llu; verify the part", path,
                          (long long)size, (unsigned long long)s->bytes);
    int r = pstk__shard_header_check(h, bytes, path, err);
    if (r < 0)
        return r;
    if (h->crc != s->header_crc || h->n_records != s->n_records || h->file_size != s->bytes ||
        h->schema_crc != p->manifest.schema.crc)
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_SHARD,
                          "%s: is not the shard that its manifest lists; verify the part", path);
    return 0;
}

static int join_shard(struct part *p, const struct pstk__manifest_shard *s, struct pstk_error *err)
{
    char path[MAX_PATH];
    struct pstk__shard_header h;
    int r = file_path(path, p->path, s->file, err);
    if (r == 0)
        r = read_header(&h, path, p, s, err);
    if (r < 0)
        return r;
    struct pstk__identity id = {.lane = {h.identity[0], h.identity[1]}, .n = h.n_records};
    pstk__identity_join(&p->identity, &id);
    return 0;
}

static int join_identity(struct merge *g, struct part *p, struct pstk_error *err)
{
    char text[40];
    for (uint32_t i = 0; i < p->manifest.n_shards; i++) {
        int r = join_shard(p, &p->manifest.shards[i], err);
        if (r == 0)
            r = go_on(g, 0);
        if (r < 0)
            return r;
        g->n_total += p->manifest.shards[i].bytes;
    }
    pstk__identity_text(&p->identity, p->manifest.schema.crc, text);
    if (strcmp(text, p->manifest.identity) != 0)
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_SHARD,
                          "%s: its shards have the identity %s, its manifest says %s; verify it",
                          p->path, text, p->manifest.identity);
    return 0;
}

/* ---- joining --------------------------------------------------------------------------------- */

/* A name of the new data set for a part's file, PREFIX before it. */
static int new_name(const struct merge *g, char name[PSTK__MAX_FILE_NAME + 1], const char *prefix,
                    const char *file, struct pstk_error *err)
{
    char stem[PSTK__MAX_FILE_NAME + 16];
    const char *suffix = strrchr(file, '.');
    int n = suffix ? (int)(suffix - file) : (int)strlen(file);
    snprintf(stem, sizeof stem, "%s%.*s", prefix, n, file);
    return pstk__staging_name(g->staging, name, PSTK__MAX_FILE_NAME + 1, stem, suffix ? suffix : "",
                              err);
}

/* Link a file under its own name, or with the part before it where that name is taken. */
static int link_file(struct merge *g, const struct part *p, const char *file,
                     char name[PSTK__MAX_FILE_NAME + 1], struct pstk_error *err)
{
    char from[MAX_PATH], prefix[16];
    int r = file_path(from, p->path, file, err);
    if (r == 0)
        r = new_name(g, name, "", file, err);
    if (r == 0)
        r = pstk__staging_link(g->staging, from, name, err);
    if (r != PSTK_EEXIST)
        return r;
    snprintf(prefix, sizeof prefix, "p%u-", p->manifest.part);
    r = new_name(g, name, prefix, file, err);
    if (r == 0)
        r = pstk__staging_link(g->staging, from, name, err);
    return r != PSTK_EEXIST ? r
                            : pstk__fail(err, r, PSTK_STAGE_WRITE,
                                         "%s: the file %s is there already; rename the shards of "
                                         "one part",
                                         g->staging->path, name);
}

/* What was looked at by its name may be another file by the time it is linked by it. What is linked
 * stays what it is. */
static int fail_changed(const struct part *p, int r, struct pstk_error *err)
{
    return r != PSTK_EBADMSG
               ? r
               : pstk__fail(err, r, PSTK_STAGE_SHARD,
                            "%s: its files changed meanwhile, so nothing was merged: let no one "
                            "write there, and merge again (%s)",
                            p->path, err ? err->message : "");
}

static int load_dictionary(const char *directory, const struct pstk__manifest_dictionary *d,
                           void **bytes, struct pstk_error *err)
{
    char path[MAX_PATH];
    uint64_t size;
    int r = file_path(path, directory, d->file, err);
    if (r == 0)
        r = pstk__file_load(path, PSTK__MAX_DICTIONARY, bytes, &size, err);
    if (r < 0)
        return r;
    if (size == d->bytes && pstk__crc32c(0, *bytes, size) == d->crc)
        return 0;
    free(*bytes);
    *bytes = NULL;
    return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_OPEN,
                      "%s: is not the dictionary that its manifest lists; verify the part", path);
}

/* Is dictionary d of part p already among those of the parts before? Bytes decide, not checksums.
 */
static int find_dictionary(const struct merge *g, const struct part *p,
                           const struct pstk__manifest_dictionary *d, const void *bytes,
                           uint32_t *found, struct pstk_error *err)
{
    for (const struct part *q = g->parts; q < p; q++) {
        for (uint32_t i = 0; i < q->manifest.n_dictionaries; i++) {
            const struct pstk__manifest_dictionary *e = &q->manifest.dictionaries[i];
            void *other = NULL;
            if (e->crc != d->crc || e->bytes != d->bytes || e->field != d->field)
                continue;
            int r = load_dictionary(q->path, e, &other, err);
            int same = r == 0 && memcmp(bytes, other, d->bytes) == 0;
            free(other);
            *found = q->dictionaries[i];
            if (r < 0 || same)
                return r < 0 ? r : 1;
        }
    }
    return 0;
}

static int add_dictionary(struct merge *g, struct part *p, uint32_t i, struct pstk_error *err)
{
    struct pstk__manifest_dictionary d = p->manifest.dictionaries[i];
    char name[PSTK__MAX_FILE_NAME + 1];
    void *bytes;
    int r = load_dictionary(p->path, &d, &bytes, err);
    if (r < 0)
        return r;
    r = find_dictionary(g, p, &d, bytes, &p->dictionaries[i], err);
    free(bytes);
    if (r != 0)
        return r < 0 ? r : 0;
    p->dictionaries[i] = g->manifest.n_dictionaries;
    r = link_file(g, p, d.file, name, err);
    if (r < 0)
        return r;
    d.file = name;
    r = load_dictionary(g->staging->path, &d, &bytes, err);
    if (r < 0)
        return fail_changed(p, r, err);
    free(bytes);
    return pstk__manifest_add_dictionary(&g->manifest, &d, err);
}

static int add_shard(struct merge *g, const struct part *p, uint32_t i, struct pstk_error *err)
{
    struct pstk__manifest_shard s = p->manifest.shards[i];
    uint32_t dictionaries[PSTK_MAX_FIELDS]; /* at most one a field: the manifest was checked */
    char name[PSTK__MAX_FILE_NAME + 1];
    for (uint32_t k = 0; k < s.n_dictionaries; k++)
        dictionaries[k] = p->dictionaries[s.dictionaries[k]];
    s.dictionaries = dictionaries;
    char path[MAX_PATH];
    struct pstk__shard_header h;
    int r = link_file(g, p, s.file, name, err);
    if (r == 0)
        r = file_path(path, g->staging->path, name, err);
    if (r < 0)
        return r;
    s.file = name;
    r = read_header(&h, path, p, &s, err);
    return r < 0 ? fail_changed(p, r, err) : pstk__manifest_add_shard(&g->manifest, &s, err);
}

static int add_part(struct merge *g, struct part *p, struct pstk_error *err)
{
    int r = 0;
    for (uint32_t i = 0; r == 0 && i < p->manifest.n_dictionaries; i++)
        r = add_dictionary(g, p, i, err);
    for (uint32_t i = 0; r == 0 && i < p->manifest.n_shards; i++) {
        r = add_shard(g, p, i, err);
        g->n_done += p->manifest.shards[i].bytes;
        if (r == 0)
            r = go_on(g, g->n_done);
    }
    pstk__tally_join(g->manifest.stats, p->manifest.stats, p->manifest.schema.n_fields);
    return r;
}

static int begin_manifest(struct merge *g, struct pstk_error *err)
{
    const struct pstk__manifest *first = &g->parts[0].manifest;
    struct pstk__identity id = {{0}, 0};
    g->manifest.schema = first->schema;
    uint64_t n_samples = 0;
    for (uint32_t i = 0; i < g->n_parts; i++)
        n_samples += g->parts[i].manifest.n_samples;
    if (n_samples == 0)
        return pstk__fail(
            err, PSTK_EINVAL, PSTK_STAGE_OPEN,
            "%s and all other parts are empty, and a data set has at least one record",
            g->parts[0].path);
    g->manifest.part = 0;
    g->manifest.n_parts = 1;
    for (uint32_t i = 0; i < g->n_parts; i++)
        pstk__identity_join(&id, &g->parts[i].identity);
    pstk__identity_text(&id, first->schema.crc, g->manifest.identity);
    int r = pstk__manifest_set_note(&g->manifest, first->note, err);
    return r < 0 ? r : pstk__manifest_copy_names(&g->manifest, first, err);
}

static int commit(struct merge *g, struct pstk_error *err)
{
    char *bytes = NULL;
    uint64_t size = 0;
    int r = pstk__manifest_print(&g->manifest, &bytes, &size, err);
    if (r == 0)
        r = pstk__staging_commit(g->staging, bytes, size, err);
    free(bytes);
    return r;
}

/* Do the parts fit together, and with what shall be made of them? Nothing is written yet. */
static int prepare(struct merge *g, const char *const *paths, const char *out,
                   struct pstk_error *err)
{
    int r = load_parts(g, paths, err);
    if (r == 0)
        r = check_apart(g, out, err);
    if (r == 0)
        r = check_complete(g, err);
    for (uint32_t i = 1; r == 0 && i < g->n_parts; i++)
        r = check_same(&g->parts[0], &g->parts[i], err);
    for (uint32_t i = 0; r == 0 && i < g->n_parts; i++)
        r = join_identity(g, &g->parts[i], err);
    return r < 0 ? r : begin_manifest(g, err);
}

/* What is wrong with the parts together (over a limit of the whole) is found before the manifest is
 * written. */
static int join(struct merge *g, struct pstk_error *err)
{
    int r = 0;
    for (uint32_t i = 0; r == 0 && i < g->n_parts; i++)
        r = add_part(g, &g->parts[i], err);
    return r < 0 ? r : commit(g, err);
}

static void teardown(struct merge *g)
{
    for (uint32_t i = 0; g->parts && i < g->n_parts; i++) {
        pstk__manifest_free(&g->parts[i].manifest);
        free(g->parts[i].dictionaries);
    }
    free(g->parts);
    pstk__manifest_free(&g->manifest);
}

static int check_parts(const char *const *parts, uint32_t n_parts, struct pstk_error *err)
{
    return parts && n_parts
               ? 0
               : pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, "parts is empty: name the parts");
}

int pstk__merge_into(struct pstk__staging *s, const struct pstk__manifest *like,
                     const char *const *parts, uint32_t n_parts, struct pstk_error *err)
{
    struct merge g = {.n_parts = n_parts, .staging = s};
    const struct part wanted = {.path = s->path, .manifest = *like};
    int r = check_parts(parts, n_parts, err);
    if (r == 0)
        r = prepare(&g, parts, s->path, err);
    if (r == 0)
        r = check_same(&wanted, &g.parts[0], err);
    if (r == 0 && like->note)
        r = pstk__manifest_set_note(&g.manifest, like->note, err);
    if (r == 0)
        r = join(&g, err);
    teardown(&g);
    return r;
}

int pstk_merge_watched(const char *const *parts, uint32_t n_parts, const char *out, int overwrite,
                       pstk_progress_fn on_progress, void *user, struct pstk_error *err)
{
    struct pstk__staging staging = {.dir = -1};
    struct merge g = {
        .n_parts = n_parts, .staging = &staging, .on_progress = on_progress, .user = user};
    int r = check_parts(parts, n_parts, err);
    if (r < 0)
        return r;
    if (!out || !*out)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, "out is empty: name a directory");
    r = prepare(&g, parts, out, err);
    if (r == 0)
        r = pstk__staging_open(&staging, out, overwrite, err);
    staging.on_copy = watch_copy;
    staging.user = &g;
    if (r == 0)
        r = join(&g, err);
    pstk__staging_close(&staging);
    teardown(&g);
    if (r == PSTK_ECANCELED)
        pstk__fail(err, r, PSTK_STAGE_CONSUMER,
                   "the merge was stopped by its caller; %s and the parts are as they were", out);
    return r;
}

int pstk_merge(const char *const *parts, uint32_t n_parts, const char *out, int overwrite,
               struct pstk_error *err)
{
    return pstk_merge_watched(parts, n_parts, out, overwrite, NULL, NULL, err);
}
