/* SPDX-License-Identifier: Apache-2.0 */
#include "report/waits.h"

#include <penstock/types.h>

#include "ui/json.h"

void waits_add(struct waits *waits, double seconds)
{
    int bucket = 0;
    for (double bound = 1e-6; bucket < WAITS_BUCKETS - 1 && seconds >= bound; bound *= 2)
        bucket++;
    waits->n[bucket]++;
}

/* Return the ns at which a bucket begins. */
static uint64_t begin_of(int bucket)
{
    return bucket == 0 ? 0 : UINT64_C(1000) << (bucket - 1);
}

struct json_t *waits_json(const struct waits *waits)
{
    struct json_t *buckets = json_make_array();
    int first = 0, last = WAITS_BUCKETS - 1;
    while (first < WAITS_BUCKETS && !waits->n[first])
        first++;
    while (last > first && !waits->n[last])
        last--;
    for (int i = first; i <= last && i < WAITS_BUCKETS; i++) {
        struct json_t *bucket = json_make_object();
        json_put_count(bucket, "from_ns", begin_of(i));
        json_put_count(bucket, "below_ns", i + 1 < WAITS_BUCKETS ? begin_of(i + 1) : PSTK_NONE);
        json_put_count(bucket, "n", waits->n[i]);
        json_append(buckets, bucket);
    }
    return buckets;
}
