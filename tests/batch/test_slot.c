/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slots, and who has them: every arrow of the drawing in batch.h and every refused one, which
 * slot is handed out, leases and how they end. What is written in a slot: test_batch_rows.c;
 * many threads, and a device of the fake CUDA runtime: test_batch_threads.c.
 */
#include "support/slots_fixture.h"
#include "support/test.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void *const stream_a = (void *)0xa0, *const stream_b = (void *)0xb0;

/* ---- memory and locks that cannot be had ------------------------------------------------------
 */

/* Linked with --wrap: the nth of these calls fails, counted from 1; 0 = none. */
static uint32_t fail_at, n_calls;

static int fails(void)
{
    return fail_at && ++n_calls == fail_at;
}

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size)
{
    return fails() ? NULL : __real_calloc(n, size);
}

void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    return fails() ? NULL : __real_aligned_alloc(alignment, size);
}

int __real_pthread_mutex_init(pthread_mutex_t *m, const pthread_mutexattr_t *a);
int __wrap_pthread_mutex_init(pthread_mutex_t *m, const pthread_mutexattr_t *a);
int __wrap_pthread_mutex_init(pthread_mutex_t *m, const pthread_mutexattr_t *a)
{
    return fails() ? 12 : __real_pthread_mutex_init(m, a);
}

void *__real_pstk__numa_map(struct pstk__numa *n, size_t size, uint32_t node, int *bound);
void *__wrap_pstk__numa_map(struct pstk__numa *n, size_t size, uint32_t node, int *bound);
void *__wrap_pstk__numa_map(struct pstk__numa *n, size_t size, uint32_t node, int *bound)
{
    return fails() ? NULL : __real_pstk__numa_map(n, size, node, bound);
}

TEST(open_survives_every_failing_allocation_and_lock)
{
    for (uint32_t on_device = 0; on_device < 2; on_device++) {
        const struct pools_config c = {
            .batch_size = 2, .n_slots = 3, .n_lanes = 2, .n_device_slots = on_device ? 2 : 0};
        struct pools p;
        struct pstk_error err;
        uint32_t n = 0;
        int r = PSTK_ENOMEM;
        CHECK_EQ(pools_open(&p, &c), 0);
        pstk__slots_unref(p.host);
        if (p.device)
            pstk__slots_unref(p.device);
        while (r != 0) {
            p.host = p.device = NULL;
            n_calls = 0;
            fail_at = ++n;
            pstk_error_init(&err, sizeof err);
            r = pools_open_slots(&p, &c, &err);
            fail_at = 0;
            CHECK_EQ(r, r == 0 ? 0 : PSTK_ENOMEM);
            CHECK_EQ(err.code, r);
            CHECK(r == 0 || !p.host || !p.device);
            if (r < 0 && p.host)
                pstk__slots_unref(p.host);
        }
        /* Host: the pool, its lock, slots, names, two lists, three slots of memory and lock. */
        CHECK_EQ(n - 1, on_device ? 12 + 9 : 12);
        pools_close(&p);
    }
}

/* ---- every arrow, and every refused one -------------------------------------------------------
 */

static void arrow_begin(struct pools *p, struct pstk__slot *s)
{
    (void)s;
    pstk__slot_begin(p->host, 0);
}

static void arrow_done(struct pools *p, struct pstk__slot *s)
{
    (void)p;
    pstk__slot_done(s);
}

static void arrow_copy(struct pools *p, struct pstk__slot *s)
{
    (void)p;
    pstk__slot_copy(s);
}

static void arrow_copied(struct pools *p, struct pstk__slot *s)
{
    (void)p;
    pstk__slot_copied(s);
}

static void arrow_load(struct pools *p, struct pstk__slot *s)
{
    (void)s;
    pstk__slot_load(p->device);
}

static void arrow_loaded(struct pools *p, struct pstk__slot *s)
{
    pstk__slot_loaded(s, &p->host->slots[0]);
}

static void arrow_lease(struct pools *p, struct pstk__slot *s)
{
    (void)p;
    pstk__slot_lease(s, NULL, 0, NULL);
}

static void arrow_release(struct pools *p, struct pstk__slot *s)
{
    (void)p;
    pstk__slot_release(s, NULL);
}

static void arrow_park(struct pools *p, struct pstk__slot *s)
{
    atomic_store(&p->actor.releases, 1);
    p->actor.n_kept = 1;
    pstk__slot_release(s, NULL);
}

