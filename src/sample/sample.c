/* SPDX-License-Identifier: Apache-2.0 */
/* sample: a worker's stage. Field by field: check, decompress, make every output that reads it. */
#include "sample/sample.h"

#include "base/cast.h"
#include "base/crc32c.h"
#include "base/error.h"
#include "image/image.h"
#include "image/jpeg/damaged.h"
#include "image/planes/decode.h"
#include "record/coordinates.h"
#include "record/field.h"
#include "record/translate.h"
#include "record/kind.h"
#include "record/value.h"
#include "sample/boxes_row.h"
#include "sample/image_rows.h"
#include "sample/mask_rows.h"
#include "sample/narrow.h"
#include "sample/nested.h"
#include "sample/points_row.h"
#include "sample/multi_size.h"

#include <penstock/format.h>
#include <stdlib.h>
#include <string.h>

#define KEEP_RESIDENT (16u << 20) /* bytes of a worker's arena that stay after a huge image */
#define CALLBACK_DRAWS UINT32_MAX /* the `op` of a callback's draws; no operation uses it */

/* ---- state ----------------------------------------------------------------------------------- */

struct pstk__sampler {
    const struct pstk__plan *first;  /* borrowed */
    const struct pstk__plan *plan;   /* plan of the size of the sample under way */
    struct pstk__arena arena;        /* owned */
    struct pstk__image_state *state; /* owned */
    struct pstk__decoder *decoder;   /* in the arena */
    size_t mark;                     /* mark of the arena, once opened */
    struct pstk__image_rows images;  /* for the field under way */
    struct pstk__mask_rows masks;    /* for the mask under way */
    struct pstk__image_ops image_ops[PSTK__MAX_OUTPUTS]; /* drawn for this sample */
    struct pstk__boxes boxes[PSTK__MAX_OUTPUTS];         /* by boxes output */
};

/* The context of the write functions of all kinds. */
struct work {
    struct pstk__sampler *s;
    const struct pstk__record *record;
    const struct pstk__field_view *view;
    const struct pstk__sample_key *key;
    struct pstk__row *rows;
    uint32_t shard;
    uint32_t field;
    const uint8_t *data; /* plain bytes, checked */
    uint64_t size;
    struct pstk_error *err; /* error of the sample, for functions that take pictures */
    uint32_t has_failed;    /* 1: such a function failed, and err says why */
};

/* Allocate the memory that is kept of a sample over all of its fields: it lies in the arena, below
 * all else. */
static int kept_open(struct pstk__sampler *sampler)
{
    const struct pstk__plan *plan = sampler->plan;
    for (uint32_t i = 0; i < plan->n_outputs; i++) {
        const struct pstk__output *o = &plan->outputs[i];
        if (pstk__output_image_ops_size(o) > 0)
            sampler->image_ops[i].ops =
                pstk__arena_get(&sampler->arena, pstk__output_image_ops_size(o));
        if (o->follow.max_boxes > 0)
            sampler->boxes[i].boxes = pstk__arena_get(&sampler->arena, pstk__output_boxes_size(o));
        if ((pstk__output_image_ops_size(o) > 0 && !sampler->image_ops[i].ops) ||
            (o->follow.max_boxes > 0 && !sampler->boxes[i].boxes))
            return PSTK_ENOMEM;
    }
    return 0;
}

int pstk__sampler_open(struct pstk__sampler **out, const struct pstk__plan *plan,
                       struct pstk_error *err)
{
    *out = NULL;
    struct pstk__sampler *sampler = calloc(1, sizeof *sampler);
    if (!sampler)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for a worker");
    sampler->first = sampler->plan = plan;
    int rc = 0;
    void *memory = NULL;
    if (pstk__arena_open(&sampler->arena, plan->scratch_size) == 0)
        memory = pstk__arena_get(&sampler->arena, pstk__decoder_size());
    if (memory && kept_open(sampler) == 0)
        sampler->decoder = pstk__decoder_init(memory, pstk__decoder_size());
    if (!sampler->decoder)
        rc = pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN,
                        "no room for %llu bytes of addresses, of which a worker uses what its "
                        "largest image needs: raise the limit of this process (ulimit -v), or "
                        "lower n_threads or max_pixels",
                        (unsigned long long)plan->scratch_size);
    else
        rc =
            pstk__image_state_open(&sampler->state, &sampler->arena, plan->kernels.pixel->isa, err);
    if (rc < 0) {
        pstk__sampler_close(sampler);
        return rc;
    }
    sampler->mark = sampler->arena.used;
    *out = sampler;
    return 0;
}

void pstk__sampler_close(struct pstk__sampler *sampler)
{
    if (!sampler)
        return;
    pstk__image_state_close(sampler->state);
    pstk__arena_close(&sampler->arena);
    free(sampler);
}

/* Report that the arena is too small. The plan derived scratch_size from the record limits, so this
 * is an error of the library, or of a record that passed the limits unseen: no assertion. */
