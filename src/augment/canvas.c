/* SPDX-License-Identifier: Apache-2.0 */
#include "augment/canvas.h"

#include "augment/pushdown.h"

int pstk__canvas_kernels_init(struct pstk__canvas_kernels *kernels, uint32_t isa)
{
    kernels->pixel = pstk__pixel_kernels(isa);
    kernels->colour = pstk__colour_kernels(isa);
    kernels->warp = pstk__warp_kernels(isa);
    kernels->blur = pstk__blur_kernels(isa);
    kernels->jpeg.forward = pstk__forward_kernels(isa);
    kernels->jpeg.inverse = pstk__jpeg_kernels(isa);
    kernels->tensor = pstk__tensor_kernels(isa);
    return kernels->pixel && kernels->colour && kernels->warp && kernels->blur &&
           kernels->jpeg.forward && kernels->jpeg.inverse && kernels->tensor;
}

/* Check that the op can change the picture, and that the result fits the memory. */
static int check_fits(const struct pstk__canvas *canvas, const struct pstk_op *op)
{
    const struct pstk__picture *picture = &canvas->picture;
    const struct pstk__view before = {
        .width = picture->width, .height = picture->height, .channels = picture->channels};
    const struct pstk__op_entry *entry = pstk__op_entry(op->kind);
    const int rc = entry->fits ? entry->fits(op, &before) : 0;
    if (rc < 0)
        return rc;
    const struct pstk__view after = pstk__op_view(op, &before);
    const uint64_t n_pixels = (uint64_t)after.width * after.height;
    return pstk__picture_room(n_pixels, after.channels) <= canvas->room ? 0 : PSTK_EFBIG;
}

/* Apply the waiting table. */
static void apply_table(struct pstk__canvas *canvas)
{
    if (canvas->has_table)
        pstk__colour_apply(canvas->kernels->colour, &canvas->picture, &canvas->table);
    canvas->has_table = 0;
}

static void add_table(struct pstk__canvas *canvas, const struct pstk_op *op)
{
    struct pstk__colour_table next;
    struct pstk__colour_table *table = canvas->has_table ? &next : &canvas->table;
    pstk__op_work(op).table(op, table);
    if (canvas->has_table)
        pstk__colour_table_then(&canvas->table, &next);
    canvas->has_table = 1;
}

static int run_one(struct pstk__canvas *canvas, const struct pstk_op *op)
{
    const struct pstk__op_tensor work = pstk__op_work(op);
    const size_t mark = canvas->arena->used;
    int rc = check_fits(canvas, op);
    if (rc < 0)
        return rc;
    if (work.table) {
        add_table(canvas, op);
        return 0;
    }
    const struct pstk__view view = {.width = canvas->picture.width,
                                    .height = canvas->picture.height};
    if (!pstk__op_keeps_pixels(op, &view)) /* otherwise fewer pixels may be left for the table */
        apply_table(canvas);
    rc = work.change(op, canvas);
    pstk__arena_reset(canvas->arena, mark);
    return rc;
}

int pstk__canvas_run_folded(struct pstk__canvas *canvas, const struct pstk_op *ops, uint32_t n)
{
    for (uint32_t i = 0; i < n; i += 1 + ops[i].n_children) {
        const int rc = run_one(canvas, &ops[i]);
        if (rc < 0)
            return rc;
    }
    return 0;
}

int pstk__canvas_run(struct pstk__canvas *canvas, const struct pstk_op *ops, uint32_t n)
{
    const int rc = pstk__canvas_run_folded(canvas, ops, n);
    if (rc == 0)
        apply_table(canvas);
    return rc;
}

struct pstk__picture pstk__canvas_spare(const struct pstk__canvas *canvas, uint32_t width,
                                        uint32_t height, uint32_t channels)
{
    return (struct pstk__picture){
        .pixels = canvas->spare, .width = width, .height = height, .channels = channels};
}

void pstk__canvas_swap(struct pstk__canvas *canvas, const struct pstk__picture *filled)
{
    canvas->spare = canvas->picture.pixels;
    canvas->picture = *filled;
}

int pstk__canvas_resize(struct pstk__canvas *canvas, const struct pstk__box *part, uint32_t filter,
                        uint32_t width, uint32_t height)
{
    const struct pstk__picture *in = &canvas->picture;
    const struct pstk__box box = part ? *part : (struct pstk__box){0, 0, in->width, in->height};
    const struct pstk__picture out = pstk__canvas_spare(canvas, width, height, in->channels);
    const struct pstk__resize_config config = {
        .channels = in->channels,
        .filter = filter,
        .in_width = box.width,
        .in_height = box.height,
        .out_width = width,
        .out_height = height,
        .crop = {0, 0, width, height},
        .finish = {.channels = in->channels, .dtype = PSTK_U8, .layout = PSTK_NHWC, .width = width},
        .out = out.pixels,
        .out_stride = (uint64_t)width * in->channels,
    };
    struct pstk__resize resize;
    const int rc = pstk__resize_begin(&resize, canvas->arena, canvas->kernels->pixel, &config);
    if (rc < 0)
        return rc;
    const uint64_t stride = (uint64_t)in->width * in->channels;
    pstk__resize_rows(&resize,
                      in->pixels + (box.top + resize.y.begin) * stride +
                          (size_t)(box.left + resize.x.begin) * in->channels,
                      stride, resize.y.end - resize.y.begin);
    pstk__canvas_swap(canvas, &out);
    return 0;
}

static uint64_t max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

struct pstk__canvas_bounds pstk__canvas_bounds_of(const struct pstk_op *ops, uint32_t begin,
                                                  uint32_t end, struct pstk__largest largest,
                                                  struct pstk__view view)
{
    struct pstk__canvas_bounds bounds = {.room =
                                             pstk__picture_room(largest.n_pixels, view.channels)};
    for (uint32_t i = begin; i < end; i++) {
        const struct pstk__op_entry *entry = pstk__op_entry(ops[i].kind);
        const struct pstk__op_tensor work = pstk__op_work(&ops[i]);
        if (work.scratch)
            bounds.scratch =
                max_u64(bounds.scratch, work.scratch(&ops[i], &largest, view.channels));
        if (entry->between) {
            struct pstk__largest between = largest;
            entry->between(&ops[i], &between);
            bounds.room = max_u64(bounds.room, pstk__picture_room(between.n_pixels, view.channels));
        }
        view = pstk__op_view(&ops[i], &view);
        largest = pstk__op_largest(&ops[i], &view, largest);
        bounds.room = max_u64(bounds.room, pstk__picture_room(largest.n_pixels, view.channels));
    }
    return bounds;
}
