/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows become reads: against a joiner that lays every prefix out from scratch and aligns by
 * counting, over all small sets of rows and limits; then at the limits, with large numbers.
 */
#include "reader/coalesce.h"
#include "support/test.h"

#define ROWS 4 /* most rows of a set */

/* Some rows, and what becomes of them. */
struct layout {
    struct pstk__span spans[ROWS];
    uint32_t n_spans;
    int refused[ROWS];
    uint64_t memory;
};

static void lay_out(const struct pstk__span_limits *limits, const struct pstk__span *rows,
                    uint32_t n, struct layout *to)
{
    memset(to, 0, sizeof *to);
    for (uint32_t i = 0; i < n; i++) {
        struct pstk__span row = rows[i];
        struct pstk__span *last = to->n_spans ? &to->spans[to->n_spans - 1] : NULL;
        const enum pstk__span_fate fate = pstk__span_join(limits, last, &row, &to->memory);
        if (fate == PSTK__SPAN_BEGUN)
            to->spans[to->n_spans++] = row;
        to->refused[i] = fate == PSTK__SPAN_REFUSED;
    }
}

/* The naive joiner: which rows are refused is decided one by one, and everything else is derived
 * anew from that, by counting. */
static uint64_t counted_memory(const struct pstk__span_limits *limits, uint64_t begin, uint64_t end)
{
    uint64_t size;
    while (begin % limits->offset_align)
        begin--;
    while (end % limits->offset_align)
        end++;
    for (size = end - begin; size % limits->memory_align; size++) {
    }
    return size;
}

/* Lay out rows [0, n) without those refused. */
static void naive_spans(const struct pstk__span_limits *limits, const struct pstk__span *rows,
                        uint32_t n, struct layout *to)
{
    to->n_spans = 0;
    to->memory = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct pstk__span *s = to->n_spans ? &to->spans[to->n_spans - 1] : NULL;
        if (to->refused[i])
            continue;
        if (s && i > 0 && !to->refused[i - 1] && rows[i].file == s->file &&
            rows[i].begin >= rows[s->first].begin && rows[i].begin <= s->end + limits->gap &&
            rows[i].end <= rows[s->first].begin + limits->joined)
            s->n++;
        else
            *(s = &to->spans[to->n_spans++]) = rows[i];
        for (uint32_t k = s->first; k <= i; k++)
            s->end = rows[k].end > s->end ? rows[k].end : s->end;
    }
    for (uint32_t k = 0; k < to->n_spans; k++) {
        to->spans[k].memory = counted_memory(limits, to->spans[k].begin, to->spans[k].end);
        to->memory += to->spans[k].memory;
    }
}

static void naive_lay_out(const struct pstk__span_limits *limits, const struct pstk__span *rows,
                          uint32_t n, struct layout *to)
{
    memset(to, 0, sizeof *to);
    for (uint32_t i = 0; i < n; i++) {
        naive_spans(limits, rows, i + 1, to);
        to->refused[i] =
            to->memory > limits->memory || to->spans[to->n_spans - 1].memory > limits->single;
    }
    naive_spans(limits, rows, n, to);
}

static int is_same(const struct layout *a, const struct layout *b)
{
    if (a->n_spans != b->n_spans || a->memory != b->memory ||
        memcmp(a->refused, b->refused, sizeof a->refused) != 0)
        return 0;
    for (uint32_t k = 0; k < a->n_spans; k++) {
        const struct pstk__span *x = &a->spans[k], *y = &b->spans[k];
        if (x->file != y->file || x->first != y->first || x->n != y->n || x->begin != y->begin ||
            x->end != y->end || x->memory != y->memory)
            return 0;
    }
    return 1;
}

#define BEGINS 4u
#define SIZES 3u /* 0, 1, 3 bytes */
#define FILES 2u

