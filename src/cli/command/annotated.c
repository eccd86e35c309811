/* SPDX-License-Identifier: Apache-2.0 */
#include "command/annotated.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "command.h"
#include "ui/interrupt.h"
#include "ui/message.h"
#include "ui/progress.h"
#include "ui/status.h"
#include "ui/unit.h"

void annotated_init(struct annotated *annotated)
{
    memset(annotated, 0, sizeof *annotated);
    pstk_annotations_settings_init(&annotated->settings, sizeof annotated->settings);
    annotated->info.size = sizeof annotated->info;
}

int annotated_set(struct annotated *annotated, int code, const char *value)
{
    struct pstk_annotations_settings *s = &annotated->settings;
    switch (code) {
    case OPT_COCO:
        annotated->coco = value;
        return 0;
    case OPT_VOC:
        s->format = PSTK_ANNOTATIONS_VOC;
        return 0;
    case OPT_VOC_OFFSET:
        annotated->has_voc_options = 1;
        return option_count32("--voc-offset", value, (struct range){0, 1}, &s->voc_offset);
    case OPT_IMAGE_SET:
        annotated->has_voc_options = 1;
        s->image_set = value;
        return 0;
    case OPT_PANOPTIC_MASKS:
        s->panoptic_masks = value;
        return 0;
    default:
        s->skip_empty = 1;
        return 0;
    }
}

int annotated_is_asked(const struct annotated *annotated)
{
    return annotated->coco || annotated->settings.format;
}

int annotated_check(const struct annotated *annotated, const struct profile *profile)
{
    const int is_voc = annotated->settings.format == PSTK_ANNOTATIONS_VOC;
    if (annotated->coco && is_voc)
        return message_usage("--coco and --voc: pack takes one of them (leave the other out)");
    if (annotated->has_voc_options && !is_voc)
        return message_usage("--voc-offset and --image-set are for --voc (add it)");
    if (annotated->settings.panoptic_masks && !annotated->coco)
        return message_usage("--panoptic-masks is for --coco (add it)");
    if (!annotated_is_asked(annotated))
        return annotated->settings.skip_empty
                   ? message_usage("--skip-empty is for --coco and --voc (add one of them)")
                   : 0;
    if (profile->convert.shorter_side || profile->convert.max_side)
        return message_usage("%s resizes images, and boxes and masks would not follow; must be "
                             "without %s (leave one of them out)",
                             profile->convert.shorter_side ? "--pixels" : "--max-side",
                             is_voc ? "--voc" : "--coco");
    return 0;
}

/* Show the progress of reading; the library's on_progress. */
static int on_progress(void *user, uint64_t n_done, uint64_t n_total)
{
    struct progress *progress = user;
    progress_update(progress, n_total ? (double)n_done / (double)n_total : -1, n_done);
    return interrupt_seen();
}

static void list_names(struct annotated *annotated)
{
    const uint64_t n = annotated->info.n_names;
    annotated->names = calloc(n ? n : 1, sizeof *annotated->names);
    if (!annotated->names)
        message_no_memory();
    for (uint64_t i = 0; i < n; i++)
        annotated->names[i] = pstk_annotations_name(annotated->a, i);
}

int annotated_open(struct annotated *annotated, const char *src, struct tree *tree)
{
    struct pstk_annotations_settings *s = &annotated->settings;
    struct progress progress;
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    if (annotated->coco)
        s->format = PSTK_ANNOTATIONS_COCO;
    s->path = annotated->coco ? annotated->coco : src;
    s->on_progress = on_progress;
    s->user = &progress;
    progress_begin(&progress, "reading annotations", annotated->coco ? "bytes" : "files");
    const int r = pstk_annotations_open(&annotated->a, s, &err);
    progress_end(&progress);
    if (r == PSTK_ECANCELED && interrupt_seen())
        return interrupt_say("nothing was packed");
    if (r < 0)
        return status_refuse(&err, s->path);
    pstk_annotations_get_info(annotated->a, &annotated->info);
    tree_list(tree, annotated->a, annotated->info.n_images);
    list_names(annotated);
    return 0;
}

int annotated_has_masks(const struct annotated *annotated)
{
    struct stat st;
    char folder[PATH_MAX];
    const size_t n = annotated->coco ? strlen(annotated->coco) : 0;
    if (annotated->settings.panoptic_masks)
        return 1;
    if (n < 5 || strcmp(annotated->coco + n - 5, ".json") != 0 || n >= sizeof folder)
        return 0;
    snprintf(folder, sizeof folder, "%.*s", (int)(n - 5), annotated->coco);
    return stat(folder, &st) == 0;
}

