/* SPDX-License-Identifier: Apache-2.0 */
#include "support/archive.h"
#include "support/archive_writer.h"
#include "support/test.h"

static struct written two(int is_large, const char *comment)
{
    struct written written = {.is_large = is_large};
    archive_add(&written, "x.npy", "first data", sizeof "first data" - 1);
    archive_add(&written, "folder/y", "second", sizeof "second" - 1);
    archive_finish(&written, comment);
    return written;
}

/* 1: the archive is read, and has these two members. */
static int has_two(const struct written *written)
{
    struct archive archive;
    int ok = archive_read(&archive, written->bytes, written->size, NULL) == 0 && archive.n == 2;
    for (uint32_t i = 0; ok && i < 2; i++) {
        const struct pstk__zip_member *member = &archive.members[i];
        const char *data = i ? "second" : "first data", *name = i ? "folder/y" : "x.npy";
        ok = member->size == strlen(data) && member->name_size == strlen(name) &&
             memcmp(member->name, name, member->name_size) == 0 &&
             member->crc32 == (i ? 0xb61f1169u : 0x21833b49u) &&
             member->local_offset == written->local[i] &&
             memcmp(written->bytes + member->offset, data, member->size) == 0;
    }
    archive_end(&archive);
    return ok;
}

/* The code of reading it, with the message in *err. */
static int code_of(const struct written *written, struct pstk_error *err)
{
    struct archive archive;
    pstk_error_init(err, sizeof *err);
    const int rc = archive_read(&archive, written->bytes, written->size, err);
    archive_end(&archive);
    return rc;
}

TEST(members_are_where_the_directory_and_their_headers_say)
{
    for (int is_large = 0; is_large < 2; is_large++) {
        struct written written = two(is_large, "");
        CHECK(has_two(&written));
        written = two(is_large, "a comment");
        CHECK(has_two(&written));
        written = two(is_large, "PK\5\6, and text that is longer than an end record");
        CHECK(has_two(&written));
    }
}

TEST(an_archive_cut_anywhere_is_refused)
{
    struct pstk_error err;
    for (int is_large = 0; is_large < 2; is_large++) {
        struct written written = two(is_large, "comment");
        while (written.size-- > 0)
            CHECK_EQ(code_of(&written, &err), PSTK_EBADMSG);
    }
}

TEST(bytes_before_and_after_it_are_refused)
{
    struct pstk_error err;
    struct written written = two(0, "");
    written.bytes[written.size++] = 0;
    CHECK_EQ(code_of(&written, &err), PSTK_EBADMSG);
    written = (struct written){.size = 3};
    archive_add(&written, "x.npy", "data", sizeof "data" - 1);
    written.size -= 3; /* the directory says 3 fewer */
    archive_finish(&written, "");
    memmove(written.bytes + 3, written.bytes, written.size);
    written.size += 3;
    CHECK_EQ(code_of(&written, &err), PSTK_ENOTSUP);
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
                struct written written = two(is_large, "");
                written.bytes[written.local[i] + pairs[k][1]] ^= 2;
                CHECK_EQ(code_of(&written, &err), PSTK_EBADMSG);
                written = two(is_large, "");
                const uint64_t directory = written.local[1] + 30 + 8 + 6 + (is_large ? 20 : 0);
                written.bytes[directory + written.entry[i] + pairs[k][0]] ^= 2;
                const int rc = code_of(&written, &err);
                CHECK(rc == PSTK_EBADMSG || (pairs[k][0] == 10 && rc == PSTK_ENOTSUP));
            }
}

TEST(a_header_whose_extra_field_pushes_the_data_out_is_refused)
{
    struct pstk_error err;
    struct written written = {0};
    archive_add(&written, "x.npy", "\7\0\0\0ab", 6); /* a field of type 7 and size 0, two bytes */
    written.bytes[28] = 4;
    archive_finish(&written, "");
    CHECK_EQ(code_of(&written, &err), PSTK_EBADMSG);
    CHECK(strstr(err.message, "member x.npy: it reaches past the members"));
    written.bytes[28] = 3;
    CHECK_EQ(code_of(&written, &err), PSTK_EBADMSG);
    CHECK(strstr(err.message, "the extra field of its header"));
}

TEST(two_fields_with_large_sizes_are_refused)
{
    struct pstk_error err;
    for (int n = 0; n < 3; n++) {
        struct written written = {0};
        const uint64_t size = 4;
        archive_add(&written, "x.npy", "data", 4);
        pstk__put32(written.entries + 24, UINT32_MAX);
        for (int i = 0; i < n; i++)
            written.entries_size +=
                archive_put_large(written.entries + written.entries_size, &size, 1);
        pstk__put16(written.entries + 30, (uint16_t)(12 * n));
        archive_finish(&written, "");
        CHECK_EQ(code_of(&written, &err), n == 1 ? 0 : PSTK_EBADMSG);
    }
}

TEST(compressed_and_encrypted_members_are_refused_with_advice)
{
    struct pstk_error err;
    for (int bit = 0; bit < 16; bit++) {
        struct written written = {0};
        archive_add(&written, "x.npy", "data", sizeof "data" - 1);
        pstk__put16(written.bytes + 6, (uint16_t)(1u << bit));
        pstk__put16(written.entries + 8, (uint16_t)(1u << bit));
        archive_finish(&written, "");
        const int is_refused = bit == 0 || bit == 5 || bit == 6 || bit == 13;
        CHECK_EQ(code_of(&written, &err), is_refused ? PSTK_ENOTSUP : 0);
        CHECK(!is_refused || strstr(err.message, bit == 5 ? "compressed" : "encrypted"));
        CHECK(!is_refused || strstr(err.message, "numpy.savez, or pack it"));
    }
    for (uint16_t method = 1; method < 100; method++) {
        struct written written = {0};
        archive_add(&written, "x.npy", "data", sizeof "data" - 1);
        pstk__put16(written.entries + 10, method);
        archive_finish(&written, "");
        CHECK_EQ(code_of(&written, &err), PSTK_ENOTSUP);
    }
}

TEST(members_that_overlap_are_refused)
{
    struct pstk_error err;
    struct written inner = {0}, written = {0};
    archive_add(&inner, "y.npy", "inner data", sizeof "inner data" - 1);
    archive_add(&written, "x.npy", inner.bytes, (uint32_t)inner.size);
    memcpy(written.entries + written.entries_size, inner.entries, inner.entries_size);
    pstk__put32(written.entries + written.entries_size + 42, 35);
    written.entries_size += inner.entries_size;
    written.n = 2;
    archive_finish(&written, "");
    CHECK_EQ(code_of(&written, &err), PSTK_EBADMSG);
    CHECK(strstr(err.message, "member y.npy: it overlaps another one"));
}

TEST(any_byte_changed_is_refused_or_leaves_the_members_apart)
{
    for (int is_large = 0; is_large < 2; is_large++) {
        const struct written written = two(is_large, "comment");
        for (uint64_t at = 0; at < written.size; at++)
            for (uint32_t change = 1; change < 256; change += change < 3 ? 1 : 21) {
                struct written other = written;
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
        CASE(a_header_whose_extra_field_pushes_the_data_out_is_refused),
        CASE(two_fields_with_large_sizes_are_refused),
        CASE(compressed_and_encrypted_members_are_refused_with_advice),
        CASE(members_that_overlap_are_refused),
        CASE(any_byte_changed_is_refused_or_leaves_the_members_apart),
    };
    return RUN_CASES(cases);
}
