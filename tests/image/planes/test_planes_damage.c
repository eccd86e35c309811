/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Damaged and hostile fields of coefficient planes: safe, refused with the codes of the contract,
 * or seen alike by every ISA. The checksum of the record is what guards the bytes of a sound
 * one.
 */
#include "image/jpeg/zigzag.h"
#include "support/planes_field.h"
#include "support/test.h"

#include "base/little.h"
#include "image/image.h"
#include "image/planes/decode.h"

#define EACH_ISA(v)                                                                                \
    for (uint32_t v = PSTK_KERNELS_C; v <= PSTK_KERNELS_NEON; v++)                                 \
        if (pstk__planes_kernels(v) != NULL)

static uint32_t draw(uint32_t below)
{
    return field_draw(below);
}

/* ---- damage --------------------------------------------------------------------------------- */

/* The result for a field whose record claims this size. */
struct verdict {
    int result;       /* the same by every ISA; 1: it is not, or is outside the contract */
    uint32_t is_same; /* 1: the frame and the coefficients are those of the image */
};

static struct verdict judge(const uint8_t *field, uint64_t size,
                            const struct pstk__jpeg_image *image)
{
    static struct field_reader first, other;
    const uint32_t width = image->frame.width, height = image->frame.height;
    struct verdict verdict = {.is_same = 0};
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    EACH_ISA(v)
    {
        struct field_reader *r = v == PSTK_KERNELS_C ? &first : &other;
        int rc = field_open(r, field, size, width, height, v, &err);
        if (rc == 0)
            rc = field_expand(r, &err);
        const int is_kept = rc == 0 || ((rc == PSTK_EBADMSG || rc == PSTK_ENOTSUP) &&
                                        err.code == rc && strncmp(err.message, "planes", 6) == 0);
        if (v == PSTK_KERNELS_C)
            verdict.result = is_kept ? rc : 1;
        else if (rc != verdict.result || (rc == 0 && !field_has(r, first.blocks)))
            verdict.result = 1;
        if (r == &other)
            field_close(r);
    }
    const struct pstk__jpeg_frame *f = &first.planes.header.frame;
    verdict.is_same = verdict.result == 0 && memcmp(f, &image->frame, sizeof *f) == 0 &&
                      field_has(&first, image->blocks);
    field_close(&first);
    return verdict;
}

/* As judge, for a copy of the field in memory of exactly its size. */
static struct verdict judge_copy(const uint8_t *field, uint64_t size,
                                 const struct pstk__jpeg_image *image)
{
    uint8_t *copy = malloc(size ? size : 1);
    memcpy(copy, field, size);
    const struct verdict v = judge(copy, size, image);
    free(copy);
    return v;
}

static const struct field_spec small = {.width = 37,
                                        .height = 21,
                                        .color = PSTK__JPEG_YCC,
                                        .h = {2, 1, 1},
                                        .v = {2, 1, 1},
                                        .kind = FIELD_PHOTO};
static const struct field_spec stripped = {.width = 520,
                                           .height = 700,
                                           .color = PSTK__JPEG_YCC,
                                           .h = {2, 1, 1},
                                           .v = {2, 1, 1},
                                           .kind = FIELD_PHOTO};

TEST(a_field_that_was_cut_off_or_has_bytes_to_spare_is_damaged)
{
    struct field_subject s;
    CHECK_EQ(field_subject_open(&s, &small), 0);
    for (uint64_t size = 0; size < s.size; size++)
        CHECK_EQ(judge_copy(s.field, size, &s.image).result, PSTK_EBADMSG);
    uint8_t *longer = calloc(1, s.size + 9);
    memcpy(longer, s.field, s.size);
    CHECK_EQ(judge(longer, s.size, &s.image).result, 0);
    for (uint64_t more = 1; more <= 9; more++)
        CHECK_EQ(judge_copy(longer, s.size + more, &s.image).result, PSTK_EBADMSG);
    free(longer);
    field_subject_close(&s);
}

