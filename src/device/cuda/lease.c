/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda/lease: batches on the consumer's streams. Any threads of the program call these functions,
 * several at a time. They hold no lock of the library, enter the context, then take the device's
 * lock, never the other way. The uploader takes no lock: see load.c.
 */
#include "device/cuda/gpu.h"

#include "base/error.h"
#include "base/interpreter.h"

#include <stdlib.h>

/*
 * Fail if the stream is a default stream of another context. The default streams belong to the
 * calling thread's current context. When that is not ours, work that the caller puts there does not
 * come after ours. This is checked only when a lease begins: it may end in any thread (a
 * finalizer's), and then the default stream is ours.
 */
static int check_default(const struct pstk__cuda *d, cudaStream_t stream, struct pstk_error *err)
{
    void *context = NULL;
    int current = -1;
    if (stream && stream != cudaStreamLegacy && stream != cudaStreamPerThread)
        return 0;
    if (d->context.current(&context) == 0 && context) {
        if (context == d->context.handle)
            return 0;
    } else if (cudaGetDevice(&current) == cudaSuccess && current == d->context.index) {
        return 0; /* no context yet: ours will be the thread's */
    }
    return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_CONSUMER,
                      "stream: the default stream belongs to the calling thread's current device "
                      "or context, but the batch is on CUDA device %d: call cudaSetDevice(%d) "
                      "first, or pass a stream of that device",
                      d->context.index, d->context.index);
}

static int fail_stream(const struct pstk__cuda *d, cudaError_t code, struct pstk_error *err)
{
    if (code != cudaErrorInvalidResourceHandle)
        return pstk__gpu_fail(d, code, "ordering the consumer's stream", err);
    pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_CONSUMER,
               "stream: belongs to another device or context; must belong to that of the batch, "
               "CUDA device %d (%s)",
               d->context.index, cudaGetErrorName(code));
    return pstk__cuda_native(err, code, PSTK_EINVAL);
}

/* Return 1 when the stream is being captured, or is the default one and waits for a stream that is;
 * 0 when not; -1 when that is unknown, with the reason in *code. */
static int is_captured(cudaStream_t stream, cudaError_t *code)
{
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    *code = cudaStreamIsCapturing(stream, &status);
    if (*code == cudaErrorStreamCaptureImplicit)
        return 1;
    return *code == cudaSuccess ? status != cudaStreamCaptureStatusNone : -1;
}

/* Fail if the stream is being captured: the capture would take our streams into the program's
 * graph, and loads would never run. */
static int check_capture(const struct pstk__cuda *d, cudaStream_t stream, struct pstk_error *err)
{
    cudaError_t code;
    const int r = is_captured(stream, &code);
    if (r <= 0)
        return r < 0 ? fail_stream(d, code, err) : 0;
    return pstk__fail(
        err, PSTK_EINVAL, PSTK_STAGE_CONSUMER,
        "stream is being captured into a graph%s: take batches, wait for them, read them and "
        "record their use outside captures",
        code == cudaSuccess ? "" : ", or is the default stream, which waits for one that is");
}

/* Take the lock. The thread that has it may wait in the driver for room in its stream; with `quick`
 * this call does not wait for the lock. */
static int lock(struct pstk__cuda *d, int quick, struct pstk_error *err)
{
    if (!quick)
        return pthread_mutex_lock(&d->lock);
    if (pthread_mutex_trylock(&d->lock) == 0)
        return 0;
    return pstk__fail(
        err, PSTK_ETIMEDOUT, PSTK_STAGE_CONSUMER,
        "no batch was ready within the timeout: another thread was releasing a batch");
}

/* Enter the device, to queue work in one of the consumer's streams. */
static int enter_for(struct pstk__cuda_entry *e, struct pstk__cuda *d, cudaStream_t stream,
                     struct pstk_error *err)
{
    int r = pstk__cuda_enter(e, &d->context, err);
    if (r < 0)
        return r;
    r = check_capture(d, stream, err);
    if (r < 0)
        pstk__cuda_leave(e);
    return r;
}

