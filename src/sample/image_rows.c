/* SPDX-License-Identifier: Apache-2.0 */
#include "sample/image_rows.h"

#include "augment/pushdown.h"
#include "base/error.h"
#include "image/channels.h"
#include "pixels/fill.h"

#include <string.h>

#define ALIGN(size) (((size) + 63) & ~(uint64_t)63) /* bytes as the arena rounds them */

/* ---- geometry -------------------------------------------------------------------------------- */

/* The part of the resized image that the crop rectangle shows. The rectangle may reach outside. If
 * one centre crop pads and the next cuts, it may even miss the image by the rounding of both. */
struct pane {
    struct pstk__box inside; /* part of the resized image; empty: the crop rectangle misses it */
    uint32_t left, top;      /* position of `inside` in the output, before mirroring */
};

static uint32_t clip(int64_t begin, uint32_t size, uint32_t limit, uint32_t *offset,
                     uint32_t *length)
{
    const int64_t lo = begin < 0 ? 0 : begin;
    const int64_t end = begin + size, hi = end > limit ? limit : end;
    *offset = hi > lo ? (uint32_t)(lo - begin) : 0;
    *length = hi > lo ? (uint32_t)(hi - lo) : 0;
    return hi > lo ? (uint32_t)lo : 0;
}

static struct pane pane_of(const struct pstk__geometry *g)
{
    struct pane pane;
    struct pstk__box *box = &pane.inside;
    box->left = clip(g->crop_left, g->crop_width, g->out_width, &pane.left, &box->width);
    box->top = clip(g->crop_top, g->crop_height, g->out_height, &pane.top, &box->height);
    return pane;
}

/* Return an upright box in the coordinates of the image as coded. */
static struct pstk__box coded_box(const struct pstk__box *b, struct pstk__turn turn,
                                  const struct pstk__image_info *info)
{
    struct pstk__box c = *b;
    if (turn.swap)
        c = (struct pstk__box){
            .left = b->top, .top = b->left, .width = b->height, .height = b->width};
    if (turn.mirror_x)
        c.left = info->width - c.left - c.width;
    if (turn.mirror_y)
        c.top = info->height - c.top - c.height;
    return c;
}

/* Report the crop of the prefix, and the flips of all ops. */
static void write_crop(struct pstk_crop *crop, const struct pstk__geometry *g,
                       const struct pstk__image_ops *image_ops)
{
    const struct pstk_op *changes = image_ops->ops + image_ops->n_prefix;
    *crop = (struct pstk_crop){.top = (int32_t)g->source.top,
                               .left = (int32_t)g->source.left,
                               .height = (int32_t)g->source.height,
                               .width = (int32_t)g->source.width,
                               .image_height = g->image_height,
                               .image_width = g->image_width,
                               .flip = g->flip,
                               .flip_vertical = g->flip_vertical};
    for (uint32_t k = 0; k < image_ops->n_changes; k += 1 + changes[k].n_children) {
        crop->flip ^= changes[k].kind == PSTK_OP_FLIP_HORIZONTAL;
        crop->flip_vertical ^= changes[k].kind == PSTK_OP_FLIP_VERTICAL;
    }
    if (g->resized)
        return;
    crop->top = (int32_t)g->crop_top;
    crop->left = (int32_t)g->crop_left;
    crop->height = (int32_t)g->crop_height;
    crop->width = (int32_t)g->crop_width;
}

/* ---- where a row goes ------------------------------------------------------------------------ */

/* Return how to finish resized rows of `width` pixels of the output. */
static struct pstk__finish finish_of(const struct pstk__output *o, uint32_t flip, uint32_t width)
{
    const struct pstk__row_layout *row = pstk__output_finished(o);
    return (struct pstk__finish){.channels = row->channels,
                                 .dtype = row->dtype,
                                 .layout = row->layout,
                                 .flip = flip,
                                 .width = width,
                                 .plane = (uint64_t)o->image.height * o->image.width,
                                 .table = o->image.table,
                                 .affine = &o->image.line};
}

