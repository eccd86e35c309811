/* SPDX-License-Identifier: Apache-2.0 */
/* Subsets of a data set, opened: lists and conditions beside plain loops over the same values. */
#include "dataset/members.h"
#include "support/sample_set.h"
#include "support/test.h"

#include <math.h>

#define N 700

static char path[4200];
static struct pstk_dataset *dataset;
static struct pstk_error err;

static struct pstk_subset step(uint32_t kind)
{
    return (struct pstk_subset){.size = sizeof(struct pstk_subset), .kind = kind};
}

/* Open a subset and copy out its ids, which are at most N; returns how many, or an error. */
static int64_t ids_of(const struct pstk_subset *subset, uint64_t *ids)
{
    struct pstk_members *members;
    const int r = pstk_members_open(&members, dataset, subset, &err);
    if (r < 0)
        return members == NULL ? r : -1000;
    const uint64_t n = pstk_members_n(members);
    const int got = n <= N ? pstk_members_ids(members, 0, n, ids) : -1000;
    pstk_members_close(&members);
    return got < 0 || members ? -1000 : (int64_t)n;
}

/* The class of sample i is 3 i - 7. */
TEST(conditions_take_the_samples_that_a_loop_takes)
{
    static uint64_t ids[N];
    static const int64_t values[] = {2, -7, 5, 1000, 5, INT64_MIN, 1001};
    for (uint32_t inverted = 0; inverted < 2; inverted++) {
        struct pstk_subset where = step(PSTK_SUBSET_WHERE);
        where.column = "cls";
        where.values = values;
        where.n_values = 7;
        where.inverted = inverted;
        const int64_t n = ids_of(&where, ids);
        int64_t k = 0;
        for (int64_t i = 0; i < N; i++) {
            int is_in = 0;
            for (int v = 0; v < 7; v++)
                is_in |= values[v] == i * 3 - 7;
            if (is_in != (int)inverted)
                CHECK_EQ(ids[k++], i);
        }
        CHECK_EQ(n, k);
    }
    static const double bounds[][2] = {{-INFINITY, 30}, {30, INFINITY}, {-6.5, 2.1}, {2, 3}};
    for (size_t b = 0; b < 4; b++) {
        struct pstk_subset between = step(PSTK_SUBSET_BETWEEN);
        between.column = "cls";
        between.least = bounds[b][0];
        between.below = bounds[b][1];
        const int64_t n = ids_of(&between, ids);
        int64_t k = 0;
        for (int64_t i = 0; i < N; i++)
            if ((double)(i * 3 - 7) >= bounds[b][0] && (double)(i * 3 - 7) < bounds[b][1])
                CHECK_EQ(ids[k++], i);
        CHECK_EQ(n, k);
    }
}

TEST(lists_keep_what_the_steps_before_left)
{
    static uint64_t ids[N], list[N], before[N];
    struct pstk_subset half = step(PSTK_SUBSET_FRACTION), listed = step(PSTK_SUBSET_IDS);
    half.last = PSTK_SUBSET_WHOLE / 2;
    half.seed = 4;
    CHECK_EQ(ids_of(&half, before), N / 2);
    for (uint64_t i = 0; i < N / 3; i++)
        list[i] = N - 1 - 2 * i;
    listed.ids = list;
    listed.n_ids = N / 3;
    half.next = &listed;
    const int64_t n = ids_of(&half, ids);
    int64_t k = 0;
    for (uint64_t i = 0; i < N / 3; i++)
        for (uint64_t j = 0; j < N / 2; j++)
            if (list[i] == before[j])
                CHECK_EQ(ids[k++], list[i]);
    CHECK(n == k && n > 0);
}

