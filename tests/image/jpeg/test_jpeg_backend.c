/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The oracle is libjpeg's full decode, cropped. Files are made of random coefficients, so that any
 * sampling and any overflow can be had, or of pictures.
 */
#include "support/test.h"

#include "base/arena.h"
#include "base/kernels.h"
#include "support/block_rows.h"
#include "support/channels.h"
#include "support/jpeg_writer.h"

#include <penstock/penstock.h>

#include <dirent.h>
#include <jerror.h>

static uint64_t state = 88172645463325252ull;

static uint32_t draw(uint32_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 33) % below;
}

static int32_t draw_within(int32_t most)
{
    return (int32_t)draw(2 * (uint32_t)most + 1) - most;
}

/* ---- files of random coefficients ----------------------------------------------------------- */

enum coefficients {
    MILD,    /* as of a picture: sparse, small; products within 16 bits */
    WILD,    /* large and dense: products that wrap, sums that wrap and saturate */
    ONE_ROW, /* nothing below the first row: what the inverse DCT has a short cut for */
    N_COEFFICIENTS
};

struct file_spec {
    uint32_t width, height;
    uint32_t color; /* enum pstk__jpeg_color */
    uint8_t h[4], v[4];
    uint32_t coefficients;
};

static const struct {
    uint8_t n_components;
    J_COLOR_SPACE space;
} colors[6] = {{0, JCS_UNKNOWN}, {1, JCS_GRAYSCALE}, {3, JCS_YCbCr},
               {3, JCS_RGB},     {4, JCS_CMYK},      {4, JCS_YCCK}};

static void draw_quant(JQUANT_TBL *table, uint32_t coefficients)
{
    static const uint16_t awkward[8] = {1, 2, 255, 256, 257, 16384, 32768, 65535};
    for (int i = 0; i < 64; i++) {
        if (coefficients == MILD)
            table->quantval[i] = (UINT16)(1 + draw(2 + (uint32_t)i / 4));
        else
            table->quantval[i] = draw(3) ? (UINT16)(1 + draw(65535)) : awkward[draw(8)];
    }
    table->sent_table = FALSE;
}

/* Magnitudes stay below 2^14: arithmetic coding has no room for a difference of two DC of more. */
static int16_t draw_wild(void)
{
    switch (draw(4)) {
    case 0:
        return (int16_t)draw_within(16383);
    case 1:
        return (int16_t)(draw(2) ? 16383 : -16383);
    case 2: /* around the escape of packed values */
        return (int16_t)((draw(2) ? 1 : -1) * (125 + (int)draw(6)));
    default:
        return (int16_t)draw_within(3);
    }
}

static void draw_block(int16_t *block, const uint16_t *quant, uint32_t coefficients)
{
    const uint32_t n = coefficients == ONE_ROW ? 8 : 64, density = 1 + draw(8);
    memset(block, 0, 64 * sizeof *block);
    if (coefficients == MILD) {
        /* below 125 + 20 * 60 / 4 < 512 in magnitude: what libjpeg's C code clamps rightly */
        block[0] = (int16_t)(draw_within(1000) / quant[0]);
        for (uint32_t n_left = draw(20); n_left > 0; n_left--) {
            const uint32_t k = 1 + draw(draw(2) ? 63 : 8);
            block[k] = (int16_t)(draw_within(60) / quant[k]);
        }
        return;
    }
    block[0] = draw(3) ? draw_wild() : (int16_t)draw_within(200);
    for (uint32_t k = 1; k < n; k++)
        if (draw(density) == 0)
            block[k] = draw_wild();
}

/* As libjpeg counts: a scan of several components holds at most ten blocks an MCU. */
static void set_scans(j_compress_ptr c, jpeg_scan_info *scans, int n)
{
    int n_blocks = 0;
    for (int i = 0; i < n; i++)
        n_blocks += c->comp_info[i].h_samp_factor * c->comp_info[i].v_samp_factor;
    for (int i = 0; i < n; i++) {
        scans[i] = (jpeg_scan_info){.comps_in_scan = 1, .Se = 63};
        scans[i].component_index[0] = i;
    }
    if (n > 1 && (n_blocks > 10 || draw(3) == 0)) {
        c->scan_info = scans;
        c->num_scans = n;
    }
}

