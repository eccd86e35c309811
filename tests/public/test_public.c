/* SPDX-License-Identifier: Apache-2.0 */
/*
 * public: what a program sees that has the shared library and the public headers, and nothing else.
 * Calls every function, except those of ops.h (test_ops.c)
 * and those that need no data set (test_public_values.c), once where it works and once where it
 * refuses (scripts/check-symbols sees to it that none is forgotten), and pins down the numbers of
 * the ABI.
 */
#include "support/merging.h"
#include "support/test.h"

#include <ftw.h>
#include <unistd.h>

#include <penstock/foreign.h>
#include <penstock/format.h>
#include <penstock/penstock.h>

#define N_SAMPLES 23u
#define SIDE 6u /* pixels of the images, both ways */

/* A PNG of one red pixel, as Pillow writes it. */
static const uint8_t red_png[] = {
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48,
    0x44, 0x52, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x01, 0x08, 0x02, 0x00, 0x00,
    0x00, 0x90, 0x77, 0x53, 0xde, 0x00, 0x00, 0x00, 0x0c, 0x49, 0x44, 0x41, 0x54, 0x78,
    0x9c, 0x63, 0xf8, 0xcf, 0xc0, 0x00, 0x00, 0x03, 0x01, 0x01, 0x00, 0xc9, 0xfe, 0x92,
    0xef, 0x00, 0x00, 0x00, 0x00, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82,
};

static char folder[64]; /* folder of this run; removed at the end */
static char data_path[96];

