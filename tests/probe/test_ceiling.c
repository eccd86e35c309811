/* SPDX-License-Identifier: Apache-2.0 */
/* The speed of each part of a loader's path alone, with and without a device of the fake. */
#include "support/cuda_fake/cuda_fake.h"
#include "support/sample_set.h"
#include "support/test.h"

#include "base/kernels.h"
#include "probe/resident.h"

#include <dirent.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/resource.h>
#include <unistd.h>

#define SECONDS 0.2
#define BATCH 8u
#define SIDE 16u

static char path[4200];
static struct pstk_error err;

static struct pstk_op ops[2];
static struct pstk_output outputs[2];

static struct pstk_settings base(uint32_t device)
{
    struct pstk_settings s;
    ops[0] = pstk_resize(SIDE, SIDE);
    ops[1] = pstk_normalize(PSTK_IMAGENET_MEAN, PSTK_IMAGENET_STD);
    outputs[0] = (struct pstk_output){.field = "img",
                                      .kind = PSTK_OUTPUT_IMAGE,
                                      .image.ops = ops,
                                      .image.n_ops = 2,
                                      .dtype = PSTK_F32};
    outputs[1] = (struct pstk_output){.field = "cls", .kind = PSTK_OUTPUT_SCALAR};
    pstk_settings_init(&s, sizeof s);
    s.path = path;
    s.outputs = outputs;
    s.n_outputs = 2;
    s.batch_size = BATCH;
    s.n_threads = 1;
    s.device.kind = device;
    return s;
}

TEST(a_loader_on_the_host_has_the_ceilings_of_its_parts_and_no_copies)
{
    struct pstk_settings s = base(PSTK_HOST);
    struct pstk_ceilings c = {.size = sizeof c};
    cuda_fake_open(NULL);
    CHECK_EQ(pstk_measure_ceilings(&s, SECONDS, &c, &err), 0);
    CHECK(c.storage_bytes_per_second > 0 && c.storage_reads_per_second > 0);
    CHECK(c.memory_bytes_per_second > 0 && c.loader_samples_per_second > 0);
    CHECK(c.decode_samples_per_second == 0); /* its images are no JPEGs */
    CHECK(c.copy_bytes_per_second == 0 && c.copy_block_size == 0);
    CHECK_EQ(cuda_fake_calls(NULL), 0);
    CHECK_EQ(cuda_fake_close(), 0);
}

/* The bytes that the control group has left; 0: there is no group. */
static uint64_t group_left;

void __real_pstk__cgroup_memory_left(const char *root, uint64_t *limit, uint64_t *left);
void __wrap_pstk__cgroup_memory_left(const char *root, uint64_t *limit, uint64_t *left);
void __wrap_pstk__cgroup_memory_left(const char *root, uint64_t *limit, uint64_t *left)
{
    __real_pstk__cgroup_memory_left(root, limit, left);
    if (group_left) {
        *limit = group_left + (1 << 20);
        *left = group_left;
    }
}

/* Two blocks of 64 MiB for each of two threads would end the process, and what bench has found. */
TEST(copies_take_a_part_of_what_the_control_group_leaves)
{
    struct pstk_settings s = base(PSTK_HOST);
    struct pstk_ceilings wide = {.size = sizeof wide}, narrow = wide;
    s.n_threads = 2;
    struct rusage before, after;
    group_left = 96 << 20;
    getrusage(RUSAGE_SELF, &before);
    CHECK_EQ(pstk_measure_ceilings(&s, SECONDS, &wide, &err), 0);
    getrusage(RUSAGE_SELF, &after);
    CHECK(wide.memory_bytes_per_second > 0);
    CHECK(after.ru_maxrss - before.ru_maxrss < 128 << 10);
    group_left = 40 << 20; /* blocks of 2.5 MiB would lie in a cache */
    CHECK_EQ(pstk_measure_ceilings(&s, SECONDS, &narrow, &err), 0);
    group_left = 0;
    CHECK(narrow.memory_bytes_per_second == 0 && narrow.storage_bytes_per_second > 0);
    CHECK(narrow.loader_samples_per_second > 0);
}

TEST(each_kind_of_kernels_that_this_cpu_has_takes_a_time)
{
    struct pstk_settings s = base(PSTK_HOST);
    struct pstk_ceilings c = {.size = sizeof c};
    CHECK_EQ(pstk_measure_ceilings(&s, SECONDS, &c, &err), 0);
    CHECK(c.kernels_ns[PSTK_KERNELS_AUTO] == 0);
    for (uint32_t k = PSTK_KERNELS_C; k <= PSTK_KERNELS_NEON; k++)
        CHECK_EQ(c.kernels_ns[k] > 0, pstk__kernels_run(k));
}

