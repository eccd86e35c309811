/* SPDX-License-Identifier: Apache-2.0 */
/* Fields of coefficient planes: what is written is read, by every ISA, and damage is seen. */
#include "image/jpeg/zigzag.h"
#include "support/planes_field.h"
#include "support/test.h"

#include "base/cpu.h"
#include "base/crc32c.h"
#include "image/image.h"
#include "base/little.h"

#define EACH_ISA(v)                                                                                \
    for (uint32_t v = PSTK_KERNELS_C; v <= PSTK_KERNELS_NEON; v++)                                 \
        if (pstk__planes_kernels(v) != NULL)

static uint32_t draw(uint32_t below)
{
    return field_draw(below);
}

static void print_spec(const struct field_spec *s)
{
    printf("# %u x %u, colour %u, kind %u, factors", s->width, s->height, s->color, s->kind);
    for (uint32_t c = 0; c < field_components(s->color); c++)
        printf(" %ux%u", s->h[c], s->v[c]);
    printf("\n");
}

/* ---- contexts ------------------------------------------------------------------------------- */

TEST(each_16_bit_number_has_its_place_in_the_zigzag_of_signs)
{
    for (int32_t v = INT16_MIN; v <= INT16_MAX; v++) {
        const uint32_t z = pstk__zigzag16((int16_t)v);
        CHECK_EQ(z, v < 0 ? -2 * v - 1 : 2 * v);
        CHECK_EQ(pstk__unzigzag16(z), v);
    }
}

TEST(luma_and_chroma_have_contexts_of_their_own_that_meet_in_the_middle)
{
    for (uint32_t i = 0; i < 8; i++) {
        CHECK_EQ(pstk__planes_map_context(0, i), PSTK__CONTEXT_MAP + i);
        CHECK_EQ(pstk__planes_map_context(1, i), PSTK__CONTEXT_VALUE - 1 - i);
    }
    for (uint32_t count = 1; count <= 8; count++)
        for (uint32_t z = 1; z < 64; z++) {
            const uint32_t luma = pstk__planes_value_context(0, count, z);
            const uint32_t chroma = pstk__planes_value_context(1, count, z);
            CHECK(luma >= PSTK__CONTEXT_VALUE && luma < PSTK__CONTEXT_VALUE + 8);
            CHECK_EQ(luma + chroma, PSTK__CONTEXT_VALUE + PSTK__CONTEXT_DC_HIGH - 1);
            /* the smaller the values, the lower the level */
            CHECK(z == 1 || luma <= pstk__planes_value_context(0, count, z - 1));
            CHECK(count == 1 || luma >= pstk__planes_value_context(0, count - 1, z));
        }
    for (uint32_t c = 0; c < PSTK__N_CONTEXTS; c++)
        CHECK_EQ(pstk__planes_context_order(c) == PSTK__MODEL_SIGNED,
                 c >= PSTK__CONTEXT_VALUE && c < PSTK__CONTEXT_DC_HIGH);
}

/* ---- blocks taken apart --------------------------------------------------------------------- */

TEST(blocks_are_taken_apart_alike_by_every_isa)
{
    enum { MOST = 12, SLACK = 64 };
    for (uint32_t i = 0; i < 200; i++) {
        const uint32_t n = draw(MOST + 1);
        int16_t *blocks = calloc(64 * n + 1, sizeof *blocks);
        int16_t expected[64 * MOST], values[64 * MOST + SLACK + 8];
        uint64_t maps[MOST + 1];
        uint32_t n_values = 0;
        for (uint32_t k = 0; k < 64 * n; k++)
            blocks[k] = draw(1 + i % 4) ? 0 : field_wild();
        for (uint32_t b = 0; b < n; b++)
            for (uint32_t z = 1; z < 64; z++)
                if (blocks[64 * b + pstk__zigzag[z]] != 0)
                    expected[n_values++] = blocks[64 * b + pstk__zigzag[z]];
        EACH_ISA(v)
        {
            memset(values, 0xa5, sizeof values);
            maps[n] = 0xa5;
            CHECK_EQ(pstk__planes_kernels(v)->take(maps, values, blocks, n), n_values);
            CHECK(memcmp(values, expected, n_values * sizeof *values) == 0);
            for (uint32_t k = n_values + SLACK; k < 64 * MOST + SLACK + 8; k++)
                CHECK_EQ((uint16_t)values[k], 0xa5a5);
            CHECK_EQ(maps[n], 0xa5);
            for (uint32_t k = 0; k < 64 * n; k++)
                CHECK_EQ(maps[k / 64] >> k % 64 & 1,
                         k % 64 != 0 && blocks[k / 64 * 64 + pstk__zigzag[k % 64]] != 0);
        }
        free(blocks);
    }
}

