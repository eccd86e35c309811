/* SPDX-License-Identifier: Apache-2.0 */
#include "support/test.h"

#include "support/jpeg_subject.h"

/* A whole file: read equals libjpeg's, and `way` gives its bytes. 0, or a line of print. */
static int check_file(const uint8_t *file, size_t size, uint32_t way, uint32_t parameters)
{
    struct subject s;
    const char *what = "open";
    int r = subject_open(&s, file, size);
    if (r == 0) {
        what = "read";
        r = read_subject(&s);
    }
    if (r == 0 && !is_image_of(&s.image, file, size, 1)) {
        what = "equal libjpeg's coefficients";
        r = -1;
    }
    if (r == 0) {
        what = "choose";
        r = choose_subject(&s);
    }
    if (r == 0 && (!s.exact || s.image.rebuild != way || s.image.parameters != parameters)) {
        what = "be exact in the expected way";
        r = -1;
    }
    if (r == 0 && !is_rebuilt(&s)) {
        what = "be rebuilt";
        r = -1;
    }
    if (r == 0 && !has_standard(&s)) {
        what = "have a standard file";
        r = -1;
    }
    if (r != 0)
        printf("# does not %s (%d): exact %d, way %u, parameters %u, %s\n", what, r, s.exact,
               s.image.rebuild, s.image.parameters, s.err.message);
    subject_close(&s);
    return r;
}

/* ---- files that libjpeg writes --------------------------------------------------------------- */

static int check_spec(const struct jpeg_spec *spec)
{
    size_t size;
    uint8_t *file = jpeg_write(spec, &size);
    int r = check_file(file, size,
                       spec->arithmetic ? PSTK__JPEG_REBUILD_LIBRARY : PSTK__JPEG_REBUILD_SCANS, 0);
    if (r != 0)
        printf("# %ux%u, %d components %dx%d, progressive %d, restart %d, arithmetic %d, "
               "interleaved %d, rgb %d\n",
               spec->width, spec->height, spec->n_components, spec->h, spec->v, spec->progressive,
               spec->restart, spec->arithmetic, spec->interleaved, spec->rgb);
    free(file);
    return r;
}

/* Sizes that meet every edge of blocks and units, and restart intervals. */
static int check_sizes(struct jpeg_spec spec)
{
    static const uint32_t sizes[][3] = {{1, 1, 0},  {8, 8, 0},   {17, 16, 1}, {33, 1, 0},
                                        {1, 33, 2}, {40, 37, 0}, {40, 37, 1}, {57, 90, 5}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        spec.width = sizes[i][0];
        spec.height = sizes[i][1];
        spec.restart = (int)sizes[i][2];
        if (check_spec(&spec) != 0)
            return -1;
    }
    return 0;
}

static const int samplings[][2] = {{1, 1}, {2, 1}, {2, 2}, {1, 2}, {4, 1}, {1, 4}, {4, 2}, {2, 4}};

#define N_SAMPLINGS (sizeof samplings / sizeof samplings[0])

static struct jpeg_spec sampled(size_t i, int n_components)
{
    return (struct jpeg_spec){
        .n_components = n_components, .interleaved = 1, .h = samplings[i][0], .v = samplings[i][1]};
}

TEST(a_baseline_file_comes_back_whatever_its_sampling)
{
    for (size_t i = 0; i < N_SAMPLINGS; i++)
        CHECK_EQ(check_sizes(sampled(i, 3)), 0);
}

TEST(a_gray_file_comes_back_whatever_its_sampling)
{
    for (size_t i = 0; i < N_SAMPLINGS; i++)
        CHECK_EQ(check_sizes(sampled(i, 1)), 0);
}

TEST(a_cmyk_ycck_or_rgb_file_comes_back)
{
    for (size_t i = 0; i < 3; i++)
        for (int n = 3; n <= 4; n++)
            for (int rgb = n == 3; rgb <= 1; rgb++) {
                struct jpeg_spec spec = sampled(n == 3 ? 0 : i, n);
                spec.rgb = rgb;
                CHECK_EQ(check_sizes(spec), 0);
            }
}

TEST(a_file_with_one_scan_a_component_comes_back)
{
    for (size_t i = 0; i < N_SAMPLINGS; i++) {
        struct jpeg_spec spec = sampled(i, i % 2 ? 4 : 3);
        spec.interleaved = 0;
        CHECK_EQ(check_sizes(spec), 0);
    }
}