/* Enter as enter_for does, and take the lock. */
static int stream_enter(struct pstk__cuda_entry *e, struct pstk__cuda *d, cudaStream_t stream,
                        int quick, struct pstk_error *err)
{
    int r = enter_for(e, d, stream, err);
    if (r < 0)
        return r;
    r = lock(d, quick, err);
    if (r < 0)
        pstk__cuda_leave(e);
    return r;
}

static void stream_leave(const struct pstk__cuda_entry *e, struct pstk__cuda *d)
{
    pthread_mutex_unlock(&d->lock);
    pstk__cuda_leave(e);
}

static int wait_for_load(struct pstk__cuda *d, uint32_t slot, cudaStream_t stream, int is_lease,
                         int quick, struct pstk_error *err)
{
    struct pstk__cuda_entry e;
    int r = check_default(d, stream, err);
    if (r == 0)
        r = stream_enter(&e, d, stream, quick, err);
    if (r < 0)
        return r;
    /* A stream of any device may wait for an event, but only a stream of the event's own device may
     * record it. */
    cudaError_t code = cudaEventRecord(d->probe, stream);
    if (code == cudaSuccess)
        code = cudaStreamWaitEvent(stream, d->slots[slot].loaded, 0);
    if (code == cudaSuccess && d->timed && is_lease)
        pstk__timing_arrive(&d->timing, stream);
    r = code == cudaSuccess ? 0 : fail_stream(d, code, err);
    stream_leave(&e, d);
    return r;
}

void pstk__gpu_ask(struct pstk__device *device, void *stream, int again, int quick)
{
    struct pstk__cuda *d = pstk__cuda_of(device);
    struct pstk__cuda_entry e;
    if (!d->timed || check_default(d, stream, NULL) < 0 ||
        stream_enter(&e, d, stream, quick, NULL) < 0)
        return; /* acquire reports the fault of the stream */
    pstk__timing_ask(&d->timing, stream, again);
    stream_leave(&e, d);
}

int pstk__gpu_acquire(struct pstk__device *device, uint32_t slot, void *stream, int quick,
                      struct pstk_error *err)
{
    return wait_for_load(pstk__cuda_of(device), slot, stream, 1, quick, err);
}

int pstk__gpu_wait(struct pstk__device *device, uint32_t slot, void *stream, struct pstk_error *err)
{
    return wait_for_load(pstk__cuda_of(device), slot, stream, 0, 0, err);
}

/*
 * Record a use by the stream. Each stream has one event; when there are too many streams, the last
 * event covers several. An event that already covers work keeps covering it, because the stream
 * first waits for the event. This also holds when the handle is now another stream: a new one, or
 * another thread's (cudaStreamPerThread).
 */
static cudaError_t add_use(struct pstk__cuda_slot *slot, cudaStream_t stream)
{
    uint32_t k = 0;
    cudaError_t code = cudaSuccess;
    while (k < slot->n_uses && slot->users[k] != stream)
        k++;
    if (k == PSTK__CUDA_USES)
        k = PSTK__CUDA_USES - 1;
    if (k < slot->n_uses)
        code = cudaStreamWaitEvent(stream, slot->uses[k], 0);
    if (code == cudaSuccess)
        code = cudaEventRecord(slot->uses[k], stream);
    if (code != cudaSuccess)
        return code;
    slot->users[k] = stream;
    slot->n_uses = k < slot->n_uses ? slot->n_uses : k + 1;
    return cudaSuccess;
}

int pstk__gpu_record(struct pstk__device *device, uint32_t slot, void *stream,
                     struct pstk_error *err)
{
    struct pstk__cuda *d = pstk__cuda_of(device);
    struct pstk__cuda_entry e;
    int r = stream_enter(&e, d, stream, 0, err);
    if (r < 0)
        return r;
    const cudaError_t code = add_use(&d->slots[slot], stream);
    r = code == cudaSuccess ? 0 : fail_stream(d, code, err);
    stream_leave(&e, d);
    return r;
}

