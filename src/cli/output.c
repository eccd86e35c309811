/* SPDX-License-Identifier: Apache-2.0 */
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"
#include "interrupt.h"
#include "message.h"

#define MAX_LINKS 40    /* symbolic links in a row, as the kernel has it */
#define MAX_PATH 4096   /* bytes of what a symbolic link holds */
#define MAX_TRIES 100   /* names for a temporary file */
#define FD_LINK_SIZE 32 /* bytes of /proc/self/fd/N */

int output_stands(const char *path)
{
    char *manifest;
    if (asprintf(&manifest, "%s/manifest.json", path) < 0)
        message_no_memory();
    int found = access(manifest, F_OK) == 0;
    free(manifest);
    return found;
}

int output_refuse(const struct pstk_error *err, const char *path)
{
    if (err->code == PSTK_EEXIST && strstr(err->message, "set overwrite"))
        return message_usage("%s is a data set already; --overwrite replaces it", path);
    return message_refuse(err, path);
}

/* ---- one file -------------------------------------------------------------------------------- */

/* Bytes of the folder in a path, the last slash included; 0: the current one. */
static int folder_size(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (int)(slash + 1 - path) : 0;
}

/* Return the path that the symbolic links lead to, also where nothing is there yet; owned. */
static char *followed(const char *path)
{
    char *at = strdup(path);
    for (int n = 0; at && n < MAX_LINKS; n++) {
        char link[MAX_PATH], *next;
        ssize_t size = readlink(at, link, sizeof link - 1);
        if (size < 0)
            return at;
        link[size] = 0;
        if (asprintf(&next, "%.*s%s", link[0] == '/' ? 0 : folder_size(at), at, link) < 0)
            next = NULL;
        free(at);
        at = next;
    }
    if (!at)
        message_no_memory();
    return at;
}

/* The stream's write: through EINTR and short writes, until a signal asks for the end. Returns 0 on
 * failure, as fopencookie wants it. */
static ssize_t write_bytes(void *cookie, const char *bytes, size_t size)
{
    struct output_file *f = cookie;
    size_t done = 0;
    while (done < size && !f->native) {
        ssize_t n = interrupt_seen() ? -1 : write(f->fd, bytes + done, size - done);
        if (n > 0)
            done += (size_t)n;
        else if (interrupt_seen())
            f->native = EINTR;
        else if (n == 0 || errno != EINTR)
            f->native = n == 0 ? EIO : errno;
    }
    return f->native ? 0 : (ssize_t)size;
}

static void open_stream(struct output_file *f)
{
    f->stream = fopencookie(f, "w", (cookie_io_functions_t){.write = write_bytes});
    if (!f->stream)
        message_no_memory();
}

static int refuse(const struct output_file *f, int native)
{
    char advice[MESSAGE_ADVICE_SIZE];
    message_say("cannot write %s: %s%s", f->path, strerror(native), message_advice(native, advice));
    return message_status_of_path(native);
}

static int open_straight(struct output_file *f)
{
    do
        f->fd = open(f->path, O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOCTTY);
    while (f->fd < 0 && errno == EINTR && !interrupt_seen()); /* a FIFO waits for its reader */
    if (f->fd < 0 && interrupt_seen())
        return interrupt_say("nothing was written");
    return f->fd < 0 ? refuse(f, errno) : 0;
}

/* The mode and owner of the file that is replaced, as far as this user may set them. */
static void take_mode(int fd, const struct stat *old)
{
    int has_group =
        fchown(fd, old->st_uid, old->st_gid) == 0 || fchown(fd, (uid_t)-1, old->st_gid) == 0;
    /* What the old group might do, another one may not. */
    (void)fchmod(fd, old->st_mode & (has_group ? 0777 : 0707));
}

/* What leads to an open file that has no name. */
static const char *fd_link(int fd, char text[FD_LINK_SIZE])
{
    snprintf(text, FD_LINK_SIZE, "/proc/self/fd/%d", fd);
    return text;
}

/* Open a file without a name, so that a kill leaves nothing of it. Leaves fd -1 where the file
 * system has no such files, or where there is no /proc to name it by. */
