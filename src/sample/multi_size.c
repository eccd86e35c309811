/* SPDX-License-Identifier: Apache-2.0 */
#include "sample/multi_size.h"

#include "base/error.h"
#include "base/random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZE_DRAWS (UINT32_MAX - 3) /* the `data_set` of these draws; no sample uses it */

#define FAIL(i, code, fmt, ...)                                                                    \
    pstk__fail(err, code, PSTK_STAGE_OPEN, "outputs[%u]." fmt, i, ##__VA_ARGS__)

uint32_t pstk__multi_size_at(const struct pstk__plan *p, uint64_t epoch, uint64_t index)
{
    if (p->n_sizes <= 1)
        return 0;
    struct pstk__random random;
    const struct pstk__random_key key = {
        .seed = p->seed, .epoch = epoch, .sample_id = index / p->every, .data_set = SIZE_DRAWS};
    pstk__random_init(&random, &key);
    return (uint32_t)pstk__random_below(&random, p->n_sizes);
}

static uint32_t n_plans(const struct pstk__plan *p)
{
    return p->n_sizes > 1 ? p->n_sizes : 1;
}

uint64_t pstk__multi_size_row_size(const struct pstk__plan *p, uint32_t i)
{
    uint64_t most = 0;
    for (uint32_t v = 0; v < n_plans(p); v++) {
        const uint64_t size = pstk__output_rows(&pstk__plan_of_size(p, v)->outputs[i])->row_size;
        most = size > most ? size : most;
    }
    return most;
}

uint64_t pstk__multi_size_final_size(const struct pstk__plan *p, uint32_t i)
{
    uint64_t most = 0;
    for (uint32_t v = 0; v < n_plans(p); v++) {
        const uint64_t size = pstk__output_final(&pstk__plan_of_size(p, v)->outputs[i])->row_size;
        most = size > most ? size : most;
    }
    return most;
}

/* ---- open ------------------------------------------------------------------------------------ */

static int check_members(const struct pstk_output *output, uint32_t i, struct pstk_error *err)
{
    if (output->kind != PSTK_OUTPUT_IMAGE)
        return FAIL(i, PSTK_EINVAL,
                    "n_sizes: value is %u; must be 0, because it applies to image outputs only",
                    output->image.n_sizes);
    if (!output->image.size_ops)
        return FAIL(i, PSTK_EINVAL, "size_ops: value is NULL; must be an array of %u (n_sizes)",
                    output->image.n_sizes);
    if (output->image.n_sizes > PSTK_MAX_SIZES)
        return FAIL(i, PSTK_EINVAL, "n_sizes: value is %u; must be at most %u",
                    output->image.n_sizes, PSTK_MAX_SIZES);
    if (output->image.n_ops != 0)
        return FAIL(i, PSTK_EINVAL,
                    "n_ops: value is %u; must be 0 for an output that has size_ops, which have "
                    "their own operations",
                    output->image.n_ops);
    if (output->image.every == 0)
        return FAIL(i, PSTK_EINVAL,
                    "every: value is 0; must be at least 1, batches in a row of the same size");
    return 0;
}

/* Check that output i has as many sizes, for as many batches, as others: one draw serves all. */
static int check_equal(const struct pstk__plan *p, uint32_t i, struct pstk_error *err)
{
    const struct pstk_output *output = &p->outputs[i].settings;
    uint32_t k = 0;
    while (p->outputs[k].settings.image.n_sizes == 0)
        k++;
    if (output->image.n_sizes != p->n_sizes)
        return FAIL(i, PSTK_EINVAL,
                    "n_sizes: value is %u; must be %u, as of outputs[%u], because a loader "
                    "draws one number for all of them",
                    output->image.n_sizes, p->n_sizes, k);
    if (output->image.every != p->every)
        return FAIL(i, PSTK_EINVAL,
                    "every: value is %u; must be %u, as of outputs[%u], because a loader draws one "
                    "number for all of them",
                    output->image.every, p->every, k);
    return 0;
}

int pstk__multi_size_choose(struct pstk__plan *p, uint32_t i, struct pstk_error *err)
{
    struct pstk_output *output = &p->outputs[i].settings;
    if (output->image.n_sizes == 0 && output->image.size_ops)
        return FAIL(i, PSTK_EINVAL, "n_sizes: value is 0; must be at least 1, or size_ops NULL");
    if (output->image.n_sizes == 0 && output->image.every != 0)
        return FAIL(i, PSTK_EINVAL,
                    "every: value is %u; must be 0, because it applies to outputs that have "
                    "size_ops only",
                    output->image.every);
    if (output->image.n_sizes == 0)
        return 0;
    int rc = check_members(output, i, err);
    if (rc == 0 && p->n_sizes == 0) {
        p->n_sizes = output->image.n_sizes;
        p->every = output->image.every;
    }
    if (rc == 0)
        rc = check_equal(p, i, err);
    if (rc < 0)
        return rc;
    const struct pstk_op_list *list = &output->image.size_ops[p->size_index];
    if (list->reserved != 0)
        return FAIL(i, PSTK_EINVAL, "size_ops[%u].reserved: value is %u; must be 0", p->size_index,
                    list->reserved);
    output->image.ops = list->ops;
    output->image.n_ops = list->n_ops;
    output->image.size_ops = NULL;
    return 0;
}

void pstk__multi_size_locate(const struct pstk__plan *p, struct pstk_error *err)
{
    uint32_t i = 0;
    int begin = 0;
    if (!err || err->size < sizeof *err || p->n_sizes == 0)
        return;
    const struct pstk_error inner = *err;
    const int found = sscanf(inner.message, "outputs[%u].%n", &i, &begin) == 1 && begin > 0;
    const char *member = inner.message + begin;
    /* Once a list is chosen, the output's `ops` are its members. */
    const int is_chosen = found && i < p->n_outputs && p->outputs[i].settings.image.n_sizes > 0 &&
                          !p->outputs[i].settings.image.size_ops;
    if (is_chosen && (strncmp(member, "ops", 3) == 0 || strncmp(member, "n_ops", 5) == 0))
        FAIL(i, inner.code, "size_ops[%u].%.600s", p->size_index, member);
    else if (p->size_index > 0)
        pstk__fail(err, inner.code, PSTK_STAGE_OPEN, "%.700s (of size %u)", inner.message,
                   p->size_index);
}

/* Check that a batch of this size has the same types as one of size 0. */
static int check_alike(const struct pstk__plan *p, const struct pstk__plan *other,
                       struct pstk_error *err)
{
    for (uint32_t i = 0; i < p->n_outputs; i++) {
        const struct pstk__output *o = &p->outputs[i], *of = &other->outputs[i];
        if (o->settings.image.n_sizes == 0)
            continue;
        if (of->image.channels != o->image.channels)
            return FAIL(i, PSTK_EINVAL,
                        "size_ops[%u].ops: the images have %u channels; must have %u, like the "
                        "images of size_ops[0] (output '%s')",
                        other->size_index, of->image.channels, o->image.channels, o->name);
        if (!pstk__output_device_pass(of) != !pstk__output_device_pass(o))
            return FAIL(i, PSTK_EINVAL,
                        "size_ops[%u].ops: %s; must end like size_ops[0], because the device "
                        "finishes images that are not erased (output '%s')",
                        other->size_index,
                        pstk__output_device_pass(o) ? "the last one erases" : "none erases",
                        o->name);
    }
    return 0;
}

/* Widen the memory that a worker keeps for a sample, and its scratch, to every size. */
static void widen(struct pstk__plan *p)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < p->n_outputs; i++) {
        uint32_t max_ops = 0;
        for (uint32_t v = 0; v < p->n_sizes; v++) {
            const uint32_t n = pstk__plan_of_size(p, v)->outputs[i].image.max_ops;
            max_ops = n > max_ops ? n : max_ops;
        }
        p->outputs[i].image.max_ops = max_ops;
        for (uint32_t v = 1; v < p->n_sizes; v++)
            p->others[v - 1]->outputs[i].image.max_ops = max_ops;
    }
    for (uint32_t v = 0; v < p->n_sizes; v++) {
        const uint64_t size = pstk__plan_scratch(pstk__plan_of_size(p, v));
        most = size > most ? size : most;
    }
    p->scratch_size = most;
    for (uint32_t v = 1; v < p->n_sizes; v++)
        p->others[v - 1]->scratch_size = most;
}

int pstk__multi_size_open(struct pstk__plan *p, const struct pstk_settings *s,
                          struct pstk_error *err)
{
    for (uint32_t v = 1; v < p->n_sizes; v++) {
        int rc = pstk__plan_open_size(&p->others[v - 1], s, p->source, v, err);
        if (rc == 0)
            rc = check_alike(p, p->others[v - 1], err);
        if (rc < 0)
            return rc;
    }
    if (p->n_sizes > 1)
        widen(p);
    return 0;
}

void pstk__multi_size_share(struct pstk__plan *p)
{
    for (uint32_t v = 1; v < p->n_sizes; v++)
        for (uint32_t i = 0; i < p->n_outputs; i++) {
            p->others[v - 1]->outputs[i].callback.pool = p->outputs[i].callback.pool;
            p->others[v - 1]->outputs[i].settings.callback.processes = NULL;
        }
}

void pstk__multi_size_close(struct pstk__plan *p)
{
    for (uint32_t v = 1; v < p->n_sizes; v++) {
        struct pstk__plan *other = p->others[v - 1];
        for (uint32_t i = 0; other && i < p->n_outputs; i++)
            other->outputs[i].callback.pool = NULL; /* owned by p */
        pstk__plan_close(other);
    }
}
