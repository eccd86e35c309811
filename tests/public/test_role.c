/* SPDX-License-Identifier: Apache-2.0 */
/* Roles of fields: by a usual name, as the first, or as the only one that fits. The program has the
 * shared library and the public headers, and nothing else. */
#include "support/test.h"

#include <stddef.h>

#include <penstock/role.h>

#define LIST .kind = PSTK_FIELD_NDARRAY, .n_dims = 1, .dtype = PSTK_I64 /* whole numbers */

static struct pstk_error err;

/* Find a role among fields; the array ends with a field without a name. Returns the number of the
 * field, -1 if none has it. *n becomes how many fit. */
static int find_in(const struct pstk_field *fields, uint32_t role, const char *of, const char *name,
                   int *n)
{
    struct pstk_role_search s = {.size = sizeof s,
                                 .field_size = sizeof *fields,
                                 .fields = fields,
                                 .role = role,
                                 .of = of,
                                 .name = name};
    uint32_t index = 77;
    while (fields[s.n_fields].name[0])
        s.n_fields++;
    *n = pstk_role_find(&s, &index, &err);
    return index == PSTK_NO_FIELD ? -1 : (int)index;
}

TEST(the_image_is_jpg_or_the_first_one)
{
    const struct pstk_field fields[] = {
        {.name = "left", .kind = PSTK_FIELD_IMAGE},  {.name = "text", .kind = PSTK_FIELD_UTF8},
        {.name = "right", .kind = PSTK_FIELD_IMAGE}, {.name = "jpg", .kind = PSTK_FIELD_IMAGE},
        {.name = "mask", .kind = PSTK_FIELD_MASK},   {.name = ""}};
    const struct pstk_field others[] = {fields[1], fields[2], fields[0], fields[5]};
    int n;
    CHECK_EQ(find_in(fields, PSTK_ROLE_IMAGE, NULL, NULL, &n), 3);
    CHECK_EQ(n, 3);
    CHECK_EQ(find_in(others, PSTK_ROLE_IMAGE, NULL, NULL, &n), 1);
    CHECK_EQ(n, 2);
    CHECK_EQ(find_in(fields, PSTK_ROLE_IMAGE, NULL, "right", &n), 2);
    CHECK_EQ(n, 1);
    CHECK_EQ(find_in(fields, PSTK_ROLE_IMAGE, NULL, "text", &n), -1);
    CHECK_EQ(n, 0);
    CHECK_EQ(find_in(&fields[4], PSTK_ROLE_IMAGE, NULL, NULL, &n), -1);
    CHECK_EQ(n, 0);
}

/* The names of a data set's fields, i64; which one is the label, -1 none; and how many fit. */
struct label_case {
    const char *names[5];
    int found, n;
};

