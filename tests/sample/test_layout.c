/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arrays of a slot, against a naive list: every array in the order of the drawing in layout.h,
 * each at the next multiple of 256. All plans of up to three outputs of every kind.
 */
#include "sample/layout.h"
#include "support/test.h"

#define MANY (3 * PSTK__MAX_OUTPUTS)

enum kind { DENSE, RAGGED, CAST, MIRROR, N_KINDS }; /* the last two: deferred, a device's only */

static const uint64_t row_sizes[] = {1, 255, 256, 257, 4000, 8};
static const uint32_t batch_sizes[] = {1, 2, PSTK_MAX_REPORTS, PSTK_MAX_REPORTS + 1, 64, 257};

/* The position and the length of an array in the layout. */
struct array {
    uint64_t at, size;
};

struct list {
    struct array arrays[MANY];
    uint32_t n;
};

static void add(struct list *l, uint64_t at, uint64_t size)
{
    l->arrays[l->n++] = (struct array){at, size};
}

/* 1 when each array begins where the one before it ended, at the next multiple of 256. */
static int lie_in_order(const struct list *l, uint64_t begin, uint64_t end)
{
    uint64_t at = begin;
    for (uint32_t i = 0; i < l->n; i++) {
        while (at % 256 != 0)
            at++;
        if (l->arrays[i].at != at)
            return 0;
        at += l->arrays[i].size;
    }
    while (at % 256 != 0)
        at++;
    return at == end;
}

/* A worker's pass, and, where the output is deferred, the device's. */
static struct pstk__output output_of(enum kind kind, uint32_t batch_size, uint64_t row_size,
                                     struct pstk__pass passes[2])
{
    const int deferred = kind >= CAST;
    struct pstk__output o = {.passes = passes,
                             .n_worker_passes = 1,
                             .n_passes = deferred ? 2 : 1,
                             .budget = batch_size * row_size};
    o.kind = kind == MIRROR ? PSTK_OUTPUT_IMAGE : PSTK_OUTPUT_TENSOR;
    o.callback.input.size = kind == DENSE && row_size == 255 ? 777 : 0;
    passes[0] = (struct pstk__pass){.what = PSTK__PASS_COPY, .out.row_size = row_size};
    passes[1] = (struct pstk__pass){.what = kind == CAST ? PSTK__PASS_CAST : PSTK__PASS_FINISH,
                                    .on_device = 1,
                                    .in.row_size = row_size,
                                    .out.row_size = row_size * (kind == CAST ? 2 : 4)};
    if (kind == RAGGED) {
        o.ragged.item_size = 1;
        o.budget = o.budget / 2 + 1;
    }
    return o;
}

struct sweep {
    struct pstk__plan plan;
    struct pstk__pass passes[4][2];
    enum kind kinds[4];
    uint32_t report_crops, with_reports;
    struct pstk__layout layout;
};

static const struct pstk__output *output(const struct sweep *s, uint32_t i)
{
    return &s->plan.outputs[i];
}

/* The rows of one of the parts, in the order of the outputs. */
static void add_rows(struct list *l, const struct sweep *s, int deferred, int ragged)
{
    for (uint32_t i = 0; i < s->plan.n_outputs; i++)
        if ((s->kinds[i] >= CAST) == deferred && (s->kinds[i] == RAGGED) == ragged)
            add(l, s->layout.rows[i],
                s->plan.batch_size * pstk__output_rows(output(s, i))->row_size);
}

/* Add the outputs of which a mosaic makes others. */
static void add_written(struct list *l, const struct sweep *s)
{
    for (uint32_t i = 0; i < s->plan.n_outputs; i++)
        if (output(s, i)->is_combined)
            add(l, s->layout.written[i],
                s->plan.batch_size * (s->kinds[i] == RAGGED
                                          ? output(s, i)->ragged.written_size
                                          : pstk__output_rows(output(s, i))->row_size));
}

static void add_flips(struct list *l, const struct sweep *s)
{
    for (uint32_t i = 0; i < s->plan.n_outputs; i++)
        if (s->kinds[i] == MIRROR)
            add(l, s->layout.flips[i], s->plan.batch_size);
}

static void add_offsets(struct list *l, const struct sweep *s)
{
    for (uint32_t i = 0; i < s->plan.n_outputs; i++)
        if (s->kinds[i] == RAGGED)
            add(l, s->layout.offsets[i], (s->plan.batch_size + 1) * sizeof(int64_t));
}

static uint32_t naive_max_reports(const struct sweep *s)
{
    if (!s->with_reports)
        return 0;
    return s->plan.batch_size > PSTK_MAX_REPORTS ? PSTK_MAX_REPORTS + 1 : s->plan.batch_size;
}

