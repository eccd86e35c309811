/* SPDX-License-Identifier: Apache-2.0 */
/* Windowed orders through the loader: the naive loop's bytes, and each byte of a file read once. */
#include "support/oracle.h"
#include "support/test.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define N_SAMPLES 211
#define TIMEOUT 20000000000

static char path[4200];
static uint32_t n_readers = 2; /* 1 under TSan, to which the kernel's writes are invisible */

static const struct pstk_op image_ops[] = {
    {.kind = PSTK_OP_RANDOM_RESIZED_CROP,
     .width = 9,
     .height = 7,
     .params.random_resized_crop = {0.08, 1.0, 3.0 / 4, 4.0 / 3}},
};

static const struct pstk_output outputs[] = {
    {.name = "image",
     .field = "img",
     .kind = PSTK_OUTPUT_IMAGE,
     .image.ops = image_ops,
     .image.n_ops = 1,
     .dtype = PSTK_U8},
    {.field = "cls", .kind = PSTK_OUTPUT_SCALAR},
    {.field = "text", .kind = PSTK_OUTPUT_BYTES},
};

static struct pstk_settings base(void)
{
    struct pstk_settings s;
    pstk_settings_init(&s, sizeof s);
    s.path = path;
    s.outputs = outputs;
    s.n_outputs = 3;
    s.batch_size = 8;
    s.seed = 17;
    s.n_threads = 2;
    s.order.kind = PSTK_ORDER_WINDOWED;
    s.order.ways = 4;
    s.order.block = 5;
    s.order.window = 3;
    s.last_batch = PSTK_LAST_SHORT;
    if (n_readers == 1)
        s.reading.reader = PSTK_READER_THREADS;
    return s;
}

/* The rest of an epoch equals the oracle's. Counts rows. */
static int epoch_equals(struct pstk_loader *loader, struct oracle *o, uint64_t *n)
{
    struct pstk_batch *b;
    struct pstk_error err;
    int r, ok = 1;
    pstk_error_init(&err, sizeof err);
    while (ok && (r = pstk_next(loader, &b, NULL, TIMEOUT, &err)) == 1) {
        ok = oracle_equal(o, b);
        *n += b->n_valid;
        pstk_release(&b, NULL);
    }
    if (ok && r < 0)
        printf("# %s\n", err.message);
    return ok && r == 0;
}

/* Three epochs equal the oracle's. stats: at their end. */
static int equals(const struct pstk_settings *s, struct pstk_stats *stats)
{
    struct oracle o;
    struct pstk_loader *loader = NULL;
    struct pstk_error err;
    uint64_t n = 0;
    pstk_error_init(&err, sizeof err);
    int ok = oracle_open(&o, s, &err) == 0 && pstk_open(&loader, s, &err) == 0;
    if (!ok)
        printf("# %s\n", err.message);
    for (int epoch = 0; ok && epoch < 3; epoch++)
        ok = epoch_equals(loader, &o, &n);
    if (ok && stats)
        pstk_get_stats(loader, stats);
    pstk_close(&loader);
    oracle_close(&o);
    if (!ok)
        printf("# ways %u block %u window %u batch %u threads %u rank %u/%u last %u\n",
               s->order.ways, s->order.block, s->order.window, s->batch_size, s->n_threads,
               s->ranks.rank, s->ranks.world, s->last_batch);
    return ok;
}

TEST(batches_are_those_of_the_naive_loop_for_every_interleave)
{
    static const uint32_t ways[] = {1, 2, 7, 48, 500}, blocks[] = {1, 5, 64, 300},
                          windows[] = {1, 3, 50};
    for (uint32_t a = 0; a < 5; a++)
        for (uint32_t b = 0; b < 4; b++)
            for (uint32_t w = 0; w < 3; w++) {
                struct pstk_settings s = base();
                s.order.ways = ways[a];
                s.order.block = blocks[b];
                s.order.window = windows[w];
                s.n_threads = 1 + (a + b) % 3;
                s.batch_size = 1 + (b + w) * 5;
                s.reading.queue_depth = 1 + (a + w) * 3;
                if (n_readers == 2 && (a + b + w) % 2)
                    s.reading.reader = PSTK_READER_THREADS;
                CHECK(equals(&s, NULL));
            }
}

