/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/shard_writer.h"

#include "base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUFFER_SIZE (1u << 20) /* bytes; sequential writes large enough for any device */

int pstk__shard_writer_open(struct pstk__shard_writer *writer, struct pstk__staging *staging,
                            const struct pstk__schema *schema, struct pstk_error *err)
{
    memset(writer, 0, sizeof *writer);
    writer->fd = -1;
    writer->staging = staging;
    writer->schema = schema;
    writer->buffer = malloc(BUFFER_SIZE);
    writer->head = malloc(schema->head_size);
    if (writer->buffer && writer->head)
        return 0;
    pstk__shard_writer_close(writer);
    return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_WRITE, "%s: out of memory", staging->path);
}

void pstk__shard_writer_close(struct pstk__shard_writer *writer)
{
    if (writer->fd >= 0)
        close(writer->fd);
    writer->fd = -1;
    free(writer->offsets);
    free(writer->buffer);
    free(writer->head);
    writer->offsets = NULL;
    writer->buffer = NULL;
    writer->head = NULL;
}

static uint64_t position(const struct pstk__shard_writer *writer)
{
    return writer->flushed + writer->n_buffered;
}

static uint64_t round_up(uint64_t n)
{
    return (n + PSTK__INDEX_PAGE - 1) / PSTK__INDEX_PAGE * PSTK__INDEX_PAGE;
}

int pstk__shard_writer_fits(const struct pstk__shard_writer *writer, uint64_t size,
                            uint64_t shard_size)
{
    if (writer->fd < 0 || writer->identity.n >= PSTK__MAX_SHARD_RECORDS)
        return 0;
    /* No overflow: position < 2^44, size < 2^32, and the index of 2^32 records takes 2^35 bytes. */
    uint64_t pages = pstk__shard_n_pages(writer->identity.n + 1);
    return round_up(position(writer) + size) + pages * PSTK__INDEX_PAGE <= shard_size;
}

int pstk__shard_writer_begin(struct pstk__shard_writer *writer, const char *name, uint32_t tag,
                             struct pstk_error *err)
{
    snprintf(writer->name, sizeof writer->name, "%s", name);
    writer->tag = tag;
    memset(&writer->identity, 0, sizeof writer->identity);
    writer->n_buffered = 0;
    writer->flushed = PSTK__HEADER_SIZE; /* the header is written last: it holds the index's CRC */
    return pstk__staging_create(writer->staging, name, &writer->fd, err);
}

static int flush(struct pstk__shard_writer *writer, struct pstk_error *err)
{
    int r = pstk__staging_write(writer->staging, writer->name, writer->fd, writer->buffer,
                                writer->n_buffered, writer->flushed, err);
    if (r < 0)
        return r;
    writer->flushed += writer->n_buffered;
    writer->n_buffered = 0;
    return 0;
}

static int append(struct pstk__shard_writer *writer, const void *data, uint64_t size,
                  struct pstk_error *err)
{
    if (size > BUFFER_SIZE - writer->n_buffered) {
        int r = flush(writer, err);
        if (r < 0)
            return r;
    }
    if (size >= BUFFER_SIZE) {
        int r = pstk__staging_write(writer->staging, writer->name, writer->fd, data, size,
                                    writer->flushed, err);
        writer->flushed += r < 0 ? 0 : size;
        return r;
    }
    if (size > 0)
        memcpy(writer->buffer + writer->n_buffered, data, size);
    writer->n_buffered += size;
    return 0;
}

/* Make room for the next record's offset and the end. */
static int reserve_offset(struct pstk__shard_writer *writer, struct pstk_error *err)
{
    if (writer->identity.n + 2 <= writer->capacity)
        return 0;
    uint64_t capacity = writer->capacity ? writer->capacity * 2 : 1024;
    uint64_t *offsets = realloc(writer->offsets, capacity * sizeof *offsets);
    if (!offsets)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_WRITE,
                          "%s: out of memory for the index of %s", writer->staging->path,
                          writer->name);
    writer->offsets = offsets;
    writer->capacity = capacity;
    return 0;
}

int pstk__shard_writer_add(struct pstk__shard_writer *writer, const struct pstk__field_view *views,
                           uint64_t size, struct pstk_error *err)
{
    static const uint8_t zeros[PSTK__RECORD_ALIGN];
    int r = reserve_offset(writer, err);
    if (r < 0)
        return r;
    uint64_t number = writer->identity.n;
    writer->offsets[number] = position(writer);
    pstk__record_head(writer->schema, writer->tag, number, views, writer->head);
    r = append(writer, writer->head, writer->schema->head_size, err);
    for (uint32_t i = 0; r == 0 && i < writer->schema->n_fields; i++) {
        if (writer->schema->entry[i] < 0)
            continue;
        const uint64_t stored = views[i].stored_size;
        r = append(writer, views[i].data, stored, err);
        if (r == 0)
            r = append(writer, zeros, pstk__record_aligned(stored) - stored, err);
    }
    if (r < 0)
        return r;
    pstk__identity_add(&writer->identity, writer->schema, views);
    writer->offsets[number + 1] = writer->offsets[number] + size;
    return 0;
}

static int append_index(struct pstk__shard_writer *writer, struct pstk__shard_header *h,
                        struct pstk_error *err)
{
    uint8_t page[PSTK__INDEX_PAGE] = {0};
    int r = append(writer, page, h->index_offset - h->data_end, err);
    for (uint64_t p = 0; r == 0 && p < h->n_pages; p++) {
        uint64_t first = p * PSTK__PAGE_RECORDS, left = h->n_records - first;
        uint32_t n = left < PSTK__PAGE_RECORDS ? (uint32_t)left : PSTK__PAGE_RECORDS;
        uint32_t crc =
            pstk__page_encode(page, (uint32_t)p, writer->tag, n, writer->offsets + first);
        h->index_crc = pstk__shard_index_crc(h->index_crc, crc);
        r = append(writer, page, sizeof page, err);
    }
    return r < 0 ? r : flush(writer, err);
}

int pstk__shard_writer_finish(struct pstk__shard_writer *writer, struct pstk__manifest_shard *shard,
                              struct pstk_error *err)
{
    uint8_t bytes[PSTK__HEADER_SIZE];
    struct pstk__shard_header h = {
        .schema_crc = writer->schema->crc,
        .tag = writer->tag,
        .n_records = writer->identity.n,
        .data_end = position(writer),
        .identity = {writer->identity.lane[0], writer->identity.lane[1]}};
    int r = pstk__shard_header_derive(&h, err);
    if (r == 0)
        r = append_index(writer, &h, err);
    if (r < 0)
        return r;
    pstk__shard_header_encode(&h, bytes);
    r = pstk__staging_write(writer->staging, writer->name, writer->fd, bytes, sizeof bytes, 0, err);
    if (r == 0)
        r = pstk__staging_publish(writer->staging, writer->name, &writer->fd, err);
    shard->file = writer->name;
    shard->n_records = h.n_records;
    shard->bytes = h.file_size;
    shard->header_crc = h.crc;
    shard->index_crc = h.index_crc;
    return r;
}
