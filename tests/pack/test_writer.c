/* SPDX-License-Identifier: Apache-2.0 */
#include "support/faults.h"
#include "support/fixture.h"
#include "record/schema.h"
#include "record/value.h"

#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#define SMALL_SHARD (64u << 10)
/* bytes; of the fixture's records: three entries, and 8 bytes */
#define HEAD_SIZE pstk__record_aligned(PSTK__RECORD_HEAD + 3 * PSTK__RECORD_ENTRY + 8)

TEST(bytes_do_not_depend_on_the_number_of_threads)
{
    struct fixture f;
    struct pstk_writer_settings s;
    fixture_open(&f);
    for (uint32_t n = 1; n <= 7; n += n < 3 ? 1 : 4) {
        char name[8];
        snprintf(name, sizeof name, "t%u", n);
        fixture_settings(&s, fixture_path(&f, name));
        s.n_threads = n;
        s.shard_size = 300 << 10;
        s.dictionary_size = 1024;
        CHECK_EQ(fixture_write(&s, 0, 3000, 700, &f.err), 0);
        CHECK(fixture_same(fixture_path(&f, "t1"), s.path));
    }
    CHECK_EQ(fixture_verify(fixture_path(&f, "t1")), 0);
    CHECK(fixture_count(fixture_path(&f, "t1")) > 8); /* shards, manifest, dictionary */
    fixture_close(&f);
}

static int check_field(struct pstk_dataset *d, uint64_t id, uint32_t field, const void *expected,
                       uint64_t n)
{
    void *data;
    uint64_t size;
    if (pstk_dataset_get(d, id, field, &data, &size, NULL, NULL) < 0)
        return 0;
    int same = size == n && memcmp(data, expected, n) == 0;
    pstk_free(data);
    return same;
}

TEST(added_samples_are_read_back)
{
    struct fixture f;
    struct pstk_writer_settings s;
    struct pstk_dataset *d;
    fixture_open(&f);
    fixture_settings(&s, fixture_path(&f, "d"));
    s.shard_size = SMALL_SHARD;
    CHECK_EQ(fixture_write(&s, 0, 200, 1000, &f.err), 0);
    CHECK_EQ(pstk_dataset_open(&d, s.path, NULL, &f.err), 0);
    for (uint64_t k = 0; k < 200; k++) {
        char text[256];
        uint64_t n = fixture_text(text, k);
        CHECK(check_field(d, k, 0, k % 2 ? tiny_png : tiny_jpeg,
                          k % 2 ? sizeof tiny_png : sizeof tiny_jpeg));
        CHECK(check_field(d, k, 1, text, n));
        CHECK(check_field(d, k, 3, &k, 8));
    }
    pstk_dataset_close(&d);
    fixture_close(&f);
}

TEST(shards_stay_within_their_size_and_a_larger_record_gets_its_own)
{
    struct fixture f;
    struct pstk_writer_settings s;
    struct pstk_writer *w;
    struct stat st;
    fixture_open(&f);
    fixture_settings(&s, fixture_path(&f, "d"));
    s.shard_size = SMALL_SHARD;
    CHECK_EQ(pstk_writer_open(&w, &s, &f.err), 0);
    for (uint64_t k = 0; k < 64; k++)
        CHECK_EQ(fixture_add(w, k, k == 32 ? 200000 : 3000, &f.err), 0);
    CHECK_EQ(pstk_writer_n_samples(w), 64);
    CHECK_EQ(pstk_writer_commit(&w, &f.err), 0);
    CHECK(w == NULL);
    int n_large = 0, n = 0;
    for (;; n++) {
        char path[600];
        snprintf(path, sizeof path, "%s/shard-%06d.pstk", s.path, n);
        if (stat(path, &st) < 0)
            break;
        CHECK_EQ(st.st_size % 4096, 0);
        n_large += st.st_size > SMALL_SHARD;
    }
    CHECK_EQ(n_large, 1);
    CHECK(n >= 5);
    CHECK_EQ(fixture_verify(s.path), 0);
    fixture_close(&f);
}

TEST(identity_does_not_depend_on_shards_or_dictionaries)
{
    struct fixture f;
    struct pstk_writer_settings s;
    char a[40], b[40];
    uint64_t n = 0;
    fixture_open(&f);
    fixture_settings(&s, fixture_path(&f, "a"));
    s.shard_size = SMALL_SHARD;
    s.dictionary_size = 512;
    CHECK_EQ(fixture_write(&s, 0, 500, 300, &f.err), 0);
    CHECK_EQ(fixture_identity(s.path, a, &n), 0);
    fixture_settings(&s, fixture_path(&f, "b"));
    s.dictionary_size = 1;
    CHECK_EQ(fixture_write(&s, 0, 500, 300, &f.err), 0);
    CHECK_EQ(fixture_identity(s.path, b, &n), 0);
    CHECK_STR(a, b);
    fixture_settings(&s, fixture_path(&f, "c"));
    CHECK_EQ(fixture_write(&s, 1, 501, 300, &f.err), 0);
    CHECK_EQ(fixture_identity(s.path, b, &n), 0);
    CHECK(strcmp(a, b) != 0);
    fixture_close(&f);
}

