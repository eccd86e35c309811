/* SPDX-License-Identifier: Apache-2.0 */
/* rivals: a directory that files of two formats share. Without it, one stray file would be the data
 * set, and all others left out without a word. */
#ifndef PSTK_FORMAT_RIVALS_H
#define PSTK_FORMAT_RIVALS_H

#include "format/format.h"

/* Check the directory `path`, which `found` knows: none of the `others`, n, knows it, too. A few
 * images count as no rival. Fails with EINVAL, which says what to open, or as a probe fails. 0 for
 * a path that is no directory. */
int pstk__rivals_check(const struct pstk__format *found, const struct pstk__format *const *others,
                       size_t n, const struct pstk__store *store, const char *path,
                       struct pstk_error *err);

#endif