static void arrow_drop(struct pools *p, struct pstk__slot *s)
{
    (void)p;
    pstk__slot_drop(s);
}

#define BIT(state) (1u << PSTK__SLOT_##state)
#define VOIDED (BIT(FILLING) | BIT(READY) | BIT(LOADING) | BIT(LOADED))

struct arrow {
    const char *name;
    void (*take)(struct pools *p, struct pstk__slot *s);
    uint32_t on_device;
    uint32_t from; /* bits of the states that it is taken from */
    uint32_t to;
};

static const struct arrow arrows[] = {
    {"begin", arrow_begin, 0, BIT(FREE), PSTK__SLOT_FILLING},
    {"done", arrow_done, 0, BIT(FILLING), PSTK__SLOT_READY},
    {"copy", arrow_copy, 0, BIT(READY), PSTK__SLOT_COPYING},
    {"copied", arrow_copied, 0, BIT(COPYING), PSTK__SLOT_FREE},
    {"lease of a host slot", arrow_lease, 0, BIT(READY), PSTK__SLOT_LEASED},
    {"release of a host slot", arrow_release, 0, BIT(LEASED), PSTK__SLOT_FREE},
    {"drop of a host slot", arrow_drop, 0, VOIDED, PSTK__SLOT_FREE},
    {"load", arrow_load, 1, BIT(FREE), PSTK__SLOT_LOADING},
    {"loaded", arrow_loaded, 1, BIT(LOADING), PSTK__SLOT_LOADED},
    {"lease", arrow_lease, 1, BIT(LOADED), PSTK__SLOT_LEASED},
    {"release", arrow_release, 1, BIT(LEASED), PSTK__SLOT_FREE},
    {"release that parks", arrow_park, 1, BIT(LEASED), PSTK__SLOT_PARKED},
    {"drop", arrow_drop, 1, VOIDED, PSTK__SLOT_FREE},
};

#define N_ARROWS (sizeof arrows / sizeof *arrows)
#define N_STATES 8u
#define EXIT_STATE 32 /* the exit status of a child is this and the state that it got to */

/* In a child: take the arrow from a state. Does not return. */
static void take_arrow(const struct arrow *a, struct pools *p, uint32_t state)
{
    struct pstk__slots *pool = a->on_device ? p->device : p->host;
    struct pstk__slot *s = &pool->slots[0];
    const struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    if (!freopen("/dev/null", "w", stderr)) /* assert prints to it */
        _exit(1);
    if (a->take != arrow_begin && a->take != arrow_load) { /* it is not in the list of free slots */
        pool->n_free[0] = 0;
        atomic_fetch_add(&pool->n_refs, 1); /* a lease's */
    }
    atomic_store(&s->state, state);
    a->take(p, s);
    _exit(EXIT_STATE + (int)state_of(s));
}

static int wait_status(const struct arrow *a, struct pools *p, uint32_t state)
{
    int status = 0;
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0)
        take_arrow(a, p, state);
    return child > 0 && waitpid(child, &status, 0) == child ? status : -1;
}

static int open_single(struct pools *p)
{
    return pools_open(p,
                      &(struct pools_config){.batch_size = 1, .n_slots = 1, .n_device_slots = 1});
}

/* As pools_open with one slot of the host and none of a device, or one of each. */
static int open_for(struct pools *p, const struct arrow *a)
{
    if (a->on_device)
        return open_single(p);
    return pools_open(p, &(struct pools_config){.batch_size = 1, .n_slots = 1});
}

TEST(every_arrow_is_taken_from_its_states_and_ends_in_its_state)
{
    for (uint32_t i = 0; i < N_ARROWS; i++) {
        struct pools p;
        CHECK_EQ(open_for(&p, &arrows[i]), 0);
        for (uint32_t state = 0; state < N_STATES; state++) {
            if (!(arrows[i].from >> state & 1))
                continue;
            const int status = wait_status(&arrows[i], &p, state);
            if (!WIFEXITED(status))
                printf("# %s in state %u: status %d\n", arrows[i].name, state, status);
            CHECK(WIFEXITED(status));
            CHECK_EQ(WEXITSTATUS(status), EXIT_STATE + arrows[i].to);
        }
        pools_close(&p);
    }
}

