/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/eventcount.h"
#include "base/queue.h"
#include "support/test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <time.h>

/* Linked with --wrap: the nth of these calls fails, counted from 1; 0 = none. */
static int fail_at, n_calls;

static int fails(void)
{
    return ++n_calls == fail_at;
}

void *__real_aligned_alloc(size_t align, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size)
{
    return fails() ? NULL : __real_aligned_alloc(align, size);
}

TEST(open_survives_every_failing_allocation)
{
    struct pstk__queue *q = NULL;
    int n;
    for (n = 1; !q; n++) {
        fail_at = n;
        n_calls = 0;
        q = pstk__queue_open(4);
    }
    fail_at = 0;
    pstk__queue_close(q);
    CHECK_EQ(n - 1, 2); /* one call failed, the second round had none */
}

TEST(items_come_out_in_order_round_and_round)
{
    int items[64];
    for (uint32_t capacity = 1; capacity <= 5; capacity++) {
        struct pstk__queue *q = pstk__queue_open(capacity);
        CHECK(q);
        int in = 0, out = 0;
        while (out < 60) {
            for (uint32_t i = 0; i < capacity && in < 60; i++)
                CHECK_EQ(pstk__queue_push(q, &items[in++]), 0);
            while (out < in - (in < 60 && capacity > 2))
                CHECK(pstk__queue_pop(q, NULL, NULL) == &items[out++]);
            if (out < in)
                CHECK(pstk__queue_try_pop(q) == &items[out++]);
        }
        CHECK(!pstk__queue_try_pop(q));
        pstk__queue_close(q);
    }
}

TEST(the_number_of_items_that_are_left_is_told)
{
    int items[7];
    void *in[7];
    for (int i = 0; i < 7; i++)
        in[i] = &items[i];
    struct pstk__queue *q = pstk__queue_open(7);
    CHECK(q);
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < 7; i++)
            CHECK_EQ(pstk__queue_push(q, in[i]), 0);
        uint32_t n_left = 9;
        for (int i = 0; i < 7; i++) {
            CHECK(pstk__queue_pop(q, NULL, &n_left) == in[i]);
            CHECK_EQ(n_left, 6 - i);
        }
        CHECK_EQ(pstk__queue_push(q, in[0]), 0);
        CHECK(pstk__queue_pop(q, NULL, &n_left) == in[0]);
        CHECK_EQ(n_left, 0);
    }
    pstk__queue_close(q);
}

TEST(a_shut_queue_gives_nothing_and_takes_nothing)
{
    int item;
    struct pstk__queue *q = pstk__queue_open(2);
    CHECK(q);
    CHECK_EQ(pstk__queue_push(q, &item), 0);
    pstk__queue_shut(q);
    CHECK(!pstk__queue_pop(q, NULL, NULL));
    CHECK(!pstk__queue_try_pop(q));
    CHECK_EQ(pstk__queue_push(q, &item), -1);
    pstk__queue_shut(q);
    pstk__queue_close(q);
    pstk__queue_close(NULL);
}

enum { N_THREADS = 4, N_ITEMS = 20000, CAPACITY = N_THREADS * N_ITEMS };

struct crowd {
    struct pstk__queue *q;
    atomic_uchar *seen; /* [CAPACITY]; items are addresses in it */
    atomic_int n_seen;
};

struct producer {
    struct crowd *crowd;
    int number;
};

static void *produce(void *user)
{
    const struct producer *p = user;
    atomic_uchar *mine = p->crowd->seen + p->number * N_ITEMS;
    for (int i = 0; i < N_ITEMS; i++)
        if (pstk__queue_push(p->crowd->q, mine + i) < 0)
            return user;
    return NULL;
}

static void *consume(void *user)
{
    struct crowd *c = user;
    ptrdiff_t last[N_THREADS] = {-1, -1, -1, -1};
    uint64_t waited = 0;
    atomic_uchar *item;
    int wrong = 0;
    while ((item = pstk__queue_pop(c->q, &waited, NULL))) {
        ptrdiff_t at = item - c->seen;
        wrong += at <= last[at / N_ITEMS];
        last[at / N_ITEMS] = at;
        atomic_fetch_add_explicit(item, 1, memory_order_relaxed);
        /* the last item: let all consumers go */
        if (atomic_fetch_add(&c->n_seen, 1) + 1 == CAPACITY)
            pstk__queue_shut(c->q);
    }
    return wrong ? user : NULL;
}

TEST(several_producers_and_consumers_pass_each_item_once_in_order)
{
    struct crowd c = {.q = pstk__queue_open(CAPACITY), .seen = calloc(CAPACITY, 1)};
    CHECK(c.q && c.seen);
    pthread_t producers[N_THREADS], consumers[N_THREADS];
    struct producer p[N_THREADS];
    for (int i = 0; i < N_THREADS; i++) {
        p[i] = (struct producer){&c, i};
        CHECK_EQ(pthread_create(&consumers[i], NULL, consume, &c), 0);
        CHECK_EQ(pthread_create(&producers[i], NULL, produce, &p[i]), 0);
    }
    int n_wrong = 0;
    for (int i = 0; i < N_THREADS; i++) {
        void *wrong;
        pthread_join(producers[i], &wrong);
        n_wrong += wrong != NULL;
        pthread_join(consumers[i], &wrong);
        n_wrong += wrong != NULL;
    }
    CHECK_EQ(n_wrong, 0);
    CHECK_EQ(atomic_load(&c.n_seen), CAPACITY);
    for (int i = 0; i < CAPACITY; i++)
        CHECK_EQ(atomic_load(&c.seen[i]), 1);
    pstk__queue_close(c.q);
    free(c.seen);
}

