/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of devices: the host's entry member by member, and what CUDA's entry answers without a
 * driver, without a device and on the fake. What it does with batches: test_loader_cuda*.c.
 */
#include "device/device.h"

#include "base/clock.h"
#include "support/cuda_fake/cuda_fake.h"
#include "support/test.h"

#include <penstock/penstock.h>

/* The entry of a build without CUDA: these tests link the other one. */
#define pstk__cuda_ops absent_ops
#include "device/cuda/absent.c"
#undef pstk__cuda_ops

#define INDICES 4

static struct pstk_error err;

static const struct pstk__device_ops *host(void)
{
    pstk_error_init(&err, sizeof err);
    return pstk__device_ops(PSTK_HOST);
}

static const struct pstk__device_ops *cuda(void)
{
    pstk_error_init(&err, sizeof err);
    return pstk__device_ops(PSTK_CUDA);
}

static struct pstk__device *host_device(void)
{
    struct pstk__device *d = NULL;
    const struct pstk__device_config c = {.index = 0};
    return host()->open(&d, &c, &err) == 0 ? d : NULL;
}

/* ---- the table ------------------------------------------------------------------------------- */

TEST(each_kind_has_its_entry_and_no_other_number_has_one)
{
    for (uint32_t kind = 0; kind < 1000; kind++) {
        const struct pstk__device_ops *ops = pstk__device_ops(kind);
        CHECK_EQ(ops != NULL, kind == PSTK_HOST || kind == PSTK_CUDA);
        CHECK(!ops || (ops->kind == kind && ops->name));
    }
    CHECK(pstk__device_ops(UINT32_MAX) == NULL);
    CHECK_STR(host()->name, "host");
    CHECK_STR(cuda()->name, "cuda");
}

/* Every member that every device has. */
static int has_the_consumers_members(const struct pstk__device_ops *o)
{
    return o->find && o->open && o->close && o->count && o->describe && o->measure && o->ask &&
           o->acquire && o->wait && o->record && o->check_shared && o->release && o->abandon &&
           o->read && o->stream_open && o->stream_close && o->stream_spin;
}

/* Return the number of the uploader's members that are set. */
static int n_uploaders_members(const struct pstk__device_ops *o)
{
    return !!o->pin + !!o->unpin + !!o->memory + !!o->ready + !!o->load + !!o->finish + !!o->drain +
           !!o->get_times;
}

TEST(an_entry_has_the_uploaders_members_exactly_where_it_has_slots)
{
    CHECK(has_the_consumers_members(host()));
    CHECK(has_the_consumers_members(cuda()));
    CHECK(!host()->has_slots && n_uploaders_members(host()) == 0);
    CHECK(cuda()->has_slots == 1 && n_uploaders_members(cuda()) == 8);
}

/* ---- the host -------------------------------------------------------------------------------- */

TEST(the_host_has_device_0_alone_and_no_pci_address)
{
    char bus_id[PSTK__BUS_ID_SIZE];
    static const int32_t wrong[] = {-1, 1, 2, INT32_MAX, INT32_MIN};
    CHECK_EQ(host()->count(), 1);
    memset(bus_id, 'x', sizeof bus_id);
    CHECK_EQ(host()->find(0, bus_id, &err), 0);
    CHECK_STR(bus_id, "");
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char says[32];
        memset(bus_id, 'x', sizeof bus_id);
        CHECK_EQ(host()->find(wrong[i], bus_id, &err), PSTK_EINVAL);
        CHECK_STR(bus_id, "");
        snprintf(says, sizeof says, "value is %d; must", wrong[i]);
        CHECK(strncmp(err.message, "device_index: ", 14) == 0 && strstr(err.message, says));
        CHECK_EQ(host()->find(wrong[i], bus_id, NULL), PSTK_EINVAL);
    }
}

TEST(the_host_is_near_every_node_and_nothing_else_is_known_of_it)
{
    struct pstk_device expected, d;
    memset(&d, 7, sizeof d);
    memcpy(&expected, &d, sizeof d);
    expected.numa_node = -1;
    host()->describe(0, &d);
    CHECK(memcmp(&d, &expected, sizeof d) == 0);
}

