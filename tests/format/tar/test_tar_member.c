/* SPDX-License-Identifier: Apache-2.0 */
/* Members of archives: every form of a name and a size, and what is refused. */
#include "format/tar/member.h"

#include "support/tar_blocks.h"
#include "support/test.h"

static struct tar_blocks tar;
static struct pstk__tar_member member;
static struct pstk__tar_fault fault;

static enum pstk__tar_step step_at(uint64_t at)
{
    return pstk__tar_read(&member, at, tar.bytes + at, tar.size - at, &fault);
}

static int is_bad(const char *says)
{
    const int bad = step_at(0) == PSTK__TAR_BAD && strstr(fault.why, says);
    tar.size = 0;
    return bad;
}

TEST(members_follow_each_other)
{
    tar.size = 0;
    tar_add(&tar, "a/b.txt", '0', "hello", 5);
    tar_add(&tar, "old", 0, "", 0); /* as archives before 1988 */
    tar_add(&tar, "d/", '5', "", 0);
    memset(tar.bytes + tar.size, 0, 512);
    tar.size += 512;
    CHECK_EQ(step_at(0), PSTK__TAR_MEMBER);
    CHECK(member.begin == 0 && member.data == 512 && member.size == 5 && member.next == 1024);
    CHECK_STR(member.name, "a/b.txt");
    CHECK_EQ(step_at(1024), PSTK__TAR_MEMBER);
    CHECK(member.size == 0 && member.next == 1536);
    CHECK_EQ(step_at(1536), PSTK__TAR_OTHER);
    CHECK_EQ(step_at(2048), PSTK__TAR_END);
    CHECK_EQ(step_at(2560), PSTK__TAR_MORE);
}

TEST(a_prefix_comes_before_the_name)
{
    tar.size = 0;
    uint8_t *header = tar_add(&tar, "name", '0', "", 0);
    memcpy(header + 345, "some/prefix", 11);
    tar_sum(header);
    CHECK_EQ(step_at(0), PSTK__TAR_MEMBER);
    CHECK_STR(member.name, "some/prefix/name");
    memcpy(header + 257, "ustar  ", 8); /* GNU's magic; its bytes there are times */
    tar_sum(header);
    CHECK_EQ(step_at(0), PSTK__TAR_MEMBER);
    CHECK_STR(member.name, "name");
    memset(header, 'n', 100); /* a name of 100 bytes has no 0 */
    tar_sum(header);
    CHECK_EQ(step_at(0), PSTK__TAR_MEMBER);
    CHECK_EQ(strlen(member.name), 100);
}

TEST(long_names_and_pax_records_replace_name_and_size)
{
    static char name[4000];
    memset(name, 'x', sizeof name - 1);
    tar.size = 0;
    tar_add(&tar, "././@LongLink", 'L', name, sizeof name);
    tar_add(&tar, "short", '0', "abc", 3);
    CHECK_EQ(step_at(0), PSTK__TAR_MEMBER);
    CHECK(!strcmp(member.name, name) && member.begin == 0 && member.size == 3);
    CHECK_EQ(member.data, 512 + 4096 + 512);
    tar.size = 0;
    const char *pax = "20 path=long/n.a.me\n9 size=7\n29 mtime=1700000000.12345678\n";
    tar_add(&tar, "././@PaxHeader", 'x', pax, strlen(pax));
    tar_add(&tar, "short", '0', "abcdefg", 7);
    CHECK_EQ(step_at(0), PSTK__TAR_MEMBER);
    CHECK_STR(member.name, "long/n.a.me");
    CHECK(member.size == 7 && member.first == 0);
}

TEST(headers_without_name_or_size_need_not_be_read_again)
{
    const char *const pax[] = {"29 mtime=1700000000.12345678\n", "9 size=3\n"};
    for (int k = 0; k < 2; k++) {
        tar.size = 0;
        tar_add(&tar, "././@PaxHeader", 'x', pax[k], strlen(pax[k]));
        tar_add(&tar, "././@LongLink", 'K', "target", 7);
        tar_add(&tar, "a.txt", '0', "abc", 3);
        CHECK_EQ(step_at(0), PSTK__TAR_MEMBER);
        CHECK(member.begin == 0 && member.data == 5 * 512 && member.next == 6 * 512);
        CHECK_EQ(member.first, k ? 0 : 4 * 512);
    }
    CHECK_EQ(step_at(4 * 512), PSTK__TAR_MEMBER);
    CHECK(member.begin == 4 * 512 && member.first == 4 * 512 && member.size == 3);
    CHECK_STR(member.name, "a.txt");
}

TEST(sums_of_large_bytes_and_of_signed_ones_hold)
{
    tar.size = 0;
    uint8_t *header = tar_add(&tar, "a", '0', "", 0);
    memset(header, 0xff, 100);
    memset(header + 157, 0xff, 512 - 157);
    tar_sum(header);
    CHECK_EQ(step_at(0), PSTK__TAR_MEMBER);
    tar.size = 0;
    header = tar_add(&tar, "a", '0', "", 0);
    memset(header, 0xff, 100);
    int sum = 0;
    for (int i = 0; i < 512; i++)
        sum += i >= 148 && i < 156 ? ' ' : (int8_t)header[i];
    CHECK(sum > 0);
    snprintf((char *)header + 148, 8, "%06o", (unsigned)sum & 0xffff);
    CHECK_EQ(step_at(0), PSTK__TAR_MEMBER);
    snprintf((char *)header + 148, 8, "%06o", ((unsigned)sum + 1) & 0xffff);
    CHECK(is_bad("checksum"));
}