/* Header, components, tables of quantisation, sizes of strips and models: each byte as others. */
TEST(a_changed_head_is_refused_or_leaves_the_coefficients_as_they_were)
{
    static const struct field_spec specs[2] = {{.width = 37,
                                                .height = 21,
                                                .color = PSTK__JPEG_YCC,
                                                .h = {2, 1, 1},
                                                .v = {2, 1, 1},
                                                .kind = FIELD_PHOTO},
                                               {.width = 33,
                                                .height = 300,
                                                .color = PSTK__JPEG_GRAY,
                                                .h = {1},
                                                .v = {1},
                                                .kind = FIELD_SMALL}};
    for (uint32_t i = 0; i < 4; i++) {
        struct field_subject s;
        uint32_t n_refused = 0;
        field_has_sets = i >= 2;
        CHECK_EQ(field_subject_open(&s, &specs[i % 2]), 0);
        field_has_sets = 0;
        const uint32_t head = (uint32_t)(s.header.strips - s.field);
        for (uint32_t at = 0; at < head; at++) {
            const uint8_t was = s.field[at];
            const uint8_t others[8] = {0,
                                       1,
                                       4,
                                       255,
                                       (uint8_t)(was + 1),
                                       (uint8_t)(was - 1),
                                       was ^ 128,
                                       (uint8_t)draw(256)};
            for (uint32_t k = 0; k < 8; k++) {
                s.field[at] = others[k];
                const struct verdict v = judge(s.field, s.size, &s.image);
                CHECK(v.result == 0 || v.result == PSTK_EBADMSG ||
                      (v.result == PSTK_ENOTSUP && (at == 0 || at == 11)));
                n_refused += v.result < 0;
            }
            s.field[at] = was;
        }
        CHECK(n_refused > head);
        CHECK(judge(s.field, s.size, &s.image).is_same);
        field_subject_close(&s);
    }
}

/* Colours, counts and places in the header that do not agree. By byte: value, result. */
TEST(an_impossible_header_is_refused)
{
    static const struct {
        uint8_t at, value;
        int result;
    } changes[] = {
        {0, 1, PSTK_ENOTSUP},     {0, 3, PSTK_ENOTSUP},  {1, 0, PSTK_EBADMSG},
        {1, 1, PSTK_EBADMSG},     {1, 2, PSTK_EBADMSG},  {1, 4, PSTK_EBADMSG},
        {1, 255, PSTK_EBADMSG},   {2, 0, PSTK_EBADMSG},  {2, 1, PSTK_EBADMSG},
        {2, 4, PSTK_EBADMSG},     {2, 6, PSTK_EBADMSG},  {3, 0, PSTK_EBADMSG},
        {3, 9, PSTK_EBADMSG},     {4, 0, PSTK_EBADMSG},  {4, 38, PSTK_EBADMSG},
        {6, 22, PSTK_EBADMSG},    {7, 1, PSTK_EBADMSG},  {8, 0, PSTK_EBADMSG},
        {8, 4, PSTK_EBADMSG},     {9, 0, PSTK_EBADMSG},  {9, 5, PSTK_EBADMSG},
        {10, 0, PSTK_EBADMSG},    {10, 8, PSTK_EBADMSG}, {11, 1, PSTK_EBADMSG},
        {16, 0, PSTK_EBADMSG},    {16, 3, PSTK_EBADMSG}, {18, 0, PSTK_EBADMSG},
        {18, 2, PSTK_EBADMSG},    {33, 0, PSTK_EBADMSG}, {33, 0x15, PSTK_EBADMSG},
        {33, 0x51, PSTK_EBADMSG}, {34, 4, PSTK_EBADMSG}, {35, 1, PSTK_EBADMSG},
    };
    struct field_subject s;
    CHECK_EQ(field_subject_open(&s, &small), 0);
    for (uint32_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        const uint8_t was = s.field[changes[i].at];
        s.field[changes[i].at] = changes[i].value;
        const struct verdict v = judge(s.field, s.size, &s.image);
        if (v.result != changes[i].result)
            printf("# byte %u: %u\n", changes[i].at, changes[i].value);
        CHECK_EQ(v.result, changes[i].result);
        s.field[changes[i].at] = was;
    }
    field_subject_close(&s);
}

TEST(only_the_numbers_of_lanes_that_there_are_are_read)
{
    struct pstk__planes_header h;
    struct field_subject s;
    CHECK_EQ(field_subject_open(&s, &small), 0);
    for (uint32_t n = 0; n < 256; n++) {
        s.field[10] = (uint8_t)n;
        CHECK_EQ(pstk__planes_header_read(&h, s.field, s.size, NULL),
                 n == 4 || n == 16 || n == 64 ? 0 : PSTK_EBADMSG);
        CHECK(n == s.header.n_lanes || judge(s.field, s.size, &s.image).result == PSTK_EBADMSG);
    }
    field_subject_close(&s);
}

