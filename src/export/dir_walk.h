/* SPDX-License-Identifier: Apache-2.0 */
/* dir_walk: visits all entries below a directory, to count files or to remove them. Symbolic links
 * are entries; they are not followed. */
#ifndef PSTK_EXPORT_DIR_WALK_H
#define PSTK_EXPORT_DIR_WALK_H

#include <stdint.h>
#include <sys/stat.h>

#define PSTK__WALK_PATH 4096 /* bytes of a path below the directory, with the terminating 0 */

/* Called for each entry; for a directory, after its entries. The entry is `name` in `dir`; `path`
 * is its path below the first directory, `status` its lstat. A non-zero result stops the walk. */
typedef int (*pstk__walk_fn)(void *user, int dir, const char *name, const char *path,
                             const struct stat *status);

/* Visit all entries below the directory `dir`. Returns 0, a negative native errno, or the
 * function's result. ELOOP: directories lie deeper than max_depth. An entry that disappears
 * (ENOENT) is skipped. */
int pstk__dir_walk(int dir, uint32_t max_depth, pstk__walk_fn fn, void *user);

#endif
