/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export_folder: writes image files. A file's path is its sample's key, the path that packing a
 * folder of images stores, or the sample's number if there is no key field. The class's name is put
 * before it as a folder if the data set has class names and the path does not begin with it.
 *
 * A path that cannot be used is changed. Two kinds of parts are escaped: a part that begins with a
 * dot, which readers of folders skip, and a folder named as a file of the export. A file gets its
 * number if another sample has its path, or needs that path as a folder.
 *
 * If there are fields other than image, label and key, metadata.jsonl has an object for each
 * sample: file_name, then all fields except the image; the label is the name of its class. Hugging
 * Face's imagefolder reads this.
 */
#include "base/error.h"
#include "export/array.h"
#include "export/classes.h"
#include "export/export.h"
#include "export/json_value.h"
#include "export/names.h"
#include "store/export_mark.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define METADATA "metadata.jsonl"

struct folder {
    struct pstk__export *export; /* borrowed */
    int has_metadata;
    const char *label; /* name of the label in metadata, if its values are class names; or NULL */
    struct pstk__out_file metadata; /* open if has_metadata */
    struct pstk__bytes path;        /* path of the sample's file, with a 0; owned */
    int is_renamed;          /* 1: the path differs from the sample's key, or class and key */
    uint64_t n_top, n_below; /* files in the folder itself, and in folders below it */
    struct pstk__export_classes classes; /* classes, as readers of the folder number them; owned */
    uint64_t n_unread;                   /* other files; readers of folders ignore their suffixes */
    struct pstk__bytes line;             /* line of metadata; owned */
};

static const char *refuse(const struct pstk__export *e, uint32_t i)
{
    if ((int32_t)i == e->image)
        return NULL;
    switch (e->fields[i].kind) {
    case PSTK_FIELD_IMAGE:
    case PSTK_FIELD_MASK:
        return "is a second image, but an image folder has one image for each sample";
    case PSTK_FIELD_IMAGE_LIST:
    case PSTK_FIELD_MASK_LIST:
        return "is a list of images, but an image folder has one image for each sample";
    case PSTK_FIELD_BYTES:
    case PSTK_FIELD_BYTES_LIST:
        return "is bytes, and metadata.jsonl has texts and numbers";
    default:
        return NULL;
    }
}

/* ---- paths ----------------------------------------------------------------------------------- */

/* Return the label of the sample, UINT64_MAX if it is negative. number: gets its digits, with a 0.
 */
static uint64_t label_of(const struct folder *folder, const struct pstk__export_sample *sample,
                         struct pstk__bytes *number)
{
    const struct pstk__export *e = folder->export;
    struct pstk__array label;
    pstk__array_of(&label, &e->fields[e->label], sample->values[e->label].data,
                   sample->values[e->label].size);
    pstk__json_number(number, label.dtype, label.data);
    pstk__bytes_put(number, "", 1);
    return number->failed || number->data[0] == '-'
               ? UINT64_MAX
               : strtoull((const char *)number->data, NULL, 10);
}

/* Return the name of the sample's class, or NULL if it has none. number: as for label_of. */
static const char *class_of(const struct folder *folder, const struct pstk__export_sample *sample,
                            struct pstk__bytes *number)
{
    return pstk_dataset_name(folder->export->dataset, label_of(folder, sample, number));
}

/* Append the folder of the sample's class: the class's name, or its number if it has no name. */
static void put_class(struct folder *folder, const struct pstk__export_sample *sample)
{
    struct pstk__bytes number = {0};
    const char *name = class_of(folder, sample, &number);
    if (!number.failed && (!name || pstk__name_part(&folder->path, name, strlen(name)) < 0))
        pstk__bytes_put(&folder->path, number.data, number.size - 1);
    folder->path.failed |= number.failed;
    pstk__bytes_free(&number);
    pstk__bytes_text(&folder->path, "/");
}

/* Return 1 if the image may have a name with this suffix. A packed file keeps any image suffix,
 * even the other encoding's; a file encoded from pixels is .png. */
static int is_kept(const struct pstk__export_value *image, const char *suffix, uint64_t size)
{
    static const char *const known[] = {".png", ".jpg", ".jpeg", ".jpe", ".jfif"};
    for (size_t i = 0; i < (image->is_encoded ? 1 : sizeof known / sizeof *known); i++)
        if (size == strlen(known[i]) && strncasecmp(suffix, known[i], size) == 0)
            return 1;
    return 0;
}

static const char *suffix_of(uint32_t encoding)
{
    return encoding == PSTK_ENCODING_JPEG ? ".jpg" : ".png";
}

