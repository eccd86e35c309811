/* SPDX-License-Identifier: Apache-2.0 */
#include "support/test.h"

#include "base/arena.h"
#include "image/image.h"
#include "image/png/decode.h"
#include "support/png_writer.h"

#include <penstock/format.h>

struct subject {
    struct png_spec spec;
    uint8_t *file; /* owned */
    size_t size;
    struct pstk__image_info info;
    struct pstk__arena arena;
    struct pstk__image_state *state;
    struct pstk_error err;
};

struct check {
    const struct png_spec *spec;
    struct pstk__box box;
    uint32_t channels;
    uint32_t n_rows;
    uint32_t n_different;
};

static void compare_rows(void *user, const uint8_t *rgb, uint64_t stride, uint32_t n_rows)
{
    struct check *c = user;
    const uint32_t n = c->channels;
    for (uint32_t k = 0; k < n_rows; k++, rgb += stride) {
        for (uint32_t i = 0; i < c->box.width * n; i++)
            c->n_different += rgb[i] != png_expected_of(c->spec, n, c->box.left + i / n,
                                                        c->box.top + c->n_rows, i % n);
        c->n_rows++;
    }
}

static int subject_open(struct subject *s, const struct png_spec *spec)
{
    *s = (struct subject){.spec = *spec};
    pstk_error_init(&s->err, sizeof s->err);
    s->file = png_write(spec, &s->size);
    int r = pstk__image_probe(s->file, s->size, PSTK__MAX_PIXELS, &s->info, &s->err);
    if (r < 0)
        return r;
    const uint64_t scratch =
        pstk__image_png.scratch(spec->width, spec->height, (uint64_t)spec->width * spec->height);
    if (pstk__arena_open(&s->arena, scratch) < 0)
        return -1;
    s->arena.size = scratch; /* not the page that it was rounded up to */
    return pstk__image_state_open(&s->state, &s->arena, PSTK_KERNELS_AUTO, &s->err);
}

static void subject_close(struct subject *s)
{
    pstk__image_state_close(s->state);
    pstk__arena_close(&s->arena);
    free(s->file);
}

static int decode_channels(struct subject *s, struct pstk__box box, uint32_t channels)
{
    struct check c = {.spec = &s->spec, .box = box, .channels = channels};
    const struct pstk__coded image = {&pstk__image_png, s->file, s->size, &s->info};
    const struct pstk__row_sink sink = {.rows = compare_rows, .user = &c, .channels = channels};
    int r = pstk__image_decode(s->state, &image, &box, &sink, &s->err);
    if (r < 0)
        return r;
    if (c.n_rows == box.height && c.n_different == 0 && s->arena.used == 0)
        return 0;
    printf(
        "# colour %d, %d bits, interlaced %d, %u channels, box %u,%u %ux%u: %u rows, %u differ\n",
        s->spec.color, s->spec.depth, s->spec.interlaced, channels, box.left, box.top, box.width,
        box.height, c.n_rows, c.n_different);
    return 1;
}

/* In all numbers of channels, which agree on what is damaged. */
static int decode_box(struct subject *s, struct pstk__box box)
{
    int gray = decode_channels(s, box, 1), rgba = decode_channels(s, box, 4);
    int rgb = decode_channels(s, box, 3);
    if (gray == rgb && rgba == rgb)
        return rgb;
    printf("# colour %d, %d bits: %d in 1 channel, %d in 3, %d in 4: %s\n", s->spec.color,
           s->spec.depth, gray, rgb, rgba, s->err.message);
    return 1;
}

static int decode_whole(struct subject *s)
{
    return decode_box(s, (struct pstk__box){.width = s->info.width, .height = s->info.height});
}

static const struct {
    int color, depth;
} kinds[] = {
    {PNG_COLOR_TYPE_GRAY, 1},      {PNG_COLOR_TYPE_GRAY, 2},       {PNG_COLOR_TYPE_GRAY, 4},
    {PNG_COLOR_TYPE_GRAY, 8},      {PNG_COLOR_TYPE_RGB, 8},        {PNG_COLOR_TYPE_RGB, 16},
    {PNG_COLOR_TYPE_PALETTE, 1},   {PNG_COLOR_TYPE_PALETTE, 2},    {PNG_COLOR_TYPE_PALETTE, 4},
    {PNG_COLOR_TYPE_PALETTE, 8},   {PNG_COLOR_TYPE_GRAY_ALPHA, 8}, {PNG_COLOR_TYPE_GRAY_ALPHA, 16},
    {PNG_COLOR_TYPE_RGB_ALPHA, 8}, {PNG_COLOR_TYPE_RGB_ALPHA, 16},
};

