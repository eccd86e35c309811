/* SPDX-License-Identifier: Apache-2.0 */
/* unit: formats numbers for people. Functions that take `text` return it. */
#ifndef PSTK_CLI_UNIT_H
#define PSTK_CLI_UNIT_H

#include <stdint.h>

#define UNIT_SIZE 32 /* bytes of every text below */

/* Write 1234567 as "1,234,567". */
const char *unit_count(char text[UNIT_SIZE], uint64_t n);
/* Write 1234567 as "1.23 MB"; powers of 1000. */
const char *unit_bytes(char text[UNIT_SIZE], double bytes);
/* Write 83.4 as "1:23"; below 100 s with a fraction: "83.4 s". */
const char *unit_seconds(char text[UNIT_SIZE], double seconds);
/* Write a time always as a clock: "0:07", "1:23:45". */
const char *unit_clock(char text[UNIT_SIZE], double seconds);
/* Return the seconds of a monotonic clock. */
double unit_now(void);

#endif
