/* SPDX-License-Identifier: Apache-2.0 */
/*
 * npy: a directory of FIELD.npy arrays of NumPy, an entry of format.c. One file a field; row i of
 * each is sample i. Files are read in place. They have no checksums.
 */
#ifndef PSTK_FORMAT_NPY_H
#define PSTK_FORMAT_NPY_H

#include "format/format.h"

extern const struct pstk__format pstk__format_npy;

#endif
