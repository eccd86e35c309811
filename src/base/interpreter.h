/* SPDX-License-Identifier: Apache-2.0 */
/*
 * interpreter: Python's lock (GIL), where this process has a Python. The library is built without
 * Python: it declares the interpreter's functions as weak symbols, which the loader resolves if
 * they exist.
 *
 * The interpreter, or PyTorch within it, may call the functions that give a batch back while it
 * holds the lock. A function that waits releases the lock meanwhile.
 */
#ifndef PSTK_INTERPRETER_H
#define PSTK_INTERPRETER_H

/* Release the interpreter's lock if the calling thread holds it. Returns the argument of return;
 * NULL: the thread did not hold the lock, and nothing was done. */
void *pstk__interpreter_leave(void);
/* Take the lock again. NULL does nothing. */
void pstk__interpreter_return(void *state);

#endif
