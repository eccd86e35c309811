/* SPDX-License-Identifier: Apache-2.0 */
/*
 * interrupt: Ctrl-C (and SIGTERM, SIGHUP). The first signal asks the running command to end
 * cleanly; the second one kills it. The handler runs in the main thread only: threads are created
 * between block and unblock, and inherit a mask that blocks the signals.
 */
#ifndef PSTK_CLI_INTERRUPT_H
#define PSTK_CLI_INTERRUPT_H

struct pstk_loader;

void interrupt_install(void);
/* Return the signal that asked for the end, or 0. */
int interrupt_seen(void);
/* Return the exit status after the signal: 128 + its number. */
int interrupt_status(void);
/* Print "penstock: interrupted: `what`". Returns the exit status. */
int interrupt_say(const char *what);
/* Make a signal wake this loader's pstk_next. NULL: none. */
void interrupt_attach(struct pstk_loader *loader);
/* Block the signals in this thread and in the threads that it creates. */
void interrupt_block(void);
void interrupt_unblock(void);
/* From now on make the first signal end the process at once, with its status and these last words
 * (static storage). This is for work that cannot be cancelled but leaves nothing to clean up. NULL:
 * make it ask for a clean end again. */
void interrupt_at_once(const char *last_words);

/* From now on make a print to a closed pipe fail instead of ending the process. This is for
 * commands that the signal would end in the middle of the work. */
void interrupt_ignore_pipe(void);

#endif
