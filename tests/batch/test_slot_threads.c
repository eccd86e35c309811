/* SPDX-License-Identifier: Apache-2.0 */
/* The slots on a device of the fake CUDA runtime, and between many threads. See test_batch.c. */
#include "support/cuda_fake/cuda_fake.h"
#include "base/queue.h"
#include "support/slots_fixture.h"
#include "support/test.h"

#include <pthread.h>

static void *const stream_a = (void *)0xa0, *const stream_b = (void *)0xb0;

/* ---- a device of the fake CUDA runtime --------------------------------------------------------
 */

/* Attach a device of the fake's, with the host slots pinned. */
static int attach_cuda(struct pools *p, struct pstk__device **out)
{
    const struct pstk__device_ops *ops = pstk__device_ops(PSTK_CUDA);
    const struct pstk__device_config c = {
        .n_slots = p->device->n_slots, .plan = &p->plan, .layout = &p->layout};
    int r = ops->open(out, &c, NULL);
    if (r < 0)
        return r;
    pstk__slots_attach(p->device, *out);
    for (uint32_t k = 0; r == 0 && k < p->host->n_slots; k++)
        r = ops->pin(*out, p->host->slots[k].memory, p->host->slots[k].memory_size, NULL);
    return r;
}

static int open_cuda(struct pools *p, struct pstk__device **out)
{
    static uint16_t table[3 * 256];
    const struct pools_config c = {
        .batch_size = 2, .n_slots = 1, .n_device_slots = 1, .ops = pstk__device_ops(PSTK_CUDA)};
    const int r = pools_open(p, &c);
    p->plan.outputs[MIRROR].image.table = table;
    return r < 0 ? r : attach_cuda(p, out);
}

/* Return a batch with this in both rows, LOADED. */
static struct pstk__slot *load_on_cuda(struct pools *p, struct pstk__device *d, uint64_t value)
{
    const struct pstk__device_ops *ops = d->ops;
    const uint64_t ragged_size[3] = {0};
    struct pstk__slot *from = pstk__slot_begin(p->host, 0), *to = pstk__slot_load(p->device);
    if (!from || !to || ops->ready(d, to->batch.slot, 1, NULL) != 1)
        return NULL;
    from->batch.n_valid = 2;
    for (uint32_t row = 0; row < 2; row++) {
        struct pstk__row rows[3];
        pstk__slot_rows(from, row, rows);
        memcpy(rows[DENSE].data, &value, sizeof value);
        memset(rows[MIRROR].data, 0, MIRROR_SIZE);
        *rows[MIRROR].flip = 0;
        pstk__slot_note(from, row, rows);
    }
    pstk__slot_done(from);
    pstk__slot_copy(from);
    const struct pstk__load load = {.memory = from->memory, .ragged_size = ragged_size};
    const struct pstk__load_end end = {.n_valid = 2, .wait = 1};
    if (ops->load(d, &load, NULL) < 0 || ops->finish(d, &end, NULL) != 1)
        return NULL;
    pstk__slot_loaded(to, from);
    pstk__slot_copied(from);
    return to;
}

static void close_cuda(struct pools *p, struct pstk__device *d)
{
    d->ops->drain(d);
    for (uint32_t k = 0; k < p->host->n_slots; k++)
        d->ops->unpin(d, p->host->slots[k].memory);
    pools_close(p);
}

TEST(a_slot_of_cuda_goes_round_and_is_parked_while_its_stream_is_captured)
{
    struct pools p;
    struct pstk__device *d;
    cudaStream_t stream;
    cuda_fake_open(&(struct cuda_fake_config){.max_delay_us = 50, .seed = 3});
    cudaSetDevice(0);
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    CHECK_EQ(open_cuda(&p, &d), 0);
    for (uint64_t round = 0; round < 6; round++) {
        uint64_t seen[2] = {0};
        struct pstk__slot *s = load_on_cuda(&p, d, round + 100);
        CHECK(s && state_of(s) == PSTK__SLOT_LOADED);
        CHECK_EQ(pstk__slot_lease(s, stream, 0, NULL), 0);
        CHECK_EQ(d->ops->read(d, seen, s->batch.tensors[DENSE].data, sizeof seen, stream, NULL), 0);
        CHECK(seen[0] == round + 100 && seen[1] == round + 100);
        if (round % 2) {
            cuda_fake_capture_stream(stream);
            pstk__slot_release(s, stream);
            CHECK_EQ(state_of(s), PSTK__SLOT_PARKED);
            CHECK_EQ(pstk__slots_settle(p.device, 0, NULL), 0);
            CHECK_EQ(state_of(s), PSTK__SLOT_PARKED);
            cuda_fake_capture_stream(NULL);
            CHECK_EQ(pstk__slots_settle(p.device, round == 1, NULL), 0);
        } else {
            pstk__slot_release(s, stream);
        }
        CHECK_EQ(state_of(s), PSTK__SLOT_FREE);
    }
    close_cuda(&p, d);
    cudaStreamDestroy(stream);
    CHECK_EQ(cuda_fake_close(), 0);
}

