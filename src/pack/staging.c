/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/staging.h"

#include "base/error.h"
#include "base/file.h"
#include "base/texts.h"
#include "format/pstk/manifest_file.h"
#include "format/pstk/manifest_json.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define MANIFEST "manifest.json"
#define TEMPORARY ".tmp-"
#define COPY_SIZE (1u << 20) /* bytes; large enough to make the cost of system calls negligible */

static int is_content(const char *name)
{
    return name[0] != '.' &&
           (pstk__text_ends_with(name, ".pstk") || pstk__text_ends_with(name, ".zdict") ||
            pstk__text_ends_with(name, ".pcol"));
}

static void temporary_name(char temporary[256], const char *name)
{
    snprintf(temporary, 256, TEMPORARY "%.*s", PSTK__STAGING_NAME - 1, name);
}

static int fail_path(const struct pstk__staging *staging, int native, const char *what,
                     const char *name, struct pstk_error *err)
{
    return pstk__fail_errno(err, native, PSTK_STAGE_WRITE, "%s: cannot %s %s%s", staging->path,
                            what, name, pstk__file_write_advice(native));
}

/* Open the directory's entries, from the first. A new descriptor, because a dup shares its
 * position. */
static DIR *open_entries(const struct pstk__staging *staging)
{
    int fd = openat(staging->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    DIR *folder = fdopendir(fd);
    if (!folder) {
        int native = errno;
        close(fd);
        errno = native;
    }
    return folder;
}

/* Return the largest N of a ".gN." in a name: "STEM.gN.pstk", "STEM.gN.COLUMN.pcol"; or 0. */
static uint32_t generation_of(const char *name)
{
    uint32_t most = 0;
    for (const char *at = strstr(name, ".g"); at; at = strstr(at + 1, ".g")) {
        char *end;
        const unsigned long n = at[2] >= '0' && at[2] <= '9' ? strtoul(at + 2, &end, 10) : 0;
        if (n > most && *end == '.' && n < UINT32_MAX - 1)
            most = (uint32_t)n;
    }
    return most;
}

/* The contents of the directory. */
struct contents {
    int manifest; /* 1: it has a manifest.json */
    int content;  /* 1: an entry has the name of a shard, dictionary or column, whatever its type */
    uint32_t generation; /* the highest of these entries */
    char foreign[256];   /* first entry other than manifest and journal, or "" */
};

static int scan(const struct pstk__staging *staging, struct contents *contents,
                struct pstk_error *err)
{
    memset(contents, 0, sizeof *contents);
    DIR *folder = open_entries(staging);
    if (!folder)
        return fail_path(staging, errno, "read", "the directory", err);
    struct dirent *entry;
    while (errno = 0, (entry = readdir(folder))) {
        const char *name = entry->d_name;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
            strcmp(name, PSTK__JOURNAL_FILE) == 0)
            continue;
        if (strcmp(name, MANIFEST) == 0) {
            contents->manifest = 1;
            continue;
        }
        if (is_content(name)) {
            uint32_t generation = generation_of(name);
            contents->content = 1;
            contents->generation =
                generation > contents->generation ? generation : contents->generation;
        }
        if (!contents->foreign[0])
            snprintf(contents->foreign, sizeof contents->foreign, "%s", name);
    }
    int native = errno;
    closedir(folder);
    return native ? fail_path(staging, native, "read", "the directory", err) : 0;
}

/* Remove a file. Returns 1 if it was removed, 0 if there was none. A directory of that name belongs
 * to the user and is kept. */
static int remove_file(const struct pstk__staging *staging, const char *name,
                       struct pstk_error *err)
{
    if (unlinkat(staging->dir, name, 0) == 0)
        return 1;
    if (errno == ENOENT || errno == EISDIR || errno == EPERM)
        return 0;
    return fail_path(staging, errno, "remove the leftover file", name, err);
}

