/* SPDX-License-Identifier: Apache-2.0 */
/* Batches by a budget through the loader: the ids of a naive walk, for ranks, seeks and threads. */
#include "support/sample_set.h"
#include "support/test.h"

#include <penstock/budget.h>

#define N_SAMPLES 157
#define TIMEOUT 20000000000
#define TOTAL 90

static char path[4200];
static uint32_t costs[N_SAMPLES];
static uint32_t with_threads; /* 1 under TSan, to which the kernel's writes are invisible */
static const uint32_t edges[] = {10, 20, 30};
static struct pstk_budget budget = {.size = sizeof budget,
                                    .total = TOTAL,
                                    .costs = costs,
                                    .n_costs = N_SAMPLES,
                                    .edges = edges,
                                    .n_edges = 3};
static const struct pstk_output outputs[] = {{.field = "cls", .kind = PSTK_OUTPUT_SCALAR},
                                             {.field = "text", .kind = PSTK_OUTPUT_BYTES}};

/* The stream of an epoch, by a naive walk. */
struct stream {
    uint64_t ids[N_SAMPLES], ends[N_SAMPLES], n_batches;
};

static struct pstk_settings base(void)
{
    struct pstk_settings s;
    pstk_settings_init(&s, sizeof s);
    s.path = path;
    s.outputs = outputs;
    s.n_outputs = 2;
    s.seed = 5;
    s.n_threads = 3;
    s.last_batch = PSTK_LAST_SHORT;
    s.budget = &budget;
    if (with_threads)
        s.reading.reader = PSTK_READER_THREADS;
    return s;
}

static void emit(struct stream *stream, const uint64_t *list, uint64_t n)
{
    uint64_t end = stream->n_batches ? stream->ends[stream->n_batches - 1] : 0;
    memcpy(stream->ids + end, list, n * sizeof *list);
    stream->ends[stream->n_batches++] = end + n;
}

static void naive(const struct pstk_settings *s, uint64_t epoch, struct stream *stream)
{
    uint64_t order[N_SAMPLES], lists[4][N_SAMPLES], n[4] = {0}, sums[4] = {0}, firsts[4] = {0};
    const struct pstk_order_settings o = {.size = sizeof o,
                                          .order = s->order.kind,
                                          .n_samples = N_SAMPLES,
                                          .seed = s->seed,
                                          .epoch = epoch,
                                          .batch_size = N_SAMPLES,
                                          .world = 1};
    stream->n_batches = 0;
    CHECK_EQ(pstk_order_batch(&o, 0, order), N_SAMPLES);
    for (uint64_t k = 0; k < N_SAMPLES; k++) {
        const uint32_t cost = costs[order[k]];
        const int u = (cost >= 10) + (cost >= 20) + (cost >= 30);
        if (n[u] && sums[u] + cost > TOTAL) {
            emit(stream, lists[u], n[u]);
            n[u] = sums[u] = 0;
        }
        firsts[u] = n[u] ? firsts[u] : k;
        lists[u][n[u]++] = order[k];
        sums[u] += cost;
    }
    for (uint64_t k = 0; k < N_SAMPLES; k++)
        for (int u = 0; u < 4; u++)
            if (n[u] && firsts[u] == k)
                emit(stream, lists[u], n[u]);
}

/* A batch is that of the naive walk whose step begins with `batch`. */
static void check_batch(const struct pstk_loader *loader, const struct pstk_batch *b,
                        const struct pstk_settings *s, const struct stream *stream, uint64_t batch)
{
    const uint64_t own = batch + s->ranks.rank, next = batch + s->ranks.world;
    const uint64_t end = stream->ends[(next < stream->n_batches ? next : stream->n_batches) - 1];
    uint64_t first = 0, n = 0;
    if (own < stream->n_batches) {
        first = own ? stream->ends[own - 1] : 0;
        n = stream->ends[own] - first;
    }
    CHECK(b->n_rows == n && b->n_valid == n && b->tensors[0].shape[0] == (int64_t)n);
    CHECK_EQ(b->position, batch ? stream->ends[batch - 1] : 0);
    CHECK_EQ(b->next_position, end);
    CHECK_EQ(b->index, batch / s->ranks.world);
    CHECK_EQ(pstk_n_batches_left(loader, b->epoch, end),
             (stream->n_batches - batch - 1) / s->ranks.world);
    CHECK(memcmp(b->sample_ids, stream->ids + first, n * sizeof(uint64_t)) == 0);
    for (uint64_t i = 0; i < n; i++)
        CHECK_EQ(((const int64_t *)b->tensors[0].data)[i], (int64_t)stream->ids[first + i] * 3 - 7);
}

/* Batches from `batch` of an epoch on are those of the naive walk, until the end of the epoch. */
static int rest_equals(struct pstk_loader *loader, const struct pstk_settings *s, uint64_t epoch,
                       uint64_t batch)
{
    static struct stream stream;
    struct pstk_error err;
    struct pstk_batch *b;
    int r;
    pstk_error_init(&err, sizeof err);
    naive(s, epoch, &stream);
    for (; (r = pstk_next(loader, &b, NULL, TIMEOUT, &err)) == 1; batch += s->ranks.world) {
        if (batch >= stream.n_batches || b->epoch != epoch)
            return 0;
        check_batch(loader, b, s, &stream, batch);
        pstk_release(&b, NULL);
    }
    if (r < 0)
        printf("# %s\n", err.message);
    return r == 0 && batch >= stream.n_batches;
}

