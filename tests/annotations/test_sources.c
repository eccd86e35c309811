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
    static const char *const folders[] = {"", "/Annotations", "/SegmentationClass", "/ImageSets",
                                          "/ImageSets/Main"};
    char path[512];
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        snprintf(path, sizeof path, "%s%s", folder, folders[i]);
        if (mkdir(path, 0700) < 0)
            abort();
    }
    write_below(folder, "Annotations/1.xml", xml, sizeof xml - 1);
    write_below(folder, "Annotations/2.xml", "<annotation/>", 13);
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
        CASE(voc_survives_a_machine_that_fails),
    };
    return RUN_CASES(cases);
}
