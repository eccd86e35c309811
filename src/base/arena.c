/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include <assert.h>
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#define ALIGNMENT 64 /* bytes: a cache line, and the widest vector register */
/* Readable bytes after the mark: decoders in assembly read past the ends of rows. */
#define SLACK 65536

/* Under AddressSanitizer, unallocated bytes are poisoned, also the slack up to the next alignment.
 * So it reports a kernel that writes past its row, as it would on the heap. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_ASAN 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define HAS_ASAN 1
#endif

#ifdef HAS_ASAN
#include <sanitizer/asan_interface.h>
#define poison(p, size) ASAN_POISON_MEMORY_REGION(p, size)
#define unpoison(p, size) ASAN_UNPOISON_MEMORY_REGION(p, size)
#else
#define poison(p, size) ((void)(p), (void)(size))
#define unpoison(p, size) ((void)(p), (void)(size))
#endif

int pstk__arena_open(struct pstk__arena *a, size_t size)
{
    *a = (struct pstk__arena){0};
    if (size == 0)
        return 0;
    long page = sysconf(_SC_PAGESIZE);
    size_t page_size = page > 0 ? (size_t)page : 4096;
    if (size > SIZE_MAX - page_size)
        return -ENOMEM;
    size = (size + page_size - 1) / page_size * page_size;
    /* The size is the need of the largest allowed image, far above what most images touch.
     * NORESERVE alone does not keep it from being counted: a kernel with vm.overcommit_memory=2
     * ignores it. */
    void *base = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
        return -ENOMEM;
    a->base = base;
    a->size = size;
    poison(a->base, a->size);
    return 0;
}

void pstk__arena_close(struct pstk__arena *a)
{
    if (a->base) {
        unpoison(a->base, a->size); /* the next mapping at this address starts clean */
        int r = munmap(a->base, a->size);
        assert(r == 0);
        (void)r;
    }
    *a = (struct pstk__arena){0};
}

/* Make pages writable up to `end` <= size: at least twice as many as before, so that an arena asks
 * the kernel some 20 times at most. 0, or -ENOMEM. */
static int open_pages(struct pstk__arena *a, size_t end)
{
    const size_t page_size = (size_t)sysconf(_SC_PAGESIZE);
    size_t wanted = a->size - end < SLACK ? a->size : end + SLACK;
    if (wanted < 2 * a->open)
        wanted = 2 * a->open < a->size ? 2 * a->open : a->size;
    wanted = (wanted + page_size - 1) / page_size * page_size; /* the mapping ends there, too */
    if (mprotect(a->base + a->open, wanted - a->open, PROT_READ | PROT_WRITE) < 0)
        return -ENOMEM;
    a->open = wanted;
    return 0;
}

void *pstk__arena_get(struct pstk__arena *a, size_t size)
{
    /* size and used are multiples of ALIGNMENT: what fits also fits when rounded up. */
    if (!a->base || size > a->size - a->used)
        return NULL;
    const size_t end = a->used + size;
    if (a->open < a->size && (end > a->open || a->open - end < SLACK) && open_pages(a, end) < 0)
        return NULL;
    uint8_t *p = a->base + a->used;
    unpoison(p, size);
    a->used += (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (a->used > a->high)
        a->high = a->used;
    if (a->used > a->peak)
        a->peak = a->used;
    return p;
}

void pstk__arena_reset(struct pstk__arena *a, size_t mark)
{
    assert(mark <= a->used && mark % ALIGNMENT == 0);
    poison(a->base + mark, a->used - mark);
    a->used = mark;
}

void pstk__arena_trim(struct pstk__arena *a, size_t keep)
{
    if (a->high <= keep || a->used > keep)
        return;
    long page = sysconf(_SC_PAGESIZE);
    size_t page_size = page > 0 ? (size_t)page : 4096;
    size_t begin = (keep + page_size - 1) / page_size * page_size;
    size_t end = (a->high + page_size - 1) / page_size * page_size;
    if (begin < end)
        (void)madvise(a->base + begin, end - begin, MADV_DONTNEED); /* if refused, they stay */
    a->high = a->used;
}