TEST(nothing_is_copied_to_the_host_so_nothing_is_measured)
{
    struct pstk_copy_rates rates = {.size = sizeof rates}, as_it_was = rates;
    CHECK_EQ(host()->measure(0, 4096, 0.01, &rates, &err), PSTK_ENOTSUP);
    CHECK(strncmp(err.message, "kind: ", 6) == 0);
    CHECK(strstr(err.message, "pstk_measure_ceilings"));
    CHECK(memcmp(&rates, &as_it_was, sizeof rates) == 0);
}

TEST(a_host_device_begins_with_its_table)
{
    struct pstk__device *d = host_device();
    CHECK(d && d->ops == host());
    host()->close(d);
    host()->close(NULL);
}

TEST(on_the_host_every_stream_is_in_order_already)
{
    struct pstk__device *d = host_device();
    int some = 0;
    void *const streams[] = {NULL, (void *)1, (void *)2, &some};
    CHECK(d);
    for (int i = 0; i < 4; i++)
        for (uint32_t slot = 0; slot < 3; slot++)
            for (int quick = 0; quick <= 1; quick++) {
                host()->ask(d, streams[i], quick, quick);
                CHECK_EQ(host()->acquire(d, slot, streams[i], quick, NULL), 0);
                CHECK_EQ(host()->wait(d, slot, streams[i], NULL), 0);
                CHECK_EQ(host()->record(d, slot, streams[i], NULL), 0);
                CHECK_EQ(host()->check_shared(d, streams[i], NULL), 0);
            }
    host()->abandon(d);
    host()->close(d);
}

TEST(a_hosts_lease_ends_at_once_and_leaves_no_stream)
{
    struct pstk__device *d = host_device();
    CHECK(d);
    for (uint32_t n = 0; n <= 3; n++) {
        void *streams[3] = {(void *)1, (void *)2, NULL};
        uint32_t left = n;
        const struct pstk__lease_end end = {.slot = n, .streams = streams, .n_streams = &left};
        CHECK_EQ(host()->release(d, &end, &err), 0);
        CHECK_EQ(left, 0);
    }
    host()->close(d);
}

TEST(a_read_of_the_host_copies_all_bytes_and_no_others)
{
    struct pstk__device *d = host_device();
    char from[64], to[64];
    CHECK(d);
    for (uint32_t i = 0; i < sizeof from; i++)
        from[i] = (char)(i + 1);
    for (uint64_t size = 0; size <= sizeof to; size++) {
        memset(to, 0, sizeof to);
        CHECK_EQ(host()->read(d, to, from, size, NULL, &err), 0);
        CHECK(memcmp(to, from, size) == 0);
        CHECK(size == sizeof to || to[size] == 0);
    }
    CHECK_EQ(host()->read(d, NULL, NULL, 0, NULL, &err), 0);
    host()->close(d);
}

TEST(the_hosts_stream_is_null_and_the_caller_is_kept_busy)
{
    struct pstk__device *d = host_device();
    void *stream = &stream;
    CHECK(d);
    CHECK_EQ(host()->stream_open(d, &stream, &err), 0);
    CHECK(!stream);
    const uint64_t start = pstk__clock_ns();
    CHECK_EQ(host()->stream_spin(d, stream, 5000000, &err), 0);
    CHECK(pstk__clock_ns() - start >= 5000000);
    CHECK_EQ(host()->stream_spin(d, stream, 0, &err), 0);
    host()->stream_close(d, stream);
    host()->close(d);
}

/* ---- CUDA ------------------------------------------------------------------------------------ */

TEST(a_build_without_cuda_has_no_device_and_says_what_to_do)
{
    char bus_id[PSTK__BUS_ID_SIZE] = "x";
    pstk_error_init(&err, sizeof err);
    CHECK_EQ(absent_ops.count(), PSTK_ENOTSUP);
    CHECK_EQ(absent_ops.find(0, bus_id, &err), PSTK_ENOTSUP);
    CHECK_STR(bus_id, "");
    CHECK(strncmp(err.message, "device: ", 8) == 0 && strstr(err.message, "built without CUDA"));
    CHECK_STR(absent_ops.name, cuda()->name);
    CHECK(absent_ops.kind == PSTK_CUDA && absent_ops.has_slots == cuda()->has_slots);
}

