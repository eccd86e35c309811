/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/pci.h"
#include "support/test.h"

#include <errno.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#define GPU "sys/bus/pci/devices/0000:3b:00.0"

static char root[256]; /* a directory with sys/ of its own */

static int make_root(void)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(root, sizeof root, "%.200s/pstk-pci-XXXXXX", tmp ? tmp : "/tmp");
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

TEST(link_and_node_are_read_whatever_the_case_of_the_id)
{
    static const char *const ids[] = {"0000:3B:00.0", "0000:3b:00.0", "00000000:3B:00.0"};
    CHECK(make_root());
    CHECK(put(GPU "/current_link_speed", "2.5 GT/s PCIe\n"));
    CHECK(put(GPU "/max_link_speed", "16.0 GT/s PCIe\n"));
    CHECK(put(GPU "/current_link_width", "8\n"));
    CHECK(put(GPU "/max_link_width", "16\n"));
    CHECK(put(GPU "/numa_node", "1\n"));
    struct pstk__pci pci[3];
    int r[3];
    for (int i = 0; i < 3; i++)
        r[i] = pstk__pci_get(root, ids[i], &pci[i]);
    drop_root();
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(r[i], 0);
        CHECK_EQ(pci[i].generation, 1);
        CHECK_EQ(pci[i].max_generation, 4);
        CHECK_EQ(pci[i].width, 8);
        CHECK_EQ(pci[i].max_width, 16);
        CHECK_EQ(pci[i].numa_node, 1);
    }
}

TEST(each_speed_is_its_generation_in_old_and_new_words)
{
    static const struct {
        const char *speed;
        uint32_t generation;
    } cases[] = {{"2.5 GT/s PCIe\n", 1},
                 {"5.0 GT/s PCIe\n", 2},
                 {"5 GT/s\n", 2},
                 {"8.0 GT/s PCIe\n", 3},
                 {"8 GT/s\n", 3},
                 {"16.0 GT/s PCIe\n", 4},
                 {"16 GT/s\n", 4},
                 {"32.0 GT/s PCIe\n", 5},
                 {"64.0 GT/s PCIe\n", 6},
                 {"128.0 GT/s PCIe", 7},
                 {"Unknown speed\n", 0},
                 {"Unknown\n", 0},
                 {"", 0},
                 {"7.0 GT/s PCIe\n", 0},
                 {"-16.0 GT/s PCIe\n", 0},
                 {"16\n", 0},
                 {"256.0 GT/s PCIe\n", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pstk__pci pci;
        CHECK(make_root());
        CHECK(put(GPU "/max_link_speed", cases[i].speed));
        int r = pstk__pci_get(root, "0000:3B:00.0", &pci);
        drop_root();
        CHECK_EQ(r, 0);
        CHECK_EQ(pci.max_generation, cases[i].generation);
        CHECK_EQ(pci.generation, 0);
    }
}

TEST(values_without_a_file_are_0_and_the_node_is_minus_1)
{
    struct pstk__pci pci;
    CHECK(make_root());
    CHECK(put(GPU "/class", "0x030200\n"));
    int r = pstk__pci_get(root, "0000:3B:00.0", &pci);
    drop_root();
    CHECK_EQ(r, 0);
    CHECK(pci.generation == 0 && pci.max_generation == 0 && pci.width == 0 && pci.max_width == 0);
    CHECK_EQ(pci.numa_node, -1);
}

TEST(implausible_values_are_not_reported)
{
    static const char *const nodes[] = {"-1\n", "", "none\n", "99999999999999999999\n", "-7\n"};
    for (int i = 0; i < 5; i++) {
        struct pstk__pci pci;
        CHECK(make_root());
        CHECK(put(GPU "/numa_node", nodes[i]));
        CHECK(put(GPU "/current_link_width", "63\n")); /* a device that is gone has it */
        CHECK(put(GPU "/max_link_width", "32\n"));
        int r = pstk__pci_get(root, "0000:3B:00.0", &pci);
        drop_root();
        CHECK_EQ(r, 0);
        CHECK_EQ(pci.numa_node, -1);
        CHECK_EQ(pci.width, 0);
        CHECK_EQ(pci.max_width, 32);
    }
}

TEST(domain_bus_device_and_function_all_count)
{
    struct pstk__pci pci;
    int r[5];
    CHECK(make_root());
    CHECK(put("sys/bus/pci/devices/10000:ae:1f.7/numa_node", "3\n"));
    r[0] = pstk__pci_get(root, "00010000:AE:1F.7", &pci);
    int32_t node = pci.numa_node;
    r[1] = pstk__pci_get(root, "0000:AE:1F.7", &pci);
    r[2] = pstk__pci_get(root, "10000:AF:1F.7", &pci);
    r[3] = pstk__pci_get(root, "10000:AE:1E.7", &pci);
    r[4] = pstk__pci_get(root, "10000:AE:1F.6", &pci);
    drop_root();
    CHECK_EQ(r[0], 0);
    CHECK_EQ(node, 3);
    for (int i = 1; i < 5; i++)
        CHECK_EQ(r[i], -ENOENT);
    CHECK_EQ(pci.numa_node, -1);
}

TEST(invalid_pci_ids_are_refused)
{
    static const char *const ids[] = {
        "",           "3B:00.0",       "0000:3B:00",    "0000:3B:20.0",
        "0000:3B:0.", "0000:3B:00.8",  "0000:3B:00.00", "0000:3B:00.0 ",
        " 0:3B:0.0",  "0000:../../..", "0000:3G:00.0",  "0x00:3B:00.0",
        "-001:3B:0.0"};
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        struct pstk__pci pci = {.width = 1};
        CHECK_EQ(pstk__pci_get("/", ids[i], &pci), -EINVAL);
        CHECK(pci.width == 0 && pci.numa_node == -1);
    }
}

TEST(a_root_that_is_too_long_is_refused)
{
    static char path[5000];
    struct pstk__pci pci;
    memset(path, 'a', sizeof path - 1);
    CHECK_EQ(pstk__pci_get(path, "0000:3B:00.0", &pci), -ENAMETOOLONG);
    path[4096 - 40] = 0; /* the directory's path fits, those of its files do not */
    CHECK_EQ(pstk__pci_get(path, "0000:3B:00.0", &pci), -ENAMETOOLONG);
    CHECK_EQ(pci.numa_node, -1);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(link_and_node_are_read_whatever_the_case_of_the_id),
        CASE(each_speed_is_its_generation_in_old_and_new_words),
        CASE(values_without_a_file_are_0_and_the_node_is_minus_1),
        CASE(implausible_values_are_not_reported),
        CASE(domain_bus_device_and_function_all_count),
        CASE(invalid_pci_ids_are_refused),
        CASE(a_root_that_is_too_long_is_refused),
    };
    return RUN_CASES(cases);
}
