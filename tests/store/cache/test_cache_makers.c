/* SPDX-License-Identifier: Apache-2.0 */
/* Several makers of entries at once: one makes each entry, the rests of killed makers are removed,
 * and all stay within the limit. */
#include "store/cache/cache_fixture.h"

#include <pthread.h>

TEST(one_maker_at_a_time)
{
    struct cached c;
    struct pstk__cache_writer *writer, *second;
    const struct pstk__cache_key key = key_of(0);
    struct pstk__cache_progress making;
    CHECK_EQ(open_cached(&c, PLENTY), 0);
    CHECK_EQ(pstk__cache_making(c.cache, &key, &making), 0);
    CHECK_EQ(pstk__cache_begin(&writer, c.cache, &key, 20 << 20, &c.f.err), 0);
    CHECK_EQ(pstk__cache_begin(&second, c.cache, &key, 100, &c.f.err), PSTK_EBUSY);
    CHECK(second == NULL && strstr(c.f.err.message, "/data/shard.tar"));
    CHECK_EQ(append_bytes(writer, 0, 9 << 20, 1 << 16, &c.f.err), 0);
    CHECK_EQ(pstk__cache_making(c.cache, &key, &making), 1);
    CHECK(making.n_done == 8 << 20 && making.n_total > 20 << 20 && making.n_total < 21 << 20);
    CHECK_EQ(pstk__cache_commit(&writer, &c.f.err), 0);
    CHECK_EQ(pstk__cache_making(c.cache, &key, &making), 0);
    /* Another maker that had looked before now finds the entry busy. */
    CHECK_EQ(pstk__cache_begin(&second, c.cache, &key, 100, &c.f.err), PSTK_EBUSY);
    CHECK(second == NULL && strstr(c.f.err.message, "has just made"));
    CHECK(!lies_at(path_of(&c.f, 0, ".tmp")));
    CHECK_EQ(has(c.cache, 0, 9 << 20), -1); /* it is there (has reads 1 MiB alone) */
    pstk__cache_drop(c.cache, &key, NULL);
    CHECK_EQ(pstk__cache_begin(&second, c.cache, &key, 100, &c.f.err), 0);
    pstk__cache_abort(&second);
    close_cached(&c);
}

/* As the message of one who waits in vain advises. */
TEST(a_maker_whose_file_was_removed_leaves_the_next_ones_alone)
{
    struct cached c;
    struct pstk__cache_writer *first, *second;
    const struct pstk__cache_key key = key_of(0);
    CHECK_EQ(open_cached(&c, PLENTY), 0);
    for (int is_committed = 0; is_committed < 2; is_committed++) {
        CHECK_EQ(pstk__cache_begin(&first, c.cache, &key, 70000, &c.f.err), 0);
        CHECK_EQ(append_bytes(first, 0, 60000, 5000, &c.f.err), 0);
        CHECK_EQ(unlink(path_of(&c.f, 0, ".tmp")), 0);
        CHECK_EQ(pstk__cache_begin(&second, c.cache, &key, 70000, &c.f.err), 0);
        CHECK_EQ(append_bytes(second, 0, 50000, 5000, &c.f.err), 0);
        if (is_committed)
            CHECK_EQ(pstk__cache_commit(&first, &c.f.err), PSTK_EBUSY);
        else
            pstk__cache_abort(&first);
        CHECK(first == NULL && lies_at(path_of(&c.f, 0, ".tmp")));
        CHECK_EQ(append_bytes(second, 0, 0, 5000, &c.f.err), 0);
        CHECK_EQ(pstk__cache_commit(&second, &c.f.err), 0);
        CHECK_EQ(has(c.cache, 0, 50000), 1);
        pstk__cache_drop(c.cache, &key, NULL);
    }
    close_cached(&c);
}