/* Return the bytes from one pixel of the output to the next. */
static uint64_t pixel_step(const struct pstk__output *o)
{
    const struct pstk__row_layout *row = pstk__output_finished(o);
    return pstk_dtype_size(row->dtype) * (row->layout == PSTK_NCHW ? 1 : row->channels);
}

/* An output's row, and the part of the image that it shows. */
struct shown {
    const struct pstk__output *o;
    uint8_t *out;
    struct pstk__geometry geometry;
    struct pane pane;
};

/* Fill the output with the colour of padding, which is normalised like any pixel. The black of RGBA
 * is transparent, as Pillow pads. Ops that colour do not change the padding. */
static int pad(struct pstk__image_rows *rows, const struct shown *shown)
{
    const struct pstk__output *o = shown->o;
    const struct pstk__finish finish = finish_of(o, shown->geometry.flip, o->image.width);
    const size_t mark = rows->arena->used, size = (size_t)finish.channels * o->image.width;
    uint8_t *filled = pstk__arena_get(rows->arena, size);
    if (!filled)
        return PSTK_ENOMEM;
    pstk__fill_pixels(filled, o->image.width, shown->geometry.fill, finish.channels);
    for (uint32_t y = 0; y < o->image.height; y++)
        rows->plan->kernels.pixel->finish_row(shown->out + y * o->image.width * pixel_step(o),
                                              filled, &finish);
    pstk__arena_reset(rows->arena, mark);
    return 0;
}

/* ---- colours --------------------------------------------------------------------------------- */

uint64_t pstk__image_row_size(uint32_t max_width)
{
    return ALIGN((uint64_t)PSTK__MAX_CHANNELS * max_width);
}

/* Set up the passes [begin, end) of an output that convert or colour, for rows of this width. */
static int recolour_begin(struct pstk__recolour *recolour, struct pstk__arena *arena,
                          const struct pstk__pass *begin, const struct pstk__pass *end,
                          uint32_t width)
{
    *recolour = (struct pstk__recolour){.passes = begin, .row_size = pstk__image_row_size(width)};
    for (; begin < end; begin++) {
        if (begin->what == PSTK__PASS_CONVERT || begin->what == PSTK__PASS_COLOUR)
            recolour->n++;
        else if (recolour->n == 0)
            recolour->passes++;
    }
    if (recolour->n == 0)
        return 0;
    recolour->rows = pstk__arena_get(arena, recolour->n * recolour->row_size);
    return recolour->rows ? 0 : PSTK_ENOMEM;
}

/* Pass one row of n_pixels through all passes. Returns the row of the last pass. */
static const uint8_t *recolour(const struct pstk__recolour *c, const uint8_t *row,
                               uint32_t n_pixels)
{
    for (uint32_t k = 0; k < c->n; k++) {
        const struct pstk__pass *pass = &c->passes[k];
        uint8_t *out = c->rows + k * c->row_size;
        if (pass->what == PSTK__PASS_CONVERT)
            pstk__channels_convert(out, pass->out.channels, row, pass->in.channels, n_pixels);
        else
            pstk__op_work(pass->op).colour(pass->op, out, row, n_pixels, pass->in.channels);
        row = out;
    }
    return row;
}

/* ---- pictures -------------------------------------------------------------------------------- */

/* Return 1 if tables of the last ops become part of the output's table. */
static int folds(const struct pstk__image_rows *rows, const struct pstk__finish *finish)
{
    const struct pstk__pixel_kernels *kernels = rows->plan->kernels.pixel;
    return finish->dtype != PSTK_U8 && !(kernels->prefers_affine && finish->affine->exact);
}

/* Fold the table that the canvas has not applied into that of the output. */
static int fold(struct pstk__finish *finish, const struct pstk__canvas *canvas)
{
    void *folded = pstk__arena_get(canvas->arena, PSTK__COLOUR_TABLE_SIZE);
    if (!folded)
        return PSTK_ENOMEM;
    pstk__finish_fold(folded, finish->table, finish->dtype, finish->channels, canvas->table.to);
    finish->table = folded;
    finish->affine = NULL;
    return 0;
}

