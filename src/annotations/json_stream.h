/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_stream: a JSON file read from front to back, of which one value at a time is in memory. It
 * looks at brackets, texts, commas and colons alone: whether a value is JSON is for the parser of
 * that value to find. Every failure names the file and the byte.
 */
#ifndef PSTK_JSON_STREAM_H
#define PSTK_JSON_STREAM_H

#include <penstock/types.h>

#define PSTK__JSON_LARGEST (UINT64_C(16) << 20) /* bytes of a value that is taken */

/* Closed when all zero except for fd, -1. */
struct pstk__json_stream {
    int fd;
    const char *path; /* borrowed; for messages */
    char *buffer;     /* owned */
    uint64_t room;    /* bytes of it */
    uint64_t end;     /* bytes that were read into it */
    uint64_t at;      /* the next one */
    uint64_t offset;  /* of the buffer's first byte in the file */
    uint64_t size;    /* of the file */
    struct pstk_error *err;
};

/* One value: its bytes, which the next call overwrites, and their place in the file. */
struct pstk__json_value {
    const char *at;
    uint64_t size;
    uint64_t offset;
};

/* Open a file. The stream has to be closed in any case. 0, or a negative result. */
int pstk__json_stream_open(struct pstk__json_stream *stream, const char *path,
                           struct pstk_error *err);
void pstk__json_stream_close(struct pstk__json_stream *stream);
/* Take the byte c, after space. 1; 0: another byte is next, or none; negative: it cannot be read.
 */
int pstk__json_stream_take(struct pstk__json_stream *stream, char c);
/* Take the next value, or pass over it, whatever its size. 0, or a negative result. */
int pstk__json_stream_value(struct pstk__json_stream *stream, struct pstk__json_value *value);
int pstk__json_stream_skip(struct pstk__json_stream *stream);
/* 1: nothing but space follows; 0: something does; negative: it cannot be read. */
int pstk__json_stream_at_end(struct pstk__json_stream *stream);
/* Fail at the next byte: what must stand there. */
int pstk__json_stream_fail(struct pstk__json_stream *stream, const char *must_be);
/* Read the bytes of a value again. 0; or EIO: the file is shorter than it was. */
int pstk__json_stream_read(const struct pstk__json_stream *stream, uint64_t offset, void *bytes,
                           uint64_t size, struct pstk_error *err);

#endif
