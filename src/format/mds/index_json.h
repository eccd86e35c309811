/* SPDX-License-Identifier: Apache-2.0 */
/*
 * index_json: the index.json of a data set of MosaicML streaming, which lists its shards. It is
 * parsed shard by shard, each of bounded size. One thread.
 */
#ifndef PSTK_MDS_INDEX_JSON_H
#define PSTK_MDS_INDEX_JSON_H

#include "base/texts.h"
#include "format/mds/column.h"

#define PSTK__MDS_INDEX "index.json"
#define PSTK__MDS_INDEX_MAX (1u << 30) /* bytes */

struct pstk__mds_shard {
    uint64_t n_samples; /* below 2^32 */
    uint64_t size;      /* bytes of its file, below 2^32 */
    uint32_t packing;   /* 0, or for pstk__mds_packing: how its file may be compressed */
    uint32_t hash;      /* byte of texts: the name of a hash of its file; 0: none is listed */
    uint32_t digits;    /* byte of texts: that hash, as listed */
    uint32_t is_packed; /* 1: that is the file that is there */
};

/* One piece of memory. */
struct pstk__mds {
    struct pstk__mds_columns columns; /* of all shards */
    /* Set once the fields are known: */
    int32_t field[PSTK_MAX_FIELDS]; /* that a column is; -1: none */
    uint64_t mean[PSTK_MAX_FIELDS]; /* bytes of a column's value on average; 0: unknown */
    uint64_t n_shards;
    char *texts; /* after the shards; each with its 0 */
    struct pstk__mds_shard shards[];
};

/* 1: the first bytes of a file look like such an index.json. */
int pstk__mds_index_probe(const char *text, uint64_t size);
/* Parse a file's bytes. path: of the file, for messages. names: of the shards, below the folder of
 * the file; opened here. Adds to `digest` what the records depend on, except the names. Returns
 * owned (free()). EBADMSG, ENOTSUP; ENODATA: there is no shard. */
int pstk__mds_index_parse(struct pstk__mds **out, struct pstk__texts *names, uint64_t digest[2],
                          const char *text, uint64_t size, const char *path,
                          struct pstk_error *err);

/* A way to compress shards: what its files' names end with, and what unpacks them. */
struct pstk__mds_packing {
    const char *name;   /* as index.json has it */
    const char *ending; /* ".zstd" */
    uint32_t number;    /* of store/unpack/packing.h, or whole.h */
};
/* packing of a shard, not 0. */
const struct pstk__mds_packing *pstk__mds_packing(uint32_t packing);

#endif