TEST(sizes_may_be_binary)
{
    tar.size = 0;
    uint8_t *header = tar_add(&tar, "a", '0', "", 0);
    memset(header + 124, 0, 12);
    header[124] = 0x80;
    header[131] = 0x02; /* 2 << 32 */
    tar_sum(header);
    CHECK_EQ(step_at(0), PSTK__TAR_MEMBER);
    CHECK_EQ(member.size, 1ull << 33);
    memset(header + 124, 0xff, 12);
    tar_sum(header);
    CHECK(is_bad("size that is not a number"));
}

TEST(damage_and_what_is_not_read_is_refused)
{
    tar.size = 0;
    for (int bit = 0; bit < 8 * 512; bit++) {
        tar.size = 0;
        uint8_t *header = tar_add(&tar, "a.jpg", '0', "", 0);
        header[bit / 8] ^= (uint8_t)(1 << bit % 8);
        /* Its own bytes are not part of the sum, and some of their bits do not count. */
        CHECK((bit / 8 >= 148 && bit / 8 < 156) || is_bad("checksum"));
    }
    tar.size = 0;
    tar_add(&tar, "a", '2', "", 0);
    CHECK(is_bad("is a link"));
    tar_add(&tar, "a", '1', "", 0);
    CHECK(is_bad("is a link"));
    tar_add(&tar, "a", '3', "", 0);
    CHECK(is_bad("neither a file nor a folder"));
    tar_add(&tar, "a", 'S', "", 0);
    CHECK(is_bad("sparse"));
    tar_add(&tar, "x", 'x', "22 GNU.sparse.major=1\n", 22);
    CHECK(is_bad("sparse"));
    const char *const damaged[] = {
        "9 size=x\n", "99 path=a\n", "path=a\n",   "9 pathxa\n",
        "3 \n",       "9 path=a ",   "12 path=\n", "18446744073709551617 path=a\n"};
    for (size_t i = 0; i < sizeof damaged / sizeof damaged[0]; i++) {
        tar_add(&tar, "x", 'x', damaged[i], strlen(damaged[i]));
        tar_add(&tar, "a", '0', "", 0);
        CHECK(is_bad("")); /* some words */
    }
    tar_add(&tar, "././@LongLink", 'L', "name", 5);
    memset(tar.bytes + tar.size, 0, 512);
    tar.size += 512;
    CHECK(is_bad("has a name but no header"));
}

static int splits_at(int at_last, const char *text, const char *key, const char *suffix)
{
    struct pstk__tar_name name;
    pstk__tar_split(&name, text, at_last);
    if (!suffix)
        return name.suffix_size == 0;
    return name.key_size == strlen(key) && !memcmp(name.key, key, name.key_size) &&
           !strcmp(name.suffix, suffix) && name.suffix_size == strlen(suffix);
}

static int splits(const char *text, const char *key, const char *suffix)
{
    return splits_at(0, text, key, suffix);
}

TEST(names_part_at_their_last_dot_where_that_is_asked_for)
{
    CHECK(splits_at(1, "x.y/a.seg.PNG", "x.y/a.seg", "png"));
    CHECK(splits_at(1, "a.jpg", "a", "jpg"));
    CHECK(splits_at(1, "a.jpg.", NULL, NULL));
    CHECK(splits_at(1, ".a.jpg", NULL, NULL));
    CHECK(splits_at(1, "x.y/a", NULL, NULL));
}

TEST(names_part_at_the_first_dot_of_their_last_part)
{
    CHECK(splits("a.jpg", "a", "jpg"));
    CHECK(splits("x.y/a.seg.png", "x.y/a", "seg.png"));
    CHECK(splits("./a.JPG", "a", "jpg"));
    CHECK(splits("a", NULL, NULL) && splits("x.y/a", NULL, NULL));
    CHECK(splits("a.", NULL, NULL) && splits(".a.jpg", NULL, NULL) && splits("d/.a", NULL, NULL));
    CHECK(splits("__meta__/a.jpg", NULL, NULL) && splits("d/__a__", NULL, NULL));
    CHECK(splits("__a.jpg", "__a", "jpg"));
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(members_follow_each_other),
        CASE(a_prefix_comes_before_the_name),
        CASE(long_names_and_pax_records_replace_name_and_size),
        CASE(sizes_may_be_binary),
        CASE(damage_and_what_is_not_read_is_refused),
        CASE(headers_without_name_or_size_need_not_be_read_again),
        CASE(sums_of_large_bytes_and_of_signed_ones_hold),
        CASE(names_part_at_the_first_dot_of_their_last_part),
        CASE(names_part_at_their_last_dot_where_that_is_asked_for),
    };
    return RUN_CASES(cases);
}
