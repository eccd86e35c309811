/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg/damaged: decodes JPEGs as Pillow loads them when libjpeg guesses: it continues after every
 * warning, and fails when Pillow raises an exception.
 *
 * libjpeg's result for damaged data depends on the number of bytes that it has seen: its faster
 * path through a block runs only far from the end of the bytes. Errors after the last row count
 * only if they lie in bytes that were read already. So this decoder passes the file on as Pillow
 * does (libImaging/JpegDecode.c, ImageFile.load): in pieces of 64 KiB, by a source that suspends.
 * It decodes whole rows, because a crop can change a guess.
 */
#include "image/jpeg/damaged.h"

#include "base/error.h"
#include "image/jpeg/decode.h"
#include "image/jpeg/header.h"
#include "image/jpeg/library.h"
#include "image/jpeg/output.h"
#include "image/jpeg/smooth.h"

#include <stdlib.h>

#define PIECE_SIZE 65536u /* bytes; Pillow's ImageFile.MAXBLOCK */

/* The libjpeg object of one thread, reused for each image. */
struct state {
    struct jpeg_decompress_struct cinfo;
    struct pstk__jpeg_guard guard;
    struct pstk__arena *arena; /* borrowed */
};

/* The arguments of a decode, and the bytes that libjpeg has not been given. */
struct job {
    struct state *state;
    const struct pstk__image_info *info;
    const struct pstk__box *box;
    const struct pstk__row_sink *sink;
    uint64_t n_left;
};

/* ---- opening -------------------------------------------------------------------------------- */

static void damaged_close(void *state)
{
    struct state *s = state;
    if (!s)
        return;
    pstk__jpeg_close_decompress(&s->guard, &s->cinfo);
    free(s);
}

static int damaged_open(void **out, struct pstk__arena *arena, uint32_t isa, struct pstk_error *err)
{
    (void)isa; /* libjpeg chooses its kernels itself */
    *out = NULL;
    struct state *state = calloc(1, sizeof *state);
    if (!state)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN,
                          "no memory for a decoder of damaged JPEGs");
    state->arena = arena;
    pstk__jpeg_guard_init(&state->guard, arena);
    pstk__jpeg_guard_guess(&state->guard);
    if (pstk__jpeg_open_decompress(&state->guard, &state->cinfo) != 0) {
        int r = pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "libjpeg cannot start: %s",
                           state->guard.text);
        if (err)
            err->native = state->guard.code;
        damaged_close(state);
        return r;
    }
    *out = state;
    return 0;
}

/* ---- decoding; everything here runs under the guard ----------------------------------------- */

/* Give libjpeg, which suspended, the next piece that it does not skip whole. Returns 0, or EBADMSG
 * at the end of the file, with the guard's text written. */
static int next_piece(struct job *job)
{
    struct pstk__jpeg_guard *guard = &job->state->guard;
    struct jpeg_source_mgr *source = &guard->source;
    do {
        if (job->n_left == 0) {
            snprintf(guard->text, sizeof guard->text, "the file ends before its last row");
            return PSTK_EBADMSG;
        }
        const uint64_t n = job->n_left < PIECE_SIZE ? job->n_left : PIECE_SIZE;
        job->n_left -= n;
        source->bytes_in_buffer += n;
        source->skip_input_data(&job->state->cinfo, guard->n_skip);
    } while (guard->n_skip > 0);
    return 0;
}

/* Read the header, past datastreams that hold only tables. */
static int read_header(struct job *job)
{
    int r = 0, found;
    while (r == 0 && (found = jpeg_read_header(&job->state->cinfo, FALSE)) != JPEG_HEADER_OK)
        r = found == JPEG_SUSPENDED ? next_piece(job) : 0;
    return r;
}

static int read_row(struct job *job, JSAMPROW *row)
{
    int r = 0;
    while (r == 0 && jpeg_read_scanlines(&job->state->cinfo, row, 1) == 0)
        r = next_piece(job);
    return r;
}

/* Decode rows up to the box's last one, and pass on the box's rows. */
static int decode_rows(struct job *job)
{
    j_decompress_ptr cinfo = &job->state->cinfo;
    const struct pstk__box *box = job->box;
    const uint32_t n_colors = (uint32_t)cinfo->out_color_components;
    JSAMPROW row = cinfo->mem->alloc_large((j_common_ptr)cinfo, JPOOL_IMAGE,
                                           (size_t)cinfo->output_width * n_colors);
    uint8_t *first = row + (size_t)box->left * n_colors;
    int r = 0;
    while (r == 0 && cinfo->output_scanline < box->top)
        r = read_row(job, &row);
    for (uint32_t y = 0; r == 0 && y < box->height; y++) {
        r = read_row(job, &row);
        if (r < 0)
            break;
        pstk__jpeg_convert_row(cinfo, first, box->width, job->sink->channels);
        job->sink->rows(job->sink->user, first, 0, 1);
    }
    return r;
}

/* Decode an image. Returns 0, or a result with the guard's text written; libjpeg's own errors leave
 * by longjmp. */
static int decode_image(void *user)
{
    struct job *job = user;
    struct pstk__jpeg_guard *guard = &job->state->guard;
    j_decompress_ptr cinfo = &job->state->cinfo;
    int r = read_header(job);
    if (r < 0)
        return r;
    if (cinfo->image_width != job->info->width || cinfo->image_height != job->info->height) {
        snprintf(guard->text, sizeof guard->text,
                 "image is %u x %u pixels, its record says %u x %u", cinfo->image_width,
                 cinfo->image_height, job->info->width, job->info->height);
        return PSTK_EBADMSG;
    }
    pstk__jpeg_choose_output(cinfo, job->sink->channels);
    while (r == 0 && !jpeg_start_decompress(cinfo))
        r = next_piece(job);
    if (r == 0) {
        pstk__jpeg_smooth(guard, cinfo, pstk__jpeg_last_fed_row(guard, cinfo));
        r = decode_rows(job);
    }
    if (r == 0 && cinfo->output_scanline == cinfo->output_height)
        (void)jpeg_finish_decompress(cinfo); /* FALSE: the marker at the end may be missing */
    return r;
}

/* ---- the table ------------------------------------------------------------------------------ */

static int damaged_decode(void *state, const struct pstk__coded *image, const struct pstk__box *box,
                          const struct pstk__row_sink *sink, struct pstk_error *err)
{
    struct state *s = state;
    struct job job = {
        .state = s, .info = image->info, .box = box, .sink = sink, .n_left = image->size};
    struct pstk__jpeg_header h;

    int r = pstk__image_check_box(image, box, sink, err);
    if (r == 0)
        r = pstk__jpeg_header_read(&h, image->data, image->size, err);
    if (r < 0)
        return r;
    size_t mark = s->arena->used;
    pstk__jpeg_begin(&s->guard, &s->cinfo, image->data, 0);
    r = pstk__jpeg_guarded(&s->guard, decode_image, &job);
    if (r != 0)
        r = pstk__jpeg_report(&s->guard, r, image->size - job.n_left, err);
    jpeg_abort_decompress(&s->cinfo); /* resets libjpeg from any state */
    pstk__arena_reset(s->arena, mark);
    return r;
}

const struct pstk__image_decoder pstk__image_damaged = {
    .encoding = PSTK_ENCODING_JPEG,
    .name = "damaged",
    .probe = pstk__jpeg_probe,
    .open = damaged_open,
    .close = damaged_close,
    .scratch = pstk__jpeg_scratch,
    .decode = damaged_decode,
};