/* A huge image in few bytes: as many strips as it must have do not fit. */
TEST(a_huge_image_in_a_few_bytes_fails_without_memory)
{
    uint8_t field[100] = {2, 1, 1, 1};
    static struct pstk__planes_tables tables = {.kernels = &pstk__planes_kernels_c};
    struct pstk__planes_reader r;
    struct pstk__arena arena = {.base = NULL};
    const struct pstk__image_info info = {.width = 65535, .height = 65535};
    struct pstk__image_info probed;
    pstk__put16(field + 4, 65535);
    pstk__put16(field + 6, 65535);
    field[8] = field[9] = 1;
    field[10] = 64;
    field[33] = 0x11;
    for (uint32_t height = 0; height <= 8192; height++) {
        pstk__put16(field + 16, (uint16_t)height);
        pstk__put16(field + 18, (uint16_t)(height ? (8192 + height - 1) / height : 0));
        CHECK_EQ(pstk__planes_open(&r, field, sizeof field, &info, &tables, &arena, NULL),
                 PSTK_EBADMSG);
        CHECK_EQ(pstk__image_planes.probe(field, sizeof field, UINT64_MAX, &probed, NULL),
                 PSTK_EBADMSG);
    }
}

/* Read a head without models, strips and skeleton, whose tables of quantisation are these bytes,
 * and which claims n_quant tables. Returns the result. */
static int read_head(const struct pstk__planes_header *h, uint32_t n_quant, const void *quant,
                     uint32_t quant_size)
{
    struct pstk__planes_header back;
    uint8_t head[PSTK__PLANES_MAX_HEAD], own[PSTK__PLANES_MAX_QUANT];
    const uint32_t size = pstk__planes_header_write(head, h);
    const uint64_t before = size + PSTK__PLANES_ENTRY_SIZE * (uint64_t)h->n_strips;
    if (quant == NULL)
        quant_size = pstk__planes_quant_write(own, &h->frame);
    else
        head[9] = (uint8_t)n_quant;
    const uint64_t all = pstk__planes_padded(before + quant_size);
    uint8_t *field = calloc(1, all);
    memcpy(field, head, size);
    memcpy(field + before, quant != NULL ? quant : own, quant_size);
    const int r = pstk__planes_header_read(&back, field, all, NULL);
    free(field);
    return r;
}

/* Heads that agree with their own size, so that nothing but the check in question can see them. */
TEST(strips_and_tables_that_cannot_be_are_refused_in_a_head_that_adds_up)
{
    static const uint8_t quant[5 * 65], wide[257] = {2};
    struct pstk__planes_header gray = {.frame = {.width = 2048, .height = 2048, .color = 1},
                                       .orientation = 1,
                                       .rebuild = 1,
                                       .n_lanes = 64,
                                       .strip_height = 64,
                                       .n_strips = 4};
    gray.frame.n_components = gray.frame.component[0].h = gray.frame.component[0].v = 1;
    CHECK_EQ(read_head(&gray, 1, NULL, 0), 0);
    CHECK_EQ(read_head(&gray, 1, quant, 65), 0);
    CHECK_EQ(read_head(&gray, 4, quant, 4 * 65), 0);
    CHECK_EQ(read_head(&gray, 5, quant, 5 * 65), PSTK_EBADMSG);
    CHECK_EQ(read_head(&gray, 1, wide, sizeof wide), PSTK_EBADMSG);
    for (uint32_t n = 0; n < 8; n++) {
        struct pstk__planes_header h = gray;
        h.n_strips = n;
        CHECK_EQ(read_head(&h, 1, NULL, 0), n == 4 ? 0 : PSTK_EBADMSG);
        h.strip_height = 65; /* 16640 blocks */
        CHECK_EQ(read_head(&h, 1, NULL, 0), PSTK_EBADMSG);
        h = gray;
        h.frame.width = n;
        CHECK_EQ(read_head(&h, 1, NULL, 0), n ? 0 : PSTK_EBADMSG);
        h.frame.height = 0;
        CHECK_EQ(read_head(&h, 1, NULL, 0), PSTK_EBADMSG);
    }
    struct pstk__planes_header wider = gray;
    wider.frame =
        (struct pstk__jpeg_frame){.width = 65535, .height = 16, .color = 4, .n_components = 4};
    for (uint32_t c = 0; c < 4; c++)
        wider.frame.component[c] = gray.frame.component[0];
    wider.strip_height = 1; /* 32768 blocks, but one MCU row */
    wider.n_strips = 2;
    CHECK_EQ(read_head(&wider, 1, NULL, 0), 0);
    wider.strip_height = 2;
    wider.n_strips = 1;
    CHECK_EQ(read_head(&wider, 1, NULL, 0), PSTK_EBADMSG);
}

