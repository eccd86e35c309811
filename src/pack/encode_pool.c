/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/encode_pool.h"

#include "base/error.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define BLOCKS_PER_THREAD 4
#define IN_FLIGHT_MAX (256u << 20) /* bytes of values */

/* A thread and its encoders. With n_threads 1 there is no thread: the writer's thread encodes. */
struct lane {
    struct pstk__encode_pool *pool;
    struct pstk__encoders encoders; /* owned */
    pthread_t thread;
    int running; /* 1: thread must be joined */
};

/*
 * Blocks number head .. tail-1 are under way, in ring[number % capacity]; threads have taken those
 * below `next`. head <= next <= tail <= head + capacity.
 *
 * A block under way belongs to the thread that took it until that thread sets `done`. Before push,
 * and once it is done, it belongs to the writer's thread. `done` is written and read under the
 * lock, which makes the writes of one thread visible to the other.
 */
struct pstk__encode_pool {
    struct pstk__encode_config config; /* does not change while threads run */
    struct lane *lanes;                /* owned; n_threads */
    struct pstk__block **ring;         /* owned, with the blocks under way */
    struct pstk__block *spare;         /* owned; an emptied block, so that memory is reused */
    uint64_t capacity;                 /* blocks in ring */
    uint64_t head;                     /* writer's thread only */
    uint64_t tail;                     /* guarded by lock; only the writer's thread writes it */
    uint64_t next;                     /* guarded by lock */
    uint64_t in_flight;                /* bytes of values; writer's thread only */
    int stop;                          /* guarded by lock */
    int has_lock;                      /* 1: lock, work and ready are open */
    pthread_mutex_t lock;              /* guards also `done` of the blocks under way */
    pthread_cond_t work;               /* tail or stop changed; the pool's threads wait */
    pthread_cond_t ready;              /* a block is done; the writer's thread waits */
};

/* Run a thread of the pool until stop. It holds the lock except while it encodes. */
static void *run_lane(void *arg)
{
    struct lane *lane = arg;
    struct pstk__encode_pool *pool = lane->pool;
    pthread_mutex_lock(&pool->lock);
    for (;;) {
        while (pool->next == pool->tail && !pool->stop)
            pthread_cond_wait(&pool->work, &pool->lock);
        if (pool->stop)
            break;
        struct pstk__block *b = pool->ring[pool->next++ % pool->capacity];
        pthread_mutex_unlock(&pool->lock);
        (void)pstk__block_encode(b, pool->config.schema, &lane->encoders); /* kept in b->result */
        pthread_mutex_lock(&pool->lock);
        b->done = 1;
        pthread_cond_signal(&pool->ready);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

static int open_encoders(struct lane *lane, const struct pstk__encode_config *c,
                         struct pstk_error *err)
{
    for (uint32_t i = 0; i < c->schema->n_fields; i++) {
        const struct pstk_field *field = &c->schema->fields[i];
        const struct pstk__encode_dictionary *dictionary = &c->dictionaries[i];
        if (field->codec == PSTK_CODEC_PLANES && !lane->encoders.planes) {
            int r = pstk__planes_encoder_open(&lane->encoders.planes, err);
            if (r < 0)
                return r;
        }
        if (field->codec != PSTK_CODEC_ZSTD)
            continue;
        int level = field->codec_level ? field->codec_level : 3;
        int r = pstk__encoder_open(&lane->encoders.field[i], level, dictionary->bytes,
                                   dictionary->size, err);
        if (r < 0)
            return r;
    }
    return 0;
}

/* Start the threads with all signals masked: no handler of the program may run in a thread of the
 * library. */
static int start_threads(struct pstk__encode_pool *pool, struct pstk_error *err)
{
    sigset_t all, old;
    sigfillset(&all);
    if (pthread_sigmask(SIG_SETMASK, &all, &old) != 0)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_WRITE, "signals cannot be masked");
    int native = 0;
    for (uint32_t i = 0; native == 0 && i < pool->config.n_threads; i++) {
        native = pthread_create(&pool->lanes[i].thread, NULL, run_lane, &pool->lanes[i]);
        pool->lanes[i].running = native == 0;
        if (native == 0)
            (void)pthread_setname_np(pool->lanes[i].thread, "pstk-encode"); /* only for people */
    }
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL); /* cannot fail: it succeeded above */
    return native ? pstk__fail_errno(err, native, PSTK_STAGE_WRITE,
                                     "cannot start a compression thread; lower n_threads")
                  : 0;
}

static int open_lock(struct pstk__encode_pool *pool, struct pstk_error *err)
{
    if (pthread_mutex_init(&pool->lock, NULL) != 0)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_WRITE, "cannot make a lock");
    if (pthread_cond_init(&pool->work, NULL) != 0) {
        pthread_mutex_destroy(&pool->lock);
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_WRITE, "cannot make a condition variable");
    }
    if (pthread_cond_init(&pool->ready, NULL) != 0) {
        pthread_cond_destroy(&pool->work);
        pthread_mutex_destroy(&pool->lock);
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_WRITE, "cannot make a condition variable");
    }
    pool->has_lock = 1;
    return 0;
}

