/* SPDX-License-Identifier: Apache-2.0 */
#include "support/test.h"

#include "reader/pages.h"

#include <errno.h>

/* Allocations count down to one that fails; < 0: none fails. */
static int fail_after = -1;

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size)
{
    if (fail_after >= 0 && fail_after-- == 0)
        return NULL;
    return __real_calloc(n, size);
}

#define MAX_FRAMES 16
static _Alignas(4096) uint8_t memory[MAX_FRAMES * PSTK__PAGE_SIZE];

static struct pstk__extent page_of(uint32_t i)
{
    return (struct pstk__extent){.file = i / 5, .page = i % 5, .size = PSTK__PAGE_SIZE};
}

TEST(no_room_for_one_page_is_refused)
{
    struct pstk__pages *x;
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    CHECK_EQ(pstk__pages_open(&x, memory, PSTK__PAGE_SIZE - 1, &err), PSTK_EINVAL);
    CHECK(x == NULL && strstr(err.message, "index_memory"));
    pstk__pages_close(NULL);
}

TEST(frames_lie_in_the_given_memory_page_by_page)
{
    struct pstk__pages *x;
    CHECK_EQ(pstk__pages_open(&x, memory, sizeof memory, NULL), 0);
    int seen[MAX_FRAMES] = {0};
    for (uint32_t i = 0; i < MAX_FRAMES; i++) {
        struct pstk__extent e = page_of(i);
        struct pstk__page *p = pstk__pages_get(x, &e);
        CHECK(p && p->state == PSTK__PAGE_EMPTY && p->n_pins == 1);
        size_t at = (size_t)(p->data - memory);
        CHECK(at % PSTK__PAGE_SIZE == 0 && at < sizeof memory);
        CHECK_EQ(seen[at / PSTK__PAGE_SIZE]++, 0);
    }
    struct pstk__extent more = page_of(MAX_FRAMES);
    CHECK(pstk__pages_get(x, &more) == NULL);
    pstk__pages_close(x);
}

TEST(a_dropped_page_is_loaded_anew_while_its_old_frame_is_still_pinned)
{
    struct pstk__pages *x;
    struct pstk__extent e = page_of(3);
    CHECK_EQ(pstk__pages_open(&x, memory, 2 * PSTK__PAGE_SIZE, NULL), 0);
    struct pstk__page *old = pstk__pages_get(x, &e);
    old->state = PSTK__PAGE_LOADING;
    CHECK(pstk__pages_get(x, &e) == old);
    pstk__pages_drop(x, old);
    CHECK_EQ(old->state, PSTK__PAGE_EMPTY);
    struct pstk__page *fresh = pstk__pages_get(x, &e);
    CHECK(fresh && fresh != old && fresh->state == PSTK__PAGE_EMPTY);
    struct pstk__extent other = page_of(4);
    CHECK(pstk__pages_get(x, &other) == NULL); /* both are pinned */
    pstk__pages_unpin(x, old);
    CHECK(pstk__pages_get(x, &other) == NULL); /* one pin is left */
    pstk__pages_unpin(x, old);
    CHECK(pstk__pages_get(x, &other) == old);
    pstk__pages_close(x);
}

/* The naive model: an array in order of last use. */
struct model {
    struct {
        uint32_t key, n_pins;
        struct pstk__page *page;
    } e[MAX_FRAMES];
    uint32_t n, n_frames;
};

static int model_find(const struct model *m, uint32_t key)
{
    for (uint32_t i = 0; i < m->n; i++)
        if (m->e[i].key == key)
            return (int)i;
    return -1;
}

static void model_remove(struct model *m, int i)
{
    memmove(&m->e[i], &m->e[i + 1], (m->n - (uint32_t)i - 1) * sizeof m->e[0]);
    m->n--;
}

