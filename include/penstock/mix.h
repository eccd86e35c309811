/* SPDX-License-Identifier: Apache-2.0 */
/*
 * penstock/mix.h - MixUp, CutMix and soft targets: operations on a batch after all its rows are
 * written.
 *
 * The valid rows of a batch are paired, and each becomes a mixture of itself and its partner. The
 * partners are rows of this rank's batch, so they depend on batch_size and world. All other random
 * choices for a row, its crop for example, depend on the sample alone.
 */
#ifndef PENSTOCK_MIX_H
#define PENSTOCK_MIX_H

#include <penstock/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The number of random draws of a batch. */
enum pstk_mix_mode {
    /* one for the batch */
    PSTK_MIX_BATCH = 0,
    /* one for each row: timm's mode "elem" */
    PSTK_MIX_ELEM = 1,
    /* one for each pair of rows, which are each other's partners: timm's mode "pair". The pairing
     * is PSTK_MIX_FLIP; the middle row of an odd number has its own draw */
    PSTK_MIX_PAIR = 2,
};

/* The partner of row i of n valid ones. */
enum pstk_mix_pairing {
    /* i - 1, for row 0 the last: torchvision's pairing, with torchvision's boxes of CutMix */
    PSTK_MIX_ROLL = 0,
    /* n - 1 - i: timm's pairing, with timm's boxes of CutMix, whose sides may be odd */
    PSTK_MIX_FLIP = 1,
};

/* The delivered representation of mixed labels. */
enum pstk_mix_targets {
    /* the label's tensor is [B, n_classes], f32: lambda * the row's own one-hot vector + (1 -
     * lambda) * its partner's */
    PSTK_MIX_DENSE = 0,
    /* the label's tensor stays. Two follow the tensors of the outputs: NAME_partner, [B], the
     * labels of the partners, and NAME_lambda, [B], f32 */
    PSTK_MIX_PAIRS = 1,
};

/* The operation that mixes a row. */
enum pstk_mix_kind {
    PSTK_MIX_NONE = 0,
    /* lambda * row + (1 - lambda) * partner */
    PSTK_MIX_MIXUP = 1,
    /* a box of the partner replaces that part of the row; lambda is the part of the area that stays
     */
    PSTK_MIX_CUTMIX = 2,
};

/*
 * Settings for mixing batches: pstk_settings.mix. Fill the struct with pstk_mix_init, then name the
 * outputs and set at least n_classes.
 *
 * Images are mixed in the output's dtype, as torchvision.transforms.v2.MixUp and CutMix mix tensors
 * on a CPU: each product and each sum is rounded. On a device, such images are finished and mixed
 * on the host, then copied.
 */
struct pstk_mix {
    /* sizeof(struct pstk_mix) */
    uint32_t size;
    /* number of classes; labels are from 0 to n_classes - 1, and another label makes its sample bad
     */
    uint32_t n_classes;
    /* name of the tensor of an image output of dtype f16, bf16 or f32; copies. NULL: no images are
     * mixed, and both alphas are 0. default: NULL */
    const char *image;
    /* name of the tensor of a scalar output whose field has integers; copies */
    const char *label;
    /* parameter of MixUp's distribution of lambda, Beta(alpha, alpha), at most 1e6. 0: no MixUp.
     * default: 0 */
    double mixup_alpha;
    /* parameter of CutMix's distribution of lambda, Beta(alpha, alpha), at most 1e6. 0: no CutMix.
     * default: 0 */
    double cutmix_alpha;
    /* probability that a batch (ELEM: a row; PAIR: a pair) is mixed, 0 to 1. default: 1 */
    double probability;
    /* probability of CutMix if both alphas are set, 0 to 1. default: 0.5 */
    double switch_probability;
    /* DENSE: label smoothing: one-hot vectors have smoothing / n_classes at each class, and 1 -
     * smoothing more at their own. From 0, below 1. default: 0 */
    double smoothing;
    /* enum pstk_mix_mode. default: PSTK_MIX_BATCH */
    uint32_t mode;
    /* enum pstk_mix_pairing; PSTK_MIX_FLIP if mode is PAIR. default: PSTK_MIX_ROLL */
    uint32_t pairing;
    /* enum pstk_mix_targets. default: PSTK_MIX_DENSE */
    uint32_t targets;
    /* must be 0 */
    uint32_t reserved;
};

/* Fill `mix` with defaults. `size` is sizeof *mix: a library that has more members defaults them.
 */
PSTK_API void pstk_mix_init(struct pstk_mix *mix, uint32_t size);

/* The batch that pstk_mix_draw and pstk_mosaic_draw draw for. */
struct pstk_mix_key {
    /* sizeof(struct pstk_mix_key), set by the caller */
    uint32_t size;
    /* valid rows */
    uint32_t n_rows;
    /* height of the images, pixels, 1 to 65535; 0 without CutMix */
    uint32_t height;
    /* pixels */
    uint32_t width;
    uint64_t seed;
    uint64_t epoch;
    /* position of the batch (pstk_batch.position) */
    uint64_t position;
    /* rank of the loader: every rank has its own draws */
    uint32_t rank;
    /* must be 0 */
    uint32_t reserved;
};

/* The draw of one row. */
struct pstk_mixed_row {
    /* enum pstk_mix_kind */
    uint32_t kind;
    /* index of the other row in the batch */
    uint32_t partner;
    /* lambda, the weight of the row itself; 1 where kind is NONE */
    double lam;
    /* CUTMIX: the box that comes from the partner, pixels */
    uint32_t top;
    uint32_t left;
    /* 0: the box is empty */
    uint32_t height;
    uint32_t width;
};

/* Draw the mixing of a batch, as a loader with this mix does: fill rows[key->n_rows]. The names in
 * `mix` are not used. All pointers: borrows. EINVAL: as pstk_open. */
PSTK_API int pstk_mix_draw(const struct pstk_mix *mix, const struct pstk_mix_key *key,
                           struct pstk_mixed_row *rows, struct pstk_error *err);

#ifdef __cplusplus
}
#endif
#endif
