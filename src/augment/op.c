/* SPDX-License-Identifier: Apache-2.0 */
/* op: the list of operations, and the functions that work on lists of them. */
#include "augment/op.h"

#include "base/error.h"

/* Functions that copy, compare and check params.values handle the parameters of every kind. A test
 * of the package checks the other half: every parameter is a double. */
_Static_assert(sizeof(union pstk_op_params) == PSTK_MAX_OP_PARAMS * sizeof(double),
               "no kind of operation has more parameters than params.values");

/* ---- the list -------------------------------------------------------------------------------- */

#define OPS(X)                                                                                     \
    X(random_resized_crop)                                                                         \
    X(resize)                                                                                      \
    X(resize_shorter)                                                                              \
    X(center_crop)                                                                                 \
    X(resize_longest)                                                                              \
    X(pad_to_size)                                                                                 \
    X(letterbox)                                                                                   \
    X(corner_crop)                                                                                 \
    X(scale_jitter)                                                                                \
    X(random_zoom_out)                                                                             \
    X(random_shortest_size)                                                                        \
    X(random_resize)                                                                               \
    X(random_crop)                                                                                 \
    X(random_flip)                                                                                 \
    X(random_vertical_flip)                                                                        \
    X(crop)                                                                                        \
    X(pad)                                                                                         \
    X(resized_crop)                                                                                \
    X(flip_horizontal)                                                                             \
    X(flip_vertical)                                                                               \
    X(grayscale)                                                                                   \
    X(brightness)                                                                                  \
    X(contrast)                                                                                    \
    X(saturation)                                                                                  \
    X(sharpness)                                                                                   \
    X(hue)                                                                                         \
    X(gamma)                                                                                       \
    X(invert)                                                                                      \
    X(posterize)                                                                                   \
    X(solarize)                                                                                    \
    X(solarize_add)                                                                                \
    X(autocontrast)                                                                                \
    X(equalize)                                                                                    \
    X(permute_channels)                                                                            \
    X(color_jitter)                                                                                \
    X(random_apply)                                                                                \
    X(random_choice)                                                                               \
    X(random_order)                                                                                \
    X(random_rotation)                                                                             \
    X(random_affine)                                                                               \
    X(random_perspective)                                                                          \
    X(random_gaussian_blur)                                                                        \
    X(random_box_blur)                                                                             \
    X(trivial_augment_wide)                                                                        \
    X(rand_augment)                                                                                \
    X(auto_augment)                                                                                \
    X(rotate)                                                                                      \
    X(affine)                                                                                      \
    X(perspective)                                                                                 \
    X(gaussian_blur)                                                                               \
    X(box_blur)                                                                                    \
    X(jpeg)                                                                                        \
    X(random_jpeg)                                                                                 \
    X(random_grayscale)                                                                            \
    X(random_channel_permutation)                                                                  \
    X(random_photometric_distort)                                                                  \
    X(timm_rand_augment)                                                                           \
    X(timm_auto_augment)                                                                           \
    X(timm_aug_mix)                                                                                \
    X(aug_mix)                                                                                     \
    X(mix)                                                                                         \
    X(mix_chain)                                                                                   \
    X(random_erasing)                                                                              \
    X(erase)                                                                                       \
    X(to_float)                                                                                    \
    X(call)                                                                                        \
    X(random_iou_crop)                                                                             \
    X(iou_crop)                                                                                    \
    X(normalize)

#define X(name) extern const struct pstk__op_entry pstk__op_##name;
OPS(X)
#undef X

static const struct pstk__op_entry *const entries[] = {
#define X(name) &pstk__op_##name,
    OPS(X)
#undef X
};

const struct pstk__op_entry *pstk__op_entry(uint32_t kind)
{
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++)
        if (entries[i]->kind == kind)
            return entries[i];
    return NULL;
}

/* ---- what a list does ------------------------------------------------------------------------ */

struct pstk__view pstk__op_view(const struct pstk_op *op, const struct pstk__view *before)
{
    const struct pstk__op_entry *entry = pstk__op_entry(op->kind);
    struct pstk__view view = *before;
    if (entry->size)
        entry->size(op, &view);
    if (entry->channels)
        view.channels = (uint32_t)entry->channels(op, view.channels, NULL);
    view.effects |= entry->effects;
    if (entry->effects & PSTK__CROPS && pstk__op_has_fill(op))
        view.effects |= PSTK__FILLS;
    return view;
}

struct pstk__largest pstk__op_largest(const struct pstk_op *op, const struct pstk__view *after,
                                      struct pstk__largest before)
{
    const struct pstk__op_entry *entry = pstk__op_entry(op->kind);
    if (after->width > 0 && after->height > 0)
        return (struct pstk__largest){.width = after->width,
                                      .height = after->height,
                                      .n_pixels = (uint64_t)after->width * after->height};
    if (entry->largest)
        entry->largest(op, &before);
    if (before.width > PSTK__MAX_PICTURE_SIDE)
        before.width = PSTK__MAX_PICTURE_SIDE;
    if (before.height > PSTK__MAX_PICTURE_SIDE)
        before.height = PSTK__MAX_PICTURE_SIDE;
    const uint64_t area = (uint64_t)before.width * before.height;
    before.n_pixels = before.n_pixels < area ? before.n_pixels : area;
    return before;
}

