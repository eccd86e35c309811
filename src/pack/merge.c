/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/merge.h"

#include "base/crc32c.h"
#include "base/error.h"
#include "base/file.h"
#include "format/format.h"
#include "format/pstk/manifest_file.h"
#include "pack/merge_columns.h"
#include "record/record.h"
#include "format/pstk/shard.h"
#include "format/pstk/tally.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_PATH 4096    /* bytes, the terminating 0 included */
#define MISSING_LISTED 8 /* maximum of numbers in a message */
#define MAX_STEPS 40     /* symbolic links to follow, as in the kernel */

#define INPUTS "; inputs " /* end of a note that `penstock pack` writes (FORMAT.md) */
#define OPTIONS " options "
#define N_DIGITS 32 /* hex digits after each of them */

/* A part, and the numbers that its dictionaries have in the merged data set. */
struct part {
    const char *path;               /* borrowed */
    struct pstk__manifest manifest; /* owned */
    uint32_t *dictionaries; /* number in the merged manifest of each of the part's dictionaries;
                               owned */
    struct pstk__identity identity; /* identity of its shards, from their headers */
};

struct merge {
    struct part *parts; /* owned; sorted by part number, or as given */
    uint32_t n_parts;
    const char *pack_id;            /* pack id that all parts must have, or ""; borrowed */
    struct pstk__manifest manifest; /* manifest of the merged data set */
    struct pstk__staging *staging;  /* borrowed */
    pstk_progress_fn on_progress;   /* NULL: no reports */
    void *user;
    uint64_t n_done, n_total; /* bytes of shards */
    uint64_t n_copied;        /* largest progress that watch_copy reported */
};

/* ---- how far is it, and shall it go on? ------------------------------------------------------ */

/* Report progress. Returns 0, or ECANCELED without a message if the caller wants to stop. */
static int go_on(const struct merge *merge, uint64_t n_done)
{
    return merge->on_progress && merge->on_progress(merge->user, n_done, merge->n_total)
               ? PSTK_ECANCELED
               : 0;
}

/* Report the progress of a copy: on_copy of staging. */
static int watch_copy(void *user, uint64_t n_bytes)
{
    struct merge *merge = user;
    if (merge->n_done + n_bytes > merge->n_copied)
        merge->n_copied =
            merge->n_done +
            n_bytes; /* progress stays while column files are copied, after their shard */
    return go_on(merge, merge->n_copied);
}

/* ---- do the parts belong together? ----------------------------------------------------------- */

static int file_path(char path[MAX_PATH], const char *directory, const char *file,
                     struct pstk_error *err)
{
    int n = snprintf(path, MAX_PATH, "%s/%s", directory, file);
    return n > 0 && n < MAX_PATH ? 0
                                 : pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                                              "%s: the path is too long", directory);
}

/* Fail for a path without a manifest; the message says if it is a data set of another format. */
static int fail_foreign(const char *path, int code, struct pstk_error *err)
{
    const struct pstk__format *format;
    if (pstk__format_find(&format, &pstk__store_local, path, NULL) < 0 || format->has_parts)
        return code;
    return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                      "%s has the format %s, which has no parts; must be a data set that `penstock "
                      "pack --part` made",
                      path, format->name);
}

/* Explain why a directory has no manifest, if a writer is at work in it or was killed. */
static int fail_unfinished(const char *path, int code, struct pstk_error *err)
{
    char journal[MAX_PATH];
    if (file_path(journal, path, PSTK__JOURNAL_FILE, NULL) < 0 || access(journal, F_OK) < 0)
        return fail_foreign(path, code, err);
    return pstk__fail(
        err, code, PSTK_STAGE_OPEN,
        "%s has no manifest.json: its writer is at work or was killed; pack it again, "
        "or leave it out if another attempt has its samples",
        path);
}

