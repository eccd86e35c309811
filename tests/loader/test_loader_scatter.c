/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows that workers read straight into the slot, on a page cache of our own. Each epoch is that of
 * the naive loader, whose reads are plain ones, whatever the page cache holds and however the rows
 * lie in their records; faults of single samples are those of reading by the reader alone.
 */
#include "format/format.h"
#include "support/oracle.h"
#include "support/page_cache.h"
#include "support/test.h"

#include <fcntl.h>

#define N_SAMPLES 96
#define BAD 61
#define ROW 9003u /* bytes, odd: a gap follows */
#define SIDE 56u  /* of images that a batch shows as they are */
#define MAX_TEXT 12000u

static char path[4200];
static uint32_t n_readers = 2; /* 1 under TSan: threads only */
static const uint32_t readers[] = {PSTK_READER_THREADS, PSTK_READER_AUTO};

/* ---- data sets ------------------------------------------------------------------------------- */

enum kind {
    UNIFORM, /* the values of each field lie at one place in all records */
    SHIFTED, /* the text before the others has another size every 20 records, and at times each */
    MIXED_SIZES, /* and an image in five is smaller */
    N_KINDS
};

static uint32_t text_size(enum kind kind, uint64_t i)
{
    if (kind == UNIFORM)
        return 500;
    return i % 40 < 30 ? (uint32_t)(i / 20 * 100) : (uint32_t)(i * 1237 % 3000);
}

static uint32_t side_of(enum kind kind, uint64_t i)
{
    return kind == MIXED_SIZES && i % 5 == 4 ? SIDE - 6 : SIDE;
}

static void fill(uint8_t *bytes, uint32_t n, uint64_t i, uint32_t field)
{
    for (uint32_t k = 0; k < n; k++)
        bytes[k] = sample_set_byte(i * 8 + field, k);
}

static int add(struct pstk_writer *w, enum kind kind, uint64_t i, struct pstk_error *err)
{
    static uint8_t text[4000], row[ROW], image[SIDE * SIDE * 3], tail[MAX_TEXT];
    const uint32_t side = side_of(kind, i);
    const uint32_t n_text = text_size(kind, i), n_image = side * side * 3;
    const uint32_t n_tail = MAX_TEXT - (uint32_t)(i * 37 % 900);
    const int64_t label = (int64_t)i;
    const struct pstk_pixels pixels = {.size = sizeof pixels,
                                       .field = 2,
                                       .height = side,
                                       .width = side,
                                       .channels = 3,
                                       .bit_depth = 8};
    fill(text, n_text, i, 0);
    fill(row, ROW, i, 1);
    fill(image, n_image, i, 2);
    fill(tail, n_tail, i, 3);
    const struct pstk_value values[] = {
        {text, n_text}, {row, ROW}, {image, n_image}, {&label, sizeof label}, {tail, n_tail}};
    return pstk_writer_add_pixels(w, values, 5, &pixels, 1, err);
}

static void make_records(enum kind kind)
{
    const struct pstk_field fields[] = {
        {.name = "text", .kind = PSTK_FIELD_BYTES},
        {.name = "row", .kind = PSTK_FIELD_NDARRAY, .dtype = PSTK_U8, .n_dims = 1, .shape = {ROW}},
        {.name = "image", .kind = PSTK_FIELD_IMAGE},
        {.name = "cls", .kind = PSTK_FIELD_SCALAR, .dtype = PSTK_I64},
        {.name = "tail", .kind = PSTK_FIELD_BYTES}};
    struct pstk_error err;
    struct pstk_writer_settings s;
    struct pstk_writer *w;
    pstk_error_init(&err, sizeof err);
    pstk_writer_settings_init(&s, sizeof s);
    s.path = path;
    s.fields = fields;
    s.n_fields = 5;
    s.shard_size = 1u << 20;
    int r = pstk_writer_open(&w, &s, &err);
    for (uint64_t i = 0; r == 0 && i < N_SAMPLES; i++)
        r = add(w, kind, i, &err);
    if (r == 0)
        r = pstk_writer_commit(&w, &err);
    if (r < 0) {
        printf("Bail out! could not write the test's data set: %s\n", err.message);
        exit(99);
    }
}