TEST(a_progressive_file_comes_back)
{
    for (size_t i = 0; i < N_SAMPLINGS; i++)
        for (int n = 1; n <= 4; n += n == 1 ? 2 : 1)
            for (int progressive = 1; progressive <= 2; progressive++) {
                struct jpeg_spec spec = sampled(i, n);
                if (n == 4 && i > 2)
                    continue; /* over ten blocks in a unit */
                spec.progressive = progressive;
                CHECK_EQ(check_sizes(spec), 0);
            }
}

TEST(an_arithmetic_file_comes_back)
{
    for (size_t i = 0; i < N_SAMPLINGS; i++)
        for (int progressive = 0; progressive <= 1; progressive++) {
            struct jpeg_spec spec = sampled(i, i == 3 ? 1 : 3);
            spec.arithmetic = 1;
            spec.progressive = progressive;
            spec.interleaved = i % 2 == 0;
            CHECK_EQ(check_sizes(spec), 0);
        }
}

TEST(a_file_with_any_quality_comes_back)
{
    for (int quality = 1; quality <= 100; quality += 9) {
        struct jpeg_spec spec = sampled(2, 3);
        spec.quality = quality;
        spec.progressive = quality % 2;
        CHECK_EQ(check_sizes(spec), 0);
    }
}

/* ---- files that libjpeg writes in other ways ------------------------------------------------ */

struct variation {
    int optimize;
    int wide_quant; /* 16-bit quantisation tables, hence no baseline file */
    int restart;
    int n_scans; /* scans of `script`; 0: one scan */
    const jpeg_scan_info *script;
    int16_t spread; /* added to or taken from every DC, in turns */
    int runs; /* 1: most coefficients 0, so that there are long runs; 2: blocks of zeros; 3: of
                 large values */
};

static void vary_blocks(struct reference *r, const struct variation *v)
{
    uint32_t k = 0;
    for (int i = 0; i < r->c.num_components; i++)
        for (JDIMENSION y = 0; y < r->c.comp_info[i].height_in_blocks; y++) {
            JBLOCKROW row =
                *r->c.mem->access_virt_barray((j_common_ptr)&r->c, r->arrays[i], y, 1, TRUE);
            for (JDIMENSION x = 0; x < r->c.comp_info[i].width_in_blocks; x++, k++) {
                row[x][0] = (JCOEF)(row[x][0] / 2 + (k % 2 ? v->spread : -v->spread));
                for (uint32_t n = 1; v->runs && n < 64; n++) {
                    int value = 64 + (int)((n * k) % 60);
                    if (v->runs == 3)
                        row[x][n] = (JCOEF)((n + k) % 2 ? value : -value);
                    else if (v->runs == 2 || (n != 63 && (n * 7 + k) % 23 != 0))
                        row[x][n] = 0;
                }
            }
        }
}

static uint8_t *write_variation(const struct jpeg_spec *spec, const struct variation *v,
                                size_t *size)
{
    struct reference r;
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr errors;
    unsigned char *data = NULL;
    unsigned long n = 0;
    uint8_t *file = jpeg_write(spec, size);

    reference_open(&r, file, *size);
    vary_blocks(&r, v);
    memset(&c, 0, sizeof c);
    c.err = jpeg_std_error(&errors);
    errors.output_message = say_nothing;
    jpeg_create_compress(&c);
    jpeg_copy_critical_parameters(&r.c, &c);
    jpeg_mem_dest(&c, &data, &n);
    c.optimize_coding = v->optimize;
    c.restart_interval = (unsigned)v->restart;
    c.scan_info = v->script;
    c.num_scans = v->n_scans;
    for (int i = 0; v->wide_quant && i < NUM_QUANT_TBLS; i++)
        for (int k = 0; c.quant_tbl_ptrs[i] && k < 64; k++)
            c.quant_tbl_ptrs[i]->quantval[k] = (UINT16)(k < 3 ? 16 : 300 + 900 * i + k);
    jpeg_write_coefficients(&c, r.arrays);
    jpeg_finish_compress(&c);
    jpeg_destroy_compress(&c);
    jpeg_destroy_decompress(&r.c);
    free(file);
    *size = n;
    return data;
}

static int check_variation(const struct jpeg_spec *spec, const struct variation *v)
{
    size_t size;
    uint8_t *file = write_variation(spec, v, &size);
    int r = check_file(file, size, PSTK__JPEG_REBUILD_SCANS, 0);
    free(file);
    return r;
}

