/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack/remade: the values of a call, where PNG files that are damaged after their rows are replaced
 * by whole ones. The writer opens it for each call on its caller's thread, and closes it after it.
 */
#ifndef PSTK_PACK_REMADE_H
#define PSTK_PACK_REMADE_H

#include "pack/descriptions.h"
#include "record/schema.h"

struct pstk__remade {
    const struct pstk_value *values; /* the caller's; or `copies`, if a file was remade */
    uint32_t n;                      /* files */
    struct pstk_value copies[PSTK_MAX_FIELDS];
    void *files[PSTK_MAX_FIELDS]; /* owned */
};

/* Remake the files of image fields whose caller accepts damaged ones. A file that cannot be remade
 * stays. Borrows the values. 0 or ENOMEM; close it in both cases. */
int pstk__remade_open(struct pstk__remade *remade, const struct pstk__schema *schema,
                      const struct pstk_value *values, const struct pstk__descriptions *pixels,
                      struct pstk_error *err);
void pstk__remade_close(struct pstk__remade *remade);
#endif
