/* SPDX-License-Identifier: Apache-2.0 */
/* same: a file that is read through is the one that the data set lists. */
#ifndef PSTK_UNPACK_SAME_H
#define PSTK_UNPACK_SAME_H

#include "store/store.h"

/* Check the size and the time of change of an open file. Called before its first byte is read and
 * after its last: what was made of the bytes between them is then of the file that was listed. 0;
 * EBADMSG: it was changed or replaced; others of stat. `name`: as the data set lists it. */
int pstk__unpack_check_same(const struct pstk__file *file, const char *path, const char *name,
                            uint64_t size, int64_t changed_ns, struct pstk_error *err);

#endif
