/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state: what the files of the fake share. One lock guards all of it; the copies and kernels
 * themselves run without. TSan sees neither the lock nor the bookkeeping (call.c: hide and show),
 * only the order that CUDA gives: enqueue before operation, record before wait, operation before a
 * host's successful wait. So a race between the program and a copy stays visible.
 */
#ifndef PSTK_CUDA_FAKE_STATE_H
#define PSTK_CUDA_FAKE_STATE_H

#include "cuda_fake.h"

#include <pthread.h>

/*
 * Streams that have a place of their own in the clocks. Later ones take over the place of a
 * destroyed one and go on with its count, which can only make the judgement milder.
 */
#define CUDA_FAKE__CLOCKS 128
#define CUDA_FAKE__FUNCTIONS 64
#define CUDA_FAKE__ORDERS 16
#define CUDA_FAKE__STACK 8
/* Addresses of a device; what is allocated in them is limited by the configuration. */
#define CUDA_FAKE__REGION_SIZE ((uint64_t)32 << 30)

struct cuda_fake__clock {
    uint32_t at[CUDA_FAKE__CLOCKS]; /* per stream: its operations up to this one came before */
};

/* Bytes that an operation touched; kept until a later one that is ordered after it covers them. */
struct cuda_fake__touch {
    struct cuda_fake__touch *next;
    const uint8_t *begin, *end;
    uint32_t slot, time; /* ordered before every clock with at[slot] >= time */
    uint32_t write;
    const char *name; /* name of the call */
};

/* A device allocation, or host memory that is pinned. */
struct cuda_fake__range {
    struct cuda_fake__range *next;
    uint8_t *begin;
    uint64_t size, mapped; /* mapped: whole pages, device memory only */
    int device;            /* -1: host */
    uint32_t registered;   /* host: 1 by cudaHostRegister, 0 by cudaHostAlloc */
    uint32_t n_pending;    /* operations enqueued, not ended */
    uint32_t n_running;    /* operations that run now */
    uint32_t tried;        /* giving it back failed: no leak */
    struct cuda_fake__touch *touches;
};

/* One record of an event. Lives as long as the event, the record or a wait needs it. */
struct cuda_fake__mark {
    uint32_t refs;
    uint32_t done;
    uint64_t time_ns; /* time at which it was reached */
    struct cuda_fake__clock clock;
};

enum cuda_fake__kind {
    CUDA_FAKE__COPY,
    CUDA_FAKE__MEMSET,
    CUDA_FAKE__KERNEL,
    CUDA_FAKE__RECORD,
    CUDA_FAKE__WAIT
};

enum cuda_fake__engine_kind {
    CUDA_FAKE__NO_ENGINE,
    CUDA_FAKE__TO_DEVICE,
    CUDA_FAKE__TO_HOST,
    CUDA_FAKE__N_ENGINES
};

struct cuda_fake__queue {
    uint64_t n_come, n_gone; /* operations */
};

struct cuda_fake__engine {
    uint64_t n_come, n_gone; /* copies: those that came to it, those that are done */
    uint64_t n_bytes;        /* bytes of the copies that are not done */
};

struct cuda_fake__op {
    struct cuda_fake__op *next;
    enum cuda_fake__kind kind;
    enum cuda_fake__engine_kind engine; /* the engine, for a copy */
    struct cuda_fake__queue *queue;     /* queue of the hardware, until it left; or NULL */
    uint64_t place;                     /* there, from 1 */
    const char *name;
    struct cuda_fake__mark *mark; /* record, wait; holds a reference */
    void *to;
    const void *from;
    uint64_t size;
    int value;
    uint32_t checked; /* 1: sum is that of the source when it was enqueued */
    uint64_t sum;
    void *staged; /* owned: a copy's pageable source, or a kernel's argument */
    void (*fn)(void *user);
    const struct cuda_fake__module *code; /* module of a kernel, or NULL */
    struct cuda_fake__range **ranges;     /* owned array; each has this among its n_pending */
    uint32_t n_ranges;
};