/* ---- what is written is read ---------------------------------------------------------------- */

/* 1 when an ISA does not give back the image's coefficients and what stands beside them. */
static int field_differs(const struct pstk__jpeg_image *image, const uint8_t *field, uint64_t size)
{
    static struct field_reader r;
    struct pstk_error err;
    const struct pstk__jpeg_frame *f = &image->frame;
    int bad = 0;
    pstk_error_init(&err, sizeof err);
    EACH_ISA(v)
    {
        int rc = field_open(&r, field, size, f->width, f->height, v, &err);
        const struct pstk__planes_header *h = &r.planes.header;
        if (rc == 0)
            rc = field_expand(&r, &err);
        const int same =
            rc == 0 && memcmp(&h->frame, f, sizeof *f) == 0 &&
            h->orientation == image->orientation && h->rebuild == image->rebuild &&
            h->parameters == image->parameters && h->skeleton_plain_size == image->skeleton_size &&
            (h->set || r.planes.table[PSTK__N_CONTEXTS - 1] < PSTK__PLANES_MAX_TABLES) &&
            field_has(&r, image->blocks);
        if (!same)
            printf("# ISA %u: result %d %s\n", v, rc, rc < 0 ? err.message : "differs");
        bad |= !same;
        field_close(&r);
    }
    return bad;
}

/* Write and read an image of this kind. */
static int spec_differs(const struct field_spec *s)
{
    static const uint32_t lanes[] = {0, 0, 4, 16, 64};
    struct pstk__jpeg_image image;
    uint64_t size = 0;
    field_image(&image, s);
    field_lanes = lanes[draw(5)];
    field_has_sets = draw(2);
    uint8_t *field = field_write(&image, draw(200), &size);
    const int bad = field == NULL || field_differs(&image, field, size);
    if (bad)
        print_spec(s);
    field_lanes = field_has_sets = 0;
    free(field);
    field_image_close(&image);
    return bad;
}

TEST(images_of_every_small_size_come_back)
{
    for (uint32_t y = 1; y <= 17; y++)
        for (uint32_t x = 1; x <= 17; x++) {
            struct field_spec s = field_draw_spec(1, 1);
            s.width = x;
            s.height = y;
            CHECK(!spec_differs(&s));
        }
}

TEST(images_of_every_sampling_and_kind_come_back)
{
    for (uint32_t i = 0; i < 30 * N_FIELD_KINDS; i++) {
        struct field_spec s = field_draw_spec(140, 140);
        s.kind = i % N_FIELD_KINDS;
        CHECK(!spec_differs(&s));
    }
}

TEST(images_of_many_strips_come_back)
{
    for (uint32_t kind = 0; kind < N_FIELD_KINDS; kind++) {
        struct field_spec s = {.width = 500 + draw(100),
                               .height = 700 + draw(100),
                               .color = PSTK__JPEG_GRAY + draw(3),
                               .h = {2, 1, 1},
                               .v = {2, 1, 1},
                               .kind = kind};
        CHECK(!spec_differs(&s));
    }
}

