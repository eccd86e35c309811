/* SPDX-License-Identifier: Apache-2.0 */
/* waits: a histogram of the times of pstk_next's calls. */
#ifndef PSTK_CLI_WAITS_H
#define PSTK_CLI_WAITS_H

#include <stdint.h>

struct json_t;

/* Bucket 0 has times below 1 us, and bucket i times from 2^(i-1) us to below 2^i us. The last one,
 * from 2^30 us or 18 minutes on, also has all longer times. */
#define WAITS_BUCKETS 32

struct waits {
    uint64_t n[WAITS_BUCKETS];
};

void waits_add(struct waits *waits, double seconds);
/* Return an array of the buckets from the first to the last non-empty one: objects of from_ns,
 * below_ns (null: no bound) and n. Empty without a time. */
struct json_t *waits_json(const struct waits *waits);

#endif
