/* SPDX-License-Identifier: Apache-2.0 */
#include "image/jpeg/smooth.h"

#define SIDE 5u /* blocks of the window's side; the block to smooth is in its middle */
#define N_BITS PSTK__JPEG_N_KNOWN /* coefficients that may be estimated */

/* The weight of each DC value of the window. An estimate is the weighted sum, divided by 256. */
typedef int16_t weights[SIDE][SIDE];

/* The formula that estimates one coefficient. */
struct estimate {
    uint8_t zigzag;        /* position in the zigzag order */
    uint8_t natural;       /* position in a block */
    uint8_t is_transposed; /* 1: rows of `weights` are columns of the window */
    const weights *weights;
};

/* ---- the weights ---------------------------------------------------------------------------- */

/* Weights for files with AC coefficients: the window of K.8, widened to 5 x 5. */
static const weights slope = {[2] = {-7, 50, 0, -50, 7}};
static const weights curve = {[2] = {-1, 13, -24, 13, -1}};
static const weights twist = {
    {0, -1, 0, 1, 0}, {-1, 10, 0, -10, 1}, {0}, {1, -10, 0, 10, -1}, {0, 1, 0, -1, 0}};

static const struct estimate estimates[] = {
    {.zigzag = 1, .natural = 1, .weights = &slope},
    {.zigzag = 2, .natural = 8, .weights = &slope, .is_transposed = 1},
    {.zigzag = 3, .natural = 16, .weights = &curve, .is_transposed = 1},
    {.zigzag = 4, .natural = 9, .weights = &twist},
    {.zigzag = 5, .natural = 2, .weights = &curve},
};

/* Weights for files with only DC coefficients: a blur like Gauss's, which changes the DC as well.
 */
static const weights dc_blur = {{-2, -6, -8, -6, -2},
                                {-6, 6, 42, 6, -6},
                                {-8, 42, 152, 42, -8},
                                {-6, 6, 42, 6, -6},
                                {-2, -6, -8, -6, -2}};
static const weights dc_slope = {{-1, -1, 0, 1, 1},
                                 {-3, 13, 0, -13, 3},
                                 {-3, 38, 0, -38, 3},
                                 {-3, 13, 0, -13, 3},
                                 {-1, -1, 0, 1, 1}};
static const weights dc_curve = {[1] = {0, 2, -5, 2, 0}, {1, 7, -14, 7, 1}, {0, 2, -5, 2, 0}};
static const weights dc_twist = {
    {-1, 0, 0, 0, 1}, {0, 9, 0, -9, 0}, {0}, {0, -9, 0, 9, 0}, {1, 0, 0, 0, -1}};
static const weights dc_cubic = {[1] = {0, 1, 0, -1, 0}, {0, 2, 0, -2, 0}, {0, 1, 0, -1, 0}};
static const weights dc_saddle = {[1] = {0, 1, -3, 1, 0}, {0}, {0, -1, 3, -1, 0}};

static const struct estimate dc_estimates[] = {
    {.zigzag = 0, .natural = 0, .weights = &dc_blur},
    {.zigzag = 1, .natural = 1, .weights = &dc_slope},
    {.zigzag = 2, .natural = 8, .weights = &dc_slope, .is_transposed = 1},
    {.zigzag = 3, .natural = 16, .weights = &dc_curve, .is_transposed = 1},
    {.zigzag = 4, .natural = 9, .weights = &dc_twist},
    {.zigzag = 5, .natural = 2, .weights = &dc_curve},
    {.zigzag = 6, .natural = 3, .weights = &dc_cubic},
    {.zigzag = 7, .natural = 10, .weights = &dc_saddle},
    {.zigzag = 8, .natural = 17, .weights = &dc_saddle, .is_transposed = 1},
    {.zigzag = 9, .natural = 24, .weights = &dc_cubic, .is_transposed = 1},
};

/* ---- one component -------------------------------------------------------------------------- */

/* The known bits of a component's coefficients after a scan. */
struct known {
    int bits[N_BITS]; /* in zigzag order: number of low bits that no scan gave; -1: all */
    const struct estimate *estimates;
    uint32_t n_estimates;
};

