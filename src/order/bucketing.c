/* SPDX-License-Identifier: Apache-2.0 */
#include "order/bucketing.h"

#include "base/error.h"
#include "base/random.h"

#include <stddef.h>
#include <string.h>

/* ---- what is fixed --------------------------------------------------------------------------- */

int pstk__budget_check(const struct pstk_budget *budget, struct pstk_error *err)
{
    if (budget->size != sizeof *budget)
        return pstk__fail_setting(err, "budget.size", budget->size, "%zu, sizeof *budget",
                                  sizeof *budget);
    if (budget->total == 0 || budget->total > PSTK__BUDGET_MAX)
        return pstk__fail_setting(err, "budget.total", budget->total, "from 1 to 2^62");
    if (budget->max_rows > PSTK__BUDGET_ROWS)
        return pstk__fail_setting(err, "budget.max_rows", budget->max_rows, "from 0 to 2^30");
    if (!budget->costs)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "budget.costs: value is NULL; must be n_costs costs");
    if (budget->n_edges >= PSTK_MAX_BUCKETS)
        return pstk__fail_setting(err, "budget.n_edges", budget->n_edges, "below %d",
                                  PSTK_MAX_BUCKETS);
    if (budget->n_edges && !budget->edges)
        return pstk__fail_setting(err, "budget.n_edges", budget->n_edges, "0 where edges is NULL");
    for (uint32_t i = 1; i < budget->n_edges; i++)
        if (budget->edges[i] <= budget->edges[i - 1])
            return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                              "budget.edges[%u]: value is %u; must be above %u, the edge before it",
                              i, budget->edges[i], budget->edges[i - 1]);
    if (budget->padded > 1)
        return pstk__fail_setting(err, "budget.padded", budget->padded, "0 or 1");
    if (budget->too_long > PSTK_TOO_LONG_ALONE)
        return pstk__fail_setting(err, "budget.too_long", budget->too_long, "from 0 to %d",
                                  PSTK_TOO_LONG_ALONE);
    if (budget->reserved)
        return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                          "budget.reserved: not supported in this version; must be 0");
    return 0;
}

static void absorb(uint64_t *digest, uint64_t word)
{
    digest[0] = pstk__mix64((digest[0] ^ word) + 0x9E3779B97F4A7C15u);
    digest[1] = pstk__mix64((digest[1] + digest[0]) ^ (word << 32 | word >> 32));
}

int pstk_budget_digest(const struct pstk_budget *budget, uint64_t *digest)
{
    if (!budget || !digest || budget->size < sizeof budget->size)
        return PSTK_EINVAL;
    const int r = pstk__budget_check(budget, NULL);
    if (r < 0)
        return r;
    digest[0] = digest[1] = PSTK_BUDGET_VERSION;
    absorb(digest, budget->total);
    absorb(digest, (uint64_t)budget->max_rows << 32 | budget->padded << 8 | budget->too_long);
    absorb(digest, (uint64_t)(budget->edges != NULL) << 32 | budget->n_edges);
    for (uint32_t i = 0; i < budget->n_edges; i++)
        absorb(digest, budget->edges[i]);
    absorb(digest, budget->n_costs);
    for (uint64_t i = 0; i < budget->n_costs; i += 2)
        absorb(digest, (uint64_t)budget->costs[i] << 32 |
                           (i + 1 < budget->n_costs ? budget->costs[i + 1] : 0));
    return 0;
}

int pstk__bucketing_is_wide(const struct pstk__bucketing *bucketing)
{
    return bucketing->n > (uint64_t)UINT32_MAX + 1;
}

uint32_t pstk__bucketing_of(const struct pstk__bucketing *bucketing, uint32_t cost)
{
    const uint32_t *at = bucketing->edges;
    for (uint32_t n = bucketing->n_buckets - 1; n > 0;) { /* edges below *at are <= cost */
        const uint32_t half = n - n / 2;
        at += at[half - 1] <= cost ? half : 0;
        n /= 2;
    }
    return (uint32_t)(at - bucketing->edges);
}

/* The number and the range of the costs of a bucket, or of all samples. */
struct span {
    uint64_t n;
    uint32_t least, most;
};

