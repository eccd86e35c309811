/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_store: a store of a test's own over local files, which gives no descriptors, answers late,
 * in short pieces and with interruptions, and fails where it is told to. It becomes the store of
 * every path through pstk__store_of, which the linker replaces (--wrap): a test that includes this
 * has
 * __wrap_pstk__store_of.
 */
#ifndef PSTK_TEST_STORE_H
#define PSTK_TEST_STORE_H

#include "store/store.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct test_store {
    struct pstk__store store; /* first */
    uint32_t delay_us;        /* before each attempt to read */
    uint64_t piece;           /* bytes of an attempt, at most; 0: all */
    uint32_t refuse_every;    /* every n-th attempt is EINTR or EAGAIN; 0: none */
    const char *bad_file; /* end of the path of the file that has the faults below; NULL: none */
    uint64_t fail_from;   /* bytes from here on are EIO */
    uint64_t ends_at;     /* the file ends here, whatever stat says */
    uint32_t refuse_open; /* errno of opening it; 0: it opens */
    _Atomic uint32_t n_attempts;
    _Atomic uint32_t n_open; /* files */
};

/* The state of an open file. A test may have 64 at a time. */
struct test_store_file {
    struct test_store *store;
    struct pstk__file local;
    _Atomic int used;
    int is_bad;
};

static struct test_store_file test_store_files[64];

static inline int test_store_ends(const char *path, const char *end)
{
    const size_t n = strlen(path), m = end ? strlen(end) : 0;
    return end && n >= m && strcmp(path + n - m, end) == 0;
}

static inline int test_store_open(const struct pstk__store *s, struct pstk__file *f,
                                  const char *path)
{
    struct test_store *t = (struct test_store *)(uintptr_t)s;
    *f = (struct pstk__file){.fd = -1};
    const int is_bad = test_store_ends(path, t->bad_file);
    if (is_bad && t->refuse_open)
        return -(int)t->refuse_open;
    for (size_t i = 0; i < sizeof test_store_files / sizeof test_store_files[0]; i++) {
        struct test_store_file *state = &test_store_files[i];
        if (atomic_exchange(&state->used, 1))
            continue;
        const int rc = pstk__store_local.open(&pstk__store_local, &state->local, path);
        if (rc < 0) {
            atomic_store(&state->used, 0);
            return rc;
        }
        state->store = t;
        state->is_bad = is_bad;
        atomic_fetch_add(&t->n_open, 1);
        *f = (struct pstk__file){.store = s, .fd = -1, .state = state};
        return 0;
    }
    return -EMFILE;
}

static inline int test_store_stat(const struct pstk__file *f, uint64_t *size, int64_t *changed_ns)
{
    const struct test_store_file *state = f->state;
    return pstk__store_local.stat(&state->local, size, changed_ns);
}

static inline int64_t test_store_read_at(const struct pstk__file *f, void *buffer, uint64_t size,
                                         uint64_t offset)
{
    const struct test_store_file *state = f->state;
    struct test_store *t = state->store;
    const uint32_t n = atomic_fetch_add(&t->n_attempts, 1) + 1;
    if (t->delay_us)
        usleep(t->delay_us);
    if (t->refuse_every && n % t->refuse_every == 0)
        return n % 2 ? -EINTR : -EAGAIN;
    if (t->piece && size > t->piece)
        size = t->piece;
    if (state->is_bad && t->fail_from != 0 && offset + size > t->fail_from)
        return -EIO;
    if (state->is_bad && t->ends_at != 0 && offset + size > t->ends_at)
        size = offset < t->ends_at ? t->ends_at - offset : 0;
    return size ? pstk__store_local.read_at(&state->local, buffer, size, offset) : 0;
}

static inline void test_store_close(struct pstk__file *f)
{
    struct test_store_file *state = f->state;
    pstk__file_end(&state->local);
    atomic_fetch_sub(&state->store->n_open, 1);
    atomic_store(&state->used, 0);
}

static inline int test_store_list(const struct pstk__store *s, const char *path,
                                  pstk__store_name_fn each, void *user)
{
    (void)s;
    return pstk__store_local.list(&pstk__store_local, path, each, user);
}

/* The members that say how it behaves are 0: then it is right and quick. */
static inline struct test_store test_store_make(void)
{
    return (struct test_store){.store = {.name = "test",
                                         .open = test_store_open,
                                         .stat = test_store_stat,
                                         .read_at = test_store_read_at,
                                         .close = test_store_close,
                                         .list = test_store_list}};
}

#endif