TEST(entries_that_are_made_are_in_motion)
{
    struct cached c;
    struct pstk__cache_writer *writer;
    const struct pstk__cache_key key = key_of(0);
    CHECK_EQ(open_cached(&c, PLENTY), 0);
    CHECK_EQ(make(c.cache, 1, 1000, &c.f.err), 0);
    const uint64_t none = pstk__cache_motion(c.cache);
    CHECK_EQ(pstk__cache_begin(&writer, c.cache, &key, 20 << 20, &c.f.err), 0);
    const uint64_t begun = pstk__cache_motion(c.cache);
    CHECK_EQ(pstk__cache_motion(c.cache), begun);
    CHECK_EQ(append_bytes(writer, 0, 9 << 20, 1 << 16, &c.f.err), 0);
    const uint64_t noted = pstk__cache_motion(c.cache);
    CHECK_EQ(pstk__cache_commit(&writer, &c.f.err), 0);
    CHECK(begun != none && noted != begun && pstk__cache_motion(c.cache) != noted);
    close_cached(&c);
}

/* A child begins entry i, writes, and is killed. */
static void kill_a_maker(struct cached *c, uint32_t i)
{
    int ready[2];
    if (pipe(ready) < 0)
        abort();
    const pid_t child = fork();
    if (child == 0) {
        struct pstk__cache_writer *writer;
        const struct pstk__cache_key key = key_of(i);
        if (pstk__cache_begin(&writer, c->cache, &key, 70000, NULL) < 0 ||
            append_bytes(writer, i, 50000, 5000, NULL) < 0 || write(ready[1], "", 1) != 1)
            _exit(1);
        pause();
    }
    char byte;
    if (read(ready[0], &byte, 1) != 1)
        abort();
    kill(child, SIGKILL);
    status_of(child);
    close(ready[0]);
    close(ready[1]);
}

TEST(a_killed_maker_leaves_nothing_that_lasts)
{
    struct cached c;
    struct pstk__cache *again;
    CHECK_EQ(open_cached(&c, 100000), 0);
    kill_a_maker(&c, 0);
    CHECK(lies_at(path_of(&c.f, 0, ".tmp")));
    CHECK_EQ(has(c.cache, 0, 50000), 0);
    c.cache->max_bytes = PLENTY;                    /* nothing is counted anew */
    CHECK_EQ(make(c.cache, 0, 60000, &c.f.err), 0); /* takes over */
    CHECK_EQ(has(c.cache, 0, 60000), 1);
    c.cache->max_bytes = 100000;
    struct pstk__cache_ledger ledger;
    CHECK_EQ(pstk__cache_lock(c.cache, 0, &ledger), 0);
    CHECK_EQ(ledger.bytes, pstk__cache_file_size(60000)); /* the unfinished file does not count */
    pstk__cache_unlock(&ledger);
    kill_a_maker(&c, 1);
    CHECK_EQ(make(c.cache, 2, 80000, &c.f.err), 0); /* its room is free */
    CHECK(!lies_at(path_of(&c.f, 1, ".tmp")));
    kill_a_maker(&c, 3);
    CHECK_EQ(pstk__cache_open(&again, fixture_path(&c.f, "c"), PLENTY, &c.f.err), 0);
    CHECK(!lies_at(path_of(&c.f, 3, ".tmp")));
    pstk__cache_close(again);
    close_cached(&c);
}

TEST(a_living_makers_file_is_not_removed)
{
    struct cached c;
    struct pstk__cache *again;
    struct pstk__cache_writer *writer;
    const struct pstk__cache_key key = key_of(0);
    CHECK_EQ(open_cached(&c, 100000), 0);
    CHECK_EQ(pstk__cache_begin(&writer, c.cache, &key, 50000, &c.f.err), 0);
    CHECK_EQ(pstk__cache_open(&again, fixture_path(&c.f, "c"), 100000, &c.f.err), 0);
    CHECK(lies_at(path_of(&c.f, 0, ".tmp")));
    CHECK_EQ(make(again, 1, 60000, &c.f.err), PSTK_EBUSY); /* counts all files */
    CHECK(lies_at(path_of(&c.f, 0, ".tmp")));
    pstk__cache_close(again);
    CHECK_EQ(append_bytes(writer, 0, 50000, 4096, &c.f.err), 0);
    CHECK_EQ(pstk__cache_commit(&writer, &c.f.err), 0);
    CHECK_EQ(has(c.cache, 0, 50000), 1);
    close_cached(&c);
}

