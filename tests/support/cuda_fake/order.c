/* SPDX-License-Identifier: Apache-2.0 */
/*
 * order: which operation is known to come before which. Everything is decided when an operation is
 * enqueued: a stream is first in, first out, and a wait refers to a record enqueued before it, so
 * an operation can only be ordered after those enqueued earlier.
 */
#include "state.h"

#include <stdlib.h>

struct cuda_fake__clock *cuda_fake__host_clock(void)
{
    struct cuda_fake__state *f = &cuda_fake__state;
    return f->config.separate_threads ? &cuda_fake__thread()->clock : &f->host;
}

void cuda_fake__join(struct cuda_fake__clock *to, const struct cuda_fake__clock *from)
{
    for (int i = 0; i < CUDA_FAKE__CLOCKS; i++)
        to->at[i] = to->at[i] > from->at[i] ? to->at[i] : from->at[i];
}

static int before(const struct cuda_fake__touch *t, const struct cuda_fake__clock *clock)
{
    return t->time <= clock->at[t->slot];
}

/* Take [begin, end) out of *link, which may leave none, one or two pieces; the link after them. */
static struct cuda_fake__touch **cut(struct cuda_fake__touch **link, const uint8_t *begin,
                                     const uint8_t *end)
{
    struct cuda_fake__touch *t = *link;
    if (t->begin < begin && t->end > end) {
        struct cuda_fake__touch *rest = malloc(sizeof *rest);
        if (!rest)
            abort();
        *rest = *t;
        rest->begin = end;
        t->end = begin;
        t->next = rest;
        return &rest->next;
    }
    if (t->begin < begin) {
        t->end = begin;
        return &t->next;
    }
    if (t->end > end) {
        t->begin = end;
        return &t->next;
    }
    *link = t->next;
    free(t);
    return link;
}

/*
 * The list stays short: what a write covers is gone, and of reads, those that the new one is
 * ordered after: whoever comes after the new one comes after them as well.
 */
void cuda_fake__touch(struct cuda_fake__range *r, const void *begin, uint64_t size, uint32_t write,
                      const struct CUstream_st *s, const char *name)
{
    const uint8_t *const b = begin, *const e = b + size;
    struct cuda_fake__touch **link = &r->touches;
    int told = 0;
    while (*link) {
        const struct cuda_fake__touch *t = *link;
        if (t->end <= b || t->begin >= e) {
            link = &(*link)->next;
            continue;
        }
        const int ordered = before(t, &s->clock);
        if (!ordered && (write || t->write) && !told++)
            cuda_fake__hazard(CUDA_FAKE_RACE,
                              "%s %s bytes %llu..%llu of an allocation of %llu without waiting for "
                              "the %s of %s",
                              name, write ? "writes" : "reads", (unsigned long long)(b - r->begin),
                              (unsigned long long)(e - r->begin), (unsigned long long)r->size,
                              t->write ? "write" : "read", t->name);
        if (write || (ordered && !t->write))
            link = cut(link, b, e);
        else
            link = &(*link)->next;
    }
    struct cuda_fake__touch *t = malloc(sizeof *t);
    if (!t)
        abort();
    *t = (struct cuda_fake__touch){.next = r->touches,
                                   .begin = b,
                                   .end = e,
                                   .slot = s->slot,
                                   .time = s->clock.at[s->slot],
                                   .write = write,
                                   .name = name};
    r->touches = t;
}

const struct cuda_fake__touch *cuda_fake__untouched(const struct cuda_fake__range *r,
                                                    const void *begin, uint64_t size,
                                                    uint32_t writes_only,
                                                    const struct cuda_fake__clock *clock)
{
    const uint8_t *const b = begin, *const e = b + size;
    for (const struct cuda_fake__touch *t = r->touches; t; t = t->next)
        if (t->end > b && t->begin < e && (t->write || !writes_only) && !before(t, clock))
            return t;
    return NULL;
}

void cuda_fake_hand(const void *key)
{
    struct cuda_fake__state *f = &cuda_fake__state;
    cuda_fake__enter();
    struct cuda_fake__hand *h = f->hands;
    while (h && h->key != key)
        h = h->next;
    if (!h) {
        h = calloc(1, sizeof *h);
        if (!h)
            abort();
        h->key = key;
        h->next = f->hands;
        f->hands = h;
    }
    cuda_fake__join(&h->clock, cuda_fake__host_clock());
    cuda_fake__leave();
}

void cuda_fake_take(const void *key)
{
    cuda_fake__enter();
    for (const struct cuda_fake__hand *h = cuda_fake__state.hands; h; h = h->next)
        if (h->key == key)
            cuda_fake__join(cuda_fake__host_clock(), &h->clock);
    cuda_fake__leave();
}

void cuda_fake__hands_free(void)
{
    struct cuda_fake__hand *next;
    for (struct cuda_fake__hand *h = cuda_fake__state.hands; h; h = next) {
        next = h->next;
        free(h);
    }
    cuda_fake__state.hands = NULL;
}
