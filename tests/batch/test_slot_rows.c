/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The content of a slot: where its arrays lie, rows that failed or were replaced, rows past
 * n_valid, ragged rows, and what goes on to a slot of a device. test_batch.c tests who has the
 * slot.
 */
#include "support/slots_fixture.h"
#include "support/test.h"

static struct pstk_error error_of(uint64_t number)
{
    struct pstk_error e;
    pstk_error_init(&e, sizeof e);
    pstk__fail(&e, PSTK_EBADMSG, PSTK_STAGE_DECODE, "bad %llu", (unsigned long long)number);
    e.sample_id = number;
    return e;
}

/* ---- where all lies ---------------------------------------------------------------------------
 */

TEST(a_host_slot_has_its_arrays_where_the_layout_says)
{
    for (uint32_t flags = 0; flags < 8; flags++) {
        const struct pools_config c = {.batch_size = 3,
                                       .n_slots = 2,
                                       .n_device_slots = flags & 1,
                                       .report_crops = flags >> 1 & 1,
                                       .with_reports = flags >> 2};
        struct pools p;
        CHECK_EQ(pools_open(&p, &c), 0);
        const struct pstk__layout *l = &p.layout;
        for (uint32_t k = 0; k < 2; k++) {
            const struct pstk__slot *s = &p.host->slots[k];
            CHECK((uintptr_t)s->memory % 256 == 0 && s->memory_size == l->size);
            for (uint32_t i = 0; i < p.plan.n_outputs; i++) {
                CHECK(s->tensors[i].data == s->memory + l->rows[i]);
                CHECK(!s->tensors[i].device_offsets);
                CHECK_EQ(s->tensors[i].dtype, pstk__output_rows(&p.plan.outputs[i])->dtype);
                CHECK_EQ(s->tensors[i].size, 3 * pstk__output_rows(&p.plan.outputs[i])->row_size);
                CHECK_STR(s->tensors[i].name, p.plan.outputs[i].name);
                CHECK(s->tensors[i].name != p.plan.outputs[i].name); /* it outlives the plan */
            }
            CHECK((uint8_t *)s->outputs[RAGGED].offsets == s->memory + l->offsets[RAGGED]);
            CHECK(s->tensors[RAGGED].offsets == s->outputs[RAGGED].offsets);
            CHECK(!s->outputs[DENSE].offsets && !s->outputs[DENSE].flips &&
                  !s->outputs[RAGGED].flips);
            CHECK(!(flags & 1) || s->outputs[MIRROR].flips == s->memory + l->flips[MIRROR]);
            CHECK((uint8_t *)s->sample_ids == s->memory + l->ids);
            CHECK((uint8_t *)s->replacement_ids == s->memory + l->replacements);
            CHECK((uint8_t *)s->crops == (flags & 2 ? s->memory + l->crops : NULL));
            CHECK((uint8_t *)s->reports == (flags & 4 ? s->memory + l->reports : NULL));
            for (uint64_t at = 0; at < l->size; at++)
                CHECK_EQ(s->memory[at], 0);
            CHECK(s->batch.tensors == s->tensors && s->batch.sample_ids == s->sample_ids);
            CHECK(s->batch.crops == s->crops && s->batch.reports == s->reports);
            CHECK_EQ(s->batch.n_rows, 3);
            CHECK_EQ(s->batch.n_tensors, p.plan.n_outputs);
            CHECK_EQ(s->batch.slot, k);
        }
        pools_close(&p);
    }
}

TEST(a_device_slot_has_on_the_host_what_a_batch_says_and_the_rest_on_the_device)
{
    const struct pools_config c = {
        .batch_size = 3, .n_slots = 1, .n_device_slots = 3, .report_crops = 1, .with_reports = 1};
    struct pools p;
    CHECK_EQ(pools_open(&p, &c), 0);
    const struct pstk__layout *l = &p.layout;
    for (uint32_t k = 0; k < 3; k++) {
        const struct pstk__slot *s = &p.device->slots[k];
        const uint8_t *there = p.actor.memory + k * l->device_size;
        CHECK_EQ(s->memory_size, l->about_end - l->about);
        for (uint64_t at = 0; at < s->memory_size; at++)
            CHECK_EQ(s->memory[at], 0);
        CHECK((uintptr_t)s->memory % 256 == 0);
        CHECK((uint8_t *)s->outputs[RAGGED].offsets == s->memory + l->offsets[RAGGED] - l->about);
        CHECK((uint8_t *)s->sample_ids == s->memory + l->ids - l->about);
        CHECK((uint8_t *)s->crops == s->memory + l->crops - l->about);
        CHECK((uint8_t *)s->reports == s->memory + l->reports - l->about);
        for (uint32_t i = 0; i < 3; i++) {
            CHECK(s->tensors[i].data == there + l->final[i]);
            CHECK_EQ(s->tensors[i].dtype, p.plan.outputs[i].dtype);
            CHECK_EQ(s->tensors[i].layout, p.plan.outputs[i].settings.image.layout);
            CHECK_EQ(s->tensors[i].size, 3 * pstk__output_final(&p.plan.outputs[i])->row_size);
        }
        CHECK((const uint8_t *)s->tensors[RAGGED].device_offsets ==
              there + l->offsets[RAGGED] - l->arrival_size);
        CHECK(!s->tensors[DENSE].device_offsets && !s->tensors[MIRROR].device_offsets);
    }
    pools_close(&p);
}

