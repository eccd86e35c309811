/* SPDX-License-Identifier: Apache-2.0 */
/* unknown: why a path is no data set: what lies there, and what must. Called after every format has
 * said no; it opens no data set. */
#ifndef PSTK_FORMAT_UNKNOWN_H
#define PSTK_FORMAT_UNKNOWN_H

#include "format/format.h"

/* The name of the format that knows a path; NULL: none does. */
typedef const char *(*pstk__unknown_find_fn)(const struct pstk__store *store, const char *path);

/* Fail: ENOENT or ENOTSUP, or as the path could not be read. must_be: what a directory of a data
 * set has; must_be_file: what files are data sets. */
int pstk__unknown_fail(const struct pstk__store *store, const char *path, const char *must_be,
                       const char *must_be_file, pstk__unknown_find_fn find,
                       struct pstk_error *err);

#endif
