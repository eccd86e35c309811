/* SPDX-License-Identifier: Apache-2.0 */
/* Text of other people in a page. */
#include "cli/ui/html.h"

#include "support/test.h"

static void check_html(const char *text, const char *wanted)
{
    char *made = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&made, &size);
    CHECK(file != NULL);
    html_text(file, text);
    fclose(file);
    CHECK_STR(made, wanted);
    free(made);
}

TEST(text_is_no_markup)
{
    check_html("</script><b a=\"x\" b='y'>&amp;",
               "&lt;/script&gt;&lt;b a=&quot;x&quot; b=&#39;y&#39;&gt;&amp;amp;");
    check_html("a\nb\x1b\xFF \xC3\xA4", "a\\x0ab\\x1b\\xff \xC3\xA4");
}

int main(void)
{
    static const struct test_case cases[] = {
        CASE(text_is_no_markup),
    };
    return RUN_CASES(cases);
}
