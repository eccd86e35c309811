/* SPDX-License-Identifier: Apache-2.0 */
/* images: the images of a folder for programs that pack them (penstock/image_folder.h). A directory
 * lists names with their types. So a file is opened only if its name is that of a foreign image
 * (with by_content: if its name is not that of an image), and stat is called only for links and
 * hidden names, and for the folders. A folder that is read in place (tree.c) needs the size and
 * time of each file. */
#include <penstock/image_folder.h>

#include "base/bytes.h"
#include "base/error.h"
#include "format/folder/name.h"
#include "format/folder/rules.h"
#include "store/export_mark.h"
#include "store/sidecar.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_PATH 4096
#define MAX_FORMATS 32     /* max formats that are counted; signature.c has fewer */
#define PROGRESS_NAMES 64u /* names between two reports; a power of two */

struct image {
    uint64_t path;        /* begin of its path in the bytes of `paths` */
    uint32_t folder_size; /* bytes of the folder in path; 0 at the top */
    uint32_t number;      /* number of its class; 0 without classes */
};

struct pstk_image_folder {
    struct pstk_image_folder_info info;
    struct image *images;     /* owned; sorted */
    uint64_t max_images;      /* images that fit */
    struct pstk__bytes paths; /* paths below the folder, each with its 0 */
    char **classes;           /* owned; sorted; info.n_classes */
    uint64_t max_classes;     /* names that fit */
    struct {
        const char *name; /* static storage */
        uint64_t n;
    } formats[MAX_FORMATS]; /* in the order of their first files; info.n_formats */
};

/* The state of a search. */
struct search {
    struct pstk_image_folder *found;            /* borrowed */
    const struct pstk_image_folder_settings *s; /* borrowed */
    struct pstk_error *err;                     /* borrowed */
    int has_skip; /* 1: skip_device and skip_inode name a folder to skip */
    dev_t skip_device;
    ino_t skip_inode;
    uint64_t n_names; /* names for which report() was called */
};

/* A folder while it is read. */
struct folder {
    struct pstk__folder_above above;
    uint32_t number;  /* number of its class */
    const char *path; /* borrowed; path below the first folder, "" for the first folder itself */
};

static int fail_memory(const struct search *search)
{
    return pstk__fail(search->err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for the images of %s",
                      search->s->path);
}

static int fail_folder(const struct search *search, const char *path, int native)
{
    return pstk__fail_errno(search->err, native, PSTK_STAGE_OPEN, "cannot read the folder %s",
                            path);
}

/* Return the list with room for one more element, or NULL: no memory, and the list is as before. */
static void *with_room(void *list, uint64_t n, uint64_t *max, size_t size)
{
    if (n < *max)
        return list;
    const uint64_t room = *max ? 2 * *max : 16;
    void *more = reallocarray(list, room, size);
    *max = more ? room : *max;
    return more;
}

/* ---- a file ---------------------------------------------------------------------------------- */

/* Find the format of a file by its first bytes. NONE, and *format NULL: it has none, or cannot be
 * read. */