/* Open a subject's field with these bytes as its models, and return the result. */
static int open_models(const struct field_subject *s, const uint8_t *models, uint64_t size)
{
    static struct field_reader reader;
    const uint64_t before = (uint64_t)(s->header.models - s->field);
    const uint64_t rest = s->size - (uint64_t)(s->header.strips - s->field);
    const uint64_t padded = pstk__planes_padded(before + size);
    uint8_t *field = calloc(1, padded + rest);
    memcpy(field, s->field, before);
    memcpy(field + before, models, size);
    memcpy(field + padded, s->header.strips, rest);
    pstk__put32(field + 20, (uint32_t)size);
    const int r = field_open(&reader, field, padded + rest, s->image.frame.width,
                             s->image.frame.height, PSTK_KERNELS_C, NULL);
    field_close(&reader);
    free(field);
    return r;
}

TEST(models_that_are_not_one_for_each_table_are_damaged)
{
    struct field_subject s;
    uint8_t models[4096];
    CHECK_EQ(field_subject_open(&s, &small), 0);
    const uint64_t n = s.header.models_size;
    CHECK(n + 8 < sizeof models);
    memset(models, 0, sizeof models);
    memcpy(models, s.header.models, n);
    CHECK_EQ(open_models(&s, models, n), 0);
    CHECK_EQ(open_models(&s, models, n + 1), PSTK_EBADMSG);
    for (uint64_t size = 0; size < n; size++)
        CHECK_EQ(open_models(&s, models, size), PSTK_EBADMSG);
    models[PSTK__PLANES_JOINED_SIZE - 1] ^= 0x80; /* bit of a context that does not exist */
    CHECK_EQ(open_models(&s, models, n), PSTK_EBADMSG);
    models[PSTK__PLANES_JOINED_SIZE - 1] ^= 0x80;
    models[0] ^= 2; /* another context with a table, or one without, than there are tables */
    CHECK_EQ(open_models(&s, models, n), PSTK_EBADMSG);
    models[0] ^= 3; /* the first context joined */
    CHECK_EQ(open_models(&s, models, n), PSTK_EBADMSG);
    field_subject_close(&s);
}

/* Each table by other sizes; with the sum of all as it was, too. */
TEST(tables_of_other_sizes_than_listed_are_damaged)
{
    static const uint16_t by[] = {1, 2, 3, 5, 100, 1000, 32768, 65535};
    struct field_subject s;
    uint8_t models[4096];
    uint32_t n_tables = 0;
    CHECK_EQ(field_subject_open(&s, &stripped), 0);
    const uint64_t n = s.header.models_size;
    CHECK(n <= sizeof models);
    memcpy(models, s.header.models, n);
    for (uint32_t c = 0; c < PSTK__N_CONTEXTS; c++)
        n_tables += !(models[c / 8] >> c % 8 & 1);
    CHECK(n_tables >= 3);
    for (uint32_t i = 0; i < n_tables; i++) {
        uint8_t *size = models + PSTK__PLANES_JOINED_SIZE + 2 * i;
        uint8_t *other = models + PSTK__PLANES_JOINED_SIZE + 2 * ((i + 1) % n_tables);
        const uint16_t was = pstk__get16(size), other_was = pstk__get16(other);
        CHECK_EQ(open_models(&s, models, n), 0);
        for (uint32_t k = 0; k < sizeof by / sizeof *by; k++) {
            pstk__put16(size, (uint16_t)(was + by[k]));
            CHECK_EQ(open_models(&s, models, n), PSTK_EBADMSG);
            pstk__put16(other, (uint16_t)(other_was - by[k]));
            CHECK_EQ(open_models(&s, models, n), PSTK_EBADMSG);
            pstk__put16(other, other_was);
        }
        pstk__put16(size, 0);
        CHECK_EQ(open_models(&s, models, n), PSTK_EBADMSG);
        pstk__put16(other, (uint16_t)(other_was + was));
        CHECK_EQ(open_models(&s, models, n), PSTK_EBADMSG);
        pstk__put16(other, other_was);
        pstk__put16(size, was);
    }
    field_subject_close(&s);
}

/* Models of tables that have one symbol each: table i begins with context begin[i]. Returns their
 * size. */
static uint32_t write_certain(uint8_t *models, const uint32_t *begin, const uint32_t *symbols,
                              uint32_t n)
{
    uint8_t *at = models + PSTK__PLANES_JOINED_SIZE + 2 * n;
    memset(models, 0xff, PSTK__PLANES_JOINED_SIZE);
    models[PSTK__PLANES_JOINED_SIZE - 1] = (1u << PSTK__N_CONTEXTS % 8) - 1;
    for (uint32_t i = 0; i < n; i++) {
        struct pstk__model m;
        uint32_t counts[256] = {0};
        counts[symbols[i]] = 1;
        models[begin[i] / 8] &= (uint8_t) ~(1u << begin[i] % 8);
        pstk__model_fit(&m, counts, pstk__planes_context_order(begin[i]));
        const uint32_t size = pstk__model_write(at, &m);
        pstk__put16(models + PSTK__PLANES_JOINED_SIZE + 2 * i, (uint16_t)size);
        at += size;
    }
    return (uint32_t)(at - models);
}

