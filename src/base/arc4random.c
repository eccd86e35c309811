/* SPDX-License-Identifier: Apache-2.0 */
/* Define glibc 2.36's random functions for builds with -Dportable=true. Such a build links expat
 * and the C++ runtime statically, and both call these functions; its target systems may have an
 * older glibc. The symbols are hidden, because the other libraries of a process use glibc's. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

uint32_t arc4random(void);
void arc4random_buf(void *to, size_t size);

/* Fill `to` with unpredictable bytes. If the system provides none, it ends the process, as glibc's
 * function does. */
void arc4random_buf(void *to, size_t size)
{
    uint8_t *bytes = to;
    size_t n = 0;
    while (n < size) {
        const ssize_t got = getrandom(bytes + n, size - n, 0);
        if (got > 0)
            n += (size_t)got;
        else if (errno != EINTR)
            abort();
    }
}

uint32_t arc4random(void)
{
    uint32_t number;
    arc4random_buf(&number, sizeof number);
    return number;
}