TEST(rows_lie_one_after_the_other)
{
    for (uint32_t report_crops = 0; report_crops < 2; report_crops++) {
        const struct pools_config c = {
            .batch_size = 3, .n_slots = 1, .n_device_slots = 1, .report_crops = report_crops};
        struct pools p;
        CHECK_EQ(pools_open(&p, &c), 0);
        struct pstk__slot *s = pstk__slot_begin(p.host, 0);
        for (uint32_t row = 0; row < 3; row++) {
            struct pstk__row rows[3];
            memset(rows, 0xee, sizeof rows);
            pstk__slot_rows(s, row, rows);
            for (uint32_t i = 0; i < 3; i++) {
                const uint64_t size = pstk__output_rows(&p.plan.outputs[i])->row_size;
                CHECK(rows[i].data == (uint8_t *)s->tensors[i].data + row * size);
                CHECK(rows[i].flip == (i == MIRROR ? s->outputs[MIRROR].flips + row : NULL));
                CHECK(rows[i].crop == (report_crops ? s->crops + i * 3 + row : NULL));
                CHECK(rows[i].size == 0 && !rows[i].is_palette);
            }
        }
        pools_close(&p);
    }
}

/* ---- failed and replaced rows -----------------------------------------------------------------
 */

/* The next permutation in order of n numbers: 1, or 0 after the last one. */
static int permute(uint32_t *list, uint32_t n)
{
    uint32_t i = n - 1, k = n - 1;
    while (i > 0 && list[i - 1] > list[i])
        i--;
    if (i == 0)
        return 0;
    while (list[k] < list[i - 1])
        k--;
    uint32_t swap = list[i - 1];
    list[i - 1] = list[k];
    list[k] = swap;
    for (k = n - 1; i < k; i++, k--) {
        swap = list[i];
        list[i] = list[k];
        list[k] = swap;
    }
    return 1;
}

TEST(the_error_of_the_lowest_row_stays_whoever_comes_first)
{
    struct pools p;
    CHECK_EQ(pools_open(&p, &(struct pools_config){.batch_size = 4, .n_slots = 1}), 0);
    uint32_t rows[4] = {0, 1, 2, 3};
    do {
        struct pstk__slot *s = pstk__slot_begin(p.host, 0);
        uint32_t lowest = UINT32_MAX;
        CHECK_EQ(s->failed_row, UINT32_MAX);
        for (int k = 0; k < 4; k++) {
            const struct pstk_error e = error_of(rows[k]);
            pstk__slot_fail(s, rows[k], &e);
            lowest = rows[k] < lowest ? rows[k] : lowest;
            CHECK_EQ(s->failed_row, lowest);
            CHECK_EQ(s->error.sample_id, lowest);
        }
        const struct pstk_error again = error_of(99);
        pstk__slot_fail(s, 0, &again); /* the first of a row */
        CHECK_EQ(s->error.sample_id, 0);
        pstk__slot_drop(s);
    } while (permute(rows, 4));
    pools_close(&p);
}

/* The reports of a batch whose rows `rows` were replaced, in the order of the list: 1 when the
 * lowest are described, in order. */
