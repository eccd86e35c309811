/* SPDX-License-Identifier: Apache-2.0 */
#include "command/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include <penstock/foreign.h>
#include <penstock/format.h>

#include "command.h"
#include "ui/interrupt.h"
#include "ui/message.h"
#include "ui/status.h"
#include "ui/text.h"

#define MAX_DEPTH 64 /* nested folders; each holds a descriptor while it is read */
#define MAX_PATH 4096
#define EXPORT_MARK "penstock-export.json" /* at the top of an exported folder: no sample */

/* torchvision's IMG_EXTENSIONS. It would open these files, so they must be packed or reported as
 * bad. */
static const char *const extensions[] = {".jpg", ".jpeg", ".png",  ".ppm", ".bmp",
                                         ".pgm", ".tif",  ".tiff", ".webp"};

/* Extensions of other images. ImageFolder skips them; pack does too, and reports them by the format
 * of their first bytes. */
static const char *const foreign_extensions[] = {".gif", ".avif", ".heic", ".heif", ".jp2", ".j2k",
                                                 ".jpx", ".jpf",  ".jxl",  ".jfif", ".pbm", ".pnm",
                                                 ".pam", ".exr",  ".psd",  ".dib"};

/* A folder that is read, with the folders above it. */
struct folder {
    const struct folder *parent;
    dev_t dev;
    ino_t ino;
    int depth;
    uint32_t cls;
    char path[MAX_PATH]; /* relative to the root; "" for the root */
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

/* Return the format of an image by its first bytes; *is_packed: pack takes it. NULL: it is none, or
 * cannot be read. */
static const char *format_of(int folder_fd, const char *name, int *is_packed)
{
    char head[64];
    *is_packed = 0;
    int fd = openat(folder_fd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    ssize_t n = fd < 0 ? 0 : read(fd, head, sizeof head);
    if (fd >= 0)
        close(fd);
    return n > 0 ? pstk_image_format(head, (uint64_t)n, is_packed) : NULL;
}

/* Count a file that is not packed. An image is counted by its format. */
static void count_other(struct tree *tree, int folder_fd, const struct folder *folder,
                        const char *name)
{
    const char *format = NULL;
    int is_packed = 0;
    if (!folder->path[0] && strcmp(name, EXPORT_MARK) == 0)
        return;
    if (ends_with(name, foreign_extensions, sizeof foreign_extensions / sizeof *foreign_extensions))
        format = format_of(folder_fd, name, &is_packed);
    if (format && !is_packed)
        formats_add(&tree->foreign, format);
    else
        tree->n_others++;
}

static void add_file(struct tree *tree, const struct folder *folder, const char *name)
{
    if (tree->n_files == tree->n_room) {
        uint64_t room = tree->n_room ? 2 * tree->n_room : 1024;
        struct tree_file *files = reallocarray(tree->files, room, sizeof *files);
        if (!files)
            message_no_memory();
        tree->files = files;
        tree->n_room = room;
    }
    struct tree_file *file = &tree->files[tree->n_files++];
    file->folder_size = (uint32_t)strlen(folder->path);
    file->cls = folder->cls;
    if (asprintf(&file->path, "%s%s%s", folder->path, folder->path[0] ? "/" : "", name) < 0)
        message_no_memory();
}

static void take_file(struct tree *tree, int folder_fd, const struct folder *folder,
                      const char *name)
{
    int is_packed = 0;
    if (is_image(name) || (tree->by_content && format_of(folder_fd, name, &is_packed) && is_packed))
        add_file(tree, folder, name);
    else
        count_other(tree, folder_fd, folder, name);
}

/* Return the type of a directory entry: 'd', or 'f' for all others. If it cannot be read, packing
 * reports why. */
static int kind_of(int fd, const struct dirent *entry)
{
    struct stat st;
    if (entry->d_type == DT_DIR)
        return 'd';
    if (entry->d_type == DT_REG)
        return 'f';
    return fstatat(fd, entry->d_name, &st, 0) == 0 && S_ISDIR(st.st_mode) ? 'd' : 'f';
}

static int is_skipped(const struct tree *tree, const struct stat *st)
{
    return st->st_dev == tree->skip_dev && st->st_ino == tree->skip_ino;
}

/* Return whether a name begins with a dot, as in place: of .ipynb_checkpoints there is no class.
 * Such names are counted, except the output and .penstock, which has the index of a folder that was
 * read in place. */
static int is_passed_over(struct tree *tree, int fd, const char *name)
{
    struct stat st;
    if (name[0] != '.')
        return 0;
    if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && strcmp(name, ".penstock") != 0)
        tree->n_hidden += fstatat(fd, name, &st, 0) < 0 || !is_skipped(tree, &st);
    return 1;
}

static int refuse_folder(const char *path, int native)
{
    char advice[MESSAGE_ADVICE_SIZE];
    message_say("cannot read the folder %s: %s%s", path, strerror(native),
                message_advice(native, advice));
    return status_of_path(native);
}

static int scan_folder(struct tree *tree, int fd, struct folder *folder);

static int is_loop(const struct folder *folder, const struct stat *st)
{
    for (; folder; folder = folder->parent)
        if (folder->dev == st->st_dev && folder->ino == st->st_ino)
            return 1;
    return 0;
}

/* Scan the folder `name` inside `folder`. */
static int scan_inner(struct tree *tree, int fd, const struct folder *folder, const char *name)
{
    struct folder inner = {.parent = folder, .depth = folder->depth + 1, .cls = folder->cls};
    struct stat st;
    int n = snprintf(inner.path, sizeof inner.path, "%s%s%s", folder->path,
                     folder->path[0] ? "/" : "", name);
    if (n >= (int)sizeof inner.path || inner.depth > MAX_DEPTH)
        return message_usage("%s: folders lie too deep in one another here (at most %d)",
                             folder->path, MAX_DEPTH);
    int inner_fd = openat(fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (inner_fd < 0 || fstat(inner_fd, &st) < 0) {
        int status = refuse_folder(inner.path, errno);
        if (inner_fd >= 0)
            close(inner_fd);
        return status;
    }
    if (is_skipped(tree, &st)) {
        close(inner_fd);
        return 0;
    }
    if (is_loop(folder, &st)) {
        close(inner_fd);
        return message_usage("%s is a link to a folder that it lies in; remove the link",
                             inner.path);
    }
    inner.dev = st.st_dev;
    inner.ino = st.st_ino;
    return scan_folder(tree, inner_fd, &inner);
}

/* Scan an open folder and everything below it. Takes fd. */
static int scan_folder(struct tree *tree, int fd, struct folder *folder)
{
    DIR *dir = fdopendir(fd);
    int status = 0;
    struct dirent *entry;
    if (!dir) {
        close(fd);
        message_no_memory();
    }
    while (status == 0 && (errno = 0, entry = readdir(dir))) {
        if (is_passed_over(tree, fd, entry->d_name))
            continue;
        if (interrupt_seen())
            status = interrupt_say("nothing was packed");
        else if (kind_of(fd, entry) == 'd')
            status = scan_inner(tree, fd, folder, entry->d_name);
        else
            take_file(tree, fd, folder, entry->d_name);
    }
    if (status == 0 && errno)
        status = refuse_folder(folder->path, errno);
    closedir(dir);
    return status;
}

static void add_class(struct tree *tree, const char *name)
{
    if ((tree->n_classes & (tree->n_classes - 1)) == 0) {
        uint64_t room = tree->n_classes ? 2 * tree->n_classes : 1;
        char **classes = reallocarray(tree->classes, room, sizeof *classes);
        if (!classes)
            message_no_memory();
        tree->classes = classes;
    }
    tree->classes[tree->n_classes] = strdup(name);
    if (!tree->classes[tree->n_classes])
        message_no_memory();
    tree->n_classes++;
}

/* Take the folder's own images, and its subfolders as candidates for classes. Returns 0, or an
 * errno value. */
static int list_classes(struct tree *tree, DIR *dir, const struct folder *root)
{
    const int fd = dirfd(dir);
    struct dirent *entry;
    while ((errno = 0, entry = readdir(dir))) {
        struct stat st;
        if (is_passed_over(tree, fd, entry->d_name))
            continue;
        if (kind_of(fd, entry) != 'd')
            take_file(tree, fd, root, entry->d_name);
        else if (fstatat(fd, entry->d_name, &st, 0) < 0 || !is_skipped(tree, &st))
            add_class(tree, entry->d_name);
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

static void drop_files(struct tree *tree, uint64_t first, uint64_t n)
{
    for (uint64_t i = first; i < first + n; i++)
        free(tree->files[i].path);
    memmove(tree->files + first, tree->files + first + n,
            (tree->n_files - first - n) * sizeof *tree->files);
    tree->n_files -= n;
}

static void drop_classes(struct tree *tree)
{
    for (uint64_t i = 0; i < tree->n_classes; i++)
        free(tree->classes[i]);
    free(tree->classes);
    tree->classes = NULL;
    tree->n_classes = 0;
}

/* 1: the class folder has the file that every packed data set has. */
static int has_manifest(int fd, const char *name)
{
    char path[MAX_PATH];
    const int n = snprintf(path, sizeof path, "%s/manifest.json", name);
    return n > 0 && (size_t)n < sizeof path && faccessat(fd, path, F_OK, 0) == 0;
}

/* Read every class folder. The first n_top files are directly in the root. */
static int scan_classes(struct tree *tree, int fd, struct folder *root, uint64_t n_top)
{
    const char *empty = NULL, *what = "no images";
    uint64_t n_full = 0;
    for (uint64_t c = 0; c < tree->n_classes; c++) {
        const uint64_t before = tree->n_files, n_foreign = tree->foreign.n;
        root->cls = (uint32_t)c;
        int status = scan_inner(tree, fd, root, tree->classes[c]);
        if (status)
            return status;
        if (tree->n_files > before)
            n_full++;
        else if (!empty) {
            empty = tree->classes[c];
            what =
                tree->foreign.n > n_foreign ? "only images of formats that are not packed" : what;
        }
        if (!text_is_utf8(tree->classes[c]))
            return message_usage("the folder %s has a name that is not UTF-8", tree->classes[c]);
    }
    if (n_full == 0) { /* flat: the subfolders have no images, so they are no classes */
        drop_classes(tree);
        return 0;
    }
    if (empty && has_manifest(fd, empty))
        return message_usage("the class folder %s holds no images, but a manifest.json, as a data "
                             "set has; move it elsewhere (it would be a class of its own)",
                             empty);
    if (empty)
        return message_usage("the class folder %s holds %s; remove it, or fill it with JPEG or PNG "
                             "files (it would be a class of its own)",
                             empty, what);
    drop_files(tree, 0, n_top);
    tree->n_left_out = n_top;
    return 0;
}

/* Refuse a file: the library knows what may be done with it. */
static int refuse_file(const char *path)
{
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    if (!pstk_find_format(path, &err))
        return message_usage("%s", err.message);
    return message_usage("%s is a file; pack takes a folder of images", path);
}

/* 1: the library knows what the folder without images is, or what a pattern matches, and its error
 * does more than list the formats. */
static int is_known(const char *path, struct pstk_error *err)
{
    pstk_error_init(err, sizeof *err);
    return !pstk_find_format(path, err) && !strstr(err->message, "must be a directory with");
}

static int refuse_empty(const struct tree *tree, const char *root)
{
    struct pstk_error err;
    char formats[FORMATS_TEXT], hidden[80] = "";
    if (tree->n_hidden)
        snprintf(hidden, sizeof hidden, "; %llu name%s with a dot and %s left out",
                 (unsigned long long)tree->n_hidden, tree->n_hidden == 1 ? " begins" : "s begin",
                 tree->n_hidden == 1 ? "is" : "are");
    if (tree->foreign.n)
        return message_usage("%s holds no images that can be packed, only %s; convert them to JPEG "
                             "or PNG%s",
                             root, formats_text(&tree->foreign, formats), hidden);
    if (is_known(root, &err))
        return message_usage("%s", err.message);
    const char *format = pstk_find_format(root, NULL);
    if (format && strcmp(format, "pstk") == 0)
        return message_usage("%s is a data set already; the Python package packs one anew, "
                             "penstock.pack(SRC, OUT)",
                             root);
    return message_usage("%s holds no images: neither it nor its subfolders have a .jpg, .jpeg or "
                         ".png file%s%s",
                         root,
                         tree->by_content ? ", nor one that begins as such"
                         : tree->n_others ? " (--by-content finds images by their first bytes)"
                                          : "",
                         hidden);
}

int tree_scan(struct tree *tree, const char *root, const char *out)
{
    struct folder top = {.parent = NULL};
    struct stat st;
    struct pstk_error err;
    if (stat(out, &st) == 0) {
        tree->skip_dev = st.st_dev;
        tree->skip_ino = st.st_ino;
    }
    DIR *dir = opendir(root);
    if (!dir && errno == ENOTDIR)
        return refuse_file(root);
    const int error_of_open = dir ? 0 : errno;
    if (!dir && error_of_open == ENOENT && strpbrk(root, "*?{") && is_known(root, &err))
        return message_usage("%s", err.message);
    if (!dir)
        return refuse_folder(root, error_of_open);
    if (fstat(dirfd(dir), &st) == 0) {
        top.dev = st.st_dev;
        top.ino = st.st_ino;
    }
    int error = list_classes(tree, dir, &top);
    int status = error ? refuse_folder(root, error) : 0;
    if (status == 0 && tree->n_classes) {
        qsort(tree->classes, tree->n_classes, sizeof *tree->classes, compare_names);
        status = scan_classes(tree, dirfd(dir), &top, tree->n_files);
    }
    closedir(dir);
    if (status)
        return status;
    if (tree->n_files == 0)
        return refuse_empty(tree, root);
    qsort(tree->files, tree->n_files, sizeof *tree->files, compare_files);
    return 0;
}

void tree_close(struct tree *tree)
{
    for (uint64_t i = 0; i < tree->n_files; i++)
        free(tree->files[i].path);
    free(tree->files);
    drop_classes(tree);
    memset(tree, 0, sizeof *tree);
}
