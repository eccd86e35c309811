/* SPDX-License-Identifier: Apache-2.0 */
/* message: what the command prints for people, mostly on standard error. */
#ifndef PSTK_CLI_MESSAGE_H
#define PSTK_CLI_MESSAGE_H

#include <penstock/types.h>

#define MESSAGE_ADVICE_SIZE 128

/* Print "penstock: " and one line, safe for a terminal (text.h) whatever is quoted in it. */
void message_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same for a wrong command line; returns STATUS_USAGE. */
int message_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Print the library's error. Name `path` (may be NULL) where its sentence does not. */
void message_error(const struct pstk_error *err, const char *path);
/* Return what to do about an errno value that a limit of this process caused, to be put after the
 * sentence that names it; "" for others. */
const char *message_advice(int native, char text[MESSAGE_ADVICE_SIZE]);
/* Print on standard output what to type next: a subcommand with a path, as a shell takes it. */
void message_next(const char *command, const char *path);
/* Print on standard output how the command was called: by a path, or by its name in PATH. */
void message_program(void);
/* Out of memory in the command itself: say so and exit with STATUS_DAMAGED. */
void message_no_memory(void) __attribute__((noreturn));
/* Close standard output, after the last line there: a full disk or a closed descriptor must not
 * look like success, and some file systems report a failed write only when it is closed. Returns
 * `status`, or STATUS_DAMAGED when it could not be written. */
int message_finish(int status);

#endif