/* List the files of a column. */
static int list_column(struct pstk__staging *staging, const struct pstk__manifest *m, uint32_t i)
{
    char file[PSTK__MAX_COLUMN_FILE];
    int r = 0;
    for (uint32_t k = 0; r == 0 && k < m->n_shards; k++)
        if (pstk__manifest_column_file(&m->columns[i], m->shards[k].file, file) == 0)
            r = pstk__file_names_add(&staging->old_names, file);
    return r;
}

/* List the files of the data set in this directory, from its manifest. */
static int list_old(struct pstk__staging *staging, struct pstk_error *err)
{
    struct pstk__manifest m;
    struct pstk_error why;
    pstk_error_init(&why, sizeof why);
    if (pstk__manifest_load(&m, &pstk__store_local, staging->path, &why) < 0)
        return pstk__fail(err, PSTK_EEXIST, PSTK_STAGE_WRITE,
                          "%s holds a data set whose manifest cannot be read, so its files are not "
                          "known: remove the directory yourself, or choose another (%s)",
                          staging->path, why.message);
    int r = 0;
    for (uint32_t i = 0; r == 0 && i < m.n_shards; i++)
        r = pstk__file_names_add(&staging->old_names, m.shards[i].file);
    for (uint32_t i = 0; r == 0 && i < m.n_dictionaries; i++)
        r = pstk__file_names_add(&staging->old_names, m.dictionaries[i].file);
    for (uint32_t i = 0; r == 0 && i < m.n_columns; i++)
        r = list_column(staging, &m, i);
    pstk__manifest_free(&m);
    pstk__file_names_sort(&staging->old_names);
    return r < 0
               ? pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_WRITE, "%s: out of memory", staging->path)
               : 0;
}

/* Remove the files that a killed writer's journal lists and the manifest here does not, then the
 * journal. */
static int sweep(struct pstk__staging *staging, const struct pstk__file_names *left,
                 struct pstk_error *err)
{
    int r = 0;
    char temporary[256];
    for (uint64_t i = 0; r >= 0 && i < left->n; i++) {
        if (pstk__file_names_have(&staging->old_names, left->names[i]))
            continue;
        temporary_name(temporary, left->names[i]);
        for (int k = 0; r >= 0 && k < 2; k++) {
            r = remove_file(staging, k ? temporary : left->names[i], err);
            staging->n_leftovers += r == 1;
        }
    }
    if (r >= 0)
        r = remove_file(staging, TEMPORARY MANIFEST, err);
    if (r >= 0)
        r = remove_file(staging, PSTK__JOURNAL_FILE, err);
    return r < 0 ? r : 0;
}

/* Refuse to replace the manifest.json of another program. Damage does not matter here: penstock's
 * begins with its format. */
