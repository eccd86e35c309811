/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each system call of io_uring denied in turn, as sandboxes do it: before the reader is opened, and
 * while it reads. A child installs the seccomp filter, as none can be taken back.
 */
#include "support/oracle.h"
#include "reader/reader.h"
#include "support/local_file.h"
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#define SKIPPED 77
#define DEPTH 16u
#define N_MORE 64u
#define READ_SIZE 5000u
#define ROOM 8192u /* bytes of a buffer */
#define FILE_SIZE 300007u

/* Let all threads' calls of `number` fail from now on. 0, or -1: no seccomp here. */
static int deny(int number, int native)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)native),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return -1;
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0
               ? 0
               : -1;
}

static const int natives[] = {EPERM, EACCES, ENOSYS};
static const int calls[] = {SYS_io_uring_setup, SYS_io_uring_enter, SYS_io_uring_register};

/* The call that the current child denies, and its errno. */
static int denied_call, denied_native;

/* Run `body` in a child: its result, 0..255, or -1. */
static int in_child(int (*body)(void))
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0)
        _exit(body());
    int status;
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
        return -1;
    return WEXITSTATUS(status);
}

/* `body` with each call denied by each errno; the first result that is not 0. */
static int deny_each(int (*body)(void), size_t first_call)
{
    for (size_t c = first_call; c < sizeof calls / sizeof *calls; c++)
        for (size_t n = 0; n < sizeof natives / sizeof *natives; n++) {
            denied_call = calls[c];
            denied_native = natives[n];
            int r = in_child(body);
            if (r && r != SKIPPED)
                printf("# call %zu denied with errno %d: step %d\n", c, denied_native, r);
            if (r)
                return r;
        }
    return 0;
}

static int has_uring(void)
{
    struct pstk_machine m = {.size = sizeof m};
    pstk__reader_probe(&m);
    return m.io_uring == 1;
}

/* ---- reads ----------------------------------------------------------------------------------- */

static int file = -1;
static uint8_t *buffers; /* (DEPTH + N_MORE) * ROOM */

static uint8_t byte_at(uint64_t offset)
{
    return (uint8_t)((offset * 2654435761u) >> 13 ^ offset >> 7);
}

