/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reorder buffer between many threads: readers claim, workers put in whatever is finished, an
 * uploader loads, a consumer takes, goes elsewhere and is interrupted. What it gets is compared
 * with the naive walk over the stream, which has one thread and no reorder buffer.
 */
#include "base/queue.h"
#include "support/test.h"
#include "support/reorder_fixture.h"

#include <pthread.h>
#include <sched.h>

enum { N_LANES = 2, N_WORKERS = 2, MAX_SLOTS = 5 };

struct shared {
    struct world w;
    struct pstk__eventcount rooms[N_LANES];
    struct pstk__queue *filling;
    _Atomic int stop;
    int is_uploading, is_interrupted;
};

struct reader {
    struct shared *shared;
    uint32_t lane;
};

/* Some batches fail, by where they are. */
static int is_bad(uint64_t epoch, uint64_t position)
{
    return (epoch * 31 + position * 7) % 23 == 5;
}

/* Return the id that a row of a batch must have. */
static uint64_t id_of(uint64_t epoch, uint64_t position, uint32_t row)
{
    return epoch * 1000000 + position * 1000 + row;
}

static uint32_t draw(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static void *read_on(void *user)
{
    const struct reader *r = user;
    struct shared *c = r->shared;
    for (;;) {
        const uint32_t ticket = pstk__eventcount_ticket(&c->rooms[r->lane]);
        if (atomic_load(&c->stop))
            return NULL;
        struct pstk__slot *s = pstk__slot_begin(c->w.p.host, r->lane);
        if (!s) {
            pstk__eventcount_wait(&c->rooms[r->lane], ticket, -1);
            continue;
        }
        pstk__reorder_claim(&c->w.reorder, s);
        pstk__queue_push(c->filling, s);
    }
}

static void *work(void *user)
{
    struct shared *c = user;
    struct pstk__slot *s;
    uint32_t state = 1;
    while ((s = pstk__queue_pop(c->filling, NULL, NULL))) {
        struct pstk_error e;
        pstk_error_init(&e, sizeof e);
        for (uint32_t k = draw(&state) % 4; k > 0; k--)
            sched_yield(); /* so that they are not finished in order */
        if (!pstk__reorder_stale(&c->w.reorder, s))
            for (uint32_t row = 0; row < s->batch.n_valid; row++)
                s->sample_ids[row] = id_of(s->batch.epoch, s->batch.position, row);
        if (is_bad(s->batch.epoch, s->batch.position)) {
            pstk__fail(&e, PSTK_EBADMSG, PSTK_STAGE_DECODE, "bad");
            e.position = s->batch.position;
            pstk__slot_fail(s, 0, &e);
        }
        put_one(&c->w, s);
    }
    return NULL;
}

/* One slot in hand, as the uploader of pipeline.h has it. */
static void *upload(void *user)
{
    struct shared *c = user;
    struct pstk__slot *to = NULL, *from;
    for (;;) {
        const uint32_t ticket = pstk__eventcount_ticket(&c->w.reorder.uploads);
        if (atomic_load(&c->stop))
            break;
        if (!to)
            to = pstk__slot_load(c->w.p.device);
        from = to ? pstk__reorder_take_filled(&c->w.reorder) : NULL;
        if (!from) {
            pstk__eventcount_wait(&c->w.reorder.uploads, ticket, -1);
        } else if (pstk__reorder_stale(&c->w.reorder, from)) {
            pstk__slot_copied(from);
        } else {
            upload_end(to, from);
            pstk__reorder_put_loaded(&c->w.reorder, to);
            to = NULL;
        }
    }
    if (to)
        pstk__slot_drop(to);
    return NULL;
}

static void *interrupt(void *user)
{
    struct shared *c = user;
    const struct timespec a_while = {.tv_nsec = 200000};
    while (!atomic_load(&c->stop)) {
        pstk__reorder_interrupt(&c->w.reorder);
        nanosleep(&a_while, NULL);
    }
    return NULL;
}

/* ---- the consumer, and the loop that it is compared with --------------------------------------
 */

struct consumer {
    struct shared *shared;
    struct pstk__cursor cursor; /* the naive loop's position */
    uint32_t state;             /* random state of the draws */
    struct pstk__slot *held[MAX_SLOTS];
    uint32_t n_held, n_slots;
    uint32_t n_batches, n_ends, n_bad, n_interrupted;
};

static int ids_are_right(const struct pstk__slot *s)
{
    for (uint32_t row = 0; row < s->batch.n_valid; row++)
        if (s->batch.sample_ids[row] != id_of(s->batch.epoch, s->batch.position, row))
            return 0;
    return 1;
}

static void give_back(struct consumer *k, uint32_t n_kept)
{
    while (k->n_held > n_kept) {
        const uint32_t i = draw(&k->state) % k->n_held;
        pstk__slot_release(k->held[i], NULL);
        k->held[i] = k->held[--k->n_held];
    }
}

static void seek(struct consumer *k, struct pstk__cursor to)
{
    k->cursor = to;
    pstk__reorder_seek(&k->shared->w.reorder, to);
}

/* 1: a take that was neither interrupted nor out of time gave the expected answer. */
static int is_expected(struct consumer *k, int r, struct pstk__slot *s)
{
    const struct naive_batch b = naive_first(&k->shared->w.partition, k->cursor);
    const struct pstk__cursor next = {b.epoch, b.next_position};
    if (b.epoch != k->cursor.epoch) {
        k->cursor = (struct pstk__cursor){.epoch = b.epoch};
        k->n_ends++;
        return r == 0 && is_at(&k->shared->w, b.epoch, 0);
    }
    if (is_bad(b.epoch, b.position)) {
        const int good = r == PSTK_EBADMSG && k->shared->w.err.position == b.position &&
                         is_at(&k->shared->w, k->cursor.epoch, k->cursor.position);
        k->n_bad++;
        seek(k, next);
        return good;
    }
    if (r != 1 || !naive_is(&b, s) || !ids_are_right(s))
        return 0;
    k->cursor = next;
    k->held[k->n_held++] = s;
    k->n_batches++;
    return is_at(&k->shared->w, next.epoch, next.position);
}

static int step(struct consumer *k)
{
    struct world *w = &k->shared->w;
    struct pstk__slot *s = NULL;
    const int64_t timeout = draw(&k->state) % 4 ? -1 : 0;
    if (draw(&k->state) % 40 == 0) {
        const uint64_t position = draw(&k->state) % (w->partition.n + 1);
        seek(k, (struct pstk__cursor){draw(&k->state) % 4, position});
    }
    give_back(k, draw(&k->state) % k->n_slots);
    const int r = pstk__reorder_take(&w->reorder, &s, NULL, timeout, &w->waited_ns, &w->err);
    k->n_interrupted += r == PSTK_EINTR;
    if (r == PSTK_EINTR || (timeout == 0 && r == PSTK_ETIMEDOUT))
        return 1;
    return is_expected(k, r, s);
}

static int start(struct shared *c, struct reader *readers, pthread_t *threads, int *n)
{
    int r = 0;
    for (uint32_t i = 0; i < N_LANES; i++) {
        readers[i] = (struct reader){c, i};
        r |= pthread_create(&threads[(*n)++], NULL, read_on, &readers[i]);
    }
    for (uint32_t i = 0; i < N_WORKERS; i++)
        r |= pthread_create(&threads[(*n)++], NULL, work, c);
    if (c->is_interrupted)
        r |= pthread_create(&threads[(*n)++], NULL, interrupt, c);
    if (c->is_uploading)
        r |= pthread_create(&threads[(*n)++], NULL, upload, c);
    return r;
}

static void stop(struct shared *c, const pthread_t *threads, int n)
{
    atomic_store(&c->stop, 1);
    for (uint32_t i = 0; i < N_LANES; i++)
        pstk__eventcount_notify(&c->rooms[i]);
    pstk__eventcount_notify(&c->w.reorder.uploads);
    pstk__queue_shut(c->filling);
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
}

static int shared_open(struct shared *c, uint32_t n_slots, uint32_t n_device_slots, uint32_t last)
{
    const struct world_config config = {.partition = {23, 4, 0, 2, last},
                                        .n_slots = n_slots,
                                        .n_lanes = n_slots < N_LANES ? n_slots : N_LANES,
                                        .n_device_slots = n_device_slots};
    memset(c, 0, sizeof *c);
    if (world_open(&c->w, &config) < 0)
        return -1;
    c->is_uploading = n_device_slots > 0;
    c->is_interrupted =
        last == PSTK_LAST_PAD; /* the others would wait for ever where a notification is lost */
    c->filling = pstk__queue_open(n_slots);
    for (uint32_t i = 0; i < N_LANES; i++) {
        pstk__eventcount_init(&c->rooms[i]);
        pstk__slots_watch(c->w.p.host, i, &c->rooms[i]);
    }
    if (c->is_uploading)
        pstk__slots_watch(c->w.p.device, 0, &c->w.reorder.uploads);
    return c->filling ? 0 : -1;
}

/* Return the steps that went right; all of them is right. */
static uint32_t run(struct shared *c, struct consumer *k, uint32_t n_steps)
{
    struct reader readers[N_LANES];
    pthread_t threads[N_LANES + N_WORKERS + 2];
    int n_threads = 0;
    uint32_t n = 0;
    if (start(c, readers, threads, &n_threads) != 0)
        return 0;
    while (n < n_steps && step(k))
        n++;
    give_back(k, 0);
    stop(c, threads, n_threads);
    return n;
}

/* Sweeps slots of the host and of a device, and how the last batch of an epoch is. */
TEST(many_threads_deliver_what_the_naive_loop_does)
{
    const uint32_t n_steps = 1500 / test_stride(3, 5);
    uint32_t n_batches = 0, n_ends = 0, n_bad = 0;
    for (uint32_t n_slots = 1; n_slots <= MAX_SLOTS; n_slots += 2)
        for (uint32_t n_device_slots = 0; n_device_slots <= 3; n_device_slots++)
            for (uint32_t last = PSTK_LAST_DROP; last <= PSTK_LAST_SHORT; last++) {
                static struct shared c;
                struct consumer k = {.shared = &c, .state = n_slots * 16 + n_device_slots};
                k.n_slots = n_device_slots ? n_device_slots : n_slots;
                CHECK_EQ(shared_open(&c, n_slots, n_device_slots, last), 0);
                CHECK_EQ(run(&c, &k, n_steps), n_steps);
                CHECK_EQ(atomic_load(&c.w.reorder.slots->n_leased), 0);
                CHECK_EQ(atomic_load(&c.w.reorder.slots->n_refs), 1);
                n_batches += k.n_batches;
                n_ends += k.n_ends;
                n_bad += k.n_bad;
                pstk__queue_close(c.filling);
                world_close(&c.w);
            }
    CHECK(n_batches > 0 && n_ends > 0 && n_bad > 0);
}

int main(void)
{
    const struct test_case cases[] = {CASE(many_threads_deliver_what_the_naive_loop_does)};
    return RUN_CASES(cases);
}
