/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JPEG by libjpeg-turbo: accurate integer DCT (ISLOW) and fancy upsampling, Pillow's pixels.
 *
 * What counts as damage is said in library.h.
 * The input ends where the bytes end: no end-of-image marker is made up. As with Pillow, only a
 * file whose last row came out complete may lack it.
 */
#include "base/error.h"
#include "image/image.h"
#include "image/jpeg/header.h"
#include "image/jpeg/library.h"

#include <stdlib.h>
#include <string.h>

/* Fancy upsampling looks one chroma sample, two pixels, to each side: decoded and dropped. (Not the
 * whole condition: see crop.) */
#define MARGIN 2u

#define STRINGIFY_(x) #x
#define STRINGIFY(x) STRINGIFY_(x)

struct pstk__jpeg {
    struct jpeg_decompress_struct cinfo;
    struct pstk__jpeg_guard guard;
};

/* What one call decodes. */
struct job {
    struct pstk__jpeg *jpeg;
    const struct pstk__image_info *info;
    const struct pstk__box *box;
    const struct pstk__row_sink *sink;
};

/* ---- opening -------------------------------------------------------------------------------- */

int pstk__jpeg_open(struct pstk__jpeg **out, struct pstk__arena *arena, struct pstk_error *err)
{
    *out = NULL;
    struct pstk__jpeg *j = calloc(1, sizeof *j);
    if (!j)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for a JPEG decoder");
    pstk__jpeg_guard_init(&j->guard, arena);
    if (pstk__jpeg_open_decompress(&j->guard, &j->cinfo) != 0) {
        int r = pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "libjpeg cannot start: %s",
                           j->guard.text);
        if (err)
            err->native = j->guard.code;
        pstk__jpeg_close(j);
        return r;
    }
    *out = j;
    return 0;
}

void pstk__jpeg_close(struct pstk__jpeg *j)
{
    if (!j)
        return;
    pstk__jpeg_close_decompress(&j->guard, &j->cinfo);
    free(j);
}

const char *pstk__jpeg_library(void)
{
    return "libjpeg-turbo " STRINGIFY(LIBJPEG_TURBO_VERSION);
}

/*
 * Bytes that an image of w x h pixels takes, with its at most 4 components at full size and
 * sampling factors of at most 4 (libjpeg's limits), 64 being the arena's and the rows' alignment:
 *   coefficients, multi-scan files: blocks of 64 * 2 bytes, each side of a component being
 *     ceil(side / 8) rounded up to its factor: at most 3 more; and a pointer a row of blocks.
 *     (w / 8 + 4) (h / 8 + 4) = w h / 64 + (w + h) / 2 + 16, in which w h is at most max_pixels
 *   main controller: a component's rows of one iMCU and two row groups of context at most,
 *     4 * 8 + 2 * 4, twice the pointers; upsampler: 4 rows a component; smoothing and output: 8
 * rows of all; together 64 rows of w + 3 * 8 + 64 bytes a component our row of 4 bytes a pixel,
 * counted among the 64 tables: Huffman (derived: 1.5 KiB), quantisation, colour (4 KiB), range
 * limits (1.4 KiB), MCU buffer (10 blocks), arithmetic statistics: below 96 KiB.
 */
uint64_t pstk__jpeg_scratch(uint32_t max_width, uint32_t max_height, uint64_t max_pixels)
{
    uint64_t across = (uint64_t)max_width / 8 + 4, down = (uint64_t)max_height / 8 + 4;
    uint64_t blocks = max_pixels / 64 + ((uint64_t)max_width + max_height) / 2 + 18;
    blocks = across * down < blocks ? across * down : blocks;
    uint64_t coefficients = 4 * (blocks * sizeof(JBLOCK) + down * sizeof(void *) + 128);
    uint64_t rows = 4 * 64 * ((uint64_t)max_width + 24 + 64);
    return coefficients + rows + (96u << 10);
}

/* ---- decoding; everything here runs under the guard ----------------------------------------- */

/* How many colours libjpeg gives: it makes RGB of all but CMYK and YCCK. */
static void choose_output(j_decompress_ptr c)
{
    int is_cmyk = c->jpeg_color_space == JCS_CMYK || c->jpeg_color_space == JCS_YCCK;
    c->out_color_space = is_cmyk ? JCS_CMYK : JCS_RGB;
    c->dct_method = JDCT_ISLOW;
    c->do_fancy_upsampling = TRUE;
}

/* a * b / 255, rounded, as Pillow's MULDIV255. */
static uint32_t muldiv255(uint32_t a, uint32_t b)
{
    uint32_t t = a * b + 128;
    return ((t >> 8) + t) >> 8;
}

/* Pillow reads every four-component JPEG as Adobe's inverted CMYK, and converts it by its cmyk2rgb:
 * (255 - k) - c * (255 - k) / 255 with c and k inverted back. In place: 3 bytes from 4. */
static void cmyk_to_rgb(uint8_t *row, uint32_t n_pixels)
{
    for (uint32_t x = 0; x < n_pixels; x++) {
        const uint8_t *in = row + 4 * (size_t)x;
        uint8_t *out = row + 3 * (size_t)x;
        uint32_t k = in[3];
        uint8_t rgb[3];
        for (int i = 0; i < 3; i++)
            rgb[i] = (uint8_t)(k - muldiv255(255u - in[i], k));
        memcpy(out, rgb, 3);
    }
}

