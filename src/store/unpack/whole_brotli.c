/* SPDX-License-Identifier: Apache-2.0 */
/* brotli: files of brotli, which has no checksum. */
#include "store/unpack/whole.h"

#include <brotli/decode.h>
#include <stdlib.h>

struct pstk__whole_stream {
    BrotliDecoderState *brotli; /* owned */
    int is_complete;
};

static struct pstk__whole_stream *whole_open(uint64_t size, uint64_t unpacked)
{
    (void)size, (void)unpacked;
    struct pstk__whole_stream *stream = calloc(1, sizeof *stream);
    if (stream)
        stream->brotli = BrotliDecoderCreateInstance(NULL, NULL, NULL);
    if (stream && stream->brotli)
        return stream;
    free(stream);
    return NULL;
}

static void whole_close(struct pstk__whole_stream *stream)
{
    BrotliDecoderDestroyInstance(stream->brotli);
    free(stream);
}

static int is_memory(BrotliDecoderErrorCode code)
{
    return code <= BROTLI_DECODER_ERROR_ALLOC_CONTEXT_MODES &&
           code >= BROTLI_DECODER_ERROR_ALLOC_BLOCK_TYPE_TREES;
}

static enum pstk__unpacking whole_step(struct pstk__whole_stream *stream,
                                       struct pstk__unpack_io *io, const char **why)
{
    size_t n_in = io->n_in, n_out = io->n_out;
    if (stream->is_complete) {
        *why = "other bytes follow the end of the brotli data";
        return n_in ? PSTK__UNPACK_BAD : PSTK__UNPACK_MORE;
    }
    const BrotliDecoderResult r =
        BrotliDecoderDecompressStream(stream->brotli, &n_in, &io->in, &n_out, &io->out, NULL);
    io->n_in = n_in;
    io->n_out = n_out;
    stream->is_complete = r == BROTLI_DECODER_RESULT_SUCCESS;
    *why = "it is not brotli data, or is damaged";
    if (r == BROTLI_DECODER_RESULT_ERROR)
        return is_memory(BrotliDecoderGetErrorCode(stream->brotli)) ? PSTK__UNPACK_MEMORY
                                                                    : PSTK__UNPACK_BAD;
    *why = "other bytes follow the end of the brotli data";
    return stream->is_complete && n_in ? PSTK__UNPACK_BAD : PSTK__UNPACK_MORE;
}

static int whole_is_complete(const struct pstk__whole_stream *stream)
{
    return stream->is_complete;
}

const struct pstk__whole pstk__whole_brotli = {
    .name = "brotli",
    .repair = "copy it again, and check it by brotli -t",
    .open = whole_open,
    .step = whole_step,
    .is_complete = whole_is_complete,
    .close = whole_close,
};