int pstk__encode_pool_open(struct pstk__encode_pool **out, const struct pstk__encode_config *config,
                           struct pstk_error *err)
{
    *out = NULL;
    struct pstk__encode_pool *pool = calloc(1, sizeof *pool);
    if (!pool)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_WRITE, "out of memory");
    pool->config = *config;
    pool->capacity = (uint64_t)config->n_threads * BLOCKS_PER_THREAD;
    pool->lanes = calloc(config->n_threads, sizeof *pool->lanes);
    pool->ring = calloc(pool->capacity, sizeof *pool->ring);
    int r = pool->lanes && pool->ring
                ? 0
                : pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_WRITE, "out of memory");
    for (uint32_t i = 0; r == 0 && i < config->n_threads; i++) {
        pool->lanes[i].pool = pool;
        r = open_encoders(&pool->lanes[i], config, err);
    }
    pool->config.dictionaries = NULL; /* they were borrowed until here */
    if (r == 0)
        r = open_lock(pool, err);
    if (r == 0 && config->n_threads > 1)
        r = start_threads(pool, err);
    if (r < 0) {
        pstk__encode_pool_close(pool);
        return r;
    }
    *out = pool;
    return 0;
}

/* Stop and join the threads; each finishes the block that it encodes. Called by close, on the
 * writer's thread, with no lock held. */
static void stop_threads(struct pstk__encode_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    pool->stop = 1;
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->lock);
    for (uint32_t i = 0; i < pool->config.n_threads; i++)
        if (pool->lanes[i].running)
            pthread_join(pool->lanes[i].thread, NULL);
}

void pstk__encode_pool_close(struct pstk__encode_pool *pool)
{
    if (!pool)
        return;
    if (pool->has_lock) {
        stop_threads(pool);
        pthread_cond_destroy(&pool->ready);
        pthread_cond_destroy(&pool->work);
        pthread_mutex_destroy(&pool->lock);
    }
    for (uint64_t i = pool->head; i < pool->tail; i++)
        pstk__block_close(pool->ring[i % pool->capacity]);
    for (uint32_t i = 0; pool->lanes && i < pool->config.n_threads; i++) {
        for (uint32_t f = 0; f < PSTK_MAX_FIELDS; f++)
            if (pool->lanes[i].encoders.field[f])
                pstk__encoder_close(pool->lanes[i].encoders.field[f]);
        pstk__planes_encoder_close(pool->lanes[i].encoders.planes);
    }
    pstk__block_close(pool->spare);
    free(pool->lanes);
    free(pool->ring);
    free(pool);
}

struct pstk__block *pstk__encode_pool_block(struct pstk__encode_pool *pool)
{
    struct pstk__block *b = pool->spare;
    pool->spare = NULL;
    return b ? b : pstk__block_open();
}

static void recycle(struct pstk__encode_pool *pool, struct pstk__block *b)
{
    if (pool->spare) {
        pstk__block_close(b);
        return;
    }
    pstk__block_reset(b);
    pool->spare = b;
}

/* Emit an encoded block, or return the error of its encoding. */
static int emit(struct pstk__encode_pool *pool, struct pstk__block *b, struct pstk_error *err)
{
    if (b->result < 0)
        return pstk__fail(err, b->result, b->error.stage, "%s", b->error.message);
    return pool->config.emit(pool->config.user, b, err);
}

/* Wait for the oldest block, emit it, and recycle it. */
static int emit_oldest(struct pstk__encode_pool *pool, struct pstk_error *err)
{
    struct pstk__block *b = pool->ring[pool->head % pool->capacity];
    pthread_mutex_lock(&pool->lock);
    while (!b->done)
        pthread_cond_wait(&pool->ready, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
    int r = emit(pool, b, err);
    pool->head++;
    pool->in_flight -= b->plain_size;
    recycle(pool, b);
    return r;
}

static int oldest_is_done(struct pstk__encode_pool *pool)
{
    if (pool->head == pool->tail)
        return 0;
    pthread_mutex_lock(&pool->lock);
    int done = pool->ring[pool->head % pool->capacity]->done;
    pthread_mutex_unlock(&pool->lock);
    return done;
}

/* Encode and emit at once: push with n_threads 1. */
static int push_alone(struct pstk__encode_pool *pool, struct pstk__block *b, struct pstk_error *err)
{
    (void)pstk__block_encode(b, pool->config.schema,
                             &pool->lanes[0].encoders); /* kept in b->result */
    int r = emit(pool, b, err);
    recycle(pool, b);
    return r;
}

int pstk__encode_pool_push(struct pstk__encode_pool *pool, struct pstk__block *b,
                           struct pstk_error *err)
{
    if (pool->config.n_threads == 1)
        return push_alone(pool, b, err);
    int r = 0;
    while (r == 0 && (oldest_is_done(pool) || pool->tail - pool->head == pool->capacity ||
                      (pool->tail > pool->head && pool->in_flight + b->plain_size > IN_FLIGHT_MAX)))
        r = emit_oldest(pool, err);
    if (r < 0) {
        pstk__block_close(b);
        return r;
    }
    pool->in_flight += b->plain_size;
    pthread_mutex_lock(&pool->lock);
    pool->ring[pool->tail++ % pool->capacity] = b;
    pthread_cond_signal(&pool->work);
    pthread_mutex_unlock(&pool->lock);
    return 0;
}

int pstk__encode_pool_drain(struct pstk__encode_pool *pool, struct pstk_error *err)
{
    int r = 0;
    while (r == 0 && pool->head < pool->tail)
        r = emit_oldest(pool, err);
    return r;
}