static void span_add(struct span *span, uint32_t cost)
{
    span->least = span->n == 0 || cost < span->least ? cost : span->least;
    span->most = cost > span->most ? cost : span->most;
    span->n++;
}

/* Set the default buckets: the costs in one differ by a quarter at most. */
static void default_edges(struct pstk__bucketing *bucketing, const struct span *all)
{
    uint64_t edge = all->least ? all->least : 1;
    bucketing->n_buckets = 1;
    while (edge <= all->most && bucketing->n_buckets < PSTK_MAX_BUCKETS) {
        bucketing->edges[bucketing->n_buckets++ - 1] = (uint32_t)edge;
        edge += edge / 4 ? edge / 4 : 1;
    }
}

static uint64_t min_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Set the largest number of rows of each bucket's batches, and of batches. A complete batch has at
 * least as many rows as fit if each has the largest cost of its bucket. */
static void measure(struct pstk__bucketing *bucketing, const struct span *spans, uint64_t n_alone)
{
    const int repeats = bucketing->picks->alias != NULL; /* any sample may come at each draw */
    uint64_t fewest = bucketing->n, n_batches = n_alone;
    bucketing->n_room = 0;
    bucketing->largest_batch = 1;
    for (uint32_t i = 0; i < bucketing->n_buckets; i++) {
        const struct span *span = &spans[i];
        const uint64_t n = !span->n ? 0 : repeats ? bucketing->n : span->n;
        uint64_t rows = min_of(n, bucketing->max_rows);
        if (span->least)
            rows = min_of(rows, bucketing->total / span->least);
        bucketing->rooms[i] = rows;
        bucketing->n_room += rows;
        bucketing->largest_batch =
            rows > bucketing->largest_batch ? rows : bucketing->largest_batch;
        if (!n)
            continue;
        const uint64_t complete = span->most ? min_of(bucketing->total / span->most, rows) : rows;
        fewest = min_of(fewest, complete);
        n_batches += n / complete + 1;
    }
    if (repeats)
        n_batches = n_alone ? bucketing->n : bucketing->n / fewest + bucketing->n_buckets;
    bucketing->max_batches = min_of(n_batches, bucketing->n);
}

static int refuse_long(uint64_t n_long, uint64_t n, uint64_t id, const struct pstk__bucketing *b,
                       struct pstk_error *err)
{
    return pstk__fail(
        err, PSTK_EINVAL, PSTK_STAGE_OPEN,
        "budget.total: value is %llu, but %llu of %llu samples cost more, the first of "
        "them sample %llu, which costs %u; must be at least that of every sample "
        "(raise it, or set too_long to drop or alone)",
        (unsigned long long)b->total, (unsigned long long)n_long, (unsigned long long)n,
        (unsigned long long)id, b->costs[id]);
}

/* Check the costs of all samples. */
static int check(const struct pstk__bucketing *bucketing, const struct span *all, uint64_t n_long,
                 uint64_t n_members, uint64_t first_long, const struct pstk_budget *budget,
                 struct pstk_error *err)
{
    if (n_long && bucketing->too_long == PSTK_TOO_LONG_ERROR)
        return refuse_long(n_long, n_members, first_long, bucketing, err);
    if (n_long && bucketing->too_long == PSTK_TOO_LONG_DROP && bucketing->picks->alias)
        return pstk__fail_setting(err, "budget.too_long", bucketing->too_long,
                                  "%d (error) or %d (alone) with weights, which draw samples at "
                                  "random",
                                  PSTK_TOO_LONG_ERROR, PSTK_TOO_LONG_ALONE);
    if (all->n == 0 && bucketing->too_long == PSTK_TOO_LONG_DROP)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "budget.total: value is %llu; must be at least the cost of a sample, but "
                          "all %llu cost more, so too_long=drop leaves none",
                          (unsigned long long)bucketing->total, (unsigned long long)n_members);
    if (all->n && all->most == 0 && !budget->max_rows)
        return pstk__fail(
            err, PSTK_EINVAL, PSTK_STAGE_OPEN,
            "budget.costs: all %llu are 0, so batches have no end; must be above 0 for "
            "some samples, or max_rows must be set",
            (unsigned long long)all->n);
    return 0;
}