TEST(refused_values_are_not_added)
{
    struct fixture f;
    struct pstk_writer_settings s;
    struct pstk_writer *w;
    int64_t id = 5;
    fixture_open(&f);
    fixture_settings(&s, fixture_path(&f, "d"));
    CHECK_EQ(pstk_writer_open(&w, &s, &f.err), 0);
    const struct pstk_value good[4] = {{tiny_jpeg, sizeof tiny_jpeg}, {"x", 1}, {"", 0}, {&id, 8}};
    struct pstk_value v[4];
    memcpy(v, good, sizeof v);
    CHECK_EQ(pstk_writer_add(w, v, 4, &f.err), 0);
    v[0].data = "no image";
    v[0].size = 8;
    CHECK_EQ(pstk_writer_add(w, v, 4, &f.err), PSTK_EBADMSG);
    CHECK(strstr(f.err.message, "img") && strstr(f.err.message, "record 1"));
    memcpy(v, good, sizeof v);
    v[1].data = "\xc3\x28";
    v[1].size = 2;
    CHECK_EQ(pstk_writer_add(w, v, 4, &f.err), PSTK_EINVAL);
    CHECK(strstr(f.err.message, "UTF-8"));
    memcpy(v, good, sizeof v);
    v[3].size = 4;
    CHECK_EQ(pstk_writer_add(w, v, 4, &f.err), PSTK_EINVAL);
    CHECK_EQ(pstk_writer_add(w, good, 3, &f.err), PSTK_EINVAL);
    CHECK_EQ(pstk_writer_add(w, NULL, 4, &f.err), PSTK_EINVAL);
    memcpy(v, good, sizeof v);
    v[2] = (struct pstk_value){NULL, 3};
    CHECK_EQ(pstk_writer_add(w, v, 4, &f.err), PSTK_EINVAL);
    v[2] = (struct pstk_value){"x", 1ull << 32};
    CHECK_EQ(pstk_writer_add(w, v, 4, &f.err), PSTK_EFBIG);
    v[2] = (struct pstk_value){"x", 0xffffffff}; /* with the head it is over the limit */
    CHECK_EQ(pstk_writer_add(w, v, 4, &f.err), PSTK_EFBIG);
    v[2].size = PSTK__MAX_RECORD_SIZE - HEAD_SIZE - v[0].size - v[1].size; /* gaps, too */
    CHECK(v[0].size % 16 + v[1].size % 16 > 0);
    CHECK_EQ(pstk_writer_add(w, v, 4, &f.err), PSTK_EFBIG);
    CHECK(strstr(f.err.message, "raw") != NULL);
    CHECK_EQ(pstk_writer_n_samples(w), 1);
    CHECK_EQ(pstk_writer_add(w, good, 4, &f.err), 0);
    CHECK_EQ(pstk_writer_commit(&w, &f.err), 0);
    CHECK_EQ(fixture_verify(s.path), 0);
    fixture_close(&f);
}

/* Add a record whose image is RGB of 8 bits, or what `pixels` has instead. */
static int add_pixels(struct pstk_writer *w, const struct pstk_value *v, struct pstk_pixels pixels)
{
    pixels.size = sizeof pixels;
    pixels.channels = pixels.channels ? pixels.channels : 3;
    pixels.bit_depth = pixels.bit_depth ? pixels.bit_depth : 8;
    return pstk_writer_add_pixels(w, v, 4, &pixels, 1, NULL);
}

TEST(pixels_have_the_size_of_their_image)
{
    struct fixture f;
    struct pstk_writer_settings s;
    struct pstk_writer *w;
    int64_t id = 5;
    uint8_t rgb[7 * 9 * 3] = {1};
    fixture_open(&f);
    fixture_settings(&s, fixture_path(&f, "d"));
    CHECK_EQ(pstk_writer_open(&w, &s, &f.err), 0);
    const struct pstk_value v[4] = {{rgb, sizeof rgb}, {"x", 1}, {"", 0}, {&id, 8}};
    CHECK_EQ(add_pixels(w, v, (struct pstk_pixels){.height = 7, .width = 9}), 0);
    CHECK_EQ(add_pixels(w, v, (struct pstk_pixels){.height = 7, .width = 8}), PSTK_EINVAL);
    CHECK_EQ(add_pixels(w, v, (struct pstk_pixels){.height = 0, .width = 9}), PSTK_EINVAL);
    CHECK_EQ(add_pixels(w, v, (struct pstk_pixels){.height = 65536, .width = 1}), PSTK_EFBIG);
    CHECK_EQ(add_pixels(w, v, (struct pstk_pixels){.height = 65535, .width = 65535}), PSTK_EFBIG);
    CHECK_EQ(add_pixels(w, v, (struct pstk_pixels){.field = 1, .height = 7, .width = 9}),
             PSTK_EINVAL);
    CHECK_EQ(add_pixels(w, v, (struct pstk_pixels){.field = 9, .height = 7, .width = 9}),
             PSTK_EINVAL);
    CHECK_EQ(pstk_writer_commit(&w, &f.err), 0);
    CHECK_EQ(fixture_verify(s.path), 0);
    fixture_close(&f);
}

