/* SPDX-License-Identifier: Apache-2.0 */
#include "base/little.h"
#include "support/archive.h"
#include "support/test.h"

/* An archive being written. */
struct made {
    uint8_t bytes[4096];
    uint64_t size;
    uint8_t entries[1024];
    uint64_t entries_size;
    uint32_t n;
    int is_large; /* 1: all sizes and offsets are in zip64's fields */
    uint64_t entry[4], local[4];
};

static void put(struct made *made, const void *bytes, uint64_t size)
{
    memcpy(made->bytes + made->size, bytes, size);
    made->size += size;
}

/* The zip64 field: n numbers of 64 bits. */
static uint32_t put_large(uint8_t *to, const uint64_t *numbers, uint32_t n)
{
    pstk__put16(to, 1);
    pstk__put16(to + 2, (uint16_t)(8 * n));
    for (uint32_t i = 0; i < n; i++)
        pstk__put64(to + 4 + (size_t)8 * i, numbers[i]);
    return 4 + 8 * n;
}

static void add(struct made *made, const char *name, const char *data)
{
    uint8_t local[256] = "PK\3\4", *entry = made->entries + made->entries_size;
    const uint32_t n = (uint32_t)strlen(name), size = (uint32_t)strlen(data);
    const uint64_t numbers[] = {size, size, made->size};
    uint32_t local_size = 30 + n, entry_size = 46 + n;
    made->local[made->n] = made->size;
    made->entry[made->n++] = made->entries_size;
    memset(entry, 0, 46);
    memcpy(entry, "PK\1\2", 4);
    pstk__put32(local + 14, 0x1234);
    pstk__put32(entry + 16, 0x1234);
    for (uint32_t i = 0; i < 2; i++) {
        pstk__put32(local + 18 + (size_t)4 * i, made->is_large ? UINT32_MAX : size);
        pstk__put32(entry + 20 + (size_t)4 * i, made->is_large ? UINT32_MAX : size);
    }
    pstk__put32(entry + 42, made->is_large ? UINT32_MAX : (uint32_t)made->size);
    pstk__put16(local + 26, (uint16_t)n);
    pstk__put16(entry + 28, (uint16_t)n);
    memcpy(local + 30, name, n);
    memcpy(entry + 46, name, n);
    if (made->is_large) {
        const uint32_t local_extra = put_large(local + local_size, numbers, 2);
        const uint32_t entry_extra = put_large(entry + entry_size, numbers, 3);
        pstk__put16(local + 28, (uint16_t)local_extra);
        pstk__put16(entry + 30, (uint16_t)entry_extra);
        local_size += local_extra;
        entry_size += entry_extra;
    }
    put(made, local, local_size);
    put(made, data, size);
    made->entries_size += entry_size;
}

/* Write the directory and the end. */
static void finish(struct made *made, const char *comment)
{
    uint8_t end64[56] = "PK\6\6", locator[20] = "PK\6\7", end[22] = "PK\5\6";
    const uint64_t offset = made->size;
    put(made, made->entries, made->entries_size);
    if (made->is_large) {
        pstk__put64(end64 + 4, 44);
        pstk__put64(end64 + 24, made->n);
        pstk__put64(end64 + 32, made->n);
        pstk__put64(end64 + 40, made->entries_size);
        pstk__put64(end64 + 48, offset);
        pstk__put64(locator + 8, made->size);
        pstk__put32(locator + 16, 1);
        put(made, end64, sizeof end64);
        put(made, locator, sizeof locator);
    }
    pstk__put16(end + 8, made->is_large ? UINT16_MAX : (uint16_t)made->n);
    pstk__put16(end + 10, made->is_large ? UINT16_MAX : (uint16_t)made->n);
    pstk__put32(end + 12, made->is_large ? UINT32_MAX : (uint32_t)made->entries_size);
    pstk__put32(end + 16, made->is_large ? UINT32_MAX : (uint32_t)offset);
    pstk__put16(end + 20, (uint16_t)strlen(comment));
    put(made, end, sizeof end);
    put(made, comment, strlen(comment));
}

static struct made two(int is_large, const char *comment)
{
    struct made made = {.is_large = is_large};
    add(&made, "x.npy", "first data");
    add(&made, "folder/y", "second");
    finish(&made, comment);
    return made;
}

/* 1: the archive is read, and has these two members. */
static int has_two(const struct made *made)
{
    struct archive archive;
    int ok = archive_read(&archive, made->bytes, made->size, NULL) == 0 && archive.n == 2;
    for (uint32_t i = 0; ok && i < 2; i++) {
        const struct pstk__zip_member *member = &archive.members[i];
        const char *data = i ? "second" : "first data", *name = i ? "folder/y" : "x.npy";
        ok = member->size == strlen(data) && member->name_size == strlen(name) &&
             memcmp(member->name, name, member->name_size) == 0 && member->crc32 == 0x1234 &&
             member->local_offset == made->local[i] &&
             memcmp(made->bytes + member->offset, data, member->size) == 0;
    }
    archive_end(&archive);
    return ok;
}

/* The code of reading it, with the message in *err. */
static int code_of(const struct made *made, struct pstk_error *err)
{
    struct archive archive;
    pstk_error_init(err, sizeof *err);
    const int rc = archive_read(&archive, made->bytes, made->size, err);
    archive_end(&archive);
    return rc;
}

