/* SPDX-License-Identifier: Apache-2.0 */
/* utf8: finds the first byte of a text that is not UTF-8. Pure. */
#ifndef PSTK_UTF8_H
#define PSTK_UTF8_H

#include <stdint.h>

/* Return the offset of the first byte that is not UTF-8; `size` when all bytes are. */
uint64_t pstk__utf8_end(const void *text, uint64_t size);

#endif