TEST(every_arrow_from_any_other_state_aborts)
{
#ifdef NDEBUG
    SKIP("missing: assert, which this build leaves out (b_ndebug)");
#endif
    uint32_t n_refused = 0;
    for (uint32_t i = 0; i < N_ARROWS; i++) {
        struct pools p;
        CHECK_EQ(open_for(&p, &arrows[i]), 0);
        for (uint32_t state = 0; state < N_STATES; state++) {
            if (arrows[i].from >> state & 1)
                continue;
            const int status = wait_status(&arrows[i], &p, state);
            if (!WIFSIGNALED(status))
                printf("# %s in state %u: status %d\n", arrows[i].name, state, status);
            CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
            n_refused++;
        }
        pools_close(&p);
    }
    CHECK_EQ(n_refused, 11 * 7 + 2 * 4);
}

TEST(settle_takes_slots_out_of_parked_alone)
{
    struct pools p;
    CHECK_EQ(open_single(&p), 0);
    struct pstk__slot *s = pstk__slot_load(p.device);
    CHECK(s);
    for (uint32_t state = 0; state < N_STATES; state++) {
        if (state == PSTK__SLOT_PARKED)
            continue;
        atomic_store(&s->state, state);
        atomic_store(&p.device->n_parked, 1);
        CHECK_EQ(pstk__slots_settle(p.device, 0, NULL), 0);
        CHECK_EQ(state_of(s), state);
        CHECK_EQ(p.actor.ends[0].n_ends, 0);
    }
    atomic_store(&s->state, PSTK__SLOT_PARKED);
    atomic_store(&p.device->n_leased, 1);
    CHECK_EQ(pstk__slots_settle(p.device, 0, NULL), 0);
    CHECK_EQ(state_of(s), PSTK__SLOT_FREE);
    CHECK_EQ(p.actor.ends[0].n_ends, 1);
    CHECK_EQ(atomic_load(&p.device->n_parked), 0);
    pools_close(&p);
}

/* The whole way, without a change of state by hand. */
TEST(a_host_slot_goes_round_by_way_of_the_consumer_or_the_uploader)
{
    struct pools p;
    CHECK_EQ(open_for(&p, &arrows[0]), 0);
    for (int round = 0; round < 6; round++) {
        struct pstk__slot *s = pstk__slot_begin(p.host, 0);
        CHECK(s == &p.host->slots[0] && !pstk__slot_begin(p.host, 0));
        CHECK_EQ(state_of(s), PSTK__SLOT_FILLING);
        if (round % 3 == 2) {
            pstk__slot_drop(s);
            CHECK_EQ(state_of(s), PSTK__SLOT_FREE);
            continue;
        }
        s->batch.n_valid = 0;
        pstk__slot_done(s);
        CHECK_EQ(state_of(s), PSTK__SLOT_READY);
        if (round % 3 == 0) {
            CHECK_EQ(pstk__slot_lease(s, NULL, 0, NULL), 0);
            CHECK_EQ(state_of(s), PSTK__SLOT_LEASED);
            pstk__slot_release(s, NULL);
        } else {
            pstk__slot_copy(s);
            CHECK_EQ(state_of(s), PSTK__SLOT_COPYING);
            pstk__slot_copied(s);
        }
        CHECK_EQ(state_of(s), PSTK__SLOT_FREE);
    }
    pools_close(&p);
}

/* ---- which slot is handed out -----------------------------------------------------------------
 */

TEST(slots_are_dealt_round_robin_to_the_lanes_and_come_back_to_their_own)
{
    for (uint32_t n_slots = 1; n_slots <= 7; n_slots++)
        for (uint32_t n_lanes = 1; n_lanes <= 4; n_lanes++) {
            const struct pools_config c = {.batch_size = 1, .n_slots = n_slots, .n_lanes = n_lanes};
            struct pools p;
            CHECK_EQ(pools_open(&p, &c), 0);
            for (int round = 0; round < 2; round++) {
                uint32_t n = 0;
                for (uint32_t lane = 0; lane < n_lanes; lane++) {
                    struct pstk__slot *s;
                    for (; (s = pstk__slot_begin(p.host, lane)); n++) {
                        CHECK_EQ(s->lane, lane);
                        CHECK_EQ(s->batch.slot % n_lanes, lane);
                        CHECK(s == &p.host->slots[s->batch.slot]);
                    }
                }
                CHECK_EQ(n, n_slots);
                CHECK_EQ(n_in(p.host, PSTK__SLOT_FILLING), n_slots);
                for (uint32_t k = 0; k < n_slots; k++)
                    pstk__slot_drop(&p.host->slots[k]);
            }
            pools_close(&p);
        }
}

