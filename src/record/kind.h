/* SPDX-License-Identifier: Apache-2.0 */
/* kind: the names and traits of the kinds of fields. Pure. */
#ifndef PSTK_KIND_H
#define PSTK_KIND_H

#include <penstock/format.h>

/* The traits of a kind of field, as bits. */
enum pstk__trait {
    PSTK__TRAIT_ARRAY = 1,        /* values are arrays: a dtype and a shape */
    PSTK__TRAIT_LIST = 2,         /* values are lists of items */
    PSTK__TRAIT_IMAGES = 4,       /* the manifest holds the largest width and height */
    PSTK__TRAIT_OF = 8,           /* values belong to an image field */
    PSTK__TRAIT_COORDINATES = 16, /* values are coordinates */
    PSTK__TRAIT_BOX_FORMAT = 32,  /* values are boxes */
};

/* Return the traits of a kind, bits of enum pstk__trait; 0 if it has none or is unknown. */
uint32_t pstk__field_traits(uint32_t kind);
/* Return 1 if this version knows the kind. */
int pstk__field_kind_known(uint32_t kind);
/* Return "bytes", "utf8", ..., or "?"; parse returns the number of a name, or 0. */
const char *pstk__field_kind_name(uint32_t kind);
uint32_t pstk__field_kind_parse(const char *name);
/* Return "xyxy", ... or "pixels", ..., or "?"; parse returns the number of a name, or 0. */
const char *pstk__form_name(uint32_t form);
uint32_t pstk__form_parse(const char *name);
const char *pstk__coordinates_name(uint32_t coordinates);
uint32_t pstk__coordinates_parse(const char *name);

#endif