/* The uses in the stream may end late: until then the slot is free, but not ready. */
TEST(a_free_slot_of_cuda_is_not_ready_until_its_uses_are_over)
{
    struct pools p;
    struct pstk__device *d;
    cudaStream_t stream;
    cuda_fake_open(NULL);
    cudaSetDevice(0);
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    CHECK_EQ(open_cuda(&p, &d), 0);
    struct pstk__slot *s = load_on_cuda(&p, d, 1);
    CHECK(s);
    CHECK_EQ(pstk__slot_lease(s, stream, 0, NULL), 0);
    cuda_fake_hold(stream);
    pstk__slot_release(s, stream);
    CHECK(pstk__slot_load(p.device) == s);
    CHECK_EQ(d->ops->ready(d, 0, 0, NULL), 0);
    cuda_fake_let(stream);
    CHECK_EQ(d->ops->ready(d, 0, 1, NULL), 1);
    pstk__slot_drop(s);
    close_cuda(&p, d);
    cudaStreamDestroy(stream);
    CHECK_EQ(cuda_fake_close(), 0);
}

/* ---- many threads -----------------------------------------------------------------------------
 */

enum { N_BATCHES = 3000, N_TURNS = 20000, N_LANES = 2, N_SLOTS = 5, N_ROWS = 2 };

struct row_task {
    struct pstk__slot *slot;
    uint32_t row;
};

struct crowd {
    struct pools p;
    struct pstk__eventcount rooms[N_LANES];
    struct row_task tasks[N_SLOTS][N_ROWS];
    struct pstk__queue *filling, *ready, *leased;
    _Atomic uint32_t n_begun, n_over, n_wrong, n_failed, stop;
};

struct member {
    struct crowd *crowd;
    uint32_t lane;
};

/* 1: the batch of this number is dropped. All threads know it by the number. */
static int is_dropped(uint64_t seq)
{
    return seq % 7 == 3;
}

static int is_failed(uint64_t seq)
{
    return seq % 5 == 2;
}

/* The test's time limit catches a wake-up that is lost. */
static void *crowd_read(void *user)
{
    const struct member *m = user;
    struct crowd *c = m->crowd;
    for (;;) {
        const uint32_t ticket = pstk__eventcount_ticket(&c->rooms[m->lane]);
        if (atomic_load(&c->n_begun) >= N_BATCHES)
            return NULL;
        struct pstk__slot *s = pstk__slot_begin(c->p.host, m->lane);
        if (!s) {
            pstk__eventcount_wait(&c->rooms[m->lane], ticket, -1);
            continue;
        }
        s->seq = atomic_fetch_add(&c->n_begun, 1);
        if (s->seq >= N_BATCHES) {
            pstk__slot_drop(s);
            continue;
        }
        s->batch.n_valid = N_ROWS;
        atomic_store_explicit(&s->n_tasks_left, N_ROWS, memory_order_relaxed);
        for (uint32_t row = 0; row < N_ROWS; row++) {
            c->tasks[s->batch.slot][row] = (struct row_task){s, row};
            pstk__queue_push(c->filling, &c->tasks[s->batch.slot][row]);
        }
    }
}

static void *crowd_work(void *user)
{
    struct crowd *c = user;
    struct row_task *j;
    struct pstk_error err;
    pstk_error_init(&err, sizeof err);
    while ((j = pstk__queue_pop(c->filling, NULL, NULL))) {
        struct pstk__slot *s = j->slot;
        struct pstk__row rows[2];
        const uint64_t value = s->seq * N_ROWS + j->row;
        pstk__slot_rows(s, j->row, rows);
        memcpy(rows[DENSE].data, &value, sizeof value);
        rows[RAGGED].size = s->seq % 4 * ITEM_SIZE;
        memset(rows[RAGGED].data, (int)(value & 127), rows[RAGGED].size);
        pstk__slot_note(s, j->row, rows);
        pstk__slot_replace(s, j->row, &err, value);
        if (is_failed(s->seq))
            pstk__slot_fail(s, j->row, &err);
        if (atomic_fetch_sub_explicit(&s->n_tasks_left, 1, memory_order_acq_rel) == 1) {
            pstk__slot_done(s);
            pstk__queue_push(c->ready, s);
        }
    }
    return NULL;
}