TEST(batches_are_those_of_a_naive_walk_for_all_ranks)
{
    for (uint32_t world = 1; world <= 5; world++)
        for (uint32_t rank = 0; rank < world; rank++) {
            struct pstk_settings s = base();
            struct pstk_loader *loader = NULL;
            s.ranks.world = world;
            s.ranks.rank = rank;
            s.order.kind = world == 3 ? PSTK_ORDER_SEQUENTIAL : PSTK_ORDER_FULL;
            s.memory.n_slots = 2 + world;
            CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
            for (uint64_t epoch = 0; epoch < 3; epoch++)
                CHECK(rest_equals(loader, &s, epoch, 0));
            CHECK(pstk_max_rows(loader) >= 3 && pstk_n_samples(loader) == N_SAMPLES);
            pstk_close(&loader);
        }
}

TEST(seeks_go_to_any_batch_of_any_epoch)
{
    static struct stream stream;
    struct pstk_settings s = base();
    struct pstk_loader *loader = NULL;
    s.ranks.world = 2;
    s.ranks.rank = 1;
    CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
    for (uint64_t i = 0; i < 40; i++) {
        const uint64_t epoch = i * 5 % 7;
        naive(&s, epoch, &stream);
        const uint64_t batch = i * 11 % stream.n_batches;
        CHECK_EQ(pstk_seek(loader, epoch, batch ? stream.ends[batch - 1] : 0, NULL), 0);
        CHECK(rest_equals(loader, &s, epoch, batch));
        if (i % 4 == 0)
            CHECK(rest_equals(loader, &s, epoch + 1, 0));
    }
    CHECK_EQ(pstk_seek(loader, 3, N_SAMPLES, NULL), 0); /* the end of an epoch */
    struct pstk_batch *b;
    CHECK_EQ(pstk_next(loader, &b, NULL, TIMEOUT, NULL), 0);
    CHECK(rest_equals(loader, &s, 4, 0));
    pstk_close(&loader);
}

/* Far more slots than an epoch has batches: readers are epochs ahead of the consumer. */
TEST(epochs_that_are_shorter_than_the_slots_come_whole)
{
    struct pstk_settings s = base();
    struct pstk_loader *loader = NULL;
    s.memory.n_slots = 300;
    s.n_threads = 4;
    CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
    for (uint64_t epoch = 0; epoch < 12; epoch++)
        CHECK(rest_equals(loader, &s, epoch, 0));
    pstk_close(&loader);
}

static void refused(struct pstk_settings *s, const char *words)
{
    struct pstk_loader *loader = NULL;
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    const int r = pstk_open(&loader, s, &err);
    CHECK(r < 0 && strstr(err.message, words));
    if (r == 0 || !strstr(err.message, words))
        printf("# %s: %s\n", words, err.message);
    pstk_close(&loader);
}

TEST(invalid_budgets_and_settings_that_conflict_with_one_are_refused)
{
    const struct pstk_batch_step step = {.from = 3, .rows = 2};
    struct pstk_settings s;
    struct pstk_loader *loader = NULL;
    struct pstk_error err;
#define REFUSED(words, ...)                                                                        \
    s = base();                                                                                    \
    __VA_ARGS__;                                                                                   \
    refused(&s, words)
    REFUSED("batch_size: value is 4", s.batch_size = 4);
    REFUSED("global_batch_size: value is 8", s.global_batch_size = 8);
    REFUSED("max_batch_size: value is 9", s.memory.max_batch_size = 9);
    REFUSED("n_batch_steps: value is 1", s.order.n_batch_steps = 1; s.order.batch_schedule = &step);
    REFUSED("windowed", s.order.kind = PSTK_ORDER_WINDOWED);
    REFUSED("so last_batch=drop leaves no batch", s.last_batch = PSTK_LAST_DROP;
            s.ranks.world = 1000);
    REFUSED("max_memory: value is 100", s.memory.max_memory = 100);
    REFUSED("position", s.order.position = N_SAMPLES + 1);
    struct pstk_budget bad;
#define BAD(words, member, value)                                                                  \
    bad = budget;                                                                                  \
    bad.member = value;                                                                            \
    REFUSED(words, s.budget = &bad)
    BAD("budget.size: value is 3", size, 3);
    BAD("budget.total: value is 0", total, 0);
    BAD("budget.total: value is 30, but", total, 30);
    BAD("budget.costs: value is NULL", costs, NULL);
    BAD("budget.n_costs: value is 3; must be 157", n_costs, 3);
    BAD("budget.n_edges: value is 1024", n_edges, 1024);
    BAD("budget.edges[1]", edges, ((const uint32_t[]){10, 10, 11}));
    BAD("budget.padded: value is 2", padded, 2);
    BAD("budget.too_long: value is 3", too_long, 3);
    BAD("budget.reserved", reserved, 1);
    BAD("budget.max_rows", max_rows, UINT32_MAX);
    s = base();
    CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
    pstk_error_init(&err, sizeof err);
    CHECK_EQ(pstk_set_batch_size(loader, 3, &err), PSTK_EINVAL);
    CHECK(strstr(err.message, "budget"));
    pstk_close(&loader);
}

int main(void)
{
    static const struct test_case cases[] = {
        CASE(batches_are_those_of_a_naive_walk_for_all_ranks),
        CASE(seeks_go_to_any_batch_of_any_epoch),
        CASE(epochs_that_are_shorter_than_the_slots_come_whole),
        CASE(invalid_budgets_and_settings_that_conflict_with_one_are_refused),
    };
    const char *reader = getenv("PENSTOCK_TEST_READER");
    with_threads = reader && strcmp(reader, "threads") == 0;
    for (uint32_t i = 0; i < N_SAMPLES; i++)
        costs[i] = 1 + i * 29 % 37;
    sample_set_path(path, sizeof path);
    sample_set_make(path, N_SAMPLES, 1u << 20, PSTK_CODEC_NONE);
    const int r = RUN_CASES(cases);
    sample_set_remove(path);
    return r;
}
