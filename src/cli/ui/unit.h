/* SPDX-License-Identifier: Apache-2.0 */
/* unit: numbers as people read them. Functions that take `text` return it. */
#ifndef PSTK_CLI_UNIT_H
#define PSTK_CLI_UNIT_H

#include <stdint.h>

#define UNIT_SIZE 32 /* bytes of every text below */

/* 1234567 -> "1,234,567" */
const char *unit_count(char text[UNIT_SIZE], uint64_t n);
/* 1234567 -> "1.23 MB"; powers of 1000. */
const char *unit_bytes(char text[UNIT_SIZE], double bytes);
/* 83.4 -> "1:23"; under 100 s with a fraction: "83.4 s". */
const char *unit_seconds(char text[UNIT_SIZE], double seconds);
/* Always as a clock: "0:07", "1:23:45". */
const char *unit_clock(char text[UNIT_SIZE], double seconds);
/* Return the seconds of a monotonic clock. */
double unit_now(void);

#endif
