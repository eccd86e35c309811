/* SPDX-License-Identifier: Apache-2.0 */
/* annotations: the functions of annotations.h, as a program sees them that has the shared library
 * and the public headers, and nothing else. tests/python/test_masks.py compares the masks with
 * pycocotools. */
#include "support/test.h"

#include <unistd.h>

#include <penstock/annotations.h>

static struct pstk_error new_error(void)
{
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    return err;
}

TEST(compressed_counts_become_runs)
{
    struct pstk_error err = new_error();
    uint32_t counts[8];
    uint64_t n;
    CHECK_EQ(pstk_rle_parse("231", 3, counts, 8, &n, &err), 0);
    CHECK(n == 3 && counts[0] == 2 && counts[1] == 3 && counts[2] == 1);
    CHECK_EQ(pstk_rle_parse("2312", 4, counts, 8, &n, &err), 0); /* run 3: 2 more than run 1 */
    CHECK(n == 4 && counts[3] == 5);
    CHECK_EQ(pstk_rle_parse("oooooo0", 7, counts, 8, &n, &err), 0);
    CHECK(n == 1 && counts[0] == 0x3fffffff);
    CHECK_EQ(pstk_rle_parse("", 0, counts, 0, &n, &err), 0);
    CHECK_EQ(n, 0);
    CHECK_EQ(pstk_rle_parse("231", 3, counts, 2, &n, &err), PSTK_EINVAL);
    CHECK_STR(err.message, "room: value is 2; must be the number of runs, which is at most the "
                           "text's bytes");
    CHECK_EQ(pstk_rle_parse("2\"1", 3, counts, 8, &n, &err), PSTK_EBADMSG);
    CHECK(strstr(err.message, "byte 1 of 3 is not of a compressed mask"));
    CHECK_EQ(n, 0);
}

TEST(runs_become_masks_down_the_columns)
{
    static const uint32_t counts[] = {2, 3, 1}, more[] = {2, 4294967295u, 4294967295u};
    static const uint8_t wanted[6] = {0, 1, 0, 1, 1, 0};
    struct pstk_error err = new_error();
    uint8_t mask[6];
    memset(mask, 7, sizeof mask);
    CHECK_EQ(pstk_rle_decode(counts, 3, 3, 2, mask, &err), 0);
    CHECK(memcmp(mask, wanted, 6) == 0);
    CHECK_EQ(pstk_rle_decode(counts, 2, 3, 2, mask, &err), PSTK_EBADMSG);
    CHECK(strstr(err.message, "sum is 5; must be 6, the pixels of 3 x 2"));
    CHECK_EQ(pstk_rle_decode(more, 3, 3, 2, mask, &err), PSTK_EBADMSG);
    CHECK_EQ(pstk_rle_decode(counts, 3, 0, 2, mask, &err), PSTK_EINVAL);
    CHECK_STR(err.message, "height: value is 0; must be 1 to 65535 pixels");
    CHECK_EQ(pstk_rle_decode(counts, 3, 3, 65536, mask, &err), PSTK_EINVAL);
    CHECK_STR(err.message, "width: value is 65536; must be 1 to 65535 pixels");
}

TEST(polygons_become_the_mask_of_their_union)
{
    /* a square of 2 x 2 pixels, and one that leaves the image at the bottom right */
    static const double points[] = {1, 0, 3, 0, 3, 2, 1, 2, 3, 1, 9, 1, 9, 9, 3, 9};
    static const uint32_t n_points[] = {4, 4};
    static const uint8_t wanted[3 * 4] = {0, 1, 1, 0, 0, 1, 1, 1, 0, 0, 0, 1};
    double bad[6] = {0, 0, 1, 1, 2, 2};
    const uint32_t three = 3;
    struct pstk_error err = new_error();
    uint8_t mask[12];
    memset(mask, 7, sizeof mask);
    CHECK_EQ(pstk_polygon_mask(points, n_points, 2, 3, 4, mask, &err), 0);
    CHECK(memcmp(mask, wanted, 12) == 0);
    CHECK_EQ(pstk_polygon_mask(NULL, NULL, 0, 3, 4, mask, &err), 0);
    for (int i = 0; i < 12; i++)
        CHECK_EQ(mask[i], 0);
    bad[3] = 1048577;
    CHECK_EQ(pstk_polygon_mask(bad, &three, 1, 3, 4, mask, &err), PSTK_EBADMSG);
    CHECK(strstr(err.message, "corner 1 of polygon 0 has y 1.04858e+06; must be -1048576"));
    CHECK_EQ(pstk_polygon_mask(points, n_points, 2, 3, 0, mask, &err), PSTK_EINVAL);
}

