/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arrays: arrays in files, an entry of format.c: a directory of FIELD.npy arrays of NumPy. One file
 * a field; row i of each is sample i. Files are read in place. They have no checksums.
 */
#ifndef PSTK_ARRAYS_H
#define PSTK_ARRAYS_H

#include "format/format.h"

extern const struct pstk__format pstk__format_npy;

#endif
