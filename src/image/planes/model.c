/* SPDX-License-Identifier: Apache-2.0 */
#include "image/planes/model.h"

#include <string.h>

/* ---- levels --------------------------------------------------------------------------------- */

static const uint16_t frequencies[PSTK__MODEL_MAX_LEVEL + 1] = {
    0,  1,  2,  3,  4,   5,   6,   7,   8,   10,  12,  14,  16,  20,  24,  28,  32,  40,   48,
    56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 640, 768, 896, 1024,
};

/* Return the level whose frequency is nearest to f >= 1. */
static uint32_t level_of(uint32_t f)
{
    uint32_t level = 8;
    if (f <= 8)
        return f;
    const uint32_t octave = 31 - (uint32_t)__builtin_clz(f); /* 2^octave <= f */
    level = 8 + 4 * (octave - 3);
    while (level < PSTK__MODEL_MAX_LEVEL && frequencies[level + 1] <= f)
        level++;
    if (level < PSTK__MODEL_MAX_LEVEL && frequencies[level + 1] - f < f - frequencies[level])
        level++;
    return level;
}

/* The sum of frequencies, and the index of the first symbol of the highest level. */
struct sum {
    uint32_t all;
    uint32_t top, level;
};

static inline void add(struct pstk__model *model, uint32_t symbol, uint32_t level)
{
    model->symbol[model->n] = (uint8_t)symbol;
    model->level[model->n++] = (uint8_t)level;
}

/* Set the frequencies of the levels. */
static struct sum sum_of(struct pstk__model *model)
{
    struct sum sum = {0};
    for (uint32_t i = 0; i < model->n; i++) {
        const uint32_t level = model->level[i];
        sum.top = level > sum.level ? i : sum.top;
        sum.level = level > sum.level ? level : sum.level;
        sum.all += frequencies[level];
        model->frequency[i] = frequencies[level];
    }
    return sum;
}

/* Give that symbol the rest of the sum. Returns -1 when nothing is left. */
static int complete(struct pstk__model *model, const struct sum *sum)
{
    const uint32_t others = sum->all - frequencies[sum->level];
    if (model->n == 0 || others >= PSTK__RANS_ONE)
        return -1;
    model->frequency[sum->top] = (uint16_t)(PSTK__RANS_ONE - others);
    return 0;
}

static uint32_t symbol_at(uint32_t place, uint32_t order)
{
    if (order == PSTK__MODEL_PLAIN)
        return place;
    return (place & 1 ? (place + 1) / 2 : 0u - place / 2) & 0xff;
}

/* ---- fitting -------------------------------------------------------------------------------- */

/* Compute levels for frequencies count * scale / 2^32. */
static struct sum quantise(struct pstk__model *model, const uint32_t count[256], uint64_t scale)
{
    model->n = 0;
    for (uint32_t i = 0; i < 256; i++) {
        const uint32_t s = symbol_at(i, model->order);
        if (count[s] == 0)
            continue;
        uint64_t f = (count[s] * scale + (1ull << 31)) >> 32;
        f = f < 1 ? 1 : f;
        f = f < PSTK__RANS_ONE ? f : PSTK__RANS_ONE;
        add(model, s, level_of((uint32_t)f));
    }
    return sum_of(model);
}

/*
 * Symbols rarer than 1 / 2^10 get that frequency, so the others must share less than the whole.
 * Lower the scale until the most frequent symbol keeps about its share. The loop ends, because 256
 * symbols of frequency 1 sum to less than 2^10.
 */
void pstk__model_fit(struct pstk__model *model, const uint32_t count[256],
                     enum pstk__model_order order)
{
    uint64_t total = 0, most = 0;
    model->order = order;
    for (uint32_t s = 0; s < 256; s++) {
        total += count[s];
        most = count[s] > most ? count[s] : most;
    }
    uint64_t scale = ((uint64_t)PSTK__RANS_ONE << 32) / total;
    for (;;) {
        const struct sum sum = quantise(model, count, scale);
        if (complete(model, &sum) == 0 &&
            16 * (uint64_t)model->frequency[sum.top] >= 14 * (most * scale >> 32))
            return;
        scale -= scale / 32;
    }
}

