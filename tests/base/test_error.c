/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "support/test.h"

#include <errno.h>

TEST(init_clears_and_sets_what_does_not_apply)
{
    struct pstk_error err;
    memset(&err, 0xAB, sizeof err);
    pstk_error_init(&err, sizeof err);
    CHECK_EQ(err.size, sizeof err);
    CHECK_EQ(err.code, 0);
    CHECK(err.sample_id == PSTK_NONE && err.record == PSTK_NONE && err.offset == PSTK_NONE);
    CHECK(err.epoch == PSTK_NONE && err.position == PSTK_NONE);
    CHECK_STR(err.message, "");
    pstk_error_init(NULL, sizeof err);
}

TEST(init_writes_no_more_than_the_callers_size)
{
    struct pstk_error err[2];
    memset(err, 0xAB, sizeof err);
    pstk_error_init(err, 16);
    const unsigned char *bytes = (const unsigned char *)err;
    for (size_t i = 16; i < sizeof err; i++)
        CHECK_EQ(bytes[i], 0xAB);
    CHECK_EQ(pstk__fail(err, PSTK_EIO, PSTK_STAGE_READ, "too small to hold this"), PSTK_EIO);
    for (size_t i = 16; i < sizeof err; i++)
        CHECK_EQ(bytes[i], 0xAB);
}

TEST(a_struct_of_a_later_header_keeps_its_size)
{
    struct {
        struct pstk_error err;
        uint64_t later;
    } both;
    memset(&both, 0xAB, sizeof both);
    pstk_error_init(&both.err, sizeof both);
    CHECK_EQ(both.later, 0);
    pstk__fail(&both.err, PSTK_EIO, PSTK_STAGE_READ, "x");
    CHECK_EQ(both.err.size, sizeof both);
}

TEST(fail_writes_code_stage_and_message_and_clears_the_place)
{
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    CHECK_EQ(pstk__fail(&err, PSTK_EBADMSG, PSTK_STAGE_RECORD, "record %d", 1), PSTK_EBADMSG);
    CHECK_EQ(pstk__fail_at(&err, PSTK_EBADMSG, "a.pstk", 7, 4096, 12), PSTK_EBADMSG);
    CHECK_STR(err.shard, "a.pstk");
    CHECK(err.record == 7 && err.offset == 4096 && err.length == 12);
    CHECK_STR(err.message, "record 1");
    CHECK_EQ(pstk__fail(&err, PSTK_EINVAL, PSTK_STAGE_OPEN, "batch_size: 0"), PSTK_EINVAL);
    CHECK_EQ(err.code, PSTK_EINVAL);
    CHECK_EQ(err.stage, PSTK_STAGE_OPEN);
    CHECK_STR(err.shard, "");
    CHECK(err.record == PSTK_NONE && err.offset == PSTK_NONE && err.length == 0);
}

TEST(a_null_error_only_passes_the_code_on)
{
    CHECK_EQ(pstk__fail(NULL, PSTK_EIO, PSTK_STAGE_READ, "%s", "x"), PSTK_EIO);
    CHECK_EQ(pstk__fail_errno(NULL, ENOSPC, PSTK_STAGE_WRITE, "x"), PSTK_ENOSPC);
    CHECK_EQ(pstk__fail_at(NULL, PSTK_EIO, "s", 0, 0, 0), PSTK_EIO);
}

TEST(a_struct_that_was_only_zeroed_is_filled)
{
    struct pstk_error err = {0};
    pstk__fail(&err, PSTK_EIO, PSTK_STAGE_READ, "x");
    CHECK_EQ(err.size, sizeof err);
    CHECK_STR(err.message, "x");
}

TEST(a_message_may_wrap_the_one_before)
{
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    pstk__fail(&err, PSTK_EIO, PSTK_STAGE_READ, "inner");
    pstk__fail(&err, PSTK_EIO, PSTK_STAGE_READ, "outer: %s", err.message);
    CHECK_STR(err.message, "outer: inner");
    pstk__fail_errno(&err, EIO, PSTK_STAGE_READ, "again: %s", err.message);
    CHECK(strncmp(err.message, "again: outer: inner: ", 21) == 0);
}

