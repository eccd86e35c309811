/* SPDX-License-Identifier: Apache-2.0 */
/* dots: detects names of members whose keys end at another dot than the first. Pure. */
#ifndef PSTK_TAR_DOTS_H
#define PSTK_TAR_DOTS_H

#include "format/tar/suffixes.h"

/* 1: the names suggest another dot than the first. *found and *together are of keys that end at the
 * first dot.
 *
 * A suffix with a dot is a stem and an end: "00" and "jpg" of "00.jpg". The names are doubtful if
 * suffixes with one end have several stems, no sample has both such a suffix and one without a dot,
 * and one of two conditions holds. First: no sample has two stems, so each has its own, as
 * s_0.00.jpg and s_1.01.jpg. Second: all stems are numbered, and samples do not share them: there
 * is one sample, as of v1.0_0.jpg and v1.0_1.jpg, or each of these suffixes is on at most half of
 * the samples. */
int pstk__tar_dots_doubtful(const struct pstk__tar_together *together,
                            const struct pstk__inferred_schema *found);

#endif