static int no_row(void *user, const struct pstk_sample *sample, void *row, uint64_t row_size)
{
    (void)user, (void)sample, (void)row, (void)row_size;
    return PSTK_EIO;
}

TEST(functions_of_the_program_are_not_called_for_kernels)
{
    struct pstk_settings s = base(PSTK_HOST);
    struct pstk_ceilings c = {.size = sizeof c};
    outputs[1] = (struct pstk_output){.field = "cls",
                                      .kind = PSTK_OUTPUT_CALLBACK,
                                      .dtype = PSTK_U8,
                                      .callback.n_dims = 1,
                                      .callback.shape = {1},
                                      .callback.decode = no_row};
    CHECK_EQ(pstk_measure_ceilings(&s, SECONDS, &c, &err), 0);
    for (uint32_t k = 0; k <= PSTK_KERNELS_NEON; k++)
        CHECK(c.kernels_ns[k] == 0);
}

TEST(ceilings_are_measured_for_a_loader_that_mixes_or_uses_a_mosaic)
{
    for (int has_mosaic = 0; has_mosaic < 2; has_mosaic++) {
        struct pstk_settings s = base(PSTK_HOST);
        struct pstk_ceilings c = {.size = sizeof c};
        struct pstk_mosaic mosaic;
        struct pstk_mix mix;
        pstk_mosaic_init(&mosaic, sizeof mosaic);
        pstk_mix_init(&mix, sizeof mix);
        mosaic.image = "img";
        mix.label = "cls";
        mix.n_classes = 10;
        s.mosaic = has_mosaic ? &mosaic : NULL;
        s.mix = has_mosaic ? NULL : &mix;
        CHECK_EQ(pstk_measure_ceilings(&s, SECONDS, &c, &err), 0);
        CHECK(c.loader_samples_per_second > 0);
    }
}

TEST(a_part_of_a_global_batch_has_ceilings)
{
    struct pstk_settings s = base(PSTK_HOST);
    struct pstk_ceilings c = {.size = sizeof c};
    s.batch_size = 1;
    s.global_batch_size = 2 * BATCH + 1;
    s.ranks.world = 2;
    s.order.uneven = 1;
    CHECK_EQ(pstk_measure_ceilings(&s, SECONDS, &c, &err), 0);
    CHECK(c.loader_samples_per_second > 0);
}

/* Take this file's pages out of the page cache, or read all of it; it is the test's own. Returns
 * how many of its pages are there then, or -1. */
static int64_t cache_file(const char *name, int wanted)
{
    char file[8400], bytes[4096];
    snprintf(file, sizeof file, "%s/%s", path, name);
    const int fd = open(file, O_RDONLY);
    int64_t n = fd < 0 || fsync(fd) < 0 ? -1 : 0;
    if (n == 0 && wanted == 0)
        posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    off_t end = 0;
    for (ssize_t r; wanted == 1 && (r = pread(fd, bytes, sizeof bytes, end)) > 0;)
        end += r;
    end = lseek(fd, 0, SEEK_END);
    for (off_t at = 0; n >= 0 && at < end; at += 4096)
        n += pstk__resident(fd, (uint64_t)at, 1) == 1;
    close(fd);
    return n;
}

/* All shards; wanted 0: none of their pages is in the page cache, 1: all are, -1: as they are.
 * `first`: of all but the first. Returns the pages that are there. */
static int64_t cache_shards(int wanted, int but_first)
{
    int64_t n = 0;
    DIR *folder = opendir(path);
    for (struct dirent *e; folder && (e = readdir(folder));)
        if (strstr(e->d_name, "shard-") && !(but_first && strstr(e->d_name, "000000")))
            n += cache_file(e->d_name, wanted);
    closedir(folder);
    return n;
}

