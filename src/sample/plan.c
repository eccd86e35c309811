/* SPDX-License-Identifier: Apache-2.0 */
/* plan: the settings of the outputs, checked against a data set and compiled for the workers. */
#include "sample/plan.h"

#include "base/codec.h"
#include "base/error.h"
#include "image/decoder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALIGN(size) (((size) + 63) & ~(uint64_t)63) /* bytes as the arena rounds them */
#define MAX_OPS 64u                                 /* ops of one list, and children of one op */
#define NAMES_SIZE 400                              /* bytes of the list of fields in a message */

#define FAIL(i, code, fmt, ...)                                                                    \
    pstk__fail(err, code, PSTK_STAGE_OPEN, "outputs[%u]" fmt, i, ##__VA_ARGS__)

/* ---- copying ----------------------------------------------------------------------------------
 */

/*
 * Copy an element that has `size` bytes in the caller's header; members that it lacks become 0.
 * Returns 0 if the caller's header is newer and sets a member that this version does not know.
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

/* Return the children that ops_copy_list made. */
static struct pstk_op *owned_children(const struct pstk_op *op)
{
    return (struct pstk_op *)(uintptr_t)op->children;
}

static void ops_free(struct pstk_op *ops, uint32_t n)
{
    for (uint32_t j = 0; ops && j < n; j++)
        ops_free(owned_children(&ops[j]), ops[j].n_children);
    free(ops);
}

static int ops_copy_list(struct pstk_op **out, const void *from, uint32_t n, uint32_t op_size,
                         uint32_t depth, uint32_t *n_copied);

static int ops_copy_children(struct pstk_op *op, const void *from, uint32_t op_size, uint32_t depth,
                             uint32_t *n_copied)
{
    struct pstk_op *children;
    const int rc = ops_copy_list(&children, from, op->n_children, op_size, depth, n_copied);
    op->children = children;
    return rc;
}

/*
 * Copy n operations of op_size bytes each, and their children. *out is owned, also after a failure:
 * then children that are not copied are NULL. Lists and depths beyond the limits are refused here,
 * because the caller's pointers might form a circle.
 */
static int ops_copy_list(struct pstk_op **out, const void *from, uint32_t n, uint32_t op_size,
                         uint32_t depth, uint32_t *n_copied)
{
    *out = NULL;
    *n_copied += n;
    if (*n_copied > PSTK__MAX_OPS)
        return PSTK_EINVAL;
    struct pstk_op *ops = *out = calloc(n, sizeof *ops);
    if (!ops)
        return PSTK_ENOMEM;
    int known = 1, rc = 0;
    for (uint32_t j = 0; j < n; j++)
        known &= element_copy(&ops[j], sizeof ops[j], (const uint8_t *)from + (size_t)j * op_size,
                              op_size);
    for (uint32_t j = 0; j < n; j++) {
        const struct pstk_op *children = ops[j].children;
        ops[j].children = NULL;
        if (!children || ops[j].n_children == 0 || rc < 0)
            continue;
        if (ops[j].n_children > MAX_OPS || depth == PSTK__MAX_OP_DEPTH)
            rc = PSTK_EINVAL;
        else
            rc = ops_copy_children(&ops[j], children, op_size, depth + 1, n_copied);
    }
    return rc < 0 ? rc : known ? 0 : PSTK_ENOTSUP;
}

/* Mark all ops of a list, and their children. */
static void ops_mark(struct pstk_op *ops, uint32_t n)
{
    for (uint32_t j = 0; j < n; j++) {
        struct pstk_op *children = (struct pstk_op *)(uintptr_t)ops[j].children; /* copies */
        ops[j].flags |= PSTK_OP_TENSOR;
        ops_mark(children, children ? ops[j].n_children : 0);
    }
}

static int ops_copy(struct pstk__output *o, uint32_t i, uint32_t op_size, struct pstk_error *err)
{
    const uint32_t n = o->settings.image.n_ops;
    const struct pstk_op *from = o->settings.image.ops;
    o->settings.image.ops = NULL;
    if (n == 0)
        return 0;
    if (!from)
        return FAIL(i, PSTK_EINVAL,
                    ".ops: value is NULL; must be an array of %u operations (n_ops)", n);
    if (n > MAX_OPS)
        return FAIL(i, PSTK_EINVAL, ".n_ops: value is %u; must be at most %u", n, MAX_OPS);
    uint32_t n_copied = 0;
    const int rc = ops_copy_list(&o->image.ops, from, n, op_size, 0, &n_copied);
    o->image.n_ops = n;
    if (rc == PSTK_ENOMEM)
        return FAIL(i, rc, ".ops: out of memory");
    if (rc == PSTK_EINVAL)
        return FAIL(
            i, rc,
            ".ops: an operation must have at most %u children, in at most %u levels, and the "
            "list %u operations with all children",
            MAX_OPS, PSTK__MAX_OP_DEPTH, PSTK__MAX_OPS);
    if (rc < 0)
        return FAIL(i, rc,
                    ".ops: one uses a parameter that is newer than this library (%s); update "
                    "penstock",
                    pstk_version());
    if (o->settings.image.reference == PSTK_REFERENCE_TENSOR)
        ops_mark(o->image.ops, n);
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
    if (!o->settings.field)
        return FAIL(i, PSTK_EINVAL,
                    ".field: value is NULL; must be one of the data set's fields: %s", names);
    const int field = pstk__schema_find(schema, o->settings.field);
    if (field < 0)
        return FAIL(i, PSTK_EINVAL, ".field: the data set has no field '%.64s'; it has: %s",
                    o->settings.field, names);
    o->field = (uint32_t)field;
    o->settings.field = NULL;
    return 0;
}

/* Chain outputs of one field, so that it is checked and decoded once. */
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
    if (!name)
        name = p->source->schema.fields[o->field].name;
    const size_t length = strnlen(name, sizeof o->name);
    if (length == 0 || length == sizeof o->name)
        return FAIL(i, PSTK_EINVAL, ".name must have from 1 to %zu bytes", sizeof o->name - 1);
    memcpy(o->name, name, length);
    o->settings.name = o->name;
    for (uint32_t k = 0; k < i; k++)
        if (strcmp(p->outputs[k].name, o->name) == 0)
            return FAIL(i, PSTK_EINVAL,
                        ".name: value is '%s', which outputs[%u] has too; must be unique", o->name,
                        k);
    return 0;
}

