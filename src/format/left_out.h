/* SPDX-License-Identifier: Apache-2.0 */
/* left_out: files of a data set's format in its folder that it does not read: in the folders right
 * below, or with names that are not quite as those that it reads. */
#ifndef PSTK_FORMAT_LEFT_OUT_H
#define PSTK_FORMAT_LEFT_OUT_H

#include "format/format.h"

/* Count them in source->n_left_out, and say so in source->left_out, if `path` is a folder of a
 * format with names. Looks one level deep: at all names at the top,
 * and at a bounded number of those below. */
void pstk__left_out_find(struct pstk__source *source, const char *path);

#endif
