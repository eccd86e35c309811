/* SPDX-License-Identifier: Apache-2.0 */
/* jpeg/rebuild_standard: a JPEG file rebuilt as a standard file. */
#ifndef PSTK_JPEG_REBUILD_STANDARD_H
#define PSTK_JPEG_REBUILD_STANDARD_H

#include "image/jpeg/splice.h"

/* A way of rebuilding: a standard JPEG of the same coefficients, by optimal Huffman tables. 0,
 * EBADMSG or ENOMEM. What it allocates from the arena it leaves. */
int pstk__jpeg_rebuild_standard(struct pstk__jpeg_attempt *attempt, struct pstk_error *err);

#endif