static int reports_are_right(const struct pstk__slot *s, const uint32_t *rows, uint32_t n)
{
    const uint32_t most = PSTK_MAX_REPORTS, n_kept = n < most ? n : most;
    uint32_t at = 0;
    if (s->batch.n_replacements != n || s->batch.n_reports != n_kept)
        return 0;
    for (uint32_t row = 0; row < s->batch.n_rows && at < n_kept; row++) {
        int is_listed = 0;
        for (uint32_t k = 0; k < n; k++)
            is_listed |= rows[k] == row;
        const struct pstk_report *r = &s->reports[at];
        if (!is_listed)
            continue;
        if (r->row != row || r->replacement_id != row + 1000 || r->error.sample_id != row)
            return 0;
        at++;
    }
    return at == n_kept;
}

static void replace_all(struct pstk__slot *s, const uint32_t *rows, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++) {
        const struct pstk_error e = error_of(rows[k]);
        pstk__slot_replace(s, rows[k], &e, rows[k] + 1000);
    }
}

TEST(replaced_rows_are_reported_in_order_whoever_comes_first)
{
    const struct pools_config c = {.batch_size = 6, .n_slots = 1, .with_reports = 1};
    struct pools p;
    CHECK_EQ(pools_open(&p, &c), 0);
    uint32_t rows[6] = {0, 1, 2, 3, 4, 5};
    do {
        for (uint32_t n = 1; n <= 6; n++) {
            struct pstk__slot *s = pstk__slot_begin(p.host, 0);
            CHECK_EQ(s->batch.n_replacements + s->batch.n_reports, 0);
            replace_all(s, rows, n);
            for (uint32_t k = 0; k < n; k++)
                CHECK_EQ(s->replacement_ids[rows[k]], rows[k] + 1000);
            CHECK(reports_are_right(s, rows, n));
            s->batch.n_valid = 0;
            pstk__slot_done(s);
            CHECK(reports_are_right(s, rows, n)); /* none is left over: no report of the others */
            pstk__slot_drop(s);
        }
    } while (permute(rows, 6));
    pools_close(&p);
}

/* With 8 reports and more: all orders of the four that decide what stays; the others come in two
 * orders. */
TEST(the_reports_of_the_lowest_rows_stay_and_one_more_counts_the_others)
{
    const struct pools_config c = {.batch_size = 12, .n_slots = 1, .with_reports = 1};
    struct pools p;
    CHECK_EQ(pools_open(&p, &c), 0);
    for (uint32_t n = PSTK_MAX_REPORTS - 1; n <= 12; n++) {
        uint32_t last[4] = {0, 5, 7, 8};
        do {
            uint32_t rows[12], n_rows = 0;
            for (uint32_t row = 12; row-- > 0;)
                if (row != 0 && row != 5 && row != 7 && row != 8 && n_rows < n - 4)
                    rows[n_rows++] = row;
            memcpy(rows + n_rows, last, sizeof last);
            struct pstk__slot *s = pstk__slot_begin(p.host, 0);
            s->batch.epoch = 7;
            s->batch.position = 96;
            s->batch.n_valid = 0;
            replace_all(s, rows, n);
            CHECK(reports_are_right(s, rows, n));
            pstk__slot_done(s);
            CHECK_EQ(s->batch.n_replacements, n);
            CHECK_EQ(s->batch.n_reports, n <= 8 ? n : 9);
            if (n > 8) {
                const struct pstk_report *r = &s->reports[8];
                char says[60];
                snprintf(says, sizeof says, "%u more bad sample%s", n - 8, n == 9 ? " " : "s ");
                CHECK(strstr(r->error.message, says) == r->error.message);
                CHECK(strstr(r->error.message, n == 9 ? " was replaced" : " were replaced"));
                CHECK_EQ(r->row, UINT32_MAX);
                CHECK(r->replacement_id == PSTK_NONE && r->error.sample_id == PSTK_NONE);
                CHECK_EQ(r->error.code, PSTK_EBADMSG);
                CHECK_EQ(r->error.stage, PSTK_STAGE_DECODE);
                CHECK(r->error.epoch == 7 && r->error.position == 96);
            }
            pstk__slot_drop(s);
        } while (permute(last, 4));
    }
    pools_close(&p);
}

TEST(a_slot_begins_with_nothing_of_its_last_batch)
{
    const struct pools_config c = {.batch_size = 2, .n_slots = 1, .with_reports = 1};
    struct pools p;
    CHECK_EQ(pools_open(&p, &c), 0);
    for (int i = 0; i < 2; i++) {
        struct pstk__slot *s = pstk__slot_begin(p.host, 0);
        const struct pstk_error e = error_of(1);
        struct pstk__row rows[2] = {{.is_palette = 1}};
        CHECK_EQ(s->failed_row, UINT32_MAX);
        CHECK_EQ(s->batch.n_replacements + s->batch.n_reports, 0);
        CHECK_EQ(atomic_load(&s->n_palette_images), 0);
        CHECK_EQ(atomic_load(&s->n_bytes), 0);
        pstk__slot_fail(s, 1, &e);
        pstk__slot_replace(s, 0, &e, 5);
        pstk__slot_note(s, 0, rows);
        atomic_store(&s->n_bytes, 77);
        s->batch.n_valid = 2;
        pstk__slot_done(s);
        CHECK_EQ(s->failed_row, 1);
        pstk__slot_drop(s);
    }
    pools_close(&p);
}

