/* SPDX-License-Identifier: Apache-2.0 */
/* Fields of kind mask: written from files and from pixels, read back as class numbers, refused
 * where they are no mask or not as large as their image. */
#include "support/fixture.h"
#include "support/png_writer.h"
#include "record/axes.h"

static int lenient; /* 1: the check of sizes finds nothing, so that verify can find it */

const char *__real_pstk__axes_check(const struct pstk__schema *schema,
                                    const struct pstk_value *values,
                                    const struct pstk__field_view *views, uint32_t *field,
                                    char text[320]);
const char *__wrap_pstk__axes_check(const struct pstk__schema *schema,
                                    const struct pstk_value *values,
                                    const struct pstk__field_view *views, uint32_t *field,
                                    char text[320]);
const char *__wrap_pstk__axes_check(const struct pstk__schema *schema,
                                    const struct pstk_value *values,
                                    const struct pstk__field_view *views, uint32_t *field,
                                    char text[320])
{
    return lenient ? NULL : __real_pstk__axes_check(schema, values, views, field, text);
}

enum { WIDTH = 7, HEIGHT = 5, N = WIDTH * HEIGHT };

static const struct pstk_field fields[] = {
    {.name = "image", .kind = PSTK_FIELD_IMAGE},
    {.name = "classes", .kind = PSTK_FIELD_MASK, .of = "image", .codec = PSTK_CODEC_ZSTD}};

static struct pstk_writer *open_writer(const char *path, struct pstk_error *err)
{
    struct pstk_writer_settings s;
    struct pstk_writer *w = NULL;
    pstk_writer_settings_init(&s, sizeof s);
    s.path = path;
    s.fields = fields;
    s.n_fields = 2;
    s.dictionary_size = 1;
    s.overwrite = 1;
    if (pstk_writer_open(&w, &s, err) < 0)
        printf("# %s\n", err->message);
    return w;
}

static const uint8_t rgb[N * 3];

/* Add an image of WIDTH x HEIGHT and a mask: `png`, or pixels of `bits` if it is NULL. */
static int add(struct pstk_writer *w, const struct pstk_value *mask, uint32_t width, uint32_t bits,
               struct pstk_error *err)
{
    const struct pstk_pixels pixels[2] = {{sizeof pixels[0], 0, HEIGHT, WIDTH, 3, 8},
                                          {sizeof pixels[0], 1, HEIGHT, width, 1, bits}};
    const struct pstk_value v[2] = {{rgb, sizeof rgb}, *mask};
    return pstk_writer_add_pixels(w, v, 2, pixels, bits ? 2 : 1, err);
}

static struct png_spec spec_of(int color, int depth, uint32_t width)
{
    return (struct png_spec){.width = width, .height = HEIGHT, .color = color, .depth = depth};
}

/* Add a file of that kind as a mask. */
static int add_file(struct pstk_writer *w, int color, int depth, uint32_t width,
                    struct pstk_error *err)
{
    const struct png_spec spec = spec_of(color, depth, width);
    struct pstk_value mask = {0};
    uint8_t *file = png_write(&spec, &mask.size);
    mask.data = file;
    const int r = add(w, &mask, 0, 0, err);
    free(file);
    return r;
}

static const struct {
    int color, depth;
} kinds[] = {{PNG_COLOR_TYPE_GRAY, 1},    {PNG_COLOR_TYPE_GRAY, 2},    {PNG_COLOR_TYPE_GRAY, 4},
             {PNG_COLOR_TYPE_GRAY, 8},    {PNG_COLOR_TYPE_GRAY, 16},   {PNG_COLOR_TYPE_PALETTE, 1},
             {PNG_COLOR_TYPE_PALETTE, 2}, {PNG_COLOR_TYPE_PALETTE, 4}, {PNG_COLOR_TYPE_PALETTE, 8}};

#define N_KINDS (sizeof kinds / sizeof kinds[0])

/* Read record i, and count the class numbers that are not those of a file of `kinds`. */
static uint32_t n_different(struct pstk_dataset *d, uint32_t i, struct pstk_error *err)
{
    const struct png_spec spec = spec_of(kinds[i].color, kinds[i].depth, WIDTH);
    struct pstk_value_info info = {.size = sizeof info};
    uint64_t size;
    void *data, *samples;
    uint32_t dtype, n = 0;
    if (pstk_dataset_get(d, i, 1, &data, &size, &info, err) < 0 ||
        pstk_mask_decode(data, size, &info, &samples, &dtype, err) < 0)
        return UINT32_MAX;
    for (uint32_t k = 0; k < N; k++)
        n += (dtype == PSTK_U16 ? ((uint16_t *)samples)[k] : ((uint8_t *)samples)[k]) !=
             png_sample(&spec, k % WIDTH, k / WIDTH, 0);
    pstk_free(samples);
    pstk_free(data);
    return n;
}

