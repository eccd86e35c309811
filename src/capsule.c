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
struct interpreter {
    void *(*capsule_new)(void *pointer, const char *name, void (*destructor)(void *capsule));
    void *(*capsule_pointer)(void *capsule, const char *name);
    int (*capsule_is_valid)(void *capsule, const char *name);
    void *(*save_thread)(void); /* gives up the interpreter's lock */
    void (*restore_thread)(void *state);
};

/* 1, or 0: this process has no interpreter. */
static int find_interpreter(struct interpreter *i)
{
    const struct {
        void *function;
        const char *name;
    } wanted[] = {{&i->capsule_new, "PyCapsule_New"},
                  {&i->capsule_pointer, "PyCapsule_GetPointer"},
                  {&i->capsule_is_valid, "PyCapsule_IsValid"},
                  {&i->save_thread, "PyEval_SaveThread"},
                  {&i->restore_thread, "PyEval_RestoreThread"}};
    for (size_t n = 0; n < sizeof wanted / sizeof *wanted; n++) {
        void *found = dlsym(RTLD_DEFAULT, wanted[n].name);
        if (!found)
            return 0;
        memcpy(wanted[n].function, &found, sizeof found); /* C has no cast between the two */
    }
    return 1;
}

static int fail_no_interpreter(struct pstk_error *err)
{
    return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_CONSUMER,
                      "capsules: this process has no Python, or one whose functions are hidden");
}

static int fail_no_capsule(struct pstk_error *err)
{
    return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_CONSUMER, "no memory for a capsule");
}

static int is_on_device(const struct pstk_batch *batch)
{
    return ((const struct pstk__slot *)(const void *)batch)->pool->on_device;
}

static void free_share(void *capsule)
{
    struct interpreter python;
    if (!find_interpreter(&python))
        return;
    struct pstk_share *share = python.capsule_pointer(capsule, SHARE_NAME);
    if (!is_on_device(pstk_share_batch(share))) {
        pstk_share_unref(&share);
        return;
    }
    /* The last release after close waits for the device. */
    void *state = python.save_thread();
    pstk_share_unref(&share);
    python.restore_thread(state);
}

static void free_tensor(void *capsule)
{
    struct interpreter python;
    if (!find_interpreter(&python) || !python.capsule_is_valid(capsule, TENSOR_NAME))
        return;
    struct DLManagedTensor *tensor = python.capsule_pointer(capsule, TENSOR_NAME);
    tensor->deleter(tensor);
}

void *pstk_capsule_share(struct pstk_batch **batch, void *stream, struct pstk_error *err)
{
    struct interpreter python;
    struct pstk_share *share;
    if (!find_interpreter(&python)) {
        fail_no_interpreter(err);
        return NULL;
    }
    if (pstk_share_open(&share, batch, stream, err) < 0)
        return NULL;
    void *capsule = python.capsule_new(share, SHARE_NAME, free_share);
    if (!capsule) {
        pstk_share_unref(&share);
        fail_no_capsule(err);
    }
    return capsule;
}

void *pstk_capsule_tensor(struct pstk_share *share, uint32_t tensor, struct pstk_error *err)
{
    struct interpreter python;
    struct DLManagedTensor *made;
    if (!find_interpreter(&python)) {
        fail_no_interpreter(err);
        return NULL;
    }
    if (pstk_share_tensor(share, tensor, &made, err) < 0)
        return NULL;
    void *capsule = python.capsule_new(made, TENSOR_NAME, free_tensor);
    if (!capsule) {
        made->deleter(made);
        fail_no_capsule(err);
    }
    return capsule;
}
