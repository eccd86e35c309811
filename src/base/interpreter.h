/* SPDX-License-Identifier: Apache-2.0 */
/*
 * interpreter: Python's lock, where this process has a Python. L0. The library is built without it:
 * the interpreter's functions are weak, which the loader fills in once where they are there.
 *
 * What gives a batch back may be called by the interpreter, or by PyTorch from within it, with the
 * lock held. What waits then gives the lock up for as long.
 */
#ifndef PSTK_INTERPRETER_H
#define PSTK_INTERPRETER_H

/* Give up the interpreter's lock where the calling thread has it. Returns what return takes; NULL:
 * the thread has no lock, and nothing was done. */
void *pstk__interpreter_leave(void);
/* Take it again. NULL is fine. */
void pstk__interpreter_return(void *state);

#endif
