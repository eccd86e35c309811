/* SPDX-License-Identifier: Apache-2.0 */
/*
 * identity: a digest of records that does not depend on how they are divided into shards. Declared
 * in record.h. The digest is a polynomial in R over the records' hashes, modulo the Mersenne prime
 * 2^61 - 1. So two runs join in O(log n), and the position of every record counts.
 */
#include "record/record.h"

#include "base/little.h"
#include "base/random.h"

#include <stdio.h>

#define PRIME ((1ull << 61) - 1)

static const uint64_t lane_seed[2] = {0x9E3779B97F4A7C15u, 0xC2B2AE3D27D4EB4Fu};
/* Both are below 2^61 - 1, so they need no reduction. */
static const uint64_t lane_base[2] = {0x0FD3B5A9C1E57E2Bu, 0x1B873593CC9E2D51u};

/* Return x mod P for x < 2^64: 2^61 = 1 (mod P). */
static uint64_t reduce(uint64_t x)
{
    x = (x & PRIME) + (x >> 61);
    return x >= PRIME ? x - PRIME : x;
}

/* Return a * b mod P for a, b < P: the product is below 2^122, its halves below 2^61 each. */
static uint64_t times(uint64_t a, uint64_t b)
{
    unsigned __int128 product = (unsigned __int128)a * b;
    return reduce((uint64_t)(product & PRIME) + (uint64_t)(product >> 61));
}

static uint64_t plus(uint64_t a, uint64_t b)
{
    return reduce(a + b);
}

static uint64_t power(uint64_t base, uint64_t exponent)
{
    uint64_t result = 1;
    for (; exponent; exponent >>= 1) {
        if (exponent & 1)
            result = times(result, base);
        base = times(base, base);
    }
    return result;
}

static void take(uint64_t h[2], uint64_t word)
{
    for (int l = 0; l < 2; l++)
        h[l] = pstk__mix64(h[l] ^ word) + lane_seed[l];
}

static void take_bytes(uint64_t h[2], const uint8_t *bytes, uint32_t size)
{
    take(h, size);
    for (uint32_t i = 0; i < size; i += 8) {
        uint8_t word[8] = {0};
        memcpy(word, bytes + i, size - i < 8 ? size - i : 8);
        take(h, pstk__get64(word));
    }
}

void pstk__identity_add(struct pstk__identity *id, const struct pstk__schema *schema,
                        const struct pstk__field_view *views)
{
    uint64_t h[2] = {lane_seed[0], lane_seed[1]};
    for (uint32_t i = 0; i < schema->n_fields; i++) {
        const struct pstk__field_view *v = &views[i];
        if (schema->entry[i] < 0) {
            take_bytes(h, v->data, schema->fixed_size[i]);
            continue;
        }
        take(h, v->plain_size | (uint64_t)v->plain_crc << 32);
        take(h, v->encoding | (uint64_t)v->channels << 8 | (uint64_t)v->bit_depth << 16 |
                    (uint64_t)((v->flags & PSTK__FIELD_PALETTE) != 0) << 24);
        take(h, v->width | (uint64_t)v->height << 32);
    }
    for (int l = 0; l < 2; l++)
        id->lane[l] = plus(times(id->lane[l], lane_base[l]), plus(reduce(h[l]), 1));
    id->n++;
}

void pstk__identity_join(struct pstk__identity *a, const struct pstk__identity *b)
{
    for (int l = 0; l < 2; l++)
        a->lane[l] = plus(times(a->lane[l], power(lane_base[l], b->n)), b->lane[l]);
    a->n += b->n;
}

void pstk__identity_text(const struct pstk__identity *id, uint32_t schema_crc, char text[40])
{
    uint64_t first = pstk__mix64(id->lane[0] ^ pstk__mix64(id->n));
    uint64_t second = pstk__mix64(id->lane[1] ^ pstk__mix64(schema_crc));
    snprintf(text, 40, "%016llx%016llx", (unsigned long long)first, (unsigned long long)second);
}
