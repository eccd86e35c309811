/* SPDX-License-Identifier: Apache-2.0 */
/* layout: the positions of values in an index file, which its reader and its writer share. */
#ifndef PSTK_INDEX_LAYOUT_H
#define PSTK_INDEX_LAYOUT_H

#include "store/sidecar.h"

#define PSTK__INDEX_HEADER 4096         /* bytes */
#define PSTK__INDEX_MAX_TAIL (1u << 30) /* max bytes of the description */

/* Bytes of the header after those of every sidecar; the others are zero. */
enum pstk__index_header {
    PSTK__IH_KEY = PSTK__SIDECAR_OWN,
    PSTK__IH_DIGEST = 32,
    PSTK__IH_SIZE = 48, /* bytes of the file */
    PSTK__IH_TAIL = 56, /* begin of the description, byte of the file */
    PSTK__IH_TAIL_CRC = 64,
    PSTK__IH_N_FILES = 68,
    PSTK__IH_N_COLUMNS = 72, /* columns of every table */
    PSTK__IH_N_CLASSES = 76,
    PSTK__IH_END = 80,
};

#endif
