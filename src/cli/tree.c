/* SPDX-License-Identifier: Apache-2.0 */
#include "tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include <penstock/format.h>

#include "command.h"
#include "interrupt.h"
#include "message.h"
#include "text.h"

#define MAX_DEPTH 64 /* folders in folders; each holds a descriptor while it is read */
#define MAX_PATH 4096

/* torchvision's IMG_EXTENSIONS: what it would try to open, so must be packed or named as bad. */
static const char *const extensions[] = {".jpg", ".jpeg", ".png",  ".ppm", ".bmp",
                                         ".pgm", ".tif",  ".tiff", ".webp"};

/* Extensions of other images. ImageFolder passes them over; pack does too, and reports them by the
 * format that their first bytes show. */
static const char *const foreign_extensions[] = {".gif", ".avif", ".heic", ".heif", ".jp2", ".j2k",
                                                 ".jpx", ".jpf",  ".jxl",  ".jfif", ".pbm", ".pnm",
                                                 ".pam", ".exr",  ".psd",  ".dib"};

/* A folder being read, and those it lies in. */
struct folder {
    const struct folder *parent;
    dev_t dev;
    ino_t ino;
    int depth;
    uint32_t cls;
    char path[MAX_PATH]; /* relative to the root, "" for the root */
};

static int ends_with(const char *name, const char *const *endings, size_t n_endings)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < n_endings; i++) {
        size_t n = strlen(endings[i]);
        if (length >= n && strcasecmp(name + length - n, endings[i]) == 0)
            return 1;
    }
    return 0;
}

static int is_image(const char *name)
{
    return ends_with(name, extensions, sizeof extensions / sizeof *extensions);
}

