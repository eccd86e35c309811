/* SPDX-License-Identifier: Apache-2.0 */
/* COCO and VOC when the machine fails: the nth allocation, read or open fails, for every n. The
 * reading then fails with that code and leaves nothing behind, or had no need of it. */
#include "support/fixture.h"
#include "support/faults.h"

#include <penstock/annotations.h>

/* ---- seams: more calls that allocate --------------------------------------------------------- */

void *__real_reallocarray(void *old, size_t n, size_t size);
void *__wrap_reallocarray(void *old, size_t n, size_t size);
void *__wrap_reallocarray(void *old, size_t n, size_t size)
{
    return fault_due(FAULT_MEMORY) ? NULL : __real_reallocarray(old, n, size);
}

char *__real_strdup(const char *text);
char *__wrap_strdup(const char *text);
char *__wrap_strdup(const char *text)
{
    return fault_due(FAULT_MEMORY) ? NULL : __real_strdup(text);
}

char *__real_strndup(const char *text, size_t n);
char *__wrap_strndup(const char *text, size_t n);
char *__wrap_strndup(const char *text, size_t n)
{
    return fault_due(FAULT_MEMORY) ? NULL : __real_strndup(text, n);
}

/* ---- sources --------------------------------------------------------------------------------- */

static const char objects[] =
    "{\"images\": [{\"id\": 1, \"file_name\": \"a.jpg\", \"width\": 4, \"height\": 3},"
    "{\"id\": 2, \"file_name\": \"b.jpg\"}, {\"id\": 3, \"file_name\": \"c.jpg\"}],"
    "\"categories\": [{\"id\": 5, \"name\": \"x\"}, {\"id\": 6, \"name\": \"y\"}],"
    "\"annotations\": [{\"id\": 1, \"image_id\": 1, \"category_id\": 5, \"bbox\": [0, 0, 1, 1],"
    "\"segmentation\": {\"size\": [3, 4], \"counts\": \"282\"}, \"keypoints\": [1, 1, 2]},"
    "{\"id\": 2, \"image_id\": 2, \"category_id\": 6, \"bbox\": [0, 0, 1, 1],"
    "\"segmentation\": [[0, 0, 1, 1, 2, 0]]}]}";
static const char captions[] =
    "{\"images\": [{\"id\": 1, \"file_name\": \"a.jpg\"}], \"annotations\": ["
    "{\"id\": 1, \"image_id\": 1, \"caption\": \"one\"}, {\"id\": 2, \"image_id\": 1, \"caption\": "
    "\"\"}]}";
static const char panoptic[] =
    "{\"images\": [{\"id\": 1, \"file_name\": \"a.jpg\", \"width\": 4, \"height\": 3},"
    "{\"id\": 2, \"file_name\": \"b.jpg\", \"width\": 5, \"height\": 2}],"
    "\"annotations\": [{\"image_id\": 1, \"file_name\": \"a.png\", \"segments_info\": ["
    "{\"id\": 258, \"category_id\": 6, \"bbox\": [2, 0, 2, 2]},"
    "{\"id\": 1, \"category_id\": 5, \"bbox\": [0, 0, 2, 2]}]}],"
    "\"categories\": [{\"id\": 5, \"name\": \"x\"}, {\"id\": 6, \"name\": \"y\"}]}";
/* 4 x 3 colours: 1 1 0 258, 1 0 258 258, 0 0 0 0 */
static const uint8_t colours[] = {
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48, 0x44, 0x52,
    0x00, 0x00, 0x00, 0x04, 0x00, 0x00, 0x00, 0x03, 0x08, 0x02, 0x00, 0x00, 0x00, 0x3b, 0x96, 0x39,
    0x91, 0x00, 0x00, 0x00, 0x16, 0x49, 0x44, 0x41, 0x54, 0x78, 0xda, 0x63, 0x60, 0x64, 0x60, 0x00,
    0x22, 0x20, 0x60, 0x42, 0x66, 0x31, 0x41, 0x58, 0x70, 0x00, 0x00, 0x01, 0x46, 0x00, 0x0d, 0x41,
    0x49, 0x2e, 0x2b, 0x00, 0x00, 0x00, 0x00, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82};
static const char xml[] =
    "<annotation><object><name>dog</name><pose>Left</pose><bndbox><xmin>1</xmin><ymin>1</ymin>"
    "<xmax>4</xmax><ymax>3</ymax></bndbox></object><object><name>cat</name><bndbox><xmin>1</xmin>"
    "<ymin>1</ymin><xmax>1</xmax><ymax>3</ymax></bndbox></object></annotation>";

static void write_file(const char *path, const void *data, size_t size)
{
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(data, 1, size, file) != size || fclose(file) != 0)
        abort();
}

/* Make a file below a folder. */
static void write_below(const char *folder, const char *name, const void *data, size_t size)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    write_file(path, data, size);
}

