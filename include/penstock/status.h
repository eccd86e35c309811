/* SPDX-License-Identifier: Apache-2.0 */
/*
 * penstock/status.h - ask a loader of another process what it is doing.
 *
 * A loader with settings.observe.monitor_path has a status file: a small file (4 KiB) at that path,
 * with the loader's process in it. pstk_status_ask writes a question to the file, and a thread of
 * the loader, which sleeps otherwise, writes the answer. So an answer comes also while the training
 * program computes or hangs; nothing is measured or written while nobody asks. `penstock top` asks
 * all loaders of a user.
 *
 * pstk_close removes the file. A process that was killed leaves it; pstk_status_ask says so.
 */
#ifndef PENSTOCK_STATUS_H
#define PENSTOCK_STATUS_H

#include <penstock/metrics.h>
#include <penstock/stats.h>
#include <penstock/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What became of a question. */
enum pstk_status_state {
    PSTK_STATUS_ANSWERED = 0,
    /* the process runs, but did not answer in time: it is stopped, or the machine is very busy */
    PSTK_STATUS_SILENT = 1,
    /* the process has ended without pstk_close: the file may be deleted */
    PSTK_STATUS_ENDED = 2,
    /* no answer, of a process of another machine or PID namespace: it cannot be known whether it
     * runs */
    PSTK_STATUS_ELSEWHERE = 3,
};

/* Who has a status file. */
struct pstk_status {
    /* sizeof(struct pstk_status), set by the caller */
    uint32_t size;
    /* enum pstk_status_state */
    uint32_t state;
    /* process id, in its own PID namespace */
    uint32_t pid;
    /* 1: that is another PID namespace than the caller's, or another machine's */
    uint32_t is_foreign;
    /* of the loader's settings */
    uint32_t rank, world;
    /* enum pstk_device_kind, and its index */
    uint32_t device;
    int32_t device_index;
    /* when the loader was opened, in ns of CLOCK_REALTIME */
    uint64_t opened_ns;
    /* samples of an epoch, of all ranks */
    uint64_t n_samples;

    /* Of the answer; else 0. */

    /* when it was written, in ns of CLOCK_REALTIME */
    uint64_t answered_ns;
    /* where the batch that comes next begins, as pstk_get_cursor */
    uint64_t epoch, position;

    /* name of the machine or container; cut if longer */
    char host[64];
    /* path of the data set, as it was given; of a longer one the end, after "..." */
    char path[512];
};

/* Ask the loader whose status file is the file `path`, and wait up to timeout_ns for its answer:
 * about 1 ms where the machine has a free core. stats (since pstk_open) and metrics (of
 * PSTK_WINDOW_MINUTE) may be NULL; they have their sizes set, and are 0 without an answer. Returns
 * 0 if the file is a status file, whatever became of the question (status->state). ENOENT: there is
 * no such file (any more). EACCES: it belongs to another user. ENODATA: it is something else than a
 * status file, or it is just being made. EBADMSG: damaged. ENOTSUP: of a newer penstock. Thread:
 * any. */
PSTK_API int pstk_status_ask(const char *path, int64_t timeout_ns, struct pstk_status *status,
                             struct pstk_stats *stats, struct pstk_metrics *metrics,
                             struct pstk_error *err);

#ifdef __cplusplus
}
#endif
#endif
