/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data set is made here from the pure functions, not by the writer: 2 shards of 600 and 5
 * records, with a dictionary. Link with --wrap for pread, malloc, calloc, realloc, reallocarray,
 * strdup and aligned_alloc.
 */
#include "support/test.h"

#include "base/crc32c.h"
#include "dataset/dataset.h"
#include "format/pstk/manifest_json.h"
#include "format/pstk/shard.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- faults ---------------------------------------------------------------------------------- */

ssize_t __real_pread(int fd, void *buffer, size_t size, off_t offset);
ssize_t __wrap_pread(int fd, void *buffer, size_t size, off_t offset);

/* 0: none; 1: reads come in single bytes, with EINTR and EAGAIN between; 2: EIO at the nth. */
static int pread_mode;
static _Atomic int n_preads;
static int pread_left;

ssize_t __wrap_pread(int fd, void *buffer, size_t size, off_t offset)
{
    atomic_fetch_add(&n_preads, 1);
    if (pread_mode == 1) {
        pread_left++;
        errno = pread_left % 3 == 0 ? EINTR : EAGAIN;
        return pread_left % 3 ? __real_pread(fd, buffer, size < 700 ? size : 700, offset) : -1;
    }
    if (pread_mode == 2 && pread_left-- == 0) {
        errno = EIO;
        return -1;
    }
    return __real_pread(fd, buffer, size, offset);
}

/* The allocation that fails; negative: none. */
static _Atomic int allocations_left = -1;

static int fails(void)
{
    return atomic_load(&allocations_left) >= 0 && atomic_fetch_sub(&allocations_left, 1) == 0;
}

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__real_reallocarray(void *old, size_t n, size_t size);
void *__wrap_reallocarray(void *old, size_t n, size_t size);
char *__real_strdup(const char *text);
char *__wrap_strdup(const char *text);
void *__real_aligned_alloc(size_t align, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size);

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    return fails() ? NULL : __real_realloc(old, size);
}

void *__wrap_reallocarray(void *old, size_t n, size_t size)
{
    return fails() ? NULL : __real_reallocarray(old, n, size);
}

char *__wrap_strdup(const char *text)
{
    return fails() ? NULL : __real_strdup(text);
}

void *__wrap_aligned_alloc(size_t align, size_t size)
{
    return fails() ? NULL : __real_aligned_alloc(align, size);
}

/* ---- a data set ------------------------------------------------------------------------------ */

#define N_SAMPLES 605
#define N_MANY 40 /* more shards than files are kept open */

static const struct pstk_field fields[] = {
    {.name = "raw", .kind = PSTK_FIELD_BYTES},
    {.name = "cls", .kind = PSTK_FIELD_SCALAR, .dtype = PSTK_I64},
    {.name = "txt", .kind = PSTK_FIELD_UTF8, .codec = PSTK_CODEC_ZSTD},
};

struct maker {
    char dir[64];
    struct pstk__schema schema;
    struct pstk__manifest manifest;
    struct pstk__encoder *encoder;
    uint8_t dictionary[4096];
    uint64_t dictionary_size;
    uint64_t data_end; /* end of data of the last shard, like the members below */
    uint8_t *bytes;    /* while it is made */
    uint64_t gaps[2 * 600][2];
    uint32_t n_gaps;
};

/* Add the gap after the field of `size` bytes that ends at `end`. */
static void add_gap(struct maker *k, const uint8_t *end, uint64_t size)
{
    const uint64_t from = (uint64_t)(end - k->bytes);
    k->gaps[k->n_gaps][0] = from;
    k->gaps[k->n_gaps++][1] = from + pstk__record_aligned(size) - size;
}

static int is_in_gap(const struct maker *k, uint64_t at)
{
    for (uint32_t i = 0; i < k->n_gaps; i++)
        if (k->gaps[i][0] <= at && at < k->gaps[i][1])
            return 1;
    return 0;
}

static uint32_t make_text(uint64_t id, char text[256])
{
    return (uint32_t)snprintf(
        text, 256, "sample %llu flows down the penstock, gate %llu, valve %llu",
        (unsigned long long)id, (unsigned long long)(id * 7 % 13), (unsigned long long)(id * id));
}

static void write_file(const struct maker *k, const char *name, const void *bytes, size_t size)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", k->dir, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || write(fd, bytes, size) != (ssize_t)size || close(fd) < 0)
        abort();
}

