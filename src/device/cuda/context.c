/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cuda/context.h"

#include "base/error.h"

#include <string.h>

/* ---- errors ---------------------------------------------------------------------------------- */

/* Return 1 for an error that a kernel leaves: every later call of the context returns the same. */
static int is_fault(cudaError_t code)
{
    switch ((int)code) {
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case 721: /* cudaErrorTensorMemoryLeak, which older toolkits lack */
        return 1;
    default:
        return 0;
    }
}

/* Return 1 for an error of the hardware; every later call returns it, too. */
static int is_broken(cudaError_t code)
{
    switch ((int)code) {
    case cudaErrorECCUncorrectable:
    case 220: /* cudaErrorNvlinkUncorrectable */
    case 226: /* cudaErrorContained */
        return 1;
    default:
        return 0;
    }
}

int pstk__cuda_is_dead(cudaError_t code)
{
    return is_fault(code) || is_broken(code);
}

static int result_of(cudaError_t code)
{
    switch (code) {
    case cudaErrorMemoryAllocation:
        return PSTK_ENOMEM;
    case cudaErrorInsufficientDriver:
    case cudaErrorNoDevice:
    case cudaErrorNotSupported:
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorDevicesUnavailable:
        return PSTK_ENOTSUP;
    case cudaErrorInvalidDevice:
    case cudaErrorInvalidResourceHandle:
    case cudaErrorStreamCaptureUnsupported:
    case cudaErrorStreamCaptureInvalidated:
    case cudaErrorStreamCaptureIsolation:
    case cudaErrorStreamCaptureImplicit:
        return PSTK_EINVAL;
    default:
        return PSTK_EIO;
    }
}

int pstk__cuda_native(struct pstk_error *err, cudaError_t code, int result)
{
    if (err && err->code == result)
        err->native = (int32_t)code;
    return result;
}

int pstk__cuda_fail(struct pstk_error *err, uint32_t stage, int32_t index, cudaError_t code,
                    const char *doing)
{
    const int result = pstk__cuda_is_dead(code) ? PSTK_EIO : result_of(code);
    const char *name = cudaGetErrorName(code), *text = cudaGetErrorString(code);
    if (is_fault(code))
        pstk__fail(err, result, stage,
                   "CUDA device %d: an earlier kernel failed with %s (%s); the error appeared "
                   "while %s. If the program has kernels of its own, one of them failed; "
                   "compute-sanitizer names it. This process can no longer use the device",
                   index, name, text, doing);
    else if (is_broken(code))
        pstk__fail(err, result, stage,
                   "CUDA device %d: the hardware failed with %s (%s); the error appeared while %s. "
                   "See nvidia-smi -q and the kernel's log (Xid), and take the device out of use",
                   index, name, text, doing);
    else
        pstk__fail(err, result, stage, "CUDA device %d: %s (%s) while %s", index, name, text,
                   doing);
    return pstk__cuda_native(err, code, result);
}

/* ---- devices --------------------------------------------------------------------------------- */

static int no_driver(struct pstk_error *err, cudaError_t code)
{
    int driver = 0, runtime = 0;
    cudaDriverGetVersion(&driver); /* stays 0 where there is none */
    cudaRuntimeGetVersion(&runtime);
    if (driver == 0)
        pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                   "device: this machine has no CUDA driver (%s); use the CPU, or install NVIDIA's "
                   "driver",
                   cudaGetErrorName(code));
    else if (code == cudaErrorInsufficientDriver)
        pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                   "device: the driver supports CUDA %d.%d, but this build needs %d.%d (%s); "
                   "update the driver",
                   driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10,
                   cudaGetErrorName(code));
    else if (code == cudaErrorSystemNotReady)
        pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                   "device: the driver is installed, but the GPUs are not ready (%s). Machines "
                   "with NVSwitch need the fabric manager of the driver's version: on the host, "
                   "run systemctl start nvidia-fabricmanager",
                   cudaGetErrorName(code));
    else if (code == cudaErrorSystemDriverMismatch)
        pstk__fail(
            err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
            "device: the kernel's driver and the driver's CUDA library differ in version (%s): "
            "restart the machine after a driver update; in a container, use the host's library",
            cudaGetErrorName(code));
    else
        pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                   "device: CUDA finds no device (%s: %s); check that this container was given one "
                   "and that CUDA_VISIBLE_DEVICES is right",
                   cudaGetErrorName(code), cudaGetErrorString(code));
    return pstk__cuda_native(err, code, PSTK_ENOTSUP);
}