struct CUstream_st {
    struct CUstream_st *next;
    int device;
    uint32_t flags;
    int priority;
    uint32_t implicit; /* 1: legacy default stream, 2: a thread's default stream */
    const void *owner; /* for a thread's default stream: the thread */
    uint32_t slot;     /* in clocks */
    struct cuda_fake__clock clock;
    struct cuda_fake__op *head, **tail;
    uint64_t n_enqueued, n_done;
    uint64_t n_records;                /* records among the operations that are done */
    enum cuda_fake__engine_kind queue; /* queue of its last copy or kernel */
    uint32_t held, ending, ended, joined, tried;
    uint32_t n_stuck; /* calls that wait for room */
    uint64_t random;
    pthread_cond_t work;
    pthread_t thread;
};

struct CUevent_st {
    struct CUevent_st *next;
    int device;
    uint32_t flags;
    uint32_t tried;
    struct cuda_fake__mark *mark; /* the latest record, or NULL */
};

struct cuda_fake__device {
    int index;
    uint32_t has_context;
    cudaError_t poison;
    uint8_t *region; /* reserved addresses, handed out upwards and never twice */
    uint64_t region_used;
    uint64_t n_allocated;
    struct CUstream_st *legacy;
    struct cuda_fake__queue queues[CUDA_FAKE__N_ENGINES];
    struct cuda_fake__engine engines[CUDA_FAKE__N_ENGINES];
};

struct cuda_fake__order {
    const char *function; /* NULL: any */
    uint64_t left;        /* calls until it strikes; 0: none */
    cudaError_t code;
};

struct cuda_fake__hand {
    struct cuda_fake__hand *next;
    const void *key;
    struct cuda_fake__clock clock;
};

struct cuda_fake__state {
    pthread_mutex_t lock;
    pthread_cond_t progress; /* an operation ended */
    uint32_t open;
    uint64_t generation; /* counts opens: what threads keep from an earlier one is void */
    struct cuda_fake_config config;
    uint64_t clock_ns;             /* with clock_by_hand */
    struct cuda_fake_stats counts; /* counts since reset */
    struct {
        const char *name;
        uint64_t n;
    } functions[CUDA_FAKE__FUNCTIONS];
    uint32_t n_functions;
    struct cuda_fake__order orders[CUDA_FAKE__ORDERS];
    struct cuda_fake__device devices[CUDA_FAKE_DEVICES];
    struct cuda_fake__range *ranges;
    struct CUstream_st *streams, *dead_streams; /* the dead keep their addresses until close */
    struct CUevent_st *events, *dead_events;
    struct cuda_fake__module *modules; /* loaded, or kept by a context that is lost */
    uint32_t n_modules;                /* modules whose owner never tried to unload them */
    uint32_t n_slots;
    uint32_t slot_time[CUDA_FAKE__CLOCKS]; /* for slots without a stream: where it stopped */
    uint8_t slot_free[CUDA_FAKE__CLOCKS];
    struct cuda_fake__clock host;
    struct cuda_fake__hand *hands;
    int hold_copies;       /* as in cuda_fake_hold_copies */
    int capture;           /* as in cuda_fake_capture */
    cudaStream_t captured; /* or NULL */
    const void *capturing; /* the thread, when 2 */
};

/* The state of a thread. */
struct cuda_fake__thread {
    uint64_t generation;
    int device;                  /* device that cudaSetDevice named last */
    int stack[CUDA_FAKE__STACK]; /* contexts, by device; the last is current */
    int n_stack;
    cudaError_t last;
    enum cudaStreamCaptureMode mode;
    struct cuda_fake__clock clock;             /* with separate_threads */
    const struct cuda_fake__module *launching; /* module of the kernel that it launches, or NULL */
};

extern struct cuda_fake__state cuda_fake__state;

/* ---- call.c: every function of CUDA's begins and ends here ---- */

#define CUDA_FAKE__CONTEXT                                                                         \
    1u /* makes a context where the thread has none, fails when it is poisoned */
#define CUDA_FAKE__UNSAFE 2u /* may not be called during a capture */
#define CUDA_FAKE__DRIVER 4u /* a call of the driver: leaves the last error alone */
#define CUDA_FAKE__BARE 8u   /* works without a driver, too */

