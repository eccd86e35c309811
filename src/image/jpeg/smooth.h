/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg/smooth: block smoothing. If the scans of a progressive file leave out bits of the first
 * coefficients, it estimates them from the DC values of 5 x 5 blocks, as libjpeg-turbo 3.0.1 and
 * later do (jdcoefct.c: smoothing_ok, decompress_smooth_data; the idea is that of T.81, K.8).
 *
 * The decoders switch off the smoothing of the linked libjpeg, whose pixels depend on its release.
 * Before 2.1 it uses 3 x 3 blocks. Releases 2.1 to 3.0.0 take other blocks at the image's edges: in
 * images two blocks wide, and if a component has two rows of blocks in an MCU.
 */
#ifndef PSTK_JPEG_SMOOTH_H
#define PSTK_JPEG_SMOOTH_H

#include "image/jpeg/library.h"

/*
 * Smooth the coefficients that libjpeg holds, in place. Call it under the guard, after
 * jpeg_start_decompress has read all scans, and before the first row. Takes memory from the guard's
 * arena, which the caller resets.
 *
 * Rows of MCUs after last_fed_row have the coefficients of the scans before the last one, whose
 * data end too early. UINT32_MAX: the file is not damaged.
 */
void pstk__jpeg_smooth(const struct pstk__jpeg_guard *guard, j_decompress_ptr cinfo,
                       uint32_t last_fed_row);

/* Return the arena bytes that smoothing takes for an image whose components have at most so many
 * blocks together, MCU padding included. */
uint64_t pstk__jpeg_smooth_scratch(uint64_t n_blocks);
#endif
