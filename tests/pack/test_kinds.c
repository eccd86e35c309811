/* SPDX-License-Identifier: Apache-2.0 */
/* Records of COCO, VOC and of people's keypoints, written by hand in the kinds that are made for
 * them: read back equal, verified, and refused where their fields do not belong together. */
#include "support/fixture.h"
#include "record/axes.h"
#include "record/list.h"

/* ---- seams: what the writer would refuse, for verify to find --------------------------------- */

static int lenient; /* 1: the checks below find nothing */

const char *__real_pstk__axes_check(const struct pstk__schema *schema,
                                    const struct pstk_value *values,
                                    const struct pstk__field_view *views, uint32_t *field,
                                    char text[320]);
const char *__wrap_pstk__axes_check(const struct pstk__schema *schema,
                                    const struct pstk_value *values,
                                    const struct pstk__field_view *views, uint32_t *field,
                                    char text[320]);
const char *__wrap_pstk__axes_check(const struct pstk__schema *schema,
                                    const struct pstk_value *values,
                                    const struct pstk__field_view *views, uint32_t *field,
                                    char text[320])
{
    return lenient ? NULL : __real_pstk__axes_check(schema, values, views, field, text);
}

const char *__real_pstk__list_check_images(uint32_t kind, const void *data, uint64_t size,
                                           uint32_t *width, uint32_t *height, char text[200]);
const char *__wrap_pstk__list_check_images(uint32_t kind, const void *data, uint64_t size,
                                           uint32_t *width, uint32_t *height, char text[200]);
const char *__wrap_pstk__list_check_images(uint32_t kind, const void *data, uint64_t size,
                                           uint32_t *width, uint32_t *height, char text[200])
{
    const char *wrong = __real_pstk__list_check_images(kind, data, size, width, height, text);
    return lenient ? NULL : wrong;
}

const char *__real_pstk__value_check(const struct pstk_field *field, const void *data,
                                     uint64_t size, char text[160]);
const char *__wrap_pstk__value_check(const struct pstk_field *field, const void *data,
                                     uint64_t size, char text[160]);
const char *__wrap_pstk__value_check(const struct pstk_field *field, const void *data,
                                     uint64_t size, char text[160])
{
    return lenient ? NULL : __real_pstk__value_check(field, data, size, text);
}

/* ---- records --------------------------------------------------------------------------------- */

#define VALUE(array)                                                                               \
    {                                                                                              \
        array, sizeof(array)                                                                       \
    }
#define LENGTHS(field, axis, of)                                                                   \
    {                                                                                              \
        .name = field, .kind = PSTK_FIELD_NDARRAY, .dtype = PSTK_U32, .n_dims = 1, .rows = axis,   \
        .splits = of, .codec = PSTK_CODEC_ZSTD                                                     \
    }

/* COCO: two objects with polygons, of which the first has two, and a crowd with runs. */
enum {
    COCO_IMAGE,
    COCO_BOXES,
    COCO_LABELS,
    COCO_CROWD,
    COCO_POLYGONS,
    COCO_POINTS_OF,
    COCO_POINTS,
    COCO_RUNS_OF,
    COCO_RUNS,
    COCO_MASKS,
    COCO_CAPTIONS,
    N_COCO
};

