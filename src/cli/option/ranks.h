/* SPDX-License-Identifier: Apache-2.0 */
/* ranks: the values of --rank and --world, and the result of `--rank auto`. */
#ifndef PSTK_CLI_RANKS_H
#define PSTK_CLI_RANKS_H

#include <penstock/penstock.h>

struct json_t;

#define RANKS_MAX_WORLD (1u << 24)
#define RANKS_TEXT 96

struct ranks {
    int is_auto, is_world_given, is_rank_given;
    struct pstk_found_ranks found; /* after ranks_settle; rank and world hold the options' values,
                                      too */
};

/* Read the value of --rank or --world. Return 0, or -1 after a message. */
int ranks_set_rank(struct ranks *ranks, const char *value);
int ranks_set_world(struct ranks *ranks, const char *value);
/* Find the ranks of --rank auto, and check the numbers. Returns 0 or an exit status. */
int ranks_settle(struct ranks *ranks);
/* Write "rank 1 of 4", with its source after --rank auto. */
const char *ranks_text(const struct ranks *ranks, char text[RANKS_TEXT]);
/* Put rank, world, local_rank, local_world, source and is_bound. */
void ranks_put(const struct ranks *ranks, struct json_t *object);

#endif