/* ---- annotations ----------------------------------------------------------------------------- */

static const char coco[] =
    "{\"categories\": [{\"id\": 7, \"name\": \"dog\"}, {\"id\": 3, \"name\": \"cat\"}],\n"
    " \"annotations\": [{\"id\": 1, \"image_id\": 20, \"category_id\": 7, \"bbox\": [1, 2, 3, "
    "0]},\n"
    "  {\"id\": 2, \"image_id\": 20, \"category_id\": 3, \"bbox\": [-9, 0, 5.5, 6], \"area\": "
    "2.5}],\n"
    " \"images\": [{\"id\": 20, \"file_name\": \"b.jpg\", \"width\": 16, \"height\": 8},\n"
    "  {\"id\": 10, \"file_name\": \"a/a.jpg\"}]}\n";

/* Write a text to a new file. */
static void write_file(char path[32], const char *text)
{
    strcpy(path, "/tmp/penstock-test-XXXXXX");
    const int fd = mkstemp(path);
    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text) || close(fd) < 0)
        abort();
}

static int open_coco(struct pstk_annotations **a, const char *path, uint32_t skip_empty,
                     struct pstk_error *err)
{
    struct pstk_annotations_settings s;
    pstk_annotations_settings_init(&s, sizeof s);
    s.format = PSTK_ANNOTATIONS_COCO;
    s.path = path;
    s.skip_empty = skip_empty;
    return pstk_annotations_open(a, &s, err);
}

TEST(annotations_become_values_of_records)
{
    static const float boxes[8] = {1, 2, 3, 0, -9, 0, 5.5f, 6};
    static const int64_t labels[2] = {1, 0}, ids[2] = {7, 3};
    static const double areas[2] = {0, 2.5};
    struct pstk_annotations_info info = {.size = sizeof info};
    struct pstk_error err = new_error();
    struct pstk_annotations *a;
    struct pstk_field field;
    struct pstk_value v[8];
    char path[32];
    write_file(path, coco);
    CHECK_EQ(open_coco(&a, path, 0, &err), 0);
    CHECK_EQ(pstk_annotations_get_info(a, &info), 0);
    CHECK(info.n_images == 2 && info.n_objects == 2 && info.n_names == 2 && info.n_empty == 1);
    CHECK_EQ(info.n_fields, 8);
    CHECK_STR(pstk_annotations_file(a, 0), "a/a.jpg");
    CHECK_STR(pstk_annotations_file(a, 1), "b.jpg");
    CHECK(pstk_annotations_file(a, 2) == NULL && pstk_annotations_name(a, 2) == NULL);
    uint32_t width = 1, height = 1;
    CHECK_EQ(pstk_annotations_get_size(a, 0, &width, &height), 0);
    CHECK(width == 0 && height == 0);
    CHECK_EQ(pstk_annotations_get_size(a, 1, &width, &height), 0);
    CHECK(width == 16 && height == 8);
    CHECK_EQ(pstk_annotations_get_size(a, 1, NULL, NULL), 0);
    CHECK_EQ(pstk_annotations_get_size(a, 2, &width, &height), PSTK_EINVAL);
    CHECK_STR(pstk_annotations_name(a, 0), "cat");
    CHECK(pstk_annotations_category(a, 1) == 7 && pstk_annotations_category(a, 2) == -1);
    CHECK_EQ(pstk_annotations_get_field(a, 2, &field), 0);
    CHECK(strcmp(field.name, "boxes") == 0 && field.box_format == PSTK_BOX_FORMAT_XYWH);
    CHECK_EQ(pstk_annotations_get_field(a, 8, &field), PSTK_EINVAL);
    CHECK_EQ(pstk_annotations_read(a, 0, v, 8, &err), 0);
    CHECK(v[2].size == 0 && v[1].size == 7 && memcmp(v[1].data, "a/a.jpg", 7) == 0);
    CHECK_EQ(pstk_annotations_read(a, 1, v, 8, &err), 0);
    CHECK(v[2].size == sizeof boxes && memcmp(v[2].data, boxes, sizeof boxes) == 0);
    CHECK(v[3].size == sizeof labels && memcmp(v[3].data, labels, sizeof labels) == 0);
    CHECK(memcmp(v[4].data, ids, sizeof ids) == 0 && memcmp(v[6].data, areas, sizeof areas) == 0);
    CHECK_EQ(pstk_annotations_get_info(a, &info), 0);
    CHECK(info.n_outside == 1 && info.n_flat == 1);
    CHECK_EQ(pstk_annotations_read(a, 2, v, 8, &err), PSTK_EINVAL);
    CHECK_EQ(pstk_annotations_read(a, 1, v, 7, &err), PSTK_EINVAL);
    CHECK_EQ(truncate(path, 150), 0);
    CHECK_EQ(pstk_annotations_read(a, 1, v, 8, &err), PSTK_EIO);
    CHECK(strstr(err.message, "changed while it was read"));
    pstk_annotations_close(&a);
    CHECK(a == NULL);
    pstk_annotations_close(&a);
    unlink(path);
}

