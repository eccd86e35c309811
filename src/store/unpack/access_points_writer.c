/* SPDX-License-Identifier: Apache-2.0 */
#include "base/crc32c.h"
#include "base/error.h"
#include "base/file.h"
#include "base/little.h"
#include "store/unpack/layout.h"
#include "store/unpack/access_points.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define AT_ONCE 1024 /* cells or checksums that are written together */

/* Memory: 64 bytes for each MiB unpacked, and 4 for each 64 KiB. */
struct pstk__access_points_writer {
    int fd;  /* owned */
    int dir; /* borrowed; where the file is made */
    char path[PATH_MAX];
    const char *name; /* in path: that in dir */
    char temporary[NAME_MAX + 1];
    uint64_t at;                       /* bytes written */
    struct pstk__access_point *points; /* owned */
    uint64_t n_points, max_points;
    uint32_t *crcs; /* owned; of chunks */
    uint64_t n_crcs, max_crcs;
};

static int fail_write(const struct pstk__access_points_writer *writer, int native,
                      struct pstk_error *err)
{
    return pstk__fail_errno(err, native, PSTK_STAGE_OPEN,
                            "cannot write the access points file %s%s", writer->path,
                            pstk__file_write_advice(native));
}

static int fail_memory(const char *path, struct pstk_error *err)
{
    return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for the access points file %s",
                      path);
}

static int append(struct pstk__access_points_writer *writer, const void *bytes, uint64_t size,
                  uint64_t offset, struct pstk_error *err)
{
    const int native = pstk__file_pwrite(writer->fd, bytes, size, offset);
    return native ? fail_write(writer, native, err) : 0;
}

int pstk__access_points_writer_open(struct pstk__access_points_writer **out, int dir,
                                    const char *path, struct pstk_error *err)
{
    *out = NULL;
    struct pstk__access_points_writer *writer = calloc(1, sizeof *writer);
    if (!writer)
        return fail_memory(path, err);
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    const int n = snprintf(writer->path, sizeof writer->path, "%s", path);
    const int m = snprintf(writer->temporary, sizeof writer->temporary, "%s.tmp-XXXXXX", name);
    if (n < 0 || (size_t)n >= sizeof writer->path || m < 0 ||
        (size_t)m >= sizeof writer->temporary) {
        free(writer);
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, "the path is too long: %.400s...",
                          path);
    }
    writer->dir = dir;
    writer->name = writer->path + (name - path);
    writer->at = PSTK__ACCESS_POINTS_HEADER;
    writer->fd = pstk__file_make_temporary(dir, writer->temporary);
    if (writer->fd < 0) {
        const int r = fail_write(writer, -writer->fd, err);
        free(writer);
        return r;
    }
    *out = writer;
    return 0;
}

/* Make room for one element more after n. */
static int grow(void **memory, uint64_t n, uint64_t *max, size_t size)
{
    if (n < *max)
        return 0;
    const uint64_t wanted = *max ? 2 * *max : 256;
    void *new = realloc(*memory, wanted * size);
    if (!new)
        return PSTK_ENOMEM;
    *memory = new;
    *max = wanted;
    return 0;
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
    return append(writer, kept, point->dictionary_kept, point->dictionary, err);
}

int pstk__access_points_writer_point(struct pstk__access_points_writer *writer, uint64_t unpacked,
                                     uint64_t packed, const struct pstk__restart *restart,
                                     const uint8_t *dictionary, struct pstk_error *err)
{
    void *points = writer->points;
    if (grow(&points, writer->n_points, &writer->max_points, sizeof *writer->points) < 0)
        return fail_memory(writer->path, err);
    writer->points = points;
    struct pstk__access_point *point = &writer->points[writer->n_points];
    *point = (struct pstk__access_point){
        .begin = unpacked, .packed = packed, .restart = *restart, .chunk = writer->n_crcs};
    if (writer->n_points)
        writer->points[writer->n_points - 1].end = unpacked;
    writer->n_points++;
    return keep_dictionary(writer, point, dictionary, err);
}

