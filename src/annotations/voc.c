/* SPDX-License-Identifier: Apache-2.0 */
/*
 * voc: reads Pascal VOC, a folder with one XML file for each image. All files are read once, to
 * check them and to learn the classes; to read an image, its file is read again. Masks are the PNG
 * files of SegmentationClass and SegmentationObject, if the folder has them.
 */
#include "annotations/source.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "annotations/voc_xml.h"
#include "annotations/whole_file.h"
#include "base/error.h"

#define MAX_TEXT (UINT64_C(4) << 20)   /* maximum bytes of an XML file, or of a list of names */
#define MAX_MASK (UINT64_C(256) << 20) /* maximum bytes of a mask's file */
#define MAX_CLASSES 65536
#define MAX_PATH 4096
#define MAX_DEPTH 8 /* nested folders in which files are counted */

enum value { FILE_NAME, BOXES, LABELS, DIFFICULT, TRUNCATED, POSE, N_FIXED };

static const struct pstk_field fields[N_FIXED] = {
    [FILE_NAME] = {.name = "file_name", .kind = PSTK_FIELD_UTF8},
    [BOXES] = PSTK__ANNOTATIONS_BOXES(PSTK_BOX_FORMAT_XYXY),
    [LABELS] = PSTK__ANNOTATIONS_ARRAY("labels", PSTK_I64),
    [DIFFICULT] = PSTK__ANNOTATIONS_ARRAY("difficult", PSTK_U8),
    [TRUNCATED] = PSTK__ANNOTATIONS_ARRAY("truncated", PSTK_U8),
    [POSE] = {.name = "pose", .kind = PSTK_FIELD_UTF8_LIST, .rows = "objects"},
};

/* The masks of an image: a field of kind mask if every image has one, else a list of one or none.
 */
enum { N_MASKS = 2 };
static const struct {
    const char *folder, *name, *list_name;
} masks[N_MASKS] = {{"SegmentationClass", "mask", "masks"},
                    {"SegmentationObject", "object_mask", "object_masks"}};

struct voc {
    char **stems; /* names of the XML files without .xml, one for each image; owned */
    uint64_t n;
    double offset;             /* subtracted from xmin and ymin */
    struct pstk__bytes bytes;  /* bytes of the current file */
    struct pstk__bytes items;  /* struct pstk_list_item of the poses */
    uint64_t n_masks[N_MASKS]; /* images that have such a mask */
    int32_t mask_at[N_MASKS];  /* field; -1: none */
};

/* ---- files ----------------------------------------------------------------------------------- */

/* Write "path/folder/name" and an ending. Returns 0 or EFBIG. */
static int make_path(char path[MAX_PATH], const struct pstk_annotations *a, const char *folder,
                     const char *name, const char *ending, struct pstk_error *err)
{
    if (snprintf(path, MAX_PATH, "%s/%s%s%s%s", a->path, folder, name[0] ? "/" : "", name, ending) <
        MAX_PATH)
        return 0;
    return pstk__fail(err, PSTK_EFBIG, PSTK_STAGE_OPEN, "%.200s/%s/%.80s...: the path is too long",
                      a->path, folder, name);
}

static int parse_image(struct pstk_annotations *a, const char *stem, struct pstk__voc_file *file,
                       struct pstk_error *err)
{
    struct voc *voc = a->state;
    char path[MAX_PATH];
    *file = (struct pstk__voc_file){.skip_bad = a->skip_bad};
    int r = make_path(path, a, "Annotations", stem, ".xml", err);
    if (r == 0)
        r = pstk__whole_file_read(&voc->bytes, path, MAX_TEXT, err);
    return r < 0 ? r : pstk__voc_parse(file, path, voc->bytes.data, voc->bytes.size, err);
}

/* ---- which images ---------------------------------------------------------------------------- */

static int add_stem(struct voc *voc, const char *name, size_t size, struct pstk_error *err)
{
    if ((voc->n & (voc->n - 1)) == 0) {
        char **more = reallocarray(voc->stems, voc->n ? 2 * voc->n : 1, sizeof *more);
        if (!more)
            return pstk__annotations_no_memory(err);
        voc->stems = more;
    }
    voc->stems[voc->n] = strndup(name, size);
    return voc->stems[voc->n] ? (voc->n++, 0) : pstk__annotations_no_memory(err);
}

