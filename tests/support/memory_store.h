/* SPDX-License-Identifier: Apache-2.0 */
/* memory_store: a store of files in memory, which the ends of their paths name. One thread. */
#ifndef PSTK_MEMORY_STORE_H
#define PSTK_MEMORY_STORE_H

#include "store/store.h"

#include <errno.h>
#include <string.h>

struct memory_file {
    const char *end;     /* end of its path */
    const uint8_t *data; /* borrowed */
    uint64_t size;
};

struct memory_store {
    struct pstk__store store; /* first */
    struct memory_file files[2];
};

static inline int memory_store_open(const struct pstk__store *s, struct pstk__file *f,
                                    const char *path)
{
    const struct memory_store *memory = (const struct memory_store *)s;
    *f = (struct pstk__file){.fd = -1};
    for (int i = 0; i < 2; i++) {
        const char *end = memory->files[i].end;
        if (end && strlen(path) >= strlen(end) &&
            strcmp(path + strlen(path) - strlen(end), end) == 0) {
            *f = (struct pstk__file){
                .store = s, .fd = -1, .state = (void *)(uintptr_t)&memory->files[i]};
            return 0;
        }
    }
    return -ENOENT;
}

static inline int memory_store_stat(const struct pstk__file *f, uint64_t *size, int64_t *changed_ns)
{
    *size = ((const struct memory_file *)f->state)->size;
    *changed_ns = 1;
    return 0;
}

static inline int64_t memory_store_read_at(const struct pstk__file *f, void *buffer, uint64_t size,
                                           uint64_t offset)
{
    const struct memory_file *file = f->state;
    const uint64_t left = offset < file->size ? file->size - offset : 0;
    const uint64_t n = size < left ? size : left;
    if (n > 0)
        memcpy(buffer, file->data + offset, n);
    return (int64_t)n;
}

static inline void memory_store_close(struct pstk__file *f)
{
    *f = (struct pstk__file){.fd = -1};
}

static inline struct memory_store memory_store_of(void)
{
    return (struct memory_store){.store = {.name = "memory",
                                           .open = memory_store_open,
                                           .stat = memory_store_stat,
                                           .read_at = memory_store_read_at,
                                           .close = memory_store_close}};
}

#endif
