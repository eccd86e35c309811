/* SPDX-License-Identifier: Apache-2.0 */
/*
 * interpreter: Python's lock, where this process has a Python. The library is built without it: the
 * interpreter's functions are weak, which the loader fills in once where they are there.
 *
 * The interpreter, or PyTorch from within it, may call the functions that give a batch back, with
 * the lock held. A function that waits gives up the lock meanwhile.
 */
#ifndef PSTK_INTERPRETER_H
#define PSTK_INTERPRETER_H

/* Give up the interpreter's lock where the calling thread has it. Returns what return takes; NULL:
 * the thread has no lock, and nothing was done. */
void *pstk__interpreter_leave(void);
/* Take it again. NULL is fine. */
void pstk__interpreter_return(void *state);

#endif
