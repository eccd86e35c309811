/* SPDX-License-Identifier: Apache-2.0 */
/* unpack_fixture: compressed files in a directory, and the store in which they look unpacked. */
#ifndef PSTK_UNPACK_FIXTURE_H
#define PSTK_UNPACK_FIXTURE_H

#include "store/unpack/unpack.h"
#include "support/fixture.h"

#include <zlib.h>
#include <zstd.h>

struct packed_bytes {
    uint8_t *data; /* owned */
    size_t size, capacity;
};

static inline void packed_append(struct packed_bytes *packed, const void *data, size_t size)
{
    if (packed->size + size >= packed->capacity) { /* twice as much: thousands of pieces follow */
        packed->capacity = 2 * (packed->size + size) + 1;
        packed->data = realloc(packed->data, packed->capacity);
    }
    if (size)
        memcpy(packed->data + packed->size, data, size);
    packed->size += size;
}

/* A gzip member. */
static inline void packed_gzip(struct packed_bytes *packed, const void *data, size_t size,
                               int level, int strategy)
{
    z_stream zlib = {0};
    deflateInit2(&zlib, level, Z_DEFLATED, 31, 8, strategy);
    const size_t max = deflateBound(&zlib, size) + 64;
    uint8_t *out = malloc(max);
    zlib.next_in = (z_const Bytef *)(uintptr_t)data;
    zlib.avail_in = (uInt)size;
    zlib.next_out = out;
    zlib.avail_out = (uInt)max;
    deflate(&zlib, Z_FINISH);
    packed_append(packed, out, zlib.total_out);
    deflateEnd(&zlib);
    free(out);
}

/* A zstd frame. */
static inline void packed_zstd(struct packed_bytes *packed, const void *data, size_t size)
{
    const size_t max = ZSTD_compressBound(size);
    uint8_t *out = malloc(max);
    packed_append(packed, out, ZSTD_compress(out, max, data, size, 3));
    free(out);
}

static inline void packed_write(const char *path, const void *data, size_t size)
{
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(data, 1, size, file) != size || fclose(file) != 0)
        abort();
}

/* Return bytes of which half do not compress; the same for the same seed. */
static inline uint8_t *plain_bytes(size_t size, uint64_t seed)
{
    uint8_t *data = malloc(size + 8);
    uint64_t x = seed * 0x9e3779b97f4a7c15ull + 1;
    for (size_t i = 0; i < size; i += 8) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        const uint64_t word = x >> 60 & 1 ? x : 0x6f6f6f2061616161ull + (x & 3);
        memcpy(data + i, &word, 8);
    }
    return data;
}

/* Open the files of a folder. */
static inline int unpack_open_names(struct pstk__unpack **out, const char *folder,
                                    const char *const *names, uint32_t n, const char *cache,
                                    struct pstk_error *err)
{
    struct pstk__texts texts = {0};
    uint64_t *sizes = calloc(n, sizeof *sizes);
    int64_t *changed_ns = calloc(n, sizeof *changed_ns);
    pstk__texts_open(&texts, n, 64 * n);
    int r = 0;
    for (uint32_t i = 0; i < n; i++) {
        char path[4096];
        struct pstk__file file;
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        pstk__texts_add(&texts, names[i], strlen(names[i]));
        if (r == 0)
            r = pstk__store_local.open(&pstk__store_local, &file, path);
        if (r == 0) {
            file.store->stat(&file, &sizes[i], &changed_ns[i]);
            pstk__file_end(&file);
        }
    }
    const struct pstk__unpack_files files = {.store = &pstk__store_local,
                                             .folder = folder,
                                             .names = &texts,
                                             .sizes = sizes,
                                             .changed_ns = changed_ns,
                                             .cache = cache,
                                             .format = "test",
                                             .n_threads = 2};
    if (r == 0)
        r = pstk__unpack_open(out, &files, err);
    pstk__texts_close(&texts);
    free(sizes);
    free(changed_ns);
    return r;
}

#endif
