/* SPDX-License-Identifier: Apache-2.0 */
/* Damaged JPEGs in a data set: how they are packed, counted, merged, verified and loaded. */
#include "support/fixture.h"
#include "support/jpeg_writer.h"
#include "support/merging.h"

#include <penstock/penstock.h>

#define WIDTH 75
#define HEIGHT 61
#define N_SAMPLES 4

static uint8_t *whole, *damaged, *cut; /* owned; the same image */
static size_t size;

/* A marker in the middle of the scan: libjpeg fills up what is missing. */
static int make_files(void)
{
    const struct jpeg_spec spec = {
        .width = WIDTH, .height = HEIGHT, .n_components = 3, .h = 2, .v = 2, .interleaved = 1};
    uint32_t is_damaged = 0;
    whole = jpeg_write(&spec, &size);
    damaged = malloc(size);
    cut = malloc(size);
    if (!damaged || !cut)
        return -1;
    memcpy(damaged, whole, size);
    memcpy(damaged + size / 2, "\xff\xd3", 2);
    memcpy(cut, whole, size);
    memset(cut + size / 2, 0xff, size - size / 2);
    pstk_image_check_damaged(damaged, size, 0, &is_damaged, NULL);
    return is_damaged ? 0 : -1;
}

static const uint32_t codecs[] = {PSTK_CODEC_NONE, PSTK_CODEC_ZSTD, PSTK_CODEC_PLANES};

/* Records of one image, number 1 and 2 damaged. */
static int pack(const char *path, uint32_t codec, uint32_t part, uint32_t n_parts)
{
    const struct pstk_field field = {.name = "img", .kind = PSTK_FIELD_IMAGE, .codec = codec};
    struct pstk_writer_settings s;
    struct pstk_writer *w;
    pstk_writer_settings_init(&s, sizeof s);
    s.path = path;
    s.fields = &field;
    s.n_fields = 1;
    s.part = part;
    s.n_parts = n_parts;
    s.n_threads = 2;
    int r = pstk_writer_open(&w, &s, NULL);
    for (int i = 0; r == 0 && i < N_SAMPLES; i++) {
        const struct pstk_value v = {i == 1 || i == 2 ? damaged : whole, size, PSTK_DAMAGED_ACCEPT,
                                     0};
        r = pstk_writer_add(w, &v, 1, NULL);
    }
    return r == 0 ? pstk_writer_commit(&w, NULL) : r;
}

static uint64_t n_damaged_of(const char *path)
{
    struct pstk_dataset *d;
    struct pstk_field_stats stats = {.size = sizeof stats};
    if (pstk_dataset_open(&d, path, NULL, NULL) < 0)
        return UINT64_MAX;
    pstk_dataset_get_field(d, 0, NULL, &stats);
    pstk_dataset_close(&d);
    return stats.n_damaged;
}

TEST(a_damaged_file_is_kept_as_it_came_and_marked_whatever_the_codec)
{
    for (size_t i = 0; i < sizeof codecs / sizeof codecs[0]; i++) {
        struct fixture f;
        struct pstk_dataset *d;
        fixture_open(&f);
        CHECK_EQ(pack(f.dir, codecs[i], 0, 1), 0);
        CHECK_EQ(n_damaged_of(f.dir), 2);
        CHECK_EQ(pstk_dataset_open(&d, f.dir, NULL, &f.err), 0);
        for (uint64_t id = 0; id < N_SAMPLES; id++) {
            struct pstk_value_info info = {.size = sizeof info};
            const int is_damaged = id == 1 || id == 2;
            void *data;
            uint64_t n;
            CHECK_EQ(pstk_dataset_get(d, id, 0, &data, &n, &info, &f.err), 0);
            CHECK(n == size && memcmp(data, is_damaged ? damaged : whole, size) == 0);
            CHECK_EQ(info.damaged, is_damaged);
            CHECK(!is_damaged || info.codec == PSTK_CODEC_NONE);
            pstk_free(data);
        }
        pstk_dataset_close(&d);
        CHECK_EQ(pstk_verify(f.dir, 1, 2, NULL, NULL, NULL, &f.err), 0);
        fixture_close(&f);
    }
}

static uint32_t last_reason;
static void note_passthrough(void *user, uint64_t sample_id, uint32_t field, uint32_t reason)
{
    (void)user, (void)sample_id, (void)field;
    last_reason = reason;
}