static void fill_component(j_compress_ptr c, jvirt_barray_ptr array,
                           const struct pstk__jpeg_component *k, uint32_t coefficients)
{
    const UINT16 *quant = c->comp_info[k->id].quant_table->quantval;
    for (uint32_t y = 0; y < k->rows; y++) {
        JBLOCKARRAY row = c->mem->access_virt_barray((j_common_ptr)c, array, y, 1, TRUE);
        for (uint32_t x = 0; x < k->stride; x++)
            draw_block(row[0][x], quant, coefficients);
    }
}

/* Returns the file, to be freed, and its size. */
static uint8_t *write_file(const struct file_spec *spec, size_t *size)
{
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr errors;
    jpeg_scan_info scans[4];
    jvirt_barray_ptr arrays[4];
    unsigned char *data = NULL;
    unsigned long n_bytes = 0;
    const int n = colors[spec->color].n_components;
    struct pstk__jpeg_frame f = {spec->width, spec->height, (uint32_t)n, spec->color, 0, 0, {{0}}};

    memset(&c, 0, sizeof c);
    c.err = jpeg_std_error(&errors);
    jpeg_create_compress(&c);
    jpeg_mem_dest(&c, &data, &n_bytes);
    c.image_width = spec->width;
    c.image_height = spec->height;
    c.input_components = n;
    c.in_color_space = colors[spec->color].space;
    jpeg_set_defaults(&c);
    jpeg_set_colorspace(&c, colors[spec->color].space);
    for (int i = 0; i < n; i++) {
        f.component[i] =
            (struct pstk__jpeg_component){.id = (uint8_t)i, .h = spec->h[i], .v = spec->v[i]};
        c.comp_info[i].h_samp_factor = spec->h[i];
        c.comp_info[i].v_samp_factor = spec->v[i];
        c.comp_info[i].quant_tbl_no = i;
        c.quant_tbl_ptrs[i] = jpeg_alloc_quant_table((j_common_ptr)&c);
        draw_quant(c.quant_tbl_ptrs[i], spec->coefficients);
        c.comp_info[i].quant_table = c.quant_tbl_ptrs[i];
    }
    pstk__jpeg_frame_layout(&f);
    c.arith_code = spec->coefficients != MILD;
    set_scans(&c, scans, n);
    for (int i = 0; i < n; i++) {
        const struct pstk__jpeg_component *k = &f.component[i];
        const uint32_t padded =
            (k->rows + k->v - 1u) / k->v * k->v; /* also of a single component */
        arrays[i] = c.mem->request_virt_barray((j_common_ptr)&c, JPOOL_IMAGE, TRUE, k->stride,
                                               padded, k->v);
    }
    jpeg_write_coefficients(&c, arrays);
    for (int i = 0; i < n; i++)
        fill_component(&c, arrays[i], &f.component[i], spec->coefficients);
    jpeg_finish_compress(&c);
    jpeg_destroy_compress(&c);
    *size = n_bytes;
    return data;
}

/* ---- boxes of a file, by an ISA, against the full decode --------------------------------- */

struct subject {
    struct block_rows rows;
    uint8_t *reference; /* RGB of the whole image */
    uint32_t n_boxes;   /* so far; their channels take turns */
};

static int subject_open(struct subject *s, const uint8_t *file, size_t size)
{
    uint32_t width = 0, height = 0;
    *s = (struct subject){.reference = NULL};
    if (block_rows_open(&s->rows, file, size) < 0)
        return -1;
    s->reference = jpeg_reference(file, size, &width, &height);
    return s->reference && width == s->rows.frame.width && height == s->rows.frame.height ? 0 : -1;
}

static void subject_close(struct subject *s)
{
    block_rows_close(&s->rows);
    free(s->reference);
}

struct check {
    const struct subject *subject;
    struct pstk__box box;
    uint32_t channels;
    uint32_t n_rows, n_different;
};