/* Finish a whole picture of the output's size. */
static int picture_write(struct pstk__image_rows *rows, const struct pstk__image_row *row,
                         const struct pstk__canvas *canvas)
{
    const struct pstk__output *o = row->output;
    const struct pstk__picture *picture = &canvas->picture;
    const struct pstk__pixel_kernels *kernels = rows->plan->kernels.pixel;
    struct pstk__finish finish = finish_of(o, 0, o->image.width);
    if (canvas->has_table && fold(&finish, canvas) < 0)
        return PSTK_ENOMEM;
    if (finish.dtype != PSTK_U8) {
        void *lookup = pstk__arena_get(rows->arena, PSTK__LOOKUP_SIZE);
        if (!lookup)
            return PSTK_ENOMEM;
        kernels->lookup_init(lookup, &finish);
        finish.lookup = lookup;
    }
    for (uint32_t y = 0; y < o->image.height; y++)
        kernels->finish_row(row->out + (uint64_t)y * o->image.width * pixel_step(o),
                            picture->pixels + (uint64_t)y * picture->width * picture->channels,
                            &finish);
    return 0;
}

/* Apply the ops that erase to pixels that `finish` describes. */
static void erase_all(const struct pstk__image_row *row, const struct pstk__finish *finish,
                      uint8_t *pixels)
{
    const struct pstk__image_ops *image_ops = row->image_ops;
    const struct pstk_op *erasures = image_ops->ops + image_ops->n_prefix + image_ops->n_changes;
    for (uint32_t k = 0; k < image_ops->n_erasures; k++)
        pstk__op_entry(erasures[k].kind)->erase(&erasures[k], finish, pixels);
}

/* Give a whole picture to the output's function. */
static int picture_give(const struct pstk__image_rows *rows, const struct pstk__image_row *row,
                        const struct pstk__picture *picture)
{
    const struct pstk__finish finish = {.channels = picture->channels,
                                        .dtype = PSTK_U8,
                                        .layout = PSTK_NHWC,
                                        .width = picture->width,
                                        .plane = (uint64_t)picture->height * picture->width};
    erase_all(row, &finish, picture->pixels);
    return rows->give(rows->user, row->output, picture);
}

/* Change the picture by its ops, and write the output's row. Does nothing if the resize writes the
 * row. */
static int picture_finish(struct pstk__image_rows *rows, struct pstk__image_row *row)
{
    if (row->output->image.canvas_room == 0)
        return 0;
    const size_t mark = rows->arena->used;
    struct pstk__canvas canvas = {.kernels = &rows->plan->kernels,
                                  .arena = rows->arena,
                                  .picture = row->picture,
                                  .room = row->room,
                                  .failure = &rows->failure,
                                  .spare = pstk__arena_get(rows->arena, row->room)};
    const struct pstk__finish finish = finish_of(row->output, 0, row->output->image.width);
    const int is_given = row->output->kind == PSTK_OUTPUT_CALLBACK;
    int rc = PSTK_ENOMEM;
    if (canvas.spare)
        rc = !is_given && folds(rows, &finish)
                 ? pstk__canvas_run_folded(&canvas, row->changes, row->n_changes)
                 : pstk__canvas_run(&canvas, row->changes, row->n_changes);
    if (rc == 0)
        rc =
            is_given ? picture_give(rows, row, &canvas.picture) : picture_write(rows, row, &canvas);
    pstk__arena_reset(rows->arena, mark);
    rows->failed = rc < 0 ? row->output : NULL;
    return rc;
}

/* Finish the output's row, whose pixels are complete. */
static int row_finish(struct pstk__image_rows *rows, struct pstk__image_row *row)
{
    const struct pstk__finish finish = finish_of(row->output, 0, row->output->image.width);
    const int rc = picture_finish(rows, row);
    if (rc == 0 && row->output->kind != PSTK_OUTPUT_CALLBACK)
        erase_all(row, &finish, row->out);
    return rc;
}

