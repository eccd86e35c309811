/* SPDX-License-Identifier: Apache-2.0 */
/* stream: a thread that runs operations in order, each after a delay if there shall be any. */
#include "state.h"

#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

static uint64_t now_ns(void)
{
    if (cuda_fake__state.config.clock_by_hand)
        return cuda_fake__state.clock_ns;
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint32_t draw(struct CUstream_st *s, uint32_t below)
{
    s->random ^= s->random << 13;
    s->random ^= s->random >> 7;
    s->random ^= s->random << 17;
    return (uint32_t)(s->random >> 33) % below;
}

static void delay(struct CUstream_st *s)
{
    const struct cuda_fake_config *c = &cuda_fake__state.config;
    if (c->max_delay_us == 0 || draw(s, 100) >= c->delay_percent)
        return;
    const uint64_t ns = (uint64_t)draw(s, c->max_delay_us + 1) * 1000;
    const struct timespec t = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    pthread_mutex_unlock(&cuda_fake__state.lock);
    nanosleep(&t, NULL);
    pthread_mutex_lock(&cuda_fake__state.lock);
}

static void op_free(struct cuda_fake__op *op)
{
    for (uint32_t i = 0; i < op->n_ranges; i++)
        op->ranges[i]->n_pending--;
    cuda_fake__mark_drop(op->mark);
    free(op->ranges);
    free(op->staged);
    free(op);
}

/* Without the lock, and in TSan's sight; what it touches may be touched meanwhile. */
static void work(struct cuda_fake__op *op)
{
    struct cuda_fake__state *f = &cuda_fake__state;
    for (uint32_t i = 0; i < op->n_ranges; i++)
        cuda_fake__range_run(op->ranges[i], 1);
    pthread_mutex_unlock(&f->lock);
    cuda_fake__op_run(op);
    pthread_mutex_lock(&f->lock);
    for (uint32_t i = 0; i < op->n_ranges; i++)
        cuda_fake__range_run(op->ranges[i], 0);
}

static void perform(struct CUstream_st *s, struct cuda_fake__op *op)
{
    struct cuda_fake__state *f = &cuda_fake__state;
    cuda_fake__acquire(op); /* the host's work before the enqueue */
    cuda_fake__queue_reach(op);
    if (op->kind == CUDA_FAKE__WAIT) {
        while (!op->mark->done)
            pthread_cond_wait(&f->progress, &f->lock);
        cuda_fake__acquire(op->mark);
    } else if (op->kind == CUDA_FAKE__RECORD) {
        cuda_fake__release(op->mark);
        op->mark->time_ns = now_ns();
        op->mark->done = 1;
        s->n_records++;
    } else if (f->devices[s->device].poison == cudaSuccess) {
        cuda_fake__queue_leave(op);
        cuda_fake__engine_enter(s, op);
        work(op);
        cuda_fake__engine_leave(s, op);
    }
    cuda_fake__queue_leave(op);
}

static void *stream_thread(void *arg)
{
    struct CUstream_st *s = arg;
    struct cuda_fake__state *f = &cuda_fake__state;
    prctl(PR_SET_TIMERSLACK, 1ul, 0ul, 0ul, 0ul);
    cuda_fake__enter();
    for (;;) {
        while (s->held || (!s->head && !s->ending))
            pthread_cond_wait(&s->work, &f->lock);
        if (!s->head)
            break;
        struct cuda_fake__op *op = s->head;
        delay(s);
        perform(s, op);
        s->head = op->next;
        if (!s->head)
            s->tail = &s->head;
        s->n_done++;
        op_free(op);
        cuda_fake__release(s); /* for those who wait for the stream */
        pthread_cond_broadcast(&f->progress);
    }
    s->ended = 1;
    cuda_fake__leave();
    return NULL;
}

/* ---- places in the clocks ---- */

static uint32_t slot_open(struct cuda_fake__state *f)
{
    if (f->n_slots < CUDA_FAKE__CLOCKS)
        return f->n_slots++;
    for (uint32_t i = 0; i < CUDA_FAKE__CLOCKS; i++) {
        if (f->slot_free[i]) {
            f->slot_free[i] = 0;
            return i;
        }
    }
    abort(); /* 128 streams alive */
}

static void join(struct CUstream_st *s)
{
    if (!s->joined)
        pthread_join(s->thread, NULL);
    s->joined = 1;
}

/* Stacks of threads that have ended are given back on the way. */
static void reap(struct cuda_fake__state *f)
{
    for (struct CUstream_st *s = f->dead_streams; s; s = s->next)
        if (s->ended)
            join(s);
}

static struct CUstream_st *stream_open(int device, uint32_t flags, int priority, uint32_t implicit)
{
    struct cuda_fake__state *f = &cuda_fake__state;
    reap(f);
    struct CUstream_st *s = calloc(1, sizeof *s);
    if (!s)
        abort();
    s->device = device;
    s->flags = flags;
    s->priority = priority;
    s->implicit = implicit;
    s->owner = cuda_fake__thread();
    s->slot = slot_open(f);
    s->clock.at[s->slot] = f->slot_time[s->slot];
    s->tail = &s->head;
    s->random = (f->config.seed + 1) * 0x9e3779b97f4a7c15u + s->slot * 0xbf58476d1ce4e5b9u + 1;
    pthread_cond_init(&s->work, NULL);
    if (pthread_create(&s->thread, NULL, stream_thread, s) != 0)
        abort();
    s->next = f->streams;
    f->streams = s;
    return s;
}

static struct CUstream_st *default_stream(uint32_t implicit)
{
    struct cuda_fake__state *f = &cuda_fake__state;
    struct cuda_fake__device *d = &f->devices[cuda_fake__current()];
    const void *me = cuda_fake__thread();
    if (implicit == 1) {
        if (!d->legacy)
            d->legacy = stream_open(d->index, 0, 0, 1);
        return d->legacy;
    }
    for (struct CUstream_st *s = f->streams; s; s = s->next)
        if (s->implicit == 2 && s->device == d->index && s->owner == me)
            return s;
    return stream_open(d->index, 0, 0, 2);
}

struct CUstream_st *cuda_fake__stream(cudaStream_t handle)
{
    if (handle == NULL || handle == cudaStreamLegacy)
        return default_stream(1);
    if (handle == cudaStreamPerThread)
        return default_stream(2);
    struct CUstream_st *s = cuda_fake__state.streams;
    while (s && s != handle)
        s = s->next;
    if (!s)
        cuda_fake__hazard(CUDA_FAKE_USE, "a stream that is not alive");
    return s;
}

/* ---- operations ---- */

void cuda_fake__stream_push(struct CUstream_st *s, struct cuda_fake__op *op)
{
    for (uint32_t i = 0; i < op->n_ranges; i++)
        op->ranges[i]->n_pending++;
    op->next = NULL;
    *s->tail = op;
    s->tail = &op->next;
    s->n_enqueued++;
    cuda_fake__queue_put(s, op);
    cuda_fake__release(op);
    pthread_cond_signal(&s->work);
}

static struct cuda_fake__op *mark_op(enum cuda_fake__kind kind, struct cuda_fake__mark *m)
{
    struct cuda_fake__op *op = calloc(1, sizeof *op);
    if (!op)
        abort();
    op->kind = kind;
    op->mark = m;
    m->refs++;
    return op;
}

struct cuda_fake__mark *cuda_fake__stream_mark(struct CUstream_st *s)
{
    struct cuda_fake__mark *m = calloc(1, sizeof *m);
    if (!m)
        abort();
    m->refs = 1;
    m->clock = s->clock;
    cuda_fake__stream_push(s, mark_op(CUDA_FAKE__RECORD, m));
    return m;
}

void cuda_fake__stream_wait(struct CUstream_st *s, struct cuda_fake__mark *m)
{
    cuda_fake__join(&s->clock, &m->clock);
    cuda_fake__stream_push(s, mark_op(CUDA_FAKE__WAIT, m));
}

static void follow(struct CUstream_st *s, struct CUstream_st *other)
{
    if (other->n_enqueued == 0)
        return;
    struct cuda_fake__mark *m = cuda_fake__stream_mark(other);
    cuda_fake__stream_wait(s, m);
    cuda_fake__mark_drop(m);
}

/* The legacy default stream and the blocking streams of its device wait for each other. */
static void follow_default(struct CUstream_st *s)
{
    struct cuda_fake__state *f = &cuda_fake__state;
    struct CUstream_st *legacy = f->devices[s->device].legacy;
    if (!legacy || s->flags & cudaStreamNonBlocking)
        return;
    if (s != legacy) {
        follow(s, legacy);
        return;
    }
    for (struct CUstream_st *o = f->streams; o; o = o->next)
        if (o != s && o->device == s->device && !(o->flags & cudaStreamNonBlocking))
            follow(s, o);
}

/* A stream takes some 1000 launches, then the next one waits for room. */
static void wait_for_room(struct CUstream_st *s)
{
    const struct cuda_fake__state *f = &cuda_fake__state;
    s->n_stuck++;
    while (f->config.stream_depth && s->n_enqueued - s->n_done >= f->config.stream_depth)
        pthread_cond_wait(&cuda_fake__state.progress, &cuda_fake__state.lock);
    s->n_stuck--;
}

/*
 * Nobody may wait for, or ask about, what a captured stream takes: the legacy default stream
 * neither, where the captured one is a blocking stream, nor the device (CUDA C++ Programming Guide,
 * "Stream Capture", "Prohibited and Unhandled Operations"). The thread's mode does not matter.
 */
static cudaError_t captured(const struct CUstream_st *s)
{
    const struct CUstream_st *c = cuda_fake__state.streams;
    while (c && c != cuda_fake__state.captured)
        c = c->next;
    if (!c || s->device != c->device)
        return cudaSuccess;
    if (s == c)
        return cudaErrorStreamCaptureUnsupported;
    return s->implicit == 1 && !(c->flags & cudaStreamNonBlocking) ? cudaErrorStreamCaptureImplicit
                                                                   : cudaSuccess;
}

static cudaError_t ask_captured(const struct CUstream_st *s, const char *name)
{
    const cudaError_t e = captured(s);
    if (e != cudaSuccess)
        cuda_fake__hazard(CUDA_FAKE_CAPTURE, "%s of a stream that is captured", name);
    return e;
}

void cuda_fake__stream_tick(struct CUstream_st *s)
{
    wait_for_room(s);
    if (captured(s) != cudaSuccess)
        cuda_fake__hazard(CUDA_FAKE_CAPTURE, "an operation in a stream that is captured");
    follow_default(s);
    cuda_fake__join(&s->clock, cuda_fake__host_clock());
    s->clock.at[s->slot]++;
}

void cuda_fake__stream_drain(struct CUstream_st *s)
{
    const uint64_t n = s->n_enqueued;
    while (s->n_done < n)
        pthread_cond_wait(&cuda_fake__state.progress, &cuda_fake__state.lock);
}

/* Streams may come and go while the lock is away; no more of them are alive than have places. */
static uint32_t streams_of(int device, struct CUstream_st **out)
{
    uint32_t n = 0;
    for (struct CUstream_st *s = cuda_fake__state.streams; s; s = s->next)
        if (s->device == device)
            out[n++] = s;
    return n;
}

void cuda_fake__device_drain(int device)
{
    struct CUstream_st *all[CUDA_FAKE__CLOCKS];
    const uint32_t n = streams_of(device, all);
    for (uint32_t i = 0; i < n; i++)
        cuda_fake__stream_drain(all[i]);
    for (struct CUstream_st *s = cuda_fake__state.dead_streams; s; s = s->next)
        if (s->device == device)
            cuda_fake__stream_drain(s);
}

static int has_kernel(const struct CUstream_st *s, const struct cuda_fake__module *code)
{
    for (; s; s = s->next)
        for (const struct cuda_fake__op *op = s->head; op; op = op->next)
            if (op->code == code)
                return 1;
    return 0;
}

int cuda_fake__is_running(const struct cuda_fake__module *code)
{
    return has_kernel(cuda_fake__state.streams, code) ||
           has_kernel(cuda_fake__state.dead_streams, code);
}

/* ---- what programs call ---- */

static cudaError_t create(const char *name, cudaStream_t *out, unsigned flags, int priority)
{
    cudaError_t e = cuda_fake__begin(name, CUDA_FAKE__CONTEXT);
    if (e == cudaSuccess && (!out || flags > cudaStreamNonBlocking))
        e = cudaErrorInvalidValue;
    if (e == cudaSuccess) { /* priorities beyond the range mean its ends */
        const int p = priority > 0 ? 0 : priority < -5 ? -5 : priority;
        *out = stream_open(cuda_fake__current(), flags, p, 0);
    }
    return cuda_fake__end(e, 0);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *pStream, unsigned int flags, int priority)
{
    return create("cudaStreamCreateWithPriority", pStream, flags, priority);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *pStream, unsigned int flags)
{
    return create("cudaStreamCreateWithFlags", pStream, flags, 0);
}

/* Returns at once; what was enqueued still runs. */
cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    struct cuda_fake__state *f = &cuda_fake__state;
    cudaError_t e = cuda_fake__begin("cudaStreamDestroy", CUDA_FAKE__CONTEXT);
    struct CUstream_st **link = &f->streams;
    while (*link && (*link != stream || (*link)->implicit))
        link = &(*link)->next;
    struct CUstream_st *s = *link;
    if (e == cudaSuccess && !s) {
        cuda_fake__hazard(CUDA_FAKE_USE, "cudaStreamDestroy of a stream that is not alive");
        e = cudaErrorInvalidResourceHandle;
    }
    if (e == cudaSuccess) {
        *link = s->next;
        s->next = f->dead_streams;
        f->dead_streams = s;
        f->slot_time[s->slot] = s->clock.at[s->slot];
        f->slot_free[s->slot] = 1;
        s->ending = 1;
        pthread_cond_signal(&s->work);
    } else if (s) {
        s->tried = 1;
    }
    return cuda_fake__end(e, 0);
}

