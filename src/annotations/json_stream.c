/* SPDX-License-Identifier: Apache-2.0 */
#include "annotations/json_stream.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json_piece.h"

#define FIRST_ROOM (UINT64_C(1) << 20)
#define MAX_DEPTH 64 /* nested brackets in a value; COCO's have 4 */

void pstk__json_stream_close(struct pstk__json_stream *stream)
{
    if (stream->fd >= 0)
        close(stream->fd);
    free(stream->buffer);
    *stream = (struct pstk__json_stream){.fd = -1};
}

/* Read more, and keep the bytes from *from on, which may move. Returns 1; 0: the file ends;
 * negative: failure. */
static int more(struct pstk__json_stream *s, uint64_t *from)
{
    memmove(s->buffer, s->buffer + *from, s->end - *from);
    s->offset += *from;
    s->at -= *from;
    s->end -= *from;
    *from = 0;
    if (s->end == s->room) {
        char *larger = s->room < PSTK__JSON_LARGEST ? realloc(s->buffer, 2 * s->room) : NULL;
        if (!larger)
            return pstk__fail(s->err, s->room < PSTK__JSON_LARGEST ? PSTK_ENOMEM : PSTK_EFBIG,
                              PSTK_STAGE_OPEN,
                              "%.200s: the value at byte %" PRIu64 " has more than %" PRIu64
                              " bytes, the limit of one annotation",
                              s->path, s->offset, s->room);
        s->buffer = larger;
        s->room *= 2;
    }
    const int64_t n =
        pstk__file_pread(s->fd, s->buffer + s->end, s->room - s->end, s->offset + s->end);
    if (n < 0)
        return pstk__fail_errno(s->err, (int)-n, PSTK_STAGE_OPEN,
                                "%.200s cannot be read at byte %" PRIu64, s->path,
                                s->offset + s->end);
    s->end += (uint64_t)n;
    return n > 0;
}

/* Skip the byte order mark that Windows programs write before the text. Returns 0 or a failure. */
static int skip_mark(struct pstk__json_stream *s)
{
    uint64_t from = 0;
    const int r = more(s, &from);
    if (r > 0 && s->end >= 3 && memcmp(s->buffer, "\xef\xbb\xbf", 3) == 0)
        s->at = 3;
    return r < 0 ? r : 0;
}

int pstk__json_stream_open(struct pstk__json_stream *stream, const char *path,
                           struct pstk_error *err)
{
    struct stat st;
    *stream = (struct pstk__json_stream){.fd = -1, .path = path, .err = err};
    const int fd = pstk__file_open(path);
    if (fd < 0)
        return pstk__file_fail(err, -fd, PSTK_STAGE_OPEN, path, path);
    stream->fd = fd;
    if (fstat(fd, &st) == 0)
        stream->size = (uint64_t)st.st_size;
    stream->room = FIRST_ROOM;
    stream->buffer = malloc(stream->room);
    if (!stream->buffer)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory to read %s", path);
    return skip_mark(stream);
}

/* Find the next byte that is not space. Returns 1; 0: there is none; negative: failure. */
static int find_byte(struct pstk__json_stream *s)
{
    for (;;) {
        s->at =
            (uint64_t)(pstk__json_skip_space(s->buffer + s->at, s->buffer + s->end) - s->buffer);
        if (s->at < s->end)
            return 1;
        uint64_t from = s->at;
        const int r = more(s, &from);
        if (r <= 0)
            return r;
    }
}

int pstk__json_stream_take(struct pstk__json_stream *s, char c)
{
    const int r = find_byte(s);
    if (r <= 0 || s->buffer[s->at] != c)
        return r < 0 ? r : 0;
    s->at++;
    return 1;
}

int pstk__json_stream_at_end(struct pstk__json_stream *s)
{
    const int r = find_byte(s);
    return r < 0 ? r : !r;
}

