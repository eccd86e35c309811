/* SPDX-License-Identifier: Apache-2.0 */
#include "support/test.h"

#include "base/clock.h"
#include "base/crc32c.h"
#include "base/little.h"
#include "base/random.h"
#include "record/record.h"

#define TAG 0xfeedbeef
#define NUMBER 41
#define AT 8192 /* offset of the record in its shard */

/* Positions of the parts of the sample's record, with zeros between them. */
enum {
    FIXED = 16 + 2 * 32,
    FIXED_END = FIXED + 4,
    HEAD = 96,
    IMAGE = HEAD,
    IMAGE_END = IMAGE + 18,
    TEXT = IMAGE + 32,
    TEXT_END = TEXT + 5,
    SIZE = TEXT + 16,
};

static const struct pstk_field sample_fields[] = {
    {.name = "img", .kind = PSTK_FIELD_IMAGE},
    {.name = "cls", .kind = PSTK_FIELD_SCALAR, .dtype = PSTK_I32},
    {.name = "txt", .kind = PSTK_FIELD_UTF8, .codec = PSTK_CODEC_ZSTD},
};

/* One record of 2 x 3 pixels, a number and a text, and all that parsing it takes. */
struct sample {
    struct pstk__schema schema;
    struct pstk__record_limits limits;
    struct pstk__record_location location;
    struct pstk__field_view views[3];
    uint8_t pixels[18];
    uint8_t number[4];
    uint8_t bytes[SIZE];
};

static void write_record(struct sample *s)
{
    pstk__record_head(&s->schema, TAG, NUMBER, s->views, s->bytes);
    memcpy(s->bytes + IMAGE, s->pixels, 18);
    memcpy(s->bytes + TEXT, "hello", 5);
}

/* Give an edited head a fitting checksum again. */
static void seal(struct sample *s)
{
    pstk__put32(s->bytes, pstk__crc32c(0, s->bytes + 4, HEAD - 4));
}

static void make_sample(struct sample *s)
{
    memset(s, 0, sizeof *s);
    pstk__schema_init(&s->schema, sample_fields, 3, NULL);
    for (int i = 0; i < 18; i++)
        s->pixels[i] = (uint8_t)(i * 11);
    pstk__put32(s->number, 1234567);
    uint32_t crc = pstk__crc32c(0, s->pixels, 18);
    s->views[0] = (struct pstk__field_view){.stored_size = 18,
                                            .plain_size = 18,
                                            .stored_crc = crc,
                                            .plain_crc = crc,
                                            .encoding = PSTK_ENCODING_PIXELS,
                                            .channels = 3,
                                            .bit_depth = 8,
                                            .width = 3,
                                            .height = 2};
    s->views[1] = (struct pstk__field_view){.data = s->number, .checksum = PSTK__CHECKSUM_HEAD};
    crc = pstk__crc32c(0, "hello", 5);
    s->views[2] = (struct pstk__field_view){
        .stored_size = 5, .plain_size = 5, .stored_crc = crc, .plain_crc = crc};
    s->location = (struct pstk__record_location){
        .shard = "x.pstk", .tag = TAG, .number = NUMBER, .file_offset = AT, .size = SIZE};
    s->limits = (struct pstk__record_limits){.max_size = 200,
                                             .max_stored = {18, 0, 5},
                                             .max_plain = {18, 0, 9},
                                             .max_width = {3},
                                             .max_height = {2}};
    write_record(s);
}

static int parse(const struct sample *s, uint64_t available, struct pstk__record *r,
                 struct pstk_error *err)
{
    memset(r, 0x5a, sizeof *r);
    return pstk__record_parse(r, &s->schema, &s->limits, &s->location, s->bytes, available, err);
}

