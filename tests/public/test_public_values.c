/* SPDX-License-Identifier: Apache-2.0 */
/*
 * public_values: the public functions that need neither a data set nor a loader, and the numbers of
 * the ABI. As test_public.c, it sees the shared library and the public headers alone.
 */
#include "support/test.h"

#include <penstock/format.h>
#include <penstock/penstock.h>

/* ---- types.h -------------------------------------------------------------------------------- */

TEST(the_version_is_that_of_the_headers)
{
    char version[32];
    snprintf(version, sizeof version, "%d.%d.%d", PSTK_VERSION_MAJOR, PSTK_VERSION_MINOR,
             PSTK_VERSION_PATCH);
    CHECK_STR(pstk_version(), version);
    CHECK_EQ(PSTK_VERSION_NUMBER,
             PSTK_VERSION_MAJOR * 10000 + PSTK_VERSION_MINOR * 100 + PSTK_VERSION_PATCH);
    CHECK_EQ(pstk_version_number(), PSTK_VERSION_NUMBER);
}

TEST(every_result_has_its_name_and_a_text)
{
#define X(name, value, text)                                                                       \
    CHECK_EQ(name, value);                                                                         \
    CHECK_STR(pstk_error_name(name), #name);                                                       \
    CHECK_STR(pstk_strerror(name), text);
    PSTK_ERRORS(X)
#undef X
    CHECK(pstk_strerror(PSTK_OK) && pstk_error_name(PSTK_OK));
    CHECK(pstk_strerror(-4711) && pstk_error_name(-4711));
}

TEST(a_new_error_says_that_nothing_is_known)
{
    struct pstk_error err;
    memset(&err, 0x5a, sizeof err);
    pstk_error_init(&err, sizeof err);
    CHECK_EQ(err.size, sizeof err);
    CHECK_EQ(err.code, PSTK_OK);
    CHECK_EQ(err.stage, PSTK_STAGE_NONE);
    CHECK(err.sample_id == PSTK_NONE && err.record == PSTK_NONE && err.offset == PSTK_NONE);
    CHECK(err.epoch == PSTK_NONE && err.position == PSTK_NONE);
    CHECK_STR(err.shard, "");
    CHECK_STR(err.message, "");
}

TEST(dtypes_have_sizes_and_names_that_parse)
{
    static const uint8_t sizes[] = {0, 1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8};
    for (uint32_t dtype = PSTK_U8; dtype <= PSTK_F64; dtype++) {
        CHECK_EQ(pstk_dtype_size(dtype), sizes[dtype]);
        CHECK_EQ(pstk_dtype_parse(pstk_dtype_name(dtype)), dtype);
    }
    CHECK_STR(pstk_dtype_name(PSTK_BF16), "bf16");
    CHECK_STR(pstk_dtype_name(0), "?");
    CHECK_EQ(pstk_dtype_size(PSTK_F64 + 1), 0);
    CHECK_EQ(pstk_dtype_parse("float"), 0);
}

TEST(enumerators_keep_their_numbers)
{
    CHECK(PSTK_STAGE_OPEN == 1 && PSTK_STAGE_ORDER == 2 && PSTK_STAGE_SHARD == 3);
    CHECK(PSTK_STAGE_READ == 4 && PSTK_STAGE_RECORD == 5 && PSTK_STAGE_DECODE == 6);
    CHECK(PSTK_STAGE_DEVICE == 7 && PSTK_STAGE_CONSUMER == 8 && PSTK_STAGE_WRITE == 9);
    CHECK(PSTK_NHWC == 0 && PSTK_NCHW == 1);
    CHECK(PSTK_ENCODING_NONE == 0 && PSTK_ENCODING_JPEG == 1 && PSTK_ENCODING_PNG == 2);
    CHECK(PSTK_ENCODING_PIXELS == 3);
    CHECK(PSTK_FIELD_BYTES == 1 && PSTK_FIELD_UTF8 == 2 && PSTK_FIELD_IMAGE == 3);
    CHECK(PSTK_FIELD_SCALAR == 4 && PSTK_FIELD_NDARRAY == 5);
    CHECK(PSTK_FIELD_BOXES == 7 && PSTK_FIELD_KEYPOINTS == 8 && PSTK_FIELD_POLYGONS == 9);
    CHECK(PSTK_FIELD_RLE == 10 && PSTK_FIELD_UTF8_LIST == 11 && PSTK_FIELD_IMAGE_LIST == 12);
    CHECK(PSTK_FIELD_BYTES_LIST == 13 && PSTK_FIELD_MASK_LIST == 14);
    CHECK(PSTK_BOX_FORMAT_XYXY == 1 && PSTK_BOX_FORMAT_XYWH == 2 && PSTK_BOX_FORMAT_CXCYWH == 3);
    CHECK(PSTK_COORDINATES_PIXELS == 1 && PSTK_COORDINATES_UNIT == 2);
    CHECK(PSTK_CODEC_NONE == 0 && PSTK_CODEC_ZSTD == 1 && PSTK_CODEC_PLANES == 2);
    CHECK(PSTK_OUTPUT_IMAGE == 1 && PSTK_OUTPUT_SCALAR == 2 && PSTK_OUTPUT_TENSOR == 3);
    CHECK(PSTK_OUTPUT_BYTES == 4 && PSTK_OUTPUT_CALLBACK == 5 && PSTK_OUTPUT_RAGGED == 6);
    CHECK(PSTK_ORDER_FULL == 0 && PSTK_ORDER_SEQUENTIAL == 1);
    CHECK(PSTK_LAST_DROP == 0 && PSTK_LAST_PAD == 1 && PSTK_LAST_SHORT == 2);
    CHECK(PSTK_BAD_ERROR == 0 && PSTK_BAD_REPLACE == 1);
    CHECK(PSTK_READER_AUTO == 0 && PSTK_READER_IO_URING == 1 && PSTK_READER_THREADS == 2);
    CHECK(PSTK_IO_AUTO == 0 && PSTK_IO_DIRECT == 1 && PSTK_IO_BUFFERED == 2);
    CHECK(PSTK_HOST == 0 && PSTK_CUDA == 1);
    CHECK(PSTK_KERNELS_AUTO == 0 && PSTK_KERNELS_C == 1);
    CHECK(PSTK_KERNELS_AVX2 == 2 && PSTK_KERNELS_AVX512 == 3);
    CHECK_EQ(PSTK_KERNELS_NEON, 4);
    CHECK(PSTK_BOTTLENECK_UNKNOWN == 0 && PSTK_BOTTLENECK_STORAGE == 1 &&
          PSTK_BOTTLENECK_DECODE == 2);
    CHECK(PSTK_BOTTLENECK_COPY == 3 && PSTK_BOTTLENECK_CONSUMER == 4 &&
          PSTK_BOTTLENECK_READER == 5);
    CHECK(PSTK_FALLBACK_NO_IO_URING == 1 && PSTK_FALLBACK_NO_FIXED_BUFFERS == 2);
    CHECK(PSTK_FALLBACK_NO_FIXED_FILES == 4 && PSTK_FALLBACK_NO_DIRECT == 8);
    CHECK(PSTK_FALLBACK_NO_SINGLE_ISSUER == 16 && PSTK_FALLBACK_NOT_PINNED == 32);
    CHECK(PSTK_FALLBACK_NO_NOWAIT == 1024);
    CHECK(PSTK_FALLBACK_NOT_BOUND == 64);
}

TEST(crc32c_of_the_check_string_is_e3069283)
{
    CHECK_EQ(pstk_crc32c(0, "123456789", 9), 0xe3069283u);
    CHECK_EQ(pstk_crc32c(pstk_crc32c(0, "1234", 4), "56789", 5), 0xe3069283u);
}

/* ---- format.h ------------------------------------------------------------------------------- */

TEST(a_list_is_built_and_read)
{
    const struct pstk_list_item items[2] = {{.data = "one", .size = 3}, {.data = "", .size = 0}};
    struct pstk_list_item back[2];
    struct pstk_error err;
    void *data;
    uint64_t size;
    pstk_error_init(&err, sizeof err);
    CHECK_EQ(pstk_list_build(PSTK_FIELD_UTF8_LIST, items, 2, &data, &size, &err), 0);
    CHECK_EQ(pstk_list_read(PSTK_FIELD_UTF8_LIST, data, size, back, 2, &err), 2);
    CHECK(back[0].size == 3 && memcmp(back[0].data, "one", 3) == 0 && back[1].size == 0);
    CHECK_EQ(pstk_list_read(PSTK_FIELD_UTF8_LIST, data, size - 1, NULL, 0, &err), PSTK_EBADMSG);
    pstk_free(data);
}

/* ---- order.h -------------------------------------------------------------------------------- */

TEST(settle_fills_in_what_a_windowed_order_leaves_open)
{
    struct pstk_order_settings order = {.size = sizeof order,
                                        .order = PSTK_ORDER_WINDOWED,
                                        .n_samples = 23,
                                        .batch_size = 4,
                                        .world = 1};
    CHECK_EQ(pstk_order_settle(&order), 0);
    CHECK(order.ways == 1 && order.block == 64 && order.window == 4);
}

TEST(explain_says_what_a_rank_reads)
{
    struct pstk_order_settings order = {.size = sizeof order,
                                        .order = PSTK_ORDER_WINDOWED,
                                        .n_samples = 1000000,
                                        .batch_size = 64,
                                        .rank = 7,
                                        .world = 36,
                                        .last_batch = PSTK_LAST_SHORT};
    struct pstk_order_explanation said = {.size = sizeof said};
    CHECK_EQ(pstk_order_explain(&order, &said), 0);
    CHECK(said.ways == 48 && said.block == 64 && said.window == 4);
    CHECK(said.ways_of_rank == 4 && said.ranks_of_way == 3 && said.advised_ways == 36);
    CHECK(said.n_blocks == 15625 && said.blocks_of_rank == 20 && said.n_mixed == 48 * 256);
    CHECK(said.n_readings > 2.9 && said.n_readings < 3.1);
    CHECK(said.n_batches == 435 && said.last_rows == 2); /* for the last 64 samples */
    order.order = PSTK_ORDER_FULL;
    CHECK_EQ(pstk_order_explain(&order, &said), 0);
    CHECK(said.ways == 0 && said.n_blocks == 0 && said.n_readings == 1);
    CHECK(said.n_mixed == 1000000 && said.n_batches == 435 && said.last_rows == 2);
    order.order = PSTK_ORDER_SEQUENTIAL;
    CHECK(pstk_order_explain(&order, &said) == 0 && said.n_mixed == 1);
    order.n_samples = 0;
    CHECK(pstk_order_explain(&order, &said) == 0 && said.n_mixed == 0 && said.n_batches == 0);
    said.size = 8; /* the size in an older program: what lies past it is left alone */
    said.block = 17;
    order.order = PSTK_ORDER_WINDOWED;
    order.n_samples = 1000;
    CHECK(pstk_order_explain(&order, &said) == 0 && said.ways == 1 && said.block == 17);
    order.ways = PSTK_MAX_WAYS + 1;
    CHECK_EQ(pstk_order_explain(&order, &said), PSTK_EINVAL);
    CHECK_EQ(pstk_order_explain(NULL, &said), PSTK_EINVAL);
    order.ways = 0;
    CHECK_EQ(pstk_order_explain(&order, NULL), PSTK_EINVAL);
}

TEST(explain_counts_the_batches_of_a_schedule)
{
    const struct pstk_batch_step steps[] = {
        {.from = 2, .rows = 5}, {.from = 9, .rows = 16}, {.from = 11, .rows = 3}};
    for (uint32_t i = 0; i < 3 * 5 * 2; i++) {
        struct pstk_order_settings order = {.size = sizeof order,
                                            .order = PSTK_ORDER_FULL,
                                            .epoch = i / 3 % 5,
                                            .n_samples = 37,
                                            .batch_size = 8,
                                            .rank = 1,
                                            .world = 1 + i / 15,
                                            .last_batch = i % 3,
                                            .n_batch_steps = 3,
                                            .batch_schedule = steps};
        struct pstk_order_explanation said = {.size = sizeof said};
        order.rank = order.world - 1;
        uint64_t position = 0, n_batches = 0, ids[16];
        int64_t n, n_last = 0;
        while ((n = pstk_order_n_batches(&order, position)) > 0) {
            n_last = pstk_order_batch(&order, position, ids);
            position += pstk_order_rows(&order, position);
            n_batches++;
        }
        CHECK_EQ(pstk_order_explain(&order, &said), 0);
        CHECK_EQ(said.n_batches, n_batches);
        CHECK_EQ(said.last_rows, n_last);
    }
}

/* ---- ranks.h -------------------------------------------------------------------------------- */

TEST(ranks_of_an_environment_are_found_and_used)
{
    const char *const variables[] = {"OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=4", NULL};
    const struct pstk_rank_query query = {.size = sizeof query, .environment = variables};
    struct pstk_found_ranks found = {.size = sizeof found};
    struct pstk_settings s;
    struct pstk_error err;
    uint32_t n = 0;
    pstk_error_init(&err, sizeof err);
    pstk_settings_init(&s, sizeof s);
    CHECK_EQ(pstk_find_ranks(&query, &found, &err), 0);
    CHECK_STR(found.source, "Open MPI");
    pstk_use_ranks(&found, &s);
    CHECK(s.ranks.rank == 1 && s.ranks.world == 4);
    CHECK_EQ(pstk_get_variable(&query, "OMPI_COMM_WORLD_SIZE", &n, &err), 1);
    CHECK_EQ(n, 4);
    CHECK_EQ(pstk_check_alone(&query, &err), PSTK_EINVAL);
    CHECK(strstr(err.message, "OMPI_COMM_WORLD_SIZE reports 4 processes"));
}

int main(void)
{
    static const struct test_case cases[] = {
        CASE(the_version_is_that_of_the_headers),
        CASE(every_result_has_its_name_and_a_text),
        CASE(a_new_error_says_that_nothing_is_known),
        CASE(dtypes_have_sizes_and_names_that_parse),
        CASE(enumerators_keep_their_numbers),
        CASE(crc32c_of_the_check_string_is_e3069283),
        CASE(a_list_is_built_and_read),
        CASE(settle_fills_in_what_a_windowed_order_leaves_open),
        CASE(explain_says_what_a_rank_reads),
        CASE(explain_counts_the_batches_of_a_schedule),
        CASE(ranks_of_an_environment_are_found_and_used),
    };
    return RUN_CASES(cases);
}
