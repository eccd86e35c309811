/* SPDX-License-Identifier: Apache-2.0 */
#include "image/jpeg/plain.h"

#include "image/jpeg/segment.h"
#include "image/jpeg/zigzag.h"

#include <string.h>

#define INDEX_BITS PSTK__JPEG_LOOKUP_BITS
#define MAX_LENGTH 16u        /* bits of a code */
#define MAX_BLOCKS_IN_MCU 10u /* ITU T.81, B.2.3 */
#define MAX_DC_BITS 11u       /* bits of a difference, for 8-bit samples */
/* Largest number of blocks of a component: with such differences their sum cannot exceed an int,
 * which libjpeg checks. */
#define MAX_BLOCKS (1u << 20)

/* ---- Huffman tables ------------------------------------------------------------------------- */

/* Encode a symbol and its code's length as bytes, from the lowest: bits of code and value, bits of
 * the code, coefficients passed (AC: 0 is an end of block). Never 0. */
static uint32_t say(uint32_t length, uint32_t symbol, int is_ac)
{
    const uint32_t size = is_ac ? symbol & 15 : symbol;
    const uint32_t advance = is_ac && (size > 0 || symbol == 0xf0) ? (symbol >> 4) + 1 : 0;
    return (length + size) | length << 8 | advance << 16;
}

/* Return say()'s result for the code that 16 bits begin with. 0: there is none. */
static uint32_t find_code(const struct pstk__jpeg_lookup *lookup, uint32_t bits)
{
    uint32_t length = 1;
    while (bits >= lookup->limit[length])
        length++;
    if (length > MAX_LENGTH)
        return 0;
    const int32_t i = (int32_t)(bits >> (MAX_LENGTH - length)) + lookup->offset[length];
    return say(length, lookup->symbols[i], lookup->is_ac);
}

/* Set codes in order of length. As libjpeg requires, no code may be all ones. Returns 0, or -1: not
 * valid. */
static int set_codes(struct pstk__jpeg_lookup *lookup, const uint8_t *counts)
{
    uint32_t code = 0, k = 0;
    lookup->limit[0] = 0;
    for (uint32_t length = 1; length <= MAX_LENGTH; length++, code <<= 1) {
        lookup->offset[length] = (int32_t)k - (int32_t)code;
        code += counts[length - 1];
        k += counts[length - 1];
        if (counts[length - 1] && code >= 1u << length)
            return -1;
        lookup->limit[length] = code << (MAX_LENGTH - length);
    }
    lookup->limit[MAX_LENGTH + 1] = UINT32_MAX;
    return 0;
}

static void fill_one(struct pstk__jpeg_lookup *lookup)
{
    for (uint32_t i = 0; i < 1u << INDEX_BITS; i++) {
        const uint32_t said = find_code(lookup, i << (MAX_LENGTH - INDEX_BITS));
        lookup->one[i] = (said >> 8 & 255) <= INDEX_BITS ? said : 0;
    }
}

/* Fill in `some`. Bits past the index count as zeros, and a code that reaches past the index is not
 * used. */
static void fill_some(struct pstk__jpeg_lookup *lookup)
{
    for (uint32_t i = 0; i < 1u << INDEX_BITS; i++) {
        uint32_t n_bits = 0, advance = 0, ends = 0;
        while (n_bits < INDEX_BITS && !ends) {
            const uint32_t said = lookup->one[i << n_bits & ((1u << INDEX_BITS) - 1)];
            if (said == 0 || (said >> 8 & 255) > INDEX_BITS - n_bits)
                break;
            n_bits += said & 255;
            advance += said >> 16;
            ends = said >> 16 == 0;
        }
        advance = advance < 64 ? advance : 64; /* 63 + 64 must differ from an end */
        lookup->some[i] =
            (uint16_t)(n_bits == 0 ? PSTK__JPEG_LOOKUP_NONE
                                   : n_bits | advance << 8 | (ends ? PSTK__JPEG_LOOKUP_ENDS : 0));
    }
}

/* Return the value of annex F.1.2.1 whose `size` bits, at most 15, are at the top. */
static inline __attribute__((always_inline)) int32_t value_of(uint64_t bits, uint32_t size)
{
    const int32_t value = (int32_t)(bits >> 1 >> (63 - size));
    return bits >> 63 ? value : value - (int32_t)((1u << size) - 1);
}

