/* SPDX-License-Identifier: Apache-2.0 */
#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/little.h"
#include "store/unpack/layout.h"
#include "store/unpack/access_points.h"

#include <stdlib.h>

#define WHAT "access points file"
#define AT_ONCE 1024 /* cells or checksums in one write */

/* Takes 64 bytes of memory for each MiB unpacked, and 4 for each 64 KiB. */
struct pstk__access_points_writer {
    struct pstk__sidecar file;
    uint64_t at;               /* bytes written */
    struct pstk__bytes points; /* an array of struct pstk__access_point */
    struct pstk__bytes crcs;   /* CRCs of the chunks, uint32_t */
};

static int fail_memory(const char *path, struct pstk_error *err)
{
    return pstk__sidecar_fail_memory(WHAT, path, err);
}

int pstk__access_points_writer_open(struct pstk__access_points_writer **out, int dir,
                                    const char *path, struct pstk_error *err)
{
    struct pstk__access_points_writer *writer = *out = calloc(1, sizeof *writer);
    if (!writer)
        return fail_memory(path, err);
    writer->at = PSTK__ACCESS_POINTS_HEADER;
    const int r = pstk__sidecar_open(&writer->file, WHAT, dir, path, err);
    if (r < 0)
        pstk__access_points_writer_abort(out);
    return r;
}

static struct pstk__access_point *points_of(const struct pstk__access_points_writer *writer,
                                            uint64_t *n)
{
    *n = writer->points.size / sizeof(struct pstk__access_point);
    return (struct pstk__access_point *)(void *)writer->points.data;
}

/* Write a dictionary, compressed if that saves an eighth. */
static int keep_dictionary(struct pstk__access_points_writer *writer,
                           struct pstk__access_point *point, const uint8_t *dictionary,
                           struct pstk_error *err)
{
    uint8_t packed[PSTK__DICTIONARY];
    const uint32_t size = point->restart.dictionary_size;
    const uint32_t n = size ? pstk__dictionary_pack(packed, size - size / 8, dictionary, size) : 0;
    point->dictionary = writer->at;
    point->dictionary_kept = n && n < size ? n : size;
    const uint8_t *kept = point->dictionary_kept < size ? packed : dictionary;
    point->dictionary_crc = pstk__crc32c(0, kept, point->dictionary_kept);
    writer->at += point->dictionary_kept;
    return pstk__sidecar_write(&writer->file, kept, point->dictionary_kept, point->dictionary, err);
}

int pstk__access_points_writer_point(struct pstk__access_points_writer *writer, uint64_t unpacked,
                                     uint64_t packed, const struct pstk__restart *restart,
                                     const uint8_t *dictionary, struct pstk_error *err)
{
    struct pstk__access_point *point = pstk__bytes_room(&writer->points, sizeof *point);
    if (!point)
        return fail_memory(writer->file.path, err);
    *point = (struct pstk__access_point){.begin = unpacked,
                                         .packed = packed,
                                         .restart = *restart,
                                         .chunk = writer->crcs.size / sizeof(uint32_t)};
    if (writer->points.size > sizeof *point)
        point[-1].end = unpacked;
    return keep_dictionary(writer, point, dictionary, err);
}

int pstk__access_points_writer_chunk(struct pstk__access_points_writer *writer, uint32_t crc,
                                     struct pstk_error *err)
{
    pstk__bytes_u32(&writer->crcs, crc);
    return writer->crcs.failed ? fail_memory(writer->file.path, err) : 0;
}

/* ---- finishing ------------------------------------------------------------------------------- */

static void put_cell(uint8_t *cell, uint64_t number, const struct pstk__access_point *point)
{
    memset(cell, 0, PSTK__PC_ALL);
    pstk__put32(cell + PSTK__PC_NUMBER, (uint32_t)number);
    pstk__put64(cell + PSTK__PC_BEGIN, point->begin);
    pstk__put64(cell + PSTK__PC_END, point->end);
    pstk__put64(cell + PSTK__PC_PACKED, point->packed);
    pstk__put64(cell + PSTK__PC_DICTIONARY, point->dictionary);
    pstk__put32(cell + PSTK__PC_KEPT, point->dictionary_kept);
    pstk__put32(cell + PSTK__PC_DICTIONARY_SIZE, point->restart.dictionary_size);
    pstk__put32(cell + PSTK__PC_DICTIONARY_CRC, point->dictionary_crc);
    pstk__put32(cell + PSTK__PC_BITS, point->restart.n_bits);
    pstk__put64(cell + PSTK__PC_CHUNK, point->chunk);
    pstk__put32(cell, pstk__crc32c(0, cell + 4, PSTK__PC_ALL - 4));
}

