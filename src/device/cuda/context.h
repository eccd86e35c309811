/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda/context: makes a device current while the library calls it, and words its errors.
 *
 * The runtime acts on the calling thread's current device, and makes a context there if it has
 * none. A thread without a device would get one on GPU 0: half a gigabyte. The library's own thread
 * sets its device. Calls on the program's threads push the library's context and pop it again (the
 * driver's stack, which the runtime honours). So the program's current device stays the same and no
 * other context is ever made. cudaSetDevice back to the old device would make one there.
 */
#ifndef PSTK_CUDA_CONTEXT_H
#define PSTK_CUDA_CONTEXT_H

#include <penstock/types.h>

#include <cuda_runtime_api.h>

struct pstk__cuda_context {
    int32_t index;           /* number of the device */
    void *handle;            /* CUcontext: the device's primary context */
    int (*push)(void *);     /* cuCtxPushCurrent */
    int (*pop)(void **);     /* cuCtxPopCurrent */
    int (*current)(void **); /* cuCtxGetCurrent */
};

/* The state that leave restores. */
struct pstk__cuda_entry {
    const struct pstk__cuda_context *context;
    enum cudaStreamCaptureMode mode;
    int was_clean; /* 1: no error was pending in the thread, so leave removes errors of the
                      library's calls */
};

/* Check that device `index` exists; touches no device. ENOTSUP: there is no driver, only an old
 * one, or no device; EINVAL: there are fewer devices. */
int pstk__cuda_find(int32_t index, struct pstk_error *err);
/* Make the device current for the calling thread for good; it must be one of the library's threads.
 */
int pstk__cuda_context_open(struct pstk__cuda_context *context, int32_t index,
                            struct pstk_error *err);
/* Get a function of the driver, which the library is not linked with: write its address to the
 * function pointer at `function`. */
cudaError_t pstk__cuda_driver_function(const char *name, void *function);
/* Enter the context: until leave, the thread's calls go to it. On failure nothing is entered. */
int pstk__cuda_enter(struct pstk__cuda_entry *e, const struct pstk__cuda_context *context,
                     struct pstk_error *err);
void pstk__cuda_leave(const struct pstk__cuda_entry *e);

/* Return 1 when every later call of the context returns this error, so that nothing runs there any
 * more. */
int pstk__cuda_is_dead(cudaError_t code);
/* Note CUDA's error code, after pstk__fail; returns `result`. */
int pstk__cuda_native(struct pstk_error *err, cudaError_t code, int result);
/* Fail with the code that a call returned: `doing` names its purpose ("copying a batch"). */
int pstk__cuda_fail(struct pstk_error *err, uint32_t stage, int32_t index, cudaError_t code,
                    const char *doing);

#endif
