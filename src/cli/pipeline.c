/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline.h"

#include <string.h>

#include "interrupt.h"
#include "message.h"

#define DEFAULT_BATCH 64
#define MAX_BATCH (1 << 24)
#define MAX_WORLD (1 << 24)
#define MAX_SIDE 16384 /* pixels */

const struct choice pipeline_crops[] = {
    {"random", CROP_RANDOM}, {"center", CROP_CENTER}, {"none", CROP_NONE}, {NULL, 0}};
const struct choice pipeline_dtypes[] = {
    {"u8", PSTK_U8}, {"f16", PSTK_F16}, {"bf16", PSTK_BF16}, {"f32", PSTK_F32}, {NULL, 0}};
const struct choice pipeline_layouts[] = {{"nhwc", PSTK_NHWC}, {"nchw", PSTK_NCHW}, {NULL, 0}};
const struct choice pipeline_orders[] = {
    {"full", PSTK_ORDER_FULL}, {"sequential", PSTK_ORDER_SEQUENTIAL}, {NULL, 0}};
const struct choice pipeline_lasts[] = {
    {"drop", PSTK_LAST_DROP}, {"pad", PSTK_LAST_PAD}, {"short", PSTK_LAST_SHORT}, {NULL, 0}};
const struct choice pipeline_readers[] = {{"auto", PSTK_READER_AUTO},
                                          {"io_uring", PSTK_READER_IO_URING},
                                          {"threads", PSTK_READER_THREADS},
                                          {NULL, 0}};
const struct choice pipeline_ios[] = {
    {"auto", PSTK_IO_AUTO}, {"direct", PSTK_IO_DIRECT}, {"buffered", PSTK_IO_BUFFERED}, {NULL, 0}};
const struct choice pipeline_variants[] = {{"auto", PSTK_VARIANT_AUTO},
                                           {"c", PSTK_VARIANT_C},
                                           {"avx2", PSTK_VARIANT_AVX2},
                                           {"avx512", PSTK_VARIANT_AVX512},
                                           {NULL, 0}};
static const struct choice devices[] = {{"host", PSTK_HOST}, {"cuda", PSTK_CUDA}, {NULL, 0}};
static const struct choice on_bads[] = {
    {"error", PSTK_BAD_ERROR}, {"substitute", PSTK_BAD_SUBSTITUTE}, {NULL, 0}};

void pipeline_init(struct pipeline *p)
{
    memset(p, 0, sizeof *p);
    p->size = 224;
    p->flip = -1;
    p->dtype = PSTK_U8;
    p->world = 1;
}

static int set_image(struct pipeline *p, int code, const char *value)
{
    switch (code) {
    case OPT_SIZE:
        return option_count32("--size", value, (struct range){1, MAX_SIDE}, &p->size);
    case OPT_CROP:
        return option_choice("--crop", value, pipeline_crops, &p->crop);
    case OPT_FLIP:
        return option_real("--flip", value, 0, 1, &p->flip);
    case OPT_DTYPE:
        return option_choice("--dtype", value, pipeline_dtypes, &p->dtype);
    default:
        return option_choice("--layout", value, pipeline_layouts, &p->layout);
    }
}

static int set_order(struct pipeline *p, int code, const char *value)
{
    const struct range any = {0, UINT64_MAX};
    switch (code) {
    case OPT_SEED:
        return option_count("--seed", value, any, &p->seed);
    case OPT_EPOCH:
        return option_count("--epoch", value, any, &p->epoch);
    case OPT_BATCH_SIZE:
        return option_count32("--batch-size", value, (struct range){1, MAX_BATCH}, &p->batch_size);
    case OPT_START_BATCH:
        return option_count("--start-batch", value, any, &p->start_batch);
    case OPT_ORDER:
        return option_choice("--order", value, pipeline_orders, &p->order);
    case OPT_RANK:
        return option_count32("--rank", value, (struct range){0, MAX_WORLD - 1}, &p->rank);
    case OPT_WORLD:
        return option_count32("--world", value, (struct range){1, MAX_WORLD}, &p->world);
    default:
        return option_choice("--last", value, pipeline_lasts, &p->last);
    }
}