TEST(optimal_tables_wide_quantisation_and_long_runs_come_back)
{
    for (int bits = 0; bits < 12; bits++) {
        const struct variation v = {.optimize = bits & 1,
                                    .wide_quant = bits >> 1 & 1,
                                    .runs = bits >> 2,
                                    .restart = bits == 5 ? 7 : 0,
                                    .spread = (int16_t)(bits * 80)};
        CHECK_EQ(check_variation(&plain, &v), 0);
    }
}

/* 12 refinements: runs of more than 937 correction bits; blocks without end: runs of over 32767. */
TEST(a_progressive_file_of_many_passes_comes_back)
{
    static const jpeg_scan_info script[] = {
        {1, {0}, 0, 0, 0, 3}, {1, {0}, 0, 0, 3, 2},   {1, {0}, 1, 63, 0, 6}, {1, {0}, 1, 63, 6, 5},
        {1, {0}, 0, 0, 2, 1}, {1, {0}, 1, 63, 5, 4},  {1, {0}, 1, 63, 4, 3}, {1, {0}, 1, 20, 3, 2},
        {1, {0}, 0, 0, 1, 0}, {1, {0}, 21, 63, 3, 2}, {1, {0}, 1, 63, 2, 1}, {1, {0}, 1, 63, 1, 0},
    };
    struct jpeg_spec spec = {.width = 300, .height = 200, .n_components = 1, .h = 1, .v = 1};
    struct variation v = {.n_scans = 12, .script = script};
    spec.quality = 100;
    CHECK_EQ(check_variation(&spec, &v), 0);
    v.restart = 11;
    CHECK_EQ(check_variation(&spec, &v), 0);
    v.restart = 300; /* two bytes */
    CHECK_EQ(check_variation(&spec, &v), 0);
    v.restart = 0;
    for (v.runs = 1; v.runs <= 3; v.runs++)
        CHECK_EQ(check_variation(&spec, &v), 0);
    spec.width = spec.height = 1480; /* 34225 blocks */
    v.runs = 2;
    CHECK_EQ(check_variation(&spec, &v), 0);
}

/* ---- files with oddities -------------------------------------------------------------------- */

static int check_inserted(const struct jpeg_spec *spec, uint8_t marker, const void *data, size_t n)
{
    size_t size;
    uint8_t *file = jpeg_write(spec, &size);
    struct bytes b = insert(file, size, marker, data, n);
    int r = check_file(b.data, b.size, PSTK__JPEG_REBUILD_SCANS, 0);
    free(b.data);
    free(file);
    return r;
}

TEST(application_and_comment_segments_come_back_wherever_they_stand)
{
    static const uint8_t before[] = {0xdb, 0xc0, 0xc4, 0xda, 0xd9};
    for (size_t i = 0; i < sizeof before; i++) {
        CHECK_EQ(check_inserted(&plain, before[i], exif, sizeof exif - 1), 0);
        CHECK_EQ(check_inserted(&plain, before[i], comment, sizeof comment - 1), 0);
        CHECK_EQ(check_inserted(&plain, before[i], profile, sizeof profile - 1), 0);
        CHECK_EQ(check_inserted(&plain, before[i],
                                "\xff\xee\x00\x0e"
                                "Adobe\0\x64\0\0\0\0\0",
                                16),
                 0);
    }
}

TEST(junk_and_fill_bytes_come_back_wherever_they_stand)
{
    static const uint8_t before[] = {0xdb, 0xc0, 0xc4, 0xda, 0xd9};
    static const char *const junk[] = {"\xff", "\xff\xff\xff", "abc", "\xff\xd3", "\x01\xff\xff"};
    for (size_t i = 0; i < sizeof before; i++)
        for (size_t k = 0; k < sizeof junk / sizeof junk[0]; k++)
            CHECK_EQ(check_inserted(&plain, before[i], junk[k], strlen(junk[k])), 0);
    CHECK_EQ(check_inserted(&plain, 0xd9, "\0\0\0\xff\0\x77", 6), 0);
}

TEST(junk_between_the_scans_of_a_progressive_file_comes_back)
{
    struct jpeg_spec spec = plain;
    spec.progressive = 1;
    size_t size;
    uint8_t *file = jpeg_write(&spec, &size);
    size_t scan = find_marker(file, size, 2, 0xda);
    struct bytes b = insert(file + scan, size - scan, 0xc4, "\0\x55\xff\0", 4), c = {0};
    append(&c, file, scan);
    append(&c, b.data, b.size);
    CHECK_EQ(check_file(c.data, c.size, PSTK__JPEG_REBUILD_SCANS, 0), 0);
    free(b.data);
    free(c.data);
    free(file);
}