void pstk__output_names(const struct pstk__plan *p, uint32_t n, uint32_t kind,
                        char text[PSTK__NAMES_SIZE])
{
    size_t used = 0;
    snprintf(text, PSTK__NAMES_SIZE, "there is none");
    for (uint32_t i = 0; i < n && used < PSTK__NAMES_SIZE; i++)
        if (p->outputs[i].kind == kind)
            used += (size_t)snprintf(text + used, PSTK__NAMES_SIZE - used, "%s'%s'",
                                     used > 0 ? ", " : "", p->outputs[i].name);
}

/* ---- what follows from the passes -------------------------------------------------------------
 */

/* Return the memory of the passes of the field that output i is the first to read. The field's
 * plain bytes exist once; the next pass reuses memory that a pass gives back. */
static uint64_t field_size(const struct pstk__plan *p, uint32_t i)
{
    uint64_t held = 0, plain = 0, scratch = 0;
    for (uint32_t k = i; k < p->n_outputs; k = p->outputs[k].next) {
        const struct pstk__output *o = &p->outputs[k];
        for (uint32_t j = 0; j < o->n_worker_passes; j++) {
            const struct pstk__pass *pass = &o->passes[j];
            if (pass->what == PSTK__PASS_PLAIN)
                plain = pass->held;
            else
                held += pass->held;
            scratch = pass->scratch > scratch ? pass->scratch : scratch;
        }
    }
    return plain + held + scratch;
}

/* Add up a worker's arena: its decompressor, what it draws and keeps for all outputs, and the most
 * that one field takes, because a worker works on one field at a time. */
uint64_t pstk__plan_scratch(const struct pstk__plan *p)
{
    uint64_t most = 0, kept = 0;
    for (uint32_t i = 0; i < p->n_outputs; i++) {
        kept +=
            pstk__output_image_ops_size(&p->outputs[i]) + pstk__output_boxes_size(&p->outputs[i]);
        const uint64_t size = p->outputs[i].is_first ? field_size(p, i) : 0;
        most = size > most ? size : most;
    }
    return ALIGN(pstk__decoder_size()) + kept + most;
}

/* Return 1 if this output alone reads a field outside of the head, and copies it. */
static uint8_t is_lone_copy(const struct pstk__plan *p, const struct pstk__output *o)
{
    return o->is_first && o->next == p->n_outputs && !pstk__output_follows(o->kind) &&
           p->source->schema.entry[o->field] >= 0 &&
           o->passes[o->n_worker_passes - 1].what == PSTK__PASS_COPY;
}

/* Return 1 if this output alone reads a field of images, and its rows are pixels of 8 bits that
 * only the geometry changes. */