TEST(several_images_of_a_record_are_pixels_of_any_channels_and_bits)
{
    static const struct pstk_field fields[] = {{.name = "a", .kind = PSTK_FIELD_IMAGE},
                                               {.name = "b", .kind = PSTK_FIELD_IMAGE},
                                               {.name = "c", .kind = PSTK_FIELD_IMAGE}};
    static const uint32_t channels[] = {1, 3, 4};
    struct fixture f;
    struct pstk_writer_settings s;
    struct pstk_writer *w;
    struct pstk_dataset *d;
    uint8_t samples[2 * 3 * 8];
    fixture_open(&f);
    fixture_settings(&s, fixture_path(&f, "d"));
    s.fields = fields;
    s.n_fields = 3;
    for (uint32_t i = 0; i < sizeof samples; i++)
        samples[i] = (uint8_t)(i * 7);
    CHECK_EQ(pstk_writer_open(&w, &s, &f.err), 0);
    for (uint32_t bits = 8; bits <= 16; bits += 8) {
        struct pstk_pixels pixels[3];
        struct pstk_value v[3];
        for (uint32_t i = 0; i < 3; i++) {
            pixels[2 - i] = (struct pstk_pixels){sizeof pixels[0], i, 2, 3, channels[i], bits};
            v[i] = (struct pstk_value){samples, 6 * channels[i] * bits / 8};
        }
        CHECK_EQ(pstk_writer_add_pixels(w, v, 3, pixels, 3, &f.err), 0);
        CHECK_EQ(pstk_writer_add_pixels(w, v, 3, pixels, 2, &f.err), PSTK_EBADMSG); /* no file */
        pixels[1].field = 0;
        CHECK_EQ(pstk_writer_add_pixels(w, v, 3, pixels, 3, &f.err), PSTK_EINVAL);
        CHECK(strstr(f.err.message, "another field"));
        pixels[1] = (struct pstk_pixels){sizeof pixels[0], 1, 2, 3, 2, bits};
        CHECK_EQ(pstk_writer_add_pixels(w, v, 3, pixels, 3, &f.err), PSTK_EINVAL);
        CHECK(strstr(f.err.message, "channels"));
        pixels[1] = (struct pstk_pixels){sizeof pixels[0], 1, 2, 3, 3, 24 - bits};
        CHECK_EQ(pstk_writer_add_pixels(w, v, 3, pixels, 3, &f.err), PSTK_EINVAL);
        pixels[1].bit_depth = 12;
        CHECK_EQ(pstk_writer_add_pixels(w, v, 3, pixels, 3, &f.err), PSTK_EINVAL);
        CHECK(strstr(f.err.message, "bit_depth"));
        pixels[0].size = 0;
        CHECK_EQ(pstk_writer_add_pixels(w, v, 3, pixels, 3, &f.err), PSTK_EINVAL);
        CHECK_EQ(pstk_writer_add_pixels(w, v, 3, NULL, 3, &f.err), PSTK_EINVAL);
    }
    CHECK_EQ(pstk_writer_commit(&w, &f.err), 0);
    CHECK_EQ(fixture_verify(s.path), 0);
    CHECK_EQ(pstk_dataset_open(&d, s.path, NULL, &f.err), 0);
    for (uint32_t i = 0; i < 6; i++) {
        struct pstk_value_info info = {.size = sizeof info};
        uint64_t size;
        void *data;
        CHECK_EQ(pstk_dataset_get(d, i / 3, i % 3, &data, &size, &info, &f.err), 0);
        CHECK_EQ(info.encoding, PSTK_ENCODING_PIXELS);
        CHECK(info.width == 3 && info.height == 2 && info.channels == channels[i % 3]);
        CHECK_EQ(info.bit_depth, 8 + i / 3 * 8);
        CHECK_EQ(size, 6 * info.channels * info.bit_depth / 8);
        CHECK(memcmp(data, samples, size) == 0);
        pstk_free(data);
    }
    pstk_dataset_close(&d);
    fixture_close(&f);
}

/* Open with one setting wrong: EINVAL, the setting named, nothing made. */
static int refused(struct fixture *f, const struct pstk_writer_settings *s, const char *name)
{
    struct pstk_writer *w = (struct pstk_writer *)(uintptr_t)1;
    int r = pstk_writer_open(&w, s, &f->err);
    return r == PSTK_EINVAL && w == NULL && strstr(f->err.message, name) &&
           fixture_count(f->dir) == 0;
}

TEST(wrong_settings_are_named)
{
    struct fixture f;
    struct pstk_writer_settings s, t;
    fixture_open(&f);
    fixture_settings(&s, fixture_path(&f, "d"));
    CHECK(refused(&f, NULL, "settings"));
#define WRONG(member, value) (t = s, t.member = (value), refused(&f, &t, #member))
    CHECK(WRONG(path, NULL));
    CHECK(WRONG(path, ""));
    CHECK(WRONG(fields, NULL));
    CHECK(WRONG(n_fields, 0));
    CHECK(WRONG(n_fields, 65));
    CHECK(WRONG(size, 4));
    CHECK(WRONG(field_size, 8));
    CHECK(WRONG(part, 1));
    CHECK(WRONG(n_threads, 5000));
    CHECK(WRONG(shard_size, 65535));
    CHECK(WRONG(shard_size, (1ull << 44) + 1));
    CHECK(WRONG(dictionary_size, 2));
    CHECK(WRONG(dictionary_size, 1u << 30));
    CHECK(WRONG(overwrite, 2));
    CHECK(WRONG(n_names, 1));
    struct pstk_writer *w = NULL;
    CHECK_EQ(pstk_writer_open(NULL, &s, &f.err), PSTK_EINVAL);
    CHECK_EQ(pstk_writer_commit(&w, &f.err), PSTK_EINVAL);
    pstk_writer_abort(&w);
    pstk_writer_abort(NULL);
    t = s;
    t.path = fixture_path(&f, "no/such/parent");
    CHECK_EQ(pstk_writer_open(&w, &t, &f.err), PSTK_ENOENT);
    fixture_close(&f);
}

