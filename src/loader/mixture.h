/* SPDX-License-Identifier: Apache-2.0 */
/* mixture: the data sets of a loader with several. Checks their settings, joins their sources,
 * makes the order of the mixture. */
#ifndef PSTK_LOADER_MIXTURE_H
#define PSTK_LOADER_MIXTURE_H

#include "format/format.h"
#include "order/pick.h"

#include <penstock/penstock.h>

/* Check the settings that need no data set; settings->mixture is not NULL. EINVAL names the
 * setting. */
int pstk__mixture_check(const struct pstk_settings *settings, struct pstk_error *err);
/* Open the data sets as one joined data set, which the caller closes also after an error. */
int pstk__mixture_open(struct pstk_dataset **out, const struct pstk_settings *s,
                       struct pstk_error *err);
/* Make the order of the mixture, *out, and find the subsets of its data sets, members_of. Both are
 * owned, also after an error. joined: source of the data set that pstk__mixture_open made. */
int pstk__mixture_make_order(struct pstk__mixture **out,
                             struct pstk_members *members_of[PSTK_MAX_DATA_SETS],
                             const struct pstk_settings *s, const struct pstk__source *joined,
                             struct pstk_error *err);
/* Put the data set of a pick before the message of its error. mixture may be NULL: this does
 * nothing. */
void pstk__mixture_name(const struct pstk__mixture *mixture, const struct pstk__source *joined,
                        const struct pstk__pick *pick, struct pstk_error *err);

#endif