/* Read the field of a gray image of one block, with these models and this number of values; its
 * strip is the states alone. Return the result, and the block's coefficients. */
static int read_one_block(const uint8_t *models, uint32_t models_size, uint32_t n_values,
                          int16_t block[64], struct pstk_error *err)
{
    static struct field_reader r;
    struct pstk__planes_header h = {.frame = {.width = 8, .height = 8, .color = 1},
                                    .orientation = 1,
                                    .rebuild = 1,
                                    .n_lanes = 4,
                                    .strip_height = 1,
                                    .n_strips = 1,
                                    .models_size = models_size};
    uint8_t field[PSTK__PLANES_MAX_HEAD + PSTK__PLANES_MAX_QUANT + 2048] = {0};
    h.frame.n_components = h.frame.component[0].h = h.frame.component[0].v = 1;
    const uint32_t list = pstk__planes_header_write(field, &h);
    const struct pstk__planes_entry entry = {.size = 4 * 4, .n_values = n_values};
    pstk__planes_entry_write(field + list, 0, entry);
    uint32_t size = list + PSTK__PLANES_ENTRY_SIZE;
    size += pstk__planes_quant_write(field + size, &h.frame);
    memcpy(field + size, models, models_size);
    size = (uint32_t)pstk__planes_padded(size + models_size);
    for (uint32_t i = 0; i < 4; i++, size += 4)
        pstk__put32(field + size, PSTK__RANS_LOW);
    int rc = field_open(&r, field, size, 8, 8, PSTK_KERNELS_AUTO, err);
    if (rc == 0)
        rc = field_expand(&r, err);
    if (rc == 0)
        memcpy(block, r.blocks[0], 128);
    field_close(&r);
    return rc;
}

/* The block has this count, whose map bytes and values are all these. */
static int read_certain(uint32_t count, uint32_t map_byte, uint32_t value, int16_t block[64])
{
    static const uint32_t begin[] = {PSTK__CONTEXT_COUNT, PSTK__CONTEXT_MAP, PSTK__CONTEXT_VALUE,
                                     PSTK__CONTEXT_DC_HIGH};
    const uint32_t symbols[] = {count, map_byte, value, 0};
    const uint32_t n_values = (uint32_t)__builtin_popcount(map_byte) * (count <= 8 ? count : 0);
    uint8_t models[1024];
    const uint32_t size = write_certain(models, begin, symbols, 4);
    return read_one_block(models, size, n_values > 63 ? 63 : n_values, block, NULL);
}

TEST(more_tables_than_an_image_may_have_are_refused_by_name)
{
    uint8_t models[1024];
    uint32_t begin[PSTK__N_CONTEXTS], symbols[PSTK__N_CONTEXTS] = {0};
    for (uint32_t n = 1; n <= PSTK__N_CONTEXTS; n++) {
        struct pstk_error err;
        char name[40];
        int16_t block[64];
        pstk_error_init(&err, sizeof err);
        begin[n - 1] = n - 1;
        const uint32_t size = write_certain(models, begin, symbols, n);
        snprintf(name, sizeof name, "%u tables of frequencies", n);
        CHECK_EQ(read_one_block(models, size, 0, block, &err), n <= 24 ? 0 : PSTK_EBADMSG);
        CHECK(n <= 24 || strstr(err.message, name) != NULL);
    }
}

TEST(a_count_above_8_and_a_map_that_has_the_dc_are_damaged)
{
    for (uint32_t count = 0; count < 256; count++)
        for (uint32_t byte = 0; byte < 256; byte += count < 10 ? 1 : 31) {
            int16_t block[64];
            const int is_sound = count == 0 || (count <= 8 && byte % 2 == 0);
            CHECK_EQ(read_certain(count, byte, 5, block), is_sound ? 0 : PSTK_EBADMSG);
            for (uint32_t z = 0; is_sound && z < 64; z++)
                CHECK_EQ(block[pstk__zigzag[z]], z / 8 < count && byte >> z % 8 & 1 ? 5 : 0);
        }
}

static void no_rows(void *user, const uint8_t *rgb, uint64_t stride, uint32_t n_rows)
{
    (void)rgb;
    (void)stride;
    *(uint32_t *)user += n_rows;
}

