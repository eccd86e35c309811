/* SPDX-License-Identifier: Apache-2.0 */
#include "format/pstk/task.h"

#include "base/random.h"

#include <stdio.h>
#include <string.h>

/* 32 + 1 + 200 + 1 + 10 digits + the terminating 0 */
_Static_assert(PSTK__PACK_ID_SIZE + PSTK__TASK_KEY_MAX + 13 <= PSTK__TASK_TEXT, "the text fits");

int pstk__pack_id_ok(const char *text)
{
    return strlen(text) == PSTK__PACK_ID_SIZE &&
           strspn(text, "0123456789abcdef") == PSTK__PACK_ID_SIZE;
}

int pstk__task_key_ok(const char *text)
{
    const size_t n = strlen(text);
    return n >= 1 && n <= PSTK__TASK_KEY_MAX &&
           strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.:=/-") ==
               n;
}

const char *pstk__task_text(const struct pstk__task *task, char text[PSTK__TASK_TEXT])
{
    snprintf(text, PSTK__TASK_TEXT, "%s/%s/%u", task->pack_id, task->key, task->attempt);
    return text;
}

uint64_t pstk__task_hash(const struct pstk__task *task)
{
    char text[PSTK__TASK_TEXT];
    uint64_t hash = 0;
    for (const char *c = pstk__task_text(task, text); *c; c++)
        hash = pstk__mix64(hash ^ (uint8_t)*c) + 0x9E3779B97F4A7C15u;
    return hash;
}
