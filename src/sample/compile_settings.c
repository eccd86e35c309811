/* SPDX-License-Identifier: Apache-2.0 */
/* compile_settings: the members of the settings that each kind of output uses. */
#include "sample/compile.h"

#include "base/error.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define FAIL(i, fmt, ...)                                                                          \
    pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, "outputs[%u]" fmt, i, ##__VA_ARGS__)

/* ---- who uses what --------------------------------------------------------------------------- */

#define BIT(kind) (1u << PSTK_OUTPUT_##kind)
#define PROCESSES 1u /* bit of a callback that has processes: there is no kind 0 */
#define PIXELS (BIT(IMAGE) | BIT(CALLBACK))
#define POINTS (BIT(KEYPOINTS) | BIT(POLYGONS))
#define RAGGED (BIT(BYTES) | BIT(RAGGED) | BIT(BOXES) | BIT(PER_BOX) | POINTS)

enum type { U32, U64, I64, F64, POINTER, TEXT };

/* A member of the settings that some outputs do not use. */
struct setting {
    const char *name; /* name in messages; NULL: `refusal` is the whole message */
    uint16_t offset;
    uint8_t type;   /* enum type */
    uint32_t users; /* bits of kinds, and PROCESSES; for other outputs the member must be 0 or NULL
                     */
    const char *refusal; /* message for outputs that are not users */
    uint64_t most;       /* largest value of users; 0: the check of the kind has the limit */
    const char *range;   /* message for users that exceed it */
};

/* Refusals that name several members. */
static const char of_layout[] =
    ": layout and exif_orientation must be 0, because they apply to image outputs only";
static const char of_budget[] =
    ".bytes_per_batch: must be 0, because it applies to ragged outputs only";
static const char of_callbacks[] =
    ": decode, user and processes must be NULL, scratch_size and n_dims 0, because they apply to "
    "callback outputs only";
static const char of_boxes[] =
    ": form, min_side, min_area and min_visible must be 0, because they apply to boxes only";
static const char of_places[] =
    ": coordinates and keep_outside must be 0, because they apply to boxes, keypoints and polygons "
    "(coordinates) only";
static const char of_keypoints[] =
    ": flip_pairs must be NULL, n_flip_pairs and at_centers 0, because they apply to keypoints "
    "only";

#define AT(member) offsetof(struct pstk_output, member)