TEST(batches_are_those_of_the_naive_loop_for_ranks_and_last_rules)
{
    for (uint32_t world = 1; world <= 9; world += 2)
        for (uint32_t last = 0; last < 3; last++)
            for (uint32_t rank = 0; rank < world; rank += 2) {
                struct pstk_settings s = base();
                s.ranks.world = world;
                s.ranks.rank = rank;
                s.last_batch = last;
                s.batch_size = 3;
                s.order.position = world * 7;
                CHECK(equals(&s, NULL));
            }
}

TEST(two_nodes_read_their_own_blocks)
{
    struct pstk_settings s = base();
    s.reading.topology = "node:2 core:2 pu:1";
    s.n_threads = 4;
    s.memory.n_slots = 6;
    CHECK(equals(&s, NULL));
}

TEST(direct_reads_give_the_same)
{
    struct pstk_settings s = base();
    s.reading.io = PSTK_IO_DIRECT;
    struct pstk_loader *loader;
    if (pstk_open(&loader, &s, NULL) < 0) {
        printf("# O_DIRECT is refused here\n");
        return;
    }
    pstk_close(&loader);
    CHECK(equals(&s, NULL));
}

/* Blocks are small here, so each row waits for its block: none is read by itself, and no block
 * twice in an epoch. Index pages are read once, and so is what blocks need beyond the last epoch.
 */
TEST(no_row_is_read_by_itself_and_no_byte_twice)
{
    struct pstk_stats one = {.size = sizeof one}, three = {.size = sizeof three};
    struct pstk_settings s = base();
    s.order.ways = 3; /* blocks that two ways share are read once, too */
    struct pstk_loader *loader;
    struct pstk_batch *b;
    CHECK(equals(&s, &three));
    CHECK_EQ(three.n_lone_rows, 0);
    CHECK_EQ(three.n_slow_reads, 0);
    CHECK(three.block_memory > 0);
    s.order.kind = PSTK_ORDER_SEQUENTIAL;
    s.order.ways = s.order.block = s.order.window = 0;
    CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
    while (pstk_next(loader, &b, NULL, TIMEOUT, NULL) == 1)
        pstk_release(&b, NULL);
    CHECK_EQ(pstk_get_stats(loader, &one), 0);
    pstk_close(&loader);
    CHECK_EQ(one.block_memory, 0);
    /* Both loaders read ahead into the next epoch: sequential by its slots at most. */
    printf("# 3 epochs windowed: %llu bytes, 1 sequential and more: %llu\n",
           (unsigned long long)three.bytes_read, (unsigned long long)one.bytes_read);
    CHECK(three.bytes_read <= 4 * one.bytes_read + one.bytes_read / 4);
}

TEST(seeks_to_any_place_give_what_stands_there)
{
    struct pstk_settings s = base();
    struct oracle o;
    struct pstk_loader *loader;
    struct pstk_batch *b;
    uint64_t x = 12345;
    CHECK_EQ(oracle_open(&o, &s, NULL), 0);
    CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
    for (int i = 0; i < 300; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        CHECK_EQ(pstk_seek(loader, (x >> 33) % 4, (x >> 40) % N_SAMPLES, NULL), 0);
        for (uint64_t n = 0; n < (x >> 20) % 6; n++) {
            if (pstk_next(loader, &b, NULL, TIMEOUT, NULL) != 1)
                break;
            CHECK(oracle_equal(&o, b));
            pstk_release(&b, NULL);
        }
    }
    pstk_close(&loader);
    oracle_close(&o);
}