static struct pstk__span row_number(uint32_t number, uint32_t i)
{
    static const uint64_t sizes[SIZES] = {0, 1, 3};
    const uint64_t begin = number % BEGINS, size = sizes[number / BEGINS % SIZES];
    return (struct pstk__span){
        .file = number / BEGINS / SIZES, .first = i, .n = 1, .begin = begin, .end = begin + size};
}

/* Lay out all sets of three rows. Return how many were laid out, 0 where one differs. */
static uint64_t sweep(const struct pstk__span_limits *limits)
{
    const uint32_t n = BEGINS * SIZES * FILES;
    uint64_t n_sets = 0;
    for (uint32_t number = 0; number < n * n * n; number++, n_sets++) {
        const struct pstk__span rows[3] = {row_number(number % n, 0), row_number(number / n % n, 1),
                                           row_number(number / n / n, 2)};
        struct layout got, expected;
        lay_out(limits, rows, 3, &got);
        naive_lay_out(limits, rows, 3, &expected);
        if (!is_same(&got, &expected)) {
            printf("# set %u of memory %llu, single %llu, joined %llu, gap %llu, align %u %u\n",
                   number, (unsigned long long)limits->memory, (unsigned long long)limits->single,
                   (unsigned long long)limits->joined, (unsigned long long)limits->gap,
                   limits->offset_align, limits->memory_align);
            return 0;
        }
    }
    return n_sets;
}

TEST(all_sets_of_three_small_rows_are_laid_out_as_by_the_naive_joiner)
{
    static const uint32_t aligns[][2] = {{1, 1}, {1, 4}, {4, 1}, {2, 2}, {3, 2}};
    static const uint64_t memories[] = {0, 4, 9, 100}, singles[] = {3, 100}, joined[] = {2, 100};
    uint64_t n_sets = 0;
    for (uint32_t k = 0; k < 5 * 4 * 2 * 2 * 3; k++) {
        const struct pstk__span_limits limits = {.memory = memories[k / 5 % 4],
                                                 .single = singles[k / 20 % 2],
                                                 .joined = joined[k / 40 % 2],
                                                 .gap = k / 80,
                                                 .offset_align = aligns[k % 5][0],
                                                 .memory_align = aligns[k % 5][1]};
        const uint64_t n = sweep(&limits);
        CHECK(n > 0);
        n_sets += n;
    }
    CHECK_EQ(n_sets, 240 * 13824);
}

static const struct pstk__span_limits disk = {.memory = 4 << 20,
                                              .single = 1 << 30,
                                              .joined = 1 << 20,
                                              .gap = 4096,
                                              .offset_align = 512,
                                              .memory_align = 4096};

/* A row of `size` bytes that lies `apart` bytes past a row of 1000 bytes at 2^43, of the same file
 * and the next number unless these are changed. */
static enum pstk__span_fate join_to_one(uint64_t apart, uint64_t size, uint32_t file,
                                        uint32_t number)
{
    uint64_t memory = 4096;
    const uint64_t at = (uint64_t)1 << 43;
    struct pstk__span last = {.n = 1, .begin = at, .end = at + 1000, .memory = 4096};
    struct pstk__span row = {.file = file,
                             .first = number,
                             .n = 1,
                             .begin = last.end + apart,
                             .end = last.end + apart + size};
    return pstk__span_join(&disk, &last, &row, &memory);
}

TEST(a_row_joins_up_to_the_gap_and_up_to_the_size_of_a_joined_read)
{
    CHECK_EQ(join_to_one(0, 1, 0, 1), PSTK__SPAN_JOINED);
    CHECK_EQ(join_to_one(4096, 1, 0, 1), PSTK__SPAN_JOINED);
    CHECK_EQ(join_to_one(4097, 1, 0, 1), PSTK__SPAN_BEGUN);
    CHECK_EQ(join_to_one(0, (1 << 20) - 1000, 0, 1), PSTK__SPAN_JOINED);
    CHECK_EQ(join_to_one(0, (1 << 20) - 999, 0, 1), PSTK__SPAN_BEGUN);
}

