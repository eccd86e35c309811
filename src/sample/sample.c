/* SPDX-License-Identifier: Apache-2.0 */
/* sample: a worker's hop. Field by field: check, decompress, then every output that reads it. */
#include "sample/sample.h"

#include "base/cast.h"
#include "base/crc32c.h"
#include "base/error.h"
#include "record/field.h"

#include <penstock/format.h>
#include <stdlib.h>
#include <string.h>

#define KEEP_RESIDENT (16u << 20) /* bytes of a worker's arena that stay after a huge image */
#define CHANNELS 3u
#define CALLBACK_DRAWS                                                                             \
    UINT32_MAX /* the `op` of a callback's draws: no operation has this index                      \
                */

/* ---- orientation ------------------------------------------------------------------------------
 */

/* How an upright pixel (x, y) is found in the image as coded: swapped, then mirrored. EXIF 2.3, tag
 * 0x0112. */
struct turn {
    uint8_t swap, mirror_x, mirror_y;
};

static const struct turn turns[9] = {
    [1] = {0, 0, 0}, [2] = {0, 1, 0}, [3] = {0, 1, 1}, [4] = {0, 0, 1},
    [5] = {1, 0, 0}, [6] = {1, 0, 1}, [7] = {1, 1, 1}, [8] = {1, 1, 0},
};

/* ---- state ------------------------------------------------------------------------------------
 */

/* One image output of the sample under way. */
struct job {
    struct pstk__geometry geometry;
    struct pstk__resize resize;
    struct pstk__box box; /* of the image as coded: what the resize reads */
    uint32_t turned;      /* 1: rows are collected in `coded`, and turned when all are there */
    struct turn turn;
    uint8_t *coded;  /* box.width x box.height pixels, arena */
    uint8_t *row;    /* one upright row, arena */
    uint32_t n_rows; /* rows of `coded` */
};

struct pstk__sampler {
    const struct pstk__plan *plan;   /* borrowed */
    struct pstk__arena arena;        /* owned */
    struct pstk__image_state *state; /* owned */
    struct pstk__decoder *decoder;   /* in the arena */
    size_t mark;                     /* of the arena, once opened */
    uint32_t n_jobs;                 /* image outputs of the field under way */
    uint32_t box_top;                /* of the box being decoded */
    uint32_t box_left;
    uint32_t n_rows; /* of the box, taken so far */
    struct job jobs[PSTK__MAX_OUTPUTS];
};

/* What write functions of all kinds share. */
struct work {
    struct pstk__sampler *s;
    const struct pstk__record *record;
    const struct pstk__field_view *view;
    const struct pstk__sample_key *key;
    struct pstk__row *rows;
    uint32_t field;
    const uint8_t *data; /* plain bytes, checked */
    uint64_t size;
};

int pstk__sampler_open(struct pstk__sampler **out, const struct pstk__plan *plan,
                       struct pstk_error *err)
{
    *out = NULL;
    struct pstk__sampler *s = calloc(1, sizeof *s);
    if (s == NULL)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for a worker");
    s->plan = plan;
    int rc = 0;
    void *memory = NULL;
    if (pstk__arena_open(&s->arena, plan->scratch_size) == 0)
        memory = pstk__arena_get(&s->arena, pstk__decoder_size());
    if (memory != NULL)
        s->decoder = pstk__decoder_init(memory, pstk__decoder_size());
    if (s->decoder == NULL)
        rc = pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN,
                        "no memory for %llu bytes of a worker's scratch; lower n_threads",
                        (unsigned long long)plan->scratch_size);
    else
        rc = pstk__image_state_open(&s->state, &s->arena, plan->kernels->variant, err);
    if (rc < 0) {
        pstk__sampler_close(s);
        return rc;
    }
    s->mark = s->arena.used;
    *out = s;
    return 0;
}

void pstk__sampler_close(struct pstk__sampler *s)
{
    if (s == NULL)
        return;
    pstk__image_state_close(s->state);
    pstk__arena_close(&s->arena);
    free(s);
}

/* The plan derived scratch_size from the record limits, so this is an error of ours or of a record
 * that went past them unseen: it is reported, not asserted. */
