/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_verify: the image, mask or list of images of one field, in plain bytes: what its own header
 * says against the record, then, if asked for, all of its pixels. shard_verify calls it for each
 * such field, on the thread that checks the shard. One verifier per thread.
 */
#ifndef PSTK_IMAGE_VERIFY_H
#define PSTK_IMAGE_VERIFY_H

#include "base/arena.h"
#include "image/image.h"
#include "record/record.h"

/* Begins as zero, with `decode` set: it has no memory yet. */
struct pstk__image_verifier {
    int decode;                      /* 1: decode every image in full */
    struct pstk__arena arena;        /* for image; grows by being opened anew */
    struct pstk__image_state *image; /* owned */
};

/* Where findings go: what is wrong, as a phrase for after the name of the field. A non-zero result:
 * stop, and return ECANCELED. */
struct pstk__image_findings {
    int (*bad)(void *user, const char *phrase); /* borrows */
    void *user;
};

/* Check a field's plain bytes, of `view`'s plain_size, against `view`. 0 also where damage was
 * found; an error is ECANCELED, or a reason why it cannot check (no memory). */
int pstk__image_verifier_image(struct pstk__image_verifier *verifier,
                               const struct pstk__field_view *view, const void *plain,
                               const struct pstk__image_findings *findings, struct pstk_error *err);
int pstk__image_verifier_mask(struct pstk__image_verifier *verifier,
                              const struct pstk__field_view *view, const void *plain,
                              const struct pstk__image_findings *findings, struct pstk_error *err);
/* The same for a list of this kind, which has PSTK__TRAIT_IMAGES, after pstk__value_check passed
 * it: its images, and the largest sides in its entry. */
int pstk__image_verifier_list(struct pstk__image_verifier *verifier, uint32_t kind,
                              const struct pstk__field_view *view, const void *plain,
                              const struct pstk__image_findings *findings, struct pstk_error *err);
/* Free its memory. A verifier that is zero is fine. */
void pstk__image_verifier_close(struct pstk__image_verifier *verifier);

#endif
