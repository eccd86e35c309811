/* SPDX-License-Identifier: Apache-2.0 */
#include "image/planes/choose.h"

#include <string.h>

/*
 * Costs are bits times 256. An image has at most 2^32 symbols of at most 32 bits, and as many of
 * 2^30 (PSTK__SET_ABSENT), so costs are below 2^63. A context with symbols that the set lacks never
 * takes the set's table: an own table costs at most 32 bits a symbol and 400 bytes more than the
 * set's, which is less than one PSTK__SET_ABSENT.
 */

/* Neighbouring contexts that share a table, and its cost as own table and as the set's. */
struct group {
    uint32_t first; /* first context */
    uint64_t own, given;
    uint64_t next_own, next_given; /* costs together with the next group */
};

struct joiner {
    const struct pstk__planes_set *set; /* NULL: none */
    uint32_t (*count)[256];             /* by group */
    uint32_t n;
    struct group groups[PSTK__N_CONTEXTS];
};

static uint64_t lower(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t cost_given(const uint32_t count[256], const uint32_t cost[256])
{
    uint64_t sum = 0;
    for (uint32_t s = 0; s < 256; s++)
        sum += (uint64_t)count[s] * cost[s];
    return sum;
}

/* Return the cost of a group's symbols with the set's table of a context. */
static uint64_t given_by(const struct joiner *joiner, uint32_t i, uint32_t context)
{
    return joiner->set
               ? cost_given(joiner->count[i], joiner->set->cost[joiner->set->table[context]])
               : UINT64_MAX / 4;
}

static uint64_t cost_of_both(const uint32_t a[256], const uint32_t b[256])
{
    uint32_t sum[256];
    for (uint32_t s = 0; s < 256; s++)
        sum[s] = a[s] + b[s];
    return pstk__model_cost(sum);
}

/* Compute the costs of group i and the next together. */
static void look_ahead(struct joiner *joiner, uint32_t i)
{
    struct group *group = &joiner->groups[i];
    const uint8_t *table = joiner->set ? joiner->set->table : NULL;
    if (i + 1 >= joiner->n)
        return;
    group->next_own = cost_of_both(joiner->count[i], joiner->count[i + 1]);
    group->next_given = group->given + (table && table[group->first] == table[group[1].first]
                                            ? group[1].given
                                            : given_by(joiner, i + 1, group->first));
}

/* Join group i and the next one. */
static void join(struct joiner *joiner, uint32_t i)
{
    struct group *group = &joiner->groups[i];
    for (uint32_t s = 0; s < 256; s++)
        joiner->count[i][s] += joiner->count[i + 1][s];
    group->own = group->next_own;
    group->given = group->next_given;
    joiner->n--;
    for (uint32_t k = i + 1; k < joiner->n; k++) {
        memcpy(joiner->count[k], joiner->count[k + 1], sizeof joiner->count[k]);
        joiner->groups[k] = joiner->groups[k + 1];
    }
    if (i > 0)
        look_ahead(joiner, i - 1);
    look_ahead(joiner, i);
}

/* Return the cost that joining group i to the next saves. */
static int64_t saving(const struct joiner *joiner, uint32_t i)
{
    const struct group *g = &joiner->groups[i];
    return (int64_t)(lower(g->own, g->given) + lower(g[1].own, g[1].given)) -
           (int64_t)lower(g->next_own, g->next_given);
}

/* Return the group that gains most when joined to the next. */
static uint32_t best_join(const struct joiner *joiner)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i + 1 < joiner->n; i++)
        if (saving(joiner, i) > saving(joiner, best))
            best = i;
    return best;
}

/* Join neighbouring contexts as long as that saves, because tables cost bytes and time. While there
 * are too many, join further at the least cost. A context without symbols joins at no cost. */
static void join_all(struct joiner *joiner)
{
    for (uint32_t i = 0; i < joiner->n; i++)
        look_ahead(joiner, i);
    while (joiner->n > 1) {
        const uint32_t i = best_join(joiner);
        if (joiner->n <= PSTK__PLANES_MAX_TABLES && saving(joiner, i) < 0)
            break;
        join(joiner, i);
    }
}

/* Return the number of the set with which the image costs least, each context by itself; 0: none.
 * Sets given[c] to the costs with it. */
static uint32_t choose_set(const uint32_t count[PSTK__N_CONTEXTS][256],
                           const struct pstk__planes_set *sets,
                           const uint64_t own[PSTK__N_CONTEXTS], uint64_t given[PSTK__N_CONTEXTS])
{
    uint64_t least = UINT64_MAX;
    uint32_t best = 0;
    for (uint32_t k = 0; sets && k < PSTK__PLANES_N_SETS; k++) {
        uint64_t sum = 0, by_context[PSTK__N_CONTEXTS];
        for (uint32_t c = 0; c < PSTK__N_CONTEXTS; c++) {
            by_context[c] = own[c] ? cost_given(count[c], sets[k].cost[sets[k].table[c]]) : 0;
            sum += lower(own[c], by_context[c]);
        }
        if (sum < least) {
            least = sum;
            best = k + 1;
            memcpy(given, by_context, sizeof by_context);
        }
    }
    return best;
}

/* Share the set's tables among contexts as the set does. */
static void take_set(struct pstk__planes_choice *choice, const struct pstk__planes_set *set)
{
    memcpy(choice->table, set->table, sizeof choice->table);
    choice->n = set->table[PSTK__N_CONTEXTS - 1] + 1u;
    for (uint32_t c = PSTK__N_CONTEXTS; c-- > 0;)
        choice->first[set->table[c]] = (uint8_t)c;
}

static void take_groups(struct pstk__planes_choice *choice, const struct joiner *joiner)
{
    choice->n = joiner->n;
    for (uint32_t i = 0; i < joiner->n; i++) {
        const struct group *g = &joiner->groups[i];
        const uint32_t end = i + 1 < joiner->n ? g[1].first : PSTK__N_CONTEXTS;
        choice->first[i] = (uint8_t)g->first;
        choice->is_own[i] = !joiner->set || g->own < g->given;
        choice->n_own += choice->is_own[i];
        memset(choice->table + g->first, (int)i, end - g->first);
    }
}

void pstk__planes_choose(struct pstk__planes_choice *choice,
                         const uint32_t count[PSTK__N_CONTEXTS][256],
                         const struct pstk__planes_set *sets,
                         uint32_t joined[PSTK__N_CONTEXTS][256])
{
    uint64_t own[PSTK__N_CONTEXTS], given[PSTK__N_CONTEXTS];
    struct joiner joiner = {.count = joined, .n = PSTK__N_CONTEXTS};
    *choice = (struct pstk__planes_choice){.set = 0};
    for (uint32_t c = 0; c < PSTK__N_CONTEXTS; c++)
        own[c] = pstk__model_cost(count[c]);
    choice->set = choose_set(count, sets, own, given);
    joiner.set = choice->set ? &sets[choice->set - 1] : NULL;
    memcpy(joined, count, PSTK__N_CONTEXTS * sizeof *joined);
    for (uint32_t c = 0; c < PSTK__N_CONTEXTS; c++)
        joiner.groups[c] = (struct group){
            .first = c, .own = own[c], .given = choice->set ? given[c] : UINT64_MAX / 4};
    join_all(&joiner);
    take_groups(choice, &joiner);
    if (choice->n_own == 0)
        take_set(choice, joiner.set);
    if (choice->n_own == choice->n)
        choice->set = 0;
}
