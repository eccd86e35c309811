/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arrays: arrays in files as a data set, an entry of format.c. Its path is a directory of .npy,
 * .npz and .safetensors files, or one of these files. Each array is a field, and row i of each is
 * sample i. Rows are read in place.
 *
 *     x.npy          one field, x                                       npy
 *     data.npz       a ZIP archive of .npy arrays, stored               zip, npy
 *     a.safetensors  a head of JSON, then tensors                       safetensors
 *                                                      by container --> open
 *
 * The parsers read no file. Rows have no checksums; an array in an archive has one, which
 * pstk_verify checks.
 */
#ifndef PSTK_ARRAYS_H
#define PSTK_ARRAYS_H

#include "format/format.h"

extern const struct pstk__format pstk__format_arrays;

#endif
