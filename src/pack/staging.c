/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/staging.h"

#include "base/error.h"
#include "base/file.h"
#include "format/pstk/manifest.h"

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
#define OURS "{\"format\":\"penstock\"," /* how every manifest of ours begins */
#define COPY_SIZE (1u << 20)             /* bytes; large enough that system calls do not count */

static int ends_with(const char *name, const char *suffix)
{
    size_t n = strlen(name), m = strlen(suffix);
    return n > m && memcmp(name + n - m, suffix, m) == 0;
}

static int is_content(const char *name)
{
    return name[0] != '.' && (ends_with(name, ".pstk") || ends_with(name, ".zdict"));
}

static void temporary_name(char temporary[256], const char *name)
{
    snprintf(temporary, 256, TEMPORARY "%.*s", PSTK__STAGING_NAME - 1, name);
}

static int fail_path(const struct pstk__staging *s, int native, const char *what, const char *name,
                     struct pstk_error *err)
{
    const char *advice =
        native == ENOSPC || native == EDQUOT ? "; free some space and run again" : "";
    return pstk__fail_errno(err, native, PSTK_STAGE_WRITE, "%s: cannot %s %s%s", s->path, what,
                            name, advice);
}

/* Directory entries, from the start: a stream of its own, since a dup would share the position. */
static DIR *open_entries(const struct pstk__staging *s)
{
    int fd = openat(s->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    DIR *d = fdopendir(fd);
    if (!d) {
        int native = errno;
        close(fd);
        errno = native;
    }
    return d;
}

/* N of "STEM.gN.pstk", 0 where there is none. */
static uint32_t generation_of(const char *name)
{
    const char *end = strrchr(name, '.');
    const char *p = end;
    while (p > name && p[-1] >= '0' && p[-1] <= '9')
        p--;
    if (p == end || p - name < 2 || p[-1] != 'g' || p[-2] != '.')
        return 0;
    unsigned long n = strtoul(p, NULL, 10);
    return n < UINT32_MAX - 1 ? (uint32_t)n : 0;
}

/* What stands in the directory. */
struct contents {
    int manifest;        /* 1: there is a manifest.json */
    int content;         /* 1: something is named as a shard or dictionary, whatever it is */
    uint32_t generation; /* highest of those */
    char foreign[256];   /* first entry that is neither manifest nor journal, or "" */
};

static int scan(const struct pstk__staging *s, struct contents *c, struct pstk_error *err)
{
    memset(c, 0, sizeof *c);
    DIR *d = open_entries(s);
    if (!d)
        return fail_path(s, errno, "read", "the directory", err);
    struct dirent *e;
    while (errno = 0, (e = readdir(d)) != NULL) {
        const char *name = e->d_name;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
            strcmp(name, PSTK__JOURNAL_FILE) == 0)
            continue;
        if (strcmp(name, MANIFEST) == 0) {
            c->manifest = 1;
            continue;
        }
        if (is_content(name)) {
            uint32_t generation = generation_of(name);
            c->content = 1;
            c->generation = generation > c->generation ? generation : c->generation;
        }
        if (!c->foreign[0])
            snprintf(c->foreign, sizeof c->foreign, "%s", name);
    }
    int native = errno;
    closedir(d);
    return native ? fail_path(s, native, "read", "the directory", err) : 0;
}

/* 1: removed; 0: there was none. A directory of that name is a user's and stays. */
static int remove_file(const struct pstk__staging *s, const char *name, struct pstk_error *err)
{
    if (unlinkat(s->dir, name, 0) == 0)
        return 1;
    if (errno == ENOENT || errno == EISDIR || errno == EPERM)
        return 0;
    return fail_path(s, errno, "remove the leftover file", name, err);
}

/* Files of the data set that stands here, by its manifest. */
static int list_old(struct pstk__staging *s, struct pstk_error *err)
{
    struct pstk__manifest m;
    struct pstk_error why;
    pstk_error_init(&why, sizeof why);
    if (pstk__manifest_load(&m, s->path, &why) < 0)
        return pstk__fail(
            err, PSTK_EEXIST, PSTK_STAGE_WRITE,
            "%s: holds a data set whose manifest cannot be read, so its files are not "
            "known: remove the directory yourself, or choose another (%s)",
            s->path, why.message);
    int r = 0;
    for (uint32_t i = 0; r == 0 && i < m.n_shards; i++)
        r = pstk__names_add(&s->old_names, m.shards[i].file);
    for (uint32_t i = 0; r == 0 && i < m.n_dictionaries; i++)
        r = pstk__names_add(&s->old_names, m.dictionaries[i].file);
    pstk__manifest_free(&m);
    pstk__names_sort(&s->old_names);
    return r < 0 ? pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_WRITE, "%s: out of memory", s->path) : 0;
}