/* Every context has symbols like no other's: each would have a table of its own. */
TEST(an_image_has_no_more_tables_than_it_may)
{
    static struct field_reader r;
    struct field_spec spec = {.width = 700,
                              .height = 700,
                              .color = PSTK__JPEG_YCC,
                              .h = {1, 1, 1},
                              .v = {1, 1, 1},
                              .kind = FIELD_ZERO};
    struct pstk__jpeg_image image;
    uint64_t size;
    field_image(&image, &spec);
    for (uint32_t c = 0; c < 3; c++) {
        int16_t *block = image.blocks[c];
        for (uint32_t n = image.frame.component[c].rows * image.frame.component[c].stride; n > 0;
             n--, block += 64) {
            const uint32_t last = 1 + draw(63), count = last / 8 + 1;
            for (uint32_t z = 1; z <= last; z++) {
                const uint32_t level =
                    pstk__planes_value_context(c > 0, count, z) - PSTK__CONTEXT_VALUE;
                const int16_t value = (int16_t)(1 + 7 * level + draw(7));
                block[pstk__zigzag[z]] = z == last || z % 8 == (z / 8 + 4 * c) % 8 ? value : 0;
            }
        }
    }
    uint8_t *field = field_write(&image, 10, &size);
    CHECK_EQ(field_open(&r, field, size, spec.width, spec.height, PSTK_KERNELS_C, NULL), 0);
    CHECK_EQ(r.planes.table[PSTK__N_CONTEXTS - 1] + 1, PSTK__PLANES_MAX_TABLES);
    CHECK(field_expand(&r, NULL) == 0 && field_has(&r, image.blocks));
    field_close(&r);
    free(field);
    field_image_close(&image);
}

TEST(the_longest_sides_come_back)
{
    static const uint32_t sides[6][2] = {{65535, 1}, {1, 65535},  {65535, 9},
                                         {9, 65535}, {65528, 16}, {17, 65529}};
    for (uint32_t i = 0; i < 12; i++) {
        struct field_spec s = field_draw_spec(1, 1);
        s.width = sides[i % 6][0];
        s.height = sides[i % 6][1];
        s.kind = i < 6 ? FIELD_PHOTO : FIELD_ZERO;
        for (int c = 0; c < 4; c++) { /* some of the MCUs, which have up to 4 x 4 blocks */
            s.h[c] = (uint8_t)(i % 2 ? s.h[c] : 1);
            s.v[c] = (uint8_t)(i % 2 ? 1 : s.v[c]);
        }
        s.color = i < 6 ? PSTK__JPEG_YCC : s.color;
        CHECK(!spec_differs(&s));
    }
}

/* As many blocks as the bound on memory allows for; a strip of one MCU row, which may have more
 * than a strip of several. */
TEST(the_images_that_need_most_memory_for_their_size_come_back)
{
    static const uint32_t sides[4][2] = {{1, 1}, {33, 7}, {65505, 7}, {65535, 40}};
    for (uint32_t i = 0; i < 6; i++) {
        struct field_spec s = {.width = sides[i % 4][0],
                               .height = sides[i % 4][1],
                               .color = PSTK__JPEG_CMYK,
                               .kind = sides[i % 4][0] > 33 || i < 4 ? FIELD_ZERO : FIELD_WIDE};
        memset(s.h, 4, sizeof s.h);
        memset(s.v, 4, sizeof s.v);
        CHECK(!spec_differs(&s));
    }
}

/* ---- rows ----------------------------------------------------------------------------------- */

/* Blocks [first, first + n) of a row, as they were given. */
struct given {
    uint32_t component, y, first, n;
    struct pstk__block_row row;
};

/* 1 when they are not those of the image. */
static int given_differs(const struct given *g, const struct pstk__jpeg_image *image)
{
    const struct pstk__block_row *row = &g->row;
    const uint32_t stride = image->frame.component[g->component].stride;
    const int16_t *block = image->blocks[g->component] + ((size_t)g->y * stride + g->first) * 64;
    uint32_t at = 0, wide = 0;
    for (uint32_t b = 0; b < g->n; b++, block += 64) {
        if (row->dc[b] != block[0] || row->maps[b] & 1)
            return 1;
        for (uint32_t z = 1; z < 64; z++) {
            const int16_t want = block[pstk__zigzag[z]];
            int16_t got = 0;
            if (row->maps[b] >> z & 1) {
                got = row->values[at++];
                got = got == PSTK__PLANES_WIDE ? row->wide[wide++] : got;
            }
            if (got != want)
                return 1;
        }
    }
    volatile int8_t sum = 0; /* as the kernels read them */
    for (uint32_t i = 0; i < 64; i++)
        sum = (int8_t)(sum + row->values[at + i]);
    return row->n_blocks != g->n;
}

