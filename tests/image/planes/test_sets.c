/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of frequencies that are built into the format, and images that use them. */
#include "support/planes_field.h"
#include "support/test.h"

#include "image/planes/choose.h"

#define EACH_ISA(v)                                                                                \
    for (uint32_t v = PSTK_KERNELS_C; v <= PSTK_KERNELS_NEON; v++)                                 \
        if (pstk__planes_kernels(v) != NULL)

static const struct field_spec small = {.width = 40,
                                        .height = 30,
                                        .color = PSTK__JPEG_YCC,
                                        .h = {2, 1, 1},
                                        .v = {2, 1, 1},
                                        .kind = FIELD_PHOTO};
static const struct field_spec large = {.width = 400,
                                        .height = 300,
                                        .color = PSTK__JPEG_YCC,
                                        .h = {1, 1, 1},
                                        .v = {1, 1, 1},
                                        .kind = FIELD_SMALL};

/* ---- the sets ------------------------------------------------------------------------------- */

/* Return whether a symbol of a context can occur in an image of 8 bits a sample, photograph or not.
 * Of the values, only the escape must have a slot. */
static int can_occur(uint32_t context, uint32_t symbol)
{
    if (context < PSTK__CONTEXT_MAP)
        return symbol <= 8;
    if (context < PSTK__CONTEXT_VALUE)
        return context != pstk__planes_map_context(context >= 10, 0) || symbol % 2 == 0;
    if (context < PSTK__CONTEXT_DC_HIGH)
        return symbol == (PSTK__PLANES_WIDE & 255);
    if (context < PSTK__CONTEXT_DC_LOW || (context >= 40 && context < 42))
        return symbol < 16;
    return 1;
}

TEST(each_set_has_at_most_24_tables_and_a_slot_for_all_that_can_occur)
{
    static struct pstk__planes_set sets[PSTK__PLANES_N_SETS];
    pstk__planes_sets_init(sets);
    for (uint32_t k = 0; k < PSTK__PLANES_N_SETS; k++) {
        const struct pstk__planes_models models = pstk__planes_set(k + 1);
        CHECK(models.n <= PSTK__PLANES_MAX_TABLES);
        for (uint32_t i = 0; i < models.n; i++) {
            struct pstk__model model;
            CHECK_EQ(pstk__model_read(&model, models.data[i], models.size[i],
                                      pstk__planes_context_order(models.first[i])),
                     0);
        }
        for (uint32_t c = 0; c < PSTK__N_CONTEXTS; c++) {
            const uint32_t i = models.table[c];
            CHECK_EQ(sets[k].table[c], i);
            CHECK_EQ(pstk__planes_context_order(c), pstk__planes_context_order(models.first[i]));
            for (uint32_t s = 0; s < 256; s++) {
                CHECK(!can_occur(c, s) || sets[k].symbols[i][s].frequency > 0);
                CHECK(sets[k].symbols[i][s].frequency == 0 ||
                      sets[k].cost[i][s] == pstk__model_bits(sets[k].symbols[i][s].frequency));
            }
        }
    }
}

/* ---- images --------------------------------------------------------------------------------- */

/* Let fields be written with set `number` alone. */
static void allow(uint32_t number)
{
    struct pstk__planes_set *sets = field_sets();
    pstk__planes_sets_init(sets);
    for (uint32_t k = 0; k < PSTK__PLANES_N_SETS; k++)
        for (uint32_t i = 0; k + 1 != number && i < PSTK__PLANES_MAX_TABLES; i++)
            for (uint32_t s = 0; s < 256; s++)
                sets[k].cost[i][s] = PSTK__SET_ABSENT;
}

/* Return whether each ISA reads the field as the image. */
static int comes_back(struct field_reader *r, const struct field_subject *s)
{
    const struct pstk__jpeg_frame *f = &s->image.frame;
    int same = 1;
    EACH_ISA(v)
    {
        same &= field_open(&r[v], s->field, s->size, f->width, f->height, v, NULL) == 0 &&
                field_expand(&r[v], NULL) == 0 && field_has(&r[v], s->image.blocks);
        field_close(&r[v]);
    }
    return same;
}

static struct field_reader readers[PSTK_KERNELS_NEON + 1];

