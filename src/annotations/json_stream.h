/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_stream: reads a JSON file from front to back, with one value at a time in memory. It
 * interprets only brackets, texts, commas and colons; the parser of a value checks that it is JSON.
 * Every failure names the file and the byte.
 */
#ifndef PSTK_JSON_STREAM_H
#define PSTK_JSON_STREAM_H

#include <penstock/types.h>

#define PSTK__JSON_LARGEST (UINT64_C(16) << 20) /* largest value that can be taken, bytes */

/* Closed when all zero except for fd, -1. */
struct pstk__json_stream {
    int fd;
    const char *path; /* borrowed; for messages */
    char *buffer;     /* owned */
    uint64_t room;    /* capacity of the buffer, bytes */
    uint64_t end;     /* bytes that were read into the buffer */
    uint64_t at;      /* position of the next byte in the buffer */
    uint64_t offset;  /* offset of the buffer's first byte in the file */
    uint64_t size;    /* size of the file, bytes */
    struct pstk_error *err;
};

/* One value: its bytes, which the next call overwrites, and its offset in the file. */
struct pstk__json_value {
    const char *at;
    uint64_t size;
    uint64_t offset;
};

/* Open a file. Close the stream in any case. Returns 0 or a negative result. */
int pstk__json_stream_open(struct pstk__json_stream *stream, const char *path,
                           struct pstk_error *err);
void pstk__json_stream_close(struct pstk__json_stream *stream);
/* Take the byte c, after space. Returns 1; 0: the next byte is another, or there is none; negative:
 * it cannot be read. */
int pstk__json_stream_take(struct pstk__json_stream *stream, char c);
/* Take the next value, or skip it, of any size. Returns 0 or a negative result. */
int pstk__json_stream_value(struct pstk__json_stream *stream, struct pstk__json_value *value);
int pstk__json_stream_skip(struct pstk__json_stream *stream);
/* Return 1 if only space follows, 0 if more follows; negative: it cannot be read. */
int pstk__json_stream_at_end(struct pstk__json_stream *stream);
/* Fail at the next byte. must_be: the expected text. */
int pstk__json_stream_fail(struct pstk__json_stream *stream, const char *must_be);
/* Read the bytes of a value again. Returns 0, or EIO if the file has become shorter. */
int pstk__json_stream_read(const struct pstk__json_stream *stream, uint64_t offset, void *bytes,
                           uint64_t size, struct pstk_error *err);

#endif
