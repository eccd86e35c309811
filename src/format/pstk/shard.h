/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shard: encodes and checks the header and the index pages of a shard file. Pure: no I/O, no
 * allocation. FORMAT.md describes every byte. Checks trust nothing: they compare the checksum
 * first, then every value with the others and with the facts that the caller has.
 */
#ifndef PSTK_SHARD_H
#define PSTK_SHARD_H

#include "record/schema.h"

#define PSTK__HEADER_SIZE 4096            /* bytes of the header, and begin of the first record */
#define PSTK__INDEX_PAGE 4096             /* bytes of an index page, and alignment of the file */
#define PSTK__PAGE_RECORDS 509            /* records that one index page lists */
#define PSTK__MAX_SHARD_SIZE (1ull << 44) /* max bytes of a shard file */
#define PSTK__MAX_SHARD_RECORDS 0xffffffffull /* max records of a shard */

/* The values of a header. Invariants once checked: index_offset = data_end rounded up to 4096,
 * n_pages = ceil(n_records / 509), file_size = index_offset + 4096 * n_pages. */
struct pstk__shard_header {
    uint32_t schema_crc;
    uint32_t tag;          /* tag of this shard, repeated in its pages and records */
    uint64_t n_records;    /* 1 .. 2^32-1 */
    uint64_t data_end;     /* end of the last record, bytes; a multiple of 16 */
    uint64_t index_offset; /* begin of index page 0, bytes */
    uint64_t file_size;    /* bytes */
    uint64_t n_pages;
    uint32_t index_crc;   /* CRC of the page CRCs in order, see pstk__page_crc */
    uint32_t crc;         /* CRC of the header: its last word */
    uint64_t identity[2]; /* identity lanes of the shard's records, < 2^61 - 1 */
};

/* Return the index pages of a shard with this many records. */
uint64_t pstk__shard_n_pages(uint64_t n_records);
/* Return the tag of a writer's shard number `sequence`, from 0. maker: the text of its part,
 * "part/n_parts", or that of its task (pstk__task_text). content: CRC of its first record, so that
 * a reader recognises a block of another data set's shard with the same number. */
uint32_t pstk__shard_tag(const char *maker, uint64_t sequence, uint32_t content);
/* Derive index_offset, n_pages and file_size from n_records and data_end. EFBIG: over 16 TiB. */
int pstk__shard_header_derive(struct pstk__shard_header *h, struct pstk_error *err);
/* Write 4096 bytes; sets h->crc and returns it. */
uint32_t pstk__shard_header_encode(struct pstk__shard_header *h, void *bytes);
/* Check 4096 bytes, and read them into *h. name: name of the shard file, for messages. EBADMSG:
 * damaged; ENOTSUP: intact, but of another version or with unknown flags. */
int pstk__shard_header_check(struct pstk__shard_header *h, const void *bytes, const char *name,
                             struct pstk_error *err);

/* The facts about an index page that are known before its bytes are read. */
struct pstk__page_location {
    const char *shard;     /* name of the file, for messages */
    uint32_t tag;          /* tag of the shard */
    uint32_t page;         /* number, from 0 */
    uint64_t n_records;    /* records of the shard */
    uint64_t data_end;     /* end of the shard's data */
    uint64_t index_offset; /* begin of the shard's index, for messages */
    uint32_t head_size;    /* min bytes of a record */
};

/* Write a page of n records, 1 .. 509, with offsets[0..n]; returns its CRC. */
uint32_t pstk__page_encode(void *bytes, uint32_t page, uint32_t tag, uint32_t n,
                           const uint64_t *offsets);
/* Check the 4096 bytes of a page: checksum, number, tag, count, every offset. */
int pstk__page_check(const struct pstk__page_location *location, const void *bytes,
                     struct pstk_error *err);
/* Return the CRC that a page carries in its first word. The index CRC is the CRC of these, each as
 * 4 little-endian bytes, in page order: pstk__shard_index_crc appends one, and begins with 0. */
uint32_t pstk__page_crc(const void *bytes);
uint32_t pstk__shard_index_crc(uint32_t index_crc, uint32_t page_crc);
/* Set the extent of record `record` (within the shard) from its checked page. */
void pstk__page_extent(const void *bytes, uint64_t record, uint64_t *offset, uint64_t *size);
/* Return offset i (0..n) of a checked page: offsets 0 and n join a page to its neighbours. */
uint64_t pstk__page_offset(const void *bytes, uint32_t i);

#endif
