/* SPDX-License-Identifier: Apache-2.0 */
#include "annotations/panoptic.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "annotations/whole_file.h"
#include "base/error.h"

#define MAX_FILE (UINT64_C(256) << 20) /* maximum bytes of a PNG file */

/* A category of segments, and the first annotation that has it. */
struct use {
    int64_t category;
    int64_t image;   /* id */
    uint64_t offset; /* offset of the annotation in the file, bytes */
};

/* ---- the first reading ----------------------------------------------------------------------- */

static int compare_ids(const void *a, const void *b)
{
    const struct pstk__segment *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

/* Note a category, in its position by id. */
static int note_use(struct pstk__panoptic *panoptic, const struct pstk__coco_location *location,
                    const struct use *use)
{
    uint64_t n = panoptic->uses.size / sizeof *use, low = 0, high = n;
    struct use *uses = (void *)panoptic->uses.data;
    while (low < high) {
        const uint64_t middle = (low + high) / 2;
        if (uses[middle].category == use->category)
            return 0;
        if (uses[middle].category < use->category)
            low = middle + 1;
        else
            high = middle;
    }
    if (n == PSTK__PANOPTIC_CLASSES)
        return pstk__coco_fail(location,
                               "the segments have too many categories; must be at most %d",
                               PSTK__PANOPTIC_CLASSES);
    if (!pstk__bytes_room(&panoptic->uses, sizeof *use))
        return pstk__annotations_no_memory(location->err);
    uses = (void *)panoptic->uses.data;
    memmove(uses + low + 1, uses + low, (n - low) * sizeof *use);
    uses[low] = *use;
    return 0;
}

/* Note the categories of an annotation whose segments are checked. */
static int note_uses(struct pstk__panoptic *panoptic, const struct pstk__coco_location *location,
                     const struct pstk__coco_object *object)
{
    int r = 0;
    for (size_t i = 0; i < json_array_size(object->segments) && r == 0; i++) {
        struct pstk__coco_object segment;
        r = pstk__coco_segment(location, object, i, &segment);
        const struct use use = {segment.category, object->image, location->offset};
        if (r == 0)
            r = note_use(panoptic, location, &use);
    }
    return r;
}

static void sort_segments(struct pstk__panoptic *panoptic)
{
    const uint64_t n = panoptic->segments.size / sizeof(struct pstk__segment);
    if (n > 1)
        qsort(panoptic->segments.data, n, sizeof(struct pstk__segment), compare_ids);
}

static int refuse_twice(const struct pstk__panoptic *panoptic,
                        const struct pstk__coco_location *location)
{
    const struct pstk__segment *segments = (const void *)panoptic->segments.data;
    for (uint64_t i = 1; i < panoptic->segments.size / sizeof *segments; i++)
        if (segments[i].id == segments[i - 1].id)
            return pstk__coco_fail(location,
                                   "segments_info: two segments have the id %u; must be different",
                                   segments[i].id);
    return 0;
}

int pstk__panoptic_note(struct pstk__panoptic *panoptic, const struct pstk__coco_location *location,
                        const struct pstk__coco_object *object, uint32_t *n)
{
    const size_t n_segments = json_array_size(object->segments);
    const char *wrong = pstk__annotations_path_wrong(object->mask);
    if (wrong)
        return pstk__coco_fail(location,
                               "file_name: value is '%.120s', %s; must be a path below the folder "
                               "of the masks",
                               object->mask, wrong);
    if (n_segments > PSTK__MAX_SEGMENTS)
        return pstk__coco_fail(location, "segments_info: it has %zu segments; must be at most %d",
                               n_segments, PSTK__MAX_SEGMENTS);
    pstk__panoptic_clear(panoptic);
    for (size_t i = 0; i < n_segments; i++) {
        struct pstk__coco_object segment;
        const int r = pstk__coco_segment(location, object, i, &segment);
        if (r < 0)
            return r;
        pstk__panoptic_add(panoptic, segment.id, 0);
    }
    if (panoptic->segments.failed)
        return pstk__annotations_no_memory(location->err);
    sort_segments(panoptic);
    int r = refuse_twice(panoptic, location);
    if (r == 0)
        r = note_uses(panoptic, location, object);
    if (r == 0)
        *n = (uint32_t)n_segments;
    return r;
}

/* ---- what belongs together ------------------------------------------------------------------- */

/* Check that each used category is a class. Both lists are sorted by id. */
static int check_uses(const struct pstk__panoptic *panoptic, const struct pstk_annotations *a,
                      struct pstk_error *err)
{
    const struct use *uses = (const void *)panoptic->uses.data;
    uint64_t c = 0;
    for (uint64_t i = 0; i < panoptic->uses.size / sizeof *uses; i++) {
        while (c < a->info.n_names && a->classes[c].id < uses[i].category)
            c++;
        if (c == a->info.n_names || a->classes[c].id != uses[i].category)
            return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_OPEN,
                              "%.200s: annotation of image %" PRId64 ", at byte %" PRIu64
                              ": segments_info: category_id: value is %" PRId64
                              "; must be the id of one of 'categories'",
                              a->path, uses[i].image, uses[i].offset, uses[i].category);
    }
    return 0;
}

