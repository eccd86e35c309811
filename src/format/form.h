/* SPDX-License-Identifier: Apache-2.0 */
/*
 * form: how the files of other formats code a value, and the view of one. Formats whose values are
 * whole files (tar, folders) know the form by the end of the name. Pure.
 */
#ifndef PSTK_FORMAT_FORM_H
#define PSTK_FORMAT_FORM_H

#include "index/index.h"
#include "record/record.h"

enum pstk__form {
    PSTK__FORM_PLAIN = 0,        /* as the field's kind has it */
    PSTK__FORM_TEXT_INTEGER = 1, /* a decimal integer as text */
};

/* Set kind, dtype and form of a field by its name, the suffix of files: what WebDataset decodes
 * them to by the part after their last dot. */
void pstk__form_by_suffix(struct pstk__index_field *field);
/* Set kind, dtype, shape and form for values in files of their own that are to be of this kind. */
int pstk__form_retype(struct pstk__index_field *field, const struct pstk_field *wanted,
                      struct pstk_error *err);
/* Bytes of a value of `size` bytes in the form of its kind: the most. */
uint64_t pstk__form_plain_size(const struct pstk__index_field *field, uint64_t size);
/* View a value: `data` is borrowed, and offset is set by the caller. Returns NULL, or what is wrong
 * with the value, as a phrase in `text`. */
const char *pstk__form_view(struct pstk__field_view *view, const struct pstk__index_field *field,
                            const uint8_t *data, uint64_t size, char text[160]);

#endif