static int load_parts(struct merge *merge, const char *const *paths, struct pstk_error *err)
{
    merge->parts = calloc(merge->n_parts, sizeof *merge->parts);
    if (!merge->parts)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "out of memory");
    for (uint32_t i = 0; i < merge->n_parts; i++) {
        if (!paths[i] || !*paths[i])
            return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                              "parts[%u]: value is empty; must be the path of a part", i);
        struct part *part = &merge->parts[i];
        part->path = paths[i];
        int r = pstk__manifest_load(&part->manifest, &pstk__store_local, part->path, err);
        if (r == PSTK_ENOENT)
            return fail_unfinished(part->path, r, err);
        if (r < 0)
            return r;
        part->dictionaries =
            calloc((size_t)part->manifest.n_dictionaries + 1, sizeof *part->dictionaries);
        if (!part->dictionaries)
            return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "%s: out of memory", part->path);
    }
    return 0;
}

static int compare_parts(const void *a, const void *b)
{
    uint32_t x = ((const struct part *)a)->manifest.part,
             y = ((const struct part *)b)->manifest.part;
    return (x > y) - (x < y);
}

/* Compare parts in an array of pointers by task, then by position in the list. */
static int compare_tasks(const void *a, const void *b)
{
    const struct part *x = *(const struct part *const *)a, *y = *(const struct part *const *)b;
    const int order = strcmp(x->manifest.task.key, y->manifest.task.key);
    return order ? order : (x > y) - (x < y);
}

/* Check that no task occurs twice. The parts keep the order in which they were given. */
static int check_attempts(const struct merge *merge, struct pstk_error *err)
{
    const struct part **sorted = calloc(merge->n_parts, sizeof *sorted);
    if (!sorted)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "out of memory");
    for (uint32_t i = 0; i < merge->n_parts; i++)
        sorted[i] = &merge->parts[i];
    qsort(sorted, merge->n_parts, sizeof *sorted, compare_tasks);
    int r = 0;
    for (uint32_t i = 1; r == 0 && i < merge->n_parts; i++) {
        const struct part *a = sorted[i - 1], *b = sorted[i];
        if (strcmp(a->manifest.task.key, b->manifest.task.key) == 0)
            r = pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                           "%s (attempt %u) and %s (attempt %u) are both of task %s: give one of "
                           "them, once",
                           a->path, a->manifest.task.attempt, b->path, b->manifest.task.attempt,
                           a->manifest.task.key);
    }
    free(sorted);
    return r;
}

static int is_numbered(const struct part *part)
{
    return part->manifest.n_parts != 0;
}

/* Describe a part for messages. */
static const char *describe(const struct part *part, char text[PSTK__TASK_TEXT])
{
    const struct pstk__manifest *m = &part->manifest;
    if (m->n_parts && m->task.pack_id[0])
        snprintf(text, PSTK__TASK_TEXT, "part %u of %u of the pack %s", m->part, m->n_parts,
                 m->task.pack_id);
    else if (m->n_parts)
        snprintf(text, PSTK__TASK_TEXT, "part %u of %u", m->part, m->n_parts);
    else
        snprintf(text, PSTK__TASK_TEXT, "of the pack %s", m->task.pack_id);
    return text;
}

/* Fail with the numbers of the first missing parts. The existing parts are sorted, each once. */
static int fail_missing(const struct merge *merge, uint32_t n, struct pstk_error *err)
{
    char list[MISSING_LISTED * 12];
    uint32_t at = 0, n_listed = 0;
    size_t length = 0;
    const uint32_t n_missing = n - merge->n_parts;
    for (uint32_t i = 0; i < n && n_listed < MISSING_LISTED; i++) {
        if (at < merge->n_parts && merge->parts[at].manifest.part == i) {
            at++;
            continue;
        }
        length +=
            (size_t)snprintf(list + length, sizeof list - length, "%s%u", n_listed ? ", " : "", i);
        n_listed++;
    }
    return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                      "part%s %s%s of %u %s missing: give all parts (a part that another machine "
                      "packed is on that machine, unless both share its folder)",
                      n_missing == 1 ? "" : "s", list, n_listed < n_missing ? ", ..." : "", n,
                      n_missing == 1 ? "is" : "are");
}

