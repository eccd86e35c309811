/* SPDX-License-Identifier: Apache-2.0 */
/* dir_walk: all entries of a directory and of those in it, to count files or to remove them.
 * Symbolic links are entries: what they lead to is not visited. */
#ifndef PSTK_EXPORT_DIR_WALK_H
#define PSTK_EXPORT_DIR_WALK_H

#include <stdint.h>
#include <sys/stat.h>

#define PSTK__WALK_PATH 4096 /* bytes of a path below the directory, with the terminating 0 */

/* Called for each entry, for a directory after what it holds: dir and name are the entry, `path` is
 * its path below the first directory, `status` its lstat. A non-zero result stops the walk. */
typedef int (*pstk__walk_fn)(void *user, int dir, const char *name, const char *path,
                             const struct stat *status);

/* Visit all entries below the directory `dir`. 0, a negative native errno, or what the function
 * returned. ELOOP: directories lie deeper than max_depth. ENOENT of an entry: it is skipped. */
int pstk__dir_walk(int dir, uint32_t max_depth, pstk__walk_fn fn, void *user);

#endif