/* The host knows now that everything enqueued before `clock` was taken has ended. */
static void over(struct CUstream_st *s, const struct cuda_fake__clock *clock)
{
    cuda_fake__join(cuda_fake__host_clock(), clock);
    cuda_fake__acquire(s);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    struct cuda_fake__state *f = &cuda_fake__state;
    cudaError_t e =
        cuda_fake__begin("cudaStreamSynchronize", CUDA_FAKE__CONTEXT | CUDA_FAKE__UNSAFE);
    struct CUstream_st *s = e == cudaSuccess ? cuda_fake__stream(stream) : NULL;
    if (e == cudaSuccess && !s)
        e = cudaErrorInvalidResourceHandle;
    if (e == cudaSuccess)
        e = ask_captured(s, "cudaStreamSynchronize");
    if (e == cudaSuccess) {
        const struct cuda_fake__clock clock = s->clock;
        cuda_fake__stream_drain(s);
        e = f->devices[s->device].poison;
        if (e == cudaSuccess)
            over(s, &clock);
    }
    return cuda_fake__end(e, 0);
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    struct cuda_fake__state *f = &cuda_fake__state;
    cudaError_t e = cuda_fake__begin("cudaStreamQuery", CUDA_FAKE__CONTEXT | CUDA_FAKE__UNSAFE);
    struct CUstream_st *s = e == cudaSuccess ? cuda_fake__stream(stream) : NULL;
    if (e == cudaSuccess && !s)
        e = cudaErrorInvalidResourceHandle;
    if (e == cudaSuccess)
        e = ask_captured(s, "cudaStreamQuery");
    if (e == cudaSuccess)
        e = f->devices[s->device].poison;
    if (e == cudaSuccess && s->n_done < s->n_enqueued)
        e = cudaErrorNotReady;
    if (e == cudaSuccess)
        over(s, &s->clock);
    return cuda_fake__end(e, 0);
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *pCaptureStatus)
{
    struct cuda_fake__state *f = &cuda_fake__state;
    cudaError_t e = cuda_fake__begin("cudaStreamIsCapturing", CUDA_FAKE__CONTEXT);
    struct CUstream_st *s = e == cudaSuccess ? cuda_fake__stream(stream) : NULL;
    if (e == cudaSuccess && !s)
        e = cudaErrorInvalidResourceHandle;
    if (e == cudaSuccess)
        e = f->devices[s->device].poison;
    const cudaError_t why = e == cudaSuccess ? captured(s) : cudaSuccess;
    if (why == cudaErrorStreamCaptureImplicit)
        e = why; /* no capture is broken by asking */
    if (e == cudaSuccess)
        *pCaptureStatus =
            why == cudaSuccess ? cudaStreamCaptureStatusNone : cudaStreamCaptureStatusActive;
    return cuda_fake__end(e, 0);
}