/* The order of the next four slots that come out. */
static uint32_t order_out(struct pools *p)
{
    uint32_t order = 0;
    for (int k = 0; k < 4; k++) {
        const struct pstk__slot *s =
            p->device ? pstk__slot_load(p->device) : pstk__slot_begin(p->host, 0);
        order = order * 10 + (s ? s->batch.slot : 9);
    }
    return order;
}

/* All orders that four slots can come back in. */
static int goes_out_in_order(struct pools *p, int newest_first)
{
    struct pstk__slots *pool = p->leased;
    order_out(p);
    for (uint32_t i = 0; i < 256; i++) {
        const uint32_t back[4] = {i & 3, i >> 2 & 3, i >> 4 & 3, i >> 6};
        if ((1u << back[0] | 1u << back[1] | 1u << back[2] | 1u << back[3]) != 15)
            continue;
        for (int k = 0; k < 4; k++)
            pstk__slot_drop(&pool->slots[back[k]]);
        const uint32_t forth = back[0] * 1000 + back[1] * 100 + back[2] * 10 + back[3];
        const uint32_t reverse = back[3] * 1000 + back[2] * 100 + back[1] * 10 + back[0];
        if (order_out(p) != (newest_first ? reverse : forth))
            return 0;
    }
    return 1;
}

TEST(a_host_hands_out_the_slot_that_came_back_last)
{
    struct pools p;
    CHECK_EQ(pools_open(&p, &(struct pools_config){.batch_size = 1, .n_slots = 4}), 0);
    CHECK(goes_out_in_order(&p, 1));
    pools_close(&p);
}

TEST(a_device_hands_out_the_slot_that_came_back_first)
{
    const struct pools_config c = {.batch_size = 1, .n_slots = 1, .n_device_slots = 4};
    struct pools p;
    CHECK_EQ(pools_open(&p, &c), 0);
    CHECK_EQ(order_out(&p), 123);
    for (uint32_t k = 0; k < 4; k++)
        pstk__slot_drop(&p.device->slots[k]);
    CHECK(goes_out_in_order(&p, 0));
    pools_close(&p);
}

TEST(a_slot_that_becomes_free_notifies_the_eventcount_of_its_lane_alone)
{
    const struct pools_config c = {.batch_size = 1, .n_slots = 4, .n_lanes = 2};
    struct pstk__eventcount eventcounts[2];
    struct pools p;
    CHECK_EQ(pools_open(&p, &c), 0);
    for (uint32_t lane = 0; lane < 2; lane++) {
        pstk__eventcount_init(&eventcounts[lane]);
        pstk__slots_watch(p.host, lane, &eventcounts[lane]);
    }
    for (uint32_t lane = 0; lane < 2; lane++)
        for (int how = 0; how < 3; how++) {
            const uint32_t mine = pstk__eventcount_ticket(&eventcounts[lane]);
            const uint32_t other = pstk__eventcount_ticket(&eventcounts[!lane]);
            struct pstk__slot *s = fill_empty(p.host, lane);
            CHECK_EQ(pstk__eventcount_ticket(&eventcounts[lane]), mine);
            if (how == 0) {
                pstk__slot_drop(s);
            } else if (how == 1) {
                pstk__slot_copy(s);
                pstk__slot_copied(s);
            } else {
                CHECK_EQ(pstk__slot_lease(s, NULL, 0, NULL), 0);
                CHECK_EQ(pstk__eventcount_ticket(&eventcounts[lane]), mine);
                pstk__slot_release(s, NULL);
            }
            CHECK_EQ(pstk__eventcount_ticket(&eventcounts[lane]), mine + 1);
            CHECK_EQ(pstk__eventcount_ticket(&eventcounts[!lane]), other);
        }
    pstk__slots_unwatch(p.host); /* the loader is gone */
    pstk__slot_drop(pstk__slot_begin(p.host, 0));
    pools_close(&p);
}

/* ---- leases -----------------------------------------------------------------------------------
 */