/* Sort the parts by number and check that they are 0 .. n - 1 of n. */
static int check_numbers(struct merge *merge, struct pstk_error *err)
{
    for (uint32_t i = 0; i < merge->n_parts; i++) {
        const struct pstk__manifest *m = &merge->parts[i].manifest;
        if (m->n_parts != merge->parts[0].manifest.n_parts)
            return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                              "%s is part of %u, %s of %u: they were not packed together",
                              merge->parts[0].path, merge->parts[0].manifest.n_parts,
                              merge->parts[i].path, m->n_parts);
    }
    qsort(merge->parts, merge->n_parts, sizeof *merge->parts, compare_parts);
    for (uint32_t i = 1; i < merge->n_parts; i++)
        if (merge->parts[i].manifest.part == merge->parts[i - 1].manifest.part)
            return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                              "%s and %s are both part %u: give each part once",
                              merge->parts[i - 1].path, merge->parts[i].path,
                              merge->parts[i].manifest.part);
    const uint32_t n = merge->parts[0].manifest.n_parts;
    return merge->n_parts < n ? fail_missing(merge, n, err) : 0;
}

/* Check that two parts have the same fields and class names. */
static int check_same(const struct part *a, const struct part *b, struct pstk_error *err)
{
    const struct pstk__manifest *x = &a->manifest, *y = &b->manifest;
    int same = x->schema.crc == y->schema.crc && x->schema.n_fields == y->schema.n_fields;
    for (uint32_t i = 0; same && i < x->schema.n_fields; i++) /* the fields, levels included */
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

/* Check that all parts belong to one pack, the expected one if one is given. */
static int check_pack(const struct merge *merge, struct pstk_error *err)
{
    const struct part *first = &merge->parts[0];
    const char *pack_id = first->manifest.task.pack_id;
    char a[PSTK__TASK_TEXT], b[PSTK__TASK_TEXT];
    for (uint32_t i = 0; i < merge->n_parts; i++) {
        const struct part *part = &merge->parts[i];
        if (merge->pack_id[0] && strcmp(part->manifest.task.pack_id, merge->pack_id) != 0)
            return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                              "%s is %s, not of the pack %s that is merged: leave it out",
                              part->path, describe(part, a), merge->pack_id);
        if (is_numbered(part) == is_numbered(first) &&
            strcmp(part->manifest.task.pack_id, pack_id) == 0)
            continue;
        int r = is_numbered(part) && is_numbered(first) ? check_same(first, part, err) : 0;
        return r < 0
                   ? r
                   : pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                                "%s is %s, %s is %s: they were not packed together%s", first->path,
                                describe(first, a), part->path, describe(part, b),
                                is_numbered(part) && is_numbered(first)
                                    ? " (pack all parts from the same files with the same options)"
                                    : "");
    }
    return 0;
}

/* Check that the parts belong to one pack, and sort numbered ones. */
static int check_complete(struct merge *merge, struct pstk_error *err)
{
    int r = check_pack(merge, err);
    if (r < 0)
        return r;
    return merge->parts[0].manifest.n_parts ? check_numbers(merge, err)
                                            : check_attempts(merge, err);
}

/* ---- do the parts stay? ------------------------------------------------------------------- */

static int is_directory(const char *path, const struct stat *directory)
{
    struct stat status;
    return stat(path, &status) == 0 && status.st_dev == directory->st_dev &&
           status.st_ino == directory->st_ino;
}

/* Replace the path of a symbolic link by its target. Returns 0 if it is not a link, or its target
 * is too long. */
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

/* Return 1 if a file leads into the directory through symbolic links, in any number of steps. */
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

/* Return 1 if a column file leads into the directory; `file` gets its name. */
static int column_leads_into(const struct stat *whole, const struct part *part, char *file)
{
    const struct pstk__manifest *m = &part->manifest;
    for (uint32_t i = 0; i < m->n_columns; i++)
        for (uint32_t k = 0; k < m->n_shards; k++)
            if (pstk__manifest_column_file(&m->columns[i], m->shards[k].file, file) == 0 &&
                leads_into(whole, part->path, file))
                return 1;
    return 0;
}

static int fail_leads_into(const struct part *part, const char *file, const char *out,
                           struct pstk_error *err)
{
    return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                      "%s/%s is a symbolic link into %s, and would break when that is replaced: "
                      "name another directory",
                      part->path, file, out);
}