cudaError_t cudaDeviceSynchronize(void)
{
    struct cuda_fake__state *f = &cuda_fake__state;
    cudaError_t e =
        cuda_fake__begin("cudaDeviceSynchronize", CUDA_FAKE__CONTEXT | CUDA_FAKE__UNSAFE);
    if (e == cudaSuccess && (f->capture || f->captured)) {
        cuda_fake__hazard(CUDA_FAKE_CAPTURE, "cudaDeviceSynchronize during a capture");
        e = cudaErrorStreamCaptureUnsupported;
    }
    struct CUstream_st *all[CUDA_FAKE__CLOCKS];
    const int device = cuda_fake__current();
    const uint32_t n = e == cudaSuccess ? streams_of(device, all) : 0;
    for (uint32_t i = 0; i < n && e == cudaSuccess; i++)
        if (captured(all[i]) == cudaErrorStreamCaptureUnsupported)
            e = ask_captured(all[i], "cudaDeviceSynchronize");
    for (uint32_t i = 0; i < n && e == cudaSuccess; i++) {
        const struct cuda_fake__clock clock = all[i]->clock;
        cuda_fake__stream_drain(all[i]);
        e = f->devices[device].poison;
        if (e == cudaSuccess)
            over(all[i], &clock);
    }
    return cuda_fake__end(e, 0);
}

