/* SPDX-License-Identifier: Apache-2.0 */
/* role: finds the field that is the picture, its class, its boxes, ... Pure. */
#include <penstock/role.h>

#include "base/error.h"
#include "record/kind.h"

#include <stddef.h>
#include <string.h>

#define MAX_NAMES 8

/* The fields that fit a role, and the one that has it. */
struct rule {
    uint32_t kind; /* enum pstk_field_kind of the field */
    uint32_t of;   /* kind of the field that it belongs to; 0: it belongs to none */
    int is_first;  /* 1: without a usual name, the first field that fits; 0: the only one */
    const char *names[MAX_NAMES]; /* the usual names, the best first; NULL: no more */
};

static const struct rule rules[] = {
    [PSTK_ROLE_IMAGE] = {PSTK_FIELD_IMAGE, 0, 1, {"jpg"}},
    [PSTK_ROLE_LABEL] = {PSTK_FIELD_SCALAR,
                         0,
                         0,
                         {"cls", "label", "class", "target", "class_id", "label_id", "category_id",
                          "target_id"}},
    [PSTK_ROLE_MASK] = {PSTK_FIELD_MASK, PSTK_FIELD_IMAGE, 1, {NULL}},
    [PSTK_ROLE_BOXES] = {PSTK_FIELD_BOXES, PSTK_FIELD_IMAGE, 1, {NULL}},
    [PSTK_ROLE_KEYPOINTS] = {PSTK_FIELD_KEYPOINTS, PSTK_FIELD_IMAGE, 1, {NULL}},
    [PSTK_ROLE_POLYGONS] = {PSTK_FIELD_POLYGONS, PSTK_FIELD_IMAGE, 1, {NULL}},
    [PSTK_ROLE_BOX_CLASSES] = {PSTK_FIELD_NDARRAY, PSTK_FIELD_BOXES, 0, {"labels"}},
    [PSTK_ROLE_CORNERS] = {PSTK_FIELD_NDARRAY, PSTK_FIELD_POLYGONS, 1, {NULL}},
};

#define N_RULES (sizeof rules / sizeof *rules)

/* Return field i of the caller's, whose struct may be that of another version, without the members
 * from box_format on. */
static const struct pstk_field *field_at(const struct pstk_role_search *s, uint32_t i)
{
    return (const struct pstk_field *)((const char *)s->fields + (size_t)i * s->field_size);
}

static int is_whole(uint32_t dtype)
{
    return dtype >= PSTK_U8 && dtype <= PSTK_I64;
}

static int is_id(const char *name)
{
    const size_t n = strlen(name);
    return n >= 2 && strcmp(name + n - 2, "id") == 0;
}

/* Return the index of a name among a rule's names; MAX_NAMES: it is none of them. */
static uint32_t find_usual(const struct rule *rule, const char *name)
{
    uint32_t i = 0;
    while (i < MAX_NAMES && (!rule->names[i] || strcmp(rule->names[i], name) != 0))
        i++;
    return i;
}

/* Return 1 if a field fits the role. owner: the boxes or polygons that it belongs to. */
static int fits(const struct pstk_role_search *s, const struct pstk_field *field,
                const struct pstk_field *owner)
{
    if (field->kind != rules[s->role].kind || (s->name && strcmp(field->name, s->name) != 0))
        return 0;
    switch (s->role) {
    case PSTK_ROLE_IMAGE:
        return 1;
    case PSTK_ROLE_LABEL:
        return is_whole(field->dtype) && (s->name || !is_id(field->name) ||
                                          find_usual(&rules[s->role], field->name) < MAX_NAMES);
    case PSTK_ROLE_BOX_CLASSES:
        return is_whole(field->dtype) && field->n_dims == 1 && field->shape[0] == 0 &&
               field->rows[0] && !field->splits[0] && strcmp(field->rows, owner->rows) == 0;
    case PSTK_ROLE_CORNERS:
        return field->splits[0] && strcmp(field->splits, owner->rows) == 0;
    default:
        return !field->of[0] || strcmp(field->of, s->of) == 0;
    }
}

/* Find the boxes or polygons that a role belongs to; *owner becomes NULL for other roles. */
static int find_owner(const struct pstk_role_search *s, const struct pstk_field **owner,
                      struct pstk_error *err)
{
    const uint32_t kind = rules[s->role].of;
    *owner = NULL;
    if (!kind != !s->of)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          kind ? "of: value is NULL; must be the name of a field, for role %u"
                               : "of: must be NULL for role %u, which belongs to no other field",
                          s->role);
    if (!kind || kind == PSTK_FIELD_IMAGE)
        return 0;
    for (uint32_t i = 0; !*owner && i < s->n_fields; i++)
        if (field_at(s, i)->kind == kind && strcmp(field_at(s, i)->name, s->of) == 0)
            *owner = field_at(s, i);
    return *owner ? 0
                  : pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                               "of: value is '%.80s'; must be one of the fields, of kind %s", s->of,
                               pstk__field_kind_name(kind));
}

static int check(const struct pstk_role_search *s, struct pstk_error *err)
{
    if (s->size < sizeof *s)
        return pstk__fail_setting(err, "size", s->size, "sizeof(struct pstk_role_search), %u",
                                  (unsigned)sizeof *s);
    if (s->field_size < offsetof(struct pstk_field, box_format) ||
        s->field_size % _Alignof(struct pstk_field) != 0)
        return pstk__fail_setting(err, "field_size", s->field_size, "sizeof(struct pstk_field), %u",
                                  (unsigned)sizeof(struct pstk_field));
    if (s->role == 0 || s->role >= N_RULES)
        return pstk__fail_setting(err, "role", s->role, "one of enum pstk_role, 1 to %u",
                                  (unsigned)N_RULES - 1);
    return s->fields || s->n_fields == 0
               ? 0
               : pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, "fields is NULL");
}

int pstk_role_find(const struct pstk_role_search *s, uint32_t *index, struct pstk_error *err)
{
    const struct pstk_field *owner;
    if (index)
        *index = PSTK_NO_FIELD;
    if (!s || !index)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, "%s is NULL", s ? "index" : "s");
    int r = check(s, err);
    if (r == 0)
        r = find_owner(s, &owner, err);
    if (r < 0)
        return r;
    const struct rule *rule = &rules[s->role];
    uint32_t best = MAX_NAMES;
    int n = 0;
    for (uint32_t i = 0; i < s->n_fields; i++) {
        if (!fits(s, field_at(s, i), owner))
            continue;
        const uint32_t usual = find_usual(rule, field_at(s, i)->name);
        if (n++ == 0 || usual < best) {
            *index = i;
            best = usual;
        }
    }
    if (n > 1 && best == MAX_NAMES && !rule->is_first)
        *index = PSTK_NO_FIELD;
    return n;
}