int pstk__json_stream_fail(struct pstk__json_stream *s, const char *must_be)
{
    const int r = find_byte(s);
    if (r < 0)
        return r;
    const uint64_t at = s->offset + s->at;
    if (r == 0 && at == 0)
        return pstk__fail(s->err, PSTK_EBADMSG, PSTK_STAGE_OPEN,
                          "%.200s is empty; must begin with %s", s->path, must_be);
    if (r == 0)
        return pstk__fail(s->err, PSTK_EBADMSG, PSTK_STAGE_OPEN,
                          "%.200s ends at byte %" PRIu64 ", where %s must stand: it was cut",
                          s->path, at, must_be);
    const unsigned char c = (unsigned char)s->buffer[s->at];
    if (c < ' ' || c > '~')
        return pstk__fail(s->err, PSTK_EBADMSG, PSTK_STAGE_OPEN,
                          "%.200s: byte %" PRIu64 " is 0x%02x; must be %s", s->path, at, c,
                          must_be);
    return pstk__fail(s->err, PSTK_EBADMSG, PSTK_STAGE_OPEN,
                      "%.200s: byte %" PRIu64 " is '%c'; must be %s", s->path, at, c, must_be);
}

/* Take a value. keep: afterwards the whole value is in the buffer, from *from on. */
static int take(struct pstk__json_stream *s, int keep, uint64_t *from)
{
    struct pstk__json_scan scan = {.max_depth = MAX_DEPTH};
    enum pstk__json_scan_result found;
    int r = find_byte(s);
    if (r <= 0)
        return r < 0 ? r : pstk__json_stream_fail(s, "a value");
    const uint64_t first = s->offset + s->at;
    *from = s->at;
    for (;;) {
        const char *at = s->buffer + s->at;
        found = pstk__json_scan(&scan, &at, s->buffer + s->end);
        s->at = (uint64_t)(at - s->buffer);
        if (found != PSTK__JSON_GOES_ON)
            break;
        if (!keep)
            *from = s->at;
        r = more(s, from);
        if (r < 0)
            return r;
        if (r == 0)
            return pstk__fail(s->err, PSTK_EBADMSG, PSTK_STAGE_OPEN,
                              "%.200s ends at byte %" PRIu64
                              ", inside the value that begins at byte %" PRIu64 ": it was cut",
                              s->path, s->offset + s->end, first);
    }
    if (found == PSTK__JSON_TOO_DEEP)
        return pstk__fail(s->err, PSTK_EBADMSG, PSTK_STAGE_OPEN,
                          "%.200s: the value at byte %" PRIu64
                          " has lists and objects nested more than %d deep",
                          s->path, first, MAX_DEPTH);
    if (s->offset + s->at == first)
        return pstk__json_stream_fail(s, "a value");
    return 0;
}

int pstk__json_stream_value(struct pstk__json_stream *s, struct pstk__json_value *value)
{
    uint64_t from;
    const int r = take(s, 1, &from);
    if (r < 0)
        return r;
    *value = (struct pstk__json_value){s->buffer + from, s->at - from, s->offset + from};
    return 0;
}

int pstk__json_stream_skip(struct pstk__json_stream *s)
{
    uint64_t from;
    return take(s, 0, &from);
}

int pstk__json_stream_read(const struct pstk__json_stream *s, uint64_t offset, void *bytes,
                           uint64_t size, struct pstk_error *err)
{
    const int64_t n = pstk__file_pread(s->fd, bytes, size, offset);
    if (n < 0)
        return pstk__fail_errno(err, (int)-n, PSTK_STAGE_READ,
                                "%.200s cannot be read at byte %" PRIu64, s->path, offset);
    if ((uint64_t)n < size)
        return pstk__fail(err, PSTK_EIO, PSTK_STAGE_READ,
                          "%.200s changed while it was read: it ends before byte %" PRIu64, s->path,
                          offset + size);
    return 0;
}
