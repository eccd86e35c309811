/* SPDX-License-Identifier: Apache-2.0 */
/* fixture: small data sets in a directory of their own, for the tests of writer, merge, verify. */
#ifndef PSTK_FIXTURE_H
#define PSTK_FIXTURE_H

#include "base/crc32c.h"
#include "support/test.h"
#include "support/tiny_images.h"

#include <penstock/format.h>

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

struct fixture {
    char dir[200];         /* owned: removed by fixture_close */
    struct pstk_error err; /* error of the last call */
};

#define FIXTURE_FIELDS 4

static const struct pstk_field fixture_fields[FIXTURE_FIELDS] = {
    {.name = "img", .kind = PSTK_FIELD_IMAGE},
    {.name = "txt", .kind = PSTK_FIELD_UTF8, .codec = PSTK_CODEC_ZSTD},
    {.name = "raw", .kind = PSTK_FIELD_BYTES},
    {.name = "id", .kind = PSTK_FIELD_SCALAR, .dtype = PSTK_I64},
};

#define FIXTURE_ROOM ((uint64_t)512 << 20) /* bytes that a test writes, at most, and some more */

/* Return the folder for scratch folders: TMPDIR, else /tmp. Fault tests under a sanitizer, which
 * call fsync thousands of times, have PENSTOCK_TEST_IN_MEMORY from tests/meson.build, and take
 * PENSTOCK_TEST_MEMORY, a folder in memory that scripts/test makes and removes. */
static inline const char *fixture_parent(void)
{
    const char *tmp = getenv("TMPDIR");
    const char *memory = getenv("PENSTOCK_TEST_IN_MEMORY") ? getenv("PENSTOCK_TEST_MEMORY") : NULL;
    struct statvfs st;
    if (memory && access(memory, W_OK) == 0 && statvfs(memory, &st) == 0 &&
        (uint64_t)st.f_bavail * st.f_frsize >= FIXTURE_ROOM)
        return memory;
    return tmp && strlen(tmp) < 150 ? tmp : "/tmp";
}

static inline void fixture_open(struct fixture *f)
{
    pstk_error_init(&f->err, sizeof f->err);
    snprintf(f->dir, sizeof f->dir, "%.150s/pstk-XXXXXX", fixture_parent());
    if (!mkdtemp(f->dir)) {
        perror(f->dir);
        abort();
    }
}

