/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/task_settings.h"

#include "base/error.h"

#include <string.h>

static int invalid(struct pstk_error *err, const char *name, uint32_t value, const char *advice)
{
    return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, "%s: value is %u; must be %s", name, value,
                      advice);
}

int pstk__task_settings_check(const struct pstk_writer_settings *s, struct pstk_error *err)
{
    if (s->pack_id && !pstk__pack_id_ok(s->pack_id))
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "pack_id: value is '%.64s'; must be 32 lower-case hex digits",
                          s->pack_id);
    if (s->task && (s->part || s->n_parts > 1))
        return invalid(err, "n_parts", s->n_parts,
                       "0 with a task, which a part has in place of a number");
    if (s->task && !s->pack_id)
        return pstk__fail(
            err, PSTK_EINVAL, PSTK_STAGE_OPEN,
            "pack_id: value is NULL; must be the id of the pack that task %.64s is of", s->task);
    if (s->task && !pstk__task_key_ok(s->task))
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "task: value is '%.220s'; must be 1 to %d of the characters A-Z a-z 0-9 "
                          "_ . : = / -",
                          s->task, PSTK__TASK_KEY_MAX);
    return s->attempt && !s->task ? invalid(err, "attempt", s->attempt, "0 without a task") : 0;
}

void pstk__task_settings_copy(struct pstk__task *task, const struct pstk_writer_settings *s)
{
    memset(task, 0, sizeof *task);
    memcpy(task->pack_id, s->pack_id, PSTK__PACK_ID_SIZE);
    memcpy(task->key, s->task, strlen(s->task));
    task->attempt = s->attempt;
}