/* Tables of sets are filled in by the first image that needs them, between those of images that
 * have as many of their own as there may be. */
TEST(images_of_all_sets_in_any_order_share_decoding_tables)
{
    struct field_subject s[PSTK__PLANES_N_SETS + 2];
    for (uint32_t k = 0; k < PSTK__PLANES_N_SETS; k++) {
        allow(k + 1);
        CHECK_EQ(field_subject_open(&s[k], &small), 0);
        CHECK_EQ(s[k].header.set, k + 1);
        CHECK_EQ(s[k].header.models_size, 0);
    }
    allow(2);
    CHECK_EQ(field_subject_open(&s[4], &large), 0);
    field_has_sets = 0;
    CHECK_EQ(field_subject_open(&s[5], &large), 0);
    CHECK_EQ(s[5].header.set, 0);
    for (uint32_t first = 0; first < 6; first++) {
        memset(readers, 0, sizeof readers);
        for (uint32_t i = 0; i < 30; i++)
            CHECK(comes_back(readers, &s[i < 6 ? (first + i) % 6 : field_draw(6)]));
    }
    for (uint32_t i = 0; i < 6; i++)
        field_subject_close(&s[i]);
    field_has_sets = 1;
}

/* Return the tables that an image's contexts have. */
static uint32_t count_tables(const struct pstk__planes_reader *r)
{
    uint32_t n = 0;
    for (uint32_t c = 0; c < PSTK__N_CONTEXTS; c++)
        n += c == 0 || r->table[c] != r->table[c - 1];
    return n;
}

TEST(random_images_come_back_and_use_at_most_24_tables)
{
    uint32_t n_pure = 0, n_mixed = 0, n_own = 0;
    pstk__planes_sets_init(field_sets());
    for (uint32_t i = 0; i < 300; i++) {
        const struct field_spec spec = field_draw_spec(i % 10 ? 90 : 500, i % 10 ? 90 : 500);
        struct field_subject s;
        CHECK_EQ(field_subject_open(&s, &spec), 0);
        CHECK(comes_back(readers, &s));
        CHECK(count_tables(&readers[PSTK_KERNELS_C].planes) <= PSTK__PLANES_MAX_TABLES);
        n_pure += s.header.set && !s.header.models_size;
        n_mixed += s.header.set && s.header.models_size;
        n_own += !s.header.set;
        field_subject_close(&s);
    }
    printf("# %u with a set alone, %u with own tables beside it, %u without\n", n_pure, n_mixed,
           n_own);
    CHECK(n_pure > 0 && n_mixed > 0 && n_own > 0);
}

TEST(a_small_image_is_smaller_with_a_set)
{
    for (uint32_t i = 0; i < 20; i++) {
        struct field_subject s;
        uint64_t size;
        CHECK_EQ(field_subject_open(&s, &small), 0);
        field_has_sets = 0;
        uint8_t *field = field_write(&s.image, 20, &size);
        field_has_sets = 1;
        CHECK(field != NULL && s.size < size);
        free(field);
        field_subject_close(&s);
    }
}

/* ---- refusals ------------------------------------------------------------------------------- */

/* Open a subject's field with this set and these models, and return the result. */
static int open_with(const struct field_subject *s, uint32_t set, const uint8_t *models,
                     uint32_t size, struct pstk_error *err)
{
    const uint64_t before = (uint64_t)(s->header.models - s->field);
    const uint64_t rest = s->size - (uint64_t)(s->header.strips - s->field);
    const uint64_t padded = pstk__planes_padded(before + size);
    uint8_t *field = calloc(1, padded + rest);
    memcpy(field, s->field, before);
    if (size > 0)
        memcpy(field + before, models, size);
    memcpy(field + padded, s->header.strips, rest);
    field[11] = (uint8_t)set;
    field[20] = (uint8_t)size;
    field[21] = (uint8_t)(size >> 8);
    field[22] = field[23] = 0;
    const int r = field_open(&readers[PSTK_KERNELS_C], field, padded + rest, s->image.frame.width,
                             s->image.frame.height, PSTK_KERNELS_C, err);
    field_close(&readers[PSTK_KERNELS_C]);
    free(field);
    return r;
}

