/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zstd: files of one or more frames (RFC 8878), skippable ones included, such as a seek table at
 * the end; the frames are found by reading through the file. A point is the begin of a frame. A
 * frame is read at random if its window is at most 8 MiB.
 */
/* Static contexts are stable since zstd 1.4, but declared only on request. */
#define ZSTD_STATIC_LINKING_ONLY
#include "store/unpack/packing.h"

#include "base/little.h"
#include "store/unpack/frames.h"

#include <zstd.h>
#include <zstd_errors.h>

#define WINDOW_LOG 23 /* 8 MiB: enough for levels up to 19 */

struct pstk__unpacker {
    ZSTD_DStream *zstd; /* in the memory after this struct; never allocates */
    int is_between;     /* 1: a frame has ended, and no byte of the next was read */
    struct pstk__frames frames;
};

#define HEAD 64
_Static_assert(sizeof(struct pstk__unpacker) <= HEAD, "the stream begins after the struct");

static int zstd_begins(const uint8_t *head, uint64_t n)
{
    const uint32_t magic = pstk__get32(head);
    return n >= 4 && (magic == ZSTD_MAGICNUMBER ||
                      (magic & ZSTD_MAGIC_SKIPPABLE_MASK) == ZSTD_MAGIC_SKIPPABLE_START);
}

static uint64_t zstd_memory(void)
{
    return HEAD + (ZSTD_estimateDStreamSize(1u << WINDOW_LOG) + 63) / 64 * 64;
}

static struct pstk__unpacker *zstd_init(void *memory, uint64_t size)
{
    if (size < zstd_memory() || (uintptr_t)memory % 64 != 0)
        return NULL;
    struct pstk__unpacker *unpacker = memory;
    unpacker->is_between = 0;
    unpacker->zstd = ZSTD_initStaticDStream((uint8_t *)memory + HEAD, size - HEAD);
    return unpacker->zstd && !ZSTD_isError(ZSTD_DCtx_setParameter(unpacker->zstd,
                                                                  ZSTD_d_windowLogMax, WINDOW_LOG))
               ? unpacker
               : NULL;
}

static void zstd_begin(struct pstk__unpacker *unpacker)
{
    ZSTD_DCtx_reset(unpacker->zstd, ZSTD_reset_session_only);
    unpacker->is_between = 0;
    unpacker->frames = (struct pstk__frames){0};
}

static int zstd_resume(struct pstk__unpacker *unpacker, const struct pstk__restart *restart,
                       const uint8_t *dictionary)
{
    (void)dictionary;
    zstd_begin(unpacker);
    return restart->dictionary_size || restart->n_bits ? -1 : 0;
}

static enum pstk__unpacking zstd_step(struct pstk__unpacker *unpacker, struct pstk__unpack_io *io,
                                      int is_whole, const char **why)
{
    *why = NULL;
    for (;;) {
        ZSTD_inBuffer in = {io->in, io->n_in, 0};
        ZSTD_outBuffer out = {io->out, io->n_out, 0};
        if (unpacker->is_between && in.size == 0)
            return PSTK__UNPACK_MORE;
        const size_t r = ZSTD_decompressStream(unpacker->zstd, &out, &in);
        pstk__frames_add(&unpacker->frames, io->in, in.pos, r == 0);
        io->in += in.pos;
        io->n_in -= in.pos;
        io->out += out.pos;
        io->n_out -= out.pos;
        if (ZSTD_isError(r)) {
            const ZSTD_ErrorCode code = ZSTD_getErrorCode(r);
            *why = ZSTD_getErrorString(code);
            return code == ZSTD_error_frameParameter_windowTooLarge ||
                           code == ZSTD_error_memory_allocation
                       ? PSTK__UNPACK_LARGE
                       : PSTK__UNPACK_BAD;
        }
        unpacker->is_between = r == 0;
        if (r == 0 && is_whole)
            return PSTK__UNPACK_POINT;
        if (io->n_in == 0 || io->n_out == 0)
            return PSTK__UNPACK_MORE;
    }
}

static void zstd_point(const struct pstk__unpacker *unpacker, struct pstk__restart *restart,
                       uint8_t dictionary[PSTK__DICTIONARY])
{
    (void)unpacker, (void)dictionary;
    *restart = (struct pstk__restart){0};
}

static int zstd_is_complete(const struct pstk__unpacker *unpacker)
{
    return unpacker->is_between;
}

static int zstd_is_checked(const struct pstk__unpacker *unpacker)
{
    return !unpacker->frames.is_unchecked;
}

const struct pstk__packing pstk__packing_zstd = {
    .name = "zstd",
    .endings = " .zst .zstd",
    .repair = "copy it again, and check it by zstd -t",
    .begins = zstd_begins,
    .memory = zstd_memory,
    .init = zstd_init,
    .begin = zstd_begin,
    .resume = zstd_resume,
    .step = zstd_step,
    .point = zstd_point,
    .is_complete = zstd_is_complete,
    .is_checked = zstd_is_checked,
};
