/* SPDX-License-Identifier: Apache-2.0 */
/* Choose the launcher that gives this process its ranks: pstk_find_ranks. */
#include <penstock/ranks.h>

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <penstock/penstock.h>

#include "base/error.h"
#include "machine/bound.h"
#include "machine/cgroup.h"
#include "machine/launcher.h"

#define SOURCE_SIZE sizeof((struct pstk_found_ranks *)0)->source

#define MAX_SAID (PSTK__N_LAUNCHERS + PSTK_MAX_KNOWN_RANKS)
#define TEXT_SIZE 100 /* bytes: names of launchers and variables are short */

/* Return the search without an error struct, so that it writes no message. */
static struct pstk__search quietly(const struct pstk__search *search)
{
    struct pstk__search quiet = *search;
    quiet.err = NULL;
    return quiet;
}

/* Fail when a launcher that set one variable contradicts the launcher that is used. */
static int check_half(const struct pstk__search *search, int source,
                      const struct pstk__said *winner)
{
    struct pstk__half half;
    const int r = pstk__launcher_get_half(search, source, &half);
    if (r <= 0)
        return r;
    const int is_rank = half.name == pstk__launchers[source].rank;
    const uint32_t other = is_rank ? winner->rank : winner->world;
    if (half.value == other)
        return 0;
    return pstk__launcher_fail(
        search, "%s is %u%s%s%s, but %s reports %s %u; must agree (unset %s, or give %s)",
        half.name, half.value, half.missing ? " and " : "", half.missing ? half.missing : "",
        half.missing ? " is not set" : "", winner->name, is_rank ? "rank" : "a size of", other,
        half.name, search->query.numbers);
}

/* Fail in a SLURM batch script that started this process directly instead of by srun: the process
 * would get all samples alone. */
static int check_started(const struct pstk__search *search)
{
    uint32_t rank, n_tasks;
    const int r = pstk__launcher_is_unstarted(search, &rank, &n_tasks);
    if (r <= 0)
        return r;
    return pstk__launcher_fail(
        search,
        "%s is %u and SLURM_NTASKS is %u, but %s is not set: this process is the job's "
        "batch script, not one of %u tasks (start it with srun and give %s; or give "
        "%s if it should get all samples alone)",
        pstk__launchers[PSTK__SRUN].rank, rank, n_tasks, pstk__launchers[PSTK__SRUN].world, n_tasks,
        search->query.automatic, search->query.alone);
}

/* Fail if launchers have set some variables, but none has set both numbers. */
static int refuse_half(const struct pstk__search *search)
{
    struct pstk__half half;
    uint32_t local_rank = 0;
    for (int source = 0; source < PSTK__N_LAUNCHERS; source++) {
        const int r = pstk__launcher_get_half(search, source, &half);
        if (r < 0)
            return -1;
        if (r)
            return pstk__launcher_fail(
                search,
                "%s is %u, but %s%s; this process's part follows from both (set it as the "
                "launcher does, or give %s)",
                half.name, half.value,
                half.missing ? half.missing : "the number of processes is in no variable",
                half.missing ? " is not set" : "",
                source == PSTK__KUBERNETES ? search->query.indexed : search->query.numbers);
    }
    if (pstk__launcher_number(search, "LOCAL_RANK", &local_rank) < 0)
        return -1;
    if (local_rank)
        return pstk__launcher_fail(
            search,
            "LOCAL_RANK is %u, but RANK and WORLD_SIZE are not set; this process's part "
            "follows from them (set it as the launcher does, or give %s)",
            local_rank, search->query.numbers);
    return check_started(search);
}

/* Read the ranks that libraries of one level report; copy_known has checked them. Returns their
 * number. */
static int known_at(const struct pstk__search *search, int level, struct pstk__said said[MAX_SAID])
{
    int n = 0;
    for (uint32_t i = 0; i < search->query.n_known; i++) {
        const struct pstk_known_ranks *known = &search->known[i];
        if ((known->by == PSTK_KNOWN_BY_LAUNCHER) == level)
            said[n++] = (struct pstk__said){known->source,     PSTK__N_LAUNCHERS, level == 1,
                                            known->rank,       known->world,      known->local_rank,
                                            known->local_world};
    }
    return n;
}

/* Read the ranks that libraries and launchers of one level report, if they report both numbers.
 * Returns how many, or -1 with a message. */