int pstk__gpu_check_shared(struct pstk__device *device, void *stream, struct pstk_error *err)
{
    (void)device;
    if (stream != cudaStreamPerThread)
        return 0;
    return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_CONSUMER,
                      "stream: cudaStreamPerThread is a different stream in the thread that "
                      "releases the batch: pass a stream of your own, or NULL");
}

/* Wait for the work in the streams, when not all of it could be recorded as uses. So close need not
 * wait for the whole device, which would break a capture of the program. Returns 1 when no such
 * work runs any longer. */
static int wait_for_all(struct pstk__cuda *d, void *const *streams, uint32_t n_streams)
{
    struct pstk__cuda_entry e;
    int is_over = 1;
    if (pstk__cuda_enter(&e, &d->context, NULL) < 0)
        return 0;
    for (uint32_t i = 0; i < n_streams; i++) {
        cudaError_t code;
        if (is_captured(streams[i], &code) == 0)
            code = cudaStreamSynchronize(streams[i]);
        else if (code == cudaSuccess)
            code = cudaErrorStreamCaptureUnsupported; /* waiting would break the capture */
        is_over &= code == cudaSuccess || pstk__cuda_is_dead(code);
    }
    pstk__cuda_leave(&e);
    return is_over;
}

/* Record the streams that are not being captured; the others stay in the list. The caller holds the
 * lock. */
static cudaError_t record_uses(struct pstk__cuda *d, const struct pstk__lease_end *end)
{
    uint32_t n_left = 0;
    for (uint32_t i = 0; i < *end->n_streams; i++) {
        cudaError_t code;
        const int captured = is_captured(end->streams[i], &code);
        if (captured == 0)
            code = add_use(&d->slots[end->slot], end->streams[i]);
        if (captured > 0)
            end->streams[n_left++] = end->streams[i];
        else if (code != cudaSuccess)
            return code;
    }
    *end->n_streams = n_left;
    return cudaSuccess;
}

/* Take the lock as `lock` does. A thread that has to wait gives up the interpreter's lock to
 * *state, because the thread that holds the device's lock may need it. */
static int lock_for_release(struct pstk__cuda *d, int quick, void **state, struct pstk_error *err)
{
    *state = NULL;
    const int r = lock(d, 1, quick ? err : NULL);
    if (r == 0 || quick)
        return r;
    *state = pstk__interpreter_leave();
    return lock(d, 0, err);
}

static int end_lease(struct pstk__cuda *d, const struct pstk__lease_end *end,
                     struct pstk_error *err)
{
    struct pstk__cuda_entry e;
    void *state;
    int r = pstk__cuda_enter(&e, &d->context, err);
    if (r < 0)
        return r;
    r = lock_for_release(d, end->quick, &state, err);
    if (r < 0) {
        pstk__cuda_leave(&e);
        return r;
    }
    const cudaError_t code = record_uses(d, end);
    r = code == cudaSuccess ? *end->n_streams > 0 : fail_stream(d, code, err);
    stream_leave(&e, d);
    pstk__interpreter_return(state);
    return r;
}

int pstk__gpu_release(struct pstk__device *device, const struct pstk__lease_end *end,
                      struct pstk_error *err)
{
    struct pstk__cuda *d = pstk__cuda_of(device);
    const uint32_t n_all = *end->n_streams;
    const int r = end_lease(d, end, err);
    if (r >= 0 || r == PSTK_ETIMEDOUT)
        return r;
    void *state = pstk__interpreter_leave();
    const int is_over = r != PSTK_EINVAL && wait_for_all(d, end->streams, n_all);
    pthread_mutex_lock(&d->lock);
    d->is_lost |= !is_over;
    pthread_mutex_unlock(&d->lock);
    pstk__interpreter_return(state);
    return r;
}

void pstk__gpu_abandon(struct pstk__device *device)
{
    struct pstk__cuda *d = pstk__cuda_of(device);
    pthread_mutex_lock(&d->lock);
    d->is_lost = 1;
    pthread_mutex_unlock(&d->lock);
}

