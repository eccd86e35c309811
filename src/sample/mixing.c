/* SPDX-License-Identifier: Apache-2.0 */
/* mixing: the outputs that the settings' mix needs, and the outputs that it adds. */
#include "sample/plan.h"

#include "base/cast.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>

#define N_ADDED 2u /* outputs that PSTK_MIX_PAIRS adds */

#define FAIL(code, fmt, ...) pstk__fail(err, code, PSTK_STAGE_OPEN, "mix." fmt, ##__VA_ARGS__)

static int check_names(const struct pstk_mix *mix, struct pstk_error *err)
{
    if (!mix->label)
        return FAIL(PSTK_EINVAL, "label: value is NULL; must be the name of an output");
    if (!mix->image && pstk__mix_has_images(mix))
        return FAIL(PSTK_EINVAL, "image: value is NULL; must be the name of an output, because "
                                 "mixup_alpha or cutmix_alpha is set");
    if (mix->image && !pstk__mix_has_images(mix))
        return FAIL(PSTK_EINVAL, "image: must be NULL, because mixup_alpha and cutmix_alpha are 0");
    return 0;
}

int pstk__mixing_open(struct pstk__plan *p, const struct pstk_settings *s, struct pstk_error *err)
{
    struct pstk_mix mix;
    if (!s->mix)
        return 0;
    int r = pstk__mix_copy(&mix, s->mix, err);
    if (r == 0)
        r = pstk__mix_check(&mix, err);
    if (r == 0)
        r = check_names(&mix, err);
    if (r < 0)
        return r;
    p->mixing = (struct pstk__mixing){.settings = mix, .image = UINT32_MAX, .label = UINT32_MAX};
    if (mix.targets == PSTK_MIX_DENSE)
        return 0;
    if (p->n_outputs > PSTK__MAX_OUTPUTS - N_ADDED)
        return pstk__fail_setting(err, "n_outputs", p->n_outputs,
                                  "at most %u, because mix.targets adds %u tensors",
                                  PSTK__MAX_OUTPUTS - N_ADDED, N_ADDED);
    p->n_outputs += N_ADDED;
    return 0;
}

void pstk__mixing_find(struct pstk__plan *p, uint32_t i)
{
    struct pstk__mixing *mixing = &p->mixing;
    if (!pstk__plan_mixes(p))
        return;
    if (mixing->settings.image && strcmp(p->outputs[i].name, mixing->settings.image) == 0)
        mixing->image = i;
    if (strcmp(p->outputs[i].name, mixing->settings.label) == 0)
        mixing->label = i;
}

static int is_integer(uint32_t dtype)
{
    return pstk__cast_fits(dtype, PSTK_I64) || dtype == PSTK_U64;
}

int pstk__mixing_label(struct pstk__plan *p, uint32_t i, struct pstk_error *err)
{
    struct pstk__output *o = &p->outputs[i];
    const struct pstk_field *field = &p->source->schema.fields[o->field];
    if (!is_integer(field->dtype))
        return FAIL(PSTK_EINVAL, "label: field '%s' has dtype %s; must have integers", field->name,
                    pstk_dtype_name(field->dtype));
    if (!pstk__plan_has_targets(p))
        return 0;
    o->dtype = PSTK_F32;
    o->n_dims = 2;
    o->shape[1] = p->mixing.settings.n_classes;
    return 0;
}

/* ---- once all outputs are compiled ----------------------------------------------------------- */

static int is_of_kind(const struct pstk__plan *p, uint32_t i, uint32_t kind)
{
    return i != UINT32_MAX && p->outputs[i].kind == kind;
}

static int check_label(const struct pstk__plan *p, uint32_t n, struct pstk_error *err)
{
    char names[PSTK__NAMES_SIZE];
    if (is_of_kind(p, p->mixing.label, PSTK_OUTPUT_SCALAR))
        return 0;
    pstk__output_names(p, n, PSTK_OUTPUT_SCALAR, names);
    return FAIL(PSTK_EINVAL, "label: value is '%.64s'; must be the name of a scalar output: %s",
                p->mixing.settings.label, names);
}

static int check_image(const struct pstk__plan *p, uint32_t n, struct pstk_error *err)
{
    const struct pstk__mixing *mixing = &p->mixing;
    char names[PSTK__NAMES_SIZE];
    if (!mixing->settings.image)
        return 0;
    if (!is_of_kind(p, mixing->image, PSTK_OUTPUT_IMAGE)) {
        pstk__output_names(p, n, PSTK_OUTPUT_IMAGE, names);
        return FAIL(PSTK_EINVAL, "image: value is '%.64s'; must be the name of an image output: %s",
                    mixing->settings.image, names);
    }
    const struct pstk__output *o = &p->outputs[mixing->image];
    if (o->dtype == PSTK_U8)
        return FAIL(PSTK_EINVAL,
                    "image: output '%s' has dtype u8; must have f16, bf16 or f32, because "
                    "normalised images are mixed (set its dtype)",
                    o->name);
    return 0;
}

/* Add output i: the label's name with `suffix`; a row is one element of dtype. */
static int add(struct pstk__plan *p, uint32_t i, const char *suffix, uint32_t dtype,
               struct pstk_error *err)
{
    struct pstk__output *o = &p->outputs[i];
    const struct pstk__output *label = &p->outputs[p->mixing.label];
    const size_t length = strlen(label->name);
    if (length + strlen(suffix) >= sizeof o->name)
        return FAIL(PSTK_EINVAL, "label: value is '%s'; must have at most %zu bytes with '%s'",
                    label->name, sizeof o->name - 1, suffix);
    memcpy(o->name, label->name, length);
    memcpy(o->name + length, suffix, strlen(suffix) + 1);
    for (uint32_t k = 0; k < i; k++)
        if (strcmp(p->outputs[k].name, o->name) == 0)
            return FAIL(PSTK_EINVAL, "targets: adds the tensor '%s', which outputs[%u] is, too",
                        o->name, k);
    o->passes = calloc(1, sizeof *o->passes);
    if (!o->passes)
        return FAIL(PSTK_ENOMEM, "targets: out of memory");
    const uint32_t size = pstk_dtype_size(dtype);
    *o->passes =
        (struct pstk__pass){.what = PSTK__PASS_LABEL, .out = {.dtype = dtype, .row_size = size}};
    o->n_passes = o->n_worker_passes = 1;
    o->kind = PSTK_OUTPUT_SCALAR;
    o->dtype = dtype;
    o->settings = (struct pstk_output){.name = o->name, .kind = o->kind, .dtype = dtype};
    o->field = label->field;
    o->next = p->n_outputs;
    o->n_dims = 1;
    o->shape[0] = p->batch_size;
    o->strides[0] = 1;
    o->budget = (uint64_t)p->batch_size * size;
    return 0;
}

int pstk__mixing_compile(struct pstk__plan *p, uint32_t n, struct pstk_error *err)
{
    struct pstk__mixing *mixing = &p->mixing;
    if (!pstk__plan_mixes(p))
        return 0;
    int r = check_label(p, n, err);
    if (r == 0)
        r = check_image(p, n, err);
    if (r == 0 && mixing->settings.targets == PSTK_MIX_PAIRS)
        r = add(p, n, "_partner", p->outputs[mixing->label].dtype, err);
    if (r == 0 && mixing->settings.targets == PSTK_MIX_PAIRS)
        r = add(p, n + 1, "_lambda", PSTK_F32, err);
    mixing->settings.image = mixing->settings.label = NULL; /* they point to the caller's memory */
    return r;
}
