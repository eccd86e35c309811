/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/scatter.h"

#include "loader/pipeline.h"

#include <string.h>

#define SETTLED 4u /* rows with a field at the same position, after which it is expected there */
/* Bytes of a row. Vectors cost some 0.4 us a read. CPU time of a row on two cores of an EPYC,
 * through the piece and straight: of 1000 bytes 2.8 and 3.5 us, of 4.2 kB 4.8 and 4.2, of 8 kB 6.4
 * and 5.2, of 16 kB 10.2 and 8.2, of 32 kB 18.4 and 12.6, of 150 kB 68 and 48. */
#define MIN_ROOM (8u << 10)
/* Bytes of a row that stay in a core's cache until they are used: its second level has as much.
 * Such a record of 150 kB, checked and cropped, takes 0.74 of the CPU time. */
#define MAX_SPARE (512u << 10)

/* ---- the outputs ----------------------------------------------------------------------------- */

/* Return 1 if parsing a sample reads no byte of a value: only the head of a record, or nothing. */
static int parses_no_values(const struct pstk__source *source)
{
    return source->n_joined == 0 && (source->format->has_heads || source->format->field_files);
}

static void add_output(struct pstk__scatter *scatter, const struct pstk__plan *plan, uint32_t i)
{
    const struct pstk__output *o = &plan->outputs[i];
    const uint64_t room = pstk__output_written_size(o);
    /* Rows of a list of sizes differ from batch to batch. */
    const int may = o->is_lone_copy || (o->is_lone_image && plan->n_sizes == 0);
    if (!may || room < MIN_ROOM || scatter->n_places == PSTK__SCATTER_PLACES)
        return;
    uint32_t k = scatter->n_places++;
    for (; k > 0 && scatter->places[k - 1].field > o->field; k--)
        scatter->places[k] = scatter->places[k - 1];
    scatter->places[k] =
        (struct pstk__scatter_place){.output = i,
                                     .field = o->field,
                                     .room = room,
                                     .is_image = o->is_lone_image,
                                     .is_ragged = (uint32_t)pstk__output_is_ragged(o)};
}

void pstk__scatter_init(struct pstk__scatter *scatter, const struct pstk__pipeline *pipeline,
                        uint8_t *spare)
{
    *scatter = (struct pstk__scatter){.spare = spare, .spare_size = pipeline->spare_size};
    for (uint32_t i = 0; i < pipeline->plan->n_outputs && parses_no_values(pipeline->source); i++)
        add_output(scatter, pipeline->plan, i);
}

void pstk__scatter_begin(struct pstk__scatter *scatter)
{
    for (uint32_t k = 0; k < scatter->n_places; k++) {
        struct pstk__scatter_place *place = &scatter->places[k];
        place->is_used = place->n_same >= SETTLED;
        place->used = place->seen;
    }
}

void pstk__scatter_row(struct pstk__scatter *scatter)
{
    scatter->spare_used = 0;
}

/* ---- a read ---------------------------------------------------------------------------------- */

/* Return the bytes of the extent that go to the row of a place; 0: the extent is too short. */
static uint64_t size_in_row(const struct pstk__scatter_place *place,
                            const struct pstk__extent *extent)
{
    const uint64_t offset = place->used.offset;
    const uint64_t left = extent->size > offset ? extent->size - offset : 0;
    if (left < place->room)
        return place->is_ragged ? left : 0;
    return place->room;
}

/* Read the only row of a span into the spare buffer. */
static void use_spare(struct pstk__scatter *scatter, struct pstk__span_io *span_io,
                      struct pstk__extent *extent)
{
    struct pstk__read *read = &span_io->read;
    const uint64_t size = ((uint64_t)read->size + 63) & ~(uint64_t)63;
    if (size > MAX_SPARE || size > scatter->spare_size - scatter->spare_used)
        return;
    uint8_t *to = scatter->spare + scatter->spare_used;
    extent->data = to + (extent->data - (uint8_t *)read->buffer);
    read->buffer = to;
    scatter->spare_used += size;
}

/* The parts of a read, made from its begin to its end. */
struct parts {
    struct iovec *list;
    uint32_t n;
    uint64_t done;   /* bytes of the read in parts */
    uint8_t *buffer; /* memory for all other bytes */
};

/* Add a part for the bytes before `to`, in the buffer. */
static void add_plain(struct parts *parts, uint64_t to)
{
    if (to > parts->done)
        parts->list[parts->n++] =
            (struct iovec){.iov_base = parts->buffer + parts->done, .iov_len = to - parts->done};
    parts->done = to;
}

/* Add the part of place k for row i, if it does not overlap the parts before it. */
static void add_place(struct parts *parts, const struct pstk__scatter *scatter, uint32_t k,
                      const struct pstk__task *task, uint32_t i, const struct pstk__extent *extent)
{
    const struct pstk__scatter_place *place = &scatter->places[k];
    struct pstk__row rows[PSTK__MAX_OUTPUTS];
    const uint64_t begin = (uint64_t)(extent->data - parts->buffer) + place->used.offset;
    const uint64_t size = size_in_row(place, extent);
    if (size == 0 || begin < parts->done || parts->n + 3 > PSTK__READ_PARTS)
        return;
    pstk__slot_rows(task->slot, task->first_row + i, rows);
    add_plain(parts, begin);
    parts->list[parts->n++] = (struct iovec){.iov_base = rows[place->output].data, .iov_len = size};
    parts->done += size;
    task->fetch.rows[i].scattered |= 1u << k;
}

