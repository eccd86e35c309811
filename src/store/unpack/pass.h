/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pass: a compressed file read once from its begin to its end. All checksums that it has are
 * checked, and its points are written. Memory is bounded whatever it unpacks to.
 */
#ifndef PSTK_UNPACK_PASS_H
#define PSTK_UNPACK_PASS_H

#include "store/store.h"
#include "store/unpack/access_points.h"

/* Most unpacked bytes of a zstd frame that a random read may have to unpack. */
#define PSTK__SPAN_MAX (8u << 20)

struct pstk__pass {
    const struct pstk__store *store;
    const char *path;                 /* of the file */
    const char *name;                 /* as the data set lists it, for messages */
    const char *points;               /* path of its access points file */
    int points_dir;                   /* the folder of that; borrowed */
    struct pstk__access_points_of of; /* of.unpacked: set by the pass */
    uint64_t points_size;             /* bytes; set by the pass */
    uint32_t head_crc;                /* set by the pass */
    int is_checked;                   /* 1: all of it has checksums in the file; set by the pass */
    /* Report n more bytes of the file as done; a non-zero result: stop with ECANCELED. Or NULL. */
    int (*progress)(void *user, uint64_t n);
    void *user;
};

/* Make the access points file. 0; 1: a frame is too large to be read alone, so there is none;
 * EBADMSG: the file is damaged, with its byte, or not the one that was listed; ECANCELED; others of
 * store and writer. */
int pstk__pass_run(struct pstk__pass *pass, struct pstk_error *err);

#endif
