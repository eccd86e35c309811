/* SPDX-License-Identifier: Apache-2.0 */
#include "ui/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"
#include "ui/interrupt.h"
#include "ui/message.h"
#include "ui/status.h"

#define MAX_LINKS 40    /* symbolic links in a row, as in the kernel */
#define MAX_PATH 4096   /* bytes of a symbolic link's target */
#define MAX_TRIES 100   /* names for a temporary file */
#define FD_LINK_SIZE 32 /* bytes of /proc/self/fd/N */

/* Return the bytes of the folder in a path, with the last slash; 0: the current folder. */
static int folder_size(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (int)(slash + 1 - path) : 0;
}

/* Follow the symbolic links of a path. Returns the path they lead to, which need not exist;
 * owned. */
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

/* Write for the stream: retry after EINTR and short writes, until a signal asks for the end.
 * Returns 0 on failure, as fopencookie requires. */
static ssize_t write_bytes(void *cookie, const char *bytes, size_t size)
{
    struct output_file *file = cookie;
    size_t done = 0;
    while (done < size && !file->native) {
        ssize_t n = interrupt_seen() ? -1 : write(file->fd, bytes + done, size - done);
        if (n > 0)
            done += (size_t)n;
        else if (interrupt_seen())
            file->native = EINTR;
        else if (n == 0 || errno != EINTR)
            file->native = n == 0 ? EIO : errno;
    }
    return file->native ? 0 : (ssize_t)size;
}

static void open_stream(struct output_file *file)
{
    file->stream = fopencookie(file, "w", (cookie_io_functions_t){.write = write_bytes});
    if (!file->stream)
        message_no_memory();
}

static int refuse(const struct output_file *file, int native)
{
    char advice[MESSAGE_ADVICE_SIZE];
    message_say("cannot write %s: %s%s", file->path, strerror(native),
                message_advice(native, advice));
    return status_of_path(native);
}

static int open_straight(struct output_file *file)
{
    do
        file->fd = open(file->path, O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOCTTY);
    while (file->fd < 0 && errno == EINTR && !interrupt_seen()); /* a FIFO waits for its reader */
    if (file->fd < 0 && interrupt_seen())
        return interrupt_say("nothing was written");
    return file->fd < 0 ? refuse(file, errno) : 0;
}

/* Set the mode and owner of the replaced file, as far as this user may. */
static void take_mode(int fd, const struct stat *old)
{
    int has_group =
        fchown(fd, old->st_uid, old->st_gid) == 0 || fchown(fd, (uid_t)-1, old->st_gid) == 0;
    /* The rights of the old group are dropped if the new group differs. */
    (void)fchmod(fd, old->st_mode & (has_group ? 0777 : 0707));
}

/* Return the path of an open file that has no name. */
static const char *fd_link(int fd, char text[FD_LINK_SIZE])
{
    snprintf(text, FD_LINK_SIZE, "/proc/self/fd/%d", fd);
    return text;
}

/* Open a file without a name, so that nothing is left after a kill. Leaves fd -1 when the file
 * system has no such files, or when there is no /proc to link the file by. */
