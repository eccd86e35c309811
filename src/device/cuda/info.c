/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cuda/info.h"

#include "device/cuda/context.h"
#include "base/error.h"
#include "machine/numa.h"
#include "machine/pci.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB (1024.0 * 1024.0)
#define N_KINDS 4      /* kinds of copies */
#define MAX_RUN 1024u  /* copies between two events: about as many as a stream's queue holds */
#define MAX_RUNS 1000u /* runs of one kind */
#define RUNS_OF_SHARE                                                                              \
    8u /* a run that counts lasts at least this part of its kind's time; shorter ones warm up */

/* ---- which devices there are ----------------------------------------------------------------- */

/* Return 1 when no error is pending in the thread: we then leave none there, and else keep the
 * program's own. */
static int was_clean(void)
{
    return cudaPeekAtLastError() == cudaSuccess;
}

static void leave_clean(int clean)
{
    if (clean)
        cudaGetLastError();
}

int pstk__cuda_count(void)
{
    const int clean = was_clean();
    int n = 0;
    const cudaError_t code = cudaGetDeviceCount(&n);
    leave_clean(clean);
    if (code == cudaErrorNoDevice)
        return 0;
    return code == cudaSuccess ? n : PSTK_ENOTSUP;
}

static void describe_link(struct pstk_device *to)
{
    struct pstk__pci pci;
    pstk__pci_get("/", to->bus_id, &pci); /* pci is 0 in members that are unknown */
    to->numa_node = pci.numa_node;
    to->pcie_generation = pci.generation;
    to->pcie_width = pci.width;
    to->pcie_generation_max = pci.max_generation;
    to->pcie_width_max = pci.max_width;
}

void pstk__cuda_describe(int32_t index, struct pstk_device *to)
{
    const int clean = was_clean();
    struct cudaDeviceProp properties;
    int version = 0;
    to->numa_node = -1;
    if (cudaGetDeviceProperties(&properties, index) == cudaSuccess) {
        snprintf(to->name, sizeof to->name, "%.63s", properties.name);
        to->memory = properties.totalGlobalMem;
        to->major = (uint32_t)properties.major;
        to->minor = (uint32_t)properties.minor;
    }
    if (cudaDriverGetVersion(&version) == cudaSuccess)
        to->driver = (uint32_t)version;
    if (cudaRuntimeGetVersion(&version) == cudaSuccess)
        to->runtime = (uint32_t)version;
    if (cudaDeviceGetPCIBusId(to->bus_id, sizeof to->bus_id, index) == cudaSuccess)
        describe_link(to);
    else
        to->bus_id[0] = '\0';
    leave_clean(clean);
}

/* ---- what copies do alone -------------------------------------------------------------------- */

/* One measurement; its thread owns it while it runs. */
struct measure {
    int32_t index;
    uint64_t size; /* bytes of a block */
    double ms;     /* time for each kind, milliseconds */
    struct pstk_copy_rates *rates;
    struct pstk_error *err;
    int result;
    cudaStream_t stream;
    cudaEvent_t begun, ended;
    void *pinned, *pageable, *device[2]; /* blocks */
};

static int measure_fail(const struct measure *measure, cudaError_t code, const char *doing)
{
    return pstk__cuda_fail(measure->err, PSTK_STAGE_DEVICE, measure->index, code, doing);
}

static int fail_memory(const struct measure *measure, cudaError_t code, int n, const char *where)
{
    const int r =
        pstk__fail(measure->err, PSTK_ENOMEM, PSTK_STAGE_DEVICE,
                   "CUDA device %d: measuring copies needs %d x %.1f MiB of %s, which cannot be "
                   "allocated (%s)",
                   measure->index, n, (double)measure->size / MIB, where, cudaGetErrorName(code));
    if (measure->err)
        measure->err->native = (int32_t)code;
    return r;
}

/* Move this thread near the device, because a loader's slots lie there: memory that the thread
 * touches first comes from the node that it runs on. Failures are ignored: the copies can be
 * measured all the same. */
static void go_near(int32_t index)
{
    char bus_id[sizeof((struct pstk_device *)0)->bus_id];
    const struct pstk__numa_config c = {.local_world = 1, .pin = 1};
    struct pstk__numa *numa;
    if (cudaDeviceGetPCIBusId(bus_id, sizeof bus_id, index) != cudaSuccess ||
        pstk__numa_open(&numa, &c, NULL) < 0)
        return;
    const uint32_t node = pstk__numa_pci_node(numa, bus_id);
    if (node != UINT32_MAX)
        pstk__numa_pin_node(numa, node);
    pstk__numa_close(numa);
}

static int open_blocks(struct measure *measure)
{
    cudaError_t code = cudaHostAlloc(&measure->pinned, measure->size, cudaHostAllocDefault);
    if (code == cudaErrorMemoryAllocation)
        return fail_memory(measure, code, 1, "page-locked memory");
    if (code != cudaSuccess)
        return measure_fail(measure, code, "page-locking memory");
    measure->pageable = malloc(measure->size);
    if (!measure->pageable)
        return fail_memory(measure, cudaErrorMemoryAllocation, 1, "host memory");
    memset(measure->pinned, 1, measure->size);
    memset(measure->pageable, 2,
           measure->size); /* pages that were never written share one zero page */
    for (int i = 0; i < 2; i++) {
        code = cudaMalloc(&measure->device[i], measure->size);
        if (code == cudaErrorMemoryAllocation)
            return fail_memory(measure, code, 2, "its memory");
        if (code != cudaSuccess)
            return measure_fail(measure, code, "getting memory to measure copies with");
    }
    return 0;
}