static inline int fixture_remove_one(const char *path, const struct stat *st, int type,
                                     struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

static inline void fixture_remove(const char *path)
{
    nftw(path, fixture_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static inline void fixture_close(struct fixture *f)
{
    fixture_remove(f->dir);
}

/* "DIR/NAME", valid until the 64th call after it. */
static inline const char *fixture_path(const struct fixture *f, const char *name)
{
    static char paths[64][300];
    static unsigned turn;
    char *p = paths[turn++ % 64];
    snprintf(p, 300, "%.200s/%.90s", f->dir, name);
    return p;
}

static inline void fixture_settings(struct pstk_writer_settings *s, const char *path)
{
    pstk_writer_settings_init(s, sizeof *s);
    s->path = path;
    s->fields = fixture_fields;
    s->n_fields = FIXTURE_FIELDS;
}

/* Text of record k: alike from record to record, so that a dictionary helps. */
static inline uint64_t fixture_text(char text[256], uint64_t k)
{
    return (uint64_t)snprintf(text, 256,
                              "{\"caption\": \"a picture of thing %llu\", \"source\": "
                              "\"https://example.org/%llu\", \"licence\": \"none of note\", "
                              "\"n\": %llu}",
                              (unsigned long long)(k % 17), (unsigned long long)k,
                              (unsigned long long)(k * 977));
}

/* Add record k, whose raw field has raw_size bytes. */
static inline int fixture_add(struct pstk_writer *w, uint64_t k, uint64_t raw_size,
                              struct pstk_error *err)
{
    char text[256];
    uint64_t n = fixture_text(text, k);
    uint8_t *raw = calloc(1, raw_size + 1);
    for (uint64_t i = 0; raw && i < raw_size; i++)
        raw[i] = (uint8_t)((k + 1) * 2654435761u >> (i % 24) ^ i);
    struct pstk_value v[FIXTURE_FIELDS] = {
        {tiny_jpeg, sizeof tiny_jpeg}, {text, n}, {raw, raw_size}, {&k, 8}};
    if (k % 2)
        v[0] = (struct pstk_value){tiny_png, sizeof tiny_png};
    int r = raw ? pstk_writer_add(w, v, FIXTURE_FIELDS, err) : PSTK_ENOMEM;
    free(raw);
    return r;
}

/* Records [first, end) with these settings. */
static inline int fixture_write(const struct pstk_writer_settings *s, uint64_t first, uint64_t end,
                                uint64_t raw_size, struct pstk_error *err)
{
    struct pstk_writer *w;
    int r = pstk_writer_open(&w, s, err);
    for (uint64_t k = first; r == 0 && k < end; k++)
        r = fixture_add(w, k, raw_size, err);
    if (r == 0)
        return pstk_writer_commit(&w, err);
    pstk_writer_abort(&w);
    return r;
}

/* Number of entries of a directory, -1 when there is none. */
/* Column files beside a shard of the fixture's records. */
#define FIXTURE_COLUMNS 6

static inline int fixture_count(const char *path)
{
    DIR *d = opendir(path);
    int n = -2; /* . and .. */
    if (!d)
        return -1;
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

static inline int fixture_exists(const char *directory, const char *name)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return access(path, F_OK) == 0;
}

static inline void fixture_put(const char *directory, const char *name, const char *text)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *f = fopen(path, "w");
    if (!f) {
        perror(path);
        abort();
    }
    fputs(text, f);
    fclose(f);
}

/* Whole file, owned; NULL when it cannot be read. */
static inline uint8_t *fixture_load(const char *path, size_t *size)
{
    struct stat st;
    int fd = open(path, O_RDONLY);
    uint8_t *bytes = NULL;
    if (fd >= 0 && fstat(fd, &st) == 0 && (bytes = malloc((size_t)st.st_size + 1)) != NULL) {
        ssize_t n = read(fd, bytes, (size_t)st.st_size);
        *size = n < 0 ? 0 : (size_t)n;
    }
    if (fd >= 0)
        close(fd);
    return bytes;
}

/* Return whether two directories have the same files with the same bytes. */
static inline int fixture_same(const char *a, const char *b)
{
    DIR *d = opendir(a);
    struct dirent *e;
    int same = d && fixture_count(a) == fixture_count(b);
    while (same && (e = readdir(d)) != NULL) {
        char x[600], y[600];
        size_t n = 0, m = 0;
        if (e->d_name[0] == '.')
            continue;
        snprintf(x, sizeof x, "%s/%s", a, e->d_name);
        snprintf(y, sizeof y, "%s/%s", b, e->d_name);
        uint8_t *p = fixture_load(x, &n), *q = fixture_load(y, &m);
        same = p && q && n == m && memcmp(p, q, n) == 0;
        free(p);
        free(q);
    }
    if (d)
        closedir(d);
    return same;
}

static inline int fixture_identity(const char *path, char identity[40], uint64_t *n_samples)
{
    struct pstk_dataset_info info = {.size = sizeof info};
    struct pstk_dataset *d;
    int r = pstk_dataset_open(&d, path, NULL, NULL);
    if (r < 0)
        return r;
    r = pstk_dataset_get_info(d, &info);
    memcpy(identity, info.identity, 40);
    *n_samples = info.n_samples;
    pstk_dataset_close(&d);
    return r;
}

/* Damaged places, images decoded; negative when it is no data set. */
static inline int64_t fixture_verify(const char *path)
{
    return pstk_verify(path, 1, 1, NULL, NULL, NULL, NULL);
}

/* After a failure: no data set, or a whole one. */
static inline int fixture_none_or_whole(const char *path)
{
    return !fixture_exists(path, "manifest.json") || fixture_verify(path) == 0;
}

/* Replace a text in the manifest by one of the same length, and mend its checksum. */
static inline int fixture_edit_manifest(const char *directory, const char *from, const char *to)
{
    char path[600], crc[9];
    size_t size = 0;
    snprintf(path, sizeof path, "%s/manifest.json", directory);
    uint8_t *bytes = fixture_load(path, &size);
    if (!bytes || size < 22 || strlen(from) != strlen(to))
        return -1;
    bytes[size] = 0;
    char *at = strstr((char *)bytes, from);
    int r = -1;
    if (at) {
        memcpy(at, to, strlen(to));
        snprintf(crc, sizeof crc, "%08x", pstk__crc32c(0, bytes, size - 22));
        memcpy(bytes + size - 22 + 11, crc, 8);
        FILE *f = fopen(path, "w");
        r = f && fwrite(bytes, 1, size, f) == size ? 0 : -1;
        if (f)
            fclose(f);
    }
    free(bytes);
    return r;
}

static inline int fixture_n_fds(void)
{
    return fixture_count("/proc/self/fd");
}

#endif
