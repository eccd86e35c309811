/* SPDX-License-Identifier: Apache-2.0 */
#include "support/test.h"

#include "base/arena.h"
#include "image/image.h"
#include "image/jpeg/decode.h"
#include "image/jpeg/header.h"
#include "support/channels.h"
#include "support/jpeg_writer.h"

#include <dirent.h>

/* ---- decoding boxes and comparing them ------------------------------------------------------ */

struct subject {
    const uint8_t *file;
    size_t file_size;
    const uint8_t *reference; /* RGB of the whole image */
    struct pstk__image_info info;
    struct pstk__arena arena;
    struct pstk__image_state *state;
    struct pstk_error err;
    uint32_t n_boxes; /* decoded so far */
};

struct check {
    const struct subject *subject;
    struct pstk__box box;
    uint32_t channels;
    uint32_t n_rows;
    uint32_t n_different;
};

static void compare_rows(void *user, const uint8_t *pixels, uint64_t stride, uint32_t n_rows)
{
    struct check *c = user;
    for (uint32_t k = 0; k < n_rows; k++, pixels += stride) {
        const struct subject *s = c->subject;
        size_t at = ((size_t)(c->box.top + c->n_rows) * s->info.width + c->box.left) * 3;
        c->n_rows++;
        if (c->n_rows > c->box.height ||
            row_differs(pixels, s->reference + at, c->box.width, c->channels))
            c->n_different++;
    }
}

/* Nothing may depend on what lay in the arena. */
static void soil(struct pstk__arena *a)
{
    size_t mark = a->used;
    size_t n = a->size < 65536 ? a->size : 65536;
    void *p = pstk__arena_get(a, n);
    if (p)
        memset(p, 0xa5, n);
    pstk__arena_reset(a, mark);
}

static int subject_open(struct subject *s, const uint8_t *file, size_t size)
{
    *s = (struct subject){.file = file, .file_size = size};
    pstk_error_init(&s->err, sizeof s->err);
    if (pstk__image_probe(file, size, PSTK__MAX_PIXELS, &s->info, &s->err) < 0)
        return -1;
    const uint64_t scratch = pstk__image_jpeg.scratch(s->info.width, s->info.height,
                                                      (uint64_t)s->info.width * s->info.height);
    if (pstk__arena_open(&s->arena, scratch) < 0)
        return -1;
    s->arena.size = scratch; /* not the page that it was rounded up to */
    return pstk__image_state_open(&s->state, &s->arena, PSTK_KERNELS_AUTO, &s->err);
}

static void subject_close(struct subject *s)
{
    pstk__image_state_close(s->state);
    pstk__arena_close(&s->arena);
}

static int decode_channels(struct subject *s, struct pstk__box box, uint32_t channels)
{
    struct check c = {.subject = s, .box = box, .channels = channels};
    const struct pstk__coded image = {&pstk__image_jpeg, s->file, s->file_size, &s->info};
    const struct pstk__row_sink sink = {.rows = compare_rows, .user = &c, .channels = channels};
    int r = pstk__image_decode(s->state, &image, &box, &sink, &s->err);
    if (r == 0 && c.n_rows == box.height && c.n_different == 0 && s->arena.used == 0)
        return 0;
    printf("# box %u,%u %ux%u, %u channels: %d, %u rows, %u differ: %s\n", box.left, box.top,
           box.width, box.height, channels, r, c.n_rows, c.n_different,
           r < 0 ? s->err.message : "");
    return -1;
}

/* In RGB, and one in five boxes in the other channels as well: a prime to the spans' steps. */
static int decode_box(struct subject *s, struct pstk__box box)
{
    int r = decode_channels(s, box, 3);
    if (r == 0 && s->n_boxes++ % 5 == 0)
        r = decode_channels(s, box, 1) < 0 || decode_channels(s, box, 4) < 0 ? -1 : 0;
    return r;
}

