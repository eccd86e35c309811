/* SPDX-License-Identifier: Apache-2.0 */
#include <penstock/types.h>

#include "support/test.h"

TEST(the_version_is_that_of_the_header)
{
    char text[32];
    snprintf(text, sizeof text, "%d.%d.%d", PSTK_VERSION_MAJOR, PSTK_VERSION_MINOR,
             PSTK_VERSION_PATCH);
    CHECK_STR(pstk_version(), text);
}

TEST(every_dtype_is_parsed_from_its_name)
{
    for (uint32_t dtype = PSTK_U8; dtype <= PSTK_F64; dtype++) {
        CHECK(pstk_dtype_size(dtype) > 0);
        CHECK_EQ(pstk_dtype_parse(pstk_dtype_name(dtype)), dtype);
    }
    CHECK_EQ(pstk_dtype_size(PSTK_BF16), 2);
    CHECK_STR(pstk_dtype_name(PSTK_BF16), "bf16");
}

TEST(unknown_dtypes_are_nothing)
{
    static const uint32_t unknown[] = {0, PSTK_F64 + 1, UINT32_MAX};
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(pstk_dtype_size(unknown[i]), 0);
        CHECK_STR(pstk_dtype_name(unknown[i]), "?");
    }
    CHECK_EQ(pstk_dtype_parse("float32"), 0);
    CHECK_EQ(pstk_dtype_parse("?"), 0);
    CHECK_EQ(pstk_dtype_parse(""), 0);
    CHECK_EQ(pstk_dtype_parse(NULL), 0);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(the_version_is_that_of_the_header),
        CASE(every_dtype_is_parsed_from_its_name),
        CASE(unknown_dtypes_are_nothing),
    };
    return RUN_CASES(cases);
}
