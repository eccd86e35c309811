/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg/library: what all uses of libjpeg share: an error manager whose longjmp stays within
 * guarded(), a list of the warnings that mean damage, a source whose bytes are all in memory,
 * memory from an arena, and a limit on scans.
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
 * What the scans of a progressive file have given of each component's first coefficients, as
 * cinfo->coef_bits has it: the low bits that are missing; -1: all. libjpeg-turbo 2.1 and later keep
 * `earlier` as well, after coef_bits; the release that runs may be older than these headers.
 */
#define PSTK__JPEG_N_KNOWN 10u /* coefficients, in zigzag order */
struct pstk__jpeg_known {
    int scan; /* number of the scan that this is noted of; 0: none */
    int latest[MAX_COMPONENTS][PSTK__JPEG_N_KNOWN];  /* by all scans up to that one */
    int earlier[MAX_COMPONENTS][PSTK__JPEG_N_KNOWN]; /* by those before the component's last one */
};

/* Our parts of a libjpeg object; cinfo->client_data points to them. */
struct pstk__jpeg_guard {
    struct jpeg_error_mgr errors;
    struct jpeg_source_mgr source;
    struct jpeg_progress_mgr progress; /* counts the scans of a decoder */
    struct pstk__jpeg_memory memory;
    struct jpeg_memory_mgr *own_memory; /* libjpeg's own, which made the object; NULL until made */
    jmp_buf escape;                     /* valid while guarded() runs */
    int code;                           /* libjpeg's code of the message that ended the image */
    int finishing;                      /* 1: all pixels are complete; input may end */
    int guessing;                       /* 1: warnings are ignored, the source suspends */
    long n_skip;                        /* bytes of pieces to come that libjpeg skips; guessing */
    /* Where data of a scan end too early, which libjpeg notes where nobody can see it; guessing. */
    int starved_scan;              /* number of the last scan of this kind; 0: none */
    uint32_t starved_row;          /* row of MCUs in which its data ended */
    const JOCTET *fed_from;        /* it goes on after this restart; NULL: it does not */
    struct pstk__jpeg_known known; /* of a progressive file */
    char text[JMSG_LENGTH_MAX];    /* text of that message */
};

/* Fill in the managers, before the object is made; the caller sets cinfo->err and client_data. */
void pstk__jpeg_guard_init(struct pstk__jpeg_guard *guard, struct pstk__arena *arena);
/* Ignore all warnings, as Pillow does. The source suspends where its bytes end: give it more. What
 * libjpeg then skips beyond them is in guard->n_skip, for source.skip_input_data. */
void pstk__jpeg_guard_guess(struct pstk__jpeg_guard *guard);
/* Run body(user). Returns its result, or 1 when libjpeg ended it, with guard->code and guard->text
 * set. */
int pstk__jpeg_guarded(struct pstk__jpeg_guard *guard, int (*body)(void *user), void *user);
/* Make the object, which takes a few small blocks of malloc, and install our managers. 0, or 1 when
 * libjpeg refuses. */
int pstk__jpeg_open_decompress(struct pstk__jpeg_guard *guard,
                               struct jpeg_decompress_struct *cinfo);
int pstk__jpeg_open_compress(struct pstk__jpeg_guard *guard, struct jpeg_compress_struct *cinfo);
/* Destroy the object, which need not have been made. */
void pstk__jpeg_close_decompress(struct pstk__jpeg_guard *guard,
                                 struct jpeg_decompress_struct *cinfo);
void pstk__jpeg_close_compress(struct pstk__jpeg_guard *guard, struct jpeg_compress_struct *cinfo);
/* Set the bytes of one image, and forget the image before. */
void pstk__jpeg_begin(struct pstk__jpeg_guard *guard, struct jpeg_decompress_struct *cinfo,
                      const void *data, uint64_t size);
/* Return the result for what a guarded body returned: 1 is libjpeg's error; a code < 0 has its
 * message in guard->text. `size`: of the bytes. */
int pstk__jpeg_report(const struct pstk__jpeg_guard *guard, int r, uint64_t size,
                      struct pstk_error *err);
/* Return the last row of MCUs that the last scan has data for; UINT32_MAX: all rows. Known after
 * all scans were read. */
uint32_t pstk__jpeg_last_fed_row(const struct pstk__jpeg_guard *guard,
                                 const struct jpeg_decompress_struct *cinfo);
/* 1: a progressive file whose scans leave out bits of some coefficients, so that decoders may
 * smooth its blocks (smooth.h). Known after all scans were read. */
int pstk__jpeg_is_incomplete(const struct jpeg_decompress_struct *cinfo);

#endif
