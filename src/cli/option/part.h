/* SPDX-License-Identifier: Apache-2.0 */
/*
 * part: the part of a data set that `pack` makes: the values of --part and --parts, and the result
 * of `--part auto`. Auto asks the launchers (ranks.h), a job array of SLURM, and an indexed Job of
 * Kubernetes, whose size --parts gives. A step of several tasks in an array has a part for each
 * task: index * tasks + rank.
 */
#ifndef PSTK_CLI_PART_H
#define PSTK_CLI_PART_H

#include <stdint.h>

#include <penstock/ranks.h>

struct json_t;

#define PART_MAX 65536
#define PART_TEXT 128

/* All zero before the options are read. */
struct part {
    uint32_t number, n; /* part `number` of n; without an option n is 0 before part_settle */
    uint32_t n_parts;   /* value of --parts; 0: not given */
    int is_auto;
    struct pstk_found_ranks found; /* result of auto */
    uint32_t n_array, array_task;  /* n_array: tasks of the job array; 0: there is none */
    int has_made;                  /* 1: part_path made OUT */
};

/* Read the value of --part or --parts. Return 0, or -1 after a message. */
int part_set(struct part *part, const char *value);
int part_set_n(struct part *part, const char *value);
/* Find the part of --part auto, and check that the options go together. Returns 0 or an exit
 * status. */
int part_settle(struct part *part);
/* Return the path of the part's data set, owned by the caller: OUT, or with auto
 * OUT/part-00001-of-00004, whose folder OUT it makes. NULL after a message. */
char *part_path(struct part *part, const char *out);
/* Remove OUT again if part_path made it and it is empty: the source cannot be packed. */
void part_undo(const struct part *part, const char *out);
/* Write "part 1 of 4", with its source after --part auto. */
const char *part_text(const struct part *part, char text[PART_TEXT]);
/* Return the number of processes that the launcher started here, 1 without --part auto. */
uint32_t part_processes(const struct part *part);
/* Return the number of threads that this process takes of `n_cores`: a share if the launcher
 * started several processes on this machine with the same cores. */
uint32_t part_threads(const struct part *part, uint32_t n_cores);
/* Warn if other machines make parts, and OUT lies on a file system that they cannot see. */
void part_warn(const struct part *part, const char *out);
/* Put part, n_parts and source (null without auto). */
void part_put(const struct part *part, struct json_t *object);

#endif
