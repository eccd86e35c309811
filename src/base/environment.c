/* SPDX-License-Identifier: Apache-2.0 */
#include "base/environment.h"

#include <string.h>

const char *pstk__environment_get(const char *const *environment, const char *name)
{
    const size_t n = strlen(name);
    for (; environment && *environment; environment++)
        if (strncmp(*environment, name, n) == 0 && (*environment)[n] == '=')
            return *environment + n + 1;
    return NULL;
}