static int make_file(void)
{
    static uint8_t data[FILE_SIZE];
    char path[] = "/tmp/pstk-denied-XXXXXX";
    for (uint32_t i = 0; i < FILE_SIZE; i++)
        data[i] = byte_at(i);
    file = mkostemp(path, O_CLOEXEC);
    buffers = mmap(NULL, (DEPTH + N_MORE) * ROOM, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return file >= 0 && unlink(path) == 0 && buffers != MAP_FAILED &&
                   write(file, data, FILE_SIZE) == FILE_SIZE
               ? 0
               : -1;
}

static void fill(struct pstk__read *r, uint32_t place, uint64_t offset)
{
    *r = (struct pstk__read){.from = local_file(file),
                             .file = 0,
                             .offset = offset,
                             .buffer = buffers + (size_t)place * ROOM,
                             .size = READ_SIZE,
                             .fixed = 1};
    memset(r->buffer, 0, READ_SIZE);
}

static int is_right(const struct pstk__read *r)
{
    const uint8_t *data = r->buffer;
    for (uint32_t i = 0; i < READ_SIZE; i++)
        if (data[i] != byte_at(r->offset + i))
            return 0;
    return r->result == (int32_t)READ_SIZE;
}

static struct pstk__reader *open_reader(uint32_t kind, uint32_t *fallbacks, struct pstk_error *err)
{
    const struct pstk__reader_config c = {.kind = kind,
                                          .depth = DEPTH,
                                          .n_files = 2,
                                          .buffers = buffers,
                                          .buffers_size = (DEPTH + N_MORE) * ROOM};
    struct pstk__reader *reader;
    *fallbacks = 0;
    pstk_error_init(err, sizeof *err);
    if (pstk__reader_open(&reader, &c, fallbacks, err) < 0)
        return NULL;
    reader->ops->set_file(reader, 0, file);
    return reader;
}

/* One read after another into places of their own from `first` on: 1 when all are right. */
static int reads_well(struct pstk__reader *reader, uint32_t first)
{
    for (uint32_t i = 0; i < N_MORE; i++) {
        struct pstk__read read, *done = NULL;
        fill(&read, first + i, i * 4001);
        reader->ops->queue(reader, &read);
        if (reader->ops->submit(reader) < 0 || reader->ops->reap(reader, &done, 1, 1) != 1 ||
            done != &read || !is_right(&read))
            return 0;
    }
    return 1;
}

/* ---- before open ----------------------------------------------------------------------------- */

static int child_denied_at_open(void)
{
    const int whole = denied_call != SYS_io_uring_register;
    const uint32_t expected = whole ? PSTK_FALLBACK_NO_IO_URING
                                    : PSTK_FALLBACK_NO_FIXED_FILES | PSTK_FALLBACK_NO_FIXED_BUFFERS;
    struct pstk_machine m = {.size = sizeof m};
    struct pstk_error err;
    uint32_t fallbacks;
    if (deny(denied_call, denied_native) < 0)
        return SKIPPED;
    struct pstk__reader *reader = open_reader(PSTK_READER_AUTO, &fallbacks, &err);
    if (!reader || err.code)
        return 1;
    if (reader->ops->kind != (whole ? PSTK_READER_THREADS : PSTK_READER_IO_URING))
        return 2;
    if ((fallbacks & ~(uint32_t)PSTK_FALLBACK_NO_SINGLE_ISSUER) != expected)
        return 3;
    if (!reads_well(reader, 0))
        return 4;
    reader->ops->close(reader);
    if (pstk_get_machine(NULL, &m, &err) < 0)
        return 5;
    if (m.io_uring != (whole ? -denied_native : 1) || m.fixed_buffers != -denied_native)
        return 6;
    if (whole && m.single_issuer)
        return 7;
    reader = open_reader(PSTK_READER_IO_URING, &fallbacks, &err);
    if (whole ? reader || err.code != PSTK_ENOTSUP || err.native != denied_native : !reader)
        return 8;
    if (reader)
        reader->ops->close(reader);
    return 0;
}

TEST(each_call_that_is_denied_at_open_is_stepped_down_from_and_reported)
{
    if (!has_uring())
        SKIP("io_uring is not permitted here");
    int r = deny_each(child_denied_at_open, 0);
    if (r == SKIPPED)
        SKIP("no seccomp filter can be installed here");
    CHECK_EQ(r, 0);
}

/* ---- while reading --------------------------------------------------------------------------- */

/* Half of the reads are in the kernel and half are not when the calls begin to fail. */
static int child_denied_while_reading(void)
{
    struct pstk__read reads[DEPTH], *done[DEPTH];
    struct pstk_error err;
    uint32_t fallbacks, n = 0, n_right = 0;
    struct pstk__reader *reader = open_reader(PSTK_READER_IO_URING, &fallbacks, &err);
    if (!reader || !reads_well(reader, DEPTH))
        return 1;
    for (uint32_t i = 0; i < DEPTH; i++) {
        fill(&reads[i], i, i * 10007);
        reader->ops->queue(reader, &reads[i]);
        if (i == DEPTH / 2 && reader->ops->submit(reader) < 0)
            return 2;
    }
    if (deny(denied_call, denied_native) < 0)
        return SKIPPED;
    if (reader->ops->submit(reader) < 0)
        return 3;
    while (n < DEPTH) {
        int got = reader->ops->reap(reader, done, DEPTH, 1);
        if (got <= 0)
            return 4;
        for (int i = 0; i < got; i++) {
            n_right += (uint32_t)is_right(done[i]);
            if (!is_right(done[i]) && done[i]->result >= 0)
                return 5;
        }
        n += (uint32_t)got;
    }
    const int lost = denied_call == SYS_io_uring_enter;
    if (n != DEPTH || (!lost && n_right != DEPTH))
        return 6;
    if (reader->fallbacks != (lost ? PSTK_FALLBACK_NO_IO_URING : 0u))
        return 7;
    if ((reader->n_lost > 0) != lost)
        return 12;
    /* Memory that the kernel may still write to is not read into any more; all other is. */
    if (!reads_well(reader, DEPTH))
        return 8;
    reader->ops->set_file(reader, 0, file);
    if (!lost && reader->fallbacks != PSTK_FALLBACK_NO_FIXED_FILES)
        return 9;
    if (!reads_well(reader, DEPTH))
        return 9;
    struct pstk__read again, *answer;
    fill(&again, 0, 17);
    reader->ops->queue(reader, &again);
    if (reader->ops->submit(reader) < 0 || reader->ops->reap(reader, &answer, 1, 1) != 1)
        return 10;
    if (again.result >= 0 && !is_right(&again))
        return 11;
    reader->ops->close(reader);
    return 0;
}

TEST(each_call_that_is_denied_while_reading_is_stepped_down_from)
{
    if (!has_uring())
        SKIP("io_uring is not permitted here");
    int r = deny_each(child_denied_while_reading, 1);
    if (r == SKIPPED)
        SKIP("no seccomp filter can be installed here");
    CHECK_EQ(r, 0);
}

/* ---- under a loader -------------------------------------------------------------------------- */

#define N_SAMPLES 400u

static char path[4200];

static const struct pstk_output outputs[] = {
    {.field = "cls", .kind = PSTK_OUTPUT_SCALAR},
    {.field = "text", .kind = PSTK_OUTPUT_BYTES},
};

static struct pstk_settings settings(void)
{
    struct pstk_settings s;
    pstk_settings_init(&s, sizeof s);
    s.path = path;
    s.outputs = outputs;
    s.n_outputs = 2;
    s.batch_size = 7;
    s.n_threads = 3;
    s.seed = 5;
    return s;
}

/* The page cache holds nothing, as far as a loader sees: it reads all through the reader. */
ssize_t __wrap_preadv2(int fd, const struct iovec *parts, int n, off_t offset, int flags);
ssize_t __wrap_preadv2(int fd, const struct iovec *parts, int n, off_t offset, int flags)
{
    (void)fd, (void)parts, (void)n, (void)offset, (void)flags;
    errno = EAGAIN;
    return -1;
}
ssize_t __wrap_preadv64v2(int fd, const struct iovec *parts, int n, off_t offset, int flags)
    __attribute__((alias("__wrap_preadv2")));

static int child_denied_under_a_loader(void)
{
    const int lost = denied_call == SYS_io_uring_enter;
    struct pstk_settings s = settings();
    struct pstk_loader *loader;
    struct pstk_batch *b;
    struct pstk_error err;
    struct pstk_stats st = {.size = sizeof st};
    struct oracle o;
    uint32_t n = 0, n_wrong = 0;
    pstk_error_init(&err, sizeof err);
    if (oracle_open(&o, &s, &err) < 0 || pstk_open(&loader, &s, &err) < 0)
        return 1;
    const uint64_t n_expected = 3 * pstk_n_batches(loader);
    for (uint64_t epoch = 0; epoch < 3; epoch++) {
        pstk_seek(loader, epoch, 0, &err);
        int r;
        while ((r = pstk_next(loader, &b, NULL, 20000000000, &err)) == 1) {
            if (n++ == 4 && deny(denied_call, denied_native) < 0)
                return SKIPPED;
            n_wrong += !oracle_equal(&o, b);
            pstk_release(&b, NULL);
        }
        if (r < 0)
            return printf("# %s\n", err.message), 2;
    }
    pstk_get_stats(loader, &st);
    pstk_close(&loader);
    oracle_close(&o);
    if (n != n_expected || n_wrong)
        return printf("# %u batches, %u wrong\n", n, n_wrong), 3;
    /* All files are open by then, so that nothing more is registered. */
    if (!(st.fallbacks & PSTK_FALLBACK_NO_IO_URING) != !lost)
        return 4;
    return st.reader == (lost ? PSTK_READER_THREADS : PSTK_READER_IO_URING) ? 0 : 5;
}

TEST(a_loader_goes_on_when_a_call_is_denied_and_reports_it)
{
    if (!has_uring())
        SKIP("io_uring is not permitted here");
    sample_set_path(path, sizeof path);
    sample_set_make(path, N_SAMPLES, 65536, PSTK_CODEC_NONE);
    int r = deny_each(child_denied_under_a_loader, 1);
    sample_set_remove(path);
    if (r == SKIPPED)
        SKIP("no seccomp filter can be installed here");
    CHECK_EQ(r, 0);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(each_call_that_is_denied_at_open_is_stepped_down_from_and_reported),
        CASE(each_call_that_is_denied_while_reading_is_stepped_down_from),
        CASE(a_loader_goes_on_when_a_call_is_denied_and_reports_it),
    };
    if (make_file() < 0)
        return perror("file"), 1;
    return RUN_CASES(cases);
}