TEST(the_pool_outlives_the_loader_until_the_last_lease_ends)
{
    for (uint32_t n = 0; n <= 3; n++)
        for (uint32_t on_device = 0; on_device < 2; on_device++) {
            const struct pools_config c = {
                .batch_size = 1, .n_slots = 3, .n_device_slots = on_device ? 3 : 0};
            struct pstk__slot *s[3];
            struct pools p;
            CHECK_EQ(pools_open(&p, &c), 0);
            for (uint32_t k = 0; k < n; k++) {
                s[k] = deliver_empty(&p);
                CHECK_EQ(pstk__slot_lease(s[k], NULL, 0, NULL), 0);
                CHECK_EQ(atomic_load(&p.leased->n_leased), k + 1);
            }
            pstk__slots_unref(p.leased); /* the loader's */
            for (uint32_t k = 0; k < n; k++) {
                CHECK_EQ(atomic_load(&p.actor.n_closed), 0);
                CHECK_EQ(s[k]->batch.sample_ids == s[k]->sample_ids, 1); /* memory is still there */
                s[k]->sample_ids[0] = k;
                pstk__slot_release(s[k], NULL);
            }
            CHECK_EQ(atomic_load(&p.actor.n_closed), 1);
            CHECK_EQ(atomic_load(&p.actor.n_abandoned), 0);
            if (on_device)
                p.device = NULL;
            else
                p.host = NULL;
            pools_close(&p);
        }
}

TEST(a_lease_that_the_device_refuses_changes_nothing)
{
    const int refusals[] = {PSTK_EINVAL, PSTK_ETIMEDOUT, PSTK_EIO};
    for (uint32_t on_device = 0; on_device < 2; on_device++) {
        const struct pools_config c = {
            .batch_size = 1, .n_slots = 1, .n_device_slots = on_device ? 1 : 0};
        struct pools p;
        struct pstk_error err;
        pstk_error_init(&err, sizeof err);
        CHECK_EQ(pools_open(&p, &c), 0);
        struct pstk__slot *s = deliver_empty(&p);
        for (int i = 0; i < 3; i++) {
            const uint32_t before = state_of(s);
            atomic_store(&p.actor.acquires, refusals[i]);
            CHECK_EQ(pstk__slot_lease(s, stream_a, i & 1, &err), refusals[i]);
            CHECK_EQ(err.code, refusals[i]);
            CHECK(p.actor.asked_for == stream_a);
            CHECK_EQ(p.actor.was_quick, i & 1);
            CHECK_EQ(state_of(s), before);
            CHECK_EQ(atomic_load(&p.leased->n_leased), 0);
            CHECK_EQ(atomic_load(&p.leased->n_refs), 1);
        }
        atomic_store(&p.actor.acquires, 0);
        CHECK_EQ(pstk__slot_lease(s, stream_a, 0, &err), 0);
        pstk__slot_release(s, stream_a);
        pools_close(&p);
    }
}

static int is_end(const struct actor_end *e, void *const *streams, uint32_t n)
{
    return e->n_streams == n && memcmp(e->streams, streams, n * sizeof *streams) == 0;
}

TEST(the_end_of_a_lease_names_each_stream_that_used_it_once)
{
    struct pools p;
    CHECK_EQ(open_single(&p), 0);
    for (uint32_t n = 0; n <= PSTK__MAX_USERS; n++) {
        struct pstk__slot *s = load_empty(&p);
        void *streams[PSTK__MAX_USERS + 1];
        CHECK_EQ(pstk__slot_lease(s, stream_a, 0, NULL), 0);
        for (uint32_t twice = 0; twice < 2; twice++)
            for (uint32_t k = 0; k < n; k++) {
                streams[k] = (void *)(uintptr_t)((k + 1) << 16);
                CHECK_EQ(pstk__slot_use(s, streams[k], NULL), 0);
            }
        streams[n] = stream_b;
        if (n % 2) { /* the release's own is one of them */
            pstk__slot_release(s, streams[n / 2]);
            CHECK(is_end(&p.actor.ends[0], streams, n));
        } else {
            pstk__slot_release(s, stream_b);
            CHECK(is_end(&p.actor.ends[0], streams, n + 1));
        }
        CHECK_EQ(p.actor.ends[0].quick, 0);
    }
    pools_close(&p);
}

static int current_result;

static int current_stream(int32_t device_index, void **stream)
{
    *stream = (void *)0xc0;
    return device_index == 0 ? current_result : -1;
}