/* Add one value to a writer of planes, and commit. Returns what add returned. */
static int add_one(struct fixture *f, const void *data, uint32_t how, uint32_t reserved)
{
    const struct pstk_field field = {
        .name = "img", .kind = PSTK_FIELD_IMAGE, .codec = PSTK_CODEC_PLANES};
    const struct pstk_value v = {data, size, how, reserved};
    struct pstk_writer_settings s;
    struct pstk_writer *w;
    pstk_writer_settings_init(&s, sizeof s);
    s.path = f->dir;
    s.fields = &field;
    s.n_fields = 1;
    s.overwrite = 1;
    s.on_passthrough = note_passthrough;
    last_reason = 0;
    if (pstk_writer_open(&w, &s, &f->err) < 0)
        return 1;
    const int r = pstk_writer_add(w, &v, 1, &f->err);
    if (r == 0 && pstk_writer_commit(&w, &f->err) < 0)
        return 1;
    pstk_writer_abort(&w);
    return r;
}

TEST(a_writer_decodes_only_what_may_be_damaged)
{
    struct fixture f;
    fixture_open(&f);
    CHECK_EQ(add_one(&f, damaged, PSTK_DAMAGED_ACCEPT, 0), 0);
    CHECK_EQ(last_reason, PSTK_PASSTHROUGH_DAMAGED);
    CHECK_EQ(n_damaged_of(f.dir), 1);
    CHECK_EQ(add_one(&f, cut, PSTK_DAMAGED_ACCEPT, 0), PSTK_EBADMSG);
    CHECK(strstr(f.err.message, "field img: JPEG: "));
    CHECK_EQ(add_one(&f, whole, PSTK_DAMAGED_ACCEPT, 0), 0);
    CHECK_EQ(n_damaged_of(f.dir), 0);
    CHECK_EQ(add_one(&f, damaged, PSTK_DAMAGED_UNCHECKED, 0), 0); /* verify finds it */
    CHECK_EQ(n_damaged_of(f.dir), 0);
    CHECK_EQ(pstk_verify(f.dir, 0, 1, NULL, NULL, NULL, &f.err), 0);
    CHECK_EQ(pstk_verify(f.dir, 1, 1, NULL, NULL, NULL, &f.err), 1);
    CHECK_EQ(add_one(&f, whole, 2, 0), PSTK_EINVAL);
    CHECK_EQ(add_one(&f, whole, 0, 1), PSTK_EINVAL);
    fixture_close(&f);
}

TEST(merging_adds_the_counts)
{
    struct fixture f;
    fixture_open(&f);
    const char *const parts[] = {fixture_path(&f, "a"), fixture_path(&f, "b")};
    CHECK_EQ(pack(parts[0], PSTK_CODEC_NONE, 0, 2), 0);
    CHECK_EQ(pack(parts[1], PSTK_CODEC_NONE, 1, 2), 0);
    const char *out = fixture_path(&f, "out");
    CHECK_EQ(merge_parts(parts, 2, out, 0, &f.err), 0);
    CHECK_EQ(n_damaged_of(out), 4);
    CHECK_EQ(pstk_verify(out, 1, 1, NULL, NULL, NULL, &f.err), 0);
    fixture_close(&f);
}

TEST(a_count_that_is_wrong_is_found)
{
    struct fixture f;
    fixture_open(&f);
    CHECK_EQ(pack(f.dir, PSTK_CODEC_NONE, 0, 1), 0);
    CHECK_EQ(fixture_edit_manifest(f.dir, "\"damaged\":2", "\"damaged\":3"), 0);
    CHECK_EQ(pstk_verify(f.dir, 0, 1, NULL, NULL, NULL, &f.err), 1);
    CHECK_EQ(fixture_edit_manifest(f.dir, "\"damaged\":3", "\"damaged\":5"), 0);
    CHECK_EQ(pstk_verify(f.dir, 0, 1, NULL, NULL, NULL, &f.err), PSTK_EBADMSG);
    CHECK(strstr(f.err.message, "damaged counts more records"));
    fixture_close(&f);
}

