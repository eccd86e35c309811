/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workers that read what the page cache holds, on a page cache of our own: it has all, nothing,
 * half, or what is gone when the worker comes. Each epoch is that of the naive loader, and of
 * direct reading; faults of single samples are those of reading by the reader alone.
 */
#include "format/format.h"
#include "reader/reader.h"
#include "support/oracle.h"
#include "support/page_cache.h"
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>

#define N_SAMPLES 260
#define BAD 101

static char path[4200];
static int few_files; /* 1: so few may be open that the reader reads what a worker could */
static uint64_t n_samples = N_SAMPLES; /* samples of the data set at `path` */
static uint32_t n_readers = 2;         /* 1 under TSan: threads only */
static const uint32_t readers[] = {PSTK_READER_THREADS, PSTK_READER_AUTO};

/* ---- one epoch ------------------------------------------------------------------------------- */

static const struct pstk_output outputs[] = {{.field = "cls", .kind = PSTK_OUTPUT_SCALAR},
                                             {.field = "tokens", .kind = PSTK_OUTPUT_TENSOR},
                                             {.field = "text", .kind = PSTK_OUTPUT_BYTES},
                                             {.field = "img", .kind = PSTK_OUTPUT_BYTES}};

static struct pstk_settings base(void)
{
    struct pstk_settings s;
    pstk_settings_init(&s, sizeof s);
    s.path = path;
    s.outputs = outputs;
    s.n_outputs = 4;
    s.batch_size = 16;
    s.seed = 3;
    s.n_threads = 2;
    s.last_batch = PSTK_LAST_SHORT;
    s.reading.io = PSTK_IO_BUFFERED;
    s.reading.reader = readers[n_readers - 1];
    return s;
}

/* 1: the counters are those of the reads that this cache leads to. Reading goes on ahead of the
 * epoch's end, so the two are equal only when the slots are full. */
static int counters_are_right(const struct pstk_loader *loader, struct pstk_stats *st)
{
    *st = (struct pstk_stats){.size = sizeof *st};
    const uint64_t n_now = atomic_load(&n_reads_now), now = atomic_load(&bytes_now);
    if (pstk_get_stats(loader, st) < 0)
        return 0;
    const uint64_t n = st->n_reads - st->n_index_misses;
    const uint64_t bytes = st->bytes_read - st->n_index_misses * PSTK__PAGE_SIZE;
    switch (atomic_load(&cache)) {
    case AS_IT_IS:
        return n_now <= n && now <= bytes;
    case RESIDENT: /* the backend has the reads of the time in which a lane finds out */
        return n_now <= n && now <= bytes && (few_files || n_now == st->n_cached_reads);
    case COLD:
        return n_now == 0 && n > 0;
    case TMPFS: /* without a probe; few files: the reader has what the worker may not wait for */
        return atomic_load(&n_probes) == 0 && n_now == st->n_cached_reads &&
               (few_files || n_now == n);
    case REFUSED: /* at most a probe for each lane */
        return n_now == 0 && n > 0 && atomic_load(&n_probes) <= st->n_threads;
    default:
        return n_now <= n && now <= bytes;
    }
}

/* Stream one epoch. Returns 1 if it is the naive loader's. */
static int epoch_is_right(const struct pstk_settings *s, struct pstk_stats *st)
{
    struct oracle o;
    struct pstk_loader *loader = NULL;
    struct pstk_batch *b;
    struct pstk_error err;
    uint64_t n = 0;
    int r = -1;
    pstk_error_init(&err, sizeof err);
    int ok = oracle_open(&o, s, &err) == 0 && pstk_open(&loader, s, &err) == 0;
    while (ok && (r = pstk_next(loader, &b, NULL, 20000000000, &err)) == 1) {
        ok = oracle_equal(&o, b);
        n += b->n_valid;
        pstk_release(&b, NULL);
    }
    if (r < 0)
        printf("# %s\n", err.message);
    ok = ok && r == 0 && n == n_samples;
    if (ok) {
        ok = 0;
        WAIT_UNTIL((ok = counters_are_right(loader, st)) == 1);
        if (!ok)
            printf("# cache %d: %u reads of %llu\n", atomic_load(&cache), atomic_load(&n_reads_now),
                   (unsigned long long)(st->n_reads - st->n_index_misses));
    }
    pstk_close(&loader);
    oracle_close(&o);
    return ok;
}