/* ---- streams --------------------------------------------------------------------------------- */

int pstk__gpu_stream_open(struct pstk__device *device, void **stream, struct pstk_error *err)
{
    struct pstk__cuda *d = pstk__cuda_of(device);
    struct pstk__cuda_entry e;
    cudaStream_t s = NULL;
    int r = pstk__cuda_enter(&e, &d->context, err);
    if (r < 0)
        return r;
    struct pstk__cuda_stream *opened = malloc(sizeof *opened);
    const cudaError_t code =
        opened ? cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking) : cudaSuccess;
    if (!opened)
        r = pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_CONSUMER, "no memory for a stream");
    else if (code != cudaSuccess)
        r = pstk__gpu_fail(d, code, "making a stream", err);
    pstk__cuda_leave(&e);
    if (r < 0) {
        free(opened);
        return r;
    }
    pthread_mutex_lock(&d->lock);
    *opened = (struct pstk__cuda_stream){.next = d->opened, .stream = s};
    d->opened = opened;
    pthread_mutex_unlock(&d->lock);
    *stream = s;
    return 0;
}

/* Take the stream off the list of those that the device closes. */
static void forget_stream(struct pstk__cuda *d, cudaStream_t stream)
{
    pthread_mutex_lock(&d->lock);
    struct pstk__cuda_stream **link = &d->opened, *found;
    while (*link && (*link)->stream != stream)
        link = &(*link)->next;
    found = *link;
    if (found)
        *link = found->next;
    pthread_mutex_unlock(&d->lock);
    free(found);
}

void pstk__gpu_stream_close(struct pstk__device *device, void *stream)
{
    struct pstk__cuda *d = pstk__cuda_of(device);
    struct pstk__cuda_entry e;
    if (!stream || pstk__cuda_enter(&e, &d->context, NULL) < 0)
        return;
    forget_stream(d, stream);
    cudaStreamSynchronize(stream);
    cudaStreamDestroy(stream);
    pstk__cuda_leave(&e);
}

void pstk__gpu_streams_close(struct pstk__cuda *d, int is_entered)
{
    struct pstk__cuda_stream *next;
    for (struct pstk__cuda_stream *stream = d->opened; stream; stream = next) {
        next = stream->next;
        if (is_entered)
            cudaStreamDestroy(stream->stream); /* work in the stream goes on */
        free(stream);
    }
    d->opened = NULL;
}

int pstk__gpu_stream_spin(struct pstk__device *device, void *stream, uint64_t ns,
                          struct pstk_error *err)
{
    struct pstk__cuda *d = pstk__cuda_of(device);
    struct pstk__cuda_entry e;
    int r = check_default(d, stream, err);
    if (r == 0)
        r = enter_for(&e, d, stream, err);
    if (r < 0)
        return r;
    const cudaError_t code = pstk__cuda_spin(&d->module, ns, stream);
    r = code == cudaSuccess ? 0 : pstk__gpu_fail(d, code, "simulating a training step", err);
    pstk__cuda_leave(&e);
    return r;
}

int pstk__gpu_read(struct pstk__device *device, void *to, const void *from, uint64_t size,
                   void *stream, struct pstk_error *err)
{
    struct pstk__cuda *d = pstk__cuda_of(device);
    struct pstk__cuda_entry e;
    int r = check_default(d, stream, err);
    if (r == 0)
        r = enter_for(&e, d, stream, err);
    if (r < 0)
        return r;
    cudaError_t code = cudaSuccess;
    if (size > 0)
        code = cudaMemcpyAsync(to, from, size, cudaMemcpyDeviceToHost, stream);
    if (code == cudaSuccess)
        code = cudaStreamSynchronize(stream);
    r = code == cudaSuccess ? 0 : pstk__gpu_fail(d, code, "copying to the host", err);
    pstk__cuda_leave(&e);
    return r;
}