/* A component being smoothed. */
struct plane {
    const jpeg_component_info *component;
    JBLOCKARRAY blocks;   /* rows of blocks, MCU padding included */
    const int16_t *dc;    /* their DC values as the scans gave them, with rows of `across` values */
    uint32_t across;      /* columns of blocks that have pixels */
    struct known last;    /* for rows up to last_fed_row */
    struct known earlier; /* for rows after it */
};

/* The rows and columns of the DC values in the window. */
struct window {
    uint32_t rows[SIDE], columns[SIDE];
};

static int32_t weigh(const struct plane *plane, const struct estimate *estimate,
                     const struct window *window)
{
    const weights *w = estimate->weights;
    int32_t sum = 0; /* below 2^24: values of 16 bits, weights whose sizes sum to at most 432 */
    for (uint32_t y = 0; y < SIDE; y++) {
        const int16_t *row = plane->dc + (size_t)window->rows[y] * plane->across;
        for (uint32_t x = 0; x < SIDE; x++)
            sum += (estimate->is_transposed ? (*w)[x][y] : (*w)[y][x]) * row[window->columns[x]];
    }
    return sum;
}

/* Return sum / 256 in steps of `quant`, rounded, halves away from 0. If some scan gave bits (bits >
 * 0), the result stays within the bits that no scan gave. */
static int16_t quantise(int64_t sum, uint32_t quant, int bits)
{
    const int64_t step = (int64_t)quant * 256;
    int64_t size = ((sum < 0 ? -sum : sum) + step / 2) / step; /* below 2^32: 2^16 2^24 / 2^8 */
    if (bits > 0 && size >= (int64_t)1 << bits)
        size = ((int64_t)1 << bits) - 1;
    return (int16_t)(sum < 0 ? -size : size); /* the low 16 bits, as in libjpeg */
}

static void smooth_block(const struct plane *plane, const struct known *known,
                         const struct window *window, JCOEF *block)
{
    const UINT16 *quant = plane->component->quant_table->quantval;
    for (uint32_t i = 0; i < known->n_estimates; i++) {
        const struct estimate *estimate = &known->estimates[i];
        const int is_dc = estimate->zigzag == 0, bits = known->bits[estimate->zigzag];
        JCOEF *coefficient = &block[estimate->natural];
        if (!is_dc && (bits == 0 || *coefficient != 0))
            continue; /* known, or known in part */
        *coefficient = quantise((int64_t)quant[0] * weigh(plane, estimate, window),
                                quant[estimate->natural], is_dc ? 0 : bits);
    }
}

static void smooth_row(const struct plane *plane, const struct known *known, struct window *window,
                       JBLOCKROW row)
{
    const uint32_t last = plane->across - 1;
    for (uint32_t x = 0; x <= last; x++) {
        for (uint32_t k = 0; k < SIDE; k++) {
            const uint32_t column = x + k < 2 ? 0 : x + k - 2;
            window->columns[k] = column < last ? column : last;
        }
        smooth_block(plane, known, window, row[x]);
    }
}

/*
 * Find the window's rows for row k of an MCU row, which has n_rows rows with pixels; `v` without
 * the padding. The window ends at the image's edges, as libjpeg-turbo finds them: it numbers rows
 * as if every MCU row had n_rows. So in a last MCU row of fewer than v, the window can end too
 * early above; and the MCU row before that one sees its padding below.
 */
static void find_rows(struct window *window, uint32_t mcu_row, uint32_t n_mcu_rows, uint32_t n_rows,
                      uint32_t k, uint32_t v)
{
    const uint32_t row = mcu_row * v + k, number = mcu_row * n_rows + k;
    const uint32_t n_below = n_mcu_rows * n_rows - 1 - number;
    window->rows[2] = row;
    window->rows[1] = row - (number > 0);
    window->rows[0] = window->rows[1] - (number > 1);
    window->rows[3] = row + (n_below > 0);
    window->rows[4] = window->rows[3] + (n_below > 1);
}