/* Return the value after the code that the bits begin with; said: say()'s result for this code. */
static inline __attribute__((always_inline)) int32_t value_after(uint64_t bits, uint32_t said)
{
    const uint32_t length = said >> 8 & 255;
    return value_of(bits << length, (said & 255) - length);
}

static void fill_coefficients(struct pstk__jpeg_lookup *lookup)
{
    for (uint32_t i = 0; i < 1u << INDEX_BITS; i++) {
        const uint32_t said = lookup->one[i], n_bits = said & 255, advance = said >> 16;
        const int32_t value = value_after((uint64_t)i << (64 - INDEX_BITS), said);
        lookup->coefficient[i] =
            said == 0 || n_bits > INDEX_BITS
                ? PSTK__JPEG_LOOKUP_NONE
                : n_bits | advance << 8 |
                      (advance ? (uint32_t)value << 16 : PSTK__JPEG_LOOKUP_ENDS);
    }
}

/* ---- header; 0: go on, -1: not of this kind -------------------------------------------------- */

static int read_huffman(struct pstk__jpeg_plain *plain, const uint8_t *b, uint32_t size)
{
    while (size > MAX_LENGTH) {
        uint32_t n = 0, number = b[0] & 15u;
        for (uint32_t i = 1; i <= MAX_LENGTH; i++)
            n += b[i];
        if (number > 3 || b[0] > 0x1f || n > 256 || n > size - 17)
            return -1;
        struct pstk__jpeg_lookup *lookup = b[0] & 0x10 ? &plain->ac[number] : &plain->dc[number];
        memset(lookup->symbols, 0, sizeof lookup->symbols);
        memcpy(lookup->symbols, b + 17, n);
        if (set_codes(lookup, b + 1) < 0)
            return -1;
        for (uint32_t i = 0; i < n; i++)
            if (!(b[0] & 0x10) && lookup->symbols[i] > MAX_DC_BITS)
                return -1;
        lookup->is_ac = b[0] >> 4;
        fill_one(lookup);
        lookup->is_defined = 1;
        b += 17 + n;
        size -= 17 + n;
    }
    return size == 0 ? 0 : -1;
}

static int read_quant(struct pstk__jpeg_plain *plain, const uint8_t *b, uint32_t size)
{
    while (size > 0) {
        const uint32_t n = b[0] >> 4 ? 129 : 65;
        if (b[0] > 0x1f || (b[0] & 15) > 3 || size < n)
            return -1;
        plain->quant_tables |= 1u << (b[0] & 15);
        b += n;
        size -= n;
    }
    return 0;
}

static int read_frame(struct pstk__jpeg_plain *plain, const uint8_t *b, uint32_t size)
{
    struct pstk__jpeg_frame *f = &plain->frame;
    if (f->n_components || size < 6 || b[0] != 8 || (b[5] != 1 && b[5] != 3) ||
        size != 6 + 3u * b[5])
        return -1;
    f->n_components = b[5];
    f->height = (uint32_t)b[1] << 8 | b[2];
    f->width = (uint32_t)b[3] << 8 | b[4];
    for (uint32_t i = 0; i < f->n_components; i++) {
        struct pstk__jpeg_component *component = &f->component[i];
        component->id = b[6 + 3 * i];
        component->h = b[7 + 3 * i] >> 4;
        component->v = b[7 + 3 * i] & 15;
        plain->quant_table[i] = b[8 + 3 * i];
        if (component->h < 1 || component->h > 4 || component->v < 1 || component->v > 4 ||
            plain->quant_table[i] > 3)
            return -1;
        for (uint32_t k = 0; k < i; k++)
            if (f->component[k].id == component->id)
                return -1;
    }
    if (f->width == 0 || f->height == 0)
        return -1;
    pstk__jpeg_frame_layout(f);
    for (uint32_t i = 0; i < f->n_components; i++) {
        const struct pstk__jpeg_component *component = &f->component[i];
        if (f->max_h % component->h || f->max_v % component->v ||
            (uint64_t)component->rows * component->stride > MAX_BLOCKS)
            return -1;
    }
    return 0;
}