static void make_dictionary(struct maker *k)
{
    static char samples[1000 * 256];
    static size_t sizes[1000];
    char name[] = "d.zdict";
    size_t at = 0;
    for (uint32_t i = 0; i < 1000; i++) {
        sizes[i] = make_text(i, samples + at);
        at += sizes[i];
    }
    int trained = pstk__dictionary_train(k->dictionary, sizeof k->dictionary, samples, sizes, 1000,
                                         &k->dictionary_size, NULL);
    if (trained < 0)
        k->dictionary_size = 0;
    const struct pstk__manifest_dictionary d = {
        .file = name,
        .field = 2,
        .bytes = k->dictionary_size,
        .crc = pstk__crc32c(0, k->dictionary, k->dictionary_size),
    };
    write_file(k, name, k->dictionary, k->dictionary_size);
    if (pstk__manifest_add_dictionary(&k->manifest, &d, NULL) < 0 ||
        pstk__encoder_open(&k->encoder, 3, k->dictionary, k->dictionary_size, NULL) < 0)
        abort();
}

/* One record into `to`; returns its size. */
static uint32_t make_record(struct maker *k, uint32_t tag, uint64_t number, uint64_t id,
                            uint8_t *to)
{
    struct pstk__field_view v[3];
    char text[256], stored[512];
    int64_t cls = (int64_t)id - 300;
    memset(v, 0, sizeof v);
    uint32_t n_raw = (uint32_t)(id % 40), n_text = make_text(id, text);
    uint8_t *raw = to + k->schema.head_size;
    for (uint32_t i = 0; i < n_raw; i++)
        raw[i] = (uint8_t)(id + i);
    v[0].stored_size = v[0].plain_size = n_raw;
    v[0].stored_crc = v[0].plain_crc = pstk__crc32c(0, raw, n_raw);
    v[1].data = (const uint8_t *)&cls;
    v[2].stored_size = (uint32_t)pstk__encoder_encode(k->encoder, text, n_text, stored, 512, NULL);
    v[2].plain_size = n_text;
    v[2].codec = PSTK_CODEC_ZSTD;
    v[2].stored_crc = pstk__crc32c(0, stored, v[2].stored_size);
    v[2].plain_crc = pstk__crc32c(0, text, n_text);
    uint8_t *txt = raw + pstk__record_aligned(n_raw);
    memcpy(txt, stored, v[2].stored_size);
    add_gap(k, raw + n_raw, n_raw);
    add_gap(k, txt + v[2].stored_size, v[2].stored_size);
    pstk__record_head(&k->schema, tag, number, v, to);
    return (uint32_t)pstk__record_size(&k->schema, v);
}

static void make_shard(struct maker *k, uint32_t s, uint64_t first_id, uint32_t n)
{
    uint32_t numbers[] = {0};
    uint8_t *bytes = calloc(1, 1 << 20);
    uint64_t offsets[601];
    struct pstk__shard_header h = {.schema_crc = k->schema.crc, .n_records = n};
    h.tag = pstk__shard_tag("0/1", s, 0);
    k->bytes = bytes;
    k->n_gaps = 0;
    uint64_t at = PSTK__HEADER_SIZE;
    for (uint32_t i = 0; i < n; i++) {
        offsets[i] = at;
        at += make_record(k, h.tag, i, first_id + i, bytes + at);
    }
    offsets[n] = h.data_end = k->data_end = at;
    pstk__shard_header_derive(&h, NULL);
    for (uint32_t p = 0; p < h.n_pages; p++) {
        uint32_t of_page = n - 509 * p < 509 ? n - 509 * p : 509;
        uint32_t crc = pstk__page_encode(bytes + h.index_offset + 4096 * p, p, h.tag, of_page,
                                         offsets + 509 * p);
        h.index_crc = pstk__shard_index_crc(h.index_crc, crc);
    }
    pstk__shard_header_encode(&h, bytes);
    char name[16];
    snprintf(name, sizeof name, "s%u.pstk", s);
    const struct pstk__manifest_shard shard = {.file = name,
                                               .n_records = n,
                                               .bytes = h.file_size,
                                               .header_crc = h.crc,
                                               .index_crc = h.index_crc,
                                               .n_dictionaries = 1,
                                               .dictionaries = numbers};
    write_file(k, name, bytes, h.file_size);
    if (pstk__manifest_add_shard(&k->manifest, &shard, NULL) < 0)
        abort();
    free(bytes);
}