static int compare_stems(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Suffixes of pictures, in the order in which they are tried; and suffixes of XML files. */
static const char *const of_pictures[] = {".jpg",  ".jpeg", ".JPG", ".JPEG", ".Jpg",
                                          ".Jpeg", ".png",  ".PNG", ".Png",  NULL};
static const char *const of_xml[] = {".xml", ".XML", ".Xml", NULL};

/* Return the bytes of a name before its suffix; 0 if it has none of these suffixes. */
static size_t stem_size(const char *name, const char *const *suffixes)
{
    const size_t size = strlen(name);
    for (; *suffixes; suffixes++) {
        const size_t n = strlen(*suffixes);
        if (size > n && strcmp(name + size - n, *suffixes) == 0)
            return size - n;
    }
    return 0;
}

/* Return 1 if the sorted stems include the first `size` bytes of a name. */
static int has_stem(const struct voc *voc, const char *name, size_t size)
{
    char stem[NAME_MAX + 1];
    const char *key = stem;
    snprintf(stem, sizeof stem, "%.*s", (int)size, name);
    return voc->n && bsearch(&key, voc->stems, voc->n, sizeof *voc->stems, compare_stems) != NULL;
}

static int is_folder(DIR *dir, const struct dirent *entry)
{
    struct stat st;
    if (entry->d_type != DT_UNKNOWN)
        return entry->d_type == DT_DIR;
    return fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

/* Add to *n the files of a folder of the data set that have one of the suffixes. Files of the stems
 * do not count, except in subfolders. The count is for a warning, so a folder that cannot be read,
 * such as lost+found, counts as empty. */
static void count_left(const struct pstk_annotations *a, const char *folder,
                       const char *const *suffixes, uint32_t depth, uint64_t *n)
{
    char path[MAX_PATH];
    DIR *dir =
        depth == MAX_DEPTH || make_path(path, a, folder, "", "", NULL) < 0 ? NULL : opendir(path);
    const struct dirent *entry;
    while (dir && (entry = readdir(dir))) {
        const size_t size = stem_size(entry->d_name, suffixes);
        if (entry->d_name[0] == '.')
            continue;
        if (!is_folder(dir, entry))
            *n += size && (depth > 0 || !has_stem(a->state, entry->d_name, size));
        else if (snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) < (int)sizeof path)
            count_left(a, path, suffixes, depth + 1, n);
    }
    if (dir)
        closedir(dir);
}

/* List every XML file of Annotations, by name. */
static int list_folder(struct pstk_annotations *a, struct pstk_error *err)
{
    struct voc *voc = a->state;
    char path[MAX_PATH];
    int r = make_path(path, a, "Annotations", "", "", err);
    if (r < 0)
        return r;
    DIR *dir = opendir(path);
    if (!dir)
        return pstk__fail_errno(err, errno, PSTK_STAGE_OPEN, "cannot open the folder %s", path);
    const struct dirent *entry;
    while (r == 0 && (errno = 0, entry = readdir(dir))) {
        static const char *const read[] = {".xml", NULL};
        const size_t size = entry->d_name[0] == '.' ? 0 : stem_size(entry->d_name, read);
        if (size)
            r = add_stem(voc, entry->d_name, size, err);
    }
    if (r == 0 && errno)
        r = pstk__fail_errno(err, errno, PSTK_STAGE_OPEN, "cannot read the folder %s", path);
    closedir(dir);
    if (voc->n)
        qsort(voc->stems, voc->n, sizeof *voc->stems, compare_stems);
    if (r == 0) {
        count_left(a, "Annotations", of_xml, 0, &a->info.n_xml_not_read);
        count_left(a, "JPEGImages", of_pictures, 0, &a->info.n_without_xml);
    }
    if (r == 0 && voc->n == 0 && a->info.n_xml_not_read)
        r = pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_OPEN,
                       "%.300s has no .xml file, but %" PRIu64
                       " in its folders or with the suffix .XML (move them into it, as NAME.xml)",
                       path, a->info.n_xml_not_read);
    else if (r == 0 && voc->n == 0)
        r = pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_OPEN, "%.300s has no .xml file", path);
    return r;
}