/* Narrow the columns to the box and its margin. Returns the first decoded column. */
static JDIMENSION crop(j_decompress_ptr c, const struct pstk__box *box)
{
    JDIMENSION left = box->left > MARGIN ? box->left - MARGIN : 0;
    uint32_t to_right = c->output_width - box->left - box->width;
    JDIMENSION width = box->left + box->width + (to_right < MARGIN ? to_right : MARGIN) - left;
    /* Where a crop leaves some component fewer than two samples a row, libjpeg chooses the
     * upsamplers of all components anew, and plain ones for those with two: three samples each at
     * the least. */
    JDIMENSION least = 2 * (JDIMENSION)c->max_h_samp_factor + 1;
    least = least < c->output_width ? least : c->output_width;
    width = width > least ? width : least;
    left = width > c->output_width - left ? c->output_width - width : left;
    if (width < c->output_width)
        jpeg_crop_scanline(c, &left, &width);
    return left;
}

static void decode_rows(struct pstk__jpeg *j, const struct job *job)
{
    j_decompress_ptr c = &j->cinfo;
    const struct pstk__box *box = job->box;
    int whole =
        pstk__jpeg_is_smoothed(c); /* crop and skip would cut off the neighbours it looks at */
    JDIMENSION left = whole ? 0 : crop(c, box);
    uint32_t n_colors = (uint32_t)c->out_color_components;
    JSAMPROW row =
        c->mem->alloc_large((j_common_ptr)c, JPOOL_IMAGE, (size_t)c->output_width * n_colors);
    uint8_t *first = row + (size_t)(box->left - left) * n_colors;

    if (box->top > 0 && !whole)
        jpeg_skip_scanlines(c, box->top);
    while (c->output_scanline < box->top)
        jpeg_read_scanlines(c, &row, 1);
    for (uint32_t y = 0; y < box->height; y++) {
        jpeg_read_scanlines(c, &row, 1); /* 1, since input that ends leaves through the guard */
        if (n_colors == 4)
            cmyk_to_rgb(first, box->width);
        job->sink->rows(job->sink->user, first, 0, 1);
    }
}

/* 0, or a result code with the guard's text written; libjpeg's own errors leave by longjmp. */
static int decode_image(void *user)
{
    const struct job *job = user;
    struct pstk__jpeg *j = job->jpeg;
    struct pstk__jpeg_guard *g = &j->guard;
    j_decompress_ptr c = &j->cinfo;
    /* Pillow passes over datastreams that hold tables only */
    while (jpeg_read_header(c, FALSE) == JPEG_HEADER_TABLES_ONLY)
        continue;
    if (c->image_width != job->info->width || c->image_height != job->info->height) {
        snprintf(g->text, sizeof g->text, "image is %u x %u pixels, its record says %u x %u",
                 c->image_width, c->image_height, job->info->width, job->info->height);
        return PSTK_EBADMSG;
    }
    choose_output(c);
    jpeg_start_decompress(c);
    decode_rows(j, job);
    if (c->output_scanline == c->output_height) {
        g->finishing = 1;
        jpeg_finish_decompress(c);
    }
    return 0;
}

/* ---- the table ------------------------------------------------------------------------------ */

static int jpeg_probe(const void *data, uint64_t size, uint64_t max_pixels,
                      struct pstk__image_info *info, struct pstk_error *err)
{
    struct pstk__jpeg_header h;
    int r = pstk__jpeg_header_read(&h, data, size, err);
    if (r == 0)
        r = pstk__image_check_size("JPEG", h.width, h.height, max_pixels, err);
    if (r == 0)
        *info = (struct pstk__image_info){.encoding = PSTK_ENCODING_JPEG,
                                          .width = h.width,
                                          .height = h.height,
                                          .orientation = h.orientation};
    return r;
}

static int jpeg_decode(struct pstk__image_state *state, const void *data, uint64_t size,
                       const struct pstk__image_info *info, const struct pstk__box *box,
                       const struct pstk__row_sink *sink, struct pstk_error *err)
{
    struct pstk__jpeg *j = state->jpeg;
    struct job job = {.jpeg = j, .info = info, .box = box, .sink = sink};
    struct pstk__jpeg_header h;

    int r = pstk__image_check_box(info, box, err);
    if (r == 0)
        r = pstk__jpeg_header_read(&h, data, size, err);
    if (r < 0)
        return r;
    size_t mark = state->arena->used;
    pstk__jpeg_begin(&j->guard, &j->cinfo, data, size);
    r = pstk__jpeg_guarded(&j->guard, decode_image, &job);
    if (r != 0)
        r = pstk__jpeg_report(&j->guard, r, size, err);
    jpeg_abort_decompress(&j->cinfo); /* back to the start, whatever state it was left in */
    pstk__arena_reset(state->arena, mark);
    return r;
}

const struct pstk__image_decoder pstk__image_jpeg = {
    .encoding = PSTK_ENCODING_JPEG,
    .name = "jpeg",
    .probe = jpeg_probe,
    .decode = jpeg_decode,
};
