/* SPDX-License-Identifier: Apache-2.0 */
#include "store/unpack/access_points.h"

#include "base/crc32c.h"
#include "base/file.h"
#include "base/little.h"
#include "store/unpack/layout.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

/* Max bytes of any file, so that sums of positions do not overflow. */
#define MAX_BYTES (1ull << 60)

/* ---- opening --------------------------------------------------------------------------------- */

/* Read exactly `size` bytes. A file that is shorter than its header says is damaged. */
static int read_all(const struct pstk__access_points *points, void *to, uint64_t size,
                    uint64_t offset)
{
    const int64_t n = pstk__file_pread(points->fd, to, size, offset);
    return n < 0 ? (int)n : (uint64_t)n == size ? 0 : -EBADMSG;
}

/* Take the values of the header. 1: the parts lie in the file one after another, and the number of
 * cells fits the unpacked bytes. */
static int take_header(struct pstk__access_points *points, const uint8_t *head, uint64_t file_size)
{
    points->of = (struct pstk__access_points_of){
        .packing = pstk__get32(head + PSTK__PH_PACKING),
        .size = pstk__get64(head + PSTK__PH_SIZE),
        .changed_ns = (int64_t)pstk__get64(head + PSTK__PH_CHANGED),
        .unpacked = pstk__get64(head + PSTK__PH_UNPACKED),
    };
    points->n_cells = pstk__get64(head + PSTK__PH_N_CELLS);
    points->cells = pstk__get64(head + PSTK__PH_CELLS);
    points->n_chunks = pstk__get64(head + PSTK__PH_N_CHUNKS);
    points->chunks = pstk__get64(head + PSTK__PH_CHUNKS);
    return pstk__get64(head + PSTK__PH_FILE) == file_size && points->of.size < MAX_BYTES &&
           points->of.unpacked < MAX_BYTES && points->cells >= PSTK__ACCESS_POINTS_HEADER &&
           points->cells <= points->chunks && points->chunks <= file_size &&
           points->n_cells == (points->of.unpacked + PSTK__SPACING - 1) / PSTK__SPACING + 1 &&
           points->n_cells == (points->chunks - points->cells) / PSTK__PC_ALL &&
           points->n_chunks == (file_size - points->chunks) / PSTK__ACCESS_POINTS_CRC &&
           pstk__packing_of(points->of.packing);
}

int pstk__access_points_open(struct pstk__access_points *points, const char *path,
                             uint32_t head_crc)
{
    uint8_t head[PSTK__ACCESS_POINTS_HEADER] = {0};
    struct stat st;
    *points = (struct pstk__access_points){.fd = pstk__file_open(path)};
    if (points->fd < 0) {
        const int r = points->fd;
        points->fd = -1;
        return r;
    }
    int r = fstat(points->fd, &st) < 0 ? -errno : read_all(points, head, sizeof head, 0);
    points->owner = r == 0 ? st.st_uid : 0;
    const uint32_t crc = pstk__get32(head + PSTK__SIDECAR_CRC);
    if (r == 0 && crc != head_crc) /* the header is intact, but of another file, or it is damaged */
        r = crc == pstk__sidecar_crc(head, sizeof head) ? -ESTALE : -EBADMSG;
    else if (r == 0 && (pstk__sidecar_check(head, sizeof head, PSTK__SIDECAR_POINTS_MAGIC,
                                            PSTK__ACCESS_POINTS_VERSION) ||
                        !take_header(points, head, (uint64_t)st.st_size)))
        r = -EBADMSG;
    if (r < 0)
        pstk__access_points_close(points);
    return r;
}

void pstk__access_points_close(struct pstk__access_points *points)
{
    if (points->fd >= 0)
        close(points->fd);
    points->fd = -1;
}

/* ---- finding --------------------------------------------------------------------------------- */