static int check_part_apart(const struct part *part, const char *out, const struct stat *whole,
                            struct pstk_error *err)
{
    const struct pstk__manifest *m = &part->manifest;
    if (is_directory(part->path, whole))
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "%s is one of the parts, which are kept: name another directory", out);
    for (uint32_t i = 0; i < m->n_shards + m->n_dictionaries; i++) {
        const char *file =
            i < m->n_shards ? m->shards[i].file : m->dictionaries[i - m->n_shards].file;
        if (leads_into(whole, part->path, file))
            return fail_leads_into(part, file, out, err);
    }
    char file[PSTK__MAX_COLUMN_FILE];
    return column_leads_into(whole, part, file) ? fail_leads_into(part, file, out, err) : 0;
}

/* Check that the merged data set replaces no file of a part. */
static int check_apart(const struct merge *merge, const char *out, struct pstk_error *err)
{
    struct stat whole;
    int r = 0;
    if (stat(out, &whole) < 0)
        return 0; /* it does not exist yet */
    for (uint32_t i = 0; r == 0 && i < merge->n_parts; i++)
        r = check_part_apart(&merge->parts[i], out, &whole, err);
    return r;
}

/* ---- identity -------------------------------------------------------------------------------- */

/* Read the header of a file, and check that it is the part's shard. */
static int read_header(struct pstk__shard_header *h, const char *path, const struct part *part,
                       const struct pstk__manifest_shard *shard, struct pstk_error *err)
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
    if (n < (int64_t)sizeof bytes || size < 0 || (uint64_t)size != shard->bytes)
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_SHARD,
                          "%s has %lld bytes, its manifest says %llu; verify the part", path,
                          (long long)size, (unsigned long long)shard->bytes);
    int r = pstk__shard_header_check(h, bytes, path, err);
    if (r < 0)
        return r;
    if (h->crc != shard->header_crc || h->n_records != shard->n_records ||
        h->file_size != shard->bytes || h->schema_crc != part->manifest.schema.crc)
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_SHARD,
                          "%s is not the shard that its manifest lists; verify the part", path);
    return 0;
}

static int join_shard(struct part *part, const struct pstk__manifest_shard *shard,
                      struct pstk_error *err)
{
    char path[MAX_PATH];
    struct pstk__shard_header h;
    int r = file_path(path, part->path, shard->file, err);
    if (r == 0)
        r = read_header(&h, path, part, shard, err);
    if (r < 0)
        return r;
    struct pstk__identity id = {.lane = {h.identity[0], h.identity[1]}, .n = h.n_records};
    pstk__identity_join(&part->identity, &id);
    return 0;
}

static int join_identity(struct merge *merge, struct part *part, struct pstk_error *err)
{
    char text[40];
    for (uint32_t i = 0; i < part->manifest.n_shards; i++) {
        int r = join_shard(part, &part->manifest.shards[i], err);
        if (r == 0)
            r = go_on(merge, 0);
        if (r < 0)
            return r;
        merge->n_total += part->manifest.shards[i].bytes;
    }
    pstk__identity_text(&part->identity, part->manifest.schema.crc, text);
    if (strcmp(text, part->manifest.identity) != 0)
        return pstk__fail(
            err, PSTK_EBADMSG, PSTK_STAGE_SHARD,
            "%s: its shards have the identity %s, its manifest says %s; verify the part",
            part->path, text, part->manifest.identity);
    return 0;
}

/* ---- joining --------------------------------------------------------------------------------- */

/* Make the name in the merged data set for a part's file, with `prefix` before it. */
static int new_name(const struct merge *merge, char name[PSTK__MAX_FILE_NAME + 1],
                    const char *prefix, const char *file, struct pstk_error *err)
{
    char stem[PSTK__MAX_FILE_NAME + 16];
    const char *suffix = strrchr(file, '.');
    int n = suffix ? (int)(suffix - file) : (int)strlen(file);
    snprintf(stem, sizeof stem, "%s%.*s", prefix, n, file);
    return pstk__staging_name(merge->staging, name, PSTK__MAX_FILE_NAME + 1, stem,
                              suffix ? suffix : "", err);
}

