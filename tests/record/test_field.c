/* SPDX-License-Identifier: Apache-2.0 */
/* A stored field to its plain bytes: what is checked, in which order, and what is asked for. */
#include "record/field.h"

#include "base/crc32c.h"
#include "base/error.h"
#include "support/test.h"

#include <string.h>

#define SIZE 1000

static const struct pstk_field fields[] = {{.name = "a", .kind = PSTK_FIELD_BYTES},
                                           {.name = "b", .kind = PSTK_FIELD_BYTES}};
static struct pstk__schema schema;
static struct pstk__record record;
static struct pstk_error err;
static uint8_t plain[SIZE], packed[2 * SIZE], room[SIZE + 1];

/* The requests to find_memory. */
static int n_asked, refuses;
static struct pstk__decoder *decoder;
static struct pstk__arena scratch;

static int find_memory(void *user, const struct pstk__record *r, uint32_t i,
                       struct pstk__field_memory *out, struct pstk_error *e)
{
    (void)user;
    n_asked++;
    if (refuses)
        return pstk__record_fail(r, i, PSTK_ENOMEM, PSTK_STAGE_RECORD, e, "no room");
    *out = (struct pstk__field_memory){.decoder = decoder, .scratch = &scratch, .plain = room};
    return 0;
}

static const struct pstk__field_reading reading = {.max_pixels = 100, .memory = find_memory};

/* Field 0 plain, field 1 compressed. 0, or -1. */
static int make(void)
{
    static _Alignas(64) uint8_t memory[1 << 20];
    struct pstk__encoder *encoder;
    int64_t size;
    for (uint32_t i = 0; i < SIZE; i++)
        plain[i] = (uint8_t)(i / 7);
    decoder = pstk__decoder_init(memory, sizeof memory);
    if (!decoder || pstk__schema_init(&schema, fields, 2, NULL) < 0 ||
        pstk__encoder_open(&encoder, 3, NULL, 0, NULL) < 0)
        return -1;
    size = pstk__encoder_encode(encoder, plain, SIZE, packed, sizeof packed, NULL);
    pstk__encoder_close(encoder);
    if (size < 0)
        return -1;
    record = (struct pstk__record){
        .schema = &schema, .number = 5, .file_offset = 4096, .shard = "s.pstk", .n_fields = 2};
    record.fields[0] = (struct pstk__field_view){.data = plain,
                                                 .stored_size = SIZE,
                                                 .plain_size = SIZE,
                                                 .stored_crc = pstk__crc32c(0, plain, SIZE),
                                                 .offset = 64};
    record.fields[1] =
        (struct pstk__field_view){.data = packed,
                                  .stored_size = (uint32_t)size,
                                  .plain_size = SIZE,
                                  .stored_crc = pstk__crc32c(0, packed, (size_t)size),
                                  .plain_crc = pstk__crc32c(0, plain, SIZE),
                                  .codec = PSTK_CODEC_ZSTD,
                                  .offset = 64 + SIZE};
    memset(room, 0xa5, sizeof room);
    pstk_error_init(&err, sizeof err);
    n_asked = refuses = 0;
    return 0;
}

static int read_field(uint32_t i, const uint8_t **out)
{
    *out = NULL;
    return pstk__field_read(&record, i, &reading, out, &err);
}

TEST(a_plain_field_is_its_stored_bytes_and_asks_for_nothing)
{
    const uint8_t *out;
    CHECK_EQ(make(), 0);
    CHECK_EQ(read_field(0, &out), 0);
    CHECK(out == plain && n_asked == 0);
}

TEST(a_compressed_field_is_decompressed_into_what_was_found)
{
    const uint8_t *out;
    CHECK_EQ(make(), 0);
    CHECK_EQ(read_field(1, &out), 0);
    CHECK(out == room && n_asked == 1 && memcmp(room, plain, SIZE) == 0 && room[SIZE] == 0xa5);
}

TEST(damaged_bytes_are_refused_before_memory_is_asked_for)
{
    const uint8_t *out;
    for (uint32_t i = 0; i < 2; i++) {
        CHECK_EQ(make(), 0);
        record.fields[i].stored_crc ^= 1;
        CHECK_EQ(read_field(i, &out), PSTK_EBADMSG);
        CHECK(n_asked == 0 && strstr(err.message, "damaged: its checksum is"));
        CHECK(err.record == 5 && err.offset == 4096 + record.fields[i].offset);
        CHECK_STR(err.shard, "s.pstk");
    }
}

