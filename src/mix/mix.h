/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mix: mixes the rows of a batch in pairs, and makes targets of labels. Pure: no allocation; a
 * strip of a row is kept on the stack.
 *
 *   check, copy (at open) -> draw -> images, targets (the last worker of a batch)
 */
#ifndef PSTK_MIX_H
#define PSTK_MIX_H

#include <penstock/mix.h>

/* Copy the caller's struct, which may be of an older or newer library. EINVAL: it is not
 * initialised; ENOTSUP: it sets a member that this version does not know. */
int pstk__mix_copy(struct pstk_mix *to, const struct pstk_mix *from, struct pstk_error *err);
/* Check all except the names. EINVAL names the member. */
int pstk__mix_check(const struct pstk_mix *mix, struct pstk_error *err);
/* Return 1 if some images are mixed. */
int pstk__mix_has_images(const struct pstk_mix *mix);

/* Draw the mixes of a batch: rows[key->n_rows]. `mix` and `key` were checked. */
void pstk__mix_draw(const struct pstk_mix *mix, const struct pstk_mix_key *key,
                    struct pstk_mixed_row *rows);

/* The valid rows of finished images, next to each other. */
struct pstk__mix_images {
    void *data;
    uint32_t n;      /* rows */
    uint32_t dtype;  /* enum pstk_dtype: f16, bf16, f32 */
    uint32_t layout; /* enum pstk_layout */
    uint32_t height, width, channels;
    uint32_t pairing; /* enum pstk_mix_pairing */
    uint32_t kernels; /* enum pstk_kernels */
};

/* Mix the images in place by rows[n]. A row whose lambda is 1 stays unchanged. */
void pstk__mix_images(const struct pstk__mix_images *images, const struct pstk_mixed_row *rows);

/* Write n rows of dense targets. Each of labels[n] is below n_classes. */
void pstk__mix_targets(float *targets, const struct pstk_mix *mix,
                       const struct pstk_mixed_row *rows, const uint32_t *labels, uint32_t n);

#endif
