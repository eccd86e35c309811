/* SPDX-License-Identifier: Apache-2.0 */
/* Static contexts, and reading a frame header without decoding: stable since zstd 1.4, but declared
 * only on request. */
#define ZSTD_STATIC_LINKING_ONLY
#include "base/codec.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>
#include <zdict.h>
#include <zstd.h>
#include <zstd_errors.h>

/* The largest window of zstd's levels (to 22). A frame is decoded straight into the whole output,
 * so a window costs no memory. penstock writes no frame whose window exceeds both this and its
 * content. */
#define WINDOW_MAX (1ull << 27)

/* ---- dictionaries ---------------------------------------------------------------------------- */

struct pstk__dictionary {
    ZSTD_DDict *digest; /* owned; read-only, so any thread may use it */
    uint32_t id;        /* number that a frame names when it needs this dictionary */
};

int pstk__dictionary_open(struct pstk__dictionary **out, const void *data, uint64_t size,
                          struct pstk_error *err)
{
    *out = NULL;
    uint32_t id = ZSTD_getDictID_fromDict(data, size);
    if (id == 0)
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_OPEN, "it is not a zstd dictionary");
    struct pstk__dictionary *dictionary = calloc(1, sizeof *dictionary);
    if (!dictionary)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for a dictionary");
    dictionary->id = id;
    dictionary->digest = ZSTD_createDDict(data, size);
    if (!dictionary->digest) {
        pstk__dictionary_close(dictionary);
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_OPEN,
                          "this zstd dictionary of %llu bytes is damaged, or memory is out",
                          (unsigned long long)size);
    }
    *out = dictionary;
    return 0;
}

void pstk__dictionary_close(struct pstk__dictionary *dictionary)
{
    if (!dictionary)
        return;
    ZSTD_freeDDict(dictionary->digest);
    free(dictionary);
}

/* ---- decoding -------------------------------------------------------------------------------- */

struct pstk__decoder {
    ZSTD_DCtx *zstd; /* in the memory after this struct; never allocates */
};

/* The context begins at the next multiple of 64 after the struct. */
#define DECODER_HEAD 64
_Static_assert(sizeof(struct pstk__decoder) <= DECODER_HEAD, "the context begins after the struct");

uint64_t pstk__decoder_size(void)
{
    return DECODER_HEAD + (ZSTD_estimateDCtxSize() + 63) / 64 * 64;
}

struct pstk__decoder *pstk__decoder_init(void *memory, uint64_t size)
{
    if (!memory || (uintptr_t)memory % 64 != 0 || size < pstk__decoder_size())
        return NULL;
    struct pstk__decoder *decoder = memory;
    decoder->zstd = ZSTD_initStaticDCtx((uint8_t *)memory + DECODER_HEAD, size - DECODER_HEAD);
    return decoder->zstd ? decoder : NULL;
}

const char *pstk__codec_name(uint32_t codec)
{
    static const char *const names[] = {"none", "zstd", "planes"};
    return codec < sizeof names / sizeof names[0] ? names[codec] : "?";
}

int pstk__codec_known(uint32_t codec)
{
    return codec <= PSTK_CODEC_PLANES;
}

/* Check everything that a frame header states, before any of the frame is decoded. */
static int check_frame(const struct pstk__dictionary *dictionary, const void *data, uint64_t size,
                       uint64_t plain_size, struct pstk_error *err)
{
    ZSTD_frameHeader h;
    if (ZSTD_getFrameHeader(&h, data, size) != 0 || h.frameType != ZSTD_frame)
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_RECORD, "it is not a zstd frame");
    if (h.frameContentSize != plain_size)
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_RECORD,
                          "its zstd frame holds %llu bytes, not %llu",
                          (unsigned long long)h.frameContentSize, (unsigned long long)plain_size);
    if (h.windowSize > WINDOW_MAX && h.windowSize > plain_size)
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_RECORD,
                          "its zstd frame needs a window of %llu bytes",
                          (unsigned long long)h.windowSize);
    if (h.dictID != 0 && (!dictionary || dictionary->id != h.dictID))
        return pstk__fail(
            err, PSTK_EBADMSG, PSTK_STAGE_RECORD,
            "its zstd frame needs dictionary %u; the shard has dictionary %u for it (0: none)",
            h.dictID, dictionary ? dictionary->id : 0);
    size_t frame = ZSTD_findFrameCompressedSize(data, size);
    if (ZSTD_isError(frame) || frame != size)
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_RECORD,
                          "its %llu bytes are not exactly one zstd frame",
                          (unsigned long long)size);
    return 0;
}

/* Check zstd's result for a frame that should have plain_size bytes. */
static int check_result(size_t n, uint64_t plain_size, struct pstk_error *err)
{
    if (ZSTD_isError(n))
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_RECORD, "zstd cannot decompress it: %s",
                          ZSTD_getErrorName(n));
    if (n != plain_size)
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_RECORD,
                          "zstd decompressed it to %zu bytes, not %llu", n,
                          (unsigned long long)plain_size);
    return 0;
}

static int decode_zstd(struct pstk__decoder *decoder, const struct pstk__dictionary *dictionary,
                       const void *data, uint64_t size, void *out, uint64_t plain_size,
                       struct pstk_error *err)
{
    int r = check_frame(dictionary, data, size, plain_size, err);
    if (r < 0)
        return r;
    return check_result(ZSTD_decompress_usingDDict(decoder->zstd, out, plain_size, data, size,
                                                   dictionary ? dictionary->digest : NULL),
                        plain_size, err);
}

