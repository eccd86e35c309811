/* SPDX-License-Identifier: Apache-2.0 */
/*
 * box_where: the condition of a boxes output, "iscrowd == 0", which selects the boxes of a record.
 * Pure.
 */
#ifndef PSTK_BOX_WHERE_H
#define PSTK_BOX_WHERE_H

#include "augment/boxes.h"

#include <penstock/format.h>

enum pstk__comparison {
    PSTK__EQUAL,
    PSTK__NOT_EQUAL,
    PSTK__LESS,
    PSTK__AT_MOST,
    PSTK__GREATER,
    PSTK__AT_LEAST
};

struct pstk__box_where {
    enum pstk__comparison comparison;
    int64_t value;
};

/* Parse "COLUMN OP INTEGER"; `column` becomes the name. Returns 0, or -1 if the text is no
 * condition. */
int pstk__box_where_parse(struct pstk__box_where *where, char column[PSTK_MAX_NAME],
                          const char *text);
/* Exclude the boxes whose numbers do not fit the condition; `numbers` has one for each box. */
void pstk__box_where_apply(const struct pstk__box_where *where, const void *numbers, uint32_t dtype,
                           struct pstk__boxes *boxes);

#endif