static int no_scratch(const struct work *w, struct pstk_error *err)
{
    return pstk__record_fail(w->record, w->field, PSTK_ENOMEM, PSTK_STAGE_DECODE, err,
                             "does not fit a worker's scratch of %llu bytes",
                             (unsigned long long)w->s->plan->scratch_size);
}

/* ---- the field's bytes
 * -------------------------------------------------------------------------*/

/* Before memory is touched for an image: does max_pixels allow it? The record's head says its size.
 */
static int check_pixels(const struct work *w, struct pstk_error *err)
{
    const struct pstk__field_view *v = w->view;
    const uint64_t max_pixels = w->s->plan->max_pixels;
    if ((uint64_t)v->width * v->height <= max_pixels)
        return 0;
    return pstk__record_fail(w->record, w->field, PSTK_EFBIG, PSTK_STAGE_DECODE, err,
                             "image of %u x %u pixels is over the limit of %llu pixels; raise "
                             "max_pixels if it is no mistake",
                             v->width, v->height, (unsigned long long)max_pixels);
}

/* Decompress w->view into the arena and check the result. */
static int field_decode(struct work *w, uint32_t shard, struct pstk_error *err)
{
    const struct pstk__field_view *v = w->view;
    const struct pstk__source *source = w->s->plan->source;
    struct pstk_error inner;
    pstk_error_init(&inner, sizeof inner);
    int rc = check_pixels(w, err);
    if (rc < 0)
        return rc;
    uint8_t *plain = pstk__arena_get(&w->s->arena, v->plain_size);
    if (plain == NULL)
        return no_scratch(w, err);
    const struct pstk__dictionary *dictionary = NULL;
    if (source->format->dictionary != NULL)
        dictionary = source->format->dictionary(source, shard, w->field);
    rc = pstk__field_decode(w->s->decoder, v, dictionary, &w->s->arena, plain, &inner);
    if (rc < 0)
        return pstk__record_fail(w->record, w->field, rc, PSTK_STAGE_RECORD, err, "%.400s",
                                 inner.message);
    const uint32_t crc = pstk__crc32c(0, plain, v->plain_size);
    if (crc != v->plain_crc)
        return pstk__record_fail(w->record, w->field, PSTK_EBADMSG, PSTK_STAGE_RECORD, err,
                                 "decompresses to bytes whose checksum is %08x; the record head "
                                 "says %08x",
                                 crc, v->plain_crc);
    w->data = plain;
    w->size = v->plain_size;
    return 0;
}

/* Check the field; decode it where an output needs its plain bytes. */
static int field_check(struct work *w, uint32_t shard, int needs_plain, struct pstk_error *err)
{
    const int rc = pstk__record_check_field(w->record, w->field, err);
    if (rc < 0)
        return rc;
    if (!w->view->in_head && w->view->codec != PSTK_CODEC_NONE)
        return needs_plain ? field_decode(w, shard, err) : 0;
    w->data = w->view->data;
    w->size = w->view->plain_size;
    return 0;
}

/* ---- rows that pass through --------------------------------------------------------------------
 */

static int size_wrong(const struct work *w, uint64_t wanted, struct pstk_error *err)
{
    return pstk__record_fail(w->record, w->field, PSTK_EBADMSG, PSTK_STAGE_RECORD, err,
                             "has %llu bytes where the schema says %llu",
                             (unsigned long long)w->size, (unsigned long long)wanted);
}

/* Of the elements of a scalar or ndarray field. */
static uint32_t dtype_of(const struct work *w)
{
    return w->record->schema->fields[w->field].dtype;
}

/* Whether a field's `size` bytes fit the row: all of it, or, ragged, whole items of at most that.
 * For rows that are not cast. */
static int size_fits(const struct pstk__output *o, uint64_t size)
{
    return pstk__output_is_ragged(o) ? size <= o->row_size && size % o->item_size == 0
                                     : size == o->row_size;
}

static int write_copy(struct work *w, uint32_t i, struct pstk_error *err)
{
    const struct pstk__output *o = &w->s->plan->outputs[i];
    if (!size_fits(o, w->size))
        return size_wrong(w, o->row_size, err);
    if (w->size > 0)
        memcpy(w->rows[i].data, w->data, w->size);
    w->rows[i].size = w->size;
    return 0;
}