/* KIND, or KIND:INDEX where there can be several. */
static int set_device(struct pipeline *p, const char *value)
{
    const size_t length = strcspn(value, ":");
    char kind[16];
    uint32_t index = 0;
    if (length >= sizeof kind || !value[length])
        return option_choice("--device", value, devices, &p->device);
    memcpy(kind, value, length);
    kind[length] = 0;
    if (option_choice("--device", kind, devices, &p->device) < 0)
        return -1;
    if (p->device == PSTK_HOST) {
        message_say("--device: there is one host; it takes no number");
        return -1;
    }
    if (option_count32("--device cuda:N", value + length + 1, (struct range){0, INT32_MAX},
                       &index) < 0)
        return -1;
    p->device_index = (int32_t)index;
    return 0;
}

int pipeline_set(struct pipeline *p, int code, const char *value)
{
    switch (code) {
    case OPT_SIZE:
    case OPT_CROP:
    case OPT_FLIP:
    case OPT_DTYPE:
    case OPT_LAYOUT:
        return set_image(p, code, value);
    case OPT_N_THREADS:
        return option_count32("--threads", value, (struct range){0, 4096}, &p->n_threads);
    case OPT_SLOTS:
        return option_count32("--slots", value, (struct range){0, 65536}, &p->n_slots);
    case OPT_READER:
        return option_choice("--reader", value, pipeline_readers, &p->reader);
    case OPT_IO:
        return option_choice("--io", value, pipeline_ios, &p->io);
    case OPT_DEVICE:
        return set_device(p, value);
    case OPT_VARIANT:
        return option_choice("--variant", value, pipeline_variants, &p->variant);
    case OPT_ON_BAD:
        return option_choice("--on-bad", value, on_bads, &p->bad_sample);
    default:
        return set_order(p, code, value);
    }
}

/* The image field: `jpg`, or the first one there is. */
static int find_image(const struct pipeline *p)
{
    int found = -1;
    for (int i = (int)p->info.n_fields - 1; i >= 0; i--)
        if (p->fields[i].kind == PSTK_FIELD_IMAGE &&
            (found < 0 || strcmp(p->fields[found].name, "jpg") != 0))
            found = i;
    return found;
}

static int look(struct pipeline *p, struct pstk_dataset *d)
{
    p->info.size = sizeof p->info;
    int r = pstk_dataset_get_info(d, &p->info);
    if (r == 0 && p->info.n_fields > PSTK_MAX_FIELDS)
        r = PSTK_ENOTSUP;
    for (uint32_t i = 0; r == 0 && i < p->info.n_fields; i++)
        r = pstk_dataset_get_field(d, i, &p->fields[i], NULL);
    if (r < 0) {
        message_say("%s: %s", p->path, pstk_strerror(r));
        return message_status(r);
    }
    p->image_field = find_image(p);
    return 0;
}

int pipeline_look(struct pipeline *p, const char *path)
{
    struct pstk_dataset *d;
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    p->path = path;
    if (pstk_dataset_open(&d, path, &err) < 0)
        return message_refuse(&err, path);
    int status = look(p, d);
    pstk_dataset_close(&d);
    if (status)
        return status;
    if (p->info.n_samples == 0)
        return message_usage("%s has no samples", path);
    if (p->rank >= p->world)
        return message_usage("--rank %u is not below --world %u: ranks count from 0", p->rank,
                             p->world);
    if (p->batch_size == 0) {
        uint64_t fits = p->info.n_samples / p->world;
        p->batch_size = fits >= DEFAULT_BATCH ? DEFAULT_BATCH : fits ? (uint32_t)fits : 1;
    }
    /* batch_size * world <= 2^48 */
    uint64_t global = (uint64_t)p->batch_size * p->world;
    if (__builtin_mul_overflow(global, p->start_batch, &p->position))
        return message_usage("--start-batch %llu is past the end of the epoch",
                             (unsigned long long)p->start_batch);
    return 0;
}

struct pstk_order_settings pipeline_order(const struct pipeline *p)
{
    return (struct pstk_order_settings){.size = sizeof(struct pstk_order_settings),
                                        .order = p->order,
                                        .n_samples = p->info.n_samples,
                                        .seed = p->seed,
                                        .epoch = p->epoch,
                                        .batch_size = p->batch_size,
                                        .rank = p->rank,
                                        .world = p->world,
                                        .last = p->last};
}

