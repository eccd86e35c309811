/* SPDX-License-Identifier: Apache-2.0 */
/* Batches by a budget, beside a naive loop over lists of ids. */
#include "order/bucketing.h"
#include "support/test.h"

#include <stdlib.h>

#define MOST 60
#define N_CASES 4000

static uint64_t random_state = 7;

static uint64_t below(uint64_t n)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (random_state >> 33) % n;
}

/* A case, and the stream that the naive loop makes of it: ids, and where each batch ends. */
static uint32_t costs[MOST], edges[3];
static struct pstk_budget budget;
static struct pstk__pick_plan picks;
static uint64_t ids[MOST], ends[MOST], n_batches, n_stream;

/* The library's. */
static struct pstk__bucketing bucketing;
static struct pstk__open_batch open_batches[PSTK_MAX_BUCKETS];
static uint32_t sorted[PSTK_MAX_BUCKETS], positions[MOST], rows[4 * MOST];
static uint64_t begins[MOST + 1];
static struct pstk__bucketing_work work = {.open = open_batches, .sorted = sorted, .rows = rows};
static struct pstk__bucketed bucketed = {.begins = begins, .positions = positions};

static void draw_case(void)
{
    const uint64_t n = 1 + below(MOST), most = 1 + below(30);
    uint32_t edge = 0;
    budget = (struct pstk_budget){.size = sizeof budget,
                                  .total = 1 + below(60),
                                  .max_rows = below(3) ? 0 : 1 + (uint32_t)below(6),
                                  .costs = costs,
                                  .n_costs = n,
                                  .edges = below(2) ? edges : NULL,
                                  .padded = (uint32_t)below(2),
                                  .too_long = 1 + (uint32_t)below(2)};
    budget.n_edges = budget.edges ? (uint32_t)below(4) : 0;
    for (int i = 0; i < 3; i++)
        edges[i] = edge += 1 + (uint32_t)below(12);
    for (uint64_t i = 0; i < n; i++)
        costs[i] = (uint32_t)below(most + 1);
    picks = (struct pstk__pick_plan){
        .shape = {.kind = below(3) ? PSTK_ORDER_FULL : PSTK_ORDER_SEQUENTIAL, .interleave.n = n},
        .seed = below(100)};
}

/* The edges of buckets by the rule of the header. */
static uint64_t naive_bucket(uint32_t cost, uint64_t n)
{
    uint64_t bucket = 0, edge, least = UINT64_MAX, most = 0;
    if (budget.edges) {
        for (uint32_t i = 0; i < budget.n_edges; i++)
            bucket += edges[i] <= cost;
        return bucket;
    }
    for (uint64_t i = 0; i < n; i++)
        if (costs[i] <= budget.total) {
            least = costs[i] < least ? costs[i] : least;
            most = costs[i] > most ? costs[i] : most;
        }
    for (edge = least > 1 ? least : 1; edge <= most; bucket++) {
        if (cost < edge)
            break;
        edge = edge * 5 / 4 > edge ? edge * 5 / 4 : edge + 1;
    }
    return bucket;
}

static void naive_emit(const uint64_t *list, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        ids[n_stream++] = list[i];
    ends[n_batches++] = n_stream;
}

