/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads that the page cache may answer, with a kernel of our own: which reads are handed over, how
 * soon a change is found, and that a read gives what the loop of the thread backend gives.
 */
#include "reader/residency.h"
#include "support/test.h"

#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>

#define FILE_SIZE 20000
#define LEARNING 128 /* reads after which a share that does not change is known */
#define PERIOD 16    /* reads of which one is probed where most answers are the same */

/* ---- the kernel ------------------------------------------------------------------------------ */

/* Answers of one kind of read, in turn: bytes at most, or a negative errno. After the last one all
 * bytes are given, or `always` where it is not 0. */
struct answers {
    int64_t list[6];
    uint32_t n, next;
    int64_t always;
};

static struct answers now, later; /* with RWF_NOWAIT, and plain */
static uint32_t n_now;
static uint64_t now_offset;
static size_t now_size;
static uint8_t content[FILE_SIZE];

static ssize_t answer(struct answers *from, void *data, size_t size, uint64_t offset)
{
    const int64_t most = from->next < from->n ? from->list[from->next++]
                         : from->always       ? from->always
                                              : (int64_t)size;
    if (most < 0) {
        errno = (int)-most;
        return -1;
    }
    size_t n = offset < FILE_SIZE ? FILE_SIZE - offset : 0;
    n = n < size ? n : size;
    n = n < (size_t)most ? n : (size_t)most;
    memcpy(data, content + (n ? offset : 0), n);
    return (ssize_t)n;
}

ssize_t __wrap_preadv2(int fd, const struct iovec *parts, int n, off_t offset, int flags);
ssize_t __wrap_preadv2(int fd, const struct iovec *parts, int n, off_t offset, int flags)
{
    static uint8_t bytes[FILE_SIZE];
    size_t size = 0, done = 0;
    for (int i = 0; i < n; i++)
        size += parts[i].iov_len;
    if (fd != 77 || n < 1 || (flags != RWF_NOWAIT && flags != 0)) {
        errno = EBADF;
        return -1;
    }
    n_now += flags != 0;
    now_offset = (uint64_t)offset;
    now_size = size;
    const ssize_t got = answer(flags ? &now : &later, bytes, size, (uint64_t)offset);
    for (size_t m; got > 0 && done < (size_t)got; done += m, parts++) {
        m = (size_t)got - done < parts->iov_len ? (size_t)got - done : parts->iov_len;
        memcpy(parts->iov_base, bytes + done, m);
    }
    return got;
}
ssize_t __wrap_preadv64v2(int fd, const struct iovec *parts, int n, off_t offset, int flags)
    __attribute__((alias("__wrap_preadv2")));

static int64_t read_at(const struct pstk__file *file, void *data, uint64_t size, uint64_t offset)
{
    (void)file;
    const ssize_t n = answer(&later, data, size, offset);
    return n < 0 ? -errno : n;
}

static const struct pstk__store store = {.name = "test", .has_fds = 1, .read_at = read_at};
static const struct pstk__file file = {.store = &store, .fd = 77};

/* ---- which reads are handed over ------------------------------------------------------------- */

/* Ask for n reads of which the page cache says `says` (0: it has them). Returns the number that it
 * is said to hold. */
static uint32_t ask(struct pstk__residency *residency, uint32_t n, int64_t says)
{
    const struct pstk__read read = {.from = &file, .offset = 1000, .size = 300};
    uint32_t n_held = 0;
    now = (struct answers){.always = says};
    n_now = 0;
    for (uint32_t i = 0; i < n; i++)
        n_held += pstk__residency_holds(residency, &read) == 1;
    return n_held;
}

TEST(what_is_resident_is_handed_over_and_seldom_probed)
{
    struct pstk__residency r;
    pstk__residency_init(&r, 0);
    const uint32_t n = ask(&r, LEARNING, 0);
    CHECK(n > 0 && n < LEARNING);
    CHECK_EQ(ask(&r, 100 * PERIOD, 0), 100 * PERIOD);
    CHECK_EQ(n_now, 100);
}

TEST(what_is_cold_is_not_handed_over_and_seldom_probed)
{
    struct pstk__residency r;
    pstk__residency_init(&r, 0);
    CHECK_EQ(ask(&r, LEARNING, -EAGAIN), 0);
    CHECK_EQ(ask(&r, 100 * PERIOD, -EAGAIN), 0);
    CHECK_EQ(n_now, 100);
}