TEST(the_label_has_a_usual_name_or_is_the_only_one)
{
    static const struct label_case cases[] = {
        {{"fold", "cls"}, 1, 2},
        {{"fold", "label"}, 1, 2},
        {{"target", "class", "label", "cls"}, 3, 4},
        {{"target", "class", "label"}, 2, 3},
        {{"target", "class"}, 1, 2},
        {{"age"}, 0, 1},
        {{"image_id", "age"}, 1, 1},
        {{"image_id"}, -1, 0},
        {{"id"}, -1, 0},
        {{"class_id"}, 0, 1},
        {{"age", "class_id"}, 1, 2},
        {{"category_id", "class_id", "label"}, 2, 3},
        {{"image_id", "category_id", "target_id"}, 1, 2},
        {{"sample_id", "age"}, 1, 1},
        {{"d"}, 0, 1},
        {{"age", "height"}, -1, 2},
        {{NULL}, -1, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct pstk_field fields[6] = {{.name = ""}};
        int n;
        for (uint32_t k = 0; cases[i].names[k]; k++) {
            fields[k] = (struct pstk_field){.kind = PSTK_FIELD_SCALAR, .dtype = PSTK_I64};
            snprintf(fields[k].name, sizeof fields[k].name, "%s", cases[i].names[k]);
        }
        CHECK_EQ(find_in(fields, PSTK_ROLE_LABEL, NULL, NULL, &n), cases[i].found);
        CHECK_EQ(n, cases[i].n);
    }
}

TEST(a_label_is_a_scalar_of_whole_numbers)
{
    const struct pstk_field fields[] = {
        {.name = "cls", .kind = PSTK_FIELD_SCALAR, .dtype = PSTK_F32},
        {.name = "label", .kind = PSTK_FIELD_NDARRAY, .dtype = PSTK_I64, .n_dims = 1, .shape = {1}},
        {.name = "target", .kind = PSTK_FIELD_UTF8},
        {.name = "image_id", .kind = PSTK_FIELD_SCALAR, .dtype = PSTK_U8},
        {.name = "height", .kind = PSTK_FIELD_SCALAR, .dtype = PSTK_I64},
        {.name = ""}};
    int n;
    CHECK_EQ(find_in(fields, PSTK_ROLE_LABEL, NULL, NULL, &n), 4);
    CHECK_EQ(n, 1);
    CHECK_EQ(find_in(fields, PSTK_ROLE_LABEL, NULL, "image_id", &n), 3);
    CHECK_EQ(n, 1);
    CHECK_EQ(find_in(fields, PSTK_ROLE_LABEL, NULL, "cls", &n), -1);
    CHECK_EQ(n, 0);
    CHECK_EQ(find_in(fields, PSTK_ROLE_LABEL, NULL, "nothing", &n), -1);
    CHECK_EQ(n, 0);
}

TEST(what_follows_an_image_is_the_first_that_belongs_to_it)
{
    static const uint32_t roles[][2] = {{PSTK_ROLE_MASK, PSTK_FIELD_MASK},
                                        {PSTK_ROLE_BOXES, PSTK_FIELD_BOXES},
                                        {PSTK_ROLE_KEYPOINTS, PSTK_FIELD_KEYPOINTS},
                                        {PSTK_ROLE_POLYGONS, PSTK_FIELD_POLYGONS}};
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
        const uint32_t kind = roles[i][1];
        const struct pstk_field fields[] = {{.name = "jpg", .kind = PSTK_FIELD_IMAGE},
                                            {.name = "a", .kind = kind, .of = "png"},
                                            {.name = "b", .kind = kind, .of = "jpg"},
                                            {.name = "c", .kind = kind, .of = "jpg"},
                                            {.name = "d", .kind = kind},
                                            {.name = ""}};
        int n;
        CHECK_EQ(find_in(fields, roles[i][0], "jpg", NULL, &n), 2);
        CHECK_EQ(n, 3);
        CHECK_EQ(find_in(fields, roles[i][0], "png", NULL, &n), 1);
        CHECK_EQ(n, 2);
        CHECK_EQ(find_in(fields, roles[i][0], "gif", NULL, &n), 4);
        CHECK_EQ(n, 1);
        CHECK_EQ(find_in(fields, roles[(i + 1) % 4][0], "jpg", NULL, &n), -1);
        CHECK_EQ(n, 0);
    }
}

TEST(the_classes_of_boxes_are_labels_or_the_only_list_of_their_axis)
{
    struct pstk_field fields[] = {
        {.name = "boxes", .kind = PSTK_FIELD_BOXES, .of = "jpg", .rows = "objects"},
        {.name = "area", LIST, .rows = "objects"},
        {.name = "pairs", LIST, .rows = "objects"},
        {.name = "ends", LIST, .rows = "objects", .splits = "polygons"},
        {.name = "other", LIST, .rows = "segments"},
        {.name = "iscrowd", LIST, .rows = "objects"},
        {.name = "labels", LIST, .rows = "objects"},
        {.name = "more", LIST, .rows = "objects"},
        {.name = "alone", .kind = PSTK_FIELD_BOXES, .of = "jpg"},
        {.name = "free", LIST},
        {.name = ""}};
    int n;
    fields[1].dtype = PSTK_F32;
    fields[2].n_dims = fields[2].shape[1] = 2;
    CHECK_EQ(find_in(fields, PSTK_ROLE_BOX_CLASSES, "boxes", NULL, &n), 6);
    CHECK_EQ(n, 3);
    CHECK_EQ(find_in(fields, PSTK_ROLE_BOX_CLASSES, "alone", NULL, &n), -1);
    CHECK_EQ(n, 0);
    strcpy(fields[6].name, "classes");
    CHECK_EQ(find_in(fields, PSTK_ROLE_BOX_CLASSES, "boxes", NULL, &n), -1);
    CHECK_EQ(n, 3);
    fields[6].name[0] = 0; /* the fields end here */
    CHECK_EQ(find_in(fields, PSTK_ROLE_BOX_CLASSES, "boxes", NULL, &n), 5);
    CHECK_EQ(n, 1);
}

