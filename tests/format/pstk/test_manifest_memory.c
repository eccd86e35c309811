/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of opening a data set, by its manifest alone. Whatever the manifest holds, opening takes
 * at most 4 times its bytes and 64 MiB, and time that grows no faster than they do. Each manifest
 * here ends in a right checksum, as a hostile one would. A child opens it, so that its peak is that
 * of one opening.
 */
#include "support/test.h"

#include "base/crc32c.h"

#include <fcntl.h>
#include <malloc.h>
#include <penstock/format.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Bytes of a manifest. A sanitizer looks at what the parser does, not at what it takes: an eighth
 * has thousands of each thing, too. */
#define SIZE (TEST_BUILD ? 3u << 19 : 12u << 20)
#define SLACK_KIB (64u << 10)

/* Text that grows. */
struct text {
    char *data; /* owned */
    size_t size, capacity;
};

static void add_bytes(struct text *t, const char *bytes, size_t n)
{
    if (t->size + n > t->capacity) {
        t->capacity = 2 * t->capacity + n + 4096;
        t->data = realloc(t->data, t->capacity);
        if (!t->data)
            abort();
    }
    memcpy(t->data + t->size, bytes, n);
    t->size += n;
}

static void add(struct text *t, const char *words)
{
    add_bytes(t, words, strlen(words));
}

#define HEAD "{\"format\":\"penstock\",\"version\":2,\"requires\":[],\"uses\":[],"
#define FACTS                                                                                      \
    "\"identity\":\"0123456789abcdef0123456789abcdef\",\"n_samples\":%u,\"n_shards\":%u,"          \
    "\"bytes\":%llu,\"part\":0,\"n_parts\":1,\"note\":\"\","
#define FIELDS                                                                                     \
    "\"fields\":[{\"name\":\"a\",\"kind\":\"bytes\",\"codec\":\"none\",\"level\":0,"               \
    "\"max_stored\":0,\"max_plain\":0,\"stored_bytes\":0,\"plain_bytes\":0,\"encodings\":{},"      \
    "\"codecs\":{}}],"
#define NO_NAMES "\"names\":[],"
#define NO_DICTIONARIES "\"dictionaries\":[],"

/* A shard's line, as short as may be. */
static void add_shard(struct text *t, unsigned i)
{
    char line[256];
    snprintf(line, sizeof line,
             "%s{\"file\":\"%x\",\"n_records\":1,\"bytes\":12288,\"header_crc32c\":\"00000000\","
             "\"index_crc32c\":\"00000000\",\"dictionaries\":[]}",
             i ? "," : "", i);
    add(t, line);
}

/* The keys that are no lists, of a data set of so many such shards. */
static void add_facts(struct text *t, unsigned n_shards)
{
    char facts[512];
    snprintf(facts, sizeof facts, FACTS, n_shards, n_shards, 12288ull * n_shards);
    add(t, facts);
}

/* Close the object with its checksum and write it as DIR/manifest.json. 0, or -1. */
static int finish(struct text *t, const char *dir)
{
    char tail[32], path[96];
    snprintf(tail, sizeof tail, ",\"crc32c\":\"%08x\"}\n", pstk__crc32c(0, t->data, t->size));
    add(t, tail);
    snprintf(path, sizeof path, "%s/manifest.json", dir);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    size_t done = 0;
    while (fd >= 0 && done < t->size) {
        ssize_t n = write(fd, t->data + done, t->size - done);
        if (n <= 0)
            break;
        done += (size_t)n;
    }
    int r = fd >= 0 && done == t->size ? 0 : -1;
    if (fd >= 0)
        close(fd);
    free(t->data);
    return r;
}

struct peak {
    int result; /* result of opening */
    long before_kib, peak_kib;
    double seconds; /* CPU time */
    char message[256];
};

static long status_kib(const char *key)
{
    char line[256];
    long kib = -1;
    FILE *f = fopen("/proc/self/status", "re");
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, key, strlen(key)) == 0)
            kib = strtol(line + strlen(key) + 1, NULL, 10);
    if (f)
        fclose(f);
    return kib;
}

