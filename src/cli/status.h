/* SPDX-License-Identifier: Apache-2.0 */
/* status: the exit status (command.h) that a failure of the library, or of a path, ends in. */
#ifndef PSTK_CLI_STATUS_H
#define PSTK_CLI_STATUS_H

#include <penstock/types.h>

/* Return the exit status of a result code. After a signal it is the signal's. */
int status_of_code(int code);
/* Return the exit status after a path could not be opened or made, for this errno value: is the
 * path wrong, or the permission, or did the machine fail? */
int status_of_path(int native);
/* Print the library's error as message_error does; return the exit status of its code. */
int status_refuse(const struct pstk_error *err, const char *path);

#endif
