/* SPDX-License-Identifier: Apache-2.0 */
#include "option/part.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <penstock/penstock.h>

#include "option/options.h"
#include "ui/json.h"
#include "ui/message.h"
#include "ui/status.h"

int part_set(struct part *part, const char *value)
{
    unsigned number, n; /* each has at most seven digits: no overflow */
    char rest;
    part->is_auto = strcmp(value, "auto") == 0;
    if (part->is_auto)
        return 0;
    if (strspn(value, "0123456789/") == strlen(value) &&
        sscanf(value, "%7u/%7u%c", &number, &n, &rest) == 2 && number < n && n <= PART_MAX) {
        part->number = number;
        part->n = n;
        return 0;
    }
    message_say("--part: value is '%s'; must be I/N with I from 0 to N-1 (0/4, 1/4, 2/4, 3/4), or "
                "auto, which finds them",
                value);
    return -1;
}

int part_set_n(struct part *part, const char *value)
{
    return option_count32("--parts", value, (struct range){1, PART_MAX}, &part->n_parts);
}

static struct pstk_rank_query query_of(const struct part *part)
{
    return (struct pstk_rank_query){.size = sizeof(struct pstk_rank_query),
                                    .environment = (const char *const *)environ,
                                    .option = "--part",
                                    .automatic = "--part auto",
                                    .numbers = "--part I/N",
                                    .alone = "--part 0/1",
                                    .indexed = "--parts N",
                                    .n_indexed = part->n_parts};
}

/* The variables of a task in a job array. */
struct array {
    uint32_t task, first, last, step, n;
};

/* Read a job array's variables: 1; 0: there is none; -1 after a message. */
static int read_array(const struct part *part, struct array *array)
{
    const struct pstk_rank_query query = query_of(part);
    struct pstk_error err;
    const struct {
        const char *name;
        uint32_t *value;
    } variables[] = {{"SLURM_ARRAY_TASK_ID", &array->task},
                     {"SLURM_ARRAY_TASK_MIN", &array->first},
                     {"SLURM_ARRAY_TASK_MAX", &array->last},
                     {"SLURM_ARRAY_TASK_COUNT", &array->n},
                     {"SLURM_ARRAY_TASK_STEP", &array->step}};
    *array = (struct array){.step = 1};
    pstk_error_init(&err, sizeof err);
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const int r = pstk_get_variable(&query, variables[i].name, variables[i].value, &err);
        if (r < 0) {
            message_say("%s", err.message);
            return -1;
        }
        if (r == 0 && i == 0)
            return 0;
        if (r == 0 && i < 4 && !part->n_parts) {
            message_say("--part: SLURM_ARRAY_TASK_ID is %u, but %s is not set; this task's part "
                        "follows from both (set it as SLURM does, or give --parts N)",
                        array->task, variables[i].name);
            return -1;
        }
    }
    return 1;
}

/* Check an array whose tasks are all the parts: it counts from 0 or 1, without gaps. An array with
 * gaps may be some tasks of a larger one, submitted again. */
static int check_array(const struct array *array)
{
    const int is_whole =
        array->n >= 2 && array->first <= 1 && array->step >= 1 && array->last >= array->first &&
        (array->last - array->first) / array->step + 1 == array->n && array->task >= array->first &&
        array->task <= array->last && (array->task - array->first) % array->step == 0;
    if (is_whole)
        return 0;
    message_say("--part: SLURM_ARRAY_TASK_ID is %u, in an array of %u task%s from %u to %u; must "
                "be of one that has all parts, from 0 or 1 without gaps (for some tasks of a "
                "larger array give --parts N, and number that from 0 to N-1)",
                array->task, array->n, array->n == 1 ? "" : "s", array->first, array->last);
    return -1;
}

/* Check an array that makes some of --parts, `n` tasks in all: its task I makes part I. */
static int check_share(const struct part *part, const struct array *array, uint32_t n)
{
    const int is_from_1 = array->first == 1 && array->last == n && array->n == n;
    if (array->task < n && !is_from_1)
        return 0;
    message_say("--part: SLURM_ARRAY_TASK_ID is %u, in an array from %u to %u; must be from 0 to "
                "%u with --parts %u (sbatch --array=0-%u)",
                array->task, array->first, array->last, n - 1, part->n_parts, n - 1);
    return -1;
}