static const struct pstk_field coco_fields[N_COCO] = {
    {.name = "jpg", .kind = PSTK_FIELD_IMAGE, .codec = PSTK_CODEC_PLANES},
    {.name = "boxes",
     .kind = PSTK_FIELD_BOXES,
     .dtype = PSTK_F32,
     .n_dims = 2,
     .shape = {0, 4},
     .of = "jpg",
     .rows = "objects",
     .box_format = PSTK_BOX_FORMAT_XYWH,
     .coordinates = PSTK_COORDINATES_PIXELS},
    {.name = "labels",
     .kind = PSTK_FIELD_NDARRAY,
     .dtype = PSTK_I64,
     .n_dims = 1,
     .rows = "objects"},
    {.name = "crowd", .kind = PSTK_FIELD_NDARRAY, .dtype = PSTK_U8, .n_dims = 1, .rows = "objects"},
    LENGTHS("object_polygons", "objects", "polygons"),
    LENGTHS("polygon_points", "polygons", "points"),
    {.name = "points",
     .kind = PSTK_FIELD_POLYGONS,
     .dtype = PSTK_F32,
     .n_dims = 2,
     .shape = {0, 2},
     .codec = PSTK_CODEC_ZSTD,
     .of = "jpg",
     .rows = "points",
     .coordinates = PSTK_COORDINATES_PIXELS},
    LENGTHS("object_runs", "objects", "runs"),
    {.name = "runs",
     .kind = PSTK_FIELD_RLE,
     .dtype = PSTK_U32,
     .n_dims = 1,
     .codec = PSTK_CODEC_ZSTD,
     .of = "jpg",
     .rows = "runs"},
    {.name = "masks", .kind = PSTK_FIELD_MASK_LIST, .of = "jpg", .rows = "objects"},
    {.name = "captions", .kind = PSTK_FIELD_UTF8_LIST, .codec = PSTK_CODEC_ZSTD},
};

static const float coco_boxes[3][4] = {{1, 1, 6, 5}, {8, 0, 7.5f, 4}, {0, 4, 16, 4}};
static const int64_t coco_labels[3] = {17, 1, 1};
static const uint8_t coco_crowd[3] = {0, 0, 1};
static const uint32_t coco_polygons[3] = {2, 1, 0}, coco_points_of[3] = {3, 4, 3};
static const float coco_points[10][2] = {{1, 1}, {4, 1}, {1, 4},    {4, 2},  {7, 2},
                                         {7, 6}, {4, 6}, {8, 0.5f}, {15, 0}, {15.5f, 4}};
static const uint32_t coco_runs_of[3] = {0, 0, 5}, coco_runs[5] = {4, 4, 8, 100, 12}; /* 16 x 8 */

/* Build the lists into the values of a record. */
static int build_lists(struct pstk_value *masks, struct pstk_value *captions)
{
    static const char *const texts[] = {"a cat", "", "zwei Vögel"};
    struct pstk_list_item mask[3], text[3];
    void *data[2];
    memset(mask, 0, sizeof mask);
    memset(text, 0, sizeof text);
    for (int i = 0; i < 3; i++) { /* masks of instances, which may overlap */
        mask[i] = (struct pstk_list_item){.data = tiny_mask, .size = sizeof tiny_mask};
        text[i] = (struct pstk_list_item){.data = texts[i], .size = strlen(texts[i])};
    }
    if (pstk_list_build(PSTK_FIELD_MASK_LIST, mask, 3, &data[0], &masks->size, NULL) < 0 ||
        pstk_list_build(PSTK_FIELD_UTF8_LIST, text, 3, &data[1], &captions->size, NULL) < 0)
        return -1;
    masks->data = data[0];
    captions->data = data[1];
    return 0;
}

static void make_coco(struct pstk_value v[N_COCO])
{
    const struct pstk_value good[N_COCO] = {
        [COCO_IMAGE] = VALUE(tiny_jpeg),        [COCO_BOXES] = VALUE(coco_boxes),
        [COCO_LABELS] = VALUE(coco_labels),     [COCO_CROWD] = VALUE(coco_crowd),
        [COCO_POLYGONS] = VALUE(coco_polygons), [COCO_POINTS_OF] = VALUE(coco_points_of),
        [COCO_POINTS] = VALUE(coco_points),     [COCO_RUNS_OF] = VALUE(coco_runs_of),
        [COCO_RUNS] = VALUE(coco_runs),
    };
    memcpy(v, good, sizeof good);
    CHECK_EQ(build_lists(&v[COCO_MASKS], &v[COCO_CAPTIONS]), 0);
}

