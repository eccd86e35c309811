/* SPDX-License-Identifier: Apache-2.0 */
#include "store/cache/entry.h"

#include "base/crc32c.h"
#include "base/little.h"
#include "base/random.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* With the positions above: the texts of any key that fits have room. */
_Static_assert(PSTK__CH_TEXT + PSTK__CACHE_MAX_PATH + PSTK__CACHE_MAX_MADE <= PSTK__CACHE_HEADER,
               "the texts of a key fit into a header");

int pstk__cache_key_fits(const struct pstk__cache_key *key)
{
    return key->path && key->made && strnlen(key->path, PSTK__CACHE_MAX_PATH) &&
           strnlen(key->path, PSTK__CACHE_MAX_PATH) < PSTK__CACHE_MAX_PATH &&
           strnlen(key->made, PSTK__CACHE_MAX_MADE) &&
           strnlen(key->made, PSTK__CACHE_MAX_MADE) < PSTK__CACHE_MAX_MADE;
}

int pstk__cache_key_equal(const struct pstk__cache_key *a, const struct pstk__cache_key *b)
{
    return a->size == b->size && a->changed_ns == b->changed_ns && a->begin == b->begin &&
           a->end == b->end && strcmp(a->made, b->made) == 0 && strcmp(a->path, b->path) == 0;
}

static void digest_word(uint64_t digest[2], uint64_t word)
{
    for (uint32_t lane = 0; lane < 2; lane++)
        digest[lane] = pstk__mix64((digest[lane] + lane) * 0x9e3779b97f4a7c15u + word + lane);
}

/* Add a text and its length, so that "ab", "c" differs from "a", "bc". */
static void digest_text(uint64_t digest[2], const char *text)
{
    const size_t size = strlen(text);
    for (size_t at = 0; at < size; at += 8) {
        uint8_t word[8] = {0};
        memcpy(word, text + at, size - at < 8 ? size - at : 8);
        digest_word(digest, pstk__get64(word));
    }
    digest_word(digest, size);
}

void pstk__cache_key_digest(const struct pstk__cache_key *key, uint64_t digest[2])
{
    digest[0] = PSTK__CACHE_VERSION;
    digest[1] = 0;
    digest_word(digest, key->size);
    digest_word(digest, (uint64_t)key->changed_ns);
    digest_word(digest, key->begin);
    digest_word(digest, key->end);
    digest_text(digest, key->made);
    digest_text(digest, key->path);
}

void pstk__cache_key_name(const struct pstk__cache_key *key, char name[PSTK__CACHE_NAME])
{
    uint64_t digest[2];
    pstk__cache_key_digest(key, digest);
    snprintf(name, PSTK__CACHE_NAME, "%016" PRIx64 "%016" PRIx64, digest[0], digest[1]);
}

uint64_t pstk__cache_n_blocks(uint64_t size)
{
    return size / PSTK__CACHE_BLOCK + (size % PSTK__CACHE_BLOCK != 0);
}

uint64_t pstk__cache_table_at(uint64_t size)
{
    return PSTK__CACHE_HEADER + (size + 7) / 8 * 8;
}

uint64_t pstk__cache_file_size(uint64_t size)
{
    return pstk__cache_table_at(size) + 4 * pstk__cache_n_blocks(size);
}

uint32_t pstk__cache_block_seed(uint64_t block)
{
    uint8_t bytes[8];
    pstk__put64(bytes, block);
    return pstk__crc32c(0, bytes, sizeof bytes);
}

void pstk__cache_header_encode(const struct pstk__cache_header *header,
                               uint8_t bytes[PSTK__CACHE_HEADER])
{
    const struct pstk__cache_key *key = &header->key;
    const size_t made = strlen(key->made) + 1, path = strlen(key->path) + 1;
    uint64_t digest[2];
    pstk__cache_key_digest(key, digest);
    memset(bytes, 0, PSTK__CACHE_HEADER);
    pstk__put64(bytes + PSTK__CH_SIZE, header->size);
    pstk__put64(bytes + PSTK__CH_FILE_SIZE, key->size);
    pstk__put64(bytes + PSTK__CH_CHANGED, (uint64_t)key->changed_ns);
    pstk__put64(bytes + PSTK__CH_BEGIN, key->begin);
    pstk__put64(bytes + PSTK__CH_END, key->end);
    pstk__put64(bytes + PSTK__CH_DIGEST, digest[0]);
    pstk__put64(bytes + PSTK__CH_DIGEST + 8, digest[1]);
    pstk__put32(bytes + PSTK__CH_BLOCK, PSTK__CACHE_BLOCK);
    pstk__put32(bytes + PSTK__CH_TABLE_CRC, header->table_crc);
    memcpy(bytes + PSTK__CH_TEXT, key->made, made);
    memcpy(bytes + PSTK__CH_TEXT + made, key->path, path);
    pstk__sidecar_seal(bytes, PSTK__CACHE_HEADER, PSTK__CACHE_MAGIC, PSTK__CACHE_VERSION);
}

/* Read the key, whose texts end in the header. 0 or -EBADMSG. */
static int parse_key(struct pstk__cache_key *key, const uint8_t bytes[PSTK__CACHE_HEADER])
{
    const char *made = (const char *)bytes + PSTK__CH_TEXT;
    const char *path = made + strnlen(made, PSTK__CACHE_MAX_MADE) + 1;
    if (path > made + PSTK__CACHE_MAX_MADE ||
        strnlen(path, PSTK__CACHE_MAX_PATH) == PSTK__CACHE_MAX_PATH)
        return -EBADMSG;
    *key = (struct pstk__cache_key){.path = path,
                                    .made = made,
                                    .size = pstk__get64(bytes + PSTK__CH_FILE_SIZE),
                                    .changed_ns = (int64_t)pstk__get64(bytes + PSTK__CH_CHANGED),
                                    .begin = pstk__get64(bytes + PSTK__CH_BEGIN),
                                    .end = pstk__get64(bytes + PSTK__CH_END)};
    uint64_t digest[2];
    pstk__cache_key_digest(key, digest);
    return pstk__cache_key_fits(key) && digest[0] == pstk__get64(bytes + PSTK__CH_DIGEST) &&
                   digest[1] == pstk__get64(bytes + PSTK__CH_DIGEST + 8)
               ? 0
               : -EBADMSG;
}

int pstk__cache_header_parse(struct pstk__cache_header *header,
                             const uint8_t bytes[PSTK__CACHE_HEADER], uint64_t file_size)
{
    const uint64_t size = pstk__get64(bytes + PSTK__CH_SIZE);
    *header = (struct pstk__cache_header){.size = size,
                                          .table_crc = pstk__get32(bytes + PSTK__CH_TABLE_CRC)};
    if (pstk__sidecar_check(bytes, PSTK__CACHE_HEADER, PSTK__CACHE_MAGIC, PSTK__CACHE_VERSION) ||
        pstk__get32(bytes + PSTK__CH_BLOCK) != PSTK__CACHE_BLOCK || size > PSTK__CACHE_MAX_SIZE ||
        file_size != pstk__cache_file_size(size))
        return -EBADMSG;
    return parse_key(&header->key, bytes);
}
