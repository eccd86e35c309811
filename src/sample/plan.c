/* SPDX-License-Identifier: Apache-2.0 */
/* plan: the settings of the outputs, checked against a data set and compiled for the workers. */
#include "sample/sample.h"

#include "base/cast.h"
#include "base/error.h"
#include "image/planes/file.h"

#include <stdlib.h>
#include <string.h>

#define ALIGN(size) (((size) + 63) & ~(uint64_t)63) /* what the arena gives */
#define MAX_ROW (1ull << 40)    /* bytes of one row or of a callback's scratch: more is a mistake */
#define MAX_BUDGET (1ull << 46) /* bytes of one output of a batch, below any address space */
#define NAMES_SIZE 400          /* bytes of the list of fields in a message */

#define FAIL(i, code, fmt, ...)                                                                    \
    pstk__fail(err, code, PSTK_STAGE_OPEN, "outputs[%u]" fmt, i, ##__VA_ARGS__)

/* ---- copying ----------------------------------------------------------------------------------
 */

/*
 * Copy an element that is `size` bytes in the caller's header into ours: what the caller's lacks is
 * 0. 0 when the caller's is newer and says something there that this version does not know.
 */
static int element_copy(void *out, size_t out_size, const void *in, size_t size)
{
    const uint8_t *bytes = in;
    memset(out, 0, out_size);
    memcpy(out, in, size < out_size ? size : out_size);
    for (size_t k = out_size; k < size; k++)
        if (bytes[k] != 0)
            return 0;
    return 1;
}

static int ops_copy(struct pstk__output *o, uint32_t i, uint32_t op_size, struct pstk_error *err)
{
    const uint32_t n = o->settings.n_ops;
    const uint8_t *from = (const uint8_t *)o->settings.ops;
    o->settings.ops = NULL;
    if (n == 0)
        return 0;
    if (from == NULL)
        return FAIL(i, PSTK_EINVAL, ".ops is NULL, but n_ops is %u", n);
    if (n > 64)
        return FAIL(i, PSTK_EINVAL, ".n_ops is %u; at most 64 operations make sense", n);
    o->ops = calloc(n, sizeof *o->ops);
    if (o->ops == NULL)
        return FAIL(i, PSTK_ENOMEM, ".ops: out of memory");
    o->settings.ops = o->ops;
    for (uint32_t j = 0; j < n; j++)
        if (!element_copy(&o->ops[j], sizeof o->ops[j], from + (size_t)j * op_size, op_size))
            return FAIL(i, PSTK_ENOTSUP,
                        ".ops[%u] uses a parameter that is newer than this library (%s); update it",
                        j, pstk_version());
    return 0;
}

/* ---- fields -----------------------------------------------------------------------------------
 */

static int field_find(struct pstk__plan *p, uint32_t i, struct pstk_error *err)
{
    struct pstk__output *o = &p->outputs[i];
    const struct pstk__schema *schema = &p->source->schema;
    char names[NAMES_SIZE];
    pstk__schema_names(schema, names, sizeof names);
    if (o->settings.field == NULL)
        return FAIL(i, PSTK_EINVAL, ".field is NULL; name one of the data set's fields: %s", names);
    const int field = pstk__schema_find(schema, o->settings.field);
    if (field < 0)
        return FAIL(i, PSTK_EINVAL, ".field: the data set has no field '%.64s'; it has: %s",
                    o->settings.field, names);
    o->field = (uint32_t)field;
    o->settings.field = NULL;
    return 0;
}

/* Outputs of one field are chained, so that it is checked and decoded once. */
static void field_chain(struct pstk__plan *p, uint32_t i)
{
    p->outputs[i].is_first = 1;
    p->outputs[i].next = p->n_outputs;
    for (uint32_t k = 0; k < i; k++) {
        if (p->outputs[k].field != p->outputs[i].field)
            continue;
        p->outputs[i].is_first = 0;
        if (p->outputs[k].next == p->n_outputs)
            p->outputs[k].next = i;
    }
}

static int name_copy(struct pstk__plan *p, uint32_t i, struct pstk_error *err)
{
    struct pstk__output *o = &p->outputs[i];
    const char *name = o->settings.name;
    if (name == NULL)
        name = p->source->schema.fields[o->field].name;
    const size_t length = strnlen(name, sizeof o->name);
    if (length == 0 || length == sizeof o->name)
        return FAIL(i, PSTK_EINVAL, ".name must have from 1 to %zu bytes", sizeof o->name - 1);
    memcpy(o->name, name, length);
    o->settings.name = o->name;
    for (uint32_t k = 0; k < i; k++)
        if (strcmp(p->outputs[k].name, o->name) == 0)
            return FAIL(i, PSTK_EINVAL, ".name is '%s', and so is that of outputs[%u]; set another",
                        o->name, k);
    return 0;
}

/* ---- one function for each kind of output ------------------------------------------------------
 */

static const struct pstk_field *field_of(const struct pstk__plan *p, uint32_t i)
{
    return &p->source->schema.fields[p->outputs[i].field];
}

static int wrong_kind(struct pstk__plan *p, uint32_t i, const char *output, const char *wanted,
                      struct pstk_error *err)
{
    const struct pstk_field *f = field_of(p, i);
    return FAIL(i, PSTK_EINVAL, ".kind: %s output needs a field of kind %s; '%s' is of kind %s",
                output, wanted, f->name, pstk__field_kind_name(f->kind));
}

static int image_dtype(struct pstk__output *o, uint32_t i, struct pstk_error *err)
{
    struct pstk_output *s = &o->settings;
    if (s->dtype == 0)
        s->dtype = PSTK_U8;
    if (s->dtype != PSTK_U8 && s->dtype != PSTK_F16 && s->dtype != PSTK_BF16 &&
        s->dtype != PSTK_F32)
        return FAIL(i, PSTK_EINVAL, ".dtype is %s; images are u8, f16, bf16 or f32",
                    pstk_dtype_name(s->dtype));
    if (s->layout != PSTK_NHWC && s->layout != PSTK_NCHW)
        return FAIL(i, PSTK_EINVAL, ".layout is %u; it must be PSTK_NHWC or PSTK_NCHW", s->layout);
    if (s->exif_orientation > 1)
        return FAIL(i, PSTK_EINVAL, ".exif_orientation is %u; it must be 0 or 1",
                    s->exif_orientation);
    return 0;
}

static int image_table(struct pstk__output *o, uint32_t i, struct pstk_error *err)
{
    float mean[3] = {0}, deviation[3] = {0};
    const struct pstk_output *s = &o->settings;
    if (s->dtype == PSTK_U8)
        return 0;
    o->table = calloc((size_t)3 * 256, pstk_dtype_size(s->dtype));
    if (o->table == NULL)
        return FAIL(i, PSTK_ENOMEM, ": out of memory");
    const struct pstk_op *last = &o->ops[s->n_ops - 1]; /* there is one: it fixes the size */
    const int normalised = last->kind == PSTK_OP_NORMALIZE;
    for (uint32_t c = 0; c < 3 && normalised; c++) {
        mean[c] = (float)last->params[c];
        deviation[c] = (float)last->params[3 + c];
    }
    pstk__finish_table(o->table, s->dtype, normalised ? mean : NULL, deviation);
    pstk__affine_init(&o->line, o->table, s->dtype);
    return 0;
}

static int compile_image(struct pstk__plan *p, uint32_t i, struct pstk_error *err)
{
    struct pstk__output *o = &p->outputs[i];
    struct pstk_error inner;
    pstk_error_init(&inner, sizeof inner);
    if (field_of(p, i)->kind != PSTK_FIELD_IMAGE)
        return wrong_kind(p, i, "an image", "image", err);
    int rc = image_dtype(o, i, err);
    if (rc < 0)
        return rc;
    rc = pstk__ops_check(o->ops, o->settings.n_ops, o->settings.dtype, &o->height, &o->width,
                         &inner);
    if (rc < 0)
        return FAIL(i, rc, ".%.600s", inner.message);
    const int64_t h = o->height, w = o->width, b = p->batch_size;
    const int64_t nhwc[4] = {b, h, w, 3}, nchw[4] = {b, 3, h, w};
    if (p->on_device && o->settings.dtype != PSTK_U8) {
        o->deferred = 1;
        o->row_dtype = PSTK_U8;
        o->row_layout = PSTK_NHWC;
    }
    o->n_dims = 4;
    memcpy(o->shape, o->settings.layout == PSTK_NCHW ? nchw : nhwc, sizeof nhwc);
    return image_table(o, i, err);
}

static int cast_refused(const struct pstk__plan *p, uint32_t i, struct pstk_error *err)
{
    const struct pstk_field *f = field_of(p, i);
    return FAIL(i, PSTK_EINVAL,
                ".dtype: not every %s of field '%s' fits %s; choose one that holds them all, or %s "
                "and convert the batches",
                pstk_dtype_name(f->dtype), f->name, pstk_dtype_name(p->outputs[i].settings.dtype),
                pstk_dtype_name(f->dtype));
}

static int compile_scalar(struct pstk__plan *p, uint32_t i, struct pstk_error *err)
{
    struct pstk__output *o = &p->outputs[i];
    const struct pstk_field *f = field_of(p, i);
    if (f->kind != PSTK_FIELD_SCALAR)
        return wrong_kind(p, i, "a scalar", "scalar", err);
    if (o->settings.dtype == 0)
        o->settings.dtype = f->dtype;
    if (!pstk__cast_fits(f->dtype, o->settings.dtype))
        return cast_refused(p, i, err);
    o->n_dims = 1;
    o->shape[0] = p->batch_size;
    return 0;
}

static int compile_tensor(struct pstk__plan *p, uint32_t i, struct pstk_error *err)
{
    struct pstk__output *o = &p->outputs[i];
    const struct pstk_field *f = field_of(p, i);
    if (f->kind != PSTK_FIELD_NDARRAY)
        return wrong_kind(p, i, "a tensor", "ndarray", err);
    if (o->settings.dtype == 0)
        o->settings.dtype = f->dtype;
    if (!pstk__cast_fits(f->dtype, o->settings.dtype))
        return cast_refused(p, i, err);
    if (p->on_device && o->settings.dtype != f->dtype) {
        o->deferred = 1;
        o->row_dtype = f->dtype;
    }
    o->n_dims = f->n_dims + 1;
    o->shape[0] = p->batch_size;
    for (uint32_t d = 0; d < f->n_dims; d++) {
        if (f->shape[d] == 0)
            return FAIL(i, PSTK_EINVAL,
                        ".kind: field '%s' has a variable shape; read it with an output of kind "
                        "PSTK_OUTPUT_RAGGED, or PSTK_OUTPUT_BYTES",
                        f->name);
        o->shape[d + 1] = (int64_t)f->shape[d];
    }
    return 0;
}

static int compile_bytes(struct pstk__plan *p, uint32_t i, struct pstk_error *err)
{
    struct pstk__output *o = &p->outputs[i];
    if (field_of(p, i)->kind == PSTK_FIELD_SCALAR)
        return wrong_kind(p, i, "a bytes", "bytes, utf8, image or ndarray", err);
    if (o->settings.dtype != 0 && o->settings.dtype != PSTK_U8)
        return FAIL(i, PSTK_EINVAL, ".dtype is %s; ragged outputs are bytes: 0 or u8",
                    pstk_dtype_name(o->settings.dtype));
    o->settings.dtype = PSTK_U8;
    o->n_dims = 1;
    o->item_size = 1;
    return 0;
}

static int compile_ragged(struct pstk__plan *p, uint32_t i, struct pstk_error *err)
{
    struct pstk__output *o = &p->outputs[i];
    const struct pstk_field *f = field_of(p, i);
    if (f->kind != PSTK_FIELD_NDARRAY)
        return wrong_kind(p, i, "a ragged", "ndarray", err);
    uint32_t variable = 0; /* the last variable dimension, counted from 1 */
    for (uint32_t d = 0; d < f->n_dims; d++)
        variable = f->shape[d] == 0 ? d + 1 : variable;
    if (variable != 1)
        return FAIL(i, PSTK_EINVAL,
                    ".kind: a ragged output needs an array of which the first dimension alone is "
                    "variable, which field '%s' is not",
                    f->name);
    if (o->settings.dtype != 0 && o->settings.dtype != f->dtype)
        return FAIL(i, PSTK_EINVAL, ".dtype is %s; a ragged output has that of its field, %s",
                    pstk_dtype_name(o->settings.dtype), pstk_dtype_name(f->dtype));
    o->settings.dtype = f->dtype;
    o->n_dims = f->n_dims;
    o->item_size = pstk_dtype_size(f->dtype);
    for (uint32_t d = 1; d < f->n_dims; d++) {
        o->shape[d] = (int64_t)f->shape[d];
        if (f->shape[d] > MAX_ROW / o->item_size)
            return FAIL(i, PSTK_EFBIG, ": an item is larger than 2^40 bytes");
        o->item_size *= f->shape[d];
    }
    return 0;
}

static int compile_callback(struct pstk__plan *p, uint32_t i, struct pstk_error *err)
{
    struct pstk__output *o = &p->outputs[i];
    const struct pstk_output *s = &o->settings;
    if (s->decode == NULL)
        return FAIL(i, PSTK_EINVAL, ".decode is NULL; a callback output needs it");
    if (pstk_dtype_size(s->dtype) == 0)
        return FAIL(i, PSTK_EINVAL, ".dtype is %u; a callback output needs one of enum pstk_dtype",
                    s->dtype);
    if (s->n_dims > 8)
        return FAIL(i, PSTK_EINVAL, ".n_dims is %u; a row has at most 8 dimensions", s->n_dims);
    if (s->scratch_size > MAX_ROW)
        return FAIL(i, PSTK_EFBIG, ".scratch_size is %llu bytes; at most 2^40 are possible",
                    (unsigned long long)s->scratch_size);
    o->n_dims = s->n_dims + 1;
    o->shape[0] = p->batch_size;
    for (uint32_t d = 0; d < s->n_dims; d++) {
        if (s->shape[d] == 0 || s->shape[d] > MAX_ROW)
            return FAIL(i, PSTK_EINVAL, ".shape[%u] is %llu; it must be from 1 to 2^40", d,
                        (unsigned long long)s->shape[d]);
        o->shape[d + 1] = (int64_t)s->shape[d];
    }
    return 0;
}

static int (*const compilers[])(struct pstk__plan *p, uint32_t i, struct pstk_error *err) = {
    [PSTK_OUTPUT_IMAGE] = compile_image,       [PSTK_OUTPUT_SCALAR] = compile_scalar,
    [PSTK_OUTPUT_TENSOR] = compile_tensor,     [PSTK_OUTPUT_BYTES] = compile_bytes,
    [PSTK_OUTPUT_CALLBACK] = compile_callback, [PSTK_OUTPUT_RAGGED] = compile_ragged,
};

/* What applies to another kind of output only was meant for something: it is not passed over. */
static int check_unused(const struct pstk__output *o, uint32_t i, struct pstk_error *err)
{
    const struct pstk_output *s = &o->settings;
    const int image = s->kind == PSTK_OUTPUT_IMAGE;
    if (!image && s->n_ops != 0)
        return FAIL(i, PSTK_EINVAL, ".n_ops is %u; operations apply to image outputs only",
                    s->n_ops);
    if (!image && (s->layout != 0 || s->exif_orientation != 0))
        return FAIL(i, PSTK_EINVAL, ": layout and exif_orientation apply to image outputs only");
    const int is_ragged = s->kind == PSTK_OUTPUT_BYTES || s->kind == PSTK_OUTPUT_RAGGED;
    if (!is_ragged && s->bytes_per_batch != 0)
        return FAIL(i, PSTK_EINVAL, ".bytes_per_batch applies to ragged outputs only");
    if (s->kind != PSTK_OUTPUT_CALLBACK && (s->decode != NULL || s->scratch_size != 0))
        return FAIL(i, PSTK_EINVAL, ": decode and scratch_size apply to callback outputs only");
    if (s->stored > (s->kind == PSTK_OUTPUT_CALLBACK))
        return FAIL(i, PSTK_EINVAL, ".stored is %u; it is 1 or 0, and 0 but for callback outputs",
                    s->stored);
    return 0;
}

/* ---- sizes ------------------------------------------------------------------------------------
 */

/* Sizes, strides and budget from the shape. Every factor is checked before it is multiplied. */
static int size_dense(struct pstk__plan *p, uint32_t i, struct pstk_error *err)
{
    struct pstk__output *o = &p->outputs[i];
    uint64_t elements = 1;
    const uint64_t element_size = pstk_dtype_size(o->settings.dtype);
    for (uint32_t d = o->n_dims; d-- > 1;) {
        const uint64_t n = (uint64_t)o->shape[d];
        o->strides[d] = (int64_t)elements;
        if (n > MAX_ROW / element_size / elements)
            return FAIL(i, PSTK_EFBIG, ": a row is larger than 2^40 bytes");
        elements *= n;
    }
    o->strides[0] = (int64_t)elements;
    o->final_size = elements * element_size;
    if (o->final_size > MAX_BUDGET / p->batch_size)
        return FAIL(i, PSTK_EFBIG,
                    ": a batch of %u rows of %llu bytes is too large; lower batch_size",
                    p->batch_size, (unsigned long long)o->final_size);
    if (!o->deferred) {
        o->row_dtype = o->settings.dtype;
        o->row_layout = o->settings.layout;
    }
    /* Deferred rows are of a narrower dtype. */
    o->row_size = elements * pstk_dtype_size(o->row_dtype);
    o->budget = p->batch_size * o->row_size;
    return 0;
}

static int size_ragged(struct pstk__plan *p, uint32_t i, struct pstk_error *err)
{
    struct pstk__output *o = &p->outputs[i];
    const uint64_t most = p->source->limits.max_plain[o->field];
    const uint64_t wanted = o->settings.bytes_per_batch;
    o->row_dtype = o->settings.dtype;
    o->row_size = o->final_size = most;
    if (wanted != 0 && wanted < most)
        return FAIL(
            i, PSTK_EINVAL,
            ".bytes_per_batch is %llu; the largest value of field '%s' alone has %llu bytes",
            (unsigned long long)wanted, field_of(p, i)->name, (unsigned long long)most);
    if (wanted > MAX_BUDGET || most > MAX_BUDGET / p->batch_size)
        return FAIL(i, PSTK_EFBIG,
                    ": a batch of %u rows of up to %llu bytes is too large; lower batch_size or "
                    "bytes_per_batch",
                    p->batch_size, (unsigned long long)most);
    o->budget = wanted != 0 ? wanted : p->batch_size * most;
    o->shape[0] = (int64_t)(o->budget / o->item_size);
    o->strides[o->n_dims - 1] = 1;
    for (uint32_t d = o->n_dims - 1; d-- > 0;)
        o->strides[d] = o->strides[d + 1] * o->shape[d + 1];
    return 0;
}

/*
 * What an image output takes of the arena, for the largest image of its field: its resize, a black
 * row for padding, and, where images are turned upright, the needed box as coded and one turned
 * row. Turned images may have width and height swapped.
 */
static uint64_t image_scratch(const struct pstk__plan *p, const struct pstk__output *o)
{
    uint32_t w = p->source->limits.max_width[o->field];
    uint32_t h = p->source->limits.max_height[o->field];
    const uint64_t area = (uint64_t)w * h < p->max_pixels ? (uint64_t)w * h : p->max_pixels;
    uint64_t size = ALIGN((uint64_t)3 * o->width);
    if (o->settings.exif_orientation) {
        w = h = w > h ? w : h;
        size += ALIGN(3 * area) + ALIGN((uint64_t)3 * w);
    }
    struct pstk__resize_bounds bounds = {.max_in_width = w,
                                         .max_in_height = h,
                                         .min_out_width = w,
                                         .min_out_height = h,
                                         .max_window_width = o->width,
                                         .max_window_height = o->height};
    for (uint32_t j = 0; j < o->settings.n_ops; j++) {
        const struct pstk_op *op = &o->ops[j];
        if (op->kind == PSTK_OP_RANDOM_RESIZED_CROP || op->kind == PSTK_OP_RESIZE) {
            bounds.min_out_width = op->width;
            bounds.min_out_height = op->height;
        } else if (op->kind == PSTK_OP_RESIZE_SHORTER) {
            bounds.min_out_width = bounds.min_out_height = op->width;
        }
    }
    return size + pstk__resize_scratch(&bounds);
}

/* What giving back a JPEG file from its planes takes; outputs of images do without. */
static uint64_t unpack_scratch(const struct pstk__plan *p, uint32_t field)
{
    const struct pstk__record_limits *limits = &p->source->limits;
    if (p->source->schema.fields[field].codec != PSTK_CODEC_PLANES)
        return 0;
    return pstk__planes_decode_scratch(limits->max_width[field], limits->max_height[field],
                                       p->max_pixels, limits->max_plain[field]);
}

/*
 * Arena bytes of a worker: its decompressor, and the most that one field takes, as fields are
 * worked on one after the other: the field's plain bytes, what its outputs take, and what decoding
 * its largest image takes.
 */
static uint64_t scratch_size(const struct pstk__plan *p)
{
    const struct pstk__record_limits *limits = &p->source->limits;
    uint64_t most = 0;
    for (uint32_t i = 0; i < p->n_outputs; i++) {
        if (!p->outputs[i].is_first)
            continue;
        const uint32_t field = p->outputs[i].field;
        uint64_t size = 0, image = 0, plain = 0;
        if (p->source->schema.entry[field] >= 0)
            size = ALIGN(limits->max_plain[field]);
        for (uint32_t k = i; k < p->n_outputs; k = p->outputs[k].next) {
            const struct pstk__output *o = &p->outputs[k];
            size += ALIGN(o->settings.scratch_size);
            if (o->settings.kind != PSTK_OUTPUT_IMAGE) {
                plain = o->settings.stored ? plain : unpack_scratch(p, field);
                continue;
            }
            size += image_scratch(p, o);
            image = pstk__image_scratch_within(limits->max_width[field], limits->max_height[field],
                                               p->max_pixels);
        }
        image = image > plain ? image : plain;
        most = size + image > most ? size + image : most;
    }
    return ALIGN(pstk__decoder_size()) + most;
}

/* ---- plan -------------------------------------------------------------------------------------
 */

static int compile_output(struct pstk__plan *p, const struct pstk_settings *s, uint32_t i,
                          struct pstk_error *err)
{
    struct pstk__output *o = &p->outputs[i];
    const uint8_t *from = (const uint8_t *)s->outputs + (size_t)i * s->output_size;
    const int known = element_copy(&o->settings, sizeof o->settings, from, s->output_size);
    int rc = ops_copy(o, i, s->op_size, err);
    if (rc < 0)
        return rc;
    if (!known)
        return FAIL(i, PSTK_ENOTSUP,
                    " uses a setting that is newer than this library (%s); update it",
                    pstk_version());
    const uint32_t kind = o->settings.kind;
    if (kind >= sizeof compilers / sizeof compilers[0] || compilers[kind] == NULL)
        return FAIL(i, PSTK_EINVAL, ".kind is %u; it must be one of enum pstk_output_kind", kind);
    rc = field_find(p, i, err);
    if (rc == 0)
        rc = name_copy(p, i, err);
    if (rc == 0)
        rc = check_unused(o, i, err);
    if (rc == 0)
        rc = compilers[kind](p, i, err);
    if (rc < 0)
        return rc;
    field_chain(p, i);
    if (p->source->schema.entry[o->field] >= 0)
        p->head_only = 0;
    return pstk__output_is_ragged(o) ? size_ragged(p, i, err) : size_dense(p, i, err);
}

/* Say also by its name which output an error is about: users give names, not numbers. */
static int fail_named(const struct pstk__output *o, int rc, struct pstk_error *err)
{
    if (err == NULL || err->size < sizeof *err || o->settings.name != o->name)
        return rc;
    return pstk__fail(err, rc, PSTK_STAGE_OPEN, "%s (output '%s')", err->message, o->name);
}

static int check_settings(const struct pstk_settings *s, struct pstk_error *err)
{
    if (s->batch_size == 0)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "batch_size is 0; a batch has at least 1 row");
    if (s->outputs == NULL || s->n_outputs == 0)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "outputs: there are none; a loader needs at least 1");
    if (s->n_outputs > PSTK__MAX_OUTPUTS)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, "n_outputs is %u; at most %u",
                          s->n_outputs, PSTK__MAX_OUTPUTS);
    if (s->output_size == 0 || s->op_size == 0)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "output_size or op_size is 0; fill the settings by pstk_settings_init");
    return 0;
}

