/* SPDX-License-Identifier: Apache-2.0 */
#include "record/kind.h"

#include <string.h>

#define COUNT(list) (sizeof(list) / sizeof(list)[0])

static const struct {
    const char *name; /* NULL: no kind has this number */
    uint32_t traits;
} kinds[] = {
    [PSTK_FIELD_BYTES] = {"bytes", 0},
    [PSTK_FIELD_UTF8] = {"utf8", 0},
    [PSTK_FIELD_IMAGE] = {"image", PSTK__TRAIT_IMAGES},
    [PSTK_FIELD_SCALAR] = {"scalar", 0},
    [PSTK_FIELD_NDARRAY] = {"ndarray", PSTK__TRAIT_ARRAY},
    [PSTK_FIELD_MASK] = {"mask", PSTK__TRAIT_IMAGES | PSTK__TRAIT_OF},
    [PSTK_FIELD_BOXES] = {"boxes", PSTK__TRAIT_ARRAY | PSTK__TRAIT_OF | PSTK__TRAIT_COORDINATES |
                                       PSTK__TRAIT_BOX_FORMAT},
    [PSTK_FIELD_KEYPOINTS] = {"keypoints",
                              PSTK__TRAIT_ARRAY | PSTK__TRAIT_OF | PSTK__TRAIT_COORDINATES},
    [PSTK_FIELD_POLYGONS] = {"polygons",
                             PSTK__TRAIT_ARRAY | PSTK__TRAIT_OF | PSTK__TRAIT_COORDINATES},
    [PSTK_FIELD_RLE] = {"rle", PSTK__TRAIT_ARRAY | PSTK__TRAIT_OF},
    [PSTK_FIELD_UTF8_LIST] = {"utf8_list", PSTK__TRAIT_LIST},
    [PSTK_FIELD_IMAGE_LIST] = {"image_list", PSTK__TRAIT_LIST | PSTK__TRAIT_IMAGES},
    [PSTK_FIELD_BYTES_LIST] = {"bytes_list", PSTK__TRAIT_LIST},
    [PSTK_FIELD_MASK_LIST] = {"mask_list", PSTK__TRAIT_LIST | PSTK__TRAIT_IMAGES | PSTK__TRAIT_OF},
};

static const char *const forms[] = {NULL, "xyxy", "xywh", "cxcywh"};
static const char *const coordinates_names[] = {NULL, "pixels", "unit"};

int pstk__field_kind_known(uint32_t kind)
{
    return kind < COUNT(kinds) && kinds[kind].name;
}

uint32_t pstk__field_traits(uint32_t kind)
{
    return kind < COUNT(kinds) ? kinds[kind].traits : 0;
}

const char *pstk__field_kind_name(uint32_t kind)
{
    return pstk__field_kind_known(kind) ? kinds[kind].name : "?";
}

uint32_t pstk__field_kind_parse(const char *name)
{
    for (uint32_t k = 0; k < COUNT(kinds); k++)
        if (kinds[k].name && strcmp(kinds[k].name, name) == 0)
            return k;
    return 0;
}

static const char *name_of(const char *const *names, uint32_t n, uint32_t i)
{
    return i < n && names[i] ? names[i] : "?";
}

static uint32_t parse_name(const char *const *names, uint32_t n, const char *name)
{
    for (uint32_t i = 1; i < n; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return 0;
}

const char *pstk__form_name(uint32_t form)
{
    return name_of(forms, COUNT(forms), form);
}

uint32_t pstk__form_parse(const char *name)
{
    return parse_name(forms, COUNT(forms), name);
}

const char *pstk__coordinates_name(uint32_t coordinates)
{
    return name_of(coordinates_names, COUNT(coordinates_names), coordinates);
}

uint32_t pstk__coordinates_parse(const char *name)
{
    return parse_name(coordinates_names, COUNT(coordinates_names), name);
}