/* A field stored plain that one output copies is checked while it is copied: one pass over memory
 * instead of two, which is most of the work of a small record. 1: done; 0: this is another case. */
static int write_lone_copy(struct work *w, uint32_t i, struct pstk_error *err)
{
    const struct pstk__output *o = &w->s->plan->outputs[i];
    const struct pstk__field_view *v = w->view;
    if (!pstk__output_is_ragged(o) &&
        (o->settings.kind != PSTK_OUTPUT_TENSOR || o->row_dtype != dtype_of(w)))
        return 0;
    if (o->next != w->s->plan->n_outputs || v->in_head || v->data == NULL ||
        v->codec != PSTK_CODEC_NONE || !size_fits(o, v->plain_size))
        return 0;
    if (pstk__crc32c_copy(0, w->rows[i].data, v->data, v->plain_size) != v->stored_crc) {
        const int rc = pstk__record_check_field(w->record, w->field, err);
        if (rc < 0)
            return rc;
        return pstk__record_fail(w->record, w->field, PSTK_EBADMSG, PSTK_STAGE_RECORD, err,
                                 "changed while it was copied; suspect the machine's memory");
    }
    w->rows[i].size = v->plain_size;
    return 1;
}

/* Scalars and tensors. */
static int write_cast(struct work *w, uint32_t i, struct pstk_error *err)
{
    const struct pstk__output *o = &w->s->plan->outputs[i];
    const uint32_t from = dtype_of(w);
    const uint64_t n = o->row_size / pstk_dtype_size(o->row_dtype);
    if (w->size != n * pstk_dtype_size(from))
        return size_wrong(w, n * pstk_dtype_size(from), err);
    pstk__cast_row(w->rows[i].data, o->row_dtype, w->data, from, n);
    return 0;
}

/* ---- callbacks ---------------------------------------------------------------------------------
 */

static struct pstk__random_key key_of(const struct work *w, const struct pstk__output *o)
{
    return (struct pstk__random_key){.seed = w->s->plan->seed,
                                     .epoch = w->key->epoch,
                                     .sample_id = w->key->sample_id,
                                     .group = o->settings.random_group};
}

static int is_listed(int code)
{
    switch (code) {
#define X(name, value, text) case name:
        PSTK_ERRORS(X)
#undef X
        return 1;
    default:
        return 0;
    }
}

static int write_callback(struct work *w, uint32_t i, struct pstk_error *err)
{
    const struct pstk__output *o = &w->s->plan->outputs[i];
    struct pstk__random random;
    struct pstk__random_key key = key_of(w, o);
    key.op = CALLBACK_DRAWS;
    const int as_stored = o->settings.stored && !w->view->in_head;
    pstk__random_init(&random, &key);
    struct pstk_sample sample = {
        .size = sizeof sample,
        .encoding = w->view->encoding,
        .sample_id = w->key->sample_id,
        .epoch = w->key->epoch,
        .position = w->key->position,
        .data = as_stored ? w->view->data : w->data,
        .data_size = as_stored ? w->view->stored_size : w->size,
        .codec = as_stored ? w->view->codec : PSTK_CODEC_NONE,
        .scratch_size = o->settings.scratch_size,
    };
    sample.random[0] = pstk__random_u64(&random);
    sample.random[1] = pstk__random_u64(&random);
    if (sample.scratch_size > 0) {
        sample.scratch = pstk__arena_get(&w->s->arena, sample.scratch_size);
        if (sample.scratch == NULL)
            return no_scratch(w, err);
    }
    const int rc = o->settings.decode(o->settings.user, &sample, w->rows[i].data, o->row_size);
    if (rc == 0)
        return 0;
    const int code = is_listed(rc) ? rc : PSTK_EINVAL;
    pstk__record_fail(w->record, w->field, code, PSTK_STAGE_DECODE, err,
                      "the decode function of output '%s' returned %d for sample %llu", o->name, rc,
                      (unsigned long long)w->key->sample_id);
    if (err != NULL)
        err->native = rc;
    return code;
}

/* ---- images: geometry ---------------------------------------------------------------------------
 */

/* The part of the resized image that the window shows. A window may reach outside, and, where one
 * centre crop pads and the next cuts, even miss it by the rounding of both. */
