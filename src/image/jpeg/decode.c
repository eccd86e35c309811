/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg/decode: decodes JPEG by libjpeg-turbo to Pillow's pixels: accurate integer DCT (ISLOW) and
 * fancy upsampling.
 *
 * library.h defines what counts as damage. The input ends where the bytes end: the decoder invents
 * no end-of-image marker. As with Pillow, a file may lack the marker only if its last row is
 * complete.
 */
#include "image/jpeg/decode.h"

#include "base/error.h"
#include "image/jpeg/header.h"
#include "image/jpeg/library.h"
#include "image/jpeg/output.h"
#include "image/jpeg/smooth.h"

#include <stdlib.h>

/* Pixels decoded on each side of a box and dropped: fancy upsampling reads one chroma sample, two
 * pixels, there. (crop has a further condition.) */
#define MARGIN 2u

#define STRINGIFY_(x) #x
#define STRINGIFY(x) STRINGIFY_(x)

/* The libjpeg object of one thread, reused for each image. */
struct state {
    struct jpeg_decompress_struct cinfo;
    struct pstk__jpeg_guard guard;
    struct pstk__arena *arena; /* borrowed */
};

/* The arguments of a decode. */
struct job {
    struct state *state;
    const struct pstk__image_info *info;
    const struct pstk__box *box;
    const struct pstk__row_sink *sink;
};

/* ---- opening -------------------------------------------------------------------------------- */

static void jpeg_close(void *state)
{
    struct state *s = state;
    if (!s)
        return;
    pstk__jpeg_close_decompress(&s->guard, &s->cinfo);
    free(s);
}

static int jpeg_open(void **out, struct pstk__arena *arena, uint32_t isa, struct pstk_error *err)
{
    (void)isa; /* libjpeg chooses its kernels itself */
    *out = NULL;
    struct state *state = calloc(1, sizeof *state);
    if (!state)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for a JPEG decoder");
    state->arena = arena;
    pstk__jpeg_guard_init(&state->guard, arena);
    if (pstk__jpeg_open_decompress(&state->guard, &state->cinfo) != 0) {
        int r = pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "libjpeg cannot start: %s",
                           state->guard.text);
        if (err)
            err->native = state->guard.code;
        jpeg_close(state);
        return r;
    }
    *out = state;
    return 0;
}

const char *pstk__jpeg_library(void)
{
    return "libjpeg-turbo " STRINGIFY(LIBJPEG_TURBO_VERSION);
}

/*
 * Bytes for an image of w x h pixels, with at most 4 components at full size and sampling factors
 * of at most 4 (libjpeg's limits). 64 is the alignment of the arena and of rows.
 *
 *   coefficients   multi-scan files: blocks of 64 * 2 bytes; each side of a component is
 *                  ceil(side / 8) rounded up to its factor, at most 3 more; and a pointer for each
 *                  row of blocks. (w / 8 + 4) (h / 8 + 4) = w h / 64 + (w + h) / 2 + 16, where
 *                  w h is at most max_pixels
 *   smoothing      a DC value of each of these blocks
 *   rows           main controller: a component's rows of one iMCU and two row groups of context
 *                  at most, 4 * 8 + 2 * 4, twice the pointers; upsampler: 4 rows a component;
 *                  smoothing and output: 8 rows of all; our row of 4 bytes a pixel; together at
 *                  most 64 rows of w + 3 * 8 + 64 bytes for each component
 *   tables         Huffman (derived: 1.5 KiB), quantisation, colour (4 KiB), range limits
 *                  (1.4 KiB), MCU buffer (10 blocks), arithmetic statistics: below 96 KiB
 */
uint64_t pstk__jpeg_scratch(uint32_t max_width, uint32_t max_height, uint64_t max_pixels)
{
    uint64_t across = (uint64_t)max_width / 8 + 4, down = (uint64_t)max_height / 8 + 4;
    uint64_t blocks = max_pixels / 64 + ((uint64_t)max_width + max_height) / 2 + 18;
    blocks = across * down < blocks ? across * down : blocks;
    uint64_t coefficients = 4 * (blocks * sizeof(JBLOCK) + down * sizeof(void *) + 128);
    uint64_t smoothing = pstk__jpeg_smooth_scratch(4 * blocks) + 4 * 64;
    uint64_t rows = 4 * 64 * ((uint64_t)max_width + 24 + 64);
    return coefficients + smoothing + rows + (96u << 10);
}

/* ---- decoding; everything here runs under the guard ----------------------------------------- */