static int refuse_twice(struct voc *voc, const char *path, struct pstk_error *err)
{
    char **sorted = reallocarray(NULL, voc->n ? voc->n : 1, sizeof *sorted);
    int r = 0;
    if (!sorted)
        return pstk__annotations_no_memory(err);
    memcpy(sorted, voc->stems, voc->n * sizeof *sorted);
    qsort(sorted, voc->n, sizeof *sorted, compare_stems);
    for (uint64_t i = 1; i < voc->n && r == 0; i++)
        if (strcmp(sorted[i], sorted[i - 1]) == 0)
            r = pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_OPEN,
                           "%.200s: the image %.100s is listed twice; must be once", path,
                           sorted[i]);
    free(sorted);
    return r;
}

/* A line of an image set. */
struct line {
    const char *file; /* file of the set */
    uint64_t number;  /* number of the line, from 1 */
    const char *at;
    size_t size; /* bytes, without space at the end */
};

/* Return 1 if the XML file of a stem exists, or cannot be examined: reading it then fails with the
 * reason. */
static int has_xml(const struct pstk_annotations *a, const char *stem)
{
    char path[MAX_PATH];
    return make_path(path, a, "Annotations", stem, ".xml", NULL) < 0 || access(path, F_OK) == 0 ||
           (errno != ENOENT && errno != ENOTDIR);
}

/* Fail because a line names an image without an XML file; the message says if a suffix should be
 * removed. */
static int fail_absent(const struct pstk_annotations *a, const struct line *line, const char *stem,
                       struct pstk_error *err)
{
    char shorter[NAME_MAX + 1];
    const size_t size = stem_size(stem, of_pictures), n = size ? size : stem_size(stem, of_xml);
    snprintf(shorter, sizeof shorter, "%.*s", (int)n, stem);
    return n && has_xml(a, shorter)
               ? pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_OPEN,
                            "%.200s: line %" PRIu64 " is '%.80s'; must be the name of one image "
                            "without its suffix (%.80s)",
                            line->file, line->number, stem, shorter)
               : pstk__fail(err, PSTK_ENOENT, PSTK_STAGE_OPEN,
                            "%.200s: line %" PRIu64 " is '%.80s', and Annotations/%.80s.xml is "
                            "missing (add it, or remove the line)",
                            line->file, line->number, stem, stem);
}

/* Add the name of a line, which is not empty. */
static int take_line(struct pstk_annotations *a, const struct line *line, struct pstk_error *err)
{
    struct voc *voc = a->state;
    for (size_t i = 0; i < line->size; i++) {
        const unsigned char c = (unsigned char)line->at[i];
        if (c <= ' ' || c == '/' || c == 127)
            return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_OPEN,
                              "%.200s: line %" PRIu64 " is '%.*s'; must be the name of one image "
                              "(sets of one class, with 1 and -1, are not read)",
                              line->file, line->number, (int)(line->size < 80 ? line->size : 80),
                              line->at);
    }
    const int r = add_stem(voc, line->at, line->size, err);
    if (r < 0 || has_xml(a, voc->stems[voc->n - 1]))
        return r;
    return fail_absent(a, line, voc->stems[voc->n - 1], err);
}

/* Add the names of an image set, one on each line. */
static int list_set(struct pstk_annotations *a, const char *name, struct pstk_error *err)
{
    struct voc *voc = a->state;
    char path[MAX_PATH];
    struct line line = {.file = path};
    int r =
        pstk__annotations_path_wrong(name)
            ? pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                         "image_set: value is '%.100s'; must be the name of a set (train)", name)
            : make_path(path, a, strchr(name, '/') ? "ImageSets" : "ImageSets/Main", name, ".txt",
                        err);
    if (r == 0)
        r = pstk__whole_file_read(&voc->bytes, path, MAX_TEXT, err);
    const char *at = voc->bytes.size ? (const char *)voc->bytes.data : "";
    const char *end = at + voc->bytes.size;
    if (end - at >= 3 && memcmp(at, "\xef\xbb\xbf", 3) == 0)
        at += 3; /* skip the byte order mark that Windows programs write */
    while (r == 0 && at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        const char *last = stop ? stop : end;
        while (last > at && (last[-1] == '\r' || last[-1] == ' '))
            last--;
        line.number++;
        line.at = at;
        line.size = (size_t)(last - at);
        if (line.size)
            r = take_line(a, &line, err);
        at = stop ? stop + 1 : end;
    }
    if (r == 0 && voc->n == 0)
        r = pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_OPEN, "%.300s lists no images", path);
    return r < 0 ? r : refuse_twice(voc, path, err);
}