/* log2(1 + i / 256) * 256 */
static const uint8_t log2_fraction[256] = {
    0,   1,   3,   4,   6,   7,   9,   10,  11,  13,  14,  16,  17,  18,  20,  21,  22,  24,  25,
    26,  28,  29,  30,  32,  33,  34,  36,  37,  38,  40,  41,  42,  44,  45,  46,  47,  49,  50,
    51,  52,  54,  55,  56,  57,  59,  60,  61,  62,  63,  65,  66,  67,  68,  69,  71,  72,  73,
    74,  75,  77,  78,  79,  80,  81,  82,  84,  85,  86,  87,  88,  89,  90,  92,  93,  94,  95,
    96,  97,  98,  99,  100, 102, 103, 104, 105, 106, 107, 108, 109, 110, 111, 112, 113, 114, 116,
    117, 118, 119, 120, 121, 122, 123, 124, 125, 126, 127, 128, 129, 130, 131, 132, 133, 134, 135,
    136, 137, 138, 139, 140, 141, 142, 143, 144, 145, 146, 147, 148, 149, 150, 151, 152, 153, 154,
    155, 155, 156, 157, 158, 159, 160, 161, 162, 163, 164, 165, 166, 167, 168, 169, 169, 170, 171,
    172, 173, 174, 175, 176, 177, 178, 178, 179, 180, 181, 182, 183, 184, 185, 185, 186, 187, 188,
    189, 190, 191, 192, 192, 193, 194, 195, 196, 197, 198, 198, 199, 200, 201, 202, 203, 203, 204,
    205, 206, 207, 208, 208, 209, 210, 211, 212, 212, 213, 214, 215, 216, 216, 217, 218, 219, 220,
    220, 221, 222, 223, 224, 224, 225, 226, 227, 228, 228, 229, 230, 231, 231, 232, 233, 234, 234,
    235, 236, 237, 238, 238, 239, 240, 241, 241, 242, 243, 244, 244, 245, 246, 247, 247, 248, 249,
    249, 250, 251, 252, 252, 253, 254, 255, 255,
};

/* Return log2(x) * 256, x >= 1, from the highest nine bits of x. */
static uint32_t log2_256(uint32_t x)
{
    const uint32_t whole = 31 - (uint32_t)__builtin_clz(x);
    const uint32_t high = x << (31 - whole);
    return whole << 8 | log2_fraction[high >> 23 & 255];
}

uint32_t pstk__model_bits(uint32_t f)
{
    return 256 * PSTK__RANS_BITS - log2_256(f);
}

/* Return the cost of a table: its bytes (5 bits a symbol, measured; its size in 16) and the time to
 * build it, which equals that of some 500 symbols. A table is worth its time if it saves more than
 * 256 bits in addition to its bytes. */
uint64_t pstk__model_cost(const uint32_t count[256])
{
    enum { TABLE = 16 + 16 + 256, SYMBOL = 5 };
    uint64_t total = 0, bits = 0, n = 0;
    for (uint32_t s = 0; s < 256; s++) {
        if (count[s] == 0)
            continue;
        total += count[s];
        bits += (uint64_t)count[s] * log2_256(count[s]);
        n++;
    }
    if (n == 0)
        return 0;
    return total * log2_256((uint32_t)total) - bits + 256 * (TABLE + SYMBOL * n);
}

/* ---- as bytes ------------------------------------------------------------------------------- */

/* The meaning of nibbles. 0..12: the level is the last one plus nibble - 6. 13: absent symbols, the
 * next nibble plus one of them. 14: the level is the next two nibbles, high one first. 15: no more
 * symbols. The level before the first is 8. Low nibbles come first; the last byte is padded with 0.
 */
enum { STEP = 6, MAX_STEP = 12, ZEROS = 13, LEVEL = 14, END = 15, FIRST_LEVEL = 8 };

struct nibbles {
    uint8_t *out;
    uint32_t n;
};

