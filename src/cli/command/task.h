/* SPDX-License-Identifier: Apache-2.0 */
/* task: the options of commands that write and merge parts of unknown number. */
#ifndef PSTK_CLI_TASK_H
#define PSTK_CLI_TASK_H

#include <stdint.h>

/* The options that make a pack the part of a task. All zero: no task. */
struct task {
    const char *pack_id; /* the option's value, or NULL */
    const char *key;     /* value of the other option, or NULL */
    uint32_t attempt;
};

/* Read --pack-id. Returns 0, or -1 after a message. */
int task_set_pack_id(const char **pack_id, const char *value);
/* Check that the options go together, also with --part (is_auto: auto). Returns 0, or an exit
 * status after a message. */
int task_check(const struct task *task, uint32_t n_parts, int is_auto);

#endif