/* Every box whose rows are given by one list and whose columns by another. */
struct spans {
    uint32_t n;
    uint32_t (*begin_size)[2];
};

/* All of them, or every nth, beginning with the one of number `first`. */
static struct spans all_spans(uint32_t size, uint32_t nth, uint32_t first)
{
    struct spans s = {.begin_size = malloc(sizeof(uint32_t[2]) * size * (size + 1) / 2)};
    uint32_t k = nth - first % nth;
    for (uint32_t begin = 0; s.begin_size && begin < size; begin++)
        for (uint32_t n = 1; n <= size - begin; n++)
            if (k++ % nth == 0)
                memcpy(s.begin_size[s.n++], (uint32_t[2]){begin, n}, sizeof s.begin_size[0]);
    return s;
}

/* Ends, middles, and sizes around blocks. */
static struct spans some_spans(uint32_t size)
{
    struct spans s = {.begin_size = malloc(sizeof(uint32_t[2]) * 16)};
    const uint32_t wanted[][2] = {{0, size}, {0, 1},   {size - 1, 1},       {size / 2, 3},
                                  {15, 2},   {16, 17}, {size / 3, size / 3}};
    for (size_t i = 0; s.begin_size && i < sizeof wanted / sizeof wanted[0]; i++)
        if (wanted[i][1] > 0 && wanted[i][0] < size && wanted[i][1] <= size - wanted[i][0])
            memcpy(s.begin_size[s.n++], wanted[i], sizeof wanted[i]);
    return s;
}

static int decode_product(struct subject *s, struct spans columns, struct spans rows)
{
    int r = columns.begin_size && rows.begin_size ? 0 : -1;
    for (uint32_t i = 0; r == 0 && i < columns.n; i++)
        for (uint32_t k = 0; r == 0 && k < rows.n; k++)
            r = decode_box(s, (struct pstk__box){
                                  .left = columns.begin_size[i][0],
                                  .width = columns.begin_size[i][1],
                                  .top = rows.begin_size[k][0],
                                  .height = rows.begin_size[k][1],
                              });
    free(columns.begin_size);
    free(rows.begin_size);
    return r;
}

/* All boxes of a small image; of a larger one some 60 spans of columns with a few of rows, and the
 * other way round: others for each image, so that the images of one kind have most of them
 * between them. A quarter of these where that is slow: which rows and columns are decoded is
 * reckoned alike on every processor, and the images together meet every remainder of a width.
 * PENSTOCK_TEST_BOXES=N: all boxes of images of up to N pixels. */
static int decode_boxes(struct subject *s)
{
    static uint32_t n_images;
    uint32_t w = s->info.width, h = s->info.height, first = n_images++ * 5;
    const char *wish = getenv("PENSTOCK_TEST_BOXES");
    unsigned long limit = wish ? strtoul(wish, NULL, 10) : 64;
    soil(&s->arena);
    if ((uint64_t)w * h <= limit)
        return decode_product(s, all_spans(w, 1, 0), all_spans(h, 1, 0));
    const uint32_t n = 120 / test_stride_slow(4);
    int r = decode_product(s, all_spans(w, w * w / n + 1, first), some_spans(h));
    return r < 0 ? r : decode_product(s, some_spans(w), all_spans(h, h * h / n + 1, first));
}

struct copy {
    uint8_t *to;
    size_t row_size;
};

static void copy_rows(void *user, const uint8_t *pixels, uint64_t stride, uint32_t n_rows)
{
    struct copy *copy = user;
    for (uint32_t k = 0; k < n_rows; k++, copy->to += copy->row_size)
        memcpy(copy->to, pixels + k * stride, copy->row_size);
}

/* Replace the reference by the decoder's own pixels of the whole image, which test_jpeg_smooth
 * compares with Pillow's. */