static void make_manifest(struct maker *k)
{
    char *text;
    uint64_t size;
    if (pstk__manifest_print(&k->manifest, &text, &size, NULL) < 0)
        abort();
    write_file(k, "manifest.json", text, size);
    free(text);
}

/* Everything but the shards. */
static void begin(struct maker *k)
{
    static const char *const names[] = {"one", "two"};
    memset(k, 0, sizeof *k);
    snprintf(k->dir, sizeof k->dir, "/tmp/pstk-dataset-XXXXXX");
    if (!mkdtemp(k->dir))
        abort();
    pstk__schema_init(&k->schema, fields, 3, NULL);
    k->manifest.schema = k->schema;
    k->manifest.n_parts = 1;
    memset(k->manifest.identity, 'a', 32);
    for (int i = 0; i < 3; i++)
        k->manifest.stats[i] =
            (struct pstk_field_stats){.max_stored_size = 250, .max_plain_size = 250};
    pstk__manifest_set_names(&k->manifest, names, 2, NULL);
    make_dictionary(k);
}

static void make(struct maker *k)
{
    begin(k);
    make_shard(k, 0, 0, 600);
    make_shard(k, 1, 600, 5);
    make_manifest(k);
}

static void remove_file(const struct maker *k, const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", k->dir, name);
    unlink(path);
}

static void unmake(struct maker *k)
{
    remove_file(k, "manifest.json");
    remove_file(k, "d.zdict");
    for (int i = 0; i < N_MANY; i++) {
        char name[16];
        snprintf(name, sizeof name, "s%d.pstk", i);
        remove_file(k, name);
    }
    rmdir(k->dir);
    pstk__encoder_close(k->encoder);
    pstk__manifest_free(&k->manifest);
}

/* Change one byte of a file of the data set; returns what it was. */
static void flip(const struct maker *k, const char *name, uint64_t offset)
{
    char path[128];
    uint8_t b;
    snprintf(path, sizeof path, "%s/%s", k->dir, name);
    int fd = open(path, O_RDWR);
    if (fd < 0 || __real_pread(fd, &b, 1, (off_t)offset) != 1)
        abort();
    b ^= 0x20;
    if (pwrite(fd, &b, 1, (off_t)offset) != 1 || close(fd) < 0)
        abort();
}

/* Return whether sample `id` reads as it was made; err has the failure. */
static int is_right(struct pstk_dataset *d, uint64_t id, struct pstk_error *err)
{
    void *raw = NULL, *cls = NULL, *txt = NULL;
    uint64_t n_raw, n_cls, n_txt;
    char text[256];
    int right = pstk_dataset_get(d, id, 0, &raw, &n_raw, NULL, err) == 0 &&
                pstk_dataset_get(d, id, 1, &cls, &n_cls, NULL, err) == 0 &&
                pstk_dataset_get(d, id, 2, &txt, &n_txt, NULL, err) == 0;
    right = right && n_raw == id % 40 && n_cls == 8 && n_txt == make_text(id, text) &&
            memcmp(txt, text, n_txt) == 0;
    for (uint32_t i = 0; right && i < n_raw; i++)
        right = ((uint8_t *)raw)[i] == (uint8_t)(id + i);
    int64_t want = (int64_t)id - 300;
    right = right && memcmp(cls, &want, 8) == 0;
    pstk_free(raw);
    pstk_free(cls);
    pstk_free(txt);
    return right;
}

/* ---- tests ----------------------------------------------------------------------------------- */

