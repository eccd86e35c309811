/* SPDX-License-Identifier: Apache-2.0 */
/* task_settings: the settings with which a writer makes the part of a task, or commits such parts.
 */
#ifndef PSTK_TASK_SETTINGS_H
#define PSTK_TASK_SETTINGS_H

#include "format/pstk/task.h"

#include <penstock/format.h>

/* Check pack_id, task, attempt and the settings that depend on them. EINVAL names the setting. */
int pstk__task_settings_check(const struct pstk_writer_settings *s, struct pstk_error *err);
/* Copy the task, if there is one, from checked settings. */
void pstk__task_settings_copy(struct pstk__task *task, const struct pstk_writer_settings *s);

#endif