TEST(masks_of_files_and_pixels_read_back_as_class_numbers)
{
    struct fixture f;
    struct pstk_dataset *d;
    struct pstk_field field;
    struct pstk_field_stats stats = {.size = sizeof stats};
    fixture_open(&f);
    const char *path = fixture_path(&f, "d");
    struct pstk_writer *w = open_writer(path, &f.err);
    uint16_t numbers[N];
    for (uint32_t k = 0; k < N; k++)
        numbers[k] = (uint16_t)(k * 4099);
    for (size_t i = 0; i < N_KINDS; i++)
        CHECK_EQ(add_file(w, kinds[i].color, kinds[i].depth, WIDTH, &f.err), 0);
    CHECK_EQ(add(w, &(const struct pstk_value){numbers, N}, WIDTH, 8, &f.err), 0);
    CHECK_EQ(add(w, &(const struct pstk_value){numbers, 2 * N}, WIDTH, 16, &f.err), 0);
    CHECK_EQ(pstk_writer_commit(&w, &f.err), 0);
    CHECK_EQ(pstk_verify(path, 1, 1, NULL, NULL, NULL, NULL), 0);
    CHECK_EQ(pstk_dataset_open(&d, path, NULL, &f.err), 0);
    for (uint32_t i = 0; i < N_KINDS; i++)
        CHECK_EQ(n_different(d, i, &f.err), 0);
    for (uint32_t i = 0; i < 2; i++) {
        struct pstk_value_info info = {.size = sizeof info};
        uint64_t size;
        void *data;
        CHECK_EQ(pstk_dataset_get(d, N_KINDS + i, 1, &data, &size, &info, &f.err), 0);
        CHECK(info.bit_depth == 8 + 8 * i && info.channels == 1 && size == N * (1 + i));
        CHECK(memcmp(data, numbers, size) == 0);
        pstk_free(data);
    }
    CHECK_EQ(pstk_dataset_get_field(d, 1, &field, &stats), 0);
    CHECK_EQ(field.kind, PSTK_FIELD_MASK);
    CHECK_STR(field.of, "image");
    CHECK(stats.max_width == WIDTH && stats.max_height == HEIGHT);
    CHECK(stats.n_encoding[PSTK_ENCODING_PNG] == N_KINDS &&
          stats.n_encoding[PSTK_ENCODING_PIXELS] == 2);
    pstk_dataset_close(&d);
    fixture_close(&f);
}

TEST(a_value_that_is_no_mask_is_refused)
{
    static const uint8_t numbers[4 * N];
    struct fixture f;
    fixture_open(&f);
    struct pstk_writer *w = open_writer(fixture_path(&f, "d"), &f.err);
    CHECK_EQ(add_file(w, PNG_COLOR_TYPE_RGB, 8, WIDTH, &f.err), PSTK_EBADMSG);
    CHECK(strstr(f.err.message, "field classes: the PNG file has 3 channels; a mask must have 1"));
    CHECK_EQ(add_file(w, PNG_COLOR_TYPE_GRAY_ALPHA, 8, WIDTH, &f.err), PSTK_EBADMSG);
    CHECK_EQ(add(w, &(const struct pstk_value){tiny_jpeg, sizeof tiny_jpeg}, 0, 0, &f.err),
             PSTK_EBADMSG);
    CHECK(strstr(f.err.message, "JPEG"));
    CHECK_EQ(add(w, &(const struct pstk_value){"no", 2}, 0, 0, &f.err), PSTK_EBADMSG);
    CHECK_EQ(add(w, &(const struct pstk_value){numbers, N + 1}, WIDTH, 8, &f.err), PSTK_EINVAL);
    const struct pstk_pixels pixels[2] = {{sizeof pixels[0], 0, HEIGHT, WIDTH, 3, 8},
                                          {sizeof pixels[0], 1, HEIGHT, WIDTH, 3, 8}};
    const struct pstk_value v[2] = {{rgb, sizeof rgb}, {rgb, sizeof rgb}};
    CHECK_EQ(pstk_writer_add_pixels(w, v, 2, pixels, 2, &f.err), PSTK_EINVAL);
    CHECK(strstr(f.err.message, "channels: value is 3; must be 1 for a mask"));
    CHECK_EQ(pstk_writer_n_samples(w), 0);
    pstk_writer_abort(&w);
    fixture_close(&f);
}