static int decode_reference(struct subject *s, uint8_t *to)
{
    const struct pstk__box all = {.width = s->info.width, .height = s->info.height};
    const struct pstk__coded image = {&pstk__image_jpeg, s->file, s->file_size, &s->info};
    struct copy copy = {.to = to, .row_size = (size_t)s->info.width * 3};
    const struct pstk__row_sink sink = {.rows = copy_rows, .user = &copy, .channels = 3};
    return pstk__image_decode(s->state, &image, &all, &sink, &s->err);
}

static int spec_boxes(const struct jpeg_spec *spec)
{
    struct subject s;
    uint32_t width, height;
    size_t size;

    uint8_t *file = jpeg_write(spec, &size);
    uint8_t *reference = jpeg_reference(file, size, &width, &height);
    int r = subject_open(&s, file, size);
    s.reference = reference;
    if (r == 0 && spec->progressive >= 2)
        r = decode_reference(&s, reference);
    if (r == 0)
        r = decode_boxes(&s);
    if (r < 0)
        printf("# %ux%u, %d components %dx%d, progressive %d, restart %d, arithmetic %d, "
               "interleaved %d, rgb %d: %s\n",
               spec->width, spec->height, spec->n_components, spec->h, spec->v, spec->progressive,
               spec->restart, spec->arithmetic, spec->interleaved, spec->rgb, s.err.message);
    subject_close(&s);
    free(reference);
    free(file);
    return r;
}

/* The spec at every size that meets another edge of blocks and iMCUs, and with restart markers. */
static int sizes_boxes(struct jpeg_spec spec)
{
    static const uint32_t sizes[][2] = {{1, 1}, {8, 8}, {17, 16}, {33, 1}, {1, 33}, {3, 2}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        spec.width = sizes[i][0];
        spec.height = sizes[i][1];
        if (spec_boxes(&spec) < 0)
            return -1;
    }
    spec.width = 40;
    spec.height = 37;
    if (spec_boxes(&spec) < 0)
        return -1;
    spec.restart = 3;
    return spec_boxes(&spec);
}

static const int samplings[][2] = {{1, 1}, {2, 1}, {2, 2}, {1, 2}, {4, 1}, {1, 4}, {4, 2}, {2, 4}};

TEST(a_box_equals_that_of_a_full_decode_whatever_the_sampling)
{
    for (size_t i = 0; i < sizeof samplings / sizeof samplings[0]; i++) {
        struct jpeg_spec spec = {.n_components = 3, .interleaved = 1};
        spec.h = samplings[i][0];
        spec.v = samplings[i][1];
        CHECK(sizes_boxes(spec) == 0);
    }
}

TEST(a_narrow_box_of_mixed_sampling_equals_that_of_a_full_decode)
{
    static const uint32_t sizes[][2] = {{6, 75}, {19, 20}, {40, 9}};
    for (int h3 = 2; h3 <= 4; h3 += 2)
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            struct jpeg_spec spec = {.n_components = 3, .interleaved = 1, .h = 4, .v = 1, .h3 = h3};
            spec.width = sizes[i][0];
            spec.height = sizes[i][1];
            CHECK(spec_boxes(&spec) == 0);
        }
}

TEST(a_box_of_a_progressive_file_equals_that_of_a_full_decode)
{
    for (size_t i = 0; i < 4; i++)
        for (int progressive = 1; progressive <= 3; progressive++) {
            struct jpeg_spec spec = {.n_components = 3, .progressive = progressive};
            spec.h = samplings[i][0];
            spec.v = samplings[i][1];
            CHECK(sizes_boxes(spec) == 0);
        }
}

TEST(a_box_of_a_file_with_one_scan_a_component_equals_that_of_a_full_decode)
{
    for (size_t i = 0; i < 4; i++) {
        struct jpeg_spec spec = {.n_components = 3};
        spec.h = samplings[i][0];
        spec.v = samplings[i][1];
        CHECK(sizes_boxes(spec) == 0);
    }
}

