/* SPDX-License-Identifier: Apache-2.0 */
/* jpeg/rebuild_library: a JPEG file rebuilt by libjpeg. */
#ifndef PSTK_JPEG_REBUILD_LIBRARY_H
#define PSTK_JPEG_REBUILD_LIBRARY_H

#include "image/jpeg/splice.h"

/* A way of rebuilding: libjpeg codes the scans (arithmetic coding), and their data go into the
 * skeleton. 0, EBADMSG or ENOMEM. What it allocates from the arena it leaves. */
int pstk__jpeg_rebuild_library(struct pstk__jpeg_attempt *attempt, struct pstk_error *err);

#endif
