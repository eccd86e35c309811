/* SPDX-License-Identifier: Apache-2.0 */
#include "base/little.h"
#include "format/arrays/safetensors.h"
#include "support/test.h"

/* Parse a head of a file that has `body` bytes after it; the text is in memory of its size. */
static int parse(const char *text, uint64_t body, struct pstk__safetensors *out,
                 struct pstk_error *err)
{
    const uint64_t size = strlen(text);
    char *exact = malloc(size ? size : 1);
    if (!exact)
        abort();
    memcpy(exact, text, size);
    pstk_error_init(err, sizeof *err);
    const int rc = pstk__safetensors_parse(out, exact, size, 8 + size + body, "f", err);
    free(exact);
    return rc;
}

TEST(tensors_have_the_types_shapes_and_places_of_the_head)
{
    static const char text[] =
        "{\"__metadata__\":{\"q\":\"]}\"},\"b\":{\"dtype\":\"BF16\",\"shape\":[2,3],"
        "\"data_offsets\":[4,16]}, \"a.b-c_D\":{\"data_offsets\":[0,4],\"shape\":[2],"
        "\"dtype\":\"F16\"}}  ";
    struct pstk__safetensors all;
    struct pstk_error err;
    CHECK_EQ(parse(text, 16, &all, &err), 0);
    CHECK_EQ(all.n, 2);
    CHECK_STR(all.tensors[0].name, "b");
    CHECK_STR(all.tensors[1].name, "a.b-c_D");
    CHECK_EQ(all.tensors[0].array.dtype, PSTK_BF16);
    CHECK_EQ(all.tensors[0].array.n_dims, 2);
    CHECK_EQ(all.tensors[0].array.shape[1], 3);
    CHECK_EQ(all.tensors[0].array.row_size, 6);
    CHECK_EQ(all.tensors[0].array.offset, 8 + strlen(text) + 4);
    CHECK_EQ(all.tensors[1].array.end, 8 + strlen(text) + 4);
    CHECK_EQ(all.tensors[1].array.dtype, PSTK_F16);
}

TEST(each_dtype_has_its_size)
{
    static const struct {
        const char *name;
        uint32_t dtype;
    } all[] = {{"BOOL", PSTK_U8}, {"U8", PSTK_U8},   {"I8", PSTK_I8},     {"U16", PSTK_U16},
               {"I16", PSTK_I16}, {"U32", PSTK_U32}, {"I32", PSTK_I32},   {"U64", PSTK_U64},
               {"I64", PSTK_I64}, {"F16", PSTK_F16}, {"BF16", PSTK_BF16}, {"F32", PSTK_F32},
               {"F64", PSTK_F64}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        const uint32_t size = 3 * pstk_dtype_size(all[i].dtype);
        char text[128];
        struct pstk__safetensors out;
        struct pstk_error err;
        snprintf(text, sizeof text,
                 "{\"x\":{\"dtype\":\"%s\",\"shape\":[3],\"data_offsets\":[0,%u]}}", all[i].name,
                 size);
        CHECK_EQ(parse(text, size, &out, &err), 0);
        CHECK_EQ(out.tensors[0].array.dtype, all[i].dtype);
    }
}

TEST(tensors_fill_the_bytes_after_the_head)
{
    static const struct {
        int first[2], second[2];
        uint32_t size;
        int code;
    } all[] = {{{0, 3}, {3, 6}, 6, 0},
               {{3, 6}, {0, 3}, 6, 0},
               {{0, 3}, {3, 6}, 7, PSTK_EBADMSG},
               {{0, 3}, {4, 7}, 7, PSTK_EBADMSG},
               {{1, 4}, {4, 7}, 7, PSTK_EBADMSG},
               {{0, 3}, {2, 5}, 5, PSTK_EBADMSG},
               {{0, 3}, {0, 3}, 3, PSTK_EBADMSG},
               {{0, 3}, {0, 3}, 6, PSTK_EBADMSG},
               {{0, 3}, {3, 6}, 5, PSTK_EBADMSG},
               {{0, 3}, {3, 5}, 5, PSTK_EBADMSG},
               {{3, 0}, {3, 6}, 6, PSTK_EBADMSG}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        char text[256];
        struct pstk__safetensors out;
        struct pstk_error err;
        snprintf(text, sizeof text,
                 "{\"x\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[%d,%d]},"
                 "\"y\":{\"dtype\":\"I8\",\"shape\":[3],\"data_offsets\":[%d,%d]}}",
                 all[i].first[0], all[i].first[1], all[i].second[0], all[i].second[1]);
        CHECK_EQ(parse(text, all[i].size, &out, &err), all[i].code);
    }
}

TEST(a_head_cut_anywhere_is_refused)
{
    static const char text[] =
        "{\"__metadata__\":{\"q\":\"\\\"\"},\"x\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":"
        "[0,3]}}";
    struct pstk__safetensors out;
    struct pstk_error err;
    char cut[sizeof text];
    CHECK_EQ(parse(text, 3, &out, &err), 0);
    for (size_t size = 0; size + 1 < sizeof text; size++) {
        memcpy(cut, text, size);
        cut[size] = 0;
        CHECK_EQ(parse(cut, 3, &out, &err), PSTK_EBADMSG);
    }
}

TEST(the_size_of_the_head_is_bounded_by_the_file_and_by_100_mb)
{
    uint8_t b[8];
    uint64_t size;
    static const struct {
        uint64_t head, file;
        int code;
    } all[] = {{10, 18, 0},
               {10, 17, PSTK_EBADMSG},
               {0, 8, 0},
               {1, 8, PSTK_EBADMSG},
               {100000000, UINT64_MAX, 0},
               {100000001, UINT64_MAX, PSTK_EBADMSG},
               {UINT64_MAX, UINT64_MAX, PSTK_EBADMSG}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        pstk__put64(b, all[i].head);
        CHECK_EQ(pstk__safetensors_head_size(&size, b, 8, all[i].file, "f", NULL), all[i].code);
        CHECK_EQ(size, all[i].head);
    }
    for (uint64_t n = 0; n < 8; n++)
        CHECK_EQ(pstk__safetensors_head_size(&size, b, n, n, "f", NULL), PSTK_EBADMSG);
}

TEST(a_number_past_its_limit_is_refused)
{
    static const char *const shapes[] = {"[4294967296,4294967296]",
                                         "[9223372036854775807,2]",
                                         "[9223372036854775807]",
                                         "[3,9223372036854775807,9223372036854775807]",
                                         "[9223372036854775808]",
                                         "[99999999999999999999]",
                                         "[-1]",
                                         "[1e3]",
                                         "[\"3\"]",
                                         "[null]"};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        char text[256];
        struct pstk__safetensors out;
        struct pstk_error err;
        snprintf(text, sizeof text,
                 "{\"x\":{\"dtype\":\"U8\",\"shape\":%s,\"data_offsets\":[0,3]}}", shapes[i]);
        const int rc = parse(text, 3, &out, &err);
        CHECK(rc == PSTK_EBADMSG || rc == PSTK_EFBIG);
        CHECK(err.message[0]);
    }
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(tensors_have_the_types_shapes_and_places_of_the_head),
        CASE(each_dtype_has_its_size),
        CASE(tensors_fill_the_bytes_after_the_head),
        CASE(a_head_cut_anywhere_is_refused),
        CASE(the_size_of_the_head_is_bounded_by_the_file_and_by_100_mb),
        CASE(a_number_past_its_limit_is_refused),
    };
    return RUN_CASES(cases);
}