static int row_differs(struct pstk__planes_reader *r, const struct pstk__jpeg_image *image,
                       struct given *g)
{
    return pstk__planes_row(r, g->component, g->y, g->first, g->n, &g->row, NULL) != 0 ||
           given_differs(g, image);
}

/* The rows of a MCU row of each component, some of the next one before it is done with; what was
 * given of the other components stays, but for strips two back. */
static int walk_differs(struct pstk__planes_reader *r, const struct pstk__jpeg_image *image)
{
    const struct pstk__jpeg_frame *f = &image->frame;
    struct given given[4] = {{.n = 0}};
    int bad = 0;
    for (uint32_t mcu = draw(3); mcu < pstk__planes_mcu_rows(f); mcu += 1 + draw(2) * draw(9))
        for (uint32_t c = 0; c < f->n_components; c++) {
            const struct pstk__jpeg_component *k = &f->component[c];
            const uint32_t step = f->n_components == 1 ? 1 : k->v;
            const uint32_t end = (mcu + 1) * step + draw(2) * draw(2 * step);
            uint32_t y = mcu * step > given[c].y ? mcu * step : given[c].y;
            for (; y < end && y < k->rows; y++) {
                const uint32_t first = draw(k->stride), strip = y / step / r->header.strip_height;
                given[c] = (struct given){c, y, first, 1 + draw(k->stride - first), {0}};
                bad |= row_differs(r, image, &given[c]);
                for (uint32_t o = 0; o < f->n_components; o++) {
                    const uint32_t v = f->n_components == 1 ? 1 : f->component[o].v;
                    if (given[o].n > 0 && given[o].y / v / r->header.strip_height + 1 >= strip)
                        bad |= given_differs(&given[o], image);
                }
            }
        }
    return bad;
}

TEST(rows_of_blocks_are_given_as_a_decoder_asks_for_them)
{
    static struct field_reader r;
    for (uint32_t i = 0; i < 20; i++) {
        const struct field_spec s = field_draw_spec(300, 600);
        struct pstk__jpeg_image image;
        uint64_t size;
        field_image(&image, &s);
        uint8_t *field = field_write(&image, 10, &size);
        const uint32_t v = i % 2 ? PSTK_KERNELS_C : PSTK_KERNELS_AUTO;
        CHECK_EQ(field_open(&r, field, size, s.width, s.height, v, NULL), 0);
        CHECK(!walk_differs(&r.planes, &image));
        field_close(&r);
        free(field);
        field_image_close(&image);
    }
}

static const struct field_spec stripped = {.width = 520,
                                           .height = 700,
                                           .color = PSTK__JPEG_YCC,
                                           .h = {2, 1, 1},
                                           .v = {2, 1, 1},
                                           .kind = FIELD_PHOTO};

TEST(each_strip_is_decoded_by_itself_and_the_damaged_one_is_named)
{
    static struct field_reader r;
    struct field_subject s;
    CHECK_EQ(field_subject_open(&s, &stripped), 0);
    const struct pstk__planes_header *h = &s.header;
    const struct pstk__jpeg_frame *f = &h->frame;
    CHECK(h->n_strips >= 3);
    const uint32_t bad = h->n_strips / 2;
    uint8_t *at = s.field + (h->strips - s.field);
    for (uint32_t i = 0; i < bad; i++)
        at += pstk__planes_padded(pstk__planes_entry_read(h, i).size);
    pstk__put32(at, PSTK__RANS_LOW - 1); /* a state that there is not */
    EACH_ISA(v)
    {
        struct pstk_error err;
        char name[40];
        pstk_error_init(&err, sizeof err);
        snprintf(name, sizeof name, "strip %u of %u", bad, h->n_strips);
        CHECK_EQ(field_open(&r, s.field, s.size, f->width, f->height, v, &err), 0);
        for (uint32_t y = 0; y < f->component[0].rows; y++) {
            const uint32_t strip = y / (h->strip_height * f->component[0].v);
            struct given given = {0, y, 0, f->component[0].stride, {0}};
            struct pstk__block_row row;
            if (strip != bad)
                CHECK(!row_differs(&r.planes, &s.image, &given));
            else
                CHECK_EQ(pstk__planes_row(&r.planes, 0, y, 0, 1, &row, &err), PSTK_EBADMSG);
            CHECK(strip != bad || strstr(err.message, name) != NULL);
        }
        field_close(&r);
    }
    field_subject_close(&s);
}

