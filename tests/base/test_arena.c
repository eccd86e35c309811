/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"
#include "support/test.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ASAN 1
#endif
#endif
#ifdef ASAN
#include <sanitizer/asan_interface.h>
#endif

TEST(blocks_are_aligned_and_do_not_overlap)
{
    struct pstk__arena a;
    CHECK_EQ(pstk__arena_open(&a, 100000), 0);
    CHECK(a.size >= 100000);
    static const size_t sizes[] = {1, 64, 65, 0, 4096, 63, 1000};
    uint8_t *end = NULL;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        uint8_t *p = pstk__arena_get(&a, sizes[i]);
        CHECK(p && (uintptr_t)p % 64 == 0);
        CHECK(!end || p >= end);
        memset(p, (int)i, sizes[i]);
        end = p + sizes[i];
    }
    CHECK_EQ(a.used, a.peak);
    pstk__arena_close(&a);
    CHECK(!a.base && a.size == 0);
    pstk__arena_close(&a);
}

TEST(an_arena_allocates_up_to_its_size_and_no_more)
{
    struct pstk__arena a;
    CHECK_EQ(pstk__arena_open(&a, 8192), 0);
    CHECK_EQ(a.size, 8192);
    CHECK(!pstk__arena_get(&a, 8193));
    CHECK(!pstk__arena_get(&a, SIZE_MAX));
    CHECK(!pstk__arena_get(&a, SIZE_MAX - 62));
    CHECK(pstk__arena_get(&a, 4096));
    CHECK(!pstk__arena_get(&a, 4097));
    CHECK(pstk__arena_get(&a, 4096));
    CHECK(!pstk__arena_get(&a, 1));
    pstk__arena_close(&a);
}

TEST(reset_gives_back_what_came_after_the_mark)
{
    struct pstk__arena a;
    CHECK_EQ(pstk__arena_open(&a, 65536), 0);
    CHECK(pstk__arena_get(&a, 100));
    size_t mark = a.used;
    void *first = pstk__arena_get(&a, 5000);
    size_t peak = a.used;
    pstk__arena_reset(&a, mark);
    CHECK(pstk__arena_get(&a, 10) == first);
    CHECK_EQ(a.peak, peak);
    pstk__arena_reset(&a, 0);
    CHECK_EQ(a.used, 0);
    pstk__arena_close(&a);
}

TEST(unallocated_bytes_are_poisoned_under_asan)
{
#ifdef ASAN
    struct pstk__arena a;
    CHECK_EQ(pstk__arena_open(&a, 65536), 0);
    uint8_t *p = pstk__arena_get(&a, 100);
    CHECK(!__asan_address_is_poisoned(p + 99));
    CHECK(__asan_address_is_poisoned(p + 104));
    pstk__arena_reset(&a, 0);
    CHECK(__asan_address_is_poisoned(p));
    pstk__arena_close(&a);
#else
    SKIP("built without AddressSanitizer");
#endif
}

TEST(more_than_there_is_is_refused_and_leaves_an_empty_arena)
{
    static const size_t sizes[] = {SIZE_MAX, SIZE_MAX - 4096, (size_t)1 << 62};
    for (int i = 0; i < 3; i++) {
        struct pstk__arena a;
        CHECK_EQ(pstk__arena_open(&a, sizes[i]), -ENOMEM);
        CHECK(!a.base && !pstk__arena_get(&a, 1));
        pstk__arena_close(&a);
    }
}

TEST(an_arena_of_nothing_gives_nothing)
{
    struct pstk__arena a;
    CHECK_EQ(pstk__arena_open(&a, 0), 0);
    CHECK(!pstk__arena_get(&a, 1));
    pstk__arena_close(&a);
}

/* 1: mincore works on pages that are not to be accessed. */
static int knows_residence(void)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char resident;
    void *p = mmap(NULL, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const int knows = p != MAP_FAILED && mincore(p, page, &resident) == 0;
    if (p != MAP_FAILED)
        munmap(p, page);
    return knows;
}