/* ---- one output ------------------------------------------------------------------------------ */

/* Get memory for the part of the image that will be turned. */
static int turn_begin(struct pstk__image_rows *rows, struct pstk__image_row *row)
{
    const struct pstk__box *box = &row->box;
    const struct pstk__turn turn = row->image_ops->turn;
    if (!turn.swap && !turn.mirror_x && !turn.mirror_y)
        return 0;
    row->is_turned = 1;
    row->coded = pstk__arena_get(rows->arena, (size_t)rows->channels * box->width * box->height);
    row->upright = pstk__arena_get(rows->arena,
                                   (size_t)rows->channels * (turn.swap ? box->height : box->width));
    return row->coded && row->upright ? 0 : PSTK_ENOMEM;
}

uint64_t pstk__image_turn_size(const struct pstk__image_bounds *bounds, uint32_t channels)
{
    const uint64_t area = (uint64_t)bounds->max_width * bounds->max_height;
    return ALIGN(channels * (area < bounds->max_pixels ? area : bounds->max_pixels)) +
           ALIGN((uint64_t)channels * bounds->max_side);
}

/* The position of the pane's first row in an output or a picture, and the direction of the next:
 * rows of a vertical flip are written from the bottom upwards. */
struct position {
    uint64_t left, top; /* pixels */
    int32_t down;       /* 1, or -1: upwards */
};

static struct position position_of(const struct shown *shown, uint32_t width, uint32_t height)
{
    const struct pane *pane = &shown->pane;
    const struct pstk__geometry *g = &shown->geometry;
    return (struct position){.left = g->flip ? width - pane->left - pane->inside.width : pane->left,
                             .top = g->flip_vertical ? height - 1 - pane->top : pane->top,
                             .down = g->flip_vertical ? -1 : 1};
}

/* Begin the resize of the pane to its position in the output. */
static int resize_to_output(struct pstk__image_rows *rows, struct pstk__image_row *row,
                            const struct shown *shown)
{
    const struct pstk__output *o = shown->o;
    const struct pstk__geometry *g = &shown->geometry;
    const struct pane *pane = &shown->pane;
    const struct position position = position_of(shown, o->image.width, o->image.height);
    const uint64_t step = pixel_step(o);
    const struct pstk__resize_config config = {
        .channels = o->passes[o->image.resize].in.channels,
        .filter = g->filter,
        .in_width = g->source.width,
        .in_height = g->source.height,
        .out_width = g->out_width,
        .out_height = g->out_height,
        .crop = pane->inside,
        .finish = finish_of(o, g->flip, pane->inside.width),
        .out = shown->out + (position.top * o->image.width + position.left) * step,
        .out_stride = position.down * (int64_t)(o->image.width * step),
    };
    return pstk__resize_begin(&row->resize, rows->arena, rows->plan->kernels.pixel, &config);
}

/* Begin the resize of the pane to its position in the picture. */
static int resize_to_picture(struct pstk__image_rows *rows, struct pstk__image_row *row,
                             const struct shown *shown)
{
    const struct pstk__picture *picture = &row->picture;
    const struct pstk__geometry *g = &shown->geometry;
    const struct pane *pane = &shown->pane;
    const struct position position = position_of(shown, picture->width, picture->height);
    const uint64_t stride = (uint64_t)picture->width * picture->channels;
    const struct pstk__resize_config config = {
        .channels = picture->channels,
        .filter = g->filter,
        .in_width = g->source.width,
        .in_height = g->source.height,
        .out_width = g->out_width,
        .out_height = g->out_height,
        .crop = pane->inside,
        .finish = {.channels = picture->channels,
                   .dtype = PSTK_U8,
                   .layout = PSTK_NHWC,
                   .flip = g->flip,
                   .width = pane->inside.width},
        .out = picture->pixels + position.top * stride + position.left * picture->channels,
        .out_stride = position.down * (int64_t)stride,
    };
    return pstk__resize_begin(&row->resize, rows->arena, rows->plan->kernels.pixel, &config);
}

