// SPDX-License-Identifier: Apache-2.0
// cpp: penstock.hpp does what penstock.h does, throws what it returns and releases what it leases.
#include <penstock/format.h>
#include <penstock/penstock.hpp>

#include "support/test.h"

#include <cstdlib>
#include <filesystem>
#include <string>
#include <type_traits>
#include <vector>

static_assert(std::is_nothrow_move_constructible_v<penstock::Loader>);
static_assert(std::is_nothrow_move_assignable_v<penstock::Batch>);
static_assert(!std::is_copy_constructible_v<penstock::Loader>);
static_assert(!std::is_copy_constructible_v<penstock::Batch>);

static const uint32_t n_samples = 10;
static std::string path; // the data set of this run

static bool write_data()
{
    pstk_field field = {};
    std::snprintf(field.name, sizeof field.name, "cls");
    field.kind = PSTK_FIELD_SCALAR;
    field.dtype = PSTK_I64;
    pstk_writer_settings s;
    pstk_writer_settings_init(&s, sizeof s);
    s.path = path.c_str();
    s.fields = &field;
    s.n_fields = 1;
    pstk_writer *writer = nullptr;
    if (pstk_writer_open(&writer, &s, nullptr) < 0)
        return false;
    for (int64_t i = 0; i < n_samples; i++) {
        const pstk_value value = {&i, sizeof i, 0, 0};
        if (pstk_writer_add(writer, &value, 1, nullptr) < 0) {
            pstk_writer_abort(&writer);
            return false;
        }
    }
    return pstk_writer_commit(&writer, nullptr) == 0;
}

static pstk_settings new_settings()
{
    static pstk_output output = {};
    output.field = "cls";
    output.kind = PSTK_OUTPUT_SCALAR;
    output.dtype = PSTK_I64;
    pstk_settings s = penstock::settings();
    s.path = path.c_str();
    s.batch_size = 3;
    s.outputs = &output;
    s.n_outputs = 1;
    s.order.kind = PSTK_ORDER_SEQUENTIAL;
    s.last_batch = PSTK_LAST_SHORT;
    s.memory.n_slots = 2;
    return s;
}

TEST(a_range_based_for_sees_every_sample_of_each_epoch)
{
    CHECK(write_data());
    penstock::Loader loader(new_settings());
    CHECK_EQ(loader.n_samples(), n_samples);
    CHECK_EQ(loader.n_batches(), 4);
    for (uint64_t epoch = 0; epoch < 3; epoch++) {
        std::vector<int64_t> seen;
        for (penstock::Batch &batch : loader.epoch(epoch)) {
            CHECK_EQ(batch->epoch, epoch);
            const int64_t *classes = static_cast<const int64_t *>(batch.tensor(0).data);
            seen.insert(seen.end(), classes, classes + batch->n_valid);
        }
        CHECK_EQ(seen.size(), n_samples);
        for (size_t i = 0; i < seen.size(); i++)
            CHECK_EQ(seen[i], i);
    }
    CHECK_EQ(loader.stats().n_samples, 3 * n_samples);
}

TEST(leases_end_with_their_batch_and_move_with_it)
{
    penstock::Loader loader(new_settings());
    {
        penstock::Batch first = loader.next();
        penstock::Batch second = loader.next();
        CHECK(first && second);
        int code = 0;
        try {
            loader.next();
        } catch (const penstock::Error &error) {
            code = error.code();
        }
        CHECK_EQ(code, PSTK_ENOBUFS);
        first = std::move(second); // ends the first lease
        CHECK(first && !second);
        CHECK_EQ(first->index, 1);
    }
    penstock::Batch third = loader.next(), fourth = loader.next();
    CHECK_EQ(third->index, 2);
    CHECK_EQ(fourth->n_valid, 1);
    fourth.release();
    CHECK(!fourth);
    CHECK(!loader.next()); // the end of the epoch
}

TEST(a_batch_outlives_its_loader)
{
    penstock::Batch batch;
    CHECK(!batch);
    {
        penstock::Loader loader(new_settings());
        penstock::Loader moved(std::move(loader));
        CHECK(!loader.get() && moved.get());
        moved.seek(0, 3);
        CHECK(moved.cursor() == std::make_pair(uint64_t(0), uint64_t(3)));
        moved.set_batch_size(1);
        batch = moved.next();
        CHECK_EQ(batch->n_rows, 1);
        loader = std::move(moved);
    }
    CHECK_EQ(*static_cast<const int64_t *>(batch.tensor(0).data), 3);
}

TEST(an_error_is_thrown_with_its_code_and_sentence)
{
    pstk_settings s = new_settings();
    s.batch_size = 0;
    bool is_thrown = false;
    try {
        penstock::Loader loader(s);
    } catch (const penstock::Error &error) {
        is_thrown = true;
        CHECK_EQ(error.code(), PSTK_EINVAL);
        CHECK_EQ(error.detail().code, PSTK_EINVAL);
        CHECK(std::string(error.what()).find("batch_size") != std::string::npos);
    }
    CHECK(is_thrown);
}

TEST(interrupt_is_an_error_too)
{
    penstock::Loader loader(new_settings());
    loader.interrupt();
    int code = 0;
    try {
        // A batch that is ready comes without a wait; a consumer that does no work waits at last.
        for (int i = 0; i < 1000000; i++)
            loader.next();
    } catch (const penstock::Error &error) {
        code = error.code();
    }
    CHECK_EQ(code, PSTK_EINTR);
    loader.close();
    CHECK(!loader.get());
}

int main()
{
    std::string folder = (std::filesystem::temp_directory_path() / "penstock-XXXXXX").string();
    if (!mkdtemp(folder.data())) {
        std::printf("Bail out! no temporary folder %s\n", folder.c_str());
        return 1;
    }
    path = folder + "/data";
    const test_case cases[] = {
        CASE(a_range_based_for_sees_every_sample_of_each_epoch),
        CASE(leases_end_with_their_batch_and_move_with_it),
        CASE(a_batch_outlives_its_loader),
        CASE(an_error_is_thrown_with_its_code_and_sentence),
        CASE(interrupt_is_an_error_too),
    };
    int failed = RUN_CASES(cases);
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
    return failed;
}
