/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/disk.h"
#include "support/test.h"

#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[256]; /* a directory with sys/ of its own */

static int make_root(void)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(root, sizeof root, "%.200s/pstk-disk-XXXXXX", tmp ? tmp : "/tmp");
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

/* Make a directory below the root, and those above it. */
static int make(const char *path)
{
    char full[512];
    snprintf(full, sizeof full, "%s/%s/", root, path);
    for (char *p = full + strlen(root) + 1; (p = strchr(p, '/')); p++) {
        *p = 0;
        mkdir(full, 0777);
        *p = '/';
    }
    return access(full, F_OK) == 0;
}

static int put(const char *path, const char *text)
{
    char full[512];
    snprintf(full, sizeof full, "%s/%s", root, path);
    FILE *f = fopen(full, "w");
    if (!f)
        return 0;
    fputs(text, f);
    return fclose(f) == 0;
}

static int join(const char *target, const char *path)
{
    char full[512];
    snprintf(full, sizeof full, "%s/%s", root, path);
    return symlink(target, full) == 0;
}

TEST(a_disk_and_its_partition_spin_alike)
{
    CHECK(make_root());
    CHECK(make("sys/dev/block") && make("sys/block/sda/queue") && make("sys/block/sda/sda1"));
    CHECK(make("sys/block/nvme0n1/queue"));
    CHECK(put("sys/block/sda/queue/rotational", "1\n"));
    CHECK(put("sys/block/nvme0n1/queue/rotational", "0\n"));
    CHECK(join("../../block/sda", "sys/dev/block/8:0"));
    CHECK(join("../../block/sda/sda1", "sys/dev/block/8:1"));
    CHECK(join("../../block/nvme0n1", "sys/dev/block/259:0"));
    CHECK_EQ(pstk__disk_rotational(root, 8, 0), 1);
    CHECK_EQ(pstk__disk_rotational(root, 8, 1), 1);
    CHECK_EQ(pstk__disk_rotational(root, 259, 0), 0);
    drop_root();
}

TEST(rotation_is_unknown_if_the_kernel_does_not_report_it)
{
    CHECK(make_root());
    CHECK_EQ(pstk__disk_rotational(root, 0, 45), -1);
    CHECK(make("sys/dev/block/8:0/queue"));
    CHECK_EQ(pstk__disk_rotational(root, 8, 0), -1);
    CHECK(put("sys/dev/block/8:0/queue/rotational", ""));
    CHECK_EQ(pstk__disk_rotational(root, 8, 0), -1);
    CHECK(put("sys/dev/block/8:0/queue/rotational", "yes\n"));
    CHECK_EQ(pstk__disk_rotational(root, 8, 0), -1);
    drop_root();
}

int main(void)
{
    static const struct test_case cases[] = {
        CASE(a_disk_and_its_partition_spin_alike),
        CASE(rotation_is_unknown_if_the_kernel_does_not_report_it),
    };
    return RUN_CASES(cases);
}