TEST(every_field_of_every_record_reads_as_it_was_made)
{
    struct maker k;
    struct pstk_dataset *d;
    struct pstk_error err = {0};
    make(&k);
    CHECK_EQ(pstk_dataset_open(&d, k.dir, NULL, &err), 0);
    int n = 0;
    for (uint64_t id = 0; id < N_SAMPLES; id++)
        n += is_right(d, id, &err);
    if (n != N_SAMPLES)
        printf("# %s\n", err.message);
    void *data;
    uint64_t size;
    int after = pstk_dataset_get(d, N_SAMPLES, 0, &data, &size, NULL, &err);
    int no_field = pstk_dataset_get(d, 0, 3, &data, &size, NULL, &err);
    struct pstk_value_info txt = {.size = sizeof txt}, unsized = {0};
    int no_size = pstk_dataset_get(d, 0, 2, &data, &size, &unsized, &err);
    int known = pstk_dataset_get(d, 0, 2, &data, &size, &txt, &err);
    struct pstk_value_info looked = {.size = sizeof looked};
    int seen = pstk_dataset_look(d, 0, 2, &looked, &err);
    int seen_after = pstk_dataset_look(d, N_SAMPLES, 2, &looked, &err);
    int seen_unsized = pstk_dataset_look(d, 0, 2, &unsized, &err);
    int seen_nowhere = pstk_dataset_look(d, 0, 2, NULL, &err);
    pstk_free(data);
    pstk_dataset_close(&d);
    unmake(&k);
    CHECK(d == NULL);
    CHECK_EQ(seen, 0);
    CHECK(memcmp(&looked, &txt, sizeof looked) == 0);
    CHECK(seen_after == PSTK_EINVAL && seen_unsized == PSTK_EINVAL && seen_nowhere == PSTK_EINVAL);
    CHECK_EQ(n, N_SAMPLES);
    CHECK_EQ(after, PSTK_EINVAL);
    CHECK_EQ(no_field, PSTK_EINVAL);
    CHECK_EQ(no_size, PSTK_EINVAL);
    CHECK_EQ(known, 0);
    CHECK(txt.codec == PSTK_CODEC_ZSTD && txt.stored_size > 0 && txt.stored_size < size);
    CHECK(txt.encoding == PSTK_ENCODING_NONE && txt.width == 0 && txt.equivalent == 0);
}

TEST(info_fields_and_names_are_those_of_the_manifest)
{
    struct maker k;
    struct pstk_dataset *d;
    make(&k);
    CHECK_EQ(pstk_dataset_open(&d, k.dir, NULL, NULL), 0);
    struct pstk_dataset_info info = {.size = sizeof info}, little = {.size = 16};
    struct pstk_field field;
    struct pstk_field_stats stats = {.size = sizeof stats};
    CHECK_EQ(pstk_dataset_get_info(d, &info), 0);
    CHECK_EQ(info.n_samples, N_SAMPLES);
    CHECK_EQ(info.n_shards, 2);
    CHECK_EQ(info.n_fields, 3);
    CHECK_EQ(info.n_names, 2);
    CHECK_EQ(info.format_version, PSTK_FORMAT_VERSION);
    CHECK_EQ(info.bytes, k.manifest.bytes);
    CHECK_EQ(strlen(info.identity), 32);
    CHECK_EQ(pstk_dataset_get_info(d, &little), 0);
    CHECK_EQ(little.n_samples, N_SAMPLES);
    CHECK_EQ(little.n_shards, 0);
    CHECK_EQ(pstk_dataset_get_field(d, 2, &field, &stats), 0);
    CHECK_STR(field.name, "txt");
    CHECK_EQ(stats.max_plain_size, 250);
    CHECK_EQ(pstk_dataset_get_field(d, 3, &field, NULL), PSTK_EINVAL);
    CHECK_STR(pstk_dataset_name(d, 1), "two");
    CHECK(pstk_dataset_name(d, 2) == NULL);
    const struct pstk__source *s = pstk__dataset_source(d);
    CHECK_EQ(s->n_pages, 3);
    CHECK_EQ(s->limits.max_size, s->schema.head_size + 2 * 256);
    uint64_t first, n;
    s->format->range(s, 1, &first, &n);
    CHECK(first == 600 && n == 5);
    pstk_dataset_close(&d);
    unmake(&k);
}

TEST(a_whole_record_is_read_into_the_callers_buffer_or_refused)
{
    struct maker k;
    struct pstk_dataset *d;
    struct pstk__record r;
    uint8_t buffer[1024];
    uint32_t shard;
    struct pstk_error err = {0};
    make(&k);
    CHECK_EQ(pstk_dataset_open(&d, k.dir, NULL, NULL), 0);
    atomic_store(&allocations_left, 0); /* the next allocation would fail, and be seen */
    const struct pstk__room room = {buffer, sizeof buffer}, small = {buffer, 60};
    int code = pstk__dataset_read(d, 601, PSTK__ALL_FIELDS, &room, &r, &shard, NULL);
    int untouched = atomic_load(&allocations_left) == 0;
    atomic_store(&allocations_left, -1);
    CHECK_EQ(code, 0);
    CHECK(untouched);
    CHECK_EQ(shard, 1);
    CHECK_EQ(r.number, 1);
    CHECK(r.fields[0].data == buffer + r.fields[0].offset);
    for (uint32_t i = 0; i < 3; i++)
        CHECK_EQ(pstk__record_check_field(&r, i, NULL), 0);
    CHECK_EQ(pstk__dataset_read(d, 601, PSTK__ALL_FIELDS, &small, &r, &shard, &err), PSTK_EFBIG);
    CHECK_EQ(err.sample_id, 601);
    CHECK_EQ(err.record, 1);
    CHECK_EQ(pstk__dataset_read(d, N_SAMPLES, PSTK__ALL_FIELDS, &small, &r, &shard, &err),
             PSTK_EINVAL);
    pstk_dataset_close(&d);
    unmake(&k);
}