/* Return 1 if no two rows of the span have bytes in common. Of rows that have, the second would
 * miss what went to the slot's row of the first. */
static int are_apart(const struct pstk__task *task, const struct pstk__span_io *span_io)
{
    uint64_t end = 0;
    for (uint32_t i = 0; i < span_io->span.n; i++) {
        const struct pstk__extent *extent =
            &task->fetch.rows[span_io->span.first + i].extents[span_io->extent];
        if (extent->offset < end)
            return 0;
        end = extent->offset + extent->size;
    }
    return 1;
}

uint32_t pstk__scatter_parts(struct pstk__scatter *scatter, const struct pstk__task *task,
                             struct pstk__span_io *span_io, struct iovec list[PSTK__READ_PARTS])
{
    const struct pstk__span *span = &span_io->span;
    struct pstk__row_io *ios = &task->fetch.rows[span->first];
    if (span->n == 1)
        use_spare(scatter, span_io, &ios->extents[span_io->extent]);
    struct parts parts = {.list = list, .buffer = span_io->read.buffer};
    const int may = scatter->n_places > 0 && are_apart(task, span_io);
    for (uint32_t i = 0; may && i < span->n; i++)
        for (uint32_t k = 0; k < scatter->n_places; k++)
            if (scatter->places[k].is_used && scatter->places[k].used.extent == span_io->extent)
                add_place(&parts, scatter, k, task, span->first + i,
                          &ios[i].extents[span_io->extent]);
    add_plain(&parts, span_io->read.size);
    return parts.n;
}

/* ---- a row ----------------------------------------------------------------------------------- */

/* Return 1 if the row, which has `size` bytes from the extent, has all of the field and no byte of
 * another one, and set the gap that is left to check. */
static int has_field(const struct pstk__scatter_place *place, const struct pstk__extent *extent,
                     const uint8_t *home, uint64_t size, struct pstk__field_view *v)
{
    const uint64_t end = (uint64_t)v->stored_size + v->gap;
    if (v->data != home || v->codec != PSTK_CODEC_NONE || v->stored_size > size)
        return 0;
    if (place->is_ragged && end <= size) /* the gap lies in the row too */
        return place->used.offset + end == extent->size;
    if (v->stored_size != size || (v->gap && !pstk__record_gap_is_zero(home + end, v->gap)))
        return 0;
    v->gap = 0;
    return 1;
}

void pstk__scatter_settle(const struct pstk__scatter *scatter, const struct pstk__row_io *io,
                          struct pstk__record *record, struct pstk__row *rows)
{
    for (uint32_t k = 0; k < scatter->n_places; k++) {
        if (!(io->scattered >> k & 1))
            continue;
        const struct pstk__scatter_place *place = &scatter->places[k];
        const struct pstk__extent *extent = &io->extents[place->used.extent];
        struct pstk__field_view *v = &record->fields[place->field];
        struct pstk__row *row = &rows[place->output];
        const uint64_t size = size_in_row(place, extent);
        /* The extent lies in the task's piece or in the spare buffer, which are this thread's. */
        row->aside = (uint8_t *)(uintptr_t)extent->data + place->used.offset;
        if (has_field(place, extent, row->aside, size, v))
            v->data = row->data;
        else
            memcpy(row->aside, row->data, size);
    }
}

/* Find where the bytes of a field lie among the extents of its row. Returns 0 if they do not. */
static int find_position(const struct pstk__row_io *io, uint32_t n_extents,
                         const struct pstk__field_view *v, struct pstk__scatter_position *position)
{
    for (uint32_t k = 0; k < n_extents; k++) {
        const struct pstk__extent *extent = &io->extents[k];
        const uintptr_t at = (uintptr_t)v->data, begin = (uintptr_t)extent->data;
        if (extent->size == 0 || at < begin || at - begin + v->stored_size > extent->size)
            continue;
        *position = (struct pstk__scatter_position){
            .extent = k,
            .offset = at - begin,
            .is_last = at - begin + v->stored_size + v->gap == extent->size};
        return 1;
    }
    return 0;
}

static void learn(struct pstk__scatter_place *place, const struct pstk__row_io *io,
                  uint32_t n_extents, const struct pstk__field_view *v)
{
    struct pstk__scatter_position now;
    if (!find_position(io, n_extents, v, &now) || (place->is_ragged && !now.is_last)) {
        place->n_same = 0;
        return;
    }
    const int is_same = now.extent == place->seen.extent && now.offset == place->seen.offset;
    place->seen = now;
    place->n_same = !is_same ? 1 : place->n_same < SETTLED ? place->n_same + 1 : SETTLED;
}

void pstk__scatter_learn(struct pstk__scatter *scatter, const struct pstk__row_io *io,
                         uint32_t n_extents, const struct pstk__record *record,
                         const struct pstk__row *rows)
{
    for (uint32_t k = 0; k < scatter->n_places; k++) {
        struct pstk__scatter_place *place = &scatter->places[k];
        const struct pstk__row *row = &rows[place->output];
        const struct pstk__field_view *v = &record->fields[place->field];
        const int is_stored = place->is_image ? row->is_stored != 0 : v->codec == PSTK_CODEC_NONE;
        if (!is_stored)
            place->n_same = 0;
        else if (v->data != row->data) /* else it is where it was expected */
            learn(place, io, n_extents, v);
    }
}