TEST(the_corners_split_the_axis_of_the_polygons)
{
    const struct pstk_field fields[] = {
        {.name = "lengths", LIST, .rows = "polygons", .splits = "corners"},
        {.name = "outlines", .kind = PSTK_FIELD_POLYGONS, .of = "jpg", .rows = "corners"},
        {.name = "alone", .kind = PSTK_FIELD_POLYGONS, .of = "jpg"},
        {.name = "objects", LIST, .rows = "objects", .splits = "polygons"},
        {.name = "free", LIST},
        {.name = ""}};
    int n;
    CHECK_EQ(find_in(fields, PSTK_ROLE_CORNERS, "outlines", NULL, &n), 0);
    CHECK_EQ(n, 1);
    CHECK_EQ(find_in(fields, PSTK_ROLE_CORNERS, "alone", NULL, &n), -1);
    CHECK_EQ(n, 0);
}

/* A newer program's field is longer: the library steps over what it does not know. */
TEST(fields_may_be_of_another_version)
{
    struct {
        struct pstk_field field;
        uint64_t later;
    } fields[2] = {
        {.field = {.name = "fold", .kind = PSTK_FIELD_SCALAR, .dtype = PSTK_U8}, .later = 1},
        {.field = {.name = "label", .kind = PSTK_FIELD_SCALAR, .dtype = PSTK_U8}, .later = 1}};
    const struct pstk_role_search s = {.size = sizeof s,
                                       .field_size = sizeof *fields,
                                       .fields = &fields[0].field,
                                       .n_fields = 2,
                                       .role = PSTK_ROLE_LABEL};
    uint32_t index;
    CHECK_EQ(pstk_role_find(&s, &index, NULL), 2);
    CHECK_EQ(index, 1);
}

/* Check that a search is refused with a message that has the word. */
static int is_refused(struct pstk_role_search s, const char *word)
{
    uint32_t index = 5;
    pstk_error_init(&err, sizeof err);
    return pstk_role_find(&s, &index, &err) == PSTK_EINVAL && index == PSTK_NO_FIELD &&
           strstr(err.message, word) != NULL;
}

TEST(what_is_wrong_with_a_search_is_named)
{
    const struct pstk_field field = {.name = "jpg", .kind = PSTK_FIELD_IMAGE};
    const struct pstk_role_search right = {.size = sizeof right,
                                           .field_size = sizeof field,
                                           .fields = &field,
                                           .n_fields = 1,
                                           .role = PSTK_ROLE_IMAGE};
    struct pstk_role_search wrong = right;
    uint32_t index;
    CHECK_EQ(pstk_role_find(&right, &index, &err), 1);
    CHECK_EQ(pstk_role_find(&right, NULL, &err), PSTK_EINVAL);
    CHECK_EQ(pstk_role_find(NULL, &index, &err), PSTK_EINVAL);
    wrong.size = 4;
    CHECK(is_refused(wrong, "size: value is 4"));
    wrong = right;
    wrong.field_size = 64;
    CHECK(is_refused(wrong, "field_size: value is 64"));
    wrong = right;
    wrong.role = 0;
    CHECK(is_refused(wrong, "role: value is 0; must be one of enum pstk_role, 1 to 8"));
    wrong.role = 9;
    CHECK(is_refused(wrong, "role: value is 9"));
    wrong = right;
    wrong.fields = NULL;
    CHECK(is_refused(wrong, "fields is NULL"));
    wrong = right;
    wrong.of = "jpg";
    CHECK(is_refused(wrong, "of: must be NULL"));
    wrong = right;
    wrong.role = PSTK_ROLE_MASK;
    CHECK(is_refused(wrong, "of: value is NULL"));
    wrong.role = PSTK_ROLE_CORNERS;
    wrong.of = "jpg";
    CHECK(is_refused(wrong, "of: value is 'jpg'; must be one of the fields, of kind polygons"));
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(the_image_is_jpg_or_the_first_one),
        CASE(the_label_has_a_usual_name_or_is_the_only_one),
        CASE(a_label_is_a_scalar_of_whole_numbers),
        CASE(what_follows_an_image_is_the_first_that_belongs_to_it),
        CASE(the_classes_of_boxes_are_labels_or_the_only_list_of_their_axis),
        CASE(the_corners_split_the_axis_of_the_polygons),
        CASE(fields_may_be_of_another_version),
        CASE(what_is_wrong_with_a_search_is_named),
    };
    return RUN_CASES(cases);
}