TEST(members_are_where_the_directory_and_their_headers_say)
{
    for (int is_large = 0; is_large < 2; is_large++) {
        struct made made = two(is_large, "");
        CHECK(has_two(&made));
        made = two(is_large, "a comment");
        CHECK(has_two(&made));
        made = two(is_large, "PK\5\6, and text that is longer than an end record");
        CHECK(has_two(&made));
    }
}

TEST(an_archive_cut_anywhere_is_refused)
{
    struct pstk_error err;
    for (int is_large = 0; is_large < 2; is_large++) {
        struct made made = two(is_large, "comment");
        while (made.size-- > 0)
            CHECK_EQ(code_of(&made, &err), PSTK_EBADMSG);
    }
}

TEST(bytes_before_and_after_it_are_refused)
{
    struct pstk_error err;
    struct made made = two(0, "");
    made.bytes[made.size++] = 0;
    CHECK_EQ(code_of(&made, &err), PSTK_EBADMSG);
    made = (struct made){.size = 3};
    add(&made, "x.npy", "data");
    made.size -= 3; /* the directory says 3 fewer */
    finish(&made, "");
    memmove(made.bytes + 3, made.bytes, made.size);
    made.size += 3;
    CHECK_EQ(code_of(&made, &err), PSTK_ENOTSUP);
    CHECK(strstr(err.message, "3 bytes before its archive"));
}

TEST(an_entry_that_differs_from_its_header_is_refused)
{
    /* byte of the entry, and of the header, which have the same */
    static const uint8_t pairs[][2] = {{8, 6},   {10, 8},  {16, 14}, {20, 18},
                                       {24, 22}, {28, 26}, {46, 30}};
    struct pstk_error err;
    for (int is_large = 0; is_large < 2; is_large++)
        for (size_t k = 0; k < sizeof pairs / sizeof pairs[0]; k++)
            for (uint32_t i = 0; i < 2; i++) {
                struct made made = two(is_large, "");
                made.bytes[made.local[i] + pairs[k][1]] ^= 2;
                CHECK_EQ(code_of(&made, &err), PSTK_EBADMSG);
                made = two(is_large, "");
                const uint64_t directory = made.local[1] + 30 + 8 + 6 + (is_large ? 20 : 0);
                made.bytes[directory + made.entry[i] + pairs[k][0]] ^= 2;
                const int rc = code_of(&made, &err);
                CHECK(rc == PSTK_EBADMSG || (pairs[k][0] == 10 && rc == PSTK_ENOTSUP));
            }
}

TEST(compressed_and_encrypted_members_are_refused_with_advice)
{
    struct pstk_error err;
    for (int bit = 0; bit < 16; bit++) {
        struct made made = {0};
        add(&made, "x.npy", "data");
        pstk__put16(made.bytes + 6, (uint16_t)(1u << bit));
        pstk__put16(made.entries + 8, (uint16_t)(1u << bit));
        finish(&made, "");
        const int is_refused = bit == 0 || bit == 5 || bit == 6 || bit == 13;
        CHECK_EQ(code_of(&made, &err), is_refused ? PSTK_ENOTSUP : 0);
        CHECK(!is_refused || strstr(err.message, bit == 5 ? "compressed" : "encrypted"));
        CHECK(!is_refused || strstr(err.message, "numpy.savez, or pack it"));
    }
    for (uint16_t method = 1; method < 100; method++) {
        struct made made = {0};
        add(&made, "x.npy", "data");
        pstk__put16(made.entries + 10, method);
        finish(&made, "");
        CHECK_EQ(code_of(&made, &err), PSTK_ENOTSUP);
    }
}

TEST(members_that_overlap_are_refused)
{
    struct pstk_error err;
    struct made inner = {0}, made = {0};
    add(&inner, "y.npy", "inner data");
    char local[64] = "";
    memcpy(local, inner.bytes, inner.size);
    for (size_t i = 0; i < inner.size; i++)
        local[i] = local[i] ? local[i] : 1; /* strlen counts it; mended below */
    add(&made, "x.npy", local);
    memcpy(made.bytes + 35, inner.bytes, inner.size);
    memcpy(made.entries + made.entries_size, inner.entries, inner.entries_size);
    pstk__put32(made.entries + made.entries_size + 42, 35);
    made.entries_size += inner.entries_size;
    made.n = 2;
    finish(&made, "");
    CHECK_EQ(code_of(&made, &err), PSTK_EBADMSG);
    CHECK(strstr(err.message, "member y.npy: it overlaps another one"));
}

TEST(any_byte_changed_is_refused_or_leaves_the_members_apart)
{
    for (int is_large = 0; is_large < 2; is_large++) {
        const struct made made = two(is_large, "comment");
        for (uint64_t at = 0; at < made.size; at++)
            for (uint32_t change = 1; change < 256; change += change < 3 ? 1 : 21) {
                struct made other = made;
                struct archive archive;
                other.bytes[at] ^= (uint8_t)change;
                const int rc = archive_read(&archive, other.bytes, other.size, NULL);
                for (uint32_t i = 0; rc == 0 && i < archive.n; i++)
                    CHECK(archive.members[i].offset + archive.members[i].size <=
                          archive.zip.directory_offset);
                archive_end(&archive);
            }
    }
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(members_are_where_the_directory_and_their_headers_say),
        CASE(an_archive_cut_anywhere_is_refused),
        CASE(bytes_before_and_after_it_are_refused),
        CASE(an_entry_that_differs_from_its_header_is_refused),
        CASE(compressed_and_encrypted_members_are_refused_with_advice),
        CASE(members_that_overlap_are_refused),
        CASE(any_byte_changed_is_refused_or_leaves_the_members_apart),
    };
    return RUN_CASES(cases);
}
