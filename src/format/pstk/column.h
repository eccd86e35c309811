/* SPDX-License-Identifier: Apache-2.0 */
/*
 * column: the header and the pages of a column file, to bytes and from bytes: one scalar for each
 * record of a shard. Pure: no I/O, no allocation. Byte by byte in FORMAT.md. Checks trust nothing:
 * the checksum comes first, then every value against the others and against what is known from
 * elsewhere.
 */
#ifndef PSTK_COLUMN_H
#define PSTK_COLUMN_H

#include <penstock/format.h>

#define PSTK__COLUMN_PAGE 4096   /* bytes of the header, and of a page of values */
#define PSTK__COLUMN_VALUES 4080 /* bytes of values in a full page; all dtypes divide it */

/* A header's content. Invariants once checked: n_pages = ceil(n_records / values of a page),
 * file_size = 4096 * (1 + n_pages). */
struct pstk__column_header {
    uint32_t tag;                    /* of the shard */
    uint32_t shard_crc;              /* of the shard's header */
    uint64_t n_records;              /* 1 .. 2^32-1 */
    uint32_t dtype;                  /* enum pstk_dtype */
    uint32_t pages_crc;              /* CRC of the page CRCs in order */
    uint64_t n_pages;                /* derived */
    uint64_t file_size;              /* bytes, derived */
    uint32_t page_tag;               /* of its pages, derived */
    uint32_t crc;                    /* of the header: its last word */
    char name[PSTK_MAX_COLUMN_NAME]; /* of the column */
};

/* 1 when `name` may name a column: [A-Za-z0-9_.-], 1 to 79 of them. And 1 when `text` is 1 to
 * `max` of these characters. */
int pstk__column_name_ok(const char *name);
int pstk__column_text_ok(const char *text, size_t max);
/* Values of a full page. `dtype` is one. */
uint32_t pstk__column_per_page(uint32_t dtype);
/* Bytes of the file of a shard of n_records < 2^32 records. */
uint64_t pstk__column_file_size(uint64_t n_records, uint32_t dtype);
/* Derive n_pages and file_size from n_records and dtype; page_tag from tag, name and dtype. */
void pstk__column_header_derive(struct pstk__column_header *h);
/* Write 4096 bytes; sets h->crc and returns it. */
uint32_t pstk__column_header_encode(struct pstk__column_header *h, void *bytes);
/* Check 4096 bytes and read them into *h. `file` is the file's name, for messages. EBADMSG:
 * damaged; ENOTSUP: intact, but of another version, with unknown flags or dtype. */
int pstk__column_header_check(struct pstk__column_header *h, const void *bytes, const char *file,
                              struct pstk_error *err);

/* What is known of a page before its bytes are seen. */
struct pstk__column_page {
    const char *file; /* name, for messages */
    uint32_t tag;     /* of the column's pages */
    uint32_t page;    /* number, from 0 */
    uint32_t n;       /* values */
    uint32_t size;    /* bytes of a value */
};

/* The page number `page` < n_pages of a file with this checked header. */
struct pstk__column_page pstk__column_page_of(const struct pstk__column_header *h, const char *file,
                                              uint64_t page);
/* Write one page of page->n values; returns its CRC. */
uint32_t pstk__column_page_encode(void *bytes, const struct pstk__column_page *page,
                                  const void *values);
/* Check the 4096 bytes of a page: checksum, number, tag, count, zeros. Sets *values, in `bytes`. */
int pstk__column_page_check(const struct pstk__column_page *page, const void *bytes,
                            const void **values, struct pstk_error *err);
/* The CRC that a page carries, and the pages CRC with one more appended (begin with 0). */
uint32_t pstk__column_page_crc(const void *bytes);
uint32_t pstk__column_pages_crc(uint32_t pages_crc, uint32_t page_crc);

#endif
