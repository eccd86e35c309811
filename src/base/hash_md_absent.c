/* SPDX-License-Identifier: Apache-2.0 */
/* The empty table of builds without libmd. */
#include "base/hash_kind.h"

const struct pstk__hash_kind pstk__hash_md[] = {{.name = NULL}};