TEST(memory_that_blocks_do_not_get_is_an_error_that_says_what_fits)
{
    struct pstk_settings s = base();
    struct pstk_loader *loader;
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    s.order.ways = 40;
    s.order.window = 500;
    s.order.block = 2000;
    s.memory.max_memory = 6 << 20;
    /* The data set is small, and so are its blocks: all of it fits. */
    CHECK_EQ(pstk_open(&loader, &s, &err), 0);
    pstk_close(&loader);
    s.order.ways = 48;
    s.order.window = s.order.block = 2;
    s.memory.max_memory = 4900000;
    CHECK_EQ(pstk_open(&loader, &s, &err), PSTK_ENOMEM);
    printf("# %s\n", err.message);
    const char *advice = strstr(err.message, "lower ways to ");
    CHECK(advice && strstr(err.message, ", or raise max_memory"));
    s.order.ways = (uint32_t)atoi(advice + strlen("lower ways to "));
    CHECK_EQ(pstk_open(&loader, &s, &err), 0);
    pstk_close(&loader);
    s.ranks.world = 4; /* another rank's blocks need no memory here: its ways are a quarter */
    s.order.ways = 48;
    s.memory.max_memory = 5200000;
    CHECK_EQ(pstk_open(&loader, &s, &err), 0);
    pstk_close(&loader);
}

/* Damage bytes in the middle of the shard: the samples there are bad, all others are as before. */
TEST(a_damaged_block_is_the_error_of_its_samples_alone)
{
    struct pstk_settings s = base();
    struct pstk_loader *loader;
    struct pstk_batch *b;
    struct pstk_error err;
    char shard[4300];
    uint8_t old[40], zero[40] = {0};
    uint64_t n_good = 0, n_bad = 0;
    int r;
    snprintf(shard, sizeof shard, "%s/shard-000000.pstk", path);
    const int fd = open(shard, O_RDWR);
    CHECK(fd >= 0 && pread(fd, old, sizeof old, 9000) == (ssize_t)sizeof old);
    CHECK(pwrite(fd, zero, sizeof zero, 9000) == (ssize_t)sizeof zero);
    s.batch_size = 1;
    pstk_error_init(&err, sizeof err);
    CHECK_EQ(pstk_open(&loader, &s, &err), 0);
    for (uint64_t k = 0; k < N_SAMPLES; k++) {
        r = pstk_next(loader, &b, NULL, TIMEOUT, &err);
        n_good += r == 1;
        n_bad += r < 0;
        if (r == 1)
            pstk_release(&b, NULL);
        else
            CHECK(r == PSTK_EBADMSG && pstk_seek(loader, 0, k + 1, NULL) == 0);
    }
    pstk_close(&loader);
    CHECK(pwrite(fd, old, sizeof old, 9000) == (ssize_t)sizeof old);
    close(fd);
    printf("# %llu good, %llu bad\n", (unsigned long long)n_good, (unsigned long long)n_bad);
    CHECK(n_bad > 0 && n_bad < 4 && n_good + n_bad == N_SAMPLES);
    CHECK(equals(&s, NULL));
}

/* A data set of one block: it fits in the memory, and no row is left to the slow path. */
TEST(a_block_as_large_as_the_data_set_is_read_as_a_whole)
{
    static const uint32_t blocks[] = {N_SAMPLES / 2 + 1, N_SAMPLES, 300};
    for (uint32_t i = 0; i < 3; i++) {
        struct pstk_stats stats = {.size = sizeof stats};
        struct pstk_settings s = base();
        s.order.ways = s.order.window = 1;
        s.order.block = blocks[i];
        CHECK(equals(&s, &stats));
        CHECK_EQ(stats.n_slow_reads, 0);
        CHECK_EQ(stats.n_lone_rows, 0);
    }
}

TEST(a_block_larger_than_the_data_set_takes_no_memory_of_its_size)
{
    struct rusage before, after;
    struct pstk_settings s = base();
    s.order.ways = s.order.window = 1;
    s.order.block = PSTK_MAX_BLOCK;
    CHECK_EQ(getrusage(RUSAGE_SELF, &before), 0);
    CHECK(equals(&s, NULL));
    CHECK_EQ(getrusage(RUSAGE_SELF, &after), 0);
    CHECK(after.ru_maxrss - before.ru_maxrss < 100 << 10); /* KiB */
}