TEST(a_box_of_a_gray_file_equals_that_of_a_full_decode)
{
    for (int progressive = 0; progressive <= 3; progressive++)
        for (int factor = 1; factor <= 2; factor++) {
            struct jpeg_spec spec = {.n_components = 1, .interleaved = 1};
            spec.h = spec.v = factor;
            spec.progressive = progressive;
            CHECK(sizes_boxes(spec) == 0);
        }
}

TEST(a_box_of_a_cmyk_or_ycck_file_equals_that_of_a_full_decode)
{
    for (size_t i = 0; i < 3; i++)
        for (int rgb = 0; rgb <= 1; rgb++) {
            struct jpeg_spec spec = {.n_components = 4, .interleaved = 1, .rgb = rgb};
            spec.h = samplings[i][0];
            spec.v = samplings[i][1];
            CHECK(sizes_boxes(spec) == 0);
            spec.progressive = 1;
            CHECK(sizes_boxes(spec) == 0);
        }
}

TEST(a_box_of_an_rgb_file_equals_that_of_a_full_decode)
{
    struct jpeg_spec spec = {.n_components = 3, .interleaved = 1, .rgb = 1, .h = 1, .v = 1};
    CHECK(sizes_boxes(spec) == 0);
    spec.progressive = 1;
    CHECK(sizes_boxes(spec) == 0);
}

TEST(a_box_of_an_arithmetic_file_equals_that_of_a_full_decode)
{
    for (int progressive = 0; progressive <= 1; progressive++) {
        struct jpeg_spec spec = {.n_components = 3, .interleaved = 1, .arithmetic = 1};
        spec.h = spec.v = 2;
        spec.progressive = progressive;
        CHECK(sizes_boxes(spec) == 0);
    }
}

TEST(a_box_far_down_equals_that_of_a_full_decode)
{
    for (size_t i = 0; i < 4; i++)
        for (int progressive = 0; progressive <= 1; progressive++) {
            struct jpeg_spec spec = {.width = 24, .height = 130, .n_components = 3};
            spec.h = samplings[i][0];
            spec.v = samplings[i][1];
            spec.interleaved = 1;
            spec.progressive = progressive;
            CHECK(spec_boxes(&spec) == 0);
        }
}

/* ---- damage --------------------------------------------------------------------------------- */

static void drop_rows(void *user, const uint8_t *rgb, uint64_t stride, uint32_t n_rows)
{
    (void)user;
    (void)rgb;
    (void)stride;
    (void)n_rows;
}

static const struct pstk__row_sink nowhere = {.rows = drop_rows, .channels = 3};

static int decode_whole(struct subject *s)
{
    const struct pstk__box box = {.width = s->info.width, .height = s->info.height};
    return pstk__image_decode(
        s->state, &(const struct pstk__coded){&pstk__image_jpeg, s->file, s->file_size, &s->info},
        &box, &nowhere, &s->err);
}

static const struct jpeg_spec plain = {
    .width = 40, .height = 37, .n_components = 3, .h = 2, .v = 2, .interleaved = 1};

TEST(a_file_cut_anywhere_is_refused)
{
    for (int progressive = 0; progressive <= 1; progressive++) {
        struct jpeg_spec spec = plain;
        struct pstk__jpeg_header h;
        struct subject s;
        size_t size;
        spec.progressive = progressive;
        uint8_t *file = jpeg_write(&spec, &size);
        CHECK(subject_open(&s, file, size) == 0);
        CHECK_EQ(decode_whole(&s), 0);
        CHECK_EQ(pstk__jpeg_header_read(&h, file, size, NULL), 0);
        for (size_t cut = 0; cut < size; cut++) {
            uint8_t *part = malloc(cut + 1); /* its own block, so that reading on is seen */
            CHECK(part != NULL);
            memcpy(part, file, cut);
            s.file = part;
            s.file_size = cut;
            int r = decode_whole(&s);
            int probed = pstk__image_probe(part, cut, PSTK__MAX_PIXELS, &s.info, NULL);
            free(part);
            CHECK_EQ(r, PSTK_EBADMSG);
            CHECK_EQ(s.err.code, PSTK_EBADMSG);
            CHECK_EQ(s.err.stage, PSTK_STAGE_DECODE);
            CHECK_EQ(s.arena.used, 0);
            CHECK(cut > h.scan_offset + 2 || probed == PSTK_EBADMSG);
        }
        s.file = file;
        s.file_size = size;
        CHECK_EQ(decode_whole(&s), 0);
        subject_close(&s);
        free(file);
    }
}

