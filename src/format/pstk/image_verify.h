/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_verify: checks the image, mask or list of images of one field, in plain bytes: compares its
 * own header with the record, then, if asked for, decodes all its pixels. shard_verify calls it for
 * each such field, on the thread that checks the shard. One verifier per thread.
 */
#ifndef PSTK_IMAGE_VERIFY_H
#define PSTK_IMAGE_VERIFY_H

#include "base/arena.h"
#include "image/image.h"
#include "record/record.h"

/* State of a verifier. Begins as zero, with `decode` set, and without memory. */
struct pstk__image_verifier {
    int decode;                      /* 1: decode every image in full */
    struct pstk__arena arena;        /* memory of image; to grow, it is opened again */
    struct pstk__image_state *image; /* owned */
};

/* Receives the findings, as phrases that follow the name of the field. A non-zero result ends the
 * check with ECANCELED. */
struct pstk__image_findings {
    int (*bad)(void *user, const char *phrase); /* borrows */
    void *user;
};

/* Compare a field's plain bytes, of `view`'s plain_size, with `view`. 0 even if damage was found;
 * an error is ECANCELED, or a reason why it cannot check (no memory). */
int pstk__image_verifier_image(struct pstk__image_verifier *verifier,
                               const struct pstk__field_view *view, const void *plain,
                               const struct pstk__image_findings *findings, struct pstk_error *err);
int pstk__image_verifier_mask(struct pstk__image_verifier *verifier,
                              const struct pstk__field_view *view, const void *plain,
                              const struct pstk__image_findings *findings, struct pstk_error *err);
/* As pstk__image_verifier_image, for a list of this kind, which has PSTK__TRAIT_IMAGES, after
 * pstk__value_check passed it: checks its images, and the largest sides in its entry. */
int pstk__image_verifier_list(struct pstk__image_verifier *verifier, uint32_t kind,
                              const struct pstk__field_view *view, const void *plain,
                              const struct pstk__image_findings *findings, struct pstk_error *err);
/* Free its memory. A verifier of zeros is fine. */
void pstk__image_verifier_close(struct pstk__image_verifier *verifier);

#endif