TEST(more_users_than_there_is_room_for_are_refused_and_the_release_has_room)
{
    struct pools_config c = {.batch_size = 1, .n_slots = 1, .n_device_slots = 1};
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    for (current_result = -1; current_result <= 1; current_result++) {
        struct pools p;
        c.current_stream = current_stream;
        CHECK_EQ(pools_open(&p, &c), 0);
        struct pstk__slot *s = load_empty(&p);
        CHECK_EQ(pstk__slot_lease(s, stream_a, 0, NULL), 0);
        for (uintptr_t k = 1; k <= PSTK__MAX_USERS; k++)
            CHECK_EQ(pstk__slot_use(s, (void *)k, &err), 0);
        CHECK_EQ(pstk__slot_use(s, stream_b, &err), PSTK_EFBIG);
        CHECK_STR(err.message,
                  "stream: value is a stream other than the 64 that use the batch; must be one of "
                  "them (let one of them wait for the work of this stream)");
        CHECK_EQ(pstk__slot_use(s, (void *)(uintptr_t)3, &err), 0); /* it is there already */
        pstk__slot_use_current(s);
        CHECK_EQ(s->n_users, PSTK__MAX_USERS + (current_result == 0));
        pstk__slot_release(s, stream_b);
        const struct actor_end *e = &p.actor.ends[0];
        CHECK_EQ(e->n_streams, PSTK__MAX_USERS + 1 + (current_result == 0));
        CHECK(e->streams[e->n_streams - 1] == stream_b);
        CHECK(current_result != 0 || e->streams[PSTK__MAX_USERS] == (void *)0xc0);
        pools_close(&p);
    }
}

TEST(the_current_stream_is_recorded_once_and_not_asked_for_where_none_is_named)
{
    struct pools_config c = {.batch_size = 1, .n_slots = 1, .n_device_slots = 1};
    current_result = 0;
    for (int named = 0; named < 2; named++) {
        struct pools p;
        c.current_stream = named ? current_stream : NULL;
        CHECK_EQ(pools_open(&p, &c), 0);
        struct pstk__slot *s = load_empty(&p);
        CHECK_EQ(pstk__slot_lease(s, NULL, 0, NULL), 0);
        pstk__slot_use_current(s);
        pstk__slot_use_current(s);
        CHECK_EQ(s->n_users, named);
        pstk__slot_release(s, (void *)0xc0);
        CHECK_EQ(p.actor.ends[0].n_streams, 1);
        pools_close(&p);
    }
}

TEST(a_host_slot_is_used_on_no_current_stream)
{
    const struct pools_config c = {.batch_size = 1, .n_slots = 1, .current_stream = current_stream};
    struct pools p;
    current_result = 0;
    CHECK_EQ(pools_open(&p, &c), 0);
    struct pstk__slot *s = fill_empty(p.host, 0);
    CHECK_EQ(pstk__slot_lease(s, NULL, 0, NULL), 0);
    pstk__slot_use_current(s);
    CHECK_EQ(s->n_users, 0);
    pstk__slot_release(s, NULL);
    pools_close(&p);
}

TEST(users_of_an_earlier_lease_are_forgotten)
{
    struct pools p;
    CHECK_EQ(open_single(&p), 0);
    for (int i = 0; i < 3; i++) {
        struct pstk__slot *s = load_empty(&p);
        s->n_users = 1; /* as a failed release leaves it */
        s->users[0] = stream_a;
        CHECK_EQ(pstk__slot_lease(s, NULL, 0, NULL), 0);
        CHECK_EQ(s->n_users, 0);
        atomic_store(&p.actor.releases, 0);
        pstk__slot_release(s, stream_b);
        CHECK(is_end(&p.actor.ends[0], &stream_b, 1));
    }
    pools_close(&p);
}

TEST(a_slot_whose_release_failed_is_lost_and_the_first_error_stays)
{
    const struct pools_config c = {.batch_size = 1, .n_slots = 1, .n_device_slots = 3};
    struct pstk__slot *s[3];
    struct pstk__eventcount eventcount;
    struct pstk_error err;
    struct pools p;
    CHECK_EQ(pools_open(&p, &c), 0);
    pstk__eventcount_init(&eventcount);
    for (int k = 0; k < 3; k++) {
        s[k] = load_empty(&p);
        CHECK_EQ(pstk__slot_lease(s[k], NULL, 0, NULL), 0);
    }
    pstk__slots_watch(p.device, 0, &eventcount);
    CHECK_EQ(pstk__slots_failed(p.device, &err), 0);
    atomic_store(&p.actor.releases, PSTK_EIO);
    pstk__slot_release(s[1], NULL);
    CHECK_EQ(pstk__eventcount_ticket(&eventcount), 1); /* the uploader shall see it */
    atomic_store(&p.actor.releases, PSTK_ENOMEM);
    pstk__slot_release(s[2], NULL);
    for (int twice = 0; twice < 2; twice++) {
        CHECK_EQ(pstk__slots_failed(p.device, &err), 1);
        CHECK_EQ(err.code, PSTK_EIO);
        CHECK_STR(err.message, "the actor lost slot 1");
    }
    CHECK(!pstk__slot_load(p.device));
    CHECK_EQ(atomic_load(&p.device->n_leased), 3);
    CHECK_EQ(atomic_load(&p.device->n_refs), 2); /* the loader's, and that of s[0] */
    atomic_store(&p.actor.releases, 0);
    pstk__slot_release(s[0], NULL);
    CHECK(pstk__slot_load(p.device) == s[0] && !pstk__slot_load(p.device));
    pstk__slots_unwatch(p.device);
    pools_close(&p);
}