struct player {
    struct pstk__queue *in, *out;
    int n;
};

static void *play(void *user)
{
    struct player *p = user;
    void *ball;
    while ((ball = pstk__queue_pop(p->in, NULL, NULL))) {
        p->n++;
        if (pstk__queue_push(p->out, ball) < 0)
            break;
    }
    return NULL;
}

/* With one ball every pop waits, so that a wake-up lost once would stop the game. */
TEST(no_wake_up_is_lost_between_two_threads)
{
    struct pstk__queue *a = pstk__queue_open(1), *b = pstk__queue_open(1);
    CHECK(a && b);
    struct player p = {a, b, 0};
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, play, &p), 0);
    int ball;
    for (int i = 0; i < 20000; i++) {
        CHECK_EQ(pstk__queue_push(a, &ball), 0);
        CHECK(pstk__queue_pop(b, NULL, NULL) == &ball);
    }
    pstk__queue_shut(a);
    pthread_join(thread, NULL);
    CHECK_EQ(p.n, 20000);
    pstk__queue_close(a);
    pstk__queue_close(b);
}

/* A few balls between many threads, with a ring of a few cells: every push meets waiters, and cells
 * that a pop has not given back. */
TEST(no_wake_up_is_lost_between_many_threads)
{
    enum { N_PLAYERS = 6, N_BALLS = 3, N_ROUNDS = 20000 };
    struct pstk__queue *a = pstk__queue_open(N_BALLS), *b = pstk__queue_open(N_BALLS);
    CHECK(a && b);
    struct player players[N_PLAYERS];
    pthread_t threads[N_PLAYERS];
    int balls[N_BALLS], n = 0;
    for (int i = 0; i < N_PLAYERS; i++) {
        players[i] = i % 2 ? (struct player){a, b, 0} : (struct player){b, a, 0};
        CHECK_EQ(pthread_create(&threads[i], NULL, play, &players[i]), 0);
    }
    for (int i = 0; i < N_BALLS; i++)
        CHECK_EQ(pstk__queue_push(a, &balls[i]), 0);
    for (int i = 0; i < N_ROUNDS; i++) {
        void *ball = pstk__queue_pop(a, NULL, NULL);
        CHECK(ball);
        CHECK_EQ(pstk__queue_push(b, ball), 0);
    }
    pstk__queue_shut(a);
    pstk__queue_shut(b);
    for (int i = 0; i < N_PLAYERS; i++) {
        pthread_join(threads[i], NULL);
        n += players[i].n;
    }
    CHECK(n >= N_ROUNDS - N_BALLS);
    pstk__queue_close(a);
    pstk__queue_close(b);
}

static _Atomic int is_waiting; /* 1: a thread has found a queue empty */

int __real_pstk__eventcount_wait(struct pstk__eventcount *eventcount, uint32_t ticket,
                                 int64_t timeout_ns);
int __wrap_pstk__eventcount_wait(struct pstk__eventcount *eventcount, uint32_t ticket,
                                 int64_t timeout_ns);
int __wrap_pstk__eventcount_wait(struct pstk__eventcount *eventcount, uint32_t ticket,
                                 int64_t timeout_ns)
{
    atomic_store(&is_waiting, 1);
    return __real_pstk__eventcount_wait(eventcount, ticket, timeout_ns);
}

static void *push_later(void *user)
{
    static int item;
    const struct timespec a_while = {.tv_nsec = 20000000};
    WAIT_UNTIL(atomic_load(&is_waiting));
    nanosleep(&a_while, NULL);
    pstk__queue_push(user, &item);
    return NULL;
}

TEST(waiting_is_measured_and_not_waiting_is_not)
{
    struct pstk__queue *q = pstk__queue_open(1);
    CHECK(q);
    uint64_t waited = 0;
    int item;
    CHECK_EQ(pstk__queue_push(q, &item), 0);
    CHECK(pstk__queue_pop(q, &waited, NULL) == &item);
    CHECK_EQ(waited, 0);
    pthread_t thread;
    atomic_store(&is_waiting, 0);
    const uint64_t start = pstk__clock_ns();
    CHECK_EQ(pthread_create(&thread, NULL, push_later, q), 0);
    CHECK(pstk__queue_pop(q, &waited, NULL));
    CHECK(waited >= 20000000);
    CHECK(waited <= pstk__clock_ns() - start);
    pthread_join(thread, NULL);
    pstk__queue_close(q);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(open_survives_every_failing_allocation),
        CASE(items_come_out_in_order_round_and_round),
        CASE(the_number_of_items_that_are_left_is_told),
        CASE(a_shut_queue_gives_nothing_and_takes_nothing),
        CASE(several_producers_and_consumers_pass_each_item_once_in_order),
        CASE(no_wake_up_is_lost_between_two_threads),
        CASE(no_wake_up_is_lost_between_many_threads),
        CASE(waiting_is_measured_and_not_waiting_is_not),
    };
    return RUN_CASES(cases);
}