static void naive(uint64_t epoch)
{
    static uint64_t lists[MOST][MOST], lengths[MOST], firsts[MOST];
    const uint64_t n = budget.n_costs;
    struct pstk__picker picker;
    pstk__picker_init(&picker, &picks);
    n_batches = n_stream = 0;
    memset(lengths, 0, sizeof lengths);
    for (uint64_t k = 0; k < n; k++) {
        struct pstk__pick pick;
        pstk__picker_at(&picker, epoch, k, &pick);
        const uint32_t cost = costs[pick.id];
        if (cost > budget.total) {
            if (budget.too_long == PSTK_TOO_LONG_ALONE)
                naive_emit(&pick.id, 1);
            continue;
        }
        const uint64_t u = naive_bucket(cost, n);
        uint64_t sum = cost, longest = cost;
        for (uint64_t i = 0; i < lengths[u]; i++) {
            sum += costs[lists[u][i]];
            longest = costs[lists[u][i]] > longest ? costs[lists[u][i]] : longest;
        }
        if (lengths[u] && ((budget.padded ? longest * (lengths[u] + 1) : sum) > budget.total ||
                           (budget.max_rows && lengths[u] == budget.max_rows))) {
            naive_emit(lists[u], lengths[u]);
            lengths[u] = 0;
        }
        if (!lengths[u])
            firsts[u] = k;
        lists[u][lengths[u]++] = pick.id;
    }
    for (;;) {
        uint64_t oldest = MOST;
        for (uint64_t u = 0; u < MOST; u++)
            if (lengths[u] && (oldest == MOST || firsts[u] < firsts[oldest]))
                oldest = u;
        if (oldest == MOST)
            return;
        naive_emit(lists[oldest], lengths[oldest]);
        lengths[oldest] = 0;
    }
}

static int is_naive(struct pstk__picker *picker, uint64_t epoch)
{
    if (bucketed.n_batches != n_batches || bucketing.n_kept != n_stream)
        return 0;
    for (uint64_t i = 0; i < n_batches; i++)
        if (begins[i + 1] != ends[i] || ends[i] - begins[i] > bucketing.largest_batch)
            return 0;
    for (uint64_t i = 0; i < n_stream; i++) {
        struct pstk__pick pick;
        pstk__picker_at(picker, epoch, pstk__bucketed_position(&bucketing, &bucketed, i), &pick);
        if (pick.id != ids[i])
            return 0;
    }
    return 1;
}

/* Walk a case: 1; 0: it is refused, as it should be; -1: it is wrong. */
static int walk_case(struct pstk__picker *picker, uint64_t epoch)
{
    const uint64_t n = budget.n_costs;
    struct pstk_error err;
    uint64_t n_kept = 0, all = 0;
    pstk_error_init(&err, sizeof err);
    for (uint64_t i = 0; i < n; i++)
        if (costs[i] <= budget.total) {
            n_kept++;
            all += costs[i];
        }
    const int r = pstk__bucketing_init(&bucketing, &picks, n, n, &budget, &err);
    const int is_refused =
        (n_kept && !all && !budget.max_rows) || (!n_kept && budget.too_long == PSTK_TOO_LONG_DROP);
    if (r != (is_refused ? PSTK_EINVAL : 0) || bucketing.max_batches > MOST ||
        bucketing.n_room > 4 * MOST)
        return -1;
    if (r < 0)
        return 0;
    pstk__picker_init(picker, &picks);
    pstk__bucketing_walk(&bucketing, picker, epoch, &work, &bucketed);
    naive(epoch);
    return 1;
}

TEST(streams_are_those_of_a_naive_loop)
{
    struct pstk__picker picker;
    int n_checked = 0;
    for (int i = 0; i < N_CASES; i++) {
        draw_case();
        const int r = walk_case(&picker, (uint64_t)i % 3);
        CHECK(r >= 0);
        if (r == 0)
            continue;
        CHECK(bucketed.n_batches <= bucketing.max_batches);
        CHECK(is_naive(&picker, (uint64_t)i % 3));
        n_checked++;
    }
    CHECK(n_checked > N_CASES / 2);
}

/* The steps of every rank from a place on, each row counted. */
static void count_steps(struct pstk__partition *partition, uint64_t place, uint32_t *seen)
{
    uint64_t left = pstk__bucketed_n_steps(&bucketing, &bucketed, partition, place);
    memset(seen, 0, MOST * sizeof *seen);
    for (; left > 0; left--) {
        struct pstk__cut cut = {0};
        uint64_t next = 0;
        for (uint32_t rank = 0; rank < partition->world; rank++) {
            partition->rank = rank;
            CHECK_EQ(pstk__bucketed_n_steps(&bucketing, &bucketed, partition, place), left);
            pstk__bucketed_cut(&bucketing, &bucketed, partition, place, &cut);
            CHECK(rank == 0 || cut.next_position == next);
            CHECK_EQ(cut.is_last, left == 1);
            next = cut.next_position;
            for (uint32_t i = 0; i < cut.n_rows; i++)
                seen[cut.first + i]++;
        }
        place = next;
    }
    CHECK_EQ(pstk__bucketed_n_steps(&bucketing, &bucketed, partition, place), 0);
}