/* Reference pixels as libjpeg decodes the damaged file, whose size is below one piece. */
TEST(a_loader_shows_damaged_files_whole_and_cropped_and_counts_them)
{
    const struct pstk_op all_ops[] = {pstk_center_crop(HEIGHT, WIDTH)};
    const struct pstk_op box_ops[] = {pstk_center_crop(31, 41)}; /* from 15 down, 17 right */
    const struct pstk_output outputs[] = {{.name = "all",
                                           .field = "img",
                                           .kind = PSTK_OUTPUT_IMAGE,
                                           .image.ops = all_ops,
                                           .image.n_ops = 1},
                                          {.name = "box",
                                           .field = "img",
                                           .kind = PSTK_OUTPUT_IMAGE,
                                           .image.ops = box_ops,
                                           .image.n_ops = 1}};
    uint32_t w, h;
    uint8_t *pixels = jpeg_reference(damaged, size, &w, &h);
    struct fixture f;
    struct pstk_settings s;
    struct pstk_loader *loader;
    struct pstk_batch *b;
    struct pstk_stats stats;
    fixture_open(&f);
    CHECK_EQ(pack(f.dir, PSTK_CODEC_PLANES, 0, 1), 0);
    pstk_settings_init(&s, sizeof s);
    s.path = f.dir;
    s.outputs = outputs;
    s.n_outputs = 2;
    s.batch_size = N_SAMPLES;
    s.order.kind = PSTK_ORDER_SEQUENTIAL;
    CHECK_EQ(pstk_open(&loader, &s, &f.err), 0);
    CHECK_EQ(pstk_next(loader, &b, NULL, -1, &f.err), 1);
    CHECK_EQ(b->n_damaged_images, 2);
    const uint8_t *all = (const uint8_t *)b->tensors[0].data + (size_t)w * h * 3;
    const uint8_t *box = (const uint8_t *)b->tensors[1].data + (size_t)41 * 31 * 3;
    CHECK(memcmp(all, pixels, (size_t)w * h * 3) == 0);
    CHECK(memcmp(all - (size_t)w * h * 3, pixels, (size_t)w * h * 3) != 0);
    for (uint32_t y = 0; y < 31; y++)
        CHECK(memcmp(box + y * 41 * 3, pixels + ((size_t)(15 + y) * w + 17) * 3, 41 * 3) == 0);
    pstk_release(&b, NULL);
    stats.size = sizeof stats;
    CHECK_EQ(pstk_get_stats(loader, &stats), 0);
    CHECK_EQ(stats.n_damaged_images, 2);
    pstk_close(&loader);
    free(pixels);
    fixture_close(&f);
}

TEST(a_damaged_file_is_converted_only_if_that_is_asked_for)
{
    struct pstk_convert how = {.size = sizeof how, .shorter_side = 1000};
    struct pstk_error err;
    void *out;
    uint64_t n;
    uint32_t w, h;
    pstk_error_init(&err, sizeof err);
    uint8_t *pixels = jpeg_reference(damaged, size, &w, &h);
    CHECK_EQ(pstk_image_convert(damaged, size, &how, &out, &n, NULL, NULL, &err), PSTK_EBADMSG);
    how.damaged = PSTK_DAMAGED_ACCEPT;
    CHECK_EQ(pstk_image_convert(damaged, size, &how, &out, &n, NULL, NULL, &err), 1);
    CHECK(n == (uint64_t)w * h * 3 && memcmp(out, pixels, n) == 0);
    pstk_free(out);
    CHECK_EQ(pstk_image_convert(cut, size, &how, &out, &n, NULL, NULL, &err), PSTK_EBADMSG);
    how.damaged = 2;
    CHECK_EQ(pstk_image_convert(whole, size, &how, &out, &n, NULL, NULL, &err), PSTK_EINVAL);
    free(pixels);
}

int main(void)
{
    static const struct test_case cases[] = {
        CASE(a_damaged_file_is_kept_as_it_came_and_marked_whatever_the_codec),
        CASE(a_writer_decodes_only_what_may_be_damaged),
        CASE(merging_adds_the_counts),
        CASE(a_count_that_is_wrong_is_found),
        CASE(a_loader_shows_damaged_files_whole_and_cropped_and_counts_them),
        CASE(a_damaged_file_is_converted_only_if_that_is_asked_for),
    };
    if (make_files() < 0)
        return 1;
    int r = RUN_CASES(cases);
    free(whole);
    free(damaged);
    free(cut);
    return r;
}
