/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/encode_pool.h"

#include "base/error.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define BLOCKS_PER_THREAD 4
#define IN_FLIGHT_MAX (256u << 20) /* bytes of values */

struct lane {
    struct pstk__encode_window *window;
    struct pstk__encoders encoders; /* owned */
    pthread_t thread;
    int running;
};

/* Blocks number head .. tail-1 are under way, at ring[number % capacity]; those below `next` are
 * taken by a thread. head <= next <= tail <= head + capacity. */
struct pstk__encode_window {
    struct pstk__encode_config config;
    struct lane *lanes;        /* owned; n_threads */
    struct pstk__block **ring; /* owned, and the blocks in it */
    struct pstk__block
        *spare; /* owned; one emptied block, so that the steady state reuses memory */
    uint64_t capacity;
    uint64_t head;      /* caller's thread only */
    uint64_t tail;      /* guarded by lock; written by the caller's thread */
    uint64_t next;      /* guarded by lock */
    uint64_t in_flight; /* bytes of values; caller's thread only */
    int stop;           /* guarded by lock */
    int has_lock;
    pthread_mutex_t lock; /* guards also done of the blocks under way */
    pthread_cond_t work;  /* tail or stop changed */
    pthread_cond_t ready; /* a block is done */
};

static void *run_lane(void *arg)
{
    struct lane *lane = arg;
    struct pstk__encode_window *w = lane->window;
    pthread_mutex_lock(&w->lock);
    for (;;) {
        while (w->next == w->tail && !w->stop)
            pthread_cond_wait(&w->work, &w->lock);
        if (w->stop)
            break;
        struct pstk__block *b = w->ring[w->next++ % w->capacity];
        pthread_mutex_unlock(&w->lock);
        (void)pstk__block_encode(b, w->config.schema, &lane->encoders); /* kept in b->result */
        pthread_mutex_lock(&w->lock);
        b->done = 1;
        pthread_cond_signal(&w->ready);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

static int open_encoders(struct lane *lane, const struct pstk__encode_config *c,
                         struct pstk_error *err)
{
    for (uint32_t i = 0; i < c->schema->n_fields; i++) {
        const struct pstk_field *f = &c->schema->fields[i];
        const struct pstk__encode_dictionary *d = &c->dictionaries[i];
        if (f->codec == PSTK_CODEC_PLANES && !lane->encoders.planes) {
            int r = pstk__planes_encoder_open(&lane->encoders.planes, err);
            if (r < 0)
                return r;
        }
        if (f->codec != PSTK_CODEC_ZSTD)
            continue;
        int level = f->codec_level ? f->codec_level : 3;
        int r = pstk__encoder_open(&lane->encoders.field[i], level, d->bytes, d->size, err);
        if (r < 0)
            return r;
    }
    return 0;
}

/* The threads are the library's: a signal of the program must not be handled in one of them. */
static int start_threads(struct pstk__encode_window *w, struct pstk_error *err)
{
    sigset_t all, old;
    sigfillset(&all);
    if (pthread_sigmask(SIG_SETMASK, &all, &old) != 0)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_WRITE, "signals cannot be masked");
    int native = 0;
    for (uint32_t i = 0; native == 0 && i < w->config.n_threads; i++) {
        native = pthread_create(&w->lanes[i].thread, NULL, run_lane, &w->lanes[i]);
        w->lanes[i].running = native == 0;
        if (native == 0)
            (void)pthread_setname_np(w->lanes[i].thread, "pstk-encode"); /* for people only */
    }
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL); /* cannot fail: it succeeded above */
    return native ? pstk__fail_errno(err, native, PSTK_STAGE_WRITE,
                                     "compression thread cannot be started; choose fewer n_threads")
                  : 0;
}

static int open_lock(struct pstk__encode_window *w, struct pstk_error *err)
{
    if (pthread_mutex_init(&w->lock, NULL) != 0)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_WRITE, "no lock to be had");
    if (pthread_cond_init(&w->work, NULL) != 0) {
        pthread_mutex_destroy(&w->lock);
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_WRITE, "no condition to be had");
    }
    if (pthread_cond_init(&w->ready, NULL) != 0) {
        pthread_cond_destroy(&w->work);
        pthread_mutex_destroy(&w->lock);
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_WRITE, "no condition to be had");
    }
    w->has_lock = 1;
    return 0;
}