static enum pstk__signature look_into(int folder_fd, const char *name, const char **format)
{
    char head[64];
    *format = NULL;
    const int fd = openat(folder_fd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    const ssize_t n = fd < 0 ? 0 : read(fd, head, sizeof head);
    if (fd >= 0)
        close(fd);
    return n > 0 ? pstk__signature_find(head, (uint64_t)n, format) : PSTK__SIGNATURE_NONE;
}

static void count_format(struct pstk_image_folder *found, const char *format)
{
    uint32_t i = 0;
    while (i < found->info.n_formats && strcmp(found->formats[i].name, format) != 0)
        i++;
    found->info.n_foreign++;
    if (i == MAX_FORMATS)
        return; /* cannot happen: there are fewer names */
    found->info.n_formats += i == found->info.n_formats;
    found->formats[i].name = format;
    found->formats[i].n++;
}

static void count_other(struct pstk_image_folder *found, int folder_fd, const struct folder *folder,
                        const char *name)
{
    const char *format;
    if (!folder->path[0] && strcmp(name, PSTK__EXPORT_MARK) == 0)
        return;
    if (pstk__folder_name_is_foreign(name) &&
        look_into(folder_fd, name, &format) == PSTK__SIGNATURE_OTHER)
        count_format(found, format);
    else
        found->info.n_others++;
}

static int add_image(struct search *search, const struct folder *folder, const char *name)
{
    struct pstk_image_folder *found = search->found;
    struct image *images =
        with_room(found->images, found->info.n_images, &found->max_images, sizeof *images);
    if (!images)
        return fail_memory(search);
    found->images = images;
    images[found->info.n_images++] = (struct image){.path = found->paths.size,
                                                    .folder_size = (uint32_t)strlen(folder->path),
                                                    .number = folder->number};
    pstk__bytes_text(&found->paths, folder->path);
    if (folder->path[0])
        pstk__bytes_text(&found->paths, "/");
    pstk__bytes_put(&found->paths, name, strlen(name) + 1);
    return found->paths.failed ? fail_memory(search) : 0;
}

static int take_file(struct search *search, int folder_fd, const struct folder *folder,
                     const char *name)
{
    const char *format;
    if (pstk__folder_name(name) != PSTK__NAME_OTHER ||
        (search->s->by_content && pstk__folder_takes(look_into(folder_fd, name, &format))))
        return add_image(search, folder, name);
    count_other(search->found, folder_fd, folder, name);
    return 0;
}

/* ---- a name ---------------------------------------------------------------------------------- */

/* 1: the entry is a folder, or a link to one. An entry that cannot be described counts as a file,
 * and the reader of the file reports the error. */
static int is_folder(int fd, const struct dirent *entry)
{
    struct stat st;
    if (entry->d_type == DT_DIR || entry->d_type == DT_REG)
        return entry->d_type == DT_DIR;
    return fstatat(fd, entry->d_name, &st, 0) == 0 && S_ISDIR(st.st_mode);
}

static int is_skipped(const struct search *search, const struct stat *st)
{
    return search->has_skip && st->st_dev == search->skip_device &&
           st->st_ino == search->skip_inode;
}

/* 1: the name is hidden. It is counted, unless it is ".", "..", penstock's own folder, or the
 * folder to skip. */
static int is_passed_over(const struct search *search, int fd, const char *name)
{
    struct stat st;
    if (!pstk__folder_is_hidden(name))
        return 0;
    if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0 &&
        strcmp(name, PSTK__SIDECAR_FOLDER) != 0)
        search->found->info.n_hidden += fstatat(fd, name, &st, 0) < 0 || !is_skipped(search, &st);
    return 1;
}

static int report(struct search *search)
{
    const struct pstk_image_folder_settings *s = search->s;
    if (search->n_names++ % PROGRESS_NAMES || !s->on_progress ||
        !s->on_progress(s->user, search->found->info.n_images, 0))
        return 0;
    return pstk__fail(search->err, PSTK_ECANCELED, PSTK_STAGE_OPEN,
                      "the search for images in %s was canceled", s->path);
}

/* ---- the folders below ----------------------------------------------------------------------- */

static int read_folder(struct search *search, DIR *dir, const struct folder *folder);

