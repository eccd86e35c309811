/* SPDX-License-Identifier: Apache-2.0 */
/* The device's kernels, run thread by thread on the host, compared with the CPU's kernels. */
#include "base/cast.h"
#include "device/cuda/arithmetic.h"
#include "pixels/resize.h"
#include "support/finish_table.h"
#include "support/test.h"

#include <sys/mman.h>

#define CANARY 64u /* bytes behind an output */

static uint64_t state = 88172645463325252ull;

static uint64_t draw(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static void fill(void *out, uint64_t size)
{
    for (uint64_t i = 0; i < size; i++)
        ((uint8_t *)out)[i] = (uint8_t)(draw() >> 33);
}

/* Allocate exactly this size, so that ASan sees a byte too many. */
static void *aligned(uint64_t size)
{
    void *p = NULL;
    if (posix_memalign(&p, 64, size ? size : 1) != 0)
        abort();
    return p;
}

static const uint32_t dtypes[3] = {PSTK_F16, PSTK_BF16, PSTK_F32};
static const uint32_t all_channels[3] = {1, 3, 4};
static const float mean[4] = {0.485f, 0.456f, 0.406f, 0.25f};
static const float deviation[4] = {0.229f, 0.224f, 0.225f, 0.125f};

/* The usual table and its line, found once: that takes a while. Of less channels: its beginning. */
struct normal {
    uint32_t table[1024];
    struct pstk__affine line;
};

static const struct normal *normal_of(uint32_t dtype)
{
    static struct normal all[3];
    static int n;
    for (; n < 3; n++) {
        finish_table(all[n].table, dtypes[n], 4, mean, deviation);
        pstk__affine_init(&all[n].line, all[n].table, dtypes[n], 4);
    }
    return &all[dtype == PSTK_F16 ? 0 : dtype == PSTK_BF16 ? 1 : 2];
}

/* ---- pixels --------------------------------------------------------------------------------- */

struct images {
    struct pstk__cuda_pixels p;
    uint64_t out_size;
    uint8_t *in, *flips, *expected, *out;
};

static void close_images(struct images *m)
{
    free(m->in);
    free(m->flips);
    free(m->expected);
    free(m->out);
}

/* Row by row by the CPU's C kernels; the images that are not valid are 0. */
static void expect(struct images *m)
{
    const struct pstk__pixel_kernels *k = pstk__pixel_kernels(PSTK_KERNELS_C);
    const struct pstk__cuda_pixels *p = &m->p;
    const uint64_t plane = (uint64_t)p->height * p->width, size = pstk_dtype_size(p->dtype);
    const uint64_t across = p->layout == PSTK_NCHW ? 1 : p->channels;
    memset(m->expected, 0, m->out_size);
    for (uint32_t i = 0; i < p->n_valid; i++)
        for (uint32_t y = 0; y < p->height; y++) {
            const struct pstk__finish f = {.channels = p->channels,
                                           .dtype = p->dtype,
                                           .layout = p->layout,
                                           .flip = m->flips && m->flips[i],
                                           .width = p->width,
                                           .plane = plane,
                                           .table = p->table};
            k->finish_row(m->expected + (p->channels * plane * i + across * p->width * y) * size,
                          m->in + p->channels * (plane * i + (uint64_t)p->width * y), &f);
        }
}

/* Images of random bytes; p says all but the pointers to them. Mirrored: none, or by chance. */
static void open_images(struct images *m, const struct pstk__cuda_pixels *p, uint32_t mirrored)
{
    const uint64_t row = p->channels * (uint64_t)p->height * p->width;
    *m = (struct images){.p = *p, .out_size = row * p->n_rows * pstk_dtype_size(p->dtype)};
    m->in = aligned(row * p->n_valid); /* rows that are not valid need not be there */
    fill(m->in, row * p->n_valid);
    if (mirrored) {
        m->flips = aligned(p->n_valid);
        for (uint32_t i = 0; i < p->n_valid; i++)
            m->flips[i] = (uint8_t)(i < 2 ? i : draw() >> 33 & 1);
    }
    m->expected = aligned(m->out_size);
    m->out = aligned(m->out_size + CANARY);
    m->p.in = m->in;
    m->p.flips = m->flips;
    m->p.out = m->out;
    expect(m);
}

static void run_pixels(const struct pstk__cuda_pixels *p)
{
    const struct pstk__pixels_kind kind = pstk__pixels_kind(p);
    const uint64_t n_units = pstk__pixels_n_units(p, kind);
    for (uint32_t image = 0; image < p->n_rows; image++)
        for (uint64_t unit = 0; unit < n_units; unit++)
            pstk__pixels_thread(p, p->table, kind, image, unit);
}

/* Return whether all threads together write what is expected, whatever was there, and nothing
 * behind. */
static int images_equal(struct images *m)
{
    const uint8_t fills[2] = {0x00, 0xff};
    int equal = 1;
    for (uint32_t k = 0; k < 2 && equal; k++) {
        memset(m->out, fills[k], m->out_size + CANARY);
        run_pixels(&m->p);
        equal = memcmp(m->out, m->expected, m->out_size) == 0;
        for (uint32_t i = 0; i < CANARY; i++)
            equal = equal && m->out[m->out_size + i] == fills[k];
    }
    return equal;
}

static int equal_to_cpu(const struct pstk__cuda_pixels *p, uint32_t mirrored)
{
    struct images m;
    open_images(&m, p, mirrored);
    const int equal = images_equal(&m);
    if (!equal)
        printf("# %s %s %u x %u x %u, %u of %u rows, exact %u, mirrored %u\n",
               pstk_dtype_name(p->dtype), p->layout == PSTK_NCHW ? "NCHW" : "NHWC", p->width,
               p->height, p->channels, p->n_valid, p->n_rows, p->exact, mirrored);
    close_images(&m);
    return equal;
}

/* The usual normalisation, for every dtype, layout, with and without mirrors, line and table. */
static int widths_equal(uint32_t width, uint32_t height, uint32_t n_rows, uint32_t n_valid)
{
    int equal = 1;
    for (uint32_t i = 0; i < 72 && equal; i++) {
        const uint32_t dtype = dtypes[i / 24];
        const struct normal *normal = normal_of(dtype);
        struct pstk__cuda_pixels p = {.table = normal->table,
                                      .n_rows = n_rows,
                                      .n_valid = n_valid,
                                      .height = height,
                                      .width = width,
                                      .channels = all_channels[i / 8 % 3],
                                      .dtype = dtype,
                                      .layout = i & 1 ? PSTK_NCHW : PSTK_NHWC,
                                      .exact = i & 2 ? normal->line.exact : 0};
        memcpy(p.scale, normal->line.scale, sizeof p.scale);
        memcpy(p.offset, normal->line.offset, sizeof p.offset);
        equal = equal_to_cpu(&p, i & 4);
    }
    return equal;
}

TEST(the_usual_16_bit_tables_have_a_line)
{
    CHECK(normal_of(PSTK_F16)->line.exact && normal_of(PSTK_BF16)->line.exact);
}

TEST(images_of_every_small_width_are_as_the_cpu_makes_them)
{
    for (uint32_t width = 1; width <= 40; width++)
        CHECK(widths_equal(width, 3, 4, 3));
}

TEST(images_of_usual_widths_are_as_the_cpu_makes_them)
{
    CHECK(widths_equal(224, 5, 3, 3));
    CHECK(widths_equal(299, 5, 3, 3));
    CHECK(widths_equal(64, 64, 2, 2));
}

TEST(rows_that_are_not_valid_are_0_and_not_read)
{
    for (uint32_t n_valid = 0; n_valid <= 3; n_valid++) {
        CHECK(widths_equal(16, 2, 3, n_valid));
        CHECK(widths_equal(7, 2, 3, n_valid));
    }
}

TEST(a_table_without_a_line_gives_its_elements)
{
    for (uint32_t i = 0; i < 36; i++)
        for (uint32_t width = 15; width <= 16; width++) {
            uint32_t table[1024];
            const struct pstk__cuda_pixels p = {.table = table,
                                                .n_rows = 2,
                                                .n_valid = 2,
                                                .height = 16,
                                                .width = width,
                                                .channels = all_channels[i / 4 % 3],
                                                .dtype = dtypes[i / 12],
                                                .layout = i & 1 ? PSTK_NCHW : PSTK_NHWC,
                                                .scale = {1, 2, 3, 4}};
            fill(table, sizeof table);
            CHECK(equal_to_cpu(&p, i & 2));
        }
}

/* Return whether each byte of the output is written once: a write shows on one of two fills. */
static int written_once(const struct images *m)
{
    const struct pstk__pixels_kind kind = pstk__pixels_kind(&m->p);
    const uint64_t n_units = pstk__pixels_n_units(&m->p, kind);
    uint8_t *n_writes = calloc(m->out_size, 1);
    int once = n_writes != NULL;
    for (uint64_t thread = 0; thread < n_units * m->p.n_rows && once; thread++) {
        uint8_t *first = m->expected; /* not needed here */
        for (uint32_t k = 0; k < 2; k++) {
            memset(m->out, k ? 0xa5 : 0x5a, m->out_size);
            pstk__pixels_thread(&m->p, m->p.table, kind, (uint32_t)(thread / n_units),
                                thread % n_units);
            if (k == 0)
                memcpy(first, m->out, m->out_size);
        }
        for (uint64_t i = 0; i < m->out_size; i++)
            n_writes[i] = (uint8_t)(n_writes[i] + (first[i] == m->out[i]));
    }
    for (uint64_t i = 0; i < m->out_size; i++)
        once = once && n_writes[i] == 1;
    free(n_writes);
    return once;
}

TEST(every_byte_of_an_image_is_written_by_one_thread_once)
{
    for (uint32_t i = 0; i < 72; i++) {
        const uint32_t dtype = dtypes[i / 24];
        struct images m;
        const struct pstk__cuda_pixels p = {.table = normal_of(dtype)->table,
                                            .n_rows = 3,
                                            .n_valid = 2,
                                            .height = 2,
                                            .width = i & 1 ? 16 : 5,
                                            .channels = all_channels[i / 8 % 3],
                                            .dtype = dtype,
                                            .layout = i & 2 ? PSTK_NCHW : PSTK_NHWC};
        open_images(&m, &p, i & 4);
        const int once = written_once(&m);
        close_images(&m);
        CHECK(once);
    }
}

/* ---- sizes beyond 32 bits ------------------------------------------------------------------- */

/* Address space alone: what is not touched takes no memory. */
static void *reserve(uint64_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

/* The last row of the last image, by the threads that write it. -1 without address space. */
static int last_row_equal(struct pstk__cuda_pixels *p)
{
    const struct pstk__pixels_kind kind = pstk__pixels_kind(p);
    const uint64_t n = p->channels, plane = (uint64_t)p->height * p->width,
                   size = pstk_dtype_size(p->dtype);
    const uint64_t n_units = pstk__pixels_n_units(p, kind), in_size = n * plane * p->n_rows;
    uint8_t *in = reserve(in_size), *out = reserve(in_size * size), *flips = calloc(p->n_rows, 1);
    uint8_t *expected = calloc(n * p->width, size);
    int result = in && out && flips && expected ? 1 : -1;
    if (result == 1) {
        const struct pstk__finish f = {.channels = p->channels,
                                       .dtype = p->dtype,
                                       .layout = p->layout,
                                       .flip = 1,
                                       .width = p->width,
                                       .plane = p->width,
                                       .table = p->table};
        uint8_t *row = in + in_size - n * p->width;
        fill(row, n * p->width);
        pstk__pixel_kernels(PSTK_KERNELS_C)->finish_row(expected, row, &f);
        flips[p->n_rows - 1] = 1;
        p->in = in, p->out = out, p->flips = flips;
        for (uint64_t unit = n_units - n_units / p->height; unit < n_units; unit++)
            pstk__pixels_thread(p, p->table, kind, p->n_rows - 1, unit);
        const uint32_t n_parts = p->layout == PSTK_NCHW ? p->channels : 1;
        const uint64_t part = n * p->width * size / n_parts;
        for (uint32_t i = 0; i < n_parts; i++) /* the ends of the image's planes */
            result =
                result &&
                memcmp(out + (in_size - n * plane + (i + 1) * n * plane / n_parts) * size - part,
                       expected + part * i, part) == 0;
    }
    if (in)
        munmap(in, in_size);
    if (out)
        munmap(out, in_size * size);
    free(flips);
    free(expected);
    return result;
}

TEST(batches_and_images_may_be_larger_than_32_bits_count)
{
    const uint32_t shapes[3][3] = {{256, 4096, 4096}, {1, 65535, 65535}, {2, 65528, 65535}};
    for (uint32_t i = 0; i < 36; i++) {
        const uint32_t *shape = shapes[i / 12], dtype = i & 2 ? PSTK_F16 : PSTK_F32;
        struct pstk__cuda_pixels p = {.table = normal_of(dtype)->table,
                                      .n_rows = shape[0],
                                      .n_valid = shape[0],
                                      .width = shape[1],
                                      .height = shape[2],
                                      .channels = all_channels[i / 4 % 3],
                                      .dtype = dtype,
                                      .layout = i & 1 ? PSTK_NCHW : PSTK_NHWC};
        const int r = last_row_equal(&p);
        if (r < 0)
            SKIP("no 200 GB of address space");
        CHECK_EQ(r, 1);
    }
}

/* ---- casts ---------------------------------------------------------------------------------- */

/* n elements as pstk__cast gives them; it leaves to the compiler whether a signalling NaN of 16
 * bits becomes quiet. */
static void expect_cast(uint8_t *out, const struct pstk__cuda_cast *c)
{
    const uint32_t to_size = pstk_dtype_size(c->to), from_size = pstk_dtype_size(c->from);
    for (uint64_t i = 0; i < c->n; i++) {
        uint32_t bits;
        pstk__cast(out + i * to_size, c->to, (const uint8_t *)c->in + i * from_size, c->from);
        if (c->to != PSTK_F32)
            continue;
        memcpy(&bits, out + i * to_size, sizeof bits);
        if ((bits & 0x7fffffffu) > 0x7f800000u)
            bits |= 0x400000u;
        memcpy(out + i * to_size, &bits, sizeof bits);
    }
}

static int cast_equal(uint32_t to, uint32_t from, const void *values, uint64_t n)
{
    const uint64_t in_size = n * pstk_dtype_size(from), out_size = n * pstk_dtype_size(to);
    uint8_t *in = aligned(in_size), *expected = aligned(out_size);
    uint8_t *out = aligned(out_size + CANARY);
    const struct pstk__cuda_cast c = {.out = out, .in = in, .n = n, .to = to, .from = from};
    const uint32_t run = pstk__cast_run(to, from);
    int equal = 1;
    memcpy(in, values, in_size);
    expect_cast(expected, &c);
    for (int k = 0; k < 2 && equal; k++) {
        const uint8_t byte = k ? 0xff : 0;
        memset(out, byte, out_size + CANARY);
        for (uint64_t unit = 0; unit * run < n; unit++)
            pstk__cast_thread(&c, to, from, run, unit);
        equal = memcmp(out, expected, out_size) == 0;
        for (uint32_t i = 0; i < CANARY; i++)
            equal = equal && out[out_size + i] == byte;
    }
    if (!equal)
        printf("# %llu of %s to %s\n", (unsigned long long)n, pstk_dtype_name(from),
               pstk_dtype_name(to));
    free(in);
    free(expected);
    free(out);
    return equal;
}

/* All values of 8 and 16 bits; of wider ones those around powers of two and special exponents, and
 * random ones. */
#define N_VALUES 65536u
static void values_of(void *out, uint32_t size)
{
    for (uint32_t i = 0; i < N_VALUES; i++) {
        const uint32_t bits = 8 * size, shift = i / 8 % bits;
        const uint64_t power = (uint64_t)1 << shift, near = power - 2 + i % 5;
        uint64_t v = size <= 2 ? i : i < 8192 ? near : draw();
        if (size > 2 && i >= 4096 && i < 8192)
            v = ~near;
        else if (size == 4 && i >= 8192 && i < 16384) /* floats: NaN, infinities, subnormals */
            v = (i & 1 ? v | 0x7f800000u : v & 0x807fffffu);
        memcpy((uint8_t *)out + (size_t)size * i, &v, size);
    }
}

TEST(casts_of_every_pair_are_as_the_cpu_makes_them)
{
    uint8_t *values = aligned(8 * N_VALUES);
    uint32_t n_pairs = 0, n_equal = 0;
    for (uint32_t from = PSTK_U8; from <= PSTK_F64; from++) {
        values_of(values, pstk_dtype_size(from));
        for (uint32_t to = PSTK_U8; to <= PSTK_F64; to++)
            if (from != to && pstk__cast_fits(from, to)) {
                n_pairs++;
                n_equal += cast_equal(to, from, values, N_VALUES) ? 1 : 0;
            }
    }
    free(values);
    CHECK(n_pairs > 30);
    CHECK_EQ(n_equal, n_pairs);
}

TEST(casts_of_any_number_of_elements_write_these_alone)
{
    uint8_t values[8 * 40];
    for (uint32_t from = PSTK_U8; from <= PSTK_F64; from++)
        for (uint32_t to = PSTK_U8; to <= PSTK_F64; to++)
            for (uint32_t n = 0; n <= 40 && from != to && pstk__cast_fits(from, to); n++) {
                fill(values, sizeof values);
                CHECK(cast_equal(to, from, values, n));
            }
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(the_usual_16_bit_tables_have_a_line),
        CASE(images_of_every_small_width_are_as_the_cpu_makes_them),
        CASE(images_of_usual_widths_are_as_the_cpu_makes_them),
        CASE(rows_that_are_not_valid_are_0_and_not_read),
        CASE(a_table_without_a_line_gives_its_elements),
        CASE(every_byte_of_an_image_is_written_by_one_thread_once),
        CASE(batches_and_images_may_be_larger_than_32_bits_count),
        CASE(casts_of_every_pair_are_as_the_cpu_makes_them),
        CASE(casts_of_any_number_of_elements_write_these_alone),
    };
    return RUN_CASES(cases);
}