int pstk__access_points_writer_chunk(struct pstk__access_points_writer *writer, uint32_t crc,
                                     struct pstk_error *err)
{
    void *crcs = writer->crcs;
    if (grow(&crcs, writer->n_crcs, &writer->max_crcs, sizeof *writer->crcs) < 0)
        return fail_memory(writer->path, err);
    writer->crcs = crcs;
    writer->crcs[writer->n_crcs++] = crc;
    return 0;
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

/* Cell k: the last point before byte k * PSTK__SPACING; cell 0: the first. */
static int write_cells(struct pstk__access_points_writer *writer, uint64_t n_cells,
                       struct pstk_error *err)
{
    uint8_t *cells = malloc(AT_ONCE * PSTK__PC_ALL);
    int r = cells ? 0 : fail_memory(writer->path, err);
    uint64_t at = 0;
    for (uint64_t k = 0, n; r == 0 && k < n_cells; k += n) {
        n = n_cells - k < AT_ONCE ? n_cells - k : AT_ONCE;
        for (uint64_t i = 0; i < n; i++) {
            while (at + 1 < writer->n_points &&
                   writer->points[at + 1].begin < (k + i) * PSTK__SPACING)
                at++;
            put_cell(cells + i * PSTK__PC_ALL, k + i, &writer->points[at]);
        }
        r = append(writer, cells, n * PSTK__PC_ALL, writer->at, err);
        writer->at += n * PSTK__PC_ALL;
    }
    free(cells);
    return r;
}

static int write_crcs(struct pstk__access_points_writer *writer, struct pstk_error *err)
{
    uint8_t bytes[AT_ONCE * PSTK__ACCESS_POINTS_CRC], number[12];
    int r = 0;
    for (uint64_t k = 0, n; r == 0 && k < writer->n_crcs; k += n) {
        n = writer->n_crcs - k < AT_ONCE ? writer->n_crcs - k : AT_ONCE;
        for (uint64_t i = 0; i < n; i++) {
            pstk__put64(number, k + i);
            pstk__put32(number + 8, writer->crcs[k + i]);
            pstk__put32(bytes + i * PSTK__ACCESS_POINTS_CRC, writer->crcs[k + i]);
            pstk__put32(bytes + i * PSTK__ACCESS_POINTS_CRC + 4,
                        pstk__crc32c(0, number, sizeof number));
        }
        r = append(writer, bytes, n * PSTK__ACCESS_POINTS_CRC, writer->at, err);
        writer->at += n * PSTK__ACCESS_POINTS_CRC;
    }
    return r;
}

/* Write the header, and give the file its name. */
static int write_end(struct pstk__access_points_writer *writer,
                     const uint8_t head[PSTK__ACCESS_POINTS_HEADER], struct pstk_error *err)
{
    int r = append(writer, head, PSTK__ACCESS_POINTS_HEADER, 0, err);
    /* As others may read the data, they may read this: a temporary file lets nobody. */
    if (r == 0 && fchmod(writer->fd, 0644) < 0)
        r = fail_write(writer, errno, err);
    if (r == 0 && fsync(writer->fd) < 0)
        r = fail_write(writer, errno, err);
    if (r == 0 && renameat(writer->dir, writer->temporary, writer->dir, writer->name) < 0)
        r = fail_write(writer, errno, err);
    return r;
}

static void close_writer(struct pstk__access_points_writer *writer)
{
    close(writer->fd);
    free(writer->points);
    free(writer->crcs);
    free(writer);
}

int pstk__access_points_writer_commit(struct pstk__access_points_writer **p,
                                      const struct pstk__access_points_of *of, uint64_t *size,
                                      uint32_t *head_crc, struct pstk_error *err)
{
    struct pstk__access_points_writer *writer = *p;
    uint8_t head[PSTK__ACCESS_POINTS_HEADER] = {0};
    const uint64_t n_cells = (of->unpacked + PSTK__SPACING - 1) / PSTK__SPACING + 1;
    writer->points[writer->n_points - 1].end = of->unpacked;
    memcpy(head + PSTK__PH_MAGIC, PSTK__ACCESS_POINTS_MAGIC, 8);
    pstk__put32(head + PSTK__PH_VERSION, PSTK__ACCESS_POINTS_VERSION);
    pstk__put32(head + PSTK__PH_PACKING, of->packing);
    pstk__put64(head + PSTK__PH_SIZE, of->size);
    pstk__put64(head + PSTK__PH_CHANGED, (uint64_t)of->changed_ns);
    pstk__put64(head + PSTK__PH_UNPACKED, of->unpacked);
    pstk__put64(head + PSTK__PH_N_CELLS, n_cells);
    pstk__put64(head + PSTK__PH_CELLS, writer->at);
    int r = write_cells(writer, n_cells, err);
    pstk__put64(head + PSTK__PH_N_CHUNKS, writer->n_crcs);
    pstk__put64(head + PSTK__PH_CHUNKS, writer->at);
    if (r == 0)
        r = write_crcs(writer, err);
    pstk__put64(head + PSTK__PH_FILE, writer->at);
    *size = writer->at;
    *head_crc = pstk__crc32c(0, head + 4, sizeof head - 4);
    pstk__put32(head, *head_crc);
    if (r == 0)
        r = write_end(writer, head, err);
    if (r < 0) {
        pstk__access_points_writer_abort(p);
        return r;
    }
    close_writer(writer);
    *p = NULL;
    return 0;
}

void pstk__access_points_writer_abort(struct pstk__access_points_writer **p)
{
    if (!*p)
        return;
    unlinkat((*p)->dir, (*p)->temporary, 0);
    close_writer(*p);
    *p = NULL;
}
