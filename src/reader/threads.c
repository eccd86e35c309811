/* SPDX-License-Identifier: Apache-2.0 */
/* The pread backend: a fixed pool of threads, for where io_uring is denied. */
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
    struct pstk__read *first, **end; /* end: where the next one's address goes */
    uint32_t n;
};

/* Lock: `mutex` guards what stands under it; the rest is the owner's, or fixed before the threads
 * start. */
struct pool {
    struct pstk__reader reader; /* first */
    pthread_mutex_t mutex;
    pthread_cond_t has_todo;                 /* threads wait: todo is not empty, or closing */
    pthread_cond_t has_done;                 /* the owner waits: done is not empty */
    int mutex_ready, todo_ready, done_ready; /* 1: must be destroyed */
    uint32_t depth;
    uint32_t n_taken;   /* queued and not reaped, <= depth */
    uint32_t n_threads; /* running */
    pthread_t *threads;
    struct list queued; /* not yet submitted */
    /* under the mutex */
    struct list todo; /* submitted */
    struct list done; /* finished, result set */
    uint32_t n_idle;  /* threads that wait for has_todo */
    int owner_waits;
    int closing;
};

static void list_clear(struct list *l)
{
    l->first = NULL;
    l->end = &l->first;
    l->n = 0;
}

static void list_add(struct list *l, struct pstk__read *read)
{
    read->next = NULL;
    *l->end = read;
    l->end = &read->next;
    l->n++;
}

/* Not empty. */
static struct pstk__read *list_take(struct list *l)
{
    struct pstk__read *read = l->first;
    l->first = read->next;
    if (!l->first)
        l->end = &l->first;
    l->n--;
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

/* All attempts at one read. */
static void serve(struct pstk__read *read)
{
    ssize_t got;
    do {
        uint32_t start = pstk__reader_start(read);
        got = pread(read->fd, (uint8_t *)read->buffer + start, read->size - start,
                    (off_t)(read->offset + start));
    } while (!pstk__reader_result(read, got < 0 ? -errno : (int32_t)got));
}

static void *thread_main(void *arg)
{
    struct pool *p = arg;
    pthread_mutex_lock(&p->mutex);
    for (;;) {
        while (!p->todo.n && !p->closing) {
            p->n_idle++;
            pthread_cond_wait(&p->has_todo, &p->mutex);
            p->n_idle--;
        }
        if (p->closing)
            break;
        struct pstk__read *read = list_take(&p->todo);
        pthread_mutex_unlock(&p->mutex);
        serve(read);
        pthread_mutex_lock(&p->mutex);
        list_add(&p->done, read);
        if (p->owner_waits) {
            p->owner_waits = 0;
            pthread_cond_signal(&p->has_done);
        }
    }
    pthread_mutex_unlock(&p->mutex);
    return NULL;
}

/* ---- the owner's side ------------------------------------------------------------------------ */

static int threads_set_file(struct pstk__reader *r, uint32_t file, int fd)
{
    (void)r, (void)file, (void)fd; /* every read carries its fd */
    return 0;
}

static void threads_queue(struct pstk__reader *r, struct pstk__read *read)
{
    struct pool *p = (struct pool *)r;
    assert(p->n_taken < p->depth);
    pstk__reader_begin(read);
    p->n_taken++;
    list_add(&p->queued, read);
}

static int threads_submit(struct pstk__reader *r)
{
    struct pool *p = (struct pool *)r;
    if (!p->queued.n)
        return 0;
    pthread_mutex_lock(&p->mutex);
    list_append(&p->todo, &p->queued);
    uint32_t n = p->todo.n < p->n_idle ? p->todo.n : p->n_idle;
    pthread_mutex_unlock(&p->mutex);
    /* Busy threads look at todo again before they wait: only idle ones need waking. */
    for (uint32_t i = 0; i < n; i++)
        pthread_cond_signal(&p->has_todo);
    return 0;
}

static int threads_reap(struct pstk__reader *r, struct pstk__read **done, uint32_t max, int wait)
{
    struct pool *p = (struct pool *)r;
    uint32_t n = 0;
    if (wait)
        threads_submit(r); /* what is only queued would never finish */
    pthread_mutex_lock(&p->mutex);
    while (wait && max && p->n_taken && !p->done.n) {
        p->owner_waits = 1;
        pthread_cond_wait(&p->has_done, &p->mutex);
    }
    while (n < max && p->done.n)
        done[n++] = list_take(&p->done);
    pthread_mutex_unlock(&p->mutex);
    p->n_taken -= n;
    return (int)n;
}

static void threads_close(struct pstk__reader *r)
{
    struct pool *p = (struct pool *)r;
    if (!p)
        return;
    if (p->n_threads) {
        pthread_mutex_lock(&p->mutex);
        p->closing = 1; /* reads that no thread has taken are dropped */
        pthread_cond_broadcast(&p->has_todo);
        pthread_mutex_unlock(&p->mutex);
    }
    for (uint32_t i = 0; i < p->n_threads; i++)
        pthread_join(p->threads[i], NULL);
    if (p->done_ready)
        pthread_cond_destroy(&p->has_done);
    if (p->todo_ready)
        pthread_cond_destroy(&p->has_todo);
    if (p->mutex_ready)
        pthread_mutex_destroy(&p->mutex);
    free(p->threads);
    free(p);
}

/* Start n threads, with every signal blocked: handlers are the program's, and run on its threads.
 * 0 or a positive errno. */
static int start_threads(struct pool *p, uint32_t n)
{
    sigset_t all, old;
    sigfillset(&all);
    int failed = pthread_sigmask(SIG_SETMASK, &all, &old);
    if (failed)
        return failed;
    while (p->n_threads < n && !failed) {
        failed = pthread_create(&p->threads[p->n_threads], NULL, thread_main, p);
        if (failed)
            break;
        /* A name is a help to the reader of a profile, nothing more: it may fail. */
        (void)pthread_setname_np(p->threads[p->n_threads], "pstk-read");
        p->n_threads++;
    }
    int restored = pthread_sigmask(SIG_SETMASK, &old, NULL);
    return failed ? failed : restored;
}

static int threads_open(struct pstk__reader **out, const struct pstk__reader_config *c,
                        uint32_t *rungs, struct pstk_error *err)
{
    (void)rungs; /* the last rung: nothing is left to refuse */
    *out = NULL;
    uint32_t n = c->n_threads ? c->n_threads : AUTO_THREADS;
    if (n > c->depth)
        n = c->depth; /* more would never have work */
    struct pool *p = calloc(1, sizeof *p);
    if (!p)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for the thread reader");
    p->reader.ops = &pstk__reader_threads;
    p->depth = c->depth;
    list_clear(&p->queued);
    list_clear(&p->todo);
    list_clear(&p->done);
    p->threads = calloc(n, sizeof *p->threads);
    int failed = p->threads ? pthread_mutex_init(&p->mutex, NULL) : ENOMEM;
    p->mutex_ready = !failed;
    if (!failed)
        p->todo_ready = !(failed = pthread_cond_init(&p->has_todo, NULL));
    if (!failed)
        p->done_ready = !(failed = pthread_cond_init(&p->has_done, NULL));
    if (!failed)
        failed = start_threads(p, n);
    if (failed) {
        uint32_t n_started = p->n_threads;
        threads_close(&p->reader);
        return pstk__fail_errno(err, failed, PSTK_STAGE_OPEN,
                                "cannot start reader thread %u of %u; lower queue_depth or raise "
                                "the limit of processes (ulimit -u)",
                                n_started + 1, n);
    }
    *out = &p->reader;
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
