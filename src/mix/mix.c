/* SPDX-License-Identifier: Apache-2.0 */
/* mix: initializes, copies and checks the settings. */
#include "mix/mix.h"

#include "base/error.h"

#include <stddef.h>
#include <string.h>

#define MIX_SIZE_MAX 4096u
#define MIX_SIZE_MIN sizeof(struct pstk_mix) /* size in the first version of the struct */
#define ALPHA_MAX 1e6

void pstk_mix_init(struct pstk_mix *mix, uint32_t size)
{
    if (!mix || size < MIX_SIZE_MIN)
        return;
    memset(mix, 0, size);
    mix->size = size;
    mix->probability = 1;
    mix->switch_probability = 0.5;
}

int pstk__mix_copy(struct pstk_mix *to, const struct pstk_mix *from, struct pstk_error *err)
{
    if (from->size < MIX_SIZE_MIN || from->size > MIX_SIZE_MAX)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "mix: not initialised, call pstk_mix_init first");
    for (uint32_t i = sizeof *to; i < from->size; i++)
        if (((const uint8_t *)from)[i] != 0)
            return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                              "mix: a member of a newer penstock is set, which version %s does not "
                              "know",
                              pstk_version());
    *to = *from;
    to->size = sizeof *to;
    return 0;
}

int pstk__mix_has_images(const struct pstk_mix *mix)
{
    return mix->mixup_alpha > 0 || mix->cutmix_alpha > 0;
}

/* Check that a member is from 0 to `most`; NaN is refused. */
static int check_number(const char *name, double value, double most, struct pstk_error *err)
{
    if (value >= 0 && value <= most)
        return 0;
    return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                      "mix.%s: value is %g; must be from 0 to %g", name, value, most);
}

static int check_choice(const char *name, uint32_t value, uint32_t most, struct pstk_error *err)
{
    if (value <= most)
        return 0;
    return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                      "mix.%s: value is %u; must be from 0 to %u", name, value, most);
}

static int check_smoothing(const struct pstk_mix *mix, struct pstk_error *err)
{
    if (!(mix->smoothing >= 0 && mix->smoothing < 1))
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "mix.smoothing: value is %g; must be from 0, and below 1",
                          mix->smoothing);
    if (mix->smoothing > 0 && mix->targets != PSTK_MIX_DENSE)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "mix.smoothing: value is %g; must be 0 unless targets is PSTK_MIX_DENSE "
                          "(the loss can smooth pairs)",
                          mix->smoothing);
    return 0;
}

int pstk__mix_check(const struct pstk_mix *mix, struct pstk_error *err)
{
    const struct {
        const char *name;
        double value, most;
    } numbers[] = {
        {"mixup_alpha", mix->mixup_alpha, ALPHA_MAX},
        {"cutmix_alpha", mix->cutmix_alpha, ALPHA_MAX},
        {"probability", mix->probability, 1},
        {"switch_probability", mix->switch_probability, 1},
    };
    int r = 0;
    for (size_t i = 0; r == 0 && i < sizeof numbers / sizeof *numbers; i++)
        r = check_number(numbers[i].name, numbers[i].value, numbers[i].most, err);
    if (r == 0)
        r = check_choice("mode", mix->mode, PSTK_MIX_PAIR, err);
    if (r == 0)
        r = check_choice("pairing", mix->pairing, PSTK_MIX_FLIP, err);
    if (r == 0 && mix->mode == PSTK_MIX_PAIR && mix->pairing != PSTK_MIX_FLIP)
        r = pstk__fail_setting(err, "mix.pairing", mix->pairing,
                               "PSTK_MIX_FLIP where mode is PSTK_MIX_PAIR: others form no pairs");
    if (r == 0)
        r = check_choice("targets", mix->targets, PSTK_MIX_PAIRS, err);
    if (r == 0)
        r = check_choice("reserved", mix->reserved, 0, err);
    if (r == 0)
        r = check_smoothing(mix, err);
    if (r == 0 && mix->n_classes == 0)
        r = pstk__fail_setting(err, "mix.n_classes", 0, "at least 1");
    return r;
}