/* Write all cells. Cell k has the last point before byte k * PSTK__SPACING, and cell 0 has the
 * first. */
static int write_cells(struct pstk__access_points_writer *writer, uint64_t n_cells,
                       struct pstk_error *err)
{
    uint8_t *cells = malloc(AT_ONCE * PSTK__PC_ALL);
    int r = cells ? 0 : fail_memory(writer->file.path, err);
    uint64_t at = 0, n_points;
    const struct pstk__access_point *points = points_of(writer, &n_points);
    for (uint64_t k = 0, n; r == 0 && k < n_cells; k += n) {
        n = n_cells - k < AT_ONCE ? n_cells - k : AT_ONCE;
        for (uint64_t i = 0; i < n; i++) {
            while (at + 1 < n_points && points[at + 1].begin < (k + i) * PSTK__SPACING)
                at++;
            put_cell(cells + i * PSTK__PC_ALL, k + i, &points[at]);
        }
        r = pstk__sidecar_write(&writer->file, cells, n * PSTK__PC_ALL, writer->at, err);
        writer->at += n * PSTK__PC_ALL;
    }
    free(cells);
    return r;
}

static int write_crcs(struct pstk__access_points_writer *writer, struct pstk_error *err)
{
    uint8_t bytes[AT_ONCE * PSTK__ACCESS_POINTS_CRC], number[12];
    const uint64_t n_crcs = writer->crcs.size / sizeof(uint32_t);
    int r = 0;
    for (uint64_t k = 0, n; r == 0 && k < n_crcs; k += n) {
        n = n_crcs - k < AT_ONCE ? n_crcs - k : AT_ONCE;
        for (uint64_t i = 0; i < n; i++) {
            const uint32_t crc = pstk__get32(writer->crcs.data + 4 * (k + i));
            pstk__put64(number, k + i);
            pstk__put32(number + 8, crc);
            pstk__put32(bytes + i * PSTK__ACCESS_POINTS_CRC, crc);
            pstk__put32(bytes + i * PSTK__ACCESS_POINTS_CRC + 4,
                        pstk__crc32c(0, number, sizeof number));
        }
        r = pstk__sidecar_write(&writer->file, bytes, n * PSTK__ACCESS_POINTS_CRC, writer->at, err);
        writer->at += n * PSTK__ACCESS_POINTS_CRC;
    }
    return r;
}

int pstk__access_points_writer_commit(struct pstk__access_points_writer **p,
                                      const struct pstk__access_points_of *of, uint64_t *size,
                                      uint32_t *head_crc, struct pstk_error *err)
{
    struct pstk__access_points_writer *writer = *p;
    uint8_t head[PSTK__ACCESS_POINTS_HEADER] = {0};
    const uint64_t n_cells = (of->unpacked + PSTK__SPACING - 1) / PSTK__SPACING + 1;
    uint64_t n_points;
    points_of(writer, &n_points)[n_points - 1].end = of->unpacked;
    pstk__put32(head + PSTK__PH_PACKING, of->packing);
    pstk__put64(head + PSTK__PH_SIZE, of->size);
    pstk__put64(head + PSTK__PH_CHANGED, (uint64_t)of->changed_ns);
    pstk__put64(head + PSTK__PH_UNPACKED, of->unpacked);
    pstk__put64(head + PSTK__PH_N_CELLS, n_cells);
    pstk__put64(head + PSTK__PH_CELLS, writer->at);
    int r = write_cells(writer, n_cells, err);
    pstk__put64(head + PSTK__PH_N_CHUNKS, writer->crcs.size / sizeof(uint32_t));
    pstk__put64(head + PSTK__PH_CHUNKS, writer->at);
    if (r == 0)
        r = write_crcs(writer, err);
    pstk__put64(head + PSTK__PH_FILE, writer->at);
    *size = writer->at;
    pstk__sidecar_seal(head, sizeof head, PSTK__SIDECAR_POINTS_MAGIC, PSTK__ACCESS_POINTS_VERSION);
    *head_crc = pstk__get32(head + PSTK__SIDECAR_CRC);
    if (r == 0)
        r = pstk__sidecar_write(&writer->file, head, sizeof head, 0, err);
    if (r == 0)
        r = pstk__sidecar_publish(&writer->file, err);
    pstk__access_points_writer_abort(p);
    return r;
}

void pstk__access_points_writer_abort(struct pstk__access_points_writer **p)
{
    struct pstk__access_points_writer *writer = *p;
    if (!writer)
        return;
    pstk__sidecar_close(&writer->file);
    pstk__bytes_free(&writer->points);
    pstk__bytes_free(&writer->crcs);
    free(writer);
    *p = NULL;
}