TEST(a_change_is_found_soon)
{
    struct pstk__residency r;
    pstk__residency_init(&r, 0);
    ask(&r, 100 * PERIOD, -EAGAIN);
    for (uint32_t i = 0; i < 3; i++) {
        ask(&r, 2 * LEARNING * PERIOD, 0);
        CHECK_EQ(ask(&r, LEARNING, 0), LEARNING);
        ask(&r, 100 * PERIOD, 0);
        ask(&r, PERIOD, -EAGAIN); /* one probe does */
        CHECK_EQ(ask(&r, LEARNING, -EAGAIN), 0);
        ask(&r, 100 * PERIOD, -EAGAIN);
    }
}

TEST(a_half_resident_file_is_left_to_the_backend)
{
    struct pstk__residency r;
    uint64_t draw = 1;
    pstk__residency_init(&r, 0);
    for (uint32_t i = 0; i < 5000; i++) {
        draw = draw * 6364136223846793005u + 1442695040888963407u;
        const int cold = draw >> 40 & 1;
        CHECK_EQ(ask(&r, 1, cold ? -EAGAIN : 0), 0);
    }
}

TEST(a_probe_asks_for_the_last_byte)
{
    struct pstk__residency r;
    pstk__residency_init(&r, 0);
    ask(&r, 1, 0);
    CHECK_EQ(now_offset, 1299);
    CHECK_EQ(now_size, 1);
}

TEST(a_file_that_ends_before_the_last_byte_is_left_to_the_backend)
{
    const struct pstk__read read = {.from = &file, .offset = FILE_SIZE - 10, .size = 11};
    struct pstk__residency r;
    pstk__residency_init(&r, 0);
    now = (struct answers){0};
    for (uint32_t i = 0; i < LEARNING; i++)
        CHECK_EQ(pstk__residency_holds(&r, &read), 0);
    ask(&r, LEARNING * PERIOD, 0);
    CHECK_EQ(ask(&r, 1, 0), 1);
}

TEST(a_kernel_that_cannot_say_is_asked_once)
{
    const int codes[] = {EOPNOTSUPP, EINVAL, ENOSYS, EPERM};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        for (uint32_t before = 0; before < 200; before += 199) {
            struct pstk__residency r;
            pstk__residency_init(&r, 0);
            ask(&r, before, 0);
            ask(&r, PERIOD, -codes[i]);
            CHECK_EQ(n_now, 1);
            CHECK_EQ(ask(&r, 1000, 0), 0);
            CHECK_EQ(n_now, 0);
        }
}

TEST(what_lies_in_memory_is_handed_over_without_a_probe)
{
    const struct pstk__file memory = {.store = &store, .fd = 77, .in_memory = 1};
    const struct pstk__read read = {.from = &memory, .offset = 1000, .size = 300};
    struct pstk__residency r;
    pstk__residency_init(&r, 0);
    ask(&r, 100 * PERIOD, -EAGAIN); /* another file is cold */
    now = (struct answers){.always = -EOPNOTSUPP};
    n_now = 0;
    for (uint32_t i = 0; i < 1000; i++)
        CHECK_EQ(pstk__residency_holds(&r, &read), 1);
    CHECK_EQ(n_now, 0);
    CHECK_EQ(r.refused, 0);
}

TEST(an_error_of_the_disk_is_left_to_the_backend)
{
    struct pstk__residency r;
    pstk__residency_init(&r, 0);
    CHECK_EQ(ask(&r, 1000, -EIO), 0);
    ask(&r, LEARNING * PERIOD, 0); /* it is not off */
    CHECK_EQ(ask(&r, 10, 0), 10);
}

TEST(what_workers_find_gone_is_probed_again)
{
    struct pstk__residency r;
    pstk__residency_init(&r, 0);
    ask(&r, 1000, 0);
    ask(&r, PERIOD, 0);
    CHECK_EQ(n_now, 1);
    atomic_fetch_add(&r.n_gone, 1);
    CHECK_EQ(ask(&r, 1, -EAGAIN), 0);
    ask(&r, LEARNING * PERIOD, 0);
    atomic_fetch_add(&r.n_gone, 1000000); /* counts as some of them, once */
    CHECK_EQ(ask(&r, 10, 0), 0);
    ask(&r, 2 * LEARNING * PERIOD, 0);
    CHECK_EQ(ask(&r, PERIOD, 0), PERIOD);
    CHECK_EQ(n_now, 1);
}

TEST(a_number_of_gone_reads_may_wrap_around)
{
    struct pstk__residency r;
    pstk__residency_init(&r, 0);
    r.n_seen = UINT32_MAX;
    atomic_store(&r.n_gone, UINT32_MAX);
    ask(&r, 1000, 0);
    atomic_fetch_add(&r.n_gone, 2);
    CHECK_EQ(ask(&r, 1, 0), 0); /* the share fell */
    CHECK_EQ(r.n_seen, 1);
}