uint32_t annotated_fields(const struct annotated *annotated, struct pstk_field *fields)
{
    for (uint32_t i = 0; i < annotated->info.n_fields; i++)
        pstk_annotations_get_field(annotated->a, i, &fields[i]);
    return annotated->info.n_fields;
}

uint32_t annotated_pixels(const struct annotated *annotated, struct pstk_pixels *pixels)
{
    uint32_t n = 0;
    for (uint32_t f = 0; f < annotated->info.n_fields; f++) {
        pixels[n].size = sizeof pixels[n];
        n += pstk_annotations_get_pixels(annotated->a, f, &pixels[n]) == 1;
    }
    return n;
}

/* Find the size of an image file, as a list of images needs. 0; -1: it is no image. */
static int size_of(const void *data, uint64_t size, uint32_t *width, uint32_t *height)
{
    struct pstk_list_item item = {.data = data, .size = size};
    void *list;
    if (pstk_list_build(PSTK_FIELD_IMAGE_LIST, &item, 1, &list, &size, NULL) < 0)
        return -1;
    const int64_t n = pstk_list_read(PSTK_FIELD_IMAGE_LIST, list, size, &item, 1, NULL);
    *width = item.width;
    *height = item.height;
    pstk_free(list);
    return n == 1 ? 0 : -1;
}

void annotated_compare(struct annotated *annotated, uint64_t number, const void *data,
                       uint64_t size)
{
    uint32_t said_width, said_height, width, height;
    if (!annotated->a ||
        pstk_annotations_get_size(annotated->a, number, &said_width, &said_height) < 0 ||
        said_width == 0 || size_of(data, size, &width, &height) < 0 ||
        (width == said_width && height == said_height))
        return;
    if (annotated->n_sizes++ == 0 && asprintf(&annotated->size, "%s: %u x %u, not %u x %u",
                                              pstk_annotations_file(annotated->a, number), width,
                                              height, said_width, said_height) < 0)
        message_no_memory();
}

const char *annotated_absent(const struct annotated *annotated)
{
    if (!annotated->a)
        return NULL;
    return annotated->coco ? "missing, but the annotations list it"
                           : "missing, but the annotations list it (.jpeg, .png, and these and "
                             ".jpg in capitals, as in .JPG and .Jpg, are missing too)";
}

/* Warn of VOC files that belong to no image of the data set. */
static void warn_of_left(const struct pstk_annotations_info *info)
{
    char n[UNIT_SIZE];
    if (info->n_without_xml)
        message_say("warning: %s picture%s of JPEGImages %s left out: no XML file that is read has "
                    "%s name",
                    unit_count(n, info->n_without_xml), info->n_without_xml == 1 ? "" : "s",
                    info->n_without_xml == 1 ? "is" : "are",
                    info->n_without_xml == 1 ? "its" : "their");
    if (info->n_xml_not_read)
        message_say("warning: %s XML file%s below Annotations %s not read: %s in a folder, or %s "
                    "not end in .xml (move %s into Annotations, as NAME.xml)",
                    unit_count(n, info->n_xml_not_read), info->n_xml_not_read == 1 ? "" : "s",
                    info->n_xml_not_read == 1 ? "is" : "are",
                    info->n_xml_not_read == 1 ? "it is" : "they are",
                    info->n_xml_not_read == 1 ? "does" : "do",
                    info->n_xml_not_read == 1 ? "it" : "them");
}

void annotated_warn(struct annotated *annotated)
{
    struct pstk_annotations_info *info = &annotated->info;
    char n[UNIT_SIZE];
    if (annotated->a)
        pstk_annotations_get_info(annotated->a, info);
    if (info->n_bad)
        message_say("warning: %s bad annotation%s left out (an %s); the first: %s",
                    unit_count(n, info->n_bad), info->n_bad == 1 ? " is" : "s are",
                    annotated->coco ? "annotation, or one of 'images' with its annotations"
                                    : "object, or an XML file with its image",
                    info->bad);
    warn_of_left(info);
    if (info->n_fractions)
        message_say(
            "warning: %s box%s in the first pixel of %s image: boxes of %s are in pixels, and "
            "these seem to be fractions of the image (multiply them by its width and height)",
            unit_count(n, info->n_fractions), info->n_fractions == 1 ? " lies" : "es lie",
            info->n_fractions == 1 ? "its" : "their", annotated->coco ? "COCO" : "VOC");
    if (info->n_from_zero)
        message_say("warning: %s box%s an xmin or ymin from 0 to 1, and VOC counts pixels from 1: "
                    "these files seem to count from 0, and 1 was subtracted from all boxes (pack "
                    "with --voc-offset 0)",
                    unit_count(n, info->n_from_zero), info->n_from_zero == 1 ? " has" : "es have");
    if (annotated->n_sizes)
        message_say(
            "warning: %s image%s another size than the annotations say (width x height of "
            "the first: %s): boxes and points may not fit the pixels. The files may have been "
            "resized, or their EXIF orientation applied",
            unit_count(n, annotated->n_sizes), annotated->n_sizes == 1 ? " has" : "s have",
            annotated->size);
}