struct pane {
    struct pstk__box inside; /* of the resized image; empty: the window misses it */
    uint32_t left, top;      /* of the output: where `inside` begins, before mirroring */
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
    struct pane p;
    struct pstk__box *b = &p.inside;
    b->left = clip(g->window_left, g->window_width, g->out_width, &p.left, &b->width);
    b->top = clip(g->window_top, g->window_height, g->out_height, &p.top, &b->height);
    return p;
}

/* An upright box in the coordinates of the image as coded. */
static struct pstk__box coded_box(const struct pstk__box *b, struct turn t,
                                  const struct pstk__image_info *info)
{
    struct pstk__box c = *b;
    if (t.swap)
        c = (struct pstk__box){
            .left = b->top, .top = b->left, .width = b->height, .height = b->width};
    if (t.mirror_x)
        c.left = info->width - c.left - c.width;
    if (t.mirror_y)
        c.top = info->height - c.top - c.height;
    return c;
}

static void tell_crop(struct pstk_crop *crop, const struct pstk__geometry *g)
{
    *crop = (struct pstk_crop){.top = (int32_t)g->source.top,
                               .left = (int32_t)g->source.left,
                               .height = (int32_t)g->source.height,
                               .width = (int32_t)g->source.width,
                               .image_height = g->image_height,
                               .image_width = g->image_width,
                               .flip = g->flip};
    if (g->resized)
        return;
    crop->top = (int32_t)g->window_top;
    crop->left = (int32_t)g->window_left;
    crop->height = (int32_t)g->window_height;
    crop->width = (int32_t)g->window_width;
}

/* ---- images: one output -------------------------------------------------------------------------
 */

/* What a row of output `o` is made by; `inside` is the width that the resize gives. */
static struct pstk__finish finish_of(const struct pstk__output *o, const struct pstk__geometry *g,
                                     uint32_t width)
{
    return (struct pstk__finish){.dtype = o->row_dtype,
                                 .layout = o->row_layout,
                                 .flip = g->flip,
                                 .width = width,
                                 .plane = (uint64_t)o->height * o->width,
                                 .table = o->table,
                                 .affine = &o->line};
}

/* Bytes from one output row, and from one output pixel, to the next. */
static uint64_t row_step(const struct pstk__output *o)
{
    const uint64_t element = pstk_dtype_size(o->row_dtype);
    return o->width * element * (o->row_layout == PSTK_NCHW ? 1 : CHANNELS);
}

/* Fill the output with black, which is normalised like any pixel. */
static int pad(struct work *w, uint32_t i, const struct pstk__geometry *g)
{
    const struct pstk__output *o = &w->s->plan->outputs[i];
    const struct pstk__finish f = finish_of(o, g, o->width);
    const size_t mark = w->s->arena.used;
    uint8_t *black = pstk__arena_get(&w->s->arena, (size_t)CHANNELS * o->width);
    if (black == NULL)
        return PSTK_ENOMEM;
    memset(black, 0, (size_t)CHANNELS * o->width);
    for (uint32_t y = 0; y < o->height; y++)
        w->s->plan->kernels->finish_row((uint8_t *)w->rows[i].data + y * row_step(o), black, &f);
    pstk__arena_reset(&w->s->arena, mark);
    return 0;
}

/* Memory for the part of the image that will be turned. */
static int turn_begin(struct work *w, struct job *j)
{
    const struct pstk__box *b = &j->box;
    if (j->turn.swap == 0 && j->turn.mirror_x == 0 && j->turn.mirror_y == 0)
        return 0;
    j->turned = 1;
    j->coded = pstk__arena_get(&w->s->arena, (size_t)CHANNELS * b->width * b->height);
    j->row =
        pstk__arena_get(&w->s->arena, (size_t)CHANNELS * (j->turn.swap ? b->height : b->width));
    return j->coded != NULL && j->row != NULL ? 0 : PSTK_ENOMEM;
}

