/* SPDX-License-Identifier: Apache-2.0 */
/*
 * boards: the folder in which the loaders of a user have their boards (penstock/board.h):
 * penstock in $XDG_RUNTIME_DIR, or /tmp/penstock-UID without that. The Python package has the same
 * rule, in boards.py.
 */
#ifndef PSTK_CLI_BOARDS_H
#define PSTK_CLI_BOARDS_H

#define BOARDS_PATH_SIZE 4096

/* Write the folder's path. Returns 1, or 0 with a sentence about why there is none in its place:
 * somebody else could write to it. */
int boards_folder(char path[BOARDS_PATH_SIZE]);
/* Write a path for a board of this process, for settings.monitor_path, and make the folder. Returns
 * `path`, or NULL when there can be none. */
const char *boards_path(char path[BOARDS_PATH_SIZE]);

#endif