TEST(ceilings_read_from_the_page_cache_are_marked_and_nothing_is_evicted)
{
    struct pstk_settings s = base(PSTK_HOST);
    struct pstk_ceilings c = {.size = sizeof c};
    const int64_t all = cache_shards(1, 0);
    CHECK(all > 0);
    CHECK_EQ(pstk_measure_ceilings(&s, SECONDS, &c, &err), 0);
    CHECK_EQ(c.from_page_cache, PSTK_CEILING_STORAGE | PSTK_CEILING_LOADER);
    CHECK(c.storage_bytes_per_second > 0 && c.loader_samples_per_second > 0);
    CHECK_EQ(cache_shards(-1, 0), all);
    if (cache_shards(0, 0) > 0)
        SKIP("a file system whose pages leave the cache: the test's folder is in memory");
    CHECK_EQ(pstk_measure_ceilings(&s, SECONDS, &c, &err), 0);
    CHECK_EQ(c.from_page_cache & PSTK_CEILING_STORAGE, 0);
    CHECK(c.storage_reads_per_second > 0);
}

TEST(a_loader_that_is_not_measured_is_not_marked)
{
    struct pstk_settings s = base(PSTK_HOST);
    struct pstk_ceilings c = {.size = sizeof c};
    outputs[0] = (struct pstk_output){.field = "none", .kind = PSTK_OUTPUT_SCALAR};
    s.n_outputs = 1;
    cache_shards(1, 0);
    CHECK_EQ(pstk_measure_ceilings(&s, SECONDS, &c, &err), 0);
    CHECK(c.storage_bytes_per_second > 0 && c.loader_samples_per_second == 0);
    CHECK_EQ(c.from_page_cache, PSTK_CEILING_STORAGE);
}

TEST(storage_reads_what_a_run_has_left_and_each_record_once)
{
    struct pstk_settings s = base(PSTK_HOST);
    struct pstk_ceilings c = {.size = sizeof c};
    if (cache_shards(0, 0) > 0)
        SKIP("a file system whose pages leave the cache: the test's folder is in memory");
    const int64_t first = cache_shards(1, 0) - cache_shards(-1, 1);
    CHECK(first > 0);
    cache_shards(0, 1); /* the run has read the first shard */
    const uint64_t before = pstk__resident_bytes_read();
    s.n_threads = 1;
    CHECK_EQ(pstk_measure_ceilings(&s, SECONDS, &c, &err), 0);
    CHECK_EQ(c.from_page_cache & PSTK_CEILING_STORAGE, 0);
    if (before == UINT64_MAX || pstk__resident_bytes_read() == before)
        SKIP("a file system that counts what is read");
    CHECK(pstk__resident_bytes_read() - before > 1 << 20);
}

/* 400 samples are fewer than are read for their images. */
TEST(the_loader_is_measured_before_images_to_decode_are_read)
{
    struct pstk_settings s = base(PSTK_HOST);
    struct pstk_ceilings c = {.size = sizeof c};
    char others[sizeof path];
    memcpy(others, path, sizeof path);
    sample_set_path(path, sizeof path);
    sample_set_make(path, 400, 1 << 20, PSTK_CODEC_NONE);
    const int64_t n_pages = cache_shards(0, 0);
    const uint64_t before = pstk__resident_bytes_read();
    s.reading.queue_depth = 1; /* so that the storage ceiling reads only a few records */
    const int r = pstk_measure_ceilings(&s, 0.005, &c, &err);
    const int is_counted = before != UINT64_MAX && pstk__resident_bytes_read() > before;
    sample_set_remove(path);
    memcpy(path, others, sizeof path);
    if (n_pages > 0 || !is_counted)
        SKIP("a file system whose pages leave the cache, and that counts what is read");
    CHECK_EQ(r, 0);
    CHECK(c.loader_samples_per_second > 0);
    CHECK_EQ(c.from_page_cache, 0);
}

/* u8 images and their flips' bytes, 256-byte aligned, whatever is made of them on the device. */
TEST(on_a_device_copies_of_what_a_batch_copies_are_one_more)
{
    struct pstk_settings s = base(PSTK_CUDA);
    struct pstk_ceilings c = {.size = sizeof c};
    cuda_fake_open(&(struct cuda_fake_config){.n_devices = 2});
    s.device.index = 1;
    CHECK_EQ(pstk_measure_ceilings(&s, SECONDS, &c, &err), 0);
    CHECK(c.storage_bytes_per_second > 0 && c.memory_bytes_per_second > 0);
    CHECK(c.loader_samples_per_second > 0 && c.copy_bytes_per_second > 0);
    CHECK_EQ(c.copy_block_size, BATCH * SIDE * SIDE * 3 + 256);
    struct cuda_fake_stats f;
    cuda_fake_stats(&f);
    CHECK_EQ(f.devices[0].has_context, 0);
    CHECK_EQ(cuda_fake_calls("cudaHostRegister"), 0); /* no loader was on the device */
    CHECK_EQ(cuda_fake_close(), 0);
}

