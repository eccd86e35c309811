/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces whole_snappy.c if its library is missing. */
#include "store/unpack/whole.h"

const struct pstk__whole pstk__whole_snappy = {.name = "snappy", .missing = "libsnappy-dev"};
