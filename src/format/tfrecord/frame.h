/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frame: the bytes around the data of a TFRecord. Pure. A file consists only of records:
 *
 *   u64 length of the data, u32 masked CRC32C of these 8 bytes, data, u32 masked CRC32C of the data
 */
#ifndef PSTK_TFRECORD_FRAME_H
#define PSTK_TFRECORD_FRAME_H

#include "base/crc32c.h"
#include "base/little.h"

#define PSTK__TFRECORD_HEAD 12 /* bytes before the data */
#define PSTK__TFRECORD_TAIL 4  /* bytes after it */
#define PSTK__TFRECORD_FRAME (PSTK__TFRECORD_HEAD + PSTK__TFRECORD_TAIL)

/* Apply TensorFlow's mask to a checksum; unmask removes it. */
static inline uint32_t pstk__tfrecord_mask(uint32_t crc)
{
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}
static inline uint32_t pstk__tfrecord_unmask(uint32_t masked)
{
    const uint32_t rotated = masked - 0xa282ead8u;
    return rotated >> 17 | rotated << 15;
}

/* 1: the bytes are the head of a record with a valid checksum; *length: bytes of its data. */
static inline int pstk__tfrecord_head(const uint8_t head[PSTK__TFRECORD_HEAD], uint64_t *length)
{
    *length = pstk__get64(head);
    return pstk__get32(head + 8) == pstk__tfrecord_mask(pstk__crc32c(0, head, 8));
}

/* 1: the checksum after `length` bytes of data is valid. */
static inline int pstk__tfrecord_intact(const uint8_t *data, uint64_t length)
{
    return pstk__get32(data + length) == pstk__tfrecord_mask(pstk__crc32c(0, data, length));
}

#endif
