/* SPDX-License-Identifier: Apache-2.0 */
#include "unpack/same.h"

#include "base/error.h"

int pstk__unpack_check_same(const struct pstk__file *file, const char *path, const char *name,
                            uint64_t size, int64_t changed_ns, struct pstk_error *err)
{
    uint64_t is_size;
    int64_t is_ns;
    const int r = file->store->stat(file, &is_size, &is_ns);
    if (r < 0)
        return pstk__fail_errno(err, -r, PSTK_STAGE_OPEN, "cannot read %s", path);
    if (is_size == size && is_ns == changed_ns)
        return 0;
    pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_OPEN,
               "%s was changed or replaced since the data set was opened (%s differs): open the "
               "data set again",
               path, is_size == size ? "its time of change" : "its size");
    return pstk__fail_at(err, PSTK_EBADMSG, name, PSTK_NONE, 0, 0);
}
