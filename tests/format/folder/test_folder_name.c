/* SPDX-License-Identifier: Apache-2.0 */
#include "support/test.h"

#include "format/folder/name.h"

#include "base/utf8.h"

#include <string.h>

TEST(the_end_of_a_name_decides_whatever_its_case)
{
    CHECK_EQ(pstk__folder_name("a.jpg"), PSTK__NAME_DECODED);
    CHECK_EQ(pstk__folder_name("a.b.JPEG"), PSTK__NAME_DECODED);
    CHECK_EQ(pstk__folder_name(".png"), PSTK__NAME_DECODED);
    CHECK_EQ(pstk__folder_name("a.webp"), PSTK__NAME_IMAGE);
    CHECK_EQ(pstk__folder_name("a.TIFF"), PSTK__NAME_IMAGE);
    CHECK_EQ(pstk__folder_name("a.jpg.txt"), PSTK__NAME_OTHER);
    CHECK_EQ(pstk__folder_name("jpg"), PSTK__NAME_OTHER);
    CHECK_EQ(pstk__folder_name(""), PSTK__NAME_OTHER);
}

static void check_shown(const char *name, const char *wanted)
{
    char shown[64];
    CHECK_EQ(pstk__folder_show(name, shown, sizeof shown), strcmp(name, wanted) != 0);
    CHECK_STR(shown, wanted);
}

TEST(names_are_shown_as_text_of_one_line)
{
    check_shown("plain name.jpg", "plain name.jpg");
    check_shown("\xc3\xa4\xe6\x97\xa5\xf0\x9f\x90\x9f", "\xc3\xa4\xe6\x97\xa5\xf0\x9f\x90\x9f");
    check_shown("a\nb\x7f", "a\\x0ab\\x7f");
    check_shown("a\\b", "a\\\\b");
    check_shown("\xff\xc3\xa4\xfe", "\\xff\xc3\xa4\\xfe");
    check_shown("\xc3", "\\xc3");
    check_shown("", "");
}

TEST(a_name_that_is_cut_stays_text)
{
    const char name[] = "\xc3\xa4\xe6\x97\xa5\xf0\x9f\x90\x9f\nabcdef\xff";
    for (uint64_t size = 8; size < 40; size++) {
        char shown[40];
        memset(shown, 'x', sizeof shown);
        CHECK_EQ(pstk__folder_show(name, shown, size), 1);
        const size_t length = strnlen(shown, sizeof shown);
        CHECK(length < size);
        CHECK_EQ(pstk__utf8_end(shown, length), length);
        for (uint64_t i = size; i < sizeof shown; i++)
            CHECK_EQ(shown[i], 'x');
    }
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(the_end_of_a_name_decides_whatever_its_case),
        CASE(names_are_shown_as_text_of_one_line),
        CASE(a_name_that_is_cut_stays_text),
    };
    return RUN_CASES(cases);
}
