/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data sets whose every checksum is right and whose sizes are a trap: small on disk, huge by what
 * they say. Each way of reading one refuses it, or takes little memory. A child reads, so that its
 * peak is that of one reading.
 */
#include "support/test.h"

#include "base/crc32c.h"
#include "support/fixture.h"
#include "support/merging.h"
#include "format/pstk/manifest_json.h"
#include "image/image.h"
#include "record/record.h"
#include "format/pstk/shard.h"

#include <malloc.h>
#include <dirent.h>
#include <penstock/penstock.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#define MAX_KIB (96l << 10) /* most that reading may take: workers, slots, decoders */
#define BLOCK (128u << 10)  /* bytes of the largest block of zstd */

/* ---- a data set of one record ---------------------------------------------------------------- */

/* The claims of the record's one field. */
struct trap {
    struct pstk_field field;
    struct pstk__field_view view; /* data, sizes, encoding, width, height, codec; CRCs follow, and
                                     channels and bit depth, 3 and 8, where an image has none */
    struct pstk_field_stats lies; /* maxima of the manifest, where not 0 */
    const void *data;             /* borrowed; the stored bytes */
};

static void write_file(const char *dir, const char *name, const void *bytes, size_t size)
{
    char path[300];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || write(fd, bytes, size) != (ssize_t)size || close(fd) < 0)
        abort();
}

static void set_stats(struct pstk_field_stats *s, const struct trap *t)
{
    const struct pstk__field_view *v = &t->view;
    *s = (struct pstk_field_stats){.size = sizeof *s,
                                   .max_stored_size = v->stored_size,
                                   .max_plain_size = v->plain_size,
                                   .stored_bytes = v->stored_size,
                                   .plain_bytes = v->plain_size,
                                   .max_width = v->width,
                                   .max_height = v->height};
    s->n_encoding[v->encoding] = 1;
    s->n_codec[v->codec] = 1;
    s->n_damaged = v->codec == PSTK_CODEC_NONE && v->flags & PSTK__FIELD_DAMAGED;
    if (t->lies.max_stored_size)
        s->max_stored_size = t->lies.max_stored_size;
    if (t->lies.max_plain_size)
        s->max_plain_size = t->lies.max_plain_size;
    if (t->lies.max_width)
        s->max_width = s->max_height = t->lies.max_width;
}

/* The shard's bytes; *size. Returns owned. */
static uint8_t *make_shard(const struct trap *t, const struct pstk__schema *schema,
                           struct pstk__shard_header *h)
{
    const uint64_t record_size = pstk__record_size(schema, &t->view);
    *h = (struct pstk__shard_header){.schema_crc = schema->crc, .tag = 7, .n_records = 1};
    h->data_end = PSTK__HEADER_SIZE + record_size;
    pstk__shard_header_derive(h, NULL);
    uint8_t *bytes = calloc(1, h->file_size), *record = bytes + PSTK__HEADER_SIZE;
    memcpy(record + schema->head_size, t->data, t->view.stored_size);
    pstk__record_head(schema, h->tag, 0, &t->view, record);
    struct pstk__identity id = {{0}, 0};
    pstk__identity_add(&id, schema, &t->view);
    h->identity[0] = id.lane[0];
    h->identity[1] = id.lane[1];
    const uint64_t offsets[] = {PSTK__HEADER_SIZE, h->data_end};
    h->index_crc =
        pstk__shard_index_crc(0, pstk__page_encode(bytes + h->index_offset, 0, h->tag, 1, offsets));
    pstk__shard_header_encode(h, bytes);
    return bytes;
}

