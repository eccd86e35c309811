/* SPDX-License-Identifier: Apache-2.0 */
/* annotations: the list of formats, and the public functions. */
#include <penstock/annotations.h>

#include <stdlib.h>
#include <string.h>

#include "annotations/source.h"
#include "base/error.h"

#define MAX_FIELD_SIZE UINT32_MAX /* largest value that a record holds, bytes */

static const struct pstk__annotations_entry *const formats[] = {&pstk__annotations_coco,
                                                                &pstk__annotations_voc};

void pstk_annotations_settings_init(struct pstk_annotations_settings *s, uint32_t size)
{
    const struct pstk_annotations_settings defaults = {.size = size, .voc_offset = 1};
    memset(s, 0, size);
    memcpy(s, &defaults, size < sizeof defaults ? size : sizeof defaults);
}

int pstk__annotations_no_memory(struct pstk_error *err)
{
    return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for the annotations");
}

/* Double the list if its n elements fill it: its capacity is a power of two. Returns 0 or -1. */
static int grow(void **list, uint64_t n, size_t size)
{
    if (n & (n - 1))
        return 0;
    void *more = reallocarray(*list, n ? 2 * n : 1, size);
    if (!more)
        return -1;
    *list = more;
    return 0;
}

const char *pstk__annotations_path_wrong(const char *path)
{
    if (path[0] == 0)
        return "empty";
    if (path[0] == '/')
        return "an absolute path";
    for (const char *part = path; part; part = strchr(part, '/')) {
        part += *part == '/';
        if (strncmp(part, "..", 2) == 0 && (part[2] == 0 || part[2] == '/'))
            return "a path that leaves the folder";
    }
    return NULL;
}

int pstk__annotations_add_image(struct pstk_annotations *a, struct pstk__annotated_image image,
                                struct pstk_error *err)
{
    const char *wrong = image.file ? pstk__annotations_path_wrong(image.file) : NULL;
    void *list = a->images;
    int r = 0;
    if (wrong)
        r = pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_OPEN,
                       "file name: value is '%.200s', %s; must be a path below the folder of the "
                       "images",
                       image.file, wrong);
    else if (!image.file || grow(&list, a->info.n_images, sizeof *a->images) < 0)
        r = pstk__annotations_no_memory(err);
    a->images = list;
    if (r < 0)
        free(image.file);
    else
        a->images[a->info.n_images++] = image;
    return r;
}

int pstk__annotations_add_class(struct pstk_annotations *a, struct pstk__annotations_class added,
                                struct pstk_error *err)
{
    void *list = a->classes;
    const int r = !added.name || grow(&list, a->info.n_names, sizeof *a->classes) < 0 ? -1 : 0;
    a->classes = list;
    if (r < 0) {
        free(added.name);
        return pstk__annotations_no_memory(err);
    }
    a->classes[a->info.n_names++] = added;
    return 0;
}

void pstk__annotations_add_field(struct pstk_annotations *a, const struct pstk_field *field)
{
    a->fields[a->info.n_fields++] = *field;
}

/* Return 1 if the corners of a box (for VOC, less 1) seem to be fractions of the image. */
static int is_fraction(const double corners[4])
{
    int has_fraction = 0;
    for (int i = 0; i < 4; i++) {
        if (corners[i] < -1 || corners[i] > 1)
            return 0;
        has_fraction |= corners[i] != -1 && corners[i] != 0 && corners[i] != 1;
    }
    return has_fraction && corners[0] < corners[2] && corners[1] < corners[3];
}

void pstk__annotations_count_box(struct pstk_annotations *a,
                                 const struct pstk__annotated_image *image, const double corners[4])
{
    const int is_known = image->width && image->height;
    a->info.n_outside += corners[0] < -1 || corners[1] < -1 ||
                         (is_known && (corners[2] > (double)image->width + 1 ||
                                       corners[3] > (double)image->height + 1));
    a->info.n_flat += corners[0] == corners[2] || corners[1] == corners[3];
    a->info.n_fractions += is_fraction(corners);
}

int pstk__annotations_leave_out(struct pstk_annotations *a, int r, struct pstk_error *err)
{
    if (r != PSTK_EBADMSG)
        return r;
    if (!a->skip_bad) {
        const struct pstk_error first = *err;
        return pstk__fail(err, r, first.stage, "%s (or leave it out with skip_bad)", first.message);
    }
    if (!a->bad)
        a->bad = strdup(err->message);
    a->info.bad = a->bad;
    a->info.n_bad++;
    pstk_error_init(err, err->size);
    return a->bad ? 0 : pstk__annotations_no_memory(err);
}

int pstk__annotations_all_bad(const struct pstk_annotations *a, struct pstk_error *err)
{
    return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_OPEN,
                      "skip_bad: no annotation is left, all %llu are bad; the first: %s",
                      (unsigned long long)(a->info.n_bad - a->n_bad_images), a->bad);
}

