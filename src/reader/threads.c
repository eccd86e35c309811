/* SPDX-License-Identifier: Apache-2.0 */
/* The thread backend: a fixed pool of threads that reads through the store. It is used if io_uring
 * is denied or the files have no descriptors. */
#include "base/cpu_times.h"
#include "base/error.h"
#include "reader/reader.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#define AUTO_THREADS 16 /* default: enough to keep one SATA disk or a network mount busy */

/* A list of reads, first in first out. */
struct list {
    struct pstk__read *first, **end; /* end: address of the last read's `next`, or of `first` */
    uint32_t n;
};

/* Lock: `mutex` guards the members below it. All others are the owner's, or constant before the
 * threads start. */
struct pool {
    struct pstk__reader reader; /* first member */
    pthread_mutex_t mutex;
    pthread_cond_t has_todo; /* threads wait for it: todo is not empty, or closing */
    pthread_cond_t has_done; /* the owner waits for it: done is not empty */
    int mutex_ready, todo_ready, done_ready; /* 1: must be destroyed */
    uint32_t depth;
    uint32_t n_taken;   /* reads queued and not reaped, <= depth */
    uint32_t n_threads; /* running threads */
    pthread_t *threads;
    struct pstk__cpu_times *times; /* CPU times that the threads join, borrowed; NULL: none */
    struct list queued;            /* reads not yet submitted */
    /* under the mutex */
    struct list todo; /* reads submitted */
    struct list done; /* reads finished, with their results */
    uint32_t n_idle;  /* threads that wait for has_todo */
    int owner_waits;
    int closing;
};

static void list_clear(struct list *list)
{
    list->first = NULL;
    list->end = &list->first;
    list->n = 0;
}

static void list_add(struct list *list, struct pstk__read *read)
{
    read->next = NULL;
    *list->end = read;
    list->end = &read->next;
    list->n++;
}

/* Take the first read of a list that is not empty. */
static struct pstk__read *list_take(struct list *list)
{
    struct pstk__read *read = list->first;
    list->first = read->next;
    if (!list->first)
        list->end = &list->first;
    list->n--;
    return read;
}

/* Move all of `from` to the end of `to`. */
static void list_append(struct list *to, struct list *from)
{
    if (!from->n)
        return;
    *to->end = from->first;
    to->end = from->end;
    to->n += from->n;
    list_clear(from);
}

/* ---- the threads ----------------------------------------------------------------------------- */

/* Make all attempts at one read. Runs on a thread of the pool, without the mutex: that thread owns
 * the read until it is in `done`. */
static void serve(struct pstk__read *read)
{
    const struct pstk__file *from = read->from;
    int64_t got;
    do {
        uint32_t start = pstk__reader_start(read);
        got = from->store->read_at(from, (uint8_t *)read->buffer + start, read->size - start,
                                   read->offset + start);
    } while (!pstk__reader_result(read, (int32_t)got));
}

/* Run a thread of the pool, which open starts and close ends. It holds the mutex except in serve
 * and while it waits. */
static void *thread_main(void *arg)
{
    struct pool *pool = arg;
    pstk__cpu_times_join(pool->times);
    pthread_mutex_lock(&pool->mutex);
    for (;;) {
        while (!pool->todo.n && !pool->closing) {
            pool->n_idle++;
            pthread_cond_wait(&pool->has_todo, &pool->mutex);
            pool->n_idle--;
        }
        if (pool->closing)
            break;
        struct pstk__read *read = list_take(&pool->todo);
        pthread_mutex_unlock(&pool->mutex);
        serve(read);
        pthread_mutex_lock(&pool->mutex);
        list_add(&pool->done, read);
        if (pool->owner_waits) {
            pool->owner_waits = 0;
            pthread_cond_signal(&pool->has_done);
        }
    }
    pthread_mutex_unlock(&pool->mutex);
    pstk__cpu_times_leave(pool->times);
    return NULL;
}

/* ---- the owner's side ------------------------------------------------------------------------ */

static int threads_set_file(struct pstk__reader *reader, uint32_t file, int fd)
{
    (void)reader, (void)file, (void)fd; /* unused: every read carries its file */
    return 0;
}

static void threads_queue(struct pstk__reader *reader, struct pstk__read *read)
{
    struct pool *pool = (struct pool *)reader;
    assert(pool->n_taken < pool->depth);
    pstk__reader_begin(read);
    pool->n_taken++;
    list_add(&pool->queued, read);
}