TEST(cuda_without_a_driver_is_no_device)
{
    char bus_id[PSTK__BUS_ID_SIZE] = "x";
    CHECK_EQ(cuda()->count(), PSTK_ENOTSUP); /* the fake is closed */
    CHECK_EQ(cuda()->find(0, bus_id, &err), PSTK_ENOTSUP);
    CHECK_STR(bus_id, "");
    CHECK(strncmp(err.message, "device: ", 8) == 0 && strstr(err.message, "no CUDA driver"));
}

TEST(a_driver_without_devices_counts_none_and_finds_none)
{
    char bus_id[PSTK__BUS_ID_SIZE] = "x";
    cuda_fake_open(&(struct cuda_fake_config){.no_driver = cudaErrorNoDevice});
    const int n = cuda()->count(), found = cuda()->find(0, bus_id, &err);
    CHECK_EQ(cuda_fake_close(), 0);
    CHECK_EQ(n, 0);
    CHECK_EQ(found, PSTK_ENOTSUP);
    CHECK(bus_id[0] == 0 && strncmp(err.message, "device: ", 8) == 0);
}

TEST(every_cuda_device_that_is_counted_is_found_and_no_other)
{
    for (uint32_t n = 1; n <= INDICES; n++) {
        cuda_fake_open(&(struct cuda_fake_config){.n_devices = n});
        CHECK_EQ(cuda()->count(), (int)n);
        for (int32_t i = -1; i <= INDICES; i++) {
            char bus_id[PSTK__BUS_ID_SIZE] = "x";
            const int is_there = i >= 0 && i < (int32_t)n;
            CHECK_EQ(cuda()->find(i, bus_id, &err), is_there ? 0 : PSTK_EINVAL);
            CHECK_EQ(bus_id[0] != 0, is_there);
            CHECK(is_there || strncmp(err.message, "device_index: ", 14) == 0);
        }
        CHECK_EQ(cuda_fake_close(), 0);
    }
}

/* A context takes some hundred MiB of a GPU: who only asks shall not have one. */
TEST(counting_finding_and_describing_touch_no_cuda_device)
{
    struct cuda_fake_stats s;
    struct pstk_device d = {.size = sizeof d};
    char bus_id[PSTK__BUS_ID_SIZE];
    cuda_fake_open(&(struct cuda_fake_config){.n_devices = 2});
    CHECK_EQ(cuda()->count(), 2);
    CHECK_EQ(cuda()->find(1, bus_id, &err), 0);
    cuda()->describe(1, &d);
    cuda_fake_stats(&s);
    CHECK_EQ(cuda_fake_close(), 0);
    CHECK_EQ(s.devices[0].has_context + s.devices[1].has_context, 0);
    CHECK(d.name[0] && d.memory);
    CHECK_STR(d.bus_id, bus_id);
}

TEST(a_device_whose_pci_address_is_not_known_is_found_without_one)
{
    char bus_id[PSTK__BUS_ID_SIZE] = "x";
    cuda_fake_open(NULL);
    cuda_fake_fail("cudaDeviceGetPCIBusId", 1, cudaErrorUnknown);
    CHECK_EQ(cuda()->find(0, bus_id, &err), 0);
    CHECK_STR(bus_id, "");
    CHECK_EQ(cudaPeekAtLastError(), cudaSuccess);
    CHECK_EQ(cuda_fake_close(), 0);
}

/* Slots of one array of 1000 bytes for each of two rows, none of it deferred. */
static struct pstk__plan plan;
static struct pstk__layout layout;