static void crowd_over(struct crowd *c)
{
    if (atomic_fetch_add(&c->n_over, 1) + 1 == N_BATCHES) {
        for (uint32_t i = 0; i < N_LANES; i++)
            pstk__eventcount_notify(&c->rooms[i]);
        pstk__queue_shut(c->filling);
        pstk__queue_shut(c->ready);
        pstk__queue_shut(c->leased);
    }
}

/* Return whether the batch is what the naive loop would have put there. */
static int is_right(const struct pstk__slot *s)
{
    const uint64_t *dense = s->tensors[DENSE].data, n = s->seq % 4;
    const uint8_t *ragged = s->tensors[RAGGED].data;
    if (s->failed_row != (is_failed(s->seq) ? 0 : UINT32_MAX) || s->batch.n_replacements != N_ROWS)
        return 0;
    for (uint32_t row = 0; row < N_ROWS; row++) {
        const uint64_t value = s->seq * N_ROWS + row;
        if (dense[row] != value || s->reports[row].row != row || s->replacement_ids[row] != value)
            return 0;
        if (is_failed(s->seq))
            continue;
        if (s->outputs[RAGGED].offsets[row + 1] != (int64_t)(n * (row + 1)))
            return 0;
        for (uint64_t k = n * ITEM_SIZE * row; k < n * ITEM_SIZE * (row + 1); k++)
            if (ragged[k] != (value & 127))
                return 0;
    }
    return 1;
}

static void *crowd_release(void *user)
{
    struct crowd *c = user;
    struct pstk__slot *s;
    while ((s = pstk__queue_pop(c->leased, NULL, NULL))) {
        atomic_fetch_add(&c->n_wrong, !is_right(s));
        pstk__slot_release(s, NULL);
        crowd_over(c);
    }
    return NULL;
}

/* The consumer: this thread. */
static void crowd_take(struct crowd *c)
{
    struct pstk__slot *s;
    while ((s = pstk__queue_pop(c->ready, NULL, NULL))) {
        if (is_dropped(s->seq)) {
            pstk__slot_drop(s);
            crowd_over(c);
        } else if (pstk__slot_lease(s, NULL, 0, NULL) < 0) {
            atomic_fetch_add(&c->n_wrong, 1);
        } else {
            pstk__queue_push(c->leased, s);
        }
    }
}

TEST(slots_that_many_threads_begin_fill_and_release_have_one_owner_at_a_time)
{
    const struct pools_config config = {
        .batch_size = N_ROWS, .n_slots = N_SLOTS, .n_lanes = N_LANES, .with_reports = 1};
    static struct crowd c;
    struct member m[N_LANES];
    pthread_t threads[N_LANES + 4];
    CHECK_EQ(pools_open(&c.p, &config), 0);
    c.filling = pstk__queue_open(N_SLOTS * N_ROWS);
    c.ready = pstk__queue_open(N_SLOTS);
    c.leased = pstk__queue_open(N_SLOTS);
    for (uint32_t i = 0; i < N_LANES; i++) {
        m[i] = (struct member){&c, i};
        pstk__eventcount_init(&c.rooms[i]);
        pstk__slots_watch(c.p.host, i, &c.rooms[i]);
        CHECK_EQ(pthread_create(&threads[i], NULL, crowd_read, &m[i]), 0);
        CHECK_EQ(pthread_create(&threads[N_LANES + i], NULL, crowd_work, &c), 0);
        CHECK_EQ(pthread_create(&threads[2 * N_LANES + i], NULL, crowd_release, &c), 0);
    }
    crowd_take(&c);
    for (uint32_t i = 0; i < 3 * N_LANES; i++)
        pthread_join(threads[i], NULL);
    CHECK_EQ(atomic_load(&c.n_over), N_BATCHES);
    CHECK_EQ(atomic_load(&c.n_wrong), 0);
    CHECK_EQ(n_in(c.p.host, PSTK__SLOT_FREE), N_SLOTS);
    CHECK_EQ(atomic_load(&c.p.host->n_leased), 0);
    CHECK_EQ(atomic_load(&c.p.host->n_refs), 1);
    for (uint32_t i = 0; i < N_LANES; i++)
        CHECK_EQ(c.p.host->n_free[i], (N_SLOTS + N_LANES - 1 - i) / N_LANES);
    pools_close(&c.p);
    pstk__queue_close(c.filling);
    pstk__queue_close(c.ready);
    pstk__queue_close(c.leased);
}

