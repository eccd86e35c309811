/* SPDX-License-Identifier: Apache-2.0 */
/*
 * index_json: the index.json of a data set of MosaicML streaming, which lists its shards. The
 * parser makes a tree of one shard at a time, with a bounded number of values. One thread.
 */
#ifndef PSTK_MDS_INDEX_JSON_H
#define PSTK_MDS_INDEX_JSON_H

#include "base/texts.h"
#include "format/mds/column.h"

#define PSTK__MDS_INDEX "index.json"
#define PSTK__MDS_INDEX_MAX (1u << 30) /* max bytes of the file */

struct pstk__mds_shard {
    uint64_t n_samples; /* below 2^32 */
    uint64_t size;      /* bytes of its uncompressed file, below 2^32 */
    uint32_t packing; /* compression that its file may have, for pstk__mds_packing; 0: no known one
                       */
    uint32_t hash;   /* name of a hash of its uncompressed file, byte of texts; 0: none is listed */
    uint32_t digits; /* digits of that hash as listed, byte of texts */
    uint32_t is_packed; /* 1: the compressed file is the one that exists */
};

/* A parsed index.json, in one block of memory. */
struct pstk__mds {
    struct pstk__mds_columns columns; /* columns of all shards */
    /* Set once the fields are known. */
    int32_t field[PSTK_MAX_FIELDS]; /* field of each column; -1: none */
    uint64_t mean[PSTK_MAX_FIELDS]; /* mean bytes of a column's value; 0: unknown */
    uint64_t n_shards;
    char *texts; /* texts after the shards, each with its 0 */
    struct pstk__mds_shard shards[];
};

/* 1: the first bytes of a file look like such an index.json. */
int pstk__mds_index_probe(const char *text, uint64_t size);
/* Parse the bytes of a file. path: path of the file, for messages. names: opened here; gets the
 * names of the shards' files, below the folder of the file. Adds to `digest` the columns, and
 * samples and bytes of each shard, which the records depend on. Returns owned (free()). EBADMSG,
 * ENOTSUP, EFBIG, ENOMEM; ENODATA: there is no shard. */
int pstk__mds_index_parse(struct pstk__mds **out, struct pstk__texts *names, uint64_t digest[2],
                          const char *text, uint64_t size, const char *path,
                          struct pstk_error *err);

/* A compression of shards: the ending of their files' names, and the number of the packing that
 * unpacks them. */
struct pstk__mds_packing {
    const char *name;   /* name in index.json */
    const char *ending; /* ".zstd" */
    uint32_t number;    /* number in store/unpack/packing.h or whole.h */
};
/* Return the packing of a shard; `packing` is its member, not 0. */
const struct pstk__mds_packing *pstk__mds_packing(uint32_t packing);

#endif
