/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_unpack: any bytes as an access points file, with right checksums too, and as a compressed
 * file. What an access points file says lies in the file; a compressed file is refused, or every
 * byte of it is read.
 */
#include "base/crc32c.h"
#include "base/little.h"
#include "store/unpack/layout.h"
#include "store/unpack/pass.h"
#include "store/unpack/span.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAX_SIZE (1 << 16)

static void write_all(const char *path, const uint8_t *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(bytes, 1, size, file) != size || fclose(file) != 0)
        abort();
}

/* Look at every place of an access points file that opens. */
static void look_at_points(const char *path, uint32_t head_crc)
{
    struct pstk__access_points points;
    static uint8_t dictionary[PSTK__DICTIONARY];
    if (pstk__access_points_open(&points, path, head_crc) < 0)
        return;
    for (uint64_t k = 0; k < points.n_cells && k < 300; k++) {
        struct pstk__access_point point;
        uint32_t crc;
        if (k * PSTK__SPACING >= points.of.unpacked ||
            pstk__access_points_find(&points, k * PSTK__SPACING, &point) < 0)
            continue;
        if (point.end > points.of.unpacked || point.begin > k * PSTK__SPACING ||
            point.dictionary_kept > PSTK__DICTIONARY || point.packed > points.of.size)
            abort();
        (void)pstk__access_points_dictionary(&points, &point, dictionary);
        (void)pstk__access_points_crc(&points, point.chunk, &crc);
    }
    pstk__access_points_close(&points);
}

/* Give the header, its parts and the first cells what open and find ask for. */
static void mend(uint8_t *bytes, uint64_t size)
{
    const uint64_t unpacked = pstk__get64(bytes + PSTK__PH_UNPACKED) % (64ull * PSTK__SPACING);
    const uint64_t n_cells = (unpacked + PSTK__SPACING - 1) / PSTK__SPACING + 1;
    if (size < PSTK__ACCESS_POINTS_HEADER + n_cells * PSTK__PC_ALL)
        return;
    const uint64_t cells = (size - n_cells * PSTK__PC_ALL) / 2 > PSTK__ACCESS_POINTS_HEADER
                               ? (size - n_cells * PSTK__PC_ALL) / 2
                               : PSTK__ACCESS_POINTS_HEADER;
    const uint64_t chunks = cells + n_cells * PSTK__PC_ALL;
    pstk__put32(bytes + PSTK__PH_PACKING, 1 + bytes[PSTK__PH_PACKING] % 2);
    pstk__put64(bytes + PSTK__PH_UNPACKED, unpacked);
    pstk__put64(bytes + PSTK__PH_N_CELLS, n_cells);
    pstk__put64(bytes + PSTK__PH_CELLS, cells);
    pstk__put64(bytes + PSTK__PH_N_CHUNKS, (size - chunks) / PSTK__ACCESS_POINTS_CRC);
    pstk__put64(bytes + PSTK__PH_CHUNKS, chunks);
    pstk__put64(bytes + PSTK__PH_FILE, size);
    for (uint64_t k = 0; k < n_cells; k++) {
        uint8_t *cell = bytes + cells + k * PSTK__PC_ALL;
        pstk__put32(cell + PSTK__PC_NUMBER, (uint32_t)k);
        pstk__put32(cell, pstk__crc32c(0, cell + 4, PSTK__PC_ALL - 4));
    }
    pstk__sidecar_seal(bytes, PSTK__ACCESS_POINTS_HEADER, PSTK__SIDECAR_POINTS_MAGIC,
                       PSTK__ACCESS_POINTS_VERSION);
}

static void as_points(const char *path, const uint8_t *data, size_t size)
{
    static uint8_t bytes[MAX_SIZE];
    if (size < PSTK__ACCESS_POINTS_HEADER)
        return;
    memcpy(bytes, data, size);
    write_all(path, bytes, size);
    look_at_points(path, pstk__get32(bytes));
    mend(bytes, size);
    write_all(path, bytes, size);
    look_at_points(path, pstk__get32(bytes));
}

/* Read all bytes of a file whose pass was well: from each point, and through. */
static void read_all(const struct pstk__pass *pass, const struct pstk__file *file)
{
    struct pstk__access_points points;
    struct pstk__span span;
    struct pstk__damage damage = {0};
    const uint32_t packings = 1u << pass->of.packing;
    uint8_t *memory = aligned_alloc(64, (pstk__span_memory(packings) + 63) / 64 * 64);
    uint8_t *to = malloc(PSTK__CHUNK);
    if (!memory || !to || pstk__span_init(&span, memory, packings) < 0 ||
        pstk__access_points_open(&points, pass->points, pass->head_crc) < 0)
        abort();
    for (uint64_t at = 0; at < pass->of.unpacked && at < 8u << 20;) {
        if (pstk__access_points_find(&points, at, &span.point) < 0 ||
            pstk__span_begin(&span, &points, &damage) < 0)
            abort();
        for (; at < span.point.end && at < 8u << 20;) {
            const int64_t n = pstk__span_read(&span, &points, file, to, PSTK__CHUNK, at, &damage);
            if (n <= 0)
                abort();
            at += (uint64_t)n;
        }
    }
    pstk__access_points_close(&points);
    free(memory);
    free(to);
}

static void as_file(const char *path, const char *points, const uint8_t *data, size_t size)
{
    struct pstk__file file;
    struct pstk__pass pass = {.store = &pstk__store_local,
                              .path = path,
                              .name = "x",
                              .points = points,
                              .of = {.packing = pstk__packing_find(data, size), .size = size}};
    write_all(path, data, size);
    if (pstk__store_local.open(&pstk__store_local, &file, path) < 0 ||
        file.store->stat(&file, &pass.of.size, &pass.of.changed_ns) < 0)
        abort();
    if (pass.of.packing && pstk__pass_run(&pass, NULL) == 0)
        read_all(&pass, &file);
    pstk__file_end(&file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char folder[] = "/tmp/pstk-fuzz-XXXXXX", file[64], points[64];
    if (size > MAX_SIZE || !mkdtemp(folder))
        return 0;
    snprintf(file, sizeof file, "%s/x", folder);
    snprintf(points, sizeof points, "%s/p", folder);
    as_points(points, data, size);
    as_file(file, points, data, size);
    unlink(file);
    unlink(points);
    rmdir(folder);
    return 0;
}
