/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg/scan_avx512: writes sequential scans with AVX-512: computes symbols and value bits of all
 * coefficients of a block at once, in bytes, then looks up each symbol. Values that do not fit a
 * byte are corrected one by one. Blocks with a run over 15 go to pstk__jpeg_coder_block.
 */
#if defined(__x86_64__)

#include "image/jpeg/coder.h"

#include <immintrin.h>

#define TARGET                                                                                     \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,bmi,bmi2,"    \
                          "popcnt")))

struct constants {
    __m512i lower, upper; /* bytes of a block at each position of the zigzag order */
    __m512i iota, before;
    __m512i widths[2]; /* bit widths of 0..127 */
    __m512i masks;     /* masks of 0..15 bits, in each lane of 16 */
};

/* A block whose symbols are computed while the symbols of the block before are written: their
 * latency overlaps with the mispredicted end of that loop. */
struct prepared {
    const int16_t *block; /* NULL: there is none */
    uint32_t i;           /* the scan's component */
    uint32_t n;           /* symbols; 0: pstk__jpeg_coder_block codes the block */
    uint32_t n_narrow;    /* first symbols whose values have at most 7 bits: all or none */
    uint32_t missing;     /* 1: a value has no symbol */
    uint8_t symbols[64];
    uint16_t bits[64]; /* value bits of the symbols */
};

struct writer {
    struct pstk__jpeg_coder *common;
    struct constants k;
    struct prepared slots[2];
    uint32_t current;
};

static inline __attribute__((always_inline)) TARGET void constants_init(struct constants *constants)
{
    uint8_t lower[64], upper[64], iota[64], before[64], widths[128], masks[64];
    for (uint32_t i = 0; i < 64; i++) {
        lower[i] = (uint8_t)(2 * pstk__zigzag[i]);
        upper[i] = (uint8_t)(lower[i] + 1);
        iota[i] = (uint8_t)i;
        before[i] = (uint8_t)(i - 1);
        masks[i] = (uint8_t)((1u << (i & 7)) - 1);
    }
    for (uint32_t i = 0; i < 128; i++)
        widths[i] = (uint8_t)pstk__jpeg_width_of((int32_t)i);
    constants->lower = _mm512_loadu_si512(lower);
    constants->upper = _mm512_loadu_si512(upper);
    constants->iota = _mm512_loadu_si512(iota);
    constants->before = _mm512_loadu_si512(before);
    constants->widths[0] = _mm512_loadu_si512(widths);
    constants->widths[1] = _mm512_loadu_si512(widths + 64);
    constants->masks = _mm512_loadu_si512(masks);
}

/* Bits being written. Whole bytes are written at once, so that no branch depends on their
 * number. */
struct stream {
    uint64_t upper; /* bits not yet written, from bit 63 downwards; the bits below them are 0 */
    uint32_t n;     /* number of these bits; below 8 between symbols */
    uint8_t *at;    /* address of the next byte; bytes are not stuffed yet */
    uint64_t ff;    /* not 0: a byte 0xff was written */
};

/* Write the whole bytes; may overwrite 8 bytes after them. */
static inline __attribute__((always_inline)) void write_bytes(struct stream *stream)
{
    uint64_t word = __builtin_bswap64(stream->upper);
    stream->ff |= stream->upper & ~(stream->upper + 0x0101010101010101u);
    memcpy(stream->at, &word, 8);
    stream->at += stream->n >> 3;
    stream->upper <<= stream->n & 0x38;
    stream->n &= 7;
}

/* Write the low n bits of value, at most 56; its other bits are 0. */
static inline __attribute__((always_inline)) void put(struct stream *stream, uint64_t value,
                                                      uint32_t n)
{
    stream->n += n;
    stream->upper |= value << ((64 - stream->n) & 63);
    write_bytes(stream);
}

/* Insert a zero after each 0xff of begin..end, fewer than 256 bytes; few blocks have one. */
static uint8_t *stuff(uint8_t *begin, const uint8_t *end)
{
    uint8_t plain[256];
    size_t n = (size_t)(end - begin);
    memcpy(plain, begin, n);
    for (size_t i = 0; i < n; i++)
        begin = pstk__bits_byte(begin, plain[i]);
    return begin;
}

/* Write the DC, and the symbols with their value bits. */
static inline __attribute__((always_inline)) TARGET void
write_symbols(struct pstk__jpeg_coder *coder, const struct prepared *prepared, int16_t dc)
{
    const struct pstk__huffman_code *codes = coder->ac[prepared->i]->codes;
    struct pstk__bit_state *bit_state = &coder->bits->state;
    struct stream stream = {.n = 64 - (uint32_t)bit_state->n_free, .at = bit_state->at};
    stream.upper = stream.n ? bit_state->buffer << bit_state->n_free : 0;
    write_bytes(&stream);

    int32_t difference = pstk__jpeg_dc_difference(dc, &coder->last_dc[prepared->i]);
    uint32_t width = pstk__jpeg_width_of(difference), k = 0;
    struct pstk__huffman_code one = coder->dc[prepared->i]->codes[width & 15], two;
    uint32_t missing = one.missing | width >> 4 | prepared->missing; /* -32768 has no symbol */
    put(&stream, one.bits | pstk__jpeg_value_bits(difference, width & 15), one.size);
    for (; k + 1 < prepared->n_narrow; k += 2) { /* at most 23 bits each */
        one = codes[prepared->symbols[k]];
        two = codes[prepared->symbols[k + 1]];
        missing |= one.missing | two.missing;
        put(&stream,
            (uint64_t)(one.bits | prepared->bits[k]) << two.size | two.bits | prepared->bits[k + 1],
            (uint32_t)one.size + two.size);
    }
    for (; k < prepared->n; k++) {
        one = codes[prepared->symbols[k]];
        missing |= one.missing;
        put(&stream, one.bits | prepared->bits[k], one.size);
    }
    bit_state->missing |= missing;
    bit_state->at = stream.ff & 0x8080808080808080u ? stuff(bit_state->at, stream.at) : stream.at;
    bit_state->buffer = stream.n ? stream.upper >> (64 - stream.n) : 0;
    bit_state->n_free = 64 - (int32_t)stream.n;
}