TEST(a_row_with_a_palette_counts_once_whatever_its_outputs)
{
    struct pools p;
    CHECK_EQ(pools_open(&p, &(struct pools_config){.batch_size = 4, .n_slots = 1}), 0);
    struct pstk__slot *s = pstk__slot_begin(p.host, 0);
    for (uint32_t row = 0; row < 4; row++) { /* none, the first, the second, both */
        struct pstk__row rows[2] = {{.is_palette = row & 1}, {.is_palette = row >> 1}};
        pstk__slot_note(s, row, rows);
    }
    s->batch.n_valid = 4;
    pstk__slot_done(s);
    CHECK_EQ(s->batch.n_palette_images, 3);
    pools_close(&p);
}

/* ---- rows past n_valid, ragged rows -----------------------------------------------------------
 */

enum { B = 3, N_SIZES = RAGGED_SIZE / ITEM_SIZE + 1 };

static uint8_t byte_of(uint32_t row, uint32_t k)
{
    return (uint8_t)(0x10 * (row + 1) + k);
}

/* Write every row of a batch, also those past n_valid, as an earlier batch would have left them. */
static void write_rows(struct pstk__slot *s, const uint32_t *n_items)
{
    memset(s->tensors[DENSE].data, 0xaa, (size_t)B * DENSE_SIZE);
    memset(s->tensors[RAGGED].data, 0xbb, (size_t)B * RAGGED_SIZE);
    memset(s->crops, 0xcc, sizeof *s->crops * 2 * B);
    for (uint32_t row = 0; row < B; row++) {
        struct pstk__row rows[2];
        pstk__slot_rows(s, row, rows);
        rows[RAGGED].size = (uint64_t)n_items[row] * ITEM_SIZE;
        for (uint32_t k = 0; k < rows[RAGGED].size; k++)
            ((uint8_t *)rows[RAGGED].data)[k] = byte_of(row, k);
        pstk__slot_note(s, row, rows);
    }
}

static int is_packed(const struct pstk__slot *s, const uint32_t *n_items)
{
    const struct pstk_tensor *t = &s->tensors[RAGGED];
    const uint8_t *bytes = t->data;
    uint32_t end = 0;
    if (s->outputs[RAGGED].offsets[0] != 0)
        return 0;
    for (uint32_t row = 0; row < B; row++) {
        const uint32_t n = row < s->batch.n_valid ? n_items[row] : 0;
        for (uint32_t k = 0; k < n * ITEM_SIZE; k++)
            if (bytes[end * ITEM_SIZE + k] != byte_of(row, k))
                return 0;
        end += n;
        if (s->outputs[RAGGED].offsets[row + 1] != end)
            return 0;
    }
    return t->size == (uint64_t)end * ITEM_SIZE && t->shape[0] == end;
}

static int is_filled_with(const void *at, int byte, size_t size)
{
    const uint8_t *bytes = at;
    for (size_t k = 0; k < size; k++)
        if (bytes[k] != byte)
            return 0;
    return 1;
}

TEST(ragged_rows_are_moved_together_and_their_sizes_become_offsets)
{
    const struct pools_config c = {.batch_size = B, .n_slots = 1, .report_crops = 1};
    struct pools p;
    CHECK_EQ(pools_open(&p, &c), 0);
    for (uint32_t sizes = 0; sizes < N_SIZES * N_SIZES * N_SIZES; sizes++)
        for (uint32_t n_valid = 0; n_valid <= B; n_valid++) {
            const uint32_t n_items[B] = {sizes % N_SIZES, sizes / N_SIZES % N_SIZES,
                                         sizes / N_SIZES / N_SIZES};
            struct pstk__slot *s = pstk__slot_begin(p.host, 0);
            s->batch.n_valid = n_valid;
            write_rows(s, n_items);
            pstk__slot_done(s);
            CHECK(is_packed(s, n_items));
            CHECK_EQ(s->failed_row, UINT32_MAX);
            pstk__slot_drop(s);
        }
    pools_close(&p);
}

