/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg/script: reads the definitions of the coding in a skeleton's segments: tables, restart
 * intervals, and the coefficients of each scan. The bytes may be hostile; the results are within
 * bounds. Pure.
 */
#ifndef PSTK_JPEG_SCRIPT_H
#define PSTK_JPEG_SCRIPT_H

#include "image/jpeg/frame.h"
#include "image/jpeg/huffman.h"
#include "image/jpeg/segment.h"

#include <penstock/types.h>

/* A scan. */
struct pstk__jpeg_scan {
    uint32_t n_components;
    uint8_t component[PSTK__JPEG_MAX_COMPONENTS]; /* indices in the frame, all different */
    uint8_t dc_table[PSTK__JPEG_MAX_COMPONENTS], ac_table[PSTK__JPEG_MAX_COMPONENTS]; /* 0..15 */
    uint32_t first, last; /* coefficients, zigzag: 0 <= first <= last <= 63 */
    uint32_t high, low;   /* bit positions: point transform of the scan before, and of this scan */
    uint32_t restart_interval; /* MCUs; 0: none */
    int progressive;
};

struct pstk__jpeg_script {
    uint32_t sof; /* marker of the frame header; 0: not found yet */
    uint32_t n_scans;
    uint32_t restart_interval;
    struct pstk__huffman dc[4], ac[4];
    uint8_t dc_conditioning[16], ac_conditioning[16]; /* of arithmetic coding, as in DAC */
    struct pstk__jpeg_scan scan;                      /* the last one found */
};

void pstk__jpeg_script_init(struct pstk__jpeg_script *script);
/* Read one segment. 1: script->scan begins after it. 0: no scan begins. EBADMSG: it is damaged,
 * contradicts the frame, or there are too many scans. */
int pstk__jpeg_script_apply(struct pstk__jpeg_script *script,
                            const struct pstk__jpeg_segment *segment,
                            const struct pstk__jpeg_frame *frame, struct pstk_error *err);
int pstk__jpeg_script_is_arithmetic(const struct pstk__jpeg_script *script);

#endif