static int no_scratch(const struct work *work, struct pstk_error *err)
{
    return pstk__record_fail(work->record, work->field, PSTK_ENOMEM, PSTK_STAGE_DECODE, err,
                             "does not fit into a worker's scratch memory of %llu bytes",
                             (unsigned long long)work->s->plan->scratch_size);
}

/* ---- the field's bytes------------------------------------------------------------------------ */

/* Find the memory that pstk__field_read asks for, in the arena. */
static int find_memory(void *user, const struct pstk__record *record, uint32_t field,
                       struct pstk__field_memory *out, struct pstk_error *err)
{
    const struct work *work = user;
    *out = (struct pstk__field_memory){
        .decoder = work->s->decoder,
        .dictionary = pstk__source_dictionary(work->s->plan->source, work->shard, field),
        .scratch = &work->s->arena,
        .plain = pstk__arena_get(&work->s->arena, record->fields[field].plain_size),
    };
    return out->plain ? 0 : no_scratch(work, err);
}

/* Check the field; decompress it if an output needs its plain bytes. */
static int field_check(struct work *work, int needs_plain, struct pstk_error *err)
{
    work->size = work->view->plain_size;
    if (work->view->codec == PSTK_CODEC_NONE || !needs_plain) { /* most fields need no call */
        work->data = work->view->data;
        return pstk__record_check_field(work->record, work->field, err);
    }
    const struct pstk__field_reading reading = {
        .max_pixels = work->s->plan->max_pixels,
        .memory = find_memory,
        .user = work,
    };
    return pstk__field_read(work->record, work->field, &reading, &work->data, err);
}

/* ---- rows that pass through ------------------------------------------------------------------ */

static int size_wrong(const struct work *work, uint64_t wanted, struct pstk_error *err)
{
    return pstk__record_fail(work->record, work->field, PSTK_EBADMSG, PSTK_STAGE_RECORD, err,
                             "has %llu bytes where the schema says %llu",
                             (unsigned long long)work->size, (unsigned long long)wanted);
}

/* Check that a field's `size` bytes fit the row, which is not cast. They fill it or, for a ragged
 * row, are whole items and at most its size. */
static int size_fits(const struct pstk__output *o, uint64_t size)
{
    const uint64_t row_size = pstk__output_written_size(o);
    return pstk__output_is_ragged(o) ? size <= row_size && size % o->ragged.item_size == 0
                                     : size == row_size;
}

static int write_copy(struct work *work, uint32_t i, struct pstk_error *err)
{
    const struct pstk__output *o = &work->s->plan->outputs[i];
    if (!size_fits(o, work->size))
        return size_wrong(work, pstk__output_written_size(o), err);
    if (work->size > 0 && work->rows[i].data != work->data)
        memcpy(work->rows[i].data, work->data, work->size);
    work->rows[i].size = work->size;
    return 0;
}

/* Return 1 if write_lone_copy applies: the field is stored plain and has the right size. */
static int is_copied_at_once(const struct pstk__output *o, const struct pstk__field_view *v)
{
    return o->is_lone_copy && v->checksum == PSTK__CHECKSUM_CRC32C && v->data &&
           v->codec == PSTK_CODEC_NONE && size_fits(o, v->plain_size);
}

/* Check a plain field while copying it: one pass over memory, most of a small record's work. */
static int write_lone_copy(struct work *work, uint32_t i, struct pstk_error *err)
{
    const struct pstk__field_view *v = work->view;
    if (pstk__crc32c_copy(0, work->rows[i].data, v->data, v->plain_size) == v->stored_crc &&
        pstk__field_gap_is_zero(v)) {
        work->rows[i].size = v->plain_size;
        return 0;
    }
    const int rc = pstk__record_check_field(work->record, work->field, err);
    if (rc < 0)
        return rc;
    return pstk__record_fail(work->record, work->field, PSTK_EBADMSG, PSTK_STAGE_RECORD, err,
                             "changed while it was copied; the machine's memory may be faulty");
}

static int write_cast(struct work *work, uint32_t i, struct pstk_error *err)
{
    const struct pstk__row_layout *row = pstk__output_rows(&work->s->plan->outputs[i]);
    const uint32_t from = work->record->schema->fields[work->field].dtype;
    const uint64_t n = row->row_size / pstk_dtype_size(row->dtype);
    if (work->size != n * pstk_dtype_size(from))
        return size_wrong(work, n * pstk_dtype_size(from), err);
    if (pstk__cast_values(work->rows[i].data, row->dtype, work->data, from, n) == 0)
        return 0;
    return pstk__narrow_fail(work->record, work->field, row->dtype, err);
}

