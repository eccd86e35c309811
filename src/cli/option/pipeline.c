/* SPDX-License-Identifier: Apache-2.0 */
#include "option/pipeline.h"

#include <inttypes.h>
#include <string.h>

#include "option/ignored.h"
#include "option/opening.h"
#include "option/role.h"
#include "ui/interrupt.h"
#include "ui/message.h"
#include "ui/status.h"

#define DEFAULT_BATCH 64
#define MAX_BATCH (1 << 24)
#define MAX_SIDE 16384 /* pixels */

const struct choice pipeline_crops[] = {
    {"random", CROP_RANDOM}, {"center", CROP_CENTER}, {"none", CROP_NONE}, {NULL, 0}};
/* The dtypes that images can have. */
const struct choice pipeline_dtypes[] = {
    CHOICE(PSTK_U8), CHOICE(PSTK_F16), CHOICE(PSTK_BF16), CHOICE(PSTK_F32), {NULL, 0}};

void pipeline_init(struct pipeline *pipeline)
{
    memset(pipeline, 0, sizeof *pipeline);
    pipeline->size = 224;
    pipeline->flip = -1;
    pipeline->dtype = PSTK_U8;
}

void pipeline_free(struct pipeline *pipeline)
{
    pstk_members_close(&pipeline->members);
    subset_close(&pipeline->subset);
    mixture_close(&pipeline->mixture);
}

static int set_image(struct pipeline *pipeline, int code, const char *value)
{
    switch (code) {
    case OPT_SIZE:
        return option_count32("--size", value, (struct range){1, MAX_SIDE}, &pipeline->size);
    case OPT_CROP:
        return option_choice("--crop", value, pipeline_crops, &pipeline->crop);
    case OPT_FLIP:
        return option_real("--flip", value, 0, 1, &pipeline->flip);
    case OPT_DTYPE:
        return option_choice("--dtype", value, pipeline_dtypes, &pipeline->dtype);
    default:
        return option_choice("--layout", value, names_layout, &pipeline->layout);
    }
}

static int set_order(struct pipeline *pipeline, int code, const char *value)
{
    const struct range any = {0, UINT64_MAX};
    switch (code) {
    case OPT_SEED:
        return option_count("--seed", value, any, &pipeline->seed);
    case OPT_EPOCH:
        return option_count("--epoch", value, any, &pipeline->epoch);
    case OPT_BATCH_SIZE:
        return option_count32("--batch-size", value, (struct range){1, MAX_BATCH},
                              &pipeline->batch_size);
    case OPT_GLOBAL_BATCH_SIZE:
        return option_count32("--global-batch-size", value, (struct range){1, UINT32_MAX},
                              &pipeline->global_batch_size);
    case OPT_UNEVEN:
        pipeline->uneven = 1;
        return 0;
    case OPT_START_BATCH:
        return option_count("--start-batch", value, any, &pipeline->start_batch);
    case OPT_ORDER:
        return option_choice("--order", value, names_order, &pipeline->order);
    case OPT_WAYS:
        return option_count32("--ways", value, (struct range){1, PSTK_MAX_WAYS}, &pipeline->ways);
    case OPT_BLOCK:
        return option_count32("--block", value, (struct range){1, PSTK_MAX_BLOCK},
                              &pipeline->block);
    case OPT_WINDOW:
        return option_count32("--window", value, (struct range){1, PSTK_MAX_WINDOW},
                              &pipeline->window);
    case OPT_SUBSET:
        return subset_add(&pipeline->subset, value);
    case OPT_WEIGHTS:
        return subset_draw(&pipeline->subset, PSTK_SUBSET_WEIGHTED, value);
    case OPT_BALANCED:
        return subset_draw(&pipeline->subset, PSTK_SUBSET_BALANCED, value);
    case OPT_MIXTURE:
        return mixture_add(&pipeline->mixture, value);
    case OPT_DRAWS:
        return option_count("--samples-per-epoch", value, (struct range){1, (uint64_t)1 << 62},
                            &pipeline->subset.weights.n_draws);
    case OPT_RANK:
        return ranks_set_rank(&pipeline->ranks, value);
    case OPT_WORLD:
        return ranks_set_world(&pipeline->ranks, value);
    default:
        return option_choice("--last", value, names_last_batch, &pipeline->last);
    }
}