/* Write the category ids that the labels number, as ranges: 1-11,13-25. */
static void print_categories(const struct annotated *annotated, FILE *out)
{
    for (uint64_t first = 0, last; first < annotated->info.n_names; first = last + 1) {
        const int64_t id = pstk_annotations_category(annotated->a, first);
        for (last = first; last + 1 < annotated->info.n_names; last++)
            if (pstk_annotations_category(annotated->a, last + 1) - id !=
                (int64_t)(last + 1 - first))
                break;
        fprintf(out, "%s%" PRId64, first ? "," : "", id);
        if (last > first)
            fprintf(out, "-%" PRId64, pstk_annotations_category(annotated->a, last));
    }
}

const char *annotated_note(struct annotated *annotated, const char *note)
{
    size_t size;
    if (!annotated->a)
        return note;
    free(annotated->note);
    FILE *out = open_memstream(&annotated->note, &size);
    if (!out)
        message_no_memory();
    fputs(note, out);
    if (annotated->coco && annotated->info.n_names) {
        fputs(" annotations=coco category_ids=", out);
        print_categories(annotated, out);
    } else if (annotated->coco)
        fputs(" annotations=coco", out);
    else
        fprintf(out, " annotations=voc voc_offset=%u", annotated->settings.voc_offset);
    if (fclose(out) != 0)
        message_no_memory();
    return annotated->note;
}

void annotated_print(struct annotated *annotated)
{
    struct pstk_annotations_info *info = &annotated->info;
    char objects[UNIT_SIZE], empty[UNIT_SIZE], outside[UNIT_SIZE], flat[UNIT_SIZE];
    if (!annotated->a)
        return;
    pstk_annotations_get_info(annotated->a, info);
    printf("annotations: %s of %s images", unit_count(objects, info->n_objects),
           unit_count(outside, info->n_images));
    if (info->n_empty)
        printf("; %s image%s without any %s%s", unit_count(empty, info->n_empty),
               info->n_empty == 1 ? "" : "s", info->n_empty == 1 ? "is" : "are",
               annotated->settings.skip_empty ? " left out" : " packed");
    putchar('\n');
    if (info->n_outside || info->n_flat)
        printf("boxes: %s leave%s their image, %s %s no area; all are kept unchanged\n",
               unit_count(outside, info->n_outside), info->n_outside == 1 ? "s" : "",
               unit_count(flat, info->n_flat), info->n_flat == 1 ? "has" : "have");
}

void annotated_put(struct annotated *annotated, struct json_t *object)
{
    struct pstk_annotations_info *info = &annotated->info;
    if (!annotated->a) {
        json_put_null(object, "annotations");
        return;
    }
    struct json_t *put = json_make_object(), *categories = json_make_array();
    pstk_annotations_get_info(annotated->a, info);
    json_put_text(put, "format", annotated->coco ? "coco" : "voc");
    json_put_count(put, "n_images", info->n_images);
    json_put_count(put, "n_annotations", info->n_objects);
    json_put_count(put, "n_empty_images", info->n_empty);
    json_put_count(put, "n_bad", info->n_bad);
    json_put_count(put, "n_pictures_without_xml", info->n_without_xml);
    json_put_count(put, "n_xml_not_read", info->n_xml_not_read);
    json_put_count(put, "n_boxes_outside", info->n_outside);
    json_put_count(put, "n_boxes_flat", info->n_flat);
    json_put_count(put, "n_boxes_of_fractions", info->n_fractions);
    json_put_count(put, "n_boxes_from_zero", info->n_from_zero);
    json_put_count(put, "n_images_of_another_size", annotated->n_sizes);
    for (uint64_t i = 0; annotated->coco && i < info->n_names; i++)
        json_append_whole(categories, pstk_annotations_category(annotated->a, i));
    json_put(put, "category_ids", categories);
    json_put(object, "annotations", put);
}

void annotated_close(struct annotated *annotated)
{
    pstk_annotations_close(&annotated->a);
    free(annotated->names);
    free(annotated->note);
    free(annotated->size);
    annotated_init(annotated);
}