static void make(const char *dir, struct trap *t)
{
    struct pstk__manifest m = {.n_parts = 1};
    struct pstk__shard_header h;
    char name[] = "s.pstk", *text;
    uint64_t size;
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    if (pstk__schema_init(&m.schema, &t->field, 1, &err) < 0)
        abort();
    t->view.stored_crc = pstk__crc32c(0, t->data, t->view.stored_size);
    if (t->view.encoding && !t->view.channels)
        t->view.channels = 3;
    if (t->view.encoding && !t->view.bit_depth)
        t->view.bit_depth = 8;
    uint8_t *bytes = make_shard(t, &m.schema, &h);
    write_file(dir, name, bytes, h.file_size);
    free(bytes);
    const struct pstk__manifest_shard shard = {.file = name,
                                               .n_records = 1,
                                               .bytes = h.file_size,
                                               .header_crc = h.crc,
                                               .index_crc = h.index_crc};
    set_stats(&m.stats[0], t);
    struct pstk__identity id = {{h.identity[0], h.identity[1]}, 1};
    pstk__identity_text(&id, m.schema.crc, m.identity);
    if (pstk__manifest_add_shard(&m, &shard, &err) < 0 ||
        pstk__manifest_print(&m, &text, &size, &err) < 0) {
        printf("# %s\n", err.message);
        abort();
    }
    write_file(dir, "manifest.json", text, size);
    free(text);
    pstk__manifest_free(&m);
}

/* ---- traps ----------------------------------------------------------------------------------- */

/* A zstd frame of `plain_size` zeros, in runs: 4 bytes for each 128 KiB. Returns owned. */
static uint8_t *zero_frame(uint64_t plain_size, uint32_t *size)
{
    static const uint8_t magic[] = {0x28, 0xb5, 0x2f, 0xfd, 0xe0};
    const uint64_t n = (plain_size + BLOCK - 1) / BLOCK;
    uint8_t *frame = calloc(1, 13 + 4 * n), *b = frame + 13;
    memcpy(frame, magic, sizeof magic);
    memcpy(frame + 5, &plain_size, 8);
    for (uint64_t i = 0; i < n; i++, b += 4) {
        const uint32_t run = i + 1 < n ? BLOCK : (uint32_t)(plain_size - i * BLOCK);
        const uint32_t head = run << 3 | 1 << 1 | (i + 1 == n);
        memcpy(b, &head, 3);
    }
    *size = (uint32_t)(13 + 4 * n);
    return frame;
}

static uint32_t crc_of_zeros(uint64_t size)
{
    static const uint8_t zeros[BLOCK];
    uint32_t crc = 0;
    for (; size > BLOCK; size -= BLOCK)
        crc = pstk__crc32c(crc, zeros, BLOCK);
    return pstk__crc32c(crc, zeros, size);
}

/* An image of zeros, compressed; `codec` of its field. */
static struct trap zero_image(uint32_t encoding, uint32_t width, uint32_t height)
{
    const uint64_t plain_size = 3ull * width * height;
    struct trap t = {.field = {.name = "img", .kind = PSTK_FIELD_IMAGE, .codec = PSTK_CODEC_ZSTD}};
    t.view.encoding = (uint8_t)encoding;
    t.view.width = width;
    t.view.height = height;
    t.view.codec = PSTK_CODEC_ZSTD;
    t.view.plain_size = (uint32_t)plain_size;
    t.data = zero_frame(plain_size, &t.view.stored_size);
    t.view.plain_crc = crc_of_zeros(plain_size);
    return t;
}

/* ---- reading, in a child --------------------------------------------------------------------- */

enum reading { BY_LOADER, BY_GET, BY_VERIFY, BY_DECODING, BY_MERGE, N_READINGS };

static const char *const readings[] = {"loader", "get", "verify", "verify --decode", "merge"};