TEST(a_row_of_another_file_or_past_a_row_that_was_left_out_begins_a_span)
{
    CHECK_EQ(join_to_one(0, 1, 1, 1), PSTK__SPAN_BEGUN);
    CHECK_EQ(join_to_one(0, 1, 0, 2), PSTK__SPAN_BEGUN);
}

TEST(a_row_before_the_spans_begin_begins_a_span_and_one_within_it_changes_no_end)
{
    uint64_t memory = 4096;
    struct pstk__span last = {.n = 1, .begin = 4000, .end = 5000, .memory = 4096};
    struct pstk__span before = {.first = 1, .n = 1, .begin = 3999, .end = 4100};
    struct pstk__span within = {.first = 1, .n = 1, .begin = 4000, .end = 4100};
    CHECK_EQ(pstk__span_join(&disk, &last, &before, &memory), PSTK__SPAN_BEGUN);
    memory = 4096;
    CHECK_EQ(pstk__span_join(&disk, &last, &within, &memory), PSTK__SPAN_JOINED);
    CHECK_EQ(last.n, 2);
    CHECK_EQ(last.begin, 4000);
    CHECK_EQ(last.end, 5000);
    CHECK_EQ(memory, 4096);
}

TEST(a_refused_join_changes_neither_the_spans_nor_the_memory)
{
    uint64_t memory = (4 << 20) - 4096;
    struct pstk__span last = {.n = 1, .begin = 0, .end = 1000, .memory = 4096};
    struct pstk__span row = {.first = 1, .n = 1, .begin = 1000, .end = 8193};
    const struct pstk__span last_before = last, row_before = row;
    CHECK_EQ(pstk__span_join(&disk, &last, &row, &memory), PSTK__SPAN_REFUSED);
    CHECK_EQ(pstk__span_join(&disk, NULL, &row, &memory), PSTK__SPAN_REFUSED);
    CHECK_EQ(memory, (4 << 20) - 4096);
    CHECK(memcmp(&last, &last_before, sizeof last) == 0);
    CHECK(memcmp(&row, &row_before, sizeof row) == 0);
    row.end = 8192; /* the last page there is */
    CHECK_EQ(pstk__span_join(&disk, &last, &row, &memory), PSTK__SPAN_JOINED);
    CHECK_EQ(memory, 4 << 20);
}

TEST(the_largest_read_is_taken_and_one_page_more_is_not)
{
    struct pstk__span_limits limits = disk;
    const uint64_t at = ((uint64_t)1 << 44) - ((uint64_t)1 << 31);
    limits.memory = (uint64_t)1 << 40;
    for (uint64_t more = 0; more < 2; more++) {
        uint64_t memory = 0;
        struct pstk__span row = {.n = 1, .begin = at, .end = at + (1 << 30) + more};
        CHECK_EQ(pstk__span_join(&limits, NULL, &row, &memory),
                 more ? PSTK__SPAN_REFUSED : PSTK__SPAN_BEGUN);
        CHECK_EQ(memory, more ? 0 : 1 << 30);
    }
}

TEST(a_read_covers_its_rows_and_begins_and_ends_aligned)
{
    const struct pstk__span span = {.begin = 1023, .end = 4097};
    CHECK_EQ(pstk__span_offset(&disk, &span), 512);
    CHECK_EQ(pstk__span_size(&disk, &span), 4096);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(all_sets_of_three_small_rows_are_laid_out_as_by_the_naive_joiner),
        CASE(a_row_joins_up_to_the_gap_and_up_to_the_size_of_a_joined_read),
        CASE(a_row_of_another_file_or_past_a_row_that_was_left_out_begins_a_span),
        CASE(a_row_before_the_spans_begin_begins_a_span_and_one_within_it_changes_no_end),
        CASE(a_refused_join_changes_neither_the_spans_nor_the_memory),
        CASE(the_largest_read_is_taken_and_one_page_more_is_not),
        CASE(a_read_covers_its_rows_and_begins_and_ends_aligned),
    };
    return RUN_CASES(cases);
}
