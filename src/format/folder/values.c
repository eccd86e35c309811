/* SPDX-License-Identifier: Apache-2.0 */
#include "format/folder/values.h"

#include "base/crc32c.h"
#include "base/little.h"
#include "format/folder/name.h"

#include <string.h>

enum { CRC = 0, PATH_SIZE = 4, NUMBER = 8 };

uint32_t pstk__folder_values_write(uint8_t to[PSTK__VALUES_MAX], int64_t number, const char *path)
{
    const uint32_t path_size = (uint32_t)strlen(path);
    pstk__put32(to + PATH_SIZE, path_size);
    pstk__put64(to + NUMBER, (uint64_t)number);
    memcpy(to + PSTK__VALUES_PATH, path, path_size + 1);
    char *shown = (char *)to + PSTK__VALUES_PATH + path_size + 1;
    if (!pstk__folder_show(path, shown, PSTK__VALUES_MAX_SHOWN))
        shown[0] = 0;
    const uint32_t size = PSTK__VALUES_PATH + path_size + 1 + (uint32_t)strlen(shown) + 1;
    pstk__put32(to + CRC, pstk__crc32c(0, to + PATH_SIZE, size - PATH_SIZE));
    return size;
}

/* 1: the path is relative, without "..". It is checked because anybody may have written the index.
 */
static int stays_below(const char *path)
{
    if (path[0] == '/')
        return 0;
    for (const char *part = path; part; part = strchr(part, '/') ? strchr(part, '/') + 1 : NULL)
        if (part[0] == '.' && part[1] == '.' && (part[2] == '/' || part[2] == 0))
            return 0;
    return 1;
}

const char *pstk__folder_values_read(struct pstk__folder_values *values, const uint8_t *bytes,
                                     uint64_t size)
{
    if (size < PSTK__VALUES_PATH + 3 || size > PSTK__VALUES_MAX)
        return "their size is wrong";
    if (pstk__get32(bytes + CRC) != pstk__crc32c(0, bytes + PATH_SIZE, size - PATH_SIZE))
        return "their CRC32C is wrong";
    const uint32_t path_size = pstk__get32(bytes + PATH_SIZE);
    const uint64_t room = size - PSTK__VALUES_PATH;
    if (path_size == 0 || path_size > room - 2)
        return "the path's size is wrong";
    const char *path = (const char *)bytes + PSTK__VALUES_PATH, *shown = path + path_size + 1;
    if (strnlen(path, room) != path_size ||
        strnlen(shown, room - path_size - 1) != room - path_size - 2)
        return "the path does not end where it should";
    if (!stays_below(path))
        return "the path leads out of the folder";
    *values = (struct pstk__folder_values){.number = bytes + NUMBER,
                                           .path = path,
                                           .path_size = path_size,
                                           .shown = shown[0] ? shown : path};
    return NULL;
}
