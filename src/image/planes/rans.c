/* SPDX-License-Identifier: Apache-2.0 */
#include "image/planes/rans.h"

#include "base/little.h"

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
 * Refills without a branch, because whether a state is low is unpredictable. After its step a state
 * is at least 1 * 2^(16 - 10), so one word brings it back to 2^16 or more.
 */
int pstk__rans_run(struct pstk__rans_reader *reader, uint8_t *out, const uint8_t *table, uint32_t n)
{
    static const uint8_t none[2];
    const uint32_t quarter = reader->n_lanes / 4;
    const uint8_t *at = reader->at, *end = reader->end;
    for (uint32_t group = 0; group < n; group += reader->n_lanes)
        for (uint32_t lane = 0, v = 0; v < 4; v++)
            for (uint32_t i = group + v, k = 0; k < quarter; k++, i += 4, lane++) {
                if (i >= n) {
                    lane += quarter - k;
                    break;
                }
                uint32_t x = reader->state[lane];
                const uint32_t e = reader->tables[table[i]].slot[x & (PSTK__RANS_ONE - 1)];
                const uint8_t *word = at != end ? at : none;
                out[i] = (uint8_t)e;
                x = (e >> 8 & 0xfff) * (x >> PSTK__RANS_BITS) + (e >> 20);
                const uint32_t low = x < PSTK__RANS_LOW;
                if (low && at == end)
                    return -1;
                reader->state[lane] = x << (16 * low) | (pstk__get16(word) & (0u - low));
                at += 2 * low;
            }
    reader->at = at;
    return 0;
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