struct outcome {
    int result;
    long kib; /* most memory that it took */
    char message[512];
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

static int load(const char *dir, const struct pstk_output *output, struct pstk_error *err)
{
    struct pstk_settings s;
    struct pstk_loader *loader;
    struct pstk_batch *batch;
    pstk_settings_init(&s, sizeof s);
    s.path = dir;
    s.outputs = output;
    s.n_outputs = 1;
    s.batch_size = 1;
    s.n_threads = 1;
    int r = pstk_open(&loader, &s, err);
    if (r < 0)
        return r;
    r = pstk_next(loader, &batch, NULL, -1, err);
    if (r == 1)
        pstk_release(&batch, NULL);
    pstk_close(&loader);
    return r;
}

static int get(const char *dir, struct pstk_error *err)
{
    struct pstk_dataset *d;
    void *data;
    uint64_t size;
    int r = pstk_dataset_open(&d, dir, NULL, err);
    if (r < 0)
        return r;
    r = pstk_dataset_get(d, 0, 0, &data, &size, NULL, err);
    pstk_free(data);
    pstk_dataset_close(&d);
    return r;
}

static int keep_bad(void *user, const struct pstk_error *bad)
{
    *(struct pstk_error *)user = *bad;
    return 0;
}

/* The code of the last damage, or 0. */
static int verify(const char *dir, int decode, struct pstk_error *err)
{
    struct pstk_error bad = {0};
    int64_t n = pstk_verify(dir, decode, 1, keep_bad, NULL, &bad, err);
    if (n < 0)
        return (int)n;
    if (n > 0)
        *err = bad;
    return bad.code;
}

/* Into a directory beside it. */
static int merge(const char *dir, struct pstk_error *err)
{
    char out[300];
    snprintf(out, sizeof out, "%s-merged", dir);
    int r = merge_parts(&dir, 1, out, 0, err);
    fixture_remove(out);
    return r;
}

static int read_by(enum reading how, const char *dir, const struct pstk_output *output,
                   struct pstk_error *err)
{
    switch (how) {
    case BY_LOADER:
        return load(dir, output, err);
    case BY_GET:
        return get(dir, err);
    case BY_MERGE:
        return merge(dir, err);
    default:
        return verify(dir, how == BY_DECODING, err);
    }
}

static int read_in_child(enum reading how, const char *dir, const struct pstk_output *output,
                         struct outcome *o)
{
    int pipes[2], status;
    if (pipe(pipes) < 0)
        return -1;
    malloc_trim(0);
    pid_t child = fork();
    if (child == 0) {
        struct outcome own = {0};
        struct pstk_error err;
        pstk_error_init(&err, sizeof err);
        int fd = open("/proc/self/clear_refs", O_WRONLY);
        if (fd < 0 || write(fd, "5", 1) != 1)
            own.kib = -1;
        const long before = status_kib("VmRSS");
        alarm(300); /* a reader that waits for ever ends here */
        own.result = read_by(how, dir, output, &err);
        own.kib = own.kib < 0 ? -1 : status_kib("VmHWM") - before;
        snprintf(own.message, sizeof own.message, "%.500s", err.message);
        _exit(write(pipes[1], &own, sizeof own) != sizeof own);
    }
    close(pipes[1]);
    ssize_t n = read(pipes[0], o, sizeof *o);
    close(pipes[0]);
    return waitpid(child, &status, 0) == child && n == sizeof *o && status == 0 ? 0 : -1;
}

static const struct pstk_op shrink[] = {
    {.kind = PSTK_OP_RESIZE, .width = 8, .height = 8},
};

static const struct pstk_output as_image = {.field = "img",
                                            .kind = PSTK_OUTPUT_IMAGE,
                                            .image.ops = shrink,
                                            .image.n_ops = 1,
                                            .dtype = PSTK_U8,
                                            .image.layout = PSTK_NHWC};
static const struct pstk_output as_bytes = {.field = "img", .kind = PSTK_OUTPUT_BYTES};

static int too_much(const struct outcome *o, const char *how)
{
    if (!TEST_BUILD && o->kib > MAX_KIB)
        printf("# %s took %ld MiB: %d, %s\n", how, o->kib >> 10, o->result, o->message);
    return !TEST_BUILD && o->kib > MAX_KIB;
}

/* ---- facts ----------------------------------------------------------------------------------- */

/* 16384 x 16384 pixels of 3 bytes are 805 MB, from a record of 25 kB. */
TEST(an_image_over_max_pixels_is_refused_before_it_is_decompressed)
{
    static const uint32_t encodings[] = {PSTK_ENCODING_PIXELS, PSTK_ENCODING_JPEG,
                                         PSTK_ENCODING_PNG};
    int n_over = 0, n_passed = 0;
    for (size_t i = 0; i < 3; i++) {
        struct fixture f;
        struct trap t = zero_image(encodings[i], 16384, 16384);
        fixture_open(&f);
        make(f.dir, &t);
        for (int how = 0; how < BY_MERGE; how++) {
            struct outcome o;
            CHECK_EQ(read_in_child((enum reading)how, f.dir, &as_image, &o), 0);
            n_over += too_much(&o, readings[how]);
            n_passed +=
                o.result >= 0 || !strstr(o.message, "16384 x 16384 pixels is over the limit");
            if (!strstr(o.message, "over the limit"))
                printf("# %s: %d, %s\n", readings[how], o.result, o.message);
        }
        free((void *)(uintptr_t)t.data);
        fixture_close(&f);
    }
    CHECK_EQ(n_over, 0);
    CHECK_EQ(n_passed, 0);
}

/* ISO 3309, as PNG has it. */
static uint32_t crc32_of(const uint8_t *data, size_t size)
{
    uint32_t crc = ~0u;
    for (size_t i = 0; i < size; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (0xedb88320u & (0u - (crc & 1)));
    }
    return ~crc;
}

static void put_be(uint8_t *p, uint32_t value, int n_bytes)
{
    for (int i = n_bytes - 1; i >= 0; i--, value >>= 8)
        p[i] = (uint8_t)value;
}

/* A file of a few bytes whose header says side x side. */
static struct trap lying_file(uint32_t encoding, uint32_t side, uint32_t recorded)
{
    static uint8_t png[sizeof tiny_png], jpeg[sizeof tiny_jpeg];
    const int is_png = encoding == PSTK_ENCODING_PNG;
    struct trap t = {.field = {.name = "img", .kind = PSTK_FIELD_IMAGE},
                     .data = is_png ? png : jpeg};
    memcpy(png, tiny_png, sizeof png);
    put_be(png + 16, side, 4);
    put_be(png + 20, side, 4);
    put_be(png + 29, crc32_of(png + 12, 17), 4);
    memcpy(jpeg, tiny_jpeg, sizeof jpeg);
    put_be(jpeg + 94, side, 2); /* height in its SOF segment, which begins at byte 89 */
    put_be(jpeg + 96, side, 2);
    t.view.encoding = (uint8_t)encoding;
    t.view.width = t.view.height = recorded;
    t.view.stored_size = t.view.plain_size = is_png ? sizeof png : sizeof jpeg;
    t.view.plain_crc = pstk__crc32c(0, t.data, t.view.stored_size);
    return t;
}

TEST(a_file_whose_header_is_huge_is_refused_whatever_its_record_says)
{
    static const uint32_t encodings[] = {PSTK_ENCODING_JPEG, PSTK_ENCODING_PNG};
    static const uint32_t recorded[] = {65000, 16};
    int n_over = 0;
    for (size_t i = 0; i < 4; i++) {
        struct fixture f;
        struct trap t = lying_file(encodings[i % 2], 65000, recorded[i / 2]);
        fixture_open(&f);
        make(f.dir, &t);
        for (int how = 0; how < BY_MERGE; how++) {
            struct outcome o;
            if (how == BY_GET) /* gives the file as it is */
                continue;
            CHECK_EQ(read_in_child((enum reading)how, f.dir, &as_image, &o), 0);
            n_over += too_much(&o, readings[how]);
            if (o.result != PSTK_EFBIG && o.result != PSTK_EBADMSG)
                printf("# %s: %d, %s\n", readings[how], o.result, o.message);
            CHECK(o.result == PSTK_EFBIG || o.result == PSTK_EBADMSG);
        }
        const struct pstk_convert how = {.size = sizeof how, .shorter_side = 8};
        void *out;
        uint64_t size;
        CHECK_EQ(pstk_image_check(t.data, t.view.stored_size, 0, NULL, NULL, &f.err), PSTK_EFBIG);
        CHECK_EQ(
            pstk_image_convert(t.data, t.view.stored_size, &how, &out, &size, NULL, NULL, &f.err),
            PSTK_EFBIG);
        fixture_close(&f);
    }
    CHECK_EQ(n_over, 0);
}

static int tell_message(void *user, const struct pstk_error *bad)
{
    snprintf(user, sizeof bad->message, "%s", bad->message);
    return 0;
}

TEST(verify_compares_what_an_entry_says_of_samples_with_the_images_header)
{
    static const struct {
        const void *data;
        uint32_t size;
        uint8_t channels, bit_depth, flags;
    } said[] = {{tiny_jpeg, sizeof tiny_jpeg, 3, 8, 0},
                {tiny_png, sizeof tiny_png, 4, 8, 0},
                {tiny_png, sizeof tiny_png, 3, 16, 0},
                {tiny_png, sizeof tiny_png, 1, 8, PSTK__FIELD_PALETTE}};
    for (size_t i = 0; i < sizeof said / sizeof said[0]; i++) {
        for (int is_true = 0; is_true < 2; is_true++) {
            struct fixture f;
            struct pstk__image_info info;
            char told[sizeof f.err.message] = "";
            CHECK_EQ(pstk__image_probe(said[i].data, said[i].size, 1u << 20, &info, NULL), 0);
            CHECK_EQ(info.channels, info.encoding == PSTK_ENCODING_JPEG ? 1 : 3);
            CHECK(info.bit_depth == 8 && !info.has_palette);
            struct trap t = {.field = {.name = "img", .kind = PSTK_FIELD_IMAGE},
                             .view = {.stored_size = said[i].size,
                                      .plain_size = said[i].size,
                                      .plain_crc = pstk__crc32c(0, said[i].data, said[i].size),
                                      .encoding = (uint8_t)info.encoding,
                                      .channels = is_true ? info.channels : said[i].channels,
                                      .bit_depth = is_true ? info.bit_depth : said[i].bit_depth,
                                      .width = info.width,
                                      .height = info.height,
                                      .flags = is_true ? 0 : said[i].flags},
                             .data = said[i].data};
            fixture_open(&f);
            make(f.dir, &t);
            CHECK_EQ(pstk_verify(f.dir, 0, 1, tell_message, NULL, told, &f.err), !is_true);
            CHECK(is_true || strstr(told, "channels of 8 bits, its record says"));
            fixture_close(&f);
        }
    }
}

TEST(verify_finds_a_file_that_is_marked_as_damaged_and_is_whole)
{
    struct fixture f;
    char told[sizeof f.err.message] = "";
    struct trap t = {.field = {.name = "img", .kind = PSTK_FIELD_IMAGE},
                     .view = {.stored_size = sizeof tiny_jpeg,
                              .plain_size = sizeof tiny_jpeg,
                              .plain_crc = pstk__crc32c(0, tiny_jpeg, sizeof tiny_jpeg),
                              .encoding = PSTK_ENCODING_JPEG,
                              .channels = 1,
                              .width = 16,
                              .height = 8,
                              .flags = PSTK__FIELD_DAMAGED},
                     .data = tiny_jpeg};
    fixture_open(&f);
    make(f.dir, &t);
    CHECK_EQ(pstk_verify(f.dir, 0, 1, tell_message, NULL, told, &f.err), 0);
    CHECK_EQ(pstk_verify(f.dir, 1, 1, tell_message, NULL, told, &f.err), 1);
    CHECK(strstr(told, "marked as damaged, but decodes without a warning"));
    t.field.codec = t.view.codec = PSTK_CODEC_ZSTD; /* never of a compressed value */
    make(f.dir, &t);
    CHECK_EQ(pstk_verify(f.dir, 0, 1, tell_message, NULL, told, &f.err), 1);
    CHECK(strstr(told, "flags that its codec or encoding does not have"));
    fixture_close(&f);
}

TEST(an_array_that_is_not_of_its_schemas_size_is_refused_before_it_is_decompressed)
{
    struct fixture f;
    struct trap t = {.field = {.name = "img",
                               .kind = PSTK_FIELD_NDARRAY,
                               .dtype = PSTK_F32,
                               .n_dims = 1,
                               .shape = {4},
                               .codec = PSTK_CODEC_ZSTD}};
    static const struct pstk_output as_array = {.field = "img", .kind = PSTK_OUTPUT_TENSOR};
    int n_over = 0;
    t.view.codec = PSTK_CODEC_ZSTD;
    t.view.plain_size = 800u << 20;
    t.data = zero_frame(t.view.plain_size, &t.view.stored_size);
    t.view.plain_crc = crc_of_zeros(t.view.plain_size);
    fixture_open(&f);
    make(f.dir, &t);
    for (int how = 0; how < BY_MERGE; how++) {
        struct outcome o;
        CHECK_EQ(read_in_child((enum reading)how, f.dir, &as_array, &o), 0);
        n_over += too_much(&o, readings[how]);
        CHECK_EQ(o.result, PSTK_EBADMSG);
    }
    CHECK_EQ(n_over, 0);
    free((void *)(uintptr_t)t.data);
    fixture_close(&f);
}

TEST(maxima_of_the_manifest_take_no_more_than_the_shards_can_hold)
{
    static const uint8_t pixels[16 * 16 * 3];
    const struct pstk_output *const outputs[] = {&as_image, &as_bytes};
    static const uint32_t codecs[] = {PSTK_CODEC_NONE, PSTK_CODEC_ZSTD, PSTK_CODEC_PLANES};
    int n_over = 0;
    for (size_t i = 0; i < 3; i++) {
        struct fixture f;
        struct trap t = {.field = {.name = "img", .kind = PSTK_FIELD_IMAGE, .codec = codecs[i]},
                         .lies = {.max_stored_size = UINT32_MAX,
                                  .max_plain_size = UINT32_MAX,
                                  .max_width = UINT32_MAX},
                         .data = pixels};
        t.view.encoding = PSTK_ENCODING_PIXELS;
        t.view.width = t.view.height = 16;
        t.view.stored_size = t.view.plain_size = sizeof pixels;
        t.view.plain_crc = pstk__crc32c(0, pixels, sizeof pixels);
        fixture_open(&f);
        make(f.dir, &t);
        for (size_t k = 0; k < 2; k++) {
            struct outcome o;
            CHECK_EQ(read_in_child(BY_LOADER, f.dir, outputs[k], &o), 0);
            n_over += too_much(&o, k ? "loader, bytes" : "loader, image");
            if (o.result != 1)
                printf("# %s\n", o.message);
            CHECK_EQ(o.result, 1);
        }
        fixture_close(&f);
    }
    CHECK_EQ(n_over, 0);
}

/* ---- what is no file ------------------------------------------------------------------------- */

/* The path of the file of a data set whose name has `part` in it. */
static int find_file(const char *dir, const char *part, char *path, size_t size)
{
    DIR *d = opendir(dir);
    const struct dirent *e;
    int r = -1;
    while (d && r < 0 && (e = readdir(d)))
        if (strstr(e->d_name, part))
            r = snprintf(path, size, "%s/%s", dir, e->d_name) < (int)size ? 0 : -1;
    if (d)
        closedir(d);
    return r;
}

enum stranger { FIFO, DIRECTORY, SOCKET, DEVICE, N_STRANGERS };

static const char *const strangers[] = {"a FIFO", "a directory", "a socket", "a device"};

/* Put one in the place of a file. */
static int put_stranger(const char *path, enum stranger kind)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    unlink(path);
    switch (kind) {
    case FIFO:
        return mkfifo(path, 0600);
    case DIRECTORY:
        return mkdir(path, 0700);
    case DEVICE:
        return symlink("/dev/zero", path);
    default:
        snprintf(address.sun_path, sizeof address.sun_path, "%.100s", path);
        const int s = socket(AF_UNIX, SOCK_STREAM, 0);
        const int r = bind(s, (const struct sockaddr *)&address, sizeof address);
        return close(s) < 0 ? -1 : r;
    }
}