TEST(a_data_set_is_replaced_only_when_asked_and_as_a_whole)
{
    struct fixture f;
    struct pstk_writer_settings s;
    struct pstk_writer *w;
    char before[40], now[40];
    uint64_t n = 0;
    fixture_open(&f);
    fixture_settings(&s, fixture_path(&f, "d"));
    s.shard_size = SMALL_SHARD;
    CHECK_EQ(fixture_write(&s, 0, 100, 2000, &f.err), 0);
    CHECK_EQ(fixture_identity(s.path, before, &n), 0);
    fixture_put(s.path, "README", "mine");
    CHECK_EQ(pstk_writer_open(&w, &s, &f.err), PSTK_EEXIST);
    s.overwrite = 1;
    CHECK_EQ(pstk_writer_open(&w, &s, &f.err), 0);
    for (uint64_t k = 0; k < 60; k++)
        CHECK_EQ(fixture_add(w, k + 7, 3000, &f.err), 0);
    CHECK_EQ(fixture_verify(s.path), 0); /* the old one stands */
    pstk_writer_abort(&w);
    CHECK_EQ(fixture_identity(s.path, now, &n), 0);
    CHECK_STR(before, now);
    CHECK_EQ(fixture_verify(s.path), 0);
    for (int round = 1; round <= 3; round++) {
        char shard[40];
        CHECK_EQ(fixture_write(&s, 7, 10, 2000, &f.err), 0);
        CHECK_EQ(fixture_verify(s.path), 0);
        CHECK_EQ(fixture_identity(s.path, now, &n), 0);
        CHECK_EQ(n, 3);
        CHECK_EQ(fixture_count(s.path), 3 + FIXTURE_COLUMNS); /* manifest, one shard, README */
        snprintf(shard, sizeof shard, "shard-000000.g%d.pstk", round);
        CHECK(fixture_exists(s.path, shard));
    }
    CHECK(fixture_exists(s.path, "README"));
    fixture_close(&f);
}

TEST(leftovers_are_removed_and_nothing_else)
{
    struct fixture f;
    struct pstk_writer_settings s;
    struct pstk_writer *w;
    fixture_open(&f);
    fixture_settings(&s, fixture_path(&f, "d"));
    CHECK_EQ(mkdir(s.path, 0777), 0);
    fixture_put(s.path, ".tmp-shard-000000.pstk", "x");
    fixture_put(s.path, "shard-000001.pstk", "x");
    fixture_put(s.path, "txt-00000000.zdict", "x");
    fixture_put(s.path, ".tmp-writer",
                "txt-00000000.zdict\nshard-000000.pstk\nshard-000001.pstk\n../f\nshard-00");
    CHECK_EQ(pstk_writer_open(&w, &s, &f.err), 0);
    CHECK_EQ(pstk_writer_n_leftovers(w), 3);
    CHECK_EQ(fixture_add(w, 0, 10, &f.err), 0);
    CHECK_EQ(pstk_writer_commit(&w, &f.err), 0);
    CHECK_EQ(fixture_count(s.path), 2 + FIXTURE_COLUMNS);
    CHECK_EQ(fixture_verify(s.path), 0);

    /* A writer killed after its commit: who does not replace the data set still tidies up. */
    fixture_put(s.path, "shard-000007.pstk", "x");
    fixture_put(s.path, ".tmp-writer", "shard-000000.pstk\nshard-000007.pstk\n");
    CHECK_EQ(pstk_writer_open(&w, &s, &f.err), PSTK_EEXIST);
    CHECK(strstr(f.err.message, "holds a data set already") != NULL);
    CHECK_EQ(fixture_count(s.path), 2 + FIXTURE_COLUMNS);
    CHECK_EQ(fixture_verify(s.path), 0);

    /* A file that no journal lists belongs to the user, whatever its name. */
    const char *users[] = {"shard-000000.pstk", "txt-00000000.zdict", ".tmp-notes"};
    for (size_t i = 0; i < 3; i++) {
        s.path = fixture_path(&f, "u");
        CHECK_EQ(mkdir(s.path, 0777), 0);
        fixture_put(s.path, users[i], "x");
        CHECK_EQ(pstk_writer_open(&w, &s, &f.err), PSTK_EEXIST);
        CHECK(strstr(f.err.message, users[i]) != NULL);
        CHECK_EQ(fixture_count(s.path), 1);
        fixture_remove(s.path);
    }

    const char *foreign[] = {"notes.txt", ".hidden", "x.pstk.bak", "manifest.json.old"};
    for (size_t i = 0; i < 4; i++) {
        s.path = fixture_path(&f, "e");
        CHECK_EQ(mkdir(s.path, 0777), 0);
        fixture_put(s.path, foreign[i], "x");
        CHECK_EQ(pstk_writer_open(&w, &s, &f.err), PSTK_EEXIST);
        CHECK(strstr(f.err.message, foreign[i]) != NULL);
        CHECK_EQ(fixture_count(s.path), 1);
        fixture_remove(s.path);
    }
    s.path = fixture_path(&f, "g");
    CHECK_EQ(mkdir(s.path, 0777), 0);
    CHECK_EQ(mkdir(fixture_path(&f, "g/x.pstk"), 0777), 0);
    CHECK_EQ(pstk_writer_open(&w, &s, &f.err), PSTK_EEXIST);
    CHECK_EQ(fixture_count(s.path), 1);
    /* A manifest of some other program. */
    s.path = fixture_path(&f, "h");
    s.overwrite = 1;
    CHECK_EQ(mkdir(s.path, 0777), 0);
    fixture_put(s.path, "manifest.json", "{\"name\":\"app\",\"dependencies\":[\"penstock\"]}");
    CHECK_EQ(pstk_writer_open(&w, &s, &f.err), PSTK_EEXIST);
    CHECK_EQ(fixture_count(s.path), 1);
    fixture_close(&f);
}

