/* SPDX-License-Identifier: Apache-2.0 */
/* environment: reads the variables that a program hands over, because the library never asks for
 * its own. Pure. */
#ifndef PSTK_BASE_ENVIRONMENT_H
#define PSTK_BASE_ENVIRONMENT_H

/* Return the value of a variable, borrowed. environment: "NAME=value" texts with NULL at the end;
 * NULL: none. NULL: it is not set. */
const char *pstk__environment_get(const char *const *environment, const char *name);

#endif