static int named_stranger(const struct outcome *o, const char *file, enum stranger kind)
{
    const int right = o->result < 0 && strstr(o->message, file) &&
                      strstr(o->message, strangers[kind]) &&
                      strstr(o->message, "not a regular file");
    if (!right)
        printf("# %s as %s: %d, %s\n", strangers[kind], file, o->result, o->message);
    return right;
}

TEST(every_reader_names_a_file_that_is_not_regular_and_none_waits)
{
    static const char *const files[] = {"manifest.json", "shard-000000.pstk", "zdict"};
    int n_wrong = 0;
    for (int i = 0; i < 3 * N_STRANGERS; i++) {
        struct fixture f;
        struct pstk_writer_settings s;
        const enum stranger kind = (enum stranger)(i % N_STRANGERS);
        char path[300];
        fixture_open(&f);
        fixture_settings(&s, fixture_path(&f, "d"));
        s.dictionary_size = 256;
        CHECK_EQ(fixture_write(&s, 0, 60, 5, &f.err), 0);
        CHECK_EQ(find_file(s.path, files[i / N_STRANGERS], path, sizeof path), 0);
        CHECK_EQ(put_stranger(path, kind), 0);
        for (int how = 0; how < N_READINGS; how++) {
            struct outcome o;
            CHECK_EQ(read_in_child((enum reading)how, s.path, &as_image, &o), 0);
            n_wrong += !named_stranger(&o, files[i / N_STRANGERS], kind);
        }
        fixture_close(&f);
    }
    CHECK_EQ(n_wrong, 0);
}

