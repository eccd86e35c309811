/* SPDX-License-Identifier: Apache-2.0 */
/*
 * order_scale: simulate large runs with the real order code; no data is read.
 *
 *   order_scale [--small] [coverage|ranks|speed]
 *
 * coverage: two threads walk the batches of all ranks and mark each sample in a bitmap: 10^8
 * samples for 3 epochs, in the middle of each of which a node of 8 ranks is lost and the rest go on
 * at the position of the state; then 10^9 samples for one epoch. Every sample once, or exit
 * status 1. ranks: 10^9 samples, 4096 and fewer ranks, 100 epochs: 10^6 positions drawn at random,
 * and all blocks that 16 of the ranks read. speed: time of a sample and of a resume, on one thread.
 *
 * Prints Markdown for ORDER.md. Some 4 minutes on 2 idle cores; --small: a second, on less data.
 */
#include "order/order.h"
#include "order/partition.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { N_THREADS = 2, ROW = 2048, RANKS_READ = 16 };

static uint64_t small = 1; /* divisor of all sizes */

static double seconds_of(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static struct pstk__order_shape shape_of(uint32_t kind, uint64_t n, uint32_t ways)
{
    struct pstk__order_shape shape = {.kind = kind, .interleave = {.n = n, .ways = ways}};
    pstk__interleave_settle(&shape.interleave);
    return shape;
}

/* ---- coverage ---- */

/* Batches first to end, of all ranks of a partition, marked by one thread of N_THREADS. */
struct stretch {
    const struct pstk__order *order;
    struct pstk__partition partition;
    uint64_t first, end, thread;
    _Atomic uint64_t *seen; /* a bit for each sample */
    uint64_t n_rows, n_twice, n_outside;
    double cpu_seconds;
};

static void *mark(void *argument)
{
    struct stretch *stretch = argument;
    struct pstk__partition partition = stretch->partition;
    const double begin = seconds_of(CLOCK_THREAD_CPUTIME_ID);
    for (uint64_t batch = stretch->first + stretch->thread; batch < stretch->end;
         batch += N_THREADS)
        for (partition.rank = 0; partition.rank < partition.world; partition.rank++) {
            const uint64_t at = batch * partition.global_batch;
            const uint32_t n = pstk__partition_n_valid(&partition, at);
            for (uint32_t row = 0; row < n; row++) {
                const uint64_t id =
                    pstk__order_at(stretch->order, pstk__partition_row(&partition, at, row));
                if (id >= partition.n) {
                    stretch->n_outside++;
                    continue;
                }
                const uint64_t bit = (uint64_t)1 << (id & 63);
                const uint64_t before =
                    atomic_fetch_or_explicit(&stretch->seen[id >> 6], bit, memory_order_relaxed);
                stretch->n_twice += (before & bit) != 0;
            }
            stretch->n_rows += n;
        }
    stretch->cpu_seconds = seconds_of(CLOCK_THREAD_CPUTIME_ID) - begin;
    return NULL;
}

struct coverage {
    uint64_t n_rows, n_twice, n_outside, n_missing;
    double cpu_seconds;
};

static void mark_all(struct coverage *sum, const struct stretch *stretch)
{
    struct stretch parts[N_THREADS];
    pthread_t threads[N_THREADS];
    for (uint64_t i = 0; i < N_THREADS; i++) {
        parts[i] = *stretch;
        parts[i].thread = i;
        if (pthread_create(&threads[i], NULL, mark, &parts[i]) != 0)
            exit(2);
    }
    for (uint64_t i = 0; i < N_THREADS; i++) {
        pthread_join(threads[i], NULL);
        sum->n_rows += parts[i].n_rows;
        sum->n_twice += parts[i].n_twice;
        sum->n_outside += parts[i].n_outside;
        sum->cpu_seconds += parts[i].cpu_seconds;
    }
}

/* Walk epochs of an order on `world` ranks, 8 fewer from the middle of each. Return 1: every sample
 * came once in each. */
static int cover(uint32_t kind, uint64_t n, uint64_t n_epochs, uint64_t world)
{
    static struct pstk__order order;
    struct coverage sum = {0};
    char worlds[64] = "";
    void *bitmap = malloc((n / 64 + 1) * sizeof(uint64_t));
    _Atomic uint64_t *seen = bitmap;
    const struct pstk__order_shape shape = shape_of(kind, n, 0);
    if (!bitmap)
        exit(2);
    for (uint64_t epoch = 0; epoch < n_epochs; epoch++) {
        memset(bitmap, 0, (n / 64 + 1) * sizeof *seen);
        pstk__order_init(&order, &shape, 7, epoch);
        struct stretch stretch = {.order = &order, .seen = seen};
        stretch.partition = (struct pstk__partition){
            .n = n, .global_batch = 1536, .world = world, .last_batch = PSTK_LAST_SHORT};
        const uint64_t n_batches = pstk__partition_n_batches(&stretch.partition, 0);
        stretch.end = n_batches / 2 + epoch;
        mark_all(&sum, &stretch);
        stretch.first = stretch.end; /* as the state says */
        world -= 8;
        stretch.partition.world = world;
        stretch.end = n_batches;
        mark_all(&sum, &stretch);
        for (uint64_t i = 0; i < n; i++)
            sum.n_missing += !(seen[i >> 6] >> (i & 63) & 1);
        snprintf(worlds + strlen(worlds), sizeof worlds - strlen(worlds), "%s%d to %d",
                 epoch ? ", " : "", (int)world + 8, (int)world);
    }
    free(bitmap);
    const int is_whole =
        !sum.n_twice && !sum.n_missing && !sum.n_outside && sum.n_rows == n * n_epochs;
    printf("| %s | %.0e | %s | %llu | %llu | %llu | %.0f |\n",
           kind == PSTK_ORDER_FULL ? "full" : "windowed", (double)n, worlds,
           (unsigned long long)sum.n_rows, (unsigned long long)sum.n_missing,
           (unsigned long long)(sum.n_twice + sum.n_outside), sum.cpu_seconds);
    fflush(stdout);
    return is_whole;
}

static int coverage(void)
{
    const uint64_t many = 100000000 / small, most = 1000000000 / small;
    int good = 1;
    printf("\n| order | samples | ranks, in each epoch | delivered | missing | twice | CPU s |\n"
           "|---|---|---|---|---|---|---|\n");
    good &= cover(PSTK_ORDER_WINDOWED, many, 3, 64);
    good &= cover(PSTK_ORDER_FULL, many, 3, 64);
    good &= cover(PSTK_ORDER_WINDOWED, most, 1, 64);
    good &= cover(PSTK_ORDER_FULL, most, 1, 64);
    return good;
}

/* ---- ranks ---- */

static uint64_t greatest_divisor(uint64_t a, uint64_t b)
{
    return b ? greatest_divisor(b, a % b) : a;
}

/* The reads of ranks of a world, in a windowed order. */
struct reading {
    struct pstk__interleave interleave;
    uint64_t world, n_epochs, n_positions;
    uint64_t first_epoch, step; /* first epoch of a thread, and the step to its next one */
    double samples;             /* read, by all 16 ranks and epochs */
    double imbalance;           /* the most of an epoch's ranks / the mean - 1 */
    uint64_t held;              /* most samples in the blocks of a rank's windows at a position */
    uint64_t n_wrong;           /* positions whose block is not among their window's */
};

/* Samples of the blocks of the line from first to last. */
static uint64_t n_samples(const struct pstk__windowed *windowed, uint64_t first, uint64_t last)
{
    const uint64_t block = windowed->interleave.block, n = (last + 1 - first) * block;
    return first <= windowed->last && windowed->last <= last ? n - block + windowed->n_last : n;
}

/* Return samples that are read for a way, whose reader holds the blocks of a window until the next.
 */
static uint64_t read_way(const struct pstk__windowed *windowed, uint32_t way)
{
    const uint64_t n_windows = pstk__windowed_n_windows(windowed, way);
    uint64_t n = 0, held = 0; /* blocks before `held` were read */
    for (uint64_t w = 0; w < n_windows; w++) {
        const struct pstk__interleave_blocks blocks = pstk__windowed_blocks(windowed, way, w);
        const uint64_t from = held > blocks.first ? held : blocks.first;
        if (from <= blocks.last)
            n += n_samples(windowed, from, blocks.last);
        held = blocks.last + 1;
    }
    return n;
}

static void read_ranks(struct reading *reading, const struct pstk__windowed *windowed,
                       struct pstk__random *draws)
{
    const uint64_t common = greatest_divisor(windowed->interleave.ways, reading->world);
    const uint64_t n_ranks = reading->world < RANKS_READ ? reading->world : RANKS_READ;
    uint64_t most = 0;
    double all = 0;
    for (uint64_t i = 0; i < n_ranks; i++) {
        const uint64_t rank =
            reading->world > RANKS_READ ? pstk__random_below(draws, reading->world) : i;
        uint64_t n = 0;
        for (uint64_t s = rank % common; s < windowed->interleave.ways; s += common)
            n += read_way(windowed, (uint32_t)s);
        most = n > most ? n : most;
        all += (double)n;
    }
    reading->samples += all / (double)n_ranks * (double)reading->world;
    const double imbalance = (double)most / (all / (double)n_ranks) - 1;
    reading->imbalance = imbalance > reading->imbalance ? imbalance : reading->imbalance;
}

/* A position drawn at random: what does its rank hold then? */
static void look_at(struct reading *reading, const struct pstk__windowed *windowed, uint64_t k)
{
    const uint32_t ways = windowed->interleave.ways;
    const uint64_t common = greatest_divisor(ways, reading->world);
    struct pstk__interleave_location location;
    pstk__windowed_locate(windowed, k, &location);
    const struct pstk__interleave_blocks own =
        pstk__windowed_blocks(windowed, location.way, location.window);
    uint64_t first;
    uint32_t rows;
    pstk__windowed_block(windowed, location.line, &first, &rows);
    reading->n_wrong += location.line < own.first || location.line > own.last ||
                        location.row >= rows || location.id != first + location.row ||
                        location.way % common != k % common;
    uint64_t held = 0;
    for (uint64_t s = k % common; s < ways; s += common) {
        const uint64_t i = k / ways, n = pstk__windowed_way(windowed, (uint32_t)s);
        const uint64_t w = pstk__windowed_window(windowed, (uint32_t)s, i < n ? i : n - 1);
        const struct pstk__interleave_blocks blocks =
            pstk__windowed_blocks(windowed, (uint32_t)s, w);
        held += n_samples(windowed, blocks.first, blocks.last);
    }
    reading->held = held > reading->held ? held : reading->held;
}

static void *read_epochs(void *argument)
{
    struct reading *reading = argument;
    for (uint64_t e = reading->first_epoch; e < reading->n_epochs; e += reading->step) {
        static _Thread_local struct pstk__windowed windowed;
        struct pstk__random draws = {.key = {(uint32_t)e, (uint32_t)reading->world}};
        pstk__windowed_init(&windowed, &reading->interleave, 11, e);
        read_ranks(reading, &windowed, &draws);
        for (uint64_t i = 0; i < reading->n_positions / reading->n_epochs; i++)
            look_at(reading, &windowed, pstk__random_below(&draws, reading->interleave.n));
    }
    return NULL;
}

static int read_world(uint32_t ways, uint64_t world)
{
    struct reading parts[N_THREADS], sum = {.world = world, .step = N_THREADS};
    pthread_t threads[N_THREADS];
    sum.interleave = shape_of(PSTK_ORDER_WINDOWED, 1000000000, ways).interleave;
    sum.n_epochs = small > 1 ? 2 : 100;
    sum.n_positions = 1000000 / small;
    for (uint64_t i = 0; i < N_THREADS; i++) {
        parts[i] = sum;
        parts[i].first_epoch = i;
        if (pthread_create(&threads[i], NULL, read_epochs, &parts[i]) != 0)
            exit(2);
    }
    for (int i = 0; i < N_THREADS; i++) {
        pthread_join(threads[i], NULL);
        sum.samples += parts[i].samples;
        sum.n_wrong += parts[i].n_wrong;
        sum.held = parts[i].held > sum.held ? parts[i].held : sum.held;
        if (parts[i].imbalance > sum.imbalance)
            sum.imbalance = parts[i].imbalance;
    }
    const uint64_t common = greatest_divisor(ways, world), of_rank = ways / common;
    printf("| %llu | %u | %llu | %llu | %.3f | %.2f %% | %.1f MB | %.1f MB | %llu |\n",
           (unsigned long long)world, ways, (unsigned long long)of_rank,
           (unsigned long long)(world / common),
           sum.samples / (double)sum.n_epochs / (double)sum.interleave.n, 100 * sum.imbalance,
           (double)sum.held * ROW / 1e6,
           (double)(of_rank * (sum.interleave.window + 1) * sum.interleave.block) * ROW / 1e6,
           (unsigned long long)sum.n_wrong);
    fflush(stdout);
    return sum.n_wrong == 0;
}

static int ranks(void)
{
    static const struct {
        uint32_t ways;
        uint64_t world;
    } of[] = {{48, 1},      {48, 8},       {48, 48},    {256, 256}, {4096, 1},
              {4096, 8},    {4096, 256},   {48, 64},    {48, 256},  {48, 4096},
              {4096, 4096}, {12288, 4096}, {4096, 4088}};
    int good = 1;
    printf("\n| ranks R | ways C | ways of a rank | R / gcd | reads per byte | imbalance | "
           "held, at most | formula | wrong |\n|---|---|---|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        good &= read_world(of[i].ways, of[i].world);
    return good;
}

/* ---- speed ---- */

static struct pstk__order timed;

/* CPU nanoseconds of a sample, the least of 9 runs. */
static double time_samples(uint64_t n, uint64_t *sum)
{
    const uint64_t n_timed = (n < 2000000 ? n : 2000000) / small, from = (n - n_timed) / 2;
    double best = INFINITY;
    for (int run = 0; run < 9; run++) {
        const double begin = seconds_of(CLOCK_THREAD_CPUTIME_ID);
        for (uint64_t k = from; k < from + n_timed; k++)
            *sum += pstk__order_at(&timed, k);
        const double t = (seconds_of(CLOCK_THREAD_CPUTIME_ID) - begin) / (double)n_timed;
        best = t < best ? t : best;
    }
    return 1e9 * best;
}

/* Return CPU microseconds until the ids of a batch of 256 at a position drawn at random are known:
 * the most of 1000 times. */
static double time_resumes(const struct pstk__order_shape *shape, uint64_t *sum)
{
    struct pstk__random draws = {.key = {9}};
    double most = 0;
    for (uint64_t i = 0; i < 1000; i++) {
        const uint64_t n = shape->interleave.n,
                       at = n > 256 ? pstk__random_below(&draws, n - 256) : 0;
        const double begin = seconds_of(CLOCK_THREAD_CPUTIME_ID);
        pstk__order_init(&timed, shape, i, 3);
        for (uint64_t k = at; k < at + 256 && k < n; k++)
            *sum += pstk__order_at(&timed, k);
        const double t = seconds_of(CLOCK_THREAD_CPUTIME_ID) - begin;
        most = t > most ? t : most;
    }
    return 1e6 * most;
}

static int speed(void)
{
    static const uint64_t ns[] = {10000,      1000000,     100000000,
                                  1000000000, 10000000000, 1000000000000};
    uint64_t sum = 0;
    printf("\n| samples | full, ns a sample | windowed | full, resume us | windowed |\n"
           "|---|---|---|---|---|\n");
    for (size_t i = 0; i < sizeof ns / sizeof *ns; i++) {
        double sample[2], resume[2];
        for (int k = 0; k < 2; k++) {
            const uint32_t kind = k ? PSTK_ORDER_WINDOWED : PSTK_ORDER_FULL;
            const struct pstk__order_shape shape = shape_of(kind, ns[i], 0);
            pstk__order_init(&timed, &shape, 1, 2);
            sample[k] = time_samples(ns[i], &sum);
            resume[k] = time_resumes(&shape, &sum);
        }
        printf("| %.0e | %.0f | %.0f | %.0f | %.0f |\n", (double)ns[i], sample[0], sample[1],
               resume[0], resume[1]);
    }
    printf("\nAn order is %zu bytes of memory, for each thread that asks. (Sum of ids: %llu.)\n",
           sizeof timed, (unsigned long long)sum);
    return 1;
}

int main(int argc, char **argv)
{
    const char *only = "";
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "--small"))
            small = 1000;
        else
            only = argv[i];
    int good = 1;
    if (!*only || !strcmp(only, "speed"))
        good &= speed();
    if (!*only || !strcmp(only, "ranks"))
        good &= ranks();
    if (!*only || !strcmp(only, "coverage"))
        good &= coverage();
    if (!good)
        printf("\nWRONG\n");
    return good ? 0 : 1;
}