static void compare_rows(void *user, const uint8_t *rgb, uint64_t stride, uint32_t n_rows)
{
    struct check *c = user;
    const size_t width = c->subject->rows.frame.width;
    for (uint32_t k = 0; k < n_rows; k++, rgb += stride) {
        const size_t at = ((c->box.top + c->n_rows) * width + c->box.left) * 3;
        c->n_rows++;
        if (c->n_rows > c->box.height ||
            row_differs(rgb, c->subject->reference + at, c->box.width, c->channels))
            c->n_different++;
    }
}

/* Within exactly the promised arena, of whose content nothing may depend. What the back end
 * returned, or 1 when rows differ or a promise was broken. */
static int box_rows(struct subject *s, uint32_t isa, struct pstk__box box)
{
    static const uint32_t turns[] = {3, 1, 3, 4, 3};
    const uint32_t channels = turns[s->n_boxes++ % 5];
    struct check check = {.subject = s, .box = box, .channels = channels};
    struct pstk_error err;
    struct pstk__arena arena;
    const struct pstk__row_sink sink = {.rows = compare_rows, .user = &check, .channels = channels};
    const struct pstk__block_source source = block_rows_source(&s->rows);
    const struct pstk__backend_config config = {.frame = &s->rows.frame,
                                                .kernels = pstk__jpeg_kernels(isa),
                                                .source = &source,
                                                .box = &box,
                                                .sink = &sink};
    const uint64_t size = pstk__jpeg_backend_scratch(s->rows.frame.width);
    pstk_error_init(&err, sizeof err);
    if (pstk__arena_open(&arena, size) < 0)
        return 1;
    memset(pstk__arena_get(&arena, size), 0xa5, size);
    pstk__arena_reset(&arena, 0);
    arena.size = size; /* not the page that it was rounded up to */
    block_rows_rewind(&s->rows);
    int r = pstk__jpeg_backend_check(&s->rows.frame, &err);
    if (r == 0)
        r = pstk__jpeg_backend_rows(&config, &arena, &err);
    const int is_kept = arena.used == 0 && s->rows.n_misused == 0;
    if (!is_kept || check.n_different || (r == 0 && check.n_rows != box.height)) {
        printf("# ISA %u, box %u,%u %ux%u, %u channels: %d, %u rows, %u differ; %s\n", isa,
               box.left, box.top, box.width, box.height, channels, r, check.n_rows,
               check.n_different, r < 0 ? err.message : "");
        r = 1;
    }
    pstk__arena_close(&arena);
    return r;
}

/* By every ISA there is. */
static int box_differs(struct subject *s, struct pstk__box box)
{
    for (uint32_t v = PSTK_KERNELS_C; v <= PSTK_KERNELS_NEON; v++)
        if (pstk__jpeg_kernels(v) != NULL && box_rows(s, v, box) != 0)
            return 1;
    return 0;
}

static struct pstk__box draw_box(uint32_t width, uint32_t height)
{
    struct pstk__box box = {draw(3) ? draw(width) : 0, draw(3) ? draw(height) : 0, 0, 0};
    const uint32_t to_right = width - box.left, to_bottom = height - box.top;
    box.width = draw(3) ? 1 + draw(to_right) : draw(2) ? to_right : 1;
    box.height = draw(3) ? 1 + draw(to_bottom) : draw(2) ? to_bottom : 1;
    return box;
}

/* The whole, the four corners, and n others. */
static int boxes_differ(struct subject *s, uint32_t n)
{
    const uint32_t w = s->rows.frame.width, h = s->rows.frame.height;
    int bad = box_differs(s, (struct pstk__box){0, 0, w, h});
    for (uint32_t i = 0; i < 4; i++)
        bad |= box_differs(s, (struct pstk__box){i % 2 ? w - 1 : 0, i / 2 ? h - 1 : 0, 1, 1});
    for (uint32_t i = 0; i < n; i++)
        bad |= box_differs(s, draw_box(w, h));
    return bad;
}

