/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/journal.h"

#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME_SIZE 256          /* bytes of a line, newline included: NAME_MAX and one */
#define JOURNAL_MAX (1u << 30) /* bytes: four million shards */

int pstk__names_add(struct pstk__names *n, const char *name)
{
    if (n->n == n->capacity) {
        uint64_t capacity = n->capacity ? 2 * n->capacity : 64;
        char **names = realloc(n->names, capacity * sizeof *names);
        if (!names)
            return -ENOMEM;
        n->names = names;
        n->capacity = capacity;
    }
    size_t size = strlen(name) + 1;
    char *copy = malloc(size);
    if (!copy)
        return -ENOMEM;
    memcpy(copy, name, size);
    n->names[n->n++] = copy;
    return 0;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void pstk__names_sort(struct pstk__names *n)
{
    if (n->n)
        qsort(n->names, n->n, sizeof *n->names, compare_names);
}

int pstk__names_have(const struct pstk__names *n, const char *name)
{
    return n->n && bsearch(&name, n->names, n->n, sizeof *n->names, compare_names);
}

void pstk__names_free(struct pstk__names *n)
{
    for (uint64_t i = 0; i < n->n; i++)
        free(n->names[i]);
    free(n->names);
    *n = (struct pstk__names){0};
}

int pstk__journal_begin(struct pstk__journal *j, int dir, const char *path, struct pstk_error *err)
{
    j->size = 0;
    j->fd = openat(dir, PSTK__JOURNAL_FILE, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (j->fd < 0 && errno == EEXIST)
        return PSTK_EEXIST;
    /* Its name must be on the medium before that of any file that it lists. */
    if (j->fd < 0 || fsync(dir) < 0)
        return pstk__fail_errno(err, errno, PSTK_STAGE_WRITE, "%s: cannot make " PSTK__JOURNAL_FILE,
                                path);
    return 0;
}

int pstk__journal_add(struct pstk__journal *j, const char *name, const char *path,
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
        ssize_t n = pwrite(j->fd, line + at, size - at, (off_t)(j->size + at));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return pstk__fail_errno(err, n < 0 ? errno : EIO, PSTK_STAGE_WRITE,
                                    "%s: cannot write " PSTK__JOURNAL_FILE, path);
        at += (size_t)n;
    }
    j->size += size;
    return 0;
}

int pstk__journal_sync(struct pstk__journal *j, const char *path, struct pstk_error *err)
{
    if (fsync(j->fd) < 0)
        return pstk__fail_errno(err, errno, PSTK_STAGE_WRITE, "%s: cannot sync " PSTK__JOURNAL_FILE,
                                path);
    return 0;
}

void pstk__journal_close(struct pstk__journal *j)
{
    if (j->fd >= 0)
        close(j->fd);
    j->fd = -1;
}

/* Whole lines of `text` that can be names of ours become names. */
static int split_lines(char *text, uint64_t size, struct pstk__names *names)
{
    int r = 0;
    char *line = text, *end;
    while (r == 0 && (end = memchr(line, '\n', size - (uint64_t)(line - text)))) {
        *end = 0;
        /* Never a path, nor hidden, whatever stands there. */
        if (line[0] && line[0] != '.' && !strchr(line, '/'))
            r = pstk__names_add(names, line);
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

int pstk__journal_read(int dir, const char *path, struct pstk__names *names, struct pstk_error *err)
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