/* This includes a row of padding, see pad. Turned images may have width and height swapped. */
uint64_t pstk__image_resize_size(const struct pstk__image_bounds *b, const struct pstk__output *o,
                                 uint32_t channels)
{
    const int is_turned = o->settings.image.exif_orientation != 0;
    const uint32_t w = is_turned ? b->max_side : b->max_width;
    const uint32_t h = is_turned ? b->max_side : b->max_height;
    struct pstk__resize_bounds bounds = {.channels = channels,
                                         .max_in_width = w,
                                         .max_in_height = h,
                                         .min_out_width = w,
                                         .min_out_height = h,
                                         .max_crop_width = o->image.crop.width,
                                         .max_crop_height = o->image.crop.height};
    pstk__ops_bound(o->image.ops, o->image.n_prefix, &bounds);
    return ALIGN((uint64_t)PSTK__MAX_CHANNELS * o->image.width) + pstk__resize_scratch(&bounds);
}

void pstk__image_rows_begin(struct pstk__image_rows *rows, const struct pstk__plan *plan,
                            struct pstk__arena *arena)
{
    rows->plan = plan;
    rows->arena = arena;
    rows->mark = arena->used;
    rows->n = 0;
}

/* Return 1 if the crop rectangle shows more than the image has. */
static int reaches_outside(const struct shown *shown)
{
    const struct pstk__box *inside = &shown->pane.inside;
    return inside->width != shown->geometry.crop_width ||
           inside->height != shown->geometry.crop_height;
}

/* Fill a picture with one colour. */
static void picture_fill(const struct pstk__picture *picture, const uint8_t fill[4])
{
    const size_t stride = (size_t)picture->width * picture->channels;
    for (uint32_t y = 0; y < picture->height; y++)
        pstk__fill_pixels(picture->pixels + y * stride, picture->width, fill, picture->channels);
}

/* Return the bytes of the largest picture that the ops make of the crop rectangle, at most the
 * bytes that all samples have room for. Pictures of usual images then lie close together, and their
 * pages stay in the arena. */
static uint64_t picture_room(const struct pstk__image_row *row)
{
    const struct pstk_op *changes = row->changes;
    struct pstk__view view = {.width = row->picture.width,
                              .height = row->picture.height,
                              .channels = row->picture.channels};
    uint64_t most = pstk__picture_room((uint64_t)view.width * view.height, view.channels);
    for (uint32_t k = 0; k < row->n_changes; k += 1 + changes[k].n_children) {
        view = pstk__op_view(&changes[k], &view);
        const uint64_t room = pstk__picture_room((uint64_t)view.width * view.height, view.channels);
        most = room > most ? room : most;
    }
    return most < row->output->image.canvas_room ? most : row->output->image.canvas_room;
}

/* Get memory for the picture that ops will change, and fill it where the image does not reach. */
static int picture_begin(struct pstk__image_rows *rows, struct pstk__image_row *row,
                         const struct shown *shown)
{
    const struct pstk__output *o = shown->o;
    const struct pstk__geometry *g = &shown->geometry;
    row->picture = (struct pstk__picture){.width = g->crop_width,
                                          .height = g->crop_height,
                                          .channels = o->passes[o->image.resize].in.channels};
    row->room = picture_room(row);
    row->picture.pixels = pstk__arena_get(rows->arena, row->room);
    if (!row->picture.pixels)
        return PSTK_ENOMEM;
    if (reaches_outside(shown))
        picture_fill(&row->picture, g->fill);
    return 0;
}

