/* SPDX-License-Identifier: Apache-2.0 */
#include "image/jpeg/splice.h"

#include "base/error.h"

#include <string.h>

static int is_full(struct pstk_error *err)
{
    return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_DECODE,
                      "JPEG: the rebuilt file is larger than its recorded size");
}

int pstk__jpeg_put(struct pstk__jpeg_attempt *attempt, const void *bytes, uint64_t n,
                   struct pstk_error *err)
{
    if (n > (uint64_t)(attempt->end - attempt->at))
        return is_full(err);
    memcpy(attempt->at, bytes, (size_t)n);
    attempt->at += n;
    return 0;
}

int pstk__jpeg_put_scan(struct pstk__jpeg_attempt *attempt, struct pstk_error *err)
{
    uint32_t padding = attempt->image->parameters & PSTK__JPEG_ZERO_PADDING ? 0 : 1;
    if (pstk__jpeg_script_is_arithmetic(&attempt->script))
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_DECODE,
                          "JPEG skeleton: this method of rebuilding does not do arithmetic coding");
    pstk__bits_init(&attempt->bits, attempt->at, attempt->end);
    const struct pstk__jpeg_units units = {&attempt->image->frame, attempt->blocks,
                                           &attempt->script.scan};
    int r = pstk__jpeg_scan_write(&units, &attempt->script, padding, attempt->isa, &attempt->bits);
    if (r < 0)
        return pstk__fail(err, r, PSTK_STAGE_DECODE,
                          "JPEG: scan %u cannot be coded: a coefficient has no code, or the scan "
                          "is larger than its recorded size",
                          attempt->script.n_scans);
    attempt->at = attempt->bits.state.at;
    return 0;
}

int pstk__jpeg_splice(struct pstk__jpeg_attempt *attempt, struct pstk_error *err)
{
    struct pstk__jpeg_walk walk = {.data = attempt->image->skeleton,
                                   .size = attempt->image->skeleton_size};
    struct pstk__jpeg_segment segment;
    uint64_t n_copied = 0;
    int r = 0;

    pstk__jpeg_script_init(&attempt->script);
    while (pstk__jpeg_walk_next(&walk, &segment)) {
        r = pstk__jpeg_script_apply(&attempt->script, &segment, &attempt->image->frame, err);
        if (r < 0)
            return r;
        if (r == 0)
            continue;
        r = pstk__jpeg_put(attempt, walk.data + n_copied, segment.end - n_copied, err);
        const uint8_t *begin = attempt->at;
        if (r == 0)
            r = attempt->write_scan(attempt, err);
        if (r < 0)
            return r;
        attempt->scan_size[attempt->script.n_scans - 1] = (uint64_t)(attempt->at - begin);
        n_copied = segment.end;
    }
    if (attempt->script.n_scans == 0)
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_DECODE, "JPEG skeleton without a scan");
    return pstk__jpeg_put(attempt, walk.data + n_copied, walk.size - n_copied, err);
}

static uint64_t count_blocks(const struct pstk__jpeg_frame *f)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < f->n_components && i < PSTK__JPEG_MAX_COMPONENTS; i++)
        n += (uint64_t)f->component[i].stride * f->component[i].rows;
    return n;
}

/*
 * Bound the file's size. A block coded once has 64 symbols of at most 16 bits with 15 bits of
 * value: 248 bytes, each of which may be stuffed. A restart after it adds its marker and a
 * filled-up byte: 500 bytes. Tables and headers of a standard file take less than 4 KiB
 * (rebuild_standard.c, struct body). A file that exceeds this, because scans repeat coefficients,
 * is not rebuilt exactly.
 */
uint64_t pstk__jpeg_splice_bound(const struct pstk__jpeg_frame *f, uint64_t skeleton_size)
{
    return skeleton_size + count_blocks(f) * 512 + 4096;
}