static void print_spec(const struct file_spec *s)
{
    printf("# %u x %u, colour %u, coefficients %u, factors", s->width, s->height, s->color,
           s->coefficients);
    for (int i = 0; i < colors[s->color].n_components; i++)
        printf(" %ux%u", s->h[i], s->v[i]);
    printf("\n");
}

static int spec_differs(const struct file_spec *spec, uint32_t n_boxes)
{
    struct subject s;
    size_t size;
    uint8_t *file = write_file(spec, &size);
    int bad = subject_open(&s, file, size) < 0 || boxes_differ(&s, n_boxes);
    if (bad)
        print_spec(spec);
    subject_close(&s);
    free(file);
    return bad;
}

/* ---- samplings ------------------------------------------------------------------------------ */

/* Every whole ratio, both ways round, and mixtures of three. */
static const uint8_t samplings[][6] = {
    {1, 1, 1, 1, 1, 1}, {2, 1, 1, 1, 1, 1}, {1, 2, 1, 1, 1, 1}, {2, 2, 1, 1, 1, 1},
    {4, 1, 1, 1, 1, 1}, {1, 4, 1, 1, 1, 1}, {4, 2, 1, 1, 1, 1}, {2, 4, 1, 1, 1, 1},
    {4, 4, 1, 1, 1, 1}, {3, 1, 1, 1, 1, 1}, {1, 3, 1, 1, 1, 1}, {3, 3, 1, 1, 1, 1},
    {1, 1, 2, 2, 2, 2}, {1, 1, 2, 1, 1, 2}, {2, 2, 2, 1, 1, 2}, {2, 2, 1, 2, 1, 1},
    {2, 1, 2, 1, 1, 1}, {4, 4, 2, 2, 1, 1}, {4, 4, 2, 4, 4, 2}, {2, 4, 1, 2, 2, 2},
    {4, 2, 2, 1, 2, 2}, {2, 2, 2, 2, 2, 2}, {1, 1, 4, 4, 2, 1}, {2, 4, 2, 2, 1, 4},
};
#define N_SAMPLINGS (sizeof samplings / sizeof samplings[0])

static void set_sampling(struct file_spec *s, size_t sampling)
{
    for (int i = 0; i < 4; i++) {
        s->h[i] = samplings[sampling][i % 3 * 2];
        s->v[i] = samplings[sampling][i % 3 * 2 + 1];
    }
}

TEST(every_sampling_and_colour_equals_libjpeg_in_every_box)
{
    for (size_t i = 0; i < N_SAMPLINGS; i++)
        for (uint32_t color = PSTK__JPEG_YCC; color <= PSTK__JPEG_YCCK; color++)
            for (uint32_t k = 0; k < 3; k++) {
                struct file_spec s = {.width = 1 + draw(70), .height = 1 + draw(70)};
                s.color = color;
                set_sampling(&s, i);
                CHECK(!spec_differs(&s, 10));
            }
}

TEST(small_sides_equal_libjpeg)
{
    static const uint8_t common[5] = {0, 1, 2, 3, 17};
    for (uint32_t i = 0; i < 5; i++)
        for (uint32_t w = 1; w <= 9; w++)
            for (uint32_t h = 1; h <= 9; h++) {
                struct file_spec s = {.width = w, .height = h, .color = PSTK__JPEG_YCC};
                set_sampling(&s, common[i]);
                CHECK(!spec_differs(&s, 2));
            }
}

TEST(sides_up_to_40_equal_libjpeg)
{
    for (uint32_t w = 1; w <= 40; w++)
        for (uint32_t k = 0; k < 4; k++) {
            struct file_spec s = {.width = w, .height = 1 + draw(40)};
            s.color = 1 + draw(5);
            set_sampling(&s, k ? draw(4) : draw(N_SAMPLINGS));
            CHECK(!spec_differs(&s, 4));
        }
}

TEST(gray_images_do_not_depend_on_their_factors)
{
    for (uint8_t factor = 1; factor <= 4; factor++) {
        struct file_spec s = {.width = 45, .height = 27, .color = PSTK__JPEG_GRAY};
        s.h[0] = factor;
        s.v[0] = (uint8_t)(5 - factor);
        CHECK(!spec_differs(&s, 20));
    }
}