/* In the child. */
static void open_here(const char *dir, struct peak *p)
{
    struct pstk_dataset *d = NULL;
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    int fd = open("/proc/self/clear_refs", O_WRONLY); /* the peak begins here */
    if (fd >= 0 && write(fd, "5", 1) == 1)
        p->before_kib = status_kib("VmRSS");
    if (fd >= 0)
        close(fd);
    clock_t begin = clock();
    p->result = pstk_dataset_open(&d, dir, NULL, &err);
    p->seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;
    p->peak_kib = status_kib("VmHWM");
    snprintf(p->message, sizeof p->message, "%.250s", err.message);
    pstk_dataset_close(&d);
}

static int open_in_child(const char *dir, struct peak *p)
{
    int pipes[2], status;
    if (pipe(pipes) < 0)
        return -1;
    malloc_trim(0); /* or the child would reuse what ours has freed, and take less */
    pid_t child = fork();
    if (child == 0) {
        struct peak own = {.before_kib = -1};
        open_here(dir, &own);
        _exit(write(pipes[1], &own, sizeof own) != sizeof own);
    }
    close(pipes[1]);
    ssize_t n = read(pipes[0], p, sizeof *p);
    close(pipes[0]);
    return waitpid(child, &status, 0) == child && n == sizeof *p && status == 0 ? 0 : -1;
}

/* Write the manifest that `fill` makes of some `size` bytes, open it, remove it. */
static int measure(void (*fill)(struct text *t, size_t size), size_t size, struct peak *p,
                   size_t *bytes)
{
    char dir[] = "/tmp/pstk-memory-XXXXXX", path[96];
    struct text t = {0};
    if (!mkdtemp(dir))
        return -1;
    fill(&t, size);
    *bytes = t.size + 22;
    int r = finish(&t, dir);
    if (r == 0)
        r = open_in_child(dir, p);
    snprintf(path, sizeof path, "%s/manifest.json", dir);
    unlink(path);
    rmdir(dir);
    return r;
}

/* ---- manifests ------------------------------------------------------------------------------- */

static void many_shards(struct text *t, size_t size)
{
    unsigned n = 0;
    struct text list = {0};
    for (; list.size < size; n++)
        add_shard(&list, n);
    add(t, HEAD);
    add_facts(t, n);
    add(t, FIELDS NO_NAMES NO_DICTIONARIES "\"shards\":[");
    add_bytes(t, list.data, list.size);
    add(t, "]");
    free(list.data);
}

/* A manifest of one shard whose list `names` is made of `name`. */
static void repeat_name(struct text *t, size_t size, const char *name)
{
    add(t, HEAD);
    add_facts(t, 1);
    add(t, FIELDS NO_DICTIONARIES "\"names\":[");
    while (t->size < size) {
        add(t, name);
        add(t, ",");
    }
    add(t, "\"\"],\"shards\":[");
    add_shard(t, 0);
    add(t, "]");
}

static void empty_names(struct text *t, size_t size)
{
    repeat_name(t, size, "\"\"");
}

static void short_names(struct text *t, size_t size)
{
    repeat_name(t, size, "\"a\"");
}

static void escaped_names(struct text *t, size_t size)
{
    repeat_name(t, size, "\"\\u00e9\\n\"");
}

static void name_of_many_bytes(struct text *t, size_t size)
{
    char *name = malloc(size);
    memset(name, 'x', size);
    name[0] = '"';
    name[size - 2] = '"';
    name[size - 1] = 0;
    repeat_name(t, size - 1, name);
    free(name);
}

/* A manifest whose first key holds what no manifest does. */
static void repeat_under(struct text *t, size_t size, const char *begin, const char *each,
                         const char *end)
{
    add(t, HEAD);
    add(t, begin);
    while (t->size < size)
        add(t, each);
    add(t, end);
    add_facts(t, 1);
    add(t, FIELDS NO_NAMES NO_DICTIONARIES "\"shards\":[");
    add_shard(t, 0);
    add(t, "]");
}

