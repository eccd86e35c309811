/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tfrecord: TFRecord files, an entry of format.c. Records of tf.train.Example have its features as
 * fields (example.h); other records have one field, `data`. Both checksums of a record are compared
 * whenever it is read. Files are read in place.
 */
#ifndef PSTK_FORMAT_TFRECORD_H
#define PSTK_FORMAT_TFRECORD_H

#include "format/format.h"

extern const struct pstk__format pstk__format_tfrecord;

#endif