static void free_coco(struct pstk_value v[N_COCO])
{
    pstk_free((void *)(uintptr_t)v[COCO_MASKS].data);
    pstk_free((void *)(uintptr_t)v[COCO_CAPTIONS].data);
}

/* VOC: a class of each pixel, boxes of objects with flags. */
static const struct pstk_field voc_fields[] = {
    {.name = "jpg", .kind = PSTK_FIELD_IMAGE},
    {.name = "boxes",
     .kind = PSTK_FIELD_BOXES,
     .dtype = PSTK_U16,
     .n_dims = 2,
     .shape = {0, 4},
     .of = "jpg",
     .rows = "objects",
     .box_format = PSTK_BOX_FORMAT_XYXY,
     .coordinates = PSTK_COORDINATES_PIXELS},
    {.name = "names", .kind = PSTK_FIELD_UTF8_LIST, .rows = "objects"},
    {.name = "difficult",
     .kind = PSTK_FIELD_NDARRAY,
     .dtype = PSTK_U8,
     .n_dims = 1,
     .rows = "objects"},
    {.name = "classes", .kind = PSTK_FIELD_MASK_LIST, .of = "jpg"},
};

/* People: 17 keypoints of each, as fractions of the image. */
static const struct pstk_field people_fields[] = {
    {.name = "jpg", .kind = PSTK_FIELD_IMAGE},
    {.name = "boxes",
     .kind = PSTK_FIELD_BOXES,
     .dtype = PSTK_F32,
     .n_dims = 2,
     .shape = {0, 4},
     .of = "jpg",
     .rows = "people",
     .box_format = PSTK_BOX_FORMAT_CXCYWH,
     .coordinates = PSTK_COORDINATES_UNIT},
    {.name = "keypoints",
     .kind = PSTK_FIELD_KEYPOINTS,
     .dtype = PSTK_F16,
     .n_dims = 3,
     .shape = {0, 17, 3},
     .codec = PSTK_CODEC_ZSTD,
     .of = "jpg",
     .rows = "people",
     .coordinates = PSTK_COORDINATES_UNIT},
};

/* ---- writing and reading --------------------------------------------------------------------- */

struct set {
    const char *path;
    const struct pstk_field *fields;
    uint32_t n_fields;
};

static struct pstk_writer *open_set(const struct set *set, struct pstk_error *err)
{
    struct pstk_writer_settings s;
    struct pstk_writer *w = NULL;
    pstk_writer_settings_init(&s, sizeof s);
    s.path = set->path;
    s.fields = set->fields;
    s.n_fields = set->n_fields;
    s.dictionary_size = 1;
    s.overwrite = 1;
    if (pstk_writer_open(&w, &s, err) < 0)
        printf("# %s\n", err->message);
    return w;
}

/* A data set of one record. */
static int write_set(const struct set *set, const struct pstk_value *v, struct pstk_error *err)
{
    struct pstk_writer *w = open_set(set, err);
    int r = w ? pstk_writer_add(w, v, set->n_fields, err) : -1;
    if (r == 0)
        return pstk_writer_commit(&w, err);
    pstk_writer_abort(&w);
    return r;
}

/* Every value of record 0 is the given one, every field that of the schema; nothing is damaged. */
static int reads_back(const struct set *set, const struct pstk_value *v)
{
    struct pstk_dataset *d;
    int same = pstk_dataset_open(&d, set->path, NULL, NULL) == 0;
    for (uint32_t i = 0; same && i < set->n_fields; i++) {
        struct pstk_field field;
        void *data;
        uint64_t size;
        same = pstk_dataset_get_field(d, i, &field, NULL) == 0 &&
               memcmp(&field, &set->fields[i], sizeof field) == 0 &&
               pstk_dataset_get(d, 0, i, &data, &size, NULL, NULL) == 0;
        if (!same)
            break;
        same = size == v[i].size && memcmp(data, v[i].data, size) == 0;
        pstk_free(data);
    }
    pstk_dataset_close(&d);
    return same && pstk_verify(set->path, 1, 1, NULL, NULL, NULL, NULL) == 0;
}