/* Write the label of a mix; the last worker of the batch makes dense targets of it. */
static int write_label(struct work *work, uint32_t i, struct pstk_error *err)
{
    const uint32_t n_classes = work->s->plan->mixing.settings.n_classes;
    const uint32_t dtype = work->record->schema->fields[work->field].dtype;
    uint64_t label = 0;
    if (work->size != pstk_dtype_size(dtype))
        return size_wrong(work, pstk_dtype_size(dtype), err);
    pstk__cast(&label, pstk__cast_fits(dtype, PSTK_I64) ? PSTK_I64 : PSTK_U64, work->data, dtype);
    const int is_negative = dtype != PSTK_U64 && (int64_t)label < 0;
    if (label >= n_classes)
        return pstk__record_fail(work->record, work->field, PSTK_EINVAL, PSTK_STAGE_DECODE, err,
                                 "label of sample %llu: value is %s%llu; must be from 0 to %u, the "
                                 "classes of the mix",
                                 (unsigned long long)work->key->sample_id, is_negative ? "-" : "",
                                 (unsigned long long)(is_negative ? 0 - label : label),
                                 n_classes - 1);
    if (work->rows[i].label)
        *work->rows[i].label = (uint32_t)label;
    return work->rows[i].label ? 0 : write_cast(work, i, err);
}

/* ---- callbacks ------------------------------------------------------------------------------- */

/* Return the key of the sample's draws, without group and op. */
static struct pstk__random_key key_of(const struct work *work)
{
    return (struct pstk__random_key){
        .seed = work->s->plan->seed,
        .epoch = work->key->epoch,
        .sample_id = work->key->sample_id,
        .data_set = work->key->data_set,
        .occurrence = work->key->occurrence,
    };
}

/* Describe the field's bytes: an array, a number, or bytes. */
static int describe_data(const struct work *work, struct pstk_sample *sample,
                         struct pstk_error *err)
{
    char text[160];
    const struct pstk_field *field = &work->record->schema->fields[work->field];
    const int is_array = (pstk__field_traits(field->kind) & PSTK__TRAIT_ARRAY) != 0;
    sample->dtype = PSTK_U8;
    sample->n_dims = 1;
    sample->shape[0] = sample->data_size;
    if (sample->codec != PSTK_CODEC_NONE || !(is_array || field->kind == PSTK_FIELD_SCALAR))
        return 0;
    const char *wrong = pstk__value_check(field, sample->data, sample->data_size, text);
    if (wrong)
        return pstk__record_fail(work->record, work->field, PSTK_EBADMSG, PSTK_STAGE_RECORD, err,
                                 "has %s", wrong);
    sample->dtype = field->dtype;
    sample->n_dims = is_array ? field->n_dims : 0;
    if (is_array)
        pstk__value_shape(field, sample->data, sample->data_size, sample->shape);
    return 0;
}

/* Return the sample that the function of an output gets, except its data. */
static struct pstk_sample sample_of(const struct work *work, const struct pstk__output *o)
{
    struct pstk__random random;
    struct pstk__random_key key = key_of(work);
    key.group = o->settings.image.random_group;
    key.op = CALLBACK_DRAWS;
    const struct pstk__field_view *v = work->view;
    const int as_stored = o->settings.callback.stored && v->checksum != PSTK__CHECKSUM_HEAD &&
                          !pstk__codec_is_foreign(v->codec);
    pstk__random_init(&random, &key);
    struct pstk_sample sample = {
        .size = sizeof sample,
        .encoding = v->encoding,
        .sample_id = work->key->sample_id,
        .epoch = work->key->epoch,
        .position = work->key->position,
        .data = as_stored ? v->data : work->data,
        .data_size = as_stored ? v->stored_size : work->size,
        .codec = as_stored ? v->codec : PSTK_CODEC_NONE,
        .scratch_size = o->settings.callback.scratch_size,
    };
    sample.random[0] = pstk__random_u64(&random);
    sample.random[1] = pstk__random_u64(&random);
    return sample;
}

/* Have the row of output i made by a process. */
static int ask_process(struct work *work, uint32_t i, const struct pstk_sample *sample,
                       struct pstk_error *err)
{
    const struct pstk__output *o = &work->s->plan->outputs[i];
    struct pstk_error inner;
    struct pstk__process_request request = {
        .head = {.output = i,
                 .dtype = sample->dtype,
                 .n_dims = sample->n_dims,
                 .encoding = sample->encoding,
                 .sample_id = sample->sample_id,
                 .epoch = sample->epoch,
                 .position = sample->position,
                 .random = {sample->random[0], sample->random[1]},
                 .row_size = pstk__output_rows(o)->row_size,
                 .data_size = sample->data_size},
        .data = sample->data,
        .rows = work->rows[i].data,
        .timeout_ns = o->settings.callback.timeout_ns};
    memcpy(request.head.shape, sample->shape, sizeof request.head.shape);
    inner.size = sizeof inner;
    const int rc = pstk__process_pool_ask(o->callback.pool, &request, &inner);
    if (rc == 0 || inner.stage == PSTK_STAGE_OPEN) /* not an error of the sample */
        return rc == 0 ? 0 : pstk__fail_copy(err, &inner);
    return pstk__record_fail(work->record, work->field, rc, PSTK_STAGE_DECODE, err,
                             "the function of output '%s' failed for sample %llu: %.380s", o->name,
                             (unsigned long long)sample->sample_id, inner.message);
}

/* Keep the input of this row until processes take the whole batch. */
static int keep_input(const struct work *work, uint32_t i, const struct pstk_sample *sample,
                      struct pstk_error *err)
{
    const struct pstk__input *input = &work->s->plan->outputs[i].callback.input;
    if (sample->data_size != input->size)
        return size_wrong(work, input->size, err);
    memcpy(work->rows[i].input, sample->data, input->size);
    return 0;
}

