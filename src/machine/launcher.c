/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/launcher.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/environment.h"
#include "base/error.h"

#define MAX_DIGITS 9
#define QUOTED 200 /* bytes of a variable's text that a message quotes */

/* Launchers from the innermost level to the outermost one. A launcher that another one started is
 * nearer to this process, so its ranks count. Level 0 has the process groups of
 * pstk_rank_query.known. */
const struct pstk__launcher pstk__launchers[PSTK__N_LAUNCHERS] = {
    [PSTK__TORCHRUN] = {"torchrun", 1, "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE",
                        NULL},
    [PSTK__OPEN_MPI] = {"Open MPI", 2, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                        "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", NULL},
    [PSTK__MVAPICH] = {"MVAPICH", 2, "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE",
                       "MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_SIZE", NULL},
    [PSTK__PMI] = {"PMI", 2, "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", NULL},
    [PSTK__PMIX] = {"PMIx", 2, "PMIX_RANK", NULL, NULL, NULL, NULL},
    [PSTK__SRUN] = {"srun", 3, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", NULL, NULL},
    [PSTK__JAX_JOB] = {"Kubeflow JAXJob", 4, "PROCESS_ID", "NUM_PROCESSES", NULL, NULL,
                       "COORDINATOR_ADDRESS"},
    [PSTK__WORKER_SET] = {"LeaderWorkerSet", 4, "LWS_WORKER_INDEX", "LWS_GROUP_SIZE", NULL, NULL,
                          NULL},
    [PSTK__KUBERNETES] = {"Kubernetes Job", 4, "JOB_COMPLETION_INDEX", NULL, NULL, NULL, NULL},
};

int pstk__launcher_fail(const struct pstk__search *search, const char *format, ...)
{
    const char *option = search->query.option;
    char text[sizeof search->err->message];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    pstk__fail(search->err, PSTK_EINVAL, PSTK_STAGE_OPEN, "%s%s%s", option, *option ? ": " : "",
               text);
    return -1;
}

const char *pstk__launcher_variable(const struct pstk__search *search, const char *name)
{
    return pstk__environment_get(search->query.environment, name);
}

/* Return the text of a variable; "" when it is not set, or has no name. */
static const char *text_of(const struct pstk__search *search, const char *name)
{
    const char *text = name ? pstk__launcher_variable(search, name) : NULL;
    return text ? text : "";
}

int pstk__launcher_number(const struct pstk__search *search, const char *name, uint32_t *out)
{
    const char *text = text_of(search, name);
    const size_t n = strlen(text);
    if (n == 0)
        return 0;
    if (n > MAX_DIGITS || strspn(text, "0123456789") != n)
        return pstk__launcher_fail(
            search,
            "%s is '%.*s'; must be a whole number (set it as the launcher does, or give %s)", name,
            QUOTED, text, search->query.numbers);
    *out = (uint32_t)strtoul(text, NULL, 10);
    return 1;
}

int pstk__launcher_world(const struct pstk__search *search, const char *rank_name,
                         const char *world_name, uint32_t most, uint32_t *rank, uint32_t *world)
{
    *rank = 0;
    if (pstk__launcher_number(search, rank_name, rank) < 0)
        return -1;
    const int r = pstk__launcher_number(search, world_name, world);
    if (r < 0)
        return -1;
    if (r == 0)
        *world = most > *rank ? most : *rank + 1;
    if (*world == 0)
        return pstk__launcher_fail(
            search, "%s is 0; must be at least 1 (set it as the launcher does, or give %s)",
            world_name, search->query.numbers);
    if (*rank >= *world)
        return pstk__launcher_fail(
            search,
            "%s is %u, but %s is %u; must be from 0 to %u (set it as the launcher does, or "
            "give %s)",
            rank_name, *rank, world_name, *world, *world - 1, search->query.numbers);
    return 0;
}

/* Return 1 when this process has a controlling terminal: srun gives its tasks none, except with
 * --pty. */
static int has_terminal(const struct pstk__search *search)
{
    if (search->query.terminal != PSTK_TERMINAL_ASK)
        return search->query.terminal == PSTK_TERMINAL_OWN;
    const int fd = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    close(fd);
    return 1;
}

/* Return 1 in a user's shell in an allocation: programs started there are not tasks of the
 * allocation. The job's name alone does not show this: tasks that srun starts from such a shell, or
 * by `srun bash -c`, have the same name. Returns a negative number after a message. */
static int is_shell(const struct pstk__search *search)
{
    const char *name = text_of(search, "SLURM_JOB_NAME");
    uint32_t n_tasks;
    if (strcmp(name, "bash") != 0 && strcmp(name, "interactive") != 0)
        return 0;
    const int r = pstk__launcher_number(search, pstk__launchers[PSTK__SRUN].world, &n_tasks);
    return r < 0 ? -1 : r == 0 || has_terminal(search);
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

/* Find this node's number of tasks in SLURM_STEP_TASKS_PER_NODE, such as "8(x2),4"; 1 when the
 * variable does not give it. */
static int tasks_of_node(const struct pstk__search *search, uint32_t *out)
{
    uint32_t node = 0;
    uint64_t first = 0; /* first node of the entry */
    *out = 1;
    if (pstk__launcher_number(search, "SLURM_NODEID", &node) < 0)
        return -1;
    const char *text = text_of(search, "SLURM_STEP_TASKS_PER_NODE");
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
        first += ok ? n_nodes : 0; /* other text is skipped */
        text += strcspn(text, ",");
        text += *text == ',';
    }
    return 0;
}

int pstk__launcher_is_absent(const struct pstk__search *search, int source)
{
    if (pstk__launchers[source].needed && !*text_of(search, pstk__launchers[source].needed))
        return 1;
    return source == PSTK__SRUN ? is_shell(search) : 0;
}

/* Read the index of an indexed Job of Kubernetes, whose number of pods is known. */
static int of_pods(const struct pstk__search *search, struct pstk__said *said)
{
    said->world = search->query.n_indexed;
    if (pstk__launcher_number(search, pstk__launchers[PSTK__KUBERNETES].rank, &said->rank) < 0)
        return -1;
    return said->rank < said->world
               ? 1
               : pstk__launcher_fail(
                     search, "%s is %u; must be below %u (give %s, the completions of the Job)",
                     pstk__launchers[PSTK__KUBERNETES].rank, said->rank, said->world,
                     search->query.indexed);
}

int pstk__launcher_get(const struct pstk__search *search, int source, struct pstk__said *said)
{
    const struct pstk__launcher *launcher = &pstk__launchers[source];
    uint32_t ignored, most = 1;
    *said = (struct pstk__said){launcher->name, source, source == PSTK__TORCHRUN};
    int r = pstk__launcher_is_absent(search, source);
    if (r)
        return r < 0 ? -1 : 0;
    r = pstk__launcher_number(search, launcher->rank, &ignored);
    if (r == 1 && source == PSTK__KUBERNETES && search->query.n_indexed)
        return of_pods(search, said);
    if (r == 1)
        r = pstk__launcher_number(search, launcher->world, &ignored);
    if (r < 1)
        return r;
    if (pstk__launcher_world(search, launcher->rank, launcher->world, 1, &said->rank,
                             &said->world) < 0)
        return -1;
    r = pstk__launcher_number(search, launcher->local_rank, &ignored);
    if (r == 1 && source == PSTK__SRUN && tasks_of_node(search, &most) < 0)
        r = -1;
    if (r == 1 && pstk__launcher_world(search, launcher->local_rank, launcher->local_world, most,
                                       &said->local_rank, &said->local_world) < 0)
        r = -1;
    return r < 0 ? -1 : 1;
}

int pstk__launcher_get_half(const struct pstk__search *search, int source, struct pstk__half *half)
{
    const struct pstk__launcher *launcher = &pstk__launchers[source];
    uint32_t rank = 0, world = 0;
    const int absent = pstk__launcher_is_absent(search, source);
    if (absent)
        return absent < 0 ? -1 : 0;
    const int has_rank = pstk__launcher_number(search, launcher->rank, &rank);
    const int has_world =
        has_rank < 0 ? -1 : pstk__launcher_number(search, launcher->world, &world);
    if (has_world < 0)
        return -1;
    if (has_rank == has_world)
        return 0;
    if (source == PSTK__SRUN && rank == 0) /* a batch script has SLURM_PROCID=0, too */
        return 0;
    *half = has_rank ? (struct pstk__half){launcher->rank, launcher->world, rank}
                     : (struct pstk__half){launcher->world, launcher->rank, world};
    return 1;
}

int pstk__launcher_is_unstarted(const struct pstk__search *search, uint32_t *rank,
                                uint32_t *n_tasks)
{
    uint32_t ignored;
    *n_tasks = 0;
    const int has_rank = pstk__launcher_number(search, pstk__launchers[PSTK__SRUN].rank, rank);
    if (has_rank < 0 || pstk__launcher_number(search, "SLURM_NTASKS", n_tasks) < 0)
        return -1;
    if (has_rank == 0)
        return 0;
    int r = pstk__launcher_number(search, pstk__launchers[PSTK__SRUN].world, &ignored);
    if (r == 0)
        r = is_shell(search);
    if (r)
        return r < 0 ? -1 : 0;
    return *n_tasks > 1;
}