/* Remove what the journal of a killed writer lists and the manifest here does not, then it. */
static int sweep(struct pstk__staging *s, const struct pstk__names *left, struct pstk_error *err)
{
    int r = 0;
    char temporary[256];
    for (uint64_t i = 0; r >= 0 && i < left->n; i++) {
        if (pstk__names_have(&s->old_names, left->names[i]))
            continue;
        temporary_name(temporary, left->names[i]);
        for (int k = 0; r >= 0 && k < 2; k++) {
            r = remove_file(s, k ? temporary : left->names[i], err);
            s->n_leftovers += r == 1;
        }
    }
    if (r >= 0)
        r = remove_file(s, TEMPORARY MANIFEST, err);
    if (r >= 0)
        r = remove_file(s, PSTK__JOURNAL_FILE, err);
    return r < 0 ? r : 0;
}

/* A manifest.json of some other program must not be replaced. Damage does not matter here: ours
 * begins with its format. */
static int check_manifest_is_ours(const struct pstk__staging *s, struct pstk_error *err)
{
    char text[256];
    int fd = openat(s->dir, MANIFEST, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return fail_path(s, errno, "open", MANIFEST, err);
    ssize_t n = pread(fd, text, sizeof text - 1, 0);
    int native = errno;
    close(fd);
    if (n < 0)
        return fail_path(s, native, "read", MANIFEST, err);
    text[n] = 0;
    if (strncmp(text, OURS, sizeof OURS - 1) != 0)
        return pstk__fail(err, PSTK_EEXIST, PSTK_STAGE_WRITE,
                          "%s: its manifest.json is not penstock's, so it is not replaced; choose "
                          "another directory",
                          s->path);
    return 0;
}

/* 1: locked; 0: the file system has no locks. */
static int lock(struct pstk__staging *s, struct pstk_error *err)
{
    struct stat here, there;
    int r;
    while ((r = flock(s->dir, LOCK_EX | LOCK_NB)) < 0 && errno == EINTR)
        ;
    if (r < 0 && errno == EWOULDBLOCK) {
        s->made = 0;
        return pstk__fail(err, PSTK_EBUSY, PSTK_STAGE_WRITE,
                          "%s: another writer is at work in this directory; wait for it, or choose "
                          "another directory",
                          s->path);
    }
    int locked = r == 0; /* other failures: file systems without locks (Lustre without -o flock) */
    if (fstat(s->dir, &here) < 0)
        return fail_path(s, errno, "look at", "the directory", err);
    if (stat(s->path, &there) < 0 || here.st_ino != there.st_ino || here.st_dev != there.st_dev) {
        s->made = 0;
        return pstk__fail(err, PSTK_EBUSY, PSTK_STAGE_WRITE,
                          "%s: another writer is removing this directory; run again", s->path);
    }
    return locked;
}

/* Replace no data set. A writer that was killed just after its commit left its journal, and perhaps
 * files of the set before: nobody else would remove them. */
static int refuse(struct pstk__staging *s, int locked, struct pstk_error *err)
{
    struct pstk__names left = {0};
    if (locked && list_old(s, NULL) == 0 && pstk__journal_read(s->dir, s->path, &left, NULL) == 1)
        (void)sweep(s, &left, NULL); /* what stays is removed by the next writer */
    pstk__names_free(&left);
    /* The bindings look for "set overwrite" in it, and say how that is done there. */
    return pstk__fail(err, PSTK_EEXIST, PSTK_STAGE_WRITE,
                      "%s: holds a data set already; set overwrite to replace it, or choose "
                      "another directory",
                      s->path);
}

/* Look at what stands here, remove what a killed writer left, refuse what is in the way. */
static int take_over(struct pstk__staging *s, int overwrite, int locked, struct pstk_error *err)
{
    struct contents c;
    struct pstk__names left = {0};
    int r = scan(s, &c, err);
    if (r == 0 && c.manifest)
        r = check_manifest_is_ours(s, err);
    if (r == 0 && c.manifest && !overwrite)
        r = refuse(s, locked, err);
    if (r == 0 && c.manifest)
        r = list_old(s, err);
    if (r == 0)
        r = pstk__journal_read(s->dir, s->path, &left, err);
    if (r == 1 && !locked)
        r = pstk__fail(err, PSTK_EBUSY, PSTK_STAGE_WRITE,
                       "%s: another writer may be at work here (this file system has no locks to "
                       "tell); if none is, remove " PSTK__JOURNAL_FILE " and what it lists",
                       s->path);
    if (r == 1)
        r = sweep(s, &left, err);
    pstk__names_free(&left);
    if (r == 0)
        r = scan(s, &c, err);
    if (r == 0 && !c.manifest && c.foreign[0])
        r = pstk__fail(
            err, PSTK_EEXIST, PSTK_STAGE_WRITE,
            "%s: is not empty and no data set (it holds %.200s); choose another directory", s->path,
            c.foreign);
    s->replaces = c.manifest;
    s->generation = c.content ? c.generation + 1 : 0;
    return r;
}

/* From here on a killed writer's files can be told from others. */
static int begin_journal(struct pstk__staging *s, struct pstk_error *err)
{
    int r = pstk__journal_begin(&s->journal, s->dir, s->path, err);
    if (r == PSTK_EEXIST)
        return pstk__fail(err, PSTK_EBUSY, PSTK_STAGE_WRITE,
                          "%s: another writer began in this directory at the same time", s->path);
    s->has_journal = s->journal.fd >= 0;
    for (uint64_t i = 0; r == 0 && i < s->old_names.n; i++)
        r = pstk__journal_add(&s->journal, s->old_names.names[i], s->path, err);
    return r == 0 ? pstk__journal_sync(&s->journal, s->path, err) : r;
}

int pstk__staging_open(struct pstk__staging *s, const char *path, int overwrite,
                       struct pstk_error *err)
{
    memset(s, 0, sizeof *s);
    s->dir = s->journal.fd = -1;
    size_t length = strlen(path) + 1;
    s->path = malloc(length);
    if (!s->path)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_WRITE, "%s: out of memory", path);
    memcpy(s->path, path, length);
    int r = 0;
    if (mkdir(path, 0777) == 0)
        s->made = 1;
    else if (errno != EEXIST)
        r = fail_path(s, errno, "make", "the directory", err);
    if (r == 0) {
        s->dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (s->dir < 0)
            r = fail_path(s, errno, "open", "the directory", err);
    }
    int locked = r == 0 ? lock(s, err) : r;
    if (locked >= 0)
        r = take_over(s, overwrite, locked, err);
    else
        r = locked;
    if (r == 0)
        r = begin_journal(s, err);
    if (r < 0)
        pstk__staging_close(s);
    return r;
}

