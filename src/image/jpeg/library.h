/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg/library: the parts that all uses of libjpeg share: an error manager whose longjmp stays
 * within guarded(), a list of the warnings that mean damage, a source whose bytes are all in
 * memory, memory from an arena, and a limit on scans.
 *
 * Pillow ignores libjpeg's warnings. So does damaged.c. Elsewhere those that mean missing or
 * guessed coefficients are errors (EBADMSG). Those that leave the pixels intact are ignored,
 * because real files cause them:
 *
 *   JWRN_JFIF_MAJOR, JWRN_ADOBE_XFORM, JWRN_BOGUS_ICC   about metadata
 *   JWRN_NOT_SEQUENTIAL    a baseline scan header with zeros in its (unused) spectral selection
 *   JWRN_EXTRANEOUS_DATA   bytes between a complete segment and the next marker, as cameras pad
 */
#ifndef PSTK_JPEG_LIBRARY_H
#define PSTK_JPEG_LIBRARY_H

#include "image/jpeg/memory.h"

#include <penstock/types.h>
#include <setjmp.h>

/*
 * The known bits of each component's first coefficients after some scans of a progressive file, as
 * in cinfo->coef_bits: the number of low bits that are missing; -1: all. libjpeg-turbo 2.1 and
 * later keep `earlier` as well, after coef_bits; the release that runs may be older than these
 * headers.
 */
#define PSTK__JPEG_N_KNOWN 10u /* coefficients, in zigzag order */
struct pstk__jpeg_known {
    int scan; /* number of the scan that these numbers belong to; 0: none */
    int latest[MAX_COMPONENTS][PSTK__JPEG_N_KNOWN];  /* after all scans up to that one */
    int earlier[MAX_COMPONENTS][PSTK__JPEG_N_KNOWN]; /* after the scans before the component's last
                                                        one */
};

/* Our parts of a libjpeg object; cinfo->client_data points to them. */
struct pstk__jpeg_guard {
    struct jpeg_error_mgr errors;
    struct jpeg_source_mgr source;
    struct jpeg_progress_mgr progress; /* counts the scans of a decoder */
    struct pstk__jpeg_memory memory;
    struct jpeg_memory_mgr *own_memory; /* libjpeg's own manager, which made the object; NULL until
                                           made */
    jmp_buf escape;                     /* valid while guarded() runs */
    int code;                           /* libjpeg's code of the message that ended the image */
    int finishing;                      /* 1: all pixels are complete; input may end */
    int guessing;                       /* 1: warnings are ignored, the source suspends */
    long n_skip; /* bytes of later pieces that libjpeg skips; when guessing */
    /* The position at which a scan's data ended too early, which libjpeg notes only internally;
     * when guessing. */
    int starved_scan;       /* number of the last scan of this kind; 0: none */
    uint32_t starved_row;   /* row of MCUs in which its data ended */
    const JOCTET *fed_from; /* the data continue after this restart marker; NULL: they do not */
    struct pstk__jpeg_known known; /* only for a progressive file */
    char text[JMSG_LENGTH_MAX];    /* text of the message of `code` */
};

/* Fill in the managers, before the object is made; the caller sets cinfo->err and client_data. */
void pstk__jpeg_guard_init(struct pstk__jpeg_guard *guard, struct pstk__arena *arena);
/* Ignore all warnings, as Pillow does. The source suspends at the end of its bytes, for the caller
 * to give it more. guard->n_skip has the bytes beyond the end that libjpeg then skips, for
 * source.skip_input_data. */
void pstk__jpeg_guard_guess(struct pstk__jpeg_guard *guard);
/* Run body(user). Returns its result, or 1 when libjpeg ended it, with guard->code and guard->text
 * set. */
int pstk__jpeg_guarded(struct pstk__jpeg_guard *guard, int (*body)(void *user), void *user);
/* Create the object, which takes a few small blocks of malloc, and install our managers. Returns 0,
 * or 1 when libjpeg refuses. */
int pstk__jpeg_open_decompress(struct pstk__jpeg_guard *guard,
                               struct jpeg_decompress_struct *cinfo);
int pstk__jpeg_open_compress(struct pstk__jpeg_guard *guard, struct jpeg_compress_struct *cinfo);
/* Destroy the object, which need not have been created. */
void pstk__jpeg_close_decompress(struct pstk__jpeg_guard *guard,
                                 struct jpeg_decompress_struct *cinfo);
void pstk__jpeg_close_compress(struct pstk__jpeg_guard *guard, struct jpeg_compress_struct *cinfo);
/* Set the bytes of one image, and forget the image before. */
void pstk__jpeg_begin(struct pstk__jpeg_guard *guard, struct jpeg_decompress_struct *cinfo,
                      const void *data, uint64_t size);
/* Return the result for a guarded body's return value: 1 is libjpeg's error; a code < 0 has its
 * message in guard->text. size: number of the bytes. */
int pstk__jpeg_report(const struct pstk__jpeg_guard *guard, int r, uint64_t size,
                      struct pstk_error *err);
/* Return the last row of MCUs for which the last scan has data; UINT32_MAX: all rows. Known after
 * all scans were read. */
uint32_t pstk__jpeg_last_fed_row(const struct pstk__jpeg_guard *guard,
                                 const struct jpeg_decompress_struct *cinfo);
/* Return 1 for a progressive file whose scans leave out bits of some coefficients, so that decoders
 * may smooth its blocks (smooth.h). Known after all scans were read. */
int pstk__jpeg_is_incomplete(const struct jpeg_decompress_struct *cinfo);

#endif
