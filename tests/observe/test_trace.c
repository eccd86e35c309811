/* SPDX-License-Identifier: Apache-2.0 */
/* The events that a profiler gets. Argument: the path of tests/support/nvtx_tool.c's library, which
 * takes a profiler's place. */
#include "support/cuda_consumer.h"

#include <dlfcn.h>

static int (*tool_count)(const char *name);

/* An epoch and a half on the fake GPU; all is given back. */
static int run(uint32_t trace, uint32_t device)
{
    struct pstk_settings s = base();
    struct pstk_error err = error_now();
    struct pstk_loader *loader;
    struct pstk_batch *b;
    int n = 0;
    s.device.kind = device;
    s.observe.nvtx = trace;
    cuda_fake_open(NULL);
    int r = pstk_open(&loader, &s, &err);
    if (r < 0)
        printf("# %s\n", err.message);
    for (int i = 0; i < 9 && r >= 0; i++)
        if ((r = pstk_next(loader, &b, NULL, LONG, &err)) == 1) {
            pstk_release(&b, NULL);
            n++;
        }
    pstk_close(&loader);
    return cuda_fake_close() == 0 && r >= 0 ? n : -1;
}

TEST(nothing_is_traced_when_nvtx_is_off)
{
    CHECK_EQ(run(0, PSTK_CUDA), 8);
    CHECK_EQ(tool_count("decode"), 0);
    CHECK_EQ(tool_count("lease"), 0);
}

TEST(every_stage_has_its_ranges_and_all_of_them_end)
{
    CHECK_EQ(run(1, PSTK_CUDA), 8);
    CHECK(tool_count("read") > 0);
    CHECK(tool_count("decode") >= 8);
    CHECK(tool_count("copy") >= 8);
    CHECK_EQ(tool_count("next"), 9);
    CHECK_EQ(tool_count("lease"), 8);
    CHECK_EQ(tool_count(""), tool_count("read") + tool_count("decode") + tool_count("copy") +
                                 tool_count("next") + tool_count("lease"));
}

TEST(the_host_is_traced_too)
{
    const int copies = tool_count("copy");
    CHECK_EQ(run(1, PSTK_HOST), 8);
    CHECK_EQ(tool_count("lease"), 16);
    CHECK_EQ(tool_count("copy"), copies);
}

TEST(a_build_without_nvtx_says_so)
{
    struct pstk_settings s = base();
    struct pstk_error err = error_now();
    struct pstk_loader *loader;
    s.device.kind = PSTK_HOST;
    s.observe.nvtx = 1;
    CHECK_EQ(pstk_open(&loader, &s, &err), PSTK_ENOTSUP);
    CHECK(strstr(err.message, "NVTX"));
}

int main(int argc, char **argv)
{
    const struct test_case with[] = {
        CASE(nothing_is_traced_when_nvtx_is_off),
        CASE(every_stage_has_its_ranges_and_all_of_them_end),
        CASE(the_host_is_traced_too),
    };
    const struct test_case without[] = {CASE(a_build_without_nvtx_says_so)};
    int failed;
    consumer_begin();
    if (argc > 1) {
        setenv("NVTX_INJECTION64_PATH", argv[1], 1);
        void *tool = dlopen(argv[1], RTLD_NOW);
        if (!tool) {
            printf("Bail out! %s\n", dlerror());
            return 99;
        }
        *(void **)&tool_count = dlsym(tool, "nvtx_tool_count");
        failed = RUN_CASES(with);
    } else {
        failed = RUN_CASES(without);
    }
    consumer_end();
    return failed;
}