static char said[400]; /* by verify, last */

static int on_bad(void *user, const struct pstk_error *bad)
{
    (void)user;
    snprintf(said, sizeof said, "%.399s", bad->message);
    return 0;
}

/* verify finds one damaged place, and says so. */
static int finds(const char *path, int decode, const char *says)
{
    said[0] = 0;
    const int64_t n = pstk_verify(path, decode, 1, on_bad, NULL, NULL, NULL);
    if (n != 1 || !strstr(said, says))
        printf("# %lld: %s\n", (long long)n, said);
    return n == 1 && strstr(said, says) != NULL;
}

/* The writer refuses the values, and adds no record; written nevertheless, verify finds them. */
static int is_refused(const struct set *set, const struct pstk_value *v, const char *says)
{
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    struct pstk_writer *w = open_set(set, &err);
    int r = w ? pstk_writer_add(w, v, set->n_fields, &err) : 0;
    if ((r != PSTK_EINVAL && r != PSTK_EBADMSG) || !strstr(err.message, says) ||
        pstk_writer_n_samples(w) != 0) {
        printf("# %d: %s\n", r, err.message);
        pstk_writer_abort(&w);
        return 0;
    }
    pstk_writer_abort(&w);
    lenient = 1;
    r = write_set(set, v, &err);
    lenient = 0;
    return r == 0 && finds(set->path, 0, says);
}

/* ---- tests ----------------------------------------------------------------------------------- */

TEST(a_record_of_coco_reads_back)
{
    struct fixture f;
    struct pstk_value v[N_COCO];
    fixture_open(&f);
    make_coco(v);
    const struct set set = {fixture_path(&f, "coco"), coco_fields, N_COCO};
    CHECK_EQ(write_set(&set, v, &f.err), 0);
    CHECK(reads_back(&set, v));
    free_coco(v);
    fixture_close(&f);
}

TEST(a_record_of_voc_reads_back)
{
    static const uint16_t boxes[2][4] = {{1, 1, 9, 8}, {0, 2, 16, 7}};
    static const uint8_t difficult[2] = {0, 1};
    const struct pstk_list_item names[2] = {{.data = "dog", .size = 3},
                                            {.data = "sofa", .size = 4}};
    const struct pstk_list_item mask = {.data = tiny_mask, .size = sizeof tiny_mask};
    struct fixture f;
    void *data[2];
    uint64_t size[2];
    fixture_open(&f);
    CHECK_EQ(pstk_list_build(PSTK_FIELD_UTF8_LIST, names, 2, &data[0], &size[0], &f.err), 0);
    CHECK_EQ(pstk_list_build(PSTK_FIELD_MASK_LIST, &mask, 1, &data[1], &size[1], &f.err), 0);
    const struct pstk_value v[] = {
        VALUE(tiny_jpeg), VALUE(boxes), {data[0], size[0]}, VALUE(difficult), {data[1], size[1]}};
    const struct set set = {fixture_path(&f, "voc"), voc_fields, 5};
    CHECK_EQ(write_set(&set, v, &f.err), 0);
    CHECK(reads_back(&set, v));
    pstk_free(data[0]);
    pstk_free(data[1]);
    fixture_close(&f);
}

