/* SPDX-License-Identifier: Apache-2.0 */
/* mixture: the data sets of a loader that has several: settings checked, sources joined, the order
 * of the mixture made. */
#ifndef PSTK_LOADER_MIXTURE_H
#define PSTK_LOADER_MIXTURE_H

#include "loader/pipeline.h"

/* Check all that needs no data set: settings->mixture is not NULL. EINVAL names the setting. */
int pstk__mixture_check(const struct pstk_settings *settings, struct pstk_error *err);
/* Open the data sets and make the mixture: pipeline->dataset, which the caller closes, mixture and
 * members_of. */
int pstk__mixture_open(struct pstk__pipeline *pipeline, struct pstk_error *err);
/* Free the mixture and the members of its data sets; also what a failed open has left. */
void pstk__mixture_close(struct pstk__pipeline *pipeline);
/* Put the data set of a pick before the message of its error. Without a mixture, nothing. */
void pstk__mixture_name(const struct pstk__pipeline *pipeline, const struct pstk__pick *pick,
                        struct pstk_error *err);

#endif
