/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers under the names that glibc has from 2.36 on, for builds with -Dportable=true:
 * expat and the C++ runtime call them, which such a build links statically, and the systems that it
 * is for may have an older glibc. Hidden: the other libraries of a process have glibc's. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

uint32_t arc4random(void);
void arc4random_buf(void *to, size_t size);

/* Fill `to` with bytes that nobody can guess. It cannot fail: without them it ends the process, as
 * glibc's does. */
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
