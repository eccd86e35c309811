/* SPDX-License-Identifier: Apache-2.0 */
#include "command/task.h"

#include <stddef.h>
#include <string.h>

#include "command/pack_id.h"
#include "ui/message.h"

#define TASK_KEY_MAX 200 /* bytes */

int task_set_pack_id(const char **pack_id, const char *value)
{
    *pack_id = value;
    if (strlen(value) == PACK_ID_SIZE && strspn(value, "0123456789abcdef") == PACK_ID_SIZE)
        return 0;
    message_say("--pack-id: value is '%s'; must be 32 hex digits in lower case (make them once for "
                "a pack: tr -d - </proc/sys/kernel/random/uuid)",
                value);
    return -1;
}

static int is_key(const char *text)
{
    const size_t n = strlen(text);
    return n >= 1 && n <= TASK_KEY_MAX &&
           strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.:=/-") ==
               n;
}

int task_check(const struct task *task, uint32_t n_parts, int is_auto)
{
    if (task->key && !is_key(task->key))
        return message_usage("--task: value is '%s'; must be 1 to %d of the characters A-Z a-z 0-9 "
                             "_ . : = / -",
                             task->key, TASK_KEY_MAX);
    if (task->key && !task->pack_id)
        return message_usage("--task: value is '%s'; must come with --pack-id ID, the same for all "
                             "tasks of a pack",
                             task->key);
    if (task->pack_id && !task->key && n_parts < 2 && !is_auto)
        return message_usage("--pack-id: value is '%s'; must come with --task KEY or --part",
                             task->pack_id);
    if (task->attempt && !task->key)
        return message_usage("--attempt: value is %u; must come with --task KEY", task->attempt);
    if (task->key && (n_parts > 1 || is_auto))
        return message_usage("--task: value is '%s'; must not come with --part, whose parts have a "
                             "number",
                             task->key);
    return 0;
}