TEST(damage_anywhere_in_a_shard_is_found_by_who_reads_it_and_by_nobody_else)
{
    struct maker k;
    struct pstk_dataset *d;
    make(&k);
    uint64_t size = k.manifest.shards[1].bytes, index = size - 4096;
    for (uint64_t at = 0; at < size; at += at < 4200 || at >= index ? 13 : test_stride(7, 7)) {
        struct pstk_error err = {0};
        flip(&k, "s1.pstk", at);
        CHECK_EQ(pstk_dataset_open(&d, k.dir, NULL, NULL), 0);
        int n_wrong = 0;
        for (uint64_t id = 600; id < N_SAMPLES; id++)
            n_wrong += !is_right(d, id, &err);
        int other = is_right(d, 599, NULL);
        pstk_dataset_close(&d);
        flip(&k, "s1.pstk", at);
        CHECK(other);
        if (at < 4096 || at >= index) /* header, index page: all five */
            CHECK_EQ(n_wrong, 5);
        else /* a record, or the gap after a field or the padding, which only verify reads */
            CHECK_EQ(n_wrong, at < k.data_end && !is_in_gap(&k, at));
        CHECK(n_wrong == 0 || (err.code == PSTK_EBADMSG && strcmp(err.shard, "s1.pstk") == 0));
        CHECK(n_wrong != 1 || (err.offset <= at && at < err.offset + err.length));
    }
    unmake(&k);
}

TEST(truncated_missing_and_foreign_shards_are_named)
{
    struct maker k;
    struct pstk_dataset *d;
    struct pstk_error err = {0};
    char path[128], other[128];
    make(&k);
    CHECK_EQ(pstk_dataset_open(&d, k.dir, NULL, NULL), 0);
    snprintf(path, sizeof path, "%s/s1.pstk", k.dir);
    snprintf(other, sizeof other, "%s/s0.pstk", k.dir);
    CHECK_EQ(truncate(path, 8191), 0);
    CHECK(!is_right(d, 600, &err));
    CHECK(err.code == PSTK_EBADMSG && strstr(err.message, "s1.pstk"));
    CHECK_EQ(unlink(path), 0);
    CHECK(!is_right(d, 600, &err));
    CHECK(err.code == PSTK_ENOENT && strstr(err.message, "s1.pstk"));
    CHECK_EQ(link(other, path), 0);
    CHECK(!is_right(d, 600, &err));
    CHECK(err.code == PSTK_EBADMSG && strstr(err.message, "s1.pstk"));
    CHECK(unlink(path) == 0 && mkfifo(path, 0600) == 0);
    CHECK(!is_right(d, 600, &err)); /* and does not wait */
    pstk_dataset_close(&d);
    unmake(&k);
}

/* By another one with shards of the same names, by one with other names, by nothing. */
TEST(a_data_set_that_is_replaced_while_it_is_open_is_said_to_be)
{
    char s0[128], s1[128], path[128];
    for (int how = 0; how < 3; how++) {
        struct maker k;
        struct pstk_dataset *d;
        struct pstk_error err = {0};
        make(&k);
        snprintf(s0, sizeof s0, "%s/s0.pstk", k.dir);
        snprintf(s1, sizeof s1, "%s/s1.pstk", k.dir);
        snprintf(path, sizeof path, "%s/manifest.json", k.dir);
        CHECK_EQ(pstk_dataset_open(&d, k.dir, NULL, NULL), 0);
        CHECK(is_right(d, 0, &err));
        CHECK_EQ(how == 0 ? rename(s0, s1) : unlink(s1), 0);
        if (how == 2)
            CHECK_EQ(unlink(path), 0);
        else
            write_file(&k, "manifest.json", "{}\n", 3);
        CHECK(is_right(d, 1, &err)); /* its shard is held open */
        CHECK(!is_right(d, 600, &err));
        CHECK(err.code == PSTK_ENOENT && strstr(err.message, "open it again"));
        CHECK(err.sample_id == 600 && strcmp(err.shard, "s1.pstk") == 0);
        pstk_dataset_close(&d);
        unmake(&k);
    }
}