/* Read KIND, or KIND:INDEX for a kind with several devices. */
static int set_device(struct pipeline *pipeline, const char *value)
{
    const size_t length = strcspn(value, ":");
    char kind[16];
    uint32_t index = 0;
    if (length >= sizeof kind || !value[length])
        return option_choice("--device", value, names_device_kind, &pipeline->device);
    memcpy(kind, value, length);
    kind[length] = 0;
    if (option_choice("--device", kind, names_device_kind, &pipeline->device) < 0)
        return -1;
    if (pipeline->device == PSTK_HOST) {
        message_say("--device: value is '%s'; must be host, which takes no number, or cuda:N",
                    value);
        return -1;
    }
    if (option_count32("--device cuda:N", value + length + 1, (struct range){0, INT32_MAX},
                       &index) < 0)
        return -1;
    pipeline->device_index = (int32_t)index;
    return 0;
}

int pipeline_set(struct pipeline *pipeline, int code, const char *value)
{
    switch (code) {
    case OPT_SIZE:
    case OPT_CROP:
    case OPT_FLIP:
    case OPT_DTYPE:
    case OPT_LAYOUT:
        return set_image(pipeline, code, value);
    case OPT_N_THREADS:
        return option_count32("--threads", value, (struct range){0, 4096}, &pipeline->n_threads);
    case OPT_SLOTS:
        return option_count32("--slots", value, (struct range){0, 65536}, &pipeline->n_slots);
    case OPT_READER:
        return option_choice("--reader", value, names_reader_kind, &pipeline->reader);
    case OPT_IO:
        return option_choice("--io", value, names_io, &pipeline->io);
    case OPT_DEVICE:
        return set_device(pipeline, value);
    case OPT_KERNELS:
        return option_choice("--kernels", value, names_kernels, &pipeline->kernels);
    FIELDS_CASES:
        return fields_take(&pipeline->read_as, code, value);
    case OPT_ON_BAD:
        return option_choice("--on-bad", value, names_bad_sample, &pipeline->bad_sample);
    default:
        return set_order(pipeline, code, value);
    }
}

int pipeline_find(const struct pipeline *pipeline, uint32_t role, const char *of)
{
    return role_find(pipeline->fields, pipeline->info.n_fields, role, of);
}

/* Find the samples of an epoch. Returns 0 or an exit status. */
static int find_samples(struct pipeline *pipeline, struct pstk_dataset *dataset)
{
    const struct pstk_subset *subset = subset_first(&pipeline->subset);
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    if (pipeline->subset.weights.n_draws && !subset_draws(&pipeline->subset))
        return message_usage("--samples-per-epoch: applies to --weights and --balanced only");
    if (subset_draws(&pipeline->subset) && pipeline->order != PSTK_ORDER_FULL)
        return message_usage("--order: value is %s; must be full with --%s, which draws samples at "
                             "random",
                             option_choice_name(names_order, pipeline->order),
                             subset_draws(&pipeline->subset));
    pipeline->n_samples = pipeline->info.n_samples;
    if (!subset || pipeline->n_samples == 0)
        return 0;
    if (pstk_members_open(&pipeline->members, dataset, subset, &err) < 0)
        return status_refuse(&err, pipeline->path);
    pipeline->n_samples = pstk_members_n_draws(pipeline->members);
    return 0;
}

static int look(struct pipeline *pipeline, struct pstk_dataset *dataset)
{
    pipeline->info.size = sizeof pipeline->info;
    int r = pstk_dataset_get_info(dataset, &pipeline->info);
    if (r == 0 && pipeline->info.n_fields > PSTK_MAX_FIELDS)
        r = PSTK_ENOTSUP;
    for (uint32_t i = 0; r == 0 && i < pipeline->info.n_fields; i++)
        r = pstk_dataset_get_field(dataset, i, &pipeline->fields[i], NULL);
    if (r < 0) {
        message_say("%s: %s", pipeline->path, pstk_strerror(r));
        return status_of_code(r);
    }
    pipeline->image_field = pipeline_find(pipeline, PSTK_ROLE_IMAGE, NULL);
    return find_samples(pipeline, dataset);
}