static int at_level(const struct pstk__search *search, int level, struct pstk__said said[MAX_SAID])
{
    int n = known_at(search, level, said);
    for (int source = 0; source < PSTK__N_LAUNCHERS; source++) {
        const int r = pstk__launchers[source].level == level
                          ? pstk__launcher_get(search, source, &said[n])
                          : 0;
        if (r < 0)
            return -1;
        n += r;
    }
    return n;
}

/* Collect the launchers from `level` on that report the same ranks as the one that is used, without
 * messages about wrong ones. Returns how many. */
static int outer(const struct pstk__search *search, int level, const struct pstk__said *winner,
                 struct pstk__said same[MAX_SAID])
{
    const struct pstk__search quiet = quietly(search);
    struct pstk__said said[MAX_SAID];
    int n_same = 0;
    for (; level <= PSTK__LAUNCHER_LEVELS; level++) {
        const int n = at_level(&quiet, level, said);
        for (int i = 0; i < n; i++)
            if (said[i].rank == winner->rank && said[i].world == winner->world)
                same[n_same++] = said[i];
    }
    return n_same;
}

/* Return 1 when RANK and WORLD_SIZE stand alone: torchrun sets more. */
static int is_bare(const struct pstk__search *search)
{
    return !pstk__launcher_variable(search, "LOCAL_RANK") &&
           !pstk__launcher_variable(search, "LOCAL_WORLD_SIZE") &&
           !pstk__launcher_variable(search, "GROUP_RANK");
}

/* Return 1, and fill in `text`, when an outer launcher reports that this is one of several
 * processes. The index of a pod does not show it: pods of a Job may be independent programs. */
static int says_several(const struct pstk__search *search, int source, char text[TEXT_SIZE])
{
    struct pstk__said said;
    struct pstk__half half;
    if (pstk__launcher_get(search, source, &said) > 0) {
        snprintf(text, TEXT_SIZE, "%s reports rank %u of %u", said.name, said.rank, said.world);
        return said.world > 1;
    }
    if (source == PSTK__KUBERNETES || pstk__launcher_get_half(search, source, &half) <= 0)
        return 0;
    snprintf(text, TEXT_SIZE, "%s is %u", half.name, half.value);
    return half.value != (half.name == pstk__launchers[source].rank ? 0 : 1);
}

/* Fail when RANK and WORLD_SIZE contradict an outer launcher that does not set them: they are left
 * over from elsewhere, or count machines that each run several processes. */
static int check_outer(const struct pstk__search *search, const struct pstk__said *winner)
{
    const struct pstk__search quiet = quietly(search);
    char text[TEXT_SIZE];
    for (int source = 0; source < PSTK__N_LAUNCHERS; source++)
        if (source != PSTK__TORCHRUN && says_several(&quiet, source, text))
            return pstk__launcher_fail(
                search,
                "RANK is %u and WORLD_SIZE is %u, but LOCAL_RANK is not set, and %s; must "
                "agree (unset RANK and WORLD_SIZE, or give %s)",
                winner->rank, winner->world, text, search->query.numbers);
    return 0;
}

/* Fail when RANK and WORLD_SIZE may count machines, as under Kubeflow's PyTorchJob, unless each
 * machine has one process, or an outer launcher has the same numbers. */
static int check_machines(const struct pstk__search *search, const struct pstk__said *winner)
{
    const char *processes = pstk__launcher_variable(search, "PET_NPROC_PER_NODE");
    struct pstk__said same[MAX_SAID];
    if (outer(search, 2, winner, same) > 0)
        return 0;
    if (processes && strcmp(processes, "1") == 0)
        return check_outer(search, winner);
    return pstk__launcher_fail(
        search,
        "RANK and WORLD_SIZE are set, but LOCAL_RANK is not, so they may count machines "
        "instead of processes (start the processes with torchrun, or give %s)",
        search->query.numbers);
}

/* Check that nothing contradicts the first of the n reports that have both numbers at the innermost
 * level. */
static int check_agreement(const struct pstk__search *search, int level,
                           const struct pstk__said *said, int n)
{
    const struct pstk__said *winner = &said[0];
    for (int i = 1; i < n; i++)
        if (said[i].rank != winner->rank || said[i].world != winner->world)
            return pstk__launcher_fail(
                search,
                "%s reports rank %u of %u, and %s rank %u of %u; must agree (unset the "
                "variables of the one that did not start this process, or give %s)",
                winner->name, winner->rank, winner->world, said[i].name, said[i].rank,
                said[i].world, search->query.numbers);
    for (int source = 0; source < PSTK__N_LAUNCHERS; source++)
        if (pstk__launchers[source].level <= level && check_half(search, source, winner) < 0)
            return -1;
    if (winner->source != PSTK__TORCHRUN || !is_bare(search))
        return 0;
    return winner->world > 1 ? check_machines(search, winner) : check_outer(search, winner);
}