int pstk__staging_name(const struct pstk__staging *s, char *name, size_t size, const char *stem,
                       const char *suffix, struct pstk_error *err)
{
    int n = s->generation ? snprintf(name, size, "%s.g%u%s", stem, s->generation, suffix)
                          : snprintf(name, size, "%s%s", stem, suffix);
    if (n < 0 || (size_t)n >= size)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_WRITE, "%s: file name %s is too long",
                          s->path, stem);
    return 0;
}

/* Remember a file before it exists, so that close removes it whatever happens then, and the next
 * staging does if we are killed. */
static int remember(struct pstk__staging *s, const char *name, struct pstk_error *err)
{
    if (pstk__names_add(&s->made_names, name) < 0)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_WRITE, "%s: out of memory", s->path);
    int r = pstk__journal_add(&s->journal, name, s->path, err);
    return r == 0 ? pstk__journal_sync(&s->journal, s->path, err) : r;
}

/* The file that was remembered last is not ours after all. */
static void forget(struct pstk__staging *s)
{
    free(s->made_names.names[--s->made_names.n]);
}

static int create(struct pstk__staging *s, const char *name, int *fd, struct pstk_error *err)
{
    char temporary[256];
    temporary_name(temporary, name);
    *fd = openat(s->dir, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (*fd >= 0)
        return 0;
    int r = fail_path(s, errno, "create", temporary, err);
    if (s->made_names.n && strcmp(s->made_names.names[s->made_names.n - 1], name) == 0)
        forget(s);
    return r;
}

int pstk__staging_create(struct pstk__staging *s, const char *name, int *fd, struct pstk_error *err)
{
    *fd = -1;
    int r = remember(s, name, err);
    return r < 0 ? r : create(s, name, fd, err);
}

int pstk__staging_write(const struct pstk__staging *s, const char *name, int fd, const void *data,
                        uint64_t size, uint64_t offset, struct pstk_error *err)
{
    const uint8_t *p = data;
    while (size > 0) {
        size_t piece = size < (1u << 30) ? (size_t)size : 1u << 30;
        ssize_t n = pwrite(fd, p, piece, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return fail_path(s, n < 0 ? errno : EIO, "write", name, err);
        p += n;
        offset += (uint64_t)n;
        size -= (uint64_t)n;
    }
    return 0;
}

/* close once, whatever it says; some file systems tell of a failed write only there. */
static int close_file(const struct pstk__staging *s, const char *name, int *fd,
                      struct pstk_error *err)
{
    int r = close(*fd);
    *fd = -1;
    return r < 0 && errno != EINTR ? fail_path(s, errno, "close", name, err) : 0;
}

/* Give a finished file its name. Only a manifest may replace one; what else has the name already is
 * a user's and stays. */
static int rename_file(const struct pstk__staging *s, const char *temporary, const char *name,
                       struct pstk_error *err)
{
    if (strcmp(name, MANIFEST) == 0)
        return renameat(s->dir, temporary, s->dir, name) < 0
                   ? fail_path(s, errno, "rename to", name, err)
                   : 0;
    if (renameat2(s->dir, temporary, s->dir, name, RENAME_NOREPLACE) == 0)
        return 0;
    /* File systems without the flag: a link refuses to replace, too. */
    if ((errno != EINVAL && errno != ENOSYS) || linkat(s->dir, temporary, s->dir, name, 0) < 0 ||
        unlinkat(s->dir, temporary, 0) < 0)
        return fail_path(s, errno, "rename to", name, err);
    return 0;
}

static int finish(struct pstk__staging *s, const char *name, int *fd, struct pstk_error *err)
{
    char temporary[256];
    temporary_name(temporary, name);
    if (fsync(*fd) < 0) {
        int r = fail_path(s, errno, "sync", temporary, err);
        close(*fd);
        *fd = -1;
        return r;
    }
    int r = close_file(s, temporary, fd, err);
    return r < 0 ? r : rename_file(s, temporary, name, err);
}

int pstk__staging_publish(struct pstk__staging *s, const char *name, int *fd,
                          struct pstk_error *err)
{
    return finish(s, name, fd, err);
}

static int put(struct pstk__staging *s, const char *name, const void *data, uint64_t size,
               struct pstk_error *err)
{
    int fd;
    int r = create(s, name, &fd, err);
    if (r < 0)
        return r;
    r = pstk__staging_write(s, name, fd, data, size, 0, err);
    if (r < 0) {
        close(fd);
        return r;
    }
    return finish(s, name, &fd, err);
}

int pstk__staging_put(struct pstk__staging *s, const char *name, const void *data, uint64_t size,
                      struct pstk_error *err)
{
    int r = remember(s, name, err);
    return r < 0 ? r : put(s, name, data, size, err);
}

static int copy_bytes(struct pstk__staging *s, int in, const char *from, const char *name, int out,
                      struct pstk_error *err)
{
    uint8_t *buffer = malloc(COPY_SIZE);
    if (!buffer)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_WRITE, "%s: out of memory", s->path);
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
        r = pstk__staging_write(s, name, out, buffer, (uint64_t)n, offset, err);
        offset += (uint64_t)n;
        if (r == 0 && s->on_copy && s->on_copy(s->user, offset))
            r = PSTK_ECANCELED;
    }
    free(buffer);
    return r;
}

