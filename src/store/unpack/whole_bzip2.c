/* SPDX-License-Identifier: Apache-2.0 */
/* bzip2: files of one or more streams. */
#include "store/unpack/whole.h"

#include <bzlib.h>
#include <stdlib.h>

struct pstk__whole_stream {
    bz_stream bzip2;
    int is_open;   /* 1: a stream has begun */
    int n_streams; /* streams that have ended: 0, or 1 for any number */
};

static struct pstk__whole_stream *whole_open(uint64_t size, uint64_t unpacked)
{
    (void)size, (void)unpacked;
    return calloc(1, sizeof(struct pstk__whole_stream));
}

static void whole_close(struct pstk__whole_stream *stream)
{
    if (stream->is_open)
        BZ2_bzDecompressEnd(&stream->bzip2);
    free(stream);
}

static enum pstk__unpacking whole_step(struct pstk__whole_stream *stream,
                                       struct pstk__unpack_io *io, const char **why)
{
    bz_stream *bzip2 = &stream->bzip2;
    while (io->n_out && (io->n_in || stream->is_open)) {
        if (!stream->is_open && BZ2_bzDecompressInit(bzip2, 0, 0) != BZ_OK)
            return PSTK__UNPACK_MEMORY; /* cannot be a wrong parameter, so no memory */
        stream->is_open = 1;
        const uint32_t n_in = (uint32_t)io->n_in, n_out = (uint32_t)io->n_out; /* at most a piece */
        bzip2->next_in = (char *)(uintptr_t)io->in; /* bzip2 only reads it */
        bzip2->avail_in = n_in;
        bzip2->next_out = (char *)io->out;
        bzip2->avail_out = n_out;
        const int r = BZ2_bzDecompress(bzip2);
        io->in += n_in - bzip2->avail_in;
        io->n_in = bzip2->avail_in;
        io->out += n_out - bzip2->avail_out;
        io->n_out = bzip2->avail_out;
        if (r == BZ_STREAM_END) {
            BZ2_bzDecompressEnd(bzip2);
            stream->is_open = 0;
            stream->n_streams = 1;
        } else if (r == BZ_MEM_ERROR) {
            return PSTK__UNPACK_MEMORY;
        } else if (r != BZ_OK) {
            *why = "it is not bzip2 data, or one of its checksums is wrong";
            return PSTK__UNPACK_BAD;
        } else if (io->n_in == 0 && io->n_out == n_out) {
            break;
        }
    }
    return PSTK__UNPACK_MORE;
}

static int whole_is_complete(const struct pstk__whole_stream *stream)
{
    return stream->n_streams && !stream->is_open;
}

static int whole_is_checked(const struct pstk__whole_stream *stream)
{
    (void)stream;
    return 1;
}

const struct pstk__whole pstk__whole_bzip2 = {
    .name = "bzip2",
    .repair = "copy it again, and check it by bzip2 -t",
    .open = whole_open,
    .step = whole_step,
    .is_complete = whole_is_complete,
    .is_checked = whole_is_checked,
    .close = whole_close,
};