TEST(dense_rows_and_crops_past_n_valid_are_zero_and_the_others_stay)
{
    const struct pools_config c = {.batch_size = B, .n_slots = 1, .report_crops = 1};
    const uint32_t n_items[B] = {0};
    struct pools p;
    CHECK_EQ(pools_open(&p, &c), 0);
    for (uint32_t n_valid = 0; n_valid <= B; n_valid++) {
        struct pstk__slot *s = pstk__slot_begin(p.host, 0);
        const uint8_t *dense = s->tensors[DENSE].data;
        const size_t crop = sizeof *s->crops;
        s->batch.n_valid = n_valid;
        write_rows(s, n_items);
        pstk__slot_done(s);
        CHECK(is_filled_with(dense, 0xaa, (size_t)n_valid * DENSE_SIZE));
        CHECK(is_filled_with(dense + n_valid * DENSE_SIZE, 0, (size_t)(B - n_valid) * DENSE_SIZE));
        for (uint32_t i = 0; i < 2; i++) {
            CHECK(is_filled_with(s->crops + i * B, 0xcc, n_valid * crop));
            CHECK(is_filled_with(s->crops + i * B + n_valid, 0, (B - n_valid) * crop));
        }
        pstk__slot_drop(s);
    }
    pools_close(&p);
}

TEST(a_ragged_batch_over_its_budget_fails_unless_a_row_has)
{
    struct pools_config c = {.batch_size = B, .n_slots = 1, .report_crops = 1};
    for (uint32_t sizes = 0; sizes < N_SIZES * N_SIZES * N_SIZES; sizes++)
        for (c.budget = ITEM_SIZE; c.budget <= B * RAGGED_SIZE; c.budget += ITEM_SIZE) {
            const uint32_t n_items[B] = {sizes % N_SIZES, sizes / N_SIZES % N_SIZES,
                                         sizes / N_SIZES / N_SIZES};
            const uint64_t size = (uint64_t)(n_items[0] + n_items[1] + n_items[2]) * ITEM_SIZE;
            struct pools p;
            CHECK_EQ(pools_open(&p, &c), 0);
            struct pstk__slot *s = pstk__slot_begin(p.host, 0);
            s->batch.n_valid = B;
            s->batch.epoch = 4;
            s->batch.position = 12;
            write_rows(s, n_items);
            pstk__slot_done(s);
            CHECK_EQ(s->failed_row, size > c.budget ? B : UINT32_MAX);
            if (size > c.budget) {
                char says[100];
                snprintf(says, sizeof says,
                         "has %llu bytes, more than its budget of %llu:", (unsigned long long)size,
                         (unsigned long long)c.budget);
                CHECK_EQ(s->error.code, PSTK_EFBIG);
                CHECK(strstr(s->error.message, says) && strstr(s->error.message, "'ragged'"));
                CHECK(s->error.epoch == 4 && s->error.position == 12);
            }
            pools_close(&p);
        }
    c.budget = ITEM_SIZE;
    struct pools p;
    CHECK_EQ(pools_open(&p, &c), 0);
    struct pstk__slot *s = pstk__slot_begin(p.host, 0);
    const struct pstk_error e = error_of(5);
    s->batch.n_valid = B;
    write_rows(s, (const uint32_t[B]){3, 3, 3});
    pstk__slot_fail(s, 2, &e);
    s->outputs[RAGGED].offsets[3] = INT64_MAX; /* a row that failed has no size */
    pstk__slot_done(s);
    CHECK_EQ(s->failed_row, 2);
    CHECK_EQ(s->error.sample_id, 5);
    CHECK_EQ(s->outputs[RAGGED].offsets[3], INT64_MAX); /* it is not looked at */
    pools_close(&p);
}

/* ---- from slot to slot ------------------------------------------------------------------------
 */