static int copy_file(struct pstk__staging *s, const char *from, const char *name,
                     struct pstk_error *err)
{
    int in = pstk__file_open(from), out = -1;
    if (in < 0)
        return pstk__file_fail(err, -in, PSTK_STAGE_READ, from, from);
    int r = create(s, name, &out, err);
    if (r == 0)
        r = copy_bytes(s, in, from, name, out, err);
    close(in);
    if (r == 0)
        return finish(s, name, &out, err);
    if (out >= 0)
        close(out);
    return r;
}

int pstk__staging_link(struct pstk__staging *s, const char *from, const char *name,
                       struct pstk_error *err)
{
    int r = remember(s, name, err);
    if (r < 0)
        return r;
    /* Following a symbolic link: it is the shard's bytes that must stay, not a relative path. */
    if (linkat(AT_FDCWD, from, s->dir, name, AT_SYMLINK_FOLLOW) == 0)
        return 0;
    switch (errno) {
    case EXDEV:
    case EPERM:
    case EMLINK:
    case EOPNOTSUPP:
    case ENOSYS:
    case EACCES:
        return copy_file(s, from, name, err);
    case EEXIST:
        forget(s); /* it is not this call's, so close must not remove it for this call */
        return PSTK_EEXIST;
    default:
        return fail_path(s, errno, "link", from, err);
    }
}