TEST(a_record_of_keypoints_reads_back)
{
    static const float boxes[2][4] = {{0.5f, 0.5f, 1, 0.75f}, {0.25f, 0.5f, 0.125f, 0.5f}};
    static uint16_t keypoints[2][17][3]; /* f16 */
    struct fixture f;
    fixture_open(&f);
    for (int i = 0; i < 2 * 17; i++) {
        keypoints[i / 17][i % 17][0] = (uint16_t)(0x3000 + i); /* below 0.5 */
        keypoints[i / 17][i % 17][1] = 0x3800;                 /* 0.5 */
        keypoints[i / 17][i % 17][2] = i % 3 == 2 ? 0x4000 : i % 3 == 1 ? 0x3c00 : 0;
    }
    const struct pstk_value v[] = {VALUE(tiny_png), VALUE(boxes), VALUE(keypoints)};
    const struct set set = {fixture_path(&f, "people"), people_fields, 3};
    CHECK_EQ(write_set(&set, v, &f.err), 0);
    CHECK(reads_back(&set, v));
    struct pstk_value one[] = {v[0], v[1], {keypoints, sizeof keypoints / 2}};
    CHECK(is_refused(&set, one,
                     "rows: value is 1; must be 2, as field boxes has on the axis "
                     "people"));
    fixture_close(&f);
}

TEST(rows_lengths_and_runs_that_differ_are_refused_by_writer_and_verify)
{
    static const uint32_t less[3] = {1, 1, 0}, more[3] = {0, 0, 6}, runs[5] = {4, 4, 8, 100, 11};
    static const uint32_t others[3] = {0, 5, 0};
    static const struct {
        uint32_t field;
        const void *data;
        uint64_t size;
        const char *says;
    } wrong[] = {
        {COCO_LABELS, coco_labels, 16, "rows: value is 2; must be 3, as field boxes"},
        {COCO_BOXES, coco_boxes, 32, "rows: value is 3; must be 2"},
        {COCO_CROWD, coco_labels, 24, "rows: value is 24"},
        {COCO_POLYGONS, less, 12,
         "splits: sum is 2; must be 3, the rows of "
         "field polygon_points on the axis polygons"},
        {COCO_POINTS, coco_points, 72, "splits: lengths 0 to 2"},
        {COCO_RUNS_OF, more, 12, "splits: lengths 0 to 2"},
        {COCO_RUNS, runs, 20,
         "runs 0 to 4: sum is 127; must be 128, the pixels of "
         "field jpg"},
    };
    struct fixture f;
    struct pstk_value v[N_COCO];
    fixture_open(&f);
    make_coco(v);
    const struct set set = {fixture_path(&f, "coco"), coco_fields, N_COCO};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct pstk_value bad[N_COCO];
        memcpy(bad, v, sizeof bad);
        bad[wrong[i].field] = (struct pstk_value){wrong[i].data, wrong[i].size};
        CHECK(is_refused(&set, bad, wrong[i].says));
    }
    v[COCO_RUNS_OF].data = others; /* runs of another object: as good */
    CHECK_EQ(write_set(&set, v, &f.err), 0);
    CHECK(reads_back(&set, v));
    free_coco(v);
    fixture_close(&f);
}

TEST(lists_whose_items_are_wrong_are_refused_by_writer_and_verify)
{
    struct fixture f;
    struct pstk_value v[N_COCO];
    fixture_open(&f);
    make_coco(v);
    const struct set set = {fixture_path(&f, "coco"), coco_fields, N_COCO};
    uint8_t *masks = (uint8_t *)(uintptr_t)v[COCO_MASKS].data;
    uint8_t *captions = (uint8_t *)(uintptr_t)v[COCO_CAPTIONS].data;
    masks[16 + 16 + 8]++; /* the width of item 1: 3 of 2 */
    CHECK(is_refused(&set, v, "its head in the list says otherwise"));
    masks[16 + 16 + 8]--;
    masks[v[COCO_MASKS].size - 90]++; /* the gap before the last item */
    CHECK_EQ(write_set(&set, v, &f.err), PSTK_EINVAL);
    CHECK(strstr(f.err.message, "the bytes before item 2 must be zero"));
    masks[v[COCO_MASKS].size - 90]--;
    masks[16 + 6] = 3; /* bits: none that a PNG has */
    CHECK(is_refused(&set, v, "item 0: its encoding has no such channels, bits or palette"));
    masks[16 + 6] = 8;
    captions[v[COCO_CAPTIONS].size - 1] = 0xff;
    CHECK(is_refused(&set, v, "item 2 is not UTF-8 at byte"));
    captions[v[COCO_CAPTIONS].size - 1] = 'l';
    captions[4] = 4; /* one byte less than the first item has: the last one ends before the list */
    CHECK(is_refused(&set, v, "1 bytes follow the last item of the list"));
    free_coco(v);
    fixture_close(&f);
}