int pstk__bucketing_init(struct pstk__bucketing *bucketing, const struct pstk__pick_plan *picks,
                         uint64_t n_samples, uint64_t n, const struct pstk_budget *budget,
                         struct pstk_error *err)
{
    const uint64_t n_members = picks->subset ? picks->subset->n : n_samples;
    uint64_t n_long = 0, first_long = 0;
    struct span all = {0}, spans[PSTK_MAX_BUCKETS] = {{0}};
    memset(bucketing, 0, sizeof *bucketing);
    bucketing->picks = picks;
    bucketing->costs = budget->costs;
    bucketing->n = n;
    bucketing->total = budget->total;
    bucketing->max_rows = budget->max_rows ? budget->max_rows : PSTK__BUDGET_ROWS;
    bucketing->padded = budget->padded;
    bucketing->too_long = budget->too_long;
    for (uint64_t i = 0; i < n_members; i++) {
        const uint64_t id = pstk__pick_id(picks, i);
        if (budget->costs[id] <= budget->total) {
            span_add(&all, budget->costs[id]);
            continue;
        }
        first_long = n_long++ && first_long < id ? first_long : id;
    }
    const int r = check(bucketing, &all, n_long, n_members, first_long, budget, err);
    if (r < 0)
        return r;
    bucketing->n_kept = budget->too_long == PSTK_TOO_LONG_DROP ? n - n_long : n;
    bucketing->n_buckets = budget->n_edges + 1;
    if (budget->n_edges)
        memcpy(bucketing->edges, budget->edges, budget->n_edges * sizeof *budget->edges);
    if (!budget->edges)
        default_edges(bucketing, &all);
    for (uint64_t i = 0; i < n_members; i++) {
        const uint32_t cost = budget->costs[pstk__pick_id(picks, i)];
        if (cost <= budget->total)
            span_add(&spans[pstk__bucketing_of(bucketing, cost)], cost);
    }
    measure(bucketing, spans, budget->too_long == PSTK_TOO_LONG_ALONE ? n_long : 0);
    return 0;
}

/* ---- the walk -------------------------------------------------------------------------------- */

/* The state of a walk. */
struct walk {
    const struct pstk__bucketing *bucketing;
    struct pstk__bucketing_work *work;
    struct pstk__bucketed *out;
    uint64_t end; /* position in the stream after the last complete batch */
    int is_wide;
};

static void put(void *array, int is_wide, uint64_t at, uint64_t position)
{
    if (is_wide)
        ((uint64_t *)array)[at] = position;
    else
        ((uint32_t *)array)[at] = (uint32_t)position;
}

/* Complete the batch that ends at position `end` of the stream. */
static void complete(struct walk *walk, uint64_t end)
{
    walk->end = end;
    walk->out->begins[++walk->out->n_batches] = end;
}

static void emit(struct walk *walk, struct pstk__open_batch *open)
{
    const size_t size = walk->is_wide ? sizeof(uint64_t) : sizeof(uint32_t);
    memcpy((uint8_t *)walk->out->positions + walk->end * size,
           (const uint8_t *)walk->work->rows + open->room * size, open->n_rows * size);
    complete(walk, walk->end + open->n_rows);
    open->n_rows = open->sum = open->longest = 0;
}

static void add(struct walk *walk, struct pstk__open_batch *open, uint64_t k, uint32_t cost)
{
    const struct pstk__bucketing *bucketing = walk->bucketing;
    const uint64_t longest = cost > open->longest ? cost : open->longest;
    const uint64_t all = bucketing->padded ? (open->n_rows + 1) * longest : open->sum + cost;
    if (open->n_rows && (all > bucketing->total || open->n_rows == bucketing->max_rows))
        emit(walk, open);
    if (open->n_rows == 0)
        open->first = k;
    put(walk->work->rows, walk->is_wide, open->room + open->n_rows++, k);
    open->sum += cost;
    open->longest = cost > open->longest ? cost : open->longest;
}

