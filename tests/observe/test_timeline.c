/* SPDX-License-Identifier: Apache-2.0 */
/* Rings of events, and the file that a loader makes of them. */
#include "support/cuda_consumer.h"

#include "observe/timeline.h"

#include <errno.h>
#include <sys/stat.h>

#define N_KINDS 7
#define MAX_BATCHES 64

static const char *const names[N_KINDS] = {"claim", "read", "decode", "finish",
                                           "copy",  "next", "lease"};

/* ---- rings ----------------------------------------------------------------------------------- */

/* An event whose members all follow from its number. */
static struct pstk__event event_of(uint64_t n)
{
    return (struct pstk__event){.begin_ns = n,
                                .end_ns = 3 * n,
                                .seq = n + 1,
                                .epoch = n + 2,
                                .index = n + 3,
                                .kind = (uint32_t)(n % N_KINDS),
                                .n_rows = (uint32_t)n};
}

static int is_event(const struct pstk__event *event, uint64_t n)
{
    return event->begin_ns == n && event->end_ns == 3 * n && event->seq == n + 1 &&
           event->epoch == n + 2 && event->index == n + 3 && event->kind == n % N_KINDS &&
           event->n_rows == (uint32_t)n;
}

TEST(a_ring_keeps_the_newest_events)
{
    struct pstk__timeline *timeline;
    struct pstk__event event;
    struct pstk_error err = error_now();
    CHECK_EQ(pstk__timeline_open(&timeline, 1, 1, 5, NULL, &err), 0);
    struct pstk__ring *ring = pstk__timeline_worker(timeline, 1, 0);
    for (uint64_t n = 0; n < 20; n++) {
        const struct pstk__event given = event_of(n);
        pstk__ring_add(ring, &given);
    }
    for (uint64_t n = 0; n < 20; n++) { /* 5 is rounded up to 8 */
        CHECK_EQ(pstk__ring_get(ring, n, &event), n >= 12);
        CHECK(n < 12 || is_event(&event, n));
    }
    CHECK_EQ(pstk__ring_get(ring, 20, &event), 0);
    pstk__timeline_close(timeline);
}

struct writing {
    struct pstk__ring *ring;
    uint64_t n;
};

static void *write_events(void *argument)
{
    const struct writing *writing = argument;
    for (uint64_t n = 0; n < writing->n; n++) {
        const struct pstk__event given = event_of(n);
        pstk__ring_add(writing->ring, &given);
    }
    return NULL;
}

TEST(a_reader_of_a_ring_being_written_gets_whole_events)
{
    struct pstk__timeline *timeline;
    struct pstk_error err = error_now();
    CHECK_EQ(pstk__timeline_open(&timeline, 1, 1, 4, NULL, &err), 0);
    struct writing writing = {.ring = pstk__timeline_reader(timeline, 0), .n = 300000};
    pthread_t thread;
    uint64_t n_wrong = 0, n_read = 0, seen = 0;
    CHECK_EQ(pthread_create(&thread, NULL, write_events, &writing), 0);
    while (seen < writing.n) {
        seen = atomic_load_explicit(&writing.ring->n, memory_order_acquire);
        for (uint64_t n = seen > 4 ? seen - 4 : 0; n < seen; n++) {
            struct pstk__event event;
            if (pstk__ring_get(writing.ring, n, &event)) {
                n_read++;
                n_wrong += !is_event(&event, n);
            }
        }
    }
    pthread_join(thread, NULL);
    CHECK_EQ(n_wrong, 0);
    CHECK(n_read > 0);
    pstk__timeline_close(timeline);
}

/* ---- files ----------------------------------------------------------------------------------- */

/* The events of each batch in a trace. */
struct found {
    uint32_t n[N_KINDS][MAX_BATCHES];    /* events */
    uint32_t rows[N_KINDS][MAX_BATCHES]; /* rows of all of them together */
    uint32_t n_ends[N_KINDS];            /* ends of pairs */
    uint32_t n_without;                  /* calls of pstk_next without a batch */
    uint32_t n_events, n_unknown;
};