/* A missing EOI marker matters only when libjpeg still looks for bits of the last blocks. */
TEST(junk_after_the_last_row_is_no_damage)
{
    struct subject s;
    size_t size;
    uint8_t *file = jpeg_write(&plain, &size);
    uint8_t *longer = malloc(size + 100);
    CHECK(longer != NULL);
    memcpy(longer, file, size);
    memset(longer + size, 0x5a, 100);
    CHECK(subject_open(&s, longer, size + 100) == 0);
    CHECK_EQ(decode_whole(&s), 0);
    memset(longer + size - 2, 0, 102); /* no EOI, but no end of bytes in the last block either */
    CHECK_EQ(decode_whole(&s), 0);
    subject_close(&s);
    free(longer);
    free(file);
}

TEST(junk_between_segments_is_passed_over)
{
    struct subject s;
    size_t size;
    uint8_t *file = jpeg_write(&plain, &size);
    uint8_t *longer = malloc(size + 7);
    uint32_t w, h;
    CHECK(longer != NULL);
    memcpy(longer, file, 20); /* SOI and JFIF */
    memcpy(longer + 20, "\x01junk\xff\x00", 7);
    memcpy(longer + 27, file + 20, size - 20);
    uint8_t *reference = jpeg_reference(file, size, &w, &h);
    CHECK(subject_open(&s, longer, size + 7) == 0);
    s.reference = reference;
    CHECK_EQ(decode_box(&s, (struct pstk__box){.width = 40, .height = 37}), 0);
    subject_close(&s);
    free(reference);
    free(longer);
    free(file);
}

TEST(a_flipped_bit_is_refused_or_decodes_and_nothing_else_changes)
{
    struct jpeg_spec spec = plain;
    struct subject s;
    uint32_t w, h, n_refused = 0, n_taken = 0;
    size_t size;
    spec.width = 23;
    uint8_t *file = jpeg_write(&spec, &size);
    uint8_t *reference = jpeg_reference(file, size, &w, &h);
    CHECK(subject_open(&s, file, size) == 0);
    s.reference = reference;
    for (size_t bit = 0; bit < size * 8; bit++) {
        file[bit / 8] ^= (uint8_t)(1u << bit % 8);
        int r = decode_whole(&s);
        n_refused += r < 0;
        n_taken += r == 0;
        file[bit / 8] ^= (uint8_t)(1u << bit % 8);
        CHECK_EQ(s.arena.used, 0);
        CHECK(r == 0 || r == PSTK_EBADMSG || r == PSTK_ENOTSUP || r == PSTK_EFBIG);
        if (bit % 97 == 0) /* the object is reused: no trace of the damage may be left in it */
            CHECK_EQ(decode_box(&s, (struct pstk__box){.width = w, .height = h}), 0);
    }
    CHECK(n_refused > 0 && n_taken > 0);
    subject_close(&s);
    free(reference);
    free(file);
}

static int refusal(const uint8_t *file, size_t size, struct pstk_error *err)
{
    struct pstk__image_info info;
    pstk_error_init(err, sizeof *err);
    return pstk__image_probe(file, size, PSTK__MAX_PIXELS, &info, err);
}

