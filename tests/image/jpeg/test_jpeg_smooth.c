/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks of progressive files that lack bits are smoothed to the pixels of Pillow 12.1, whose
 * libjpeg-turbo is 3.1.3, whatever release is linked. The numbers below are CRCs of Pillow's pixels
 * of these files; tests/image/pillow_decode.py compares more of them with Pillow itself.
 */
#include "support/test.h"

#include "base/arena.h"
#include "base/crc32c.h"
#include "image/image.h"
#include "image/jpeg/damaged.h"
#include "image/jpeg/decode.h"
#include "image/jpeg/output.h"
#include "image/jpeg/smooth.h"
#include "support/jpeg_writer.h"

struct sum {
    uint32_t crc;
    size_t row_size; /* bytes of a row of the image at hand */
};

static void add_rows(void *user, const uint8_t *pixels, uint64_t stride, uint32_t n_rows)
{
    struct sum *sum = user;
    for (uint32_t k = 0; k < n_rows; k++)
        sum->crc = pstk__crc32c(sum->crc, pixels + k * stride, sum->row_size);
}

/* Add the pixels of a file's whole image, by one of the decoders. */
static int add_file(const struct pstk__image_decoder *decoder, const uint8_t *file, size_t size,
                    struct sum *sum)
{
    struct pstk__image_info info = {0};
    struct pstk__arena arena = {0};
    struct pstk__image_state *state = NULL;
    const struct pstk__coded image = {decoder, file, size, &info};
    const struct pstk__row_sink sink = {.rows = add_rows, .user = sum, .channels = 3};
    int r = pstk__image_probe(file, size, PSTK__MAX_PIXELS, &info, NULL);
    if (r == 0)
        r = pstk__arena_open(&arena, pstk__image_scratch(info.width, info.height));
    if (r == 0)
        r = pstk__image_state_open(&state, &arena, PSTK_KERNELS_AUTO, NULL);
    sum->row_size = (size_t)info.width * 3;
    const struct pstk__box all = {.width = info.width, .height = info.height};
    if (r == 0)
        r = pstk__image_decode(state, &image, &all, &sink, NULL);
    pstk__image_state_close(state);
    pstk__arena_close(&arena);
    return r;
}

/* Sizes of one block, of two and of three in a row or column, of one MCU and of many, and with a
 * last row of MCUs that has fewer rows of blocks than the others. */
static const uint32_t sizes[][2] = {{1, 1},   {8, 8},   {16, 16}, {17, 9},  {1, 33},
                                    {24, 24}, {25, 40}, {40, 25}, {75, 61}, {131, 72}};

/* Return the CRC over the images of a kind: every size, without AC coefficients and with some, of
 * both qualities; 0 when one does not decode. */
static uint32_t crc_of(struct jpeg_spec spec, const struct pstk__image_decoder *decoder)
{
    struct sum sum = {0};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int k = 0; k < 4; k++) {
            size_t size;
            spec.width = sizes[i][0];
            spec.height = sizes[i][1];
            spec.progressive = k % 2 ? 3 : 2;
            spec.quality = k < 2 ? 10 : 90;
            uint8_t *file = jpeg_write(&spec, &size);
            const int r = add_file(decoder, file, size, &sum);
            free(file);
            if (r < 0)
                return 0;
        }
    return sum.crc;
}

static const struct kind {
    struct jpeg_spec spec;
    uint32_t crc; /* CRC of Pillow's pixels */
} kinds[] = {
    {{.n_components = 1, .h = 1, .v = 1}, 0xfafbe1f5},
    {{.n_components = 1, .h = 2, .v = 2}, 0x6c6fcb0d},
    {{.n_components = 3, .h = 1, .v = 1}, 0xb395e806},
    {{.n_components = 3, .h = 2, .v = 1}, 0x7c8766bc},
    {{.n_components = 3, .h = 1, .v = 2}, 0xc831885b},
    {{.n_components = 3, .h = 2, .v = 2}, 0x8f04a7dd},
    {{.n_components = 3, .h = 4, .v = 1}, 0xa03d411b},
    {{.n_components = 3, .h = 1, .v = 4}, 0x2f3ff18f},
    {{.n_components = 4, .h = 2, .v = 1}, 0x6fb59a8f},
};
#define N_KINDS (sizeof kinds / sizeof kinds[0])

TEST(smoothed_pixels_are_pillows)
{
    for (size_t i = 0; i < N_KINDS; i++)
        CHECK_EQ(crc_of(kinds[i].spec, &pstk__image_jpeg), kinds[i].crc);
}

