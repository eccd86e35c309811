/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shard_writer: writes shard files, one after another: records, then the index and the header. All
 * writes except the header's are sequential, through one buffer. The index takes 8 bytes of memory
 * a record. One thread.
 */
#ifndef PSTK_SHARD_WRITER_H
#define PSTK_SHARD_WRITER_H

#include "format/pstk/manifest.h"
#include "record/record.h"
#include "format/pstk/shard.h"
#include "pack/staging.h"

/* Closed: all zero except fd, which is -1. A shard is open between begin and finish. */
struct pstk__shard_writer {
    struct pstk__staging *staging;      /* borrowed */
    const struct pstk__schema *schema;  /* borrowed */
    char name[PSTK__MAX_FILE_NAME + 1]; /* name of the open shard */
    int fd;                             /* owned; -1: no shard is open */
    uint32_t tag;
    struct pstk__identity identity; /* identity of the open shard; identity.n counts its records */
    uint64_t *offsets;              /* file offset of each record, then the end; owned */
    uint64_t capacity;              /* capacity of `offsets` */
    uint8_t *buffer;                /* owned */
    uint64_t n_buffered;            /* bytes in buffer */
    uint64_t flushed;               /* file offset of the buffer's first byte */
    uint8_t *head;                  /* owned; schema->head_size bytes */
};

int pstk__shard_writer_open(struct pstk__shard_writer *writer, struct pstk__staging *staging,
                            const struct pstk__schema *schema, struct pstk_error *err);
/* Return 1 if a shard is open and its file stays within shard_size with one more record of `size`
 * bytes. */
int pstk__shard_writer_fits(const struct pstk__shard_writer *writer, uint64_t size,
                            uint64_t shard_size);
int pstk__shard_writer_begin(struct pstk__shard_writer *writer, const char *name, uint32_t tag,
                             struct pstk_error *err);
/* Append a record. views: as stored, with data. size: bytes of the whole record. */
int pstk__shard_writer_add(struct pstk__shard_writer *writer, const struct pstk__field_view *views,
                           uint64_t size, struct pstk_error *err);
/* Pad, write index and header, sync, rename. Fills in file, n_records, bytes and the CRCs of
 * *shard; shard->file borrows writer->name until the next begin. */
int pstk__shard_writer_finish(struct pstk__shard_writer *writer, struct pstk__manifest_shard *shard,
                              struct pstk_error *err);
/* Close the file and free. The staging removes an unfinished shard. */
void pstk__shard_writer_close(struct pstk__shard_writer *writer);

#endif