/* Set the ops that will change the picture, without those that the geometry takes over. */
static int changes_begin(struct pstk__image_rows *rows, struct pstk__image_row *row,
                         struct pstk__geometry *g)
{
    const struct pstk__output *o = row->output;
    const struct pstk__image_ops *image_ops = row->image_ops;
    const uint64_t n_pixels = (uint64_t)g->crop_width * g->crop_height;
    if (g->crop_width > o->image.crop.width || g->crop_height > o->image.crop.height ||
        n_pixels > o->image.crop.n_pixels)
        return PSTK_EFBIG;
    row->changes = pstk__arena_get(rows->arena, PSTK__PUSHDOWN_ROOM(image_ops->n_changes) *
                                                    sizeof *row->changes);
    if (!row->changes)
        return PSTK_ENOMEM;
    row->n_changes =
        pstk__ops_push_down(g, o->passes[o->image.resize].in.channels, row->changes,
                            image_ops->ops + image_ops->n_prefix, image_ops->n_changes);
    return 0;
}

/* Begin the resize, and find the part of the coded image that it reads. */
static int rows_begin(struct pstk__image_rows *rows, struct pstk__image_row *row,
                      const struct shown *shown, const struct pstk__image_info *info)
{
    const struct pstk__output *o = shown->o;
    const struct pstk__box *source = &shown->geometry.source;
    int rc = o->image.canvas_room > 0 ? resize_to_picture(rows, row, shown)
                                      : resize_to_output(rows, row, shown);
    if (rc < 0)
        return rc;
    const struct pstk__axis *x = &row->resize.x, *y = &row->resize.y;
    const struct pstk__box upright = {.left = source->left + x->begin,
                                      .top = source->top + y->begin,
                                      .width = x->end - x->begin,
                                      .height = y->end - y->begin};
    row->box = coded_box(&upright, row->image_ops->turn, info);
    rc = recolour_begin(&row->before, rows->arena, o->passes, &o->passes[o->image.resize],
                        upright.width);
    return rc < 0 ? rc : turn_begin(rows, row);
}

/* Return 1 if the geometry shows all pixels of the image at their places. */
static int keeps_all(const struct pstk__geometry *g)
{
    const uint32_t w = g->image_width, h = g->image_height;
    return g->source.width == w && g->source.height == h && g->out_width == w &&
           g->out_height == h && g->crop_left == 0 && g->crop_top == 0 && g->crop_width == w &&
           g->crop_height == h && !g->flip_vertical;
}

/* Return 1 if the row shows an image that is stored as pixels, all of it and unchanged, and write
 * the row's crop and flip. */
static int is_copy(const struct pstk__output *o, const struct pstk__row *row,
                   const struct pstk__image_source *source)
{
    const struct pstk__image_ops *image_ops = source->image_ops;
    const struct pstk__image_info *info = source->info;
    const struct pstk__turn turn = image_ops->turn;
    struct pstk__geometry g;
    if (!o->is_lone_image || info->encoding != PSTK_ENCODING_PIXELS || info->bit_depth != 8 ||
        info->channels != pstk__output_finished(o)->channels || turn.swap || turn.mirror_x ||
        turn.mirror_y || image_ops->n_changes + image_ops->n_erasures > 0)
        return 0;
    pstk__geometry_init(&g, image_ops->width, image_ops->height);
    pstk__geometry_fold(&g, image_ops->ops, image_ops->n_prefix);
    if (!keeps_all(&g) || (g.flip && !pstk__output_has_flips(o)))
        return 0;
    if (row->crop)
        write_crop(row->crop, &g, image_ops);
    if (pstk__output_has_flips(o))
        *row->flip = (uint8_t)g.flip;
    return 1;
}

int pstk__image_row_copy(const struct pstk__output *o, struct pstk__row *row,
                         const struct pstk__image_source *source, const uint8_t **data,
                         uint64_t size)
{
    const int is_there = *data == row->data;
    row->is_stored = size == pstk__output_written_size(o) && is_copy(o, row, source);
    if (row->is_stored && !is_there)
        memcpy(row->data, *data, size);
    if (!row->is_stored && is_there)
        *data = memcpy(row->aside, *data, size);
    return (int)row->is_stored;
}