TEST(replacing_removes_what_the_old_data_set_had_and_nothing_else)
{
    struct fixture f;
    struct pstk_writer_settings s;
    struct pstk_writer *w;
    char shard[1024], away[1100];
    fixture_open(&f);
    fixture_settings(&s, fixture_path(&f, "d"));
    CHECK_EQ(fixture_write(&s, 0, 3, 10, &f.err), 0);
    fixture_put(s.path, "mine.pstk", "x");
    fixture_put(s.path, ".tmp-notes", "x");
    s.overwrite = 1;
    CHECK_EQ(fixture_write(&s, 5, 9, 10, &f.err), 0);
    CHECK_EQ(fixture_count(s.path),
             4 + FIXTURE_COLUMNS); /* manifest, shard, mine.pstk, .tmp-notes */
    CHECK_EQ(fixture_verify(s.path), 0);

    /* A shard that is a symbolic link survives a replacement that is given up. */
    snprintf(shard, sizeof shard, "%s/shard-000000.g1.pstk", s.path);
    snprintf(away, sizeof away, "%s/moved.dat", s.path);
    CHECK_EQ(rename(shard, away), 0);
    CHECK_EQ(symlink("moved.dat", shard), 0);
    CHECK_EQ(pstk_writer_open(&w, &s, &f.err), 0);
    CHECK_EQ(fixture_add(w, 0, 10, &f.err), 0);
    pstk_writer_abort(&w);
    CHECK_EQ(fixture_verify(s.path), 0);
    fixture_close(&f);
}

TEST(two_writers_at_once_are_refused)
{
    struct fixture f;
    struct pstk_writer_settings s;
    struct pstk_writer *a, *b;
    fixture_open(&f);
    fixture_settings(&s, fixture_path(&f, "d"));
    CHECK_EQ(pstk_writer_open(&a, &s, &f.err), 0);
    CHECK_EQ(pstk_writer_open(&b, &s, &f.err), PSTK_EBUSY);
    CHECK(b == NULL);
    CHECK_EQ(fixture_add(a, 0, 10, &f.err), 0);
    CHECK_EQ(pstk_writer_commit(&a, &f.err), 0);
    CHECK_EQ(fixture_verify(s.path), 0);
    fixture_close(&f);
}

TEST(abort_leaves_nothing_behind)
{
    struct fixture f;
    struct pstk_writer_settings s;
    struct pstk_writer *w;
    fixture_open(&f);
    fixture_settings(&s, fixture_path(&f, "d"));
    s.shard_size = SMALL_SHARD;
    s.dictionary_size = 256;
    CHECK_EQ(pstk_writer_open(&w, &s, &f.err), 0);
    for (uint64_t k = 0; k < 1000; k++)
        CHECK_EQ(fixture_add(w, k, 2000, &f.err), 0);
    CHECK(fixture_count(s.path) > 3);
    pstk_writer_abort(&w);
    CHECK(w == NULL);
    CHECK_EQ(fixture_count(f.dir), 0);
    CHECK_EQ(mkdir(s.path, 0777), 0); /* a directory that was there stays */
    CHECK_EQ(pstk_writer_open(&w, &s, &f.err), 0);
    pstk_writer_abort(&w);
    CHECK_EQ(fixture_count(s.path), 0);
    fixture_close(&f);
}

TEST(a_part_of_no_records_is_whole_and_a_data_set_of_none_is_refused)
{
    struct fixture f;
    struct pstk_writer_settings s;
    fixture_open(&f);
    fixture_settings(&s, fixture_path(&f, "d"));
    CHECK_EQ(fixture_write(&s, 0, 0, 0, &f.err), PSTK_EINVAL);
    CHECK(strstr(f.err.message, "no record was added") != NULL);
    CHECK_EQ(fixture_count(f.dir), 0);
    CHECK_EQ(fixture_write(&s, 0, 5, 0, &f.err), 0);
    s.overwrite = 1;
    CHECK_EQ(fixture_write(&s, 0, 0, 0, &f.err), PSTK_EINVAL);
    CHECK_EQ(pstk_verify(s.path, 0, 1, NULL, NULL, NULL, &f.err), 0);
    s.overwrite = 0;
    s.path = fixture_path(&f, "p");
    s.part = 1;
    s.n_parts = 3;
    CHECK_EQ(fixture_write(&s, 0, 0, 0, &f.err), 0);
    CHECK_EQ(pstk_verify(s.path, 0, 1, NULL, NULL, NULL, &f.err), 0);
    fixture_close(&f);
}

static int get_stats(const char *path, uint32_t field, struct pstk_field_stats *stats)
{
    struct pstk_dataset *d;
    stats->size = sizeof *stats;
    int r = pstk_dataset_open(&d, path, NULL, NULL);
    if (r == 0)
        r = pstk_dataset_get_field(d, field, NULL, stats);
    pstk_dataset_close(&d);
    return r;
}

/* The reports of a writer about kept images. */
struct reported {
    uint64_t n, n_wrong; /* wrong: of a field, or at a place, where there is none */
    uint64_t last;       /* sample id */
};

/* tiny_jpeg with a quantisation table of its own, which makes planes larger than the file. */
static void make_kept_jpeg(uint8_t jpeg[sizeof tiny_jpeg])
{
    memcpy(jpeg, tiny_jpeg, sizeof tiny_jpeg);
    jpeg[26] ^= 1; /* in the DQT segment, whose 64 values begin at byte 25 */
}

