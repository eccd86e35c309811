/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mds: data sets of MosaicML streaming, an entry of format.c: a folder with an index.json that
 * lists shards of the format "mds". They are read in place. A shard is u32 n, u32 offset[n + 1] and
 * a description of its columns; sample i is the bytes from offset[i] to offset[i + 1]. A sample is
 * the sizes of its values in columns of variable size, each a u32, then the values of all columns.
 */
#ifndef PSTK_FORMAT_MDS_H
#define PSTK_FORMAT_MDS_H

#include "format/format.h"

extern const struct pstk__format pstk__format_mds;

#endif
