/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_fake: a CUDA runtime without a GPU, for tests. Linked in place of libcudart. Each stream is
 * a thread that runs its operations in order and, where asked for, late; device memory is host
 * memory. It behaves as CUDA does, and reports what CUDA would not: accesses without order, host
 * memory changed under a copy, memory given back too early, calls that break another thread's
 * capture.
 *
 *   cuda_fake_open(&(struct cuda_fake_config){.n_devices = 2, .max_delay_us = 200, .seed = 7});
 *   ... the code under test ...
 *   CHECK_EQ(cuda_fake_close(), 0);
 *
 * Order is judged by vector clocks when an operation is enqueued, not by what ran first: a missing
 * wait is reported whatever the delays. A stream's operation is ordered after those before it,
 * after the records it waits for, and after everything that the host had waited for when it was
 * enqueued.
 *
 * Only stream operations (copies, memsets, kernels) may touch device memory; tests look at it
 * through a copy or cuda_fake_read. Under ASan a device allocation is poisoned while no operation
 * that names it runs.
 *
 * While it is not open, every call answers as on a machine without a driver. All functions may be
 * called from any thread, open and close from one while no other is inside a call.
 *
 * What is simpler than in CUDA: a copy to or from pageable memory holds the caller for as short as
 * CUDA documents (a source until staged, a destination until written); there are no graphs.
 */
#ifndef PSTK_CUDA_FAKE_H
#define PSTK_CUDA_FAKE_H

#include <cuda_runtime_api.h>

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CUDA_FAKE_DEVICES 8 /* at most */
#define CUDA_FAKE_TEXTS 16  /* hazards told in words */
#define CUDA_FAKE_TEXT_SIZE 200

/* All 0 is a good configuration: one device, no delays, nothing refused. */
struct cuda_fake_config {
    uint64_t seed;             /* seed of the delays */
    uint32_t n_devices;        /* 0: one */
    uint32_t max_delay_us;     /* before an operation; 0: none */
    uint32_t delay_percent;    /* share of the operations that are delayed; 0: all */
    uint64_t device_memory;    /* bytes of each device; 0: 256 MiB */
    uint64_t pinned_limit;     /* bytes that may be pinned in all; 0: no limit */
    uint64_t whole_check;      /* pinned sources up to this size are checked whole; 0: 64 KiB */
    uint64_t check_stride;     /* larger ones: 64 bytes every so many; 0: 4 KiB */
    int driver_version;        /* 0: 13000 */
    int runtime_version;       /* 0: 13000 */
    int arch;                  /* compute capability, 10 * major + minor; 0: 90 */
    cudaError_t no_driver;     /* cudaErrorInsufficientDriver: as without one, or, where
                                  driver_version is below runtime_version, with one that is too
                                  old; cudaErrorNoDevice */
    cudaError_t no_register;   /* result of cudaHostRegister */
    cudaError_t no_pinned;     /* result of cudaHostAlloc */
    uint32_t separate_threads; /* 1: what one host thread waited for does not order another one's
                                  calls, unless told by cuda_fake_hand/take. 0: the host is one */
    uint32_t quiet;            /* 1: close prints nothing */
    uint32_t one_queue;        /* 1: as with CUDA_DEVICE_MAX_CONNECTIONS=1: see engine.c */
    uint32_t stream_depth;     /* operations that a stream takes before calls wait; 0: all */
    uint32_t copy_ns_per_kib;  /* time of a copy between host and device; 0: that of a memcpy */
    uint32_t clock_by_hand;    /* 1: see cuda_fake_pass */
};

enum cuda_fake_hazard {
    CUDA_FAKE_RACE = 0,  /* two operations on the same bytes without order */
    CUDA_FAKE_SOURCE,    /* host memory changed before its copy ended */
    CUDA_FAKE_BOUNDS,    /* outside of an allocation, or across the end of a pinned range */
    CUDA_FAKE_FREE,      /* device memory given back before its use was known to have ended */
    CUDA_FAKE_HOST_FREE, /* pinned memory, the same */
    CUDA_FAKE_CAPTURE,   /* a call that breaks a capture */
    CUDA_FAKE_USE,       /* a handle or pointer that is not alive */
    CUDA_FAKE_N_HAZARDS
};

struct cuda_fake_device_stats {
    uint32_t has_context;                        /* 1 from the first call that made one */
    uint32_t n_allocations, n_streams, n_events; /* alive; default streams not counted */
    uint64_t n_allocated;                        /* bytes */
};

