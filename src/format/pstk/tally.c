/* SPDX-License-Identifier: Apache-2.0 */
#include "format/pstk/tally.h"

static uint64_t max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint32_t max_u32(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* Count a value. Sums stay below 2^64: at most 2^40 records of less than 2^32 bytes. */
static void count(struct pstk_field_stats *stats, const struct pstk__field_view *v, uint32_t stored,
                  uint32_t plain)
{
    stats->max_stored_size = max_u64(stats->max_stored_size, stored);
    stats->max_plain_size = max_u64(stats->max_plain_size, plain);
    stats->stored_bytes += stored;
    stats->plain_bytes += plain;
    stats->max_width = max_u32(stats->max_width, v->width);
    stats->max_height = max_u32(stats->max_height, v->height);
    stats->n_encoding[v->encoding % PSTK__N_ENCODINGS_ROOM]++;
    stats->n_codec[v->codec % PSTK__N_CODECS_ROOM]++;
    stats->n_equivalent += v->flags & PSTK__FIELD_EQUIVALENT;
    stats->n_damaged += (v->flags & PSTK__FIELD_DAMAGED) != 0;
}

void pstk__tally_add(struct pstk_field_stats *stats, const struct pstk__schema *schema,
                     const struct pstk__field_view *views)
{
    for (uint32_t i = 0; i < schema->n_fields; i++) {
        uint32_t fixed = schema->fixed_size[i];
        int in_head = schema->entry[i] < 0;
        count(&stats[i], &views[i], in_head ? fixed : views[i].stored_size,
              in_head ? fixed : views[i].plain_size);
    }
}

void pstk__tally_join(struct pstk_field_stats *a, const struct pstk_field_stats *b,
                      uint32_t n_fields)
{
    for (uint32_t i = 0; i < n_fields; i++) {
        a[i].max_stored_size = max_u64(a[i].max_stored_size, b[i].max_stored_size);
        a[i].max_plain_size = max_u64(a[i].max_plain_size, b[i].max_plain_size);
        /* Manifests keep each sum below 2^62; the next check refuses a larger one. */
        if (__builtin_add_overflow(a[i].stored_bytes, b[i].stored_bytes, &a[i].stored_bytes))
            a[i].stored_bytes = UINT64_MAX;
        if (__builtin_add_overflow(a[i].plain_bytes, b[i].plain_bytes, &a[i].plain_bytes))
            a[i].plain_bytes = UINT64_MAX;
        a[i].max_width = max_u32(a[i].max_width, b[i].max_width);
        a[i].max_height = max_u32(a[i].max_height, b[i].max_height);
        for (uint32_t k = 0; k < PSTK__N_ENCODINGS_ROOM; k++)
            a[i].n_encoding[k] += b[i].n_encoding[k];
        for (uint32_t k = 0; k < PSTK__N_CODECS_ROOM; k++)
            a[i].n_codec[k] += b[i].n_codec[k];
        a[i].n_equivalent += b[i].n_equivalent;
        a[i].n_damaged += b[i].n_damaged;
    }
}