/* Emit the open batches, in the order of their first samples. */
static void flush(struct walk *walk)
{
    struct pstk__open_batch *open = walk->work->open;
    uint32_t *sorted = walk->work->sorted, n = 0;
    for (uint32_t i = 0; i < walk->bucketing->n_buckets; i++) {
        uint32_t at = n;
        if (!open[i].n_rows)
            continue;
        for (; at > 0 && open[sorted[at - 1]].first > open[i].first; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = i;
        n++;
    }
    for (uint32_t i = 0; i < n; i++)
        emit(walk, &open[sorted[i]]);
}

void pstk__bucketing_walk(const struct pstk__bucketing *bucketing, struct pstk__picker *picker,
                          uint64_t epoch, struct pstk__bucketing_work *work,
                          struct pstk__bucketed *out)
{
    struct walk walk = {.bucketing = bucketing,
                        .work = work,
                        .out = out,
                        .is_wide = pstk__bucketing_is_wide(bucketing)};
    uint64_t room = 0;
    for (uint32_t i = 0; i < bucketing->n_buckets; i++) {
        work->open[i] = (struct pstk__open_batch){.room = room};
        room += bucketing->rooms[i];
    }
    out->n_batches = out->begins[0] = 0;
    for (uint64_t k = 0; k < bucketing->n; k++) {
        struct pstk__pick pick;
        pstk__picker_at(picker, epoch, k, &pick);
        const uint32_t cost = bucketing->costs[pick.id];
        if (cost <= bucketing->total) {
            add(&walk, &work->open[pstk__bucketing_of(bucketing, cost)], k, cost);
        } else if (bucketing->too_long == PSTK_TOO_LONG_ALONE) {
            put(out->positions, walk.is_wide, walk.end, k);
            complete(&walk, walk.end + 1);
        }
    }
    flush(&walk);
}

/* ---- the stream ------------------------------------------------------------------------------ */

/* Return the batch that holds a position of the stream below n_kept. */
static uint64_t batch_at(const struct pstk__bucketed *bucketed, uint64_t place)
{
    uint64_t low = 0, high = bucketed->n_batches; /* begins[low] <= place < begins[high] */
    while (high - low > 1) {
        const uint64_t middle = low + (high - low) / 2;
        if (bucketed->begins[middle] <= place)
            low = middle;
        else
            high = middle;
    }
    return low;
}

uint64_t pstk__bucketed_n_steps(const struct pstk__bucketing *bucketing,
                                const struct pstk__bucketed *bucketed,
                                const struct pstk__partition *partition, uint64_t place)
{
    if (place >= bucketing->n_kept)
        return 0;
    const uint64_t batch = batch_at(bucketed, place), left = bucketed->n_batches - batch;
    const uint64_t whole = left / partition->world;
    if (partition->last_batch == PSTK_LAST_DROP)
        return whole == 0 && batch == 0 ? 1 : whole;
    return whole + (left % partition->world != 0);
}

void pstk__bucketed_cut(const struct pstk__bucketing *bucketing,
                        const struct pstk__bucketed *bucketed,
                        const struct pstk__partition *partition, uint64_t place,
                        struct pstk__cut *out)
{
    const uint64_t n = bucketed->n_batches, batch = batch_at(bucketed, place);
    uint64_t own = batch + partition->rank, next = batch + partition->world;
    *out = (struct pstk__cut){.index = batch / partition->world, .first = bucketing->n_kept};
    out->next_position = bucketed->begins[next < n ? next : n];
    out->is_last = pstk__bucketed_n_steps(bucketing, bucketed, partition, out->next_position) == 0;
    if (own >= n && partition->last_batch == PSTK_LAST_PAD)
        own %= n;
    if (own >= n)
        return;
    out->first = partition->rank == 0 ? place : bucketed->begins[own];
    out->n_rows = (uint32_t)(bucketed->begins[own + 1] - out->first);
}

uint64_t pstk__bucketed_position(const struct pstk__bucketing *bucketing,
                                 const struct pstk__bucketed *bucketed, uint64_t place)
{
    return pstk__bucketing_is_wide(bucketing) ? ((const uint64_t *)bucketed->positions)[place]
                                              : ((const uint32_t *)bucketed->positions)[place];
}