/* Report that the function of output `name` returned `result`; *why may have its reason. */
static int decode_failed(const struct work *work, const char *name, int result,
                         const struct pstk_error *why, struct pstk_error *err)
{
    const int code = pstk__error_is_listed(result) ? result : PSTK_EINVAL;
    pstk__record_fail(work->record, work->field, code, PSTK_STAGE_DECODE, err,
                      "the decode function of output '%s' returned %d for sample %llu%s%.380s",
                      name, result, (unsigned long long)work->key->sample_id,
                      why->message[0] ? ": " : "", why->message);
    if (err)
        err->native = result;
    return code;
}

/* Call the function of output i. */
static int call_function(struct work *work, uint32_t i, struct pstk_sample *sample,
                         struct pstk_error *err)
{
    const struct pstk__output *o = &work->s->plan->outputs[i];
    struct pstk_error why;
    if (work->rows[i].input)
        return keep_input(work, i, sample, err);
    if (o->callback.pool)
        return ask_process(work, i, sample, err);
    if (sample->scratch_size > 0) {
        sample->scratch = pstk__arena_get(&work->s->arena, sample->scratch_size);
        if (!sample->scratch)
            return no_scratch(work, err);
    }
    pstk_error_init(&why, sizeof why);
    sample->error = &why;
    const int result = o->settings.callback.decode(
        o->settings.callback.user, sample, work->rows[i].data, pstk__output_rows(o)->row_size);
    return result == 0 ? 0 : decode_failed(work, o->name, result, &why, err);
}

static int write_callback(struct work *work, uint32_t i, struct pstk_error *err)
{
    const struct pstk__output *o = &work->s->plan->outputs[i];
    if (o->has_pixels)
        return 0;
    struct pstk_sample sample = sample_of(work, o);
    const int rc = describe_data(work, &sample, err);
    return rc < 0 ? rc : call_function(work, i, &sample, err);
}

/* Give a decoded picture to the function of an output: a pstk__picture_fn. */
static int give_picture(void *user, const struct pstk__output *o,
                        const struct pstk__picture *picture)
{
    struct work *work = user;
    struct pstk_sample sample = sample_of(work, o);
    const uint32_t i = (uint32_t)(o - work->s->plan->outputs);
    sample.data = picture->pixels;
    sample.data_size = pstk__picture_size(picture);
    sample.dtype = PSTK_U8;
    sample.n_dims = 3;
    sample.shape[0] = picture->height;
    sample.shape[1] = picture->width;
    sample.shape[2] = picture->channels;
    const int rc = call_function(work, i, &sample, work->err);
    work->has_failed = rc < 0;
    return rc;
}

/* ---- images ---------------------------------------------------------------------------------- */

static int image_fail(const struct work *work, int code, const struct pstk_error *inner,
                      struct pstk_error *err)
{
    pstk__record_fail(work->record, work->field, code, PSTK_STAGE_DECODE, err, "%.400s",
                      inner->message);
    if (err)
        err->native = inner->native;
    return code;
}

/* Get the record's description of the image and, if an output needs it, the orientation. */
static int image_info(const struct work *work, int upright,
                      const struct pstk__image_decoder *decoder, struct pstk__image_info *info,
                      struct pstk_error *err)
{
    const struct pstk__field_view *v = work->view;
    *info = pstk__field_image(v);
    if (v->width == 0 || v->height == 0)
        return pstk__record_fail(work->record, work->field, PSTK_EBADMSG, PSTK_STAGE_DECODE, err,
                                 "image of %u x %u pixels", v->width, v->height);
    int rc = pstk__field_check_pixels(work->record, work->field, work->s->plan->max_pixels, err);
    if (rc < 0 || !upright || v->encoding == PSTK_ENCODING_PIXELS)
        return rc;
    struct pstk__image_info probed;
    struct pstk_error inner;
    pstk_error_init(&inner, sizeof inner);
    rc = decoder->probe(work->data, work->size, work->s->plan->max_pixels, &probed, &inner);
    if (rc < 0)
        return image_fail(work, rc, &inner, err);
    if (probed.orientation >= 1 && probed.orientation <= 8)
        info->orientation = probed.orientation;
    return 0;
}

/* Report that the function of an operation failed. */
static int function_failed(const struct work *work, struct pstk_error *err)
{
    const struct pstk__image_rows *images = &work->s->images;
    const struct pstk_error *failure = &images->failure;
    pstk__record_fail(work->record, work->field, failure->code, PSTK_STAGE_DECODE, err,
                      "output '%s', sample %llu: %.440s", images->failed->name,
                      (unsigned long long)work->key->sample_id, failure->message);
    if (err)
        err->native = failure->native;
    return failure->code;
}