TEST(bytes_after_the_end_of_the_image_come_back)
{
    size_t size;
    uint8_t *file = jpeg_write(&plain, &size);
    struct bytes b = {0};
    append(&b, file, size);
    append(&b, file, size); /* as another image of an MPO file */
    CHECK_EQ(check_file(b.data, b.size, PSTK__JPEG_REBUILD_SCANS, 0), 0);
    append(&b, "\0\0\xff junk \xff\xda\xff\xff", 13);
    append(&b, "\xff", 1);
    CHECK_EQ(check_file(b.data, b.size, PSTK__JPEG_REBUILD_SCANS, 0), 0);
    free(b.data);
    free(file);
}

/* The file's tables in a datastream of their own, and the image without them. */
TEST(a_datastream_of_tables_before_the_image_comes_back)
{
    size_t size;
    uint8_t *file = jpeg_write(&plain, &size);
    size_t dqt = find_marker(file, size, 2, 0xdb), sof = find_marker(file, size, 2, 0xc0);
    size_t dht = find_marker(file, size, 2, 0xc4), sos = find_marker(file, size, 2, 0xda);
    struct bytes b = {0};
    append(&b, "\xff\xd8", 2);
    append(&b, exif, sizeof exif - 1);
    append(&b, file + dqt, sof - dqt);
    append(&b, "\xff\xdd\x00\x04\x00\x03", 6); /* forgotten at the next start of image */
    append(&b, file + dht, sos - dht);
    append(&b, "\xff\xd9", 2);
    append(&b, file, dqt);
    append(&b, file + sof, dht - sof);
    append(&b, file + sos, size - sos);
    CHECK_EQ(check_file(b.data, b.size, PSTK__JPEG_REBUILD_SCANS, 0), 0);
    free(b.data);
    free(file);
}

/* As motion JPEG has it. */
TEST(a_file_without_huffman_tables_comes_back)
{
    size_t size;
    uint8_t *file = jpeg_write(&plain, &size);
    size_t dht = find_marker(file, size, 2, 0xc4), sos = find_marker(file, size, 2, 0xda);
    struct bytes b = {0};
    append(&b, file, dht);
    append(&b, file + sos, size - sos);
    CHECK_EQ(check_file(b.data, b.size, PSTK__JPEG_REBUILD_SCANS, 0), 0);
    free(b.data);
    free(file);
}

/* With zeros in the last block instead of an end-of-image marker: decoding takes it, too. */
TEST(a_file_without_an_end_of_image_marker_comes_back_when_it_decodes)
{
    size_t size;
    uint8_t *file = jpeg_write(&plain, &size);
    struct bytes b = {0};
    append(&b, file, size - 2);
    append(&b, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16);
    CHECK_EQ(check_file(b.data, b.size, PSTK__JPEG_REBUILD_SCANS, 0), 0);
    append(&b, "\xff\xfe\x01\x00", 4); /* a segment cut short */
    CHECK_EQ(check_file(b.data, b.size, PSTK__JPEG_REBUILD_SCANS, 0), 0);
    free(b.data);
    free(file);
}

TEST(a_file_whose_scans_are_filled_up_with_zeros_comes_back)
{
    for (int progressive = 0; progressive <= 1; progressive++)
        for (int restart = 0; restart <= 3; restart += 3) {
            struct jpeg_spec spec = plain;
            struct subject s;
            uint64_t zero_size;
            size_t size;
            int r;
            spec.progressive = progressive;
            spec.restart = restart;
            uint8_t *file = jpeg_write(&spec, &size);
            CHECK(subject_open(&s, file, size) == 0);
            CHECK_EQ(read_subject(&s), 0);
            s.image.rebuild = PSTK__JPEG_REBUILD_SCANS;
            s.image.parameters = 1;
            uint8_t *zeros = rebuild(&s.image, size, &zero_size, &r);
            CHECK_EQ(r, 0);
            CHECK(zero_size != size || memcmp(file, zeros, size) != 0);
            CHECK(has_same_pixels(file, size, zeros, (size_t)zero_size));
            CHECK_EQ(check_file(zeros, (size_t)zero_size, PSTK__JPEG_REBUILD_SCANS, 1), 0);
            free(zeros);
            free(file);
            subject_close(&s);
        }
}

