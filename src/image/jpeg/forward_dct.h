/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg/forward_dct: the passes of the forward DCT, on vectors of as many blocks as they hold. Each
 * ISA's file includes this once. It defines `vector`, OP(name), the operation of that name on
 * it, BROADCAST(128 bits), and INLINE. Each 128 bits of a vector belong to a block: a row of eight
 * numbers.
 */

/* Return eight numbers of a table, repeated for each block. */
INLINE vector row_of(const uint16_t table[64], int v)
{
    return BROADCAST(*(const __m128i *)(const void *)(table + 8 * v));
}

INLINE void transpose(vector r[8])
{
    vector a[8], b[8];
    for (int i = 0; i < 4; i++) { /* rows i and i + 4 */
        a[2 * i] = OP(unpacklo_epi16)(r[i], r[i + 4]);
        a[2 * i + 1] = OP(unpackhi_epi16)(r[i], r[i + 4]);
    }
    for (int i = 0; i < 4; i++) {
        b[2 * i] = OP(unpacklo_epi16)(a[i], a[i + 4]);
        b[2 * i + 1] = OP(unpackhi_epi16)(a[i], a[i + 4]);
    }
    for (int i = 0; i < 4; i++) {
        r[2 * i] = OP(unpacklo_epi16)(b[i], b[i + 4]);
        r[2 * i + 1] = OP(unpackhi_epi16)(b[i], b[i + 4]);
    }
}

/* Two vectors, interleaved: each 32 bits hold a number of both. */
struct pairs {
    vector low, high;
};

INLINE struct pairs interleave(vector x, vector y)
{
    return (struct pairs){OP(unpacklo_epi16)(x, y), OP(unpackhi_epi16)(x, y)};
}

INLINE vector factors(int of_x, int of_y)
{
    return OP(set1_epi32)((int32_t)((uint32_t)(uint16_t)of_x | (uint32_t)of_y << 16));
}

INLINE struct pairs products(struct pairs p, int of_x, int of_y)
{
    const vector f = factors(of_x, of_y);
    return (struct pairs){OP(madd_epi16)(p.low, f), OP(madd_epi16)(p.high, f)};
}

INLINE struct pairs sum(struct pairs p, struct pairs q)
{
    return (struct pairs){OP(add_epi32)(p.low, q.low), OP(add_epi32)(p.high, q.high)};
}

/* Shift right, rounded, and make one vector of two again. */
INLINE vector descaled(struct pairs p, int shift)
{
    const vector half = OP(set1_epi32)(1 << (shift - 1));
    return OP(packs_epi32)(OP(srai_epi32)(OP(add_epi32)(p.low, half), shift),
                           OP(srai_epi32)(OP(add_epi32)(p.high, half), shift));
}

/* Transform the columns, as forward_c's `pass`. The sums fit 16 bits: for eight samples from -128
 * to 127, the first pass, which adds 2 bits, gives at least -4096. Eight times -4096 is -32768. */
INLINE void pass(vector x[8], int shift)
{
    const vector s0 = OP(add_epi16)(x[0], x[7]), s1 = OP(add_epi16)(x[1], x[6]);
    const vector s2 = OP(add_epi16)(x[2], x[5]), s3 = OP(add_epi16)(x[3], x[4]);
    const vector d0 = OP(sub_epi16)(x[0], x[7]), d1 = OP(sub_epi16)(x[1], x[6]);
    const vector d2 = OP(sub_epi16)(x[2], x[5]), d3 = OP(sub_epi16)(x[3], x[4]);
    const vector a = OP(add_epi16)(s0, s3), c = OP(add_epi16)(s1, s2);
    const struct pairs bd = interleave(OP(sub_epi16)(s0, s3), OP(sub_epi16)(s1, s2));
    const struct pairs z = interleave(OP(add_epi16)(d3, d1), OP(add_epi16)(d2, d0));
    const struct pairs z3 = products(z, PSTK__F_1_175 - PSTK__F_1_961, PSTK__F_1_175);
    const struct pairs z4 = products(z, PSTK__F_1_175, PSTK__F_1_175 - PSTK__F_0_390);
    const struct pairs outer = interleave(d0, d3), inner = interleave(d1, d2);
    if (shift < PSTK__DCT_FRACTION) {
        x[0] = OP(slli_epi16)(OP(add_epi16)(a, c), PSTK__DCT_BETWEEN);
        x[4] = OP(slli_epi16)(OP(sub_epi16)(a, c), PSTK__DCT_BETWEEN);
    } else {
        const vector half = OP(set1_epi16)(1 << (PSTK__DCT_BETWEEN - 1));
        x[0] = OP(srai_epi16)(OP(add_epi16)(OP(add_epi16)(a, c), half), PSTK__DCT_BETWEEN);
        x[4] = OP(srai_epi16)(OP(add_epi16)(OP(sub_epi16)(a, c), half), PSTK__DCT_BETWEEN);
    }
    x[2] = descaled(products(bd, PSTK__F_0_541 + PSTK__F_0_765, PSTK__F_0_541), shift);
    x[6] = descaled(products(bd, PSTK__F_0_541, PSTK__F_0_541 - PSTK__F_1_847), shift);
    x[7] = descaled(sum(products(outer, -PSTK__F_0_899, PSTK__F_0_298 - PSTK__F_0_899), z3), shift);
    x[1] = descaled(sum(products(outer, PSTK__F_1_501 - PSTK__F_0_899, -PSTK__F_0_899), z4), shift);
    x[5] = descaled(sum(products(inner, -PSTK__F_2_562, PSTK__F_2_053 - PSTK__F_2_562), z4), shift);
    x[3] = descaled(sum(products(inner, PSTK__F_3_072 - PSTK__F_2_562, -PSTK__F_2_562), z3), shift);
}

/* Convert rows of samples to rows of coefficients. */
INLINE void both_passes(vector rows[8])
{
    transpose(rows);
    pass(rows, PSTK__DCT_FRACTION - PSTK__DCT_BETWEEN);
    transpose(rows);
    pass(rows, PSTK__DCT_FRACTION + PSTK__DCT_BETWEEN);
}
