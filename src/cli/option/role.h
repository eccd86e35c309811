/* SPDX-License-Identifier: Apache-2.0 */
/* role: the field that has a role, found for every command in the same way (penstock/role.h). */
#ifndef PSTK_CLI_ROLE_H
#define PSTK_CLI_ROLE_H

#include <penstock/role.h>

/* Results of role_find when no field is known to have the role. */
enum { ROLE_NONE = -1, ROLE_SEVERAL = -2 };

/* Return the number of the field that has a role, an enum pstk_role, which belongs to the field
 * `of` or NULL. ROLE_NONE: no field fits; ROLE_SEVERAL: several fit, and none has a usual name. */
int role_find(const struct pstk_field *fields, uint32_t n_fields, uint32_t role, const char *of);

#endif
