/* SPDX-License-Identifier: Apache-2.0 */
#include "option/ranks.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "option/options.h"
#include "ui/json.h"
#include "ui/message.h"

int ranks_set_rank(struct ranks *ranks, const char *value)
{
    ranks->is_auto = strcmp(value, "auto") == 0;
    ranks->is_rank_given = !ranks->is_auto;
    if (ranks->is_auto)
        return 0;
    if (strspn(value, "0123456789") != strlen(value) || !*value) {
        message_say("--rank: value is '%s'; must be a whole number, or auto, which finds it",
                    value);
        return -1;
    }
    return option_count32("--rank", value, (struct range){0, RANKS_MAX_WORLD - 1},
                          &ranks->found.rank);
}

int ranks_set_world(struct ranks *ranks, const char *value)
{
    ranks->is_world_given = 1;
    return option_count32("--world", value, (struct range){1, RANKS_MAX_WORLD},
                          &ranks->found.world);
}

/* Find the ranks, and compare them with --world, if it is given. */
static int find(struct ranks *ranks)
{
    const struct pstk_rank_query query = {.size = sizeof query,
                                          .environment = (const char *const *)environ,
                                          .option = "--rank",
                                          .automatic = "--rank auto",
                                          .numbers = "--rank and --world",
                                          .alone = "--rank 0 --world 1"};
    struct pstk_error err;
    const uint32_t world = ranks->found.world;
    pstk_error_init(&err, sizeof err);
    ranks->found.size = sizeof ranks->found;
    if (pstk_find_ranks(&query, &ranks->found, &err) < 0)
        return message_usage("%s", err.message);
    if (ranks->is_world_given && world != ranks->found.world)
        return message_usage("--world: value is %u, and --rank auto found %u process%s (%s); must "
                             "be as many (leave --world out, or give --rank as a number)",
                             world, ranks->found.world, ranks->found.world == 1 ? "" : "es",
                             ranks->found.source);
    if (ranks->found.world > RANKS_MAX_WORLD)
        return message_usage("--rank: %s reports %u processes; must be at most %u (%s)",
                             ranks->found.source, ranks->found.world, RANKS_MAX_WORLD,
                             "give --rank and --world");
    return 0;
}

int ranks_settle(struct ranks *ranks)
{
    if (ranks->is_auto)
        return find(ranks);
    ranks->found.local_world = 1;
    snprintf(ranks->found.source, sizeof ranks->found.source, "%s",
             ranks->is_rank_given || ranks->is_world_given ? "given" : "alone");
    if (!ranks->is_world_given)
        ranks->found.world = 1;
    if (ranks->found.rank >= ranks->found.world)
        return message_usage("--rank: value is %u; must be below --world, %u (ranks count from 0)",
                             ranks->found.rank, ranks->found.world);
    return 0;
}

const char *ranks_text(const struct ranks *ranks, char text[RANKS_TEXT])
{
    const struct pstk_found_ranks *found = &ranks->found;
    int n = snprintf(text, RANKS_TEXT, "rank %u of %u", found->rank, found->world);
    if (ranks->is_auto)
        snprintf(text + n, RANKS_TEXT - (size_t)n, " (%s%s)", found->source,
                 found->is_bound ? ", cores of its own" : "");
    return text;
}

void ranks_put(const struct ranks *ranks, struct json_t *object)
{
    const struct pstk_found_ranks *found = &ranks->found;
    json_put_count(object, "rank", found->rank);
    json_put_count(object, "world", found->world);
    json_put_count(object, "local_rank", found->local_rank);
    json_put_count(object, "local_world", found->local_world);
    json_put_text(object, "source", found->source);
    json_put_bool(object, "is_bound", found->is_bound);
}
