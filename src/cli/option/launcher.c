/* SPDX-License-Identifier: Apache-2.0 */
#include "option/launcher.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "option/bound.h"

#define MAX_DIGITS 9
#define QUOTED 200 /* bytes of a variable's text that a message quotes */

/* The variables of a launcher; NULL for one that it does not have. */
struct names {
    const char *source;
    int level;
    const char *rank, *world, *local_rank, *local_world;
    const char *needed; /* must be set, too, because the others are common words */
};

enum { TORCHRUN, OPEN_MPI, MVAPICH, PMI, PMIX, SRUN, JAX_JOB, WORKER_SET, KUBERNETES, N_SOURCES };

/* From the innermost level to the outermost one: a launcher that another one started is nearer to
 * this process, and counts. */
static const struct names sources[N_SOURCES] = {
    [TORCHRUN] = {"torchrun", 1, "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", NULL},
    [OPEN_MPI] = {"Open MPI", 2, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                  "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", NULL},
    [MVAPICH] = {"MVAPICH", 2, "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE",
                 "MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_SIZE", NULL},
    [PMI] = {"PMI", 2, "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", NULL},
    [PMIX] = {"PMIx", 2, "PMIX_RANK", NULL, NULL, NULL, NULL},
    [SRUN] = {"srun", 3, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", NULL, NULL},
    [JAX_JOB] = {"Kubeflow JAXJob", 4, "PROCESS_ID", "NUM_PROCESSES", NULL, NULL,
                 "COORDINATOR_ADDRESS"},
    [WORKER_SET] = {"LeaderWorkerSet", 4, "LWS_WORKER_INDEX", "LWS_GROUP_SIZE", NULL, NULL, NULL},
    [KUBERNETES] = {"Kubernetes Job", 4, "JOB_COMPLETION_INDEX", NULL, NULL, NULL, NULL},
};
#define N_LEVELS 4

/* One search. */
struct search {
    const struct launcher_words *words;
    char *message; /* LAUNCHER_MESSAGE_SIZE bytes */
};

/* What one launcher says. local_world: 0 where it says nothing of this machine. */
struct said {
    int source;
    uint32_t rank, world, local_rank, local_world;
};

__attribute__((format(printf, 2, 3))) static int fail(const struct search *search,
                                                      const char *format, ...)
{
    va_list args;
    int n = snprintf(search->message, LAUNCHER_MESSAGE_SIZE, "%s: ", search->words->option);
    va_start(args, format);
    vsnprintf(search->message + n, LAUNCHER_MESSAGE_SIZE - (size_t)n, format, args);
    va_end(args);
    return -1;
}

static const char *value_of(const char *name)
{
    const char *text = name ? getenv(name) : NULL;
    return text ? text : "";
}

/* Read a variable: 1 with its number; 0: it is not set, or empty; -1: it is none. */
static int number(const struct search *search, const char *name, uint32_t *out)
{
    const char *text = value_of(name);
    const size_t n = strlen(text);
    if (n == 0)
        return 0;
    if (n > MAX_DIGITS || strspn(text, "0123456789") != n)
        return fail(
            search,
            "%s is '%.*s'; must be a whole number (set it as the launcher does, or give %s)", name,
            QUOTED, text, search->words->numbers);
    *out = (uint32_t)strtoul(text, NULL, 10);
    return 1;
}

/* Read a rank and the number of ranks. If only the rank is set, there are `most`, or at least as
 * many as the rank shows. */
static int of_world(const struct search *search, const char *rank_name, const char *world_name,
                    uint32_t most, uint32_t *rank, uint32_t *world)
{
    *rank = 0;
    if (number(search, rank_name, rank) < 0)
        return -1;
    const int r = number(search, world_name, world);
    if (r < 0)
        return -1;
    if (r == 0)
        *world = most > *rank ? most : *rank + 1;
    if (*world == 0)
        return fail(search, "%s is 0; must be at least 1 (set it as the launcher does, or give %s)",
                    world_name, search->words->numbers);
    if (*rank >= *world)
        return fail(search,
                    "%s is %u, but %s is %u; must be from 0 to %u (set it as the launcher does, or "
                    "give %s)",
                    rank_name, *rank, world_name, *world, *world - 1, search->words->numbers);
    return 0;
}

/* Return 1 when this process has a controlling terminal: srun gives its tasks none, except with
 * --pty. */
static int has_terminal(void)
{
    const int fd = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    close(fd);
    return 1;
}

/* Return 1 in a user's shell in an allocation: its programs are not tasks of the allocation. The
 * job's name alone does not say so: tasks that srun starts from such a shell, or `srun bash -c`,
 * have the same name. Negative after a message. */
static int is_shell(const struct search *search)
{
    const char *name = value_of("SLURM_JOB_NAME");
    uint32_t n_tasks;
    if (strcmp(name, "bash") != 0 && strcmp(name, "interactive") != 0)
        return 0;
    const int r = number(search, sources[SRUN].world, &n_tasks);
    return r < 0 ? -1 : r == 0 || has_terminal();
}

/* Read a number of at most nine digits, and step past it. Returns 0 when there is none. */
static int step_number(const char **text, uint64_t *out)
{
    const size_t n = strspn(*text, "0123456789");
    if (n == 0 || n > MAX_DIGITS)
        return 0;
    *out = strtoul(*text, NULL, 10);
    *text += n;
    return 1;
}

/* Find this node's number of tasks in SLURM_STEP_TASKS_PER_NODE, such as "8(x2),4"; 1 where it does
 * not say. */
static int tasks_of_node(const struct search *search, uint32_t *out)
{
    uint32_t node = 0;
    uint64_t first = 0; /* node of the entry that is read */
    *out = 1;
    if (number(search, "SLURM_NODEID", &node) < 0)
        return -1;
    const char *text = value_of("SLURM_STEP_TASKS_PER_NODE");
    while (*text) {
        uint64_t n_tasks, n_nodes = 1;
        int ok = step_number(&text, &n_tasks);
        if (ok && strncmp(text, "(x", 2) == 0) {
            text += 2;
            ok = step_number(&text, &n_nodes) && *text == ')';
            text += ok;
        }
        ok = ok && (*text == ',' || !*text);
        if (n_nodes > 1 << 20)
            n_nodes = 1 << 20;
        if (ok && node < first + n_nodes) {
            *out = (uint32_t)n_tasks;
            return 0;
        }
        first += ok ? n_nodes : 0; /* other text is left out */
        text += strcspn(text, ",");
        text += *text == ',';
    }
    return 0;
}

/* Return 1 when the variables are not this launcher's, or not meant for this process. */
static int is_absent(const struct search *search, int source)
{
    if (sources[source].needed && !*value_of(sources[source].needed))
        return 1;
    return source == SRUN ? is_shell(search) : 0;
}

/* Read the index of an indexed Job of Kubernetes, whose number of pods is given. */
static int of_pods(const struct search *search, struct said *said)
{
    said->world = search->words->n_indexed;
    if (number(search, sources[KUBERNETES].rank, &said->rank) < 0)
        return -1;
    return said->rank < said->world
               ? 1
               : fail(search, "%s is %u; must be below %u (give %s, the completions of the Job)",
                      sources[KUBERNETES].rank, said->rank, said->world, search->words->indexed);
}

/* Read what a launcher set: 1 with rank and size; 0 when it did not set both; -1 with a message
 * when the numbers cannot be. */
static int complete(const struct search *search, int source, struct said *said)
{
    const struct names *names = &sources[source];
    uint32_t ignored, most = 1;
    *said = (struct said){.source = source};
    int r = is_absent(search, source);
    if (r)
        return r < 0 ? -1 : 0;
    r = number(search, names->rank, &ignored);
    if (r == 1 && source == KUBERNETES && search->words->n_indexed)
        return of_pods(search, said);
    if (r == 1)
        r = number(search, names->world, &ignored);
    if (r < 1)
        return r;
    if (of_world(search, names->rank, names->world, 1, &said->rank, &said->world) < 0)
        return -1;
    r = number(search, names->local_rank, &ignored);
    if (r == 1 && source == SRUN && tasks_of_node(search, &most) < 0)
        r = -1;
    if (r == 1 && of_world(search, names->local_rank, names->local_world, most, &said->local_rank,
                           &said->local_world) < 0)
        r = -1;
    return r < 0 ? -1 : 1;
}

/* One variable of two. */
struct half {
    const char *name, *missing; /* missing: NULL where no variable has the size */
    uint32_t value;
};

/* Find the variable that is set where a launcher set one of its two: 1, 0 or -1 with a message. */
static int half_set(const struct search *search, int source, struct half *half)
{
    const struct names *names = &sources[source];
    uint32_t rank = 0, world = 0;
    const int absent = is_absent(search, source);
    if (absent)
        return absent < 0 ? -1 : 0;
    const int has_rank = number(search, names->rank, &rank);
    const int has_world = has_rank < 0 ? -1 : number(search, names->world, &world);
    if (has_world < 0)
        return -1;
    if (has_rank == has_world)
        return 0;
    if (source == SRUN && rank == 0) /* a batch script has SLURM_PROCID=0 all alone */
        return 0;
    *half = has_rank ? (struct half){names->rank, names->world, rank}
                     : (struct half){names->world, names->rank, world};
    return 1;
}

/* Fail where a launcher that set one variable contradicts the one that counts. */
static int check_half(const struct search *search, int source, const struct said *winner)
{
    struct half half;
    const int r = half_set(search, source, &half);
    if (r <= 0)
        return r;
    const int is_rank = half.name == sources[source].rank;
    const uint32_t other = is_rank ? winner->rank : winner->world;
    if (half.value == other)
        return 0;
    return fail(search, "%s is %u%s%s%s, but %s reports %s %u; must agree (unset %s, or give %s)",
                half.name, half.value, half.missing ? " and " : "",
                half.missing ? half.missing : "", half.missing ? " is not set" : "",
                sources[winner->source].source, is_rank ? "rank" : "a size of", other, half.name,
                search->words->numbers);
}

/* Fail in a SLURM batch script that has several tasks, but started this process directly and not
 * with srun. It would be one process for everything. */
static int check_started(const struct search *search)
{
    uint32_t rank = 0, n_tasks = 0, ignored;
    const int has_rank = number(search, sources[SRUN].rank, &rank);
    if (has_rank < 0 || number(search, "SLURM_NTASKS", &n_tasks) < 0)
        return -1;
    if (has_rank == 0)
        return 0;
    int r = number(search, sources[SRUN].world, &ignored);
    if (r == 0)
        r = is_shell(search);
    if (r)
        return r < 0 ? -1 : 0;
    if (n_tasks < 2)
        return 0;
    return fail(search,
                "%s is %u and SLURM_NTASKS is %u, but %s is not set: this process is the job's "
                "batch script, not one of %u tasks (start it with srun and give %s auto; or give "
                "%s if it should get all samples alone)",
                sources[SRUN].rank, rank, n_tasks, sources[SRUN].world, n_tasks,
                search->words->option, search->words->alone);
}

/* Fail if launchers have set something, but none has set both numbers. */
static int refuse_half(const struct search *search)
{
    struct half half;
    uint32_t local_rank = 0;
    for (int source = 0; source < N_SOURCES; source++) {
        const int r = half_set(search, source, &half);
        if (r < 0)
            return -1;
        if (r)
            return fail(search,
                        "%s is %u, but %s%s; this process's part follows from both (set it as the "
                        "launcher does, or give %s)",
                        half.name, half.value,
                        half.missing ? half.missing : "the number of processes is in no variable",
                        half.missing ? " is not set" : "",
                        source == KUBERNETES && search->words->indexed ? search->words->indexed
                                                                       : search->words->numbers);
    }
    if (number(search, "LOCAL_RANK", &local_rank) < 0)
        return -1;
    if (local_rank)
        return fail(search,
                    "LOCAL_RANK is %s, but RANK and WORLD_SIZE are not set; this process's part "
                    "follows from them (set it as the launcher does, or give %s)",
                    value_of("LOCAL_RANK"), search->words->numbers);
    return check_started(search);
}

/* Read what the launchers of one level say that have set both numbers: how many, or -1 with a
 * message. */
static int at_level(const struct search *search, int level, struct said said[N_SOURCES])
{
    int n = 0;
    for (int source = 0; source < N_SOURCES; source++) {
        const int r = sources[source].level == level ? complete(search, source, &said[n]) : 0;
        if (r < 0)
            return -1;
        n += r;
    }
    return n;
}

/* Collect launchers from `level` on that say the same as the one that counts; what is wrong with
 * theirs is not asked. Returns how many. */
static int outer(const struct search *search, int level, const struct said *winner,
                 struct said same[N_SOURCES])
{
    char ignored[LAUNCHER_MESSAGE_SIZE];
    const struct search quiet = {search->words, ignored};
    struct said said[N_SOURCES];
    int n_same = 0;
    for (; level <= N_LEVELS; level++) {
        const int n = at_level(&quiet, level, said);
        for (int i = 0; i < n; i++)
            if (said[i].rank == winner->rank && said[i].world == winner->world)
                same[n_same++] = said[i];
    }
    return n_same;
}

/* Return 1 where RANK may be a machine's number, as under Kubeflow's PyTorchJob, unless each
 * machine has one process. */
static int may_count_machines(void)
{
    return !getenv("LOCAL_RANK") && !getenv("LOCAL_WORLD_SIZE") && !getenv("GROUP_RANK") &&
           strcmp(value_of("PET_NPROC_PER_NODE"), "1") != 0;
}

/* Check that nothing contradicts the first of n launchers of the innermost level. */
static int check_agreement(const struct search *search, int level, const struct said *said, int n)
{
    const struct said *winner = &said[0];
    struct said same[N_SOURCES];
    for (int i = 1; i < n; i++)
        if (said[i].rank != winner->rank || said[i].world != winner->world)
            return fail(search,
                        "%s reports rank %u of %u, and %s rank %u of %u; must agree (unset the "
                        "variables of the one that did not start this process, or give %s)",
                        sources[winner->source].source, winner->rank, winner->world,
                        sources[said[i].source].source, said[i].rank, said[i].world,
                        search->words->numbers);
    for (int source = 0; source < N_SOURCES; source++)
        if (sources[source].level <= level && check_half(search, source, winner) < 0)
            return -1;
    if (winner->source == TORCHRUN && winner->world > 1 && may_count_machines() &&
        outer(search, level + 1, winner, same) == 0)
        return fail(search,
                    "RANK and WORLD_SIZE are set, but LOCAL_RANK is not, so they may count "
                    "machines instead of processes (start the processes with torchrun, or give %s)",
                    search->words->numbers);
    return 0;
}

/* Fill in the numbers of the one that counts, and local ones of whoever has them. */
static void settle(const struct search *search, int level, const struct said *winner,
                   struct launcher_found *found)
{
    struct said same[N_SOURCES];
    const struct said *local = winner;
    const int n = outer(search, level, winner, same);
    for (int i = 0; !local->local_world && i < n; i++)
        local = &same[i];
    *found = (struct launcher_found){
        winner->rank, winner->world, 0, 1, sources[winner->source].source, 0};
    if (local->local_world) {
        found->local_rank = local->local_rank;
        found->local_world = local->local_world;
    }
    found->is_bound =
        bound_cores(found->local_world, !local->local_world || local->source == TORCHRUN);
}

int launcher_find(const struct launcher_words *words, struct launcher_found *found,
                  char message[LAUNCHER_MESSAGE_SIZE])
{
    const struct search search = {words, message};
    struct said said[N_SOURCES];
    *found = (struct launcher_found){0, 1, 0, 1, "alone", 0};
    for (int level = 1; level <= N_LEVELS; level++) {
        const int n = at_level(&search, level, said);
        if (n < 0 || (n > 0 && check_agreement(&search, level, said, n) < 0))
            return -1;
        if (n > 0) {
            settle(&search, level, &said[0], found);
            return 0;
        }
    }
    return refuse_half(&search);
}

int launcher_number(const struct launcher_words *words, const char *name, uint32_t *out,
                    char message[LAUNCHER_MESSAGE_SIZE])
{
    const struct search search = {words, message};
    return number(&search, name, out);
}
