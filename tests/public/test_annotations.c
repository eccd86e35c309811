/* SPDX-License-Identifier: Apache-2.0 */
/* annotations: the functions of annotations.h, as a program sees them that has the shared library
 * and the public headers, and nothing else. tests/python/test_masks.py compares the masks with
 * pycocotools. */
#include "support/test.h"

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

int main(void)
{
    const struct test_case cases[] = {
        CASE(compressed_counts_become_runs),
        CASE(runs_become_masks_down_the_columns),
        CASE(polygons_become_the_mask_of_their_union),
    };
    return RUN_CASES(cases);
}
