/* SPDX-License-Identifier: Apache-2.0 */
/* jpeg/splice: the functions that all methods of rebuilding a file share. */
#ifndef PSTK_JPEG_SPLICE_H
#define PSTK_JPEG_SPLICE_H

#include "image/jpeg/coefficients.h"
#include "image/jpeg/scan.h"

/* Bits of struct pstk__jpeg_image's parameters. */
enum pstk__jpeg_parameter {
    PSTK__JPEG_ZERO_PADDING = 1, /* the last bytes of scans are filled up with zeros, not ones */
};

/* One attempt at rebuilding a file. pstk__jpeg_attempt (rebuild.c) sets the members. */
struct pstk__jpeg_attempt {
    const struct pstk__jpeg_image *image;
    const int16_t *blocks[PSTK__JPEG_MAX_COMPONENTS];
    struct pstk__jpeg_script script;
    struct pstk__bits bits;
    uint32_t isa; /* ISA of the coder's kernels */
    struct pstk__arena *arena;
    uint8_t *out, *at, *end; /* the file so far is out..at, within out..end */
    /* Write the data of the scan that `script` describes, or of the next scan of `user`. */
    int (*write_scan)(struct pstk__jpeg_attempt *a, struct pstk_error *err);
    void *user;
    uint64_t scan_size[PSTK__JPEG_MAX_SCANS]; /* bytes that write_scan wrote */
};

/* Copy n bytes to the output. 0 or EBADMSG. */
int pstk__jpeg_put(struct pstk__jpeg_attempt *attempt, const void *bytes, uint64_t n,
                   struct pstk_error *err);
/* Code attempt->script.scan to the output. 0 or EBADMSG. */
int pstk__jpeg_put_scan(struct pstk__jpeg_attempt *attempt, struct pstk_error *err);
/* Write the skeleton, and write_scan's data after each scan header. */
int pstk__jpeg_splice(struct pstk__jpeg_attempt *attempt, struct pstk_error *err);

/* Return the largest number of bytes of a rebuilt file with this frame and skeleton, by any method.
 */
uint64_t pstk__jpeg_splice_bound(const struct pstk__jpeg_frame *f, uint64_t skeleton_size);

#endif