static struct pstk__device *cuda_device(uint32_t n_slots)
{
    const struct pstk__device_config c = {.n_slots = n_slots, .plan = &plan, .layout = &layout};
    struct pstk__device *d = NULL;
    plan = (struct pstk__plan){.n_outputs = 1, .batch_size = 2, .on_device = 1};
    static struct pstk__pass pass = {.what = PSTK__PASS_COPY, .out.row_size = 1000};
    plan.outputs[0].passes = &pass;
    plan.outputs[0].n_passes = plan.outputs[0].n_worker_passes = 1;
    plan.outputs[0].budget = 2000;
    pstk__layout_init(&layout, &plan, 0, 0);
    return cuda()->open(&d, &c, &err) == 0 ? d : NULL;
}

TEST(a_cuda_devices_slots_are_apart_and_the_same_for_its_life)
{
    cuda_fake_open(NULL);
    struct pstk__device *d = cuda_device(3);
    CHECK(d && d->ops == cuda());
    uint8_t *first = cuda()->memory(d, 0);
    CHECK(first);
    for (uint32_t slot = 0; slot < 3; slot++) {
        CHECK(cuda()->memory(d, slot) == first + slot * layout.device_size);
        CHECK(cuda()->memory(d, slot) == cuda()->memory(d, slot));
    }
    cuda()->close(d);
    CHECK_EQ(cuda_fake_close(), 0);
}

/* One load from `from` into a slot, waited for. */
static int load(struct pstk__device *d, const uint8_t *from, uint32_t slot)
{
    const uint64_t ragged[1] = {0};
    const struct pstk__load begin = {.memory = from, .slot = slot, .ragged_size = ragged};
    const struct pstk__load_end end = {.slot = slot, .n_valid = 2, .wait = 1};
    return cuda()->ready(d, slot, 1, &err) == 1 && cuda()->load(d, &begin, &err) == 0 &&
           cuda()->finish(d, &end, &err) == 1;
}

TEST(a_stream_that_acquired_a_slot_reads_the_bytes_loaded_into_it)
{
    cuda_fake_open(&(struct cuda_fake_config){.max_delay_us = 500, .seed = 3});
    struct pstk__device *d = cuda_device(2);
    CHECK(d);
    uint8_t *memory = calloc(1, layout.size), got[1000];
    CHECK_EQ(cuda()->pin(d, memory, layout.size, &err), 0);
    void *stream = NULL;
    CHECK_EQ(cuda()->stream_open(d, &stream, &err), 0);
    CHECK(stream && cuda()->check_shared(d, stream, &err) == 0);
    for (uint32_t round = 0; round < 6; round++) {
        const uint32_t slot = round % 2;
        memset(memory + layout.rows[0], (int)round + 1, 2000);
        CHECK(load(d, memory, slot));
        cuda()->ask(d, stream, 0, 0);
        CHECK_EQ(cuda()->acquire(d, slot, stream, 0, &err), 0);
        CHECK_EQ(cuda()->wait(d, slot, NULL, &err), 0);
        CHECK_EQ(cuda()->read(d, got, cuda()->memory(d, slot) + layout.final[0] + 1000, 1000,
                              stream, &err),
                 0);
        for (int i = 0; i < 1000; i++)
            CHECK_EQ(got[i], round + 1);
        void *streams[1] = {stream};
        uint32_t n_streams = 1;
        const struct pstk__lease_end end = {
            .slot = slot, .streams = streams, .n_streams = &n_streams};
        CHECK_EQ(cuda()->release(d, &end, &err), 0);
        CHECK_EQ(n_streams, 0);
    }
    cuda()->stream_close(d, stream);
    cuda()->drain(d);
    cuda()->unpin(d, memory);
    cuda()->close(d);
    free(memory);
    CHECK_EQ(cuda_fake_close(), 0);
}

TEST(a_slot_in_use_by_a_stream_is_not_ready_until_that_is_over)
{
    cuda_fake_open(NULL);
    struct pstk__device *d = cuda_device(2);
    CHECK(d);
    uint8_t *memory = calloc(1, layout.size);
    void *stream = NULL;
    CHECK_EQ(cuda()->stream_open(d, &stream, &err), 0);
    CHECK(load(d, memory, 0));
    CHECK_EQ(cuda()->acquire(d, 0, stream, 0, &err), 0);
    cuda_fake_hold(stream);
    CHECK_EQ(cuda()->record(d, 0, stream, &err), 0);
    const int busy = cuda()->ready(d, 0, 0, &err), other = cuda()->ready(d, 1, 0, &err);
    cuda_fake_let(stream);
    const int free_again = cuda()->ready(d, 0, 1, &err);
    cuda()->close(d); /* with the stream */
    free(memory);
    CHECK_EQ(cuda_fake_close(), 0);
    CHECK(busy == 0 && other == 1 && free_again == 1);
}