/* Append the path that the key gives, without the class's folder if the key begins with it. Returns
 * 0 if the key gives none. */
static int put_key(struct folder *folder, const struct pstk__export_sample *sample)
{
    const struct pstk__export *e = folder->export;
    struct pstk__bytes *path = &folder->path;
    const struct pstk__export_value *key = &sample->values[e->key];
    const struct pstk__export_value *image = &sample->values[e->image];
    const uint64_t cls = path->size;
    if (pstk__name_path(path, (const char *)key->data, key->size) < 0)
        return 0;
    if (path->size - cls > cls && cls && memcmp(path->data + cls, path->data, cls) == 0) {
        memmove(path->data, path->data + cls, path->size - cls);
        path->size -= cls;
    }
    const uint64_t n = pstk__name_image_suffix((const char *)path->data, path->size);
    if (n && is_kept(image, (const char *)path->data + path->size - n, n))
        return 1;
    path->size -= n;
    pstk__bytes_text(path, suffix_of(image->encoding));
    return 1;
}

/* Return 1 if the part of `n` bytes at `part`, in a path without a 0, must be escaped. */
static int is_reserved(const struct pstk__bytes *path, const char *part, uint64_t n)
{
    static const char *const files[] = {METADATA, PSTK__EXPORT_MARK};
    const char *begin = (const char *)path->data;
    if (n > 0 && part[0] == '.')
        return 1;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (part == begin && n < path->size && n == strlen(files[i]) &&
            memcmp(part, files[i], n) == 0)
            return 1;
    return 0;
}

/* Escape the first byte of reserved parts. Escaped parts are not reserved, so different paths stay
 * different. */
static void escape_parts(struct pstk__bytes *path)
{
    struct pstk__bytes escaped = {0};
    if (path->size == 0)
        return;
    const char *text = (const char *)path->data, *end = text + path->size;
    for (const char *part = text; part < end;) {
        const char *slash = memchr(part, '/', (size_t)(end - part));
        const char *after = slash ? slash + 1 : end;
        const int is_escaped = is_reserved(path, part, (uint64_t)((slash ? slash : end) - part));
        if (is_escaped)
            pstk__bytes_format(&escaped, "%%%02x", (uint8_t)*part);
        pstk__bytes_put(&escaped, part + is_escaped, (uint64_t)(after - part - is_escaped));
        part = after;
    }
    escaped.failed |= path->failed;
    pstk__bytes_free(path);
    *path = escaped;
}

/* Return 1 if the path does not begin with the folder that the name of the sample's class gives. */
static int is_class_renamed(const struct folder *folder, const struct pstk__export_sample *sample)
{
    struct pstk__bytes number = {0};
    const char *name = class_of(folder, sample, &number);
    const size_t n = name ? strlen(name) : 0;
    pstk__bytes_free(&number);
    return n > 0 && (folder->path.size <= n || folder->path.data[n] != '/' ||
                     memcmp(folder->path.data, name, n) != 0);
}

static int is_renamed(const struct folder *folder, const struct pstk__export_sample *sample)
{
    const struct pstk__export_value *key = &sample->values[folder->export->key];
    const uint64_t size = folder->path.size;
    const uint8_t *begin = folder->path.data;
    return key->size > 0 &&
           (size < key->size || memcmp(begin + size - key->size, key->data, key->size) != 0 ||
            (size > key->size && begin[size - key->size - 1] != '/'));
}

/* Find the path of a sample's file, with a 0: the key's path, if it is permitted. */
static void find_path(struct folder *folder, const struct pstk__export_sample *sample,
                      int may_have_key)
{
    const struct pstk__export *e = folder->export;
    struct pstk__bytes *path = &folder->path;
    pstk__bytes_clear(path);
    if (e->label >= 0)
        put_class(folder, sample);
    if (e->key < 0 || !may_have_key || !put_key(folder, sample))
        pstk__bytes_format(path, "%06llu%s", (unsigned long long)sample->number,
                           suffix_of(sample->values[e->image].encoding));
    escape_parts(path);
    folder->is_renamed = !path->failed && ((e->key >= 0 && is_renamed(folder, sample)) ||
                                           (e->label >= 0 && is_class_renamed(folder, sample)));
    pstk__bytes_put(path, "", 1);
}

