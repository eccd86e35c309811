/* SPDX-License-Identifier: Apache-2.0 */
/* processes: the processes that make rows, for all outputs of a plan, and the rows of whole batches
 * that they take. */
#include "sample/plan.h"

#include "base/error.h"
#include "record/kind.h"

#include <stdio.h>
#include <string.h>

#define FAIL(fmt, ...)                                                                             \
    pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, "outputs[%u]" fmt, i, ##__VA_ARGS__)

/* ---- whole batches --------------------------------------------------------------------------- */

static int input_of_image(struct pstk__output *o, uint32_t i, struct pstk_error *err)
{
    if (o->image.height == 0 || o->image.width == 0)
        return FAIL(".ops: must fix the size of the image, because the processes get whole batches "
                    "(batched): end them with a crop or a resize to one size");
    o->callback.input =
        (struct pstk__input){.dtype = PSTK_U8,
                             .n_dims = 3,
                             .shape = {o->image.height, o->image.width, o->image.channels}};
    return 0;
}

static int input_of_array(struct pstk__output *o, const struct pstk_field *field, uint32_t i,
                          struct pstk_error *err)
{
    o->callback.input = (struct pstk__input){.dtype = field->dtype, .n_dims = field->n_dims};
    if (field->n_dims > 7)
        return FAIL(".batched: field '%s' has %u dimensions; must have at most 7", field->name,
                    field->n_dims);
    for (uint32_t d = 0; d < field->n_dims; d++) {
        if (field->shape[d] == 0)
            return FAIL(".batched: field '%s' has a variable shape; must have a fixed one, "
                        "because the processes get whole batches",
                        field->name);
        o->callback.input.shape[d] = field->shape[d];
    }
    return 0;
}

int pstk__check_batched(struct pstk__plan *p, uint32_t i, struct pstk_error *err)
{
    struct pstk__output *o = &p->outputs[i];
    const struct pstk_field *field = &p->source->schema.fields[o->field];
    int rc = 0;
    if (o->settings.callback.batched > 1)
        return FAIL(".batched: value is %u; must be 0 or 1", o->settings.callback.batched);
    if (o->settings.callback.batched == 0)
        return 0;
    if (o->settings.callback.stored)
        return FAIL(".stored: value is 1; must be 0 where the processes get whole batches");
    if (o->has_pixels)
        rc = input_of_image(o, i, err);
    else if (pstk__field_traits(field->kind) & PSTK__TRAIT_ARRAY)
        rc = input_of_array(o, field, i, err);
    else if (field->kind == PSTK_FIELD_SCALAR)
        o->callback.input = (struct pstk__input){.dtype = field->dtype};
    else
        rc = FAIL(".batched: field '%s' is of kind %s, whose values have no fixed size; must "
                  "be an image after operations that fix its size, an array or a scalar",
                  field->name, pstk__field_kind_name(field->kind));
    if (rc < 0)
        return rc;
    o->callback.input.size = pstk_dtype_size(o->callback.input.dtype);
    for (uint32_t d = 0; d < o->callback.input.n_dims; d++) {
        if (o->callback.input.shape[d] > PSTK__MAX_INPUT / o->callback.input.size)
            return FAIL(".batched: a row of field '%s' is larger than 2^40 bytes", field->name);
        o->callback.input.size *= o->callback.input.shape[d];
    }
    if (o->callback.input.size > PSTK__MAX_INPUT / p->batch_size)
        return FAIL(".batched: a batch of %u rows of %llu bytes is too large; lower %s",
                    p->batch_size, (unsigned long long)o->callback.input.size, p->rows_setting);
    p->n_batched++;
    return 0;
}

/* ---- pools ----------------------------------------------------------------------------------- */

/* Return 1 if no output before it has the same processes. */
static int is_first(const struct pstk__plan *p, uint32_t i)
{
    const struct pstk_processes *processes = p->outputs[i].settings.callback.processes;
    uint32_t k = 0;
    while (k < i && p->outputs[k].settings.callback.processes != processes)
        k++;
    return processes && k == i;
}