TEST(an_errno_gives_the_nearest_code_and_its_text)
{
    static const struct {
        int native, code;
    } pairs[] = {{ENOENT, PSTK_ENOENT}, {EDQUOT, PSTK_ENOSPC},     {EMFILE, PSTK_EFBIG},
                 {ESTALE, PSTK_EIO},    {EROFS, PSTK_EACCES},      {EOPNOTSUPP, PSTK_ENOTSUP},
                 {EAGAIN, PSTK_EBUSY},  {ENOSYS, PSTK_ENOTSUP},    {ENOTDIR, PSTK_ENOENT},
                 {99999, PSTK_EIO},     {ENAMETOOLONG, PSTK_EFBIG}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        struct pstk_error err = {0};
        CHECK_EQ(pstk__fail_errno(&err, pairs[i].native, PSTK_STAGE_READ, "f"), pairs[i].code);
        CHECK_EQ(err.native, pairs[i].native);
        CHECK(strstr(err.message, "(errno "));
    }
}

TEST(long_texts_are_cut_and_the_reason_is_kept)
{
    char name[2000];
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = 0;
    struct pstk_error err = {0};
    pstk__fail(&err, PSTK_EIO, PSTK_STAGE_READ, "%s", name);
    CHECK_EQ(strlen(err.message), sizeof err.message - 1);
    pstk__fail_errno(&err, EIO, PSTK_STAGE_READ, "%s", name);
    CHECK_EQ(strlen(err.message), sizeof err.message - 1);
    CHECK_STR(err.message + strlen(err.message) - 9, "(errno 5)");
    pstk__fail_at(&err, PSTK_EIO, name, 0, 0, 0);
    CHECK_EQ(strlen(err.shard), sizeof err.shard - 1);
}

TEST(every_result_has_a_name_and_a_text)
{
#define X(name, value, text)                                                                       \
    CHECK_EQ(name, value);                                                                         \
    CHECK_STR(pstk_error_name(value), #name);                                                      \
    CHECK_STR(pstk_strerror(value), text);
    PSTK_ERRORS(X)
#undef X
    CHECK_STR(pstk_error_name(0), "PSTK_OK");
    CHECK(pstk_strerror(-9999) && pstk_error_name(-9999));
}

TEST(a_refused_setting_is_named_with_its_value_and_what_it_must_be)
{
    struct pstk_error err = {.size = sizeof err};
    CHECK_EQ(
        pstk__fail_setting(&err, "n_slots", UINT64_MAX, "%s %d to %d (lower it)", "from", 2, 9),
        PSTK_EINVAL);
    CHECK(!strcmp(err.message,
                  "n_slots: value is 18446744073709551615; must be from 2 to 9 (lower it)"));
    CHECK_EQ(err.code, PSTK_EINVAL);
    CHECK_EQ(err.stage, PSTK_STAGE_OPEN);
    CHECK_EQ(pstk__fail_setting(NULL, "n_slots", 1, "at least 2"), PSTK_EINVAL);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(init_clears_and_sets_what_does_not_apply),
        CASE(init_writes_no_more_than_the_callers_size),
        CASE(a_struct_of_a_later_header_keeps_its_size),
        CASE(fail_writes_code_stage_and_message_and_clears_the_place),
        CASE(a_null_error_only_passes_the_code_on),
        CASE(a_struct_that_was_only_zeroed_is_filled),
        CASE(a_message_may_wrap_the_one_before),
        CASE(an_errno_gives_the_nearest_code_and_its_text),
        CASE(long_texts_are_cut_and_the_reason_is_kept),
        CASE(every_result_has_a_name_and_a_text),
        CASE(a_refused_setting_is_named_with_its_value_and_what_it_must_be),
    };
    return RUN_CASES(cases);
}