static void make_array(const char *name, const char *type, uint32_t width, uint32_t n_bytes)
{
    static uint8_t row[ROW * 2];
    char file[4400], head[118];
    snprintf(file, sizeof file, "%s/%s.npy", path, name);
    FILE *f = fopen(file, "wb");
    snprintf(head, sizeof head, "{'descr': '%s', 'fortran_order': False, 'shape': (%u, %u), }",
             type, N_SAMPLES, width);
    if (!f)
        exit(99);
    fwrite("\x93NUMPY\x01\x00\x76\x00", 1, 10, f);
    fprintf(f, "%-117s\n", head);
    for (uint64_t i = 0; i < N_SAMPLES; i++) {
        fill(row, n_bytes, i, (uint32_t)name[0]);
        fwrite(row, 1, n_bytes, f);
    }
    fclose(f);
}

static void make_arrays(void)
{
    mkdir(path, 0700);
    make_array("a", "|u1", ROW, ROW);
    make_array("b", "<u2", 4200, 8400);
    make_array("c", "<i4", 3, 12);
}

/* ---- outputs --------------------------------------------------------------------------------- */

static const struct pstk_op whole = {.kind = PSTK_OP_CENTER_CROP, .height = SIDE, .width = SIDE};
static struct pstk_op flipped[2];

#define IMAGE(list, n)                                                                             \
    {                                                                                              \
        .field = "image", .kind = PSTK_OUTPUT_IMAGE, .image = {.ops = list, .n_ops = n }           \
    }
static const struct pstk_output all[] = {{.field = "tail", .kind = PSTK_OUTPUT_BYTES},
                                         {.field = "row", .kind = PSTK_OUTPUT_TENSOR},
                                         {.field = "cls", .kind = PSTK_OUTPUT_SCALAR},
                                         IMAGE(&whole, 1)};
static const struct pstk_output flips[] = {IMAGE(flipped, 2),
                                           {.field = "row", .kind = PSTK_OUTPUT_TENSOR}};
/* Two outputs read the field, or the row is not the bytes of the field. */
static const struct pstk_output made[] = {
    {.field = "row", .kind = PSTK_OUTPUT_TENSOR, .dtype = PSTK_F32},
    {.field = "tail", .kind = PSTK_OUTPUT_BYTES},
    {.name = "again", .field = "tail", .kind = PSTK_OUTPUT_BYTES},
    {.field = "image",
     .kind = PSTK_OUTPUT_IMAGE,
     .image = {.ops = &whole, .n_ops = 1, .layout = PSTK_NCHW}}};
static const struct pstk_output arrays[] = {{.field = "a", .kind = PSTK_OUTPUT_TENSOR},
                                            {.field = "b", .kind = PSTK_OUTPUT_TENSOR},
                                            {.field = "c", .kind = PSTK_OUTPUT_TENSOR}};

static const struct set {
    const struct pstk_output *outputs;
    uint32_t n;
    uint32_t n_straight; /* outputs whose rows are the bytes of a field */
} sets[] = {{all, 4, 3}, {flips, 2, 2}, {made, 4, 0}};
static const struct set arrays_set = {arrays, 3, 2};

static struct pstk_settings settings_of(const struct set *set)
{
    struct pstk_settings s;
    pstk_settings_init(&s, sizeof s);
    s.path = path;
    s.outputs = set->outputs;
    s.n_outputs = set->n;
    s.batch_size = 16;
    s.seed = 5;
    s.n_threads = 1;
    s.last_batch = PSTK_LAST_SHORT;
    s.reading.io = PSTK_IO_BUFFERED;
    s.reading.reader = readers[n_readers - 1];
    return s;
}

/* ---- epochs ---------------------------------------------------------------------------------- */

/* Return the number of rows of a batch that a worker's read wrote to. */
static uint64_t count_straight(const struct oracle *o, const struct pstk_batch *b)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < b->n_tensors; i++) {
        const uint64_t size = pstk__output_written_size(&o->plan->outputs[i]);
        for (uint32_t row = 0; row < b->n_valid; row++)
            n += (uint64_t)is_target((const uint8_t *)b->tensors[i].data + row * size);
    }
    return n;
}

