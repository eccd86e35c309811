/* SPDX-License-Identifier: Apache-2.0 */
/* The files that a path names: one, the files of a folder, the files of a pattern. */
#include "format/listing.h"

#include "support/fixture.h"
#include "support/test.h"

static struct fixture f;

static void touch(const char *name, const char *text)
{
    FILE *file = fopen(fixture_path(&f, name), "w");
    fputs(text, file);
    fclose(file);
}

static void make_files(void)
{
    fixture_open(&f);
    mkdir(fixture_path(&f, "a"), 0700);
    mkdir(fixture_path(&f, "b"), 0700);
    touch("10.tar", "ten");
    touch("09.tar", "nine");
    touch("8.tar", "");
    touch(".hidden.tar", "");
    touch("x.txt", "");
    touch("a/1.tar", "1");
    touch("b/1.tar", "2");
}

/* The names that names() and probe() look for. */
static const char *wanted = ".tar";

/* The names that a path lists, joined by spaces; or "!" and the code. */
static const char *names(const char *path)
{
    static char text[512];
    struct pstk__listing listing;
    pstk_error_init(&f.err, sizeof f.err);
    const int r =
        pstk__listing_open(&listing, &pstk__store_local, fixture_path(&f, path), wanted, &f.err);
    text[0] = 0;
    if (r < 0)
        snprintf(text, sizeof text, "!%s", pstk_error_name(r));
    for (uint64_t i = 0; r == 0 && i < listing.names.n; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i ? " " : "",
                 pstk__texts_get(&listing.names, i));
    pstk__listing_close(&listing);
    return text;
}

static int probe(const char *path)
{
    return pstk__listing_probe(&pstk__store_local, fixture_path(&f, path), wanted, &f.err);
}

TEST(a_folder_lists_its_files_sorted_by_their_bytes)
{
    make_files();
    CHECK_STR(names("."), "09.tar 10.tar 8.tar");
    CHECK_STR(names("a/"), "1.tar");
    fixture_close(&f);
}

TEST(a_pattern_lists_in_its_own_order)
{
    make_files();
    CHECK_STR(names("10.tar"), "10.tar");
    CHECK_STR(names("{09..10}.tar"), "09.tar 10.tar");
    CHECK_STR(names("{8..10}.tar"), "!PSTK_ENOENT"); /* there is no 9.tar */
    CHECK(strstr(f.err.message, "9.tar"));
    CHECK_STR(names("{10,8}.tar"), "10.tar 8.tar");
    CHECK_STR(names("{b,a}/{1..1}.tar"), "b/1.tar a/1.tar");
    CHECK_STR(names("*.tar"), "09.tar 10.tar 8.tar");
    CHECK_STR(names("?.tar"), "8.tar");
    CHECK_STR(names("1*.tar"), "10.tar");
    fixture_close(&f);
}

TEST(a_folder_may_have_braces_in_its_name)
{
    make_files();
    CHECK_EQ(mkdir(fixture_path(&f, "t{1}"), 0700), 0);
    CHECK_EQ(mkdir(fixture_path(&f, "t{1}/{a,b}"), 0700), 0);
    touch("t{1}/1.tar", "");
    touch("t{1}/2.tar", "");
    touch("t{1}/{a,b}/3.tar", "");
    CHECK(probe("t{1}") == 1 && probe("t{1}/1.tar") == 1 && probe("t{1}/{a,b}") == 1);
    CHECK_STR(names("t{1}"), "1.tar 2.tar");
    CHECK_STR(names("t{1}/"), "1.tar 2.tar");
    CHECK_STR(names("t{1}/2.tar"), "2.tar");
    CHECK_STR(names("t{1}/*.tar"), "1.tar 2.tar");
    CHECK_STR(names("t{1}/{2..2}.tar"), "2.tar");
    CHECK_STR(names("t{1}/{a,b}/3.tar"), "3.tar");
    CHECK_STR(names("t{1}/{a,b}"), "3.tar");
    CHECK_STR(names("t{1}/{c,d}/3.tar"), "!PSTK_ENOENT");
    CHECK(strstr(f.err.message, "t{1}/c/3.tar"));
    CHECK_EQ(mkdir(fixture_path(&f, "?*.tar"), 0700), 0);
    touch("?*.tar/4.tar", "");
    CHECK_STR(names("?*.tar"), "4.tar");
    CHECK_STR(names("t{1}/9.tar"), "!PSTK_ENOENT");
    CHECK(strstr(f.err.message, "t{1}/9.tar"));
    fixture_close(&f);
}