/* ---- the first reading ----------------------------------------------------------------------- */

/* Return the class of a name, or the position where it would be inserted: the number of names
 * before it. */
static uint64_t find_class(const struct pstk_annotations *a, const char *name, int *found)
{
    uint64_t low = 0, high = a->info.n_names;
    *found = 0;
    while (low < high && !*found) {
        const uint64_t middle = (low + high) / 2;
        const int r = strcmp(a->classes[middle].name, name);
        *found = r == 0;
        if (r < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return *found ? high : low;
}

static int note_class(struct pstk_annotations *a, const char *name, struct pstk_error *err)
{
    int found;
    const uint64_t at = find_class(a, name, &found);
    if (found)
        return 0;
    if (a->info.n_names == MAX_CLASSES)
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_OPEN,
                          "%.200s has more than %d names of objects", a->path, MAX_CLASSES);
    const struct pstk__annotations_class added = {.name = strdup(name), .id = -1};
    const int r = pstk__annotations_add_class(a, added, err);
    if (r < 0)
        return r;
    memmove(a->classes + at + 1, a->classes + at, (a->info.n_names - 1 - at) * sizeof added);
    a->classes[at] = added;
    return 0;
}

/* Return 1 if the image has a mask of this kind, or one that cannot be examined: reading it then
 * fails with the reason. */
static int has_mask(const struct pstk_annotations *a, int mask, const char *stem)
{
    char path[MAX_PATH];
    if (make_path(path, a, masks[mask].folder, stem, ".png", NULL) < 0)
        return 1;
    return access(path, F_OK) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

/* Return the path of an image's picture: JPEGImages/STEM.jpg, as torchvision does; if that does not
 * exist, the first existing name with another suffix of a JPEG or PNG file. The <filename> of the
 * XML is not used: it is wrong in copies and renamed files. Returns owned; NULL: no memory. */
static char *find_picture(const struct pstk_annotations *a, const char *stem)
{
    char path[MAX_PATH], *found;
    uint32_t i = 0;
    while (of_pictures[i] && (make_path(path, a, "JPEGImages", stem, of_pictures[i], NULL) < 0 ||
                              access(path, F_OK) < 0))
        i++;
    if (!of_pictures[i])
        i = 0;
    return asprintf(&found, "JPEGImages/%s%s", stem, of_pictures[i]) < 0 ? NULL : found;
}

/* Count the bad objects of a file, which are left out. */
static int count_bad(struct pstk_annotations *a, const struct pstk__voc_file *file,
                     struct pstk_error *err)
{
    struct pstk_error own;
    int r = 0;
    for (uint64_t i = 0; i < file->n_bad && r == 0; i++) {
        own = file->bad;
        r = pstk__annotations_leave_out(a, PSTK_EBADMSG, &own);
    }
    return r < 0 ? pstk__fail_copy(err, &own) : 0;
}

/* Add the image of a file, whose stem stays. Returns 1 if it is left out: it is bad; or has no
 * objects and skip_empty is set; or all its objects are bad (without them it would count as
 * background). */
static int take_image(struct pstk_annotations *a, const char *stem, int skip_empty,
                      struct pstk_error *err)
{
    struct voc *voc = a->state;
    struct pstk__voc_file file;
    const uint64_t n_bad = a->info.n_bad;
    struct pstk_error own;
    pstk_error_init(&own, sizeof own);
    int r = pstk__annotations_leave_out(a, parse_image(a, stem, &file, &own), &own);
    if (r < 0)
        pstk__fail_copy(err, &own);
    else if (a->info.n_bad > n_bad)
        r = 1;
    if (r == 0)
        r = count_bad(a, &file, err);
    for (uint64_t i = 0; i < file.n && r == 0; i++)
        r = note_class(a, file.objects[i].name, err);
    if (r == 0 && file.n == 0 && file.n_bad)
        r = 1;
    a->info.n_empty += r == 0 && file.n == 0;
    if (r == 0 && file.n == 0 && skip_empty)
        r = 1;
    if (r == 0) {
        const struct pstk__annotated_image image = {.file = find_picture(a, stem),
                                                    .id = (int64_t)a->info.n_images,
                                                    .width = file.width,
                                                    .height = file.height,
                                                    .n = file.n};
        for (int m = 0; m < N_MASKS; m++)
            voc->n_masks[m] += (uint64_t)has_mask(a, m, stem);
        a->info.n_objects += file.n;
        r = pstk__annotations_add_image(a, image, err);
    }
    pstk__voc_file_close(&file);
    return r;
}

static int take_images(struct pstk_annotations *a, const struct pstk_annotations_settings *s,
                       struct pstk_error *err)
{
    struct voc *voc = a->state;
    const uint64_t n = voc->n;
    uint64_t kept = 0;
    int r = 0;
    for (uint64_t i = 0; i < n && r >= 0; i++) {
        r = take_image(a, voc->stems[i], s->skip_empty != 0, err);
        char *stem = voc->stems[i];
        voc->stems[i] = voc->stems[kept]; /* so that close frees both */
        voc->stems[kept] = stem;
        kept += r == 0;
        if (r >= 0 && s->on_progress && s->on_progress(s->user, i + 1, n))
            r = pstk__fail(err, PSTK_ECANCELED, PSTK_STAGE_OPEN,
                           "reading the annotations was stopped");
    }
    if (r >= 0 && kept == 0 && a->info.n_bad)
        r = pstk__annotations_all_bad(a, err);
    else if (r >= 0 && kept == 0)
        r = pstk__fail(
            err, PSTK_EBADMSG, PSTK_STAGE_OPEN,
            "skip_empty: no image is left, none of %.200s has annotations (do not set skip_empty)",
            a->path);
    return r < 0 ? r : 0;
}

static void choose_fields(struct pstk_annotations *a)
{
    struct voc *voc = a->state;
    for (int f = 0; f < N_FIXED; f++)
        pstk__annotations_add_field(a, &fields[f]);
    for (int m = 0; m < N_MASKS; m++) {
        const int all = voc->n_masks[m] == a->info.n_images;
        struct pstk_field field = {.kind = all ? PSTK_FIELD_MASK : PSTK_FIELD_MASK_LIST,
                                   .of = PSTK__ANNOTATIONS_IMAGE};
        snprintf(field.name, sizeof field.name, "%s", all ? masks[m].name : masks[m].list_name);
        voc->mask_at[m] = voc->n_masks[m] ? (int32_t)a->info.n_fields : -1;
        if (voc->n_masks[m])
            pstk__annotations_add_field(a, &field);
    }
}

static int voc_open(struct pstk_annotations *a, const struct pstk_annotations_settings *s,
                    struct pstk_error *err)
{
    struct voc *voc = calloc(1, sizeof *voc);
    a->state = voc;
    if (!voc)
        return pstk__annotations_no_memory(err);
    voc->offset = s->voc_offset;
    int r = s->image_set ? list_set(a, s->image_set, err) : list_folder(a, err);
    if (r == 0)
        r = take_images(a, s, err);
    if (r == 0)
        choose_fields(a);
    return r;
}

/* ---- the values of an image ------------------------------------------------------------------ */

static int put_list(struct pstk__bytes *value, uint32_t kind, const struct pstk_list_item *items,
                    uint64_t n, struct pstk_error *err)
{
    void *list;
    uint64_t size;
    const int r = pstk_list_build(kind, items, n, &list, &size, err);
    if (r < 0)
        return r;
    pstk__bytes_put(value, list, size);
    pstk_free(list);
    return 0;
}

/* Return 1 if a box, as written, begins before the first pixel, which VOC counts as 1. Boxes that
 * are fractions of their image are counted elsewhere. */
static int is_from_zero(const double box[4])
{
    return ((box[0] >= 0 && box[0] < 1) || (box[1] >= 0 && box[1] < 1)) &&
           (box[2] > 1 || box[3] > 1);
}

static int put_object(struct pstk_annotations *a, const struct pstk__annotated_image *image,
                      const struct pstk__voc_object *object, struct pstk_error *err)
{
    struct voc *voc = a->state;
    const struct pstk_list_item pose = {.data = object->pose, .size = strlen(object->pose)};
    const double corners[4] = {object->box[0] - voc->offset, object->box[1] - voc->offset,
                               object->box[2], object->box[3]};
    int found;
    const uint64_t label = find_class(a, object->name, &found);
    if (!found)
        return pstk__fail(err, PSTK_EIO, PSTK_STAGE_READ,
                          "%.200s changed while it was read: the class %.100s is new", a->path,
                          object->name);
    for (int i = 0; i < 4; i++)
        pstk__bytes_f32(&a->values[BOXES], corners[i]);
    pstk__annotations_count_box(a, image, corners);
    a->info.n_from_zero += voc->offset == 1 && is_from_zero(object->box);
    pstk__bytes_i64(&a->values[LABELS], (int64_t)label);
    pstk__bytes_u8(&a->values[DIFFICULT], object->difficult);
    pstk__bytes_u8(&a->values[TRUNCATED], object->truncated);
    pstk__bytes_put(&voc->items, &pose, sizeof pose);
    return 0;
}

static int put_masks(struct pstk_annotations *a, const char *stem, struct pstk_error *err)
{
    struct voc *voc = a->state;
    for (int m = 0; m < N_MASKS; m++) {
        char path[MAX_PATH];
        if (voc->mask_at[m] < 0)
            continue;
        struct pstk__bytes *value = &a->values[voc->mask_at[m]];
        const int is_list = a->fields[voc->mask_at[m]].kind == PSTK_FIELD_MASK_LIST;
        const int n = !is_list || has_mask(a, m, stem);
        int r = n ? make_path(path, a, masks[m].folder, stem, ".png", err) : 0;
        if (n && r == 0)
            r = pstk__whole_file_read(&voc->bytes, path, MAX_MASK, err);
        const struct pstk_list_item item = {.data = voc->bytes.data, .size = voc->bytes.size};
        if (r == 0 && is_list)
            r = put_list(value, PSTK_FIELD_MASK_LIST, &item, (uint64_t)n, err);
        else if (r == 0)
            pstk__bytes_put(value, voc->bytes.data, voc->bytes.size);
        if (r < 0)
            return r;
    }
    return 0;
}

static int put_image(struct pstk_annotations *a, uint64_t i, const struct pstk__voc_file *file,
                     struct pstk_error *err)
{
    struct voc *voc = a->state;
    const struct pstk__annotated_image *image = &a->images[i];
    const char *name = strchr(image->file, '/') + 1;
    int r = 0;
    pstk__bytes_put(&a->values[FILE_NAME], name, strlen(name));
    pstk__bytes_clear(&voc->items);
    for (uint64_t o = 0; o < file->n && r == 0; o++)
        r = put_object(a, image, &file->objects[o], err);
    if (r == 0 && voc->items.failed)
        r = pstk__annotations_no_memory(err);
    if (r == 0)
        r = put_list(&a->values[POSE], PSTK_FIELD_UTF8_LIST, (const void *)voc->items.data, file->n,
                     err);
    return r < 0 ? r : put_masks(a, voc->stems[i], err);
}

static int voc_read(struct pstk_annotations *a, uint64_t i, struct pstk_error *err)
{
    struct voc *voc = a->state;
    struct pstk__voc_file file;
    int r = parse_image(a, voc->stems[i], &file, err);
    if (r == 0)
        r = put_image(a, i, &file, err);
    pstk__voc_file_close(&file);
    return r;
}

static void voc_close(struct pstk_annotations *a)
{
    struct voc *voc = a->state;
    if (!voc)
        return;
    for (uint64_t i = 0; i < voc->n; i++)
        free(voc->stems[i]);
    pstk__bytes_free(&voc->bytes);
    pstk__bytes_free(&voc->items);
    free(voc->stems);
    free(voc);
}

const struct pstk__annotations_entry pstk__annotations_voc = {
    .format = PSTK_ANNOTATIONS_VOC, .open = voc_open, .read = voc_read, .close = voc_close};