/* Opened members are a first step: others share their list, and outlive them. */
TEST(members_are_shared_and_outlive_who_opened_them)
{
    static uint64_t ids[N];
    static const uint64_t list[] = {9, 2, 77, 30, 5};
    struct pstk_subset listed = step(PSTK_SUBSET_IDS), shared = step(PSTK_SUBSET_MEMBERS);
    struct pstk_subset range = step(PSTK_SUBSET_RANGE);
    struct pstk_members *members, *others;
    uint64_t digest[2], same[2];
    listed.ids = list;
    listed.n_ids = 5;
    CHECK_EQ(pstk_members_open(&members, dataset, &listed, &err), 0);
    shared.members = members;
    CHECK_EQ(pstk_members_open(&others, dataset, &shared, &err), 0);
    CHECK_EQ(pstk_members_digest(members, digest), 0);
    CHECK_EQ(pstk_members_digest(others, same), 0);
    CHECK(memcmp(digest, same, sizeof same) == 0);
    range.first = 1;
    range.last = 4;
    shared.next = &range;
    CHECK_EQ(ids_of(&shared, ids), 3);
    CHECK(ids[0] == 2 && ids[1] == 77 && ids[2] == 30);
    pstk_members_close(&members);
    CHECK_EQ(pstk_members_ids(others, 3, 2, ids), 0);
    CHECK(ids[0] == 30 && ids[1] == 5);
    CHECK_EQ(pstk_members_ids(others, 3, 3, ids), PSTK_EINVAL);
    CHECK_EQ(pstk_members_ids(others, 6, 0, ids), PSTK_EINVAL);
    pstk_members_close(&others);
    CHECK_EQ(ids_of(NULL, ids), N);
}