void pstk__plan_processes(const struct pstk__plan *p, uint32_t *n, uint32_t *n_auto)
{
    *n = *n_auto = 0;
    for (uint32_t i = 0; i < p->n_outputs; i++) {
        if (!is_first(p, i))
            continue;
        const uint32_t n_processes = p->outputs[i].settings.callback.processes->n_processes;
        *n += n_processes;
        *n_auto += n_processes == 0;
    }
}

/* Return the largest number of bytes that an output gives to a process at a time. */
static uint64_t data_size(const struct pstk__plan *p, const struct pstk__output *o)
{
    if (o->settings.callback.batched)
        return p->batch_size * o->callback.input.size;
    return o->has_pixels ? o->image.canvas_room : p->source->limits.max_plain[o->field];
}

static uint64_t rows_size(const struct pstk__plan *p, const struct pstk__output *o)
{
    return pstk__output_rows(o)->row_size * (o->settings.callback.batched ? p->batch_size : 1);
}

/* Name the outputs that have these processes, as many as fit: "output 'x'", "outputs 'x', 'y'". */
static void name_members(const struct pstk__plan *p, const struct pstk_processes *processes,
                         char *text, size_t size)
{
    char names[256] = "";
    size_t length = 0;
    uint32_t n = 0;
    for (uint32_t k = 0; k < p->n_outputs && length < sizeof names; k++) {
        const struct pstk__output *o = &p->outputs[k];
        if (o->settings.callback.processes == processes)
            length += (size_t)snprintf(names + length, sizeof names - length, "%s'%s'",
                                       n++ ? ", " : "", o->name);
    }
    snprintf(text, size, "output%s %s", n > 1 ? "s" : "", names);
}

/* Open the processes of output i, and of all outputs that share them. */
static int open_pool(struct pstk__plan *p, uint32_t i, uint32_t n_auto, struct pstk_error *err)
{
    const struct pstk_processes *processes = p->outputs[i].settings.callback.processes;
    char whose[300];
    name_members(p, processes, whose, sizeof whose);
    struct pstk__process_pool_config config = {
        .processes = processes,
        .n_processes = processes->n_processes ? processes->n_processes : n_auto,
        .whose = whose};
    for (uint32_t k = i; k < p->n_outputs; k++) {
        const struct pstk__output *o = &p->outputs[k];
        if (o->settings.callback.processes != processes)
            continue;
        const uint64_t data = data_size(p, o), rows = rows_size(p, o);
        config.data_size = data > config.data_size ? data : config.data_size;
        config.row_size = rows > config.row_size ? rows : config.row_size;
    }
    struct pstk__process_pool **pool = &p->pools[p->n_pools];
    const int rc = pstk__process_pool_open(pool, &config, err);
    p->n_pools += rc == 0;
    for (uint32_t k = i; k < p->n_outputs; k++)
        if (p->outputs[k].settings.callback.processes == processes) {
            p->outputs[k].callback.pool = *pool;
            p->outputs[k].settings.callback.processes = NULL; /* it points to the caller's memory */
        }
    return rc;
}

int pstk__plan_start(struct pstk__plan *p, uint32_t n_auto, struct pstk_error *err)
{
    int rc = 0;
    for (uint32_t i = 0; i < p->n_outputs && rc == 0; i++)
        if (p->outputs[i].settings.callback.processes)
            rc = open_pool(p, i, n_auto, err);
    pstk__multi_size_share(p);
    return rc;
}

uint64_t pstk__plan_shared_memory(const struct pstk__plan *p)
{
    uint64_t size = 0;
    for (uint32_t i = 0; i < p->n_pools; i++)
        size += pstk__process_pool_memory(p->pools[i]);
    return size;
}

void pstk__plan_stop(struct pstk__plan *p)
{
    for (uint32_t i = 0; i < p->n_pools; i++)
        pstk__process_pool_stop(p->pools[i]);
}

void pstk__plan_end(struct pstk__plan *p)
{
    for (uint32_t i = 0; i < p->n_pools; i++)
        pstk__process_pool_close(p->pools[i]);
    p->n_pools = 0;
}