/* Restrict the columns to the box and its margin. Returns the first decoded column. */
static JDIMENSION crop(j_decompress_ptr cinfo, const struct pstk__box *box)
{
    JDIMENSION left = box->left > MARGIN ? box->left - MARGIN : 0;
    uint32_t to_right = cinfo->output_width - box->left - box->width;
    JDIMENSION width = box->left + box->width + (to_right < MARGIN ? to_right : MARGIN) - left;
    /* If a crop leaves a component fewer than two samples a row, libjpeg chooses the upsamplers of
     * all components again, plain ones for those with two. So keep at least three samples. */
    JDIMENSION least = 2 * (JDIMENSION)cinfo->max_h_samp_factor + 1;
    least = least < cinfo->output_width ? least : cinfo->output_width;
    width = width > least ? width : least;
    left = width > cinfo->output_width - left ? cinfo->output_width - width : left;
    if (width < cinfo->output_width)
        jpeg_crop_scanline(cinfo, &left, &width);
    return left;
}

static void decode_rows(const struct job *job)
{
    j_decompress_ptr cinfo = &job->state->cinfo;
    const struct pstk__box *box = job->box;
    JDIMENSION left = crop(cinfo, box);
    uint32_t n_colors = (uint32_t)cinfo->out_color_components;
    JSAMPROW row = cinfo->mem->alloc_large((j_common_ptr)cinfo, JPOOL_IMAGE,
                                           (size_t)cinfo->output_width * n_colors);
    uint8_t *first = row + (size_t)(box->left - left) * n_colors;

    if (box->top > 0)
        jpeg_skip_scanlines(cinfo, box->top);
    for (uint32_t y = 0; y < box->height; y++) {
        jpeg_read_scanlines(cinfo, &row,
                            1); /* returns 1, because the guard catches the end of input */
        pstk__jpeg_convert_row(cinfo, first, job->box->width, job->sink->channels);
        job->sink->rows(job->sink->user, first, 0, 1);
    }
}

/* Decode an image. Returns 0, or a result with the guard's text written; libjpeg's own errors leave
 * by longjmp. */
static int decode_image(void *user)
{
    const struct job *job = user;
    struct pstk__jpeg_guard *guard = &job->state->guard;
    j_decompress_ptr cinfo = &job->state->cinfo;
    /* Skip datastreams that hold only tables, as Pillow does. */
    while (jpeg_read_header(cinfo, FALSE) == JPEG_HEADER_TABLES_ONLY)
        continue;
    if (cinfo->image_width != job->info->width || cinfo->image_height != job->info->height) {
        snprintf(guard->text, sizeof guard->text,
                 "image is %u x %u pixels, its record says %u x %u", cinfo->image_width,
                 cinfo->image_height, job->info->width, job->info->height);
        return PSTK_EBADMSG;
    }
    pstk__jpeg_choose_output(cinfo, job->sink->channels);
    jpeg_start_decompress(cinfo);
    pstk__jpeg_smooth(guard, cinfo, UINT32_MAX);
    decode_rows(job);
    if (cinfo->output_scanline == cinfo->output_height) {
        guard->finishing = 1;
        jpeg_finish_decompress(cinfo);
    }
    return 0;
}

/* ---- the table ------------------------------------------------------------------------------ */

int pstk__jpeg_probe(const void *data, uint64_t size, uint64_t max_pixels,
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
                                          .orientation = pstk__jpeg_orientation(&h, data),
                                          .channels = (uint8_t)h.n_components,
                                          .bit_depth = 8};
    return r;
}

static int jpeg_decode(void *state, const struct pstk__coded *image, const struct pstk__box *box,
                       const struct pstk__row_sink *sink, struct pstk_error *err)
{
    struct state *s = state;
    struct job job = {.state = s, .info = image->info, .box = box, .sink = sink};
    struct pstk__jpeg_header h;

    int r = pstk__image_check_box(image, box, sink, err);
    if (r == 0)
        r = pstk__jpeg_header_read(&h, image->data, image->size, err);
    if (r < 0)
        return r;
    size_t mark = s->arena->used;
    pstk__jpeg_begin(&s->guard, &s->cinfo, image->data, image->size);
    r = pstk__jpeg_guarded(&s->guard, decode_image, &job);
    if (r != 0)
        r = pstk__jpeg_report(&s->guard, r, image->size, err);
    jpeg_abort_decompress(&s->cinfo); /* resets libjpeg from any state */
    pstk__arena_reset(s->arena, mark);
    return r;
}

const struct pstk__image_decoder pstk__image_jpeg = {
    .encoding = PSTK_ENCODING_JPEG,
    .signature = PSTK__SIGNATURE_JPEG,
    .name = "jpeg",
    .probe = pstk__jpeg_probe,
    .open = jpeg_open,
    .close = jpeg_close,
    .scratch = pstk__jpeg_scratch,
    .decode = jpeg_decode,
};