/* On x86-64, by its SIMD code (SSE2 and AVX2 alike): its C and NEON code have other bits there. */
TEST(hostile_coefficients_overflow_as_in_libjpeg)
{
#if !defined(__x86_64__) || !defined(C_ARITH_CODING_SUPPORTED)
    SKIP("only libjpeg-turbo's code for x86-64, with arithmetic coding, overflows like this");
#endif
    for (uint32_t i = 0; i < 120; i++) {
        struct file_spec s = {.width = 1 + draw(60), .height = 1 + draw(60)};
        s.color = i % 5 + 1;
        s.coefficients = WILD + i / 5 % 2;
        set_sampling(&s, i % 3 ? draw(4) : draw(N_SAMPLINGS));
        CHECK(!spec_differs(&s, 3));
    }
}

/* All spans of columns by a few of rows, and the other way round. */
TEST(every_begin_and_end_of_a_box_equals_libjpeg)
{
    static const uint8_t common[4] = {0, 1, 2, 3};
    const uint32_t w = 37, h = 35;
    for (uint32_t i = 0; i < 4; i++) {
        struct subject s;
        struct file_spec spec = {.width = w, .height = h, .color = PSTK__JPEG_YCC};
        size_t size;
        set_sampling(&spec, common[i]);
        uint8_t *file = write_file(&spec, &size);
        CHECK_EQ(subject_open(&s, file, size), 0);
        for (uint32_t a = 0; a < w; a++)
            for (uint32_t n = 1; n <= w - a; n++) {
                const uint32_t top = draw(h);
                CHECK(!box_differs(&s, (struct pstk__box){a, top, n, 1}));
            }
        for (uint32_t a = 0; a < h; a++)
            for (uint32_t n = 1; n <= h - a; n++) {
                const uint32_t left = draw(w);
                CHECK(!box_differs(&s, (struct pstk__box){left, a, 1, n}));
            }
        subject_close(&s);
        free(file);
    }
}

/* libjpeg-turbo stops at 65500. */
TEST(the_longest_sides_equal_libjpeg)
{
    for (uint32_t i = 0; i < 8; i++) {
        struct file_spec s = {.width = i % 2 ? 65500 : 1, .height = i % 2 ? 1 : 65500};
        s.color = PSTK__JPEG_YCC;
        set_sampling(&s, i / 2);
        CHECK(!spec_differs(&s, 1));
    }
}

static void count_rows(void *user, const uint8_t *rgb, uint64_t stride, uint32_t n_rows)
{
    (void)rgb;
    (void)stride;
    *(uint32_t *)user += n_rows;
}

/* The frame with the largest bound: four components, none of full size, three interpolated; and as
 * many channels as there can be. */
TEST(the_promised_memory_is_enough_for_every_width)
{
    static const uint8_t factors[4][2] = {{2, 1}, {1, 2}, {2, 1}, {2, 1}};
    for (uint32_t width = 65535; width > 0; width -= 1 + draw(width / 8 + 1) % width) {
        uint32_t n = 0;
        const struct pstk__row_sink sink = {.rows = count_rows, .user = &n, .channels = 4};
        struct block_rows rows = {.frame = {.width = width, .height = 20, .n_components = 4}};
        const struct pstk__block_source source = block_rows_source(&rows);
        const struct pstk__box box = {0, 0, width, 20};
        const struct pstk__backend_config config = {
            &rows.frame, pstk__jpeg_kernels(PSTK_KERNELS_AUTO), &source, &box, &sink};
        struct pstk__arena arena;
        rows.frame.color = PSTK__JPEG_YCCK;
        for (int i = 0; i < 4; i++)
            rows.frame.component[i] =
                (struct pstk__jpeg_component){.h = factors[i][0], .v = factors[i][1]};
        pstk__jpeg_frame_layout(&rows.frame);
        for (int i = 0; i < 4; i++) {
            const struct pstk__jpeg_component *k = &rows.frame.component[i];
            rows.blocks[i] = calloc((size_t)k->rows * k->stride, 64 * sizeof(int16_t));
            CHECK(rows.blocks[i] != NULL);
        }
        CHECK_EQ(pstk__jpeg_backend_check(&rows.frame, NULL), 0);
        CHECK_EQ(pstk__arena_open(&arena, pstk__jpeg_backend_scratch(width)), 0);
        arena.size = pstk__jpeg_backend_scratch(width);
        CHECK_EQ(pstk__jpeg_backend_rows(&config, &arena, NULL), 0);
        CHECK_EQ(n, 20);
        pstk__arena_close(&arena);
        block_rows_close(&rows);
    }
}