/* Open a folder by one descriptor. NULL: errno has the error. */
static DIR *open_folder(int fd, const char *name)
{
    const int own = openat(fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = own < 0 ? NULL : fdopendir(own);
    const int native = errno;
    if (!dir && own >= 0)
        close(own);
    errno = native;
    return dir;
}

/* Read the open folder `dir`, which lies in `outer`, unless it is the one to skip. */
static int read_opened(struct search *search, DIR *dir, const struct folder *outer,
                       struct folder *inner)
{
    struct stat st;
    if (fstat(dirfd(dir), &st) < 0)
        return fail_folder(search, inner->path, errno);
    if (is_skipped(search, &st))
        return 0;
    inner->above.device = st.st_dev;
    inner->above.inode = st.st_ino;
    const int r = pstk__folder_enter(&inner->above, &outer->above,
                                     (struct pstk__folder_named){"", inner->path}, search->err);
    return r < 0 ? r : read_folder(search, dir, inner);
}

/* Read the folder `name` in `outer`, and all folders below it. */
static int read_inner(struct search *search, int fd, const struct folder *outer, const char *name)
{
    char *path;
    const int n = asprintf(&path, "%s%s%s", outer->path, outer->path[0] ? "/" : "", name);
    if (n < 0)
        return fail_memory(search);
    struct folder inner = {.number = outer->number, .path = path};
    DIR *dir = n < MAX_PATH ? open_folder(fd, name) : NULL;
    int r;
    if (n >= MAX_PATH)
        r = pstk__folder_refuse_deep((struct pstk__folder_named){"", outer->path}, search->err);
    else
        r = dir ? read_opened(search, dir, outer, &inner) : fail_folder(search, path, errno);
    if (dir)
        closedir(dir);
    free(path);
    return r;
}

static int read_folder(struct search *search, DIR *dir, const struct folder *folder)
{
    const struct dirent *entry;
    const int fd = dirfd(dir);
    int r = 0;
    while (r == 0 && (errno = 0, entry = readdir(dir))) {
        if (is_passed_over(search, fd, entry->d_name))
            continue;
        r = report(search);
        if (r == 0 && is_folder(fd, entry))
            r = read_inner(search, fd, folder, entry->d_name);
        else if (r == 0)
            r = take_file(search, fd, folder, entry->d_name);
    }
    return r == 0 && errno ? fail_folder(search, folder->path, errno) : r;
}

/* ---- the first folder ------------------------------------------------------------------------ */

static int add_class(struct search *search, const char *name)
{
    struct pstk_image_folder *found = search->found;
    char **classes =
        with_room(found->classes, found->info.n_classes, &found->max_classes, sizeof *classes);
    if (!classes)
        return fail_memory(search);
    found->classes = classes;
    classes[found->info.n_classes] = strdup(name);
    if (!classes[found->info.n_classes])
        return fail_memory(search);
    found->info.n_classes++;
    return 0;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Take the images that lie directly in the first folder, and the names of its folders as candidates
 * for classes. */
static int read_top(struct search *search, DIR *dir, const struct folder *top)
{
    const struct dirent *entry;
    const int fd = dirfd(dir);
    struct stat st;
    int r = 0;
    while (r == 0 && (errno = 0, entry = readdir(dir))) {
        if (is_passed_over(search, fd, entry->d_name))
            continue;
        r = report(search);
        if (r == 0 && !is_folder(fd, entry))
            r = take_file(search, fd, top, entry->d_name);
        else if (r == 0 && (fstatat(fd, entry->d_name, &st, 0) < 0 || !is_skipped(search, &st)))
            r = add_class(search, entry->d_name);
    }
    if (r == 0 && errno)
        return fail_folder(search, search->s->path, errno);
    if (search->found->info.n_classes)
        qsort(search->found->classes, search->found->info.n_classes, sizeof *search->found->classes,
              compare_names);
    return r;
}

static void drop_classes(struct pstk_image_folder *found)
{
    for (uint64_t i = 0; i < found->info.n_classes; i++)
        free(found->classes[i]);
    free(found->classes);
    found->classes = NULL;
    found->info.n_classes = found->max_classes = 0;
}

/* Leave out the first n images, which lie directly in the first folder. */
static void leave_out(struct pstk_image_folder *found, uint64_t n)
{
    found->info.n_left_out = n;
    found->info.n_images -= n;
    if (n)
        memmove(found->images, found->images + n, found->info.n_images * sizeof *found->images);
}

static int refuse_empty(const struct search *search, int fd, const char *name, int is_foreign)
{
    char path[MAX_PATH];
    const int n = snprintf(path, sizeof path, "%s/" PSTK__FOLDER_MANIFEST, name);
    enum pstk__folder_empty empty = is_foreign ? PSTK__EMPTY_FOREIGN : PSTK__EMPTY_NONE;
    if (n > 0 && (size_t)n < sizeof path && faccessat(fd, path, F_OK, 0) == 0)
        empty = PSTK__EMPTY_MANIFEST;
    return pstk__folder_refuse_empty((struct pstk__folder_named){"", name}, empty, search->err);
}

/* Read every folder in the first one. If one of them has an image, they are classes: then each must
 * have one. */
static int read_classes(struct search *search, int fd, struct folder *top)
{
    struct pstk_image_folder *found = search->found;
    const uint64_t n_top = found->info.n_images;
    const char *empty = NULL; /* the first folder without images */
    int is_foreign = 0;
    for (uint64_t c = 0; c < found->info.n_classes; c++) {
        const char *name = found->classes[c];
        const uint64_t n_before = found->info.n_images, n_foreign = found->info.n_foreign;
        top->number = (uint32_t)c;
        int r = read_inner(search, fd, top, name);
        if (r == 0)
            r = pstk__folder_check_class((struct pstk__folder_named){"", name}, name, search->err);
        if (r < 0)
            return r;
        if (empty || found->info.n_images > n_before)
            continue;
        empty = name;
        is_foreign = found->info.n_foreign > n_foreign;
    }
    if (found->info.n_images == n_top)
        drop_classes(found);
    else if (empty)
        return refuse_empty(search, fd, empty, is_foreign);
    else
        leave_out(found, n_top);
    return 0;
}

/* ---- order ----------------------------------------------------------------------------------- */

static int compare_images(const void *a, const void *b, void *paths)
{
    const struct image *x = a, *y = b;
    const char *x_path = (const char *)paths + x->path, *y_path = (const char *)paths + y->path;
    if (x->number != y->number)
        return x->number < y->number ? -1 : 1;
    const uint32_t n = x->folder_size < y->folder_size ? x->folder_size : y->folder_size;
    const int r = memcmp(x_path, y_path, n);
    if (r)
        return r;
    if (x->folder_size != y->folder_size)
        return x->folder_size < y->folder_size ? -1 : 1;
    return strcmp(x_path + n, y_path + n);
}

static int search_in(struct search *search, DIR *dir)
{
    struct pstk_image_folder *found = search->found;
    struct folder top = {.path = ""};
    struct stat st;
    if (fstat(dirfd(dir), &st) == 0) {
        top.above.device = st.st_dev;
        top.above.inode = st.st_ino;
    }
    int r = read_top(search, dir, &top);
    if (r == 0 && found->info.n_classes)
        r = read_classes(search, dirfd(dir), &top);
    if (r == 0 && found->info.n_images)
        qsort_r(found->images, found->info.n_images, sizeof *found->images, compare_images,
                found->paths.data);
    return r;
}

/* ---- the public functions -------------------------------------------------------------------- */

static int check(const struct pstk_image_folder_settings *s, struct pstk_error *err)
{
    if (s->size != sizeof *s)
        return pstk__fail_setting(err, "settings.size", s->size,
                                  "sizeof(struct pstk_image_folder_settings)");
    if (s->by_content > 1)
        return pstk__fail_setting(err, "by_content", s->by_content, "0 or 1");
    if (!s->path || !s->path[0])
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "path: must be the path of a folder of images");
    return 0;
}

int pstk_image_folder_open(struct pstk_image_folder **out,
                           const struct pstk_image_folder_settings *s, struct pstk_error *err)
{
    struct search search = {.s = s, .err = err};
    struct stat st;
    *out = NULL;
    int r = check(s, err);
    if (r < 0)
        return r;
    if (s->skip_path && stat(s->skip_path, &st) == 0) {
        search.has_skip = 1;
        search.skip_device = st.st_dev;
        search.skip_inode = st.st_ino;
    }
    DIR *dir = open_folder(AT_FDCWD, s->path);
    if (!dir)
        return fail_folder(&search, s->path, errno);
    search.found = calloc(1, sizeof *search.found);
    r = search.found ? search_in(&search, dir) : fail_memory(&search);
    closedir(dir);
    if (r < 0)
        pstk_image_folder_close(&search.found);
    *out = search.found;
    return r;
}

void pstk_image_folder_close(struct pstk_image_folder **folder)
{
    struct pstk_image_folder *found = folder ? *folder : NULL;
    if (!found)
        return;
    drop_classes(found);
    pstk__bytes_free(&found->paths);
    free(found->images);
    free(found);
    *folder = NULL;
}

int pstk_image_folder_get_info(const struct pstk_image_folder *folder,
                               struct pstk_image_folder_info *info)
{
    const uint32_t size = info->size;
    if (size < sizeof size)
        return PSTK_EINVAL;
    memcpy(info, &folder->info, size < sizeof *info ? size : sizeof *info);
    info->size = size;
    return 0;
}

const char *pstk_image_folder_path(const struct pstk_image_folder *folder, uint64_t i,
                                   uint32_t *number)
{
    if (i >= folder->info.n_images)
        return NULL;
    if (number)
        *number = folder->images[i].number;
    return (const char *)folder->paths.data + folder->images[i].path;
}

const char *pstk_image_folder_class(const struct pstk_image_folder *folder, uint64_t i)
{
    return i < folder->info.n_classes ? folder->classes[i] : NULL;
}

const char *pstk_image_folder_foreign(const struct pstk_image_folder *folder, uint32_t i,
                                      uint64_t *n)
{
    if (i >= folder->info.n_formats)
        return NULL;
    if (n)
        *n = folder->formats[i].n;
    return folder->formats[i].name;
}
