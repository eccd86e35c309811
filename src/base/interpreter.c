/* SPDX-License-Identifier: Apache-2.0 */
#include "base/interpreter.h"

#include <stddef.h>

/* Python.h's declarations, with void for PyThreadState. NULL: the process has no Python. */
#pragma GCC visibility push(default)
extern void *PyEval_SaveThread(void) __attribute__((weak));
extern void PyEval_RestoreThread(void *state) __attribute__((weak));
extern void *PyGILState_GetThisThreadState(void) __attribute__((weak));
extern int PyGILState_Check(void) __attribute__((weak));
extern int Py_IsInitialized(void) __attribute__((weak));
#pragma GCC visibility pop

/* With several interpreters in the process, PyGILState_Check returns 1 on every thread. So it is
 * called only on threads that Python knows. */
static int has_lock(void)
{
    return PyEval_SaveThread && PyEval_RestoreThread && PyGILState_GetThisThreadState &&
           PyGILState_Check && Py_IsInitialized && Py_IsInitialized() &&
           PyGILState_GetThisThreadState() && PyGILState_Check();
}

void *pstk__interpreter_leave(void)
{
    return has_lock() ? PyEval_SaveThread() : NULL;
}

void pstk__interpreter_return(void *state)
{
    if (state)
        PyEval_RestoreThread(state);
}
