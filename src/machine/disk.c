/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/disk.h"

#include <stddef.h>
#include <stdio.h>

#define PATH_SIZE 4096 /* bytes; a longer path counts as missing */

/* Read "0" or "1"; -1: the file does not exist, or holds something else. */
static int32_t read_flag(const char *path)
{
    FILE *stream = fopen(path, "re");
    if (!stream)
        return -1;
    const int first = fgetc(stream);
    fclose(stream);
    return first == '0' || first == '1' ? first - '0' : -1;
}

int32_t pstk__disk_rotational(const char *root, unsigned device_major, unsigned device_minor)
{
    /* A partition has no queue; the link sys/dev/block/M:N leads into its disk's folder. */
    static const char *const files[] = {"queue/rotational", "../queue/rotational"};
    int32_t flag = -1;
    for (size_t i = 0; flag < 0 && i < sizeof files / sizeof *files; i++) {
        char path[PATH_SIZE];
        const int n = snprintf(path, sizeof path, "%s/sys/dev/block/%u:%u/%s", root, device_major,
                               device_minor, files[i]);
        flag = n > 0 && (size_t)n < sizeof path ? read_flag(path) : -1;
    }
    return flag;
}