TEST(a_relative_path_that_no_longer_leads_there_is_said_to_be_one)
{
    struct maker k;
    struct pstk_dataset *d;
    struct pstk_error err = {0};
    char before[1024];
    make(&k);
    CHECK(getcwd(before, sizeof before) && chdir("/") == 0);
    CHECK_EQ(pstk_dataset_open(&d, k.dir + 1, NULL, NULL), 0);
    CHECK_EQ(chdir(k.dir), 0);
    CHECK(!is_right(d, 600, &err));
    CHECK(err.code == PSTK_ENOENT && strstr(err.message, "relative path"));
    CHECK_EQ(chdir("/"), 0);
    CHECK(is_right(d, 600, &err));
    CHECK_EQ(chdir(before), 0);
    pstk_dataset_close(&d);
    unmake(&k);
}

TEST(a_shard_that_shrinks_after_it_was_checked_is_damage)
{
    struct maker k;
    struct pstk_dataset *d;
    struct pstk_error err = {0};
    char path[128];
    make(&k);
    CHECK_EQ(pstk_dataset_open(&d, k.dir, NULL, NULL), 0);
    CHECK(is_right(d, 600, &err));
    snprintf(path, sizeof path, "%s/s1.pstk", k.dir);
    CHECK_EQ(truncate(path, 8200), 0);
    CHECK(!is_right(d, 600, &err));
    CHECK(err.code == PSTK_EBADMSG && strstr(err.message, "ends at byte 8200"));
    pstk_dataset_close(&d);
    unmake(&k);
}

TEST(a_damaged_or_missing_dictionary_is_found_at_open)
{
    struct maker k;
    struct pstk_dataset *d;
    struct pstk_error err = {0};
    make(&k);
    flip(&k, "d.zdict", 100);
    CHECK_EQ(pstk_dataset_open(&d, k.dir, NULL, &err), PSTK_EBADMSG);
    CHECK(strstr(err.message, "d.zdict"));
    CHECK(d == NULL);
    write_file(&k, "d.zdict", "short", 5);
    CHECK_EQ(pstk_dataset_open(&d, k.dir, NULL, &err), PSTK_EBADMSG);
    char path[128];
    snprintf(path, sizeof path, "%s/d.zdict", k.dir);
    CHECK_EQ(unlink(path), 0);
    CHECK_EQ(pstk_dataset_open(&d, k.dir, NULL, &err), PSTK_ENOENT);
    CHECK(strstr(err.message, "d.zdict"));
    unmake(&k);
}

TEST(opening_a_path_that_is_no_data_set_says_what_it_is)
{
    struct maker k;
    struct pstk_dataset *d;
    struct pstk_error err = {0};
    char path[128];
    make(&k);
    snprintf(path, sizeof path, "%s/nothing", k.dir);
    CHECK_EQ(pstk_dataset_open(&d, path, NULL, &err), PSTK_ENOENT);
    CHECK(strstr(err.message, "no such file or directory") && strstr(err.message, path));
    snprintf(path, sizeof path, "%s/s0.pstk", k.dir);
    CHECK_EQ(pstk_dataset_open(&d, path, NULL, &err), PSTK_ENOTSUP);
    CHECK(strstr(err.message, "one shard of a data set"));
    snprintf(path, sizeof path, "%s/d.zdict", k.dir);
    CHECK_EQ(pstk_dataset_open(&d, path, NULL, &err), PSTK_ENOTSUP);
    CHECK_EQ(pstk_dataset_open(&d, "", NULL, &err), PSTK_EINVAL);
    CHECK_EQ(pstk_dataset_open(&d, NULL, NULL, &err), PSTK_EINVAL);
    snprintf(path, sizeof path, "%s/manifest.json", k.dir);
    CHECK_EQ(unlink(path), 0);
    CHECK_EQ(pstk_dataset_open(&d, k.dir, NULL, &err), PSTK_ENOENT);
    CHECK(strstr(err.message, "is not a data set: it has s0.pstk, but no manifest.json") &&
          strstr(err.message, "; must be a directory with a manifest.json"));
    unmake(&k);
}

/* The reports of pstk_dataset_check. */
struct reports {
    int n;
    int stops; /* 1: the first one ends the check */
    char shard[sizeof((struct pstk_error *)0)->shard];
};

static int report(void *user, const struct pstk_error *bad)
{
    struct reports *reports = user;
    reports->n++;
    snprintf(reports->shard, sizeof reports->shard, "%s", bad->shard);
    return reports->stops;
}