/* ---- pictures ------------------------------------------------------------------------------- */

TEST(pictures_equal_libjpeg)
{
    static const struct jpeg_spec specs[] = {
        {.width = 301, .height = 97, .n_components = 3, .h = 2, .v = 2},
        {.width = 150, .height = 200, .n_components = 3, .h = 1, .v = 1, .quality = 97},
        {.width = 131, .height = 77, .n_components = 3, .h = 2, .v = 1, .progressive = 1},
        {.width = 77, .height = 131, .n_components = 3, .h = 1, .v = 2, .quality = 30},
        {.width = 133, .height = 88, .n_components = 1, .h = 1, .v = 1, .quality = 5},
        {.width = 99, .height = 98, .n_components = 4, .h = 2, .v = 2},
        {.width = 99, .height = 98, .n_components = 4, .h = 1, .v = 1, .rgb = 1},
        {.width = 64, .height = 64, .n_components = 3, .h = 1, .v = 1, .rgb = 1},
        {.width = 97, .height = 64, .n_components = 3, .h = 4, .v = 2, .h3 = 2, .interleaved = 0},
    };
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
        struct jpeg_spec spec = specs[i];
        struct subject s;
        size_t size;
        spec.interleaved = !spec.h3;
        uint8_t *file = jpeg_write(&spec, &size);
        CHECK_EQ(subject_open(&s, file, size), 0);
        CHECK(!boxes_differ(&s, 12));
        subject_close(&s);
        free(file);
    }
}

static uint8_t *read_whole(const char *directory, const char *name, size_t *size)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *f = fopen(path, "rb");
    if (f == NULL)
        return NULL;
    fseek(f, 0, SEEK_END);
    const long n = ftell(f);
    rewind(f);
    uint8_t *data = n > 0 ? malloc((size_t)n) : NULL;
    *size = data != NULL ? fread(data, 1, (size_t)n, f) : 0;
    fclose(f);
    return data;
}

TEST(real_images_equal_libjpeg)
{
    const char *directory = getenv("PENSTOCK_TEST_IMAGES");
    DIR *d = directory ? opendir(directory) : NULL;
    uint32_t n_read = 0;
    if (d == NULL)
        SKIP("PENSTOCK_TEST_IMAGES names no directory");
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        struct subject s = {.reference = NULL};
        size_t size = 0;
        if (e->d_name[0] == '.' || draw(6) != 0) /* about 50 of 300 */
            continue;
        uint8_t *file = read_whole(directory, e->d_name, &size);
        if (file != NULL && size > 4 && file[0] == 0xff && file[1] == 0xd8 &&
            subject_open(&s, file, size) == 0) {
            n_read++;
            CHECK(!boxes_differ(&s, 2));
        }
        subject_close(&s);
        free(file);
    }
    closedir(d);
    printf("# %u images\n", n_read);
    CHECK(n_read > 0);
}

/* ---- checks and errors ---------------------------------------------------------------------- */

/* Decode a file with libjpeg. Returns 0, or libjpeg's message code. */
static int decode_guarded(j_decompress_ptr c, struct block_errors *errors, const uint8_t *file,
                          size_t size)
{
    if (setjmp(errors->escape))
        return errors->pub.msg_code;
    jpeg_create_decompress(c);
    jpeg_mem_src(c, file, size);
    jpeg_read_header(c, TRUE);
    jpeg_start_decompress(c);
    return 0;
}