uint32_t pstk__ops_max(const struct pstk_op *ops, uint32_t n)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < n && most <= UINT32_MAX; i++) {
        const struct pstk__op_entry *entry = pstk__op_entry(ops[i].kind);
        most += entry->max_ops ? entry->max_ops(&ops[i]) : 1;
    }
    return most > UINT32_MAX ? UINT32_MAX : (uint32_t)most;
}

void pstk__ops_bound(const struct pstk_op *ops, uint32_t n, struct pstk__resize_bounds *bounds)
{
    for (uint32_t i = 0; i < n; i++) {
        const struct pstk__op_entry *entry = pstk__op_entry(ops[i].kind);
        if (entry->bound)
            entry->bound(&ops[i], bounds);
    }
}

void pstk__ops_finish(const struct pstk_op *ops, uint32_t n, struct pstk__normalisation *to)
{
    *to = (struct pstk__normalisation){0};
    for (uint32_t i = 0; i < n; i++) {
        const struct pstk__op_entry *entry = pstk__op_entry(ops[i].kind);
        if (entry->finish)
            entry->finish(&ops[i], to);
    }
}

/* ---- the prefix ------------------------------------------------------------------------------ */

/*
 * Return whether the decoder's rows can be given to an op as they come, when `view` is the view
 * before it. A resize reads the image as it is decoded. A crop may pad the image, but not uncover
 * pixels that an earlier crop removed. Rows can be coloured only on their way into the resize, and
 * padding is not coloured: it must be black.
 */
static int is_prefix(const struct pstk_op *op, const struct pstk__view *view)
{
    const struct pstk__op_entry *entry = pstk__op_entry(op->kind);
    const struct pstk__view after = pstk__op_view(op, view);
    const int uncovers =
        view->effects & PSTK__CROPS && (after.width > view->width || after.height > view->height);
    if (entry->effects & (PSTK__PICTURES | PSTK__FINISHES | PSTK__ERASES))
        return 0;
    if (entry->needs_picture && entry->needs_picture(op, view))
        return 0;
    if (entry->effects & PSTK__RESIZES)
        return !(view->effects & (PSTK__RESIZES | PSTK__CROPS | PSTK__FLIPS));
    if (entry->effects & PSTK__COLOURS)
        return !(view->effects & (PSTK__RESIZES | PSTK__FILLS));
    return !(entry->effects & PSTK__CROPS && uncovers);
}

uint32_t pstk__ops_prefix(const struct pstk_op *ops, uint32_t n)
{
    struct pstk__view view = {.channels = 3};
    uint32_t i = 0;
    for (; i < n && is_prefix(&ops[i], &view); i++)
        view = pstk__op_view(&ops[i], &view);
    return i;
}

/* ---- checks ---------------------------------------------------------------------------------- */

/* Return whether only ops that erase follow op j. */
static int is_last(const struct pstk_op *ops, uint32_t n, uint32_t j)
{
    for (uint32_t k = j + 1; k < n; k++) {
        const struct pstk__op_entry *entry = pstk__op_entry(ops[k].kind);
        if (!entry || !(entry->effects & PSTK__ERASES))
            return 0;
    }
    return 1;
}

/* Put "ops[j] (name): " before a message. */
static int named(int code, const char *list, uint32_t j, const char *name,
                 const struct pstk_error *inner, struct pstk_error *err)
{
    return pstk__fail(err, code, PSTK_STAGE_OPEN, "%s[%u] (%s): %.400s", list, j, name,
                      inner->message);
}

/* A walk through a list and its children. */
struct walk {
    uint32_t depth; /* number of parents */
    uint32_t n;     /* ops so far */
};

static int check_op(const struct pstk_op *op, int at_end, struct walk *walk,
                    struct pstk__view *view, struct pstk_error *err);

/* Return whether a child keeps the size of every image: the view's size, if it is known, else two
 * that differ. A child that draws must keep any size. */
static int keeps_size(const struct pstk_op *op, const struct pstk__view *view)
{
    static const uint32_t sizes[2][2] = {{101, 202}, {303, 102}};
    const struct pstk__op_entry *entry = pstk__op_entry(op->kind);
    const int is_known = view->width > 0 && view->height > 0 && !entry->draw;
    int keeps = 1;
    for (int i = 0; i < 2 && keeps; i++) {
        struct pstk__view before = *view;
        before.width = is_known ? view->width : sizes[i][0];
        before.height = is_known ? view->height : sizes[i][1];
        const struct pstk__view after = pstk__op_view(op, &before);
        keeps = after.width == before.width && after.height == before.height;
    }
    return keeps;
}