static void open_nameless(struct output_file *file, const char *folder)
{
    char text[FD_LINK_SIZE];
    file->fd = open(folder, O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
    if (file->fd < 0 || access(fd_link(file->fd, text), F_OK) == 0)
        return;
    close(file->fd);
    file->fd = -1;
}

/* Set a temporary name in the target's folder. */
static void set_temporary(struct output_file *file, int n)
{
    free(file->temporary);
    if (asprintf(&file->temporary, "%.*s.penstock-%ld-%d", folder_size(file->target), file->target,
                 (long)getpid(), n) < 0)
        message_no_memory();
}

static void drop_temporary(struct output_file *file)
{
    free(file->temporary);
    file->temporary = NULL;
}

static int open_named(struct output_file *file)
{
    for (int n = 0; n < MAX_TRIES; n++) {
        set_temporary(file, n);
        file->fd = open(file->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (file->fd >= 0)
            return 0;
        if (errno != EEXIST)
            break;
    }
    const int native = errno;
    drop_temporary(file);
    return native;
}

static int open_temporary(struct output_file *file)
{
    char *folder = folder_size(file->target)
                       ? strndup(file->target, (size_t)folder_size(file->target))
                       : strdup(".");
    if (!folder)
        message_no_memory();
    open_nameless(file, folder);
    const int native = file->fd < 0 ? open_named(file) : 0;
    if (native) {
        const int denied = native == EACCES || native == EPERM || native == EROFS;
        char advice[MESSAGE_ADVICE_SIZE];
        message_say("cannot write %s: no file can be made in the folder %s: %s%s%s", file->path,
                    folder, strerror(native), message_advice(native, advice),
                    denied && file->replaces ? "; `-o - > FILE` writes into the file itself" : "");
    }
    free(folder);
    return native ? status_of_path(native) : 0;
}

/* Return 1 when the open file still has the name `target`. A file that was removed while open
 * (/dev/stdout of a shell) does not. */
static int has_name(const char *target, const struct stat *file)
{
    struct stat st;
    return lstat(target, &st) == 0 && st.st_dev == file->st_dev && st.st_ino == file->st_ino;
}

/* Open the path: a new file that gets its name at the end, or directly a path that is not a regular
 * file. */
static int open_file(struct output_file *file)
{
    struct stat st;
    file->replaces = stat(file->path, &st) == 0;
    if (!file->replaces && errno != ENOENT)
        return refuse(file, errno);
    if (file->replaces && S_ISDIR(st.st_mode))
        return message_usage("cannot write %s: it is a folder; name a file", file->path);
    if (file->replaces && !S_ISREG(st.st_mode))
        return open_straight(file);
    file->target = followed(file->path);
    if (file->replaces && !has_name(file->target, &st)) {
        free(file->target);
        file->target = NULL;
        return open_straight(file);
    }
    int status = open_temporary(file);
    if (status == 0 && file->replaces)
        take_mode(file->fd, &st);
    return status;
}

int output_file_open(struct output_file *file, const char *path)
{
    *file = (struct output_file){.path = path, .fd = STDOUT_FILENO};
    int status = strcmp(path, "-") == 0 ? 0 : open_file(file);
    if (status == 0)
        open_stream(file);
    else
        free(file->target);
    return status;
}

/* Flush and sync. A file without a medium cannot be synced, which is no error. Returns 0, or an
 * errno value. */
static int flush(struct output_file *file)
{
    if (fclose(file->stream) != 0 && !file->native)
        file->native = errno;
    file->stream = NULL;
    if (!file->native && file->target && fsync(file->fd) < 0 && errno != EINVAL && errno != ENOTSUP)
        file->native = errno;
    return file->native;
}

static int link_as(int fd, const char *path)
{
    char text[FD_LINK_SIZE];
    return linkat(AT_FDCWD, fd_link(fd, text), AT_FDCWD, path, AT_SYMLINK_FOLLOW) < 0 ? errno : 0;
}

/* Give a nameless file its name, or a temporary name when the name is taken; a rename then replaces
 * the older file. Returns 0, or an errno value. */
static int give_name(struct output_file *file, int fd)
{
    int native = link_as(fd, file->target);
    if (native != EEXIST)
        return native;
    for (int n = 0; native == EEXIST && n < MAX_TRIES; n++) {
        set_temporary(file, n);
        native = link_as(fd, file->temporary);
    }
    if (native)
        drop_temporary(file);
    return native;
}

/* Close, and give the file its name. Returns 0, or an errno value. */
static int finish(struct output_file *file)
{
    /* The kernel frees a nameless file with its last descriptor. */
    const int is_nameless = file->target && !file->temporary;
    const int held = is_nameless ? fcntl(file->fd, F_DUPFD_CLOEXEC, 0) : -1;
    if (is_nameless && held < 0 && !file->native)
        file->native = errno;
    /* Some file systems report a failed write only at close. message_finish closes standard
     * output. */
    if (file->fd != STDOUT_FILENO && close(file->fd) < 0 && errno != EINTR && !file->native)
        file->native = errno;
    if (!file->native && file->target && interrupt_seen())
        file->native = EINTR;
    if (!file->native && is_nameless)
        file->native = give_name(file, held);
    if (!file->native && file->temporary && rename(file->temporary, file->target) < 0)
        file->native = errno;
    if (held >= 0)
        close(held);
    return file->native;
}

/* Return a phrase about the state of the path's file after a failure. */
static const char *outcome(const struct output_file *file)
{
    return !file->target     ? "it was written only in part"
           : !file->replaces ? "no file was made"
                             : "the file there is unchanged";
}

int output_file_close(struct output_file *file, int status)
{
    char advice[MESSAGE_ADVICE_SIZE];
    const char *name = strcmp(file->path, "-") == 0 ? "standard output" : file->path;
    if (status && !file->native)
        file->native = ECANCELED; /* the caller has printed a message */
    flush(file);
    finish(file);
    if (file->native && file->temporary)
        (void)unlink(
            file->temporary); /* ours, by O_EXCL; if it cannot be removed, it does no harm */
    if (file->native == EINTR && interrupt_seen()) {
        message_say("interrupted: %s: %s", name, outcome(file));
        status = interrupt_status();
    } else if (file->native && file->native != ECANCELED) {
        message_say("cannot write %s: %s%s; %s", name, strerror(file->native),
                    message_advice(file->native, advice), outcome(file));
        status = STATUS_DAMAGED;
    }
    free(file->target);
    free(file->temporary);
    return status;
}
