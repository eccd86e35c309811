/* SPDX-License-Identifier: Apache-2.0 */
/*
 * translate: converts values in other formats' codings to the plain bytes of their field's kind.
 * Pure. penstock's own format never stores these codecs: the parser of another format sets them in
 * the views of values that it does not find in the plain coding.
 */
#ifndef PSTK_TRANSLATE_H
#define PSTK_TRANSLATE_H

#include <penstock/format.h>

/* Codecs above every enum pstk_codec; each fits in a byte. */
enum pstk__foreign_codec {
    PSTK__FOREIGN_FIRST = 128,
    PSTK__FOREIGN_TEXT_INTEGER =
        128, /* a decimal integer as text; becomes a scalar of the field's dtype */
    /* A byte 4 * n_dims + w, n_dims sizes of 2^w bytes, the elements; becomes an array with its
     * shape. */
    PSTK__FOREIGN_SHAPED_ARRAY = 136,
    /* u32 n, u32 size[n], image files; becomes a list of images. */
    PSTK__FOREIGN_IMAGE_LIST = 137,
    /* The header of a tar member whose name is in two parts; becomes the first bytes of the name.
     */
    PSTK__FOREIGN_USTAR_NAME = 138,
    /* A tf.train.Feature; enum pstk__feature_reading is added (feature.h). */
    PSTK__FOREIGN_FEATURE = 144,
    PSTK__FOREIGN_FEATURE_END = 148,
};

static inline int pstk__codec_is_foreign(uint32_t codec)
{
    return codec >= PSTK__FOREIGN_FIRST;
}

/* Return dimension i in the head of a SHAPED_ARRAY. */
uint64_t pstk__translated_dim(const uint8_t *head, uint32_t i);
/* Return the bytes of the translated value; <0 if it cannot be translated. */
int64_t pstk__translated_size(uint32_t codec, const struct pstk_field *field, const void *data,
                              uint64_t size);
/* Translate a value to plain_size bytes, as pstk__translated_size returned. Returns NULL, or a
 * phrase in `text` with the reason of a failure. */
const char *pstk__translate(uint32_t codec, const struct pstk_field *field, const void *data,
                            uint64_t size, void *plain, uint64_t plain_size, char text[160]);

#endif