/* ---- lanes ---------------------------------------------------------------------------------- */

/* Return the lanes of a square image, each of whose blocks has a count and two symbols of the DC.
 * 0: it failed. */
static uint32_t lanes_of(uint32_t side)
{
    const struct field_spec spec = {.width = side,
                                    .height = side,
                                    .color = PSTK__JPEG_GRAY,
                                    .h = {1},
                                    .v = {1},
                                    .kind = FIELD_ZERO};
    struct field_subject s;
    const uint32_t n = field_subject_open(&s, &spec) == 0 ? s.header.n_lanes : 0;
    field_subject_close(&s);
    return n;
}

TEST(the_more_symbols_a_strip_has_the_more_lanes)
{
    CHECK_EQ(lanes_of(1), 4);
    CHECK_EQ(lanes_of(8 * 18), 4); /* 972 symbols */
    CHECK_EQ(lanes_of(8 * 19), 16);
    CHECK_EQ(lanes_of(8 * 47), 16);
    CHECK_EQ(lanes_of(8 * 64), 16); /* three strips of less than 8192 */
    const struct field_spec dense = {.width = 200,
                                     .height = 200,
                                     .color = PSTK__JPEG_GRAY,
                                     .h = {1},
                                     .v = {1},
                                     .kind = FIELD_WIDE};
    struct field_subject s;
    CHECK_EQ(field_subject_open(&s, &dense), 0);
    CHECK_EQ(s.header.n_lanes, 64);
    field_subject_close(&s);
}

/* ---- writing -------------------------------------------------------------------------------- */

TEST(a_field_does_not_depend_on_what_memory_held)
{
    for (uint32_t i = 0; i < 40; i++) {
        const struct field_spec s = field_draw_spec(200, 200);
        struct pstk__jpeg_image image;
        field_image(&image, &s);
        const uint64_t room = field_bound(&image.frame);
        uint8_t *one = malloc(room), *two = malloc(room);
        memset(one, 0, room);
        memset(two, 0xff, room);
        const int64_t size = field_write_to(&image, 50, one, room, 0);
        CHECK(size > 0);
        CHECK_EQ(field_write_to(&image, 50, two, room, 0xff), size);
        CHECK(memcmp(one, two, (size_t)size) == 0);
        free(one);
        free(two);
        field_image_close(&image);
    }
}

/* Every one near the field's size, where its last parts are written; some of the others. */
static uint64_t next_room(uint64_t room, uint64_t size)
{
    if (room + 20 >= size)
        return room + 1;
    return room + (size - room > 700 ? 37 : 1) * test_stride(5, 5);
}

TEST(a_field_is_written_where_it_has_room_and_not_by_a_byte_beyond)
{
    for (uint32_t i = 0; i < 12; i++) {
        struct field_spec s = field_draw_spec(20, 20);
        struct pstk__jpeg_image image;
        uint64_t size;
        s.kind = i % N_FIELD_KINDS;
        field_image(&image, &s);
        uint8_t *field = field_write(&image, 20, &size);
        CHECK(field != NULL);
        for (uint64_t room = 0; room <= size + 3; room = next_room(room, size)) {
            uint8_t *out = malloc(room + 1);
            out[room] = 0xa5;
            CHECK_EQ(field_write_to(&image, 20, out, room, 0xa5), room < size ? 0 : (int64_t)size);
            CHECK(out[room] == 0xa5 && (room < size || memcmp(out, field, size) == 0));
            free(out);
        }
        free(field);
        field_image_close(&image);
    }
}

