/* SPDX-License-Identifier: Apache-2.0 */
#include "base/random.h"

#include <string.h>

#define LOW(x) ((uint32_t)(x))
#define HIGH(x) ((uint32_t)((x) >> 32))

void pstk__philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c0;
        uint64_t p1 = (uint64_t)0xCD9E8D57u * c2;
        c0 = HIGH(p1) ^ c1 ^ k0;
        c1 = LOW(p1);
        c2 = HIGH(p0) ^ c3 ^ k1;
        c3 = LOW(p0);
        k0 += 0x9E3779B9u; /* the Weyl sequences of the paper */
        k1 += 0xBB67AE85u;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

/*
 * 352 bits of key become 192 bits of Philox state. Group and operation go into the counter as they
 * are, so that streams of one sample never coincide; seed and epoch, then the sample, are absorbed
 * through Philox into its key and one counter word: 96 bits that distinguish samples. The high half
 * of the occurrence, 0 below 2^32, is part of the domain. counter[0] is left to count blocks: a
 * stream has 2^34 draws before it repeats.
 */
void pstk__random_init(struct pstk__random *r, const struct pstk__random_key *key)
{
    const uint32_t domain[2] = {0x70737472u, 0x616E6430u ^ HIGH(key->occurrence)}; /* "pstrand0" */
    const uint32_t when[4] = {LOW(key->seed), HIGH(key->seed), LOW(key->epoch), HIGH(key->epoch)};
    const uint32_t what[4] = {LOW(key->sample_id), HIGH(key->sample_id), key->data_set,
                              LOW(key->occurrence)};
    uint32_t a[4], b[4];
    pstk__philox(when, domain, a);
    pstk__philox(what, a, b);
    *r = (struct pstk__random){
        .key = {b[0] ^ a[2], b[1] ^ a[3]},
        .counter = {0, key->group, key->op, b[2]},
    };
}

uint32_t pstk__random_u32(struct pstk__random *r)
{
    if (r->n_left == 0) {
        pstk__philox(r->counter, r->key, r->block);
        r->counter[0]++;
        r->n_left = 4;
    }
    return r->block[4 - r->n_left--];
}

uint64_t pstk__random_u64(struct pstk__random *r)
{
    uint64_t low = pstk__random_u32(r);
    uint64_t high = pstk__random_u32(r);
    return high << 32 | low;
}

double pstk__random_unit(struct pstk__random *r)
{
    return (double)(pstk__random_u64(r) >> 11) * 0x1p-53;
}

double pstk__random_uniform(struct pstk__random *r, double lo, double hi)
{
    return lo + (hi - lo) * pstk__random_unit(r);
}

/* Use Lemire's method ("Fast random integer generation in an interval", 2019): the high word of a
 * 128-bit product, rejecting the 2^64 mod n low words that would favour some results. */
uint64_t pstk__random_below(struct pstk__random *r, uint64_t n)
{
    unsigned __int128 product = (unsigned __int128)pstk__random_u64(r) * n;
    if ((uint64_t)product < n) {
        uint64_t unfair = (0 - n) % n; /* 2^64 mod n */
        while ((uint64_t)product < unfair)
            product = (unsigned __int128)pstk__random_u64(r) * n;
    }
    return (uint64_t)(product >> 64);
}

void pstk__random_order(struct pstk__random *r, uint32_t *order, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t at = (uint32_t)pstk__random_below(r, i + 1);
        order[i] = order[at];
        order[at] = i;
    }
}

uint64_t pstk__mix64(uint64_t x)
{
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

static uint64_t bits_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static double double_of(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Return 2^k for -1022 <= k <= 1023. */
static double power_of_two(int k)
{
    return double_of((uint64_t)(k + 1023) << 52);
}

/* ln 2 in two parts; the first has 21 trailing zero bits, so that its product with an exponent of
 * 11 bits is exact. */
#define LN2_HIGH 0x1.62e42feep-1
#define LN2_LOW 0x1.a39ef35793c76p-33

double pstk__rint_even(double x)
{
    /* Beyond 2^52 every double is whole; below, adding 2^52 rounds as the processor rounds. */
    double magnitude = __builtin_fabs(x);
    if (!(magnitude < 0x1p52))
        return x;
    double rounded = (magnitude + 0x1p52) - 0x1p52;
    return __builtin_copysign(rounded, x);
}

double pstk__exp(double x)
{
    if (x != x)
        return x;
    if (x > 709.782712893384) /* above the logarithm of DBL_MAX */
        return __builtin_inf();
    if (x < -745.2) /* below the logarithm of half the smallest subnormal */
        return 0;
    /* x = k ln 2 + r, |r| <= 0.347; the Taylor series of e^r - 1 - r up to r^14 leaves 1e-19. */
    static const double inverse_factorial[] = {
        1.0 / 2,
        1.0 / 6,
        1.0 / 24,
        1.0 / 120,
        1.0 / 720,
        1.0 / 5040,
        1.0 / 40320,
        1.0 / 362880,
        1.0 / 3628800,
        1.0 / 39916800,
        1.0 / 479001600,
        1.0 / 6227020800.0,
        1.0 / 87178291200.0,
    };
    double whole = pstk__rint_even(x * 0x1.71547652b82fep0); /* 1 / ln 2 */
    double high = x - whole * LN2_HIGH;
    double low = whole * LN2_LOW;
    double r = high - low;
    double lost = (high - r) - low; /* lost to rounding in r */
    double sum = 0;
    for (int i = (int)(sizeof inverse_factorial / sizeof inverse_factorial[0]) - 1; i >= 0; i--)
        sum = sum * r + inverse_factorial[i];
    double y = 1 + (r + (r * r * sum + lost));
    /* Scale in two steps: 2^k itself may be outside the range of normal numbers. */
    int k = (int)whole;
    int half = k / 2;
    return y * power_of_two(half) * power_of_two(k - half);
}

double pstk__log(double x)
{
    if (x != x || x == __builtin_inf())
        return x;
    if (x < 0)
        return __builtin_nan("");
    if (x == 0)
        return -__builtin_inf();
    int k = 0;
    if (x < 0x1p-1022) {
        x *= 0x1p54;
        k = -54;
    }
    uint64_t bits = bits_of(x);
    k += (int)(bits >> 52) - 1023;
    double m = double_of((bits & 0xFFFFFFFFFFFFFu) | 0x3FF0000000000000u);
    if (m > 0x1.6a09e667f3bcdp0) { /* sqrt 2: keeps |f| small on both sides of 1 */
        m *= 0.5;
        k++;
    }
    /* log(1 + f) = 2 artanh(s), s = f / (2 + f), s^2 <= 0.0295: 12 terms leave 1e-20. Written as
     * f - (f^2/2 - s (f^2/2 + R)), so that the large part, f, is exact. */
    double f = m - 1;
    double s = f / (2 + f);
    double z = s * s;
    double series = 0;
    for (int i = 12; i >= 1; i--)
        series = (series + 2.0 / (2 * i + 1)) * z;
    double half_square = 0.5 * f * f;
    double e = k;
    return e * LN2_HIGH - ((half_square - (s * (half_square + series) + e * LN2_LOW)) - f);
}