/* Record the report of a sample. Each third record below is a PNG file. */
static void on_passthrough(void *user, uint64_t sample_id, uint32_t field, uint32_t kept)
{
    struct reported *reported = user;
    const uint32_t reason = sample_id % 3 ? PSTK_PASSTHROUGH_NO_GAIN : PSTK_PASSTHROUGH_NOT_JPEG;
    reported->n_wrong +=
        field != 1 || kept != reason || (reported->n && sample_id <= reported->last);
    reported->n++;
    reported->last = sample_id;
}

TEST(images_that_are_kept_are_reported_in_order_with_the_reason)
{
    const struct pstk_field fields[2] = {
        {.name = "a", .kind = PSTK_FIELD_IMAGE},
        {.name = "b", .kind = PSTK_FIELD_IMAGE, .codec = PSTK_CODEC_PLANES}};
    uint8_t kept[sizeof tiny_jpeg];
    const struct pstk_value jpeg = {kept, sizeof kept}, png = {tiny_png, sizeof tiny_png};
    struct fixture f;
    struct pstk_writer_settings s;
    struct pstk_writer *w;
    struct pstk_field_stats stats;
    make_kept_jpeg(kept);
    fixture_open(&f);
    for (uint32_t n_threads = 1; n_threads <= 4; n_threads += 3) {
        struct reported reported = {0};
        fixture_settings(&s, fixture_path(&f, n_threads == 1 ? "one" : "four"));
        s.fields = fields;
        s.n_fields = 2;
        s.n_threads = n_threads;
        s.on_passthrough = on_passthrough;
        s.on_passthrough_user = &reported;
        CHECK_EQ(pstk_writer_open(&w, &s, &f.err), 0);
        for (uint64_t k = 0; k < 9000; k++) {
            const struct pstk_value v[2] = {jpeg, k % 3 ? jpeg : png};
            CHECK_EQ(pstk_writer_add(w, v, 2, &f.err), 0);
        }
        CHECK_EQ(pstk_writer_commit(&w, &f.err), 0);
        CHECK_EQ(get_stats(s.path, 1, &stats), 0);
        CHECK_EQ(stats.n_codec[PSTK_CODEC_PLANES], 0);
        CHECK_EQ(reported.n, 9000);
        CHECK_EQ(reported.n_wrong, 0);
    }
    fixture_close(&f);
}

TEST(the_reason_to_keep_an_image_is_known_without_a_writer)
{
    struct pstk_error err;
    uint32_t kept = 77;
    uint8_t jpeg[sizeof tiny_jpeg];
    make_kept_jpeg(jpeg);
    pstk_error_init(&err, sizeof err);
    CHECK_EQ(pstk_image_passthrough(tiny_png, sizeof tiny_png, 0, &kept, &err), 0);
    CHECK_EQ(kept, PSTK_PASSTHROUGH_NOT_JPEG);
    CHECK_EQ(pstk_image_passthrough(jpeg, sizeof jpeg, 0, &kept, &err), 0);
    CHECK_EQ(kept, PSTK_PASSTHROUGH_NO_GAIN);
    CHECK_EQ(pstk_image_passthrough(tiny_jpeg, sizeof tiny_jpeg, 0, &kept, &err), 0);
    CHECK_EQ(kept, 0);
    CHECK_EQ(pstk_image_passthrough(tiny_jpeg, sizeof tiny_jpeg - 40, 0, &kept, &err), 0);
    CHECK_EQ(kept, PSTK_PASSTHROUGH_DAMAGED);
    CHECK_EQ(pstk_image_passthrough(NULL, 0, 0, &kept, &err), 0);
    CHECK_EQ(kept, PSTK_PASSTHROUGH_NOT_JPEG);
    CHECK_EQ(pstk_image_passthrough(tiny_png, sizeof tiny_png, 0, NULL, &err), PSTK_EINVAL);
    CHECK_EQ(pstk_image_passthrough(NULL, 9, 0, &kept, &err), PSTK_EINVAL);
}

TEST(small_values_get_a_dictionary_and_shrink_by_it)
{
    struct fixture f;
    struct pstk_writer_settings s;
    struct pstk_field_stats with, without;
    fixture_open(&f);
    fixture_settings(&s, fixture_path(&f, "a"));
    CHECK_EQ(fixture_write(&s, 0, 2000, 0, &f.err), 0);
    CHECK_EQ(fixture_count(s.path), 3 + FIXTURE_COLUMNS);
    CHECK_EQ(get_stats(s.path, 1, &with), 0);
    fixture_settings(&s, fixture_path(&f, "b"));
    s.dictionary_size = 1;
    CHECK_EQ(fixture_write(&s, 0, 2000, 0, &f.err), 0);
    CHECK_EQ(fixture_count(s.path), 2 + FIXTURE_COLUMNS);
    CHECK_EQ(get_stats(s.path, 1, &without), 0);
    CHECK_EQ(with.plain_bytes, without.plain_bytes);
    CHECK(with.stored_bytes < without.stored_bytes / 2);
    CHECK_EQ(fixture_verify(fixture_path(&f, "a")), 0);
    fixture_close(&f);
}