/* Stream two epochs, so that most rows come after what they are learned from. Returns the rows that
 * went straight to the slot, or -1 if a batch is not the naive loader's. */
static int64_t stream_two(const struct pstk_settings *s)
{
    struct oracle o;
    struct pstk_loader *loader = NULL;
    struct pstk_batch *b;
    struct pstk_error err;
    struct pstk_stats st = {.size = sizeof st};
    uint64_t n = 0;
    int64_t n_straight = 0;
    int r = -1;
    pstk_error_init(&err, sizeof err);
    int ok = oracle_open(&o, s, &err) == 0 && pstk_open(&loader, s, &err) == 0;
    for (uint32_t epoch = 0; ok && epoch < 2; epoch++)
        while (ok && (r = pstk_next(loader, &b, NULL, 20000000000, &err)) == 1) {
            ok = oracle_equal(&o, b);
            n += b->n_valid;
            n_straight += (int64_t)count_straight(&o, b);
            pstk_release(&b, NULL);
        }
    if (r < 0)
        printf("# %s\n", err.message);
    ok = ok && r == 0 && n == 2 * N_SAMPLES && pstk_get_stats(loader, &st) == 0 &&
         st.n_slow_reads == 0;
    pstk_close(&loader);
    oracle_close(&o);
    return ok ? n_straight : -1;
}

TEST(rows_that_are_the_bytes_of_a_field_are_read_into_the_slot)
{
    for (uint32_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        const struct pstk_settings s = settings_of(&sets[i]);
        reset(RESIDENT);
        const int64_t n = stream_two(&s);
        CHECK(n >= 0);
        CHECK((uint64_t)n <= 2 * N_SAMPLES * sets[i].n_straight);
        CHECK((uint64_t)n >= N_SAMPLES * sets[i].n_straight);
    }
}

/* Each state of the page cache, few and many workers, rows alone and rows that one read has. */
static void sweep(const struct set *set)
{
    const uint32_t orders[] = {PSTK_ORDER_FULL, PSTK_ORDER_SEQUENTIAL};
    for (enum cache as = AS_IT_IS; as < N_CACHES; as++)
        for (uint32_t i = 0; i < 4 && !test_state.failed; i++) {
            struct pstk_settings s = settings_of(set);
            s.n_threads = i & 1 ? 1 : 3;
            s.order.kind = orders[i >> 1 & 1];
            s.reading.reader = readers[(as + i) % n_readers];
            s.batch_size = 16 + i;
            reset(as);
            atomic_fetch_add(&seed, 1);
            CHECK(stream_two(&s) >= 0);
        }
}

TEST(each_state_of_the_page_cache_gives_the_same_rows)
{
    for (uint32_t i = 0; i < sizeof sets / sizeof *sets && !test_state.failed; i++)
        sweep(&sets[i]);
}

static void remake(enum kind kind)
{
    sample_set_remove(path);
    make_records(kind);
}

TEST(fields_that_lie_elsewhere_than_in_the_rows_before_give_the_same_rows)
{
    remake(SHIFTED);
    for (uint32_t i = 0; i < sizeof sets / sizeof *sets && !test_state.failed; i++)
        sweep(&sets[i]);
    remake(UNIFORM);
}

TEST(images_that_are_padded_or_cropped_give_the_same_rows)
{
    remake(MIXED_SIZES);
    for (uint32_t i = 0; i < 2 && !test_state.failed; i++)
        sweep(&sets[i]);
    remake(UNIFORM);
}

TEST(arrays_are_read_into_the_slot)
{
    sample_set_remove(path);
    make_arrays();
    const struct pstk_settings s = settings_of(&arrays_set);
    reset(RESIDENT);
    CHECK(stream_two(&s) >= N_SAMPLES * (int64_t)arrays_set.n_straight);
    sweep(&arrays_set);
    remake(UNIFORM);
}

