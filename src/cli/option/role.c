/* SPDX-License-Identifier: Apache-2.0 */
#include "option/role.h"

#include <stddef.h>

int role_find(const struct pstk_field *fields, uint32_t n_fields, uint32_t role, const char *of)
{
    const struct pstk_role_search search = {.size = sizeof search,
                                            .field_size = sizeof *fields,
                                            .fields = fields,
                                            .n_fields = n_fields,
                                            .role = role,
                                            .of = of};
    uint32_t found;
    const int n_fit = pstk_role_find(&search, &found, NULL);
    return found != PSTK_NO_FIELD ? (int)found : n_fit > 0 ? ROLE_SEVERAL : ROLE_NONE;
}
