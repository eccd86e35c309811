/* SPDX-License-Identifier: Apache-2.0 */
#include "format/table/file.h"

#include "base/error.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Skip UTF-8's byte order mark; refuse UTF-16. */
static int skip_mark(struct pstk__table_file *file)
{
    const int64_t n = pstk__file_reader_fill(&file->reader, 3);
    if (n < 0)
        return (int)n;
    const uint8_t *bytes = pstk__file_reader_bytes(&file->reader);
    if (n >= 2 &&
        ((bytes[0] == 0xff && bytes[1] == 0xfe) || (bytes[0] == 0xfe && bytes[1] == 0xff)))
        return pstk__table_file_fail(file, 0, "the table is UTF-16; must be UTF-8: convert it");
    if (n >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0)
        file->reader.at = 3;
    return 0;
}

int pstk__table_file_open(struct pstk__table_file *file, const struct pstk__store *store,
                          const char *path, uint64_t size, struct pstk_error *err)
{
    const char *slash = strrchr(path, '/');
    file->kind = pstk__table_of(path);
    file->scan = (struct pstk__scan){
        .store = store, .name = slash ? slash + 1 : path, .path = path, .size = size};
    file->room = NULL;
    file->room_size = 0;
    file->end = size;
    file->line = file->row_line = 1;
    file->row_at = 0;
    file->err = err;
    const int r = pstk__file_reader_open(&file->reader, &file->scan, err);
    return r < 0 ? r : skip_mark(file);
}

void pstk__table_file_close(struct pstk__table_file *file)
{
    pstk__file_reader_close(&file->reader);
    free(file->room);
    file->room = NULL;
}

void pstk__table_file_seek(struct pstk__table_file *file, uint64_t at, uint64_t line, uint64_t end)
{
    file->reader.at = at;
    file->line = line;
    file->end = end;
}

int pstk__table_file_fail(struct pstk__table_file *file, uint64_t at, const char *fmt, ...)
{
    char what[400];
    va_list args;
    va_start(args, fmt);
    if (vsnprintf(what, sizeof what, fmt, args) < 0)
        what[0] = 0;
    va_end(args);
    pstk__fail(file->err, PSTK_EBADMSG, PSTK_STAGE_OPEN,
               "%s, line %" PRIu64 " (byte %" PRIu64 "): %s", file->scan.path, file->row_line,
               file->row_at + at, what);
    return pstk__fail_at(file->err, PSTK_EBADMSG, file->scan.name, PSTK_NONE, file->row_at + at, 1);
}

/* Make room for text of `size` bytes. */
static int make_room(struct pstk__table_file *file, uint64_t size)
{
    if (size <= file->room_size)
        return 0;
    char *room = realloc(file->room, size);
    if (!room)
        return pstk__fail(file->err, PSTK_ENOMEM, PSTK_STAGE_OPEN,
                          "no memory for a row of %" PRIu64 " bytes of %s", size, file->scan.path);
    file->room = room;
    file->room_size = size;
    return 0;
}

static int fail_large(struct pstk__table_file *file)
{
    pstk__table_file_fail(
        file, 0,
        "the row has more than 16 MiB: a closing quote or the ends of lines may be missing");
    if (file->err)
        file->err->code = PSTK_EFBIG;
    return PSTK_EFBIG;
}

/* Read a row, or an empty line. */
static int take_row(struct pstk__table_file *file)
{
    struct pstk__file_reader *reader = &file->reader;
    const uint64_t left = file->end - reader->at;
    file->row_at = reader->at;
    file->row_line = file->line;
    for (uint64_t wanted = 1;;) {
        const int64_t n = pstk__file_reader_fill(reader, wanted < left ? wanted : left);
        if (n < 0)
            return (int)n;
        if ((uint64_t)n < left && (uint64_t)n < wanted)
            return pstk__table_file_fail(file, (uint64_t)n,
                                         "the table ends here, but was longer before");
        const uint64_t size = (uint64_t)n < left ? (uint64_t)n : left;
        int r = make_room(file, size);
        if (r < 0)
            return r;
        r = file->kind->parse(file->kind, (const char *)pstk__file_reader_bytes(reader), size,
                              size == left, file->room, &file->row);
        if (r < 0)
            return pstk__table_file_fail(file, file->row.wrong_at, "%s", file->row.wrong);
        if ((r > 0 && file->row.size > PSTK__TABLE_MAX_ROW) ||
            (r == 0 && size >= PSTK__TABLE_MAX_ROW))
            return fail_large(file);
        if (r > 0)
            return 1;
        wanted = 2 * size;
    }
}

int pstk__table_file_next(struct pstk__table_file *file)
{
    while (file->reader.at < file->end) {
        const int r = take_row(file);
        if (r < 0)
            return r;
        file->reader.at += file->row.size; /* its bytes stay until the next fill */
        file->line += file->row.n_lines;
        if (file->row.n_cells > 0)
            return 1;
    }
    return 0;
}