/* Explain the result of image rows; 0 stays 0. A function's error is explained already. */
static int pictures_failed(const struct work *work, int rc, struct pstk_error *err)
{
    if (work->has_failed)
        return rc;
    if (rc == PSTK_ECANCELED)
        return function_failed(work, err);
    if (rc == PSTK_EFBIG)
        return pstk__record_fail(
            work->record, work->field, rc, PSTK_STAGE_DECODE, err,
            "an operation would make a picture that is too large, for example from an image that "
            "is more than 16 times as long as wide; crop first");
    if (rc == PSTK_EINVAL)
        return pstk__record_fail(work->record, work->field, rc, PSTK_STAGE_DECODE, err,
                                 "the image is too small for the kernel of a blur");
    return rc < 0 ? no_scratch(work, err) : 0;
}

/* Decode for all image outputs of the field; output i is the first. */
static int image_decode(const struct work *work, uint32_t i,
                        const struct pstk__image_decoder *decoder,
                        const struct pstk__image_info *info, struct pstk_error *err)
{
    struct pstk__image_rows *images = &work->s->images;
    const struct pstk__coded image = {
        .decoder = decoder, .data = work->data, .size = work->size, .info = info};
    struct pstk_error inner;
    pstk_error_init(&inner, sizeof inner);
    const int rc = pstk__image_rows_decode(images, work->s->state, &image,
                                           work->record->accepts_damaged, &inner);
    if (rc < 0)
        return image_fail(work, rc, &inner, err);
    work->rows[i].is_damaged |= (uint32_t)rc;
    return pictures_failed(work, pstk__image_rows_end(images), err);
}

/* Find the field's decoder, and the bytes that it takes: stored ones for planes. NULL: none. */
static const struct pstk__image_decoder *decoder_of(struct work *work)
{
    if (work->view->flags & PSTK__FIELD_DAMAGED)
        return &pstk__image_damaged;
    if (work->view->codec != PSTK_CODEC_PLANES)
        return pstk__image_decoder(work->view->encoding);
    work->data = work->view->data;
    work->size = work->view->stored_size;
    return &pstk__image_planes;
}

/* Write all image outputs of the field, from output i on. */
static int write_images(struct work *work, uint32_t i, struct pstk_error *err)
{
    const struct pstk__plan *p = work->s->plan;
    struct pstk__image_rows *images = &work->s->images;
    struct pstk__image_info info;
    struct pstk_error inner;
    int upright = 0;
    pstk_error_init(&inner, sizeof inner);
    const struct pstk__image_decoder *decoder = decoder_of(work);
    if (!decoder)
        return pstk__record_fail(work->record, work->field, PSTK_ENOTSUP, PSTK_STAGE_DECODE, err,
                                 "no decoder for image encoding %u", work->view->encoding);
    for (uint32_t k = i; k < p->n_outputs; k = p->outputs[k].next)
        upright |= p->outputs[k].settings.image.exif_orientation != 0;
    const int rc = image_info(work, upright, decoder, &info, err);
    if (rc < 0)
        return rc;
    work->rows[i].is_palette = work->view->encoding == PSTK_ENCODING_PNG &&
                               (uint32_t)pstk_image_is_palette(work->data, work->size);
    work->rows[i].is_damaged = (work->view->flags & PSTK__FIELD_DAMAGED) != 0;
    const struct pstk__random_key key = key_of(work);
    pstk__image_rows_begin(images, p, &work->s->arena);
    images->give = give_picture;
    images->user = work;
    for (uint32_t k = i; k < p->n_outputs; k = p->outputs[k].next) {
        if (!p->outputs[k].has_pixels)
            continue;
        struct pstk__image_ops *ops = &work->s->image_ops[k];
        const struct pstk__image_source source = {.info = &info, .image_ops = ops};
        struct pstk__boxes *boxes =
            p->outputs[k].image.looks_at_boxes ? &work->s->boxes[p->outputs[k].image.boxes] : NULL;
        const int drew = pstk__image_ops_init(ops, &p->outputs[k], &info, &key, boxes, &inner);
        if (drew < 0)
            return image_fail(work, drew, &inner, err);
        if (pstk__image_row_copy(&p->outputs[k], &work->rows[k], &source, &work->data, work->size))
            continue;
        const int added = pstk__image_rows_add(images, &p->outputs[k], &work->rows[k], &source);
        if (added < 0)
            return pictures_failed(work, added, err);
    }
    return images->n > 0 ? image_decode(work, i, decoder, &info, err) : 0;
}

/* ---- masks ----------------------------------------------------------------------------------- */

/* Return the info of the image that an output follows, as coded. */
static struct pstk__image_info image_of(const struct work *work, const struct pstk__output *o)
{
    const struct pstk__output *image = &work->s->plan->outputs[o->follow.image];
    return pstk__field_image(&work->record->fields[image->field]);
}

/* Check that a mask has the size of the image that it follows. */
static int mask_fits(const struct work *work, const struct pstk__output *o, struct pstk_error *err)
{
    const uint32_t field = work->s->plan->outputs[o->follow.image].field;
    const struct pstk__field_view *v = work->view, *image = &work->record->fields[field];
    if (v->width == image->width && v->height == image->height)
        return 0;
    return pstk__record_fail(work->record, work->field, PSTK_EBADMSG, PSTK_STAGE_DECODE, err,
                             "mask of %u x %u pixels; its image, field '%s', has %u x %u", v->width,
                             v->height, work->record->schema->fields[field].name, image->width,
                             image->height);
}

