/* SPDX-License-Identifier: Apache-2.0 */
/* utf8: where text stops being UTF-8. Pure. */
#ifndef PSTK_UTF8_H
#define PSTK_UTF8_H

#include <stdint.h>

/* Offset of the first byte that is not UTF-8; `size` when all of it is. */
uint64_t pstk__utf8_end(const void *text, uint64_t size);

#endif