TEST(the_decoder_reports_the_orientation_and_refuses_factors_that_do_not_divide)
{
    const struct field_spec spec = {.width = 50,
                                    .height = 40,
                                    .color = PSTK__JPEG_YCC,
                                    .h = {3, 2, 1},
                                    .v = {1, 1, 1},
                                    .kind = FIELD_PHOTO};
    struct pstk__arena arena;
    struct pstk__image_state *state;
    struct pstk__image_info info;
    struct field_subject s;
    uint32_t n_rows = 0;
    const struct pstk__row_sink sink = {.rows = no_rows, .user = &n_rows, .channels = 3};
    const struct pstk__box box = {.width = 50, .height = 40};
    CHECK_EQ(field_subject_open(&s, &spec), 0);
    CHECK_EQ(pstk__arena_open(&arena, pstk__image_scratch(50, 40)), 0);
    CHECK_EQ(pstk__image_state_open(&state, &arena, PSTK_KERNELS_AUTO, NULL), 0);
    for (uint8_t orientation = 1; orientation <= 8; orientation++) {
        s.field[3] = orientation;
        CHECK_EQ(pstk__image_planes.probe(s.field, s.size, 2000, &info, NULL), 0);
        CHECK(info.width == 50 && info.height == 40 && info.encoding == PSTK_ENCODING_JPEG);
        CHECK_EQ(info.orientation, orientation);
    }
    CHECK_EQ(pstk__image_decode(
                 state, &(const struct pstk__coded){&pstk__image_planes, s.field, s.size, &info},
                 &box, &sink, NULL),
             PSTK_ENOTSUP);
    CHECK(n_rows == 0 && arena.used == 0);
    pstk__image_state_close(state);
    pstk__arena_close(&arena);
    field_subject_close(&s);
}

/* A subject's field with another list of strips, as a decoder of the whole sees it. */
static int judge_entry(const struct field_subject *s, uint32_t strip,
                       struct pstk__planes_entry entry)
{
    uint8_t *other = malloc(s->size);
    memcpy(other, s->field, s->size);
    pstk__planes_entry_write(other + (s->header.list - s->field), strip, entry);
    const struct verdict v = judge(other, s->size, &s->image);
    free(other);
    return v.result;
}

TEST(a_list_that_has_other_sizes_or_values_than_the_strips_is_damaged)
{
    static const uint32_t by[] = {1, 2, 3, 4, 8, 64, 1000, 1u << 16, 1u << 31};
    struct field_subject s;
    CHECK_EQ(field_subject_open(&s, &stripped), 0);
    for (uint32_t i = 0; i < s.header.n_strips; i++) {
        const struct pstk__planes_entry was = pstk__planes_entry_read(&s.header, i);
        const uint32_t others[] = {0, UINT32_MAX, UINT32_MAX - 3, 1u << 31};
        CHECK_EQ(judge_entry(&s, i, was), 0);
        for (uint32_t k = 0; k < sizeof others / sizeof *others; k++) {
            CHECK_EQ(judge_entry(&s, i, (struct pstk__planes_entry){others[k], was.n_values}),
                     PSTK_EBADMSG);
            CHECK_EQ(judge_entry(&s, i, (struct pstk__planes_entry){was.size, others[k]}),
                     PSTK_EBADMSG);
        }
        for (uint32_t k = 0; k < sizeof by / sizeof *by; k++)
            for (uint32_t sign = 0; sign < 2; sign++) {
                const uint32_t add = sign ? 0u - by[k] : by[k];
                const struct pstk__planes_entry size = {was.size + add, was.n_values};
                const struct pstk__planes_entry values = {was.size, was.n_values + add};
                CHECK_EQ(judge_entry(&s, i, size), PSTK_EBADMSG);
                CHECK_EQ(judge_entry(&s, i, values), PSTK_EBADMSG);
            }
    }
    field_subject_close(&s);
}

