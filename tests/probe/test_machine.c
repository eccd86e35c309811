/* SPDX-License-Identifier: Apache-2.0 */
/* The description of this machine, and of devices of the fake. */
#include "support/cuda_fake/cuda_fake.h"
#include "support/test.h"

#include <math.h>
#include <penstock/penstock.h>
#include <stddef.h>

static struct pstk_error err;

TEST(the_machine_is_described)
{
    struct pstk_machine m = {.size = sizeof m};
    CHECK_EQ(pstk_get_machine("/", &m, &err), 0);
    CHECK(m.n_cores >= 1 && m.n_usable >= 1 && m.n_usable <= m.n_cores && m.n_nodes >= 1);
    CHECK(m.n_workers >= 1 && m.n_workers <= m.n_usable);
    CHECK(m.n_workers_direct >= 1 && m.n_workers_direct <= m.n_workers);
    CHECK(m.n_workers_device >= 1 && m.n_workers_device <= m.n_workers);
    CHECK(m.memory > 0 && m.open_files > 0 && m.kernels >= PSTK_KERNELS_C);
    CHECK(m.kernel[0] && m.file_system[0] && m.libjpeg[0]);
    m.size = 0;
    CHECK_EQ(pstk_get_machine("/", &m, &err), PSTK_EINVAL);
    CHECK_EQ(pstk_get_machine("/", NULL, &err), PSTK_EINVAL);
}

TEST(members_stay_where_earlier_programs_read_them)
{
    CHECK_EQ(offsetof(struct pstk_machine, io_uring), 48);
    CHECK_EQ(offsetof(struct pstk_machine, n_cuda_devices), 76);
    CHECK_EQ(offsetof(struct pstk_machine, kernel), 80);
    CHECK_EQ(offsetof(struct pstk_machine, rotational), 272);
    CHECK_EQ(offsetof(struct pstk_machine, n_workers), 276);
    CHECK_EQ(offsetof(struct pstk_machine, n_workers_device), 284);
    CHECK_EQ(sizeof(struct pstk_machine), 288);
}

TEST(cuda_devices_are_counted)
{
    struct pstk_machine m = {.size = sizeof m};
    CHECK_EQ(pstk_get_machine(NULL, &m, &err), 0);
    CHECK_EQ(m.n_cuda_devices, -1); /* the fake is closed: no driver */
    cuda_fake_open(&(struct cuda_fake_config){.no_driver = cudaErrorNoDevice});
    CHECK_EQ(pstk_get_machine(NULL, &m, &err), 0);
    CHECK_EQ(m.n_cuda_devices, 0);
    cuda_fake_close();
    cuda_fake_open(&(struct cuda_fake_config){.n_devices = 4});
    CHECK_EQ(pstk_get_machine(NULL, &m, &err), 0);
    CHECK_EQ(m.n_cuda_devices, 4);
    CHECK_EQ(cuda_fake_close(), 0);
}

TEST(a_caller_who_does_not_ask_for_devices_starts_no_driver)
{
    struct pstk_machine m = {.size = offsetof(struct pstk_machine, n_cuda_devices)};
    cuda_fake_open(NULL);
    CHECK_EQ(pstk_get_machine(NULL, &m, &err), 0);
    CHECK(m.n_usable >= 1);
    CHECK_EQ(cuda_fake_calls(NULL), 0);
    CHECK_EQ(cuda_fake_close(), 0);
}

TEST(a_caller_who_asks_for_cores_alone_gets_them)
{
    struct pstk_machine m = {.size = offsetof(struct pstk_machine, io_uring), .io_uring = 7};
    CHECK_EQ(pstk_get_machine(NULL, &m, &err), 0);
    CHECK(m.n_usable >= 1 && m.memory > 0);
    CHECK_EQ(m.io_uring, 7);
}

TEST(the_description_of_a_device_fits_the_callers_struct_size)
{
    struct pstk_device d = {.size = sizeof d};
    union {
        struct pstk_device device;
        uint8_t bytes[sizeof(struct pstk_device) + 64];
    } room;
    cuda_fake_open(&(struct cuda_fake_config){.n_devices = 2});
    CHECK_EQ(pstk_get_device(PSTK_CUDA, 1, &d, &err), 0);
    CHECK(d.size == sizeof d && d.kind == PSTK_CUDA && d.index == 1);
    CHECK_STR(d.name, "Fake GPU 1");
    memset(&room, 0x5a, sizeof room);
    room.device.size = offsetof(struct pstk_device, memory);
    CHECK_EQ(pstk_get_device(PSTK_CUDA, 1, &room.device, &err), 0);
    CHECK_EQ(room.device.index, 1);
    CHECK_EQ(room.bytes[offsetof(struct pstk_device, memory)], 0x5a);
    room.device.size = sizeof room;
    CHECK_EQ(pstk_get_device(PSTK_CUDA, 0, &room.device, &err), 0);
    CHECK_EQ(room.device.size, sizeof room);
    CHECK_EQ(room.bytes[sizeof room - 1], 0); /* a newer caller's members are unknown */
    CHECK_EQ(cuda_fake_close(), 0);
    CHECK_EQ(pstk_get_device(PSTK_HOST, 0, &d, &err), 0);
    CHECK(d.kind == PSTK_HOST && d.numa_node == -1 && d.name[0] == 0);
}