TEST(an_arena_that_is_too_small_is_enomem_and_left_as_it_was)
{
    const struct field_spec s = {.width = 100,
                                 .height = 90,
                                 .color = PSTK__JPEG_GRAY,
                                 .h = {1},
                                 .v = {1},
                                 .kind = FIELD_SMALL};
    static uint8_t out[100000];
    struct pstk__jpeg_image image;
    struct pstk__arena arena = {.base = NULL};
    field_image(&image, &s);
    const struct pstk__planes_source source = {.image = &image, .skeleton = "", .skeleton_size = 0};
    const uint64_t enough = pstk__planes_write_scratch(&image.frame);
    for (uint64_t size = 64; size < enough; size *= 2) {
        exact_arena_open(&arena, size, 0);
        CHECK_EQ(pstk__planes_write(&source, out, sizeof out, &arena, NULL), PSTK_ENOMEM);
        CHECK_EQ(arena.used, 0);
        exact_arena_close(&arena);
    }
    field_image_close(&image);
}

/* The bytes are the same on every machine, without and with built-in tables. After a change of the
 * choice of tables, other bytes may be right. */
TEST(a_known_image_has_the_bytes_it_always_had)
{
    static const struct field_spec specs[3] = {{.width = 50,
                                                .height = 30,
                                                .color = PSTK__JPEG_YCC,
                                                .h = {2, 1, 1},
                                                .v = {2, 1, 1},
                                                .kind = FIELD_SMALL},
                                               {.width = 300,
                                                .height = 500,
                                                .color = PSTK__JPEG_GRAY,
                                                .h = {1},
                                                .v = {1},
                                                .kind = FIELD_PHOTO},
                                               {.width = 90,
                                                .height = 100,
                                                .color = PSTK__JPEG_YCCK,
                                                .h = {2, 1, 1, 2},
                                                .v = {1, 1, 1, 1},
                                                .kind = FIELD_WILD}};
    static const uint32_t known[6] = {0x4f57f2fe, 0x1982a795, 0x1dc745c2,
                                      0x9030ccb2, 0x0299a1da, 0x1eb55e36};
    uint32_t crc[6];
    const uint64_t saved = field_state;
    field_state = 1;
    for (uint32_t i = 0; i < 6; i++) {
        struct pstk__jpeg_image image;
        uint64_t size;
        field_image(&image, &specs[i % 3]);
        field_has_sets = i >= 3;
        uint8_t *field = field_write(&image, 20, &size);
        crc[i] = pstk__crc32c(0, field, size);
        printf("# %u bytes, 0x%08x\n", (unsigned)size, crc[i]);
        free(field);
        field_image_close(&image);
    }
    field_has_sets = 0;
    field_state = saved;
    CHECK(memcmp(crc, known, sizeof known) == 0);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(each_16_bit_number_has_its_place_in_the_zigzag_of_signs),
        CASE(luma_and_chroma_have_contexts_of_their_own_that_meet_in_the_middle),
        CASE(blocks_are_taken_apart_alike_by_every_isa),
        CASE(images_of_every_small_size_come_back),
        CASE(images_of_every_sampling_and_kind_come_back),
        CASE(images_of_many_strips_come_back),
        CASE(an_image_has_no_more_tables_than_it_may),
        CASE(the_longest_sides_come_back),
        CASE(the_images_that_need_most_memory_for_their_size_come_back),
        CASE(rows_of_blocks_are_given_as_a_decoder_asks_for_them),
        CASE(the_more_symbols_a_strip_has_the_more_lanes),
        CASE(a_field_does_not_depend_on_what_memory_held),
        CASE(a_field_is_written_where_it_has_room_and_not_by_a_byte_beyond),
        CASE(an_arena_that_is_too_small_is_enomem_and_left_as_it_was),
        CASE(a_known_image_has_the_bytes_it_always_had),
        CASE(each_strip_is_decoded_by_itself_and_the_damaged_one_is_named),
    };
    return RUN_CASES(cases);
}
