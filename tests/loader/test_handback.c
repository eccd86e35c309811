/* SPDX-License-Identifier: Apache-2.0 */
/* A reader's wait for slots that others hand back: when workers notify it, when it may wait, and
 * that it misses none. If it misses one, the test hangs. */
#include "loader/handback.h"
#include "support/test.h"

#include <pthread.h>

static uint32_t n_notified(struct pstk__handback *h)
{
    return pstk__eventcount_ticket(&h->eventcount);
}

TEST(workers_notify_only_a_reader_that_wants_something)
{
    struct pstk__handback h;
    pstk__handback_init(&h);
    pstk__handback_given(&h);
    CHECK_EQ(n_notified(&h), 0);
    pstk__handback_begin(&h);
    CHECK_EQ(pstk__handback_end(&h, 0), 0);
    pstk__handback_given(&h);
    CHECK_EQ(n_notified(&h), 1);
    pstk__handback_given(&h);
    CHECK_EQ(n_notified(&h), 2);
}

TEST(the_reader_may_wait_once_a_round_begun_after_its_wish_found_nothing)
{
    struct pstk__handback h;
    pstk__handback_init(&h);
    for (int round = 0; round < 4; round++) {
        pstk__handback_begin(&h);
        CHECK_EQ(pstk__handback_end(&h, 0), round > 0);
    }
}

TEST(a_round_that_got_something_done_withdraws_the_wish)
{
    struct pstk__handback h;
    pstk__handback_init(&h);
    for (int round = 0; round < 3; round++) {
        CHECK_EQ(pstk__handback_end(&h, 0), 0);
        CHECK_EQ(atomic_load(&h.wanted), 1);
        CHECK_EQ(pstk__handback_end(&h, 1), 0);
        CHECK_EQ(atomic_load(&h.wanted), 0);
    }
    pstk__handback_given(&h);
    CHECK_EQ(n_notified(&h), 0);
}

TEST(a_wait_returns_at_once_after_a_hand_back_since_its_round_began)
{
    struct pstk__handback h;
    pstk__handback_init(&h);
    pstk__handback_begin(&h);
    CHECK_EQ(pstk__handback_end(&h, 0), 0);
    pstk__handback_begin(&h);
    pstk__handback_given(&h);
    CHECK_EQ(pstk__handback_end(&h, 0), 1);
    pstk__handback_wait(&h);
    CHECK_EQ(atomic_load(&h.eventcount.n_waiting), 0);
}

struct early {
    struct pstk__handback handback;
    int made;          /* the worker's; no atomic: the hand-back alone orders it */
    _Atomic int given; /* relaxed, and so no order of its own */
};

static void *give_early(void *argument)
{
    struct early *e = argument;
    e->made = 1;
    pstk__handback_given(&e->handback);
    atomic_store_explicit(&e->given, 1, memory_order_relaxed);
    return NULL;
}

/* ThreadSanitizer fails it where given releases or end acquires too little. */
TEST(the_round_after_a_wish_sees_what_was_handed_back_before_it)
{
    static struct early e; /* ThreadSanitizer leaves some reads of the stack out */
    pthread_t worker;
    pstk__handback_init(&e.handback);
    CHECK_EQ(pthread_create(&worker, NULL, give_early, &e), 0);
    while (!atomic_load_explicit(&e.given, memory_order_relaxed)) {
    }
    CHECK_EQ(pstk__handback_end(&e.handback, 0), 0);
    CHECK_EQ(e.made, 1);
    pthread_join(worker, NULL);
    CHECK_EQ(n_notified(&e.handback), 0);
}

static void *give_when_wanted(void *argument)
{
    struct early *e = argument;
    e->made = 1;
    while (n_notified(&e->handback) == 0)
        pstk__handback_given(&e->handback);
    return NULL;
}

/* ThreadSanitizer fails it where a ticket acquires too little. */
TEST(the_round_after_a_notification_sees_what_was_handed_back_before_it)
{
    static struct early e; /* ThreadSanitizer leaves some reads of the stack out */
    pthread_t worker;
    pstk__handback_init(&e.handback);
    CHECK_EQ(pstk__handback_end(&e.handback, 0), 0);
    CHECK_EQ(pthread_create(&worker, NULL, give_when_wanted, &e), 0);
    do
        pstk__handback_begin(&e.handback);
    while (e.handback.ticket == 0);
    CHECK_EQ(e.made, 1);
    pthread_join(worker, NULL);
}

#define WORKERS 3
#define ITEMS 2 /* in the pool: fewer than workers, so that the reader often finds it empty */
#define TURNS 30000

/* A pool of items, which the reader takes out and workers put back. Its counts are relaxed: it is
 * the hand-back alone that makes the reader see them. */
struct loop {
    struct pstk__handback handback;
    _Atomic int n_free;  /* in the pool */
    _Atomic int n_given; /* to workers, not taken by one yet; <0: stop */
    int n_waits;         /* the reader's */
};

static void *work(void *argument)
{
    struct loop *l = argument;
    for (;;) {
        int n = atomic_load_explicit(&l->n_given, memory_order_relaxed);
        if (n < 0)
            return NULL;
        if (n == 0 || !atomic_compare_exchange_weak_explicit(
                          &l->n_given, &n, n - 1, memory_order_relaxed, memory_order_relaxed))
            continue;
        atomic_fetch_add_explicit(&l->n_free, 1, memory_order_relaxed);
        pstk__handback_given(&l->handback);
    }
}

static void read_all(struct loop *l)
{
    for (int turn = 0; turn < TURNS;) {
        pstk__handback_begin(&l->handback);
        int progress = 0;
        while (atomic_load_explicit(&l->n_free, memory_order_relaxed) > 0) {
            atomic_fetch_sub_explicit(&l->n_free, 1, memory_order_relaxed);
            atomic_fetch_add_explicit(&l->n_given, 1, memory_order_relaxed);
            progress = 1;
            turn++;
        }
        if (pstk__handback_end(&l->handback, progress)) {
            pstk__handback_wait(&l->handback);
            l->n_waits++;
        }
    }
}

TEST(no_hand_back_is_missed)
{
    static struct loop l = {.n_free = ITEMS};
    pthread_t workers[WORKERS];
    pstk__handback_init(&l.handback);
    for (int i = 0; i < WORKERS; i++)
        CHECK_EQ(pthread_create(&workers[i], NULL, work, &l), 0);
    read_all(&l);
    while (atomic_load(&l.n_free) < ITEMS) {
    }
    atomic_store(&l.n_given, -1);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(workers[i], NULL);
    CHECK(l.n_waits > 0);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(workers_notify_only_a_reader_that_wants_something),
        CASE(the_reader_may_wait_once_a_round_begun_after_its_wish_found_nothing),
        CASE(a_round_that_got_something_done_withdraws_the_wish),
        CASE(a_wait_returns_at_once_after_a_hand_back_since_its_round_began),
        CASE(the_round_after_a_wish_sees_what_was_handed_back_before_it),
        CASE(the_round_after_a_notification_sees_what_was_handed_back_before_it),
        CASE(no_hand_back_is_missed),
    };
    return RUN_CASES(cases);
}
