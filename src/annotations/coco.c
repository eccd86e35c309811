/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coco: reads a COCO file. The JSON file is read once from front to back; each annotation is parsed
 * and checked by itself, and only the position of its text is kept, in 40 bytes. To read an image,
 * the texts of its annotations are read and parsed again.
 *
 * Images are sorted by id, as in torchvision's CocoDetection, and classes by category id. The
 * annotations of an image are in the order of the file.
 */
#include "annotations/source.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "annotations/coco_ids.h"
#include "annotations/coco_json.h"
#include "annotations/json_stream.h"
#include "annotations/panoptic.h"
#include "base/error.h"

#define PROGRESS_STEP 4096 /* values */
#define MAX_KEYPOINTS 4096
#define MAX_CLASSES (UINT64_C(1) << 24)

/* The values of a record, in the order of their fields. */
enum value {
    IMAGE_ID,
    FILE_NAME,
    CAPTIONS,
    BOXES,
    LABELS,
    CATEGORY_ID,
    ANNOTATION_ID,
    AREA,
    ISCROWD,
    OBJECT_POLYGONS,
    POLYGON_POINTS,
    POINTS,
    OBJECT_RUNS,
    RUNS,
    KEYPOINTS,
    SEGMENT,
    SEGMENT_ID,
    ISTHING,
    SEGMENT_MASK,
    CLASS_MASK,
    N_VALUES
};

#define LENGTHS(field, axis, split)                                                                \
    {                                                                                              \
        .name = field, .kind = PSTK_FIELD_NDARRAY, .dtype = PSTK_U32, .n_dims = 1, .rows = axis,   \
        .splits = split, .codec = PSTK_CODEC_ZSTD                                                  \
    }

#define MASK(field)                                                                                \
    {                                                                                              \
        .name = field, .kind = PSTK_FIELD_MASK, .codec = PSTK_CODEC_ZSTD,                          \
        .of = PSTK__ANNOTATIONS_IMAGE                                                              \
    }

static const struct pstk_field fields[N_VALUES] = {
    [IMAGE_ID] = {.name = "image_id", .kind = PSTK_FIELD_SCALAR, .dtype = PSTK_I64},
    [FILE_NAME] = {.name = "file_name", .kind = PSTK_FIELD_UTF8},
    [CAPTIONS] = {.name = "captions", .kind = PSTK_FIELD_UTF8_LIST, .codec = PSTK_CODEC_ZSTD},
    [BOXES] = PSTK__ANNOTATIONS_BOXES(PSTK_BOX_FORMAT_XYWH),
    [LABELS] = PSTK__ANNOTATIONS_ARRAY("labels", PSTK_I64),
    [CATEGORY_ID] = PSTK__ANNOTATIONS_ARRAY("category_id", PSTK_I64),
    [ANNOTATION_ID] = PSTK__ANNOTATIONS_ARRAY("annotation_id", PSTK_I64),
    [AREA] = PSTK__ANNOTATIONS_ARRAY("area", PSTK_F64),
    [ISCROWD] = PSTK__ANNOTATIONS_ARRAY("iscrowd", PSTK_U8),
    [OBJECT_POLYGONS] = LENGTHS("object_polygons", "objects", "polygons"),
    [POLYGON_POINTS] = LENGTHS("polygon_points", "polygons", "points"),
    [POINTS] = {.name = "points",
                .kind = PSTK_FIELD_POLYGONS,
                .dtype = PSTK_F32,
                .n_dims = 2,
                .shape = {0, 2},
                .codec = PSTK_CODEC_ZSTD,
                .of = PSTK__ANNOTATIONS_IMAGE,
                .rows = "points",
                .coordinates = PSTK_COORDINATES_PIXELS},
    [OBJECT_RUNS] = LENGTHS("object_runs", "objects", "runs"),
    [RUNS] = {.name = "runs",
              .kind = PSTK_FIELD_RLE,
              .dtype = PSTK_U32,
              .n_dims = 1,
              .codec = PSTK_CODEC_ZSTD,
              .of = PSTK__ANNOTATIONS_IMAGE,
              .rows = "runs"},
    [KEYPOINTS] = {.name = "keypoints",
                   .kind = PSTK_FIELD_KEYPOINTS,
                   .dtype = PSTK_F32,
                   .n_dims = 3,
                   .shape = {0, 0, 3},
                   .codec = PSTK_CODEC_ZSTD,
                   .of = PSTK__ANNOTATIONS_IMAGE,
                   .rows = "objects",
                   .coordinates = PSTK_COORDINATES_PIXELS},
    [SEGMENT] = PSTK__ANNOTATIONS_ARRAY("segment", PSTK_I64),
    [SEGMENT_ID] = PSTK__ANNOTATIONS_ARRAY("segment_id", PSTK_I64),
    [ISTHING] = PSTK__ANNOTATIONS_ARRAY("isthing", PSTK_U8),
    [SEGMENT_MASK] = MASK("segment_mask"),
    [CLASS_MASK] = MASK("class_mask"),
};