TEST(check_finds_files_that_are_missing_or_of_another_size_and_reads_no_more)
{
    struct maker k;
    struct pstk_dataset *d;
    struct pstk_error err = {0};
    struct reports none = {0}, missing = {0}, longer = {0}, stopped = {.stops = 1};
    char path[600], away[640];
    make(&k);
    CHECK_EQ(pstk_dataset_open(&d, k.dir, NULL, &err), 0);
    const int64_t whole = pstk_dataset_check(d, report, &none, &err);
    snprintf(path, sizeof path, "%s/%s", k.dir, "s1.pstk");
    snprintf(away, sizeof away, "%s.away", path);
    CHECK_EQ(rename(path, away), 0);
    const int64_t n_missing = pstk_dataset_check(d, report, &missing, &err);
    const int64_t n_unheard = pstk_dataset_check(d, NULL, NULL, &err);
    const int64_t ended = pstk_dataset_check(d, report, &stopped, &err);
    CHECK_EQ(rename(away, path), 0);
    FILE *file = fopen(path, "ab");
    CHECK(file && fputc(0, file) == 0 && fclose(file) == 0);
    const int64_t n_longer = pstk_dataset_check(d, report, &longer, &err);
    pstk_dataset_close(&d);
    unmake(&k);
    CHECK(whole == 0 && none.n == 0);
    CHECK(n_missing == 1 && missing.n == 1);
    CHECK_STR(missing.shard, "s1.pstk");
    CHECK_EQ(n_unheard, 1);
    CHECK(ended == PSTK_ECANCELED && stopped.n == 1);
    CHECK(n_longer == 1 && longer.n == 1);
    CHECK_EQ(pstk_dataset_check(NULL, NULL, NULL, &err), PSTK_EINVAL);
}

TEST(an_empty_data_set_is_no_data)
{
    struct maker k;
    struct pstk_dataset *d;
    make(&k);
    struct pstk__manifest whole = k.manifest;
    k.manifest.n_shards = 0;
    k.manifest.n_samples = 0;
    k.manifest.bytes = k.dictionary_size;
    make_manifest(&k);
    k.manifest = whole;
    CHECK_EQ(pstk_dataset_open(&d, k.dir, NULL, NULL), PSTK_ENODATA);
    unmake(&k);
}

TEST(short_reads_and_interrupted_ones_are_continued)
{
    struct maker k;
    struct pstk_dataset *d;
    make(&k);
    pread_mode = 1;
    int opened = pstk_dataset_open(&d, k.dir, NULL, NULL);
    int right = opened == 0 && is_right(d, 0, NULL) && is_right(d, 604, NULL);
    pread_mode = 0;
    pstk_dataset_close(&d);
    unmake(&k);
    CHECK(right);
}

TEST(an_input_error_at_any_read_is_reported_and_not_remembered)
{
    struct maker k;
    make(&k);
    int n = 0, done = 0;
    for (; n < 100 && !done; n++) {
        struct pstk_dataset *d;
        struct pstk_error err = {0};
        pread_left = n;
        pread_mode = 2;
        int r = pstk_dataset_open(&d, k.dir, NULL, &err);
        int right = r == 0 && is_right(d, 602, &err);
        done = pread_left >= 0; /* every read went well */
        pread_mode = 0;
        CHECK(done == right);
        CHECK(done || (err.code == PSTK_EIO && err.native == EIO));
        CHECK(!d || is_right(d, 602, NULL));
        pstk_dataset_close(&d);
    }
    unmake(&k);
    CHECK(done && n > 8);
}

TEST(any_failed_allocation_is_reported_and_nothing_leaks)
{
    struct maker k;
    make(&k);
    int n = 0, right = 0;
    for (; n < 300 && !right; n++) {
        struct pstk_dataset *d;
        struct pstk_error err = {0};
        atomic_store(&allocations_left, n);
        int r = pstk_dataset_open(&d, k.dir, NULL, &err);
        right = r == 0 && is_right(d, 602, &err);
        atomic_store(&allocations_left, -1);
        if (!right)
            CHECK_EQ(err.code, PSTK_ENOMEM);
        pstk_dataset_close(&d);
    }
    unmake(&k);
    CHECK(right && n > 15);
}

