/* SPDX-License-Identifier: Apache-2.0 */
/*
 * penstock/ranks.h - rank and world of this process, from the variables of its launcher.
 *
 *   extern char **environ;
 *   struct pstk_rank_query query = {.size = sizeof query};
 *   struct pstk_found_ranks found = {.size = sizeof found};
 *   query.environment = (const char *const *)environ;
 *   if (pstk_find_ranks(&query, &found, &err) == 0)
 *       pstk_use_ranks(&found, &settings);
 *
 * A launcher that another one started is nearer to the process, so its variables are used: torchrun
 * in a task of mpirun, mpirun in a step of SLURM. The functions use the first of these sources that
 * gives both rank and size:
 *   1. a process group that this process has initialised (struct pstk_known_ranks)
 *   2. torchrun, and launchers with its variables: RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE
 *   3. Open MPI, MVAPICH, MPICH and Intel MPI (PMI), PMIx
 *   4. a step of SLURM: srun
 *   5. Kubernetes: Kubeflow's JAXJob, LeaderWorkerSet, an indexed Job
 *
 * The functions refuse, with EINVAL, variables that would give a process another one's samples:
 *   - two sources of one line that disagree
 *   - a source with only rank or only size, if it differs from the used source, or if none has both
 *   - RANK and WORLD_SIZE without LOCAL_RANK, LOCAL_WORLD_SIZE or GROUP_RANK: for a size above 1
 * they may count machines; for size 1 they may be left over if an outer launcher reports several
 *     processes
 *   - a batch script of SLURM that has several tasks but started this process without srun
 *   - text that is no number, and impossible numbers
 *
 * The library does not read the environment by itself: the program passes one.
 */
#ifndef PENSTOCK_RANKS_H
#define PENSTOCK_RANKS_H

#include <penstock/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct pstk_settings;

/* Largest number of elements of pstk_rank_query.known. */
#define PSTK_MAX_KNOWN_RANKS 8

/* The source of ranks that a program knows without variables. */
enum pstk_known_by {
    /* a process group that this process has initialised: nearer than every launcher */
    PSTK_KNOWN_BY_GROUP = 0,
    /* a launcher that answers calls: Ray Train, of the level of torchrun */
    PSTK_KNOWN_BY_LAUNCHER = 1,
};

/* Ranks that a library reports to the program. */
struct pstk_known_ranks {
    /* name of the library, "torch.distributed", at most 31 bytes; borrows */
    const char *source;
    /* enum pstk_known_by */
    uint32_t by;
    /* number of this process, below `world` */
    uint32_t rank;
    uint32_t world;
    /* number of this process on this machine, below local_world */
    uint32_t local_rank;
    /* processes on this machine; 0: the library reports neither this number nor local_rank */
    uint32_t local_world;
    /* must be 0 */
    uint32_t reserved;
};

/* The controlling terminal of this process. srun gives its tasks none, except with --pty. Programs
 * that a shell in an allocation starts are not tasks of srun. */
enum pstk_terminal {
    /* the library opens /dev/tty */
    PSTK_TERMINAL_ASK = 0,
    PSTK_TERMINAL_NONE = 1,
    PSTK_TERMINAL_OWN = 2,
};

/* The query and the environment that it reads. Zero the struct and set size and environment. All
 * pointers: borrows. */
struct pstk_rank_query {
    /* sizeof(struct pstk_rank_query), set by the caller */
    uint32_t size;
    /* enum pstk_terminal. default: PSTK_TERMINAL_ASK */
    uint32_t terminal;
    /* NAME=VALUE, then NULL, as `environ`; NULL: no variable is set */
    const char *const *environment;

    /* Ranks that libraries report to the program. */

    /* n_known elements, those of one level in order of preference; NULL: none */
    const struct pstk_known_ranks *known;
    uint32_t n_known;
    /* sizeof(struct pstk_known_ranks) of the caller */
    uint32_t known_size;

    /* The words of the program, for messages. NULL: those of struct pstk_settings. */

    /* begin of each message about variables: "--rank"; "": none */
    const char *option;
    /* option that requests this search: "--rank auto" */
    const char *automatic;
    /* options that give the numbers themselves: "--rank and --world" */
    const char *numbers;
    /* options that make this process the only one: "--rank 0 --world 1" */
    const char *alone;

    /* An indexed Job of Kubernetes, which has its number of pods in no variable. */

    /* option that gives the number of pods: "--parts N"; NULL: as `numbers` */
    const char *indexed;
    /* number of pods; 0: unknown */
    uint32_t n_indexed;
    /* must be 0 */
    uint32_t reserved;
};

/* The result of pstk_find_ranks. */
struct pstk_found_ranks {
    /* sizeof(struct pstk_found_ranks), set by the caller */
    uint32_t size;
    /* number of this process, below `world`; 0 of 1 if nothing reports more */
    uint32_t rank;
    uint32_t world;
    /* number of this process on this machine, below local_world; 0 of 1 if nothing reports more */
    uint32_t local_rank;
    uint32_t local_world;
    /* 1: the launcher gave each process of this machine cores of its own. This process may use
     * fewer cores than its cgroup has, or than the process that started it under torchrun or Ray
     * Train, and so few that the cores suffice for local_world processes */
    uint32_t is_bound;
    /* source of the ranks: "torchrun", "Open MPI", "srun", the name of a library; "alone": none */
    char source[32];
};

/* Find the ranks of this process. Fills *found up to its size. EINVAL: the sources contradict each
 * other, as listed above, or a number is wrong; the message names the variables. Borrows query. */
PSTK_API int pstk_find_ranks(const struct pstk_rank_query *query, struct pstk_found_ranks *found,
                             struct pstk_error *err);

/* Set settings.ranks to the found ranks. Cores that the launcher bound are not divided again, but
 * memory is: settings.memory.max_memory then becomes this process's share, unless it is set. */
PSTK_API void pstk_use_ranks(const struct pstk_found_ranks *found, struct pstk_settings *settings);

/* Check that nothing reports several processes, for a program that was given no ranks and so would
 * give all samples to each of them. EINVAL: several are reported, also where pstk_find_ranks would
 * fail; the message is a warning for the program to show. */
PSTK_API int pstk_check_alone(const struct pstk_rank_query *query, struct pstk_error *err);

/* Read a variable of query->environment, a whole number of at most nine digits. Returns 1 with
 * *value; 0: it is not set, or empty. EINVAL: other text. Borrows query and name. */
PSTK_API int pstk_get_variable(const struct pstk_rank_query *query, const char *name,
                               uint32_t *value, struct pstk_error *err);

#ifdef __cplusplus
}
#endif
#endif