static void find_event(struct found *found, const char *line)
{
    char name[32], phase;
    if (sscanf(line, "{\"name\":\"%31[a-z_]\",\"cat\":\"penstock\",\"ph\":\"%c\"", name, &phase) !=
        2)
        return;
    uint32_t kind = 0;
    while (kind < N_KINDS && strcmp(names[kind], name) != 0)
        kind++;
    found->n_events++;
    if (kind == N_KINDS) {
        found->n_unknown++;
        return;
    }
    if (phase == 'e') {
        found->n_ends[kind]++;
        return;
    }
    unsigned long long batch, epoch, index;
    unsigned rows;
    const char *args = strstr(line, "\"args\"");
    if (!args) {
        found->n_without += kind == PSTK__EVENT_NEXT;
        return;
    }
    if (sscanf(args, "\"args\":{\"batch\":%llu,\"epoch\":%llu,\"index\":%llu,\"rows\":%u}}", &batch,
               &epoch, &index, &rows) == 4 &&
        batch < MAX_BATCHES) {
        found->n[kind][batch]++;
        found->rows[kind][batch] += rows;
    }
}

static struct found find_events(const char *path)
{
    struct found found = {.n_events = 0};
    char line[1024];
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        find_event(&found, line);
    if (file)
        fclose(file);
    return found;
}

/* A path in the data set's parent directory. */
static const char *trace_path(void)
{
    static char path[300];
    sample_set_path(path, sizeof path);
    return path;
}

/* Take n batches. */
static int take(struct pstk_loader *loader, int n)
{
    struct pstk_error err = error_now();
    struct pstk_batch *batch;
    int n_taken = 0;
    for (int i = 0; i < n; i++)
        if (pstk_next(loader, &batch, NULL, LONG, &err) == 1) {
            pstk_release(&batch, NULL);
            n_taken++;
        }
    return n_taken;
}

/* Every batch that was taken is in each stage: once, or, where tasks make it, by all its rows. */
static void check_stages(const struct found *found, uint32_t n_batches, uint32_t rows,
                         int on_device)
{
    for (uint32_t kind = 0; kind < N_KINDS; kind++)
        for (uint32_t batch = 0; batch < n_batches; batch++) {
            const int by_tasks = kind == PSTK__EVENT_READ || kind == PSTK__EVENT_DECODE;
            if (kind == PSTK__EVENT_COPY && !on_device) {
                CHECK_EQ(found->n[kind][batch], 0);
                continue;
            }
            CHECK_EQ(found->rows[kind][batch], rows);
            CHECK(by_tasks ? found->n[kind][batch] >= 1 : found->n[kind][batch] == 1);
        }
}

static void run_traced(uint32_t device)
{
    struct pstk_settings s = base();
    struct pstk_error err = error_now();
    struct pstk_loader *loader;
    const char *path = trace_path();
    s.device.kind = device;
    s.last_batch = PSTK_LAST_DROP;
    s.observe.trace_path = path;
    cuda_fake_open(NULL);
    CHECK_EQ(pstk_open(&loader, &s, &err), 0);
    if (loader) {
        const uint32_t n_batches = (uint32_t)pstk_n_batches(loader);
        CHECK_EQ(find_events(path).n_unknown, 0); /* the file is there from the start */
        CHECK_EQ(take(loader, (int)n_batches + 1), n_batches);
        pstk_close(&loader);
        const struct found found = find_events(path);
        check_stages(&found, n_batches, s.batch_size, device == PSTK_CUDA);
        CHECK_EQ(found.n_without, 1); /* the end of the epoch */
        CHECK_EQ(found.n_unknown, 0);
        CHECK_EQ(found.n_ends[PSTK__EVENT_LEASE], n_batches);
    }
    CHECK_EQ(cuda_fake_close(), 0);
    unlink(path);
}

TEST(a_trace_has_every_batch_once_in_each_stage)
{
    run_traced(PSTK_HOST);
}

TEST(a_trace_of_a_device_has_copies_too)
{
    run_traced(PSTK_CUDA);
}

TEST(a_trace_is_written_on_demand_while_threads_work)
{
    struct pstk_settings s = base();
    struct pstk_error err = error_now();
    struct pstk_loader *loader;
    const char *path = trace_path();
    s.device.kind = PSTK_HOST;
    s.observe.trace_events = 16; /* so that rings wrap meanwhile */
    CHECK_EQ(pstk_open(&loader, &s, &err), 0);
    for (int i = 0; i < 20; i++) {
        CHECK(take(loader, 5) > 0);
        CHECK_EQ(pstk_trace_write(loader, path, &err), 0);
    }
    CHECK(find_events(path).n_events > 0);
    CHECK_EQ(pstk_trace_write(loader, NULL, &err), PSTK_EINVAL);
    CHECK(strstr(err.message, "opened without trace_path"));
    CHECK_EQ(pstk_trace_write(loader, "", &err), PSTK_EINVAL);
    CHECK(strstr(err.message, "path: value is empty; must be the path of a file"));
    pstk_close(&loader);
    unlink(path);
}