static int host_is_right(const struct sweep *s)
{
    const struct pstk__layout *l = &s->layout;
    const uint64_t b = s->plan.batch_size;
    struct list arrival = {.n = 0}, dense = {.n = 0}, offsets = {.n = 0}, rest = {.n = 0};
    add_rows(&arrival, s, 1, 0);
    add_flips(&arrival, s);
    add_rows(&dense, s, 0, 0);
    add_offsets(&offsets, s);
    add(&rest, l->ids, b * sizeof(uint64_t));
    add(&rest, l->replacements, b * sizeof(uint64_t));
    add(&rest, l->crops, s->report_crops ? s->plan.n_outputs * b * sizeof(struct pstk_crop) : 0);
    add(&rest, l->reports, naive_max_reports(s) * sizeof(struct pstk_report));
    int good = lie_in_order(&arrival, 0, l->arrival_size) &&
               lie_in_order(&dense, l->arrival_size, l->about) &&
               lie_in_order(&offsets, l->about, l->dense_size) &&
               lie_in_order(&rest, l->dense_size, l->about_end);
    struct list ragged = {.n = 0};
    const uint32_t mix = s->plan.mixing.settings.n_classes; /* 0: none, 1: dense, 2: pairs */
    add(&ragged, l->mixed, mix ? b * sizeof(struct pstk_mixed_row) : 0);
    add(&ragged, l->labels, mix == 1 ? b * sizeof(uint32_t) : 0);
    add(&ragged, l->mosaics, s->plan.mosaic.settings.size ? b * sizeof(struct pstk_mosaic_row) : 0);
    for (uint32_t i = 0; i < s->plan.n_outputs; i++)
        add(&ragged, l->inputs[i], b * output(s, i)->callback.input.size);
    add_rows(&ragged, s, 0, 1);
    add_written(&ragged, s);
    for (uint32_t i = 0; i < s->plan.n_outputs; i++)
        good = good && (output(s, i)->is_combined || l->written[i] == l->rows[i]);
    good = good && lie_in_order(&ragged, l->about_end, l->size);
    return good && l->max_reports == naive_max_reports(s);
}

/* The mirrored part lies in a device's slot as it does in the host's, only without what arrives. */
static int device_is_right(const struct sweep *s)
{
    const struct pstk__layout *l = &s->layout;
    const uint64_t b = s->plan.batch_size;
    struct list made = {.n = 0};
    if (!s->plan.on_device)
        return l->device_size == 0;
    for (uint32_t i = 0; i < s->plan.n_outputs; i++) {
        if (s->kinds[i] == DENSE && l->final[i] != l->rows[i] - l->arrival_size)
            return 0;
        if (s->kinds[i] == RAGGED)
            add(&made, l->final[i], output(s, i)->budget);
        else if (s->kinds[i] != DENSE)
            add(&made, l->final[i], b * pstk__output_final(output(s, i))->row_size);
    }
    return lie_in_order(&made, l->dense_size - l->arrival_size, l->device_size);
}

typedef int check_fn(const struct sweep *s);

static int wrong_with(check_fn *is_right, const struct sweep *s)
{
    if (is_right(s))
        return 0;
    printf("# batch_size %u, crops %u, reports %u, device %u, kinds", s->plan.batch_size,
           s->report_crops, s->with_reports, s->plan.on_device);
    for (uint32_t i = 0; i < s->plan.n_outputs; i++)
        printf(" %d", (int)s->kinds[i]);
    printf("\n");
    return 1;
}

/* Check all plans of n_outputs outputs. Return how many the check finds wrong. */
static uint32_t sweep_kinds(check_fn *is_right, struct sweep *s, uint32_t first_size)
{
    const uint32_t n_kinds = s->plan.on_device ? N_KINDS : CAST;
    uint32_t n_plans = 1, n_wrong = 0;
    for (uint32_t i = 0; i < s->plan.n_outputs; i++)
        n_plans *= n_kinds;
    for (uint32_t plan = 0; plan < n_plans; plan++) {
        for (uint32_t i = 0, rest = plan; i < s->plan.n_outputs; i++, rest /= n_kinds) {
            s->kinds[i] = (enum kind)(rest % n_kinds);
            s->plan.outputs[i] = output_of(s->kinds[i], s->plan.batch_size,
                                           row_sizes[(first_size + i) % 6], s->passes[i]);
            s->plan.outputs[i].is_combined =
                s->plan.mosaic.settings.size && s->kinds[i] < CAST && i != 1;
            s->plan.outputs[i].ragged.written_size = row_sizes[(first_size + i + 1) % 6];
        }
        memset(&s->layout, 0xee, sizeof s->layout);
        pstk__layout_init(&s->layout, &s->plan, s->report_crops, s->with_reports);
        n_wrong += (uint32_t)wrong_with(is_right, s);
    }
    return n_wrong;
}