/* Workers, lanes and nodes: by default a lane for each worker. */
static const struct shape {
    uint32_t n_threads, n_slots;
    const char *topology;
} shapes[] = {{1, 0, NULL},
              {2, 0, NULL},
              {7, 0, NULL},
              {7, 2, NULL}, /* one lane */
              {4, 0, "node:2 core:2 pu:1"},
              {4, 2, "node:2 core:2 pu:1"}};
#define N_SHAPES (sizeof shapes / sizeof *shapes)

static struct pstk_settings shaped(const struct shape *shape, uint32_t reader, uint32_t order)
{
    struct pstk_settings s = base();
    s.n_threads = shape->n_threads;
    s.memory.n_slots = shape->n_slots;
    s.reading.topology = shape->topology;
    s.reading.reader = reader;
    s.order.kind = order;
    return s;
}

/* In each state of the page cache an epoch has the same batches, from as many bytes. */
static void sweep(uint32_t order, uint32_t reader, const struct shape *shape)
{
    const struct pstk_settings s = shaped(shape, reader, order);
    uint64_t n_delivered = 0;
    for (enum cache as = RESIDENT; as < N_CACHES; as++) {
        struct pstk_stats st;
        reset(as);
        atomic_fetch_add(&seed, 1);
        CHECK(epoch_is_right(&s, &st));
        if (as == RESIDENT)
            n_delivered = st.bytes_delivered;
        const int has_many = order == PSTK_ORDER_FULL && shape->n_threads == 1; /* reads a lane */
        if (as == RESIDENT && has_many)
            CHECK(st.n_cached_reads > st.n_reads / 2);
        CHECK_EQ(st.bytes_delivered, n_delivered);
        CHECK_EQ(st.n_slow_reads, 0);
        CHECK_EQ(st.fallbacks & PSTK_FALLBACK_NO_NOWAIT,
                 as == REFUSED ? PSTK_FALLBACK_NO_NOWAIT : 0u);
        CHECK(st.bytes_read >= st.bytes_delivered);
        if ((as == GONE || as == EMPTY) && has_many)
            CHECK(atomic_load(&n_reads_now) > 0);
    }
}

TEST(each_state_of_the_page_cache_gives_the_same_batches)
{
    const uint32_t orders[] = {PSTK_ORDER_FULL, PSTK_ORDER_SEQUENTIAL};
    for (uint32_t k = 0; k < n_readers * 2 && !test_state.failed; k++)
        for (uint32_t i = 0; i < N_SHAPES && !test_state.failed; i++)
            sweep(orders[k & 1], readers[k >> 1], &shapes[i]);
}

TEST(a_half_resident_file_gives_the_same_batches)
{
    for (uint32_t i = 0; i < 20 / test_stride(4, 4); i++) {
        const struct pstk_settings s =
            shaped(&shapes[i % N_SHAPES], readers[i % n_readers], PSTK_ORDER_FULL);
        struct pstk_stats st;
        reset(MIXED);
        atomic_fetch_add(&seed, 1);
        CHECK(epoch_is_right(&s, &st));
        CHECK_EQ(st.n_slow_reads, 0);
    }
}

TEST(direct_reading_asks_the_page_cache_nothing)
{
    struct pstk_settings s = base();
    struct pstk_stats st;
    uint32_t memory_align, offset_align;
    if (pstk__direct_align(path, &memory_align, &offset_align) < 0)
        SKIP("no O_DIRECT in the folder for temporary files");
    s.reading.io = PSTK_IO_DIRECT;
    reset(COLD);
    CHECK(epoch_is_right(&s, &st));
    CHECK_EQ(atomic_load(&n_probes), 0);
    CHECK_EQ(atomic_load(&n_reads_now), 0);
}

