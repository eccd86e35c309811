/* SPDX-License-Identifier: Apache-2.0 */
/* settings: a checked copy of the caller's settings. */
#ifndef PSTK_SETTINGS_H
#define PSTK_SETTINGS_H

#include <penstock/penstock.h>

/* Copy the caller's settings, which may be of an older or a newer library; fill unset ones with
 * defaults. The copy's pointers still point to the caller's memory. EINVAL, ENOTSUP. */
int pstk__settings_copy(struct pstk_settings *to, const struct pstk_settings *from,
                        struct pstk_error *err);
/* Check the settings that need no data set: ranges, and members that must be set. Set batch_size if
 * global_batch_size is given. EINVAL or ENOTSUP names the setting. */
int pstk__settings_check(struct pstk_settings *s, struct pstk_error *err);
/* Check a new batch size, which the loader takes between two batches. rows: batch_size or, if these
 * settings have one, global_batch_size; room: rows that a slot has room for. Sets *global_batch to
 * the rows of all ranks together. EINVAL names the setting. */
int pstk__settings_resize(const struct pstk_settings *s, uint32_t rows, uint32_t room,
                          uint64_t *global_batch, struct pstk_error *err);

#endif
