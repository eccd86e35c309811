/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tables: the Parquet tables of images that the Python package keeps rewritten in the folder
 * `tables` of a cache: PLACE/KEY.jsonl, with the types of its fields in PLACE/KEY.fields. PLACE and
 * KEY have 24 digits (bindings/python/penstock/tables.py). Files with other names are ignored.
 */
#ifndef PSTK_CACHE_TABLES_H
#define PSTK_CACHE_TABLES_H

#include <stdint.h>

#include <penstock/types.h>

#define PSTK__CACHE_TABLES "tables"

struct pstk__cache_tables {
    uint64_t n, bytes;  /* tables, and the bytes of their two files */
    uint64_t n_refused; /* files that could not be removed */
};

/* Count the tables of a cache. is_removing: remove them, and count only those removed. Skips
 * folders of other users, and folders that others can write to. 0 or a negative errno. */
int pstk__cache_tables_see(struct pstk__cache_tables *tables, const char *cache_path,
                           int is_removing);

#endif
