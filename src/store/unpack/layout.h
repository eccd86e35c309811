/* SPDX-License-Identifier: Apache-2.0 */
/* layout: the positions of values in an access points file, which its reader and its writer share.
 */
#ifndef PSTK_UNPACK_LAYOUT_H
#define PSTK_UNPACK_LAYOUT_H

#include "store/sidecar.h"

#define PSTK__ACCESS_POINTS_HEADER 4096 /* bytes */

/* Bytes of the header after those of every sidecar; the others are zero. */
enum pstk__access_points_header {
    PSTK__PH_PACKING = PSTK__SIDECAR_OWN,
    PSTK__PH_SIZE = 24, /* bytes of the compressed file */
    PSTK__PH_CHANGED = 32,
    PSTK__PH_UNPACKED = 40,
    PSTK__PH_N_CELLS = 48,
    PSTK__PH_CELLS = 56,
    PSTK__PH_N_CHUNKS = 64,
    PSTK__PH_CHUNKS = 72,
    PSTK__PH_FILE = 80, /* bytes of the access points file */
    PSTK__PH_END = 88,
};

/* Bytes of a cell. */
enum pstk__access_points_cell {
    PSTK__PC_CRC = 0,    /* CRC32C of the bytes after it */
    PSTK__PC_NUMBER = 4, /* number of the cell, modulo 2^32 */
    PSTK__PC_BEGIN = 8,
    PSTK__PC_END = 16,
    PSTK__PC_PACKED = 24,
    PSTK__PC_DICTIONARY = 32,
    PSTK__PC_KEPT = 40,
    PSTK__PC_DICTIONARY_SIZE = 44,
    PSTK__PC_DICTIONARY_CRC = 48,
    PSTK__PC_BITS = 52,
    PSTK__PC_CHUNK = 56,
    PSTK__PC_ALL = 64,
};

/* Bytes for a chunk: the CRC32C of its bytes, and a CRC32C of that CRC with the chunk's number. */
#define PSTK__ACCESS_POINTS_CRC 8

#endif
