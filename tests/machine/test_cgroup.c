/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/cgroup.h"
#include "support/test.h"

#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[256]; /* a directory with proc/ and sys/ of its own */

static int make_root(void)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(root, sizeof root, "%.200s/pstk-cgroup-XXXXXX", tmp ? tmp : "/tmp");
    return mkdtemp(root) != NULL;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static void drop_root(void)
{
    nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Write a file below the root, making its directories. */
static int put(const char *path, const char *text)
{
    char full[512];
    snprintf(full, sizeof full, "%s/%s", root, path);
    for (char *p = full + strlen(root) + 1; (p = strchr(p, '/')); p++) {
        *p = 0;
        mkdir(full, 0777);
        *p = '/';
    }
    FILE *f = fopen(full, "w");
    if (!f)
        return 0;
    fputs(text, f);
    return fclose(f) == 0;
}

TEST(without_any_file_there_is_no_quota_and_some_memory)
{
    CHECK(make_root());
    double cpus = pstk__cgroup_cpus(root);
    uint64_t memory = pstk__cgroup_memory(root);
    drop_root();
    CHECK(cpus == 0 && memory > 0);
    CHECK(pstk__cgroup_cpus("/nonexistent") == 0);
}

TEST(memory_left_under_a_hard_limit_counts_cached_files_as_free)
{
    uint64_t limit, left, high_limit, v1_limit, v1_left, none;
    CHECK(make_root());
    CHECK(put("proc/self/cgroup", "0::/job\n") && put("proc/meminfo", "MemTotal:  8388608 kB\n"));
    CHECK(put("sys/fs/cgroup/job/memory.high", "1000000\n"));
    pstk__cgroup_memory_left(root, &high_limit, &left);
    CHECK(put("sys/fs/cgroup/job/memory.max", "50000000\n"));
    CHECK(put("sys/fs/cgroup/job/memory.current", "30000000\n"));
    CHECK(put("sys/fs/cgroup/job/memory.stat",
              "anon 9\ninactive_file 5000000\nactive_file 1000000\nfile 9\n"));
    pstk__cgroup_memory_left(root, &limit, &left);
    drop_root();
    CHECK_EQ(high_limit, 0);
    CHECK_EQ(limit, 50000000);
    CHECK_EQ(left, 50000000 - 30000000 + 6000000);
    CHECK(make_root());
    CHECK(put("proc/self/cgroup", "3:memory:/job\n"));
    CHECK(put("proc/meminfo", "MemTotal:  8388608 kB\n"));
    CHECK(put("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "9223372036854771712\n"));
    CHECK(put("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "30000000\n"));
    pstk__cgroup_memory_left(root, &none, &v1_left);
    CHECK(put("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "20000000\n"));
    pstk__cgroup_memory_left(root, &v1_limit, &v1_left);
    drop_root();
    CHECK_EQ(none, 0);
    CHECK_EQ(v1_limit, 20000000);
    CHECK_EQ(v1_left, 0);
}

TEST(version_2_quota_and_memory_are_read)
{
    CHECK(make_root());
    CHECK(put("proc/self/cgroup", "0::/\n") && put("proc/meminfo", "MemTotal:  8388608 kB\n"));
    CHECK(put("sys/fs/cgroup/cpu.max", "250000 100000\n"));
    CHECK(put("sys/fs/cgroup/memory.max", "1073741824\n"));
    double cpus = pstk__cgroup_cpus(root);
    uint64_t memory = pstk__cgroup_memory(root);
    CHECK(put("sys/fs/cgroup/memory.high", "536870912\n"));
    uint64_t high = pstk__cgroup_memory(root);
    drop_root();
    CHECK(cpus == 2.5);
    CHECK_EQ(memory, 1 << 30);
    CHECK_EQ(high, 1 << 29);
}

TEST(the_cores_of_a_group_are_those_of_its_list)
{
    static const struct {
        const char *list;
        uint64_t n;
    } cases[] = {{"0-3,8,10-11\n", 7}, {"5\n", 1}, {"\n", 0},   {"3-1\n", 0},
                 {"0-\n", 0},          {"x\n", 0}, {"1;2\n", 0}};
    CHECK(make_root());
    CHECK_EQ(pstk__cgroup_cores(root), 0);
    CHECK(put("proc/self/cgroup", "0::/a/b\n"));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK(put("sys/fs/cgroup/a/b/cpuset.cpus.effective", cases[i].list));
        CHECK_EQ(pstk__cgroup_cores(root), cases[i].n);
    }
    CHECK(put("sys/fs/cgroup/a/cpuset.cpus.effective", "0-15\n")); /* b has none of its own */
    CHECK_EQ(pstk__cgroup_cores(root), 16);
    CHECK(put("sys/fs/cgroup/a/cpuset.cpus.effective", "0-3\n"));
    CHECK(put("sys/fs/cgroup/a/b/cpuset.cpus.effective", "4-11\n")); /* a partition of its own */
    CHECK_EQ(pstk__cgroup_cores(root), 8);
    CHECK(put("proc/self/cgroup", "4:cpu,cpuset:/job\n2:memory:/job\n"));
    CHECK(put("sys/fs/cgroup/cpuset/job/cpuset.cpus", "0,2\n"));
    CHECK_EQ(pstk__cgroup_cores(root), 2);
    drop_root();
}

TEST(max_is_no_limit)
{
    CHECK(make_root());
    CHECK(put("proc/self/cgroup", "0::/a\n") && put("proc/meminfo", "MemTotal: 4194304 kB\n"));
    CHECK(put("sys/fs/cgroup/a/cpu.max", "max 100000\n"));
    CHECK(put("sys/fs/cgroup/a/memory.max", "max\n"));
    double cpus = pstk__cgroup_cpus(root);
    uint64_t memory = pstk__cgroup_memory(root);
    drop_root();
    CHECK(cpus == 0);
    CHECK(memory == (uint64_t)4 << 30);
}

TEST(the_lowest_limit_from_the_group_to_the_root_counts)
{
    CHECK(make_root());
    CHECK(put("proc/self/cgroup", "0::/a/b/c\n") && put("proc/meminfo", "MemTotal: 4194304 kB\n"));
    CHECK(put("sys/fs/cgroup/a/cpu.max", "150000 100000\n"));
    CHECK(put("sys/fs/cgroup/a/b/cpu.max", "max 100000\n"));
    CHECK(put("sys/fs/cgroup/a/b/c/cpu.max", "400000 100000\n"));
    CHECK(put("sys/fs/cgroup/a/memory.max", "3000000\n"));
    CHECK(put("sys/fs/cgroup/a/b/memory.max", "2000000\n"));
    CHECK(put("sys/fs/cgroup/other/cpu.max", "1000 100000\n"));
    double cpus = pstk__cgroup_cpus(root);
    uint64_t memory = pstk__cgroup_memory(root);
    drop_root();
    CHECK(cpus == 1.5);
    CHECK_EQ(memory, 2000000);
}

TEST(in_a_container_the_limits_at_the_root_count_though_proc_names_a_path_of_the_host)
{
    CHECK(make_root());
    CHECK(put("proc/self/cgroup", "0::/system.slice/docker-0123.scope\n"));
    CHECK(put("sys/fs/cgroup/cpu.max", "50000 100000\n"));
    double cpus = pstk__cgroup_cpus(root);
    drop_root();
    CHECK(cpus == 0.5);
}

TEST(version_1_quota_and_memory_are_read_under_any_mount_name)
{
    static const char *const names[] = {"cpu,cpuacct", "cpu"};
    for (int i = 0; i < 2; i++) {
        CHECK(make_root());
        char path[128];
        CHECK(put("proc/self/cgroup", "12:cpuset:/x\n4:cpu,cpuacct:/a/b\n3:memory:/a\n0::/\n"));
        CHECK(put("proc/meminfo", "MemTotal: 4194304 kB\n"));
        snprintf(path, sizeof path, "sys/fs/cgroup/%s/a/b/cpu.cfs_quota_us", names[i]);
        CHECK(put(path, "300000\n"));
        snprintf(path, sizeof path, "sys/fs/cgroup/%s/a/b/cpu.cfs_period_us", names[i]);
        CHECK(put(path, "100000\n"));
        snprintf(path, sizeof path, "sys/fs/cgroup/%s/a/cpu.cfs_quota_us", names[i]);
        CHECK(put(path, "-1\n"));
        CHECK(put("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "123456\n"));
        CHECK(put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"));
        double cpus = pstk__cgroup_cpus(root);
        uint64_t memory = pstk__cgroup_memory(root);
        drop_root();
        CHECK(cpus == 3);
        CHECK_EQ(memory, 123456);
    }
}

TEST(version_1_without_a_quota_says_minus_1)
{
    CHECK(make_root());
    CHECK(put("proc/self/cgroup", "4:cpu,cpuacct:/\n"));
    CHECK(put("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"));
    CHECK(put("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"));
    double cpus = pstk__cgroup_cpus(root);
    drop_root();
    CHECK(cpus == 0);
}

TEST(version_2_beside_version_1_is_found_under_unified)
{
    CHECK(make_root());
    CHECK(put("proc/self/cgroup", "3:memory:/\n0::/a\n"));
    CHECK(put("sys/fs/cgroup/unified/a/cpu.max", "700000 100000\n"));
    double cpus = pstk__cgroup_cpus(root);
    drop_root();
    CHECK(cpus == 7);
}

TEST(files_of_nonsense_are_no_limit)
{
    static const char *const texts[] = {"", "\n", "x y\n", "100000\n", "100000 0\n", "0 100000\n"};
    for (int i = 0; i < 6; i++) {
        CHECK(make_root());
        CHECK(put("proc/self/cgroup", "0::/\nnonsense\n::\n5:\n"));
        CHECK(put("sys/fs/cgroup/cpu.max", texts[i]));
        CHECK(put("sys/fs/cgroup/memory.max", "lots\n") && put("proc/meminfo", "MemTotal: 4 kB\n"));
        double cpus = pstk__cgroup_cpus(root);
        uint64_t memory = pstk__cgroup_memory(root);
        drop_root();
        CHECK(cpus == 0);
        CHECK_EQ(memory, 4096);
    }
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(without_any_file_there_is_no_quota_and_some_memory),
        CASE(memory_left_under_a_hard_limit_counts_cached_files_as_free),
        CASE(version_2_quota_and_memory_are_read),
        CASE(the_cores_of_a_group_are_those_of_its_list),
        CASE(max_is_no_limit),
        CASE(the_lowest_limit_from_the_group_to_the_root_counts),
        CASE(in_a_container_the_limits_at_the_root_count_though_proc_names_a_path_of_the_host),
        CASE(version_1_quota_and_memory_are_read_under_any_mount_name),
        CASE(version_1_without_a_quota_says_minus_1),
        CASE(version_2_beside_version_1_is_found_under_unified),
        CASE(files_of_nonsense_are_no_limit),
    };
    return RUN_CASES(cases);
}