/* Drop the data set from the kernel's page cache, as far as it does. */
static void evict(void)
{
    DIR *folder = opendir(path);
    for (struct dirent *e; folder && (e = readdir(folder));) {
        const int fd = openat(dirfd(folder), e->d_name, O_RDONLY);
        if (fd < 0)
            continue;
        (void)fsync(fd); /* folders too; only advice */
        (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        close(fd);
    }
    closedir(folder);
}

TEST(the_kernels_page_cache_gives_the_same_batches)
{
    for (uint32_t i = 0; i < 4 * N_SHAPES; i++) {
        const struct pstk_settings s =
            shaped(&shapes[i / 4], readers[i / 2 % n_readers], PSTK_ORDER_FULL);
        struct pstk_stats st;
        reset(AS_IT_IS);
        if (i % 2)
            evict();
        CHECK(epoch_is_right(&s, &st));
        CHECK_EQ(st.n_slow_reads, 0);
    }
}

/* ---- faults ---------------------------------------------------------------------------------- */

/* Find the bytes of a sample's record: `what` for reads that overlap them. */
static int fail_sample(uint64_t id, int what, char *shard_file, size_t size)
{
    struct pstk__source *s;
    struct pstk__extent page, e;
    struct pstk__sample_location place;
    struct stat st;
    _Alignas(4096) uint8_t bytes[PSTK__PAGE_SIZE];
    if (pstk__source_open(&s, path, NULL, NULL) < 0)
        return -1;
    s->format->locate(s, id, &place);
    s->format->page(s, &place, &page);
    pstk__source_file_path(s, page.file, shard_file, size);
    const int fd = open(shard_file, O_RDONLY);
    int r = fstat(fd, &st);
    if (r == 0 && __real_pread(fd, bytes, sizeof bytes, (off_t)page.offset) == sizeof bytes)
        r = s->format->extent(s, &place, PSTK__ALL_FIELDS, bytes, &e, NULL);
    close(fd);
    pstk__source_close(s);
    atomic_store(&fault_begin, e.offset);
    atomic_store(&fault_end, e.offset + e.size);
    atomic_store(&fault, what);
    atomic_store(&fault_inode, st.st_ino);
    return r;
}

/* The results of an epoch with a fault. */
struct outcome {
    int r;
    uint64_t n_valid, n_replacements, replacement;
    uint64_t sum; /* sum of the labels */
    struct pstk_error err;
};

static void stream(const struct pstk_settings *s, struct outcome *to)
{
    struct pstk_loader *loader;
    struct pstk_batch *b;
    *to = (struct outcome){.replacement = PSTK_NONE};
    pstk_error_init(&to->err, sizeof to->err);
    to->r = pstk_open(&loader, s, &to->err);
    while (to->r >= 0 && (to->r = pstk_next(loader, &b, NULL, 20000000000, &to->err)) == 1) {
        to->n_valid += b->n_valid;
        to->n_replacements += b->n_replacements;
        for (uint32_t i = 0; i < b->n_valid; i++) {
            to->sum += (uint64_t)((const int64_t *)b->tensors[0].data)[i];
            if (b->replacement_ids[i] != PSTK_NONE)
                to->replacement = b->replacement_ids[i];
        }
        pstk_release(&b, NULL);
    }
    pstk_close(&loader);
}

/* The fault of one sample is the same in each state of the page cache. The threads' reads pass
 * here, so the old path meets it, too. */
static void fail_everywhere(int what)
{
    char file[4500];
    for (uint32_t bad = PSTK_BAD_ERROR; bad <= PSTK_BAD_REPLACE; bad++)
        for (uint32_t i = 0; i < N_SHAPES; i++) {
            struct pstk_settings s = shaped(&shapes[i], PSTK_READER_THREADS, PSTK_ORDER_FULL);
            struct outcome old, got;
            s.bad_sample = bad;
            CHECK_EQ(fail_sample(BAD, what, file, sizeof file), 0);
            reset(REFUSED);
            stream(&s, &old);
            CHECK_EQ(old.r < 0, bad == PSTK_BAD_ERROR);
            CHECK_EQ(old.n_replacements, bad == PSTK_BAD_REPLACE);
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
            CHECK(bad == PSTK_BAD_REPLACE ||
                  (got.err.sample_id == BAD && strstr(got.err.message, strrchr(file, '/') + 1)));
            atomic_store(&fault_inode, 0);
        }
}

TEST(a_sample_that_cannot_be_read_is_that_of_the_old_path)
{
    fail_everywhere(-EIO);
    atomic_store(&fault_inode, 0);
}

TEST(a_sample_past_the_end_of_its_file_is_that_of_the_old_path)
{
    fail_everywhere(0);
    atomic_store(&fault_inode, 0);
}

/* Cut a shard in earnest while workers read it. */
static void cut_one(const struct shape *shape, uint32_t reader, char *bytes, int fd, off_t size,
                    const char *name)
{
    struct pstk_settings s = shaped(shape, reader, PSTK_ORDER_SEQUENTIAL);
    struct pstk_loader *loader;
    struct pstk_batch *b;
    struct pstk_error err;
    int r;
    pstk_error_init(&err, sizeof err);
    s.batch_size = 2;
    reset(RESIDENT);
    atomic_store(&nap_us, 200);
    CHECK_EQ(pstk_open(&loader, &s, &err), 0);
    CHECK_EQ(pstk_next(loader, &b, NULL, -1, &err), 1);
    pstk_release(&b, NULL);
    CHECK_EQ(ftruncate(fd, 4096), 0);
    while ((r = pstk_next(loader, &b, NULL, 20000000000, &err)) == 1)
        pstk_release(&b, NULL);
    const int is_whole = __real_pread(fd, bytes, 4096, 0) == 4096;
    CHECK(is_whole && pwrite(fd, bytes, (size_t)size, 0) == size);
    CHECK(r < 0 && r != PSTK_ETIMEDOUT);
    CHECK(strstr(err.message, name));
    pstk_close(&loader);
}

TEST(a_file_that_is_cut_while_workers_read_it_is_named)
{
    char file[4500];
    struct stat st;
    CHECK_EQ(fail_sample(200, 0, file, sizeof file), 0);
    atomic_store(&fault_inode, 0);
    CHECK_EQ(stat(file, &st), 0);
    char *bytes = malloc((size_t)st.st_size);
    const int fd = open(file, O_RDWR);
    CHECK(bytes && __real_pread(fd, bytes, (size_t)st.st_size, 0) == st.st_size);
    for (uint32_t i = 0; i < N_SHAPES * n_readers && !test_state.failed; i++)
        cut_one(&shapes[i / n_readers], readers[i % n_readers], bytes, fd, st.st_size,
                strrchr(file, '/') + 1);
    close(fd);
    free(bytes);
}

/* ---- few descriptors, close, seek ------------------------------------------------------------ */

#define N_MANY 2000 /* samples of some 35 shards */

/* Fewer files may be open at once than one task reads. */
TEST(few_open_files_are_enough)
{
    struct rlimit old, low;
    char few[4200];
    memcpy(few, path, sizeof few);
    sample_set_path(path, sizeof path);
    sample_set_make(path, N_MANY, 65536, 0);
    n_samples = N_MANY;
    few_files = 1;
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &old), 0);
    const uint32_t limits[] = {60, 30};
    for (uint32_t i = 0; i < 2 * 2 * n_readers * 2 && !test_state.failed; i++) {
        const struct shape *shape = &shapes[i & 1 ? 1 : 3]; /* two lanes; one, with 7 workers */
        struct pstk_settings s = shaped(shape, readers[i / 8], PSTK_ORDER_FULL);
        struct pstk_stats st;
        s.batch_size = 128;
        reset(i & 4 ? MIXED : RESIDENT);
        low = old;
        low.rlim_cur = limits[i >> 1 & 1];
        CHECK_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
        const int right = epoch_is_right(&s, &st);
        CHECK_EQ(setrlimit(RLIMIT_NOFILE, &old), 0);
        CHECK(right);
        CHECK_EQ(st.n_slow_reads, 0);
    }
    sample_set_remove(path);
    memcpy(path, few, sizeof few);
    n_samples = N_SAMPLES;
    few_files = 0;
}