/* Every box of an image of this kind and size. */
static int all_boxes(struct subject *s)
{
    uint32_t w = s->info.width, h = s->info.height;
    struct pstk__box b;
    for (b.left = 0; b.left < w; b.left++)
        for (b.width = 1; b.width <= w - b.left; b.width++)
            for (b.top = 0; b.top < h; b.top++)
                for (b.height = 1; b.height <= h - b.top; b.height++)
                    if (decode_box(s, b) != 0)
                        return -1;
    return 0;
}

TEST(every_kind_gives_the_pixels_that_were_written)
{
    static const uint32_t sizes[][2] = {{1, 1}, {40, 37}, {33, 1}, {1, 9}, {300, 5}, {3, 2}};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++)
            for (int bits = 0; bits < 4; bits++) {
                const struct png_spec spec = {.width = sizes[k][0],
                                              .height = sizes[k][1],
                                              .color = kinds[i].color,
                                              .depth = kinds[i].depth,
                                              .interlaced = bits & 1,
                                              .transparent = bits >> 1};
                struct subject s;
                CHECK_EQ(subject_open(&s, &spec), 0);
                CHECK_EQ(decode_whole(&s), 0);
                subject_close(&s);
            }
}

TEST(indices_past_a_short_palette_are_black_as_in_pillow_12)
{
    for (int depth = 1; depth <= 8; depth *= 2)
        for (int interlaced = 0; interlaced < 2; interlaced++) {
            const struct png_spec spec = {.width = 40,
                                          .height = 30,
                                          .color = PNG_COLOR_TYPE_PALETTE,
                                          .depth = depth,
                                          .interlaced = interlaced,
                                          .n_colors = depth == 1 ? 1 : 3};
            struct subject s;
            CHECK_EQ(subject_open(&s, &spec), 0);
            CHECK_EQ(decode_whole(&s), 0);
            subject_close(&s);
        }
}

TEST(a_box_equals_that_of_the_image)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        for (int interlaced = 0; interlaced < 2; interlaced++) {
            const struct png_spec spec = {.width = 7,
                                          .height = 6,
                                          .color = kinds[i].color,
                                          .depth = kinds[i].depth,
                                          .interlaced = interlaced};
            struct subject s;
            CHECK_EQ(subject_open(&s, &spec), 0);
            CHECK_EQ(all_boxes(&s), 0);
            subject_close(&s);
        }
}

TEST(gray_of_16_bits_is_refused)
{
    const struct png_spec spec = {
        .width = 5, .height = 4, .color = PNG_COLOR_TYPE_GRAY, .depth = 16};
    struct subject s;
    CHECK_EQ(subject_open(&s, &spec), PSTK_ENOTSUP);
    CHECK(strstr(s.err.message, "16-bit gray") != NULL);
    CHECK(strstr(s.err.message, "as the mask of an image, in a field of kind mask") != NULL);
    subject_close(&s);
}

static const struct png_spec plain = {
    .width = 23, .height = 17, .color = PNG_COLOR_TYPE_RGB, .depth = 8};

TEST(a_file_cut_anywhere_is_refused)
{
    for (int interlaced = 0; interlaced < 2; interlaced++) {
        struct png_spec spec = plain;
        struct subject s;
        spec.interlaced = interlaced;
        CHECK_EQ(subject_open(&s, &spec), 0);
        uint8_t *file = s.file;
        size_t size = s.size;
        for (size_t cut = 0; cut < size; cut++) {
            s.file = malloc(cut + 1);
            s.size = cut;
            CHECK(s.file != NULL);
            memcpy(s.file, file, cut);
            int r = decode_whole(&s);
            free(s.file);
            CHECK_EQ(r, PSTK_EBADMSG);
            CHECK_EQ(s.err.stage, PSTK_STAGE_DECODE);
            CHECK_EQ(s.arena.used, 0);
        }
        s.file = file;
        s.size = size;
        CHECK_EQ(decode_whole(&s), 0);
        subject_close(&s);
    }
}

