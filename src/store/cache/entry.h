/* SPDX-License-Identifier: Apache-2.0 */
/*
 * entry: the bytes of an entry's file. A header of 8 KiB, which holds the whole key; the data; from
 * the next multiple of 8, one CRC32C for each block of the data. Integers are little-endian. Pure.
 *
 *   0    CRC32C of bytes 4 to 8191         40   begin, end of the key
 *   4    version                           56   two words: digest of the key
 *   8    "PSTKCACH"                        72   bytes of a block
 *   16   bytes of the data                 76   CRC32C of the CRCs of blocks
 *   24   size of the key's file            80   `made` of the key, 0, `path` of the key, 0,
 *   32   changed_ns of the key                  and zeros
 *
 * The CRC of block b is that of b as 8 bytes, then the block: a block in another's place is seen.
 */
#ifndef PSTK_CACHE_ENTRY_H
#define PSTK_CACHE_ENTRY_H

#include "store/cache/cache.h"
#include "store/sidecar.h"

#define PSTK__CACHE_MAGIC "PSTKCACH"
#define PSTK__CACHE_VERSION 1
#define PSTK__CACHE_HEADER 8192
#define PSTK__CACHE_BLOCK 4096
#define PSTK__CACHE_MAX_SIZE (UINT64_C(1) << 60) /* bytes of an entry's data */
#define PSTK__CACHE_MAX_PATH 4096                /* max bytes of a key's path, its 0 included */
#define PSTK__CACHE_MAX_MADE 256                 /* max bytes of `made`, its 0 included */
#define PSTK__CACHE_NAME 33                      /* bytes of an entry's name: 32 digits, 0 */

/* Positions in the header, after those of every sidecar. */
enum {
    PSTK__CH_SIZE = PSTK__SIDECAR_OWN,
    PSTK__CH_FILE_SIZE = 24,
    PSTK__CH_CHANGED = 32,
    PSTK__CH_BEGIN = 40,
    PSTK__CH_END = 48,
    PSTK__CH_DIGEST = 56,
    PSTK__CH_BLOCK = 72,
    PSTK__CH_TABLE_CRC = 76,
    PSTK__CH_TEXT = 80,
};

struct pstk__cache_header {
    struct pstk__cache_key key; /* key, whose texts lie in the bytes of the header */
    uint64_t size;              /* bytes of the data */
    uint32_t table_crc;
};

/* 1: a header has room for the key, and its parts are not NULL. */
int pstk__cache_key_fits(const struct pstk__cache_key *key);
int pstk__cache_key_equal(const struct pstk__cache_key *a, const struct pstk__cache_key *b);
void pstk__cache_key_digest(const struct pstk__cache_key *key, uint64_t digest[2]);
/* Write the name of the key's file. Two keys may have one name: the header decides. */
void pstk__cache_key_name(const struct pstk__cache_key *key, char name[PSTK__CACHE_NAME]);

/* Layout of an entry with `size` <= PSTK__CACHE_MAX_SIZE bytes of data: number of blocks, begin of
 * their CRCs in the file, and bytes of the file. */
uint64_t pstk__cache_n_blocks(uint64_t size);
uint64_t pstk__cache_table_at(uint64_t size);
uint64_t pstk__cache_file_size(uint64_t size);
/* Return the number from which the CRC of a block continues. */
uint32_t pstk__cache_block_seed(uint64_t block);

/* Write a header. The key must fit, and size <= PSTK__CACHE_MAX_SIZE. */
void pstk__cache_header_encode(const struct pstk__cache_header *header,
                               uint8_t bytes[PSTK__CACHE_HEADER]);
/* Read the header of a file of file_size bytes. 0; -EBADMSG: it is damaged, or is no header. */
int pstk__cache_header_parse(struct pstk__cache_header *header,
                             const uint8_t bytes[PSTK__CACHE_HEADER], uint64_t file_size);

#endif
