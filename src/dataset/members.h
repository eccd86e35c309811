/* SPDX-License-Identifier: Apache-2.0 */
/* members: a subset of a data set with the memory that it needs, counted references to both. */
#ifndef PSTK_MEMBERS_H
#define PSTK_MEMBERS_H

#include "order/alias.h"
#include "order/subset.h"

#include <penstock/format.h>

struct pstk_members;

/* Index -> id; lives as long as the members. */
const struct pstk__subset *pstk__members_subset(const struct pstk_members *members);
/* The draws with replacement of an epoch; NULL: none. Lives as long. */
const struct pstk__alias *pstk__members_alias(const struct pstk_members *members);

#endif