static struct pstk_error new_error(void)
{
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    return err;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

/* ---- format.h ------------------------------------------------------------------------------- */

static const struct pstk_field fields[] = {
    {.name = "img", .kind = PSTK_FIELD_IMAGE},
    {.name = "cls", .kind = PSTK_FIELD_SCALAR, .dtype = PSTK_I64},
    {.name = "vec", .kind = PSTK_FIELD_NDARRAY, .dtype = PSTK_F32, .n_dims = 1, .shape = {3}},
    {.name = "text", .kind = PSTK_FIELD_UTF8, .codec = PSTK_CODEC_ZSTD},
};
enum { FIELD_IMG, FIELD_CLS, FIELD_VEC, FIELD_TEXT, N_FIELDS };

static int open_writer(struct pstk_writer **writer, const char *path, uint32_t part,
                       uint32_t n_parts, struct pstk_error *err)
{
    static const char *const names[] = {"cat", "dog"};
    struct pstk_writer_settings s;
    pstk_writer_settings_init(&s, sizeof s);
    s.path = path;
    s.fields = fields;
    s.n_fields = N_FIELDS;
    s.part = part;
    s.n_parts = n_parts;
    s.names = names;
    s.n_names = 2;
    return pstk_writer_open(writer, &s, err);
}

/* Records first .. end - 1: the pixels, the class and the text all tell the record's number. */
static int add_records(struct pstk_writer *writer, uint32_t first, uint32_t end,
                       struct pstk_error *err)
{
    for (uint32_t i = first; i < end; i++) {
        uint8_t pixels[SIDE * SIDE * 3];
        memset(pixels, (int)i, sizeof pixels);
        int64_t class = i % 2;
        float vector[3] = {(float)i, 0.5f, -1};
        char text[64];
        int length = snprintf(text, sizeof text, "record number %u", i);
        const struct pstk_value values[N_FIELDS] = {
            {pixels, sizeof pixels}, {&class, 8}, {vector, 12}, {text, (uint64_t)length}};
        const struct pstk_pixels rgb = {.size = sizeof rgb,
                                        .field = FIELD_IMG,
                                        .height = SIDE,
                                        .width = SIDE,
                                        .channels = 3,
                                        .bit_depth = 8};
        int result = pstk_writer_add_pixels(writer, values, N_FIELDS, &rgb, 1, err);
        if (result < 0)
            return result;
    }
    return 0;
}

static int write_data(const char *path, uint32_t part, uint32_t n_parts, uint32_t first,
                      uint32_t end, struct pstk_error *err)
{
    struct pstk_writer *writer;
    int result = open_writer(&writer, path, part, n_parts, err);
    if (result < 0)
        return result;
    result = add_records(writer, first, end, err);
    if (result < 0) {
        pstk_writer_abort(&writer);
        return result;
    }
    return pstk_writer_commit(&writer, err);
}

static void print_error(const struct pstk_error *err)
{
    printf("# %s: %s\n", pstk_error_name(err->code), err->message);
}

TEST(a_data_set_is_written_and_exists_only_after_commit)
{
    struct pstk_error err = new_error();
    struct pstk_writer *writer = NULL;
    int result = open_writer(&writer, data_path, 0, 0, &err);
    if (result < 0)
        print_error(&err);
    CHECK_EQ(result, 0);
    CHECK_EQ(add_records(writer, 0, N_SAMPLES, &err), 0);
    CHECK_EQ(pstk_writer_n_samples(writer), N_SAMPLES);
    CHECK_EQ(pstk_writer_n_remade(writer), 0);
    CHECK_EQ(pstk_writer_n_leftovers(writer), 0);
    struct pstk_dataset *early = NULL;
    CHECK_EQ(pstk_dataset_open(&early, data_path, NULL, &err), PSTK_ENOENT);
    CHECK(!early);
    CHECK_EQ(pstk_writer_commit(&writer, &err), 0);
    CHECK(!writer);
    CHECK_EQ(open_writer(&writer, data_path, 0, 0, &err), PSTK_EEXIST);
    CHECK(!writer);
}

TEST(a_record_that_is_no_image_is_refused_and_the_next_is_taken)
{
    char path[128];
    snprintf(path, sizeof path, "%s/png", folder);
    struct pstk_error err = new_error();
    struct pstk_writer *writer = NULL;
    CHECK_EQ(open_writer(&writer, path, 0, 0, &err), 0);
    int64_t class = 0;
    float vector[3] = {0};
    struct pstk_value values[N_FIELDS] = {{"no image", 8}, {&class, 8}, {vector, 12}, {"", 0}};
    CHECK_EQ(pstk_writer_add(writer, values, N_FIELDS, &err), PSTK_EBADMSG);
    values[FIELD_IMG] = (struct pstk_value){red_png, sizeof red_png};
    CHECK_EQ(pstk_writer_add(writer, values, N_FIELDS, &err), 0);
    CHECK_EQ(pstk_writer_n_samples(writer), 1);
    pstk_writer_abort(&writer);
    CHECK(!writer);
    pstk_writer_abort(&writer);
    struct pstk_dataset *dataset = NULL;
    CHECK_EQ(pstk_dataset_open(&dataset, path, NULL, &err), PSTK_ENOENT);
}

TEST(an_image_is_checked_by_decoding_it)
{
    struct pstk_error err = new_error();
    uint32_t width = 0, height = 0;
    CHECK_EQ(pstk_image_check(red_png, sizeof red_png, 100, &width, &height, &err), 0);
    CHECK(width == 1 && height == 1);
    int packed = 0;
    CHECK_STR(pstk_image_format(red_png, 64, &packed), "PNG");
    CHECK_EQ(packed, 1);
    CHECK_EQ(pstk_image_check(red_png, sizeof red_png - 14, 100, NULL, NULL, &err), PSTK_EBADMSG);
    CHECK_EQ(pstk_image_is_palette(red_png, sizeof red_png), 0);
    uint32_t kept = 0, damaged = 1;
    CHECK_EQ(pstk_image_check_damaged(red_png, sizeof red_png, 0, &damaged, &err), 0);
    CHECK_EQ(damaged, 0);
    const struct pstk_value_info info = {.size = sizeof info,
                                         .encoding = PSTK_ENCODING_PIXELS,
                                         .width = 2,
                                         .height = 1,
                                         .channels = 1,
                                         .bit_depth = 8};
    void *samples = NULL;
    uint32_t dtype = 0;
    CHECK_EQ(pstk_mask_decode("\1\2", 2, &info, &samples, &dtype, &err), 0);
    CHECK(dtype == PSTK_U8 && memcmp(samples, "\1\2", 2) == 0);
    pstk_free(samples);
    CHECK_EQ(pstk_image_passthrough(red_png, sizeof red_png, 0, &kept, &err), 0);
    CHECK_EQ(kept, PSTK_PASSTHROUGH_NOT_JPEG);
    CHECK(err.message[0]);
}

TEST(an_image_becomes_pixels_or_another_jpeg)
{
    struct pstk_error err = new_error();
    struct pstk_convert how = {.size = sizeof how, .shorter_side = 1};
    uint32_t width = 0, height = 0;
    uint64_t size = 0;
    void *out = NULL;
    CHECK_EQ(pstk_image_convert(red_png, sizeof red_png, &how, &out, &size, &width, &height, &err),
             1);
    CHECK(size == 3 && width == 1 && height == 1 && memcmp(out, "\xff\0\0", 3) == 0);
    pstk_free(out);
    how = (struct pstk_convert){.size = sizeof how, .quality = 75};
    CHECK_EQ(pstk_image_convert(red_png, sizeof red_png, &how, &out, &size, NULL, NULL, &err), 1);
    CHECK_EQ(pstk_image_check(out, size, 1, NULL, NULL, &err), 0);
    pstk_free(out);
    how.shorter_side = 1;
    CHECK_EQ(pstk_image_convert(red_png, sizeof red_png, &how, &out, &size, NULL, NULL, &err),
             PSTK_EINVAL);
    CHECK(out == NULL && err.message[0]);
}

TEST(a_data_set_gives_its_schema_and_its_records)
{
    struct pstk_error err = new_error();
    struct pstk_dataset *dataset = NULL;
    struct pstk_foreign foreign = {.size = sizeof foreign};
    CHECK_EQ(pstk_dataset_open(&dataset, data_path, &foreign, &err), PSTK_EINVAL);
    CHECK(dataset == NULL && strstr(err.message, "field_size"));
    CHECK_STR(pstk_find_format(data_path, &err), "pstk");
    CHECK(pstk_find_format("/nonexistent", &err) == NULL && err.code == PSTK_ENOENT);
    foreign.field_size = sizeof(struct pstk_field);
    CHECK_EQ(pstk_dataset_open(&dataset, data_path, &foreign, &err), 0);
    pstk_dataset_close(&dataset);
    CHECK_EQ(pstk_dataset_open(&dataset, data_path, NULL, &err), 0);
    struct pstk_dataset_info info = {.size = sizeof info};
    CHECK_EQ(pstk_dataset_get_info(dataset, &info), 0);
    CHECK_EQ(info.n_samples, N_SAMPLES);
    CHECK_EQ(info.n_fields, N_FIELDS);
    CHECK_EQ(info.format_version, PSTK_FORMAT_VERSION);
    CHECK(info.n_shards >= 1 && info.bytes > 0 && info.identity[0]);
    CHECK_EQ(info.n_names, 2);
    CHECK_STR(pstk_dataset_name(dataset, 1), "dog");
    CHECK(!pstk_dataset_name(dataset, 2));
    struct pstk_field field;
    struct pstk_field_stats stats = {.size = sizeof stats};
    CHECK_EQ(pstk_dataset_get_field(dataset, FIELD_IMG, &field, &stats), 0);
    CHECK_STR(field.name, "img");
    CHECK(stats.max_width == SIDE && stats.max_height == SIDE);
    CHECK_EQ(stats.n_encoding[PSTK_ENCODING_PIXELS], N_SAMPLES);
    CHECK_EQ(pstk_dataset_get_field(dataset, N_FIELDS, &field, NULL), PSTK_EINVAL);

    void *data = NULL;
    uint64_t size = 0;
    struct pstk_value_info value = {.size = sizeof value};
    CHECK_EQ(pstk_dataset_get(dataset, 7, FIELD_TEXT, &data, &size, &value, &err), 0);
    CHECK(size == 15 && memcmp(data, "record number 7", 15) == 0);
    CHECK_EQ(value.encoding, PSTK_ENCODING_NONE);
    CHECK(value.width == 0 && value.height == 0 && value.stored_size > 0);
    CHECK(value.channels == 0 && value.bit_depth == 0 && value.has_palette == 0);
    pstk_free(data);
    data = NULL;
    CHECK_EQ(pstk_dataset_get(dataset, 7, FIELD_IMG, &data, &size, &value, &err), 0);
    CHECK_EQ(value.encoding, PSTK_ENCODING_PIXELS);
    CHECK(value.width == SIDE && value.height == SIDE && size == 3 * SIDE * SIDE);
    CHECK(value.channels == 3 && value.bit_depth == 8 && value.has_palette == 0);
    pstk_free(data);
    pstk_free(NULL);
    CHECK(pstk_dataset_get(dataset, N_SAMPLES, FIELD_IMG, &data, &size, NULL, &err) < 0);
    struct pstk_value_info looked = {.size = sizeof looked};
    CHECK_EQ(pstk_dataset_look(dataset, 7, FIELD_IMG, &looked, &err), 0);
    CHECK(memcmp(&looked, &value, sizeof looked) == 0);
    CHECK_EQ(pstk_dataset_check(dataset, NULL, NULL, &err), 0);
    pstk_dataset_close(&dataset);
    CHECK(!dataset);
    pstk_dataset_close(&dataset);
}

TEST(a_subset_has_its_samples_and_a_digest)
{
    struct pstk_error err = new_error();
    struct pstk_dataset *dataset = NULL;
    struct pstk_members *members = NULL;
    uint64_t ids[3], digest[2] = {0, 0}, other[2];
    struct pstk_subset range = {.size = sizeof range, .kind = PSTK_SUBSET_RANGE, .last = 3};
    struct pstk_subset fraction = {.size = sizeof fraction,
                                   .kind = PSTK_SUBSET_FRACTION,
                                   .last = PSTK_SUBSET_WHOLE / 2,
                                   .seed = 1,
                                   .next = &range};
    CHECK_EQ(pstk_dataset_open(&dataset, data_path, NULL, &err), 0);
    CHECK_EQ(pstk_members_open(&members, dataset, &fraction, &err), 0);
    CHECK_EQ(pstk_members_n(members), 3);
    CHECK_EQ(pstk_members_n(NULL), 0);
    CHECK_EQ(pstk_members_ids(members, 0, 3, ids), 0);
    CHECK(ids[0] < N_SAMPLES && ids[0] != ids[1] && ids[1] != ids[2] && ids[0] != ids[2]);
    CHECK_EQ(pstk_members_ids(members, 1, 3, ids), PSTK_EINVAL);
    CHECK_EQ(pstk_members_digest(members, digest), 0);
    CHECK_EQ(pstk_members_digest(NULL, digest), PSTK_EINVAL);
    pstk_members_close(&members);
    CHECK(members == NULL);
    fraction.seed = 2;
    CHECK_EQ(pstk_members_open(&members, dataset, &fraction, &err), 0);
    CHECK_EQ(pstk_members_digest(members, other), 0);
    CHECK(memcmp(digest, other, sizeof other) != 0);
    pstk_members_close(&members);
    struct pstk_order_settings s = {.size = sizeof s, .batch_size = 3, .n_samples = 3, .world = 1};
    struct pstk_subset weighted = {
        .size = sizeof weighted, .kind = PSTK_SUBSET_BALANCED, .column = "cls", .n_draws = 7};
    int64_t n_rows = 0;
    CHECK_EQ(pstk_members_open(&members, dataset, &range, &err), 0);
    CHECK_EQ(pstk_members_n_draws(members), 3);
    CHECK_EQ(pstk_members_batch(members, &s, 0, ids), 3);
    CHECK(ids[0] + ids[1] + ids[2] == 3);
    CHECK_EQ(pstk_members_batch(members, &s, 3, ids), 0);
    s.n_samples = 4;
    CHECK_EQ(pstk_members_batch(members, &s, 0, ids), PSTK_EINVAL);
    pstk_members_close(&members);
    range.next = &weighted;
    CHECK_EQ(pstk_members_open(&members, dataset, &range, &err), 0);
    CHECK(pstk_members_n(members) == 3 && pstk_members_n_draws(members) == 7);
    CHECK_EQ(pstk_members_n_draws(NULL), 0);
    s.n_samples = 7;
    s.last_batch = PSTK_LAST_SHORT;
    for (uint64_t position = 0; position < 7; position += 3)
        n_rows += pstk_members_batch(members, &s, position, ids);
    CHECK_EQ(n_rows, 7);
    CHECK(ids[0] < 3);
    s.order = PSTK_ORDER_SEQUENTIAL;
    CHECK_EQ(pstk_members_batch(members, &s, 0, ids), PSTK_EINVAL);
    pstk_members_close(&members);
    range.next = NULL;
    range.last = N_SAMPLES;
    CHECK_EQ(pstk_members_open(&members, dataset, &fraction, &err), PSTK_EINVAL);
    CHECK(members == NULL);
    pstk_dataset_close(&dataset);
}

TEST(columns_are_added_read_and_removed)
{
    struct pstk_error err = new_error();
    struct pstk_dataset *dataset = NULL;
    double weights[N_SAMPLES];
    int64_t classes[4];
    float read[2];
    for (uint32_t i = 0; i < N_SAMPLES; i++)
        weights[i] = i / 8.0;
    const struct pstk_new_column column = {.size = sizeof column,
                                           .dtype = PSTK_F64,
                                           .name = "weight",
                                           .values = weights,
                                           .n = N_SAMPLES};
    CHECK_EQ(pstk_column_add(data_path, &column, NULL, NULL, &err), 0);
    CHECK_EQ(pstk_column_add(data_path, &column, NULL, NULL, &err), PSTK_EEXIST);
    CHECK_EQ(pstk_dataset_open(&dataset, data_path, NULL, &err), 0);
    struct pstk_column_info info = {.size = sizeof info};
    const uint32_t n = pstk_dataset_n_columns(dataset);
    CHECK_EQ(pstk_dataset_get_column_info(dataset, n - 1, &info), 0);
    CHECK_EQ(info.dtype, PSTK_F64);
    CHECK_STR(info.name, "weight");
    CHECK_EQ(pstk_dataset_get_column_info(dataset, n, &info), PSTK_EINVAL);
    CHECK_EQ(pstk_dataset_read_column(dataset, "cls", 5, 4, classes, sizeof classes, &err), 0);
    CHECK_EQ(pstk_dataset_read_column(dataset, "weight", 0, 2, read, sizeof read, &err),
             PSTK_EINVAL);
    CHECK_EQ(pstk_dataset_read_column(dataset, "weight", 1, 1, read, sizeof read, &err), 0);
    CHECK(memcmp(read, &weights[1], sizeof weights[1]) == 0);
    pstk_dataset_close(&dataset);
    CHECK_EQ(pstk_column_remove(data_path, "weight", &err), 0);
    CHECK_EQ(pstk_column_remove(data_path, "weight", &err), PSTK_ENOENT);
}

static int stop_at_once(void *user, uint64_t n_done, uint64_t n_total)
{
    (void)user;
    (void)n_done;
    (void)n_total;
    return 1;
}

TEST(parts_are_merged_to_the_data_set_of_a_single_pack)
{
    char parts[2][128], merged[128];
    struct pstk_error err = new_error();
    for (uint32_t i = 0; i < 2; i++) {
        snprintf(parts[i], sizeof parts[i], "%s/part%u", folder, i);
        CHECK_EQ(write_data(parts[i], i, 2, i ? 11 : 0, i ? N_SAMPLES : 11, &err), 0);
    }
    snprintf(merged, sizeof merged, "%s/merged", folder);
    const char *paths[] = {parts[0], parts[1]};
    int result = merge_parts(paths, 2, merged, 0, &err);
    if (result < 0)
        print_error(&err);
    CHECK_EQ(result, 0);
    CHECK_EQ(merge_watched(paths, 2, merged, 1, stop_at_once, NULL, &err), PSTK_ECANCELED);
    const struct pstk_merge_settings settings = {
        .size = sizeof settings, .parts = paths, .n_parts = 2, .out = merged, .pack_id = "7"};
    CHECK_EQ(pstk_merge(&settings, &err), PSTK_EINVAL);
    struct pstk_writer *writer = NULL;
    CHECK_EQ(pstk_writer_commit_parts(&writer, paths, 2, &err), PSTK_EINVAL);
    struct pstk_dataset_info infos[2];
    const char *both[] = {data_path, merged};
    for (int i = 0; i < 2; i++) {
        struct pstk_dataset *dataset = NULL;
        CHECK_EQ(pstk_dataset_open(&dataset, both[i], NULL, &err), 0);
        infos[i] = (struct pstk_dataset_info){.size = sizeof infos[i]};
        CHECK_EQ(pstk_dataset_get_info(dataset, &infos[i]), 0);
        pstk_dataset_close(&dataset);
    }
    CHECK_EQ(infos[1].n_samples, N_SAMPLES);
    CHECK_STR(infos[1].identity, infos[0].identity);
}

static int count_bad(void *user, const struct pstk_error *bad)
{
    (void)bad;
    ++*(int *)user;
    return 0;
}

static int no_progress(void *user, uint64_t n_done, uint64_t n_total)
{
    (void)user;
    return n_done > n_total;
}

TEST(a_whole_data_set_verifies)
{
    struct pstk_error err = new_error();
    int n_bad = 0;
    CHECK_EQ(pstk_verify(data_path, 1, 2, count_bad, no_progress, &n_bad, &err), 0);
    CHECK_EQ(n_bad, 0);
    CHECK_EQ(pstk_verify(folder, 1, 1, NULL, NULL, NULL, &err), PSTK_ENOENT);
    CHECK(err.message[0]);
    struct pstk_verify_settings s = {.size = sizeof s, .path = data_path, .decode = 1};
    CHECK_EQ(pstk_verify_data(&s, &err), 0);
    s.size = 0;
    CHECK_EQ(pstk_verify_data(&s, &err), PSTK_EINVAL);
}

/* ---- penstock.h ----------------------------------------------------------------------------- */

/* A callback's row: the first byte of the pixels, and the random bits. */
static int decode(void *user, const struct pstk_sample *sample, void *row, uint64_t row_size)
{
    const uint8_t *pixels = sample->data;
    if (user != data_path || sample->scratch_size < 16 || row_size != 2 * sizeof(uint64_t))
        return PSTK_EBADMSG;
    const uint64_t values[2] = {pixels[sample->data_size - 1], sample->random[0]};
    memcpy(row, values, sizeof values);
    return 0;
}

static struct pstk_op ops[2];
static struct pstk_output outputs[5];
enum { OUT_IMAGE, OUT_CLS, OUT_VEC, OUT_TEXT, OUT_OWN, N_OUTPUTS };

static struct pstk_settings new_settings(void)
{
    ops[0] = pstk_random_resized_crop(4, 4);
    ops[1] = pstk_random_flip(0.5);
    outputs[OUT_IMAGE] = pstk_output_image("img", ops, 2, PSTK_U8, PSTK_NHWC);
    outputs[OUT_IMAGE].name = "image";
    outputs[OUT_CLS] = pstk_output_scalar("cls", PSTK_I64);
    outputs[OUT_VEC] = pstk_output_tensor("vec", 0);
    outputs[OUT_TEXT] = pstk_output_bytes("text");
    outputs[OUT_OWN] = pstk_output_callback("img", PSTK_U64, decode, data_path);
    outputs[OUT_OWN].name = "own";
    outputs[OUT_OWN].callback.n_dims = 1;
    outputs[OUT_OWN].callback.shape[0] = 2;
    outputs[OUT_OWN].callback.scratch_size = 16;
    struct pstk_settings s;
    pstk_settings_init(&s, sizeof s);
    s.path = data_path;
    s.batch_size = 4;
    s.outputs = outputs;
    s.n_outputs = N_OUTPUTS;
    s.last_batch = PSTK_LAST_SHORT;
    s.seed = 5;
    s.observe.report_crops = 1;
    return s;
}

/* All of an output but its kind and field is 0: it equals one with these alone. */
static int is_plain(struct pstk_output o, uint32_t kind, uint32_t dtype)
{
    const struct pstk_output expected = {.field = o.field, .kind = kind, .dtype = dtype};
    return strcmp(o.field, "f") == 0 && memcmp(&o, &expected, sizeof o) == 0;
}

TEST(constructors_fill_what_they_are_given_and_leave_the_rest_0)
{
    CHECK(is_plain(pstk_output_scalar("f", PSTK_I32), PSTK_OUTPUT_SCALAR, PSTK_I32));
    CHECK(is_plain(pstk_output_tensor("f", PSTK_F64), PSTK_OUTPUT_TENSOR, PSTK_F64));
    CHECK(is_plain(pstk_output_bytes("f"), PSTK_OUTPUT_BYTES, 0));
    CHECK(is_plain(pstk_output_ragged("f"), PSTK_OUTPUT_RAGGED, 0));
    CHECK(is_plain(pstk_output_boxes("f"), PSTK_OUTPUT_BOXES, 0));
    CHECK(is_plain(pstk_output_per_box("f"), PSTK_OUTPUT_PER_BOX, 0));
    CHECK(is_plain(pstk_output_keypoints("f"), PSTK_OUTPUT_KEYPOINTS, 0));
    CHECK(is_plain(pstk_output_polygons("f"), PSTK_OUTPUT_POLYGONS, 0));
    struct pstk_output o = pstk_output_mask("f", 255, PSTK_U16);
    CHECK(o.follow.fill == 255);
    o.follow.fill = 0;
    CHECK(is_plain(o, PSTK_OUTPUT_MASK, PSTK_U16));
    o = pstk_output_image("f", ops, 2, PSTK_F16, PSTK_NCHW);
    CHECK(o.image.ops == ops && o.image.n_ops == 2 && o.image.layout == PSTK_NCHW);
    o.image.ops = NULL;
    o.image.n_ops = o.image.layout = 0;
    CHECK(is_plain(o, PSTK_OUTPUT_IMAGE, PSTK_F16));
    o = pstk_output_callback("f", PSTK_U8, decode, data_path);
    CHECK(o.callback.decode == decode && o.callback.user == data_path);
    o.callback.decode = NULL;
    o.callback.user = NULL;
    CHECK(is_plain(o, PSTK_OUTPUT_CALLBACK, PSTK_U8));
}

/* Row `row` of a batch holds sample `id` in all its tensors. */
static int row_is_sample(const struct pstk_batch *batch, uint32_t row, uint64_t id)
{
    const struct pstk_tensor *t = batch->tensors;
    const uint8_t *image = (const uint8_t *)t[OUT_IMAGE].data + 48 * row;
    const int64_t *class = t[OUT_CLS].data;
    const float *vector = t[OUT_VEC].data;
    const uint64_t *own = t[OUT_OWN].data;
    char text[64];
    int length = snprintf(text, sizeof text, "record number %u", (unsigned)id);
    const int64_t *offsets = t[OUT_TEXT].offsets;
    int same_text =
        offsets[row + 1] - offsets[row] == length &&
        memcmp((const char *)t[OUT_TEXT].data + offsets[row], text, (size_t)length) == 0;
    return image[0] == id && image[47] == id && class[row] == (int64_t)(id % 2) &&
           vector[3 * row] == (float)id && own[2 * row] == id && same_text;
}

TEST(a_schedule_whose_first_batches_are_too_large_is_refused)
{
    const struct pstk_batch_step step = {.from = 2, .rows = 5};
    struct pstk_order_settings order = {.size = sizeof order,
                                        .epoch = 1,
                                        .n_samples = 10,
                                        .batch_size = 20,
                                        .world = 1,
                                        .n_batch_steps = 1,
                                        .batch_schedule = &step};
    struct pstk_order_explanation said = {.size = sizeof said};
    uint64_t ids[20];
    CHECK_EQ(pstk_order_n_batches(&order, 0), 0);
    CHECK_EQ(pstk_order_rows(&order, 0), 0);
    CHECK_EQ(pstk_order_batch(&order, 0, ids), PSTK_EINVAL);
    CHECK_EQ(pstk_order_explain(&order, &said), PSTK_EINVAL);
    order.n_samples = 0;
    CHECK(pstk_order_explain(&order, &said) == 0 && said.n_batches == 0);
    order.n_samples = 10;
    order.last_batch = PSTK_LAST_SHORT;
    CHECK_EQ(pstk_order_n_batches(&order, 0), 1);
}

TEST(the_loader_delivers_each_sample_once_in_the_order_computed_beforehand)
{
    struct pstk_error err = new_error();
    struct pstk_settings s = new_settings();
    struct pstk_loader *loader = NULL;
    int result = pstk_open(&loader, &s, &err);
    if (result < 0)
        print_error(&err);
    CHECK_EQ(result, 0);
    CHECK_EQ(pstk_n_samples(loader), N_SAMPLES);
    CHECK_EQ(pstk_n_batches(loader), 6);
    const struct pstk_order_settings order = {.size = sizeof order,
                                              .n_samples = N_SAMPLES,
                                              .seed = 5,
                                              .batch_size = 4,
                                              .world = 1,
                                              .last_batch = PSTK_LAST_SHORT};
    CHECK_EQ(pstk_order_n_batches(&order, 0), 6);
    CHECK_EQ(pstk_order_rows(&order, 0), 4);
    uint32_t n_seen = 0, seen = 0;
    struct pstk_batch *batch = NULL;
    while ((result = pstk_next(loader, &batch, NULL, -1, &err)) == 1) {
        uint64_t ids[4];
        CHECK_EQ(pstk_order_batch(&order, batch->position, ids), batch->n_valid);
        CHECK_EQ(batch->n_tensors, N_OUTPUTS);
        CHECK(batch->crops && batch->n_replacements == 0);
        for (uint32_t i = 0; i < batch->n_valid; i++, n_seen++) {
            CHECK_EQ(batch->sample_ids[i], ids[i]);
            CHECK(batch->replacement_ids[i] == PSTK_NONE);
            CHECK(row_is_sample(batch, i, ids[i]));
            seen |= 1u << ids[i];
        }
        pstk_release(&batch, NULL);
        CHECK(!batch);
    }
    if (result < 0)
        print_error(&err);
    CHECK_EQ(result, 0);
    CHECK_EQ(n_seen, N_SAMPLES);
    CHECK_EQ(seen, (1u << N_SAMPLES) - 1);
    struct pstk_stats stats = {.size = sizeof stats};
    CHECK_EQ(pstk_get_stats(loader, &stats), 0);
    CHECK_EQ(pstk_trace_write(loader, "/dev/null", NULL), PSTK_EINVAL); /* it keeps no trace */
    struct pstk_metrics metrics = {.size = sizeof metrics};
    CHECK_EQ(pstk_get_metrics(loader, PSTK_WINDOW_OPEN, &metrics), 0);
    CHECK_EQ(metrics.n_batches, stats.n_batches);
    CHECK(stats.cpu_ns > 0);
    const struct pstk_forecast_settings change = {.size = sizeof change, .n_threads = 4};
    struct pstk_forecast forecast = {.size = sizeof forecast};
    CHECK_EQ(pstk_predict(&stats, &change, &forecast), 0);
    CHECK(forecast.limit == PSTK_BOTTLENECK_UNKNOWN || forecast.samples_per_second > 0);
    CHECK_EQ(pstk_find_bottleneck(&stats), stats.bottleneck);
    CHECK_EQ(pstk_find_bottleneck(NULL), PSTK_BOTTLENECK_UNKNOWN);
    struct pstk_status status = {.size = sizeof status};
    CHECK_EQ(pstk_status_ask("/nonexistent/status", 0, &status, NULL, NULL, NULL), PSTK_ENOENT);
    CHECK_EQ(stats.n_samples, N_SAMPLES);
    CHECK(stats.n_batches == 6 && stats.n_threads >= 1 && stats.n_slots >= 2);
    CHECK(stats.reader == PSTK_READER_IO_URING || stats.reader == PSTK_READER_THREADS);
    pstk_close(&loader);
    CHECK(!loader);
    pstk_close(&loader);
}

TEST(seek_and_cursor_are_inverse_and_a_batch_outlives_its_loader)
{
    struct pstk_error err = new_error();
    struct pstk_settings s = new_settings();
    struct pstk_loader *loader = NULL;
    CHECK_EQ(pstk_open(&loader, &s, &err), 0);
    CHECK_EQ(pstk_seek(loader, 3, 8, &err), 0);
    uint64_t epoch = 0, position = 0;
    CHECK_EQ(pstk_get_cursor(loader, &epoch, &position), 0);
    CHECK(epoch == 3 && position == 8);
    struct pstk_batch *batch = NULL;
    CHECK_EQ(pstk_next(loader, &batch, NULL, -1, &err), 1);
    CHECK(batch->epoch == 3 && batch->position == 8 && batch->next_position == 12);
    CHECK_EQ(batch->index, 2);
    CHECK_EQ(pstk_set_batch_size(loader, 2, &err), 0);
    struct pstk_batch *other = NULL;
    CHECK_EQ(pstk_next(loader, &other, NULL, -1, &err), 1);
    CHECK(other->position == 12 && other->next_position == 14 && other->n_rows == 2);
    pstk_release(&other, NULL);
    pstk_close(&loader);
    CHECK(row_is_sample(batch, 0, batch->sample_ids[0]));
    pstk_release(&batch, NULL);
    pstk_release(&batch, NULL);
}

TEST(a_mixture_delivers_its_shares)
{
    const struct pstk_mixture_segment segment = {.weights = (const double[]){1}};
    struct pstk_mixture mixture;
    pstk_mixture_init(&mixture, sizeof mixture);
    mixture.n_data_sets = mixture.n_segments = 1;
    mixture.paths = (const char *const[]){data_path};
    mixture.segments = &segment;
    const struct pstk_subset range = {
        .size = sizeof range, .kind = PSTK_SUBSET_RANGE, .first = 2, .last = N_SAMPLES - 1};
    mixture.subsets = (const struct pstk_subset *const[]){&range};
    struct pstk_error err = new_error();
    struct pstk_settings s = new_settings();
    s.path = NULL;
    s.mixture = &mixture;
    struct pstk_loader *loader;
    struct pstk_batch *batch;
    CHECK_EQ(pstk_open(&loader, &s, &err), 0);
    CHECK_EQ(pstk_next(loader, &batch, NULL, -1, &err), 1);
    struct pstk_mixture_stats stats = {.size = sizeof stats};
    CHECK_EQ(pstk_mixture_get_stats(loader, 0, &stats), 0);
    CHECK(stats.n_samples == N_SAMPLES - 3 && stats.n_delivered == batch->n_valid);
    for (uint32_t i = 0; i < batch->n_valid; i++)
        CHECK(batch->sample_ids[i] >= 2 && batch->sample_ids[i] < N_SAMPLES - 1);
    CHECK_EQ(pstk_mixture_get_stats(loader, 1, &stats), PSTK_EINVAL);
    pstk_release(&batch, NULL);
    pstk_close(&loader);
    mixture.size = offsetof(struct pstk_mixture, subsets); /* its size in an earlier version */
    CHECK_EQ(pstk_open(&loader, &s, &err), 0);
    CHECK_EQ(pstk_mixture_get_stats(loader, 0, &stats), 0);
    CHECK_EQ(stats.n_samples, N_SAMPLES);
    pstk_close(&loader);
    mixture.size--;
    CHECK_EQ(pstk_open(&loader, &s, &err), PSTK_EINVAL);
}

TEST(a_budget_gives_batches_of_equal_cost)
{
    uint32_t costs[N_SAMPLES];
    struct pstk_budget budget = {
        .size = sizeof budget, .total = 6, .costs = costs, .n_costs = N_SAMPLES};
    struct pstk_error err = new_error();
    struct pstk_settings s = new_settings();
    struct pstk_loader *loader;
    struct pstk_batch *batch;
    uint64_t digest[2], n_rows = 0, n_batches = 0;
    for (uint32_t i = 0; i < N_SAMPLES; i++)
        costs[i] = 2;
    CHECK_EQ(pstk_budget_digest(&budget, digest), 0);
    CHECK_EQ(pstk_budget_digest(NULL, digest), PSTK_EINVAL);
    s.batch_size = 1;
    s.budget = &budget;
    CHECK_EQ(pstk_open(&loader, &s, &err), 0);
    CHECK_EQ(pstk_max_rows(loader), 3);
    CHECK_EQ(pstk_max_rows(NULL), 0);
    CHECK_EQ(pstk_n_batches_left(loader, 5, 3), (N_SAMPLES + 2) / 3 - 1);
    CHECK_EQ(pstk_n_batches_left(NULL, 5, 3), 0);
    for (; pstk_next(loader, &batch, NULL, -1, &err) == 1; n_batches++) {
        CHECK(batch->n_rows == batch->n_valid && batch->n_rows <= 3);
        CHECK(row_is_sample(batch, 0, batch->sample_ids[0]));
        n_rows += batch->n_valid;
        pstk_release(&batch, NULL);
    }
    CHECK(n_rows == N_SAMPLES && n_batches == pstk_n_batches(loader));
    pstk_close(&loader);
    budget.total = 1;
    CHECK_EQ(pstk_open(&loader, &s, &err), PSTK_EINVAL);
}

TEST(interrupt_ends_the_next_wait)
{
    struct pstk_error err = new_error();
    struct pstk_settings s = new_settings();
    struct pstk_loader *loader = NULL;
    CHECK_EQ(pstk_open(&loader, &s, &err), 0);
    pstk_interrupt(loader);
    struct pstk_batch *batch = NULL;
    int result = 0;
    /* A batch that is ready comes without a wait; a consumer that does no work waits at last. */
    for (int i = 0; i < 1000000 && result >= 0; i++) {
        result = pstk_next(loader, &batch, NULL, -1, &err);
        pstk_release(&batch, NULL);
    }
    CHECK_EQ(result, PSTK_EINTR);
    pstk_close(&loader);
}

TEST(the_wrong_setting_is_named)
{
    struct pstk_error err = new_error();
    struct pstk_settings s = new_settings();
    struct pstk_loader *loader = NULL;
    s.batch_size = 0;
    CHECK_EQ(pstk_open(&loader, &s, &err), PSTK_EINVAL);
    CHECK(!loader && strstr(err.message, "batch_size"));
    s = new_settings();
    s.path = folder;
    CHECK_EQ(pstk_open(&loader, &s, &err), PSTK_ENOENT);
    CHECK(strstr(err.message, folder));
    CHECK_EQ(pstk_open(&loader, NULL, &err), PSTK_EINVAL);
    CHECK_EQ(pstk_next(NULL, NULL, NULL, 0, &err), PSTK_EINVAL);
}

TEST(the_machine_is_described_and_its_ceilings_are_measured)
{
    struct pstk_error err = new_error();
    struct pstk_machine machine = {.size = sizeof machine};
    CHECK_EQ(pstk_get_machine(folder, &machine, &err), 0);
    CHECK(machine.n_cores >= 1 && machine.n_usable >= 1 && machine.memory > 0);
    CHECK(machine.kernel[0] && machine.kernels >= PSTK_KERNELS_C);
    struct pstk_settings s = new_settings();
    struct pstk_ceilings ceilings = {.size = sizeof ceilings};
    int result = pstk_measure_ceilings(&s, 1.0, &ceilings, &err);
    if (result < 0)
        print_error(&err);
    CHECK_EQ(result, 0);
    CHECK(ceilings.memory_bytes_per_second > 0 || ceilings.storage_bytes_per_second > 0);
}

/* The unversioned structs of https://dmlc.github.io/dlpack. */
struct dl_managed {
    void *data;
    int32_t device_type, device_id, n_dims;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides;
    uint64_t byte_offset;
    void *manager;
    void (*deleter)(struct dl_managed *self);
};

TEST(a_shared_batch_lives_until_its_last_tensor_is_gone)
{
    struct pstk_error err = new_error();
    struct pstk_settings s = new_settings();
    struct pstk_loader *loader = NULL;
    struct pstk_batch *batch = NULL, *other = NULL;
    struct pstk_share *share = NULL;
    struct DLManagedTensor *views[2] = {NULL};
    s.memory.n_slots = 2;
    CHECK_EQ(pstk_open(&loader, &s, &err), 0);
    CHECK_EQ(pstk_next(loader, &batch, NULL, -1, &err), 1);
    CHECK_EQ(pstk_share_open(NULL, &batch, NULL, &err), PSTK_EINVAL);
    CHECK(!pstk_capsule_share(&batch, NULL, &err)); /* there is no Python in this process */
    CHECK_EQ(err.code, PSTK_ENOTSUP);
    CHECK_EQ(pstk_share_open(&share, &batch, NULL, &err), 0);
    CHECK(batch == NULL);
    CHECK_EQ(pstk_share_open(&share, &batch, NULL, &err), PSTK_EINVAL);
    const struct pstk_batch *held = pstk_share_batch(share);
    CHECK(!pstk_capsule_tensor(share, 0, &err));
    CHECK_EQ(err.code, PSTK_ENOTSUP);
    CHECK_EQ(pstk_share_tensor(share, 0, &views[0], &err), 0);
    CHECK_EQ(pstk_share_tensor(share, held->n_tensors, &views[1], &err), PSTK_EINVAL);
    CHECK(views[1] == NULL);
    CHECK_EQ(pstk_share_tensor(share, 0, &views[1], &err), 0);
    struct dl_managed *view = (struct dl_managed *)(void *)views[0];
    const struct pstk_tensor *t = &held->tensors[0];
    CHECK(view->data == t->data && view->device_type == 1 && view->device_id == 0);
    CHECK_EQ(view->n_dims, t->n_dims);
    CHECK_EQ(view->bits, 8 * pstk_dtype_size(t->dtype));
    CHECK_EQ(view->shape[0], held->n_rows);
    CHECK_EQ(view->strides[t->n_dims - 1], 1);
    struct pstk_share *again = share;
    pstk_share_ref(again);
    CHECK_EQ(pstk_share_use(again, NULL, &err), 0); /* on the host there are no streams */
    pstk_share_unref(&share);
    CHECK(share == NULL);
    CHECK_EQ(pstk_next(loader, &other, NULL, -1, &err), 1);
    CHECK_EQ(pstk_next(loader, &batch, NULL, -1, &err), PSTK_ENOBUFS);
    pstk_release(&other, NULL);
    pstk_close(&loader);
    CHECK(row_is_sample(held, 0, held->sample_ids[0]));
    view->deleter(view);
    view = (struct dl_managed *)(void *)views[1];
    view->deleter(view);
    pstk_share_unref(&again);
    pstk_share_unref(&again);
    pstk_share_unref(NULL);
}

TEST(the_hosts_streams_are_the_caller)
{
    struct pstk_error err = new_error();
    struct pstk_settings s = new_settings();
    struct pstk_loader *loader = NULL;
    struct pstk_batch *batch = NULL;
    void *stream = &err;
    uint8_t first = 0, one = 1;
    CHECK_EQ(pstk_open(&loader, &s, &err), 0);
    CHECK_EQ(pstk_stream_open(loader, &stream, &err), 0);
    CHECK_EQ(pstk_stream_open(loader, NULL, &err), PSTK_EINVAL);
    CHECK_EQ(pstk_stream_open(NULL, &stream, &err), PSTK_EINVAL);
    CHECK_EQ(pstk_stream_spin(loader, stream, 1000, &err), 0);
    CHECK_EQ(pstk_next(loader, &batch, stream, -1, &err), 1);
    CHECK_EQ(pstk_batch_wait(batch, stream, &err), 0);
    CHECK_EQ(pstk_batch_use_stream(batch, stream, &err), 0);
    CHECK_EQ(pstk_batch_wait(NULL, stream, &err), PSTK_EINVAL);
    CHECK_EQ(pstk_batch_read(batch, 0, &one, 1, stream, &err), 0);
    memcpy(&first, batch->tensors[0].data, 1);
    CHECK_EQ(one, first);
    CHECK_EQ(pstk_batch_read(batch, batch->n_tensors, &one, 1, stream, &err), PSTK_EINVAL);
    pstk_release(&batch, stream);
    pstk_stream_close(loader, &stream);
    CHECK(stream == NULL);
    pstk_close(&loader);
}

TEST(a_machine_without_a_gpu_says_so)
{
    struct pstk_error err = new_error();
    struct pstk_machine machine = {.size = sizeof machine};
    struct pstk_device device = {.size = sizeof device};
    struct pstk_copy_rates rates = {.size = sizeof rates};
    struct pstk_settings s = new_settings();
    struct pstk_loader *loader = NULL;
    CHECK_EQ(pstk_get_device(99, 0, &device, &err), PSTK_EINVAL);
    CHECK_EQ(pstk_measure_copies(99, 0, 1 << 20, 0.1, &rates, &err), PSTK_EINVAL);
    CHECK_EQ(pstk_get_machine(NULL, &machine, &err), 0);
    if (machine.n_cuda_devices > 0)
        SKIP("there is a GPU here");
    s.device.kind = PSTK_CUDA;
    CHECK_EQ(pstk_open(&loader, &s, &err), PSTK_ENOTSUP);
    CHECK(loader == NULL && strstr(err.message, "CUDA"));
    CHECK_EQ(pstk_get_device(PSTK_CUDA, 0, &device, &err), PSTK_ENOTSUP);
    CHECK_EQ(pstk_measure_copies(PSTK_CUDA, 0, 1 << 20, 0.1, &rates, &err), PSTK_ENOTSUP);
}

int main(void)
{
    const char *parent = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%.40s/penstock-XXXXXX", parent ? parent : "/tmp");
    if (!mkdtemp(folder)) {
        printf("Bail out! no temporary folder %s\n", folder);
        return 1;
    }
    snprintf(data_path, sizeof data_path, "%s/data", folder);
    const struct test_case cases[] = {
        CASE(a_data_set_is_written_and_exists_only_after_commit),
        CASE(a_record_that_is_no_image_is_refused_and_the_next_is_taken),
        CASE(an_image_is_checked_by_decoding_it),
        CASE(an_image_becomes_pixels_or_another_jpeg),
        CASE(a_data_set_gives_its_schema_and_its_records),
        CASE(a_subset_has_its_samples_and_a_digest),
        CASE(columns_are_added_read_and_removed),
        CASE(parts_are_merged_to_the_data_set_of_a_single_pack),
        CASE(a_whole_data_set_verifies),
        CASE(constructors_fill_what_they_are_given_and_leave_the_rest_0),
        CASE(a_schedule_whose_first_batches_are_too_large_is_refused),
        CASE(the_loader_delivers_each_sample_once_in_the_order_computed_beforehand),
        CASE(seek_and_cursor_are_inverse_and_a_batch_outlives_its_loader),
        CASE(a_mixture_delivers_its_shares),
        CASE(a_budget_gives_batches_of_equal_cost),
        CASE(interrupt_ends_the_next_wait),
        CASE(the_wrong_setting_is_named),
        CASE(the_machine_is_described_and_its_ceilings_are_measured),
        CASE(a_shared_batch_lives_until_its_last_tensor_is_gone),
        CASE(the_hosts_streams_are_the_caller),
        CASE(a_machine_without_a_gpu_says_so),
    };
    int failed = RUN_CASES(cases);
    nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return failed;
}