static void put(struct nibbles *nibbles, uint32_t nibble)
{
    if (nibbles->n % 2 == 0)
        nibbles->out[nibbles->n / 2] = (uint8_t)nibble;
    else
        nibbles->out[nibbles->n / 2] |= (uint8_t)(nibble << 4);
    nibbles->n++;
}

static void put_zeros(struct nibbles *nibbles, uint32_t n)
{
    for (; n > 0; n -= n < 16 ? n : 16) {
        put(nibbles, ZEROS);
        put(nibbles, (n < 16 ? n : 16) - 1);
    }
}

static void put_level(struct nibbles *nibbles, uint32_t level, uint32_t before)
{
    if (level + STEP >= before && level + STEP - before <= MAX_STEP) {
        put(nibbles, level + STEP - before);
        return;
    }
    put(nibbles, LEVEL);
    put(nibbles, level >> 4);
    put(nibbles, level & 15);
}

uint32_t pstk__model_write(uint8_t out[PSTK__MODEL_MAX_SIZE], const struct pstk__model *model)
{
    struct nibbles nibbles = {.out = out};
    uint32_t before = FIRST_LEVEL, place = 0;
    for (uint32_t i = 0; i < model->n; i++, place++) {
        uint32_t zeros = 0;
        while (symbol_at(place + zeros, model->order) != model->symbol[i])
            zeros++;
        put_zeros(&nibbles, zeros);
        put_level(&nibbles, model->level[i], before);
        before = model->level[i];
        place += zeros;
    }
    if (place < 256)
        put(&nibbles, END);
    return (nibbles.n + 1) / 2;
}

/* Set the model's symbols and levels from nibbles, which end with three invalid ones. Returns the
 * first nibble that was not read, or NULL when they are damaged. */
static const uint8_t *read_levels(struct pstk__model *model, const uint8_t *nibble)
{
    uint32_t level = FIRST_LEVEL, place = 0;
    while (place < 256) {
        const uint32_t first = *nibble++;
        if (first <= MAX_STEP) {
            level += first - STEP;
        } else if (first == ZEROS) {
            place += *nibble++ + 1u;
            continue;
        } else if (first == LEVEL) {
            level = (uint32_t)nibble[0] << 4 | nibble[1];
            nibble += 2;
        } else {
            return first == END ? nibble : NULL;
        }
        if (level - 1 >= PSTK__MODEL_MAX_LEVEL)
            return NULL;
        add(model, symbol_at(place++, model->order), level);
    }
    return place == 256 ? nibble : NULL;
}

/* Read nibbles, each in a byte of its own. A nibble of 0 may follow the last one, to fill up the
 * last byte. */
int pstk__model_read(struct pstk__model *model, const uint8_t *data, uint32_t size,
                     enum pstk__model_order order)
{
    enum { NONE = 255 };
    uint8_t nibbles[2 * PSTK__MODEL_MAX_SIZE + 3];
    model->order = order;
    model->n = 0;
    if (size > PSTK__MODEL_MAX_SIZE)
        return -1;
    for (uint32_t i = 0; i < size; i++) {
        nibbles[2 * i] = data[i] & 15;
        nibbles[2 * i + 1] = data[i] >> 4;
    }
    memset(nibbles + 2 * size, NONE, 3);
    const uint8_t *at = read_levels(model, nibbles), *end = nibbles + 2 * size;
    if (at == NULL || (at != end && (at + 1 != end || *at != 0)))
        return -1;
    const struct sum sum = sum_of(model);
    return complete(model, &sum);
}

/* ---- tables --------------------------------------------------------------------------------- */

void pstk__model_symbols(struct pstk__rans_symbol symbol[256], const struct pstk__model *model)
{
    uint32_t first = 0;
    memset(symbol, 0, 256 * sizeof *symbol);
    for (uint32_t i = 0; i < model->n; i++) {
        const uint32_t f = model->frequency[i];
        symbol[model->symbol[i]] =
            (struct pstk__rans_symbol){.reciprocal = ((1ull << 42) + f - 1) / f,
                                       .frequency = (uint16_t)f,
                                       .first = (uint16_t)first};
        first += f;
    }
}