TEST(a_ragged_output_is_copied_in_its_own_piece)
{
    struct pstk_settings s = base(PSTK_CUDA);
    struct pstk_ceilings c = {.size = sizeof c};
    cuda_fake_open(NULL);
    outputs[0] = (struct pstk_output){
        .field = "text", .kind = PSTK_OUTPUT_BYTES, .ragged.bytes_per_batch = 100 << 10};
    CHECK_EQ(pstk_measure_ceilings(&s, SECONDS, &c, &err), 0);
    CHECK_EQ(c.copy_block_size, 100 << 10);
    CHECK_EQ(cuda_fake_close(), 0);
}

TEST(copies_without_memory_for_them_are_not_measured_and_the_rest_is)
{
    struct pstk_settings s = base(PSTK_CUDA);
    struct pstk_ceilings c = {.size = sizeof c};
    cuda_fake_open(&(struct cuda_fake_config){.no_pinned = cudaErrorMemoryAllocation});
    CHECK_EQ(pstk_measure_ceilings(&s, SECONDS, &c, &err), 0);
    CHECK(c.storage_bytes_per_second > 0 && c.loader_samples_per_second > 0);
    CHECK(c.copy_bytes_per_second == 0 && c.copy_block_size == 0);
    CHECK_EQ(cuda_fake_close(), 0);
}

TEST(settings_that_a_loader_would_refuse_are_refused)
{
    struct pstk_settings s = base(PSTK_CUDA);
    struct pstk_ceilings c = {.size = sizeof c};
    CHECK_EQ(pstk_measure_ceilings(&s, SECONDS, &c, &err), PSTK_ENOTSUP);
    CHECK(strstr(err.message, "driver") != NULL);
    cuda_fake_open(NULL);
    s.device.index = 1;
    CHECK_EQ(pstk_measure_ceilings(&s, SECONDS, &c, &err), PSTK_EINVAL);
    CHECK(strstr(err.message, "device_index") != NULL);
    s = base(PSTK_CUDA + 1);
    CHECK_EQ(pstk_measure_ceilings(&s, SECONDS, &c, &err), PSTK_EINVAL);
    s = base(PSTK_HOST);
    s.path = "/nowhere/at/all";
    CHECK_EQ(pstk_measure_ceilings(&s, SECONDS, &c, &err), PSTK_ENOENT);
    s = base(PSTK_HOST);
    CHECK_EQ(pstk_measure_ceilings(&s, 0, &c, &err), PSTK_EINVAL);
    CHECK_EQ(pstk_measure_ceilings(&s, SECONDS, NULL, &err), PSTK_EINVAL);
    c.size = offsetof(struct pstk_ceilings, copy_bytes_per_second);
    c.copy_bytes_per_second = -1;
    CHECK_EQ(pstk_measure_ceilings(&s, SECONDS, &c, &err), 0);
    CHECK(c.copy_bytes_per_second < 0);
    CHECK_EQ(cuda_fake_close(), 0);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(copies_take_a_part_of_what_the_control_group_leaves), /* first: the peak only grows */
        CASE(a_loader_on_the_host_has_the_ceilings_of_its_parts_and_no_copies),
        CASE(each_kind_of_kernels_that_this_cpu_has_takes_a_time),
        CASE(functions_of_the_program_are_not_called_for_kernels),
        CASE(ceilings_are_measured_for_a_loader_that_mixes_or_uses_a_mosaic),
        CASE(a_part_of_a_global_batch_has_ceilings),
        CASE(ceilings_read_from_the_page_cache_are_marked_and_nothing_is_evicted),
        CASE(a_loader_that_is_not_measured_is_not_marked),
        CASE(storage_reads_what_a_run_has_left_and_each_record_once),
        CASE(the_loader_is_measured_before_images_to_decode_are_read),
        CASE(on_a_device_copies_of_what_a_batch_copies_are_one_more),
        CASE(a_ragged_output_is_copied_in_its_own_piece),
        CASE(copies_without_memory_for_them_are_not_measured_and_the_rest_is),
        CASE(settings_that_a_loader_would_refuse_are_refused),
    };
    pstk_error_init(&err, sizeof err);
    sample_set_path(path, sizeof path);
    sample_set_make(path, 2000, 1 << 20, PSTK_CODEC_NONE);
    int status = RUN_CASES(cases);
    sample_set_remove(path);
    return status;
}
