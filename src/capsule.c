/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shares and their tensors in Python's capsules (https://docs.python.org/3/c-api/capsule.html). L4.
 *
 * The interpreter's functions are looked up in the process that this runs in: the library is built
 * without Python, for all of them. Nothing is kept between calls.
 */
#include <penstock/penstock.h>

#include "batch.h"
#include "dlpack.h"
#include "error.h"

#include <dlfcn.h>
#include <string.h>

static const char SHARE_NAME[] = "penstock.share";
static const char TENSOR_NAME[] = "dltensor"; /* DLPack's; who takes the tensor renames it */

/* As Python.h has them, with PyObject and PyThreadState as void. */
typedef void *capsule_new(void *pointer, const char *name, void (*destructor)(void *capsule));
typedef void *capsule_get_pointer(void *capsule, const char *name);
typedef int capsule_is_valid(void *capsule, const char *name);
typedef void set_exception(void *type, const char *message);
typedef void *save_thread(void); /* gives up the interpreter's lock */
typedef void restore_thread(void *state);

/* Set the function pointer that *function is. 1, or 0: this process has no interpreter. */
static int find(void *function, const char *name)
{
    void *found = dlsym(RTLD_DEFAULT, name);
    memcpy(function, &found, sizeof found); /* C has no cast between the two */
    return found != NULL;
}

static int find_new(capsule_new **make, struct pstk_error *err)
{
    if (find(make, "PyCapsule_New"))
        return 1;
    pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_CONSUMER,
               "capsules: this process has no Python, or one whose functions are hidden");
    return 0;
}

/* The interpreter wants an exception beside each NULL. Returns NULL. */
static void *raise_error(int code, const struct pstk_error *err)
{
    set_exception *set;
    void **runtime_error;
    if (find(&set, "PyErr_SetString") && find(&runtime_error, "PyExc_RuntimeError"))
        set(*runtime_error, err ? err->message : pstk_strerror(code));
    return NULL;
}

static void *fail_no_capsule(struct pstk_error *err)
{
    pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_CONSUMER, "no memory for a capsule");
    return NULL; /* its maker has raised MemoryError */
}

static int is_on_device(const struct pstk_batch *batch)
{
    return ((const struct pstk__slot *)(const void *)batch)->pool->on_device;
}

static void free_share(void *capsule)
{
    capsule_get_pointer *get_pointer;
    save_thread *save;
    restore_thread *restore;
    if (!find(&get_pointer, "PyCapsule_GetPointer"))
        return;
    struct pstk_share *share = get_pointer(capsule, SHARE_NAME);
    if (is_on_device(pstk_share_batch(share)) && find(&save, "PyEval_SaveThread") &&
        find(&restore, "PyEval_RestoreThread")) {
        /* The last release after close waits for the device. */
        void *state = save();
        pstk_share_unref(&share);
        restore(state);
    } else {
        pstk_share_unref(&share);
    }
}

static void free_tensor(void *capsule)
{
    capsule_is_valid *is_valid;
    capsule_get_pointer *get_pointer;
    if (!find(&is_valid, "PyCapsule_IsValid") || !is_valid(capsule, TENSOR_NAME) ||
        !find(&get_pointer, "PyCapsule_GetPointer"))
        return;
    struct DLManagedTensor *tensor = get_pointer(capsule, TENSOR_NAME);
    tensor->deleter(tensor);
}

void *pstk_capsule_share(struct pstk_batch **batch, void *stream, struct pstk_error *err)
{
    capsule_new *make;
    struct pstk_share *share;
    if (!find_new(&make, err))
        return NULL;
    int r = pstk_share_open(&share, batch, stream, err);
    if (r < 0)
        return raise_error(r, err);
    void *capsule = make(share, SHARE_NAME, free_share);
    if (capsule)
        return capsule;
    pstk_share_unref(&share);
    return fail_no_capsule(err);
}

void *pstk_capsule_tensor(struct pstk_share *share, uint32_t tensor, struct pstk_error *err)
{
    capsule_new *make;
    struct DLManagedTensor *made;
    if (!find_new(&make, err))
        return NULL;
    int r = pstk_share_tensor(share, tensor, &made, err);
    if (r < 0)
        return raise_error(r, err);
    void *capsule = make(made, TENSOR_NAME, free_tensor);
    if (capsule)
        return capsule;
    made->deleter(made);
    return fail_no_capsule(err);
}
