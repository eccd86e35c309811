/* SPDX-License-Identifier: Apache-2.0 */
/* Races between the threads of a pipeline: their windows, rarely hit by chance, are made long. */
#include "base/eventcount.h"
#include "support/sample_set.h"
#include "loader/pipeline.h"
#include "support/test.h"

#include <pthread.h>

static char path[4200];
static _Atomic int widen; /* 1: a reader thread pauses before and after it takes a ticket */

uint32_t __real_pstk__eventcount_ticket(struct pstk__eventcount *g);
uint32_t __wrap_pstk__eventcount_ticket(struct pstk__eventcount *g);
uint32_t __wrap_pstk__eventcount_ticket(struct pstk__eventcount *g)
{
    char name[16] = "";
    if (!atomic_load(&widen))
        return __real_pstk__eventcount_ticket(g);
    pthread_getname_np(pthread_self(), name, sizeof name);
    int reader = strncmp(name, "pstk-reader", 11) == 0;
    if (reader)
        usleep(2000);
    uint32_t ticket = __real_pstk__eventcount_ticket(g);
    if (reader)
        usleep(500);
    return ticket;
}

static const struct pstk_output output = {.field = "cls", .kind = PSTK_OUTPUT_SCALAR};

static struct pstk_settings base(void)
{
    struct pstk_settings s;
    const char *reader = getenv("PENSTOCK_TEST_READER");
    pstk_settings_init(&s, sizeof s);
    s.path = path;
    s.outputs = &output;
    s.n_outputs = 1;
    s.batch_size = 2;
    s.memory.n_slots = 2;
    if (reader && strcmp(reader, "threads") == 0)
        s.reading.reader = PSTK_READER_THREADS;
    return s;
}

TEST(close_wakes_a_reader_that_is_about_to_wait)
{
    atomic_store(&widen, 1);
    for (int i = 0; i < 60; i++) {
        struct pstk_settings s = base();
        struct pstk_loader *loader;
        struct pstk_batch *b;
        CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
        for (int k = 0; k < i % 3; k++) {
            CHECK_EQ(pstk_next(loader, &b, NULL, -1, NULL), 1);
            pstk_release(&b, NULL);
        }
        usleep((useconds_t)(i * 173 % 9000));
        pstk_close(&loader); /* the test's time limit catches a hang */
    }
    atomic_store(&widen, 0);
}

TEST(a_released_slot_wakes_a_reader_that_is_about_to_wait)
{
    struct pstk_settings s = base();
    struct pstk_loader *loader;
    struct pstk_batch *b;
    atomic_store(&widen, 1);
    CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
    for (int i = 0; i < 100; i++) {
        int r = pstk_next(loader, &b, NULL, 10000000000, NULL);
        CHECK(r == 0 || r == 1);
        usleep((useconds_t)(i * 131 % 5000));
        pstk_release(&b, NULL);
    }
    pstk_close(&loader);
    atomic_store(&widen, 0);
}

TEST(small_records_get_a_lane_for_each_worker)
{
    struct pstk_settings s = base();
    struct pstk_loader *loader;
    struct pstk_stats st = {.size = sizeof st};
    s.n_threads = 4;
    s.memory.n_slots = 16;
    CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
    CHECK_EQ(pstk_get_stats(loader, &st), 0);
    CHECK_EQ(st.stage_reader.n_threads, 4);
    pstk_close(&loader);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(close_wakes_a_reader_that_is_about_to_wait),
        CASE(a_released_slot_wakes_a_reader_that_is_about_to_wait),
        CASE(small_records_get_a_lane_for_each_worker),
    };
    sample_set_path(path, sizeof path);
    sample_set_make(path, 24, 65536, PSTK_CODEC_NONE);
    int r = RUN_CASES(cases);
    sample_set_remove(path);
    return r;
}