/* The position of an annotation, and its facts that must agree with the others'. */
struct entry {
    int64_t id;       /* panoptic: id of its image, which has no other annotation */
    int64_t image;    /* id of its image; its number once all images are known */
    int64_t category; /* id of its category; its class once all categories are known */
    uint64_t offset;  /* offset in the file, bytes */
    uint32_t size;    /* bytes, below PSTK__JSON_LARGEST */
    uint16_t n; /* keypoints of an object, at most MAX_KEYPOINTS; segments of a panoptic annotation
                 */
    uint8_t kind;  /* enum kind */
    uint8_t flags; /* bits HAS_SEGMENTATION, IS_BAD */
};
#define HAS_SEGMENTATION 1
#define IS_BAD 2 /* panoptic: the image cannot be read, and skip_bad is set */

/* The kinds of annotations. A file has one kind. */
enum kind { OBJECT, CAPTION, PANOPTIC, N_KINDS };
static const char *const kinds[N_KINDS] = {"an object", "a caption", "panoptic (segments_info)"};

struct coco {
    struct pstk__json_stream stream;
    struct entry *entries; /* owned; the capacity is the next power of two */
    uint64_t n;
    uint32_t seen;  /* bits of the sections that were read */
    enum kind kind; /* kind of all annotations */
    int has_segmentation;
    uint64_t n_keypoints; /* keypoints of an object; 0: no object has any */
    char *text;           /* text of the current annotation; owned */
    uint64_t text_room;
    struct pstk__bytes captions; /* captions of the current image, each with its 0 */
    struct pstk__bytes items;    /* their items: struct pstk_list_item */
    int32_t at[N_VALUES];        /* field of a value; -1: none */
    struct pstk__panoptic panoptic;
};

enum { IMAGES, ANNOTATIONS, CATEGORIES, N_SECTIONS };
static const char *const sections[N_SECTIONS] = {"images", "annotations", "categories"};

/* ---- the first reading ----------------------------------------------------------------------- */

static int add_entry(struct coco *coco, const struct entry *entry, struct pstk_error *err)
{
    if ((coco->n & (coco->n - 1)) == 0) {
        struct entry *more =
            reallocarray(coco->entries, coco->n ? 2 * coco->n : 1, sizeof *coco->entries);
        if (!more)
            return pstk__annotations_no_memory(err);
        coco->entries = more;
    }
    coco->entries[coco->n++] = *entry;
    return 0;
}

static int take_image(struct pstk_annotations *a, const struct pstk__coco_location *location,
                      json_t *tree)
{
    struct pstk__coco_image image;
    int r = pstk__coco_image(location, tree, &image);
    if (r < 0)
        return r;
    const char *wrong = pstk__annotations_path_wrong(image.file);
    if (wrong)
        return pstk__coco_fail(location,
                               "file_name: value is '%.120s', %s; must be a path below the "
                               "folder of the images",
                               image.file, wrong);
    const struct pstk__annotated_image added = {
        .file = strdup(image.file), .id = image.id, .width = image.width, .height = image.height};
    return pstk__annotations_add_image(a, added, location->err);
}

static int take_category(struct pstk_annotations *a, const struct pstk__coco_location *location,
                         json_t *tree)
{
    struct pstk__coco_category category;
    const int r = pstk__coco_category(location, tree, &category);
    if (r < 0)
        return r;
    if (a->info.n_names == MAX_CLASSES)
        return pstk__coco_fail(
            location, "the file has too many categories; must be at most %" PRIu64, MAX_CLASSES);
    const struct pstk__annotations_class added = {
        .name = strdup(category.name), .id = category.id, .is_thing = category.is_thing};
    return pstk__annotations_add_class(a, added, location->err);
}

static enum kind kind_of(const struct pstk__coco_object *object)
{
    return object->segments ? PANOPTIC : object->caption ? CAPTION : OBJECT;
}

/* Note the facts of an object that must agree with the others'. */
static int note_object(const struct pstk__coco_location *location,
                       const struct pstk__coco_object *object, struct entry *entry)
{
    const uint64_t n = json_array_size(object->keypoints) / 3;
    if (n > MAX_KEYPOINTS)
        return pstk__coco_fail(location,
                               "keypoints: it has %" PRIu64 " points; must have %d at most", n,
                               MAX_KEYPOINTS);
    entry->n = (uint16_t)n;
    entry->flags = object->polygons || object->counts ? HAS_SEGMENTATION : 0;
    return 0;
}