/* The frame header of a file. */
static uint8_t *frame_of(uint8_t *file, size_t size)
{
    for (size_t i = 2; i + 4 <= size && file[i] == 0xff;
         i += 2 + ((size_t)file[i + 2] << 8 | file[i + 3]))
        if (file[i + 1] == 0xc0 || file[i + 1] == 0xc2)
            return file + i;
    return NULL;
}

TEST(kinds_that_are_not_decoded_are_refused_by_the_header)
{
    struct pstk_error err;
    size_t size;
    uint8_t *file = jpeg_write(&plain, &size);
    uint8_t *frame = frame_of(file, size);
    CHECK(frame != NULL);
    frame[4] = 12;
    CHECK_EQ(refusal(file, size, &err), PSTK_ENOTSUP);
    CHECK(strstr(err.message, "12 bits") != NULL);
    frame[4] = 8;
    frame[1] = 0xc3;
    CHECK_EQ(refusal(file, size, &err), PSTK_ENOTSUP);
    CHECK_STR(err.message, "lossless JPEG (SOF3) is not supported (convert it to PNG)");
    frame[1] = 0xc5;
    CHECK_EQ(refusal(file, size, &err), PSTK_ENOTSUP);
    frame[1] = 0xc0;
    frame[9] = 2;
    CHECK_EQ(refusal(file, size, &err), PSTK_ENOTSUP);
    frame[9] = 3;
    frame[5] = frame[6] = 0;
    CHECK_EQ(refusal(file, size, &err), PSTK_ENOTSUP);
    frame[7] = frame[8] = 0;
    CHECK_EQ(refusal(file, size, &err), PSTK_EBADMSG);
    frame[5] = frame[6] = frame[7] = frame[8] = 0xe0; /* 57568 squared */
    CHECK_EQ(refusal(file, size, &err), PSTK_EFBIG);
    frame[5] = 0xff;
    frame[6] = 0xff;
    CHECK_EQ(refusal(file, size, &err), PSTK_ENOTSUP);
    free(file);
}

TEST(a_header_that_differs_from_the_record_is_refused)
{
    struct subject s;
    size_t size;
    uint8_t *file = jpeg_write(&plain, &size);
    CHECK(subject_open(&s, file, size) == 0);
    s.info.width--;
    CHECK_EQ(decode_whole(&s), PSTK_EBADMSG);
    CHECK(strstr(s.err.message, "40 x 37") != NULL);
    s.info.width++;
    CHECK_EQ(decode_whole(&s), 0);
    subject_close(&s);
    free(file);
}

TEST(tables_of_one_image_are_not_seen_by_the_next)
{
    struct subject s;
    size_t size;
    uint8_t *file = jpeg_write(&plain, &size);
    CHECK(subject_open(&s, file, size) == 0);
    CHECK_EQ(decode_whole(&s), 0);
    for (size_t i = 0; i + 1 < size; i++)
        if (file[i] == 0xff && file[i + 1] == 0xdb)
            file[i + 1] = 0xed; /* quantisation tables become application segments */
    CHECK_EQ(decode_whole(&s), PSTK_EBADMSG);
    CHECK(strstr(s.err.message, "Quantization table") != NULL);
    CHECK(s.err.native != 0);
    subject_close(&s);
    free(file);
}

/* Return the first place at or behind `at` of a marker, either of two. */
static size_t find_marker(const uint8_t *file, size_t size, size_t at, uint8_t one, uint8_t other)
{
    for (; at + 1 < size; at++)
        if (file[at] == 0xff && (file[at + 1] == one || file[at + 1] == other))
            return at;
    return size;
}

