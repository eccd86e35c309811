/* SPDX-License-Identifier: Apache-2.0 */
#include "ui/unit.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

const char *unit_count(char text[UNIT_SIZE], uint64_t n)
{
    char digits[24]; /* 2^64 has 20 digits; with 6 commas 26 bytes, less than UNIT_SIZE */
    int length = snprintf(digits, sizeof digits, "%llu", (unsigned long long)n);
    int at = 0;
    for (int i = 0; i < length; i++) {
        if (i && (length - i) % 3 == 0)
            text[at++] = ',';
        text[at++] = digits[i];
    }
    text[at] = 0;
    return text;
}

const char *unit_bytes(char text[UNIT_SIZE], double bytes)
{
    static const char *const names[] = {"bytes", "kB", "MB", "GB", "TB", "PB", "EB"};
    size_t i = 0;
    while (bytes >= 999.5 && i + 1 < sizeof names / sizeof *names) {
        bytes /= 1000;
        i++;
    }
    int decimals = i == 0 || bytes >= 99.95 ? 0 : bytes >= 9.995 ? 1 : 2;
    snprintf(text, UNIT_SIZE, "%.*f %s", decimals, bytes, names[i]);
    return text;
}

const char *unit_seconds(char text[UNIT_SIZE], double seconds)
{
    if (seconds >= 99.95)
        return unit_clock(text, seconds);
    snprintf(text, UNIT_SIZE, "%.*f s", seconds < 9.995 ? 2 : 1, seconds);
    return text;
}

const char *unit_clock(char text[UNIT_SIZE], double seconds)
{
    if (seconds >= 1e15) { /* only a damaged report has such a time */
        snprintf(text, UNIT_SIZE, "%.2g s", seconds);
        return text;
    }
    unsigned long long s = seconds > 0 ? (unsigned long long)(seconds + 0.5) : 0;
    if (s >= 3600)
        snprintf(text, UNIT_SIZE, "%llu:%02llu:%02llu", s / 3600, s / 60 % 60, s % 60);
    else
        snprintf(text, UNIT_SIZE, "%llu:%02llu", s / 60, s % 60);
    return text;
}

double unit_now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}