static void open_nameless(struct output_file *f, const char *folder)
{
    char text[FD_LINK_SIZE];
    f->fd = open(folder, O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
    if (f->fd < 0 || access(fd_link(f->fd, text), F_OK) == 0)
        return;
    close(f->fd);
    f->fd = -1;
}

/* Make a temporary name of the target's folder. */
static void set_temporary(struct output_file *f, int n)
{
    free(f->temporary);
    if (asprintf(&f->temporary, "%.*s.penstock-%ld-%d", folder_size(f->target), f->target,
                 (long)getpid(), n) < 0)
        message_no_memory();
}

static void drop_temporary(struct output_file *f)
{
    free(f->temporary);
    f->temporary = NULL;
}

static int open_named(struct output_file *f)
{
    for (int n = 0; n < MAX_TRIES; n++) {
        set_temporary(f, n);
        f->fd = open(f->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (f->fd >= 0)
            return 0;
        if (errno != EEXIST)
            break;
    }
    const int native = errno;
    drop_temporary(f);
    return native;
}

static int open_temporary(struct output_file *f)
{
    char *folder =
        folder_size(f->target) ? strndup(f->target, (size_t)folder_size(f->target)) : strdup(".");
    if (!folder)
        message_no_memory();
    open_nameless(f, folder);
    const int native = f->fd < 0 ? open_named(f) : 0;
    if (native) {
        const int denied = native == EACCES || native == EPERM || native == EROFS;
        char advice[MESSAGE_ADVICE_SIZE];
        message_say("cannot write %s: no file can be made in the folder %s: %s%s%s", f->path,
                    folder, strerror(native), message_advice(native, advice),
                    denied && f->replaces ? "; `-o - > FILE` writes into the file itself" : "");
    }
    free(folder);
    return native ? message_status_of_path(native) : 0;
}

/* Is the file that path leads to still to be found under the name `target`? One that was removed
 * while it is open (/dev/stdout of a shell) is not. */
static int has_name(const char *target, const struct stat *file)
{
    struct stat st;
    return lstat(target, &st) == 0 && st.st_dev == file->st_dev && st.st_ino == file->st_ino;
}

static int open_file(struct output_file *f)
{
    struct stat st;
    f->replaces = stat(f->path, &st) == 0;
    if (!f->replaces && errno != ENOENT)
        return refuse(f, errno);
    if (f->replaces && S_ISDIR(st.st_mode))
        return message_usage("cannot write %s: it is a folder; name a file", f->path);
    if (f->replaces && !S_ISREG(st.st_mode))
        return open_straight(f);
    f->target = followed(f->path);
    if (f->replaces && !has_name(f->target, &st)) {
        free(f->target);
        f->target = NULL;
        return open_straight(f);
    }
    int status = open_temporary(f);
    if (status == 0 && f->replaces)
        take_mode(f->fd, &st);
    return status;
}

int output_file_open(struct output_file *f, const char *path)
{
    *f = (struct output_file){.path = path, .fd = STDOUT_FILENO};
    int status = strcmp(path, "-") == 0 ? 0 : open_file(f);
    if (status == 0)
        open_stream(f);
    else
        free(f->target);
    return status;
}

/* Flush and sync; what is on no medium cannot be synced. Returns 0, or an errno value. */
static int flush(struct output_file *f)
{
    if (fclose(f->stream) != 0 && !f->native)
        f->native = errno;
    f->stream = NULL;
    if (!f->native && f->target && fsync(f->fd) < 0 && errno != EINVAL && errno != ENOTSUP)
        f->native = errno;
    return f->native;
}

static int link_as(int fd, const char *path)
{
    char text[FD_LINK_SIZE];
    return linkat(AT_FDCWD, fd_link(fd, text), AT_FDCWD, path, AT_SYMLINK_FOLLOW) < 0 ? errno : 0;
}

/* Give a file without a name its own, or, where another has that one, a temporary name for the
 * rename that replaces it. Returns 0, or an errno value. */
static int give_name(struct output_file *f, int fd)
{
    int native = link_as(fd, f->target);
    if (native != EEXIST)
        return native;
    for (int n = 0; native == EEXIST && n < MAX_TRIES; n++) {
        set_temporary(f, n);
        native = link_as(fd, f->temporary);
    }
    if (native)
        drop_temporary(f);
    return native;
}

/* Close, and give the file its name. Returns 0, or an errno value. */
static int finish(struct output_file *f)
{
    /* A file without a name is gone with its last descriptor. */
    const int is_nameless = f->target && !f->temporary;
    const int held = is_nameless ? fcntl(f->fd, F_DUPFD_CLOEXEC, 0) : -1;
    if (is_nameless && held < 0 && !f->native)
        f->native = errno;
    /* Some file systems report a failed write only here. Standard output is closed by
     * message_finish. */
    if (f->fd != STDOUT_FILENO && close(f->fd) < 0 && errno != EINTR && !f->native)
        f->native = errno;
    if (!f->native && f->target && interrupt_seen())
        f->native = EINTR;
    if (!f->native && is_nameless)
        f->native = give_name(f, held);
    if (!f->native && f->temporary && rename(f->temporary, f->target) < 0)
        f->native = errno;
    if (held >= 0)
        close(held);
    return f->native;
}

/* What is at the path after a failure. */
static const char *outcome(const struct output_file *f)
{
    return !f->target     ? "it was not written to its end"
           : !f->replaces ? "no file was made"
                          : "the file there is as it was";
}

int output_file_close(struct output_file *f, int status)
{
    char advice[MESSAGE_ADVICE_SIZE];
    const char *name = strcmp(f->path, "-") == 0 ? "standard output" : f->path;
    if (status && !f->native)
        f->native = ECANCELED; /* the caller gave its message */
    flush(f);
    finish(f);
    if (f->native && f->temporary)
        (void)unlink(f->temporary); /* ours, by O_EXCL; one that cannot be removed does no harm */
    if (f->native == EINTR && interrupt_seen()) {
        message_say("interrupted: %s: %s", name, outcome(f));
        status = interrupt_status();
    } else if (f->native && f->native != ECANCELED) {
        message_say("cannot write %s: %s%s; %s", name, strerror(f->native),
                    message_advice(f->native, advice), outcome(f));
        status = STATUS_DAMAGED;
    }
    free(f->target);
    free(f->temporary);
    return status;
}