/* Combine the launchers' ranks with the job array around them. */
static int apply_array(struct part *part)
{
    const uint32_t world = part->found.world;
    struct array array;
    int r = read_array(part, &array);
    if (r <= 0)
        return r;
    if (part->n_parts && part->n_parts % world) {
        message_say("--parts: value is %u; must be a multiple of %u, the processes that %s started "
                    "in each task of the job array",
                    part->n_parts, world, part->found.source);
        return -1;
    }
    if (part->n_parts) {
        part->n_array = part->n_parts / world;
        part->array_task = array.task;
        return check_share(part, &array, part->n_array);
    }
    r = check_array(&array);
    part->n_array = array.n;
    part->array_task = r < 0 ? 0 : (array.task - array.first) / array.step;
    return r;
}

static int find(struct part *part)
{
    const struct pstk_rank_query query = query_of(part);
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    part->found.size = sizeof part->found;
    if (pstk_find_ranks(&query, &part->found, &err) < 0)
        return message_usage("%s", err.message);
    if (apply_array(part) < 0)
        return STATUS_USAGE;
    const uint64_t n = (uint64_t)part->found.world * (part->n_array ? part->n_array : 1);
    if (n > PART_MAX)
        return message_usage("--part: auto found %llu processes; must be at most %u",
                             (unsigned long long)n, PART_MAX);
    part->n = (uint32_t)n;
    part->number = part->array_task * part->found.world + part->found.rank;
    if (part->n_parts && part->n_parts != part->n)
        return message_usage("--parts: value is %u, and --part auto found %u process%s (%s); must "
                             "be as many (leave --parts out, or give --part I/N)",
                             part->n_parts, part->n, part->n == 1 ? "" : "es", part->found.source);
    return 0;
}

int part_settle(struct part *part)
{
    if (part->is_auto)
        return find(part);
    if (part->n_parts)
        return message_usage("--parts: value is %u; must come with --part auto", part->n_parts);
    if (part->n == 0)
        part->n = 1;
    return 0;
}

char *part_path(struct part *part, const char *out)
{
    char *path;
    int n;
    if (!part->is_auto) {
        path = strdup(out);
        n = path ? 0 : -1;
    } else {
        n = asprintf(&path, "%s/part-%05u-of-%05u", out, part->number, part->n);
    }
    if (n < 0)
        message_no_memory();
    /* Other processes make OUT at the same time. If a folder is missing, the writer names it. */
    part->has_made = part->is_auto && mkdir(out, 0777) == 0;
    if (part->is_auto && !part->has_made && errno != EEXIST && errno != ENOENT) {
        message_say("cannot make %s: %s", out, strerror(errno));
        free(path);
        return NULL;
    }
    return path;
}

void part_undo(const struct part *part, const char *out)
{
    if (part->has_made)
        rmdir(out);
}

const char *part_text(const struct part *part, char text[PART_TEXT])
{
    int n = snprintf(text, PART_TEXT, "part %u of %u", part->number, part->n);
    if (part->is_auto && part->n_array && part->found.world > 1)
        snprintf(text + n, PART_TEXT - (size_t)n, " (task %u of an array of SLURM, %s)",
                 part->array_task, part->found.source);
    else if (part->is_auto)
        snprintf(text + n, PART_TEXT - (size_t)n, " (%s)",
                 part->n_array ? "an array of SLURM" : part->found.source);
    return text;
}

uint32_t part_processes(const struct part *part)
{
    return part->is_auto && part->found.local_world > 1 ? part->found.local_world : 1;
}

uint32_t part_threads(const struct part *part, uint32_t n_cores)
{
    if (part->found.is_bound)
        return n_cores;
    const uint32_t n = n_cores / part_processes(part);
    return n ? n : 1;
}

void part_warn(const struct part *part, const char *out)
{
    static const char *const own[] = {"ext4", "xfs", "btrfs", "tmpfs", "overlay", NULL};
    struct pstk_machine machine = {.size = sizeof machine};
    if (!part->is_auto || part->found.local_world >= part->found.world ||
        pstk_get_machine(out, &machine, NULL) < 0)
        return;
    for (int i = 0; own[i]; i++)
        if (strcmp(machine.file_system, own[i]) == 0)
            message_say("warning: %s is on %s, which other machines do not see unless it is "
                        "exported, and %s started processes on several: `penstock merge` needs "
                        "all parts in one place (give an OUT that all machines share, or copy the "
                        "parts together)",
                        out, own[i], part->found.source);
}

void part_put(const struct part *part, struct json_t *object)
{
    json_put_count(object, "part", part->number);
    json_put_count(object, "n_parts", part->n);
    json_put_text(object, "source",
                  !part->is_auto  ? NULL
                  : part->n_array ? "SLURM array"
                                  : part->found.source);
}