/* Find a report with local numbers: the one that is used, or an outer launcher's with the same
 * ranks. */
static struct pstk__said find_local(const struct pstk__search *search, int level,
                                    const struct pstk__said *winner)
{
    const struct pstk__search quiet = quietly(search);
    const struct pstk__said none = {.from_parent = 1, .local_world = 1};
    struct pstk__said same[MAX_SAID], local = none;
    if (winner->local_world)
        return *winner;
    const int n = outer(search, level, winner, same);
    for (int i = 0; i < n; i++)
        if (same[i].local_world)
            return same[i];
    if (level > 0)
        return none;
    /* A program that makes its process group itself may have LOCAL_RANK alone. */
    const int r = pstk__launcher_world(&quiet, pstk__launchers[PSTK__TORCHRUN].local_rank,
                                       pstk__launchers[PSTK__TORCHRUN].local_world, 1,
                                       &local.local_rank, &local.local_world);
    return r < 0 ? none : local;
}

/* Fill in the ranks that are used, and the local numbers of any report that has them. */
static void settle(const struct pstk__search *search, int level, const struct pstk__said *winner,
                   struct pstk_found_ranks *found)
{
    const struct pstk__said local = find_local(search, level, winner);
    found->rank = winner->rank;
    found->world = winner->world;
    found->local_rank = local.local_rank;
    found->local_world = local.local_world;
    found->is_bound = (uint32_t)pstk__bound_cores("/", local.local_world, local.from_parent);
    snprintf(found->source, sizeof found->source, "%s", winner->name);
}

/* Find the ranks: *found is rank 0 of 1 when nothing reports others. */
static int find(const struct pstk__search *search, struct pstk_found_ranks *found)
{
    struct pstk__said said[MAX_SAID];
    *found = (struct pstk_found_ranks){
        .size = sizeof *found, .world = 1, .local_world = 1, .source = "alone"};
    for (int level = 0; level <= PSTK__LAUNCHER_LEVELS; level++) {
        const int n = at_level(search, level, said);
        if (n < 0 || (n > 0 && check_agreement(search, level, said, n) < 0))
            return -1;
        if (n > 0) {
            settle(search, level, &said[0], found);
            return 0;
        }
    }
    return refuse_half(search);
}

/* Return the name of the variable that has the number of processes, or the library's. */
static const char *name_of_world(const struct pstk_found_ranks *found)
{
    for (int source = 0; source < PSTK__N_LAUNCHERS; source++)
        if (strcmp(found->source, pstk__launchers[source].name) == 0 &&
            pstk__launchers[source].world)
            return pstk__launchers[source].world;
    return found->source;
}

/* Find a library or launcher that reports several processes when the rank is not known. Returns the
 * number, and in *name the library or the variable; 0: there is none. */
static uint32_t find_several(const struct pstk__search *quiet, const char **name)
{
    uint32_t n;
    for (uint32_t i = 0; i < quiet->query.n_known; i++) {
        *name = quiet->known[i].source;
        if (quiet->known[i].world > 1)
            return quiet->known[i].world;
    }
    for (int source = 0; source < PSTK__N_LAUNCHERS; source++) {
        *name = pstk__launchers[source].world;
        if (pstk__launcher_is_absent(quiet, source) == 0 &&
            pstk__launcher_number(quiet, *name, &n) > 0 && n > 1)
            return n;
    }
    return 0;
}

/* ---- the public functions -------------------------------------------------------------------- */

/* Copy the libraries' reports, whose structs may be of another version. */
static int copy_known(struct pstk__search *search)
{
    const struct pstk_rank_query *query = &search->query;
    const uint32_t size = query->known_size;
    if (query->n_known > PSTK_MAX_KNOWN_RANKS)
        return pstk__fail_setting(search->err, "n_known", query->n_known, "at most %d",
                                  PSTK_MAX_KNOWN_RANKS);
    if (query->n_known && !query->known)
        return pstk__fail(search->err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "known: value is NULL, and n_known is %u; must be as many",
                          query->n_known);
    if (query->n_known && size < offsetof(struct pstk_known_ranks, reserved))
        return pstk__fail_setting(search->err, "known_size", size,
                                  "sizeof(struct pstk_known_ranks)");
    for (uint32_t i = 0; i < query->n_known; i++) {
        struct pstk_known_ranks *known = &search->known[i];
        memcpy(known, (const char *)query->known + (size_t)size * i,
               size < sizeof *known ? size : sizeof *known);
        if (!known->source || strlen(known->source) >= SOURCE_SIZE)
            return pstk__fail(search->err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                              "known: value of source is %s; must be a name of at most %zu bytes",
                              known->source ? "too long" : "NULL", SOURCE_SIZE - 1);
        if (known->by > PSTK_KNOWN_BY_LAUNCHER || known->reserved)
            return pstk__fail(search->err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                              "known: by must be one of enum pstk_known_by, and reserved 0");
        if (known->rank >= known->world ||
            (known->local_world && known->local_rank >= known->local_world))
            return pstk__fail(
                search->err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                "known: %s reports rank %u of %u, and local rank %u of %u; a rank must "
                "be below the number of ranks",
                known->source, known->rank, known->world, known->local_rank, known->local_world);
    }
    return 0;
}