static int read_scan(struct pstk__jpeg_plain *plain, const uint8_t *b, uint32_t size)
{
    const struct pstk__jpeg_frame *f = &plain->frame;
    uint32_t n_blocks = 0;
    if (f->n_components == 0 || size != 4 + 2 * f->n_components || b[0] != f->n_components)
        return -1;
    for (uint32_t i = 0; i < f->n_components; i++) {
        const struct pstk__jpeg_component *component = &f->component[i];
        const uint32_t dc = b[2 + 2 * i] >> 4, ac = b[2 + 2 * i] & 15;
        if (b[1 + 2 * i] != component->id || dc > 3 || ac > 3 || !plain->dc[dc].is_defined ||
            !plain->ac[ac].is_defined || !(plain->quant_tables >> plain->quant_table[i] & 1))
            return -1;
        plain->dc_table[i] = (uint8_t)dc;
        plain->ac_table[i] = (uint8_t)ac;
        n_blocks += (uint32_t)component->h * component->v;
    }
    return f->n_components > 1 && n_blocks > MAX_BLOCKS_IN_MCU ? -1 : 0;
}

static int read_segment(struct pstk__jpeg_plain *plain, uint32_t marker, const uint8_t *b,
                        uint32_t size)
{
    switch (marker) {
    case PSTK__JPEG_DHT:
        return read_huffman(plain, b, size);
    case PSTK__JPEG_DQT:
        return read_quant(plain, b, size);
    case PSTK__JPEG_SOF0:
    case PSTK__JPEG_SOF1:
        return read_frame(plain, b, size);
    case PSTK__JPEG_SOS:
        return read_scan(plain, b, size);
    case PSTK__JPEG_DRI:
        plain->restart_interval = size == 2 ? (uint32_t)b[0] << 8 | b[1] : 0;
        return size == 2 ? 0 : -1;
    case PSTK__JPEG_COM:
        return 0;
    default:
        return marker >= PSTK__JPEG_APP0 && marker <= PSTK__JPEG_APP15 ? 0 : -1;
    }
}

int pstk__jpeg_plain_open(struct pstk__jpeg_plain *plain, const void *data, uint64_t size)
{
    const uint8_t *b = data;
    uint64_t at = 2;
    uint32_t marker = 0;
    plain->frame = (struct pstk__jpeg_frame){.n_components = 0};
    plain->data = data;
    plain->size = size;
    plain->restart_interval = plain->quant_tables = 0;
    for (uint32_t i = 0; i < 4; i++)
        plain->dc[i].is_defined = plain->ac[i].is_defined = 0;
    if (size < 2 || b[0] != 0xff || b[1] != PSTK__JPEG_SOI)
        return 0;
    while (marker != PSTK__JPEG_SOS) {
        if (size - at < 4 || b[at] != 0xff)
            return 0;
        const uint32_t length = (uint32_t)b[at + 2] << 8 | b[at + 3];
        marker = b[at + 1];
        if (length < 2 || length > size - at - 2 ||
            read_segment(plain, marker, b + at + 4, length - 2) < 0)
            return 0;
        at += 2 + length;
    }
    plain->scan_at = at;
    return 1;
}

/* ---- bits ----------------------------------------------------------------------------------- */

/* Bits of the scan, the next one at the top. After their end, at a marker or the file's end, zeros
 * follow, and n_void counts them. */
struct bits {
    uint64_t buffer;
    uint32_t n; /* bits in the buffer; the bits below them are 0, or the next bits of the scan */
    uint32_t n_void; /* zeros added after the end */
    const uint8_t *at, *end;
};

static __attribute__((noinline)) void refill_slowly(struct bits *bits)
{
    while (bits->n < 56) {
        if (bits->end - bits->at < 2 || (bits->at[0] == 0xff && bits->at[1] != 0)) {
            bits->n += 8;
            bits->n_void += 8;
            continue;
        }
        bits->buffer |= (uint64_t)bits->at[0] << (56 - bits->n);
        bits->n += 8;
        bits->at += bits->at[0] == 0xff ? 2 : 1;
    }
}