/* Correct the results for values that do not fit a byte. */
static TARGET void prepare_wide(struct prepared *prepared, uint64_t map, uint64_t wide)
{
    for (uint64_t left = wide; left != 0; left &= left - 1) {
        uint32_t position = (uint32_t)__builtin_ctzll(left);
        uint32_t k = (uint32_t)__builtin_popcountll(map & (((uint64_t)1 << position) - 1));
        int32_t value = prepared->block[pstk__zigzag[position]];
        uint32_t width = pstk__jpeg_width_of_other(value);
        prepared->missing |= width >> 4;
        prepared->symbols[k] = (uint8_t)((prepared->symbols[k] & 0xf0) | (width & 15));
        prepared->bits[k] = (uint16_t)pstk__jpeg_value_bits(value, width & 15);
    }
    prepared->n_narrow = 0;
}

static inline __attribute__((always_inline)) TARGET void prepare(struct prepared *prepared,
                                                                 const struct constants *constants,
                                                                 uint32_t i, const int16_t *block)
{
    __m512i first = _mm512_loadu_si512(block), second = _mm512_loadu_si512(block + 32);
    __m512i values = _mm512_permutex2var_epi8(first, constants->lower, second);
    __m512i upper = _mm512_permutex2var_epi8(first, constants->upper, second);
    __m512i signs = _mm512_movm_epi8(_mm512_movepi8_mask(values));
    /* -128 has more bits than its byte's magnitude can show */
    uint64_t wide = (_mm512_cmpneq_epi8_mask(upper, signs) |
                     _mm512_cmpeq_epi8_mask(values, _mm512_set1_epi8(-128))) &
                    ~(uint64_t)1;
    uint64_t map = (_mm512_test_epi8_mask(values, values) & ~(uint64_t)1) | wide;
    __m512i positions = _mm512_maskz_compress_epi8(map, constants->iota);
    __m512i before = _mm512_maskz_permutexvar_epi8(~(uint64_t)1, constants->before, positions);
    __m512i runs = _mm512_sub_epi8(_mm512_sub_epi8(positions, before), _mm512_set1_epi8(1));
    uint32_t n = (uint32_t)__builtin_popcountll(map);
    uint64_t used = _bzhi_u64(~(uint64_t)0, n);
    __mmask64 is_long = _mm512_mask_cmpgt_epu8_mask(used, runs, _mm512_set1_epi8(15));

    values = _mm512_maskz_compress_epi8(map, values);
    __m512i widths = _mm512_permutex2var_epi8(constants->widths[0], _mm512_abs_epi8(values),
                                              constants->widths[1]);
    __m512i symbols = _mm512_or_si512(_mm512_slli_epi16(runs, 4), widths);
    values = _mm512_mask_sub_epi8(values, _mm512_movepi8_mask(values), values, _mm512_set1_epi8(1));
    values = _mm512_and_si512(values, _mm512_shuffle_epi8(constants->masks, widths));
    /* the symbols end with the end of block, 0, unless the last position is in use */
    _mm512_storeu_si512(prepared->symbols, _mm512_maskz_mov_epi8(used, symbols));
    _mm512_storeu_si512(prepared->bits, _mm512_cvtepu8_epi16(_mm512_castsi512_si256(values)));
    _mm512_storeu_si512(prepared->bits + 32,
                        _mm512_cvtepu8_epi16(_mm512_extracti64x4_epi64(values, 1)));
    prepared->block = block;
    prepared->i = i;
    prepared->missing = 0;
    prepared->n = prepared->n_narrow = is_long ? 0 : n + !(map >> 63);
    if (wide)
        prepare_wide(prepared, map, wide);
}

static inline __attribute__((always_inline)) TARGET int write_prepared(struct writer *coder,
                                                                       struct prepared *prepared)
{
    const int16_t *block = prepared->block;
    prepared->block = NULL;
    if (!block)
        return 0;
    if (prepared->n == 0)
        return pstk__jpeg_coder_block(coder->common, prepared->i, block);
    if (pstk__bits_ready(coder->common->bits) < 0)
        return -1;
    write_symbols(coder->common, prepared, block[0]);
    return 0;
}

static inline __attribute__((always_inline)) TARGET int write_block(void *user, uint32_t i,
                                                                    const int16_t *block)
{
    struct writer *coder = user;
    struct prepared *last = &coder->slots[coder->current];
    coder->current ^= 1;
    prepare(&coder->slots[coder->current], &coder->k, i, block);
    return write_prepared(coder, last);
}

static inline TARGET int write_restart(void *user, uint32_t number)
{
    struct writer *coder = user;
    int r = write_prepared(coder, &coder->slots[coder->current]);
    return r < 0 ? r : pstk__jpeg_coder_restart(coder->common, number);
}

TARGET int pstk__jpeg_coder_avx512(const struct pstk__jpeg_units *units,
                                   struct pstk__jpeg_coder *coder)
{
    struct writer writer = {.common = coder};
    const struct pstk__jpeg_visitor visitor = {write_block, write_restart, &writer};
    constants_init(&writer.k);
    int r = pstk__jpeg_visit(units, &visitor);
    return r < 0 ? r : write_prepared(&writer, &writer.slots[writer.current]);
}

#endif
