/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remade: the values of a call, with PNG files that are damaged after their rows replaced by whole
 * files. The writer opens it for each call, on its caller's thread, and closes it at the end of the
 * call.
 */
#ifndef PSTK_PACK_REMADE_H
#define PSTK_PACK_REMADE_H

#include "pack/descriptions.h"
#include "record/schema.h"

struct pstk__remade {
    const struct pstk_value *values; /* the caller's values; `copies` if a file was remade */
    uint32_t n;                      /* files that were remade */
    struct pstk_value copies[PSTK_MAX_FIELDS];
    void *files[PSTK_MAX_FIELDS]; /* owned */
};

/* Remake damaged PNG files in image fields whose caller accepts damaged files. A file that cannot
 * be remade stays. Borrows the values. Returns 0 or ENOMEM; close it in both cases. */
int pstk__remade_open(struct pstk__remade *remade, const struct pstk__schema *schema,
                      const struct pstk_value *values, const struct pstk__descriptions *pixels,
                      struct pstk_error *err);
void pstk__remade_close(struct pstk__remade *remade);
#endif