/* Return whether a file whose first DC scan comes n times decodes. */
static int repeat_scan(uint32_t n)
{
    struct jpeg_spec spec = plain;
    struct subject s;
    size_t size;
    spec.progressive = 2; /* the DC scan has full precision: again and again is consistent */
    uint8_t *file = jpeg_write(&spec, &size);
    size_t scan = find_marker(file, size, 2, 0xda, 0xda);
    size_t end = find_marker(file, size, scan + 2, 0xc4, 0xda);
    uint8_t *bomb = malloc(size + n * (end - scan));
    if (!bomb || end == size)
        return -1;
    memcpy(bomb, file, end);
    uint8_t *at = bomb + end;
    for (uint32_t i = 1; i < n; i++, at += end - scan)
        memcpy(at, file + scan, end - scan);
    memcpy(at, file + end, size - end);
    int r = subject_open(&s, bomb, (size_t)(at - bomb) + size - end);
    if (r == 0)
        r = decode_whole(&s);
    subject_close(&s);
    free(bomb);
    free(file);
    return r;
}

TEST(a_progressive_file_of_too_many_scans_is_refused)
{
    CHECK_EQ(repeat_scan(1), 0);
    CHECK_EQ(repeat_scan(255), 0); /* and one of AC: 256 */
    CHECK_EQ(repeat_scan(300), PSTK_EFBIG);
}

TEST(a_scan_that_ends_early_or_is_out_of_step_is_refused)
{
    struct jpeg_spec spec = plain;
    struct subject s;
    size_t size;
    spec.restart = 2;
    uint8_t *file = jpeg_write(&spec, &size);
    CHECK(subject_open(&s, file, size) == 0);
    size_t restart = find_marker(file, size, find_marker(file, size, 2, 0xda, 0xda), 0xd1, 0xd1);
    CHECK(restart < size);
    file[restart + 1] = 0xd4;
    CHECK_EQ(decode_whole(&s), PSTK_EBADMSG);
    file[restart + 1] = 0xd9;
    CHECK_EQ(decode_whole(&s), PSTK_EBADMSG);
    file[restart + 1] = 0xd1;
    file[restart - 2] = 0xff; /* a marker where bits should be */
    file[restart - 1] = 0xd9;
    CHECK_EQ(decode_whole(&s), PSTK_EBADMSG);
    subject_close(&s);
    free(file);
}

TEST(oddities_that_leave_the_pixels_whole_are_no_damage)
{
    struct subject s;
    uint32_t w, h;
    size_t size;
    uint8_t *file = jpeg_write(&plain, &size);
    uint8_t *reference = jpeg_reference(file, size, &w, &h);
    const struct pstk__box all = {.width = w, .height = h};
    CHECK(subject_open(&s, file, size) == 0);
    s.reference = reference;
    file[11] = 7; /* a JFIF version to come */
    CHECK_EQ(decode_box(&s, all), 0);
    size_t scan = find_marker(file, size, 2, 0xda, 0xda);
    CHECK_EQ(file[scan + 12], 63);
    file[scan + 12] = 0; /* some encoders leave the spectral selection 0 */
    CHECK_EQ(decode_box(&s, all), 0);
    subject_close(&s);
    free(reference);
    free(file);
}

TEST(an_arena_that_is_too_small_is_an_error_at_any_size)
{
    struct jpeg_spec spec = plain;
    struct subject s;
    size_t size;
    spec.progressive = 1;
    uint8_t *file = jpeg_write(&spec, &size);
    CHECK(subject_open(&s, file, size) == 0);
    CHECK_EQ(decode_whole(&s), 0);
    size_t need = s.arena.peak, whole = s.arena.size;
    CHECK(need < whole);
    for (size_t small = 0; small < need; small += 64) {
        s.arena.size = small;
        CHECK_EQ(decode_whole(&s), PSTK_ENOMEM);
    }
    s.arena.size = need;
    CHECK_EQ(decode_whole(&s), 0);
    s.arena.size = whole;
    subject_close(&s);
    free(file);
}

/* ---- real files ----------------------------------------------------------------------------- */

static uint8_t *read_file(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    uint8_t *data = malloc(64u << 20);
    *size = f && data ? fread(data, 1, 64u << 20, f) : 0;
    if (f)
        fclose(f);
    return data;
}

