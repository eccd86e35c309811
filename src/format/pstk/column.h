/* SPDX-License-Identifier: Apache-2.0 */
/*
 * column: encodes and checks the header and the pages of a column file, which holds one scalar for
 * each record of a shard. Pure: no I/O, no allocation. FORMAT.md describes every byte. Checks trust
 * nothing: they compare the checksum first, then every value with the others and with the facts
 * that the caller has.
 */
#ifndef PSTK_COLUMN_H
#define PSTK_COLUMN_H

#include <penstock/format.h>

#define PSTK__COLUMN_PAGE 4096   /* bytes of the header, and of a page of values */
#define PSTK__COLUMN_VALUES 4080 /* bytes of values in a full page; all dtypes divide it */

/* The values of a header. Invariants once checked: n_pages = ceil(n_records / values of a page),
 * file_size = 4096 * (1 + n_pages). */
struct pstk__column_header {
    uint32_t tag;                    /* tag of the shard */
    uint32_t shard_crc;              /* CRC of the shard's header */
    uint64_t n_records;              /* 1 .. 2^32-1 */
    uint32_t dtype;                  /* enum pstk_dtype */
    uint32_t pages_crc;              /* CRC of the page CRCs in order */
    uint64_t n_pages;                /* derived */
    uint64_t file_size;              /* bytes, derived */
    uint32_t page_tag;               /* tag of its pages, derived */
    uint32_t crc;                    /* CRC of the header: its last word */
    char name[PSTK_MAX_COLUMN_NAME]; /* name of the column */
};

/* 1: `name` may name a column: 1 to 79 characters of [A-Za-z0-9_.-]. column_text_ok, 1: `text` has
 * 1 to `max` of these characters. */
int pstk__column_name_ok(const char *name);
int pstk__column_text_ok(const char *text, size_t max);
/* Return the values of a full page. `dtype` must be valid. */
uint32_t pstk__column_per_page(uint32_t dtype);
/* Return the bytes of the file for a shard of n_records < 2^32 records. */
uint64_t pstk__column_file_size(uint64_t n_records, uint32_t dtype);
/* Derive n_pages and file_size from n_records and dtype, and page_tag from tag, name and dtype. */
void pstk__column_header_derive(struct pstk__column_header *h);
/* Write 4096 bytes; sets h->crc and returns it. */
uint32_t pstk__column_header_encode(struct pstk__column_header *h, void *bytes);
/* Check 4096 bytes, and read them into *h. `file`: the file's name, for messages. EBADMSG: damaged;
 * ENOTSUP: intact, but of another version, with unknown flags or dtype. */
int pstk__column_header_check(struct pstk__column_header *h, const void *bytes, const char *file,
                              struct pstk_error *err);

/* The facts about a page that are known before its bytes are read. */
struct pstk__column_page {
    const char *file; /* name of the file, for messages */
    uint32_t tag;     /* tag of the column's pages */
    uint32_t page;    /* number, from 0 */
    uint32_t n;       /* values of the page */
    uint32_t size;    /* bytes of a value */
};

/* Return the facts about page number `page` < n_pages of a file with this checked header. */
struct pstk__column_page pstk__column_page_of(const struct pstk__column_header *h, const char *file,
                                              uint64_t page);
/* Write one page of page->n values; returns its CRC. */
uint32_t pstk__column_page_encode(void *bytes, const struct pstk__column_page *page,
                                  const void *values);
/* Check the 4096 bytes of a page: checksum, number, tag, count, zeros. Sets *values to point into
 * `bytes`. */
int pstk__column_page_check(const struct pstk__column_page *page, const void *bytes,
                            const void **values, struct pstk_error *err);
/* Return the CRC that a page carries. pages_crc appends one to the CRC of page CRCs, which begins
 * with 0. */
uint32_t pstk__column_page_crc(const void *bytes);
uint32_t pstk__column_pages_crc(uint32_t pages_crc, uint32_t page_crc);

#endif
