/* SPDX-License-Identifier: Apache-2.0 */
/*
 * translate: values as other formats code them, to the bytes that a field of their kind has. Pure.
 * These codecs are never stored in penstock's own format: a parser of another format sets them in
 * the views of values that are not yet in the plain coding of their kind.
 */
#ifndef PSTK_TRANSLATE_H
#define PSTK_TRANSLATE_H

#include <penstock/format.h>

/* Above every enum pstk_codec; one byte. */
enum pstk__foreign_codec {
    PSTK__FOREIGN_FIRST = 128,
    PSTK__FOREIGN_TEXT_INTEGER =
        128, /* a decimal integer as text, to a scalar of the field's dtype */
    /* A byte 4 * n_dims + w, n_dims sizes of 2^w bytes, the elements: to an array with its shape */
    PSTK__FOREIGN_SHAPED_ARRAY = 136,
    /* u32 n, u32 size[n], files of images: to a list of images */
    PSTK__FOREIGN_IMAGE_LIST = 137,
    /* The header of a tar's member whose name is in two places, to the name's first bytes. */
    PSTK__FOREIGN_USTAR_NAME = 138,
    /* A tf.train.Feature: enum pstk__feature_reading is added (feature.h). */
    PSTK__FOREIGN_FEATURE = 144,
    PSTK__FOREIGN_FEATURE_END = 148,
};

static inline int pstk__codec_is_foreign(uint32_t codec)
{
    return codec >= PSTK__FOREIGN_FIRST;
}

/* Dimension i of the head of a SHAPED_ARRAY. */
uint64_t pstk__translated_dim(const uint8_t *head, uint32_t i);
/* Bytes of the value once it is translated; <0: no such value can be. */
int64_t pstk__translated_size(uint32_t codec, const struct pstk_field *field, const void *data,
                              uint64_t size);
/* Translate into plain_size bytes, as translated_size counts them. Returns NULL, or what is wrong,
 * as a phrase in `text`. */
const char *pstk__translate(uint32_t codec, const struct pstk_field *field, const void *data,
                            uint64_t size, void *plain, uint64_t plain_size, char text[160]);

#endif