/* Fill the buffer to at least 56 bits, at most 63. */
static inline __attribute__((always_inline)) void refill(struct bits *bits)
{
    uint64_t word;
    if (__builtin_expect(bits->end - bits->at >= 8, 1)) {
        memcpy(&word, bits->at, 8);
        /* adding 1 clears the top bit of a byte 0xff */
        if (__builtin_expect(!(word & 0x8080808080808080u & ~(word + 0x0101010101010101u)), 1)) {
            bits->buffer |= __builtin_bswap64(word) >> bits->n;
            bits->at += (63 - bits->n) >> 3;
            bits->n |= 56;
            return;
        }
    }
    struct bits copy = *bits; /* the caller's bits can then stay in registers */
    refill_slowly(&copy);
    *bits = copy;
}

static inline __attribute__((always_inline)) void drop(struct bits *bits, uint32_t n)
{
    bits->buffer <<= n;
    bits->n -= n;
}

/* Return 1 when the bits end at this marker, except for bits that fill up the last byte. */
static inline __attribute__((always_inline)) int end_bits(struct bits *bits, uint32_t marker)
{
    return bits->n >= bits->n_void && bits->n - bits->n_void < 8 && bits->end - bits->at >= 2 &&
           bits->at[0] == 0xff && bits->at[1] == marker;
}

static struct bits begin_bits(const uint8_t *at, const uint8_t *end)
{
    return (struct bits){.at = at, .end = end};
}

/* ---- the scan ------------------------------------------------------------------------------- */

/* Return say()'s result for the next code, without dropping it; 0: there is no such code. */
static inline __attribute__((always_inline)) uint32_t
next_code(const struct bits *bits, const struct pstk__jpeg_lookup *lookup)
{
    const uint32_t said = lookup->one[bits->buffer >> (64 - INDEX_BITS)];
    return __builtin_expect(said != 0, 1) ? said
                                          : find_code(lookup, (uint32_t)(bits->buffer >> 48));
}

/* Skip a block. Returns 0, or -1 for a missing code, or coefficients past the last one. */
static inline __attribute__((always_inline)) int pass_block(struct bits *bits,
                                                            const struct pstk__jpeg_lookup *dc,
                                                            const struct pstk__jpeg_lookup *ac)
{
    refill(bits);
    uint32_t said = next_code(bits, dc);
    if (said == 0)
        return -1;
    drop(bits, said & 255); /* at most 16 + 11 bits */
    for (uint32_t k = 1;;) {
        uint32_t next, some;
        refill(bits);
        for (uint32_t i = 0; i < 2; i++) { /* at most 11 + 15 bits each */
            some = ac->some[bits->buffer >> (64 - INDEX_BITS)];
            next = k + (some >> 8);
            if (next >= 64)
                break;
            drop(bits, some & 63);
            k = next;
        }
        if (next < 64)
            continue;
        if (next - (PSTK__JPEG_LOOKUP_ENDS >> 8) <
            64) { /* the block ends, but not after the last coefficient */
            drop(bits, some & 63);
            return 0;
        }
        refill(bits);
        said = next_code(bits, ac);
        drop(bits, said & 255); /* at most 16 + 15 bits */
        k += said >> 16;
        if (said >> 16 == 0 || k >= 64)
            return said == 0 || k > 64 ? -1 : 0;
    }
}

/* Read a block. *last_dc: DC of the component's last block. Returns the same as pass_block. */
static inline __attribute__((always_inline)) int read_block(struct bits *bits,
                                                            const struct pstk__jpeg_lookup *dc,
                                                            const struct pstk__jpeg_lookup *ac,
                                                            int32_t *last_dc, int16_t *block)
{
    refill(bits);
    uint32_t said = next_code(bits, dc);
    if (said == 0)
        return -1;
    const uint32_t *table = ac->coefficient;
    memset(block, 0, 64 * sizeof *block);
    *last_dc += value_after(bits->buffer, said);
    block[0] = (int16_t)*last_dc;
    drop(bits, said & 255); /* at most 16 + 11 bits */
    for (uint32_t k = 1;;) {
        uint32_t next, coefficient;
        refill(bits);
        for (uint32_t i = 0; i < 4; i++) { /* at most 11 bits each */
            coefficient = table[bits->buffer >> (64 - INDEX_BITS)];
            next = k + (coefficient >> 8 & 255);
            if (next >= 64)
                break;
            block[pstk__zigzag[next - 1]] = (int16_t)(coefficient >> 16);
            drop(bits, coefficient & 63);
            k = next;
        }
        if (next < 64)
            continue;
        if (next - (PSTK__JPEG_LOOKUP_ENDS >> 8) <
            64) { /* the block ends, but not after the last coefficient */
            drop(bits, coefficient & 63);
            return 0;
        }
        refill(bits);
        said = next_code(bits, ac);
        k += said >> 16;
        if (said == 0 || k > 64)
            return -1;
        if (said >> 16 != 0)
            block[pstk__zigzag[k - 1]] = (int16_t)value_after(bits->buffer, said);
        drop(bits, said & 255); /* at most 16 + 15 bits */
        if (said >> 16 == 0 || k == 64)
            return 0;
    }
}