static char said[400]; /* by verify, last */

static int on_bad(void *user, const struct pstk_error *bad)
{
    (void)user;
    snprintf(said, sizeof said, "%.399s", bad->message);
    return 0;
}

TEST(a_mask_is_as_large_as_its_image)
{
    static const uint8_t numbers[8 * HEIGHT];
    const struct pstk_value mask = {numbers, 8 * HEIGHT};
    struct fixture f;
    fixture_open(&f);
    const char *path = fixture_path(&f, "d");
    struct pstk_writer *w = open_writer(path, &f.err);
    CHECK_EQ(add(w, &mask, 8, 8, &f.err), PSTK_EINVAL);
    CHECK(strstr(f.err.message,
                 "classes: the mask has 8 x 5 pixels; must have 7 x 5, as field image has"));
    CHECK_EQ(add_file(w, PNG_COLOR_TYPE_GRAY, 8, WIDTH - 1, &f.err), PSTK_EINVAL);
    CHECK(strstr(f.err.message, "has 6 x 5 pixels"));
    CHECK_EQ(pstk_writer_n_samples(w), 0);
    lenient = 1;
    CHECK_EQ(add(w, &mask, 8, 8, &f.err), 0);
    CHECK_EQ(pstk_writer_commit(&w, &f.err), 0);
    lenient = 0;
    CHECK_EQ(pstk_verify(path, 0, 1, on_bad, NULL, NULL, NULL), 1);
    CHECK(strstr(said, "the mask has 8 x 5 pixels; must have 7 x 5, as field image has"));
    fixture_close(&f);
}

/* Change the last byte of the image data of the only mask, and mend the checksums above it. */
TEST(verify_decodes_masks_where_it_is_asked_to)
{
    const struct png_spec spec = spec_of(PNG_COLOR_TYPE_PALETTE, 8, WIDTH);
    struct fixture f;
    struct pstk_value mask = {0};
    fixture_open(&f);
    const char *path = fixture_path(&f, "d");
    uint8_t *file = png_write(&spec, &mask.size);
    mask.data = file;
    file[mask.size - 20] ^= 1; /* in IDAT: the header of the file is whole, so packing takes it */
    struct pstk_writer *w = open_writer(path, &f.err);
    CHECK_EQ(add(w, &mask, 0, 0, &f.err), 0);
    CHECK_EQ(pstk_writer_commit(&w, &f.err), 0);
    CHECK_EQ(pstk_verify(path, 0, 1, on_bad, NULL, NULL, NULL), 0);
    CHECK_EQ(pstk_verify(path, 1, 1, on_bad, NULL, NULL, NULL), 1);
    CHECK(strstr(said, "field classes") && strstr(said, "PNG: "));
    free(file);
    fixture_close(&f);
}

TEST(a_mask_field_names_its_image)
{
    struct pstk_field wrong[4][2];
    struct pstk_writer_settings s;
    struct fixture f;
    fixture_open(&f);
    for (uint32_t i = 0; i < 4; i++) {
        struct pstk_writer *w;
        memcpy(wrong[i], fields, sizeof fields);
        strcpy(wrong[i][1].of, i == 0 ? "" : i == 1 ? "classes" : i == 2 ? "none" : "image");
        wrong[i][1].codec = i == 3 ? PSTK_CODEC_PLANES : PSTK_CODEC_ZSTD;
        pstk_writer_settings_init(&s, sizeof s);
        s.path = fixture_path(&f, "d");
        s.fields = wrong[i];
        s.n_fields = 2;
        CHECK_EQ(pstk_writer_open(&w, &s, &f.err), PSTK_EINVAL);
        CHECK(strstr(f.err.message, i == 3 ? "codec" : "of: value is"));
    }
    fixture_close(&f);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(masks_of_files_and_pixels_read_back_as_class_numbers),
        CASE(a_value_that_is_no_mask_is_refused),
        CASE(a_mask_is_as_large_as_its_image),
        CASE(verify_decodes_masks_where_it_is_asked_to),
        CASE(a_mask_field_names_its_image),
    };
    return RUN_CASES(cases);
}