static uint32_t build_ops(struct pipeline *p)
{
    uint32_t n = 0;
    double flip = p->flip < 0 ? (p->crop == CROP_RANDOM ? 0.5 : 0) : p->flip;
    if (p->crop == CROP_RANDOM) {
        p->ops[n++] = pstk_random_resized_crop(p->size, p->size);
    } else if (p->crop == CROP_CENTER) {
        /* round(size * 256 / 224); * 8 / 7 never ends in one half */
        p->ops[n++] = pstk_resize_shorter((p->size * 16 + 7) / 14);
        p->ops[n++] = pstk_center_crop(p->size, p->size);
    } else {
        p->ops[n++] = pstk_resize(p->size, p->size);
    }
    if (flip > 0)
        p->ops[n++] = pstk_random_flip(flip);
    if (p->dtype != PSTK_U8)
        p->ops[n++] = pstk_normalize(PSTK_IMAGENET_MEAN, PSTK_IMAGENET_STD);
    return n;
}

/* Pass a field through as it is. */
static struct pstk_output plain_output(const struct pstk_field *f)
{
    struct pstk_output o = {.field = f->name, .kind = PSTK_OUTPUT_BYTES};
    if (f->kind == PSTK_FIELD_SCALAR) {
        o.kind = PSTK_OUTPUT_SCALAR;
    } else if (f->kind == PSTK_FIELD_NDARRAY) {
        uint32_t n_fixed = 0;
        for (uint32_t i = 0; i < f->n_dims; i++)
            n_fixed += f->shape[i] != 0;
        if (n_fixed == f->n_dims)
            o.kind = PSTK_OUTPUT_TENSOR;
        else if (n_fixed + 1 == f->n_dims && f->shape[0] == 0)
            o.kind = PSTK_OUTPUT_RAGGED;
    }
    return o;
}

static void build_outputs(struct pipeline *p, int image_only)
{
    if (p->image_field < 0) {
        for (uint32_t i = 0; i < p->info.n_fields; i++)
            p->outputs[p->n_outputs++] = plain_output(&p->fields[i]);
        return;
    }
    p->outputs[p->n_outputs++] = (struct pstk_output){.name = "image",
                                                      .field = p->fields[p->image_field].name,
                                                      .kind = PSTK_OUTPUT_IMAGE,
                                                      .dtype = p->dtype,
                                                      .layout = p->layout,
                                                      .ops = p->ops,
                                                      .n_ops = build_ops(p)};
    for (uint32_t i = 0; i < p->info.n_fields && !image_only; i++) {
        const struct pstk_field *f = &p->fields[i];
        if (f->kind == PSTK_FIELD_SCALAR && strcmp(f->name, "cls") == 0) {
            p->outputs[p->n_outputs] = plain_output(f);
            p->outputs[p->n_outputs++].name = "label";
        }
    }
}

int pipeline_build(struct pipeline *p, int image_only)
{
    struct pstk_settings *s = &p->settings;
    if (image_only && p->image_field < 0)
        return message_usage("%s has no field of images to show", p->path);
    build_outputs(p, image_only);
    pstk_settings_init(s, sizeof *s);
    s->path = p->path;
    s->batch_size = p->batch_size;
    s->outputs = p->outputs;
    s->n_outputs = p->n_outputs;
    s->order = p->order;
    s->seed = p->seed;
    s->epoch = p->epoch;
    s->position = p->position;
    s->rank = p->rank;
    s->world = p->world;
    s->last = p->last;
    s->n_threads = p->n_threads;
    s->n_slots = p->n_slots;
    s->reader = p->reader;
    s->variant = p->variant;
    s->io = p->io;
    s->device = p->device;
    s->device_index = p->device_index;
    s->bad_sample = p->bad_sample;
    return 0;
}

int pipeline_open(const struct pipeline *p, struct pstk_loader **out)
{
    struct pstk_error err;
    struct pstk_device device = {.size = sizeof device};
    pstk_error_init(&err, sizeof err);
    if (pstk_get_device(p->device, p->device_index, &device, &err) < 0)
        return message_refuse(&err, NULL); /* the path is not to blame */
    interrupt_block();                     /* the loader's threads must not run our handler */
    int r = pstk_open(out, &p->settings, &err);
    if (r == 0)
        interrupt_attach(*out);
    interrupt_unblock();
    return r < 0 ? message_refuse(&err, p->path) : 0;
}

void pipeline_close(struct pstk_loader **loader)
{
    interrupt_attach(NULL);
    pstk_close(loader);
}