TEST(an_intact_header_that_the_manifest_does_not_name_is_refused)
{
    struct maker k;
    struct pstk_dataset *d;
    struct pstk__shard_header h;
    struct pstk_error err = {0};
    uint8_t bytes[4096];
    char path[128];
    make(&k);
    snprintf(path, sizeof path, "%s/s1.pstk", k.dir);
    int fd = open(path, O_RDWR);
    CHECK(fd >= 0 && __real_pread(fd, bytes, 4096, 0) == 4096);
    CHECK_EQ(pstk__shard_header_check(&h, bytes, "s1.pstk", NULL), 0);
    h.identity[0] = 1;
    pstk__shard_header_encode(&h, bytes);
    CHECK(pwrite(fd, bytes, 4096, 0) == 4096 && close(fd) == 0);
    CHECK_EQ(pstk_dataset_open(&d, k.dir, NULL, NULL), 0);
    CHECK(!is_right(d, 600, &err));
    CHECK(err.code == PSTK_EBADMSG && strstr(err.message, "checksum of its header"));
    pstk_dataset_close(&d);
    unmake(&k);
}

TEST(files_are_kept_open_and_replaced_by_those_used_later)
{
    struct maker k;
    struct pstk_dataset *d;
    int preads[3], n_right = 0;
    void *data;
    uint64_t size;
    begin(&k);
    for (uint32_t i = 0; i < N_MANY; i++)
        make_shard(&k, i, i, 1);
    make_manifest(&k);
    CHECK_EQ(pstk_dataset_open(&d, k.dir, NULL, NULL), 0);
    for (uint64_t id = 0; id < N_MANY; id++)
        n_right += is_right(d, id, NULL);
    const uint64_t ids[3] = {N_MANY - 1, 0, 0}; /* kept; replaced long ago; kept again */
    for (int i = 0; i < 3; i++) {
        atomic_store(&n_preads, 0);
        CHECK_EQ(pstk_dataset_get(d, ids[i], 1, &data, &size, NULL, NULL), 0);
        pstk_free(data);
        preads[i] = atomic_load(&n_preads);
    }
    pstk_dataset_close(&d);
    unmake(&k);
    CHECK_EQ(n_right, N_MANY);
    CHECK_EQ(preads[0], 2); /* index page, head */
    CHECK_EQ(preads[1], 3); /* and the shard's header */
    CHECK_EQ(preads[2], 2);
}

static void *read_all(void *user)
{
    intptr_t n_wrong = 0;
    for (int i = 0; i < 2000; i++)
        n_wrong += !is_right(user, (uint64_t)i * 7919 % N_SAMPLES, NULL);
    return (void *)n_wrong;
}

TEST(threads_read_at_once)
{
    struct maker k;
    struct pstk_dataset *d;
    pthread_t threads[4];
    intptr_t n_wrong = 0;
    make(&k);
    CHECK_EQ(pstk_dataset_open(&d, k.dir, NULL, NULL), 0);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, read_all, d), 0);
    for (int i = 0; i < 4; i++) {
        void *result;
        CHECK_EQ(pthread_join(threads[i], &result), 0);
        n_wrong += (intptr_t)result;
    }
    pstk_dataset_close(&d);
    unmake(&k);
    CHECK_EQ(n_wrong, 0);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(every_field_of_every_record_reads_as_it_was_made),
        CASE(info_fields_and_names_are_those_of_the_manifest),
        CASE(a_whole_record_is_read_into_the_callers_buffer_or_refused),
        CASE(damage_anywhere_in_a_shard_is_found_by_who_reads_it_and_by_nobody_else),
        CASE(truncated_missing_and_foreign_shards_are_named),
        CASE(a_data_set_that_is_replaced_while_it_is_open_is_said_to_be),
        CASE(a_relative_path_that_no_longer_leads_there_is_said_to_be_one),
        CASE(a_shard_that_shrinks_after_it_was_checked_is_damage),
        CASE(a_damaged_or_missing_dictionary_is_found_at_open),
        CASE(opening_a_path_that_is_no_data_set_says_what_it_is),
        CASE(check_finds_files_that_are_missing_or_of_another_size_and_reads_no_more),
        CASE(an_empty_data_set_is_no_data),
        CASE(short_reads_and_interrupted_ones_are_continued),
        CASE(an_input_error_at_any_read_is_reported_and_not_remembered),
        CASE(any_failed_allocation_is_reported_and_nothing_leaks),
        CASE(an_intact_header_that_the_manifest_does_not_name_is_refused),
        CASE(files_are_kept_open_and_replaced_by_those_used_later),
        CASE(threads_read_at_once),
    };
    return RUN_CASES(cases);
}
