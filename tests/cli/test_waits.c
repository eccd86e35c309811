/* SPDX-License-Identifier: Apache-2.0 */
/* The histogram of waits. */
#include "cli/report/waits.h"

#include "cli/ui/json.h"
#include "support/test.h"

static uint64_t bucket(const struct json_t *buckets, size_t i, const char *key)
{
    return json_count(json_at(buckets, i), key, 12345);
}

TEST(waits_are_in_buckets_of_powers_of_two)
{
    struct waits waits = {{0}};
    struct json_t *buckets = waits_json(&waits);
    CHECK_EQ(json_n(buckets), 0);
    json_drop(buckets);
    waits_add(&waits, 0);
    waits_add(&waits, 0.9e-6);
    waits_add(&waits, 3e-6);
    buckets = waits_json(&waits);
    CHECK_EQ(json_n(buckets), 3);
    CHECK_EQ(bucket(buckets, 0, "n"), 2);
    CHECK_EQ(bucket(buckets, 0, "from_ns"), 0);
    CHECK_EQ(bucket(buckets, 0, "below_ns"), 1000);
    CHECK_EQ(bucket(buckets, 1, "n"), 0);
    CHECK_EQ(bucket(buckets, 2, "from_ns"), 2000);
    CHECK_EQ(bucket(buckets, 2, "below_ns"), 4000);
    json_drop(buckets);
    waits = (struct waits){{0}};
    waits_add(&waits, 1e9); /* longer than all buckets: it has no bound */
    buckets = waits_json(&waits);
    CHECK_EQ(json_n(buckets), 1);
    CHECK(!json_get(json_at(buckets, 0), "below_ns"));
    json_drop(buckets);
}

int main(void)
{
    static const struct test_case cases[] = {
        CASE(waits_are_in_buckets_of_powers_of_two),
    };
    return RUN_CASES(cases);
}
