/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manifest_columns: parses the side columns of a manifest. manifest_json.c finds their list, and
 * calls this after it has parsed the fields, which columns may name.
 */
#ifndef PSTK_MANIFEST_COLUMNS_H
#define PSTK_MANIFEST_COLUMNS_H

#include "format/pstk/manifest_parse.h"

/* Add the columns of the list `piece` to the manifest. */
void pstk__parse_columns(struct pstk__parse *parse, const struct pstk__json_piece *piece);

#endif
