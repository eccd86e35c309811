/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg/bits: writes entropy-coded bits to memory, the most significant bit first, with a zero byte
 * stuffed after each byte 0xff. Pure, inline: the innermost loop of coding.
 */
#ifndef PSTK_JPEG_BITS_H
#define PSTK_JPEG_BITS_H

#include "image/jpeg/huffman.h"

#include <stdint.h>
#include <string.h>

/* Largest number of bytes between two calls of pstk__bits_ready. 64 bits are held back. Then come
 * either 64 symbols of 31 bits (a sequential block), or a run's symbol of 30 bits with 1000
 * correction bits, then 64 symbols of 17 bits and 63 correction bits (a refined block): less than
 * 290 bytes, doubled by stuffing. */
#define PSTK__BITS_MARGIN 640u

/* The members that change with every symbol. */
struct pstk__bit_state {
    uint64_t buffer;  /* the low 64 - n_free bits are not yet written; the others are unused */
    int32_t n_free;   /* 1..64 */
    uint32_t missing; /* not 0: a symbol without a code was written */
    uint8_t *at;      /* address of the next byte */
};

struct pstk__bits {
    struct pstk__bit_state state;
    uint8_t *end;           /* end of the memory that `at` points into */
    uint8_t *out, *out_end; /* the caller's memory while `at` is in `spill`; else out is NULL */
    uint8_t spill[2 * PSTK__BITS_MARGIN];
};

static inline void pstk__bits_init(struct pstk__bits *bits, uint8_t *out, uint8_t *end)
{
    bits->state.buffer = 0;
    bits->state.n_free = 64;
    bits->state.missing = 0;
    bits->state.at = out;
    bits->end = end;
    bits->out = bits->out_end = NULL;
}

/* Move the bytes in the spill to the caller's memory. 0, or -1 when they do not fit. */
static inline int pstk__bits_settle(struct pstk__bits *bits)
{
    if (!bits->out)
        return 0;
    size_t n = (size_t)(bits->state.at - bits->spill);
    if (n > (size_t)(bits->out_end - bits->out))
        return -1;
    memcpy(bits->out, bits->spill, n);
    bits->state.at = bits->out + n;
    bits->end = bits->out_end;
    bits->out = NULL;
    return 0;
}

/* Make room for PSTK__BITS_MARGIN bytes; near the end of the caller's memory, in the spill. 0, or
 * -1 when the memory is full. */
static inline int pstk__bits_ready(struct pstk__bits *bits)
{
    if (__builtin_expect((size_t)(bits->end - bits->state.at) >= PSTK__BITS_MARGIN, 1))
        return 0;
    if (pstk__bits_settle(bits) < 0)
        return -1;
    bits->out = bits->state.at;
    bits->out_end = bits->end;
    bits->state.at = bits->spill;
    bits->end = bits->spill + sizeof bits->spill;
    return 0;
}

static inline uint8_t *pstk__bits_byte(uint8_t *at, uint32_t byte)
{
    *at++ = (uint8_t)byte;
    *at = 0; /* within the margin; overwritten unless it is stuffed */
    return at + (byte == 0xff);
}

/* Write eight bytes. */
static inline uint8_t *pstk__bits_word(uint8_t *at, uint64_t word)
{
    if (word & 0x8080808080808080u & ~(word + 0x0101010101010101u)) {
        for (int shift = 56; shift >= 0; shift -= 8)
            at = pstk__bits_byte(at, word >> shift & 0xff);
        return at;
    }
    word = __builtin_bswap64(word);
    memcpy(at, &word, 8);
    return at + 8;
}

/* Write the low n bits of value, whose other bits are 0; 0 <= n <= 31. */
static inline void pstk__bits_put(struct pstk__bit_state *bit_state, uint32_t value, int32_t n)
{
    bit_state->n_free -= n;
    if (bit_state->n_free <= 0) {
        /* n + n_free bits are free: the upper ones of value fill the buffer */
        uint64_t full =
            bit_state->buffer << (n + bit_state->n_free) | (uint64_t)value >> -bit_state->n_free;
        bit_state->at = pstk__bits_word(bit_state->at, full);
        bit_state->buffer = value; /* later shifts drop the bits already written */
        bit_state->n_free += 64;
        return;
    }
    bit_state->buffer = bit_state->buffer << n | value;
}

/* Write a symbol and the value bits that follow its code. */
static inline void pstk__bits_symbol(struct pstk__bit_state *bit_state,
                                     const struct pstk__huffman *huffman, uint32_t symbol,
                                     uint32_t value)
{
    struct pstk__huffman_code huffman_code = huffman->codes[symbol];
    bit_state->missing |= huffman_code.missing;
    pstk__bits_put(bit_state, huffman_code.bits | value, huffman_code.size);
}

/* Fill up the last byte with bits of `padding` (0 or 1) and write it. */
static inline void pstk__bits_flush(struct pstk__bit_state *bit_state, uint32_t padding)
{
    uint32_t n_used = 64 - (uint32_t)bit_state->n_free;
    uint32_t n_bytes = (n_used + 7) / 8, n_pad = 8 * n_bytes - n_used;
    if (n_used == 0)
        return;
    uint64_t word = bit_state->buffer << n_pad | (padding ? (1u << n_pad) - 1 : 0);
    for (uint32_t i = n_bytes; i-- > 0;)
        bit_state->at = pstk__bits_byte(bit_state->at, word >> (8 * i) & 0xff);
    bit_state->buffer = 0;
    bit_state->n_free = 64;
}

/* Write a marker, after a flush. */
static inline void pstk__bits_marker(struct pstk__bit_state *bit_state, uint32_t marker)
{
    *bit_state->at++ = 0xff;
    *bit_state->at++ = (uint8_t)marker;
}

#endif