/* Note the segments of a panoptic annotation. With skip_bad a bad annotation stays in the list, so
 * that its image is not packed as one without annotation. */
static int note_segments(struct pstk_annotations *a, const struct pstk__coco_location *location,
                         const struct pstk__coco_object *object, struct entry *entry)
{
    struct coco *coco = a->state;
    uint32_t n = 0;
    const int r = pstk__panoptic_note(&coco->panoptic, location, object, &n);
    entry->n = (uint16_t)n;
    if (r != PSTK_EBADMSG || !a->skip_bad)
        return r;
    entry->flags = IS_BAD;
    pstk_error_init(location->err, location->err->size);
    return 0;
}

/* Check an annotation by itself, and note its position. */
static int note_entry(struct pstk_annotations *a, const struct pstk__coco_location *location,
                      const struct pstk__coco_object *object, uint64_t size)
{
    struct entry entry = {.id = object->segments ? object->image : object->id,
                          .image = object->image,
                          .category = object->category,
                          .offset = location->offset,
                          .size = (uint32_t)size,
                          .kind = (uint8_t)kind_of(object)};
    uint32_t n;
    int r = 0;
    pstk__bytes_clear(&a->values[0]); /* only to check the runs */
    if (object->counts)
        r = pstk__coco_runs(location, object, &a->values[0], &n);
    if (r == 0)
        r = object->segments ? note_segments(a, location, object, &entry)
                             : note_object(location, object, &entry);
    return r < 0 ? r : add_entry(a->state, &entry, location->err);
}

/* Add an annotation. `tree` is NULL if the value is not an object. */
static int take_annotation(struct pstk_annotations *a, const struct pstk__coco_location *location,
                           json_t *tree, uint64_t size)
{
    struct pstk__coco_object object = {.segments = NULL};
    int r = tree ? pstk__coco_object(location, tree, &object) : location->err->code;
    if (r == 0)
        r = note_entry(a, location, &object, size);
    /* check_sections refuses a panoptic file without a section; skip_bad does not help there */
    return object.segments && !a->skip_bad ? r : pstk__annotations_leave_out(a, r, location->err);
}

/* Add one element of a section. */
static int take_element(struct pstk_annotations *a, uint32_t section,
                        const struct pstk__coco_location *location,
                        const struct pstk__json_value *value)
{
    json_t *tree = pstk__coco_parse(location, value->at, value->size);
    int r = tree ? 0 : location->err->code;
    if (section == ANNOTATIONS)
        r = take_annotation(a, location, tree, value->size);
    else if (section == IMAGES)
        r = pstk__coco_leave_out_image(a, tree ? take_image(a, location, tree) : r, location->err);
    else if (tree)
        r = take_category(a, location, tree);
    json_decref(tree);
    return r;
}

static int report_progress(const struct pstk_annotations_settings *s,
                           const struct pstk__json_stream *stream)
{
    if (!s->on_progress || !s->on_progress(s->user, stream->offset + stream->at, stream->size))
        return 0;
    return pstk__fail(stream->err, PSTK_ECANCELED, PSTK_STAGE_OPEN,
                      "reading the annotations was stopped");
}

/* Read the list of a section. */
static int read_section(struct pstk_annotations *a, const struct pstk_annotations_settings *s,
                        uint32_t section)
{
    struct coco *coco = a->state;
    struct pstk__json_stream *stream = &coco->stream;
    struct pstk__coco_location location = {
        .path = a->path, .section = sections[section], .err = stream->err};
    int r = pstk__json_stream_take(stream, '[');
    if (r <= 0)
        return r < 0 ? r : pstk__json_stream_fail(stream, "'[', a list");
    r = pstk__json_stream_take(stream, ']');
    while (r == 0) {
        struct pstk__json_value value;
        r = pstk__json_stream_value(stream, &value);
        if (r < 0)
            return r;
        location.offset = value.offset;
        r = take_element(a, section, &location, &value);
        if (r == 0 && location.number % PROGRESS_STEP == 0)
            r = report_progress(s, stream);
        if (r < 0)
            return r;
        location.number++;
        r = pstk__json_stream_take(stream, ']');
        if (r == 0) {
            r = pstk__json_stream_take(stream, ',');
            r = r > 0 ? 0 : r < 0 ? r : pstk__json_stream_fail(stream, "',' or ']'");
        }
    }
    return r < 0 ? r : 0;
}