/* Columns of a shard of 2^32 - 1 records that is not there: what they say of its pages would take
 * 540 MB. */
TEST(columns_of_a_shard_that_is_not_there_take_no_memory)
{
    const struct pstk_field field = {.name = "c", .kind = PSTK_FIELD_SCALAR, .dtype = PSTK_F64};
    struct pstk__manifest m = {.n_parts = 1};
    struct pstk__manifest_column column = {.dtype = PSTK_F64, .fact = PSTK_COLUMN_VALUE};
    struct fixture f;
    struct outcome o;
    char name[] = "s.pstk", *text;
    uint64_t size;
    fixture_open(&f);
    CHECK_EQ(pstk__schema_init(&m.schema, &field, 1, NULL), 0);
    const uint64_t bytes = PSTK__HEADER_SIZE + UINT32_MAX * (uint64_t)m.schema.head_size +
                           pstk__shard_n_pages(UINT32_MAX) * PSTK__INDEX_PAGE;
    const struct pstk__manifest_shard shard = {
        .file = name, .n_records = UINT32_MAX, .bytes = (bytes + 4095) / 4096 * 4096};
    CHECK_EQ(pstk__manifest_add_shard(&m, &shard, NULL), 0);
    for (uint32_t i = 0; i < 8; i++) {
        snprintf(column.name, sizeof column.name, "c%u", i);
        snprintf(column.files, sizeof column.files, "c%u", i);
        CHECK_EQ(pstk__manifest_add_column(&m, &column, NULL), 0);
        CHECK_EQ(pstk__manifest_add_column_crc(&m.columns[i], 0, NULL), 0);
    }
    memset(m.identity, '0', 32);
    CHECK_EQ(pstk__manifest_print(&m, &text, &size, &f.err), 0);
    write_file(f.dir, "manifest.json", text, size);
    free(text);
    pstk__manifest_free(&m);
    CHECK_EQ(read_in_child(BY_VERIFY, f.dir, NULL, &o), 0);
    CHECK_EQ(too_much(&o, readings[BY_VERIFY]), 0);
    CHECK_EQ(o.result, PSTK_ENOENT);
    fixture_close(&f);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(an_image_over_max_pixels_is_refused_before_it_is_decompressed),
        CASE(a_file_whose_header_is_huge_is_refused_whatever_its_record_says),
        CASE(verify_compares_what_an_entry_says_of_samples_with_the_images_header),
        CASE(verify_finds_a_file_that_is_marked_as_damaged_and_is_whole),
        CASE(an_array_that_is_not_of_its_schemas_size_is_refused_before_it_is_decompressed),
        CASE(maxima_of_the_manifest_take_no_more_than_the_shards_can_hold),
        CASE(columns_of_a_shard_that_is_not_there_take_no_memory),
        CASE(every_reader_names_a_file_that_is_not_regular_and_none_waits),
    };
    return RUN_CASES(cases);
}