static uint32_t sweep(check_fn *is_right)
{
    static struct sweep s;
    uint32_t n_wrong = 0;
    for (uint32_t b = 0; b < 6; b++)
        for (uint32_t n = 1; n <= 3; n++)
            for (uint32_t flags = 0; flags < 32; flags++)
                for (uint32_t first_size = 0; first_size < 6; first_size++) {
                    s.plan.batch_size = batch_sizes[b];
                    s.plan.n_outputs = n;
                    s.plan.on_device = flags & 1;
                    s.report_crops = flags >> 1 & 1;
                    s.with_reports = flags >> 2 & 1;
                    s.plan.mosaic.settings.size = flags / 8 == 3;
                    s.plan.mixing.settings.n_classes = flags / 8 % 3;
                    s.plan.mixing.settings.targets =
                        flags / 8 == 1 ? PSTK_MIX_DENSE : PSTK_MIX_PAIRS;
                    n_wrong += sweep_kinds(is_right, &s, first_size);
                }
    return n_wrong;
}

TEST(host_arrays_lie_end_to_end_in_the_order_of_the_drawing)
{
    CHECK_EQ(sweep(host_is_right), 0);
}

TEST(device_arrays_lie_end_to_end_and_the_mirrored_part_as_on_the_host)
{
    CHECK_EQ(sweep(device_is_right), 0);
}

static int bounds_hold(const struct sweep *s)
{
    const struct pstk__layout *l = &s->layout;
    const uint64_t bounds[] = {
        0,        l->arrival_size, l->about,     l->dense_size, l->ids, l->replacements,
        l->crops, l->reports,      l->about_end, l->size};
    for (uint32_t i = 0; i < sizeof bounds / sizeof *bounds; i++)
        if (bounds[i] % 256 != 0 || (i > 0 && bounds[i] < bounds[i - 1]))
            return 0;
    if (l->ids != l->dense_size || l->device_size % 256 != 0)
        return 0;
    return (s->report_crops || l->crops == l->reports) &&
           (s->with_reports || l->reports == l->about_end);
}

TEST(every_part_ends_on_a_multiple_of_256_and_what_is_unwanted_is_empty)
{
    CHECK_EQ(sweep(bounds_hold), 0);
}

static int memory_is_right(const struct sweep *s)
{
    const struct pstk__layout *l = &s->layout;
    for (uint32_t n = 0; n < 5; n++)
        if (pstk__layout_device_memory(l, n) != n * l->device_size + 2 * l->arrival_size)
            return 0;
    return pstk__layout_mirrored(l, l->about) == l->about - l->arrival_size;
}

TEST(a_device_needs_its_slots_and_two_arrival_buffers)
{
    CHECK_EQ(PSTK__LOADS, 2);
    CHECK_EQ(sweep(memory_is_right), 0);
}

/* Return whether the smallest size is that of the same outputs in a layout for one row. */
static int min_is_right(const struct sweep *s)
{
    static struct pstk__plan plan;
    struct pstk__layout of_one, least;
    plan = s->plan;
    plan.batch_size = 1;
    pstk__layout_init(&of_one, &plan, s->report_crops, s->with_reports);
    pstk__layout_init_min(&least, &s->plan, s->report_crops, s->with_reports);
    return least.size == of_one.size && least.about == of_one.about &&
           least.about_end == of_one.about_end;
}

TEST(the_least_layout_is_that_of_a_batch_of_one_row)
{
    CHECK_EQ(sweep(min_is_right), 0);
}

/* Return a padded size, without the limit of integers. */
static unsigned __int128 padded(unsigned __int128 size)
{
    return (size + 255) / 256 * 256;
}

static unsigned __int128 true_host_size(const struct sweep *s)
{
    const unsigned __int128 b = s->plan.batch_size;
    unsigned __int128 end =
        padded(b * 8) * 2 +
        padded(s->report_crops ? s->plan.n_outputs * b * sizeof(struct pstk_crop) : 0) +
        padded(naive_max_reports(s) * sizeof(struct pstk_report));
    for (uint32_t i = 0; i < s->plan.n_outputs; i++) {
        end += padded(b * pstk__output_rows(output(s, i))->row_size);
        if (s->kinds[i] == MIRROR)
            end += padded(b);
        if (s->kinds[i] == RAGGED)
            end += padded((b + 1) * 8);
    }
    return end;
}