/* Check the settings, and find the format. Returns NULL after a failure. */
static const struct pstk__annotations_entry *
check_settings(const struct pstk_annotations_settings *s, struct pstk_error *err)
{
    if (s->size != sizeof *s)
        pstk__fail_setting(err, "settings.size", s->size,
                           "%zu (call pstk_annotations_settings_init)", sizeof *s);
    else if (!s->path)
        pstk__fail_setting(err, "path", 0, "a path");
    else if (s->skip_empty > 1)
        pstk__fail_setting(err, "skip_empty", s->skip_empty, "0 or 1");
    else if (s->skip_bad > 1)
        pstk__fail_setting(err, "skip_bad", s->skip_bad, "0 or 1");
    else if (s->voc_offset > 1)
        pstk__fail_setting(err, "voc_offset", s->voc_offset, "0 or 1");
    else {
        for (uint32_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
            if (formats[i]->format == s->format)
                return formats[i];
        pstk__fail_setting(err, "format", s->format, "of enum pstk_annotations_format");
    }
    return NULL;
}

int pstk_annotations_open(struct pstk_annotations **out, const struct pstk_annotations_settings *s,
                          struct pstk_error *err)
{
    *out = NULL;
    const struct pstk__annotations_entry *entry = check_settings(s, err);
    if (!entry)
        return PSTK_EINVAL;
    struct pstk_annotations *a = calloc(1, sizeof *a);
    if (!a)
        return pstk__annotations_no_memory(err);
    a->entry = entry;
    a->info.size = sizeof a->info;
    a->skip_bad = s->skip_bad != 0;
    a->path = strdup(s->path);
    const int r = a->path ? entry->open(a, s, err) : pstk__annotations_no_memory(err);
    if (r < 0)
        pstk_annotations_close(&a);
    *out = a;
    return r;
}

void pstk_annotations_close(struct pstk_annotations **out)
{
    struct pstk_annotations *a = *out;
    *out = NULL;
    if (!a)
        return;
    a->entry->close(a);
    for (uint64_t i = 0; i < a->info.n_images; i++)
        free(a->images[i].file);
    for (uint64_t i = 0; i < a->info.n_names; i++)
        free(a->classes[i].name);
    for (uint32_t i = 0; i < PSTK__ANNOTATIONS_FIELDS; i++)
        pstk__bytes_free(&a->values[i]);
    free(a->images);
    free(a->classes);
    free(a->path);
    free(a->bad);
    free(a);
}

int pstk_annotations_get_info(const struct pstk_annotations *a, struct pstk_annotations_info *info)
{
    const uint32_t size = info->size;
    if (size < sizeof size)
        return PSTK_EINVAL;
    memcpy(info, &a->info, size < sizeof a->info ? size : sizeof a->info);
    info->size = size;
    return 0;
}

int pstk_annotations_get_field(const struct pstk_annotations *a, uint32_t i,
                               struct pstk_field *field)
{
    if (i >= a->info.n_fields)
        return PSTK_EINVAL;
    *field = a->fields[i];
    return 0;
}

const char *pstk_annotations_file(const struct pstk_annotations *a, uint64_t i)
{
    return i < a->info.n_images ? a->images[i].file : NULL;
}

int pstk_annotations_get_size(const struct pstk_annotations *a, uint64_t i, uint32_t *width,
                              uint32_t *height)
{
    if (i >= a->info.n_images)
        return PSTK_EINVAL;
    const struct pstk__annotated_image *image = &a->images[i];
    const int is_known = image->width && image->height;
    if (width)
        *width = is_known ? image->width : 0;
    if (height)
        *height = is_known ? image->height : 0;
    return 0;
}

const char *pstk_annotations_name(const struct pstk_annotations *a, uint64_t c)
{
    return c < a->info.n_names ? a->classes[c].name : NULL;
}

int64_t pstk_annotations_category(const struct pstk_annotations *a, uint64_t c)
{
    return c < a->info.n_names ? a->classes[c].id : -1;
}

int pstk_annotations_read(struct pstk_annotations *a, uint64_t i, struct pstk_value *values,
                          uint32_t n_values, struct pstk_error *err)
{
    if (i >= a->info.n_images)
        return pstk__fail_setting(err, "i", i, "below %llu, the number of images",
                                  (unsigned long long)a->info.n_images);
    if (n_values != a->info.n_fields)
        return pstk__fail_setting(err, "n_values", n_values, "%u, one for each field",
                                  a->info.n_fields);
    for (uint32_t f = 0; f < n_values; f++) {
        pstk__bytes_clear(&a->values[f]);
        a->pixels[f] = (struct pstk_pixels){.height = 0};
    }
    const int r = a->entry->read(a, i, err);
    if (r < 0)
        return r;
    for (uint32_t f = 0; f < n_values; f++) {
        const struct pstk__bytes *value = &a->values[f];
        if (value->failed)
            return pstk__annotations_no_memory(err);
        if (value->size > MAX_FIELD_SIZE)
            return pstk__fail(err, PSTK_EFBIG, PSTK_STAGE_RECORD,
                              "field %s: %llu bytes; must be at most %u", a->fields[f].name,
                              (unsigned long long)value->size, MAX_FIELD_SIZE);
        values[f] = (struct pstk_value){.data = value->data ? value->data : (const uint8_t *)"",
                                        .size = value->size};
    }
    return 0;
}

int pstk_annotations_get_pixels(const struct pstk_annotations *a, uint32_t f,
                                struct pstk_pixels *pixels)
{
    if (f >= a->info.n_fields || pixels->size < sizeof *pixels)
        return PSTK_EINVAL;
    const uint32_t size = pixels->size;
    if (a->pixels[f].height == 0)
        return 0;
    *pixels = a->pixels[f];
    pixels->size = size;
    pixels->field = 1 + f;
    return 1;
}