static int libjpeg_says(const uint8_t *file, size_t size)
{
    struct jpeg_decompress_struct c;
    struct block_errors errors;
    memset(&c, 0, sizeof c);
    c.err = jpeg_std_error(&errors.pub);
    errors.pub.error_exit = block_error_exit;
    const int r = decode_guarded(&c, &errors, file, size);
    jpeg_destroy_decompress(&c);
    return r;
}

TEST(check_takes_the_samplings_that_libjpeg_takes)
{
    uint32_t n_taken = 0, n_refused = 0;
    for (uint32_t i = 0; i < 1500; i++) {
        struct file_spec spec = {.width = 20, .height = 20, .color = PSTK__JPEG_YCC};
        struct block_rows rows;
        size_t size;
        for (int k = 0; k < 3; k++) {
            spec.h[k] = (uint8_t)(1 + draw(4));
            spec.v[k] = (uint8_t)(1 + draw(4));
        }
        uint8_t *file = write_file(&spec, &size);
        CHECK_EQ(block_rows_open(&rows, file, size), 0);
        const int r = pstk__jpeg_backend_check(&rows.frame, NULL), code = libjpeg_says(file, size);
        CHECK(code == 0 || code == JERR_FRACT_SAMPLE_NOTIMPL);
        CHECK_EQ(r, code ? PSTK_ENOTSUP : 0);
        n_taken += r == 0;
        n_refused += r != 0;
        if (r == 0 && i % 4 == 0)
            CHECK(!spec_differs(&spec, 1));
        block_rows_close(&rows);
        free(file);
    }
    CHECK(n_taken > 100 && n_refused > 100);
}

static struct pstk__jpeg_frame a_frame(void)
{
    struct pstk__jpeg_frame f = {.width = 20, .height = 30, .n_components = 3};
    f.color = PSTK__JPEG_YCC;
    for (int i = 0; i < 3; i++)
        f.component[i].h = f.component[i].v = (uint8_t)(i ? 1 : 2);
    pstk__jpeg_frame_layout(&f);
    return f;
}

#define CHECK_FRAME(change, result)                                                                \
    do {                                                                                           \
        struct pstk__jpeg_frame f = a_frame();                                                     \
        change;                                                                                    \
        CHECK_EQ(pstk__jpeg_backend_check(&f, NULL), result);                                      \
    } while (0)

TEST(check_refuses_frames_that_contradict_themselves)
{
    CHECK_FRAME((void)0, 0);
    CHECK_FRAME(f.color = 0, PSTK_ENOTSUP);
    CHECK_FRAME(f.color = 6, PSTK_ENOTSUP);
    CHECK_FRAME(f.color = PSTK__JPEG_CMYK, PSTK_EBADMSG);
    CHECK_FRAME(f.n_components = 1, PSTK_EBADMSG);
    CHECK_FRAME(f.width = 0, PSTK_EBADMSG);
    CHECK_FRAME(f.height = 65536, PSTK_EBADMSG);
    CHECK_FRAME(f.width = 33, PSTK_EBADMSG);
    CHECK_FRAME(f.max_h = 1, PSTK_EBADMSG);
    CHECK_FRAME(f.max_v = 4, PSTK_EBADMSG);
    CHECK_FRAME(f.component[1].h = 0, PSTK_EBADMSG);
    CHECK_FRAME((f.component[2].v = 5, pstk__jpeg_frame_layout(&f)), PSTK_EBADMSG);
    CHECK_FRAME((f.component[1].h = 5, pstk__jpeg_frame_layout(&f)), PSTK_EBADMSG);
    CHECK_FRAME(f.component[1].width++, PSTK_EBADMSG);
    CHECK_FRAME(f.component[1].height--, PSTK_EBADMSG);
    CHECK_FRAME(f.component[0].across++, PSTK_EBADMSG);
    CHECK_FRAME(f.component[0].down--, PSTK_EBADMSG);
    CHECK_FRAME(f.component[2].stride++, PSTK_EBADMSG);
    CHECK_FRAME(f.component[2].rows++, PSTK_EBADMSG);
}

