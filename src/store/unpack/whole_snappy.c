/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snappy: files of one block, which has no checksum. A block is unpacked at once, so it takes
 * memory for the whole file, and for its unpacked bytes.
 */
#include "store/unpack/whole.h"

#include <snappy-c.h>
#include <stdlib.h>
#include <string.h>

struct pstk__whole_stream {
    uint64_t size, unpacked; /* bytes */
    uint64_t n_in, n_out;    /* bytes gathered, and bytes passed on */
    char *in, *out;          /* owned; out: set once all input is gathered */
};

static void whole_close(struct pstk__whole_stream *stream)
{
    free(stream->in);
    free(stream->out);
    free(stream);
}

static struct pstk__whole_stream *whole_open(uint64_t size, uint64_t unpacked)
{
    struct pstk__whole_stream *stream = calloc(1, sizeof *stream);
    if (!stream)
        return NULL;
    stream->size = size;
    stream->unpacked = unpacked;
    stream->in = malloc(size ? size : 1);
    if (stream->in)
        return stream;
    whole_close(stream);
    return NULL;
}

/* Unpack the gathered bytes. Returns NULL, or the reason of a failure. Out of memory: stream->out
 * is NULL. */
static const char *unpack(struct pstk__whole_stream *stream)
{
    size_t n;
    if (snappy_uncompressed_length(stream->in, stream->size, &n) != SNAPPY_OK ||
        n != stream->unpacked)
        return "the size at its beginning differs from the size that its data set states";
    stream->out = malloc(n ? n : 1);
    if (!stream->out)
        return NULL;
    return snappy_uncompress(stream->in, stream->size, stream->out, &n) == SNAPPY_OK &&
                   n == stream->unpacked
               ? NULL
               : "it is not snappy data, or is damaged";
}

static enum pstk__unpacking whole_step(struct pstk__whole_stream *stream,
                                       struct pstk__unpack_io *io, const char **why)
{
    const uint64_t room = stream->size - stream->n_in;
    const uint64_t n = io->n_in < room ? io->n_in : room;
    if (n)
        memcpy(stream->in + stream->n_in, io->in, n);
    stream->n_in += n;
    io->in += n;
    io->n_in -= n;
    if (stream->n_in < stream->size)
        return PSTK__UNPACK_MORE;
    *why = stream->out ? NULL : unpack(stream);
    if (*why)
        return PSTK__UNPACK_BAD;
    if (!stream->out)
        return PSTK__UNPACK_MEMORY;
    const uint64_t left = stream->unpacked - stream->n_out;
    const uint64_t m = left < io->n_out ? left : io->n_out;
    if (m)
        memcpy(io->out, stream->out + stream->n_out, m);
    stream->n_out += m;
    io->out += m;
    io->n_out -= m;
    return PSTK__UNPACK_MORE;
}

static int whole_is_complete(const struct pstk__whole_stream *stream)
{
    return stream->out && stream->n_out == stream->unpacked;
}

const struct pstk__whole pstk__whole_snappy = {
    .name = "snappy",
    .repair = "copy it again",
    .open = whole_open,
    .step = whole_step,
    .is_complete = whole_is_complete,
    .close = whole_close,
};