/* The state of reading a scan. */
struct pass {
    struct bits bits;
    int32_t last_dc[PSTK__JPEG_MAX_COMPONENTS];
    uint32_t left, n_restarts; /* units until the next restart; restarts so far */
};

/* Read the blocks of unit (x, y), or skip them where `blocks` is NULL. */
static inline __attribute__((always_inline)) int read_unit(const struct pstk__jpeg_plain *plain,
                                                           struct pass *pass, uint32_t x,
                                                           uint32_t y, int16_t *const blocks[])
{
    const int is_single = plain->frame.n_components == 1;
    struct bits bits = pass->bits; /* a copy can stay in registers */
    for (uint32_t c = 0; c < plain->frame.n_components; c++) {
        const struct pstk__jpeg_component *component = &plain->frame.component[c];
        const struct pstk__jpeg_lookup *dc = &plain->dc[plain->dc_table[c]];
        const struct pstk__jpeg_lookup *ac = &plain->ac[plain->ac_table[c]];
        const uint32_t h = is_single ? 1 : component->h, v = is_single ? 1 : component->v;
        for (uint32_t k = 0; k < v; k++)
            for (uint32_t j = 0; j < h; j++) {
                const size_t at = (size_t)(y * v + k) * component->stride + x * h + j;
                if (blocks ? read_block(&bits, dc, ac, &pass->last_dc[c], blocks[c] + 64 * at)
                           : pass_block(&bits, dc, ac))
                    return -1;
            }
    }
    pass->bits = bits;
    return bits.n_void > bits.n ? -1 : 0; /* checked at once, so that the count cannot overflow */
}

/* Go past the marker when a restart is due. Returns 0, or -1 when the marker is missing. */
static inline __attribute__((always_inline)) int pass_restart(const struct pstk__jpeg_plain *plain,
                                                              struct pass *pass)
{
    if (plain->restart_interval == 0 || pass->left-- > 0)
        return 0;
    if (!end_bits(&pass->bits, PSTK__JPEG_RST0 + (pass->n_restarts++ & 7)))
        return -1;
    pass->bits = begin_bits(pass->bits.at + 2, pass->bits.end);
    memset(pass->last_dc, 0, sizeof pass->last_dc);
    pass->left = plain->restart_interval - 1;
    return 0;
}

static inline __attribute__((always_inline)) int read_units(const struct pstk__jpeg_plain *plain,
                                                            int16_t *const blocks[])
{
    const struct pstk__jpeg_component *first = &plain->frame.component[0];
    const int is_single = plain->frame.n_components == 1;
    const uint32_t across = is_single ? first->across : first->stride / first->h;
    const uint32_t down = is_single ? first->down : first->rows / first->v;
    struct pass pass = {.bits = begin_bits(plain->data + plain->scan_at, plain->data + plain->size),
                        .left = plain->restart_interval};
    for (uint32_t y = 0; y < down; y++)
        for (uint32_t x = 0; x < across; x++)
            if (pass_restart(plain, &pass) < 0 || read_unit(plain, &pass, x, y, blocks) < 0)
                return 0;
    return end_bits(&pass.bits, PSTK__JPEG_EOI);
}

int pstk__jpeg_plain_check(struct pstk__jpeg_plain *plain)
{
    for (uint32_t i = 0; i < 4; i++)
        if (plain->ac[i].is_defined)
            fill_some(&plain->ac[i]);
    return read_units(plain, NULL);
}

int pstk__jpeg_plain_read(struct pstk__jpeg_plain *plain, int16_t *const blocks[])
{
    for (uint32_t i = 0; i < 4; i++)
        if (plain->ac[i].is_defined)
            fill_coefficients(&plain->ac[i]);
    return read_units(plain, blocks);
}