static int sync_directory(const struct pstk__staging *s, struct pstk_error *err)
{
    if (fsync(s->dir) < 0)
        return fail_path(s, errno, "sync", "the directory", err);
    return 0;
}

/* A directory that was just made is itself an entry to be kept. A parent that may not be read
 * cannot be synced; that is no reason to fail. */
static int sync_parent(const struct pstk__staging *s, struct pstk_error *err)
{
    int fd = openat(s->dir, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return errno == EACCES ? 0 : fail_path(s, errno, "open", "the parent directory", err);
    int r = fsync(fd) < 0 ? fail_path(s, errno, "sync", "the parent directory", err) : 0;
    close(fd);
    return r;
}

/* After the manifest has its name: what it replaced goes. */
static int clear_away(struct pstk__staging *s, struct pstk_error *err)
{
    /* Until this sync a power failure may bring the old manifest back: its shards stay till then.
     */
    int r = sync_directory(s, err);
    for (uint64_t i = 0; r >= 0 && i < s->old_names.n; i++)
        r = remove_file(s, s->old_names.names[i], err);
    if (r >= 0)
        r = remove_file(s, PSTK__JOURNAL_FILE, err);
    return r < 0 ? r : 0;
}

int pstk__staging_commit(struct pstk__staging *s, const void *manifest, uint64_t size,
                         struct pstk_error *err)
{
    /* The shards' names must be on the medium before a manifest that lists them. */
    int r = sync_directory(s, err);
    if (r == 0 && s->made)
        r = sync_parent(s, err);
    if (r == 0)
        r = put(s, MANIFEST, manifest, size, err);
    if (r < 0)
        return r;
    s->committed = 1;
    r = clear_away(s, err);
    if (r < 0)
        pstk__fail(err, r, PSTK_STAGE_WRITE,
                   "%s; the data set is whole all the same, but a power failure may undo it",
                   err ? err->message : "");
    return r;
}

static void remove_made(struct pstk__staging *s)
{
    char temporary[256];
    for (uint64_t i = 0; i < s->made_names.n; i++) {
        temporary_name(temporary, s->made_names.names[i]);
        /* What cannot be removed belongs to no data set; the next writer here removes it. */
        (void)unlinkat(s->dir, temporary, 0);
        (void)unlinkat(s->dir, s->made_names.names[i], 0);
    }
    (void)unlinkat(s->dir, TEMPORARY MANIFEST, 0);
    (void)unlinkat(s->dir, PSTK__JOURNAL_FILE, 0);
}

void pstk__staging_close(struct pstk__staging *s)
{
    if (s->dir >= 0) {
        if (!s->committed && s->has_journal)
            remove_made(s);
        /* Under the lock, and refused when something of the user's is in it, as it must be. */
        if (s->made && !s->committed)
            (void)rmdir(s->path);
        pstk__journal_close(&s->journal);
        close(s->dir);
    }
    pstk__names_free(&s->made_names);
    pstk__names_free(&s->old_names);
    free(s->path);
    memset(s, 0, sizeof *s);
    s->dir = s->journal.fd = -1;
}