/* Begin a search, with defaults for members that the caller's struct lacks. */
static int begin(struct pstk__search *search, const struct pstk_rank_query *query,
                 struct pstk_error *err)
{
    struct pstk_rank_query *own = &search->query;
    *search = (struct pstk__search){.err = err};
    if (!query || query->size < sizeof query->size)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "query: size must be sizeof(struct pstk_rank_query)");
    memcpy(own, query, query->size < sizeof *own ? query->size : sizeof *own);
    if (own->terminal > PSTK_TERMINAL_OWN)
        return pstk__fail_setting(err, "terminal", own->terminal, "one of enum pstk_terminal");
    if (own->reserved)
        return pstk__fail_setting(err, "reserved", own->reserved, "0");
    own->option = own->option ? own->option : "ranks";
    own->automatic = own->automatic ? own->automatic : "it what pstk_find_ranks finds";
    own->numbers = own->numbers ? own->numbers : "ranks.rank and ranks.world";
    own->alone = own->alone ? own->alone : "ranks.rank 0 and ranks.world 1";
    own->indexed = own->indexed ? own->indexed : own->numbers;
    return copy_known(search);
}

int pstk_find_ranks(const struct pstk_rank_query *query, struct pstk_found_ranks *found,
                    struct pstk_error *err)
{
    struct pstk__search search;
    struct pstk_found_ranks own;
    if (!found || found->size < sizeof found->size)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "found: size must be sizeof(struct pstk_found_ranks)");
    if (begin(&search, query, err) < 0 || find(&search, &own) < 0)
        return PSTK_EINVAL;
    const uint32_t size = found->size;
    memset(found, 0, size);
    memcpy(found, &own, size < sizeof own ? size : sizeof own);
    found->size = size;
    return 0;
}

void pstk_use_ranks(const struct pstk_found_ranks *found, struct pstk_settings *settings)
{
    const int is_bound = found->is_bound && found->local_world > 0;
    settings->ranks.rank = found->rank;
    settings->ranks.world = found->world;
    settings->ranks.local_rank = is_bound ? 0 : found->local_rank;
    settings->ranks.local_world = is_bound ? 1 : found->local_world;
    /* Use this process's share of the default of max_memory, which is three quarters of the memory
     * divided by the local processes. */
    if (is_bound && !settings->memory.max_memory)
        settings->memory.max_memory = pstk__cgroup_memory("/") / 4 * 3 / found->local_world;
}

int pstk_check_alone(const struct pstk_rank_query *query, struct pstk_error *err)
{
    struct pstk_found_ranks found;
    struct pstk__search search;
    uint32_t n, ignored[2];
    if (begin(&search, query, err) < 0)
        return PSTK_EINVAL;
    const struct pstk__search quiet = quietly(&search);
    const int is_found = find(&quiet, &found) == 0;
    const char *name = is_found ? name_of_world(&found) : NULL;
    n = is_found ? found.world : find_several(&quiet, &name);
    if (n > 1)
        pstk__launcher_fail(
            &search,
            "%s reports %u processes, and this loader gives each of them all samples (give %s for "
            "a part each, or %s if each should get all)",
            name, n, search.query.automatic, search.query.alone);
    else if (!is_found && pstk__launcher_is_unstarted(&quiet, &ignored[0], &ignored[1]) > 0)
        check_started(&search);
    else
        return 0;
    return PSTK_EINVAL;
}

int pstk_get_variable(const struct pstk_rank_query *query, const char *name, uint32_t *value,
                      struct pstk_error *err)
{
    struct pstk__search search;
    if (begin(&search, query, err) < 0)
        return PSTK_EINVAL;
    const int r = pstk__launcher_number(&search, name, value);
    return r < 0 ? PSTK_EINVAL : r;
}
