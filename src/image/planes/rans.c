/* SPDX-License-Identifier: Apache-2.0 */
#include "image/planes/rans.h"

#include "base/little.h"

#include <stddef.h>
#include <string.h>

int pstk__rans_begin(struct pstk__rans_reader *reader, const struct pstk__rans_table *tables,
                     uint32_t n_lanes, const uint8_t *data, uint64_t size)
{
    if (size < 4ull * n_lanes || size % 2 != 0)
        return -1;
    reader->tables = tables;
    reader->n_lanes = n_lanes;
    for (uint32_t i = 0; i < n_lanes; i++) {
        reader->state[i] = pstk__get32(data + 4 * i);
        if (reader->state[i] < PSTK__RANS_LOW)
            return -1;
    }
    reader->at = data + 4 * (uint64_t)n_lanes;
    reader->end = reader->limit = data + size;
    return 0;
}

/*
 * Decode a lane's symbol, and refill its state by a word, without a branch, because whether a state
 * runs low is unpredictable. A state is at least 1 * 2^(16 - 10) after its step, so one word brings
 * it back to 2^16 or more. Returns 1 when it takes the word.
 */
static inline uint32_t step(uint32_t *state, const struct pstk__rans_table *table, uint8_t *out,
                            uint32_t word)
{
    uint32_t x = *state;
    const uint32_t e = table->slot[x & (PSTK__RANS_ONE - 1)];
    *out = (uint8_t)e;
    x = (e >> 8 & 0xfff) * (x >> PSTK__RANS_BITS) + (e >> 20);
    const uint32_t low = x < PSTK__RANS_LOW;
    *state = x << (16 * low) | (word & (0u - low));
    return low;
}

/* Decode whole groups as long as there are all words that a group may take. Returns the number of
 * symbols. Inlined for each number of lanes. */
static inline __attribute__((always_inline)) uint32_t whole_groups(struct pstk__rans_reader *reader,
                                                                   uint8_t *out,
                                                                   const uint8_t *table, uint32_t n,
                                                                   const uint32_t n_lanes)
{
    const uint32_t quarter = n_lanes / 4;
    const struct pstk__rans_table *tables = reader->tables;
    const uint8_t *at = reader->at, *end = reader->end;
    uint32_t state[PSTK__RANS_LANES], i = 0;
    memcpy(state, reader->state, 4 * n_lanes);
    for (; n - i >= n_lanes && end - at >= 2 * (ptrdiff_t)n_lanes; i += n_lanes)
        for (uint32_t lane = 0; lane < n_lanes; lane++) {
            const uint32_t k = i + 4 * (lane % quarter) + lane / quarter;
            at += 2 * step(&state[lane], &tables[table[k]], out + k, pstk__get16(at));
        }
    memcpy(reader->state, state, 4 * n_lanes);
    reader->at = at;
    return i;
}

/* Decode the last groups, one of which may lack symbols, or words. */
static int last_groups(struct pstk__rans_reader *reader, uint8_t *out, const uint8_t *table,
                       uint32_t n)
{
    static const uint8_t none[2];
    const uint32_t quarter = reader->n_lanes / 4;
    for (uint32_t group = 0; group < n; group += reader->n_lanes)
        for (uint32_t v = 0; v < 4; v++) {
            uint32_t lane = v * quarter;
            for (uint32_t k = group + v; k < n && lane < (v + 1) * quarter; k += 4, lane++) {
                const int is_used_up = reader->at == reader->end;
                const uint32_t low = step(&reader->state[lane], &reader->tables[table[k]], out + k,
                                          pstk__get16(is_used_up ? none : reader->at));
                if (low && is_used_up)
                    return -1;
                reader->at += 2 * low;
            }
        }
    return 0;
}

int pstk__rans_run(struct pstk__rans_reader *reader, uint8_t *out, const uint8_t *table, uint32_t n)
{
    uint32_t i;
    if (reader->n_lanes == PSTK__RANS_FEW_LANES)
        i = whole_groups(reader, out, table, n, PSTK__RANS_FEW_LANES);
    else if (reader->n_lanes == PSTK__RANS_SOME_LANES)
        i = whole_groups(reader, out, table, n, PSTK__RANS_SOME_LANES);
    else
        i = whole_groups(reader, out, table, n, PSTK__RANS_LANES);
    return last_groups(reader, out + i, table + i, n - i);
}

int pstk__rans_end(const struct pstk__rans_reader *reader)
{
    uint32_t other = 0;
    for (uint32_t i = 0; i < reader->n_lanes; i++)
        other |= reader->state[i] ^ PSTK__RANS_LOW;
    return other == 0 && reader->at == reader->end ? 0 : -1;
}

void pstk__rans_write_begin(struct pstk__rans_writer *writer, uint32_t n_lanes, uint8_t *end)
{
    writer->n_lanes = n_lanes;
    writer->at = end;
    for (uint32_t i = 0; i < n_lanes; i++)
        writer->state[i] = PSTK__RANS_LOW;
}

void pstk__rans_write_end(struct pstk__rans_writer *writer)
{
    writer->at -= 4 * (uint64_t)writer->n_lanes;
    for (uint32_t i = 0; i < writer->n_lanes; i++)
        pstk__put32(writer->at + 4 * i, writer->state[i]);
}
