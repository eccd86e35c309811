/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/resident.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define MAX_PAGES 64 /* maximum pages that are checked */

/* Return whether mincore is right about a file. It reports every page as resident if this process
 * neither owns nor may write the file. */
static int mincore_is_honest(int fd)
{
    struct stat file;
    char path[32];
    if (fstat(fd, &file) < 0)
        return 0;
    if (file.st_uid == geteuid() || geteuid() == 0)
        return 1;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return access(path, W_OK) == 0;
}

/* Check n_pages pages of `page` bytes from `begin`, the start of a page, by mincore. */
static int look_by_mincore(int fd, uint64_t begin, uint64_t n_pages, uint64_t page)
{
    unsigned char pages[MAX_PAGES];
    const uint64_t size = n_pages * page;
    void *memory = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, (off_t)begin);
    if (memory == MAP_FAILED)
        return -1;
    int r = mincore(memory, size, pages) < 0 ? -1 : 0;
    munmap(memory, size);
    for (uint64_t i = 0; r == 0 && i < n_pages; i++)
        r = pages[i] & 1;
    return r;
}

/* Try to read a byte without waiting. Some kernels then read its page, so this is only used where
 * mincore does not answer. */
static int look_by_read(int fd, uint64_t offset)
{
    char byte;
    const struct iovec into = {&byte, 1};
    const ssize_t n = preadv2(fd, &into, 1, (off_t)offset, RWF_NOWAIT);
    return n == 1 ? 1 : n < 0 && errno == EAGAIN ? 0 : -1;
}

int pstk__resident(int fd, uint64_t offset, uint64_t size)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE); /* ARM has pages of 64 KiB, too */
    const uint64_t begin = offset / page * page, n = (offset + size - begin + page - 1) / page;
    if (fd < 0 || size == 0)
        return -1;
    if (!mincore_is_honest(fd))
        return look_by_read(fd, offset);
    return look_by_mincore(fd, begin, n < MAX_PAGES ? n : MAX_PAGES, page);
}

uint64_t pstk__resident_bytes_read(void)
{
    char line[128];
    unsigned long long n = UINT64_MAX;
    FILE *stream = fopen("/proc/self/io", "re");
    if (!stream)
        return UINT64_MAX;
    while (fgets(line, sizeof line, stream))
        if (sscanf(line, "read_bytes: %llu", &n) == 1)
            break;
    fclose(stream);
    return n;
}