TEST(nothing_is_asked_for_no_bytes_or_where_it_is_off)
{
    const struct pstk__read nothing = {.from = &file};
    struct pstk__residency r;
    pstk__residency_init(&r, 0);
    n_now = 0;
    CHECK_EQ(pstk__residency_holds(&r, &nothing), 0);
    CHECK_EQ(n_now, 0);
    pstk__residency_init(&r, 1);
    CHECK_EQ(ask(&r, 1000, 0), 0);
    CHECK_EQ(n_now, 0);
}

/* ---- what a read gives ----------------------------------------------------------------------- */

/* The loop of the thread backend. */
static void read_by_loop(struct pstk__read *read)
{
    int64_t got;
    pstk__reader_begin(read);
    do {
        const uint32_t start = pstk__reader_start(read);
        got = read_at(read->from, (uint8_t *)read->buffer + start, read->size - start,
                      read->offset + start);
    } while (!pstk__reader_result(read, (int32_t)got));
}

static int read_whole(struct pstk__read *read)
{
    const struct iovec whole = {.iov_base = read->buffer, .iov_len = read->size};
    return pstk__read_resident(read, &whole, 1);
}

/* Run a read into n_parts pieces of memory, the later ones before the earlier ones, and gather them
 * in its buffer. Returns what the read says. */
static int read_in_parts(struct pstk__read *read, uint32_t n_parts)
{
    static const uint32_t wanted[] = {1, 64, 5000, 4096};
    static uint8_t memory[40000];
    struct iovec parts[5];
    uint8_t *to = memory + sizeof memory;
    uint32_t left = read->size, n = 0;
    for (; left > 0; n++) {
        const uint32_t size = n + 1 < n_parts && wanted[n] < left ? wanted[n] : left;
        to -= size + 1;
        *to = 0xee; /* a byte that no part has */
        parts[n] = (struct iovec){.iov_base = to + 1, .iov_len = size};
        memset(to + 1, 0xee, size);
        left -= size;
    }
    const int is_resident = pstk__read_resident(read, parts, n);
    to = read->buffer;
    for (uint32_t i = 0; i < n; to += parts[i++].iov_len)
        memcpy(to, parts[i].iov_base, parts[i].iov_len);
    for (uint32_t i = 0; i < n; i++)
        if (*((uint8_t *)parts[i].iov_base - 1) != 0xee)
            read->result = -EFAULT;
    return is_resident;
}

/* A read against the loop, at aligned and odd places, within the file and past its end. 1: they
 * agree, and the read says `resident` where the file has all its bytes. */
static int agrees(const struct answers *at_once, const struct answers *plain, int resident)
{
    static const uint64_t offsets[] = {0, 4096, 1, 8191, FILE_SIZE - 5000, FILE_SIZE + 100};
    static const uint32_t sizes[] = {8192, 1, 4097, 12288};
    _Alignas(4096) static uint8_t a[16384], b[16384];
    for (uint32_t i = 0; i < 24 * 5; i++) {
        struct pstk__read x = {.from = &file,
                               .offset = offsets[i / 4 % 6],
                               .size = sizes[i % 4],
                               .buffer = a,
                               .done = 7,
                               .stalled = 1,
                               .n_refused = 999};
        struct pstk__read y = x;
        y.buffer = b;
        memset(a, 0xee, sizeof a);
        memset(b, 0xee, sizeof b);
        later = *plain;
        read_by_loop(&y);
        now = *at_once;
        later = *plain;
        n_now = 0;
        const uint32_t n_parts = 1 + i / 24;
        const int is_resident = n_parts == 1 ? read_whole(&x) : read_in_parts(&x, n_parts);
        const int whole = x.offset + x.size <= FILE_SIZE;
        const size_t n = y.result > 0 ? (size_t)y.result : 0;
        if (n_now != 1 || x.result != y.result || memcmp(a, b, n) != 0 ||
            is_resident != (resident && whole)) {
            printf("# offset %llu, size %u: %d, not %d; resident %d\n",
                   (unsigned long long)x.offset, x.size, x.result, y.result, is_resident);
            return 0;
        }
    }
    return 1;
}

#define ANSWERS(...)                                                                               \
    (struct answers)                                                                               \
    {                                                                                              \
        .list = {__VA_ARGS__}, .n = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)             \
    }