/* Before memory is taken: there is none. */
TEST(more_values_than_the_blocks_can_have_are_refused_before_anything_is_decoded)
{
    struct field_subject s;
    static struct pstk__planes_tables tables = {.kernels = &pstk__planes_kernels_c};
    struct pstk__planes_reader r;
    struct pstk__arena arena = {.base = NULL};
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    CHECK_EQ(field_subject_open(&s, &stripped), 0);
    const struct pstk__image_info info = {.width = stripped.width, .height = stripped.height};
    uint8_t *list = s.field + (s.header.list - s.field);
    for (uint32_t i = 0; i < s.header.n_strips; i++) {
        uint32_t n_luma;
        const struct pstk__planes_entry was = pstk__planes_entry_read(&s.header, i);
        const uint32_t most = 63 * pstk__planes_strip_blocks(&s.header, i, &n_luma);
        for (uint32_t more = 0; more < 2; more++) {
            const struct pstk__planes_entry entry = {was.size, most + more};
            pstk__planes_entry_write(list, i, entry);
            CHECK_EQ(pstk__planes_open(&r, s.field, s.size, &info, &tables, &arena, &err),
                     more ? PSTK_EBADMSG : PSTK_ENOMEM);
            CHECK(!more || strstr(err.message, "more values than its blocks can have") != NULL);
        }
        pstk__planes_entry_write(list, i, was);
    }
    field_subject_close(&s);
}

/* Each strip by its own number of values, not by the 63 a block that there may be. */
TEST(a_reader_takes_the_memory_that_the_largest_strip_needs)
{
    static struct field_reader r;
    for (uint32_t kind = 0; kind < N_FIELD_KINDS; kind++) {
        struct field_spec spec = stripped;
        struct field_subject s;
        uint64_t values = 0, blocks = 0;
        spec.kind = kind;
        CHECK_EQ(field_subject_open(&s, &spec), 0);
        const struct pstk__planes_header *h = &s.header;
        for (uint32_t i = 0; i < h->n_strips; i++) {
            uint32_t n_luma;
            const uint32_t n = pstk__planes_entry_read(h, i).n_values;
            const uint32_t n_blocks = pstk__planes_strip_blocks(h, i, &n_luma);
            values = n > values ? n : values;
            blocks = n_blocks > blocks ? n_blocks : blocks;
        }
        CHECK_EQ(field_open(&r, s.field, s.size, spec.width, spec.height, PSTK_KERNELS_C, NULL), 0);
        const uint64_t fixed = 8192;
        const uint64_t symbols = 8 * blocks > 3 * values ? 16 * blocks : 3 * values + 8 * blocks;
        CHECK(r.arena.used >= 20 * blocks + 6 * values);
        CHECK(r.arena.used <= fixed + 21 * blocks + 6 * values + symbols);
        CHECK_EQ(field_expand(&r, NULL), 0);
        field_close(&r);
        field_subject_close(&s);
    }
}

/* After the models and after the strips. */
TEST(bytes_between_that_are_not_zero_are_damaged)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < 8; i++) {
        struct field_spec spec = i ? field_draw_spec(90, 90) : stripped;
        struct field_subject s;
        CHECK_EQ(field_subject_open(&s, &spec), 0);
        const struct pstk__planes_header *h = &s.header;
        uint8_t *at = s.field + (h->models - s.field) + h->models_size;
        for (uint32_t strip = 0; strip <= h->n_strips; strip++) {
            for (; (at - s.field) % 4 != 0; at++, n++)
                for (uint32_t bit = 0; bit < 8; bit++) {
                    CHECK_EQ(*at, 0);
                    *at = (uint8_t)(1u << bit);
                    CHECK_EQ(judge(s.field, s.size, &s.image).result, PSTK_EBADMSG);
                    *at = 0;
                }
            at += strip < h->n_strips ? pstk__planes_entry_read(h, strip).size : 0;
        }
        CHECK(at == h->skeleton);
        field_subject_close(&s);
    }
    printf("# %u bytes between\n", n);
    CHECK(n > 10);
}

/* The last one is lower than the others. */
TEST(strips_in_each_others_place_are_damaged)
{
    struct field_subject s;
    CHECK_EQ(field_subject_open(&s, &stripped), 0);
    const struct pstk__planes_header *h = &s.header;
    const uint32_t n = h->n_strips;
    const struct pstk__planes_entry last = pstk__planes_entry_read(h, n - 1);
    const uint64_t last_size = pstk__planes_padded(last.size);
    CHECK(pstk__planes_mcu_rows(&h->frame) % h->strip_height != 0);
    uint8_t *other = malloc(s.size);
    memcpy(other, s.field, s.size);
    uint8_t *list = other + (h->list - s.field), *strips = other + (h->strips - s.field);
    memmove(list + PSTK__PLANES_ENTRY_SIZE, h->list, PSTK__PLANES_ENTRY_SIZE * (n - 1));
    pstk__planes_entry_write(list, 0, last);
    memcpy(strips, h->strips + h->strips_size - last_size, last_size);
    memcpy(strips + last_size, h->strips, h->strips_size - last_size);
    CHECK_EQ(judge(other, s.size, &s.image).result, PSTK_EBADMSG);
    /* and where a byte or some words of one are another's */
    for (uint32_t i = 0; i + 1 < n; i++)
        for (uint32_t by = 1; by <= 4; by++) {
            struct pstk__planes_entry a = pstk__planes_entry_read(h, i);
            struct pstk__planes_entry b = pstk__planes_entry_read(h, i + 1);
            a.size -= by;
            b.size += by;
            memcpy(other, s.field, s.size);
            pstk__planes_entry_write(list, i, a);
            pstk__planes_entry_write(list, i + 1, b);
            CHECK_EQ(judge(other, s.size, &s.image).result, PSTK_EBADMSG);
        }
    free(other);
    field_subject_close(&s);
}