/* Make the entry or wait until another has. Returns 1: this process made it; 0: another; -1. */
static int get(struct pstk__cache *cache, uint32_t i, uint64_t size)
{
    for (uint32_t naps = 0;;) {
        const int found = has(cache, i, size);
        if (found)
            return found < 0 ? -1 : 0;
        const int r = make(cache, i, size, NULL);
        if (r != PSTK_EBUSY)
            return r < 0 ? -1 : 1;
        if (!test_nap(naps++))
            return -1;
    }
}

TEST(of_processes_that_want_one_entry_one_makes_it)
{
    enum { N = 6 };
    struct cached c;
    pid_t children[N];
    int n_made = 0;
    CHECK_EQ(open_cached(&c, PLENTY), 0);
    for (int k = 0; k < N; k++)
        if ((children[k] = fork()) == 0) {
            struct pstk__cache *own;
            int made = 0;
            if (pstk__cache_open(&own, fixture_path(&c.f, "c"), PLENTY, NULL) < 0)
                _exit(100);
            for (uint32_t i = 0; i < 8; i++) {
                const int r = get(own, i, 300000);
                if (r < 0)
                    _exit(101);
                made += r;
            }
            _exit(made);
        }
    for (int k = 0; k < N; k++)
        n_made += status_of(children[k]);
    CHECK_EQ(n_made, 8);
    close_cached(&c);
}

/* Under the lock: no file comes or goes. */
static int is_within(struct pstk__cache *cache)
{
    struct pstk__cache_ledger ledger;
    struct pstk__cache_sum sum;
    if (pstk__cache_lock(cache, PSTK__CACHE_PATIENCE_NS, &ledger) < 0)
        return 0;
    const int r = pstk__cache_survey(cache, &sum);
    const uint64_t bytes = sum.bytes + sum.writing_bytes;
    const int is = r == 0 && bytes <= cache->max_bytes &&
                   (ledger.bytes == UINT64_MAX || ledger.bytes >= bytes);
    if (!is)
        printf("# %llu bytes, %llu counted, %llu at most\n", (unsigned long long)bytes,
               (unsigned long long)ledger.bytes, (unsigned long long)cache->max_bytes);
    pstk__cache_unlock(&ledger);
    return is;
}

/* The work of a child: makes, finds, drops and gives up entries at random. */
static int use_by_chance(struct cached *c, uint32_t seed, uint64_t max_bytes)
{
    struct pstk__cache *own;
    if (pstk__cache_open(&own, fixture_path(&c->f, "c"), max_bytes, NULL) < 0)
        return 1;
    for (int turn = 0; turn < 80; turn++) {
        seed = seed * 1664525u + 1013904223u;
        const uint32_t i = seed >> 8 & 31;
        const uint64_t size = i * 4000 + 1;
        const struct pstk__cache_key key = key_of(i);
        struct pstk__cache_writer *writer;
        const int found = has(own, i, size);
        if (found < 0)
            return 2;
        if (found && seed >> 28 == 0)
            pstk__cache_drop(own, &key, NULL);
        if (found || pstk__cache_begin(&writer, own, &key, size + 9000, NULL) < 0)
            continue;
        if (append_bytes(writer, i, size, 1 << 16, NULL) < 0)
            return 3;
        if (seed >> 28 == 1)
            pstk__cache_abort(&writer);
        else if (seed >> 28 == 2)
            raise(SIGKILL);
        else if (pstk__cache_commit(&writer, NULL) < 0)
            return 4;
    }
    pstk__cache_close(own);
    return 0;
}