int pstk__codec_decode_prefixed(struct pstk__decoder *decoder, const void *prefix,
                                uint64_t prefix_size, const void *data, uint64_t size, void *out,
                                uint64_t plain_size, struct pstk_error *err)
{
    int r = check_frame(NULL, data, size, plain_size, err);
    if (r < 0)
        return r;
    return check_result(
        ZSTD_decompress_usingDict(decoder->zstd, out, plain_size, data, size, prefix, prefix_size),
        plain_size, err);
}

int pstk__codec_decode(struct pstk__decoder *decoder, uint32_t codec,
                       const struct pstk__dictionary *dictionary, const void *data, uint64_t size,
                       void *out, uint64_t plain_size, struct pstk_error *err)
{
    switch (codec) {
    case PSTK_CODEC_NONE:
        if (size != plain_size)
            return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_RECORD,
                              "it is stored uncompressed in %llu bytes; must be %llu",
                              (unsigned long long)size, (unsigned long long)plain_size);
        if (size)
            memcpy(out, data, size);
        return 0;
    case PSTK_CODEC_ZSTD:
        return decode_zstd(decoder, dictionary, data, size, out, plain_size, err);
    default:
        return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_RECORD,
                          "codec %u (%s) is not supported by this version of penstock", codec,
                          pstk__codec_name(codec));
    }
}

/* ---- encoding -------------------------------------------------------------------------------- */

struct pstk__encoder {
    ZSTD_CCtx *zstd; /* owned */
};

/* Set the level, and make frames self-contained: they state their size and their dictionary's
 * number. They have no zstd checksum: records have checksums of the stored and of the plain bytes.
 */
static size_t set_up(ZSTD_CCtx *context, int level, const void *dictionary,
                     uint64_t dictionary_size)
{
    size_t r = ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel,
                                      level ? level : ZSTD_CLEVEL_DEFAULT);
    if (!ZSTD_isError(r))
        r = ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 1);
    if (!ZSTD_isError(r))
        r = ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 0);
    if (!ZSTD_isError(r))
        r = ZSTD_CCtx_setParameter(context, ZSTD_c_dictIDFlag, 1);
    if (!ZSTD_isError(r) && dictionary)
        r = ZSTD_CCtx_loadDictionary(context, dictionary, dictionary_size);
    return r;
}

int pstk__encoder_open(struct pstk__encoder **out, int level, const void *dictionary,
                       uint64_t dictionary_size, struct pstk_error *err)
{
    *out = NULL;
    struct pstk__encoder *encoder = calloc(1, sizeof *encoder);
    if (encoder)
        encoder->zstd = ZSTD_createCCtx();
    if (!encoder || !encoder->zstd) {
        pstk__encoder_close(encoder);
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_WRITE, "no memory for a zstd encoder");
    }
    size_t r = set_up(encoder->zstd, level, dictionary, dictionary_size);
    if (ZSTD_isError(r)) {
        pstk__encoder_close(encoder);
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_WRITE, "zstd refuses level %d: %s", level,
                          ZSTD_getErrorName(r));
    }
    *out = encoder;
    return 0;
}

void pstk__encoder_close(struct pstk__encoder *encoder)
{
    if (!encoder)
        return;
    ZSTD_freeCCtx(encoder->zstd);
    free(encoder);
}

uint64_t pstk__encoder_bound(uint64_t size)
{
    return ZSTD_compressBound(size);
}

int64_t pstk__encoder_encode(struct pstk__encoder *encoder, const void *data, uint64_t size,
                             void *out, uint64_t out_size, struct pstk_error *err)
{
    size_t n = ZSTD_compress2(encoder->zstd, out, out_size, data, size);
    if (ZSTD_isError(n))
        return pstk__fail(
            err, ZSTD_getErrorCode(n) == ZSTD_error_memory_allocation ? PSTK_ENOMEM : PSTK_EFBIG,
            PSTK_STAGE_WRITE, "zstd cannot compress %llu bytes into %llu: %s",
            (unsigned long long)size, (unsigned long long)out_size, ZSTD_getErrorName(n));
    return (int64_t)n;
}

/* zstd uses the prefix for the next frame only. */
int64_t pstk__encoder_encode_prefixed(struct pstk__encoder *encoder, const void *prefix,
                                      uint64_t prefix_size, const void *data, uint64_t size,
                                      void *out, uint64_t out_size, struct pstk_error *err)
{
    size_t r = ZSTD_CCtx_refPrefix(encoder->zstd, prefix, prefix_size);
    if (ZSTD_isError(r))
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_WRITE, "zstd takes no prefix: %s",
                          ZSTD_getErrorName(r));
    return pstk__encoder_encode(encoder, data, size, out, out_size, err);
}

/* Train with zstd's own trainer, on one thread: the same samples give the same dictionary. */
int pstk__dictionary_train(void *out, uint64_t capacity, const void *samples, const size_t *sizes,
                           uint32_t n, uint64_t *size, struct pstk_error *err)
{
    size_t got = ZDICT_trainFromBuffer(out, capacity, samples, sizes, n);
    *size = ZDICT_isError(got) ? 0 : got;
    if (ZDICT_isError(got) && ZSTD_getErrorCode(got) == ZSTD_error_memory_allocation)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_WRITE,
                          "out of memory for training a dictionary");
    return 0;
}