static int write_mask(struct work *work, uint32_t i, struct pstk_error *err)
{
    const struct pstk__plan *p = work->s->plan;
    const struct pstk__output *o = &p->outputs[i];
    const struct pstk__image_info info = pstk__field_image(work->view);
    const struct pstk__image_ops *ops = &work->s->image_ops[o->follow.image];
    const struct pstk__mask_source source = {
        .data = work->data, .size = work->size, .info = &info, .image_ops = ops};
    const size_t mark = work->s->arena.used;
    struct pstk_error inner;
    pstk_error_init(&inner, sizeof inner);
    int rc = mask_fits(work, o, err);
    if (rc < 0)
        return rc;
    rc = pstk__mask_rows_write(&work->s->masks, p, &work->s->arena, o, &source, work->rows[i].data,
                               &inner);
    pstk__arena_reset(&work->s->arena, mark);
    return rc == PSTK_EBADMSG || rc == PSTK_ENOTSUP ? image_fail(work, rc, &inner, err)
                                                    : pictures_failed(work, rc, err);
}

/* ---- boxes ----------------------------------------------------------------------------------- */

/* Read the lengths between the boxes and the items of an output. */
static int read_levels(const struct work *work, const struct pstk__output *o,
                       struct pstk__nested *nested, struct pstk_error *err)
{
    for (uint32_t k = 0; k < o->follow.n_levels; k++) {
        struct work lengths = *work;
        lengths.field = o->follow.levels[k];
        lengths.view = &work->record->fields[lengths.field];
        const int rc = field_check(&lengths, 1, err);
        if (rc < 0)
            return rc;
        const uint32_t dtype = work->record->schema->fields[lengths.field].dtype;
        nested->levels[k] = (struct pstk__lengths){
            .data = lengths.data, .n = lengths.size / pstk_dtype_size(dtype), .dtype = dtype};
    }
    nested->n_levels = o->follow.n_levels;
    return 0;
}

/* Exclude the boxes that do not meet the condition of output o. */
static int exclude_boxes(const struct work *work, const struct pstk__output *o,
                         struct pstk__boxes *boxes, struct pstk_error *err)
{
    struct pstk__nested column;
    const struct pstk__lengths *numbers = column.levels;
    const size_t mark = work->s->arena.used;
    int rc = read_levels(work, o, &column, err);
    if (rc == 0 && numbers->n != boxes->n)
        rc = pstk__record_fail(work->record, o->follow.levels[0], PSTK_EBADMSG, PSTK_STAGE_DECODE,
                               err, "has %llu items for the %u boxes of output '%s'",
                               (unsigned long long)numbers->n, boxes->n, o->name);
    if (rc == 0)
        pstk__box_where_apply(&o->follow.where, numbers->data, numbers->dtype, boxes);
    pstk__arena_reset(&work->s->arena, mark);
    return rc;
}

static int read_boxes(struct work *work, uint32_t i, struct pstk_error *err)
{
    const struct pstk__output *o = &work->s->plan->outputs[i];
    const struct pstk_field *field = &work->record->schema->fields[work->field];
    const struct pstk__image_info image = image_of(work, o);
    struct pstk__boxes *boxes = &work->s->boxes[i];
    const uint64_t item_size = 4ull * pstk_dtype_size(field->dtype);
    char text[200];
    if (work->size % item_size != 0 || work->size / item_size > o->follow.max_boxes)
        return size_wrong(work, o->follow.max_boxes * item_size, err);
    boxes->n = (uint32_t)(work->size / item_size);
    if (pstk__boxes_read(boxes, field, work->data, &image, text))
        return pstk__record_fail(work->record, work->field, PSTK_EBADMSG, PSTK_STAGE_DECODE, err,
                                 "%s", text);
    return o->follow.n_levels > 0 ? exclude_boxes(work, o, boxes, err) : 0;
}

/* Write a row of boxes, and return their number. A mosaic chooses among them later. */
static uint32_t write_boxes_of(struct pstk__boxes *boxes, const struct pstk__output *o, void *out)
{
    if (o->is_combined)
        return pstk__boxes_keep(boxes, out);
    pstk__boxes_choose(boxes, o);
    return pstk__boxes_write(boxes, o, out);
}

/* Move the boxes once the images are drawn, and write all rows of boxes. */
static void write_boxes(struct work *work)
{
    const struct pstk__plan *p = work->s->plan;
    for (uint32_t i = 0; i < p->n_outputs; i++) {
        const struct pstk__output *o = &p->outputs[i], *image = &p->outputs[o->follow.image];
        struct pstk__boxes *boxes = &work->s->boxes[i];
        if (o->kind != PSTK_OUTPUT_BOXES)
            continue;
        if (!image->image.looks_at_boxes || image->image.boxes != i)
            pstk__image_ops_move_boxes(&work->s->image_ops[o->follow.image], boxes);
        const uint32_t n = write_boxes_of(boxes, o, work->rows[i].data);
        work->rows[i].size = n * o->ragged.item_size;
        work->rows[i].n_dropped = boxes->n - boxes->n_excluded - n;
    }
}

