/* SPDX-License-Identifier: Apache-2.0 */
/* The folder for caches, as a program sees it that has the shared library and the public headers,
 * and nothing else. */
#include "support/test.h"

#include <sys/stat.h>
#include <unistd.h>

#include <penstock/foreign.h>

static char folder[64];

TEST(a_cache_is_looked_at_and_cleared)
{
    struct pstk_error err;
    struct pstk_cache_info info = {.size = sizeof info}, removed = {.size = sizeof removed};
    char path[128];
    pstk_error_init(&err, sizeof err);
    snprintf(path, sizeof path, "%s/index", folder);
    CHECK_EQ(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/index/tar-0123456789abcdef0123456789abcdef.index", folder);
    FILE *file = fopen(path, "w");
    CHECK(file && fwrite("01234567PSTKIDX", 1, 16, file) == 16 && fclose(file) == 0);
    CHECK_EQ(pstk_cache_get_info(folder, 5 << 20, &info, &err), 0);
    CHECK(info.n_entries == 0 && info.bytes == 0 && info.n_indexes == 1 && info.index_bytes == 16);
    CHECK(info.max_bytes == 5 << 20 && info.free_bytes != PSTK_NONE);
    CHECK_EQ(pstk_cache_clear(folder, 0, &removed, &err), 0);
    CHECK(removed.n_indexes == 1 && removed.index_bytes == 16 && removed.n_entries == 0);
    CHECK_EQ(pstk_cache_clear(folder, 0, NULL, NULL), 0);
    CHECK_EQ(pstk_cache_get_info(folder, 0, &info, &err), 0);
    CHECK(info.n_indexes == 0 && info.max_bytes == info.free_bytes / 2);
    CHECK_EQ(pstk_cache_clear(folder, 2, NULL, &err), PSTK_EINVAL);
    info.size = 4;
    CHECK_EQ(pstk_cache_get_info(folder, 0, &info, &err), PSTK_EINVAL);
    CHECK_EQ(pstk_cache_get_info("", 0, NULL, &err), PSTK_EINVAL);
    CHECK_EQ(pstk_cache_get_info(folder, 0, NULL, &err), PSTK_EINVAL);
}

int main(void)
{
    snprintf(folder, sizeof folder, "/tmp/pstk-public-cache-XXXXXX");
    if (!mkdtemp(folder)) {
        printf("Bail out! cannot make %s\n", folder);
        return 1;
    }
    const struct test_case cases[] = {CASE(a_cache_is_looked_at_and_cleared)};
    const int failed = RUN_CASES(cases);
    char path[128];
    snprintf(path, sizeof path, "%s/index/tar-0123456789abcdef0123456789abcdef.index", folder);
    unlink(path);
    snprintf(path, sizeof path, "%s/index", folder);
    rmdir(path);
    rmdir(folder);
    return failed;
}
