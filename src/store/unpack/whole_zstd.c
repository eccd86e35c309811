/* SPDX-License-Identifier: Apache-2.0 */
/* zstd: files whose frames are too large for random reads. */
#include "store/unpack/frames.h"
#include "store/unpack/whole.h"

#include <stdlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#define WINDOW_LOG                                                                                 \
    27 /* 128 MiB: enough for all levels of zstd, and for --long without a number                  \
        */

struct pstk__whole_stream {
    ZSTD_DStream *zstd; /* owned */
    int is_between;     /* 1: a frame has ended, and no byte of the next was read */
    struct pstk__frames frames;
};

static void whole_close(struct pstk__whole_stream *stream)
{
    ZSTD_freeDStream(stream->zstd);
    free(stream);
}

static struct pstk__whole_stream *whole_open(uint64_t size, uint64_t unpacked)
{
    (void)size, (void)unpacked;
    struct pstk__whole_stream *stream = calloc(1, sizeof *stream);
    if (!stream)
        return NULL;
    stream->zstd = ZSTD_createDStream();
    if (stream->zstd &&
        !ZSTD_isError(ZSTD_DCtx_setParameter(stream->zstd, ZSTD_d_windowLogMax, WINDOW_LOG)))
        return stream;
    whole_close(stream);
    return NULL;
}

static enum pstk__unpacking whole_step(struct pstk__whole_stream *stream,
                                       struct pstk__unpack_io *io, const char **why)
{
    while (io->n_out && !(stream->is_between && io->n_in == 0)) {
        ZSTD_inBuffer in = {io->in, io->n_in, 0};
        ZSTD_outBuffer out = {io->out, io->n_out, 0};
        const size_t r = ZSTD_decompressStream(stream->zstd, &out, &in);
        pstk__frames_add(&stream->frames, io->in, in.pos, r == 0);
        io->in += in.pos;
        io->n_in -= in.pos;
        io->out += out.pos;
        io->n_out -= out.pos;
        if (ZSTD_isError(r)) {
            const ZSTD_ErrorCode code = ZSTD_getErrorCode(r);
            *why = ZSTD_getErrorString(code);
            return code == ZSTD_error_frameParameter_windowTooLarge ? PSTK__UNPACK_LARGE
                   : code == ZSTD_error_memory_allocation           ? PSTK__UNPACK_MEMORY
                                                                    : PSTK__UNPACK_BAD;
        }
        stream->is_between = r == 0;
        if (io->n_in == 0)
            break;
    }
    return PSTK__UNPACK_MORE;
}

static int whole_is_complete(const struct pstk__whole_stream *stream)
{
    return stream->is_between;
}

static int whole_is_checked(const struct pstk__whole_stream *stream)
{
    return !stream->frames.is_unchecked;
}

const struct pstk__whole pstk__whole_zstd = {
    .name = "zstd",
    .repair = "copy it again, and check it by zstd -t",
    .smaller =
        "the window must be at most 128 MiB (zstd -dc --long=31 OLD | zstd --long=27 -o NEW)",
    .open = whole_open,
    .step = whole_step,
    .is_complete = whole_is_complete,
    .is_checked = whole_is_checked,
    .close = whole_close,
};
