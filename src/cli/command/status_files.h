/* SPDX-License-Identifier: Apache-2.0 */
/*
 * status_files: the folder of a user's status files of loaders (penstock/diagnostics.h): penstock
 * in $XDG_RUNTIME_DIR, or /tmp/penstock-UID without that. The Python package has the same rule, in
 * status_files.py.
 */
#ifndef PSTK_CLI_STATUS_FILES_H
#define PSTK_CLI_STATUS_FILES_H

#define STATUS_FILES_PATH_SIZE 4096

/* Write the folder's path and return 1. If the name is no folder, or another user could write to
 * it, write a sentence about that instead and return 0. */
int status_files_folder(char path[STATUS_FILES_PATH_SIZE]);
/* Write a path for a status file of this process, for settings.observe.monitor_path, and make the
 * folder. Returns `path`, or NULL when there can be none. */
const char *status_files_path(char path[STATUS_FILES_PATH_SIZE]);

#endif
