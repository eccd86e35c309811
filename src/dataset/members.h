/* SPDX-License-Identifier: Apache-2.0 */
/* members: a subset of a data set with the memory that it needs, and counted references to shared
 * lists and weights. */
#ifndef PSTK_MEMBERS_H
#define PSTK_MEMBERS_H

#include "order/alias.h"
#include "order/subset.h"

#include <penstock/format.h>

struct pstk_members;

/* Return the mapping from index to id; it lives as long as the members. */
const struct pstk__subset *pstk__members_subset(const struct pstk_members *members);
/* Return the table by which an epoch draws with replacement; NULL: none. It lives as long as the
 * members. */
const struct pstk__alias *pstk__members_alias(const struct pstk_members *members);

#endif