void cuda_fake_hold(cudaStream_t stream)
{
    cuda_fake__enter();
    struct CUstream_st *s = cuda_fake__stream(stream);
    if (s)
        s->held = 1;
    cuda_fake__leave();
}

void cuda_fake_let(cudaStream_t stream)
{
    cuda_fake__enter();
    struct CUstream_st *s = cuda_fake__stream(stream);
    if (s) {
        s->held = 0;
        pthread_cond_signal(&s->work);
    }
    cuda_fake__leave();
}

void cuda_fake_pass(uint64_t ns)
{
    cuda_fake__enter();
    cuda_fake__state.clock_ns += ns;
    cuda_fake__leave();
}

uint32_t cuda_fake_n_stuck(cudaStream_t stream)
{
    cuda_fake__enter();
    const struct CUstream_st *s = cuda_fake__stream(stream);
    const uint32_t n = s ? s->n_stuck : 0;
    cuda_fake__leave();
    return n;
}

uint64_t cuda_fake_records(cudaStream_t stream)
{
    cuda_fake__enter();
    const struct CUstream_st *s = cuda_fake__stream(stream);
    const uint64_t n = s ? s->n_records : 0;
    cuda_fake__leave();
    return n;
}

static void end_all(struct CUstream_st *s)
{
    for (; s; s = s->next) {
        s->held = 0;
        s->ending = 1;
        pthread_cond_signal(&s->work);
    }
}

static void free_all(struct CUstream_st **list)
{
    while (*list) {
        struct CUstream_st *s = *list;
        *list = s->next;
        join(s);
        cuda_fake__acquire(s);
        pthread_cond_destroy(&s->work);
        free(s);
    }
}

void cuda_fake__streams_close(void)
{
    struct cuda_fake__state *f = &cuda_fake__state;
    f->hold_copies = 0;
    pthread_cond_broadcast(&f->progress);
    end_all(f->streams);
    end_all(f->dead_streams);
    pthread_mutex_unlock(&f->lock);
    free_all(&f->streams); /* nobody else is here by then; threads still take the lock */
    free_all(&f->dead_streams);
    pthread_mutex_lock(&f->lock);
}
