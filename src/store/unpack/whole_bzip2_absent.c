/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces whole_bzip2.c if its library is missing. */
#include "store/unpack/whole.h"

const struct pstk__whole pstk__whole_bzip2 = {.name = "bzip2", .missing = "libbz2-dev"};