/* Some boxes of one file; 1 when it decodes at all. */
static int try_file(const char *path, uint32_t n)
{
    struct subject s;
    uint32_t w, h;
    size_t size;
    int r = 0, ok = 0;
    uint8_t *file = read_file(path, &size);
    if (!file)
        return -1;
    if (subject_open(&s, file, size) == 0 && decode_whole(&s) == 0) {
        uint8_t *reference = jpeg_reference(file, size, &w, &h);
        s.reference = reference;
        ok = 1;
        for (uint32_t i = 0; r == 0 && i < 20; i++) {
            uint32_t k = (i + n * 20) * 2654435761u;
            struct pstk__box box = {.left = (k >> 4) % w, .top = (k >> 12) % h};
            box.width = 1 + (k >> 8) % (w - box.left);
            box.height = 1 + (k >> 2) % (h - box.top);
            r = decode_box(&s, box);
        }
        free(reference);
    }
    if (r < 0)
        printf("# %s\n", path);
    subject_close(&s);
    free(file);
    return r < 0 ? r : ok;
}

TEST(boxes_of_real_files_equal_those_of_full_decodes)
{
    static const char *const variables[] = {"PENSTOCK_TEST_IMAGES", "PENSTOCK_TEST_JPEGS"};
    uint32_t n_files = 0, n_decoded = 0;
    for (int i = 0; i < 2; i++) {
        const char *folder = getenv(variables[i]);
        DIR *d = folder ? opendir(folder) : NULL;
        struct dirent *e;
        while (d && (e = readdir(d)) != NULL) {
            char path[4096];
            const char *dot = strrchr(e->d_name, '.');
            if (!dot || (strcmp(dot, ".jpg") != 0 && strcmp(dot, ".JPEG") != 0))
                continue;
            snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
            int r = try_file(path, n_files++);
            CHECK(r >= 0);
            n_decoded += (uint32_t)r;
        }
        if (d)
            closedir(d);
    }
    if (n_files == 0)
        SKIP("neither PENSTOCK_TEST_IMAGES nor PENSTOCK_TEST_JPEGS names a folder");
    printf("# %u files, %u of them decoded, 20 boxes each\n", n_files, n_decoded);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(a_box_equals_that_of_a_full_decode_whatever_the_sampling),
        CASE(a_narrow_box_of_mixed_sampling_equals_that_of_a_full_decode),
        CASE(a_box_of_a_progressive_file_equals_that_of_a_full_decode),
        CASE(a_box_of_a_file_with_one_scan_a_component_equals_that_of_a_full_decode),
        CASE(a_box_of_a_gray_file_equals_that_of_a_full_decode),
        CASE(a_box_of_a_cmyk_or_ycck_file_equals_that_of_a_full_decode),
        CASE(a_box_of_an_rgb_file_equals_that_of_a_full_decode),
        CASE(a_box_of_an_arithmetic_file_equals_that_of_a_full_decode),
        CASE(a_box_far_down_equals_that_of_a_full_decode),
        CASE(a_file_cut_anywhere_is_refused),
        CASE(junk_after_the_last_row_is_no_damage),
        CASE(junk_between_segments_is_passed_over),
        CASE(a_flipped_bit_is_refused_or_decodes_and_nothing_else_changes),
        CASE(kinds_that_are_not_decoded_are_refused_by_the_header),
        CASE(a_header_that_differs_from_the_record_is_refused),
        CASE(tables_of_one_image_are_not_seen_by_the_next),
        CASE(a_progressive_file_of_too_many_scans_is_refused),
        CASE(a_scan_that_ends_early_or_is_out_of_step_is_refused),
        CASE(oddities_that_leave_the_pixels_whole_are_no_damage),
        CASE(an_arena_that_is_too_small_is_an_error_at_any_size),
        CASE(boxes_of_real_files_equal_those_of_full_decodes),
    };
    return RUN_CASES(cases);
}