/* Check that there is an item for each box of the output that output o follows. */
static int items_fit(const struct work *work, const struct pstk__output *o, uint64_t n,
                     struct pstk_error *err)
{
    const struct pstk__boxes *boxes = &work->s->boxes[o->follow.boxes];
    if (n == boxes->n)
        return 0;
    return pstk__record_fail(work->record, work->field, PSTK_EBADMSG, PSTK_STAGE_DECODE, err,
                             "has %llu items for the %u boxes of output '%s'",
                             (unsigned long long)n, boxes->n,
                             work->s->plan->outputs[o->follow.boxes].name);
}

/* Call nested->each for the remaining items of output i; the field has n. */
static int each_left(const struct work *work, uint32_t i, uint64_t n, struct pstk__nested *nested,
                     struct pstk_error *err)
{
    const struct pstk__output *o = &work->s->plan->outputs[i];
    const size_t mark = work->s->arena.used;
    int rc = o->follow.n_levels == 0 && nested->boxes ? items_fit(work, o, n, err) : 0;
    nested->n_items = n;
    if (rc == 0)
        rc = read_levels(work, o, nested, err);
    if (rc == 0 && pstk__nested_each(nested) < 0)
        rc = pstk__record_fail(work->record, work->field, PSTK_EBADMSG, PSTK_STAGE_DECODE, err,
                               "has %llu items, but the lengths of the %u boxes of output '%s' add "
                               "up to another number",
                               (unsigned long long)n, nested->boxes->n,
                               work->s->plan->outputs[o->follow.boxes].name);
    pstk__arena_reset(&work->s->arena, mark);
    return rc;
}

/* A row that is written item by item. */
struct items_row {
    const struct work *work;
    const struct pstk__points_source *source; /* for polygons */
    const struct pstk__output *o;
    uint8_t *out;
    uint64_t size; /* bytes so far */
};

static void copy_items(void *user, uint64_t first, uint64_t n)
{
    struct items_row *row = user;
    const uint64_t size = row->o->ragged.item_size;
    memcpy(row->out + row->size, row->work->data + first * size, n * size);
    row->size += n * size;
}

static int write_per_box(struct work *work, uint32_t i, struct pstk_error *err)
{
    const struct pstk__output *o = &work->s->plan->outputs[i];
    struct items_row row = {.work = work, .o = o, .out = work->rows[i].data};
    struct pstk__nested nested = {
        .boxes = &work->s->boxes[o->follow.boxes], .each = copy_items, .user = &row};
    if (!size_fits(o, work->size))
        return size_wrong(work, pstk__output_written_size(o), err);
    const int rc = each_left(work, i, work->size / o->ragged.item_size, &nested, err);
    const uint64_t n = row.size / pstk_dtype_size(o->dtype);
    work->rows[i].size = row.size;
    if (rc == 0 && pstk__cast_add(row.out, o->dtype, n, o->settings.follow.add) < 0)
        return pstk__record_fail(work->record, work->field, PSTK_EINVAL, PSTK_STAGE_DECODE, err,
                                 "has a number to which %s cannot add %lld", o->name,
                                 (long long)o->settings.follow.add);
    return rc;
}

static void move_corners(void *user, uint64_t first, uint64_t n)
{
    struct items_row *row = user;
    pstk__corners_write(row->source, row->o, first, n, (float *)(void *)(row->out + row->size));
    row->size += n * row->o->ragged.item_size;
}

/* Set up the field's value, whose items have `size` bytes, for output i. 0 or EBADMSG. */
static int points_source(const struct work *work, uint32_t i, uint64_t size,
                         struct pstk__points_source *source, struct pstk_error *err)
{
    const struct pstk__output *o = &work->s->plan->outputs[i];
    const struct pstk_field *field = &work->record->schema->fields[work->field];
    char text[200];
    if (work->size % size != 0 || work->size / size * o->ragged.item_size > o->ragged.max_size)
        return size_wrong(work, o->ragged.max_size / o->ragged.item_size * size, err);
    if (pstk__coordinates_check(field, work->data, work->size, text))
        return pstk__record_fail(work->record, work->field, PSTK_EBADMSG, PSTK_STAGE_DECODE, err,
                                 "%s", text);
    source->field = field;
    source->data = work->data;
    source->size = work->size;
    source->image = image_of(work, o);
    source->image_ops = &work->s->image_ops[o->follow.image];
    source->boxes = o->follow.has_boxes ? &work->s->boxes[o->follow.boxes] : NULL;
    return 0;
}

static int write_polygons(struct work *work, uint32_t i, struct pstk_error *err)
{
    const struct pstk__output *o = &work->s->plan->outputs[i];
    const uint64_t size = 2ull * pstk_dtype_size(work->record->schema->fields[work->field].dtype);
    struct pstk__points_source source;
    int rc = points_source(work, i, size, &source, err);
    if (rc < 0)
        return rc;
    struct items_row row = {.work = work, .source = &source, .o = o, .out = work->rows[i].data};
    struct pstk__nested nested = {.boxes = source.boxes, .each = move_corners, .user = &row};
    rc = each_left(work, i, work->size / size, &nested, err);
    work->rows[i].size = row.size;
    return rc;
}