int pstk__encode_window_open(struct pstk__encode_window **out,
                             const struct pstk__encode_config *config, struct pstk_error *err)
{
    *out = NULL;
    struct pstk__encode_window *w = calloc(1, sizeof *w);
    if (!w)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_WRITE, "out of memory");
    w->config = *config;
    w->capacity = (uint64_t)config->n_threads * BLOCKS_PER_THREAD;
    w->lanes = calloc(config->n_threads, sizeof *w->lanes);
    w->ring = calloc(w->capacity, sizeof *w->ring);
    int r =
        w->lanes && w->ring ? 0 : pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_WRITE, "out of memory");
    for (uint32_t i = 0; r == 0 && i < config->n_threads; i++) {
        w->lanes[i].window = w;
        r = open_encoders(&w->lanes[i], config, err);
    }
    w->config.dictionaries = NULL; /* borrowed until here */
    if (r == 0)
        r = open_lock(w, err);
    if (r == 0 && config->n_threads > 1)
        r = start_threads(w, err);
    if (r < 0) {
        pstk__encode_window_close(w);
        return r;
    }
    *out = w;
    return 0;
}

static void stop_threads(struct pstk__encode_window *w)
{
    pthread_mutex_lock(&w->lock);
    w->stop = 1;
    pthread_cond_broadcast(&w->work);
    pthread_mutex_unlock(&w->lock);
    for (uint32_t i = 0; i < w->config.n_threads; i++)
        if (w->lanes[i].running)
            pthread_join(w->lanes[i].thread, NULL);
}

void pstk__encode_window_close(struct pstk__encode_window *w)
{
    if (!w)
        return;
    if (w->has_lock) {
        stop_threads(w);
        pthread_cond_destroy(&w->ready);
        pthread_cond_destroy(&w->work);
        pthread_mutex_destroy(&w->lock);
    }
    for (uint64_t i = w->head; i < w->tail; i++)
        pstk__block_close(w->ring[i % w->capacity]);
    for (uint32_t i = 0; w->lanes && i < w->config.n_threads; i++) {
        for (uint32_t f = 0; f < PSTK_MAX_FIELDS; f++)
            if (w->lanes[i].encoders.field[f])
                pstk__encoder_close(w->lanes[i].encoders.field[f]);
        pstk__planes_encoder_close(w->lanes[i].encoders.planes);
    }
    pstk__block_close(w->spare);
    free(w->lanes);
    free(w->ring);
    free(w);
}

struct pstk__block *pstk__encode_window_block(struct pstk__encode_window *w)
{
    struct pstk__block *b = w->spare;
    w->spare = NULL;
    return b ? b : pstk__block_open();
}

static void recycle(struct pstk__encode_window *w, struct pstk__block *b)
{
    if (w->spare) {
        pstk__block_close(b);
        return;
    }
    pstk__block_reset(b);
    w->spare = b;
}

/* Hand on an encoded block, or why it could not be encoded. */
static int emit(struct pstk__encode_window *w, struct pstk__block *b, struct pstk_error *err)
{
    if (b->result < 0)
        return pstk__fail(err, b->result, b->error.stage, "%s", b->error.message);
    return w->config.emit(w->config.user, b, err);
}

static int emit_oldest(struct pstk__encode_window *w, struct pstk_error *err)
{
    struct pstk__block *b = w->ring[w->head % w->capacity];
    pthread_mutex_lock(&w->lock);
    while (!b->done)
        pthread_cond_wait(&w->ready, &w->lock);
    pthread_mutex_unlock(&w->lock);
    int r = emit(w, b, err);
    w->head++;
    w->in_flight -= b->plain_size;
    recycle(w, b);
    return r;
}

static int oldest_is_done(struct pstk__encode_window *w)
{
    if (w->head == w->tail)
        return 0;
    pthread_mutex_lock(&w->lock);
    int done = w->ring[w->head % w->capacity]->done;
    pthread_mutex_unlock(&w->lock);
    return done;
}

static int push_alone(struct pstk__encode_window *w, struct pstk__block *b, struct pstk_error *err)
{
    (void)pstk__block_encode(b, w->config.schema, &w->lanes[0].encoders); /* kept in b->result */
    int r = emit(w, b, err);
    recycle(w, b);
    return r;
}

int pstk__encode_window_push(struct pstk__encode_window *w, struct pstk__block *b,
                             struct pstk_error *err)
{
    if (w->config.n_threads == 1)
        return push_alone(w, b, err);
    int r = 0;
    while (r == 0 && (oldest_is_done(w) || w->tail - w->head == w->capacity ||
                      (w->tail > w->head && w->in_flight + b->plain_size > IN_FLIGHT_MAX)))
        r = emit_oldest(w, err);
    if (r < 0) {
        pstk__block_close(b);
        return r;
    }
    w->in_flight += b->plain_size;
    pthread_mutex_lock(&w->lock);
    w->ring[w->tail++ % w->capacity] = b;
    pthread_cond_signal(&w->work);
    pthread_mutex_unlock(&w->lock);
    return 0;
}

int pstk__encode_window_drain(struct pstk__encode_window *w, struct pstk_error *err)
{
    int r = 0;
    while (r == 0 && w->head < w->tail)
        r = emit_oldest(w, err);
    return r;
}