static void empty_lists(struct text *t, size_t size)
{
    repeat_under(t, size, "\"names\":[[", "[],", "0]],");
}

static void numbers_in_a_shard(struct text *t, size_t size)
{
    repeat_under(t, size, "\"shards\":[{\"dictionaries\":[", "0,", "0]}],");
}

static void numbers_in_a_field(struct text *t, size_t size)
{
    repeat_under(t, size, "\"fields\":[{\"encodings\":{},\"shape\":[", "1,", "1]}],");
}

static void numbers_under_a_number(struct text *t, size_t size)
{
    repeat_under(t, size, "\"part\":[", "7,", "7],");
}

static void numbers_under_a_key_of_no_version(struct text *t, size_t size)
{
    repeat_under(t, size, "\"x\":[", "7,", "7],");
}

static void keys_of_no_version(struct text *t, size_t size)
{
    char key[32];
    add(t, HEAD);
    for (unsigned i = 0; t->size < size; i++) {
        snprintf(key, sizeof key, "\"%x\":0,", i);
        add(t, key);
    }
    add_facts(t, 1);
    add(t, FIELDS NO_NAMES NO_DICTIONARIES "\"shards\":[]");
}

static void numbers_under_extra(struct text *t, size_t size)
{
    repeat_under(t, size, "\"extra\":{\"x\":[", "7,", "7]},");
}

/* A manifest of one shard whose first key is a list of columns, which begins with `begin`. */
static void begin_columns(struct text *t, const char *begin)
{
    add(t, "{\"format\":\"penstock\",\"version\":2,\"requires\":[],\"uses\":[\"columns\"],"
           "\"extra\":{");
    add(t, begin);
}

static void end_columns(struct text *t, unsigned n_shards)
{
    add(t, "},");
    add_facts(t, n_shards);
    add(t, FIELDS NO_NAMES NO_DICTIONARIES "\"shards\":[");
    for (unsigned i = 0; i < n_shards; i++)
        add_shard(t, i);
    add(t, "]");
}

static void keys_of_no_version_in_a_column(struct text *t, size_t size)
{
    char key[32];
    begin_columns(t, "\"columns\":[{");
    for (unsigned i = 0; t->size < size; i++) {
        snprintf(key, sizeof key, "\"%x\":0,", i);
        add(t, key);
    }
    add(t, "\"name\":\"c\"}]");
    end_columns(t, 1);
}

static void keys_next_to_columns(struct text *t, size_t size)
{
    begin_columns(t, "");
    while (t->size < size)
        add(t, "\"x\":0,");
    add(t, "\"columns\":[]");
    end_columns(t, 1);
}

/* As many columns as there may be, and shards, whose files have a checksum each. */
static void many_columns(struct text *t, size_t size)
{
    const unsigned n_shards = (unsigned)(size / (256 * 11 + 111));
    char line[128];
    begin_columns(t, "\"columns\":[");
    for (unsigned i = 0; i < 256; i++) {
        snprintf(line, sizeof line,
                 "%s{\"name\":\"%x\",\"dtype\":\"u8\",\"files\":\"%x\",\"header_crc32c\":[",
                 i ? "," : "", i, i);
        add(t, line);
        for (unsigned k = 0; k < n_shards; k++)
            add(t, k ? ",\"01234567\"" : "\"01234567\"");
        add(t, "]}");
    }
    add(t, "]");
    end_columns(t, n_shards);
}

static void dictionaries_that_are_not_there(struct text *t, size_t size)
{
    add(t, HEAD);
    char line[128];
    add(t,
        "\"identity\":\"0123456789abcdef0123456789abcdef\",\"n_samples\":1,\"n_shards\":1,"
        "\"bytes\":1,\"part\":0,\"n_parts\":1,\"note\":\"\"," FIELDS NO_NAMES "\"dictionaries\":[");
    for (unsigned i = 0; t->size < size; i++) {
        snprintf(line, sizeof line,
                 "%s{\"file\":\"%x\",\"field\":\"a\",\"bytes\":1,\"crc32c\":\"00000000\"}",
                 i ? "," : "", i);
        add(t, line);
    }
    add(t, "],\"shards\":[");
    add_shard(t, 0);
    add(t, "]");
}

