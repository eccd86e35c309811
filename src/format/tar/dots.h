/* SPDX-License-Identifier: Apache-2.0 */
/* dots: detects names whose keys may end at another dot than the first. Pure. */
#ifndef PSTK_TAR_DOTS_H
#define PSTK_TAR_DOTS_H

#include "format/tar/suffixes.h"

/* 1: the names suggest another dot than the first one. *found and *together are made with keys that
 * end at the first dot.
 *
 * A suffix with a dot has a stem and an end: "00" and "jpg" of "00.jpg". The names are doubtful if
 * two such suffixes have one end and different stems, no noted sample has both a suffix with a dot
 * and one without, and one of two conditions holds. First: no sample has suffixes of two stems, as
 * with s_0.00.jpg and s_1.01.jpg. Second: each stem has a digit, and there is only one sample, as
 * with v1.0_0.jpg and v1.0_1.jpg, or no suffix with a dot is on more than half of the samples. */
int pstk__tar_dots_doubtful(const struct pstk__tar_together *together,
                            const struct pstk__inferred_schema *found);

#endif