static int check_manifest_is_ours(const struct pstk__staging *staging, struct pstk_error *err)
{
    char text[256];
    int fd = openat(staging->dir, MANIFEST, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return fail_path(staging, errno, "open", MANIFEST, err);
    ssize_t n = pread(fd, text, sizeof text - 1, 0);
    int native = errno;
    close(fd);
    if (n < 0)
        return fail_path(staging, native, "read", MANIFEST, err);
    text[n] = 0;
    if (strncmp(text, PSTK__MANIFEST_HEAD, sizeof PSTK__MANIFEST_HEAD - 1) != 0)
        return pstk__fail(err, PSTK_EEXIST, PSTK_STAGE_WRITE,
                          "%s: another program wrote its manifest.json, so penstock does not "
                          "replace it; choose another directory",
                          staging->path);
    return 0;
}

/* Lock the directory. Returns 1 if it is locked, 0 if the file system has no locks. */
static int lock(struct pstk__staging *staging, struct pstk_error *err)
{
    struct stat here, there;
    int r;
    while ((r = flock(staging->dir, LOCK_EX | LOCK_NB)) < 0 && errno == EINTR)
        ;
    if (r < 0 && errno == EWOULDBLOCK) {
        staging->made = 0;
        return pstk__fail(
            err, PSTK_EBUSY, PSTK_STAGE_WRITE,
            "%s: another writer is using this directory; wait for it, or choose another directory",
            staging->path);
    }
    int locked = r == 0; /* any other error: no locks, as on Lustre without -o flock */
    if (fstat(staging->dir, &here) < 0)
        return fail_path(staging, errno, "look at", "the directory", err);
    if (stat(staging->path, &there) < 0 || here.st_ino != there.st_ino ||
        here.st_dev != there.st_dev) {
        staging->made = 0;
        return pstk__fail(err, PSTK_EBUSY, PSTK_STAGE_WRITE,
                          "%s: another writer is removing this directory; run again",
                          staging->path);
    }
    return locked;
}

/* Without locks a killed writer is indistinguishable from one at work. The journal also lists files
 * that the data set here still has. */
static int fail_unlocked(const struct pstk__staging *staging, struct pstk_error *err)
{
    return pstk__fail(err, PSTK_EBUSY, PSTK_STAGE_WRITE,
                      "%s: another writer may be using this directory (this file system has no "
                      "locks); if none is, remove %sits files .tmp-*",
                      staging->path,
                      staging->old_names.n ? "" : "what " PSTK__JOURNAL_FILE " lists, and ");
}

/* Remove the files of a killed writer, by its journal. */
static int clear_leftovers(struct pstk__staging *staging, int locked, struct pstk_error *err)
{
    struct pstk__file_names left = {0};
    int r = pstk__journal_read(staging->dir, staging->path, &left, err);
    if (r == 1 && !locked)
        r = fail_unlocked(staging, err);
    if (r == 1)
        r = sweep(staging, &left, err);
    pstk__file_names_free(&left);
    return r;
}

/* Refuse to replace a data set, but remove files of a killed writer first. A writer killed just
 * after its commit leaves a journal, and maybe files of the older data set, that nobody else would
 * remove. */
static int refuse(struct pstk__staging *staging, int locked, struct pstk_error *err)
{
    const int r = list_old(staging, err);
    if (r < 0)
        return r; /* overwrite would not help */
    if (locked)
        (void)clear_leftovers(staging, locked, NULL); /* the next writer removes the rest */
    /* The bindings look for "set overwrite" in this message and replace it by their own words. */
    return pstk__fail(err, PSTK_EEXIST, PSTK_STAGE_WRITE,
                      "%s holds a data set already; set overwrite to replace it, or choose "
                      "another directory",
                      staging->path);
}

/* Take over a data set: it must be penstock's, and `overwrite` must be set. List its files. */
static int take_over_old(struct pstk__staging *staging, int overwrite, int locked,
                         struct pstk_error *err)
{
    int r = check_manifest_is_ours(staging, err);
    if (r == 0 && !overwrite)
        r = refuse(staging, locked, err);
    return r == 0 ? list_old(staging, err) : r;
}

/* Examine the directory's contents, remove the files of a killed writer, and refuse a directory in
 * use. */
static int take_over(struct pstk__staging *staging, int overwrite, int locked,
                     struct pstk_error *err)
{
    struct contents contents;
    int r = scan(staging, &contents, err);
    if (r == 0 && contents.manifest)
        r = take_over_old(staging, overwrite, locked, err);
    if (r == 0)
        r = clear_leftovers(staging, locked, err);
    if (r == 0)
        r = scan(staging, &contents,
                 err); /* now all entries belong to the data set or to the user */
    if (r < 0)
        return r;
    if (!contents.manifest && contents.foreign[0])
        return pstk__fail(
            err, PSTK_EEXIST, PSTK_STAGE_WRITE,
            "%s is not empty and not a data set (it holds %.200s); choose another directory",
            staging->path, contents.foreign);
    staging->generation = contents.content ? contents.generation + 1 : 0;
    return 0;
}

/* Begin the journal. From here on, a killed writer's files can be distinguished from others. */
static int begin_journal(struct pstk__staging *staging, struct pstk_error *err)
{
    int r = pstk__journal_begin(&staging->journal, staging->dir, staging->path, err);
    if (r == PSTK_EEXIST)
        return pstk__fail(err, PSTK_EBUSY, PSTK_STAGE_WRITE,
                          "%s: another writer started in this directory at the same time",
                          staging->path);
    staging->has_journal = staging->journal.fd >= 0;
    for (uint64_t i = 0; r == 0 && i < staging->old_names.n; i++)
        r = pstk__journal_add(&staging->journal, staging->old_names.names[i], staging->path, err);
    return r == 0 ? pstk__journal_sync(&staging->journal, staging->path, err) : r;
}

/* Open the directory, and make it if there is none. */
static int open_directory(struct pstk__staging *staging, struct pstk_error *err)
{
    if (mkdir(staging->path, 0777) == 0)
        staging->made = 1;
    else if (errno != EEXIST)
        return pstk__file_fail_make(err, errno, PSTK_STAGE_WRITE, staging->path);
    staging->dir = open(staging->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (staging->dir < 0 && errno == ENOTDIR)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_WRITE,
                          "path: value is %s, a file; must be a directory, or a new name (choose "
                          "another path)",
                          staging->path);
    return staging->dir < 0 ? fail_path(staging, errno, "open", "the directory", err) : 0;
}

int pstk__staging_open(struct pstk__staging *staging, const char *path, int overwrite,
                       struct pstk_error *err)
{
    memset(staging, 0, sizeof *staging);
    staging->dir = staging->journal.fd = -1;
    staging->path = strdup(path);
    if (!staging->path)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_WRITE, "%s: out of memory", path);
    int r = open_directory(staging, err);
    const int locked = r < 0 ? r : lock(staging, err);
    r = locked < 0 ? locked : take_over(staging, overwrite, locked, err);
    if (r == 0)
        r = begin_journal(staging, err);
    if (r < 0)
        pstk__staging_close(staging);
    return r;
}