TEST(an_error_of_the_source_ends_the_box_and_gives_memory_back)
{
    struct file_spec spec = {.width = 40, .height = 40, .color = PSTK__JPEG_YCC};
    struct subject s;
    size_t size;
    set_sampling(&spec, 3);
    uint8_t *file = write_file(&spec, &size);
    CHECK_EQ(subject_open(&s, file, size), 0);
    for (uint32_t i = 1; i <= 11; i++) { /* 5 rows of luma, 3 of each chroma */
        s.rows.fail_at = i;
        CHECK_EQ(box_rows(&s, PSTK_KERNELS_C, (struct pstk__box){3, 0, 30, 40}), PSTK_EBADMSG);
        CHECK_EQ(s.rows.n_calls, i);
    }
    s.rows.fail_at = 12;
    CHECK_EQ(box_rows(&s, PSTK_KERNELS_C, (struct pstk__box){3, 0, 30, 40}), 0);
    subject_close(&s);
    free(file);
}

/* The image has 4:2:0, 80 x 80. A box reads the rows of blocks that it lies in; for chroma also
 * those of its margin. */
TEST(a_box_reads_no_more_rows_than_it_needs)
{
    static const uint32_t expected[][3] = {
        {0, 8, 3},   {0, 15, 4}, {0, 16, 6}, {17, 14, 4}, {16, 14, 6}, {17, 15, 6},
        {17, 16, 7}, {40, 1, 3}, {79, 1, 3}, {64, 1, 5},  {63, 1, 5},  {0, 80, 20},
    };
    struct file_spec spec = {.width = 80, .height = 80, .color = PSTK__JPEG_YCC};
    struct subject s;
    size_t size;
    set_sampling(&spec, 3);
    uint8_t *file = write_file(&spec, &size);
    CHECK_EQ(subject_open(&s, file, size), 0);
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        const struct pstk__box box = {0, expected[i][0], 80, expected[i][1]};
        CHECK_EQ(box_rows(&s, PSTK_KERNELS_C, box), 0);
        CHECK_EQ(s.rows.n_calls, expected[i][2]);
    }
    subject_close(&s);
    free(file);
}

TEST(the_best_isa_is_chosen_and_others_only_where_they_run)
{
    CHECK(pstk__jpeg_kernels(PSTK_KERNELS_AUTO) != NULL);
    CHECK(pstk__jpeg_kernels(PSTK_KERNELS_C) == &pstk__jpeg_kernels_c);
    for (uint32_t v = PSTK_KERNELS_C; v <= PSTK_KERNELS_NEON; v++) {
        const struct pstk__jpeg_kernels *k = pstk__jpeg_kernels(v);
        CHECK((k != NULL) == pstk__kernels_run(v) && (k == NULL || k->isa == v));
    }
    CHECK(pstk__jpeg_kernels(PSTK_KERNELS_NEON + 1) == NULL);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(every_sampling_and_colour_equals_libjpeg_in_every_box),
        CASE(small_sides_equal_libjpeg),
        CASE(sides_up_to_40_equal_libjpeg),
        CASE(gray_images_do_not_depend_on_their_factors),
        CASE(hostile_coefficients_overflow_as_in_libjpeg),
        CASE(every_begin_and_end_of_a_box_equals_libjpeg),
        CASE(the_longest_sides_equal_libjpeg),
        CASE(the_promised_memory_is_enough_for_every_width),
        CASE(pictures_equal_libjpeg),
        CASE(real_images_equal_libjpeg),
        CASE(check_takes_the_samplings_that_libjpeg_takes),
        CASE(check_refuses_frames_that_contradict_themselves),
        CASE(an_error_of_the_source_ends_the_box_and_gives_memory_back),
        CASE(a_box_reads_no_more_rows_than_it_needs),
        CASE(the_best_isa_is_chosen_and_others_only_where_they_run),
    };
    return RUN_CASES(cases);
}