uint64_t pipeline_global_batch(const struct pipeline *pipeline)
{
    return pipeline->global_batch_size ? pipeline->global_batch_size
                                       : (uint64_t)pipeline->batch_size * pipeline->world;
}

/* Set the rows of this rank's batches. Returns 0 or an exit status. */
static int divide_batch(struct pipeline *pipeline)
{
    const uint32_t global = pipeline->global_batch_size, world = pipeline->world;
    if (!global && pipeline->uneven)
        return message_usage("--uneven: applies to --global-batch-size only");
    if (!global && !pipeline->batch_size) {
        uint64_t fits = pipeline->n_samples / world;
        pipeline->batch_size = fits >= DEFAULT_BATCH ? DEFAULT_BATCH : fits ? (uint32_t)fits : 1;
    }
    if (!global)
        return 0;
    if (pipeline->batch_size)
        return message_usage("--global-batch-size: cannot be given together with --batch-size");
    if (global < world)
        return message_usage("--global-batch-size: value is %u; must be at least --world, %u",
                             global, world);
    if (global % world && !pipeline->uneven)
        return message_usage("--global-batch-size: value is %u; must be a multiple of --world, %u, "
                             "as %u is; or give --uneven",
                             global, world, global - global % world);
    pipeline->batch_size = global / world + (global % world != 0);
    return 0;
}

/* Choose ways, block and window where the options do not. Returns 0 or an exit status. */
static int settle_order(struct pipeline *pipeline)
{
    const char *given = pipeline->ways     ? "ways"
                        : pipeline->block  ? "block"
                        : pipeline->window ? "window"
                                           : NULL;
    struct pstk_order_settings order = pipeline_order(pipeline);
    if (given && pipeline->order != PSTK_ORDER_WINDOWED)
        return message_usage("--%s: applies to --order windowed only", given);
    const int r = pstk_order_settle(&order);
    if (r < 0) {
        message_say("--order: %s", pstk_strerror(r));
        return status_of_code(r);
    }
    pipeline->ways = order.ways;
    pipeline->block = order.block;
    pipeline->window = order.window;
    return 0;
}

static int look_at_path(struct pipeline *pipeline)
{
    struct pstk_dataset *dataset;
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    if (opening_dataset_as(&dataset, pipeline->path, &pipeline->read_as, &err) < 0)
        return status_refuse(&err, pipeline->path);
    const int status = look(pipeline, dataset);
    pstk_dataset_close(&dataset);
    return status;
}

static int look_at_mixture(struct pipeline *pipeline)
{
    if (pipeline->subset.n || subset_draws(&pipeline->subset))
        return message_usage("--%s: cannot be given together with --mixture",
                             pipeline->subset.n ? "subset" : subset_draws(&pipeline->subset));
    if (pipeline->order == PSTK_ORDER_WINDOWED)
        return message_usage("--order: value is windowed; must be full or sequential with "
                             "--mixture");
    const int status =
        mixture_look(&pipeline->mixture, &pipeline->info, pipeline->fields, &pipeline->read_as);
    pipeline->path = pipeline->mixture.name;
    pipeline->n_samples = pipeline->info.n_samples;
    pipeline->image_field = pipeline_find(pipeline, PSTK_ROLE_IMAGE, NULL);
    return status;
}

void pipeline_say_left_out(const struct pipeline *pipeline)
{
    ignored_say_files(&pipeline->info, pipeline->path);
}