struct cuda_fake_stats {
    /* alive now, whatever cuda_fake_reset says */
    uint32_t n_allocations, n_registrations, n_pinned, n_streams, n_events, n_modules;
    uint64_t n_pinned_bytes; /* registered or allocated pinned */
    uint64_t n_at_engines;   /* bytes of copies that came to an engine and are not done */
    struct cuda_fake_device_stats devices[CUDA_FAKE_DEVICES];
    /* since open or the last reset */
    uint64_t n_calls;             /* all but those that only tell errors */
    uint64_t n_injected;          /* calls that failed because cuda_fake_fail said so */
    uint64_t n_h2d, n_d2h, n_d2d; /* bytes of copies enqueued */
    uint64_t n_copies, n_memsets, n_kernels, n_records, n_waits;
    uint64_t n_pageable; /* copies to or from memory that is not pinned */
    uint64_t max_ahead;  /* bytes that a copy found before it when it came to its engine */
    uint64_t n_hazards, hazards[CUDA_FAKE_N_HAZARDS];
    char texts[CUDA_FAKE_TEXTS][CUDA_FAKE_TEXT_SIZE]; /* texts of the first hazards */
};

/* Begin with nothing: no contexts, no memory. Copies the configuration; NULL: all 0. */
void cuda_fake_open(const struct cuda_fake_config *config);

/*
 * Let every stream run to its end, free everything. Returns hazards + leaks: objects alive whose
 * owner never tried to give them back (a try that failed counts as one); prints each as a TAP
 * comment.
 */
uint64_t cuda_fake_close(void);

void cuda_fake_stats(struct cuda_fake_stats *out);

/* Begin to count anew: calls, bytes, hazards. What is alive stays. */
void cuda_fake_reset(void);

/* Calls of one function since open or reset, by its name ("cudaMalloc"); NULL: of all. */
uint64_t cuda_fake_calls(const char *function);

/* Names of the functions called since open or reset; returns how many. Static strings. */
uint32_t cuda_fake_functions(const char **names, uint32_t capacity);

/*
 * The nth call from now on (1: the next) of a function (NULL: of any that counts) shall do nothing
 * and fail with code, once. At most 16 such orders at a time. Kernel launches, the
 * driver's as well, are "cudaLaunchKernel"; other driver functions go by their own names, and fail
 * with the same number.
 */
void cuda_fake_fail(const char *function, uint64_t nth, cudaError_t code);
void cuda_fake_fail_none(void);

/*
 * A kernel of somebody's faulted: from now on every call on the device's context answers code, and
 * its streams drop what they have and get. What is given back afterwards is not a leak.
 */
void cuda_fake_poison(int device, cudaError_t code);

/*
 * A capture is under way. 0: none; 1: in another thread, of global mode; 2: in the calling thread,
 * of thread-local mode. Unsafe calls fail with cudaErrorStreamCaptureUnsupported and are hazards,
 * unless the thread's mode (cudaThreadExchangeStreamCaptureMode) permits them. No mode permits
 * cudaDeviceSynchronize, which would wait for the captured stream as well (CUDA C++ Programming
 * Guide, "Prohibited and Unhandled Operations").
 */
void cuda_fake_capture(int what);
/*
 * The stream is the one that is captured; NULL: none. Every operation in it is a hazard (it would
 * go into the program's graph), and so is waiting for it, for its device or, where it is a blocking
 * stream, for or in the legacy default stream, whatever the thread's mode.
 */
void cuda_fake_capture_stream(cudaStream_t stream);

/* Hold a stream before its next operation, let it go again. Close lets all go. */
void cuda_fake_hold(cudaStream_t stream);
void cuda_fake_let(cudaStream_t stream);

/*
 * With clock_by_hand the clock of events moves only by this call, by kernels that spin, and by
 * copies (copy_ns_per_kib, also within a device). Those take no time; they move the clock by the
 * time that they should take. So times are exact, whatever the machine does meanwhile.
 */
void cuda_fake_pass(uint64_t ns);
/* Calls that wait for room in the stream, of config.stream_depth, now. */
uint32_t cuda_fake_n_stuck(cudaStream_t stream);
/* Records of events that the stream has reached. */
uint64_t cuda_fake_records(cudaStream_t stream);

/* Hold all copies to devices, or let them go. */
void cuda_fake_hold_copies(int hold);

struct cuda_fake_access {
    const void *pointer; /* device memory, or pinned host memory; NULL with size 0 is none */
    uint64_t size;
    uint32_t write; /* 1: written (and perhaps read), 0: read */
};

/*
 * A kernel: fn(user) on the stream's thread, touching nothing but what accesses name. Copies user
 * (user_size bytes) and accesses. The stream belongs to the current device, as launches demand.
 * Returns and latches an error as a launch does: a launch wrapper ends with cudaGetLastError().
 */
cudaError_t cuda_fake_enqueue(cudaStream_t stream, void (*fn)(void *user), const void *user,
                              uint64_t user_size, const struct cuda_fake_access *accesses,
                              uint32_t n_accesses);

/* Read device memory for a test, with the checks of an operation's read. 0 or -1. */
int cuda_fake_read(void *to, const void *device_memory, uint64_t size);

/* With separate_threads: all that this thread waited for goes with key; the taker has waited, too.
 */
void cuda_fake_hand(const void *key);
void cuda_fake_take(const void *key);

#ifdef __cplusplus
}
#endif
#endif