/* Lock the directory, load its manifest into *m, and remove the files of a killed writer. */
static int begin_edit(struct pstk__staging *staging, struct pstk__manifest *m,
                      struct pstk_error *err)
{
    const int locked = lock(staging, err);
    if (locked < 0)
        return locked;
    int r = pstk__manifest_load(m, &pstk__store_local, staging->path, err);
    if (r == 0)
        r = list_old(staging, err);
    if (r == 0)
        r = clear_leftovers(staging, locked, err);
    pstk__file_names_free(&staging->old_names); /* an edit keeps them */
    return r == 0 ? begin_journal(staging, err) : r;
}

int pstk__staging_edit(struct pstk__staging *staging, const char *path, struct pstk__manifest *m,
                       struct pstk_error *err)
{
    memset(staging, 0, sizeof *staging);
    memset(m, 0, sizeof *m);
    staging->dir = staging->journal.fd = -1;
    staging->path = strdup(path);
    if (!staging->path)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_WRITE, "%s: out of memory", path);
    staging->dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r = staging->dir < 0 ? fail_path(staging, errno, "open", "the data set", err)
                             : begin_edit(staging, m, err);
    if (r < 0) {
        pstk__manifest_free(m);
        pstk__staging_close(staging);
    }
    return r;
}

int pstk__staging_drop_column(struct pstk__staging *staging, const struct pstk__manifest *m,
                              uint32_t i, struct pstk_error *err)
{
    int r = list_column(staging, m, i);
    if (r < 0)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_WRITE, "%s: out of memory", staging->path);
    for (uint64_t k = 0; r == 0 && k < staging->old_names.n; k++)
        r = pstk__journal_add(&staging->journal, staging->old_names.names[k], staging->path, err);
    return r == 0 ? pstk__journal_sync(&staging->journal, staging->path, err) : r;
}

