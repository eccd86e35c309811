/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces whole_brotli.c if its library is missing. */
#include "store/unpack/whole.h"

const struct pstk__whole pstk__whole_brotli = {.name = "brotli", .missing = "libbrotli-dev"};
