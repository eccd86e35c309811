/* SPDX-License-Identifier: Apache-2.0 */
#include "format/pstk/column_file.h"

#include "base/error.h"
#include "base/file.h"
#include "format/files.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

static int fail_number(const char *file, struct pstk_error *err, const char *what, uint64_t is,
                       uint64_t should)
{
    pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_SHARD,
               "%s: %s %llu, the manifest says %llu: the file is cut short, damaged or from "
               "another data set",
               file, what, (unsigned long long)is, (unsigned long long)should);
    return pstk__fail_at(err, PSTK_EBADMSG, file, PSTK_NONE, PSTK_NONE, 0);
}

/* Compare the header with the manifest. */
static int compare(const struct pstk__column_header *h,
                   const struct pstk__column_location *location, const char *file,
                   struct pstk_error *err)
{
    const struct pstk__manifest_column *column = &location->manifest->columns[location->column];
    const struct pstk__manifest_shard *shard = &location->manifest->shards[location->shard];
    if (strcmp(h->name, column->name) != 0 || h->dtype != column->dtype) {
        pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_SHARD,
                   "%s is column %s of %s, the manifest says %s of %s", file, h->name,
                   pstk_dtype_name(h->dtype), column->name, pstk_dtype_name(column->dtype));
        return pstk__fail_at(err, PSTK_EBADMSG, file, PSTK_NONE, PSTK_NONE, 0);
    }
    if (h->n_records != shard->n_records)
        return fail_number(file, err, "its number of records is", h->n_records, shard->n_records);
    if (h->shard_crc != shard->header_crc)
        return fail_number(file, err, "the checksum of its shard's header is", h->shard_crc,
                           shard->header_crc);
    if (h->crc != column->header_crcs[location->shard])
        return fail_number(file, err, "the checksum of its header is", h->crc,
                           column->header_crcs[location->shard]);
    return 0;
}

/* Return the bytes of the file by the manifest. */
static uint64_t expected_size(const struct pstk__column_location *location)
{
    return pstk__column_file_size(location->manifest->shards[location->shard].n_records,
                                  location->manifest->columns[location->column].dtype);
}

static int check(struct pstk__column_file *file, const struct pstk__column_location *location,
                 struct pstk_error *err)
{
    uint8_t bytes[PSTK__COLUMN_PAGE];
    uint64_t size;
    int64_t changed_ns;
    int r = file->file.store->stat(&file->file, &size, &changed_ns);
    if (r < 0)
        return pstk__fail_errno(err, -r, PSTK_STAGE_SHARD, "cannot read column %s", file->name);
    if (size != expected_size(location))
        return fail_number(file->name, err, "its size in bytes is", size, expected_size(location));
    const int64_t n = pstk__file_read(&file->file, bytes, sizeof bytes, 0);
    if (n != sizeof bytes)
        return pstk__unread_fail(
            &(struct pstk__unread){file->name, "header", PSTK_NONE, 0, sizeof bytes, n}, err);
    r = pstk__column_header_check(&file->header, bytes, file->name, err);
    return r < 0 ? r : compare(&file->header, location, file->name, err);
}

int pstk__column_file_open(struct pstk__column_file *out,
                           const struct pstk__column_location *location, struct pstk_error *err)
{
    char path[PATH_MAX];
    const struct pstk__manifest_shard *shard = &location->manifest->shards[location->shard];
    memset(out, 0, sizeof *out);
    out->file.fd = -1;
    int n = pstk__manifest_column_file(&location->manifest->columns[location->column], shard->file,
                                       out->name) < 0
                ? -1
                : snprintf(path, sizeof path, "%s/%s", location->path, out->name);
    if (n < 0 || (size_t)n >= sizeof path)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, "the path is too long: %.400s...",
                          location->path);
    int r = location->store->open(location->store, &out->file, path);
    if (r < 0) {
        r = pstk__file_fail(err, -r, PSTK_STAGE_SHARD, out->name, path);
        return pstk__fail_at(err, r, out->name, PSTK_NONE, PSTK_NONE, 0);
    }
    r = check(out, location, err);
    if (r < 0)
        pstk__column_file_close(out);
    return r;
}

void pstk__column_file_close(struct pstk__column_file *file)
{
    pstk__file_end(&file->file);
}

int64_t pstk__column_file_pages(const struct pstk__column_file *file, uint64_t page, uint64_t end,
                                void *buffer, struct pstk_error *err)
{
    const uint64_t left = (end - page) * PSTK__COLUMN_PAGE;
    const uint64_t size = left < PSTK__COLUMN_READ ? left : PSTK__COLUMN_READ;
    const uint64_t offset = (1 + page) * PSTK__COLUMN_PAGE;
    const int64_t n = pstk__file_read(&file->file, buffer, size, offset);
    if (n != (int64_t)size)
        return pstk__unread_fail(
            &(struct pstk__unread){file->name, "page", PSTK_NONE, offset, size, n}, err);
    return (int64_t)(size / PSTK__COLUMN_PAGE);
}

/* A range of values that a caller wants. */
struct range {
    uint64_t first, end; /* records of the shard */
    uint8_t *out;        /* position of value `first` */
};

/* Check a page, and copy its values that are in the range. */
static int copy_page(const struct pstk__column_file *file, uint64_t page, const void *bytes,
                     const struct range *range, struct pstk_error *err)
{
    const struct pstk__column_page location = pstk__column_page_of(&file->header, file->name, page);
    const uint64_t first = page * pstk__column_per_page(file->header.dtype),
                   end = first + location.n;
    const uint64_t from = range->first > first ? range->first : first;
    const uint64_t to = range->end < end ? range->end : end;
    const void *values;
    const int r = pstk__column_page_check(&location, bytes, &values, err);
    if (r == 0)
        memcpy(range->out + (from - range->first) * location.size,
               (const uint8_t *)values + (from - first) * location.size,
               (to - from) * location.size);
    return r;
}

int pstk__column_file_read(const struct pstk__column_file *file, uint64_t first, uint64_t n,
                           void *out, void *buffer, struct pstk_error *err)
{
    const uint64_t per_page = pstk__column_per_page(file->header.dtype);
    const struct range range = {.first = first, .end = first + n, .out = out};
    const uint64_t end = (range.end - 1) / per_page + 1;
    for (uint64_t page = first / per_page; page < end;) {
        const int64_t n_pages = pstk__column_file_pages(file, page, end, buffer, err);
        int r = n_pages < 0 ? (int)n_pages : 0;
        for (int64_t i = 0; r == 0 && i < n_pages; i++, page++)
            r = copy_page(file, page, (const uint8_t *)buffer + i * PSTK__COLUMN_PAGE, &range, err);
        if (r < 0)
            return r;
    }
    return 0;
}