TEST(values_that_do_not_shrink_are_stored_uncompressed)
{
    struct fixture f;
    struct pstk_writer_settings s;
    struct pstk_writer *w;
    struct pstk_field_stats stats;
    const struct pstk_field field = {
        .name = "b", .kind = PSTK_FIELD_BYTES, .codec = PSTK_CODEC_ZSTD};
    uint8_t noise[64], zeros[64] = {0};
    fixture_open(&f);
    fixture_settings(&s, fixture_path(&f, "d"));
    s.fields = &field;
    s.n_fields = 1;
    CHECK_EQ(pstk_writer_open(&w, &s, &f.err), 0);
    for (size_t i = 0; i < sizeof noise; i++)
        noise[i] = (uint8_t)(i * i * 181 >> 3 ^ i * 77);
    CHECK_EQ(pstk_writer_add(w, &(struct pstk_value){noise, sizeof noise}, 1, &f.err), 0);
    CHECK_EQ(pstk_writer_add(w, &(struct pstk_value){zeros, sizeof zeros}, 1, &f.err), 0);
    CHECK_EQ(pstk_writer_add(w, &(struct pstk_value){NULL, 0}, 1, &f.err), 0);
    CHECK_EQ(pstk_writer_commit(&w, &f.err), 0);
    CHECK_EQ(get_stats(s.path, 0, &stats), 0);
    CHECK_EQ(stats.n_codec[PSTK_CODEC_NONE], 2);
    CHECK_EQ(stats.n_codec[PSTK_CODEC_ZSTD], 1);
    CHECK_EQ(stats.max_stored_size, 64);
    CHECK_EQ(fixture_verify(s.path), 0);
    fixture_close(&f);
}

TEST(utf8_is_what_unicode_says)
{
    const struct pstk_field field = {.kind = PSTK_FIELD_UTF8};
    const char *good[] = {"",
                          "ascii only, and long",
                          "\xc2\x80",
                          "\xdf\xbf",
                          "\xe0\xa0\x80",
                          "\xed\x9f\xbf",
                          "\xee\x80\x80",
                          "\xf0\x90\x80\x80",
                          "\xf4\x8f\xbf\xbf"};
    const char *bad[] = {"\x80",
                         "\xc0\x80",
                         "\xc1\xbf",
                         "\xc2",
                         "\xe0\x9f\xbf",
                         "\xed\xa0\x80",
                         "\xf0\x8f\xbf\xbf",
                         "\xf4\x90\x80\x80",
                         "\xf5\x80\x80\x80",
                         "\xe2\x82",
                         "12345678\xff",
                         "\xe2\x28\xa1",
                         "\xf0\x90\x80"};
    char text[160];
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        CHECK(!pstk__value_check(&field, good[i], strlen(good[i]), text));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK(pstk__value_check(&field, bad[i], strlen(bad[i]), text));
}

TEST(ndarrays_have_the_bytes_of_their_shape)
{
    struct pstk_field f = {
        .kind = PSTK_FIELD_NDARRAY, .dtype = PSTK_U16, .n_dims = 2, .shape = {3, 4}};
    uint64_t v[6] = {2, 1};
    char text[160];
    CHECK(!pstk__value_check(&f, v, 24, text));
    CHECK(pstk__value_check(&f, v, 26, text));
    f.shape[0] = 0;
    CHECK(!pstk__value_check(&f, v, 16, text));
    CHECK(!pstk__value_check(&f, v, 0, text));
    CHECK(pstk__value_check(&f, v, 12, text));
    f.shape[1] = 0;
    CHECK(!pstk__value_check(&f, v, 20, text));
    CHECK(pstk__value_check(&f, v, 22, text));
    CHECK(pstk__value_check(&f, v, 15, text));
    v[0] = v[1] = 1ull << 32; /* the product wraps to 0 */
    CHECK(pstk__value_check(&f, v, 16, text));
    v[0] = 0;
    CHECK(!pstk__value_check(&f, v, 16, text));
    f.n_dims = 3;
    f.shape[2] = 7;
    v[0] = v[1] = 1;
    v[2] = 6;
    CHECK(pstk__value_check(&f, v, 24 + 12, text));
}

/* ---- faults ---------------------------------------------------------------------------------- */

static int write_for_sweep(struct fixture *f, const char *path, uint32_t n_threads)
{
    struct pstk_writer_settings s;
    fixture_settings(&s, path);
    s.n_threads = n_threads;
    s.shard_size = SMALL_SHARD;
    s.dictionary_size = 256;
    s.overwrite = 1;
    return fixture_write(&s, 0, 70, 1500, &f->err);
}

/* Fail the nth call of a kind for n = 0, 1, ... (some of them under TSan) until none fails: each
 * time a clean error, and then the data set of before (if there was one), none, or a whole one. */
static int sweep(int kind, int native, int replace)
{
    struct fixture f;
    int ok = 1, n = 0, fds = fixture_n_fds();
    fixture_open(&f);
    const char *path = fixture_path(&f, "d");
    for (; ok; n += (int)test_stride(1, kind == FAULT_MEMORY ? 5 : 2)) {
        if (replace && write_for_sweep(&f, path, 1) < 0)
            ok = 0;
        fault_arm(kind, n, native);
        int r = write_for_sweep(&f, path, 3);
        int fired = fault_disarm();
        ok = ok && fixture_n_fds() == fds && (fired ? r < 0 && f.err.message[0] : r == 0);
        ok = ok && (replace ? fixture_verify(path) == 0 : fixture_none_or_whole(path));
        if (fired && !replace)
            ok = ok && fixture_exists(path, "manifest.json") ==
                           (strstr(f.err.message, "the data set is complete") != NULL);
        if (!ok)
            printf("# kind %d, call %d: %d (%d failed) %s; verify %lld\n", kind, n, r, fired,
                   f.err.message, (long long)fixture_verify(path));
        if (!fired)
            break;
        fixture_remove(path);
        path = fixture_path(&f, "d");
    }
    fixture_close(&f);
    return ok && n > 0;
}

TEST(any_allocation_may_fail)
{
    CHECK(sweep(FAULT_MEMORY, ENOMEM, 0));
    CHECK(sweep(FAULT_MEMORY, ENOMEM, 1));
}

