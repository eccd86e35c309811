/* SPDX-License-Identifier: Apache-2.0 */
/*
 * penstock/metrics.h - what a loader is doing while it runs: a trace of its threads.
 *
 * A trace is a file in Chrome's Trace Event Format (JSON), which https://ui.perfetto.dev opens. It
 * has an event for each of these:
 *   claim    a reader gave a free slot the next batch
 *   read     rows were read: from when the first of their reads was queued until all had ended; the
 *            blocks of a windowed order are read ahead of the batches and have no events
 *   decode   a worker made rows
 *   finish   a worker completed a batch: functions of whole batches, MixUp, ragged rows
 *   copy     a batch was copied to the device, until the loader saw the copy done
 *   next     a call of pstk_next
 *   lease    the program had a batch, from pstk_next until its release; it is in the trace once it
 *            has ended
 *
 * args.batch numbers the batches of the loader from 0, those that a seek dropped included.
 * args.epoch and args.index are those of struct pstk_batch. args.rows are the rows that the event
 * is about. Reads and decodes of a batch come in one event or several, whose rows add up to the
 * batch's; the others come once. A call of pstk_next that gave no batch has no args.
 *
 * Each thread keeps its newest settings.trace_events events, in memory that pstk_open allocates.
 * "ts" counts microseconds since pstk_open; otherData.monotonic_ns is that moment of
 * CLOCK_MONOTONIC, and otherData.realtime_ns that of CLOCK_REALTIME. The args of "thread_name"
 * count the events of the thread, and those that newer ones overwrote.
 */
#ifndef PENSTOCK_METRICS_H
#define PENSTOCK_METRICS_H

#include <penstock/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct pstk_loader;

/* Write the trace so far to the file `path`; NULL: to settings.trace_path, where pstk_close then
 * writes it again if more has happened. Threads go on meanwhile. EINVAL: the loader keeps no trace,
 * or has no trace_path; else what the system refused. Thread: any. */
PSTK_API int pstk_trace_write(struct pstk_loader *loader, const char *path, struct pstk_error *err);

#ifdef __cplusplus
}
#endif
#endif