/* Where the resize of output i writes, and what. */
static struct pstk__resize_config config_of(const struct work *w, uint32_t i,
                                            const struct pstk__geometry *g, const struct pane *p)
{
    const struct pstk__output *o = &w->s->plan->outputs[i];
    const uint32_t left = g->flip ? o->width - p->left - p->inside.width : p->left;
    const uint64_t pixel = row_step(o) / o->width;
    return (struct pstk__resize_config){
        .in_width = g->source.width,
        .in_height = g->source.height,
        .out_width = g->out_width,
        .out_height = g->out_height,
        .window = p->inside,
        .finish = finish_of(o, g, p->inside.width),
        .out = (uint8_t *)w->rows[i].data + p->top * row_step(o) + left * pixel,
        .out_stride = row_step(o),
    };
}

/* Geometry, padding and resize of output i; a new job unless nothing of the image is shown. */
static int job_begin(struct work *w, uint32_t i, const struct pstk__image_info *info)
{
    const struct pstk__output *o = &w->s->plan->outputs[i];
    struct job *j = &w->s->jobs[w->s->n_jobs];
    struct pstk__geometry *g = &j->geometry;
    *j = (struct job){.turn = turns[o->settings.exif_orientation ? info->orientation : 1]};
    pstk__ops_apply(o->ops, o->settings.n_ops, j->turn.swap ? info->height : info->width,
                    j->turn.swap ? info->width : info->height, key_of(w, o), g);
    if (w->rows[i].crop != NULL)
        tell_crop(w->rows[i].crop, g);
    if (o->deferred) { /* the device mirrors it */
        *w->rows[i].flip = (uint8_t)g->flip;
        g->flip = 0;
    }
    const struct pane p = pane_of(g);
    const int whole = p.inside.width == o->width && p.inside.height == o->height;
    if (!whole && pad(w, i, g) < 0)
        return PSTK_ENOMEM;
    if (p.inside.width == 0 || p.inside.height == 0)
        return 0;
    w->s->n_jobs++;
    const struct pstk__resize_config config = config_of(w, i, g, &p);
    const int rc = pstk__resize_begin(&j->resize, &w->s->arena, w->s->plan->kernels, &config);
    if (rc < 0)
        return rc;
    const struct pstk__axis *x = &j->resize.x, *y = &j->resize.y;
    const struct pstk__box upright = {.left = g->source.left + x->begin,
                                      .top = g->source.top + y->begin,
                                      .width = x->end - x->begin,
                                      .height = y->end - y->begin};
    j->box = coded_box(&upright, j->turn, info);
    return turn_begin(w, j);
}

/* ---- images: rows -------------------------------------------------------------------------------
 */

/* The next n rows of a job's box. */
static void job_take(struct job *j, const uint8_t *rgb, uint64_t stride, uint32_t n)
{
    if (!j->turned) {
        pstk__resize_rows(&j->resize, rgb, stride, n);
        return;
    }
    const size_t size = (size_t)CHANNELS * j->box.width;
    for (uint32_t k = 0; k < n; k++, rgb += stride)
        memcpy(j->coded + j->n_rows++ * size, rgb, size);
}

/* The next rows of the box as coded go to the outputs that need them. The decoder calls this. */
static void take_rows(void *user, const uint8_t *rgb, uint64_t stride, uint32_t n_rows)
{
    struct pstk__sampler *s = user;
    const uint32_t begin = s->box_top + s->n_rows, end = begin + n_rows;
    for (uint32_t k = 0; k < s->n_jobs; k++) {
        struct job *j = &s->jobs[k];
        const struct pstk__box *b = &j->box;
        const uint32_t lo = b->top > begin ? b->top : begin;
        const uint32_t hi = b->top + b->height < end ? b->top + b->height : end;
        if (lo < hi)
            job_take(j, rgb + (lo - begin) * stride + (size_t)CHANNELS * (b->left - s->box_left),
                     stride, hi - lo);
    }
    s->n_rows += n_rows;
}

/* Push the collected box upright. In the box, as in the image, an upright (x, y) is swapped, then
 * mirrored. */
