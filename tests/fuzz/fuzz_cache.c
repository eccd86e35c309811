/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_cache: any bytes as the header of an entry of a cache, as they are and with a right
 * checksum and digest. The first 8 bytes are the size of its file. What passes lies in the file,
 * and gives the same header when it is written again.
 */
#include "base/crc32c.h"
#include "base/little.h"
#include "store/cache/entry.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Give the header the facts and checksums that the parser asks for. */
static void mend(uint8_t *bytes)
{
    const char *made = (const char *)bytes + PSTK__CH_TEXT;
    const char *path = made + strnlen(made, PSTK__CACHE_MAX_MADE) + 1;
    pstk__put32(bytes + PSTK__CH_BLOCK, PSTK__CACHE_BLOCK);
    if (path <= made + PSTK__CACHE_MAX_MADE &&
        strnlen(path, PSTK__CACHE_MAX_PATH) < PSTK__CACHE_MAX_PATH) {
        uint64_t digest[2];
        const struct pstk__cache_key key = {.path = path,
                                            .made = made,
                                            .size = pstk__get64(bytes + PSTK__CH_FILE_SIZE),
                                            .changed_ns =
                                                (int64_t)pstk__get64(bytes + PSTK__CH_CHANGED),
                                            .begin = pstk__get64(bytes + PSTK__CH_BEGIN),
                                            .end = pstk__get64(bytes + PSTK__CH_END)};
        pstk__cache_key_digest(&key, digest);
        pstk__put64(bytes + PSTK__CH_DIGEST, digest[0]);
        pstk__put64(bytes + PSTK__CH_DIGEST + 8, digest[1]);
    }
    pstk__sidecar_seal(bytes, PSTK__CACHE_HEADER, PSTK__CACHE_MAGIC, PSTK__CACHE_VERSION);
}

static void check(const uint8_t *bytes, uint64_t file_size)
{
    static uint8_t again[PSTK__CACHE_HEADER];
    struct pstk__cache_header header, second;
    if (pstk__cache_header_parse(&header, bytes, file_size) < 0)
        return;
    const uint64_t table = pstk__cache_table_at(header.size);
    if (table < PSTK__CACHE_HEADER || table - PSTK__CACHE_HEADER < header.size ||
        table > file_size || 4 * pstk__cache_n_blocks(header.size) != file_size - table ||
        !pstk__cache_key_fits(&header.key))
        abort();
    pstk__cache_header_encode(&header, again);
    if (pstk__cache_header_parse(&second, again, file_size) < 0 || second.size != header.size ||
        second.table_crc != header.table_crc || !pstk__cache_key_equal(&second.key, &header.key))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 8)
        return 0;
    const uint64_t file_size = pstk__get64(data);
    const size_t n = size - 8 < PSTK__CACHE_HEADER ? size - 8 : PSTK__CACHE_HEADER;
    uint8_t *bytes = calloc(1, PSTK__CACHE_HEADER); /* ends where reads past it are seen */
    if (!bytes)
        return 0;
    memcpy(bytes, data + 8, n);
    check(bytes, file_size);
    mend(bytes);
    check(bytes, file_size);
    const uint64_t extent = pstk__get64(bytes + PSTK__CH_SIZE);
    check(bytes, extent <= PSTK__CACHE_MAX_SIZE ? pstk__cache_file_size(extent) : file_size);
    free(bytes);
    return 0;
}