struct manifest_kind {
    const char *name;
    void (*fill)(struct text *t, size_t size);
    int opens; /* 1: it is a right one */
};

static const struct manifest_kind kinds[] = {
    {"many shards", many_shards, 1},
    {"empty names", empty_names, 1},
    {"short names", short_names, 1},
    {"escaped names", escaped_names, 1},
    {"a name of many bytes", name_of_many_bytes, 1},
    {"empty lists", empty_lists, 0},
    {"numbers in a shard", numbers_in_a_shard, 0},
    {"numbers in a field", numbers_in_a_field, 0},
    {"numbers under a number", numbers_under_a_number, 0},
    {"numbers under a key of no version", numbers_under_a_key_of_no_version, 0},
    {"keys of no version", keys_of_no_version, 0},
    {"numbers under extra", numbers_under_extra, 1},
    {"keys of no version in a column", keys_of_no_version_in_a_column, 0},
    {"keys next to columns", keys_next_to_columns, 1},
    {"many columns", many_columns, 1},
    {"dictionaries that are not there", dictionaries_that_are_not_there, 0},
};

#define N_KINDS (sizeof kinds / sizeof *kinds)

/* ---- facts ----------------------------------------------------------------------------------- */

/* The memory that opening each kind took, for an eighth of SIZE and for SIZE. */
struct taken {
    struct peak small, large;
    size_t bytes; /* bytes of the large manifest */
    int measured;
};

static struct taken taken[N_KINDS];

static int measure_all(void)
{
    size_t bytes;
    for (size_t i = 0; i < N_KINDS; i++) {
        struct taken *k = &taken[i];
        if (measure(kinds[i].fill, SIZE / 8, &k->small, &bytes) < 0 ||
            measure(kinds[i].fill, SIZE, &k->large, &k->bytes) < 0)
            return -1;
    }
    return 0;
}

TEST(each_kind_of_manifest_is_opened_or_refused)
{
    CHECK_EQ(measure_all(), 0);
    for (size_t i = 0; i < N_KINDS; i++) {
        const struct peak *p = &taken[i].large;
        if (p->result != (kinds[i].opens ? 0 : PSTK_EBADMSG))
            printf("# %s: %d, %s\n", kinds[i].name, p->result, p->message);
        CHECK_EQ(p->result, kinds[i].opens ? 0 : PSTK_EBADMSG);
    }
}

TEST(opening_takes_at_most_four_times_the_manifest_and_64_MiB)
{
    if (TEST_BUILD)
        SKIP("sanitizers take memory of their own");
    int n_over = 0;
    for (size_t i = 0; i < N_KINDS; i++) {
        const struct peak *p = &taken[i].large;
        if (p->before_kib < 0)
            SKIP("the kernel cannot reset a peak (/proc/self/clear_refs)");
        long kib = p->peak_kib - p->before_kib, most = (long)(4 * taken[i].bytes >> 10) + SLACK_KIB;
        printf("# %s: %ld MiB, may take %ld MiB\n", kinds[i].name, kib >> 10, most >> 10);
        n_over += kib > most;
    }
    CHECK_EQ(n_over, 0);
}

/* 8 times the bytes take some 8 times as long: 24 times leaves room for a busy machine, and is far
 * from the 64 of what grows with the square. */
TEST(opening_takes_time_in_proportion_to_the_manifest)
{
    if (TEST_BUILD)
        SKIP("sanitizers take time of their own");
    for (size_t i = 0; i < N_KINDS; i++) {
        const double small = taken[i].small.seconds, large = taken[i].large.seconds;
        printf("# %s: %.3f s, and %.3f s for 8 times the bytes\n", kinds[i].name, small, large);
        CHECK(large < 24 * small + 0.05);
    }
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(each_kind_of_manifest_is_opened_or_refused),
        CASE(opening_takes_at_most_four_times_the_manifest_and_64_MiB),
        CASE(opening_takes_time_in_proportion_to_the_manifest),
    };
    return RUN_CASES(cases);
}
