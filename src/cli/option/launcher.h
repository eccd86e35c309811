/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launcher: which of how many processes this one is, as the variables of whatever started it say:
 * `--rank auto`. The rules and the messages are those of the Python package, rank="auto"
 * (launchers.py and ranks.py there); tests/python/launchers.json is run through both. A command has
 * no libraries to ask, so torch.distributed, jax.distributed and ray.train are left out here.
 */
#ifndef PSTK_CLI_LAUNCHER_H
#define PSTK_CLI_LAUNCHER_H

#include <stdint.h>

#define LAUNCHER_MESSAGE_SIZE 512

/* What a message advises, in the words of the option that asked. */
struct launcher_words {
    const char *option;  /* "--rank" */
    const char *numbers; /* what gives the numbers themselves: "--rank and --world" */
    const char *alone;   /* what makes this process the only one: "--rank 0 --world 1" */
    /* An indexed Job of Kubernetes has its number of pods in no variable: */
    const char *indexed; /* what gives it: "--parts N"; NULL: as `numbers` */
    uint32_t n_indexed;  /* the number; 0: not known */
};

struct launcher_found {
    uint32_t rank, world;
    uint32_t local_rank, local_world; /* of the processes on this machine; 0 of 1: nobody said */
    const char *source;               /* the launcher's name, or "alone"; static storage */
    int is_bound; /* 1: the launcher gave each process of this machine its own cores */
};

/* Find the rank: 0 of 1 where nothing says more. Returns 0, or -1 with a message when two launchers
 * of one level disagree, or the innermost one set only half of its numbers, or numbers that cannot
 * be. */
int launcher_find(const struct launcher_words *words, struct launcher_found *found,
                  char message[LAUNCHER_MESSAGE_SIZE]);

/* Read a variable of whatever started this process: 1 with its number; 0: it is not set, or empty;
 * -1 with a message for other text. */
int launcher_number(const struct launcher_words *words, const char *name, uint32_t *number,
                    char message[LAUNCHER_MESSAGE_SIZE]);

#endif