TEST(any_write_may_fail)
{
    CHECK(sweep(FAULT_WRITE, ENOSPC, 0));
    CHECK(sweep(FAULT_WRITE, EIO, 1));
}

TEST(any_sync_may_fail)
{
    CHECK(sweep(FAULT_SYNC, EIO, 0));
    CHECK(sweep(FAULT_SYNC, EIO, 1));
}

TEST(any_rename_may_fail)
{
    CHECK(sweep(FAULT_RENAME, EIO, 0));
    CHECK(sweep(FAULT_RENAME, EIO, 1));
}

TEST(any_open_may_fail)
{
    CHECK(sweep(FAULT_OPEN, EMFILE, 0));
    CHECK(sweep(FAULT_OPEN, EIO, 1));
}

TEST(any_thread_may_fail_to_start)
{
    CHECK(sweep(FAULT_THREAD, EAGAIN, 0));
}

TEST(a_full_disk_is_said_and_only_abort_may_follow)
{
    struct fixture f;
    struct pstk_writer_settings s;
    struct pstk_writer *w;
    int r = 0;
    fixture_open(&f);
    fixture_settings(&s, fixture_path(&f, "d"));
    s.dictionary_size = 1;
    CHECK_EQ(pstk_writer_open(&w, &s, &f.err), 0);
    fault_arm(FAULT_WRITE, 1, ENOSPC);
    for (uint64_t k = 0; k < 1000 && r == 0; k++)
        r = fixture_add(w, k, 20000, &f.err);
    fault_disarm();
    CHECK_EQ(r, PSTK_ENOSPC);
    CHECK(strstr(f.err.message, "free some space") && strstr(f.err.message, s.path));
    CHECK_EQ(fixture_add(w, 0, 10, &f.err), PSTK_ENOSPC);
    CHECK_EQ(pstk_writer_commit(&w, &f.err), PSTK_ENOSPC);
    CHECK(w == NULL);
    CHECK_EQ(fixture_count(f.dir), 0);
    fixture_close(&f);
}

/* ---- being killed ---------------------------------------------------------------------------- */

static void write_until_killed(const char *path)
{
    struct pstk_writer_settings s;
    for (uint64_t round = 0;; round++) {
        fixture_settings(&s, path);
        s.shard_size = SMALL_SHARD;
        s.dictionary_size = 256;
        s.n_threads = 1 + (uint32_t)(round % 3);
        s.overwrite = 1;
        if (fixture_write(&s, round, round + 40, 3000, NULL) < 0)
            _exit(1);
    }
}

/* A killed process has no report of a sanitizer: such a build kills few. */
TEST(a_killed_writer_leaves_none_or_a_whole_data_set)
{
    struct fixture f;
    struct pstk_writer_settings s;
    uint32_t random = 12345;
    fixture_open(&f);
    const char *path = fixture_path(&f, "d");
    for (int round = 0; round < 60; round += (int)test_stride(5, 5)) {
        int status;
        fflush(stdout);
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0)
            write_until_killed(path);
        random = random * 1664525u + 1013904223u;
        nanosleep(&(struct timespec){0, (random >> 8) % 30000000}, NULL);
        CHECK_EQ(kill(child, SIGKILL), 0);
        CHECK_EQ(waitpid(child, &status, 0), child);
        CHECK(WIFSIGNALED(status)); /* else it met an error of its own */
        CHECK(fixture_none_or_whole(path));
        if (round % 4 == 3)
            fixture_remove(path);
    }
    fixture_settings(&s, path);
    s.overwrite = 1;
    CHECK_EQ(fixture_write(&s, 0, 5, 10, &f.err), 0);
    CHECK_EQ(fixture_count(path), 2 + FIXTURE_COLUMNS); /* nothing of the killed ones is left */
    CHECK_EQ(fixture_verify(path), 0);
    fixture_close(&f);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(bytes_do_not_depend_on_the_number_of_threads),
        CASE(added_samples_are_read_back),
        CASE(shards_stay_within_their_size_and_a_larger_record_gets_its_own),
        CASE(identity_does_not_depend_on_shards_or_dictionaries),
        CASE(refused_values_are_not_added),
        CASE(pixels_have_the_size_of_their_image),
        CASE(several_images_of_a_record_are_pixels_of_any_channels_and_bits),
        CASE(wrong_settings_are_named),
        CASE(a_data_set_is_replaced_only_when_asked_and_as_a_whole),
        CASE(leftovers_are_removed_and_nothing_else),
        CASE(replacing_removes_what_the_old_data_set_had_and_nothing_else),
        CASE(two_writers_at_once_are_refused),
        CASE(abort_leaves_nothing_behind),
        CASE(a_part_of_no_records_is_whole_and_a_data_set_of_none_is_refused),
        CASE(images_that_are_kept_are_reported_in_order_with_the_reason),
        CASE(the_reason_to_keep_an_image_is_known_without_a_writer),
        CASE(small_values_get_a_dictionary_and_shrink_by_it),
        CASE(values_that_do_not_shrink_are_stored_uncompressed),
        CASE(utf8_is_what_unicode_says),
        CASE(ndarrays_have_the_bytes_of_their_shape),
        CASE(any_allocation_may_fail),
        CASE(any_write_may_fail),
        CASE(any_sync_may_fail),
        CASE(any_rename_may_fail),
        CASE(any_open_may_fail),
        CASE(any_thread_may_fail_to_start),
        CASE(a_full_disk_is_said_and_only_abort_may_follow),
        CASE(a_killed_writer_leaves_none_or_a_whole_data_set),
    };
    return RUN_CASES(cases);
}