TEST(a_flipped_bit_anywhere_is_refused)
{
    struct subject s;
    CHECK_EQ(subject_open(&s, &plain), 0);
    for (size_t bit = 0; bit < s.size * 8; bit++) {
        s.file[bit / 8] ^= (uint8_t)(1u << bit % 8);
        int r = decode_whole(&s);
        s.file[bit / 8] ^= (uint8_t)(1u << bit % 8);
        CHECK_EQ(r, PSTK_EBADMSG);
    }
    CHECK_EQ(decode_whole(&s), 0);
    subject_close(&s);
}

static void put_be32(uint8_t *p, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(v >> (24 - 8 * i));
}

static uint32_t crc_of(const uint8_t *p, size_t n)
{
    uint32_t crc = 0xffffffffu;
    for (size_t i = 0; i < n; i++) {
        crc ^= p[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

/* Insert a chunk behind the first `at` bytes. */
static void insert_chunk(struct subject *s, size_t at, const char *name, const void *data,
                         uint32_t n)
{
    uint8_t *file = malloc(s->size + 12 + n);
    if (!file)
        abort();
    memcpy(file, s->file, at);
    put_be32(file + at, n);
    memcpy(file + at + 4, name, 4);
    memcpy(file + at + 8, data, n);
    put_be32(file + at + 8 + n, crc_of(file + at + 4, 4 + n));
    memcpy(file + at + 12 + n, s->file + at, s->size - at);
    free(s->file);
    s->file = file;
    s->size += 12 + n;
}

TEST(chunks_that_do_not_bear_on_the_pixels_cost_no_memory)
{
    static uint8_t junk[1 << 20];
    struct subject s;
    CHECK_EQ(subject_open(&s, &plain), 0);
    CHECK_EQ(decode_whole(&s), 0);
    size_t peak = s.arena.peak;
    insert_chunk(&s, 33, "zTXt", junk, sizeof junk);
    insert_chunk(&s, 33, "iCCP", junk, 4096);
    insert_chunk(&s, 33, "gAMA", "\0\0\0\1", 4);
    insert_chunk(&s, 33, "acTL", "\0\0\0\2\0\0\0\0", 8);
    insert_chunk(&s, s.size - 12, "fdAT", junk, 4096); /* before IEND */
    CHECK_EQ(decode_whole(&s), 0);
    CHECK_EQ(s.arena.peak, peak);
    for (size_t i = 0; i < 12 + sizeof junk; i += 4099) { /* but their checksums count */
        s.file[s.size - 12 - 4108 + i % 4108] ^= 4;
        CHECK_EQ(decode_whole(&s), PSTK_EBADMSG);
        s.file[s.size - 12 - 4108 + i % 4108] ^= 4;
    }
    subject_close(&s);
}

TEST(bytes_after_the_end_are_ignored)
{
    struct subject s;
    CHECK_EQ(subject_open(&s, &plain), 0);
    s.file = realloc(s.file, s.size + 1000);
    CHECK(s.file != NULL);
    memset(s.file + s.size, 0xff, 1000);
    s.size += 1000;
    CHECK_EQ(decode_whole(&s), 0);
    subject_close(&s);
}

TEST(the_orientation_of_an_exif_chunk_is_found)
{
    static const uint8_t exif[26] = "MM\0*\0\0\0\x8\0\x1\1\x12\0\3\0\0\0\1\0\6\0\0\0\0\0";
    struct subject s;
    CHECK_EQ(subject_open(&s, &plain), 0);
    CHECK_EQ(s.info.orientation, 1);
    insert_chunk(&s, 33, "eXIf", exif, sizeof exif);
    CHECK_EQ(pstk__image_probe(s.file, s.size, PSTK__MAX_PIXELS, &s.info, &s.err), 0);
    CHECK_EQ(s.info.orientation, 6);
    CHECK_EQ(decode_whole(&s), 0);
    subject_close(&s);

    CHECK_EQ(subject_open(&s, &plain), 0);
    insert_chunk(&s, s.size - 12, "eXIf", exif, sizeof exif); /* after the image data */
    CHECK_EQ(pstk__image_probe(s.file, s.size, PSTK__MAX_PIXELS, &s.info, &s.err), 0);
    CHECK_EQ(s.info.orientation, 6);
    CHECK_EQ(decode_whole(&s), 0);
    subject_close(&s);
}

TEST(sizes_over_the_limit_are_refused_by_the_header)
{
    struct subject s;
    struct pstk__image_info info;
    CHECK_EQ(subject_open(&s, &plain), 0);
    CHECK_EQ(pstk__image_probe(s.file, s.size, 23 * 17 - 1, &info, &s.err), PSTK_EFBIG);
    CHECK_EQ(pstk__image_probe(s.file, s.size, 23 * 17, &info, &s.err), 0);
    put_be32(s.file + 16, 0x7fffffff);
    put_be32(s.file + 20, 0x7fffffff);
    put_be32(s.file + 29, crc_of(s.file + 12, 17));
    CHECK_EQ(pstk__image_probe(s.file, s.size, PSTK__MAX_PIXELS, &info, &s.err), PSTK_EFBIG);
    CHECK_EQ(decode_whole(&s), PSTK_EBADMSG); /* the record says otherwise */
    put_be32(s.file + 16, 0);
    put_be32(s.file + 29, crc_of(s.file + 12, 17));
    CHECK_EQ(pstk__image_probe(s.file, s.size, PSTK__MAX_PIXELS, &info, &s.err), PSTK_EBADMSG);
    put_be32(s.file + 16, 22);
    put_be32(s.file + 20, 17);
    put_be32(s.file + 29, crc_of(s.file + 12, 17));
    CHECK_EQ(decode_whole(&s), PSTK_EBADMSG);
    CHECK(strstr(s.err.message, "22 x 17") != NULL);
    subject_close(&s);
}

TEST(the_header_says_which_samples_a_file_has)
{
    static const uint32_t channels[] = {1, 0, 3, 1, 2, 0, 4}; /* by colour type */
    static const uint32_t depths[] = {0x10116, 0, 0x10100, 0x116, 0x10100, 0, 0x10100};
    struct subject s;
    struct pstk__image_info info;
    CHECK_EQ(subject_open(&s, &plain), 0);
    for (uint32_t color = 0; color < 8; color++)
        for (uint32_t depth = 0; depth < 20; depth++) {
            s.file[24] = (uint8_t)depth;
            s.file[25] = (uint8_t)color;
            put_be32(s.file + 29, crc_of(s.file + 12, 17));
            const int is_right = color < 7 && depths[color] >> depth & 1;
            const int is_clipped = color == PNG_COLOR_TYPE_GRAY && depth == 16;
            CHECK_EQ(pstk__image_probe(s.file, s.size, PSTK__MAX_PIXELS, &info, &s.err),
                     is_clipped ? PSTK_ENOTSUP
                     : is_right ? 0
                                : PSTK_EBADMSG);
            CHECK(!is_right || is_clipped ||
                  (info.channels == channels[color] && info.bit_depth == depth &&
                   info.has_palette == (color == PNG_COLOR_TYPE_PALETTE)));
            CHECK(is_right || strstr(s.err.message, "which no PNG has"));
        }
    subject_close(&s);
}

TEST(an_arena_that_is_too_small_is_an_error_at_any_size)
{
    struct png_spec spec = plain;
    struct subject s;
    static const uint32_t channels[] = {1, 3, 4};
    const struct pstk__box all = {.width = plain.width, .height = plain.height};
    spec.interlaced = 1;
    CHECK_EQ(subject_open(&s, &spec), 0);
    const size_t whole = s.arena.size;
    for (int i = 0; i < 3; i++) {
        s.arena.peak = 0;
        CHECK_EQ(decode_channels(&s, all, channels[i]), 0);
        size_t need = s.arena.peak;
        CHECK(need < whole);
        for (size_t small = 0; small < need; small += 64) {
            s.arena.size = small;
            CHECK_EQ(decode_channels(&s, all, channels[i]), PSTK_ENOMEM);
        }
        s.arena.size = need;
        CHECK_EQ(decode_channels(&s, all, channels[i]), 0);
        s.arena.size = whole;
    }
    subject_close(&s);
}

TEST(pixels_of_the_key_are_transparent_as_in_pillow)
{
    static const int depths[] = {1, 2, 4, 8, 8, 16};
    uint32_t n_transparent[6] = {0};
    for (int i = 0; i < 6; i++)
        for (int bits = 0; bits < 4; bits++) {
            const struct png_spec spec = {.width = 40,
                                          .height = 30,
                                          .color = i < 4 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB,
                                          .depth = depths[i],
                                          .interlaced = bits & 1,
                                          .transparent = 1,
                                          .key_is_first = bits >> 1};
            struct subject s;
            CHECK_EQ(subject_open(&s, &spec), 0);
            CHECK_EQ(decode_whole(&s), 0);
            for (uint32_t k = 0; k < 40 * 30; k++)
                n_transparent[i] += png_expected_alpha(&spec, k % 40, k / 40) == 0;
            subject_close(&s);
        }
    CHECK(n_transparent[0] > 0 && n_transparent[3] > 0 && n_transparent[4] > 0);
}

TEST(a_large_interlaced_image_takes_no_more_than_was_promised)
{
    const struct png_spec spec = {.width = 400,
                                  .height = 400,
                                  .color = PNG_COLOR_TYPE_RGB_ALPHA,
                                  .depth = 16,
                                  .interlaced = 1};
    struct subject s;
    CHECK_EQ(subject_open(&s, &spec), 0);
    CHECK_EQ(decode_whole(&s), 0);
    subject_close(&s);
}

TEST(a_key_that_is_cut_short_is_damage_where_alpha_is_asked_for)
{
    const struct pstk__box all = {.width = plain.width, .height = plain.height};
    struct subject s;
    CHECK_EQ(subject_open(&s, &plain), 0);
    insert_chunk(&s, 33, "tRNS", "\0\1\0\2\0", 5);
    CHECK_EQ(decode_channels(&s, all, 3), 0);
    CHECK_EQ(decode_channels(&s, all, 4), PSTK_EBADMSG);
    CHECK(strstr(s.err.message, "tRNS") != NULL);
    CHECK_EQ(pstk_image_check(s.file, s.size, 0, NULL, NULL, NULL), 0);
    subject_close(&s);
}

/* tRNS chunks that are odd, around a palette of 5 colours of 4 bits, and the alpha of its first
 * entries that Pillow 12.1 gives; 255 after these. */
struct odd {
    const char *before, *after, *late; /* PLTE, PLTE, the image data; or NULL */
    uint32_t sizes[3];
    uint8_t alpha[16];
    uint32_t n;
};

static const struct odd odd[] = {
    {.after = "\1\2\3", .sizes = {0, 3}, .alpha = {1, 2, 3}, .n = 3},
    {.after = "\1\2\3\4\5\6\7", .sizes = {0, 7}, .alpha = {1, 2, 3, 4, 5, 6, 7}, .n = 7},
    {.after = "", .sizes = {0, 0}, .n = 0},
    {.before = "\1\2\3", .sizes = {3}, .alpha = {1, 2, 3}, .n = 3},
    {.before = "\1\2\3", .after = "\5", .sizes = {3, 1}, .alpha = {5}, .n = 1},
    {.before = "\1\2\3", .after = "", .sizes = {3, 0}, .n = 0},
    {.after = "\1\2\3", .late = "\6", .sizes = {0, 3, 1}, .alpha = {6}, .n = 1},
    {.after = "\377\0\377", .sizes = {0, 3}, .alpha = {255, 0}, .n = 2},
    {.after = "\377\0\377\n", .sizes = {0, 4}, .alpha = {255, 0}, .n = 2},
    {.after = "\0\n\n", .sizes = {0, 3}, .alpha = {0, 10, 10}, .n = 3},
    {.after = "\377\n", .sizes = {0, 2}, .alpha = {255, 10}, .n = 2},
};

static const struct png_spec few_colors = {
    .width = 40, .height = 30, .color = PNG_COLOR_TYPE_PALETTE, .depth = 4, .n_colors = 5};

struct alpha_check {
    const struct odd *odd;
    uint32_t y, n_different;
};

static void compare_alpha(void *user, const uint8_t *rgba, uint64_t stride, uint32_t n_rows)
{
    struct alpha_check *c = user;
    for (uint32_t k = 0; k < n_rows; k++, rgba += stride, c->y++)
        for (uint32_t x = 0; x < few_colors.width; x++) {
            const uint32_t index = png_sample(&few_colors, x, c->y, 0);
            c->n_different += rgba[4 * x + 3] != (index < c->odd->n ? c->odd->alpha[index] : 255);
            for (uint32_t i = 0; i < 3; i++)
                c->n_different += rgba[4 * x + i] != png_expected(&few_colors, x, c->y, i);
        }
}

/* Decode s to 4 channels. How many bytes differ, or an error. */
static int alpha_differs(struct subject *s, const struct odd *o)
{
    struct alpha_check c = {.odd = o};
    const struct pstk__box all = {.width = s->info.width, .height = s->info.height};
    const struct pstk__coded image = {&pstk__image_png, s->file, s->size, &s->info};
    const struct pstk__row_sink sink = {.rows = compare_alpha, .user = &c, .channels = 4};
    const int r = pstk__image_decode(s->state, &image, &all, &sink, &s->err);
    return r < 0 ? r : (int)(c.n_different + (c.y != few_colors.height));
}

#define PLTE_AT 33
#define PLTE_END (PLTE_AT + 12 + 3 * 5)

TEST(an_odd_trns_chunk_of_a_palette_gives_the_alpha_of_pillow)
{
    const struct pstk__box all = {.width = few_colors.width, .height = few_colors.height};
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        struct subject s;
        CHECK_EQ(subject_open(&s, &few_colors), 0);
        if (odd[i].late)
            insert_chunk(&s, s.size - 12, "tRNS", odd[i].late, odd[i].sizes[2]);
        if (odd[i].after)
            insert_chunk(&s, PLTE_END, "tRNS", odd[i].after, odd[i].sizes[1]);
        if (odd[i].before)
            insert_chunk(&s, PLTE_AT, "tRNS", odd[i].before, odd[i].sizes[0]);
        CHECK_EQ(alpha_differs(&s, &odd[i]), 0);
        CHECK_EQ(decode_channels(&s, all, 1), 0);
        CHECK_EQ(decode_channels(&s, all, 3), 0);
        subject_close(&s);
    }
}

TEST(a_trns_chunk_longer_than_any_palette_is_refused_unless_it_is_of_one_entry)
{
    static const struct {
        uint32_t size, zero;
        uint8_t others;
        int result;
    } chunks[] = {{256, 4, 255, 0},
                  {300, 4, 255, 0},
                  {257, 256, 255, PSTK_EBADMSG},
                  {257, 4, 254, PSTK_EBADMSG}};
    for (size_t i = 0; i < sizeof chunks / sizeof chunks[0]; i++) {
        static const struct odd fifth = {.alpha = {255, 255, 255, 255, 0}, .n = 5};
        char bytes[300];
        struct subject s;
        memset(bytes, chunks[i].others, sizeof bytes);
        bytes[chunks[i].zero] = 0;
        CHECK_EQ(subject_open(&s, &few_colors), 0);
        insert_chunk(&s, PLTE_END, "tRNS", bytes, chunks[i].size);
        CHECK_EQ(alpha_differs(&s, &fifth), chunks[i].result);
        CHECK(chunks[i].result == 0 || strstr(s.err.message, "tRNS: longer than a palette"));
        CHECK_EQ(pstk_image_check(s.file, s.size, 0, NULL, NULL, NULL), 0);
        subject_close(&s);
    }
}

/* The rules for a key are those for a palette's alpha. */
TEST(the_last_key_counts_and_none_may_be_cut_short)
{
    const struct pstk__box all = {.width = plain.width, .height = plain.height};
    struct png_spec keyed = plain;
    keyed.transparent = keyed.key_is_first = 1;
    struct subject s;
    CHECK_EQ(subject_open(&s, &keyed), 0);
    insert_chunk(&s, PLTE_AT, "tRNS", "\0\1\0\2\0\3", 6);
    CHECK_EQ(decode_channels(&s, all, 4), 0);
    insert_chunk(&s, PLTE_AT, "tRNS", "\0\1", 2);
    CHECK_EQ(decode_channels(&s, all, 4), PSTK_EBADMSG);
    subject_close(&s);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(every_kind_gives_the_pixels_that_were_written),
        CASE(indices_past_a_short_palette_are_black_as_in_pillow_12),
        CASE(a_box_equals_that_of_the_image),
        CASE(gray_of_16_bits_is_refused),
        CASE(a_file_cut_anywhere_is_refused),
        CASE(a_flipped_bit_anywhere_is_refused),
        CASE(chunks_that_do_not_bear_on_the_pixels_cost_no_memory),
        CASE(bytes_after_the_end_are_ignored),
        CASE(the_orientation_of_an_exif_chunk_is_found),
        CASE(sizes_over_the_limit_are_refused_by_the_header),
        CASE(an_arena_that_is_too_small_is_an_error_at_any_size),
        CASE(pixels_of_the_key_are_transparent_as_in_pillow),
        CASE(the_header_says_which_samples_a_file_has),
        CASE(a_large_interlaced_image_takes_no_more_than_was_promised),
        CASE(a_key_that_is_cut_short_is_damage_where_alpha_is_asked_for),
        CASE(an_odd_trns_chunk_of_a_palette_gives_the_alpha_of_pillow),
        CASE(a_trns_chunk_longer_than_any_palette_is_refused_unless_it_is_of_one_entry),
        CASE(the_last_key_counts_and_none_may_be_cut_short),
    };
    return RUN_CASES(cases);
}