/* Insert the sample's number before the suffix of the path, since another sample has that path. */
static void number_path(struct folder *folder, const struct pstk__export_sample *sample)
{
    struct pstk__bytes *path = &folder->path;
    char suffix[16];
    const uint64_t length = path->size - 1;
    const uint64_t n = pstk__name_image_suffix((const char *)path->data, length);
    memcpy(suffix, path->data + length - n, n + 1); /* at most ".jpeg" */
    path->size = length - n;
    pstk__bytes_format(path, "-%06llu%s", (unsigned long long)sample->number, suffix);
    pstk__bytes_put(path, "", 1);
    folder->is_renamed = 1;
}

/* ---- metadata -------------------------------------------------------------------------------- */

static void put_value(struct folder *folder, uint32_t i, const struct pstk__export_value *value)
{
    const struct pstk_field *field = &folder->export->fields[i];
    struct pstk__array array;
    pstk__bytes_text(&folder->line, ", ");
    pstk__json_text(&folder->line, field->name, strlen(field->name));
    pstk__bytes_text(&folder->line, ": ");
    if (field->kind == PSTK_FIELD_UTF8) {
        pstk__json_text(&folder->line, (const char *)value->data, value->size);
    } else if (field->kind == PSTK_FIELD_UTF8_LIST) {
        pstk__json_texts(&folder->line, value->data, value->size);
    } else {
        pstk__array_of(&array, field, value->data, value->size);
        pstk__json_array(&folder->line, &array);
    }
}

/* Append the label as the name of its class. It is a text in every line: a class without a name is
 * its number, as for its folder. */
static void put_label(struct folder *folder, const struct pstk__export_sample *sample)
{
    struct pstk__bytes number = {0};
    const char *name = class_of(folder, sample, &number);
    pstk__bytes_text(&folder->line, ", ");
    pstk__json_text(&folder->line, folder->label, strlen(folder->label));
    pstk__bytes_text(&folder->line, ": ");
    if (!number.failed && (!name || !*name))
        name = (const char *)number.data;
    if (!number.failed)
        pstk__json_text(&folder->line, name, strlen(name));
    folder->line.failed |= number.failed;
    pstk__bytes_free(&number);
}

static int add_metadata(struct folder *folder, const struct pstk__export_sample *sample,
                        struct pstk_error *err)
{
    const struct pstk__export *e = folder->export;
    pstk__bytes_clear(&folder->line);
    pstk__bytes_text(&folder->line, "{\"file_name\": ");
    pstk__json_text(&folder->line, (const char *)folder->path.data, folder->path.size - 1);
    for (uint32_t i = 0; i < e->n_fields; i++)
        if ((int32_t)i == e->label && folder->label)
            put_label(folder, sample);
        else if ((int32_t)i != e->image && strcmp(e->fields[i].name, "file_name") != 0)
            put_value(folder, i, &sample->values[i]);
    pstk__bytes_text(&folder->line, "}\n");
    return folder->line.failed
               ? pstk__export_no_memory(e, err)
               : pstk__out_file_put(&folder->metadata, folder->line.data, folder->line.size, err);
}

/* ---- the target ------------------------------------------------------------------------------ */

/* Choose the label's name in metadata, if the data set has class names: `label`, whose texts
 * readers of the folder take for classes; or the field's own name, if another field is named
 * `label`. */
static void name_label(struct folder *folder)
{
    const struct pstk__export *e = folder->export;
    if (e->label < 0 || !pstk_dataset_name(e->dataset, 0))
        return;
    folder->label = "label";
    for (uint32_t i = 0; i < e->n_fields; i++)
        if ((int32_t)i != e->image && strcmp(e->fields[i].name, "label") == 0)
            folder->label = e->fields[e->label].name;
}

static int open_folder(void **state, struct pstk__export *e, struct pstk_error *err)
{
    struct folder *folder = *state = calloc(1, sizeof *folder);
    if (!folder)
        return pstk__export_no_memory(e, err);
    folder->export = e;
    name_label(folder);
    for (uint32_t i = 0; i < e->n_fields; i++)
        folder->has_metadata |=
            (int32_t)i != e->image && (int32_t)i != e->label && (int32_t)i != e->key;
    return 0;
}

static int begin(void *state, struct pstk_error *err)
{
    struct folder *folder = state;
    folder->export->files.sync_all = 1; /* one sync of all files is faster than one sync for each */
    return folder->has_metadata
               ? pstk__outdir_create(&folder->export->files, &folder->metadata, METADATA, err)
               : 0;
}

