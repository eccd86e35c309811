/* SPDX-License-Identifier: Apache-2.0 */
/* unknown: explains why a path is no data set: its contents, and the contents that a data set has.
 * Called after every format has refused the path; it opens no data set. */
#ifndef PSTK_FORMAT_UNKNOWN_H
#define PSTK_FORMAT_UNKNOWN_H

#include "format/format.h"

/* Return the name of the format that knows a path; NULL: none does. */
typedef const char *(*pstk__unknown_find_fn)(const struct pstk__store *store, const char *path);

/* Fail with ENOENT or ENOTSUP, or with the error of reading the path. must_be: required contents of
 * a directory of a data set; must_be_file: files that are data sets. */
int pstk__unknown_fail(const struct pstk__store *store, const char *path, const char *must_be,
                       const char *must_be_file, pstk__unknown_find_fn find,
                       struct pstk_error *err);

#endif
