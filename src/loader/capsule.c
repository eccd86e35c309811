/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shares and their tensors in Python's capsules (https://docs.python.org/3/c-api/capsule.html).
 *
 * The library is built without Python, so that one build serves every version of it: see
 * interpreter.h.
 */
#include <penstock/penstock.h>

#include "batch/slot.h"
#include "loader/dlpack.h"
#include "base/error.h"
#include "base/interpreter.h"

static const char SHARE_NAME[] = "penstock.share";
static const char TENSOR_NAME[] = "dltensor"; /* DLPack's; the consumer of the tensor renames it */

/* Declared as in Python.h, with PyObject as void. The addresses are NULL in a process without
 * Python. */
#pragma GCC visibility push(default)
extern void *PyCapsule_New(void *pointer, const char *name, void (*destructor)(void *capsule))
    __attribute__((weak));
extern void *PyCapsule_GetPointer(void *capsule, const char *name) __attribute__((weak));
extern int PyCapsule_IsValid(void *capsule, const char *name) __attribute__((weak));
extern void PyErr_SetString(void *type, const char *message) __attribute__((weak));
extern void *PyExc_RuntimeError __attribute__((weak));
#pragma GCC visibility pop

static int has_interpreter(struct pstk_error *err)
{
    if (PyCapsule_New && PyCapsule_GetPointer && PyCapsule_IsValid && PyErr_SetString &&
        &PyExc_RuntimeError)
        return 1;
    pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_CONSUMER,
               "capsules: this process has no Python, or its functions are hidden");
    return 0;
}

/* Raise an exception, which the interpreter requires with each NULL. Returns NULL. */
static void *raise_error(int code)
{
    PyErr_SetString(PyExc_RuntimeError, pstk_strerror(code));
    return NULL;
}

static void *fail_no_capsule(struct pstk_error *err)
{
    pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_CONSUMER, "no memory for a capsule");
    return NULL; /* PyCapsule_New has raised MemoryError */
}

static int is_on_device(const struct pstk_batch *batch)
{
    return ((const struct pstk__slot *)(const void *)batch)->pool->on_device;
}

static void free_share(void *capsule)
{
    struct pstk_share *share = PyCapsule_GetPointer(capsule, SHARE_NAME);
    if (!is_on_device(pstk_share_batch(share))) {
        pstk_share_unref(&share);
        return;
    }
    /* A release may wait for room in its stream, or for another thread that waits for such room:
     * leave the interpreter meanwhile. */
    void *state = pstk__interpreter_leave();
    pstk_share_unref(&share);
    pstk__interpreter_return(state);
}

static void free_tensor(void *capsule)
{
    if (!PyCapsule_IsValid(capsule, TENSOR_NAME))
        return;
    struct DLManagedTensor *tensor = PyCapsule_GetPointer(capsule, TENSOR_NAME);
    tensor->deleter(tensor);
}

void *pstk_capsule_share(struct pstk_batch **batch, void *stream, struct pstk_error *err)
{
    struct pstk_share *share;
    if (!has_interpreter(err))
        return NULL;
    int r = pstk_share_open(&share, batch, stream, err);
    if (r < 0)
        return raise_error(r);
    void *capsule = PyCapsule_New(share, SHARE_NAME, free_share);
    if (capsule)
        return capsule;
    pstk_share_unref(&share);
    return fail_no_capsule(err);
}

void *pstk_capsule_tensor(struct pstk_share *share, uint32_t tensor, struct pstk_error *err)
{
    struct DLManagedTensor *made;
    if (!has_interpreter(err))
        return NULL;
    int r = pstk_share_tensor(share, tensor, &made, err);
    if (r < 0)
        return raise_error(r);
    void *capsule = PyCapsule_New(made, TENSOR_NAME, free_tensor);
    if (capsule)
        return capsule;
    made->deleter(made);
    return fail_no_capsule(err);
}