/* Count a file that is not packed: by its format, where it is an image. */
static void count_other(struct tree *t, int folder_fd, const char *name)
{
    char head[64];
    const char *format = NULL;
    int is_packed = 0;
    if (ends_with(name, foreign_extensions,
                  sizeof foreign_extensions / sizeof *foreign_extensions)) {
        int fd = openat(folder_fd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        ssize_t n = fd < 0 ? 0 : read(fd, head, sizeof head);
        if (fd >= 0)
            close(fd);
        if (n > 0)
            format = pstk_image_format(head, (uint64_t)n, &is_packed);
    }
    if (format && !is_packed)
        formats_add(&t->foreign, format);
    else
        t->n_others++;
}

static void add_file(struct tree *t, const struct folder *f, const char *name)
{
    if (t->n_files == t->n_room) {
        uint64_t room = t->n_room ? 2 * t->n_room : 1024;
        struct tree_file *files = reallocarray(t->files, room, sizeof *files);
        if (!files)
            message_no_memory();
        t->files = files;
        t->n_room = room;
    }
    struct tree_file *file = &t->files[t->n_files++];
    file->folder_size = (uint32_t)strlen(f->path);
    file->cls = f->cls;
    if (asprintf(&file->path, "%s%s%s", f->path, f->path[0] ? "/" : "", name) < 0)
        message_no_memory();
}

/* What a directory entry is: 'd', 'f' (or what cannot be looked at: packing it will say why). */
static int kind_of(int fd, const struct dirent *e)
{
    struct stat st;
    if (e->d_type == DT_DIR)
        return 'd';
    if (e->d_type == DT_REG)
        return 'f';
    return fstatat(fd, e->d_name, &st, 0) == 0 && S_ISDIR(st.st_mode) ? 'd' : 'f';
}

static int refuse_folder(const char *path, int native)
{
    char advice[MESSAGE_ADVICE_SIZE];
    message_say("cannot read the folder %s: %s%s", path, strerror(native),
                message_advice(native, advice));
    return message_status_of_path(native);
}

static int scan_folder(struct tree *t, int fd, struct folder *f);

static int is_loop(const struct folder *f, const struct stat *st)
{
    for (; f; f = f->parent)
        if (f->dev == st->st_dev && f->ino == st->st_ino)
            return 1;
    return 0;
}

/* Scan the folder `name` inside f. */
static int scan_inner(struct tree *t, int fd, const struct folder *f, const char *name)
{
    struct folder inner = {.parent = f, .depth = f->depth + 1, .cls = f->cls};
    struct stat st;
    int n = snprintf(inner.path, sizeof inner.path, "%s%s%s", f->path, f->path[0] ? "/" : "", name);
    if (n >= (int)sizeof inner.path || inner.depth > MAX_DEPTH)
        return message_usage("%s: folders lie too deep in one another here (at most %d)", f->path,
                             MAX_DEPTH);
    int inner_fd = openat(fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (inner_fd < 0 || fstat(inner_fd, &st) < 0) {
        int status = refuse_folder(inner.path, errno);
        if (inner_fd >= 0)
            close(inner_fd);
        return status;
    }
    if (st.st_dev == t->skip_dev && st.st_ino == t->skip_ino) {
        close(inner_fd);
        return 0;
    }
    if (is_loop(f, &st)) {
        close(inner_fd);
        return message_usage("%s is a link to a folder that it lies in; remove the link",
                             inner.path);
    }
    inner.dev = st.st_dev;
    inner.ino = st.st_ino;
    return scan_folder(t, inner_fd, &inner);
}

/* Scan an open folder and all below; takes fd. */
static int scan_folder(struct tree *t, int fd, struct folder *f)
{
    DIR *dir = fdopendir(fd);
    int status = 0;
    struct dirent *e;
    if (!dir) {
        close(fd);
        message_no_memory();
    }
    while (status == 0 && (errno = 0, e = readdir(dir))) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        if (interrupt_seen())
            status = interrupt_say("nothing was written");
        else if (kind_of(fd, e) == 'd')
            status = scan_inner(t, fd, f, e->d_name);
        else if (is_image(e->d_name))
            add_file(t, f, e->d_name);
        else
            count_other(t, fd, e->d_name);
    }
    if (status == 0 && errno)
        status = refuse_folder(f->path, errno);
    closedir(dir);
    return status;
}

/* The folder's own images, and its subfolders as candidates for classes. */
static int list_classes(struct tree *t, DIR *dir, const struct folder *root)
{
    struct dirent *e;
    uint64_t room = 0;
    while ((errno = 0, e = readdir(dir))) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        struct stat st;
        if (kind_of(dirfd(dir), e) != 'd') {
            if (is_image(e->d_name))
                add_file(t, root, e->d_name);
            else
                count_other(t, dirfd(dir), e->d_name);
            continue;
        }
        if (fstatat(dirfd(dir), e->d_name, &st, 0) == 0 && st.st_dev == t->skip_dev &&
            st.st_ino == t->skip_ino)
            continue;
        if (t->n_classes == room) {
            room = room ? 2 * room : 64;
            char **classes = reallocarray(t->classes, room, sizeof *classes);
            if (!classes)
                message_no_memory();
            t->classes = classes;
        }
        t->classes[t->n_classes] = strdup(e->d_name);
        if (!t->classes[t->n_classes])
            message_no_memory();
        t->n_classes++;
    }
    return errno;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int compare_files(const void *a, const void *b)
{
    const struct tree_file *x = a, *y = b;
    if (x->cls != y->cls)
        return x->cls < y->cls ? -1 : 1;
    uint32_t n = x->folder_size < y->folder_size ? x->folder_size : y->folder_size;
    int r = memcmp(x->path, y->path, n);
    if (r)
        return r;
    if (x->folder_size != y->folder_size)
        return x->folder_size < y->folder_size ? -1 : 1;
    return strcmp(x->path + n, y->path + n);
}

static void drop_files(struct tree *t, uint64_t first, uint64_t n)
{
    for (uint64_t i = first; i < first + n; i++)
        free(t->files[i].path);
    memmove(t->files + first, t->files + first + n, (t->n_files - first - n) * sizeof *t->files);
    t->n_files -= n;
}

static void drop_classes(struct tree *t)
{
    for (uint64_t i = 0; i < t->n_classes; i++)
        free(t->classes[i]);
    free(t->classes);
    t->classes = NULL;
    t->n_classes = 0;
}

/* Read every class folder. The first n_top files are the root's own. */
static int scan_classes(struct tree *t, int fd, struct folder *root, uint64_t n_top)
{
    const char *empty = NULL, *what = "no images";
    uint64_t n_full = 0;
    for (uint64_t c = 0; c < t->n_classes; c++) {
        const uint64_t before = t->n_files, n_foreign = t->foreign.n;
        root->cls = (uint32_t)c;
        int status = scan_inner(t, fd, root, t->classes[c]);
        if (status)
            return status;
        if (t->n_files > before)
            n_full++;
        else if (!empty) {
            empty = t->classes[c];
            what = t->foreign.n > n_foreign ? "only images of formats that are not packed" : what;
        }
        if (!text_is_utf8(t->classes[c]))
            return message_usage("the folder %s has a name that is not UTF-8", t->classes[c]);
    }
    if (n_full == 0) { /* flat: its subfolders hold no images, so they are no classes */
        drop_classes(t);
        return 0;
    }
    if (empty)
        return message_usage("the class folder %s holds %s; remove it, or fill it with JPEG or PNG "
                             "files (it would be a class of its own)",
                             empty, what);
    drop_files(t, 0, n_top);
    t->n_left_out = n_top;
    return 0;
}

int tree_scan(struct tree *t, const char *root, const char *out)
{
    struct folder top = {.parent = NULL};
    struct stat st;
    char formats[FORMATS_TEXT];
    if (stat(out, &st) == 0) {
        t->skip_dev = st.st_dev;
        t->skip_ino = st.st_ino;
    }
    DIR *dir = opendir(root);
    if (!dir && errno == ENOTDIR)
        return message_usage("%s is a file; pack takes a folder of images", root);
    if (!dir)
        return refuse_folder(root, errno);
    if (fstat(dirfd(dir), &st) == 0) {
        top.dev = st.st_dev;
        top.ino = st.st_ino;
    }
    int error = list_classes(t, dir, &top);
    int status = error ? refuse_folder(root, error) : 0;
    if (status == 0 && t->n_classes) {
        qsort(t->classes, t->n_classes, sizeof *t->classes, compare_names);
        status = scan_classes(t, dirfd(dir), &top, t->n_files);
    }
    closedir(dir);
    if (status)
        return status;
    if (t->n_files == 0 && t->foreign.n)
        return message_usage("%s holds no images that can be packed, only %s; convert them to JPEG "
                             "or PNG",
                             root, formats_text(&t->foreign, formats));
    if (t->n_files == 0)
        return message_usage("%s holds no images (no .jpg, .jpeg, .png, ... file, in no subfolder)",
                             root);
    qsort(t->files, t->n_files, sizeof *t->files, compare_files);
    return 0;
}

void tree_close(struct tree *t)
{
    for (uint64_t i = 0; i < t->n_files; i++)
        free(t->files[i].path);
    free(t->files);
    drop_classes(t);
    memset(t, 0, sizeof *t);
}
