/* SPDX-License-Identifier: Apache-2.0 */
/* Write a timeline as a file: Chrome's Trace Event Format, JSON, which Perfetto opens. */
#include "observe/timeline.h"

#include "base/error.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/types.h>
#include <unistd.h>

/* Thread numbers begin above Linux's largest (2^22), so that they differ from all real threads in
 * another tool's trace. */
#define FIRST_TID 5000000u

#define BUFFER_SIZE 16384u
#define LINE_MAX_SIZE 512u

/* Events that may overlap others of their thread are written as pairs of "b" and "e", each pair on
 * a track of its own. */
static const struct {
    const char *name;
    int overlaps;
} kinds[] = {
    [PSTK__EVENT_CLAIM] = {"claim", 0},   [PSTK__EVENT_READ] = {"read", 1},
    [PSTK__EVENT_DECODE] = {"decode", 0}, [PSTK__EVENT_FINISH] = {"finish", 0},
    [PSTK__EVENT_COPY] = {"copy", 1},     [PSTK__EVENT_NEXT] = {"next", 0},
    [PSTK__EVENT_LEASE] = {"lease", 1},   [PSTK__EVENT_BLOCK] = {"block", 1},
};

struct output {
    int fd;
    int native; /* errno of the write that failed; 0: no write failed */
    uint32_t n_used, pid;
    int more; /* 1: a comma precedes the next event */
    char buffer[BUFFER_SIZE];
};

static void flush(struct output *output)
{
    uint32_t done = 0;
    while (!output->native && done < output->n_used) {
        const ssize_t n = write(output->fd, output->buffer + done, output->n_used - done);
        if (n >= 0)
            done += (uint32_t)n;
        else if (errno != EINTR)
            output->native = errno;
    }
    output->n_used = 0;
}

/* Write formatted text of at most LINE_MAX_SIZE bytes. */
__attribute__((format(printf, 2, 3))) static void put(struct output *output, const char *fmt, ...)
{
    va_list arguments;
    if (output->n_used + LINE_MAX_SIZE > BUFFER_SIZE)
        flush(output);
    va_start(arguments, fmt);
    const int n = vsnprintf(output->buffer + output->n_used, LINE_MAX_SIZE, fmt, arguments);
    va_end(arguments);
    if (n > 0)
        output->n_used += (uint32_t)n;
}

static const char *separator(struct output *output)
{
    const char *text = output->more ? ",\n" : "\n";
    output->more = 1;
    return text;
}

/* Write the members that all events of a thread share; the time is in microseconds, to three
 * decimals. */
static void put_event(struct output *output, const char *name, char phase, uint32_t tid,
                      uint64_t at_ns)
{
    put(output,
        "%s{\"name\":\"%s\",\"cat\":\"penstock\",\"ph\":\"%c\",\"pid\":%u,\"tid\":%u,"
        "\"ts\":%llu.%03llu",
        separator(output), name, phase, output->pid, tid, (unsigned long long)(at_ns / 1000),
        (unsigned long long)(at_ns % 1000));
}

static void put_args(struct output *output, const struct pstk__event *event)
{
    if (event->kind == PSTK__EVENT_BLOCK)
        put(output, ",\"args\":{\"epoch\":%llu,\"block\":%llu,\"rows\":%u}",
            (unsigned long long)event->epoch, (unsigned long long)event->index, event->n_rows);
    else if (event->seq != PSTK__TRACE_UNKNOWN)
        put(output, ",\"args\":{\"batch\":%llu,\"epoch\":%llu,\"index\":%llu,\"rows\":%u}",
            (unsigned long long)event->seq, (unsigned long long)event->epoch,
            (unsigned long long)event->index, event->n_rows);
    put(output, "}");
}

/* Write a pair of events; id: number of the pair, unique in the file. */
static void put_pair(struct output *output, const struct pstk__event *event, uint32_t tid,
                     uint64_t id, uint64_t opened_ns)
{
    const char *name = kinds[event->kind].name;
    put_event(output, name, 'b', tid, event->begin_ns - opened_ns);
    put(output, ",\"id\":\"%u.%llu\"", tid, (unsigned long long)id);
    put_args(output, event);
    put_event(output, name, 'e', tid, event->end_ns - opened_ns);
    put(output, ",\"id\":\"%u.%llu\"}", tid, (unsigned long long)id);
}

