/* SPDX-License-Identifier: Apache-2.0 */
/* compile: turns the settings of an output, checked against its field, into shape, sizes and
 * passes. */
#include "augment/pushdown.h"
#include "augment/sampled_ops.h"
#include "base/cast.h"
#include "base/error.h"
#include "image/image.h"
#include "image/planes/file.h"
#include "sample/compile.h"
#include "sample/image_rows.h"
#include "sample/narrow.h"

#include <stdlib.h>
#include <string.h>

#define ALIGN(size) (((size) + 63) & ~(uint64_t)63) /* bytes as the arena rounds them */
#define MAX_ROW                                                                                    \
    (1ull << 40) /* bytes of one row or of a callback's scratch; a larger value is a mistake */
#define MAX_PICTURE (1ull << 34) /* bytes of an image between two operations */
#define MAX_BUDGET                                                                                 \
    (1ull << 46)   /* bytes of one output of a batch; below the size of any address space */
#define N_PASSES 7 /* max passes of an output, in addition to those of its ops */

#define FAIL(i, code, fmt, ...)                                                                    \
    pstk__fail(err, code, PSTK_STAGE_OPEN, "outputs[%u]" fmt, i, ##__VA_ARGS__)

/* ---- one check for each kind of output ------------------------------------------------------- */

const struct pstk_field *pstk__compile_field(const struct pstk__plan *p, uint32_t i)
{
    return &p->source->schema.fields[p->outputs[i].field];
}

int pstk__compile_wrong_kind(const struct pstk__plan *p, uint32_t i, const char *output,
                             const char *wanted, struct pstk_error *err)
{
    const struct pstk_field *field = pstk__compile_field(p, i);
    return FAIL(i, PSTK_EINVAL, ".kind: %s output needs a field of kind %s; '%s' is of kind %s",
                output, wanted, field->name, pstk__field_kind_name(field->kind));
}

/* Check how the field is decoded. */
static int check_pixels(struct pstk__output *o, uint32_t i, struct pstk_error *err)
{
    const struct pstk_image_output *image = &o->settings.image;
    if (image->channels > 4 || image->channels == 2)
        return FAIL(i, PSTK_EINVAL, ".channels: value is %u; must be 1, 3 or 4, or 0 for 3",
                    image->channels);
    if (image->exif_orientation > 1)
        return FAIL(i, PSTK_EINVAL, ".exif_orientation: value is %u; must be 0 or 1",
                    image->exif_orientation);
    o->image.in_channels = image->channels == 0 ? 3 : image->channels;
    o->has_pixels = 1;
    return 0;
}

static int image_dtype(struct pstk__output *o, uint32_t i, struct pstk_error *err)
{
    const uint32_t layout = o->settings.image.layout;
    if (o->dtype == 0)
        o->dtype = PSTK_U8;
    if (o->dtype != PSTK_U8 && o->dtype != PSTK_F16 && o->dtype != PSTK_BF16 &&
        o->dtype != PSTK_F32)
        return FAIL(i, PSTK_EINVAL,
                    ".dtype: value is %s; must be u8, f16, bf16 or f32 for an image",
                    pstk_dtype_name(o->dtype));
    if (layout != PSTK_NHWC && layout != PSTK_NCHW)
        return FAIL(i, PSTK_EINVAL, ".layout: value is %u; must be PSTK_NHWC or PSTK_NCHW", layout);
    return check_pixels(o, i, err);
}

/* Check the operations, and set height, width and channels to their results; size 0: open. */
static int check_ops(struct pstk__output *o, uint32_t i, uint32_t dtype, struct pstk_error *err)
{
    struct pstk_error inner;
    pstk_error_init(&inner, sizeof inner);
    struct pstk__view view = {.channels = o->image.in_channels, .dtype = dtype};
    const int is_open = o->kind == PSTK_OUTPUT_CALLBACK;
    const int rc = (is_open ? pstk__ops_check_open : pstk__ops_check)(o->image.ops, o->image.n_ops,
                                                                      &view, &inner);
    if (rc < 0)
        return FAIL(i, rc, ".%.600s", inner.message);
    o->image.height = view.height;
    o->image.width = view.width;
    o->image.channels = view.channels;
    return 0;
}

static int check_image(struct pstk__plan *p, uint32_t i, struct pstk_error *err)
{
    struct pstk__output *o = &p->outputs[i];
    if (pstk__compile_field(p, i)->kind != PSTK_FIELD_IMAGE)
        return pstk__compile_wrong_kind(p, i, "an image", "image", err);
    int rc = image_dtype(o, i, err);
    if (rc == 0)
        rc = check_ops(o, i, o->dtype, err);
    if (rc < 0)
        return rc;
    const int64_t h = o->image.height, w = o->image.width, c = o->image.channels, b = p->batch_size;
    const int64_t nhwc[4] = {b, h, w, c}, nchw[4] = {b, c, h, w};
    o->n_dims = 4;
    memcpy(o->shape, o->settings.image.layout == PSTK_NCHW ? nchw : nhwc, sizeof nhwc);
    return 0;
}

static int cast_refused(const struct pstk__plan *p, uint32_t i, struct pstk_error *err)
{
    const struct pstk_field *field = pstk__compile_field(p, i);
    return FAIL(i, PSTK_EINVAL,
                ".dtype: not every %s of field '%s' fits %s; choose one that holds them all, or %s "
                "and convert the batches",
                pstk_dtype_name(field->dtype), field->name, pstk_dtype_name(p->outputs[i].dtype),
                pstk_dtype_name(field->dtype));
}

static int is_label(const struct pstk__plan *p, uint32_t i)
{
    return pstk__plan_mixes(p) && p->mixing.label == i;
}

static int check_scalar(struct pstk__plan *p, uint32_t i, struct pstk_error *err)
{
    struct pstk__output *o = &p->outputs[i];
    const struct pstk_field *field = pstk__compile_field(p, i);
    if (field->kind != PSTK_FIELD_SCALAR)
        return pstk__compile_wrong_kind(p, i, "a scalar", "scalar", err);
    if (o->dtype == 0)
        o->dtype = field->dtype;
    const int rc = pstk__narrow_check(p, i, err);
    if (rc < 0)
        return rc;
    o->n_dims = 1;
    o->shape[0] = p->batch_size;
    return is_label(p, i) ? pstk__mixing_label(p, i, err) : 0;
}

static int check_tensor(struct pstk__plan *p, uint32_t i, struct pstk_error *err)
{
    struct pstk__output *o = &p->outputs[i];
    const struct pstk_field *field = pstk__compile_field(p, i);
    if (!(pstk__field_traits(field->kind) & PSTK__TRAIT_ARRAY))
        return pstk__compile_wrong_kind(p, i, "a tensor", "ndarray", err);
    if (o->dtype == 0)
        o->dtype = field->dtype;
    if (!pstk__cast_fits(field->dtype, o->dtype))
        return cast_refused(p, i, err);
    o->n_dims = field->n_dims + 1;
    o->shape[0] = p->batch_size;
    for (uint32_t d = 0; d < field->n_dims; d++) {
        if (field->shape[d] == 0)
            return FAIL(i, PSTK_EINVAL,
                        ".kind: field '%s' has a variable shape; read it with an output of kind "
                        "PSTK_OUTPUT_RAGGED, or PSTK_OUTPUT_BYTES",
                        field->name);
        o->shape[d + 1] = (int64_t)field->shape[d];
    }
    return 0;
}

static int check_bytes(struct pstk__plan *p, uint32_t i, struct pstk_error *err)
{
    struct pstk__output *o = &p->outputs[i];
    if (pstk__compile_field(p, i)->kind == PSTK_FIELD_SCALAR)
        return pstk__compile_wrong_kind(p, i, "a bytes", "any other than scalar", err);
    if (o->dtype != 0 && o->dtype != PSTK_U8)
        return FAIL(i, PSTK_EINVAL, ".dtype: value is %s; must be 0 or u8 for an output of bytes",
                    pstk_dtype_name(o->dtype));
    o->dtype = PSTK_U8;
    o->n_dims = 1;
    o->ragged.item_size = 1;
    o->ragged.max_size = p->source->limits.max_plain[o->field];
    return 0;
}

int pstk__check_ragged(struct pstk__plan *p, uint32_t i, struct pstk_error *err)
{
    struct pstk__output *o = &p->outputs[i];
    const struct pstk_field *field = pstk__compile_field(p, i);
    if (!(pstk__field_traits(field->kind) & PSTK__TRAIT_ARRAY))
        return pstk__compile_wrong_kind(p, i, "a ragged", "ndarray", err);
    uint32_t variable = 0; /* number of the last variable dimension, counted from 1 */
    for (uint32_t d = 0; d < field->n_dims; d++)
        variable = field->shape[d] == 0 ? d + 1 : variable;
    if (variable != 1)
        return FAIL(i, PSTK_EINVAL,
                    ".kind: value is ragged; field '%s' must be an ndarray whose only variable "
                    "dimension is the first",
                    field->name);
    if (o->dtype != 0 && o->dtype != field->dtype)
        return FAIL(
            i, PSTK_EINVAL,
            ".dtype: value is %s; must be 0 or %s, the dtype of the field, for a ragged output",
            pstk_dtype_name(o->dtype), pstk_dtype_name(field->dtype));
    o->dtype = field->dtype;
    o->n_dims = field->n_dims;
    o->ragged.max_size = p->source->limits.max_plain[o->field];
    o->ragged.item_size = pstk_dtype_size(field->dtype);
    for (uint32_t d = 1; d < field->n_dims; d++) {
        o->shape[d] = (int64_t)field->shape[d];
        if (field->shape[d] > MAX_ROW / o->ragged.item_size)
            return FAIL(i, PSTK_EFBIG, ": an item is larger than 2^40 bytes");
        o->ragged.item_size *= field->shape[d];
    }
    return 0;
}

/* Return 1 if the callback takes decoded pixels, 0 if it takes the field's bytes. */
static int asks_for_pixels(const struct pstk_output *output)
{
    return output->image.n_ops != 0 || output->image.channels != 0 ||
           output->image.exif_orientation != 0;
}

static int check_callback_pixels(struct pstk__plan *p, uint32_t i, struct pstk_error *err)
{
    struct pstk__output *o = &p->outputs[i];
    if (pstk__compile_field(p, i)->kind != PSTK_FIELD_IMAGE)
        return pstk__compile_wrong_kind(p, i, "a callback on pixels", "image", err);
    if (o->settings.callback.stored)
        return FAIL(i, PSTK_EINVAL,
                    ".stored: value is %u; must be 0 for a callback that gets decoded pixels",
                    o->settings.callback.stored);
    int rc = check_pixels(o, i, err);
    if (rc == 0)
        rc = check_ops(o, i, PSTK_U8, err);
    if (rc < 0)
        return rc;
    if (o->image.n_ops > 0 && (o->image.height == 0 || o->image.width == 0) &&
        pstk__op_entry(o->image.ops[o->image.n_ops - 1].kind)->effects & PSTK__ERASES)
        return FAIL(i, PSTK_EINVAL, ".ops: the last one erases, and so they must fix the size");
    return 0;
}

static int check_callback(struct pstk__plan *p, uint32_t i, struct pstk_error *err)
{
    struct pstk__output *o = &p->outputs[i];
    const struct pstk_output *output = &o->settings;
    if (!output->callback.decode == !output->callback.processes)
        return FAIL(i, PSTK_EINVAL,
                    ".decode: value is %s; must be a function for a callback output, unless it "
                    "has processes",
                    output->callback.decode ? "a function" : "NULL");
    if (output->callback.processes && output->callback.scratch_size > 0)
        return FAIL(i, PSTK_EINVAL, ".scratch_size: must be 0 for an output that has processes");
    if (output->callback.processes) {
        const int rc = pstk__process_pool_check(output->callback.processes, i, err);
        if (rc < 0)
            return rc;
    }
    if (pstk_dtype_size(o->dtype) == 0)
        return FAIL(i, PSTK_EINVAL,
                    ".dtype: value is %u; must be one of enum pstk_dtype for a callback output",
                    o->dtype);
    if (output->callback.n_dims > 8)
        return FAIL(i, PSTK_EINVAL, ".n_dims: value is %u; must be at most 8",
                    output->callback.n_dims);
    if (output->callback.scratch_size > MAX_ROW)
        return FAIL(i, PSTK_EFBIG, ".scratch_size: value is %llu; must be at most 2^40 bytes",
                    (unsigned long long)output->callback.scratch_size);
    o->n_dims = output->callback.n_dims + 1;
    o->shape[0] = p->batch_size;
    for (uint32_t d = 0; d < output->callback.n_dims; d++) {
        if (output->callback.shape[d] == 0 || output->callback.shape[d] > MAX_ROW)
            return FAIL(i, PSTK_EINVAL, ".shape[%u]: value is %llu; must be from 1 to 2^40", d,
                        (unsigned long long)output->callback.shape[d]);
        o->shape[d + 1] = (int64_t)output->callback.shape[d];
    }
    const int rc = asks_for_pixels(output) ? check_callback_pixels(p, i, err) : 0;
    return rc < 0 ? rc : pstk__check_batched(p, i, err);
}

/* ---- sizes ----------------------------------------------------------------------------------- */

/* Set strides from the shape; strides[0] is the elements of a row. Every factor is checked before
 * it is multiplied. */
static int size_dense(struct pstk__plan *p, uint32_t i, struct pstk_error *err)
{
    struct pstk__output *o = &p->outputs[i];
    uint64_t elements = 1;
    const uint64_t element_size = pstk_dtype_size(o->dtype);
    for (uint32_t d = o->n_dims; d-- > 1;) {
        const uint64_t n = (uint64_t)o->shape[d];
        o->strides[d] = (int64_t)elements;
        if (n > MAX_ROW / element_size / elements)
            return FAIL(i, PSTK_EFBIG, ": a row is larger than 2^40 bytes");
        elements *= n;
    }
    o->strides[0] = (int64_t)elements;
    if (elements * element_size > MAX_BUDGET / p->batch_size)
        return FAIL(i, PSTK_EFBIG, ": a batch of %u rows of %llu bytes is too large; lower %s",
                    p->batch_size, (unsigned long long)(elements * element_size), p->rows_setting);
    return 0;
}

/* Set strides, budget and the largest size of a row. */
static int size_ragged(struct pstk__plan *p, uint32_t i, struct pstk_error *err)
{
    struct pstk__output *o = &p->outputs[i];
    const uint64_t most = o->ragged.max_size;
    const uint64_t wanted = o->settings.ragged.bytes_per_batch;
    if (wanted != 0 && wanted < most)
        return FAIL(i, PSTK_EINVAL,
                    ".bytes_per_batch: value is %llu; the largest value of field '%s' alone takes "
                    "%llu bytes",
                    (unsigned long long)wanted, pstk__compile_field(p, i)->name,
                    (unsigned long long)most);
    if (wanted > MAX_BUDGET)
        return FAIL(i, PSTK_EFBIG, ".bytes_per_batch: value is %llu; must be at most %llu",
                    (unsigned long long)wanted, MAX_BUDGET);
    if (most > MAX_BUDGET / p->batch_size) /* slots have memory for it, whatever the budget */
        return FAIL(i, PSTK_EFBIG,
                    ": a batch of %u rows of up to %llu bytes is too large; lower %s",
                    p->batch_size, (unsigned long long)most, p->rows_setting);
    o->budget = wanted != 0 ? wanted : p->batch_size * most;
    o->shape[0] = (int64_t)(o->budget / o->ragged.item_size);
    o->strides[o->n_dims - 1] = 1;
    for (uint32_t d = o->n_dims - 1; d-- > 0;)
        o->strides[d] = o->strides[d + 1] * o->shape[d + 1];
    return 0;
}

/* ---- passes ---------------------------------------------------------------------------------- */

void pstk__compile_pass(struct pstk__output *o, struct pstk__pass pass)
{
    struct pstk__pass *to = &o->passes[o->n_passes];
    *to = pass;
    if (o->n_passes > 0)
        to->in = o->passes[o->n_passes - 1].out;
    o->n_passes++;
    if (!pass.on_device)
        o->n_worker_passes = o->n_passes;
}

struct pstk__row_layout pstk__compile_row(const struct pstk__output *o, uint32_t dtype)
{
    return (struct pstk__row_layout){.dtype = dtype,
                                     .row_size = (uint64_t)o->strides[0] * pstk_dtype_size(dtype)};
}

struct pstk__row_layout pstk__compile_pixels(uint32_t channels)
{
    return (struct pstk__row_layout){.dtype = PSTK_U8, .layout = PSTK_NHWC, .channels = channels};
}

/* Make the first pass of every output; a field in the record's head needs no work. */
static void pass_plain(struct pstk__plan *p, struct pstk__output *o)
{
    const struct pstk__record_limits *limits = &p->source->limits;
    const uint32_t f = o->field;
    const struct pstk_field *field = &p->source->schema.fields[f];
    struct pstk__pass pass = {.what = PSTK__PASS_PLAIN};
    if (p->source->schema.entry[f] >= 0)
        pass.held = ALIGN(limits->max_plain[f]);
    /* Outputs of images decode planes in their stored form. */
    if (field->codec == PSTK_CODEC_PLANES && !o->has_pixels && !o->settings.callback.stored)
        pass.scratch = pstk__planes_decode_scratch(limits->max_width[f], limits->max_height[f],
                                                   p->max_pixels, limits->max_plain[f]);
    pstk__compile_pass(o, pass);
}

static int image_table(struct pstk__output *o, uint32_t i, struct pstk_error *err)
{
    struct pstk__image_part *image = &o->image;
    if (o->dtype == PSTK_U8)
        return 0;
    image->table = calloc((size_t)image->channels * 256, pstk_dtype_size(o->dtype));
    if (!image->table)
        return FAIL(i, PSTK_ENOMEM, ": out of memory");
    struct pstk__normalisation normalisation;
    pstk__ops_finish(image->ops, image->n_ops, &normalisation);
    pstk__normalisation_table(image->table, o->dtype, image->channels, &normalisation);
    pstk__affine_init(&image->line, image->table, o->dtype, image->channels);
    return 0;
}

/* Return the channels that the field is decoded to: the largest number that any of its outputs
 * needs. */
static uint32_t decoded_channels(const struct pstk__plan *p, uint32_t i)
{
    uint32_t most = 1;
    for (uint32_t k = 0; k < p->n_outputs; k++) {
        const struct pstk__output *o = &p->outputs[k];
        if (o->field == p->outputs[i].field && o->image.in_channels > most)
            most = o->image.in_channels;
    }
    return most;
}

/* Return the layout of byte pixels of an output's size. */
static struct pstk__row_layout resized_of(const struct pstk__output *o, uint32_t channels)
{
    struct pstk__row_layout row = pstk__compile_pixels(channels);
    row.row_size = (uint64_t)o->image.height * o->image.width * channels;
    return row;
}

/* Make the passes of the ops in the prefix that colour. held: bytes of each pass. Returns the
 * channels of their result. */
static uint32_t passes_colour(struct pstk__output *o, uint32_t channels, uint64_t held)
{
    for (uint32_t j = 0; j < o->image.n_prefix; j++) {
        const struct pstk_op *op = &o->image.ops[j];
        const struct pstk__op_entry *entry = pstk__op_entry(op->kind);
        if (!(entry->effects & PSTK__COLOURS))
            continue;
        channels = entry->channels ? (uint32_t)entry->channels(op, channels, NULL) : channels;
        pstk__compile_pass(o, (struct pstk__pass){.what = PSTK__PASS_COLOUR,
                                                  .op = op,
                                                  .out = pstk__compile_pixels(channels),
                                                  .held = held});
    }
    return channels;
}

/* Return the largest part that an output decodes of an image, turned or not. */
static struct pstk__largest decoded_largest(const struct pstk__output *o,
                                            const struct pstk__image_bounds *b)
{
    const int is_turned = o->settings.image.exif_orientation != 0;
    const uint32_t w = is_turned ? b->max_side : b->max_width;
    const uint32_t h = is_turned ? b->max_side : b->max_height;
    const uint64_t area = (uint64_t)w * h;
    return (struct pstk__largest){
        .width = w, .height = h, .n_pixels = area < b->max_pixels ? area : b->max_pixels};
}

/* Make the passes of ops [n_prefix, end), which change a picture whose view is `view`. The picture
 * is held; its spare and the ops' scratch are given back. */
static void passes_picture(struct pstk__output *o, uint32_t end, struct pstk__view view)
{
    const struct pstk__canvas_bounds bounds =
        pstk__canvas_bounds_of(o->image.ops, o->image.n_prefix, end, o->image.crop, view);
    o->image.canvas_room = bounds.room;
    o->passes[o->image.resize].held +=
        bounds.room + PSTK__PUSHDOWN_ROOM(pstk__output_image_ops_size(o));
    for (uint32_t j = o->image.n_prefix; j < end; j++) {
        view = pstk__op_view(&o->image.ops[j], &view);
        pstk__compile_pass(o, (struct pstk__pass){.what = PSTK__PASS_PICTURE,
                                                  .op = &o->image.ops[j],
                                                  .out = pstk__compile_pixels(view.channels),
                                                  .scratch = bounds.room + bounds.scratch +
                                                             PSTK__COLOUR_TABLE_SIZE +
                                                             PSTK__LOOKUP_SIZE});
    }
    o->passes[o->n_passes - 1].out = resized_of(o, o->image.channels);
}

/* Return the number of leading ops that work on pixels; the rest finish, and then erase. */
static uint32_t pixel_ops(const struct pstk__output *o)
{
    uint32_t n = o->image.n_ops;
    while (n > 0 &&
           pstk__op_entry(o->image.ops[n - 1].kind)->effects & (PSTK__FINISHES | PSTK__ERASES))
        n--;
    return n;
}

static int erases(const struct pstk__output *o)
{
    const uint32_t n = o->image.n_ops;
    return n > 0 && pstk__op_entry(o->image.ops[n - 1].kind)->effects & PSTK__ERASES;
}

static int is_mixed(const struct pstk__plan *p, uint32_t i)
{
    return (pstk__plan_mixes(p) && p->mixing.image == i) || p->outputs[i].is_combined;
}

/* Make the passes from decoded rows to one row of the output, in bytes. */
static void passes_pixels(struct pstk__output *o, const struct pstk__image_bounds *bounds)
{
    const uint64_t held = pstk__image_row_size(
        o->settings.image.exif_orientation ? bounds->max_side : bounds->max_width);
    const uint32_t end = pixel_ops(o);
    struct pstk__view view = {.channels = o->image.in_channels};
    o->image.n_prefix = pstk__ops_prefix(o->image.ops, o->image.n_ops);
    o->image.max_ops = pstk__ops_max(o->image.ops, o->image.n_ops);
    o->image.crop = decoded_largest(o, bounds);
    for (uint32_t j = 0; j < o->image.n_prefix; j++) {
        view = pstk__op_view(&o->image.ops[j], &view);
        o->image.crop = pstk__op_largest(&o->image.ops[j], &view, o->image.crop);
    }
    if (pstk__output_decoded(o)->channels != o->image.in_channels)
        pstk__compile_pass(o, (struct pstk__pass){.what = PSTK__PASS_CONVERT,
                                                  .out = pstk__compile_pixels(o->image.in_channels),
                                                  .held = held});
    const uint32_t channels = passes_colour(o, o->image.in_channels, held);
    o->image.resize = o->n_passes;
    pstk__compile_pass(o,
                       (struct pstk__pass){.what = PSTK__PASS_RESIZE,
                                           .out = resized_of(o, channels),
                                           .held = pstk__image_resize_size(bounds, o, channels)});
    if (o->image.n_prefix < end || o->kind == PSTK_OUTPUT_CALLBACK)
        passes_picture(o, end, view);
}

/* Make the passes from the field's bytes to the pixels of one row. */
static int passes_decoded(struct pstk__plan *p, uint32_t i, struct pstk_error *err)
{
    struct pstk__output *o = &p->outputs[i];
    const struct pstk__record_limits *limits = &p->source->limits;
    const uint32_t w = limits->max_width[o->field], h = limits->max_height[o->field];
    const struct pstk__image_bounds bounds = {
        .max_width = w, .max_height = h, .max_side = w > h ? w : h, .max_pixels = p->max_pixels};
    const struct pstk__row_layout decoded = pstk__compile_pixels(decoded_channels(p, i));
    pstk__compile_pass(
        o, (struct pstk__pass){.what = PSTK__PASS_DECODE,
                               .out = decoded,
                               .scratch = pstk__image_scratch_within(w, h, p->max_pixels)});
    if (o->settings.image.exif_orientation)
        pstk__compile_pass(
            o, (struct pstk__pass){.what = PSTK__PASS_TURN,
                                   .out = decoded,
                                   .held = pstk__image_turn_size(&bounds, decoded.channels)});
    passes_pixels(o, &bounds);
    if (o->image.canvas_room > MAX_PICTURE)
        return FAIL(i, PSTK_EFBIG,
                    ".ops: images between two of them may have %llu bytes; must be at "
                    "most 2^34",
                    (unsigned long long)o->image.canvas_room);
    return 0;
}

/* A device makes the floats: then only a quarter or a half of the bytes is copied to it. It neither
 * erases nor mixes. */
static int passes_image(struct pstk__plan *p, uint32_t i, struct pstk_error *err)
{
    struct pstk__output *o = &p->outputs[i];
    struct pstk__row_layout row = pstk__compile_row(o, o->dtype);
    row.layout = o->settings.image.layout;
    row.channels = o->image.channels;
    const int rc = passes_decoded(p, i, err);
    if (rc < 0)
        return rc;
    pstk__compile_pass(o, (struct pstk__pass){.what = PSTK__PASS_FINISH,
                                              .on_device = p->on_device && o->dtype != PSTK_U8 &&
                                                           !erases(o) && !is_mixed(p, i),
                                              .out = row});
    return image_table(o, i, err);
}

/* A device makes the wider dtype: fewer bytes are copied to it. Scalars are too few for that. */
static int passes_cast(struct pstk__plan *p, uint32_t i, struct pstk_error *err)
{
    struct pstk__output *o = &p->outputs[i];
    (void)err;
    const uint32_t from = pstk__compile_field(p, i)->dtype, to = o->dtype;
    if (is_label(p, i)) {
        pstk__compile_pass(
            o, (struct pstk__pass){.what = PSTK__PASS_LABEL, .out = pstk__compile_row(o, to)});
        return 0;
    }
    const uint32_t on_device = p->on_device && o->kind == PSTK_OUTPUT_TENSOR;
    if (from == to || on_device)
        pstk__compile_pass(
            o, (struct pstk__pass){.what = PSTK__PASS_COPY, .out = pstk__compile_row(o, from)});
    if (from != to)
        pstk__compile_pass(o, (struct pstk__pass){.what = PSTK__PASS_CAST,
                                                  .on_device = on_device,
                                                  .out = pstk__compile_row(o, to)});
    return 0;
}

int pstk__passes_ragged(struct pstk__plan *p, uint32_t i, struct pstk_error *err)
{
    struct pstk__output *o = &p->outputs[i];
    (void)err;
    const struct pstk__row_layout row = {.dtype = o->dtype, .row_size = o->ragged.max_size};
    pstk__compile_pass(o, (struct pstk__pass){.what = PSTK__PASS_COPY, .out = row});
    return 0;
}

/* The picture's spare is held only while its function runs. */
static int passes_callback(struct pstk__plan *p, uint32_t i, struct pstk_error *err)
{
    struct pstk__output *o = &p->outputs[i];
    const int rc = o->has_pixels ? passes_decoded(p, i, err) : 0;
    if (rc < 0)
        return rc;
    pstk__compile_pass(o, (struct pstk__pass){.what = PSTK__PASS_CALLBACK,
                                              .out = pstk__compile_row(o, o->dtype),
                                              .held = ALIGN(o->settings.callback.scratch_size),
                                              .scratch = o->image.canvas_room});
    return 0;
}

/* ---- one output ------------------------------------------------------------------------------ */

static const struct {
    uint32_t follows; /* 1: the kind follows an image output */
    int (*check)(struct pstk__plan *p, uint32_t i, struct pstk_error *err);
    int (*passes)(struct pstk__plan *p, uint32_t i, struct pstk_error *err);
} kinds[] = {
    [PSTK_OUTPUT_IMAGE] = {0, check_image, passes_image},
    [PSTK_OUTPUT_SCALAR] = {0, check_scalar, passes_cast},
    [PSTK_OUTPUT_TENSOR] = {0, check_tensor, passes_cast},
    [PSTK_OUTPUT_BYTES] = {0, check_bytes, pstk__passes_ragged},
    [PSTK_OUTPUT_CALLBACK] = {0, check_callback, passes_callback},
    [PSTK_OUTPUT_RAGGED] = {0, pstk__check_ragged, pstk__passes_ragged},
    [PSTK_OUTPUT_MASK] = {1, pstk__check_mask, pstk__passes_mask},
    [PSTK_OUTPUT_BOXES] = {1, pstk__check_boxes, pstk__passes_nested},
    [PSTK_OUTPUT_PER_BOX] = {1, pstk__check_per_box, pstk__passes_nested},
    [PSTK_OUTPUT_KEYPOINTS] = {1, pstk__check_keypoints, pstk__passes_keypoints},
    [PSTK_OUTPUT_POLYGONS] = {1, pstk__check_polygons, pstk__passes_polygons},
};

int pstk__output_check_kind(uint32_t kind, uint32_t i, struct pstk_error *err)
{
    if (kind >= sizeof kinds / sizeof kinds[0] || !kinds[kind].check)
        return FAIL(i, PSTK_EINVAL, ".kind: value is %u; must be one of enum pstk_output_kind",
                    kind);
    return 0;
}

int pstk__output_follows(uint32_t kind)
{
    return kinds[kind].follows != 0;
}

int pstk__output_check(struct pstk__plan *p, uint32_t i, struct pstk_error *err)
{
    struct pstk__output *o = &p->outputs[i];
    int rc = pstk__check_settings(&o->settings, i, err);
    if (rc == 0)
        rc = kinds[o->kind].check(p, i, err);
    if (rc < 0)
        return rc;
    return pstk__output_is_ragged(o) ? size_ragged(p, i, err) : size_dense(p, i, err);
}

int pstk__output_compile(struct pstk__plan *p, uint32_t i, struct pstk_error *err)
{
    struct pstk__output *o = &p->outputs[i];
    o->passes = calloc(N_PASSES + o->image.n_ops, sizeof *o->passes);
    if (!o->passes)
        return FAIL(i, PSTK_ENOMEM, ": out of memory");
    pass_plain(p, o);
    const int rc = kinds[o->kind].passes(p, i, err);
    if (rc == 0 && !pstk__output_is_ragged(o))
        o->budget = p->batch_size * pstk__output_rows(o)->row_size;
    return rc;
}