static uint8_t is_lone_image(const struct pstk__plan *p, const struct pstk__output *o)
{
    if (o->kind != PSTK_OUTPUT_IMAGE || !o->is_first || o->next != p->n_outputs ||
        o->image.canvas_room > 0)
        return 0;
    for (uint32_t k = 0; k < o->image.resize; k++)
        if (o->passes[k].what == PSTK__PASS_CONVERT || o->passes[k].what == PSTK__PASS_COLOUR)
            return 0;
    const struct pstk__row_layout *row = pstk__output_finished(o);
    return row->dtype == PSTK_U8 && (row->layout == PSTK_NHWC || row->channels == 1);
}

/* Return the rank in the order of work of the field that output i is the first to read: ops look at
 * boxes, and all others follow images. */
static uint32_t rank_of(const struct pstk__plan *p, uint32_t i)
{
    const uint32_t kind = p->source->schema.fields[p->outputs[i].field].kind;
    return kind == PSTK_FIELD_BOXES ? 0 : kind == PSTK_FIELD_IMAGE ? 1 : 2;
}

static void order_fields(struct pstk__plan *p)
{
    for (uint32_t rank = 0; rank <= 2; rank++) {
        for (uint32_t i = 0; i < p->n_outputs; i++)
            if (p->outputs[i].is_first && rank_of(p, i) == rank)
                p->by_field[p->n_fields++] = (uint8_t)i;
        p->n_leading = rank < 2 ? p->n_fields : p->n_leading;
    }
}

/* ---- plan -------------------------------------------------------------------------------------
 */

/* Return 1 if no member is set that only a later version has. */
static int has_empty_room(const struct pstk_output *output)
{
    const uint64_t *const rooms[] = {output->image.reserved, output->callback.reserved,
                                     output->follow.reserved, output->ragged.reserved};
    uint64_t bits = output->callback.reserved2;
    for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++)
        bits |= rooms[i][0] | rooms[i][1] | rooms[i][2] | rooms[i][3];
    return bits == 0;
}

static int check_output(struct pstk__plan *p, const struct pstk_settings *s, uint32_t i,
                        struct pstk_error *err)
{
    struct pstk__output *o = &p->outputs[i];
    const uint8_t *from = (const uint8_t *)s->outputs + (size_t)i * s->output_size;
    const int known = element_copy(&o->settings, sizeof o->settings, from, s->output_size);
    o->kind = o->settings.kind;
    o->dtype = o->settings.dtype;
    int rc = pstk__multi_size_choose(p, i, err);
    if (rc == 0)
        rc = ops_copy(o, i, s->op_size, err);
    if (rc < 0)
        return rc;
    if (!known || !has_empty_room(&o->settings))
        return FAIL(i, PSTK_ENOTSUP,
                    " uses a setting that is newer than this library (%s); update penstock",
                    pstk_version());
    rc = pstk__output_check_kind(o->kind, i, err);
    if (rc == 0)
        rc = field_find(p, i, err);
    if (rc == 0)
        rc = name_copy(p, i, err);
    if (rc == 0)
        pstk__mixing_find(p, i);
    if (rc == 0)
        pstk__mosaic_find(p, i);
    if (rc == 0 && !pstk__output_follows(o->kind))
        rc = pstk__output_check(p, i, err);
    if (rc < 0)
        return rc;
    field_chain(p, i);
    if (p->source->schema.entry[o->field] >= 0)
        p->head_only = 0;
    return 0;
}

/* Add the name of the output to an error, because users know names, not numbers. */
static int fail_named(const struct pstk__output *o, int rc, struct pstk_error *err)
{
    if (!err || err->size < sizeof *err || o->settings.name != o->name)
        return rc;
    return pstk__fail(err, rc, PSTK_STAGE_OPEN, "%s (output '%s')", err->message, o->name);
}

static int check_settings(const struct pstk_settings *s, struct pstk_error *err)
{
    if (s->batch_size == 0)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "batch_size: value is 0; must be at least 1");
    if (!s->outputs || s->n_outputs == 0)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "n_outputs: value is 0; must be at least 1");
    if (s->n_outputs > PSTK__MAX_OUTPUTS)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "n_outputs: value is %u; must be at most %u", s->n_outputs,
                          PSTK__MAX_OUTPUTS);
    if (s->output_size == 0 || s->op_size == 0)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "output_size, op_size: one of them is 0; call pstk_settings_init before "
                          "you fill the settings");
    return 0;
}