TEST(a_record_comes_back_as_it_was_written)
{
    struct sample s;
    struct pstk__record r;
    make_sample(&s);
    CHECK_EQ(s.schema.fixed_end, FIXED_END);
    CHECK_EQ(s.schema.head_size, HEAD);
    CHECK_EQ(pstk__record_size(&s.schema, s.views), SIZE);
    CHECK_EQ(parse(&s, SIZE, &r, NULL), 0);
    CHECK_EQ(r.n_fields, 3);
    CHECK_EQ(r.number, NUMBER);
    CHECK_EQ(r.file_offset, AT);
    CHECK(r.fields[0].data == s.bytes + IMAGE);
    CHECK_EQ(r.fields[0].offset, IMAGE);
    CHECK_EQ(r.fields[0].gap, TEXT - IMAGE_END);
    CHECK_EQ(r.fields[2].gap, SIZE - TEXT_END);
    CHECK_EQ(r.fields[0].width, 3);
    CHECK_EQ(r.fields[0].height, 2);
    CHECK_EQ(r.fields[0].encoding, PSTK_ENCODING_PIXELS);
    CHECK_EQ(r.fields[0].checksum, PSTK__CHECKSUM_CRC32C);
    CHECK(r.fields[1].checksum == PSTK__CHECKSUM_HEAD && r.fields[1].data == s.bytes + FIXED);
    CHECK_EQ(pstk__get32(r.fields[1].data), 1234567);
    CHECK_EQ(r.fields[1].plain_size, 4);
    CHECK(memcmp(r.fields[2].data, "hello", 5) == 0);
    for (uint32_t i = 0; i < 3; i++)
        CHECK_EQ(pstk__record_check_field(&r, i, NULL), 0);
}

TEST(the_head_alone_gives_the_fixed_fields_and_no_others)
{
    struct sample s;
    struct pstk__record r;
    make_sample(&s);
    CHECK_EQ(parse(&s, HEAD, &r, NULL), 0);
    CHECK(r.fields[0].data == NULL && r.fields[2].data == NULL);
    CHECK_EQ(r.fields[2].offset, TEXT);
    CHECK_EQ(pstk__get32(r.fields[1].data), 1234567);
    CHECK_EQ(pstk__record_check_field(&r, 0, NULL), PSTK_EINVAL);
    CHECK_EQ(parse(&s, HEAD - 1, &r, NULL), PSTK_EBADMSG);
    CHECK_EQ(parse(&s, 0, &r, NULL), PSTK_EBADMSG);
}

