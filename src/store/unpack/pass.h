/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pass: reads a compressed file once from begin to end, checks all its checksums, and writes its
 * points. Its memory does not depend on the unpacked size.
 */
#ifndef PSTK_UNPACK_PASS_H
#define PSTK_UNPACK_PASS_H

#include "store/store.h"
#include "store/unpack/access_points.h"

/* Max unpacked bytes of a zstd frame that a random read may have to unpack. */
#define PSTK__SPAN_MAX (8u << 20)

struct pstk__pass {
    const struct pstk__store *store;
    const char *path;                 /* path of the file */
    const char *name;                 /* name in the data set, for messages */
    const char *points;               /* path of its access points file */
    int points_dir;                   /* folder of that file, borrowed */
    struct pstk__access_points_of of; /* the compressed file; the pass sets of.unpacked */
    uint64_t points_size;             /* bytes of the access points file; the pass sets it */
    uint32_t head_crc;                /* checksum of its header; the pass sets it */
    int is_checked; /* 1: all bytes have checksums in the file; the pass sets it */
    /* Receives the n bytes of the file done since the last call; a non-zero result ends with
     * ECANCELED. May be NULL. */
    int (*progress)(void *user, uint64_t n);
    void *user;
};

/* Make the access points file. 0; 1: no file was made, because a frame is too large for random
 * reads; EBADMSG: the file is damaged, with its byte, or was changed since it was listed;
 * ECANCELED; other errors of store and writer. */
int pstk__pass_run(struct pstk__pass *pass, struct pstk_error *err);

#endif
