/* SPDX-License-Identifier: Apache-2.0 */
/* status: the exit status (command.h) for an error of the library or of a path. */
#ifndef PSTK_CLI_STATUS_H
#define PSTK_CLI_STATUS_H

#include <penstock/types.h>

/* Return the exit status of a result code. After a signal it is 128 + the signal's number. */
int status_of_code(int code);
/* Return the exit status for a path that could not be opened or made with this errno value. It
 * depends on whether the path is wrong, the permission is missing, or the machine failed. */
int status_of_path(int native);
/* Print the library's error with message_error. Returns the exit status of its code. */
int status_refuse(const struct pstk_error *err, const char *path);

#endif