/* Return the section that a key, in its quotes, names; N_SECTIONS for any other key. */
static uint32_t section_of(const struct pstk__json_value *key)
{
    uint32_t i = 0;
    while (i < N_SECTIONS && (key->size != strlen(sections[i]) + 2 ||
                              memcmp(key->at + 1, sections[i], key->size - 2) != 0))
        i++;
    return i;
}

/* Read a member of the file's object: a key and its value. */
static int read_member(struct pstk_annotations *a, const struct pstk_annotations_settings *s)
{
    struct coco *coco = a->state;
    struct pstk__json_value key;
    int r = pstk__json_stream_value(&coco->stream, &key);
    if (r < 0)
        return r;
    const uint32_t section = section_of(&key);
    if (key.at[0] != '"')
        return pstk__fail(coco->stream.err, PSTK_EBADMSG, PSTK_STAGE_OPEN,
                          "%.200s: byte %" PRIu64
                          " does not begin a string; must be the key of a member",
                          a->path, key.offset);
    if (section < N_SECTIONS && (coco->seen & 1u << section))
        return pstk__fail(coco->stream.err, PSTK_EBADMSG, PSTK_STAGE_OPEN,
                          "%.200s: the key '%s' appears twice, again at byte %" PRIu64, a->path,
                          sections[section], key.offset);
    coco->seen |= section < N_SECTIONS ? 1u << section : 0;
    r = pstk__json_stream_take(&coco->stream, ':');
    if (r <= 0)
        return r < 0 ? r : pstk__json_stream_fail(&coco->stream, "':'");
    return section < N_SECTIONS ? read_section(a, s, section)
                                : pstk__json_stream_skip(&coco->stream);
}

static int read_file(struct pstk_annotations *a, const struct pstk_annotations_settings *s)
{
    struct pstk__json_stream *stream = &((struct coco *)a->state)->stream;
    int r = pstk__json_stream_take(stream, '{');
    if (r <= 0)
        return r < 0 ? r : pstk__json_stream_fail(stream, "'{', as COCO's files begin");
    r = pstk__json_stream_take(stream, '}');
    while (r == 0) {
        r = read_member(a, s);
        if (r < 0)
            return r;
        r = pstk__json_stream_take(stream, '}');
        if (r == 0) {
            r = pstk__json_stream_take(stream, ',');
            r = r > 0 ? 0 : r < 0 ? r : pstk__json_stream_fail(stream, "',' or '}'");
        }
    }
    if (r > 0)
        r = pstk__json_stream_at_end(stream);
    return r ? (r < 0 ? r : 0) : pstk__json_stream_fail(stream, "the end of the file");
}

/* ---- what belongs together ------------------------------------------------------------------- */

static int by_entry_id(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    const int r = pstk__coco_compare_ids(x->id, y->id);
    return r ? r : pstk__coco_compare_ids((int64_t)x->offset, (int64_t)y->offset);
}

static int by_image(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    const int r = pstk__coco_compare_ids(x->image, y->image);
    return r ? r : pstk__coco_compare_ids((int64_t)x->offset, (int64_t)y->offset);
}

/* Replace the ids of an entry's image and category by their numbers. before: the previous entry by
 * id, or NULL. */
static int resolve_entry(struct pstk_annotations *a, struct entry *entry,
                         const struct entry *before, struct pstk_error *err)
{
    if (before && before->id == entry->id)
        return pstk__coco_twice(a, "annotations", entry->kind == PANOPTIC ? "image_id" : "id",
                                entry->id, err);
    struct pstk__annotated_image *found_image = pstk__coco_find_image(a, entry->image);
    const struct pstk__annotations_class *found =
        entry->kind == OBJECT ? pstk__coco_find_category(a, entry->category) : NULL;
    if (!found_image)
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_OPEN,
                          "%.200s: annotation %" PRId64 ", at byte %" PRIu64
                          ": image_id: value is %" PRId64 "; must be the id of one of 'images'",
                          a->path, entry->id, entry->offset, entry->image);
    if (!found && entry->kind == OBJECT)
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_OPEN,
                          "%.200s: annotation %" PRId64 ", at byte %" PRIu64
                          ": category_id: value is %" PRId64
                          "; must be the id of one of 'categories'",
                          a->path, entry->id, entry->offset, entry->category);
    entry->image = found_image - a->images;
    entry->category = found ? found - a->classes : 0;
    found_image->n++;
    return 0;
}

/* Fail because two entries, each valid by itself, contradict each other. */
static int contradict(const struct pstk_annotations *a, const struct entry *entry,
                      const struct entry *other, const char *what, struct pstk_error *err)
{
    return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_OPEN,
                      "%.200s: annotation %" PRId64 ", at byte %" PRIu64 ", %s annotation %" PRId64
                      ", at byte %" PRIu64 " (skip_bad leaves out neither; both are well-formed)",
                      a->path, entry->id, entry->offset, what, other->id, other->offset);
}