int pstk__staging_has(const struct pstk__staging *staging, const char *name)
{
    struct stat status;
    return fstatat(staging->dir, name, &status, AT_SYMLINK_NOFOLLOW) == 0;
}

int pstk__staging_name(const struct pstk__staging *staging, char *name, size_t size,
                       const char *stem, const char *suffix, struct pstk_error *err)
{
    int n = staging->generation
                ? snprintf(name, size, "%s.g%u%s", stem, staging->generation, suffix)
                : snprintf(name, size, "%s%s", stem, suffix);
    if (n < 0 || (size_t)n >= size)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_WRITE, "%s: file name %s is too long",
                          staging->path, stem);
    return 0;
}

/* Return the position of a name among the files made, searching from the last one; or n. */
static uint64_t find_made(const struct pstk__staging *staging, const char *name)
{
    const struct pstk__file_names *made = &staging->made_names;
    for (uint64_t i = made->n; i > 0; i--)
        if (strcmp(made->names[i - 1], name) == 0)
            return i - 1;
    return made->n;
}

int pstk__staging_announce(struct pstk__staging *staging, const char *name, struct pstk_error *err)
{
    if (pstk__file_names_add(&staging->made_names, name) < 0)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_WRITE, "%s: out of memory", staging->path);
    staging->is_unsynced = 1;
    return pstk__journal_add(&staging->journal, name, staging->path, err);
}

/* List a file in the journal before it exists. Then close removes it in any case, and the next
 * staging if this process is killed. */
static int remember(struct pstk__staging *staging, const char *name, struct pstk_error *err)
{
    int r = 0;
    if (find_made(staging, name) == staging->made_names.n)
        r = pstk__staging_announce(staging, name, err);
    if (r == 0 && staging->is_unsynced)
        r = pstk__journal_sync(&staging->journal, staging->path, err);
    staging->is_unsynced = r < 0;
    return r;
}

/* Drop a name that was remembered: its file was not made by this staging. */
static void forget(struct pstk__staging *staging, const char *name)
{
    struct pstk__file_names *made = &staging->made_names;
    const uint64_t i = find_made(staging, name);
    if (i == made->n)
        return;
    free(made->names[i]);
    made->names[i] = made->names[--made->n];
}