/* Check the children of an op. The view stays the same for any choice and order of them. */
static int check_children(const struct pstk_op *op, struct walk *walk,
                          const struct pstk__view *view, struct pstk_error *err)
{
    struct pstk_error inner;
    pstk_error_init(&inner, sizeof inner);
    walk->depth++;
    for (uint32_t j = 0; j < op->n_children; j++) {
        struct pstk__view after = *view;
        const struct pstk_op *child = &op->children[j];
        const struct pstk__op_entry *entry = pstk__op_entry(child->kind);
        const char *name = entry ? entry->name : "unknown";
        const int rc = check_op(child, 0, walk, &after, &inner);
        if (rc < 0)
            return named(rc, "children", j, name, &inner, err);
        if (!keeps_size(child, view) || after.channels != view->channels)
            return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                              "children[%u] (%s): it changes the size or the channels, so that "
                              "images would differ; put it before or after",
                              j, name);
    }
    walk->depth--;
    return 0;
}

/* Check the bounds on a list: on its length, as children may be shared, and on the size of pictures
 * between its ops. */
static int check_bounds(const struct walk *walk, const struct pstk__view *after,
                        struct pstk_error *err)
{
    if (walk->depth > PSTK__MAX_OP_DEPTH)
        return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                          "it is nested more than %u operations deep", PSTK__MAX_OP_DEPTH);
    if (walk->n > PSTK__MAX_OPS)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "the list has more than %u operations, with all children", PSTK__MAX_OPS);
    if (after->width > PSTK__MAX_PICTURE_SIDE || after->height > PSTK__MAX_PICTURE_SIDE)
        return pstk__fail(err, PSTK_EFBIG, PSTK_STAGE_OPEN,
                          "it would make images of %u x %u pixels; must be at most %u on a side",
                          after->height, after->width, PSTK__MAX_PICTURE_SIDE);
    return 0;
}

/* Check an op and set the view after it. at_end: only ops that erase follow. */
static int check_op(const struct pstk_op *op, int at_end, struct walk *walk,
                    struct pstk__view *view, struct pstk_error *err)
{
    const struct pstk__op_entry *entry = pstk__op_entry(op->kind);
    if (!entry)
        return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                          "kind: value is %u; must be a kind that this version knows", op->kind);
    if (entry->effects & PSTK__KNOWS_IMAGE)
        return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                          "its parameters belong to one image; a list must have operations for all "
                          "images (give this one to pstk_op_apply)");
    struct pstk_op plain = *op;
    plain.flags &= ~(uint32_t)PSTK_OP_TENSOR;
    walk->n++;
    int rc = check_bounds(walk, view, err);
    if (rc == 0)
        rc = entry->check(&plain, err);
    if (rc == 0)
        rc = pstk__op_check_members(op, entry->uses, err);
    if (rc == 0)
        rc = pstk__op_check_tensor(op, view->channels, err);
    if (rc == 0 && entry->effects & (PSTK__FINISHES | PSTK__ERASES) && !at_end)
        rc = pstk__fail(
            err, PSTK_EINVAL, PSTK_STAGE_OPEN,
            "it must be the last operation of the list; only operations that erase may follow it");
    if (rc == 0 && entry->check_view)
        rc = entry->check_view(op, view, err);
    if (rc == 0 && entry->channels)
        rc = entry->channels(op, view->channels, err);
    if (rc >= 0 && entry->uses & PSTK__USES_CHILDREN)
        rc = check_children(op, walk, view, err);
    if (rc < 0)
        return rc;
    *view = pstk__op_view(op, view);
    return check_bounds(walk, view, err);
}

int pstk__ops_check_open(const struct pstk_op *ops, uint32_t n, struct pstk__view *view,
                         struct pstk_error *err)
{
    struct pstk_error inner;
    struct walk walk = {0};
    pstk_error_init(&inner, sizeof inner);
    for (uint32_t j = 0; j < n; j++) {
        const struct pstk__op_entry *entry = pstk__op_entry(ops[j].kind);
        const int rc = check_op(&ops[j], is_last(ops, n, j), &walk, view, &inner);
        if (rc < 0 && !entry)
            return pstk__fail(err, rc, PSTK_STAGE_OPEN, "ops[%u].%.400s", j, inner.message);
        if (rc < 0)
            return named(rc, "ops", j, entry->name, &inner, err);
    }
    if (pstk__ops_max(ops, n) > PSTK__MAX_OPS)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "ops may draw more than %u operations for one sample; leave some out",
                          PSTK__MAX_OPS);
    return 0;
}

int pstk__ops_check(const struct pstk_op *ops, uint32_t n, struct pstk__view *view,
                    struct pstk_error *err)
{
    const int rc = pstk__ops_check_open(ops, n, view, err);
    if (rc < 0)
        return rc;
    if (view->width == 0 || view->height == 0)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "ops do not fix the size of the rows; add a random resized crop, a "
                          "resize to height x width, a crop, a letterbox or a padding to a size");
    return 0;
}