TEST(processes_that_write_at_once_stay_within_the_limit)
{
    enum { N = 4 };
    const uint64_t max_bytes = 700000;
    struct cached c;
    pid_t children[N];
    uint32_t seed = 1, n_running = N;
    CHECK_EQ(open_cached(&c, max_bytes), 0);
    for (uint32_t k = 0; k < N; k++)
        if ((children[k] = fork()) == 0)
            _exit(use_by_chance(&c, seed + k, max_bytes));
    for (uint32_t turn = 0; n_running;) {
        CHECK(is_within(c.cache));
        for (uint32_t k = 0; k < N; k++) {
            int status;
            if (!children[k] || waitpid(children[k], &status, WNOHANG) != children[k])
                continue;
            children[k] = 0;
            n_running--;
            CHECK(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
            if (WIFSIGNALED(status) && turn++ < 15) { /* another comes in its place */
                n_running++;
                seed += N;
                if ((children[k] = fork()) == 0)
                    _exit(use_by_chance(&c, seed + k, max_bytes));
            }
        }
    }
    CHECK(is_within(c.cache));
    close_cached(&c);
}

/* ---- threads --------------------------------------------------------------------------------- */

#define N_KEYS 12
static struct pstk__cache *shared;

static void *use_shared(void *user)
{
    uint8_t bytes[39000];
    uint32_t seed = (uint32_t)(uintptr_t)user;
    for (int turn = 0; turn < 300; turn++) {
        seed = seed * 1664525u + 1013904223u;
        const uint32_t i = (seed >> 8) % N_KEYS;
        const struct pstk__cache_key key = key_of(i);
        struct pstk__file file;
        struct pstk__cache_writer *writer;
        if (pstk__cache_find(shared, &key, &file)) {
            const uint64_t at = seed % 30000;
            const int64_t n = pstk__file_read(&file, bytes, 9000, at);
            for (int64_t k = 0; k < n; k++)
                if (bytes[k] != byte_of(i, at + (uint64_t)k))
                    return (void *)1;
            pstk__file_end(&file);
            if (n != 9000)
                return (void *)2;
        } else if (pstk__cache_begin(&writer, shared, &key, 39000, NULL) == 0) {
            for (uint64_t k = 0; k < 39000; k++)
                bytes[k] = byte_of(i, k);
            if (pstk__cache_append(writer, bytes, 39000, NULL) < 0 ||
                pstk__cache_commit(&writer, NULL) < 0)
                return (void *)3;
        }
    }
    return NULL;
}

TEST(threads_find_read_and_make_at_once)
{
    struct cached c;
    pthread_t threads[4];
    CHECK_EQ(open_cached(&c, 8 * pstk__cache_file_size(39000)), 0);
    shared = c.cache;
    for (uintptr_t k = 0; k < 4; k++)
        CHECK_EQ(pthread_create(&threads[k], NULL, use_shared, (void *)(k + 1)), 0);
    for (int k = 0; k < 4; k++) {
        void *result;
        CHECK_EQ(pthread_join(threads[k], &result), 0);
        CHECK_EQ((intptr_t)result, 0);
    }
    CHECK(is_within(c.cache));
    close_cached(&c);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(one_maker_at_a_time),
        CASE(a_maker_whose_file_was_removed_leaves_the_next_ones_alone),
        CASE(entries_that_are_made_are_in_motion),
        CASE(a_killed_maker_leaves_nothing_that_lasts),
        CASE(a_living_makers_file_is_not_removed),
        CASE(of_processes_that_want_one_entry_one_makes_it),
        CASE(processes_that_write_at_once_stay_within_the_limit),
        CASE(threads_find_read_and_make_at_once),
    };
    return RUN_CASES(cases);
}