/* Count the file by its treatment in readers of image folders: read or ignored. */
static int create(struct folder *folder, const struct pstk__export_sample *sample,
                  struct pstk__out_file *file, struct pstk_error *err)
{
    int r = PSTK_EEXIST;
    for (int i = 0; i < 4 && r == PSTK_EEXIST; i++) {
        if (i % 2 == 0)
            find_path(folder, sample, i == 0);
        else
            number_path(folder, sample);
        folder->is_renamed |= i > 0;
        r = folder->path.failed ? pstk__export_no_memory(folder->export, err)
                                : pstk__outdir_create(&folder->export->files, file,
                                                      (const char *)folder->path.data, err);
    }
    folder->export->result.n_renamed += (uint64_t)folder->is_renamed;
    return r != PSTK_EEXIST
               ? r
               : pstk__export_fail(folder->export, sample, (uint32_t)folder->export->image,
                                   PSTK_EINVAL, err,
                                   "would become the file %s, which another sample has (set key to "
                                   "an empty text to number the files)",
                                   (const char *)folder->path.data);
}

/* Count the file by what readers of image folders do with it: read it or ignore it. */
static void count_file(struct folder *folder)
{
    static const char *const read[] = {".png", ".jpg", ".jpeg"};
    const char *path = (const char *)folder->path.data;
    const uint64_t size = folder->path.size - 1, n = pstk__name_image_suffix(path, size);
    for (size_t i = 0; i < sizeof read / sizeof *read; i++)
        if (n == strlen(read[i]) && strncasecmp(path + size - n, read[i], n) == 0) {
            *(strchr(path, '/') ? &folder->n_below : &folder->n_top) += 1;
            return;
        }
    folder->n_unread++;
}

/* Count the sample's class as readers see it: its text in metadata, or else its folder. */
static int count_class(struct folder *folder, const struct pstk__export_sample *sample,
                       struct pstk_error *err)
{
    struct pstk__bytes number = {0};
    if (folder->export->label < 0 || (folder->has_metadata && !folder->label))
        return 0;
    const uint64_t label = label_of(folder, sample, &number);
    const char *path = (const char *)folder->path.data, *name = path;
    size_t size = strcspn(path, "/");
    if (folder->has_metadata && !number.failed) {
        name = pstk_dataset_name(folder->export->dataset, label);
        name = name && *name ? name : (const char *)number.data;
        size = strlen(name);
    }
    int r =
        number.failed ? PSTK_ENOMEM : pstk__export_classes_add(&folder->classes, name, size, label);
    if (r == PSTK_EEXIST)
        r = pstk__export_fail(
            folder->export, sample, (uint32_t)folder->export->label, PSTK_EINVAL, err,
            "has class %.60s, whose name or number, %.*s, another class has too: readers of the "
            "folder would take both for one class (give the classes different names, or set label "
            "to an empty text to have no class folders)",
            (const char *)number.data, size < 60 ? (int)size : 60, name);
    else if (r < 0)
        r = pstk__export_no_memory(folder->export, err);
    pstk__bytes_free(&number);
    return r;
}

static int add(void *state, const struct pstk__export_sample *sample, struct pstk_error *err)
{
    struct folder *folder = state;
    const struct pstk__export_value *image = &sample->values[folder->export->image];
    struct pstk__out_file file;
    int r = create(folder, sample, &file, err);
    if (r < 0)
        return r;
    r = pstk__out_file_put(&file, image->data, image->size, err);
    if (r < 0) {
        pstk__out_file_drop(&file);
        return r;
    }
    count_file(folder);
    r = pstk__out_file_end(&file, 0, err);
    if (r == 0)
        r = count_class(folder, sample, err);
    return r < 0 || !folder->has_metadata ? r : add_metadata(folder, sample, err);
}

static int commit(void *state, struct pstk_error *err)
{
    struct folder *folder = state;
    folder->export->result.n_renumbered = pstk__export_classes_n_renumbered(&folder->classes);
    if (folder->has_metadata) /* metadata lists all files */
        return pstk__out_file_end(&folder->metadata, 1, err);
    folder->export->result.n_left_out =
        folder->n_unread + (folder->n_below > 0 ? folder->n_top : 0);
    return 0;
}

static void abort_folder(void *state)
{
    struct folder *folder = state;
    if (!folder)
        return;
    pstk__out_file_drop(&folder->metadata);
    pstk__bytes_free(&folder->path);
    pstk__bytes_free(&folder->line);
    pstk__export_classes_free(&folder->classes);
    free(folder);
}

const struct pstk__export_target pstk__export_folder = {
    .target = PSTK_EXPORT_FOLDER,
    .name = "folder",
    .one = "an image folder",
    .has_image = 1,
    .has_label = 1,
    .has_key = 1,
    .refuse = refuse,
    .open = open_folder,
    .begin = begin,
    .add = add,
    .commit = commit,
    .abort = abort_folder,
};