TEST(a_loader_is_closed_while_workers_read)
{
    for (uint32_t i = 0; i < 10 * N_SHAPES; i++) {
        const enum cache states[] = {RESIDENT, GONE, MIXED};
        const struct pstk_settings s =
            shaped(&shapes[i % N_SHAPES], readers[i % n_readers], PSTK_ORDER_FULL);
        struct pstk_loader *loader;
        struct pstk_batch *b;
        reset(states[i % 3]);
        atomic_store(&nap_us, 300);
        CHECK_EQ(pstk_open(&loader, &s, NULL), 0);
        for (uint32_t k = 0; k < i % 3; k++) {
            CHECK_EQ(pstk_next(loader, &b, NULL, 20000000000, NULL), 1);
            pstk_release(&b, NULL);
        }
        pstk_close(&loader);
    }
}

/* Seek to and fro while workers read. */
static void seek_about(const struct pstk_settings *s)
{
    struct oracle o;
    struct pstk_loader *loader;
    struct pstk_batch *b;
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    CHECK_EQ(oracle_open(&o, s, &err), 0);
    CHECK_EQ(pstk_open(&loader, s, &err), 0);
    for (uint32_t k = 0; k < 12; k++) {
        const uint64_t epoch = k % 3, position = k * 77 % N_SAMPLES / 16 * 16;
        CHECK_EQ(pstk_seek(loader, epoch, position, &err), 0);
        for (uint32_t n = 0; n < k % 4; n++) {
            CHECK_EQ(pstk_next(loader, &b, NULL, 20000000000, &err), 1);
            CHECK_EQ(b->epoch, epoch);
            CHECK_EQ(b->position, position + 16 * n);
            CHECK(oracle_equal(&o, b));
            pstk_release(&b, NULL);
            if (b == NULL && position + 16 * (n + 1) >= N_SAMPLES)
                break;
        }
    }
    pstk_close(&loader);
    oracle_close(&o);
}

