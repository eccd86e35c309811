/* SPDX-License-Identifier: Apache-2.0 */
/* message: text that the command prints for people, mostly on standard error. */
#ifndef PSTK_CLI_MESSAGE_H
#define PSTK_CLI_MESSAGE_H

#include <penstock/types.h>

#define MESSAGE_ADVICE_SIZE 128

/* Print "penstock: " and one line. Any quoted text is made safe for a terminal (text.h). */
void message_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Print a message about a wrong command line. Returns STATUS_USAGE. */
int message_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Replace the names of settings in a message by the command's options and variables, also the
 * package's fields={...}. */
void message_settings(struct pstk_error *err);
/* Print the library's error. `path` (may be NULL) is added when the error's sentence does not name
 * it. */
void message_error(const struct pstk_error *err, const char *path);
/* Return advice about an errno value that a limit of this process caused, to append to the sentence
 * that names it; "" for other values. */
const char *message_advice(int native, char text[MESSAGE_ADVICE_SIZE]);
/* Print the next command to type on standard output: a subcommand and a path, shell-quoted. */
void message_next(const char *command, const char *path);
/* Print on standard output the name of this command, as it was called: a path, or the name in PATH.
 */
void message_program(void);
/* Report that the command itself is out of memory, and exit with STATUS_DAMAGED. */
void message_no_memory(void) __attribute__((noreturn));
/* Close standard output, after its last line. A full disk or a closed descriptor must not look like
 * success, and some file systems report a failed write only at close. Returns `status`, or
 * STATUS_DAMAGED when the output could not be written. */
int message_finish(int status);

#endif
