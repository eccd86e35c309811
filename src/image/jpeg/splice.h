/* SPDX-License-Identifier: Apache-2.0 */
/* jpeg/splice: the pieces that every way of putting a file together is made of. */
#ifndef PSTK_JPEG_SPLICE_H
#define PSTK_JPEG_SPLICE_H

#include "image/jpeg/coefficients.h"
#include "image/jpeg/scan.h"

/* struct pstk__jpeg_image's parameters: a set of these. */
enum pstk__jpeg_parameter {
    PSTK__JPEG_ZERO_PADDING = 1, /* scans' last bytes are filled up with zeros, not ones */
};

/* One attempt at a file. Members are set by pstk__jpeg_attempt, in rebuild.c. */
struct pstk__jpeg_attempt {
    const struct pstk__jpeg_image *image;
    const int16_t *blocks[PSTK__JPEG_MAX_COMPONENTS];
    struct pstk__jpeg_script script;
    struct pstk__bits bits;
    uint32_t variant; /* of the coder's kernels */
    struct pstk__arena *arena;
    uint8_t *out, *at, *end; /* the file so far: out..at, within out..end */
    /* Writes the data of the scan that script describes, or the next one of `user`. */
    int (*write_scan)(struct pstk__jpeg_attempt *a, struct pstk_error *err);
    void *user;
    uint64_t scan_size[PSTK__JPEG_MAX_SCANS]; /* bytes that write_scan made */
};

/* Copy n bytes to the output. 0 or EBADMSG. */
int pstk__jpeg_put(struct pstk__jpeg_attempt *attempt, const void *bytes, uint64_t n,
                   struct pstk_error *err);
/* Code a->script.scan to the output. 0 or EBADMSG. */
int pstk__jpeg_put_scan(struct pstk__jpeg_attempt *attempt, struct pstk_error *err);
/* The skeleton, with what write_scan gives at each scan. */
int pstk__jpeg_splice(struct pstk__jpeg_attempt *attempt, struct pstk_error *err);

/* Most bytes that a file of this frame and skeleton can take once rebuilt, in any way. */
uint64_t pstk__jpeg_splice_bound(const struct pstk__jpeg_frame *f, uint64_t skeleton_size);

#endif
