/* SPDX-License-Identifier: Apache-2.0 */
/* left_out: files of a data set's format in its folder that it does not read: files in the folders
 * one level below, or files whose names differ slightly from those that it reads. */
#ifndef PSTK_FORMAT_LEFT_OUT_H
#define PSTK_FORMAT_LEFT_OUT_H

#include "format/format.h"

/* Count these files, and write a sentence about them, or "". Only a folder of a format with names
 * has such files. Looks one level deep: at all names at the top, and at a bounded number of those
 * below. The time is proportional to the names at the top, so it is called only on request. */
uint64_t pstk__left_out_find(const struct pstk__source *source, char text[PSTK_LEFT_OUT_SIZE]);

#endif