int pipeline_look(struct pipeline *pipeline, const char *path)
{
    pipeline->path = path;
    int status = path ? look_at_path(pipeline) : look_at_mixture(pipeline);
    if (status)
        return status;
    if (pipeline->info.n_samples == 0)
        return message_usage("%s has no samples", pipeline->path);
    status = ranks_settle(&pipeline->ranks);
    pipeline->rank = pipeline->ranks.found.rank;
    pipeline->world = pipeline->ranks.found.world;
    if (status == 0)
        status = divide_batch(pipeline);
    if (status == 0)
        status = settle_order(pipeline);
    if (status)
        return status;
    if (__builtin_mul_overflow(pipeline_global_batch(pipeline), pipeline->start_batch,
                               &pipeline->position))
        return message_usage("--start-batch: value is %llu; must be a batch of the epoch",
                             (unsigned long long)pipeline->start_batch);
    return 0;
}

int pipeline_say_too_few(const struct pipeline *pipeline)
{
    return message_usage("%s has %" PRIu64 " samples, too few for one batch of %u on %u rank%s; "
                         "take a smaller --%sbatch-size, or --last short",
                         pipeline->path ? pipeline->path : "the mixture", pipeline->n_samples,
                         pipeline->batch_size, pipeline->world, pipeline->world == 1 ? "" : "s",
                         pipeline->global_batch_size ? "global-" : "");
}

struct pstk_order_settings pipeline_order(const struct pipeline *pipeline)
{
    return (struct pstk_order_settings){.size = sizeof(struct pstk_order_settings),
                                        .order = pipeline->order,
                                        .n_samples = pipeline->n_samples,
                                        .seed = pipeline->seed,
                                        .epoch = pipeline->epoch,
                                        .batch_size =
                                            pipeline->global_batch_size ? 0 : pipeline->batch_size,
                                        .rank = pipeline->rank,
                                        .world = pipeline->world,
                                        .last_batch = pipeline->last,
                                        .global_batch_size = pipeline->global_batch_size,
                                        .ways = pipeline->ways,
                                        .block = pipeline->block,
                                        .window = pipeline->window};
}

int64_t pipeline_batch(const struct pipeline *pipeline, const struct pstk_order_settings *s,
                       uint64_t position, uint64_t *ids)
{
    return pipeline->members ? pstk_members_batch(pipeline->members, s, position, ids)
                             : pstk_order_batch(s, position, ids);
}

static uint32_t build_ops(struct pipeline *pipeline)
{
    uint32_t n = 0;
    double flip = pipeline->flip < 0 ? (pipeline->crop == CROP_RANDOM ? 0.5 : 0) : pipeline->flip;
    if (pipeline->crop == CROP_RANDOM) {
        pipeline->ops[n++] = pstk_random_resized_crop(pipeline->size, pipeline->size);
    } else if (pipeline->crop == CROP_CENTER) {
        /* round(size * 256 / 224); * 8 / 7 is never a half */
        pipeline->ops[n++] = pstk_resize_shorter((pipeline->size * 16 + 7) / 14);
        pipeline->ops[n++] = pstk_center_crop(pipeline->size, pipeline->size);
    } else {
        pipeline->ops[n++] = pstk_resize(pipeline->size, pipeline->size);
    }
    if (flip > 0)
        pipeline->ops[n++] = pstk_random_flip(flip);
    if (pipeline->dtype != PSTK_U8)
        pipeline->ops[n++] = pstk_normalize(PSTK_IMAGENET_MEAN, PSTK_IMAGENET_STD);
    return n;
}

/* Return an output that passes a field through unchanged. */
static struct pstk_output plain_output(const struct pstk_field *field)
{
    struct pstk_output o = {.field = field->name, .kind = PSTK_OUTPUT_BYTES};
    if (field->kind == PSTK_FIELD_SCALAR) {
        o.kind = PSTK_OUTPUT_SCALAR;
    } else if (field->kind == PSTK_FIELD_NDARRAY) {
        uint32_t n_fixed = 0;
        for (uint32_t i = 0; i < field->n_dims; i++)
            n_fixed += field->shape[i] != 0;
        if (n_fixed == field->n_dims)
            o.kind = PSTK_OUTPUT_TENSOR;
        else if (n_fixed + 1 == field->n_dims && field->shape[0] == 0)
            o.kind = PSTK_OUTPUT_RAGGED;
    }
    return o;
}

