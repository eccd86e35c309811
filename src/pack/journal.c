/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/journal.h"

#include "base/error.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME_SIZE 256          /* bytes of a line: NAME_MAX and a newline */
#define JOURNAL_MAX (1u << 30) /* bytes of a journal; enough for four million shards */

static int fail_path(int native, const char *what, const char *path, struct pstk_error *err)
{
    return pstk__fail_errno(err, native, PSTK_STAGE_WRITE, "%s: cannot %s " PSTK__JOURNAL_FILE "%s",
                            path, what, pstk__file_write_advice(native));
}

int pstk__journal_begin(struct pstk__journal *journal, int dir, const char *path,
                        struct pstk_error *err)
{
    journal->size = 0;
    journal->fd = openat(dir, PSTK__JOURNAL_FILE, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (journal->fd < 0 && errno == EEXIST)
        return PSTK_EEXIST;
    /* The journal's own name must be on disk before the name of any file in it. */
    if (journal->fd < 0 || fsync(dir) < 0)
        return fail_path(errno, "make", path, err);
    return 0;
}

int pstk__journal_add(struct pstk__journal *journal, const char *name, const char *path,
                      struct pstk_error *err)
{
    char line[NAME_SIZE];
    size_t size = strlen(name) + 1;
    if (size > sizeof line)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_WRITE, "%s: file name %s is too long", path,
                          name);
    memcpy(line, name, size - 1);
    line[size - 1] = '\n';
    for (size_t at = 0; at < size;) {
        ssize_t n = pwrite(journal->fd, line + at, size - at, (off_t)(journal->size + at));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return fail_path(n < 0 ? errno : EIO, "write", path, err);
        at += (size_t)n;
    }
    journal->size += size;
    return 0;
}

int pstk__journal_sync(struct pstk__journal *journal, const char *path, struct pstk_error *err)
{
    if (fsync(journal->fd) < 0)
        return fail_path(errno, "sync", path, err);
    return 0;
}

void pstk__journal_close(struct pstk__journal *journal)
{
    if (journal->fd >= 0)
        close(journal->fd);
    journal->fd = -1;
}

/* Collect the complete lines of `text` that can be names of penstock's files. */
static int split_lines(char *text, uint64_t size, struct pstk__file_names *names)
{
    int r = 0;
    char *line = text, *end;
    while (r == 0 && (end = memchr(line, '\n', size - (uint64_t)(line - text)))) {
        *end = 0;
        /* Whatever the journal contains, never accept a path or a hidden file. */
        if (line[0] && line[0] != '.' && !strchr(line, '/'))
            r = pstk__file_names_add(names, line);
        line = end + 1;
    }
    return r;
}

static int read_whole(int fd, char *text, uint64_t size)
{
    for (uint64_t at = 0; at < size;) {
        ssize_t n = pread(fd, text + at, size - at, (off_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -EIO;
        at += (uint64_t)n;
    }
    return 0;
}

int pstk__journal_read(int dir, const char *path, struct pstk__file_names *names,
                       struct pstk_error *err)
{
    struct stat st;
    int fd = openat(dir, PSTK__JOURNAL_FILE, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT)
        return 0;
    int r = fd < 0 || fstat(fd, &st) < 0 ? -errno : 0;
    if (r == 0 && (!S_ISREG(st.st_mode) || st.st_size > JOURNAL_MAX))
        r = -EINVAL;
    char *text = NULL;
    if (r == 0 && !(text = malloc((size_t)st.st_size + 1)))
        r = -ENOMEM;
    if (r == 0)
        r = read_whole(fd, text, (uint64_t)st.st_size);
    if (r == 0)
        r = split_lines(text, (uint64_t)st.st_size, names);
    free(text);
    if (fd >= 0)
        close(fd);
    return r < 0 ? pstk__fail_errno(err, -r, PSTK_STAGE_WRITE,
                                    "%s: cannot read " PSTK__JOURNAL_FILE
                                    ", the list of what a stopped writer left",
                                    path)
                 : 1;
}
