/* SPDX-License-Identifier: Apache-2.0 */
/* local_file: descriptors of a test's own as open files of the local store. */
#ifndef PSTK_TEST_LOCAL_FILE_H
#define PSTK_TEST_LOCAL_FILE_H

#include "store/store.h"

/* Descriptor fd, -1 to 1022, as a file that lives as long as the test. One thread; others may read
 * what it got before, which is never written again. */
static inline const struct pstk__file *local_file(int fd)
{
    static struct pstk__file files[1024];
    if (!files[fd + 1].store)
        files[fd + 1] = (struct pstk__file){.store = &pstk__store_local, .fd = fd};
    return &files[fd + 1];
}

#endif
