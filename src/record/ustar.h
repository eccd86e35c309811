/* SPDX-License-Identifier: Apache-2.0 */
/* ustar: the name in a header of a tar archive (POSIX.1-1988, 10.1.1). Pure. */
#ifndef PSTK_USTAR_H
#define PSTK_USTAR_H

#include <stdint.h>

#define PSTK__USTAR_HEADER 512
#define PSTK__USTAR_NAME 0       /* offset of the name in the header, bytes */
#define PSTK__USTAR_MAX_NAME 257 /* size of prefix, slash, name and 0, bytes */

/* Return 1 if the name is in two parts: a prefix, and the rest. */
int pstk__ustar_is_parted(const uint8_t header[PSTK__USTAR_HEADER]);
/* Write the whole name and a 0. Returns its bytes without the 0. */
uint32_t pstk__ustar_name(const uint8_t header[PSTK__USTAR_HEADER],
                          char name[PSTK__USTAR_MAX_NAME]);
/* Return the name without leading "./". */
static inline const char *pstk__ustar_trim(const char *name)
{
    while (name[0] == '.' && name[1] == '/')
        name += 2;
    return name;
}

#endif