/* The standard file's frame header when the DC of one block is as told and all else 0. */
static uint8_t frame_for(struct pstk__jpeg_image *image, int16_t dc)
{
    uint64_t size;
    int r;
    memset(image->blocks[0], 0, 128);
    image->blocks[0][0] = dc;
    image->rebuild = PSTK__JPEG_REBUILD_STANDARD;
    uint8_t *file = rebuild(image, pstk__jpeg_rebuild_bound(image), &size, &r);
    uint8_t marker = r == 0 && find_marker(file, (size_t)size, 2, 0xc0) < size ? 0xc0 : 0xc1;
    free(file);
    return r == 0 ? marker : 0;
}

TEST(a_standard_file_is_baseline_where_it_can_be)
{
    struct jpeg_spec spec = {.width = 8, .height = 8, .n_components = 1, .h = 1, .v = 1};
    struct subject s;
    size_t size;
    uint8_t *file = jpeg_write(&spec, &size);
    CHECK(subject_open(&s, file, size) == 0);
    CHECK_EQ(read_subject(&s), 0);
    CHECK_EQ(frame_for(&s.image, 2047), 0xc0);
    CHECK_EQ(frame_for(&s.image, -2048), 0xc1);
    s.image.frame.component[0].quant[63] = 256;
    CHECK_EQ(frame_for(&s.image, 2047), 0xc1);
    subject_close(&s);
    free(file);
}

/* Tables that give a code to every symbol, and every coefficient that a code can tell. */
TEST(coefficients_of_any_size_come_back)
{
    size_t size;
    struct subject s;
    uint8_t *file = jpeg_write(&plain, &size);
    CHECK(subject_open(&s, file, size) == 0);
    CHECK_EQ(read_subject(&s), 0);
    for (uint32_t i = 0; i < 3; i++) {
        const struct pstk__jpeg_component *c = &s.image.frame.component[i];
        uint32_t n = c->stride * c->rows * 64;
        for (uint32_t k = 0; k < n; k += 1 + k % 29 + k % 3) {
            uint32_t value = (k + 1) * 2654435761u >> (16 + k / 7 % 16);
            s.image.blocks[i][k] = (int16_t)((int)(value & 0x7fff) * (k % 2 ? 1 : -1));
        }
    }
    uint64_t huge_size;
    int r;
    s.image.rebuild = PSTK__JPEG_REBUILD_STANDARD;
    uint8_t *huge = rebuild(&s.image, pstk__jpeg_rebuild_bound(&s.image), &huge_size, &r);
    CHECK_EQ(r, 0);
    CHECK(find_marker(huge, (size_t)huge_size, 2, 0xc1) < huge_size); /* extended */
    CHECK(is_image_of(&s.image, huge, (size_t)huge_size, 1));
    CHECK_EQ(check_file(huge, (size_t)huge_size, PSTK__JPEG_REBUILD_SCANS, 0), 0);
    free(huge);
    s.image.blocks[1][64 + 9] = -32768;
    huge = rebuild(&s.image, pstk__jpeg_rebuild_bound(&s.image), &huge_size, &r);
    CHECK_EQ(r, PSTK_EBADMSG);
    free(huge);
    free(file);
    subject_close(&s);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(a_baseline_file_comes_back_whatever_its_sampling),
        CASE(a_gray_file_comes_back_whatever_its_sampling),
        CASE(a_cmyk_ycck_or_rgb_file_comes_back),
        CASE(a_file_with_one_scan_a_component_comes_back),
        CASE(a_progressive_file_comes_back),
        CASE(an_arithmetic_file_comes_back),
        CASE(a_file_with_any_quality_comes_back),
        CASE(optimal_tables_wide_quantisation_and_long_runs_come_back),
        CASE(a_progressive_file_of_many_passes_comes_back),
        CASE(application_and_comment_segments_come_back_wherever_they_stand),
        CASE(junk_and_fill_bytes_come_back_wherever_they_stand),
        CASE(junk_between_the_scans_of_a_progressive_file_comes_back),
        CASE(bytes_after_the_end_of_the_image_come_back),
        CASE(a_datastream_of_tables_before_the_image_comes_back),
        CASE(a_file_without_huffman_tables_comes_back),
        CASE(a_file_without_an_end_of_image_marker_comes_back_when_it_decodes),
        CASE(a_file_whose_scans_are_filled_up_with_zeros_comes_back),
        CASE(a_standard_file_is_baseline_where_it_can_be),
        CASE(coefficients_of_any_size_come_back),
    };
    return RUN_CASES(cases);
}