static void build_outputs(struct pipeline *pipeline, int image_only)
{
    if (pipeline->image_field < 0) {
        for (uint32_t i = 0; i < pipeline->info.n_fields; i++)
            pipeline->outputs[pipeline->n_outputs++] = plain_output(&pipeline->fields[i]);
        return;
    }
    pipeline->outputs[pipeline->n_outputs++] =
        (struct pstk_output){.name = "image",
                             .field = pipeline->fields[pipeline->image_field].name,
                             .kind = PSTK_OUTPUT_IMAGE,
                             .dtype = pipeline->dtype,
                             .image.layout = pipeline->layout,
                             .image.ops = pipeline->ops,
                             .image.n_ops = build_ops(pipeline)};
    const int label = image_only ? -1 : pipeline_find(pipeline, PSTK_ROLE_LABEL, NULL);
    if (label >= 0) {
        pipeline->outputs[pipeline->n_outputs] = plain_output(&pipeline->fields[label]);
        pipeline->outputs[pipeline->n_outputs++].name = "label";
    }
}

int pipeline_build(struct pipeline *pipeline, int image_only)
{
    struct pstk_settings *s = &pipeline->settings;
    if (image_only && pipeline->image_field < 0)
        return message_usage("%s has no field of images to show", pipeline->path);
    build_outputs(pipeline, image_only);
    pstk_settings_init(s, sizeof *s);
    opening_init(&pipeline->opening);
    fields_apply(&pipeline->read_as, &pipeline->opening.foreign);
    s->foreign = &pipeline->opening.foreign;
    s->path = pipeline->mixture.n ? NULL : pipeline->path;
    s->mixture = pipeline->mixture.n ? mixture_settings(&pipeline->mixture) : NULL;
    s->batch_size = pipeline->global_batch_size ? 1 : pipeline->batch_size;
    s->global_batch_size = pipeline->global_batch_size;
    s->order.uneven = (uint32_t)pipeline->uneven;
    s->outputs = pipeline->outputs;
    s->n_outputs = pipeline->n_outputs;
    s->order.kind = pipeline->order;
    s->order.ways = pipeline->ways;
    s->order.block = pipeline->block;
    s->order.window = pipeline->window;
    s->seed = pipeline->seed;
    s->order.epoch = pipeline->epoch;
    s->order.position = pipeline->position;
    pstk_use_ranks(&pipeline->ranks.found, s);
    s->last_batch = pipeline->last;
    s->n_threads = pipeline->n_threads;
    s->memory.n_slots = pipeline->n_slots;
    s->reading.reader = pipeline->reader;
    s->reading.kernels = pipeline->kernels;
    s->reading.io = pipeline->io;
    s->device.kind = pipeline->device;
    s->device.index = pipeline->device_index;
    s->bad_sample = pipeline->bad_sample;
    if (pipeline->members) {
        pipeline->step = (struct pstk_subset){.size = sizeof pipeline->step,
                                              .kind = PSTK_SUBSET_MEMBERS,
                                              .members = pipeline->members};
        s->subset = &pipeline->step;
    }
    return 0;
}

int pipeline_open(const struct pipeline *pipeline, struct pstk_loader **out)
{
    struct pstk_error err;
    struct pstk_device device = {.size = sizeof device};
    pstk_error_init(&err, sizeof err);
    if (pstk_get_device(pipeline->device, pipeline->device_index, &device, &err) < 0)
        return status_refuse(&err, NULL); /* the path is not at fault */
    interrupt_block();                    /* the loader's threads must not run our handler */
    int r = pstk_open(out, &pipeline->settings, &err);
    if (r == 0)
        interrupt_attach(*out);
    interrupt_unblock();
    fields_explain(&pipeline->read_as, &err);
    return r < 0 ? status_refuse(&err, pipeline->path) : 0;
}

void pipeline_close(struct pstk_loader **loader)
{
    interrupt_attach(NULL);
    pstk_close(loader);
}