/* ---- PARKED -----------------------------------------------------------------------------------
 */

/* Lease a batch and end the lease on two streams, of which the first is being captured. */
static struct pstk__slot *park(struct pools *p)
{
    struct pstk__slot *s = load_empty(p);
    if (!s || pstk__slot_lease(s, stream_a, 0, NULL) < 0)
        return NULL;
    pstk__slot_use(s, stream_a, NULL);
    atomic_store(&p->actor.releases, 1);
    p->actor.n_kept = 1;
    pstk__slot_release(s, stream_b);
    return s;
}

TEST(a_parked_slot_is_not_handed_out_and_keeps_the_streams_that_are_left)
{
    struct pools p;
    CHECK_EQ(open_single(&p), 0);
    struct pstk__slot *s = park(&p);
    const struct actor_end *e = &p.actor.ends[0];
    CHECK_EQ(state_of(s), PSTK__SLOT_PARKED);
    CHECK_EQ(e->n_streams, 2);
    CHECK_EQ(atomic_load(&p.device->n_parked), 1);
    CHECK_EQ(atomic_load(&p.device->n_leased), 1);
    CHECK_EQ(atomic_load(&p.device->n_refs), 1); /* it holds none */
    CHECK(!pstk__slot_load(p.device));
    for (uint32_t k = 2; k < 5; k++) { /* the stream is still being captured */
        CHECK_EQ(pstk__slots_settle(p.device, 0, NULL), 0);
        CHECK_EQ(state_of(s), PSTK__SLOT_PARKED);
        CHECK_EQ(e->n_ends, k);
        CHECK(is_end(e, &stream_a, 1));
        CHECK_EQ(atomic_load(&p.device->n_parked), 1);
    }
    atomic_store(&p.actor.releases, 0);
    CHECK_EQ(pstk__slots_settle(p.device, 1, NULL), 0);
    CHECK_EQ(e->quick, 1);
    CHECK(is_end(e, &stream_a, 1));
    CHECK_EQ(state_of(s), PSTK__SLOT_FREE);
    CHECK_EQ(atomic_load(&p.device->n_parked), 0);
    CHECK_EQ(atomic_load(&p.device->n_leased), 0);
    CHECK(pstk__slot_load(p.device) == s);
    pools_close(&p);
}

TEST(settle_asks_the_device_only_where_something_is_parked)
{
    struct pools p;
    CHECK_EQ(open_single(&p), 0);
    struct pstk__slot *s = load_empty(&p);
    CHECK_EQ(pstk__slot_lease(s, NULL, 0, NULL), 0);
    CHECK_EQ(pstk__slots_settle(p.device, 0, NULL), 0);
    CHECK_EQ(p.actor.ends[0].n_ends, 0);
    pstk__slot_release(s, NULL);
    CHECK_EQ(p.actor.ends[0].n_ends, 1);
    pools_close(&p);
}

TEST(every_later_release_settles_what_is_parked)
{
    const struct pools_config c = {.batch_size = 1, .n_slots = 1, .n_device_slots = 3};
    struct pools p;
    CHECK_EQ(pools_open(&p, &c), 0);
    struct pstk__slot *one = park(&p), *two = park(&p), *last = load_empty(&p);
    CHECK_EQ(pstk__slot_lease(last, NULL, 0, NULL), 0);
    CHECK_EQ(n_in(p.device, PSTK__SLOT_PARKED), 2);
    atomic_store(&p.actor.releases, 0);
    pstk__slot_release(last, NULL);
    CHECK_EQ(n_in(p.device, PSTK__SLOT_FREE), 3);
    CHECK(pstk__slot_load(p.device) == one);
    CHECK(pstk__slot_load(p.device) == two);
    CHECK(pstk__slot_load(p.device) == last);
    pools_close(&p);
}

