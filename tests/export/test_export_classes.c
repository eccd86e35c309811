/* SPDX-License-Identifier: Apache-2.0 */
/* The classes of an export, of which there may be millions, beside sorting them. */
#include "export/classes.h"

#include "support/test.h"

#include <stdlib.h>

#define N 200000u /* an insertion that moves the classes after it would take seconds */

static char names[N][12];

static int compare(const void *a, const void *b)
{
    return strcmp(names[*(const uint32_t *)a], names[*(const uint32_t *)b]);
}

TEST(samples_are_counted_whose_class_has_another_place_by_name)
{
    static uint32_t order[N];
    struct pstk__export_classes classes = {0};
    uint64_t random = 1, moved = 0;
    for (uint32_t i = 0; i < N; i++) { /* some begin another, as f-12 does f-123 */
        random = random * 6364136223846793005u + 1442695040888963407u;
        snprintf(names[i], sizeof names[i], "%x-%x", (uint32_t)(random >> 60), i);
        order[i] = i;
    }
    for (uint32_t k = 0; k < 2; k++) /* class i has two samples if i is even */
        for (uint32_t i = 0; i < N; i += 1 + k)
            CHECK_EQ(pstk__export_classes_add(&classes, names[i], strlen(names[i]), i), 0);
    qsort(order, N, sizeof order[0], compare);
    for (uint32_t i = 1; i < N; i++)
        CHECK(strcmp(names[order[i - 1]], names[order[i]]) < 0);
    for (uint32_t i = 0; i < N; i++)
        moved += order[i] == i ? 0 : 2 - order[i] % 2;
    CHECK_EQ(classes.n, N);
    CHECK_EQ(pstk__export_classes_n_renumbered(&classes), moved);
    pstk__export_classes_free(&classes);
}

TEST(a_name_is_its_bytes_up_to_its_size)
{
    struct pstk__export_classes classes = {0};
    CHECK_EQ(pstk__export_classes_add(&classes, "b/0.jpg", 1, 0), 0);
    CHECK_EQ(pstk__export_classes_add(&classes, "bc/0.jpg", 2, 1), 0);
    CHECK_EQ(pstk__export_classes_n_renumbered(&classes), 0);
    CHECK_EQ(pstk__export_classes_add(&classes, "a/0.jpg", 1, 2), 0);
    CHECK_EQ(pstk__export_classes_n_renumbered(&classes), 3);
    CHECK_EQ(pstk__export_classes_add(&classes, "b/1.jpg", 1, 0), 0);
    CHECK_EQ(pstk__export_classes_n_renumbered(&classes), 4);
    pstk__export_classes_free(&classes);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(samples_are_counted_whose_class_has_another_place_by_name),
        CASE(a_name_is_its_bytes_up_to_its_size),
    };
    return RUN_CASES(cases);
}