static void put_ring(struct output *output, const struct pstk__ring *ring, uint32_t tid,
                     uint64_t opened_ns)
{
    const uint64_t n = atomic_load_explicit(&ring->n, memory_order_acquire);
    uint64_t first = n > ring->mask + 1 ? n - ring->mask - 1 : 0;
    struct pstk__event event;
    if (n == 0)
        return;
    put(output,
        "%s{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":%u,\"tid\":%u,\"args\":{\"name\":\"%s\","
        "\"events\":%llu,\"overwritten\":%llu}}",
        separator(output), output->pid, tid, ring->name, (unsigned long long)n,
        (unsigned long long)first);
    for (uint64_t i = first; i < n && !output->native; i++) {
        if (!pstk__ring_get(ring, i, &event))
            continue;
        if (kinds[event.kind].overlaps) {
            put_pair(output, &event, tid, i, opened_ns);
            continue;
        }
        const uint64_t duration = event.end_ns - event.begin_ns;
        put_event(output, kinds[event.kind].name, 'X', tid, event.begin_ns - opened_ns);
        put(output, ",\"dur\":%llu.%03llu", (unsigned long long)(duration / 1000),
            (unsigned long long)(duration % 1000));
        put_args(output, &event);
    }
}

static void put_timeline(struct output *output, const struct pstk__timeline *timeline)
{
    put(output,
        "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"producer\":\"penstock %s\",\"clock\":"
        "\"CLOCK_MONOTONIC\",\"monotonic_ns\":%llu,\"realtime_ns\":%llu,\"pid\":%u},"
        "\"traceEvents\":[",
        pstk_version(), (unsigned long long)timeline->opened_ns,
        (unsigned long long)timeline->opened_utc, output->pid);
    put(output,
        "%s{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%u,\"args\":{\"name\":"
        "\"penstock\"}}",
        separator(output), output->pid);
    for (uint32_t i = 0; i < timeline->n_rings && !output->native; i++)
        put_ring(output, &timeline->rings[i], FIRST_TID + i, timeline->opened_ns);
    put(output, "\n]}\n");
    flush(output);
}

static uint64_t count_events(const struct pstk__timeline *timeline)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < timeline->n_rings; i++)
        n += atomic_load_explicit(&timeline->rings[i].n, memory_order_relaxed);
    return n;
}

/* Write the file. The caller holds file_lock. */
static int write_file(struct pstk__timeline *timeline, const char *path, struct pstk_error *err)
{
    struct output output = {.pid = (uint32_t)getpid()};
    /* O_NONBLOCK: a FIFO without a reader is refused instead of waited for. */
    do
        output.fd =
            open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666);
    while (output.fd < 0 && errno == EINTR);
    if (output.fd < 0)
        return pstk__fail_errno(err, errno, PSTK_STAGE_CONSUMER, "trace_path: %s cannot be written",
                                path);
    put_timeline(&output, timeline);
    if (close(output.fd) != 0 && !output.native)
        output.native = errno;
    if (output.native)
        return pstk__fail_errno(err, output.native, PSTK_STAGE_CONSUMER,
                                "trace_path: the trace could not be written to %s%s", path,
                                pstk__file_write_advice(output.native));
    return 0;
}

int pstk__timeline_write(struct pstk__timeline *timeline, const char *path, struct pstk_error *err)
{
    pthread_mutex_lock(&timeline->file_lock);
    if (!path)
        timeline->n_written = count_events(timeline);
    const int r = write_file(timeline, path ? path : timeline->path, err);
    pthread_mutex_unlock(&timeline->file_lock);
    return r;
}

int pstk__timeline_check_path(const char *setting, const char *path, enum pstk_stage stage,
                              struct pstk_error *err)
{
    if (path && !path[0])
        return pstk__fail(err, PSTK_EINVAL, stage,
                          "%s: value is empty; must be %sthe path of a file", setting,
                          stage == PSTK_STAGE_OPEN ? "NULL or " : "");
    static const char *const compressed[] = {".gz", ".bz2", ".xz", ".zst"};
    const char *suffix = path ? strrchr(path, '.') : NULL;
    for (size_t i = 0; suffix && i < sizeof compressed / sizeof *compressed; i++)
        if (strcasecmp(suffix, compressed[i]) == 0)
            return pstk__fail(err, PSTK_EINVAL, stage,
                              "%s: value is '%s'; must not end in %s, because the trace is written "
                              "as plain JSON (compress the file afterwards)",
                              setting, path, compressed[i]);
    return 0;
}

int pstk__timeline_path_is_wrong(int native)
{
    return native == ENOENT || native == ENOTDIR || native == EISDIR || native == ENAMETOOLONG ||
           native == ELOOP || native == ENXIO;
}

void pstk__timeline_end(struct pstk__timeline *timeline)
{
    if (timeline && timeline->path && count_events(timeline) != timeline->n_written)
        pstk__timeline_write(timeline, NULL, NULL);
}