TEST(bytes_that_no_checksum_of_their_own_covers_are_taken_as_they_are)
{
    const uint8_t *out;
    const uint32_t kinds[] = {PSTK__CHECKSUM_HEAD, PSTK__CHECKSUM_NONE};
    for (uint32_t k = 0; k < 2; k++) {
        CHECK_EQ(make(), 0);
        record.fields[0].stored_crc ^= 1;
        record.fields[0].checksum = kinds[k];
        CHECK_EQ(read_field(0, &out), 0);
        CHECK(out == plain);
    }
}

TEST(a_field_that_was_not_read_is_refused_whatever_covers_it)
{
    const uint8_t *out;
    const uint32_t kinds[] = {PSTK__CHECKSUM_CRC32C, PSTK__CHECKSUM_NONE};
    for (uint32_t k = 0; k < 2; k++) {
        CHECK_EQ(make(), 0);
        record.fields[0].data = NULL;
        record.fields[0].checksum = kinds[k];
        CHECK_EQ(read_field(0, &out), PSTK_EINVAL);
    }
}

TEST(an_image_over_the_limit_is_refused_before_memory_is_asked_for)
{
    const uint8_t *out;
    CHECK_EQ(make(), 0);
    record.fields[1].width = 10;
    record.fields[1].height = 10;
    CHECK_EQ(read_field(1, &out), 0);
    CHECK_EQ(make(), 0);
    record.fields[1].width = 11;
    record.fields[1].height = 10;
    CHECK_EQ(read_field(1, &out), PSTK_EFBIG);
    CHECK(n_asked == 0 && strstr(err.message, "11 x 10 pixels is over the limit of 100 pixels"));
}

TEST(memory_that_cannot_be_had_is_the_result)
{
    const uint8_t *out;
    CHECK_EQ(make(), 0);
    refuses = 1;
    CHECK_EQ(read_field(1, &out), PSTK_ENOMEM);
    CHECK(strstr(err.message, "no room"));
}

TEST(a_field_that_does_not_decompress_to_its_bytes_is_damaged)
{
    const uint8_t *out;
    CHECK_EQ(make(), 0);
    record.fields[1].plain_crc ^= 1;
    CHECK_EQ(read_field(1, &out), PSTK_EBADMSG);
    CHECK(strstr(err.message, "decompresses to bytes whose checksum is"));
    CHECK_EQ(make(), 0);
    packed[0] ^= 1;
    record.fields[1].stored_crc = pstk__crc32c(0, packed, record.fields[1].stored_size);
    CHECK_EQ(read_field(1, &out), PSTK_EBADMSG);
    CHECK(strstr(err.message, "s.pstk: record 5: field b (bytes 5160 to"));
}

TEST(a_field_in_a_file_of_its_own_is_placed_there)
{
    static const struct pstk__field_file files[] = {
        {.name = "a.npy", .offset = 128, .size = 50, .file = 3}, {.name = "b.npy", .file = 4}};
    const uint8_t *out;
    const char *name;
    uint32_t file;
    uint64_t offset;
    CHECK_EQ(make(), 0);
    pstk__record_locate(&record, 1, &file, &name, &offset);
    CHECK(file == 0 && offset == 4096 + 64 + SIZE && name == record.shard);
    record.field_files = files;
    pstk__record_locate(&record, 0, &file, &name, &offset);
    CHECK(file == 3 && offset == 128 + 5 * 50 && name == files[0].name);
    record.fields[0].stored_crc ^= 1;
    CHECK_EQ(read_field(0, &out), PSTK_EBADMSG);
    CHECK(strstr(err.message, "a.npy: record 5: field a (bytes 378 to"));
    CHECK_STR(err.shard, "a.npy");
    CHECK_EQ(err.offset, 378);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(a_plain_field_is_its_stored_bytes_and_asks_for_nothing),
        CASE(a_compressed_field_is_decompressed_into_what_was_found),
        CASE(damaged_bytes_are_refused_before_memory_is_asked_for),
        CASE(bytes_that_no_checksum_of_their_own_covers_are_taken_as_they_are),
        CASE(a_field_that_was_not_read_is_refused_whatever_covers_it),
        CASE(an_image_over_the_limit_is_refused_before_memory_is_asked_for),
        CASE(memory_that_cannot_be_had_is_the_result),
        CASE(a_field_that_does_not_decompress_to_its_bytes_is_damaged),
        CASE(a_field_in_a_file_of_its_own_is_placed_there),
    };
    return RUN_CASES(cases);
}