/* Find the folder of the PNG files. */
static int find_folder(struct pstk__panoptic *panoptic, const char *path, const char *masks,
                       struct pstk_error *err)
{
    const size_t size = strlen(path);
    struct stat st;
    if (!masks && (size <= 5 || strcmp(path + size - 5, ".json") != 0))
        return pstk__fail(
            err, PSTK_EINVAL, PSTK_STAGE_OPEN,
            "%.200s is panoptic, and its name does not end in .json (set panoptic_masks "
            "to the folder of its PNG files)",
            path);
    panoptic->folder = masks ? strdup(masks) : strndup(path, size - 5);
    if (!panoptic->folder)
        return pstk__annotations_no_memory(err);
    const int native = stat(panoptic->folder, &st) < 0 ? errno : S_ISDIR(st.st_mode) ? 0 : ENOTDIR;
    return native ? pstk__fail_errno(err, native, PSTK_STAGE_OPEN,
                                     "cannot open the folder %.300s (set panoptic_masks to the "
                                     "folder of the PNG files of %.200s)",
                                     panoptic->folder, path)
                  : 0;
}

int pstk__panoptic_begin(struct pstk__panoptic *panoptic, const struct pstk_annotations *a,
                         const char *masks, struct pstk_error *err)
{
    if (a->info.n_names > PSTK__PANOPTIC_CLASSES)
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_OPEN,
                          "%.200s has %" PRIu64 " categories; a panoptic file must have at most %d",
                          a->path, a->info.n_names, PSTK__PANOPTIC_CLASSES);
    panoptic->label_size = a->info.n_names <= UINT8_MAX ? 1 : 2;
    const int r = check_uses(panoptic, a, err);
    return r < 0 ? r : find_folder(panoptic, a->path, masks, err);
}

/* ---- the masks of an image ------------------------------------------------------------------- */

void pstk__panoptic_clear(struct pstk__panoptic *panoptic)
{
    pstk__bytes_clear(&panoptic->segments);
}

void pstk__panoptic_add(struct pstk__panoptic *panoptic, int64_t id, uint64_t label)
{
    const uint64_t n = panoptic->segments.size / sizeof(struct pstk__segment);
    const struct pstk__segment added = {
        .id = (uint32_t)id, .number = (uint32_t)n + 1, .label = (uint32_t)label};
    pstk__bytes_put(&panoptic->segments, &added, sizeof added);
}

/* Decode the bytes of a PNG file, and check its size. */
static int decode_mask(const struct pstk__panoptic *panoptic, struct pstk__panoptic_mask *mask,
                       const struct pstk__annotated_image *image, const char *path,
                       struct pstk_error *err)
{
    struct pstk_error own;
    pstk_error_init(&own, sizeof own);
    const int r = pstk__panoptic_mask_read(mask, panoptic->file.data, panoptic->file.size, &own);
    if (r < 0)
        return pstk__fail(err, r, PSTK_STAGE_DECODE, "%.300s: the mask of image %" PRId64 ": %s",
                          path, image->id, own.message);
    if (image->width && image->height &&
        (mask->width != image->width || mask->height != image->height))
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_DECODE,
                          "%.300s: the mask of image %" PRId64 " has %u x %u pixels; must have "
                          "%u x %u, width and height of the image",
                          path, image->id, mask->width, mask->height, image->width, image->height);
    return 0;
}

/* Read the PNG file of an image. */
static int read_mask(struct pstk__panoptic *panoptic, struct pstk__panoptic_mask *mask,
                     const struct pstk__annotated_image *image, const char *file,
                     struct pstk_error *err)
{
    char *path;
    if (asprintf(&path, "%s/%s", panoptic->folder, file) < 0)
        return pstk__annotations_no_memory(err);
    int r = pstk__whole_file_read(&panoptic->file, path, MAX_FILE, err);
    if (r == PSTK_ENOENT)
        r = pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_OPEN,
                       "%.300s: the mask of image %" PRId64
                       " is missing, but the annotations list it",
                       path, image->id);
    else if (r == 0)
        r = decode_mask(panoptic, mask, image, path, err);
    free(path);
    return r;
}

int pstk__panoptic_put(struct pstk__panoptic *panoptic, struct pstk_annotations *a,
                       const struct pstk__annotated_image *image, const char *file,
                       const uint32_t fields[2], struct pstk_error *err)
{
    sort_segments(panoptic);
    struct pstk__panoptic_mask mask = {.segments = (const void *)panoptic->segments.data,
                                       .n = panoptic->segments.size / sizeof(struct pstk__segment),
                                       .label_size = panoptic->label_size,
                                       .numbers = &a->values[fields[0]],
                                       .labels = &a->values[fields[1]],
                                       .width = image->width,
                                       .height = image->height};
    if (panoptic->segments.failed)
        return pstk__annotations_no_memory(err);
    const int r = file ? read_mask(panoptic, &mask, image, file, err) : 0;
    if (r < 0)
        return r;
    if (!file && (image->width == 0 || image->height == 0))
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_OPEN,
                          "%.200s: image %" PRId64 " has neither an annotation nor a width and a "
                          "height; must have one of them",
                          a->path, image->id);
    if (!file)
        pstk__panoptic_mask_fill(&mask);
    for (uint32_t i = 0; i < 2; i++)
        a->pixels[fields[i]] = (struct pstk_pixels){.height = mask.height,
                                                    .width = mask.width,
                                                    .channels = 1,
                                                    .bit_depth = i ? 8 * mask.label_size : 16};
    return 0;
}

void pstk__panoptic_close(struct pstk__panoptic *panoptic)
{
    pstk__bytes_free(&panoptic->uses);
    pstk__bytes_free(&panoptic->segments);
    pstk__bytes_free(&panoptic->file);
    free(panoptic->folder);
}