/* The first wrong member is reported. */
static const struct setting settings[] = {
    {"n_ops", AT(image.n_ops), U32, PIXELS,
     "must be 0, because operations apply to image outputs and callbacks only"},
    {"channels", AT(image.channels), U32, PIXELS, "must be 0, because only images have channels"},
    {"reference", AT(image.reference), U32, PIXELS,
     "must be 0, because operations apply to image outputs and callbacks only",
     PSTK_REFERENCE_TENSOR, "must be an enum pstk_reference, 0 or 1"},
    {NULL, AT(image.layout), U32, BIT(IMAGE), of_layout},
    {NULL, AT(image.exif_orientation), U32, PIXELS, of_layout},
    {NULL, AT(ragged.bytes_per_batch), U64, RAGGED, of_budget},
    {NULL, AT(callback.decode), POINTER, BIT(CALLBACK), of_callbacks},
    {NULL, AT(callback.user), POINTER, BIT(CALLBACK), of_callbacks},
    {NULL, AT(callback.processes), POINTER, BIT(CALLBACK), of_callbacks},
    {NULL, AT(callback.scratch_size), U64, BIT(CALLBACK), of_callbacks},
    {NULL, AT(callback.n_dims), U32, BIT(CALLBACK), of_callbacks},
    {"batched", AT(callback.batched), U32, PROCESSES, "must be 0 for an output without processes"},
    {"timeout_ns", AT(callback.timeout_ns), U64, PROCESSES,
     "must be 0 for an output without processes", INT64_MAX, "must be below 2^63"},
    {"stored", AT(callback.stored), U32, BIT(CALLBACK), "must be 0, or 1 for a callback output", 1,
     "must be 0, or 1 for a callback output"},
    {"follows", AT(follow.image), TEXT, BIT(MASK) | BIT(BOXES) | POINTS,
     "must be NULL, because it applies to outputs that follow an image only"},
    {"fill", AT(follow.fill), U32, BIT(MASK), "must be 0, because it applies to masks only"},
    {NULL, AT(follow.box_format), U32, BIT(BOXES), of_boxes},
    {NULL, AT(follow.min_side), F64, BIT(BOXES), of_boxes},
    {NULL, AT(follow.min_area), F64, BIT(BOXES), of_boxes},
    {NULL, AT(follow.min_visible), F64, BIT(BOXES), of_boxes},
    {NULL, AT(follow.keep_outside), U32, BIT(BOXES) | BIT(KEYPOINTS), of_places},
    {NULL, AT(follow.coordinates), U32, BIT(BOXES) | POINTS, of_places},
    {NULL, AT(follow.flip_pairs), POINTER, BIT(KEYPOINTS), of_keypoints},
    {NULL, AT(follow.n_flip_pairs), U32, BIT(KEYPOINTS), of_keypoints},
    {NULL, AT(follow.at_centers), U32, BIT(KEYPOINTS), of_keypoints},
    {"where", AT(follow.where), TEXT, BIT(BOXES),
     "must be NULL, because it applies to boxes only (an output that follows the boxes drops the "
     "same ones)"},
    {"add", AT(follow.add), I64, BIT(PER_BOX),
     "must be 0, because it applies to outputs per box only"},
    {"boxes", AT(follow.boxes), TEXT, BIT(PER_BOX) | POINTS,
     "must be NULL, because it applies to outputs per box, keypoints and polygons only"},
};

/* ---- one output ------------------------------------------------------------------------------ */

/* Return the member's number; for a fraction or a pointer 1, or 0 if it is 0 or NULL. */
static uint64_t number_of(const struct setting *s, const struct pstk_output *output)
{
    const uint8_t *at = (const uint8_t *)output + s->offset;
    const void *pointer;
    double fraction;
    uint32_t narrow;
    uint64_t wide;
    switch (s->type) {
    case U32:
        memcpy(&narrow, at, sizeof narrow);
        return narrow;
    case F64:
        memcpy(&fraction, at, sizeof fraction);
        return fraction != 0;
    case POINTER:
    case TEXT:
        memcpy(&pointer, at, sizeof pointer);
        return pointer != NULL;
    default:
        memcpy(&wide, at, sizeof wide);
        return wide;
    }
}

static int refuse(const struct setting *s, const struct pstk_output *output, uint32_t i,
                  const char *why, struct pstk_error *err)
{
    const uint64_t number = number_of(s, output);
    const char *text = NULL;
    char value[80];
    if (!s->name)
        return FAIL(i, "%s", why);
    if (s->type == TEXT)
        memcpy(&text, (const uint8_t *)output + s->offset, sizeof text);
    if (text)
        snprintf(value, sizeof value, "'%.64s'", text);
    else if (s->type == I64)
        snprintf(value, sizeof value, "%lld", (long long)number);
    else
        snprintf(value, sizeof value, "%llu", (unsigned long long)number);
    return FAIL(i, ".%s: value is %s; %s", s->name, value, why);
}

int pstk__check_settings(const struct pstk_output *output, uint32_t i, struct pstk_error *err)
{
    const uint32_t is = (1u << output->kind) | (output->callback.processes ? PROCESSES : 0);
    for (size_t k = 0; k < sizeof settings / sizeof *settings; k++) {
        const struct setting *s = &settings[k];
        const uint64_t number = number_of(s, output);
        if (number != 0 && !(s->users & is))
            return refuse(s, output, i, s->refusal, err);
        if (s->most != 0 && number > s->most)
            return refuse(s, output, i, s->range, err);
    }
    return 0;
}
