/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/shard_writer.h"

#include "base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUFFER_SIZE (1u << 20) /* bytes: sequential writes large enough for any device */

int pstk__shard_writer_open(struct pstk__shard_writer *w, struct pstk__staging *staging,
                            const struct pstk__schema *schema, struct pstk_error *err)
{
    memset(w, 0, sizeof *w);
    w->fd = -1;
    w->staging = staging;
    w->schema = schema;
    w->buffer = malloc(BUFFER_SIZE);
    w->head = malloc(schema->head_size);
    if (w->buffer && w->head)
        return 0;
    pstk__shard_writer_close(w);
    return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_WRITE, "%s: out of memory", staging->path);
}

void pstk__shard_writer_close(struct pstk__shard_writer *w)
{
    if (w->fd >= 0)
        close(w->fd);
    w->fd = -1;
    free(w->offsets);
    free(w->buffer);
    free(w->head);
    w->offsets = NULL;
    w->buffer = NULL;
    w->head = NULL;
}

static uint64_t position(const struct pstk__shard_writer *w)
{
    return w->flushed + w->n_buffered;
}

static uint64_t round_up(uint64_t n)
{
    return (n + PSTK__INDEX_PAGE - 1) / PSTK__INDEX_PAGE * PSTK__INDEX_PAGE;
}

int pstk__shard_writer_fits(const struct pstk__shard_writer *w, uint64_t size, uint64_t shard_size)
{
    if (w->fd < 0 || w->identity.n >= PSTK__MAX_SHARD_RECORDS)
        return 0;
    /* No overflow: position < 2^44 and size < 2^32; the index of 2^32 records takes 2^35 bytes. */
    uint64_t pages = pstk__shard_n_pages(w->identity.n + 1);
    return round_up(position(w) + size) + pages * PSTK__INDEX_PAGE <= shard_size;
}

int pstk__shard_writer_begin(struct pstk__shard_writer *w, const char *name, uint32_t tag,
                             struct pstk_error *err)
{
    snprintf(w->name, sizeof w->name, "%s", name);
    w->tag = tag;
    memset(&w->identity, 0, sizeof w->identity);
    w->n_buffered = 0;
    w->flushed = PSTK__HEADER_SIZE; /* the header comes last: it holds the CRC of the index */
    return pstk__staging_create(w->staging, name, &w->fd, err);
}

static int flush(struct pstk__shard_writer *w, struct pstk_error *err)
{
    int r =
        pstk__staging_write(w->staging, w->name, w->fd, w->buffer, w->n_buffered, w->flushed, err);
    if (r < 0)
        return r;
    w->flushed += w->n_buffered;
    w->n_buffered = 0;
    return 0;
}

static int append(struct pstk__shard_writer *w, const void *data, uint64_t size,
                  struct pstk_error *err)
{
    if (size > BUFFER_SIZE - w->n_buffered) {
        int r = flush(w, err);
        if (r < 0)
            return r;
    }
    if (size >= BUFFER_SIZE) {
        int r = pstk__staging_write(w->staging, w->name, w->fd, data, size, w->flushed, err);
        w->flushed += r < 0 ? 0 : size;
        return r;
    }
    if (size > 0)
        memcpy(w->buffer + w->n_buffered, data, size);
    w->n_buffered += size;
    return 0;
}

/* Room for offsets[n] and the end behind it. */
static int reserve_offset(struct pstk__shard_writer *w, struct pstk_error *err)
{
    if (w->identity.n + 2 <= w->capacity)
        return 0;
    uint64_t capacity = w->capacity ? w->capacity * 2 : 1024;
    uint64_t *offsets = realloc(w->offsets, capacity * sizeof *offsets);
    if (!offsets)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_WRITE,
                          "%s: out of memory for the index of %s", w->staging->path, w->name);
    w->offsets = offsets;
    w->capacity = capacity;
    return 0;
}

int pstk__shard_writer_add(struct pstk__shard_writer *w, const struct pstk__field_view *views,
                           uint64_t size, struct pstk_error *err)
{
    int r = reserve_offset(w, err);
    if (r < 0)
        return r;
    uint64_t number = w->identity.n;
    w->offsets[number] = position(w);
    pstk__record_head(w->schema, w->tag, number, views, w->head);
    r = append(w, w->head, w->schema->head_size, err);
    for (uint32_t i = 0; r == 0 && i < w->schema->n_fields; i++)
        if (w->schema->entry[i] >= 0)
            r = append(w, views[i].data, views[i].stored_size, err);
    if (r < 0)
        return r;
    pstk__identity_add(&w->identity, w->schema, views);
    w->offsets[number + 1] = w->offsets[number] + size;
    return 0;
}

static int append_index(struct pstk__shard_writer *w, struct pstk__shard_header *h,
                        struct pstk_error *err)
{
    uint8_t page[PSTK__INDEX_PAGE] = {0};
    int r = append(w, page, h->index_offset - h->data_end, err);
    for (uint64_t p = 0; r == 0 && p < h->n_pages; p++) {
        uint64_t first = p * PSTK__PAGE_RECORDS, left = h->n_records - first;
        uint32_t n = left < PSTK__PAGE_RECORDS ? (uint32_t)left : PSTK__PAGE_RECORDS;
        uint32_t crc = pstk__page_encode(page, (uint32_t)p, w->tag, n, w->offsets + first);
        h->index_crc = pstk__shard_index_crc(h->index_crc, crc);
        r = append(w, page, sizeof page, err);
    }
    return r < 0 ? r : flush(w, err);
}

int pstk__shard_writer_finish(struct pstk__shard_writer *w, struct pstk__manifest_shard *shard,
                              struct pstk_error *err)
{
    uint8_t bytes[PSTK__HEADER_SIZE];
    struct pstk__shard_header h = {.schema_crc = w->schema->crc,
                                   .tag = w->tag,
                                   .n_records = w->identity.n,
                                   .data_end = position(w),
                                   .identity = {w->identity.lane[0], w->identity.lane[1]}};
    int r = pstk__shard_header_derive(&h, err);
    if (r == 0)
        r = append_index(w, &h, err);
    if (r < 0)
        return r;
    pstk__shard_header_encode(&h, bytes);
    r = pstk__staging_write(w->staging, w->name, w->fd, bytes, sizeof bytes, 0, err);
    if (r == 0)
        r = pstk__staging_publish(w->staging, w->name, &w->fd, err);
    shard->file = w->name;
    shard->n_records = h.n_records;
    shard->bytes = h.file_size;
    shard->header_crc = h.crc;
    shard->index_crc = h.index_crc;
    return r;
}
