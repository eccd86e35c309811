/* SPDX-License-Identifier: Apache-2.0 */
/* message: what the command says to people, on standard error, and the exit status that goes with
 * it. */
#ifndef PSTK_CLI_MESSAGE_H
#define PSTK_CLI_MESSAGE_H

#include <penstock/types.h>

/* Print "penstock: " and one line. */
void message_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same for a wrong command line; returns STATUS_USAGE. */
int message_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Print the library's error, naming `path` (may be NULL) where its sentence does not; returns the
 * exit status of its code. */
int message_refuse(const struct pstk_error *err, const char *path);
/* The exit status of a result code. */
int message_status(int code);
/* Out of memory in the command itself: say so and exit with STATUS_DAMAGED. */
void message_no_memory(void) __attribute__((noreturn));
/* Flush standard output; a full disk or a closed descriptor must not look like success. Returns
 * `status`, or STATUS_DAMAGED when it could not be written. */
int message_finish(int status);

#endif