/* Check that all entries have one kind and one number of keypoints, and note these. No entry is
 * left out here, because nothing shows which of two is wrong. */
static int agree(struct pstk_annotations *a, struct pstk_error *err)
{
    struct coco *coco = a->state;
    const struct entry *with_points = NULL;
    char what[120];
    coco->kind = coco->n ? (enum kind)coco->entries[0].kind : OBJECT;
    for (uint64_t i = 0; i < coco->n; i++) {
        const struct entry *entry = &coco->entries[i];
        snprintf(what, sizeof what, "is %s; must be %s, as", kinds[entry->kind], kinds[coco->kind]);
        if (entry->kind != coco->kind)
            return contradict(a, entry, &coco->entries[0], what, err);
        if (coco->kind == OBJECT && entry->n && !with_points)
            with_points = entry;
        coco->has_segmentation |= (entry->flags & HAS_SEGMENTATION) != 0;
        if (coco->kind != OBJECT || !entry->n || entry->n == with_points->n)
            continue;
        snprintf(what, sizeof what, "has %u keypoints; must have %u, as", entry->n, with_points->n);
        return contradict(a, entry, with_points, what, err);
    }
    coco->n_keypoints = with_points ? with_points->n : 0;
    return 0;
}

/* Sort the entries by id, resolve them, drop the entries that are left out, and sort the rest by
 * image. */
static int resolve(struct pstk_annotations *a, struct pstk_error *err)
{
    struct coco *coco = a->state;
    const uint64_t n = coco->n;
    if (n)
        qsort(coco->entries, n, sizeof *coco->entries, by_entry_id);
    coco->n = 0;
    for (uint64_t i = 0; i < n; i++) {
        struct entry *entry = &coco->entries[i];
        const struct entry *before = coco->n ? &coco->entries[coco->n - 1] : NULL;
        const uint64_t n_bad = a->info.n_bad;
        const int r = pstk__annotations_leave_out(a, resolve_entry(a, entry, before, err), err);
        if (r < 0)
            return r;
        if (a->info.n_bad == n_bad)
            coco->entries[coco->n++] = *entry;
    }
    if (coco->n == 0 && a->info.n_bad > a->n_bad_images)
        return pstk__annotations_all_bad(a, err);
    const int r = agree(a, err);
    if (r == 0 && coco->n)
        qsort(coco->entries, coco->n, sizeof *coco->entries, by_image);
    return r;
}

/* Assign each image its range of entries; with skip_empty drop images without any. */
static void place_images(struct pstk_annotations *a, int skip_empty)
{
    const struct coco *coco = a->state;
    uint64_t first = 0, kept = 0;
    a->info.n_objects = 0;
    for (uint64_t i = 0; i < a->info.n_images; i++) {
        struct pstk__annotated_image *image = &a->images[i];
        const struct entry *entry = image->n ? &coco->entries[first] : NULL;
        image->first = first;
        first += image->n;
        const int is_empty =
            image->n == 0 || (coco->kind == PANOPTIC && entry->n == 0 && !(entry->flags & IS_BAD));
        a->info.n_objects += image->n && coco->kind == PANOPTIC ? entry->n : image->n;
        a->info.n_empty += (uint64_t)is_empty;
        if (is_empty && skip_empty)
            free(image->file);
        else
            a->images[kept++] = *image;
    }
    a->info.n_images = kept;
}

/* Advice for a file that lacks a section. */
static const char *const without[N_SECTIONS] = {
    [IMAGES] = "",
    [ANNOTATIONS] = " (to pack the images alone: penstock pack FOLDER DATA)",
    [CATEGORIES] = " (add to categories an object with id and name for each category_id)"};

static int check_sections(const struct pstk_annotations *a, struct pstk_error *err)
{
    const struct coco *coco = a->state;
    uint64_t n_of[N_KINDS] = {0};
    for (uint64_t i = 0; i < coco->n; i++)
        n_of[coco->entries[i].kind]++;
    if (!(coco->seen & 1u << CATEGORIES) && n_of[CAPTION] && n_of[OBJECT])
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_OPEN,
                          "%.200s has no 'categories', and %" PRIu64
                          " objects among its captions; must have captions alone (remove the "
                          "annotations without 'caption')",
                          a->path, n_of[OBJECT]);
    for (uint32_t i = 0; i < N_SECTIONS; i++)
        if (!(coco->seen & 1u << i) && !(i == CATEGORIES && n_of[CAPTION]))
            return pstk__fail(
                err, PSTK_EBADMSG, PSTK_STAGE_OPEN,
                "%.200s has no '%s'; must have images, annotations and categories, as "
                "COCO's files of instances, keypoints, captions and panoptic "
                "segments%s",
                a->path, sections[i], without[i]);
    if (a->info.n_images == 0 && a->n_bad_images)
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_OPEN,
                          "skip_bad: no image is left, all %" PRIu64 " are bad; the first: %s",
                          a->n_bad_images, a->bad);
    if (a->info.n_images == 0)
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_OPEN, "%.200s has no images", a->path);
    if (n_of[PANOPTIC] &&
        a->info.n_bad > a->n_bad_images) /* otherwise its image would have no segments */
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_OPEN,
                          "skip_bad: %" PRIu64 " annotations of panoptic segments are bad, and "
                          "their images would have no segments; the first: %s",
                          a->info.n_bad - a->n_bad_images, a->bad);
    return 0;
}