/* Each wrong step is refused by its value. */
TEST(wrong_steps_are_named)
{
    static uint64_t ids[N];
    static const uint64_t beyond[] = {1, N}, twice[] = {3, 1, 3};
    static const int64_t none[] = {1}; /* no 3 i - 7 */
    struct pstk_subset s[18];
    const struct {
        struct pstk_subset step;
        int code;
        const char *says;
    } cases[] = {
        {{.kind = 99}, PSTK_ENOTSUP, "step 0, kind: value is 99"},
        {{.kind = PSTK_SUBSET_RANGE, .last = N + 1}, PSTK_EINVAL, "value is 0 to 701"},
        {{.kind = PSTK_SUBSET_RANGE, .first = 5, .last = 5}, PSTK_EINVAL, "value is 5 to 5"},
        {{.kind = PSTK_SUBSET_FRACTION, .last = PSTK_SUBSET_WHOLE + 1}, PSTK_EINVAL, "at most 1"},
        {{.kind = PSTK_SUBSET_FRACTION, .last = 1}, PSTK_EINVAL, "leaves none of 700 samples"},
        {{.kind = PSTK_SUBSET_FOLD, .n_folds = 1}, PSTK_EINVAL, "value is 0 of 1"},
        {{.kind = PSTK_SUBSET_FOLD, .fold = 5, .n_folds = 5}, PSTK_EINVAL, "value is 5 of 5"},
        {{.kind = PSTK_SUBSET_FOLD, .fold = 0, .n_folds = 701}, PSTK_EINVAL, "leaves none"},
        {{.kind = PSTK_SUBSET_FOLD, .n_folds = 5, .inverted = 2}, PSTK_EINVAL, "inverted"},
        {{.kind = PSTK_SUBSET_FOLD, .n_folds = 5, .reserved = 2}, PSTK_EINVAL, "reserved"},
        {{.kind = PSTK_SUBSET_IDS}, PSTK_EINVAL, "has no ids"},
        {{.kind = PSTK_SUBSET_IDS, .ids = beyond, .n_ids = 2},
         PSTK_EINVAL,
         "ids[1]: value is 700; must be below 700"},
        {{.kind = PSTK_SUBSET_IDS, .ids = twice, .n_ids = 3},
         PSTK_EINVAL,
         "ids[2]: value is 3, and so is that of ids[0]"},
        {{.kind = PSTK_SUBSET_WHERE}, PSTK_EINVAL, "column: value is NULL"},
        {{.kind = PSTK_SUBSET_WHERE, .column = "none"},
         PSTK_EINVAL,
         "has no column none; its columns are img.size"},
        {{.kind = PSTK_SUBSET_WHERE, .column = "cls"}, PSTK_EINVAL, "n_values is 0"},
        {{.kind = PSTK_SUBSET_WHERE, .column = "cls", .values = none, .n_values = 1},
         PSTK_EINVAL,
         "step 0, cls, leaves none"},
        {{.kind = PSTK_SUBSET_BETWEEN, .column = "cls", .least = 3, .below = 3},
         PSTK_EINVAL,
         "least is 3, and below is 3"},
        {{.kind = PSTK_SUBSET_BETWEEN, .column = "cls", .least = NAN, .below = 3},
         PSTK_EINVAL,
         "least is nan"},
        {{.kind = PSTK_SUBSET_BETWEEN, .column = "cls", .least_rest = 1, .below = 3},
         PSTK_EINVAL,
         "least_rest is 1"},
        {{.kind = PSTK_SUBSET_BETWEEN,
          .column = "cls",
          .least = -INFINITY,
          .least_rest = 1,
          .below = 3},
         PSTK_EINVAL,
         "least_rest is 1"},
        {{.kind = PSTK_SUBSET_BETWEEN, .column = "cls", .below = 0x1p53, .below_rest = 2},
         PSTK_EINVAL,
         "below_rest is 2"},
        {{.kind = PSTK_SUBSET_BETWEEN,
          .column = "cls",
          .least = 0x1p60,
          .least_rest = 5,
          .below = 0x1p60,
          .below_rest = 5},
         PSTK_EINVAL,
         "must be less"},
        {{.kind = PSTK_SUBSET_MEMBERS}, PSTK_EINVAL, "members is NULL"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct pstk_subset wrong = cases[i].step;
        wrong.size = sizeof wrong;
        CHECK_EQ(ids_of(&wrong, ids), cases[i].code);
        CHECK(strstr(err.message, cases[i].says) != NULL);
    }
    struct pstk_subset unset = {.kind = PSTK_SUBSET_RANGE, .last = 5};
    CHECK_EQ(ids_of(&unset, ids), PSTK_EINVAL);
    for (int i = 0; i < 18; i++) {
        s[i] = step(PSTK_SUBSET_RANGE);
        s[i].last = N;
        s[i].next = i < 17 ? &s[i + 1] : NULL;
    }
    CHECK_EQ(ids_of(&s[2], ids), N); /* 16 steps */
    CHECK_EQ(ids_of(&s[1], ids), PSTK_EINVAL);
    CHECK(strstr(err.message, "more than 16 steps") != NULL);
}

TEST(members_of_another_data_set_are_refused)
{
    static char other_path[4200];
    struct pstk_dataset *other;
    struct pstk_members *members, *wrong;
    struct pstk_subset shared = step(PSTK_SUBSET_MEMBERS);
    sample_set_path(other_path, sizeof other_path);
    sample_set_make(other_path, N - 1, 65536, PSTK_CODEC_NONE);
    CHECK_EQ(pstk_dataset_open(&other, other_path, NULL, &err), 0);
    CHECK_EQ(pstk_members_open(&members, other, NULL, &err), 0);
    shared.members = members;
    CHECK_EQ(pstk_members_open(&wrong, dataset, &shared, &err), PSTK_EINVAL);
    CHECK(wrong == NULL && strstr(err.message, "members are of the data set") != NULL);
    pstk_members_close(&members);
    pstk_dataset_close(&other);
    sample_set_remove(other_path);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(conditions_take_the_samples_that_a_loop_takes),
        CASE(lists_keep_what_the_steps_before_left),
        CASE(members_are_shared_and_outlive_who_opened_them),
        CASE(wrong_steps_are_named),
        CASE(members_of_another_data_set_are_refused),
    };
    pstk_error_init(&err, sizeof err);
    sample_set_path(path, sizeof path);
    sample_set_make(path, N, 65536, PSTK_CODEC_NONE);
    if (pstk_dataset_open(&dataset, path, NULL, &err) < 0) {
        printf("Bail out! %s\n", err.message);
        return 1;
    }
    int r = RUN_CASES(cases);
    pstk_dataset_close(&dataset);
    sample_set_remove(path);
    return r;
}
