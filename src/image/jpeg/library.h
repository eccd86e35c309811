/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg/library: what every use of libjpeg here shares: an error manager whose longjmp stays within
 * guarded(), which warnings mean damage, a source of bytes that are all there at once, memory from
 * an arena, a limit on scans.
 *
 * Pillow is silent about libjpeg's warnings; here those that mean missing or guessed coefficients
 * end the image (EBADMSG). Those that leave the pixels whole pass, as real files have them:
 *   JWRN_JFIF_MAJOR, JWRN_ADOBE_XFORM, JWRN_BOGUS_ICC   about metadata
 *   JWRN_NOT_SEQUENTIAL    a baseline scan header with zeroes in its (unused) spectral selection
 *   JWRN_EXTRANEOUS_DATA   bytes between a complete segment and the next marker, as cameras pad
 */
#ifndef PSTK_JPEG_LIBRARY_H
#define PSTK_JPEG_LIBRARY_H

#include "image/jpeg/memory.h"

#include <penstock/types.h>
#include <setjmp.h>

/* The parts of a libjpeg object that are ours; cinfo->client_data points to them. */
struct pstk__jpeg_guard {
    struct jpeg_error_mgr errors;
    struct jpeg_source_mgr source;
    struct jpeg_progress_mgr progress; /* counts a decoder's scans */
    struct pstk__jpeg_memory memory;
    struct jpeg_memory_mgr *own_memory; /* libjpeg's, which made the object; NULL until made */
    jmp_buf escape;                     /* valid while guarded() runs */
    int code;                           /* libjpeg's message code of what ended the image */
    int finishing;                      /* 1: all pixels are there; input may end */
    char text[JMSG_LENGTH_MAX];         /* its text */
};

/* Fill in the managers. Before the object is made: cinfo->err and client_data are the caller's. */
void pstk__jpeg_guard_init(struct pstk__jpeg_guard *guard, struct pstk__arena *arena);
/* Run body(user). What it returns, or 1 when libjpeg ended it: g->code and g->text say why. */
int pstk__jpeg_guarded(struct pstk__jpeg_guard *guard, int (*body)(void *user), void *user);
/* Make the object, which takes a few small blocks of malloc, and put our managers in. 0, or 1 when
 * libjpeg refuses. */
int pstk__jpeg_open_decompress(struct pstk__jpeg_guard *guard,
                               struct jpeg_decompress_struct *cinfo);
int pstk__jpeg_open_compress(struct pstk__jpeg_guard *guard, struct jpeg_compress_struct *cinfo);
/* Destroy it, also one that was never made. */
void pstk__jpeg_close_decompress(struct pstk__jpeg_guard *guard,
                                 struct jpeg_decompress_struct *cinfo);
void pstk__jpeg_close_compress(struct pstk__jpeg_guard *guard, struct jpeg_compress_struct *cinfo);
/* The bytes of one image; nothing may be left of the image before. */
void pstk__jpeg_begin(struct pstk__jpeg_guard *guard, struct jpeg_decompress_struct *cinfo,
                      const void *data, uint64_t size);
/* The result to return for what a guarded body returned: 1 is libjpeg's error, a code < 0 one whose
 * message is g->text. `size` is that of the bytes. */
int pstk__jpeg_report(const struct pstk__jpeg_guard *guard, int r, uint64_t size,
                      struct pstk_error *err);
/* Does libjpeg smooth the blocks? Known once all scans are read. */
int pstk__jpeg_is_smoothed(const struct jpeg_decompress_struct *cinfo);

#endif
