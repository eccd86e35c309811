/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_kernels: measure the JPEG kernels of each ISA on one core, in cache. Prints nanoseconds
 * for the inverse DCT of a block with expansion and dequantisation, by kind of block, and
 * nanoseconds for 64 pixels of upsampling and of colour. The ISAs take turns, so the ratios to
 * the C reference come from one run. For comparison it measures libjpeg-turbo's inverse DCT, from
 * unpacked coefficients in memory.
 *
 *   bench_kernels [--runs R]
 */
#include "bench.h"
#include "image/jpeg/frame.h"
#include "image/jpeg/kernels.h"

#include <jpeglib.h>

#define N_BLOCKS 56u /* a row: 448 pixels, as crops of photographs have */
#define N_ROWS 64u   /* rows of blocks: too many for a branch predictor to learn */
#define WIDTH (8 * N_BLOCKS)
#define STRIDE 512u
#define N_ISAS 5u

static uint64_t state = 88172645463325252ull;

static uint64_t draw_64(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static uint32_t draw(uint32_t below)
{
    return (uint32_t)(draw_64() >> 33) % below;
}

/* ---- blocks --------------------------------------------------------------------------------- */

struct kind {
    const char *name;
    uint32_t weight[4]; /* chance, in 64ths, that zigzag 1..7, 8..15, 16..31, 32..63 are not 0 */
    uint32_t flat;      /* blocks without AC, of 64 */
    uint32_t wide;      /* values beyond a byte, of 1024 */
};

static const struct kind kinds[] = {
    {"DC only", {0, 0, 0, 0}, 64, 0},
    {"half flat", {20, 8, 2, 0}, 32, 0},
    {"sparse chroma, 3 values", {20, 6, 1, 0}, 8, 0},
    {"typical, 16 values", {48, 32, 14, 6}, 1, 0},
    {"dense, 40 values", {60, 56, 48, 34}, 0, 0},
    {"dense, 1 % wide", {60, 56, 48, 34}, 0, 10},
};

#define N_KINDS (sizeof kinds / sizeof *kinds)

struct blocks {
    uint64_t maps[N_BLOCKS];
    int16_t dc[N_BLOCKS];
    int8_t values[N_BLOCKS * 63 + 64];
    int16_t wide[N_BLOCKS * 63];
    struct pstk__block_row row;
};

static uint64_t draw_map(const struct kind *k)
{
    uint64_t map = 0;
    if (draw(64) < k->flat)
        return 0;
    for (uint32_t z = 1; z < 64; z++)
        map |= (uint64_t)(draw(64) < k->weight[z < 8 ? 0 : z < 16 ? 1 : z < 32 ? 2 : 3]) << z;
    return map;
}

static void draw_blocks(struct blocks *b, const struct kind *k)
{
    size_t n_values = 0, n_wide = 0;
    for (uint32_t i = 0; i < N_BLOCKS; i++) {
        b->maps[i] = draw_map(k);
        b->dc[i] = (int16_t)(draw(400) - 200);
        for (uint64_t map = b->maps[i]; map != 0; map &= map - 1) {
            const int is_wide = draw(1024) < k->wide;
            b->values[n_values++] = (int8_t)(is_wide ? -128 : draw(2) ? 1 + (int)draw(4) : -1);
            if (is_wide)
                b->wide[n_wide++] = (int16_t)(128 + draw(100));
        }
    }
    memset(b->values + n_values, 0, 64);
    b->row = (struct pstk__block_row){b->maps, b->dc, b->values, b->wide, N_BLOCKS};
}

/* ---- the measured --------------------------------------------------------------------------- */

struct bench {
    struct blocks blocks[N_KINDS][N_ROWS];
    uint16_t quant[64];
    uint8_t samples[4][64 + STRIDE + 64]; /* a row each, 64 bytes in */
    uint8_t out[8 * STRIDE];
};

enum piece { H2V1, H2V2, H1V2, GRAY, YCC, RGB, CMYK, N_PIECES };

static const char *const piece_names[N_PIECES] = {
    "upsampling h2v1", "upsampling h2v2", "upsampling h1v2", "gray to RGB",
    "YCC to RGB",      "planes to RGB",   "CMYK to RGB"};

/* Nanoseconds a block. */
static double measure_inverse(struct bench *b, const struct pstk__jpeg_kernels *k, uint32_t kind)
{
    const uint32_t n = k->isa == PSTK_KERNELS_C ? 1 : 20;
    const double start = bench_now();
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t y = 0; y < N_ROWS; y++)
            k->inverse(b->out, STRIDE, &b->blocks[kind][y].row, b->quant);
    return 1e9 * (bench_now() - start) / ((double)n * N_ROWS * N_BLOCKS);
}

/* Return nanoseconds for 64 pixels of a full row. */
static double measure_piece(struct bench *b, const struct pstk__jpeg_kernels *k, enum piece p)
{
    static const uint32_t colors[N_PIECES] = {[GRAY] = PSTK__JPEG_GRAY,
                                              [YCC] = PSTK__JPEG_YCC,
                                              [RGB] = PSTK__JPEG_RGB,
                                              [CMYK] = PSTK__JPEG_CMYK};
    const uint32_t n = k->isa == PSTK_KERNELS_C ? 100 : 4000;
    const uint8_t *rows[4];
    for (int i = 0; i < 4; i++)
        rows[i] = b->samples[i] + 64;
    const double start = bench_now();
    for (uint32_t i = 0; i < n; i++)
        switch (p) {
        case H2V1:
            k->h2v1(b->out, rows[0], WIDTH / 2);
            break;
        case H2V2:
            k->h2v2(b->out, rows[0], rows[1], WIDTH / 2);
            break;
        case H1V2:
            k->h1v2(b->out, rows[0], rows[1], WIDTH, 1 + i % 2);
            break;
        default:
            k->rgb[colors[p]](b->out, rows, WIDTH);
            break;
        }
    return 1e9 * (bench_now() - start) / ((double)n * WIDTH / 64);
}