TEST(a_read_gives_what_plain_reads_give)
{
    const struct answers all = {0}, nothing = ANSWERS(-EAGAIN), interrupted = ANSWERS(-EINTR);
    const struct answers hard = ANSWERS(-EINTR, 1, -EAGAIN, -EAGAIN, 3000, -EINTR);
    CHECK(agrees(&all, &all, 1));
    CHECK(agrees(&nothing, &all, 0));
    CHECK(agrees(&interrupted, &all, 0));
    CHECK(agrees(&nothing, &hard, 0));
    CHECK(agrees(&interrupted, &hard, 0));
}

TEST(a_short_answer_is_continued)
{
    const struct answers all = {0}, hard = ANSWERS(-EINTR, 1, -EAGAIN, -EAGAIN, 3000, -EINTR);
    const int64_t sizes[] = {2, 4095, 4096, 4097, 5000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const struct answers part = ANSWERS(sizes[i]);
        struct pstk__read read = {.from = &file, .offset = 3, .size = 6000};
        uint8_t bytes[6000];
        read.buffer = bytes;
        for (int k = 0; k < 2; k++) {
            now = part;
            later = k ? hard : all;
            CHECK_EQ(read_whole(&read), 0);
            CHECK_EQ(read.result, 6000);
            CHECK(memcmp(bytes, content + 3, 6000) == 0);
        }
    }
}

/* As Linux 5.9 and 5.10 do: RWF_NOWAIT gives 0 where nothing is in the page cache. */
TEST(an_answer_of_no_bytes_is_not_yet_the_end)
{
    const struct answers all = {0}, none = ANSWERS(0);
    CHECK(agrees(&none, &all, 0));
}

TEST(a_read_of_what_lies_in_memory_is_plain)
{
    const struct pstk__file memory = {.store = &store, .fd = 77, .in_memory = 1};
    const struct answers answers[] = {{0}, ANSWERS(-EINTR, 1, 300)};
    for (int i = 0; i < 2; i++) {
        uint8_t bytes[6000];
        struct pstk__read read = {.from = &memory, .offset = 3, .size = 6000, .buffer = bytes};
        later = answers[i];
        n_now = 0;
        CHECK_EQ(read_whole(&read), 1);
        CHECK_EQ(n_now, 0);
        CHECK_EQ(read.result, 6000);
        CHECK(memcmp(bytes, content + 3, 6000) == 0);
    }
}

TEST(an_error_is_the_result)
{
    const struct answers failed = ANSWERS(-EIO), broken = {.always = -EIO}, part = ANSWERS(100);
    const struct answers all = {0}, nothing = ANSWERS(-EAGAIN);
    CHECK(agrees(&failed, &broken, 0));
    CHECK(agrees(&nothing, &broken, 0));
    CHECK(agrees(&failed, &all, 0)); /* an error that the plain read does not meet is none */
    struct pstk__read read = {.from = &file, .offset = 3, .size = 600};
    uint8_t bytes[600];
    read.buffer = bytes;
    now = part;
    later = broken;
    CHECK_EQ(read_whole(&read), 0);
    CHECK_EQ(read.result, -EIO);
    later = (struct answers){.always = -EAGAIN}; /* for ever */
    now = nothing;
    CHECK_EQ(read_whole(&read), 0);
    CHECK_EQ(read.result, -EAGAIN);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(what_is_resident_is_handed_over_and_seldom_probed),
        CASE(what_is_cold_is_not_handed_over_and_seldom_probed),
        CASE(a_change_is_found_soon),
        CASE(a_half_resident_file_is_left_to_the_backend),
        CASE(a_probe_asks_for_the_last_byte),
        CASE(a_file_that_ends_before_the_last_byte_is_left_to_the_backend),
        CASE(a_kernel_that_cannot_say_is_asked_once),
        CASE(what_lies_in_memory_is_handed_over_without_a_probe),
        CASE(an_error_of_the_disk_is_left_to_the_backend),
        CASE(what_workers_find_gone_is_probed_again),
        CASE(a_number_of_gone_reads_may_wrap_around),
        CASE(nothing_is_asked_for_no_bytes_or_where_it_is_off),
        CASE(a_read_gives_what_plain_reads_give),
        CASE(a_short_answer_is_continued),
        CASE(an_answer_of_no_bytes_is_not_yet_the_end),
        CASE(a_read_of_what_lies_in_memory_is_plain),
        CASE(an_error_is_the_result),
    };
    for (uint32_t i = 0; i < FILE_SIZE; i++)
        content[i] = (uint8_t)(i * 2654435761u >> 24);
    return RUN_CASES(cases);
}