static int threads_submit(struct pstk__reader *reader)
{
    struct pool *pool = (struct pool *)reader;
    if (!pool->queued.n)
        return 0;
    pthread_mutex_lock(&pool->mutex);
    list_append(&pool->todo, &pool->queued);
    uint32_t n = pool->todo.n < pool->n_idle ? pool->todo.n : pool->n_idle;
    pthread_mutex_unlock(&pool->mutex);
    /* Busy threads check todo again before they wait: only idle ones are woken. */
    for (uint32_t i = 0; i < n; i++)
        pthread_cond_signal(&pool->has_todo);
    return 0;
}

static int threads_reap(struct pstk__reader *reader, struct pstk__read **done, uint32_t max,
                        int wait)
{
    struct pool *pool = (struct pool *)reader;
    uint32_t n = 0;
    if (wait)
        threads_submit(reader); /* otherwise a read that is only queued would never finish */
    pthread_mutex_lock(&pool->mutex);
    while (wait && max && pool->n_taken && !pool->done.n) {
        pool->owner_waits = 1;
        pthread_cond_wait(&pool->has_done, &pool->mutex);
    }
    while (n < max && pool->done.n)
        done[n++] = list_take(&pool->done);
    pthread_mutex_unlock(&pool->mutex);
    pool->n_taken -= n;
    return (int)n;
}

static void threads_close(struct pstk__reader *reader)
{
    struct pool *pool = (struct pool *)reader;
    if (!pool)
        return;
    if (pool->n_threads) {
        pthread_mutex_lock(&pool->mutex);
        pool->closing = 1; /* drops the reads that no thread has taken */
        pthread_cond_broadcast(&pool->has_todo);
        pthread_mutex_unlock(&pool->mutex);
    }
    for (uint32_t i = 0; i < pool->n_threads; i++)
        pthread_join(pool->threads[i], NULL);
    if (pool->done_ready)
        pthread_cond_destroy(&pool->has_done);
    if (pool->todo_ready)
        pthread_cond_destroy(&pool->has_todo);
    if (pool->mutex_ready)
        pthread_mutex_destroy(&pool->mutex);
    free(pool->threads);
    free(pool);
}

/* Start n threads, with every signal blocked: handlers belong to the program and run on its
 * threads. Returns 0 or a positive errno. */
static int start_threads(struct pool *pool, uint32_t n)
{
    sigset_t all, old;
    sigfillset(&all);
    int failed = pthread_sigmask(SIG_SETMASK, &all, &old);
    if (failed)
        return failed;
    while (pool->n_threads < n && !failed) {
        failed = pthread_create(&pool->threads[pool->n_threads], NULL, thread_main, pool);
        if (failed)
            break;
        /* The name only helps the reader of a profile: setting it may fail. */
        (void)pthread_setname_np(pool->threads[pool->n_threads], "pstk-read");
        pool->n_threads++;
    }
    int restored = pthread_sigmask(SIG_SETMASK, &old, NULL);
    return failed ? failed : restored;
}

static int threads_open(struct pstk__reader **out, const struct pstk__reader_config *c,
                        uint32_t *fallbacks, struct pstk_error *err)
{
    (void)fallbacks; /* this is the last fallback, which cannot be refused */
    *out = NULL;
    uint32_t n = c->n_threads ? c->n_threads : AUTO_THREADS;
    if (n > c->depth)
        n = c->depth; /* more threads would never have work */
    struct pool *pool = calloc(1, sizeof *pool);
    if (!pool)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for the thread reader");
    pool->reader.ops = &pstk__reader_threads;
    pool->depth = c->depth;
    pool->times = c->times;
    list_clear(&pool->queued);
    list_clear(&pool->todo);
    list_clear(&pool->done);
    pool->threads = calloc(n, sizeof *pool->threads);
    int failed = pool->threads ? pthread_mutex_init(&pool->mutex, NULL) : ENOMEM;
    pool->mutex_ready = !failed;
    if (!failed)
        pool->todo_ready = !(failed = pthread_cond_init(&pool->has_todo, NULL));
    if (!failed)
        pool->done_ready = !(failed = pthread_cond_init(&pool->has_done, NULL));
    if (!failed)
        failed = start_threads(pool, n);
    if (failed) {
        uint32_t n_started = pool->n_threads;
        threads_close(&pool->reader);
        return pstk__fail_errno(err, failed, PSTK_STAGE_OPEN,
                                "cannot start reader thread %u of %u; lower queue_depth or raise "
                                "the limit of processes (ulimit -u)",
                                n_started + 1, n);
    }
    *out = &pool->reader;
    return 0;
}

const struct pstk__reader_ops pstk__reader_threads = {
    .name = "threads",
    .kind = PSTK_READER_THREADS,
    .open = threads_open,
    .set_file = threads_set_file,
    .queue = threads_queue,
    .submit = threads_submit,
    .reap = threads_reap,
    .close = threads_close,
};