TEST(a_seek_while_workers_read_gives_the_batches_of_its_place)
{
    for (uint32_t i = 0; i < N_SHAPES * n_readers && !test_state.failed; i++) {
        const struct pstk_settings s =
            shaped(&shapes[i / n_readers], readers[i % n_readers], PSTK_ORDER_FULL);
        reset(i & 1 ? MIXED : RESIDENT);
        atomic_store(&nap_us, 100);
        seek_about(&s);
    }
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(each_state_of_the_page_cache_gives_the_same_batches),
        CASE(a_half_resident_file_gives_the_same_batches),
        CASE(direct_reading_asks_the_page_cache_nothing),
        CASE(the_kernels_page_cache_gives_the_same_batches),
        CASE(a_sample_that_cannot_be_read_is_that_of_the_old_path),
        CASE(a_sample_past_the_end_of_its_file_is_that_of_the_old_path),
        CASE(a_file_that_is_cut_while_workers_read_it_is_named),
        CASE(few_open_files_are_enough),
        CASE(a_loader_is_closed_while_workers_read),
        CASE(a_seek_while_workers_read_gives_the_batches_of_its_place),
    };
    const char *reader = getenv("PENSTOCK_TEST_READER");
    if (reader && strcmp(reader, "threads") == 0)
        n_readers = 1;
    sample_set_path(path, sizeof path);
    sample_set_make(path, N_SAMPLES, 65536, 0);
    const int r = RUN_CASES(cases);
    sample_set_remove(path);
    return r;
}