static void turn_rows(struct job *j)
{
    const struct turn t = j->turn;
    const uint32_t w = j->box.width, h = j->box.height;
    const uint32_t upright_w = t.swap ? h : w, upright_h = t.swap ? w : h;
    for (uint32_t y = 0; y < upright_h; y++) {
        uint8_t *out = j->row;
        for (uint32_t x = 0; x < upright_w; x++, out += CHANNELS) {
            uint32_t cx = t.swap ? y : x, cy = t.swap ? x : y;
            cx = t.mirror_x ? w - 1 - cx : cx;
            cy = t.mirror_y ? h - 1 - cy : cy;
            memcpy(out, j->coded + ((size_t)cy * w + cx) * CHANNELS, CHANNELS);
        }
        pstk__resize_rows(&j->resize, j->row, 0, 1);
    }
}

/* The smallest box that holds what every job reads. */
static struct pstk__box union_box(const struct pstk__sampler *s)
{
    struct pstk__box u = s->jobs[0].box;
    for (uint32_t k = 1; k < s->n_jobs; k++) {
        const struct pstk__box *b = &s->jobs[k].box;
        const uint32_t left = b->left < u.left ? b->left : u.left;
        const uint32_t top = b->top < u.top ? b->top : u.top;
        const uint32_t right =
            b->left + b->width > u.left + u.width ? b->left + b->width : u.left + u.width;
        const uint32_t end =
            b->top + b->height > u.top + u.height ? b->top + b->height : u.top + u.height;
        u = (struct pstk__box){left, top, right - left, end - top};
    }
    return u;
}

/* ---- images: one field
 * --------------------------------------------------------------------------- */

static int image_fail(const struct work *w, int code, const struct pstk_error *inner,
                      struct pstk_error *err)
{
    pstk__record_fail(w->record, w->field, code, PSTK_STAGE_DECODE, err, "%.400s", inner->message);
    if (err != NULL)
        err->native = inner->native;
    return code;
}

/* What the record says of the image, and, where an output asks for it, its orientation. */
static int image_info(const struct work *w, int upright, const struct pstk__image_decoder *d,
                      struct pstk__image_info *info, struct pstk_error *err)
{
    const struct pstk__field_view *v = w->view;
    *info = (struct pstk__image_info){
        .encoding = v->encoding, .width = v->width, .height = v->height, .orientation = 1};
    if (v->width == 0 || v->height == 0)
        return pstk__record_fail(w->record, w->field, PSTK_EBADMSG, PSTK_STAGE_DECODE, err,
                                 "image of %u x %u pixels", v->width, v->height);
    int rc = check_pixels(w, err);
    if (rc < 0 || !upright || v->encoding == PSTK_ENCODING_PIXELS)
        return rc;
    struct pstk__image_info probed;
    struct pstk_error inner;
    pstk_error_init(&inner, sizeof inner);
    rc = d->probe(w->data, w->size, w->s->plan->max_pixels, &probed, &inner);
    if (rc < 0)
        return image_fail(w, rc, &inner, err);
    if (probed.orientation >= 1 && probed.orientation <= 8)
        info->orientation = probed.orientation;
    return 0;
}

static int image_decode(const struct work *w, const struct pstk__image_decoder *d,
                        const struct pstk__image_info *info, struct pstk_error *err)
{
    struct pstk__sampler *s = w->s;
    const struct pstk__box box = union_box(s);
    const struct pstk__row_sink sink = {.rows = take_rows, .user = s};
    struct pstk_error inner;
    pstk_error_init(&inner, sizeof inner);
    s->box_left = box.left;
    s->box_top = box.top;
    s->n_rows = 0;
    const int rc = d->decode(s->state, w->data, w->size, info, &box, &sink, &inner);
    if (rc < 0)
        return image_fail(w, rc, &inner, err);
    if (s->n_rows != box.height)
        return pstk__record_fail(w->record, w->field, PSTK_EBADMSG, PSTK_STAGE_DECODE, err,
                                 "the %s decoder gave %u of %u rows", d->name, s->n_rows,
                                 box.height);
    for (uint32_t k = 0; k < s->n_jobs; k++)
        if (s->jobs[k].turned)
            turn_rows(&s->jobs[k]);
    return 0;
}