TEST(a_pattern_that_is_invalid_or_matches_nothing_is_refused)
{
    make_files();
    CHECK_STR(names("z*.tar"), "!PSTK_ENOENT");
    CHECK(strstr(f.err.message, "matches no file"));
    CHECK_STR(names("{10..09}.tar"), "!PSTK_EINVAL");
    CHECK(strstr(f.err.message, "numbers that rise"));
    CHECK_STR(names("{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}.tar"), "!PSTK_EINVAL");
    CHECK_STR(names("{0..999999999}.tar"), "!PSTK_EFBIG");
    fixture_close(&f);
}

TEST(a_probe_knows_files_folders_and_patterns)
{
    make_files();
    CHECK(probe("10.tar") == 1 && probe(".") == 1 && probe("{0..5}.tar") == 1);
    CHECK(probe("x.txt") == 0 && probe("absent") == 0 && probe("absent.tar") == 0);
    CHECK_EQ(mkdir(fixture_path(&f, "empty"), 0700), 0);
    CHECK_EQ(probe("empty"), 0);
    fixture_close(&f);
}

TEST(names_may_have_several_ends_or_match_globs)
{
    make_files();
    touch("a-1-of-2", "");
    touch("a-2-of-2", "");
    touch("a-2-of-2.idx", "");
    wanted = ".txt *-[0-9]-of-[0-9]";
    CHECK(probe(".") == 1 && probe("a-1-of-2") == 1 && probe("a") == 0 && probe("10.tar") == 0);
    CHECK_STR(names("."), "a-1-of-2 a-2-of-2 x.txt");
    CHECK_STR(names("a-{2..2}-of-2"), "a-2-of-2");
    wanted = "*";
    CHECK(probe("a-*") == 1 && probe("10.tar") == 1);
    CHECK_STR(names("a-*"), "a-1-of-2 a-2-of-2 a-2-of-2.idx"); /* a pattern lists all it matches */
    CHECK_STR(names("10.tar"), "10.tar");
    wanted = ".tar";
    CHECK_EQ(mkdir(fixture_path(&f, "c.tar"), 0700), 0);
    touch("c.tar/1.tar", "");
    CHECK_STR(names("c.tar"), "1.tar"); /* a folder may be named as its files are */
    fixture_close(&f);
}

TEST(sizes_are_those_of_the_files)
{
    struct pstk__listing listing;
    make_files();
    CHECK_EQ(pstk__listing_open(&listing, &pstk__store_local, f.dir, ".tar", &f.err), 0);
    CHECK(listing.sizes[0] == 4 && listing.sizes[1] == 3 && listing.sizes[2] == 0);
    CHECK_STR(listing.folder, f.dir);
    pstk__listing_close(&listing);
    fixture_close(&f);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(a_folder_lists_its_files_sorted_by_their_bytes),
        CASE(a_pattern_lists_in_its_own_order),
        CASE(a_folder_may_have_braces_in_its_name),
        CASE(a_pattern_that_is_invalid_or_matches_nothing_is_refused),
        CASE(a_probe_knows_files_folders_and_patterns),
        CASE(names_may_have_several_ends_or_match_globs),
        CASE(sizes_are_those_of_the_files),
    };
    return RUN_CASES(cases);
}