/* Rows of one read may be the same record twice. */
TEST(a_record_that_is_drawn_twice_gives_the_same_rows)
{
    const struct pstk_output b_only = {.field = "b", .kind = PSTK_OUTPUT_TENSOR};
    const struct set set = {&b_only, 1, 1};
    const double weights[N_SAMPLES] = {[7] = 1, [8] = 1};
    const struct pstk_subset subset = {.size = sizeof subset,
                                       .kind = PSTK_SUBSET_WEIGHTED,
                                       .weights = weights,
                                       .n_weights = N_SAMPLES,
                                       .n_draws = 1000};
    struct pstk_settings s = settings_of(&set);
    struct oracle o;
    struct pstk_loader *loader;
    struct pstk_batch *b;
    uint64_t n_same = 0;
    sample_set_remove(path);
    make_arrays();
    reset(RESIDENT);
    CHECK_EQ(oracle_open(&o, &s, NULL), 0);
    s.subset = &subset;
    CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
    int r;
    while ((r = pstk_next(loader, &b, NULL, 20000000000, NULL)) == 1) {
        for (uint32_t row = 0; row < b->n_valid && !test_state.failed; row++) {
            struct pstk__row rows[PSTK__MAX_OUTPUTS];
            CHECK_EQ(oracle_row(&o, b->sample_ids[row], 0, rows), 0);
            CHECK(oracle_row_equal(&o, b, row, rows));
            n_same += row > 0 && b->sample_ids[row] == b->sample_ids[row - 1];
        }
        pstk_release(&b, NULL);
    }
    CHECK_EQ(r, 0);
    CHECK(n_same > 100);
    pstk_close(&loader);
    oracle_close(&o);
    remake(UNIFORM);
}

/* ---- bad samples ----------------------------------------------------------------------------- */

/* Find the extent of a sample's record in its file. */
static int find_record(uint64_t id, struct pstk__extent *extent, char *file, size_t size)
{
    struct pstk__source *s;
    struct pstk__extent page;
    struct pstk__sample_location place;
    _Alignas(4096) uint8_t bytes[PSTK__PAGE_SIZE];
    if (pstk__source_open(&s, path, NULL, NULL) < 0)
        return -1;
    s->format->locate(s, id, &place);
    s->format->page(s, &place, &page);
    pstk__source_file_path(s, page.file, file, size);
    const int fd = open(file, O_RDONLY);
    int r = -1;
    if (__real_pread(fd, bytes, sizeof bytes, (off_t)page.offset) == sizeof bytes)
        r = s->format->extent(s, &place, PSTK__ALL_FIELDS, bytes, extent, NULL);
    close(fd);
    pstk__source_close(s);
    return r;
}

/* What an epoch with a bad sample gives. */
struct outcome {
    int r;
    uint64_t n_valid, n_replacements, replacement;
    uint64_t sum; /* of the rows' bytes */
    struct pstk_error err;
};

/* Take the batches of one epoch. */
static void stream_epoch(struct pstk_loader *loader, struct outcome *to)
{
    struct pstk_batch *b;
    *to = (struct outcome){.replacement = PSTK_NONE};
    pstk_error_init(&to->err, sizeof to->err);
    while ((to->r = pstk_next(loader, &b, NULL, 20000000000, &to->err)) == 1) {
        to->n_valid += b->n_valid;
        to->n_replacements += b->n_replacements;
        for (uint32_t i = 0; i < b->n_valid; i++)
            if (b->replacement_ids[i] != PSTK_NONE)
                to->replacement = b->replacement_ids[i];
        for (uint32_t k = 0; k < b->n_tensors; k++)
            to->sum = to->sum * 31 + pstk_crc32c(0, b->tensors[k].data, b->tensors[k].size);
        pstk_release(&b, NULL);
    }
}

/* The last epoch counts: before it, lanes have found what is resident, and workers where the fields
 * lie. */
static void stream(const struct pstk_settings *s, struct outcome *to)
{
    struct pstk_loader *loader;
    CHECK_EQ(pstk_open(&loader, s, NULL), 0);
    for (uint64_t epoch = 0; epoch < 8; epoch++) {
        CHECK_EQ(pstk_seek(loader, epoch, 0, NULL), 0);
        stream_epoch(loader, to);
    }
    pstk_close(&loader);
}