/* Make room for one page: 1 when there is. */
static int model_make_room(struct model *m)
{
    if (m->n < m->n_frames)
        return 1;
    for (uint32_t i = 0; i < m->n; i++)
        if (!m->e[i].n_pins)
            return model_remove(m, (int)i), 1;
    return 0;
}

/* One get, compared with the model. Returns 0 when they differ. */
static int get_as_model(struct pstk__pages *x, struct model *m, uint32_t key)
{
    struct pstk__extent e = page_of(key);
    int i = model_find(m, key);
    struct pstk__page *p = pstk__pages_get(x, &e);
    if (i >= 0) {
        m->e[i].n_pins++;
        return p == m->e[i].page && p->state == PSTK__PAGE_READY && p->data[0] == key;
    }
    if (!model_make_room(m))
        return p == NULL;
    if (!p || p->state != PSTK__PAGE_EMPTY || p->n_pins != 1)
        return 0;
    p->state = PSTK__PAGE_READY;
    p->data[0] = (uint8_t)key;
    m->e[m->n].key = key;
    m->e[m->n].n_pins = 1;
    m->e[m->n++].page = p;
    return 1;
}

static void unpin_as_model(struct pstk__pages *x, struct model *m, int i)
{
    pstk__pages_unpin(x, m->e[i].page);
    if (--m->e[i].n_pins)
        return;
    struct model copy = *m;
    model_remove(m, i);
    m->e[m->n++] = copy.e[i];
}

TEST(random_gets_unpins_and_drops_behave_as_a_naive_list_in_order_of_use)
{
    uint32_t seed = 1;
    for (uint32_t n_frames = 1; n_frames <= MAX_FRAMES; n_frames++) {
        struct pstk__pages *x;
        struct model m = {.n_frames = n_frames};
        CHECK_EQ(pstk__pages_open(&x, memory, n_frames * PSTK__PAGE_SIZE, NULL), 0);
        for (int step = 0; step < 20000; step++) {
            seed = seed * 1664525 + 1013904223;
            uint32_t key = (seed >> 8) % (2 * n_frames + 3), what = seed >> 28;
            int i = model_find(&m, key);
            if (what < 7) {
                CHECK(get_as_model(x, &m, key));
            } else if (i >= 0 && m.e[i].n_pins) {
                unpin_as_model(x, &m, i);
            } else if (i >= 0 && what == 15) {
                pstk__pages_drop(x, m.e[i].page);
                model_remove(&m, i);
            }
        }
        pstk__pages_close(x);
    }
}

TEST(a_frame_never_filled_is_forgotten_with_its_last_pin)
{
    struct pstk__pages *x;
    struct pstk__extent e = page_of(1), other = page_of(2);
    CHECK_EQ(pstk__pages_open(&x, memory, 2 * PSTK__PAGE_SIZE, NULL), 0);
    struct pstk__page *p = pstk__pages_get(x, &e);
    pstk__pages_unpin(x, p);
    CHECK_EQ(p->known, 0);
    CHECK(pstk__pages_get(x, &other) == p); /* the frame to use next */
    pstk__pages_close(x);
}

TEST(any_allocation_may_fail_at_open)
{
    struct pstk__pages *x;
    int r = -1;
    for (int n = 0; r != 0; n++) {
        CHECK(n < 10);
        fail_after = n;
        r = pstk__pages_open(&x, memory, sizeof memory, NULL);
        fail_after = -1;
        CHECK(r == 0 ? n == 3 : r == PSTK_ENOMEM && x == NULL);
    }
    pstk__pages_close(x);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(no_room_for_one_page_is_refused),
        CASE(frames_lie_in_the_given_memory_page_by_page),
        CASE(a_dropped_page_is_loaded_anew_while_its_old_frame_is_still_pinned),
        CASE(random_gets_unpins_and_drops_behave_as_a_naive_list_in_order_of_use),
        CASE(a_frame_never_filled_is_forgotten_with_its_last_pin),
        CASE(any_allocation_may_fail_at_open),
    };
    return RUN_CASES(cases);
}
