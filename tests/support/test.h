/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test: one C file, one program, TAP on standard output (meson: protocol 'tap').
 *
 *   TEST(crc_of_nothing_is_zero) { CHECK_EQ(pstk__crc32c(0, "", 0), 0); }
 *   int main(void)
 *   {
 *       const struct test_case cases[] = {CASE(crc_of_nothing_is_zero)};
 *       return RUN_CASES(cases);
 *   }
 *
 * Names state the fact that the test establishes. A failed CHECK ends its test, not the program.
 */
#ifndef PSTK_TEST_H
#define PSTK_TEST_H

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct test_state {
    int n_run, n_failed;
    int failed;     /* the running test */
    char skip[160]; /* why the running test is skipped, or "" */
};

static struct test_state test_state;

struct test_case {
    const char *name;
    void (*run)(void);
};

#define TEST(name) static void test_##name(void)
#define CASE(name)                                                                                 \
    {                                                                                              \
#name, test_##name                                                                         \
    }

#define CHECK(cond)                                                                                \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            printf("# %s:%d: not so: %s\n", __FILE__, __LINE__, #cond);                            \
            test_state.failed = 1;                                                                 \
            return;                                                                                \
        }                                                                                          \
    } while (0)

#define CHECK_EQ(a, b)                                                                             \
    do {                                                                                           \
        long long a_ = (long long)(a), b_ = (long long)(b);                                        \
        if (a_ != b_) {                                                                            \
            printf("# %s:%d: %s is %lld, not %lld\n", __FILE__, __LINE__, #a, a_, b_);             \
            test_state.failed = 1;                                                                 \
            return;                                                                                \
        }                                                                                          \
    } while (0)

#define CHECK_STR(a, b)                                                                            \
    do {                                                                                           \
        const char *a_ = (a), *b_ = (b);                                                           \
        if (strcmp(a_, b_) != 0) {                                                                 \
            printf("# %s:%d: %s is \"%s\", not \"%s\"\n", __FILE__, __LINE__, #a, a_, b_);         \
            test_state.failed = 1;                                                                 \
            return;                                                                                \
        }                                                                                          \
    } while (0)

/* Leave the test as skipped, with one line saying what is missing. */
#define SKIP(...)                                                                                  \
    do {                                                                                           \
        snprintf(test_state.skip, sizeof test_state.skip, __VA_ARGS__);                            \
        return;                                                                                    \
    } while (0)

/* Sleep for a millisecond; 0 after a minute of them. */
static inline int test_nap(uint32_t n_before)
{
    const struct timespec millisecond = {.tv_sec = 0, .tv_nsec = 1000000};
    nanosleep(&millisecond, NULL);
    return n_before < 60000;
}

/* Between two tries of the same: pause once there were many; 0 after more than a minute. */
static inline int test_patience(uint32_t n_before)
{
    return n_before < 1000 || test_nap(n_before - 1000);
}

/*
 * Wait for what other threads do. The limit is for a defect, which the CHECK after it reports; no
 * machine is so slow. A test never sleeps for a fixed time and then expects something to have
 * happened.
 */
#define WAIT_UNTIL(cond)                                                                           \
    for (uint32_t naps_ = 0; !(cond) && test_nap(naps_); naps_++) {                                \
    }

/* 0: a plain build, 1: with ASan, 2: with TSan. */
#if defined(__SANITIZE_ADDRESS__)
#define TEST_BUILD 1
#elif defined(__SANITIZE_THREAD__)
#define TEST_BUILD 2
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TEST_BUILD 1
#elif __has_feature(thread_sanitizer)
#define TEST_BUILD 2
#endif
#endif
#ifndef TEST_BUILD
#define TEST_BUILD 0
#endif

/* Return the step of a sweep from case to case: 1, or the given one in a build with ASan or TSan,
 * where each case takes 5 to 15 times as long. These look at memory and at threads on paths that
 * many cases take; that every case has the right result is for the other builds. */
static inline uint32_t test_stride(uint32_t asan, uint32_t tsan)
{
    const uint32_t strides[] = {1, asan, tsan};
    return strides[TEST_BUILD];
}

/* Return a stride for sweeps of pixels: 1, or n with a sanitizer and under an emulator
 * (TEST_EMULATED, from tests/meson.build), where each case takes 10 times as long. n has no divisor
 * in common with the periods of the sweep, so that each value of each of its parameters still
 * occurs. */
static inline uint32_t test_stride_slow(uint32_t n)
{
#ifdef TEST_EMULATED
    return n;
#else
    return TEST_BUILD ? n : 1;
#endif
}

static int test_main(const struct test_case *cases, int n)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("1..%d\n", n);
    for (int i = 0; i < n; i++) {
        test_state.failed = 0;
        test_state.skip[0] = 0;
        cases[i].run();
        test_state.n_run++;
        test_state.n_failed += test_state.failed;
        if (test_state.failed)
            printf("not ok %d - %s\n", i + 1, cases[i].name);
        else if (test_state.skip[0])
            printf("ok %d - %s # SKIP %s\n", i + 1, cases[i].name, test_state.skip);
        else
            printf("ok %d - %s\n", i + 1, cases[i].name);
    }
    return test_state.n_failed != 0;
}

#define RUN_CASES(cases) test_main(cases, (int)(sizeof(cases) / sizeof((cases)[0])))

#endif