static void make_voc(const char *folder)
{
    static const char *const folders[] = {"",
                                          "/Annotations",
                                          "/SegmentationClass",
                                          "/ImageSets",
                                          "/ImageSets/Main",
                                          "/JPEGImages",
                                          "/Annotations/deep"};
    char path[512];
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        snprintf(path, sizeof path, "%s%s", folder, folders[i]);
        if (mkdir(path, 0700) < 0)
            abort();
    }
    write_below(folder, "Annotations/1.xml", xml, sizeof xml - 1);
    write_below(folder, "Annotations/2.xml", "<annotation/>", 13);
    write_below(folder, "Annotations/deep/3.xml", "<annotation/>", 13);
    write_below(folder, "JPEGImages/4.png", tiny_mask, sizeof tiny_mask);
    write_below(folder, "SegmentationClass/1.png", tiny_mask, sizeof tiny_mask);
    write_below(folder, "ImageSets/Main/set.txt", "2\n1\n", 4);
}

/* Open and read everything. 0, or the first failure, which has a message. */
static int read_all(const struct pstk_annotations_settings *s)
{
    struct pstk_annotations_info info = {.size = sizeof info};
    struct pstk_annotations *a;
    struct pstk_value values[16];
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    int r = pstk_annotations_open(&a, s, &err);
    if (r == 0)
        r = pstk_annotations_get_info(a, &info);
    for (uint64_t i = 0; r == 0 && i < info.n_images; i++)
        r = pstk_annotations_read(a, i, values, info.n_fields, &err);
    pstk_annotations_close(&a);
    if (r < 0 && (err.code != r || err.message[0] == 0))
        printf("# %d, but the error says %d: %s\n", r, err.code, err.message);
    return r < 0 && err.code != r ? 1 : r;
}

/* Fail the nth call of a kind, for every n. 1: each time the result was `code`, or 0. */
static int survives(const struct pstk_annotations_settings *s, int kind, int native, int code)
{
    int n_failed = 0;
    for (int n = 0;; n++) {
        fault_arm(kind, n, native);
        const int r = read_all(s);
        if (fault_disarm() == 0)
            return r == 0 && n_failed > 0;
        n_failed += r < 0;
        if (r != code && r != 0) {
            printf("# call %d: %d, not %d\n", n, r, code);
            return 0;
        }
    }
}

static int survives_all(const struct pstk_annotations_settings *s)
{
    return survives(s, FAULT_MEMORY, ENOMEM, PSTK_ENOMEM) &&
           survives(s, FAULT_READ, EIO, PSTK_EIO) && survives(s, FAULT_OPEN, EACCES, PSTK_EACCES);
}

/* ---- tests ----------------------------------------------------------------------------------- */

TEST(coco_survives_a_machine_that_fails)
{
    struct pstk_annotations_settings s;
    struct fixture f;
    fixture_open(&f);
    pstk_annotations_settings_init(&s, sizeof s);
    s.format = PSTK_ANNOTATIONS_COCO;
    s.path = fixture_path(&f, "coco.json");
    write_file(s.path, objects, sizeof objects - 1);
    CHECK(survives_all(&s));
    s.skip_empty = 1;
    CHECK(survives(&s, FAULT_MEMORY, ENOMEM, PSTK_ENOMEM));
    write_file(s.path, captions, sizeof captions - 1);
    CHECK(survives_all(&s));
    fixture_close(&f);
}

TEST(panoptic_coco_survives_a_machine_that_fails)
{
    static const uint16_t numbers[12] = {2, 2, 0, 1, 2, 0, 1, 1};
    static const uint8_t labels[12] = {0, 0, 255, 1, 0, 255, 1, 1, 255, 255, 255, 255};
    struct pstk_annotations_settings s;
    struct pstk_annotations *a;
    struct pstk_value v[16];
    struct pstk_error err;
    struct fixture f;
    fixture_open(&f);
    pstk_error_init(&err, sizeof err);
    pstk_annotations_settings_init(&s, sizeof s);
    s.format = PSTK_ANNOTATIONS_COCO;
    s.path = fixture_path(&f, "panoptic.json");
    write_file(s.path, panoptic, sizeof panoptic - 1);
    const char *folder = fixture_path(&f, "panoptic");
    CHECK_EQ(mkdir(folder, 0700), 0);
    write_below(folder, "a.png", colours, sizeof colours);
    CHECK_EQ(pstk_annotations_open(&a, &s, &err), 0);
    CHECK_EQ(pstk_annotations_read(a, 0, v, 11, &err), 0);
    CHECK(v[9].size == sizeof numbers && memcmp(v[9].data, numbers, sizeof numbers) == 0);
    CHECK(v[10].size == sizeof labels && memcmp(v[10].data, labels, sizeof labels) == 0);
    pstk_annotations_close(&a);
    CHECK(survives_all(&s));
    s.skip_empty = 1;
    s.panoptic_masks = folder;
    CHECK(survives_all(&s));
    fixture_close(&f);
}

TEST(voc_survives_a_machine_that_fails)
{
    struct pstk_annotations_settings s;
    struct fixture f;
    fixture_open(&f);
    pstk_annotations_settings_init(&s, sizeof s);
    s.format = PSTK_ANNOTATIONS_VOC;
    s.path = fixture_path(&f, "voc");
    make_voc(s.path);
    CHECK(survives_all(&s));
    s.image_set = "set";
    CHECK(survives_all(&s));
    s.skip_empty = 1;
    CHECK(survives_all(&s));
    fixture_close(&f);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(coco_survives_a_machine_that_fails),
        CASE(panoptic_coco_survives_a_machine_that_fails),
        CASE(voc_survives_a_machine_that_fails),
    };
    return RUN_CASES(cases);
}
