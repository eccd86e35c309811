/* SPDX-License-Identifier: Apache-2.0 */
/* The folder for caches, as a program sees it that has the shared library and the public headers,
 * and nothing else. */
#include "support/test.h"

#include <string.h>
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

static void check_folder(const char *const *environment, const char *wanted)
{
    char path[64];
    CHECK_EQ(pstk_find_cache(environment, path, sizeof path, NULL, NULL), 0);
    CHECK_STR(path, wanted);
}

TEST(the_folder_is_that_of_the_first_variable_that_names_one)
{
    const char *const all[] = {"HOME=/h", "XDG_CACHE_HOME=/x", "PENSTOCK_CACHE=own", NULL};
    const char *const two[] = {"PENSTOCK_CACHE=", "XDG_CACHE_HOME=/x", "HOME=/h", NULL};
    const char *const home[] = {"XDG_CACHE_HOME=x", "HOME=/h", "HOMES=/other", NULL};
    const char *const none[] = {"HOME=h", "XDG_CACHE_HOMES=/x", NULL};
    const char *const long_one[] = {"PENSTOCK_CACHE=0123456789012345678901234567890123456789"
                                    "0123456789012345678901234567890123456789",
                                    "HOME=/h", NULL};
    check_folder(all, "own");
    check_folder(two, "/x/penstock");
    check_folder(home, "/h/.cache/penstock");
    check_folder(none, "");
    check_folder(long_one, "");
    check_folder(NULL, "");
}

TEST(the_size_is_a_number_with_a_suffix)
{
    static const struct {
        const char *text;
        uint64_t size; /* PSTK_NONE: it is refused */
    } cases[] = {
        {"", 0},
        {"0", 0},
        {"1M", 1 << 20},
        {"3g", UINT64_C(3) << 30},
        {"2T", UINT64_C(2) << 40},
        {"1024K", 1 << 20},
        {"1048577", 1048577},
        {"8388607T", UINT64_C(8388607) << 40},
        {"8388608T", PSTK_NONE},
        {"1023K", PSTK_NONE},
        {"12", PSTK_NONE},
        {"1.5G", PSTK_NONE},
        {"M", PSTK_NONE},
        {"-1M", PSTK_NONE},
        {"1MB", PSTK_NONE},
        {" 1M", PSTK_NONE},
        {"999999999999999999999999999999", PSTK_NONE},
        {"00", PSTK_NONE},
    };
    struct pstk_error err;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char variable[64];
        const char *const environment[] = {variable, NULL};
        uint64_t size = 7;
        pstk_error_init(&err, sizeof err);
        snprintf(variable, sizeof variable, "PENSTOCK_CACHE_SIZE=%s", cases[i].text);
        const int r = pstk_find_cache(environment, NULL, 0, &size, &err);
        const int is_refused = cases[i].size == PSTK_NONE;
        CHECK_EQ(r, is_refused ? PSTK_EINVAL : 0);
        CHECK_EQ(size, is_refused ? 0 : cases[i].size);
        CHECK(!is_refused || (strstr(err.message, cases[i].text) != NULL &&
                              strstr(err.message, "a size such as 256M") != NULL));
    }
}

int main(void)
{
    snprintf(folder, sizeof folder, "/tmp/pstk-public-cache-XXXXXX");
    if (!mkdtemp(folder)) {
        printf("Bail out! cannot make %s\n", folder);
        return 1;
    }
    const struct test_case cases[] = {CASE(a_cache_is_looked_at_and_cleared),
                                      CASE(the_folder_is_that_of_the_first_variable_that_names_one),
                                      CASE(the_size_is_a_number_with_a_suffix)};
    const int failed = RUN_CASES(cases);
    char path[128];
    snprintf(path, sizeof path, "%s/index/tar-0123456789abcdef0123456789abcdef.index", folder);
    unlink(path);
    snprintf(path, sizeof path, "%s/index", folder);
    rmdir(path);
    rmdir(folder);
    return failed;
}