static int write_keypoints(struct work *work, uint32_t i, struct pstk_error *err)
{
    const struct pstk__output *o = &work->s->plan->outputs[i];
    const struct pstk_field *field = &work->record->schema->fields[work->field];
    const uint64_t size = field->shape[1] * field->shape[2] * pstk_dtype_size(field->dtype);
    struct pstk__points_source source;
    int rc = points_source(work, i, size, &source, err);
    if (rc == 0 && source.boxes)
        rc = items_fit(work, o, work->size / size, err);
    if (rc == 0)
        work->rows[i].size =
            pstk__keypoints_write(&source, o, work->rows[i].data) * o->ragged.item_size;
    return rc;
}

/* ---- one record ------------------------------------------------------------------------------ */

/* Write a row by its kind, or by its last pass of a worker. write_images writes images. */
static int write_output(struct work *work, uint32_t i, struct pstk_error *err)
{
    const struct pstk__output *o = &work->s->plan->outputs[i];
    if (o->kind == PSTK_OUTPUT_MASK)
        return write_mask(work, i, err);
    if (o->kind == PSTK_OUTPUT_BOXES)
        return read_boxes(work, i, err);
    if (o->kind == PSTK_OUTPUT_PER_BOX)
        return write_per_box(work, i, err);
    if (o->kind == PSTK_OUTPUT_KEYPOINTS)
        return write_keypoints(work, i, err);
    if (o->kind == PSTK_OUTPUT_POLYGONS)
        return write_polygons(work, i, err);
    switch (o->passes[o->n_worker_passes - 1].what) {
    case PSTK__PASS_CAST:
        return write_cast(work, i, err);
    case PSTK__PASS_COPY:
        return write_copy(work, i, err);
    case PSTK__PASS_LABEL:
        return write_label(work, i, err);
    case PSTK__PASS_CALLBACK:
        return write_callback(work, i, err);
    default:
        return 0;
    }
}

/* Return 1 if output o needs plain bytes; images of planes are decoded as stored. */
static int needs_plain_bytes(const struct pstk__output *o, const struct pstk__field_view *v)
{
    return pstk__codec_is_foreign(v->codec) ||
           (!o->settings.callback.stored && !(o->has_pixels && v->codec == PSTK_CODEC_PLANES));
}

/* Write all outputs of the field that output i is the first to read. */
static int write_field(struct work *work, uint32_t i, struct pstk_error *err)
{
    const struct pstk__plan *p = work->s->plan;
    int has_images = 0, needs_plain = 0;
    work->field = p->outputs[i].field;
    work->view = &work->record->fields[work->field];
    pstk__arena_reset(&work->s->arena, work->s->mark);
    pstk__arena_trim(&work->s->arena, KEEP_RESIDENT);
    if (work->view->data != work->rows[i].data && /* else it lies in the row already */
        is_copied_at_once(&p->outputs[i], work->view))
        return write_lone_copy(work, i, err);
    for (uint32_t k = i; k < p->n_outputs; k = p->outputs[k].next) {
        has_images |= p->outputs[k].has_pixels != 0;
        needs_plain |= needs_plain_bytes(&p->outputs[k], work->view);
    }
    int rc = field_check(work, needs_plain, err);
    for (uint32_t k = i; k < p->n_outputs && rc == 0; k = p->outputs[k].next)
        rc = write_output(work, k, err);
    return rc == 0 && has_images ? write_images(work, i, err) : rc;
}

/* Write fields [begin, end) in the order of work. */
static int write_fields(struct work *work, uint32_t begin, uint32_t end, struct pstk_error *err)
{
    int rc = 0;
    for (uint32_t i = begin; i < end && rc == 0; i++)
        rc = write_field(work, work->s->plan->by_field[i], err);
    return rc;
}

int pstk__sample_write(struct pstk__sampler *sampler, const struct pstk__record *record,
                       uint32_t shard, const struct pstk__sample_key *key, struct pstk__row *rows,
                       struct pstk_error *err)
{
    sampler->plan = pstk__plan_of_size(sampler->first, key->size_index);
    struct work work = {
        .s = sampler, .record = record, .key = key, .rows = rows, .shard = shard, .err = err};
    const struct pstk__plan *plan = sampler->plan;
    for (uint32_t i = 0; i < plan->n_outputs; i++)
        if (rows[i].crop && !plan->outputs[i].has_pixels)
            *rows[i].crop = (struct pstk_crop){0};
    int rc = write_fields(&work, 0, plan->n_leading, err);
    if (rc == 0) {
        write_boxes(&work);
        rc = write_fields(&work, plan->n_leading, plan->n_fields, err);
    }
    if (rc < 0 && err) {
        err->sample_id = key->sample_id;
        err->epoch = key->epoch;
        err->position = key->position;
    }
    return rc;
}
