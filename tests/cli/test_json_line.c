/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of JSON as Python writes them. */
#include "cli/ui/json_line.h"

#include "support/test.h"

static void check_strict(const char *line, const char *wanted)
{
    size_t size;
    char *strict = json_line_strict(line, &size);
    CHECK_STR(strict, wanted);
    CHECK_EQ(size, strlen(wanted));
    free(strict);
}

TEST(lines_of_python_become_strict)
{
    check_strict("{\"a\": NaN, \"b\": [-Infinity, Infinity]}",
                 "{\"a\": null, \"b\": [null, null]}");
    check_strict("{\"NaN\": \"NaN \\\" Infinity\"}", "{\"NaN\": \"NaN \\\" Infinity\"}");
    check_strict("\"\\udcff \\ud800 \\u0000\"", "\"? ? ?\"");
    check_strict("\"\\ud83d\\ude00 \\ud83d\\ud83d\"", "\"\\ud83d\\ude00 ??\"");
    check_strict("\"\\u00e4 \xC3\xA4 \xFF \xED\xA0\x80\"", "\"\\u00e4 \xC3\xA4 ? ???\"");
    check_strict("\"\\ud8", "\"\\ud8"); /* cut off: no JSON before, none after */
    check_strict("\"\\", "\"\\");
    check_strict("\"\\\\udcff\"", "\"\\\\udcff\""); /* a backslash, and text */
    check_strict("", "");
    check_strict("NaNNaN", "nullnull");
}

int main(void)
{
    static const struct test_case cases[] = {
        CASE(lines_of_python_become_strict),
    };
    return RUN_CASES(cases);
}