TEST(a_large_arena_takes_no_memory_until_it_is_used)
{
    struct pstk__arena a;
#ifdef ASAN
    SKIP("poisoning touches shadow memory");
#endif
    CHECK_EQ(pstk__arena_open(&a, (size_t)1 << 28), 0);
    unsigned char resident[16];
    if (!knows_residence()) {
        pstk__arena_close(&a);
        SKIP("this emulator knows no residence of memory that is not to be accessed");
    }
    CHECK_EQ(mincore(a.base, 16 * 4096, resident), 0);
    for (int i = 0; i < 16; i++)
        CHECK_EQ(resident[i] & 1, 0);
    pstk__arena_close(&a);
}

/* Return bytes of the arena that may be written, as the kernel has them. */
static size_t writable(const struct pstk__arena *a)
{
    size_t n = 0;
    char line[512], rights[8];
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps)) {
        unsigned long long begin, end;
        if (sscanf(line, "%llx-%llx %7s", &begin, &end, rights) != 3 || rights[1] != 'w')
            continue;
        const unsigned long long from = (uintptr_t)a->base, to = from + a->size;
        begin = begin < from ? from : begin;
        end = end > to ? to : end;
        n += begin < end ? (size_t)(end - begin) : 0;
    }
    if (maps)
        fclose(maps);
    return n;
}

TEST(pages_are_writable_from_the_mark_that_passes_them_and_some_after_it)
{
    struct pstk__arena a;
    const size_t whole = (size_t)1 << 30;
    CHECK_EQ(pstk__arena_open(&a, whole), 0);
    CHECK_EQ(writable(&a), 0);
    size_t before = 0, n_changes = 0, n_wrong = 0;
    for (size_t size = 1; a.used < whole / 2; size += size / 2 + 1) {
        uint8_t *p = pstk__arena_get(&a, size);
        if (!p)
            break;
        p[size - 1] = 1;
        const size_t now = writable(&a);
        n_wrong += now < a.used + 4096 || now > 2 * a.used + 3 * 65536 + before;
        n_changes += now != before;
        before = now;
    }
    CHECK_EQ(n_wrong, 0);
    CHECK(n_changes < 24);
    pstk__arena_reset(&a, 0);
    CHECK(pstk__arena_get(&a, whole) != NULL);
    CHECK_EQ(writable(&a), whole);
    pstk__arena_close(&a);
}

TEST(trim_gives_back_what_lies_beyond_and_keeps_the_rest)
{
    struct pstk__arena a;
    CHECK_EQ(pstk__arena_open(&a, 1 << 20), 0);
    uint8_t *p = pstk__arena_get(&a, 1 << 20);
    CHECK(p);
    memset(p, 1, 1 << 20);
    pstk__arena_trim(&a, 65536); /* in use: nothing happens */
    CHECK_EQ(p[(1 << 20) - 1], 1);
    pstk__arena_reset(&a, 0);
    pstk__arena_trim(&a, 65536);
    p = pstk__arena_get(&a, 1 << 20);
    CHECK_EQ(p[65535], 1);
    CHECK_EQ(p[65536], 0);
    CHECK_EQ(p[(1 << 20) - 1], 0);
    pstk__arena_close(&a);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(blocks_are_aligned_and_do_not_overlap),
        CASE(an_arena_allocates_up_to_its_size_and_no_more),
        CASE(reset_gives_back_what_came_after_the_mark),
        CASE(unallocated_bytes_are_poisoned_under_asan),
        CASE(more_than_there_is_is_refused_and_leaves_an_empty_arena),
        CASE(an_arena_of_nothing_gives_nothing),
        CASE(a_large_arena_takes_no_memory_until_it_is_used),
        CASE(pages_are_writable_from_the_mark_that_passes_them_and_some_after_it),
        CASE(trim_gives_back_what_lies_beyond_and_keeps_the_rest),
    };
    return RUN_CASES(cases);
}
