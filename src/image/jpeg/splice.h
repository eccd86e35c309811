/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg/rebuild: what the ways of putting a file together share. L2, between rebuild.c,
 * rebuild_library.c, rebuild_standard.c and choose.c.
 */
#ifndef PSTK_JPEG_REBUILD_H
#define PSTK_JPEG_REBUILD_H

#include "image/jpeg/coefficients.h"
#include "image/jpeg/scan.h"

/* struct pstk__jpeg_image's parameters: a set of these. */
enum pstk__jpeg_parameter {
    PSTK__JPEG_ZERO_PADDING = 1, /* scans' last bytes are filled up with zeros, not ones */
};

/* One attempt at a file. Members are set by pstk__jpeg_attempt. */
struct pstk__jpeg_attempt {
    const struct pstk__jpeg_image *image;
    const int16_t *blocks[PSTK__JPEG_MAX_COMPONENTS];
    struct pstk__jpeg_script script;
    struct pstk__bits bits;
    uint32_t variant; /* of the coder's kernels */
    struct pstk__arena *arena;
    uint8_t *out, *at, *end; /* the file so far: out..at, within out..end */
    /* Writes the data of the scan that script tells, or the next one of `user`. */
    int (*write_scan)(struct pstk__jpeg_attempt *a, struct pstk_error *err);
    void *user;
    uint64_t scan_size[PSTK__JPEG_MAX_SCANS]; /* bytes that write_scan made */
};

/* Rebuild the image as its `rebuild` says; the file is a->out..a->at. What it allocates from the
 * arena is given back. Results as pstk__jpeg_image_rebuild. */
int pstk__jpeg_attempt(struct pstk__jpeg_attempt *a, const struct pstk__jpeg_image *image,
                       uint8_t *out, uint64_t capacity, struct pstk__arena *arena,
                       struct pstk_error *err);

/* Copy n bytes to the output. 0 or EBADMSG. */
int pstk__jpeg_put(struct pstk__jpeg_attempt *a, const void *bytes, uint64_t n,
                   struct pstk_error *err);
/* Code a->script.scan to the output. 0 or EBADMSG. */
int pstk__jpeg_put_scan(struct pstk__jpeg_attempt *a, struct pstk_error *err);
/* The skeleton, with what write_scan gives at each scan. */
int pstk__jpeg_splice(struct pstk__jpeg_attempt *a, struct pstk_error *err);

/* The methods, but for SCANS. They leave what they allocate. */
int pstk__jpeg_rebuild_library(struct pstk__jpeg_attempt *a, struct pstk_error *err);
int pstk__jpeg_rebuild_standard(struct pstk__jpeg_attempt *a, struct pstk_error *err);

#endif