TEST(the_decoder_of_damaged_files_has_the_same)
{
    for (size_t i = 0; i < N_KINDS; i++)
        CHECK_EQ(crc_of(kinds[i].spec, &pstk__image_damaged), kinds[i].crc);
}

/* A file whose last scan ends too early, decoded step by step; under the guard. */
struct cut {
    struct jpeg_decompress_struct cinfo;
    struct pstk__jpeg_guard guard;
    int bits[MAX_COMPONENTS][DCTSIZE2]; /* after those of the components: 0x55... */
    int is_old;                         /* 1: libjpeg keeps the bits of the latest scans alone */
    uint8_t rows[80 * 80 * 3];
};

static int decode_cut(void *user)
{
    struct cut *cut = user;
    j_decompress_ptr cinfo = &cut->cinfo;
    if (jpeg_read_header(cinfo, TRUE) != JPEG_HEADER_OK)
        return -1;
    pstk__jpeg_choose_output(cinfo, 3);
    if (!jpeg_start_decompress(cinfo))
        return -1;
    const uint32_t last_row = pstk__jpeg_last_fed_row(&cut->guard, cinfo);
    memcpy(cut->bits, cinfo->coef_bits, sizeof cut->bits[0] * (size_t)cinfo->num_components);
    if (cut->is_old)
        cinfo->coef_bits = cut->bits;
    pstk__jpeg_smooth(&cut->guard, cinfo, last_row);
    while (cinfo->output_scanline < cinfo->output_height) {
        JSAMPROW row = cut->rows + (size_t)cinfo->output_scanline * cinfo->output_width * 3;
        if (jpeg_read_scanlines(cinfo, &row, 1) != 1)
            return -1;
    }
    return last_row < cinfo->total_iMCU_rows - 1 ? 0 : -1;
}

/* Return the CRC of the file's pixels; 0 where it does not decode, or no row lacks its data. */
static uint32_t crc_of_cut(const uint8_t *file, size_t size, int is_old)
{
    static struct cut cut;
    struct pstk__arena arena = {0};
    cut = (struct cut){.is_old = is_old};
    memset(cut.bits, 0x55, sizeof cut.bits);
    int r = pstk__arena_open(&arena, pstk__image_scratch(80, 80));
    pstk__jpeg_guard_init(&cut.guard, &arena);
    pstk__jpeg_guard_guess(&cut.guard);
    if (r == 0)
        r = pstk__jpeg_open_decompress(&cut.guard, &cut.cinfo);
    if (r == 0) {
        pstk__jpeg_begin(&cut.guard, &cut.cinfo, file, size);
        r = pstk__jpeg_guarded(&cut.guard, decode_cut, &cut);
    }
    const uint32_t crc = pstk__crc32c(0, cut.rows, sizeof cut.rows);
    pstk__jpeg_close_decompress(&cut.guard, &cut.cinfo);
    pstk__arena_close(&arena);
    return r == 0 ? crc : 0;
}

/* Fields of libjpeg-turbo's objects that releases before 2.1 lack are not read, whatever release
 * the headers are of. */
TEST(libjpegs_state_of_earlier_scans_is_not_read)
{
    struct jpeg_spec spec = {
        .width = 80, .height = 80, .n_components = 3, .h = 2, .v = 2, .progressive = 2};
    size_t size;
    uint8_t *file = jpeg_write(&spec, &size);
    size_t last_scan = 0;
    for (size_t i = 0; i + 1 < size; i++)
        last_scan = file[i] == 0xff && file[i + 1] == 0xda ? i : last_scan;
    size = last_scan + (size - last_scan) / 2;
    file[size - 2] = 0xff;
    file[size - 1] = 0xd9;
    const uint32_t crc = crc_of_cut(file, size, 0);
    CHECK(crc != 0);
    CHECK_EQ(crc_of_cut(file, size, 1), crc);
    struct sum sum = {0};
    CHECK_EQ(add_file(&pstk__image_damaged, file, size, &sum), 0);
    CHECK_EQ(sum.crc, crc);
    free(file);
}

int main(void)
{
    static const struct test_case cases[] = {
        CASE(smoothed_pixels_are_pillows),
        CASE(the_decoder_of_damaged_files_has_the_same),
        CASE(libjpegs_state_of_earlier_scans_is_not_read),
    };
    return RUN_CASES(cases);
}