TEST(masks_of_panoptic_annotations_are_pixels)
{
    static const char text[] =
        "{\"images\": [{\"id\": 1, \"file_name\": \"a.jpg\", \"width\": 3, \"height\": 2},"
        "{\"id\": 2, \"file_name\": \"b.jpg\"}], \"categories\": [], \"annotations\": ["
        "{\"image_id\": 2, \"file_name\": \"absent.png\", \"segments_info\": []}]}";
    static const uint8_t numbers[12] = {0}, labels[6] = {255, 255, 255, 255, 255, 255};
    struct pstk_annotations_settings s;
    struct pstk_error err = new_error();
    struct pstk_pixels pixels = {.size = sizeof pixels};
    struct pstk_annotations *a;
    struct pstk_value v[11];
    char path[32];
    write_file(path, text);
    pstk_annotations_settings_init(&s, sizeof s);
    s.format = PSTK_ANNOTATIONS_COCO;
    s.path = path;
    CHECK_EQ(pstk_annotations_open(&a, &s, &err), PSTK_EINVAL);
    CHECK(strstr(err.message, "does not end in .json (set panoptic_masks to the folder"));
    s.panoptic_masks = "/absent";
    CHECK_EQ(pstk_annotations_open(&a, &s, &err), PSTK_ENOENT);
    s.panoptic_masks = "/";
    CHECK_EQ(pstk_annotations_open(&a, &s, &err), 0);
    CHECK_EQ(pstk_annotations_get_pixels(a, 10, &pixels), 0);
    CHECK_EQ(pstk_annotations_read(a, 0, v, 11, &err), 0);
    CHECK(v[9].size == sizeof numbers && memcmp(v[9].data, numbers, sizeof numbers) == 0);
    CHECK(v[10].size == sizeof labels && memcmp(v[10].data, labels, sizeof labels) == 0);
    CHECK_EQ(pstk_annotations_get_pixels(a, 0, &pixels), 0);
    CHECK_EQ(pstk_annotations_get_pixels(a, 9, &pixels), 1);
    CHECK(pixels.field == 10 && pixels.height == 2 && pixels.width == 3);
    CHECK(pixels.channels == 1 && pixels.bit_depth == 16 && pixels.size == sizeof pixels);
    CHECK_EQ(pstk_annotations_get_pixels(a, 10, &pixels), 1);
    CHECK(pixels.field == 11 && pixels.bit_depth == 8);
    CHECK_EQ(pstk_annotations_get_pixels(a, 11, &pixels), PSTK_EINVAL);
    CHECK_EQ(pstk_annotations_read(a, 1, v, 11, &err), PSTK_EBADMSG);
    CHECK_STR(err.message, "//absent.png: the mask of image 2 is missing, but the annotations "
                           "list it");
    CHECK_EQ(pstk_annotations_get_pixels(a, 10, &pixels), 0);
    pstk_annotations_close(&a);
    write_file(path, coco);
    CHECK_EQ(pstk_annotations_open(&a, &s, &err), PSTK_EINVAL);
    unlink(path);
}