/* Call a function for the first n outputs that follow an image, or for those that do not. */
static int each_output(struct pstk__plan *p, uint32_t n, int follows,
                       int (*call)(struct pstk__plan *p, uint32_t i, struct pstk_error *err),
                       struct pstk_error *err)
{
    for (uint32_t i = 0; i < n; i++) {
        if (pstk__output_follows(p->outputs[i].kind) != follows)
            continue;
        const int rc = call(p, i, err);
        if (rc < 0)
            return fail_named(&p->outputs[i], rc, err);
    }
    return 0;
}

static int compile(struct pstk__plan *p, const struct pstk_settings *s, struct pstk_error *err)
{
    if (!pstk__canvas_kernels_init(&p->kernels, s->reading.kernels))
        return pstk__fail(
            err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
            "kernels: value is %u; must be 0, or kernels that both this build and this CPU have",
            s->reading.kernels);
    for (uint32_t i = 0; i < s->n_outputs; i++) {
        const int rc = check_output(p, s, i, err);
        if (rc < 0)
            return fail_named(&p->outputs[i], rc, err);
    }
    int rc = each_output(p, s->n_outputs, 1, pstk__output_check, err);
    if (rc == 0)
        rc = each_output(p, s->n_outputs, 0, pstk__output_find_boxes, err);
    if (rc == 0)
        rc = pstk__mosaic_combine(p, s->n_outputs, err);
    if (rc == 0)
        rc = each_output(p, s->n_outputs, 0, pstk__output_compile, err);
    if (rc == 0)
        rc = each_output(p, s->n_outputs, 1, pstk__output_compile, err);
    if (rc == 0)
        rc = pstk__mixing_compile(p, s->n_outputs, err);
    if (rc < 0)
        return rc;
    for (uint32_t i = 0; i < p->n_outputs; i++)
        p->outputs[i].is_lone_copy = is_lone_copy(p, &p->outputs[i]);
    for (uint32_t i = 0; i < p->n_outputs; i++)
        p->outputs[i].is_lone_image = is_lone_image(p, &p->outputs[i]);
    order_fields(p);
    p->scratch_size = pstk__plan_scratch(p);
    return 0;
}

int pstk__plan_open_size(struct pstk__plan **out, const struct pstk_settings *s,
                         const struct pstk__source *source, uint32_t size_index,
                         struct pstk_error *err)
{
    *out = NULL;
    int rc = check_settings(s, err);
    if (rc < 0)
        return rc;
    struct pstk__plan *p = calloc(1, sizeof *p);
    if (!p)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "outputs: out of memory");
    p->source = source;
    p->n_joined = source->n_joined;
    p->n_outputs = s->n_outputs;
    p->batch_size = s->batch_size;
    p->has_budget = s->budget != NULL;
    p->rows_setting = s->budget                  ? "budget.max_rows"
                      : s->order.n_batch_steps   ? "batch_schedule"
                      : s->memory.max_batch_size ? "max_batch_size"
                      : s->global_batch_size     ? "global_batch_size"
                                                 : "batch_size";
    p->max_pixels = s->memory.max_pixels != 0 ? s->memory.max_pixels : PSTK__MAX_PIXELS;
    p->head_only = 1;
    p->on_device = s->device.kind != PSTK_HOST;
    p->seed = s->seed;
    p->size_index = size_index;
    rc = pstk__mixing_open(p, s, err);
    if (rc == 0)
        rc = pstk__mosaic_open(p, s, err);
    if (rc == 0)
        rc = compile(p, s, err);
    if (rc < 0) {
        pstk__multi_size_locate(p, err);
        pstk__plan_close(p);
        return rc;
    }
    *out = p;
    return 0;
}

int pstk__plan_open(struct pstk__plan **out, const struct pstk_settings *s,
                    const struct pstk__source *source, struct pstk_error *err)
{
    int rc = pstk__plan_open_size(out, s, source, 0, err);
    if (rc == 0)
        rc = pstk__multi_size_open(*out, s, err);
    if (rc < 0) {
        pstk__plan_close(*out);
        *out = NULL;
    }
    return rc;
}

void pstk__plan_close(struct pstk__plan *p)
{
    if (!p)
        return;
    pstk__multi_size_close(p);
    pstk__plan_end(p);
    for (uint32_t i = 0; i < p->n_outputs; i++) {
        ops_free(p->outputs[i].image.ops, p->outputs[i].image.n_ops);
        free(p->outputs[i].follow.partners);
        free(p->outputs[i].passes);
        free(p->outputs[i].image.table);
    }
    free(p);
}