TEST(an_unknown_set_is_refused_by_name)
{
    struct field_subject s;
    CHECK_EQ(field_subject_open(&s, &small), 0);
    for (uint32_t set = 0; set < 256; set++) {
        struct pstk_error err;
        char part[64];
        pstk_error_init(&err, sizeof err);
        const int r = open_with(&s, set, NULL, 0, &err);
        snprintf(part, sizeof part, "planes with built-in tables %u;", set);
        CHECK_EQ(r, set == 0 ? PSTK_EBADMSG : set <= PSTK__PLANES_N_SETS ? 0 : PSTK_ENOTSUP);
        CHECK(set <= PSTK__PLANES_N_SETS || strncmp(err.message, part, strlen(part)) == 0);
    }
    field_subject_close(&s);
}

/* Two tables: contexts 0 to 39 and from 40 on. The bits of own tables follow, and the own ones: of
 * one symbol, of frequency 1024. */
TEST(models_beside_a_set_that_do_not_add_up_are_damaged)
{
    const uint8_t joined[6] = {0xfe, 0xff, 0xff, 0xff, 0xff, 0x0e};
    struct field_subject s;
    CHECK_EQ(field_subject_open(&s, &small), 0);
    for (uint32_t own = 0; own < 8; own++)
        for (uint32_t n = 0; n < 4; n++)
            for (uint32_t more = 0; more < 3; more++) {
                uint8_t models[32] = {0};
                uint32_t size = 9;
                memcpy(models, joined, sizeof joined);
                models[6] = (uint8_t)own;
                for (uint32_t i = 0; i < n; i++, size += 2)
                    models[size] = 1;
                for (uint32_t i = 0; i < n; i++)
                    models[size++] = 0xf6;
                size = size + more - 1;
                const int is_sound = own < 4 && n == (uint32_t)__builtin_popcount(own) && more == 1;
                CHECK_EQ(open_with(&s, 1, models, size, NULL), is_sound ? 0 : PSTK_EBADMSG);
            }
    for (uint32_t bit = 2; bit < 24; bit++) {
        uint8_t models[9] = {0};
        memcpy(models, joined, sizeof joined);
        models[6 + bit / 8] = (uint8_t)(1u << bit % 8);
        CHECK_EQ(open_with(&s, 1, models, sizeof models, NULL), PSTK_EBADMSG);
    }
    for (uint32_t size = 1; size < 9; size++)
        CHECK_EQ(open_with(&s, 1, joined, size < 6 ? size : 6, NULL), PSTK_EBADMSG);
    field_subject_close(&s);
}

/* Own tables and those of the set count alike. */
TEST(more_than_24_tables_of_both_kinds_are_refused_by_name)
{
    struct field_subject s;
    CHECK_EQ(field_subject_open(&s, &small), 0);
    for (uint32_t n = 1; n <= PSTK__N_CONTEXTS; n++) {
        uint8_t models[9] = {0};
        struct pstk_error err;
        char part[64];
        pstk_error_init(&err, sizeof err);
        for (uint32_t c = n; c < PSTK__N_CONTEXTS; c++)
            models[c / 8] |= (uint8_t)(1u << c % 8);
        const int r = open_with(&s, 1, models, sizeof models, &err);
        snprintf(part, sizeof part, "planes: %u tables of frequencies", n);
        CHECK_EQ(r, n <= PSTK__PLANES_MAX_TABLES ? 0 : PSTK_EBADMSG);
        CHECK(r == 0 || strncmp(err.message, part, strlen(part)) == 0);
    }
    field_subject_close(&s);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(each_set_has_at_most_24_tables_and_a_slot_for_all_that_can_occur),
        CASE(images_of_all_sets_in_any_order_share_decoding_tables),
        CASE(random_images_come_back_and_use_at_most_24_tables),
        CASE(a_small_image_is_smaller_with_a_set),
        CASE(an_unknown_set_is_refused_by_name),
        CASE(models_beside_a_set_that_do_not_add_up_are_damaged),
        CASE(more_than_24_tables_of_both_kinds_are_refused_by_name),
    };
    field_has_sets = 1;
    return RUN_CASES(cases);
}