TEST(images_without_annotations_are_left_out_where_that_is_asked_for)
{
    struct pstk_annotations_info info = {.size = sizeof info};
    struct pstk_error err = new_error();
    struct pstk_annotations *a;
    char path[32];
    write_file(path, coco);
    CHECK_EQ(open_coco(&a, path, 1, &err), 0);
    CHECK_EQ(pstk_annotations_get_info(a, &info), 0);
    CHECK(info.n_images == 1 && info.n_empty == 1);
    CHECK_STR(pstk_annotations_file(a, 0), "b.jpg");
    pstk_annotations_close(&a);
    unlink(path);
}

static int stop(void *user, uint64_t n_done, uint64_t n_total)
{
    *(uint64_t *)user = n_total;
    return n_done <= n_total;
}

TEST(settings_that_are_wrong_are_refused)
{
    struct pstk_annotations_settings s;
    struct pstk_error err = new_error();
    struct pstk_annotations *a;
    uint64_t total = 0;
    char path[32];
    pstk_annotations_settings_init(&s, sizeof s);
    CHECK_EQ(s.voc_offset, 1);
    CHECK_EQ(pstk_annotations_open(&a, &s, &err), PSTK_EINVAL);
    CHECK_STR(err.message, "path: value is 0; must be a path");
    s.path = "/absent";
    CHECK_EQ(pstk_annotations_open(&a, &s, &err), PSTK_EINVAL);
    CHECK_STR(err.message, "format: value is 0; must be of enum pstk_annotations_format");
    s.format = PSTK_ANNOTATIONS_VOC;
    CHECK_EQ(pstk_annotations_open(&a, &s, &err), PSTK_ENOENT);
    s.format = PSTK_ANNOTATIONS_COCO;
    CHECK_EQ(pstk_annotations_open(&a, &s, &err), PSTK_ENOENT);
    s.voc_offset = 2;
    CHECK_EQ(pstk_annotations_open(&a, &s, &err), PSTK_EINVAL);
    CHECK_STR(err.message, "voc_offset: value is 2; must be 0 or 1");
    s.voc_offset = 0;
    s.skip_empty = 2;
    CHECK_EQ(pstk_annotations_open(&a, &s, &err), PSTK_EINVAL);
    s.skip_empty = 0;
    s.skip_bad = 2;
    CHECK_EQ(pstk_annotations_open(&a, &s, &err), PSTK_EINVAL);
    CHECK_STR(err.message, "skip_bad: value is 2; must be 0 or 1");
    s.skip_bad = 0;
    s.size--;
    CHECK_EQ(pstk_annotations_open(&a, &s, &err), PSTK_EINVAL);
    s.size++;
    write_file(path, coco);
    s.path = path;
    s.on_progress = stop;
    s.user = &total;
    CHECK_EQ(pstk_annotations_open(&a, &s, &err), PSTK_ECANCELED);
    CHECK(a == NULL && total == sizeof coco - 1);
    unlink(path);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(compressed_counts_become_runs),
        CASE(runs_become_masks_down_the_columns),
        CASE(polygons_become_the_mask_of_their_union),
        CASE(annotations_become_values_of_records),
        CASE(masks_of_panoptic_annotations_are_pixels),
        CASE(images_without_annotations_are_left_out_where_that_is_asked_for),
        CASE(settings_that_are_wrong_are_refused),
    };
    return RUN_CASES(cases);
}
