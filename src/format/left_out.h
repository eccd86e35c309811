/* SPDX-License-Identifier: Apache-2.0 */
/* left_out: files of a data set's format in its folder that it does not read: in the folders right
 * below, or with names that are not quite as those that it reads. */
#ifndef PSTK_FORMAT_LEFT_OUT_H
#define PSTK_FORMAT_LEFT_OUT_H

#include "format/format.h"

/* Count them, and write a sentence about them, "" where there are none. Only a folder of a format
 * with names has such files. It looks one level deep: at all names at the top, and at a bounded
 * number of those below. That takes time in proportion to the names at the top, so it is done only
 * when somebody asks. */
uint64_t pstk__left_out_find(const struct pstk__source *source, char text[PSTK_LEFT_OUT_SIZE]);

#endif
