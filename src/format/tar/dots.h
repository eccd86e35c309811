/* SPDX-License-Identifier: Apache-2.0 */
/* dots: whether the names of members say that another dot than the first ends their keys. Pure. */
#ifndef PSTK_TAR_DOTS_H
#define PSTK_TAR_DOTS_H

#include "format/tar/suffixes.h"

/* 1: the names speak against the first dot. *found and *together are of keys that end there.
 *
 * A suffix with a dot is a stem and an end: "00" and "jpg" of "00.jpg". The names speak against the
 * first dot where suffixes with one end have several stems, no sample has such a suffix and one
 * without a dot, and either no sample has two stems: each has its own, as s_0.00.jpg and
 * s_1.01.jpg; or all stems are numbered, and samples do not share them: there is one sample, as of
 * v1.0_0.jpg and v1.0_1.jpg, or each of these suffixes is on at most half of the samples. */
int pstk__tar_dots_doubtful(const struct pstk__tar_together *together,
                            const struct pstk__inferred_schema *found);

#endif
