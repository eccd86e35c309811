/* SPDX-License-Identifier: Apache-2.0 */
/* In a build without xxHash. */
#include "base/hash_kind.h"

const struct pstk__hash_kind pstk__hash_xx[] = {{.name = NULL}};