TEST(a_batch_may_be_released_after_close)
{
    struct pstk_settings s = base();
    struct pstk_error err = error_now();
    struct pstk_loader *loader;
    struct pstk_batch *batch;
    const char *path = trace_path();
    s.device.kind = PSTK_HOST;
    s.observe.trace_path = path;
    CHECK_EQ(pstk_open(&loader, &s, &err), 0);
    CHECK_EQ(pstk_next(loader, &batch, NULL, LONG, &err), 1);
    pstk_close(&loader);
    CHECK_EQ(find_events(path).n_ends[PSTK__EVENT_LEASE], 0);
    pstk_release(&batch, NULL);
    unlink(path);
}

/* ---- paths that cannot be written to --------------------------------------------------------- */

static int open_with(const char *path, struct pstk_loader **loader, struct pstk_error *err)
{
    struct pstk_settings s = base();
    s.device.kind = PSTK_HOST;
    s.observe.trace_path = path;
    return pstk_open(loader, &s, err);
}

TEST(a_path_that_is_wrong_is_refused_before_anything_starts)
{
    struct pstk_error err = error_now();
    struct pstk_loader *loader;
    char below[400];
    const char *path = trace_path();
    snprintf(below, sizeof below, "%s/trace.json", path);
    CHECK_EQ(open_with(below, &loader, &err), PSTK_EINVAL);
    CHECK(strstr(err.message, below));
    CHECK(strstr(err.message, "must be a file in a folder that exists"));
    CHECK_EQ(open_with("/", &loader, &err), PSTK_EINVAL);
    CHECK_EQ(open_with("", &loader, &err), PSTK_EINVAL);
    CHECK_EQ(strcmp(err.message, "trace_path: value is empty; must be NULL or the path of a file"),
             0);
    CHECK_EQ(mkfifo(path, 0600), 0);
    CHECK_EQ(open_with(path, &loader, &err), PSTK_EINVAL); /* it does not wait for a reader */
    unlink(path);
}

TEST(a_full_disk_is_reported_and_the_run_goes_on)
{
    struct pstk_error err = error_now();
    struct pstk_stats stats = {.size = sizeof stats};
    struct pstk_loader *loader;
    CHECK_EQ(open_with("/dev/full", &loader, &err), 0);
    CHECK_EQ(pstk_get_stats(loader, &stats), 0);
    CHECK(stats.fallbacks & PSTK_FALLBACK_NO_TRACE);
    CHECK_EQ(take(loader, 3), 3);
    CHECK(pstk_trace_write(loader, NULL, &err) < 0);
    CHECK_EQ(err.native, ENOSPC);
    CHECK(strstr(err.message, "/dev/full"));
    CHECK_EQ(take(loader, 1), 1);
    pstk_close(&loader);
}

TEST(a_loader_without_a_trace_says_so)
{
    struct pstk_error err = error_now();
    struct pstk_loader *loader;
    CHECK_EQ(open_with(NULL, &loader, &err), 0);
    CHECK_EQ(pstk_trace_write(loader, "trace.json", &err), PSTK_EINVAL);
    CHECK(strstr(err.message, "trace_events"));
    CHECK_EQ(pstk_trace_write(NULL, "trace.json", &err), PSTK_EINVAL);
    pstk_close(&loader);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(a_ring_keeps_the_newest_events),
        CASE(a_reader_of_a_ring_being_written_gets_whole_events),
        CASE(a_trace_has_every_batch_once_in_each_stage),
        CASE(a_trace_of_a_device_has_copies_too),
        CASE(a_trace_is_written_on_demand_while_threads_work),
        CASE(a_batch_may_be_released_after_close),
        CASE(a_path_that_is_wrong_is_refused_before_anything_starts),
        CASE(a_full_disk_is_reported_and_the_run_goes_on),
        CASE(a_loader_without_a_trace_says_so),
    };
    consumer_begin();
    const int failed = RUN_CASES(cases);
    consumer_end();
    return failed;
}
