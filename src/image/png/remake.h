/* SPDX-License-Identifier: Apache-2.0 */
/*
 * png/remake: makes a valid PNG file from one whose rows are complete, and whose fault comes after
 * them (png/rows).
 */
#ifndef PSTK_PNG_REMAKE_H
#define PSTK_PNG_REMAKE_H

#include "image/decoder.h"

/* Make the file: the chunks before the image data, the same rows, deflated anew, then the complete
 * chunks after them. Its first chunk after IHDR marks it as remade. Returns owned bytes in *out
 * (free) and their number in *out_size. It does not unfilter the rows: decode the result to check
 * it. EBADMSG: rows are missing or damaged, or Pillow refuses the file; ENOMEM. */
int pstk__png_remake(const void *data, uint64_t size, const struct pstk__image_info *info,
                     void **out, uint64_t *out_size, struct pstk_error *err);
/* Return 1 when pstk__png_remake made this file. */
int pstk__png_is_remade(const void *data, uint64_t size);
#endif
