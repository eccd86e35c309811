/* SPDX-License-Identifier: Apache-2.0 */
/* The empty table of builds without xxHash. */
#include "base/hash_kind.h"

const struct pstk__hash_kind pstk__hash_xx[] = {{.name = NULL}};