/* Return 1 if every class has a known isthing. */
static int knows_things(const struct pstk_annotations *a)
{
    uint64_t c = 0;
    while (c < a->info.n_names && a->classes[c].is_thing >= 0)
        c++;
    return c > 0 && c == a->info.n_names;
}

/* Return 1 if records have this value. */
static int has_value(const struct pstk_annotations *a, enum value v)
{
    const struct coco *coco = a->state;
    if (v <= FILE_NAME || v == CAPTIONS)
        return v <= FILE_NAME || coco->kind == CAPTION;
    if (v == ANNOTATION_ID)
        return coco->kind == OBJECT;
    if (v <= ISCROWD)
        return coco->kind != CAPTION;
    if (v <= RUNS)
        return coco->kind == OBJECT && coco->has_segmentation;
    if (v == KEYPOINTS)
        return coco->kind == OBJECT && coco->n_keypoints;
    return coco->kind == PANOPTIC && (v != ISTHING || knows_things(a));
}

static void choose_fields(struct pstk_annotations *a)
{
    struct coco *coco = a->state;
    for (int v = 0; v < N_VALUES; v++) {
        struct pstk_field field = fields[v];
        const int chosen = has_value(a, (enum value)v);
        if (v == KEYPOINTS)
            field.shape[1] = coco->n_keypoints;
        coco->at[v] = chosen ? (int32_t)a->info.n_fields : -1;
        if (chosen)
            pstk__annotations_add_field(a, &field);
    }
}

/* Begin a panoptic file; refuse panoptic_masks for any other. */
static int begin_panoptic(struct pstk_annotations *a, const struct pstk_annotations_settings *s,
                          struct pstk_error *err)
{
    struct coco *coco = a->state;
    if (coco->kind == PANOPTIC)
        return pstk__panoptic_begin(&coco->panoptic, a, s->panoptic_masks, err);
    return s->panoptic_masks
               ? pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                            "panoptic_masks: value is '%.100s', but %.200s is not panoptic: its "
                            "annotations have no segments_info; must be left out",
                            s->panoptic_masks, a->path)
               : 0;
}

static int coco_open(struct pstk_annotations *a, const struct pstk_annotations_settings *s,
                     struct pstk_error *err)
{
    struct pstk_error own;
    pstk_error_init(&own, sizeof own);
    struct coco *coco = calloc(1, sizeof *coco);
    a->state = coco;
    if (!coco)
        return pstk__annotations_no_memory(err);
    coco->stream.fd = -1;
    int r = pstk__json_stream_open(&coco->stream, a->path, &own);
    if (r == 0)
        r = read_file(a, s);
    if (r == 0)
        r = check_sections(a, &own);
    if (r == 0)
        r = pstk__coco_sort_ids(a, &own);
    if (r == 0)
        r = resolve(a, &own);
    if (r == 0)
        r = begin_panoptic(a, s, &own);
    coco->stream.err = NULL;
    if (r < 0)
        return pstk__fail_copy(err, &own);
    place_images(a, s->skip_empty != 0);
    if (a->info.n_images == 0)
        return pstk__fail(
            err, PSTK_EBADMSG, PSTK_STAGE_OPEN,
            "skip_empty: no image is left, none of %.200s has annotations (do not set skip_empty)",
            a->path);
    choose_fields(a);
    return 0;
}

/* ---- the values of an image ------------------------------------------------------------------ */

/* Return the buffer to which value v is appended. Its field must exist. */
static struct pstk__bytes *value_at(struct pstk_annotations *a, enum value v)
{
    const struct coco *coco = a->state;
    return &a->values[coco->at[v]];
}

