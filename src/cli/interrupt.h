/* SPDX-License-Identifier: Apache-2.0 */
/*
 * interrupt: Ctrl-C (and SIGTERM, SIGHUP). The first one asks the running command to end cleanly,
 * the second one kills. The handler runs in the main thread only: threads are made between block
 * and unblock, and inherit a mask that keeps the signals out.
 */
#ifndef PSTK_CLI_INTERRUPT_H
#define PSTK_CLI_INTERRUPT_H

struct pstk_loader;

void interrupt_install(void);
/* The signal that asked for the end, or 0. */
int interrupt_seen(void);
/* The exit status after it: 128 + its number. */
int interrupt_status(void);
/* Print "penstock: interrupted: `what`"; returns the exit status. */
int interrupt_say(const char *what);
/* Wake this loader's pstk_next, too; NULL for none. */
void interrupt_attach(struct pstk_loader *loader);
/* Keep the signals pending in this thread, and in threads that it makes. */
void interrupt_block(void);
void interrupt_unblock(void);
/* From now on the first signal ends the process at once with its status and these last words
 * (static storage): for work that cannot be called off but leaves nothing to clean. NULL: not. */
void interrupt_at_once(const char *last_words);

/* From now on a reader of our messages that goes away ends no work; printing to it fails. For
 * commands that a signal would end in the middle of what they make. */
void interrupt_ignore_pipe(void);

#endif