static int compile(struct pstk__plan *p, const struct pstk_settings *s, struct pstk_error *err)
{
    p->kernels = pstk__pixel_kernels(s->variant);
    if (p->kernels == NULL)
        return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                          "variant is %u, which this build or this CPU does not have; leave it 0",
                          s->variant);
    for (uint32_t i = 0; i < s->n_outputs; i++) {
        const int rc = compile_output(p, s, i, err);
        if (rc < 0)
            return fail_named(&p->outputs[i], rc, err);
    }
    p->scratch_size = scratch_size(p);
    return 0;
}

int pstk__plan_open(struct pstk__plan **out, const struct pstk_settings *s,
                    const struct pstk__source *source, struct pstk_error *err)
{
    *out = NULL;
    int rc = check_settings(s, err);
    if (rc < 0)
        return rc;
    struct pstk__plan *p = calloc(1, sizeof *p);
    if (p == NULL)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "outputs: out of memory");
    p->source = source;
    p->n_outputs = s->n_outputs;
    p->batch_size = s->batch_size;
    p->max_pixels = s->max_pixels != 0 ? s->max_pixels : PSTK__MAX_PIXELS;
    p->head_only = 1;
    p->on_device = s->device != PSTK_HOST;
    p->seed = s->seed;
    rc = compile(p, s, err);
    if (rc < 0) {
        pstk__plan_close(p);
        return rc;
    }
    *out = p;
    return 0;
}

void pstk__plan_close(struct pstk__plan *p)
{
    if (p == NULL)
        return;
    for (uint32_t i = 0; i < p->n_outputs; i++) {
        free(p->outputs[i].ops);
        free(p->outputs[i].table);
    }
    free(p);
}
