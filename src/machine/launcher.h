/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launcher: reads the variables by which each launcher describes this process. ranks.c, the only
 * caller, decides which launcher to use when several set variables.
 */
#ifndef PSTK_LAUNCHER_H
#define PSTK_LAUNCHER_H

#include <penstock/ranks.h>

enum pstk__source {
    PSTK__TORCHRUN,
    PSTK__OPEN_MPI,
    PSTK__MVAPICH,
    PSTK__PMI,
    PSTK__PMIX,
    PSTK__SRUN,
    PSTK__JAX_JOB,
    PSTK__WORKER_SET,
    PSTK__KUBERNETES,
    PSTK__N_LAUNCHERS
};
#define PSTK__LAUNCHER_LEVELS 4

/* A launcher, and its variables; NULL for a variable that it does not have. */
struct pstk__launcher {
    const char *name;
    int level; /* level, from 1, the innermost, to PSTK__LAUNCHER_LEVELS */
    const char *rank, *world, *local_rank, *local_world;
    const char *needed; /* variable that must be set, too, because the others are common words */
};

extern const struct pstk__launcher pstk__launchers[PSTK__N_LAUNCHERS];

/* One search. The query's words are never NULL; `known` here replaces the query's. */
struct pstk__search {
    struct pstk_rank_query query;
    struct pstk_known_ranks known[PSTK_MAX_KNOWN_RANKS];
    struct pstk_error *err; /* NULL: the caller wants no message */
};

/* The ranks that one launcher or library reports. */
struct pstk__said {
    const char *name;
    int source;      /* enum pstk__source, or PSTK__N_LAUNCHERS for a library */
    int from_parent; /* 1: its processes have the cores of their parent process */
    uint32_t rank, world;
    uint32_t local_rank,
        local_world; /* local_world: 0 when the launcher does not report local numbers */
};

/* One of a launcher's two variables, without the other. */
struct pstk__half {
    const char *name, *missing; /* missing: NULL when no variable has the size */
    uint32_t value;
};

/* Write a message that begins with the query's option. Returns -1. */
__attribute__((format(printf, 2, 3))) int pstk__launcher_fail(const struct pstk__search *search,
                                                              const char *format, ...);
/* Return the text of a variable; NULL: it is not set. */
const char *pstk__launcher_variable(const struct pstk__search *search, const char *name);

/* The functions below return 1 for yes or found, 0 for no or not set, and -1 after a message. */

/* Read a number from a variable; a variable without a name, or with an empty text, is not set. */
int pstk__launcher_number(const struct pstk__search *search, const char *name, uint32_t *out);
/* Return 1 when the variables are not from this launcher, or not meant for this process. */
int pstk__launcher_is_absent(const struct pstk__search *search, int source);
/* Read the ranks that a launcher set, if it set both rank and size. */
int pstk__launcher_get(const struct pstk__search *search, int source, struct pstk__said *said);
/* Find the one variable that is set when a launcher set only one of its two. */
int pstk__launcher_get_half(const struct pstk__search *search, int source, struct pstk__half *half);
/* Return 1 in a SLURM batch script that has several tasks, but started this process directly
 * instead of by srun. */
int pstk__launcher_is_unstarted(const struct pstk__search *search, uint32_t *rank,
                                uint32_t *n_tasks);
/* Read a rank and the number of ranks. If only the rank is set, the number is `most`, or the least
 * that the rank allows if that is more. Returns 0, or -1 after a message. */
int pstk__launcher_world(const struct pstk__search *search, const char *rank_name,
                         const char *world_name, uint32_t most, uint32_t *rank, uint32_t *world);

#endif