/* A bad sample gives the same error, and the same replacement, in each state of the page cache. */
static void compare_outcomes(const struct set *set)
{
    for (uint32_t bad = PSTK_BAD_ERROR; bad <= PSTK_BAD_REPLACE; bad++)
        for (uint32_t i = 0; i < 2 && !test_state.failed; i++) {
            struct pstk_settings s = settings_of(set);
            struct outcome old, got;
            s.n_threads = i ? 3 : 1;
            s.reading.reader = PSTK_READER_THREADS;
            s.bad_sample = bad;
            reset(REFUSED);
            stream(&s, &old);
            CHECK_EQ(old.r < 0, bad == PSTK_BAD_ERROR);
            CHECK_EQ(old.n_replacements, bad == PSTK_BAD_REPLACE);
            CHECK(bad == PSTK_BAD_REPLACE || old.err.sample_id == BAD);
            for (enum cache as = RESIDENT; as < N_CACHES; as++) {
                reset(as);
                stream(&s, &got);
                CHECK_EQ(got.r, old.r);
                CHECK_STR(got.err.message, old.err.message);
                CHECK_EQ(got.err.sample_id, old.err.sample_id);
                CHECK_EQ(got.n_valid, old.n_valid);
                CHECK_EQ(got.sum, old.sum);
                CHECK_EQ(got.n_replacements, old.n_replacements);
                CHECK_EQ(got.replacement, old.replacement);
            }
        }
}

/* Change a byte of the bad sample's record, and put it right again. `at`: from the begin of the
 * record, or, below 0, from its end. */
static void damage(const struct set *set, int64_t at)
{
    struct pstk__extent e;
    char file[4500];
    uint8_t byte;
    CHECK_EQ(find_record(BAD, &e, file, sizeof file), 0);
    const off_t place = (off_t)(at < 0 ? e.offset + e.size : e.offset) + at;
    const int fd = open(file, O_RDWR);
    CHECK_EQ(__real_pread(fd, &byte, 1, place), 1);
    byte ^= 1;
    CHECK_EQ(pwrite(fd, &byte, 1, place), 1);
    compare_outcomes(set);
    byte ^= 1;
    CHECK_EQ(pwrite(fd, &byte, 1, place), 1);
    close(fd);
}

#define ALIGNED(n) (((n) + 15) / 16 * 16)

TEST(a_damaged_row_is_reported_or_replaced_as_on_the_old_path)
{
    struct pstk__extent e;
    char file[4500];
    CHECK_EQ(find_record(BAD, &e, file, sizeof file), 0);
    const int64_t tail = ALIGNED(MAX_TEXT - BAD * 37 % 900), image = SIDE * SIDE * 3;
    const int64_t end = (int64_t)e.size - tail - image; /* of `row`, with its gap */
    damage(&sets[0], 2);                                /* the head */
    damage(&sets[1], end - ALIGNED(ROW) + 5000);
    damage(&sets[0], end - ALIGNED(ROW) + ROW); /* the gap after it */
    damage(&sets[0], end - 1);
    damage(&sets[1], end + 5000); /* the image */
}

/* As a_damaged_row..., for the last field, whose row is ragged. */
TEST(a_damaged_last_value_is_reported_or_replaced_as_on_the_old_path)
{
    const int64_t tail = MAX_TEXT - BAD * 37 % 900;
    damage(&sets[0], -ALIGNED(tail) + 100);
    damage(&sets[0], -ALIGNED(tail) + tail - 1);
    damage(&sets[0], -1); /* its gap, where it has one */
}

static void fail_reads(int what)
{
    struct pstk__extent e;
    struct stat st;
    char file[4500];
    CHECK_EQ(find_record(BAD, &e, file, sizeof file), 0);
    CHECK_EQ(stat(file, &st), 0);
    const uint64_t begins[] = {e.offset, e.offset + 7000, e.offset + e.size - 20};
    for (uint32_t i = 0; i < 3 && !test_state.failed; i++) {
        atomic_store(&fault_begin, begins[i]);
        atomic_store(&fault_end, e.offset + e.size);
        atomic_store(&fault, what);
        atomic_store(&fault_inode, st.st_ino);
        compare_outcomes(&sets[0]);
        atomic_store(&fault_inode, 0);
    }
}

