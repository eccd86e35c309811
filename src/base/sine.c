/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sine.h"

#include <stdint.h>
#include <string.h>

/* Fixed-point numbers of [0, 128) in units of 2^-120. */
#define FRACTION 120
#define ONE ((unsigned __int128)1 << FRACTION)
/* pi / 2 in units of 2^-120, rounded down, and the next 64 bits. */
#define HALF_PI ((unsigned __int128)HALF_PI_HIGH << 64 | HALF_PI_LOW)
#define HALF_PI_HIGH 0x1921fb54442d184u
#define HALF_PI_LOW 0x69898cc51701b839u
#define HALF_PI_REST 0xa252049c1114cf98u

static uint64_t bits_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* Split x: |x| = significand * 2^exponent, the significand below 2^53. */
static uint64_t significand_of(double x, int *exponent)
{
    const uint64_t bits = bits_of(x), fraction = bits & 0xFFFFFFFFFFFFFu;
    const int biased = (int)(bits >> 52 & 0x7FF);
    *exponent = (biased > 0 ? biased : 1) - 1075;
    return biased > 0 ? fraction | 1ull << 52 : fraction;
}

/* Return the product of two numbers of at most 1, rounded down by less than 2 units. */
static unsigned __int128 product(unsigned __int128 a, unsigned __int128 b)
{
    const uint64_t a_high = (uint64_t)(a >> 64), a_low = (uint64_t)a;
    const uint64_t b_high = (uint64_t)(b >> 64), b_low = (uint64_t)b;
    const unsigned __int128 middle =
        (unsigned __int128)a_high * b_low + (unsigned __int128)a_low * b_high;
    return ((unsigned __int128)a_high * b_high << 8) + (middle >> 56);
}

/* Sum Taylor's series up to r^33, which leaves 2^-130 for |r| <= pi / 4: sin(r) / r for first = 3,
 * cos(r) for first = 2. */
static unsigned __int128 series(unsigned __int128 r, uint32_t first)
{
    const unsigned __int128 square = product(r, r);
    unsigned __int128 sum = ONE;
    for (uint32_t i = first + 30; i >= first; i -= 2)
        sum = ONE - product(square, sum) / (i * (i - 1));
    return sum;
}

/* Sine and cosine in units of 2^-120, and their signs. */
struct circle {
    unsigned __int128 sine, cosine;
    int sine_negative, cosine_negative;
};

/* Return sine and cosine of 2^-27 <= x < 128. x = k pi / 2 + r, |r| <= pi / 4. */
static struct circle circle_of(double x)
{
    int exponent;
    const uint64_t significand = significand_of(x, &exponent);
    const unsigned __int128 whole = (unsigned __int128)significand << (exponent + FRACTION);
    const uint32_t k = (uint32_t)((whole + HALF_PI / 2) / HALF_PI);
    const unsigned __int128 multiple = k * HALF_PI + ((unsigned __int128)k * HALF_PI_REST >> 64);
    const int below = whole < multiple;
    const unsigned __int128 r = below ? multiple - whole : whole - multiple;
    const unsigned __int128 sine = product(r, series(r, 3)), cosine = series(r, 2);
    if (k & 1) /* sin(r + pi / 2) = cos r, cos(r + pi / 2) = -sin r */
        return (struct circle){cosine, sine, (k & 2) != 0, below == ((k & 2) != 0)};
    return (struct circle){sine, cosine, below != ((k & 2) != 0), (k & 2) != 0};
}

static double double_of(unsigned __int128 v, int negative)
{
    const double rounded = (double)v * 0x1p-120;
    return negative ? -rounded : rounded;
}

/* Return whether sin x = tan x = x and cos x = 1 to the last bit. */
static int is_small(double x)
{
    return __builtin_fabs(x) < 0x1p-27;
}

static int is_large(double x)
{
    return !(__builtin_fabs(x) < 128);
}

double pstk__sin(double x)
{
    if (is_small(x))
        return x;
    if (is_large(x))
        return __builtin_nan("");
    const struct circle circle = circle_of(__builtin_fabs(x));
    return double_of(circle.sine, circle.sine_negative != (x < 0));
}

double pstk__cos(double x)
{
    if (is_small(x))
        return 1;
    if (is_large(x))
        return __builtin_nan("");
    const struct circle circle = circle_of(__builtin_fabs(x));
    return double_of(circle.cosine, circle.cosine_negative);
}

/* Return a - q b without rounding of the product (Dekker, "A floating-point technique for extending
 * the available precision", 1971). */
static double remainder_of(double a, double q, double b)
{
    const double scale = 0x1p27 + 1;
    const double q_high = q * scale - (q * scale - q), q_low = q - q_high;
    const double b_high = b * scale - (b * scale - b), b_low = b - b_high;
    return (((a - q_high * b_high) - q_high * b_low) - q_low * b_high) - q_low * b_low;
}

/* Return the quotient of two numbers, each the sum of a double and a rest. */
static double quotient(unsigned __int128 a, unsigned __int128 b)
{
    const double a_high = (double)a, b_high = (double)b;
    const double a_low = (double)(__int128)(a - (unsigned __int128)a_high);
    const double b_low = (double)(__int128)(b - (unsigned __int128)b_high);
    const double q = a_high / b_high;
    return q + (remainder_of(a_high, q, b_high) + (a_low - q * b_low)) / b_high;
}

double pstk__tan(double x)
{
    if (is_small(x))
        return x;
    if (is_large(x))
        return __builtin_nan("");
    const struct circle circle = circle_of(__builtin_fabs(x));
    const double tangent = quotient(circle.sine, circle.cosine);
    const int negative = (circle.sine_negative != circle.cosine_negative) != (x < 0);
    return negative ? -tangent : tangent;
}

double pstk__radians(double degrees)
{
    return degrees * (0x1.921fb54442d18p1 / 180.0);
}

double pstk__degrees_modulo(double degrees)
{
    double rest = __builtin_fabs(degrees);
    if (rest >= 360.0) { /* the exponent is -44 or more here */
        int exponent;
        uint64_t significand = significand_of(degrees, &exponent);
        for (; exponent > 0; exponent--)
            significand = significand % 360 * 2;
        rest = (double)(significand % (360ull << -exponent));
        for (; exponent < 0; exponent++)
            rest *= 0.5;
    }
    return degrees < 0 && rest > 0 ? 360.0 - rest : rest;
}

double pstk__round_15(double x)
{
    int exponent;
    const unsigned __int128 scaled =
        (unsigned __int128)significand_of(x, &exponent) * 1000000000000000u;
    if (exponent < -126) /* less than 2^-23 of the last place */
        return __builtin_copysign(0.0, x);
    const unsigned __int128 half = (unsigned __int128)1 << (-exponent - 1);
    unsigned __int128 rounded = scaled >> -exponent;
    const unsigned __int128 rest = scaled - (rounded << -exponent);
    rounded += rest > half || (rest == half && (rounded & 1));
    return __builtin_copysign((double)(uint64_t)rounded / 1e15, x);
}