static int create(struct pstk__staging *staging, const char *name, int *fd, struct pstk_error *err)
{
    char temporary[256];
    temporary_name(temporary, name);
    *fd = openat(staging->dir, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (*fd >= 0)
        return 0;
    int r = fail_path(staging, errno, "create", temporary, err);
    forget(staging, name);
    return r;
}

int pstk__staging_create(struct pstk__staging *staging, const char *name, int *fd,
                         struct pstk_error *err)
{
    *fd = -1;
    int r = remember(staging, name, err);
    return r < 0 ? r : create(staging, name, fd, err);
}

int pstk__staging_write(const struct pstk__staging *staging, const char *name, int fd,
                        const void *data, uint64_t size, uint64_t offset, struct pstk_error *err)
{
    const uint8_t *p = data;
    while (size > 0) {
        size_t piece = size < (1u << 30) ? (size_t)size : 1u << 30;
        ssize_t n = pwrite(fd, p, piece, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return fail_path(staging, n < 0 ? errno : EIO, "write", name, err);
        p += n;
        offset += (uint64_t)n;
        size -= (uint64_t)n;
    }
    return 0;
}

/* Close a file, once, whatever close returns. Some file systems report a failed write only
 * there. */
static int close_file(const struct pstk__staging *staging, const char *name, int *fd,
                      struct pstk_error *err)
{
    int r = close(*fd);
    *fd = -1;
    return r < 0 && errno != EINTR ? fail_path(staging, errno, "close", name, err) : 0;
}

/* Give a finished file its name. Only a manifest may replace a file; any other file of that name
 * belongs to the user and is kept. */
static int rename_file(const struct pstk__staging *staging, const char *temporary, const char *name,
                       struct pstk_error *err)
{
    if (strcmp(name, MANIFEST) == 0)
        return renameat(staging->dir, temporary, staging->dir, name) < 0
                   ? fail_path(staging, errno, "rename to", name, err)
                   : 0;
    if (renameat2(staging->dir, temporary, staging->dir, name, RENAME_NOREPLACE) == 0)
        return 0;
    /* If the file system lacks that flag, use a link: it does not replace a file either. */
    if ((errno != EINVAL && errno != ENOSYS) ||
        linkat(staging->dir, temporary, staging->dir, name, 0) < 0 ||
        unlinkat(staging->dir, temporary, 0) < 0)
        return fail_path(staging, errno, "rename to", name, err);
    return 0;
}

int pstk__staging_publish(struct pstk__staging *staging, const char *name, int *fd,
                          struct pstk_error *err)
{
    char temporary[256];
    temporary_name(temporary, name);
    if (fsync(*fd) < 0) {
        int r = fail_path(staging, errno, "sync", temporary, err);
        close(*fd);
        *fd = -1;
        return r;
    }
    int r = close_file(staging, temporary, fd, err);
    return r < 0 ? r : rename_file(staging, temporary, name, err);
}

static int put(struct pstk__staging *staging, const char *name, const void *data, uint64_t size,
               struct pstk_error *err)
{
    int fd;
    int r = create(staging, name, &fd, err);
    if (r < 0)
        return r;
    r = pstk__staging_write(staging, name, fd, data, size, 0, err);
    if (r < 0) {
        close(fd);
        return r;
    }
    return pstk__staging_publish(staging, name, &fd, err);
}

int pstk__staging_put(struct pstk__staging *staging, const char *name, const void *data,
                      uint64_t size, struct pstk_error *err)
{
    int r = remember(staging, name, err);
    return r < 0 ? r : put(staging, name, data, size, err);
}

static int copy_bytes(struct pstk__staging *staging, int in, const char *from, const char *name,
                      int out, struct pstk_error *err)
{
    uint8_t *buffer = malloc(COPY_SIZE);
    if (!buffer)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_WRITE, "%s: out of memory", staging->path);
    int r = 0;
    uint64_t offset = 0;
    while (r == 0) {
        ssize_t n = pread(in, buffer, COPY_SIZE, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            r = pstk__fail_errno(err, errno, PSTK_STAGE_READ, "%s: cannot read", from);
        if (n <= 0)
            break;
        r = pstk__staging_write(staging, name, out, buffer, (uint64_t)n, offset, err);
        offset += (uint64_t)n;
        if (r == 0 && staging->on_copy && staging->on_copy(staging->user, offset))
            r = PSTK_ECANCELED;
    }
    free(buffer);
    return r;
}

static int copy_file(struct pstk__staging *staging, const char *from, const char *name,
                     struct pstk_error *err)
{
    int in = pstk__file_open(from), out = -1;
    if (in < 0)
        return pstk__file_fail(err, -in, PSTK_STAGE_READ, from, from);
    int r = create(staging, name, &out, err);
    if (r == 0)
        r = copy_bytes(staging, in, from, name, out, err);
    close(in);
    if (r == 0)
        return pstk__staging_publish(staging, name, &out, err);
    if (out >= 0)
        close(out);
    return r;
}

int pstk__staging_link(struct pstk__staging *staging, const char *from, const char *name,
                       struct pstk_error *err)
{
    int r = remember(staging, name, err);
    if (r < 0)
        return r;
    /* Follow symbolic links: the new name must hold the shard's bytes, not a relative path. */
    if (linkat(AT_FDCWD, from, staging->dir, name, AT_SYMLINK_FOLLOW) == 0)
        return 0;
    switch (errno) {
    case EXDEV:
    case EPERM:
    case EMLINK:
    case EOPNOTSUPP:
    case ENOSYS:
    case EACCES:
        return copy_file(staging, from, name, err);
    case EEXIST:
        forget(staging, name); /* the file is not from this call; close must not remove it */
        return PSTK_EEXIST;
    default:
        return fail_path(staging, errno, "link", from, err);
    }
}

static int sync_directory(const struct pstk__staging *staging, struct pstk_error *err)
{
    if (fsync(staging->dir) < 0)
        return fail_path(staging, errno, "sync", "the directory", err);
    return 0;
}

/* Sync the parent, which has the new directory's entry. A parent that may not be read cannot be
 * synced; that is no error. */
static int sync_parent(const struct pstk__staging *staging, struct pstk_error *err)
{
    int fd = openat(staging->dir, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return errno == EACCES ? 0 : fail_path(staging, errno, "open", "the parent directory", err);
    int r = fsync(fd) < 0 ? fail_path(staging, errno, "sync", "the parent directory", err) : 0;
    close(fd);
    return r;
}

/* Remove the files of the older data set, once the new manifest has its name. */
static int clear_away(struct pstk__staging *staging, struct pstk_error *err)
{
    /* Until this sync a power failure may bring back the old manifest, which needs its shards. */
    int r = sync_directory(staging, err);
    for (uint64_t i = 0; r >= 0 && i < staging->old_names.n; i++)
        r = remove_file(staging, staging->old_names.names[i], err);
    if (r >= 0)
        r = remove_file(staging, PSTK__JOURNAL_FILE, err);
    return r < 0 ? r : 0;
}

static int write_manifest(struct pstk__staging *staging, const struct pstk__manifest *manifest,
                          struct pstk_error *err)
{
    char *bytes = NULL;
    uint64_t size = 0;
    int r = pstk__manifest_print(manifest, &bytes, &size, err);
    /* The shards' names must be on disk before a manifest that lists them. */
    if (r == 0)
        r = sync_directory(staging, err);
    if (r == 0 && staging->made)
        r = sync_parent(staging, err);
    if (r == 0)
        r = put(staging, MANIFEST, bytes, size, err);
    free(bytes);
    return r;
}

int pstk__staging_commit(struct pstk__staging *staging, const struct pstk__manifest *manifest,
                         struct pstk_error *err)
{
    int r = write_manifest(staging, manifest, err);
    if (r < 0)
        return r;
    staging->committed = 1;
    r = clear_away(staging, err);
    if (r < 0)
        pstk__fail(err, r, PSTK_STAGE_WRITE,
                   "%s; the data set is complete, but a power failure may undo it",
                   err ? err->message : "");
    return r;
}

static void remove_made(struct pstk__staging *staging)
{
    char temporary[256];
    for (uint64_t i = 0; i < staging->made_names.n; i++) {
        temporary_name(temporary, staging->made_names.names[i]);
        /* the next writer here removes the files that remain, which belong to no data set */
        (void)unlinkat(staging->dir, temporary, 0);
        (void)unlinkat(staging->dir, staging->made_names.names[i], 0);
    }
    (void)unlinkat(staging->dir, TEMPORARY MANIFEST, 0);
    (void)unlinkat(staging->dir, PSTK__JOURNAL_FILE, 0);
}

void pstk__staging_close(struct pstk__staging *staging)
{
    if (staging->dir >= 0) {
        if (!staging->committed && staging->has_journal)
            remove_made(staging);
        /* This runs under the lock. It is meant to fail if the directory contains files of the
         * user. */
        if (staging->made && !staging->committed)
            (void)rmdir(staging->path);
        pstk__journal_close(&staging->journal);
        close(staging->dir);
    }
    pstk__file_names_free(&staging->made_names);
    pstk__file_names_free(&staging->old_names);
    free(staging->path);
    memset(staging, 0, sizeof *staging);
    staging->dir = staging->journal.fd = -1;
}