TEST(a_settle_that_would_wait_says_so_and_the_slot_stays_parked)
{
    const struct pools_config c = {.batch_size = 1, .n_slots = 1, .n_device_slots = 2};
    struct pools p;
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    CHECK_EQ(pools_open(&p, &c), 0);
    CHECK(park(&p) && park(&p));
    atomic_store(&p.actor.releases, PSTK_ETIMEDOUT);
    CHECK_EQ(pstk__slots_settle(p.device, 1, &err), PSTK_ETIMEDOUT);
    CHECK_EQ(err.code, PSTK_ETIMEDOUT);
    CHECK_EQ(n_in(p.device, PSTK__SLOT_PARKED), 2);
    CHECK_EQ(atomic_load(&p.device->n_parked), 2);
    CHECK_EQ(pstk__slots_failed(p.device, &err), 0); /* nothing is lost by that */
    atomic_store(&p.actor.releases, 0);
    CHECK_EQ(pstk__slots_settle(p.device, 1, &err), 0);
    CHECK_EQ(n_in(p.device, PSTK__SLOT_FREE), 2);
    pools_close(&p);
}

TEST(a_parked_slot_whose_release_fails_is_lost)
{
    struct pools p;
    struct pstk_error err;
    CHECK_EQ(open_single(&p), 0);
    CHECK(park(&p));
    atomic_store(&p.actor.releases, PSTK_EIO);
    CHECK_EQ(pstk__slots_settle(p.device, 0, NULL), 0);
    CHECK_EQ(pstk__slots_failed(p.device, &err), 1);
    CHECK_EQ(n_in(p.device, PSTK__SLOT_FREE) + n_in(p.device, PSTK__SLOT_PARKED), 0);
    CHECK_EQ(atomic_load(&p.device->n_parked), 0);
    pools_close(&p);
    CHECK_EQ(atomic_load(&p.actor.n_abandoned), 0); /* the release has said it to the device */
}

TEST(slots_parked_at_the_pools_end_are_tried_once_more_then_abandoned)
{
    for (int captured = 0; captured < 2; captured++) {
        const struct pools_config c = {.batch_size = 1, .n_slots = 1, .n_device_slots = 3};
        struct pools p;
        CHECK_EQ(pools_open(&p, &c), 0);
        CHECK(park(&p) && park(&p));
        const uint32_t n_ends = p.actor.ends[0].n_ends;
        atomic_store(&p.actor.releases, captured);
        pstk__slots_unref(p.device);
        p.device = NULL;
        CHECK_EQ(p.actor.ends[0].n_ends, n_ends + 1);
        CHECK_EQ(atomic_load(&p.actor.n_abandoned), captured ? 2 : 0);
        CHECK_EQ(atomic_load(&p.actor.n_closed), 1);
        pools_close(&p);
    }
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(open_survives_every_failing_allocation_and_lock),
        CASE(every_arrow_is_taken_from_its_states_and_ends_in_its_state),
        CASE(every_arrow_from_any_other_state_aborts),
        CASE(settle_takes_slots_out_of_parked_alone),
        CASE(a_host_slot_goes_round_by_way_of_the_consumer_or_the_uploader),
        CASE(slots_are_dealt_round_robin_to_the_lanes_and_come_back_to_their_own),
        CASE(a_host_hands_out_the_slot_that_came_back_last),
        CASE(a_device_hands_out_the_slot_that_came_back_first),
        CASE(a_slot_that_becomes_free_notifies_the_eventcount_of_its_lane_alone),
        CASE(the_pool_outlives_the_loader_until_the_last_lease_ends),
        CASE(a_lease_that_the_device_refuses_changes_nothing),
        CASE(the_end_of_a_lease_names_each_stream_that_used_it_once),
        CASE(more_users_than_there_is_room_for_are_refused_and_the_release_has_room),
        CASE(the_current_stream_is_recorded_once_and_not_asked_for_where_none_is_named),
        CASE(a_host_slot_is_used_on_no_current_stream),
        CASE(users_of_an_earlier_lease_are_forgotten),
        CASE(a_slot_whose_release_failed_is_lost_and_the_first_error_stays),
        CASE(a_parked_slot_is_not_handed_out_and_keeps_the_streams_that_are_left),
        CASE(settle_asks_the_device_only_where_something_is_parked),
        CASE(every_later_release_settles_what_is_parked),
        CASE(a_settle_that_would_wait_says_so_and_the_slot_stays_parked),
        CASE(a_parked_slot_whose_release_fails_is_lost),
        CASE(slots_parked_at_the_pools_end_are_tried_once_more_then_abandoned),
    };
    return RUN_CASES(cases);
}