int pstk__cuda_find(int32_t index, struct pstk_error *err)
{
    const int was_clean = cudaPeekAtLastError() == cudaSuccess;
    int n = 0;
    const cudaError_t code = cudaGetDeviceCount(&n);
    if (code != cudaSuccess) {
        if (was_clean)
            cudaGetLastError();
        return no_driver(err, code);
    }
    if (n == 0)
        return no_driver(err, cudaErrorNoDevice);
    if (index < 0 || index >= n)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "device_index: value is %d; must be at least 0 and below %d, the number "
                          "of CUDA devices that this process sees",
                          index, n);
    return 0;
}

/* ---- contexts -------------------------------------------------------------------------------- */

/* Function pointers and pointers to data have the same size on every machine with a CUDA driver. */
cudaError_t pstk__cuda_driver_function(const char *name, void *function)
{
    enum cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    void *address = NULL;
#if CUDART_VERSION >= 12050
    cudaError_t code =
        cudaGetDriverEntryPointByVersion(name, &address, 12000, cudaEnableDefault, &found);
#else
    cudaError_t code = cudaGetDriverEntryPoint(name, &address, cudaEnableDefault, &found);
#endif
    if (code == cudaSuccess && found != cudaDriverEntryPointSuccess)
        code = cudaErrorSymbolNotFound;
    memcpy(function, &address, sizeof address);
    return code;
}

static cudaError_t driver_functions(struct pstk__cuda_context *context)
{
    cudaError_t code = pstk__cuda_driver_function("cuCtxPushCurrent", &context->push);
    if (code == cudaSuccess)
        code = pstk__cuda_driver_function("cuCtxPopCurrent", &context->pop);
    if (code == cudaSuccess)
        code = pstk__cuda_driver_function("cuCtxGetCurrent", &context->current);
    return code;
}

int pstk__cuda_context_open(struct pstk__cuda_context *context, int32_t index,
                            struct pstk_error *err)
{
    *context = (struct pstk__cuda_context){.index = index};
    cudaError_t code = cudaSetDevice(index); /* first: other calls would make a context elsewhere */
    if (code == cudaSuccess)
        code = driver_functions(context);
    if (code == cudaSuccess && (context->current(&context->handle) != 0 || !context->handle))
        code = cudaErrorDeviceUninitialized;
    /* A capture in one thread of the program forbids other threads many calls, even on objects that
     * the capture does not use. Our thread uses only its own objects, so it takes the relaxed mode.
     */
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    if (code == cudaSuccess)
        code = cudaThreadExchangeStreamCaptureMode(&mode);
    if (code != cudaSuccess)
        return pstk__cuda_fail(err, PSTK_STAGE_OPEN, index, code, "making it current");
    return 0;
}

int pstk__cuda_enter(struct pstk__cuda_entry *e, const struct pstk__cuda_context *context,
                     struct pstk_error *err)
{
    *e = (struct pstk__cuda_entry){.context = context, .mode = cudaStreamCaptureModeRelaxed};
    const int pushed = context->push(context->handle);
    const cudaError_t code = (cudaError_t)pushed; /* driver and runtime number them alike */
    if (pstk__cuda_is_dead(code))
        return pstk__cuda_fail(err, PSTK_STAGE_DEVICE, context->index, code,
                               "entering its context");
    if (pushed != 0) {
        pstk__fail(err, PSTK_EIO, PSTK_STAGE_DEVICE,
                   "CUDA device %d: the driver no longer accepts its context (error %d); the "
                   "device may have been reset: restart the process",
                   context->index, pushed);
        return pstk__cuda_native(err, code, PSTK_EIO);
    }
    e->was_clean = cudaPeekAtLastError() == cudaSuccess;
    if (cudaThreadExchangeStreamCaptureMode(&e->mode) != cudaSuccess)
        e->mode = cudaStreamCaptureModeGlobal; /* the default; a broken context has no captures */
    return 0;
}

void pstk__cuda_leave(const struct pstk__cuda_entry *e)
{
    enum cudaStreamCaptureMode mode = e->mode;
    void *ours = NULL;
    cudaThreadExchangeStreamCaptureMode(&mode);
    if (e->was_clean)
        cudaGetLastError();
    e->context->pop(&ours);
}