static void smooth_plane(const struct plane *plane, uint32_t n_mcu_rows, uint32_t last_fed_row)
{
    const uint32_t v = (uint32_t)plane->component->v_samp_factor;
    struct window window;
    for (uint32_t m = 0; m < n_mcu_rows; m++) {
        const uint32_t n_left = plane->component->height_in_blocks - m * v;
        const uint32_t n_rows = n_left < v ? n_left : v;
        for (uint32_t k = 0; k < n_rows; k++) {
            find_rows(&window, m, n_mcu_rows, n_rows, k, v);
            smooth_row(plane, m > last_fed_row ? &plane->earlier : &plane->last, &window,
                       plane->blocks[m * v + k]);
        }
    }
}

/* ---- the image ------------------------------------------------------------------------------ */

/* Return 1 when libjpeg-turbo smooths this image: the DC values of all components are known at
 * least in part, some of the coefficients that it estimates are not known completely, and it can
 * divide. */
static int is_smoothed(const struct jpeg_decompress_struct *cinfo)
{
    int is_useful = 0;
    if (!pstk__jpeg_is_incomplete(cinfo))
        return 0;
    for (int i = 0; i < cinfo->num_components; i++) {
        const JQUANT_TBL *quant = cinfo->comp_info[i].quant_table;
        const int *bits = cinfo->coef_bits[i];
        if (!quant || bits[0] < 0)
            return 0;
        for (uint32_t k = 0; k < N_BITS; k++) {
            if (quant->quantval[dc_estimates[k].natural] == 0)
                return 0;
            is_useful |= k > 0 && bits[k] != 0;
        }
    }
    return is_useful;
}

/* Copy the DC values of all rows, padding included. */
static const int16_t *copy_dc(j_decompress_ptr cinfo, JBLOCKARRAY blocks, uint32_t n_rows,
                              uint32_t across)
{
    int16_t *dc = cinfo->mem->alloc_large((j_common_ptr)cinfo, JPOOL_IMAGE,
                                          (size_t)n_rows * across * sizeof *dc);
    for (uint32_t y = 0; y < n_rows; y++)
        for (uint32_t x = 0; x < across; x++)
            dc[(size_t)y * across + x] = blocks[y][x][0];
    return dc;
}

/* Choose the estimates by a component's known bits. */
static struct known known_of(const int bits[N_BITS])
{
    struct known known = {.estimates = dc_estimates, .n_estimates = N_BITS};
    int has_ac = 0;
    for (uint32_t k = 1; k < N_BITS; k++) {
        known.bits[k] = bits[k];
        has_ac |= bits[k] != -1;
    }
    if (has_ac) {
        known.estimates = estimates;
        known.n_estimates = sizeof estimates / sizeof estimates[0];
    }
    return known;
}

void pstk__jpeg_smooth(const struct pstk__jpeg_guard *guard, j_decompress_ptr cinfo,
                       uint32_t last_fed_row)
{
    static const int nothing[N_BITS] = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
    const struct pstk__jpeg_memory *memory = &guard->memory;
    if (!is_smoothed(cinfo))
        return;
    for (int i = 0; i < cinfo->num_components; i++) {
        const jpeg_component_info *component = &cinfo->comp_info[i];
        const uint32_t n_rows = cinfo->total_iMCU_rows * (uint32_t)component->v_samp_factor;
        const int *earlier = cinfo->input_scan_number > 1 ? guard->known.earlier[i] : nothing;
        struct plane plane = {
            .component = component,
            .blocks = pstk__jpeg_memory_blocks(memory, (uint32_t)(cinfo->num_components - 1 - i)),
            .across = component->width_in_blocks,
            .last = known_of(cinfo->coef_bits[i]),
            .earlier = known_of(earlier),
        };
        plane.dc = copy_dc(cinfo, plane.blocks, n_rows, plane.across);
        smooth_plane(&plane, cinfo->total_iMCU_rows, last_fed_row);
    }
}

uint64_t pstk__jpeg_smooth_scratch(uint64_t n_blocks)
{
    return n_blocks * sizeof(int16_t);
}
