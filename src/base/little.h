/* SPDX-License-Identifier: Apache-2.0 */
/* little: little-endian integers in bytes of any alignment. Pure. */
#ifndef PSTK_LITTLE_H
#define PSTK_LITTLE_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

static inline uint16_t pstk__get16(const void *from)
{
    uint16_t v;
    memcpy(&v, from, sizeof v);
    return le16toh(v);
}

static inline uint32_t pstk__get32(const void *from)
{
    uint32_t v;
    memcpy(&v, from, sizeof v);
    return le32toh(v);
}

static inline uint64_t pstk__get64(const void *from)
{
    uint64_t v;
    memcpy(&v, from, sizeof v);
    return le64toh(v);
}

static inline void pstk__put16(void *to, uint16_t v)
{
    v = htole16(v);
    memcpy(to, &v, sizeof v);
}

static inline void pstk__put32(void *to, uint32_t v)
{
    v = htole32(v);
    memcpy(to, &v, sizeof v);
}

static inline void pstk__put64(void *to, uint64_t v)
{
    v = htole64(v);
    memcpy(to, &v, sizeof v);
}

#endif