static void put_polygons(struct pstk_annotations *a, json_t *polygons)
{
    size_t p, i;
    json_t *polygon, *value;
    pstk__bytes_u32(value_at(a, OBJECT_POLYGONS), (uint32_t)json_array_size(polygons));
    json_array_foreach(polygons, p, polygon)
    {
        pstk__bytes_u32(value_at(a, POLYGON_POINTS), (uint32_t)(json_array_size(polygon) / 2));
        json_array_foreach(polygon, i, value)
            pstk__bytes_f32(value_at(a, POINTS), json_number_value(value));
    }
}

static int put_segmentation(struct pstk_annotations *a, const struct pstk__coco_location *location,
                            const struct pstk__annotated_image *image,
                            const struct pstk__coco_object *object)
{
    uint32_t n = 0;
    put_polygons(a, object->polygons);
    if (object->counts && image->width && image->height &&
        (object->height != image->height || object->width != image->width))
        return pstk__coco_fail(location,
                               "segmentation.size: value is %u x %u; must be %u x %u, height and "
                               "width of image %" PRId64,
                               object->height, object->width, image->height, image->width,
                               image->id);
    const int r = object->counts ? pstk__coco_runs(location, object, value_at(a, RUNS), &n) : 0;
    pstk__bytes_u32(value_at(a, OBJECT_RUNS), n);
    return r;
}

static void put_keypoints(struct pstk_annotations *a, json_t *list)
{
    const struct coco *coco = a->state;
    for (size_t i = 0; i < 3 * coco->n_keypoints; i++) /* an object without keypoints has zeros */
        pstk__bytes_f32(value_at(a, KEYPOINTS), json_number_value(json_array_get(list, i)));
}

/* Append the values that objects and segments share. */
static void put_thing(struct pstk_annotations *a, const struct pstk__annotated_image *image,
                      const struct pstk__coco_object *object, int64_t label)
{
    const double *box = object->box;
    const double corners[4] = {box[0], box[1], box[0] + box[2], box[1] + box[3]};
    for (int i = 0; i < 4; i++)
        pstk__bytes_f32(value_at(a, BOXES), box[i]);
    pstk__annotations_count_box(a, image, corners);
    pstk__bytes_i64(value_at(a, LABELS), label);
    pstk__bytes_i64(value_at(a, CATEGORY_ID), object->category);
    pstk__bytes_f64(value_at(a, AREA), object->area);
    pstk__bytes_u8(value_at(a, ISCROWD), object->is_crowd);
}

static int put_object(struct pstk_annotations *a, const struct pstk__coco_location *location,
                      const struct pstk__annotated_image *image, const struct entry *entry,
                      const struct pstk__coco_object *object)
{
    const struct coco *coco = a->state;
    put_thing(a, image, object, entry->category);
    pstk__bytes_i64(value_at(a, ANNOTATION_ID), object->id);
    if (coco->n_keypoints)
        put_keypoints(a, object->keypoints);
    return coco->has_segmentation ? put_segmentation(a, location, image, object) : 0;
}

/* Fail because an entry's text has changed since the first reading. */
static int fail_changed(const struct pstk_annotations *a, const struct entry *entry,
                        struct pstk_error *err)
{
    return pstk__fail(err, PSTK_EIO, PSTK_STAGE_READ,
                      "%.200s changed while it was read: annotation %" PRId64
                      " is no longer at byte %" PRIu64,
                      a->path, entry->id, entry->offset);
}

/* Append the segments of an image, and its masks. */
static int put_segments(struct pstk_annotations *a, const struct pstk__coco_location *location,
                        const struct pstk__annotated_image *image, const struct entry *entry,
                        const struct pstk__coco_object *object)
{
    struct coco *coco = a->state;
    const uint32_t masks[2] = {(uint32_t)coco->at[SEGMENT_MASK], (uint32_t)coco->at[CLASS_MASK]};
    uint32_t n;
    if (entry->flags & IS_BAD)
        return pstk__panoptic_note(&coco->panoptic, location, object, &n) < 0
                   ? PSTK_EBADMSG
                   : fail_changed(a, entry, location->err);
    if (json_array_size(object->segments) != entry->n || pstk__annotations_path_wrong(object->mask))
        return fail_changed(a, entry, location->err);
    for (uint32_t i = 0; i < entry->n; i++) {
        struct pstk__coco_object segment;
        if (pstk__coco_segment(location, object, i, &segment) < 0)
            return fail_changed(a, entry, location->err);
        const struct pstk__annotations_class *found = pstk__coco_find_category(a, segment.category);
        if (!found)
            return fail_changed(a, entry, location->err);
        put_thing(a, image, &segment, found - a->classes);
        pstk__bytes_i64(value_at(a, SEGMENT), (int64_t)i + 1);
        pstk__bytes_i64(value_at(a, SEGMENT_ID), segment.id);
        if (coco->at[ISTHING] >= 0)
            pstk__bytes_u8(value_at(a, ISTHING), (uint8_t)found->is_thing);
        pstk__panoptic_add(&coco->panoptic, segment.id, (uint64_t)(found - a->classes));
    }
    return pstk__panoptic_put(&coco->panoptic, a, image, object->mask, masks, location->err);
}