/* 1: the cell is intact, and its ranges lie within the two files. */
static int take_cell(const struct pstk__access_points *points, uint64_t number, const uint8_t *cell,
                     struct pstk__access_point *point)
{
    *point = (struct pstk__access_point){
        .begin = pstk__get64(cell + PSTK__PC_BEGIN),
        .end = pstk__get64(cell + PSTK__PC_END),
        .packed = pstk__get64(cell + PSTK__PC_PACKED),
        .dictionary = pstk__get64(cell + PSTK__PC_DICTIONARY),
        .dictionary_kept = pstk__get32(cell + PSTK__PC_KEPT),
        .dictionary_crc = pstk__get32(cell + PSTK__PC_DICTIONARY_CRC),
        .chunk = pstk__get64(cell + PSTK__PC_CHUNK),
        .restart = {.n_bits = pstk__get32(cell + PSTK__PC_BITS),
                    .dictionary_size = pstk__get32(cell + PSTK__PC_DICTIONARY_SIZE)},
    };
    const uint64_t n_chunks = (point->end - point->begin + PSTK__CHUNK - 1) / PSTK__CHUNK;
    return pstk__get32(cell) == pstk__crc32c(0, cell + 4, PSTK__PC_ALL - 4) &&
           pstk__get32(cell + PSTK__PC_NUMBER) == (uint32_t)number && point->begin <= point->end &&
           point->end <= points->of.unpacked && point->packed <= points->of.size &&
           point->restart.n_bits < 8 && point->restart.dictionary_size <= PSTK__DICTIONARY &&
           point->dictionary_kept <= point->restart.dictionary_size &&
           point->dictionary <= points->cells &&
           point->dictionary_kept <= points->cells - point->dictionary &&
           point->chunk <= points->n_chunks && n_chunks <= points->n_chunks - point->chunk;
}

int pstk__access_points_find(const struct pstk__access_points *points, uint64_t offset,
                             struct pstk__access_point *point)
{
    uint8_t cells[2 * PSTK__PC_ALL];
    struct pstk__access_point next;
    const uint64_t number = offset / PSTK__SPACING;
    if (offset >= points->of.unpacked)
        return -EINVAL;
    const int r = read_all(points, cells, sizeof cells, points->cells + number * PSTK__PC_ALL);
    if (r < 0)
        return r;
    if (!take_cell(points, number, cells, point) ||
        !take_cell(points, number + 1, cells + PSTK__PC_ALL, &next))
        return -EBADMSG;
    if (next.begin <= offset)
        *point = next;
    return point->begin <= offset && offset < point->end ? 0 : -EBADMSG;
}

int pstk__access_points_dictionary(const struct pstk__access_points *points,
                                   const struct pstk__access_point *point,
                                   uint8_t kept[PSTK__DICTIONARY])
{
    const int r = read_all(points, kept, point->dictionary_kept, point->dictionary);
    return r < 0                                                                    ? r
           : pstk__crc32c(0, kept, point->dictionary_kept) == point->dictionary_crc ? 0
                                                                                    : -EBADMSG;
}

/* Return the checksum of a chunk's checksum. If it is wrong, the access points file is damaged, not
 * the chunk. */
static uint32_t seal(uint64_t chunk, uint32_t crc)
{
    uint8_t bytes[12];
    pstk__put64(bytes, chunk);
    pstk__put32(bytes + 8, crc);
    return pstk__crc32c(0, bytes, sizeof bytes);
}

int pstk__access_points_crc(const struct pstk__access_points *points, uint64_t chunk, uint32_t *crc)
{
    uint8_t bytes[PSTK__ACCESS_POINTS_CRC];
    if (chunk >= points->n_chunks)
        return -EBADMSG;
    const int r =
        read_all(points, bytes, sizeof bytes, points->chunks + chunk * PSTK__ACCESS_POINTS_CRC);
    *crc = pstk__get32(bytes);
    return r < 0 ? r : pstk__get32(bytes + 4) == seal(chunk, *crc) ? 0 : -EBADMSG;
}