/* The index of a shard is damaged, so that all rows of some blocks take the slow path: the other
 * blocks are still read ahead. Rows of blocks of this size do not wait for what nobody asked for.
 */
TEST(blocks_that_cannot_be_read_do_not_end_reading_ahead)
{
    static const struct pstk_output image = {.field = "img", .kind = PSTK_OUTPUT_BYTES};
    const struct pstk_subset all = {
        .size = sizeof all, .kind = PSTK_SUBSET_RANGE, .first = 0, .last = 12000};
    struct pstk_settings s = base();
    struct pstk_stats stats = {.size = sizeof stats};
    struct pstk_loader *loader;
    struct pstk_batch *b;
    struct pstk_error err;
    char large[4200], shard[4300];
    static const uint8_t zeros[100 << 10]; /* index pages lie at the end */
    struct stat st;
    pstk_error_init(&err, sizeof err);
    sample_set_path(large, sizeof large);
    sample_set_make(large, 12000, 4 << 20, 0);
    snprintf(shard, sizeof shard, "%s/shard-000001.pstk", large);
    const int fd = open(shard, O_WRONLY);
    CHECK(fd >= 0 && fstat(fd, &st) == 0);
    CHECK(pwrite(fd, zeros, sizeof zeros, st.st_size - (off_t)sizeof zeros) > 0);
    close(fd);
    s.path = large;
    s.outputs = &image;
    s.n_outputs = 1;
    s.batch_size = 100;
    s.order.ways = s.order.window = 1;
    s.order.block = 1500;
    s.subset = &all;
    s.bad_sample = PSTK_BAD_REPLACE;
    CHECK_EQ(pstk_open(&loader, &s, &err), 0);
    uint64_t n_replaced = 0;
    for (int epoch = 0; epoch < 6; epoch++) {
        int r;
        while ((r = pstk_next(loader, &b, NULL, TIMEOUT, &err)) == 1) {
            n_replaced += b->n_replacements;
            pstk_release(&b, NULL);
        }
        CHECK_EQ(r, 0);
    }
    CHECK_EQ(pstk_get_stats(loader, &stats), 0);
    pstk_close(&loader);
    sample_set_remove(large);
    printf("# %llu replaced, %llu read by themselves\n", (unsigned long long)n_replaced,
           (unsigned long long)stats.n_lone_rows);
    CHECK(n_replaced > 12000);
    CHECK(stats.n_lone_rows < 6000);
}

TEST(numbers_of_another_order_are_refused)
{
    struct pstk_settings s = base();
    struct pstk_loader *loader;
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    s.order.kind = PSTK_ORDER_FULL;
    CHECK_EQ(pstk_open(&loader, &s, &err), PSTK_EINVAL);
    CHECK(strstr(err.message, "ways: value is 4; must be 0 unless order is windowed"));
}

int main(void)
{
    static const struct test_case cases[] = {
        CASE(batches_are_those_of_the_naive_loop_for_every_interleave),
        CASE(batches_are_those_of_the_naive_loop_for_ranks_and_last_rules),
        CASE(two_nodes_read_their_own_blocks),
        CASE(direct_reads_give_the_same),
        CASE(no_row_is_read_by_itself_and_no_byte_twice),
        CASE(seeks_to_any_place_give_what_stands_there),
        CASE(memory_that_blocks_do_not_get_is_an_error_that_says_what_fits),
        CASE(a_damaged_block_is_the_error_of_its_samples_alone),
        CASE(a_block_as_large_as_the_data_set_is_read_as_a_whole),
        CASE(a_block_larger_than_the_data_set_takes_no_memory_of_its_size),
        CASE(blocks_that_cannot_be_read_do_not_end_reading_ahead),
        CASE(numbers_of_another_order_are_refused),
    };
    sample_set_path(path, sizeof path);
    sample_set_make(path, N_SAMPLES, 65536, 0);
    const char *reader = getenv("PENSTOCK_TEST_READER");
    if (reader && strcmp(reader, "threads") == 0)
        n_readers = 1;
    const int r = RUN_CASES(cases);
    sample_set_remove(path);
    return r;
}