cudaError_t cuda_fake__begin(const char *name, uint32_t flags); /* takes the lock */
cudaError_t cuda_fake__end(cudaError_t error, uint32_t flags);  /* gives it back */
void cuda_fake__enter(void);                                    /* the lock alone */
void cuda_fake__leave(void);
cudaError_t cuda_fake__unsafe(const char *name); /* the capture's answer to an unsafe call */
struct cuda_fake__thread *cuda_fake__thread(void);
void cuda_fake__hide(void);
void cuda_fake__show(void);
void cuda_fake__release(void *order); /* TSan: what came before goes with order ... */
void cuda_fake__acquire(void *order); /* ... to whoever takes it */
void cuda_fake__hazard(enum cuda_fake_hazard kind, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- device.c ---- */

void cuda_fake__context(struct cuda_fake__device *d);
int cuda_fake__current(void); /* device */

/* ---- order.c ---- */

struct cuda_fake__clock *cuda_fake__host_clock(void);
void cuda_fake__join(struct cuda_fake__clock *to, const struct cuda_fake__clock *from);
void cuda_fake__touch(struct cuda_fake__range *r, const void *begin, uint64_t size, uint32_t write,
                      const struct CUstream_st *s, const char *name);
/* The first touch that is not known to be over at clock (of writes only, where asked); or NULL. */
const struct cuda_fake__touch *cuda_fake__untouched(const struct cuda_fake__range *r,
                                                    const void *begin, uint64_t size,
                                                    uint32_t writes_only,
                                                    const struct cuda_fake__clock *clock);
void cuda_fake__hands_free(void);

/* ---- memory.c ---- */

/* The range with this byte in it, or NULL. */
struct cuda_fake__range *cuda_fake__range_of(const void *p);
/* 1: an address that some device has, allocated or not. */
int cuda_fake__is_device(const void *p);
void cuda_fake__range_run(struct cuda_fake__range *r, int on); /* may be touched now */
void cuda_fake__range_free(struct cuda_fake__range *r);
void cuda_fake__region_free(struct cuda_fake__device *d);

/* ---- stream.c ---- */

/* The stream of a handle; NULL, and a hazard, when there is none. */
struct CUstream_st *cuda_fake__stream(cudaStream_t handle);
/* Its time goes on by one operation, ordered after the host and, where CUDA has it, others. */
void cuda_fake__stream_tick(struct CUstream_st *s);
void cuda_fake__stream_push(struct CUstream_st *s, struct cuda_fake__op *op);
void cuda_fake__stream_wait(struct CUstream_st *s, struct cuda_fake__mark *m);
struct cuda_fake__mark *cuda_fake__stream_mark(struct CUstream_st *s); /* returns owned */
void cuda_fake__stream_drain(struct CUstream_st *s); /* until all enqueued by now has ended */
void cuda_fake__device_drain(int device);            /* the same for all streams of a device, also
                                                        those that were destroyed */
/* 1: a kernel of the module is in some stream. */
int cuda_fake__is_running(const struct cuda_fake__module *code);
void cuda_fake__streams_close(void);
void cuda_fake__op_run(struct cuda_fake__op *op); /* copy.c; without the lock */

/* ---- engine.c; all with the lock, which is given up while they wait ---- */

/* The operation is enqueued: give it a place in a hardware queue. */
void cuda_fake__queue_put(struct CUstream_st *s, struct cuda_fake__op *op);
/* Wait until it is the first there. */
void cuda_fake__queue_reach(const struct cuda_fake__op *op);
void cuda_fake__queue_leave(struct cuda_fake__op *op);
/* Wait for the engine of a copy, and as long as the copy takes; give it to the next one. */
void cuda_fake__engine_enter(const struct CUstream_st *s, const struct cuda_fake__op *op);
void cuda_fake__engine_leave(const struct CUstream_st *s, const struct cuda_fake__op *op);

/* ---- kernels.c: cuModuleLoadData, cuModuleUnload, cuModuleGetFunction, cuLaunchKernel ---- */

int cuda_fake__module_load(void **out, const void *image);
int cuda_fake__module_unload(void *module);
int cuda_fake__module_function(void **out, void *module, const char *name);
int cuda_fake__module_launch(void *function, unsigned int grid_x, unsigned int grid_y,
                             unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                             unsigned int block_z, unsigned int shared, cudaStream_t stream,
                             void **arguments, void **extra);
void cuda_fake__modules_free(void);

/* ---- event.c ---- */

void cuda_fake__mark_drop(struct cuda_fake__mark *m);
void cuda_fake__events_free(void);

#endif