TEST(every_flipped_bit_of_a_record_is_found_and_its_place_named)
{
    struct sample s;
    struct pstk__record r;
    make_sample(&s);
    for (uint32_t bit = 0; bit < 8 * SIZE; bit++) {
        struct pstk_error err = {0};
        s.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        int code = parse(&s, SIZE, &r, &err);
        CHECK(bit / 8 < HEAD ? code == PSTK_EBADMSG : code == 0);
        for (uint32_t i = 0; code == 0 && i < 3; i++)
            code = pstk__record_check_field(&r, i, &err);
        CHECK_EQ(code, PSTK_EBADMSG);
        CHECK_EQ(err.stage, PSTK_STAGE_RECORD);
        CHECK_EQ(err.record, NUMBER);
        CHECK_STR(err.shard, "x.pstk");
        CHECK(err.offset <= AT + bit / 8 && AT + bit / 8 < err.offset + err.length);
        s.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
}

TEST(a_record_of_another_number_or_shard_is_misplaced)
{
    struct sample s;
    struct pstk__record r;
    struct pstk_error err = {0};
    make_sample(&s);
    s.location.number++;
    CHECK_EQ(parse(&s, SIZE, &r, &err), PSTK_EBADMSG);
    CHECK(strstr(err.message, "misplaced"));
    s.location.number--;
    s.location.tag++;
    CHECK_EQ(parse(&s, SIZE, &r, &err), PSTK_EBADMSG);
    CHECK(strstr(err.message, "misplaced"));
}

/* Changes after which a record is wrong, although its checksum is right. */
static void break_size(struct sample *s)
{
    s->location.size++;
}
static void break_small(struct sample *s)
{
    s->location.size = HEAD - 16;
}
static void break_large(struct sample *s)
{
    s->location.size = PSTK__MAX_RECORD_SIZE + 16;
}
static void break_codec(struct sample *s)
{
    s->views[2].codec = 3;
}
static void break_planes(struct sample *s)
{
    s->views[2].codec = PSTK_CODEC_PLANES;
}
static void break_plain(struct sample *s)
{
    s->views[2].plain_size = 6;
}
static void break_plain_crc(struct sample *s)
{
    s->views[2].plain_crc ^= 1;
}
static void break_text_encoding(struct sample *s)
{
    s->views[2].encoding = 1;
}
static void break_text_width(struct sample *s)
{
    s->views[2].width = 1;
}
static void break_no_encoding(struct sample *s)
{
    s->views[0].encoding = 0;
}
static void break_encoding(struct sample *s)
{
    s->views[0].encoding = 10;
}
static void break_text_channels(struct sample *s)
{
    s->views[2].channels = 1;
}
static void break_text_depth(struct sample *s)
{
    s->views[2].bit_depth = 8;
}
static void break_channels(struct sample *s)
{
    s->views[0].channels = 1;
}
static void break_depth(struct sample *s)
{
    s->views[0].bit_depth = 16;
}
static void break_flags(struct sample *s)
{
    s->views[0].flags = PSTK__FIELD_DAMAGED;
}
static void break_palette(struct sample *s)
{
    s->views[0].flags = PSTK__FIELD_PALETTE;
}
static void break_side(struct sample *s)
{
    s->views[0].width = s->limits.max_width[0] = 65536;
}
static void break_overflow_of_pixels(struct sample *s)
{
    s->views[0].width = s->views[0].height = UINT32_MAX;
    s->limits.max_width[0] = s->limits.max_height[0] = UINT32_MAX;
    s->views[0].plain_size = s->views[0].stored_size = (uint32_t)(3ull * UINT32_MAX * UINT32_MAX);
}
static void break_no_width(struct sample *s)
{
    s->views[0].width = 0;
}
static void break_no_height(struct sample *s)
{
    s->views[0].height = 0;
}
static void break_pixels(struct sample *s)
{
    s->views[0].height = 1;
}
static void break_stored(struct sample *s)
{
    s->limits.max_stored[2] = 4;
}
static void break_max_plain(struct sample *s)
{
    s->limits.max_plain[0] = 17;
}
static void break_max_width(struct sample *s)
{
    s->limits.max_width[0] = 2;
}
static void break_max_height(struct sample *s)
{
    s->limits.max_height[0] = 1;
}
static void break_max_size(struct sample *s)
{
    s->limits.max_size = SIZE - 1;
}
static void break_shorter(struct sample *s)
{
    s->views[0].stored_size = s->views[0].plain_size = 15;
}
static void break_overflow(struct sample *s)
{
    s->views[2].stored_size = s->views[2].plain_size = UINT32_MAX - HEAD;
    s->limits.max_stored[2] = s->limits.max_plain[2] = UINT32_MAX;
    s->location.size = (uint32_t)(TEXT + pstk__record_aligned(s->views[2].stored_size));
}

TEST(a_head_that_contradicts_itself_is_refused_though_its_checksum_is_right)
{
    void (*const breaks[])(struct sample *) = {
        break_size,
        break_small,
        break_large,
        break_codec,
        break_planes,
        break_plain,
        break_plain_crc,
        break_text_encoding,
        break_text_width,
        break_no_encoding,
        break_encoding,
        break_no_width,
        break_no_height,
        break_pixels,
        break_stored,
        break_max_plain,
        break_max_width,
        break_max_height,
        break_max_size,
        break_shorter,
        break_overflow,
        break_text_channels,
        break_text_depth,
        break_channels,
        break_depth,
        break_flags,
        break_palette,
        break_side,
        break_overflow_of_pixels,
    };
    for (size_t i = 0; i < sizeof breaks / sizeof breaks[0]; i++) {
        struct sample s;
        struct pstk__record r;
        struct pstk_error err = {0};
        make_sample(&s);
        breaks[i](&s);
        write_record(&s);
        int code = parse(&s, SIZE, &r, &err);
        if (code != PSTK_EBADMSG)
            printf("# break %zu\n", i);
        CHECK_EQ(code, PSTK_EBADMSG);
        CHECK_EQ(r.n_fields, 0);
        CHECK_EQ(err.record, NUMBER);
    }
}

TEST(an_entrys_last_two_bytes_must_be_zero)
{
    struct sample s;
    struct pstk__record r;
    make_sample(&s);
    s.bytes[16 + 30] = 1;
    seal(&s);
    CHECK_EQ(parse(&s, SIZE, &r, NULL), PSTK_EBADMSG);
}

TEST(gaps_must_be_zero_where_they_are_read)
{
    static const struct {
        uint32_t from, to, field; /* field 99: the head */
    } gaps[] = {{FIXED_END, HEAD, 99}, {IMAGE_END, TEXT, 0}, {TEXT_END, SIZE, 2}};
    struct sample s;
    struct pstk__record r;
    struct pstk_error err = {0};
    make_sample(&s);
    for (size_t g = 0; g < 3; g++) {
        for (uint32_t at = gaps[g].from; at < gaps[g].to; at++) {
            s.bytes[at] = 0x80;
            seal(&s);
            if (gaps[g].field == 99) {
                CHECK_EQ(parse(&s, SIZE, &r, &err), PSTK_EBADMSG);
            } else {
                CHECK_EQ(parse(&s, SIZE, &r, NULL), 0);
                CHECK_EQ(pstk__record_check_field(&r, gaps[g].field, &err), PSTK_EBADMSG);
                CHECK_EQ(pstk__record_check_field(&r, 2 - gaps[g].field, NULL), 0);
            }
            CHECK_EQ(err.offset, AT + gaps[g].from);
            CHECK_EQ(err.length, gaps[g].to - gaps[g].from);
            CHECK(strstr(err.message, "must be zero and are not"));
            s.bytes[at] = 0;
        }
    }
    s.bytes[SIZE - 1] = 1; /* not read: not refused */
    CHECK_EQ(parse(&s, TEXT_END, &r, NULL), 0);
    CHECK_EQ(r.fields[2].gap, 0);
    CHECK_EQ(pstk__record_check_field(&r, 2, NULL), 0);
}

TEST(a_record_ends_where_its_last_gap_does)
{
    struct sample s;
    struct pstk__record r;
    struct pstk_error err = {0};
    make_sample(&s);
    for (uint64_t size = TEXT_END; size < SIZE; size++) {
        s.location.size = size;
        CHECK_EQ(parse(&s, size, &r, &err), PSTK_EBADMSG);
        CHECK(strstr(err.message, "its fields end at byte"));
    }
}

TEST(damage_names_field_shard_record_and_bytes)
{
    struct sample s;
    struct pstk__record r;
    struct pstk_error err = {0};
    make_sample(&s);
    CHECK_EQ(parse(&s, SIZE, &r, NULL), 0);
    s.bytes[TEXT_END - 1] ^= 1;
    CHECK_EQ(pstk__record_check_field(&r, 2, &err), PSTK_EBADMSG);
    CHECK_EQ(err.offset, AT + TEXT);
    CHECK_EQ(err.length, 5);
    CHECK(strstr(err.message, "x.pstk: record 41: field txt (bytes 8320 to 8324)"));
    CHECK_EQ(pstk__record_fail(&r, 99, PSTK_EFBIG, PSTK_STAGE_DECODE, &err, "all %d", 7),
             PSTK_EFBIG);
    CHECK(strstr(err.message, "record 41: all 7"));
}

/* FORMAT.md, Identity, as it is written there: by steps, with % for mod. */
static void identity_by_the_book(uint64_t lane[2], const struct sample *s)
{
    static const uint64_t c[2] = {0x9E3779B97F4A7C15u, 0xC2B2AE3D27D4EB4Fu};
    static const uint64_t base[2] = {0x0FD3B5A9C1E57E2Bu, 0x1B873593CC9E2D51u};
    const unsigned __int128 p = ((unsigned __int128)1 << 61) - 1;
    const struct pstk__field_view *image = &s->views[0];
    const uint64_t words[] = {18 | (uint64_t)image->plain_crc << 32,
                              3 | 3 << 8 | 8 << 16,
                              3 | 2ull << 32,
                              4,
                              1234567,
                              5 | (uint64_t)s->views[2].plain_crc << 32,
                              0,
                              0};
    for (int l = 0; l < 2; l++) {
        uint64_t h = c[l];
        for (int i = 0; i < 8; i++)
            h = pstk__mix64(h ^ words[i]) + c[l];
        lane[l] = (uint64_t)(((unsigned __int128)lane[l] * (base[l] % p) + h % p + 1) % p);
    }
}

TEST(the_identity_is_that_of_format_md)
{
    struct sample s;
    struct pstk__identity id = {.n = 0};
    uint64_t lane[2] = {0};
    make_sample(&s);
    for (uint32_t i = 0; i < 50; i++) {
        s.views[0].plain_crc = i * 2654435761u;
        pstk__identity_add(&id, &s.schema, s.views);
        identity_by_the_book(lane, &s);
        CHECK(id.lane[0] == lane[0] && id.lane[1] == lane[1]);
    }
    CHECK_EQ(id.n, 50);
    char text[40], want[40];
    pstk__identity_text(&id, 77, text);
    snprintf(want, sizeof want, "%016llx%016llx",
             (unsigned long long)pstk__mix64(lane[0] ^ pstk__mix64(50)),
             (unsigned long long)pstk__mix64(lane[1] ^ pstk__mix64(77)));
    CHECK_STR(text, want);
}

TEST(runs_of_records_join_to_the_identity_of_the_whole_wherever_they_are_cut)
{
    struct sample s;
    make_sample(&s);
    for (uint32_t cut = 0; cut <= 40; cut++) {
        struct pstk__identity whole = {.n = 0}, a = {.n = 0}, b = {.n = 0};
        for (uint32_t i = 0; i < 40; i++) {
            s.views[2].plain_crc = i;
            pstk__identity_add(&whole, &s.schema, s.views);
            pstk__identity_add(i < cut ? &a : &b, &s.schema, s.views);
        }
        pstk__identity_join(&a, &b);
        CHECK(memcmp(&a, &whole, sizeof a) == 0);
    }
}

TEST(the_identity_depends_on_what_the_entry_says_of_an_image)
{
    struct sample s;
    struct pstk__identity ids[6];
    for (uint32_t i = 0; i < 6; i++) {
        make_sample(&s);
        struct pstk__field_view *v = &s.views[0];
        v->channels = i == 1 ? 4 : v->channels;
        v->bit_depth = i == 2 ? 16 : v->bit_depth;
        v->flags = i == 3 ? PSTK__FIELD_PALETTE : 0;
        v->width = i == 4 ? 3 + (1u << 16) : v->width;
        v->height = i == 5 ? 3 : v->height;
        ids[i] = (struct pstk__identity){.n = 0};
        pstk__identity_add(&ids[i], &s.schema, s.views);
        for (uint32_t k = 0; k < i; k++)
            CHECK(ids[k].lane[0] != ids[i].lane[0] && ids[k].lane[1] != ids[i].lane[1]);
    }
}

TEST(an_entry_says_which_samples_its_image_has)
{
    static const struct {
        uint8_t encoding, channels, bit_depth, flags;
    } right[] = {{1, 1, 8, 0},  {1, 3, 8, 0}, {1, 4, 8, 0},  {2, 1, 1, 0},
                 {2, 1, 16, 0}, {2, 2, 8, 0}, {2, 3, 16, 0}, {2, 4, 8, 0},
                 {2, 1, 4, 2},  {3, 3, 8, 0}, {1, 3, 8, 4}},
      wrong[] = {{1, 2, 8, 0},  {1, 3, 16, 0}, {1, 0, 8, 0}, {1, 3, 8, 2}, {2, 0, 8, 0},
                 {2, 5, 8, 0},  {2, 3, 4, 0},  {2, 1, 3, 0}, {2, 1, 0, 0}, {2, 1, 255, 0},
                 {2, 1, 16, 2}, {2, 3, 8, 2},  {2, 3, 8, 4}, {2, 3, 8, 8}, {3, 1, 8, 0},
                 {3, 3, 16, 0}, {3, 3, 8, 2},  {3, 2, 8, 0}, {3, 3, 4, 0}, {3, 3, 0, 0},
                 {3, 3, 8, 4},  {1, 3, 8, 5},  {1, 3, 8, 6}};
    const size_t n_right = sizeof right / sizeof right[0],
                 n = n_right + sizeof wrong / sizeof wrong[0];
    for (size_t i = 0; i < n; i++) {
        struct sample s;
        struct pstk__record r;
        make_sample(&s);
        struct pstk__field_view *v = &s.views[0];
        v->encoding = i < n_right ? right[i].encoding : wrong[i - n_right].encoding;
        v->channels = i < n_right ? right[i].channels : wrong[i - n_right].channels;
        v->bit_depth = i < n_right ? right[i].bit_depth : wrong[i - n_right].bit_depth;
        v->flags = i < n_right ? right[i].flags : wrong[i - n_right].flags;
        write_record(&s);
        CHECK_EQ(parse(&s, SIZE, &r, NULL), i < n_right ? 0 : PSTK_EBADMSG);
        if (i < n_right)
            CHECK(r.fields[0].channels == v->channels && r.fields[0].bit_depth == v->bit_depth &&
                  r.fields[0].flags == v->flags);
    }
}

TEST(pixels_have_the_bytes_of_their_channels_and_bits)
{
    for (uint32_t channels = 0; channels < 6; channels++)
        for (uint32_t bits = 0; bits <= 32; bits += 4) {
            const int is_right =
                (channels == 1 || channels == 3 || channels == 4) && (bits == 8 || bits == 16);
            const uint32_t pixel = is_right ? channels * bits / 8 : 1;
            struct sample s;
            struct pstk__record r;
            make_sample(&s);
            struct pstk__field_view *v = &s.views[0];
            v->channels = (uint8_t)channels;
            v->bit_depth = (uint8_t)bits;
            v->height = 1;
            v->width = (17 + pixel - 1) / pixel; /* 17 to 32 bytes: the record keeps its size */
            v->stored_size = v->plain_size = v->width * pixel;
            s.limits.max_width[0] = s.limits.max_stored[0] = s.limits.max_plain[0] = 32;
            write_record(&s);
            CHECK_EQ(parse(&s, SIZE, &r, NULL), is_right ? 0 : PSTK_EBADMSG);
            v->stored_size = v->plain_size = v->plain_size + (v->plain_size < 32 ? 1 : -1u);
            write_record(&s);
            CHECK_EQ(parse(&s, SIZE, &r, NULL), PSTK_EBADMSG);
        }
}

TEST(a_reserved_encoding_is_refused_by_its_name)
{
    static const char *const names[] = {"webp", "tiff", "bmp", "gif", "avif", "jxl"};
    for (uint32_t i = 0; i < 6; i++) {
        struct sample s;
        struct pstk__record r;
        struct pstk_error err = {0};
        char want[64];
        make_sample(&s);
        s.views[0].encoding = (uint8_t)(4 + i);
        write_record(&s);
        CHECK_EQ(parse(&s, SIZE, &r, &err), PSTK_EBADMSG);
        snprintf(want, sizeof want, "encoding %u (%s), which this library does not decode", 4 + i,
                 names[i]);
        CHECK(strstr(err.message, want));
        s.views[0].encoding = 10;
        write_record(&s);
        CHECK_EQ(parse(&s, SIZE, &r, &err), PSTK_EBADMSG);
        CHECK(strstr(err.message, "its image encoding is unknown; reading it needs a newer"));
    }
}

TEST(the_identity_depends_on_order_and_content)
{
    struct sample s;
    struct pstk__identity ab = {.n = 0}, ba = {.n = 0}, aa = {.n = 0};
    make_sample(&s);
    for (uint32_t i = 0; i < 2; i++) {
        s.number[0] = (uint8_t)i;
        pstk__identity_add(&ab, &s.schema, s.views);
        s.number[0] = (uint8_t)!i;
        pstk__identity_add(&ba, &s.schema, s.views);
        s.number[0] = 0;
        pstk__identity_add(&aa, &s.schema, s.views);
    }
    for (int l = 0; l < 2; l++)
        CHECK(ab.lane[l] != ba.lane[l] && ab.lane[l] != aa.lane[l] && ba.lane[l] != aa.lane[l]);
}

TEST(parsing_small_heads_is_timed)
{
    struct sample s;
    struct pstk__record r;
    make_sample(&s);
    uint64_t best = UINT64_MAX;
    for (int round = 0; round < 20; round++) {
        uint64_t from = pstk__clock_ns();
        for (int i = 0; i < 10000; i++)
            CHECK_EQ(pstk__record_parse(&r, &s.schema, &s.limits, &s.location, s.bytes, SIZE, NULL),
                     0);
        uint64_t ns = pstk__clock_ns() - from;
        best = ns < best ? ns : best;
    }
    printf("# %.1f ns a head of 3 fields\n", (double)best / 10000);
    CHECK(best / 10000 < 20000); /* generous: sanitizers and busy machines run this too */
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(a_record_comes_back_as_it_was_written),
        CASE(the_head_alone_gives_the_fixed_fields_and_no_others),
        CASE(every_flipped_bit_of_a_record_is_found_and_its_place_named),
        CASE(a_record_of_another_number_or_shard_is_misplaced),
        CASE(a_head_that_contradicts_itself_is_refused_though_its_checksum_is_right),
        CASE(an_entrys_last_two_bytes_must_be_zero),
        CASE(gaps_must_be_zero_where_they_are_read),
        CASE(a_record_ends_where_its_last_gap_does),
        CASE(damage_names_field_shard_record_and_bytes),
        CASE(the_identity_is_that_of_format_md),
        CASE(runs_of_records_join_to_the_identity_of_the_whole_wherever_they_are_cut),
        CASE(the_identity_depends_on_order_and_content),
        CASE(the_identity_depends_on_what_the_entry_says_of_an_image),
        CASE(an_entry_says_which_samples_its_image_has),
        CASE(pixels_have_the_bytes_of_their_channels_and_bits),
        CASE(a_reserved_encoding_is_refused_by_its_name),
        CASE(parsing_small_heads_is_timed),
    };
    return RUN_CASES(cases);
}