/* Read an entry's text into coco->text. */
static int read_text(struct coco *coco, const struct entry *entry, struct pstk_error *err)
{
    if (entry->size > coco->text_room) {
        char *more = realloc(coco->text, entry->size);
        if (!more)
            return pstk__annotations_no_memory(err);
        coco->text = more;
        coco->text_room = entry->size;
    }
    return pstk__json_stream_read(&coco->stream, entry->offset, coco->text, entry->size, err);
}

static int put_entry(struct pstk_annotations *a, const struct pstk__annotated_image *image,
                     const struct entry *entry, struct pstk_error *err)
{
    struct coco *coco = a->state;
    struct pstk__coco_object object;
    const struct pstk__coco_location location = {a->path, "annotation of image",
                                                 (uint64_t)image->id, entry->offset, err};
    int r = read_text(coco, entry, err);
    if (r < 0)
        return r;
    json_t *tree = pstk__coco_parse(&location, coco->text, entry->size);
    r = tree ? pstk__coco_object(&location, tree, &object) : PSTK_EIO;
    if (r < 0 || kind_of(&object) != coco->kind ||
        (object.segments ? object.image : object.id) != entry->id)
        r = fail_changed(a, entry, err);
    else if (coco->kind == CAPTION)
        pstk__bytes_put(&coco->captions, object.caption, strlen(object.caption) + 1);
    else if (coco->kind == PANOPTIC)
        r = put_segments(a, &location, image, entry, &object);
    else
        r = put_object(a, &location, image, entry, &object);
    json_decref(tree);
    return r;
}

/* Append the masks of an image without annotation. */
static int put_nothing(struct pstk_annotations *a, const struct pstk__annotated_image *image,
                       struct pstk_error *err)
{
    struct coco *coco = a->state;
    const uint32_t masks[2] = {(uint32_t)coco->at[SEGMENT_MASK], (uint32_t)coco->at[CLASS_MASK]};
    return pstk__panoptic_put(&coco->panoptic, a, image, NULL, masks, err);
}

/* Append the list of the captions that were read. */
static int put_captions(struct pstk_annotations *a, uint64_t n, struct pstk_error *err)
{
    struct coco *coco = a->state;
    const char *text = (const char *)coco->captions.data;
    void *list;
    uint64_t size;
    for (uint64_t i = 0; i < n && !coco->captions.failed; i++) {
        const struct pstk_list_item item = {.data = text, .size = strlen(text)};
        pstk__bytes_put(&coco->items, &item, sizeof item);
        text += item.size + 1;
    }
    if (coco->items.failed || coco->captions.failed)
        return pstk__annotations_no_memory(err);
    const int r =
        pstk_list_build(PSTK_FIELD_UTF8_LIST, (const void *)coco->items.data, n, &list, &size, err);
    if (r < 0)
        return r;
    pstk__bytes_put(value_at(a, CAPTIONS), list, size);
    pstk_free(list);
    return 0;
}

static int coco_read(struct pstk_annotations *a, uint64_t i, struct pstk_error *err)
{
    struct coco *coco = a->state;
    const struct pstk__annotated_image *image = &a->images[i];
    pstk__bytes_clear(&coco->captions);
    pstk__bytes_clear(&coco->items);
    pstk__panoptic_clear(&coco->panoptic);
    pstk__bytes_i64(value_at(a, IMAGE_ID), image->id);
    pstk__bytes_put(value_at(a, FILE_NAME), image->file, strlen(image->file));
    for (uint64_t e = 0; e < image->n; e++) {
        const int r = put_entry(a, image, &coco->entries[image->first + e], err);
        if (r < 0)
            return r;
    }
    if (coco->kind == PANOPTIC && image->n == 0)
        return put_nothing(a, image, err);
    return coco->kind == CAPTION ? put_captions(a, image->n, err) : 0;
}

static void coco_close(struct pstk_annotations *a)
{
    struct coco *coco = a->state;
    if (!coco)
        return;
    pstk__json_stream_close(&coco->stream);
    pstk__bytes_free(&coco->captions);
    pstk__bytes_free(&coco->items);
    pstk__panoptic_close(&coco->panoptic);
    free(coco->entries);
    free(coco->text);
    free(coco);
}

const struct pstk__annotations_entry pstk__annotations_coco = {
    .format = PSTK_ANNOTATIONS_COCO, .open = coco_open, .read = coco_read, .close = coco_close};
