/* SPDX-License-Identifier: Apache-2.0 */
#include "annotations/whole_file.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "annotations/source.h"
#include "base/error.h"
#include "base/file.h"

int pstk__whole_file_read(struct pstk__bytes *bytes, const char *path, uint64_t most,
                          struct pstk_error *err)
{
    struct stat st;
    const int fd = pstk__file_open(path);
    if (fd < 0)
        return pstk__file_fail(err, -fd, PSTK_STAGE_OPEN, path, path);
    uint8_t piece[16384];
    int64_t n = fstat(fd, &st) < 0 ? -errno : 0;
    int r = 0;
    pstk__bytes_clear(bytes);
    if (n == 0 && (uint64_t)st.st_size > most)
        r = pstk__fail(err, PSTK_EFBIG, PSTK_STAGE_OPEN, "%.300s: larger than %" PRIu64 " MiB",
                       path, most >> 20);
    while (r == 0 && n >= 0 && bytes->size <= most) {
        n = pstk__file_pread(fd, piece, sizeof piece, bytes->size);
        if (n <= 0)
            break;
        pstk__bytes_put(bytes, piece, (uint64_t)n);
        if (bytes->failed)
            r = pstk__annotations_no_memory(err);
    }
    if (r == 0 && n < 0)
        r = pstk__fail_errno(err, (int)-n, PSTK_STAGE_OPEN, "cannot read %.300s", path);
    close(fd);
    return r;
}