TEST(a_device_that_does_not_open_leaves_nothing)
{
    static const char *const calls[] = {"cudaSetDevice", "cudaStreamCreateWithPriority",
                                        "cudaEventCreateWithFlags", "cudaMalloc"};
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        cuda_fake_open(NULL);
        cuda_fake_fail(calls[i], 1, cudaErrorMemoryAllocation);
        CHECK(!cuda_device(2));
        CHECK_EQ(err.code, PSTK_ENOMEM);
        CHECK_EQ(cuda_fake_close(), 0);
    }
}

TEST(only_the_stream_that_differs_from_thread_to_thread_cannot_be_shared)
{
    cuda_fake_open(NULL);
    struct pstk__device *d = cuda_device(2);
    CHECK(d);
    CHECK_EQ(cuda()->check_shared(d, NULL, &err), 0);
    CHECK_EQ(cuda()->check_shared(d, cudaStreamLegacy, &err), 0);
    CHECK_EQ(cuda()->check_shared(d, cudaStreamPerThread, &err), PSTK_EINVAL);
    CHECK(strncmp(err.message, "stream: ", 8) == 0);
    cuda()->close(d);
    CHECK_EQ(cuda_fake_close(), 0);
}

TEST(a_device_that_is_not_timed_has_measured_nothing)
{
    struct pstk__device_times t, none = {0};
    cuda_fake_open(NULL);
    struct pstk__device *d = cuda_device(2);
    CHECK(d);
    uint8_t *memory = calloc(1, layout.size);
    CHECK(load(d, memory, 0));
    memset(&t, 7, sizeof t);
    cuda()->get_times(d, &t);
    cuda()->close(d);
    free(memory);
    CHECK_EQ(cuda_fake_close(), 0);
    CHECK(memcmp(&t, &none, sizeof t) == 0);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(each_kind_has_its_entry_and_no_other_number_has_one),
        CASE(an_entry_has_the_uploaders_members_exactly_where_it_has_slots),
        CASE(the_host_has_device_0_alone_and_no_pci_address),
        CASE(the_host_is_near_every_node_and_nothing_else_is_known_of_it),
        CASE(nothing_is_copied_to_the_host_so_nothing_is_measured),
        CASE(a_host_device_begins_with_its_table),
        CASE(on_the_host_every_stream_is_in_order_already),
        CASE(a_hosts_lease_ends_at_once_and_leaves_no_stream),
        CASE(a_read_of_the_host_copies_all_bytes_and_no_others),
        CASE(the_hosts_stream_is_null_and_the_caller_is_kept_busy),
        CASE(a_build_without_cuda_has_no_device_and_says_what_to_do),
        CASE(cuda_without_a_driver_is_no_device),
        CASE(a_driver_without_devices_counts_none_and_finds_none),
        CASE(every_cuda_device_that_is_counted_is_found_and_no_other),
        CASE(counting_finding_and_describing_touch_no_cuda_device),
        CASE(a_device_whose_pci_address_is_not_known_is_found_without_one),
        CASE(a_cuda_devices_slots_are_apart_and_the_same_for_its_life),
        CASE(a_stream_that_acquired_a_slot_reads_the_bytes_loaded_into_it),
        CASE(a_slot_in_use_by_a_stream_is_not_ready_until_that_is_over),
        CASE(a_device_that_does_not_open_leaves_nothing),
        CASE(only_the_stream_that_differs_from_thread_to_thread_cannot_be_shared),
        CASE(a_device_that_is_not_timed_has_measured_nothing),
    };
    return RUN_CASES(cases);
}
