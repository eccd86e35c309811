/* SPDX-License-Identifier: Apache-2.0 */
/* rivals: detects a directory with files of two formats. Otherwise, one stray file would decide the
 * format, and all other files would be left out silently. */
#ifndef PSTK_FORMAT_RIVALS_H
#define PSTK_FORMAT_RIVALS_H

#include "format/format.h"

/* Check the directory `path`, which `found` knows: none of the n `others` may know it, too. A few
 * images count as no rival. EINVAL, whose message says what to open, or an error of a probe. 0 for
 * a path that is no directory. */
int pstk__rivals_check(const struct pstk__format *found, const struct pstk__format *const *others,
                       size_t n, const struct pstk__store *store, const char *path,
                       struct pstk_error *err);

#endif