static int measure_open(struct measure *measure)
{
    struct pstk__cuda_context context;
    const int r = pstk__cuda_context_open(&context, measure->index, measure->err);
    if (r < 0)
        return r;
    cudaError_t code = cudaStreamCreateWithFlags(&measure->stream, cudaStreamNonBlocking);
    if (code == cudaSuccess)
        code = cudaEventCreateWithFlags(&measure->begun, cudaEventDefault);
    if (code == cudaSuccess)
        code = cudaEventCreateWithFlags(&measure->ended, cudaEventDefault);
    if (code != cudaSuccess)
        return measure_fail(measure, code, "making a stream and events");
    return open_blocks(measure);
}

/* Free all; half-open is fine. The device is current for this thread, for good. */
static void measure_close(struct measure *measure)
{
    if (measure->stream)
        cudaStreamSynchronize(measure->stream);
    if (measure->begun)
        cudaEventDestroy(measure->begun);
    if (measure->ended)
        cudaEventDestroy(measure->ended);
    for (int i = 0; i < 2; i++)
        if (measure->device[i])
            cudaFree(measure->device[i]);
    if (measure->pinned)
        cudaFreeHost(measure->pinned);
    free(measure->pageable);
    if (measure->stream)
        cudaStreamDestroy(measure->stream);
}

/* One kind of copies. */
struct copies {
    void *to;
    const void *from;
    enum cudaMemcpyKind kind;
    double *rate; /* out: bytes per second */
};

/* Make n copies, one after another; *ms is their time by the device's clock. */
static cudaError_t run_copies(const struct measure *measure, const struct copies *copies,
                              uint32_t n, double *ms)
{
    float elapsed = 0;
    cudaError_t code = cudaEventRecord(measure->begun, measure->stream);
    for (uint32_t i = 0; i < n && code == cudaSuccess; i++)
        code =
            cudaMemcpyAsync(copies->to, copies->from, measure->size, copies->kind, measure->stream);
    if (code == cudaSuccess)
        code = cudaEventRecord(measure->ended, measure->stream);
    if (code == cudaSuccess)
        code = cudaEventSynchronize(measure->ended);
    if (code == cudaSuccess)
        code = cudaEventElapsedTime(&elapsed, measure->begun, measure->ended);
    *ms = (double)elapsed;
    return code;
}

/* Measure one kind: lengthen the runs until one takes a good part of the time. The shorter runs
 * warm up: the link and the clocks wake during them. */
static int measure_kind(const struct measure *measure, const struct copies *copies)
{
    double ms = 0, sum = 0;
    uint64_t n_copies = 0;
    uint32_t n = 1;
    cudaError_t code = run_copies(measure, copies, n, &ms);
    for (uint32_t i = 0; i < MAX_RUNS && sum < measure->ms && code == cudaSuccess; i++) {
        code = run_copies(measure, copies, n, &ms);
        if (ms < measure->ms / RUNS_OF_SHARE && n < MAX_RUN) {
            n *= 2;
        } else {
            sum += ms;
            n_copies += n;
        }
    }
    if (code != cudaSuccess)
        return measure_fail(measure, code, "measuring copies");
    *copies->rate = sum > 0 ? (double)n_copies * (double)measure->size / sum * 1e3 : 0;
    return 0;
}

static int measure_all(struct measure *measure)
{
    struct pstk_copy_rates *rates = measure->rates;
    const struct copies kinds[N_KINDS] = {
        {measure->device[0], measure->pinned, cudaMemcpyHostToDevice, &rates->to_device},
        {measure->pinned, measure->device[0], cudaMemcpyDeviceToHost, &rates->to_host},
        {measure->device[0], measure->pageable, cudaMemcpyHostToDevice, &rates->pageable_to_device},
        {measure->device[1], measure->device[0], cudaMemcpyDeviceToDevice, &rates->on_device},
    };
    int result = 0;
    for (int i = 0; i < N_KINDS && result == 0; i++)
        result = measure_kind(measure, &kinds[i]);
    return result;
}

static void *measure_thread(void *measure)
{
    struct measure *m = measure;
    pthread_setname_np(pthread_self(), "pstk-measure");
    go_near(m->index);
    m->result = measure_open(m);
    if (m->result == 0)
        m->result = measure_all(m);
    measure_close(m);
    return NULL;
}

int pstk__cuda_measure(int32_t index, uint64_t block_size, double seconds,
                       struct pstk_copy_rates *rates, struct pstk_error *err)
{
    struct measure measure = {.index = index,
                              .size = block_size,
                              .ms = seconds * 1e3 / N_KINDS,
                              .rates = rates,
                              .err = err};
    pthread_t thread;
    sigset_t all, old; /* signals belong to the program's own threads */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    const int native = pthread_create(&thread, NULL, measure_thread, &measure);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (native != 0)
        return pstk__fail_errno(err, native, PSTK_STAGE_DEVICE,
                                "cannot start a thread to measure copies");
    pthread_join(thread, NULL);
    return measure.result;
}
