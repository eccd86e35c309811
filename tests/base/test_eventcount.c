/* SPDX-License-Identifier: Apache-2.0 */
#include "base/eventcount.h"
#include "support/test.h"

#include <errno.h>
#include <pthread.h>

TEST(a_wait_on_an_old_ticket_returns_at_once)
{
    struct pstk__eventcount g;
    pstk__eventcount_init(&g);
    uint32_t ticket = pstk__eventcount_ticket(&g);
    pstk__eventcount_notify(&g);
    CHECK_EQ(pstk__eventcount_wait(&g, ticket, -1), 0);
}

TEST(a_wait_without_a_notification_times_out)
{
    struct pstk__eventcount g;
    pstk__eventcount_init(&g);
    CHECK_EQ(pstk__eventcount_wait(&g, pstk__eventcount_ticket(&g), 1000000), -ETIMEDOUT);
    CHECK_EQ(atomic_load(&g.n_waiting), 0);
}

struct turns {
    struct pstk__eventcount eventcount;
    _Atomic int turn;
};

static void *take_turns(void *argument)
{
    struct turns *t = argument;
    for (int i = 0; i < 20000; i++) {
        for (;;) {
            uint32_t ticket = pstk__eventcount_ticket(&t->eventcount);
            if (atomic_load(&t->turn) % 2 == 1)
                break;
            pstk__eventcount_wait(&t->eventcount, ticket, -1);
        }
        atomic_fetch_add(&t->turn, 1);
        pstk__eventcount_notify(&t->eventcount);
    }
    return NULL;
}

TEST(no_notification_is_lost)
{
    static struct turns t;
    pthread_t other;
    pstk__eventcount_init(&t.eventcount);
    CHECK_EQ(pthread_create(&other, NULL, take_turns, &t), 0);
    for (int i = 0; i < 20000; i++) {
        atomic_fetch_add(&t.turn, 1);
        pstk__eventcount_notify(&t.eventcount);
        for (;;) {
            uint32_t ticket = pstk__eventcount_ticket(&t.eventcount);
            if (atomic_load(&t.turn) % 2 == 0)
                break;
            pstk__eventcount_wait(&t.eventcount, ticket, -1);
        }
    }
    pthread_join(other, NULL);
    CHECK_EQ(atomic_load(&t.turn), 40000);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(a_wait_on_an_old_ticket_returns_at_once),
        CASE(a_wait_without_a_notification_times_out),
        CASE(no_notification_is_lost),
    };
    return RUN_CASES(cases);
}