/* The checksum of the record is what guards the field; what is said here is that it is safe, that
 * every ISA sees the same, and that no damage to strips or models leaves the image whole. */
TEST(a_changed_bit_is_refused_or_seen_alike_by_every_isa)
{
    static const uint32_t lanes[] = {4, 16, 64};
    uint32_t n_taken = 0, n = 0;
    for (uint32_t i = 0; i < 12; i++) {
        struct field_spec spec = field_draw_spec(60, 60);
        struct field_subject s;
        spec.kind = i % N_FIELD_KINDS;
        field_lanes = lanes[i % 3];
        field_has_sets = i >= 6;
        CHECK_EQ(field_subject_open(&s, &spec), 0);
        field_lanes = field_has_sets = 0;
        const uint64_t from = (uint64_t)(s.header.strips - s.field);
        for (uint64_t bit = draw(8); bit < 8 * s.size;
             bit += 1 + draw((uint32_t)(s.size / 64 + 8))) {
            s.field[bit / 8] ^= (uint8_t)(1u << bit % 8);
            const struct verdict v = judge(s.field, s.size, &s.image);
            CHECK(v.result == 0 || v.result == PSTK_EBADMSG || v.result == PSTK_ENOTSUP);
            if (bit / 8 >= from && bit / 8 < from + s.header.strips_size) {
                CHECK(!v.is_same);
                n_taken += v.result == 0;
                n++;
            } else if (bit / 8 >= from) {
                CHECK(v.is_same); /* the skeleton is of no account here */
            }
            s.field[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        field_subject_close(&s);
    }
    printf("# %u of %u changes in strips were taken\n", n_taken, n);
}

TEST(any_bytes_are_refused_or_seen_alike_by_every_isa)
{
    struct field_subject s;
    CHECK_EQ(field_subject_open(&s, &small), 0);
    const uint64_t head = (uint64_t)(s.header.models - s.field);
    for (uint32_t i = 0; i < 2000; i++) {
        uint8_t *other = malloc(s.size);
        memcpy(other, s.field, s.size);
        const uint64_t from = i % 2 ? head + s.header.models_size : head;
        for (uint64_t k = from + draw((uint32_t)(s.size - from)); k < s.size;
             k += 1 + draw(1 + i % 50))
            other[k] = (uint8_t)draw(256);
        const struct verdict v = judge(other, s.size, &s.image);
        CHECK(v.result == 0 || v.result == PSTK_EBADMSG);
        free(other);
    }
    field_subject_close(&s);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(a_field_that_was_cut_off_or_has_bytes_to_spare_is_damaged),
        CASE(a_changed_head_is_refused_or_leaves_the_coefficients_as_they_were),
        CASE(an_impossible_header_is_refused),
        CASE(only_the_numbers_of_lanes_that_there_are_are_read),
        CASE(a_huge_image_in_a_few_bytes_fails_without_memory),
        CASE(strips_and_tables_that_cannot_be_are_refused_in_a_head_that_adds_up),
        CASE(models_that_are_not_one_for_each_table_are_damaged),
        CASE(tables_of_other_sizes_than_listed_are_damaged),
        CASE(more_tables_than_an_image_may_have_are_refused_by_name),
        CASE(a_count_above_8_and_a_map_that_has_the_dc_are_damaged),
        CASE(the_decoder_reports_the_orientation_and_refuses_factors_that_do_not_divide),
        CASE(a_list_that_has_other_sizes_or_values_than_the_strips_is_damaged),
        CASE(more_values_than_the_blocks_can_have_are_refused_before_anything_is_decoded),
        CASE(a_reader_takes_the_memory_that_the_largest_strip_needs),
        CASE(bytes_between_that_are_not_zero_are_damaged),
        CASE(strips_in_each_others_place_are_damaged),
        CASE(a_changed_bit_is_refused_or_seen_alike_by_every_isa),
        CASE(any_bytes_are_refused_or_seen_alike_by_every_isa),
    };
    return RUN_CASES(cases);
}