static void *device_release(void *user)
{
    struct crowd *c = user;
    struct pstk__slot *s;
    while ((s = pstk__queue_pop(c->leased, NULL, NULL))) {
        pstk__slot_use(s, stream_a, NULL);
        pstk__slot_release(s, stream_b);
        if (atomic_fetch_add(&c->n_over, 1) + 1 == N_TURNS)
            pstk__queue_shut(c->leased);
    }
    return NULL;
}

/* Captures begin and end, and slots are taken out of PARKED meanwhile. */
static void *device_capture(void *user)
{
    struct crowd *c = user;
    while (!atomic_load(&c->stop)) {
        atomic_store(&c->p.actor.releases, 1);
        pstk__slots_settle(c->p.device, 0, NULL);
        atomic_store(&c->p.actor.releases, 0);
        pstk__slots_settle(c->p.device, 1, NULL);
    }
    return NULL;
}

/* The uploader and the consumer: this thread. */
static uint32_t device_turn(struct crowd *c, const struct pstk__slot *from)
{
    uint32_t n = 0;
    while (n < N_TURNS) {
        const uint32_t ticket = pstk__eventcount_ticket(&c->rooms[0]);
        struct pstk__slot *s = pstk__slot_load(c->p.device);
        if (!s) {
            pstk__eventcount_wait(&c->rooms[0], ticket, -1);
            continue;
        }
        pstk__slot_loaded(s, from);
        if (pstk__slot_lease(s, NULL, 0, NULL) < 0)
            break;
        n++;
        pstk__queue_push(c->leased, s);
    }
    return n;
}

TEST(slots_that_threads_park_and_settle_come_back_all)
{
    const struct pools_config config = {.batch_size = 1, .n_slots = 1, .n_device_slots = 3};
    static struct crowd c;
    pthread_t threads[4];
    CHECK_EQ(pools_open(&c.p, &config), 0);
    c.filling = pstk__queue_open(1);
    c.ready = pstk__queue_open(1);
    c.leased = pstk__queue_open(3);
    c.p.actor.n_kept = 1;
    pstk__eventcount_init(&c.rooms[0]);
    pstk__slots_watch(c.p.device, 0, &c.rooms[0]);
    CHECK_EQ(pthread_create(&threads[0], NULL, device_release, &c), 0);
    CHECK_EQ(pthread_create(&threads[1], NULL, device_release, &c), 0);
    CHECK_EQ(pthread_create(&threads[2], NULL, device_capture, &c), 0);
    CHECK_EQ(pthread_create(&threads[3], NULL, device_capture, &c), 0);
    const uint32_t n = device_turn(&c, fill_empty(c.p.host, 0));
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    atomic_store(&c.stop, 1);
    pthread_join(threads[2], NULL);
    pthread_join(threads[3], NULL);
    atomic_store(&c.p.actor.releases, 0);
    CHECK_EQ(pstk__slots_settle(c.p.device, 0, NULL), 0);
    CHECK_EQ(n, N_TURNS);
    CHECK_EQ(n_in(c.p.device, PSTK__SLOT_FREE), 3);
    CHECK_EQ(c.p.device->n_free[0], 3);
    CHECK_EQ(atomic_load(&c.p.device->n_parked) + atomic_load(&c.p.device->n_leased), 0);
    CHECK_EQ(atomic_load(&c.p.device->n_refs), 1);
    pools_close(&c.p);
    pstk__queue_close(c.filling);
    pstk__queue_close(c.ready);
    pstk__queue_close(c.leased);
}

int main(void)
{
    const struct test_case cases[] = {
        CASE(a_slot_of_cuda_goes_round_and_is_parked_while_its_stream_is_captured),
        CASE(a_free_slot_of_cuda_is_not_ready_until_its_uses_are_over),
        CASE(slots_that_many_threads_begin_fill_and_release_have_one_owner_at_a_time),
        CASE(slots_that_threads_park_and_settle_come_back_all),
    };
    return RUN_CASES(cases);
}
