/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda/context: a device made current for as long as we call it, and its errors in words.
 *
 * The runtime acts on the calling thread's current device, and makes a context there if it has
 * none: half a gigabyte on GPU 0 for a thread that never meant it. Our own thread sets its device;
 * calls on the program's threads push our context and pop it again (the driver's stack, which the
 * runtime honours), so that the program's current device is what it was and no other context is
 * ever made. cudaSetDevice back to the old device would make one there.
 */
#ifndef PSTK_CUDA_CONTEXT_H
#define PSTK_CUDA_CONTEXT_H

#include <penstock/types.h>

#include <cuda_runtime_api.h>

struct pstk__cuda_context {
    int32_t index;           /* of the device */
    void *handle;            /* CUcontext: the device's primary one */
    int (*push)(void *);     /* cuCtxPushCurrent */
    int (*pop)(void **);     /* cuCtxPopCurrent */
    int (*current)(void **); /* cuCtxGetCurrent */
};

/* What leave has to put back. */
struct pstk__cuda_entry {
    const struct pstk__cuda_context *context;
    enum cudaStreamCaptureMode mode;
    int was_clean; /* no error was pending in the thread: leave removes the errors of our calls */
};

/* Is there a device `index`? Touches none. ENOTSUP: no driver, an old one, no device; EINVAL. */
int pstk__cuda_find(int32_t index, struct pstk_error *err);
/* Make the device the calling thread's for good, which is to be a thread of ours. */
int pstk__cuda_context_open(struct pstk__cuda_context *context, int32_t index,
                            struct pstk_error *err);
/* Write the address of a function of the driver, which the library is not linked with, to the
 * function pointer at `function`. */
cudaError_t pstk__cuda_driver_function(const char *name, void *function);
/* Between enter and leave the thread's calls go to the context. On failure nothing is entered. */
int pstk__cuda_enter(struct pstk__cuda_entry *e, const struct pstk__cuda_context *context,
                     struct pstk_error *err);
void pstk__cuda_leave(const struct pstk__cuda_entry *e);

/* 1: an error that every later call of the context answers: nothing runs there any more. */
int pstk__cuda_is_dead(cudaError_t code);
/* After pstk__fail: note what CUDA said; returns `result`. */
int pstk__cuda_native(struct pstk_error *err, cudaError_t code, int result);
/* Fail with what a call answered: `doing` says what it was for ("copying a batch"). */
int pstk__cuda_fail(struct pstk_error *err, uint32_t stage, int32_t index, cudaError_t code,
                    const char *doing);

#endif