TEST(devices_that_are_not_there_are_refused)
{
    struct pstk_device d = {.size = sizeof d};
    CHECK_EQ(pstk_get_device(PSTK_CUDA, 0, &d, &err), PSTK_ENOTSUP);
    CHECK(strstr(err.message, "driver") != NULL);
    cuda_fake_open(&(struct cuda_fake_config){.n_devices = 2});
    CHECK_EQ(pstk_get_device(PSTK_CUDA, 2, &d, &err), PSTK_EINVAL);
    CHECK(strstr(err.message, "2") != NULL);
    CHECK_EQ(pstk_get_device(PSTK_CUDA, -1, &d, &err), PSTK_EINVAL);
    CHECK_EQ(pstk_get_device(PSTK_CUDA + 1, 0, &d, &err), PSTK_EINVAL);
    CHECK(strstr(err.message, "kind") != NULL);
    CHECK_EQ(pstk_get_device(PSTK_HOST, 1, &d, &err), PSTK_EINVAL);
    CHECK_EQ(pstk_get_device(PSTK_CUDA, 0, NULL, &err), PSTK_EINVAL);
    d.size = 3;
    CHECK_EQ(pstk_get_device(PSTK_CUDA, 0, &d, &err), PSTK_EINVAL);
    CHECK_EQ(pstk_get_device(PSTK_CUDA, 0, &d, NULL), PSTK_EINVAL);
    CHECK_EQ(cuda_fake_close(), 0);
}

TEST(copies_are_measured)
{
    struct pstk_copy_rates r = {.size = sizeof r};
    cuda_fake_open(&(struct cuda_fake_config){.n_devices = 2});
    CHECK_EQ(pstk_measure_copies(PSTK_CUDA, 1, 1 << 20, 0.02, &r, &err), 0);
    CHECK_EQ(r.size, sizeof r);
    CHECK(r.to_device > 0 && r.to_host > 0 && r.pageable_to_device > 0 && r.on_device > 0);
    r.size = offsetof(struct pstk_copy_rates, to_host);
    r.to_host = -1;
    CHECK_EQ(pstk_measure_copies(PSTK_CUDA, 1, 1 << 20, 0.02, &r, &err), 0);
    CHECK(r.to_device > 0 && r.to_host < 0);
    CHECK_EQ(cuda_fake_close(), 0);
}

TEST(copies_that_make_no_sense_are_refused)
{
    struct pstk_copy_rates r = {.size = sizeof r};
    CHECK_EQ(pstk_measure_copies(PSTK_CUDA, 0, 1, 1, &r, &err), PSTK_ENOTSUP);
    cuda_fake_open(NULL);
    CHECK_EQ(pstk_measure_copies(PSTK_CUDA, 0, 0, 1, &r, &err), PSTK_EINVAL);
    CHECK(strstr(err.message, "block_size") != NULL);
    CHECK_EQ(pstk_measure_copies(PSTK_CUDA, 0, 1, 0, &r, &err), PSTK_EINVAL);
    CHECK_EQ(pstk_measure_copies(PSTK_CUDA, 0, 1, (double)NAN, &r, &err), PSTK_EINVAL);
    CHECK_EQ(pstk_measure_copies(PSTK_CUDA, 1, 1, 1, &r, &err), PSTK_EINVAL);
    CHECK_EQ(pstk_measure_copies(7, 0, 1, 1, &r, &err), PSTK_EINVAL);
    CHECK_EQ(pstk_measure_copies(PSTK_CUDA, 0, 1, 1, NULL, &err), PSTK_EINVAL);
    r.size = 1;
    CHECK_EQ(pstk_measure_copies(PSTK_CUDA, 0, 1, 1, &r, &err), PSTK_EINVAL);
    r.size = sizeof r;
    CHECK_EQ(pstk_measure_copies(PSTK_HOST, 0, 1, 1, &r, &err), PSTK_ENOTSUP);
    CHECK_EQ(cuda_fake_close(), 0);
    cuda_fake_open(&(struct cuda_fake_config){.device_memory = 1 << 20});
    CHECK_EQ(pstk_measure_copies(PSTK_CUDA, 0, 1 << 20, 0.02, &r, &err), PSTK_ENOMEM);
    CHECK(r.to_device == 0);
    CHECK_EQ(cuda_fake_close(), 0);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(the_machine_is_described),
        CASE(members_stay_where_earlier_programs_read_them),
        CASE(cuda_devices_are_counted),
        CASE(a_caller_who_does_not_ask_for_devices_starts_no_driver),
        CASE(a_caller_who_asks_for_cores_alone_gets_them),
        CASE(the_description_of_a_device_fits_the_callers_struct_size),
        CASE(devices_that_are_not_there_are_refused),
        CASE(copies_are_measured),
        CASE(copies_that_make_no_sense_are_refused),
    };
    pstk_error_init(&err, sizeof err);
    return RUN_CASES(cases);
}