/* All that a device's slot has beyond the host's. */
static unsigned __int128 true_device_size(const struct sweep *s)
{
    const unsigned __int128 b = s->plan.batch_size;
    unsigned __int128 end = 0;
    for (uint32_t i = 0; i < s->plan.n_outputs; i++) {
        if (s->kinds[i] == RAGGED)
            end += padded((b + 1) * 8) + padded(output(s, i)->budget);
        else
            end += padded(b * pstk__output_final(output(s, i))->row_size);
    }
    return end;
}

/* Sizes around 2^64: either the true one, or UINT64_MAX. */
static int limit_holds(struct sweep *s, uint64_t row_size, uint64_t final_size)
{
    const unsigned __int128 most = UINT64_MAX - 256;
    const uint32_t last = s->plan.n_outputs - 1;
    s->passes[last][0].out.row_size = row_size;
    s->passes[last][1].out.row_size = final_size; /* only where it is deferred */
    if (s->kinds[last] == RAGGED)
        s->plan.outputs[last].budget = final_size;
    pstk__layout_init(&s->layout, &s->plan, s->report_crops, s->with_reports);
    const unsigned __int128 host = true_host_size(s), device = true_device_size(s);
    if (host > UINT64_MAX || (s->plan.on_device && device > UINT64_MAX))
        return s->layout.size == UINT64_MAX;
    if (host > most || (s->plan.on_device && device > most))
        return 1; /* a multiple of 256 this near the end may count as too large */
    return s->layout.size == host && (!s->plan.on_device || s->layout.device_size == device);
}

TEST(a_layout_larger_than_64_bits_has_the_size_uint64_max)
{
    static struct sweep s;
    uint32_t n_cases = 0;
    const uint32_t sizes[] = {1, 3, 256, 1u << 20, UINT32_MAX};
    for (uint32_t b = 0; b < 5; b++)
        for (int kind = 0; kind < N_KINDS; kind++)
            for (int before = 0; before < N_KINDS; before++)
                for (int64_t step = -3000; step <= 3000; step += 100) {
                    s.plan.batch_size = sizes[b];
                    s.plan.n_outputs = 2;
                    s.plan.on_device = kind >= CAST || before >= CAST;
                    s.report_crops = s.with_reports = b % 2;
                    s.kinds[0] = (enum kind)before;
                    s.kinds[1] = (enum kind)kind;
                    s.plan.outputs[0] = output_of(s.kinds[0], sizes[b], 256, s.passes[0]);
                    s.plan.outputs[1] = output_of(s.kinds[1], sizes[b], 256, s.passes[1]);
                    const uint64_t at = UINT64_MAX / sizes[b];
                    const uint64_t size =
                        (uint64_t)((__int128)at + step > UINT64_MAX ? (__int128)UINT64_MAX
                                                                    : (__int128)at + step);
                    CHECK(limit_holds(&s, size, size)); /* both sizes */
                    CHECK(limit_holds(&s, 8, size));    /* the device's alone */
                    CHECK(limit_holds(&s, size / 2, 8));
                    n_cases += 3;
                }
    CHECK_EQ(n_cases, 5 * 4 * 4 * 61 * 3);
}

TEST(memory_of_a_device_larger_than_64_bits_is_uint64_max)
{
    const uint64_t most = UINT64_MAX;
    const struct {
        uint64_t device_size, arrival_size;
        uint32_t n_slots;
        uint64_t size;
    } cases[] = {
        {most, 0, 1, most},         {most / 2, 0, 2, most - 1},
        {most / 2 + 1, 0, 2, most}, {most / 3, 0, 4, most},
        {0, most / 2, 4, most - 1}, {0, most / 2 + 1, 4, most},
        {most / 2, 1, 2, most},     {most / 4, most / 4 + 1, 2, most / 4 * 4 + 2},
        {1, most / 2, 3, most},     {0, 0, 3, 0},
    };
    for (uint32_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct pstk__layout l = {.device_size = cases[i].device_size,
                                       .arrival_size = cases[i].arrival_size};
        CHECK(pstk__layout_device_memory(&l, cases[i].n_slots) == cases[i].size);
    }
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(host_arrays_lie_end_to_end_in_the_order_of_the_drawing),
        CASE(device_arrays_lie_end_to_end_and_the_mirrored_part_as_on_the_host),
        CASE(every_part_ends_on_a_multiple_of_256_and_what_is_unwanted_is_empty),
        CASE(a_device_needs_its_slots_and_two_arrival_buffers),
        CASE(the_least_layout_is_that_of_a_batch_of_one_row),
        CASE(a_layout_larger_than_64_bits_has_the_size_uint64_max),
        CASE(memory_of_a_device_larger_than_64_bits_is_uint64_max),
    };
    return RUN_CASES(cases);
}