int pstk__image_rows_add(struct pstk__image_rows *rows, const struct pstk__output *o,
                         struct pstk__row *row, const struct pstk__image_source *source)
{
    const struct pstk__image_ops *image_ops = source->image_ops;
    struct pstk__image_row *j = &rows->rows[rows->n];
    *j = (struct pstk__image_row){
        .output = o, .row = row, .source = *source, .out = row->data, .image_ops = image_ops};
    struct shown shown = {.o = o, .out = row->data};
    pstk__geometry_init(&shown.geometry, image_ops->width, image_ops->height);
    pstk__geometry_fold(&shown.geometry, image_ops->ops, image_ops->n_prefix);
    if (o->kind == PSTK_OUTPUT_MASK)
        memset(shown.geometry.fill, source->fill, sizeof shown.geometry.fill);
    if (row->crop)
        write_crop(row->crop, &shown.geometry, image_ops);
    if (pstk__output_has_flips(
            o)) { /* the device mirrors the row, unless a picture is mirrored here */
        *row->flip = o->image.canvas_room == 0 && shown.geometry.flip;
        shown.geometry.flip = o->image.canvas_room == 0 ? 0 : shown.geometry.flip;
    }
    int rc = o->image.canvas_room > 0 ? changes_begin(rows, j, &shown.geometry) : 0;
    if (rc < 0)
        return rc;
    shown.pane = pane_of(&shown.geometry);
    rc = o->image.canvas_room > 0  ? picture_begin(rows, j, &shown)
         : reaches_outside(&shown) ? pad(rows, &shown)
                                   : 0;
    if (rc < 0)
        return rc;
    if (shown.pane.inside.width == 0 || shown.pane.inside.height == 0)
        return row_finish(rows, j);
    rows->n++;
    rows->channels = pstk__output_decoded(o)->channels;
    return rows_begin(rows, j, &shown, source->info);
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Push the next n upright rows into the resize. */
static void resize_rows(struct pstk__image_row *row, const uint8_t *pixels, uint64_t stride,
                        uint32_t n)
{
    const uint32_t width = row->resize.x.end - row->resize.x.begin;
    if (row->before.n == 0)
        pstk__resize_rows(&row->resize, pixels, stride, n);
    for (uint32_t k = 0; k < n && row->before.n > 0; k++, pixels += stride)
        pstk__resize_rows(&row->resize, recolour(&row->before, pixels, width), 0, 1);
}

/* Take the next n rows of an output's box. */
static void take(struct pstk__image_row *row, const uint8_t *pixels, uint64_t stride, uint32_t n,
                 uint32_t channels)
{
    if (!row->is_turned) {
        resize_rows(row, pixels, stride, n);
        return;
    }
    const size_t size = (size_t)channels * row->box.width;
    for (uint32_t k = 0; k < n; k++, pixels += stride)
        memcpy(row->coded + row->n_rows++ * size, pixels, size);
}

void pstk__image_rows_take(void *user, const uint8_t *pixels, uint64_t stride, uint32_t n_rows)
{
    struct pstk__image_rows *rows = user;
    const uint32_t begin = rows->box.top + rows->n_taken, end = begin + n_rows;
    for (uint32_t k = 0; k < rows->n; k++) {
        struct pstk__image_row *row = &rows->rows[k];
        const struct pstk__box *box = &row->box;
        const uint32_t lo = box->top > begin ? box->top : begin;
        const uint32_t hi = box->top + box->height < end ? box->top + box->height : end;
        if (lo < hi)
            take(row,
                 pixels + (lo - begin) * stride +
                     (size_t)rows->channels * (box->left - rows->box.left),
                 stride, hi - lo, rows->channels);
    }
    rows->n_taken += n_rows;
}

/* Turn upright row y of the collected box. In the box, as in the image, an upright (x, y) is
 * swapped, then mirrored. Inlined with constants, so that a pixel is copied at once. */
static inline void turn_row(struct pstk__image_row *row, uint32_t y, uint32_t width,
                            uint32_t channels)
{
    const struct pstk__turn turn = row->image_ops->turn;
    const uint32_t w = row->box.width, h = row->box.height;
    uint8_t *out = row->upright;
    for (uint32_t x = 0; x < width; x++, out += channels) {
        uint32_t cx = turn.swap ? y : x, cy = turn.swap ? x : y;
        cx = turn.mirror_x ? w - 1 - cx : cx;
        cy = turn.mirror_y ? h - 1 - cy : cy;
        memcpy(out, row->coded + ((size_t)cy * w + cx) * channels, channels);
    }
}

/* Push the upright rows of the collected box. */
static void turn_rows(struct pstk__image_row *row, uint32_t channels)
{
    const uint32_t width = row->image_ops->turn.swap ? row->box.height : row->box.width;
    const uint32_t height = row->image_ops->turn.swap ? row->box.width : row->box.height;
    for (uint32_t y = 0; y < height; y++) {
        if (channels == 1)
            turn_row(row, y, width, 1);
        else if (channels == 3)
            turn_row(row, y, width, 3);
        else
            turn_row(row, y, width, 4);
        resize_rows(row, row->upright, 0, 1);
    }
}

int pstk__image_rows_end(struct pstk__image_rows *rows)
{
    int rc = 0;
    for (uint32_t k = 0; k < rows->n && rc == 0; k++) {
        if (rows->rows[k].is_turned)
            turn_rows(&rows->rows[k], rows->channels);
        rc = row_finish(rows, &rows->rows[k]);
    }
    return rc;
}

void pstk__image_rows_whole(struct pstk__image_rows *rows, const struct pstk__image_info *info)
{
    rows->box = (struct pstk__box){.width = info->width, .height = info->height};
    rows->n_taken = 0;
}

/* Find the box to decode: the smallest that contains all parts. */
static void find_box(struct pstk__image_rows *rows)
{
    struct pstk__box u = rows->rows[0].box;
    for (uint32_t k = 1; k < rows->n; k++) {
        const struct pstk__box *b = &rows->rows[k].box;
        const uint32_t left = b->left < u.left ? b->left : u.left;
        const uint32_t top = b->top < u.top ? b->top : u.top;
        const uint32_t right =
            b->left + b->width > u.left + u.width ? b->left + b->width : u.left + u.width;
        const uint32_t end =
            b->top + b->height > u.top + u.height ? b->top + b->height : u.top + u.height;
        u = (struct pstk__box){left, top, right - left, end - top};
    }
    rows->box = u;
    rows->n_taken = 0;
}

/* Begin again the rows that wait for the decoder; the drawn ops stay the same. */
static int begin_again(struct pstk__image_rows *rows)
{
    const uint32_t n = rows->n;
    int rc = 0;
    pstk__arena_reset(rows->arena, rows->mark);
    rows->n = 0;
    for (uint32_t k = 0; k < n && rc == 0; k++) {
        const struct pstk__image_row row = rows->rows[k];
        rc = pstk__image_rows_add(rows, row.output, row.row, &row.source);
    }
    return rc;
}

static int decode_box(struct pstk__image_rows *rows, struct pstk__image_state *state,
                      const struct pstk__coded *image, struct pstk_error *err)
{
    const struct pstk__row_sink sink = {
        .rows = pstk__image_rows_take, .user = rows, .channels = rows->channels};
    find_box(rows);
    const int rc = pstk__image_decode(state, image, &rows->box, &sink, err);
    if (rc < 0 || rows->n_taken == rows->box.height)
        return rc;
    return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_DECODE, "the %s decoder returned %u of %u rows",
                      image->decoder->name, rows->n_taken, rows->box.height);
}

int pstk__image_rows_decode(struct pstk__image_rows *rows, struct pstk__image_state *state,
                            const struct pstk__coded *image, uint32_t accepts_damaged,
                            struct pstk_error *err)
{
    const int rc = decode_box(rows, state, image, err);
    if (rc != PSTK_EBADMSG || !accepts_damaged)
        return rc;
    struct pstk__coded again = *image;
    again.decoder = pstk__image_damaged_decoder(image->info->encoding);
    if (!again.decoder)
        return rc;
    return begin_again(rows) == 0 && decode_box(rows, state, &again, NULL) == 0 ? 1 : rc;
}