TEST(steps_of_any_number_of_ranks_have_every_sample_from_any_place_on)
{
    uint32_t seen[MOST];
    struct pstk__picker picker;
    for (int i = 0; i < N_CASES / 4; i++) {
        draw_case();
        if (walk_case(&picker, 1) < 1)
            continue;
        const uint64_t from = below(n_stream + 1), world = 1 + below(5);
        struct pstk__partition partition = {
            .n = n_stream, .world = world, .last_batch = (uint32_t)below(3)};
        count_steps(&partition, from, seen);
        uint64_t n_left = 0;
        for (uint64_t k = 0; k < n_batches; k++)
            n_left += ends[k] > from;
        const int is_first = n_left == n_batches;
        for (uint64_t k = 0; k < n_stream; k++) {
            uint64_t batch = 0; /* counted from the step's first */
            while (ends[batch] <= k)
                batch++;
            batch -= n_batches - n_left;
            if (partition.last_batch == PSTK_LAST_SHORT)
                CHECK_EQ(seen[k], k >= from);
            else if (partition.last_batch == PSTK_LAST_PAD)
                CHECK(seen[k] >= (k >= from));
            else if (k < from || n_left >= world || !is_first)
                CHECK_EQ(seen[k], k >= from && batch < n_left / world * world);
            else
                CHECK_EQ(seen[k], 1); /* the only step of the epoch is short */
        }
    }
}

TEST(samples_above_the_budget_are_named)
{
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    budget = (struct pstk_budget){.size = sizeof budget, .total = 9, .costs = costs, .n_costs = 5};
    picks = (struct pstk__pick_plan){.shape.interleave.n = 5};
    memcpy(costs, (uint32_t[]){3, 9, 12, 4, 10}, 20);
    CHECK_EQ(pstk__bucketing_init(&bucketing, &picks, 5, 5, &budget, &err), PSTK_EINVAL);
    CHECK(strstr(err.message,
                 "value is 9, but 2 of 5 samples cost more, the first of them sample 2, "
                 "which costs 12"));
    budget.too_long = PSTK_TOO_LONG_DROP;
    CHECK_EQ(pstk__bucketing_init(&bucketing, &picks, 5, 5, &budget, &err), 0);
    CHECK_EQ(bucketing.n_kept, 3);
}

TEST(digests_differ_where_budgets_do)
{
    uint64_t one[2], two[2];
    budget = (struct pstk_budget){.size = sizeof budget, .total = 9, .costs = costs, .n_costs = 5};
    CHECK_EQ(pstk_budget_digest(&budget, one), 0);
    budget.reserved = 1;
    CHECK_EQ(pstk_budget_digest(&budget, one), PSTK_ENOTSUP);
    budget.reserved = 0;
    for (int i = 0; i < 6; i++) {
        struct pstk_budget other = budget;
        uint32_t changed[5];
        memcpy(changed, costs, sizeof changed);
        other.costs = changed;
        other.total += i == 0;
        other.max_rows += i == 1;
        other.padded += i == 2;
        other.too_long += i == 3;
        other.edges = i == 4 ? edges : NULL;
        changed[4] += i == 5;
        CHECK_EQ(pstk_budget_digest(&other, two), 0);
        CHECK(memcmp(one, two, sizeof one) != 0);
    }
}

int main(void)
{
    static const struct test_case cases[] = {
        CASE(streams_are_those_of_a_naive_loop),
        CASE(steps_of_any_number_of_ranks_have_every_sample_from_any_place_on),
        CASE(samples_above_the_budget_are_named),
        CASE(digests_differ_where_budgets_do),
    };
    return RUN_CASES(cases);
}
