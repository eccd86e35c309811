/* SPDX-License-Identifier: Apache-2.0 */
#include "annotations/coco_ids.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

int pstk__coco_compare_ids(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int by_image_id(const void *a, const void *b)
{
    const struct pstk__annotated_image *x = a, *y = b;
    return pstk__coco_compare_ids(x->id, y->id);
}

static int by_category_id(const void *a, const void *b)
{
    const struct pstk__annotations_class *x = a, *y = b;
    return pstk__coco_compare_ids(x->id, y->id);
}

int pstk__coco_twice(const struct pstk_annotations *a, const char *section, const char *member,
                     int64_t id, struct pstk_error *err)
{
    return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_OPEN,
                      "%.200s: two of '%s' have the %s %" PRId64 "; must be different", a->path,
                      section, member, id);
}

int pstk__coco_leave_out_image(struct pstk_annotations *a, int r, struct pstk_error *err)
{
    a->n_bad_images += r == PSTK_EBADMSG && a->skip_bad;
    return pstk__annotations_leave_out(a, r, err);
}

/* Refuse an image whose id the previous image has. Returns 0 if it is left out. */
static int refuse_image(struct pstk_annotations *a, const struct pstk__annotated_image *image,
                        const struct pstk__annotated_image *before, struct pstk_error *err)
{
    const int r = pstk__coco_twice(a, "images", "id", image->id, err);
    return strcmp(image->file, before->file) == 0 && image->width == before->width &&
                   image->height == before->height
               ? pstk__coco_leave_out_image(a, r, err)
               : r;
}

/* Keep one image of each id. Even after a failure the list has every image that was not freed. */
static int part_images(struct pstk_annotations *a, struct pstk_error *err)
{
    const uint64_t n = a->info.n_images;
    int r = 0;
    a->info.n_images = 0;
    for (uint64_t i = 0; i < n; i++) {
        struct pstk__annotated_image *image = &a->images[i], *end = &a->images[a->info.n_images];
        const int is_same = r == 0 && end > a->images && end[-1].id == image->id;
        if (is_same && (r = refuse_image(a, image, end - 1, err)) == 0) {
            free(image->file);
        } else {
            *end = *image;
            a->info.n_images++;
        }
    }
    return r;
}

int pstk__coco_sort_ids(struct pstk_annotations *a, struct pstk_error *err)
{
    if (a->info.n_images)
        qsort(a->images, a->info.n_images, sizeof *a->images, by_image_id);
    if (a->info.n_names)
        qsort(a->classes, a->info.n_names, sizeof *a->classes, by_category_id);
    for (uint64_t i = 1; i < a->info.n_names; i++)
        if (a->classes[i].id == a->classes[i - 1].id)
            return pstk__coco_twice(a, "categories", "id", a->classes[i].id, err);
    return part_images(a, err);
}

struct pstk__annotated_image *pstk__coco_find_image(const struct pstk_annotations *a, int64_t id)
{
    const struct pstk__annotated_image image = {.id = id};
    return a->info.n_images
               ? bsearch(&image, a->images, a->info.n_images, sizeof image, by_image_id)
               : NULL;
}

const struct pstk__annotations_class *pstk__coco_find_category(const struct pstk_annotations *a,
                                                               int64_t id)
{
    const struct pstk__annotations_class category = {.id = id};
    return a->info.n_names
               ? bsearch(&category, a->classes, a->info.n_names, sizeof category, by_category_id)
               : NULL;
}