/* Link a file under its own name; if that is taken, with the part's number before it. */
static int link_file(struct merge *merge, const struct part *part, const char *file,
                     char name[PSTK__MAX_FILE_NAME + 1], struct pstk_error *err)
{
    char from[MAX_PATH], prefix[16];
    int r = file_path(from, part->path, file, err);
    if (r == 0)
        r = new_name(merge, name, "", file, err);
    if (r == 0)
        r = pstk__staging_link(merge->staging, from, name, err);
    if (r != PSTK_EEXIST)
        return r;
    snprintf(prefix, sizeof prefix, "p%u-", (uint32_t)(part - merge->parts));
    r = new_name(merge, name, prefix, file, err);
    if (r == 0)
        r = pstk__staging_link(merge->staging, from, name, err);
    return r != PSTK_EEXIST
               ? r
               : pstk__fail(err, r, PSTK_STAGE_WRITE,
                            "%s: the file %s exists already; rename the shards of one part",
                            merge->staging->path, name);
}

/* Fail because a file changed between its check and its link. A linked file can no longer be
 * replaced. */
static int fail_changed(const struct part *part, int r, struct pstk_error *err)
{
    return r != PSTK_EBADMSG ? r
                             : pstk__fail(err, r, PSTK_STAGE_SHARD,
                                          "%s: its files changed during the merge, so nothing was "
                                          "merged: stop what writes there, and merge again (%s)",
                                          part->path, err ? err->message : "");
}

static int load_dictionary(const char *directory,
                           const struct pstk__manifest_dictionary *dictionary, void **bytes,
                           struct pstk_error *err)
{
    char path[MAX_PATH];
    uint64_t size;
    int r = file_path(path, directory, dictionary->file, err);
    if (r == 0)
        r = pstk__store_load(&pstk__store_local, path, PSTK__MAX_DICTIONARY, bytes, &size, err);
    if (r < 0)
        return r;
    if (size == dictionary->bytes && pstk__crc32c(0, *bytes, size) == dictionary->crc)
        return 0;
    free(*bytes);
    *bytes = NULL;
    return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_OPEN,
                      "%s is not the dictionary that its manifest lists; verify the part", path);
}

/* Return 1 if a previous part has the same dictionary; *found is its number. Compares bytes, not
 * only checksums. */
