/* SPDX-License-Identifier: Apache-2.0 */
/* whole_file: reads a whole file of limited size. */
#ifndef PSTK_WHOLE_FILE_H
#define PSTK_WHOLE_FILE_H

#include <penstock/types.h>

#include "base/bytes.h"

/* Replace the contents of `bytes` by those of a file, at most `most` bytes. 0, EFBIG, ENOENT,
 * EACCES, EIO or ENOMEM. */
int pstk__whole_file_read(struct pstk__bytes *bytes, const char *path, uint64_t most,
                          struct pstk_error *err);

#endif