/* All image outputs of the field, from output i on. */
static int write_images(struct work *w, uint32_t i, struct pstk_error *err)
{
    const struct pstk__plan *p = w->s->plan;
    struct pstk__image_info info;
    int upright = 0;
    const int is_planes = w->view->codec == PSTK_CODEC_PLANES;
    const struct pstk__image_decoder *d =
        is_planes ? &pstk__image_planes : pstk__image_decoder(w->view->encoding);
    if (is_planes) { /* they decode as they are stored */
        w->data = w->view->data;
        w->size = w->view->stored_size;
    }
    if (d == NULL)
        return pstk__record_fail(w->record, w->field, PSTK_ENOTSUP, PSTK_STAGE_DECODE, err,
                                 "no decoder for image encoding %u", w->view->encoding);
    for (uint32_t k = i; k < p->n_outputs; k = p->outputs[k].next)
        upright |= p->outputs[k].settings.exif_orientation != 0;
    const int rc = image_info(w, upright, d, &info, err);
    if (rc < 0)
        return rc;
    w->rows[i].is_palette =
        w->view->encoding == PSTK_ENCODING_PNG && (uint32_t)pstk_image_is_palette(w->data, w->size);
    w->s->n_jobs = 0;
    for (uint32_t k = i; k < p->n_outputs; k = p->outputs[k].next)
        if (p->outputs[k].settings.kind == PSTK_OUTPUT_IMAGE && job_begin(w, k, &info) < 0)
            return no_scratch(w, err);
    return w->s->n_jobs > 0 ? image_decode(w, d, &info, err) : 0;
}

/* ---- one record ---------------------------------------------------------------------------------
 */

static int write_output(struct work *w, uint32_t i, struct pstk_error *err)
{
    switch (w->s->plan->outputs[i].settings.kind) {
    case PSTK_OUTPUT_SCALAR:
    case PSTK_OUTPUT_TENSOR:
        return write_cast(w, i, err);
    case PSTK_OUTPUT_BYTES:
    case PSTK_OUTPUT_RAGGED:
        return write_copy(w, i, err);
    case PSTK_OUTPUT_CALLBACK:
        return write_callback(w, i, err);
    default:
        return 0; /* images come together, from write_images */
    }
}

/* Images of planes are decoded from what is stored. */
static int needs_plain_bytes(const struct pstk__output *o, const struct pstk__field_view *v)
{
    const int is_image = o->settings.kind == PSTK_OUTPUT_IMAGE;
    return !o->settings.stored && !(is_image && v->codec == PSTK_CODEC_PLANES);
}

/* All outputs of the field that output i is the first to read. */
static int write_field(struct work *w, uint32_t i, uint32_t shard, struct pstk_error *err)
{
    const struct pstk__plan *p = w->s->plan;
    int has_images = 0, needs_plain = 0;
    w->field = p->outputs[i].field;
    w->view = &w->record->fields[w->field];
    pstk__arena_reset(&w->s->arena, w->s->mark);
    pstk__arena_trim(&w->s->arena, KEEP_RESIDENT);
    int rc = write_lone_copy(w, i, err);
    if (rc != 0)
        return rc < 0 ? rc : 0;
    for (uint32_t k = i; k < p->n_outputs; k = p->outputs[k].next) {
        has_images |= p->outputs[k].settings.kind == PSTK_OUTPUT_IMAGE;
        needs_plain |= needs_plain_bytes(&p->outputs[k], w->view);
    }
    rc = field_check(w, shard, needs_plain, err);
    for (uint32_t k = i; k < p->n_outputs && rc == 0; k = p->outputs[k].next)
        rc = write_output(w, k, err);
    return rc == 0 && has_images ? write_images(w, i, err) : rc;
}

int pstk__sample_write(struct pstk__sampler *s, const struct pstk__record *record, uint32_t shard,
                       const struct pstk__sample_key *key, struct pstk__row *rows,
                       struct pstk_error *err)
{
    struct work w = {.s = s, .record = record, .key = key, .rows = rows};
    for (uint32_t i = 0; i < s->plan->n_outputs; i++) {
        if (rows[i].crop != NULL && s->plan->outputs[i].settings.kind != PSTK_OUTPUT_IMAGE)
            *rows[i].crop = (struct pstk_crop){0};
        if (!s->plan->outputs[i].is_first)
            continue;
        const int rc = write_field(&w, i, shard, err);
        if (rc < 0) {
            if (err != NULL) {
                err->sample_id = key->sample_id;
                err->epoch = key->epoch;
                err->position = key->position;
            }
            return rc;
        }
    }
    return 0;
}