/* ---- libjpeg-turbo -------------------------------------------------------------------------- */

#define PLAIN_SIDE WIDTH

static void plain_write(uint8_t **file, unsigned long *size)
{
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr errors;
    JSAMPLE line[PLAIN_SIDE];
    JSAMPROW rows[1] = {line};
    c.err = jpeg_std_error(&errors);
    jpeg_create_compress(&c);
    jpeg_mem_dest(&c, file, size);
    c.image_width = c.image_height = PLAIN_SIDE;
    c.input_components = 1;
    c.in_color_space = JCS_GRAYSCALE;
    jpeg_set_defaults(&c);
    jpeg_start_compress(&c, TRUE);
    for (uint32_t y = 0; y < PLAIN_SIDE; y++) {
        for (uint32_t x = 0; x < PLAIN_SIDE; x++)
            line[x] = (JSAMPLE)(64 + draw(64) + x / 8);
        jpeg_write_scanlines(&c, rows, 1);
    }
    jpeg_finish_compress(&c);
    jpeg_destroy_compress(&c);
}

/* Nanoseconds a block. The output pass of a buffered image without upsampling and colour: what
 * remains is the inverse DCT. */
static double measure_plain(struct bench *b, struct jpeg_decompress_struct *c)
{
    const int n = 8;
    JSAMPROW rows[8];
    JSAMPARRAY planes[1] = {rows};
    for (int y = 0; y < 8; y++)
        rows[y] = b->out + y * STRIDE;
    const double start = bench_now();
    for (int i = 0; i < n; i++) {
        jpeg_start_output(c, c->input_scan_number);
        while (c->output_scanline < c->output_height)
            jpeg_read_raw_data(c, planes, 8);
        jpeg_finish_output(c);
    }
    return 1e9 * (bench_now() - start) / (n * N_BLOCKS * N_BLOCKS);
}

static void plain_open(struct jpeg_decompress_struct *c, const uint8_t *file, unsigned long size)
{
    jpeg_create_decompress(c);
    jpeg_mem_src(c, file, size);
    jpeg_read_header(c, TRUE);
    c->buffered_image = TRUE;
    c->raw_data_out = TRUE;
    jpeg_start_decompress(c);
    while (jpeg_consume_input(c) != JPEG_REACHED_EOI)
        ;
}

/* ---- tables --------------------------------------------------------------------------------- */

/* One figure of every ISA, in turns. */
struct figures {
    struct bench_runs of[N_ISAS];
};

static void print(const char *what, const struct figures *f, const char *unit)
{
    static const char *const names[N_ISAS] = {"", "C", "AVX2", "AVX-512", "NEON"};
    for (uint32_t v = PSTK_KERNELS_C; v < N_ISAS; v++) {
        char line[64];
        snprintf(line, sizeof line, "%s, %s", what, names[v]);
        if (f->of[v].n)
            bench_line(line, &f->of[v], unit, v > PSTK_KERNELS_C ? &f->of[PSTK_KERNELS_C] : NULL,
                       0);
    }
}

int main(int argc, char **argv)
{
    static struct bench b;
    static struct figures inverse[N_KINDS], pieces[N_PIECES];
    struct bench_runs plain = {0};
    int runs = 9;
    for (int i = 1; i + 1 < argc; i += 2)
        runs = strcmp(argv[i], "--runs") ? runs : atoi(argv[i + 1]);
    for (uint32_t kind = 0; kind < N_KINDS; kind++)
        for (uint32_t y = 0; y < N_ROWS; y++)
            draw_blocks(&b.blocks[kind][y], &kinds[kind]);
    for (uint32_t i = 0; i < 64; i++)
        b.quant[i] = (uint16_t)(3 + i / 4);
    for (size_t i = 0; i < sizeof b.samples; i++)
        ((uint8_t *)b.samples)[i] = (uint8_t)draw(256);

    struct jpeg_decompress_struct c;
    struct jpeg_error_mgr errors;
    uint8_t *file = NULL;
    unsigned long size = 0;
    plain_write(&file, &size);
    c.err = jpeg_std_error(&errors);
    plain_open(&c, file, size);

    for (int run = 0; run < runs; run++) {
        bench_add(&plain, measure_plain(&b, &c));
        for (uint32_t v = PSTK_KERNELS_C; v < N_ISAS; v++) {
            const struct pstk__jpeg_kernels *k = pstk__jpeg_kernels(v);
            for (uint32_t i = 0; k && i < N_KINDS; i++)
                bench_add(&inverse[i].of[v], measure_inverse(&b, k, i));
            for (int i = 0; k && i < N_PIECES; i++)
                bench_add(&pieces[i].of[v], measure_piece(&b, k, (enum piece)i));
        }
    }
    bench_line("libjpeg-turbo, dense blocks", &plain, "ns a block", NULL, 0);
    for (uint32_t i = 0; i < N_KINDS; i++)
        print(kinds[i].name, &inverse[i], "ns a block");
    for (int i = 0; i < N_PIECES; i++)
        print(piece_names[i], &pieces[i], "ns for 64 px");
    jpeg_destroy_decompress(&c);
    free(file);
    return 0;
}
