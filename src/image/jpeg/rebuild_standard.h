/* SPDX-License-Identifier: Apache-2.0 */
/* jpeg/rebuild_standard: rebuilds a JPEG file as a standard file. */
#ifndef PSTK_JPEG_REBUILD_STANDARD_H
#define PSTK_JPEG_REBUILD_STANDARD_H

#include "image/jpeg/splice.h"

/* Rebuild as a standard JPEG with the same coefficients and optimal Huffman tables. 0, EBADMSG or
 * ENOMEM. The caller gives back what it allocates from the arena. */
int pstk__jpeg_rebuild_standard(struct pstk__jpeg_attempt *attempt, struct pstk_error *err);

#endif
