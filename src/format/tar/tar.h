/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tar: samples in tar archives, as in WebDataset; an entry of format.c. Members of one archive form
 * a sample if their names agree up to the first dot of their last part, even if they are not
 * consecutive; the rest of the name is the field. Archives are read in place.
 */
#ifndef PSTK_FORMAT_TAR_H
#define PSTK_FORMAT_TAR_H

#include "format/format.h"

extern const struct pstk__format pstk__format_tar;

#endif