TEST(decoding_finds_damage_in_an_image_of_a_list)
{
    static const struct pstk_field field = {.name = "shots", .kind = PSTK_FIELD_IMAGE_LIST};
    uint8_t cut[sizeof tiny_png];
    struct pstk_list_item items[2] = {{.data = tiny_jpeg, .size = sizeof tiny_jpeg},
                                      {.data = cut, .size = sizeof cut}};
    struct fixture f;
    struct pstk_value v = {.data = NULL};
    void *data;
    fixture_open(&f);
    memcpy(cut, tiny_png, sizeof cut);
    cut[50] ^= 0xff; /* among its pixels */
    CHECK_EQ(pstk_list_build(field.kind, items, 2, &data, &v.size, &f.err), 0);
    v.data = data;
    const struct set set = {fixture_path(&f, "shots"), &field, 1};
    CHECK_EQ(write_set(&set, &v, &f.err), 0);
    CHECK_EQ(pstk_verify(set.path, 0, 1, NULL, NULL, NULL, NULL), 0);
    CHECK(finds(set.path, 1, "cannot be decoded"));
    pstk_free(data);
    fixture_close(&f);
}

TEST(the_largest_sides_of_a_list_are_known_and_verified)
{
    static const struct pstk_field field = {.name = "shots", .kind = PSTK_FIELD_IMAGE_LIST};
    const struct pstk_list_item items[2] = {{.data = tiny_mask, .size = sizeof tiny_mask},
                                            {.data = tiny_png, .size = sizeof tiny_png}};
    struct pstk_field_stats stats = {.size = sizeof stats};
    struct fixture f;
    struct pstk_dataset *d;
    struct pstk_value v = {.data = NULL};
    void *data;
    fixture_open(&f);
    CHECK_EQ(pstk_list_build(field.kind, items, 2, &data, &v.size, &f.err), 0);
    v.data = data;
    const struct set set = {fixture_path(&f, "shots"), &field, 1};
    CHECK_EQ(write_set(&set, &v, &f.err), 0);
    CHECK_EQ(pstk_dataset_open(&d, set.path, NULL, &f.err), 0);
    CHECK_EQ(pstk_dataset_get_field(d, 0, NULL, &stats), 0);
    CHECK(stats.max_width == 5 && stats.max_height == 3);
    pstk_dataset_close(&d);
    uint8_t *bytes = data; /* a width that no check of the writer may see */
    bytes[16 + 16 + 8] = 9;
    lenient = 1;
    CHECK_EQ(write_set(&set, &v, &f.err), 0);
    lenient = 0;
    CHECK(finds(set.path, 0, "its head in the list says otherwise"));
    pstk_free(data);
    fixture_close(&f);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(a_record_of_coco_reads_back),
        CASE(a_record_of_voc_reads_back),
        CASE(a_record_of_keypoints_reads_back),
        CASE(rows_lengths_and_runs_that_differ_are_refused_by_writer_and_verify),
        CASE(lists_whose_items_are_wrong_are_refused_by_writer_and_verify),
        CASE(decoding_finds_damage_in_an_image_of_a_list),
        CASE(the_largest_sides_of_a_list_are_known_and_verified),
    };
    return RUN_CASES(cases);
}