static int find_dictionary(const struct merge *merge, const struct part *p,
                           const struct pstk__manifest_dictionary *d, const void *bytes,
                           uint32_t *found, struct pstk_error *err)
{
    for (const struct part *q = merge->parts; q < p; q++) {
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

static int add_dictionary(struct merge *merge, struct part *part, uint32_t i,
                          struct pstk_error *err)
{
    struct pstk__manifest_dictionary dictionary = part->manifest.dictionaries[i];
    char name[PSTK__MAX_FILE_NAME + 1];
    void *bytes;
    int r = load_dictionary(part->path, &dictionary, &bytes, err);
    if (r < 0)
        return r;
    r = find_dictionary(merge, part, &dictionary, bytes, &part->dictionaries[i], err);
    free(bytes);
    if (r != 0)
        return r < 0 ? r : 0;
    part->dictionaries[i] = merge->manifest.n_dictionaries;
    r = link_file(merge, part, dictionary.file, name, err);
    if (r < 0)
        return r;
    dictionary.file = name;
    r = load_dictionary(merge->staging->path, &dictionary, &bytes, err);
    if (r < 0)
        return fail_changed(part, r, err);
    free(bytes);
    return pstk__manifest_add_dictionary(&merge->manifest, &dictionary, err);
}

static int add_shard(struct merge *merge, const struct part *part, uint32_t i,
                     struct pstk_error *err)
{
    struct pstk__manifest_shard shard = part->manifest.shards[i];
    uint32_t dictionaries[PSTK_MAX_FIELDS]; /* at most one for each field: the manifest was checked
                                             */
    char name[PSTK__MAX_FILE_NAME + 1];
    for (uint32_t k = 0; k < shard.n_dictionaries; k++)
        dictionaries[k] = part->dictionaries[shard.dictionaries[k]];
    shard.dictionaries = dictionaries;
    char path[MAX_PATH];
    struct pstk__shard_header h;
    int r = link_file(merge, part, shard.file, name, err);
    if (r == 0)
        r = file_path(path, merge->staging->path, name, err);
    if (r < 0)
        return r;
    shard.file = name;
    r = read_header(&h, path, part, &shard, err);
    if (r < 0)
        return fail_changed(part, r, err);
    const struct pstk__column_part columns = {part->path, &part->manifest};
    r = pstk__manifest_add_shard(&merge->manifest, &shard, err);
    return r < 0 ? r : pstk__merge_columns_link(merge->staging, &merge->manifest, &columns, i, err);
}

static int add_part(struct merge *merge, struct part *part, struct pstk_error *err)
{
    int r = 0;
    for (uint32_t i = 0; r == 0 && i < part->manifest.n_dictionaries; i++)
        r = add_dictionary(merge, part, i, err);
    for (uint32_t i = 0; r == 0 && i < part->manifest.n_shards; i++) {
        r = add_shard(merge, part, i, err);
        merge->n_done += part->manifest.shards[i].bytes;
        if (r == 0)
            r = go_on(merge, merge->n_done);
    }
    pstk__tally_join(merge->manifest.stats, part->manifest.stats, part->manifest.schema.n_fields);
    return r;
}

/* Find the columns that all parts with records have, and begin them. */
static int begin_columns(struct merge *merge, struct pstk_error *err)
{
    int r = 0, first = 1;
    for (uint32_t i = 0; r == 0 && i < merge->n_parts; i++) {
        const struct pstk__manifest *part = &merge->parts[i].manifest;
        if (part->n_samples == 0)
            continue;
        r = pstk__merge_columns_agree(&merge->manifest, part, first, err);
        first = 0;
    }
    return r;
}

/* Return 1 if the text begins with `name` and N_DIGITS hex digits follow. */
static int is_hash(const char *text, const char *name)
{
    const size_t n = strlen(name);
    return strncmp(text, name, n) == 0 && strspn(text + n, "0123456789abcdef") >= N_DIGITS;
}

/* Copy the note of a part, without its end, which gives hashes of the part's inputs and options. */
static int copy_note(struct pstk__manifest *manifest, const char *note, struct pstk_error *err)
{
    const size_t n = note ? strlen(note) : 0, n_options = strlen(OPTIONS) + N_DIGITS;
    const size_t n_end = strlen(INPUTS) + N_DIGITS + n_options;
    if (n < n_end || !is_hash(note + n - n_end, INPUTS) || !is_hash(note + n - n_options, OPTIONS))
        return pstk__manifest_set_note(manifest, note, err);
    char *text = strndup(note, n - n_end);
    const int r = text ? pstk__manifest_set_note(manifest, text, err)
                       : pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for the note");
    free(text);
    return r;
}

static int begin_manifest(struct merge *merge, struct pstk_error *err)
{
    const struct pstk__manifest *first = &merge->parts[0].manifest;
    struct pstk__identity id = {{0}, 0};
    merge->manifest.schema = first->schema;
    uint64_t n_samples = 0;
    for (uint32_t i = 0; i < merge->n_parts; i++)
        n_samples += merge->parts[i].manifest.n_samples;
    if (n_samples == 0 && merge->manifest.n_parts == 1)
        return pstk__fail(
            err, PSTK_EINVAL, PSTK_STAGE_OPEN,
            "%s and all other parts are empty; a data set must have at least one record",
            merge->parts[0].path);
    for (uint32_t i = 0; i < merge->n_parts; i++)
        pstk__identity_join(&id, &merge->parts[i].identity);
    pstk__identity_text(&id, first->schema.crc, merge->manifest.identity);
    int r = copy_note(&merge->manifest, first->note, err);
    if (r == 0)
        r = begin_columns(merge, err);
    return r < 0 ? r : pstk__manifest_copy_names(&merge->manifest, first, err);
}

/* Check that the parts fit together and with `out`, and begin the manifest. Writes nothing. */
static int prepare(struct merge *merge, const char *const *paths, const char *out,
                   struct pstk_error *err)
{
    int r = load_parts(merge, paths, err);
    if (r == 0)
        r = check_apart(merge, out, err);
    if (r == 0)
        r = check_complete(merge, err);
    for (uint32_t i = 1; r == 0 && i < merge->n_parts; i++)
        r = check_same(&merge->parts[0], &merge->parts[i], err);
    for (uint32_t i = 0; r == 0 && i < merge->n_parts; i++)
        r = join_identity(merge, &merge->parts[i], err);
    return r < 0 ? r : begin_manifest(merge, err);
}

/* Link all files and commit. A limit that the merged data set exceeds is detected before the
 * manifest is written. */
static int join(struct merge *merge, struct pstk_error *err)
{
    int r = 0;
    for (uint32_t i = 0; r == 0 && i < merge->n_parts; i++)
        r = add_part(merge, &merge->parts[i], err);
    return r < 0 ? r : pstk__staging_commit(merge->staging, &merge->manifest, err);
}

static void teardown(struct merge *merge)
{
    for (uint32_t i = 0; merge->parts && i < merge->n_parts; i++) {
        pstk__manifest_free(&merge->parts[i].manifest);
        free(merge->parts[i].dictionaries);
    }
    free(merge->parts);
    pstk__manifest_free(&merge->manifest);
}

static int check_parts(const char *const *parts, uint32_t n_parts, struct pstk_error *err)
{
    return parts && n_parts ? 0
                            : pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                                         "parts: value is empty; must name the parts");
}

int pstk__merge_into(struct pstk__staging *staging, const struct pstk__manifest *like,
                     const struct pstk__merge_list *list, struct pstk_error *err)
{
    struct merge merge = {.n_parts = list->n,
                          .pack_id = list->pack_id,
                          .manifest = {.n_parts = like->n_parts, .task = like->task},
                          .staging = staging};
    const struct part wanted = {.path = staging->path, .manifest = *like};
    int r = check_parts(list->paths, list->n, err);
    if (r == 0)
        r = prepare(&merge, list->paths, staging->path, err);
    if (r == 0)
        r = check_same(&wanted, &merge.parts[0], err);
    if (r == 0 && like->note)
        r = pstk__manifest_set_note(&merge.manifest, like->note, err);
    if (r == 0)
        r = join(&merge, err);
    teardown(&merge);
    return r;
}

/* Read the settings of a caller who may use another version of the struct. */
static int read_settings(struct pstk_merge_settings *s, const struct pstk_merge_settings *given,
                         struct pstk_error *err)
{
    if (!given || given->size < offsetof(struct pstk_merge_settings, on_progress))
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "size: value is %u; must be sizeof(struct pstk_merge_settings)",
                          given ? given->size : 0);
    memset(s, 0, sizeof *s);
    memcpy(s, given, given->size < sizeof *s ? given->size : sizeof *s);
    for (size_t i = sizeof *s; i < given->size; i++)
        if (((const uint8_t *)given)[i])
            return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                              "size: value is %u; a setting is set that this version does not know",
                              given->size);
    s->pack_id = s->pack_id ? s->pack_id : "";
    if (s->pack_id[0] && !pstk__pack_id_ok(s->pack_id))
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "pack_id: value is '%.64s'; must be 32 lower-case hex digits",
                          s->pack_id);
    if (s->overwrite > 1 || s->reserved)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, "%s: value is %u; must be 0%s",
                          s->reserved ? "reserved" : "overwrite",
                          s->reserved ? s->reserved : s->overwrite, s->reserved ? "" : " or 1");
    if (!s->out || !*s->out)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "out: value is empty; must be the path of a directory");
    return check_parts(s->parts, s->n_parts, err);
}

int pstk_merge(const struct pstk_merge_settings *settings, struct pstk_error *err)
{
    struct pstk_merge_settings s;
    int r = read_settings(&s, settings, err);
    if (r < 0)
        return r;
    struct pstk__staging staging = {.dir = -1};
    struct merge merge = {.n_parts = s.n_parts,
                          .pack_id = s.pack_id,
                          .manifest = {.n_parts = 1},
                          .staging = &staging,
                          .on_progress = s.on_progress,
                          .user = s.user};
    r = prepare(&merge, s.parts, s.out, err);
    if (r == 0)
        r = pstk__staging_open(&staging, s.out, (int)s.overwrite, err);
    staging.on_copy = watch_copy;
    staging.user = &merge;
    if (r == 0)
        r = join(&merge, err);
    pstk__staging_close(&staging);
    teardown(&merge);
    if (r == PSTK_ECANCELED)
        pstk__fail(err, r, PSTK_STAGE_CONSUMER,
                   "the merge was stopped by its caller; %s and the parts are unchanged", s.out);
    return r;
}
