/* SPDX-License-Identifier: Apache-2.0 */
/* jpeg/rebuild_library: rebuilds a JPEG file by libjpeg. */
#ifndef PSTK_JPEG_REBUILD_LIBRARY_H
#define PSTK_JPEG_REBUILD_LIBRARY_H

#include "image/jpeg/splice.h"

/* Rebuild by libjpeg: it codes the scans (arithmetic coding), and their data go into the skeleton.
 * 0, EBADMSG or ENOMEM. The caller gives back what it allocates from the arena. */
int pstk__jpeg_rebuild_library(struct pstk__jpeg_attempt *attempt, struct pstk_error *err);

#endif