TEST(a_read_that_fails_in_the_middle_of_a_row_is_that_of_the_old_path)
{
    fail_reads(-EIO);
    atomic_store(&fault_inode, 0);
}

TEST(a_file_that_ends_in_the_middle_of_a_row_is_that_of_the_old_path)
{
    fail_reads(0);
    atomic_store(&fault_inode, 0);
}

/* ---- close, seek ----------------------------------------------------------------------------- */

TEST(a_loader_is_closed_while_rows_are_read_into_its_slots)
{
    for (uint32_t i = 0; i < 60; i++) {
        const enum cache states[] = {RESIDENT, GONE, MIXED};
        struct pstk_settings s = settings_of(&sets[i & 1]);
        struct pstk_loader *loader;
        struct pstk_batch *b;
        s.n_threads = 1 + i % 4;
        reset(states[i % 3]);
        atomic_store(&nap_us, 300);
        CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
        for (uint32_t k = 0; k < i % 5; k++) {
            CHECK_EQ(pstk_next(loader, &b, NULL, 20000000000, NULL), 1);
            pstk_release(&b, NULL);
        }
        pstk_close(&loader);
    }
}

static void seek_about(const struct pstk_settings *s)
{
    struct oracle o;
    struct pstk_loader *loader;
    struct pstk_batch *b;
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    CHECK_EQ(oracle_open(&o, s, &err), 0);
    CHECK_EQ(pstk_open(&loader, s, &err), 0);
    for (uint32_t k = 0; k < 20 && !test_state.failed; k++) {
        const uint64_t epoch = k % 3, position = k * 16 % 48;
        CHECK_EQ(pstk_seek(loader, epoch, position, &err), 0);
        for (uint32_t n = 0; n < k % 4; n++) {
            CHECK_EQ(pstk_next(loader, &b, NULL, 20000000000, &err), 1);
            CHECK_EQ(b->epoch, epoch);
            CHECK_EQ(b->position, position + 16 * n);
            CHECK(oracle_equal(&o, b));
            pstk_release(&b, NULL);
        }
    }
    pstk_close(&loader);
    oracle_close(&o);
}

TEST(a_seek_while_rows_are_read_gives_the_batches_of_its_place)
{
    for (uint32_t i = 0; i < 8 && !test_state.failed; i++) {
        struct pstk_settings s = settings_of(&sets[i & 1]);
        s.n_threads = i & 2 ? 3 : 1;
        reset(i & 4 ? MIXED : RESIDENT);
        atomic_store(&nap_us, 100);
        seek_about(&s);
    }
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(rows_that_are_the_bytes_of_a_field_are_read_into_the_slot),
        CASE(each_state_of_the_page_cache_gives_the_same_rows),
        CASE(fields_that_lie_elsewhere_than_in_the_rows_before_give_the_same_rows),
        CASE(images_that_are_padded_or_cropped_give_the_same_rows),
        CASE(arrays_are_read_into_the_slot),
        CASE(a_record_that_is_drawn_twice_gives_the_same_rows),
        CASE(a_damaged_row_is_reported_or_replaced_as_on_the_old_path),
        CASE(a_damaged_last_value_is_reported_or_replaced_as_on_the_old_path),
        CASE(a_read_that_fails_in_the_middle_of_a_row_is_that_of_the_old_path),
        CASE(a_file_that_ends_in_the_middle_of_a_row_is_that_of_the_old_path),
        CASE(a_loader_is_closed_while_rows_are_read_into_its_slots),
        CASE(a_seek_while_rows_are_read_gives_the_batches_of_its_place),
    };
    const char *reader = getenv("PENSTOCK_TEST_READER");
    if (reader && strcmp(reader, "threads") == 0)
        n_readers = 1;
    flipped[0] = pstk_center_crop(SIDE, SIDE);
    flipped[1] = pstk_random_flip(0.1);
    sample_set_path(path, sizeof path);
    make_records(UNIFORM);
    const int r = RUN_CASES(cases);
    sample_set_remove(path);
    return r;
}