/* Everything that a batch says differs from what the slot had. */
static struct pstk__slot *fill_with(struct pools *p, uint64_t number, int failed)
{
    struct pstk__slot *s = pstk__slot_begin(p->host, 0);
    const uint32_t n_items[B] = {(uint32_t)number % 4, 2, 1};
    s->seq = number;
    s->generation = number + 1;
    s->batch.n_valid = B;
    s->batch.epoch = number + 2;
    s->batch.position = number + 3;
    s->batch.next_position = number + 4;
    s->batch.index = number + 5;
    atomic_store(&s->n_bytes, number + 6);
    for (uint32_t row = 0; row < B; row++) {
        struct pstk__row rows[3];
        const struct pstk_error e = error_of(number + row);
        pstk__slot_rows(s, row, rows);
        s->sample_ids[row] = number + row;
        s->replacement_ids[row] = PSTK_NONE;
        rows[RAGGED].size = (uint64_t)n_items[row] * ITEM_SIZE;
        rows[MIRROR].is_palette = row == 1;
        memset(s->crops + row, (int)number, sizeof *s->crops);
        pstk__slot_note(s, row, rows);
        if (row <= number % 3)
            pstk__slot_replace(s, row, &e, number + row + 50);
    }
    if (failed) {
        const struct pstk_error e = error_of(number);
        pstk__slot_fail(s, 1, &e);
    }
    pstk__slot_done(s);
    return s;
}

static int says_the_same(const struct pstk__slot *to, const struct pstk__slot *from)
{
    const struct pstk_batch *a = &to->batch, *b = &from->batch;
    return to->seq == from->seq && to->generation == from->generation &&
           to->failed_row == from->failed_row && a->n_valid == b->n_valid && a->epoch == b->epoch &&
           a->position == b->position && a->next_position == b->next_position &&
           a->index == b->index && a->n_replacements == b->n_replacements &&
           a->n_reports == b->n_reports && a->n_palette_images == b->n_palette_images &&
           atomic_load(&to->n_bytes) == atomic_load(&from->n_bytes) &&
           memcmp(a->sample_ids, b->sample_ids, B * sizeof(uint64_t)) == 0 &&
           memcmp(a->replacement_ids, b->replacement_ids, B * sizeof(uint64_t)) == 0 &&
           memcmp(a->crops, b->crops, sizeof *a->crops * 3 * B) == 0 &&
           memcmp(a->reports, b->reports, sizeof *a->reports * b->n_reports) == 0;
}

TEST(a_device_slot_says_of_its_batch_all_that_the_host_slot_said)
{
    const struct pools_config c = {
        .batch_size = B, .n_slots = 1, .n_device_slots = 2, .report_crops = 1, .with_reports = 1};
    struct pools p;
    CHECK_EQ(pools_open(&p, &c), 0);
    for (uint64_t number = 1; number < 12; number++) {
        const int failed = number % 4 == 1;
        struct pstk__slot *to = pstk__slot_load(p.device), *from = fill_with(&p, number, failed);
        const struct pstk_tensor before = to->tensors[DENSE];
        pstk__slot_copy(from);
        pstk__slot_loaded(to, from);
        CHECK_EQ(from->batch.n_replacements, number % 3 + 1);
        CHECK(says_the_same(to, from));
        CHECK(memcmp(&before, &to->tensors[DENSE], sizeof before) == 0);
        CHECK_EQ(to->tensors[RAGGED].size, from->tensors[RAGGED].size);
        CHECK_EQ(to->tensors[RAGGED].shape[0], from->tensors[RAGGED].shape[0]);
        CHECK(memcmp(to->outputs[RAGGED].offsets, from->outputs[RAGGED].offsets,
                     (B + 1) * sizeof(int64_t)) == 0);
        CHECK_EQ(failed ? to->error.sample_id : number, number);
        CHECK(to->tensors[DENSE].data != from->tensors[DENSE].data);
        pstk__slot_copied(from);
        pstk__slot_drop(to);
    }
    pools_close(&p);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(a_host_slot_has_its_arrays_where_the_layout_says),
        CASE(a_device_slot_has_on_the_host_what_a_batch_says_and_the_rest_on_the_device),
        CASE(rows_lie_one_after_the_other),
        CASE(the_error_of_the_lowest_row_stays_whoever_comes_first),
        CASE(replaced_rows_are_reported_in_order_whoever_comes_first),
        CASE(the_reports_of_the_lowest_rows_stay_and_one_more_counts_the_others),
        CASE(a_slot_begins_with_nothing_of_its_last_batch),
        CASE(a_row_with_a_palette_counts_once_whatever_its_outputs),
        CASE(ragged_rows_are_moved_together_and_their_sizes_become_offsets),
        CASE(dense_rows_and_crops_past_n_valid_are_zero_and_the_others_stay),
        CASE(a_ragged_batch_over_its_budget_fails_unless_a_row_has),
        CASE(a_device_slot_says_of_its_batch_all_that_the_host_slot_said),
    };
    return RUN_CASES(cases);
}
