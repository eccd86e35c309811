/* SPDX-License-Identifier: Apache-2.0 */
#include "process/pool.h"

#include "base/error.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define END_MS 2000 /* wait for a process to end after its socket, milliseconds */
#define MAX_PROCESSES 4096u
#define MAX_TEXTS 65536u /* maximum number of arguments, or of variables */
#define WHOSE_SIZE 201u

enum state {
    WANTED = 1, /* the supervisor must start a process */
    STARTED,    /* the holder of the process may use it */
};

/* The lock guards the members after it. But only the holder of a process uses that process's
 * struct. */
struct pstk__process_pool {
    struct pstk__process_program program; /* owned, with its texts */
    uint64_t start_timeout_ns;
    uint64_t data_size, row_size;
    char whose[WHOSE_SIZE];
    uint32_t n;
    struct pstk__worker_process *processes; /* n processes; owned */
    int wake;                               /* eventfd, readable once closing; -1: none; owned */
    pthread_t supervisor;
    int supervisor_runs; /* 1: it was started and not joined */

    pthread_mutex_t lock;
    pthread_cond_t freed;   /* signalled for a freed process: one waiter may go on */
    pthread_cond_t given;   /* signalled for a process given to waiters for batches */
    pthread_cond_t changed; /* signalled for a new state, closing or broken */
    enum state *states;     /* n states; owned */
    uint32_t *free;         /* stack of n_free processes; owned */
    uint32_t n_free;
    uint32_t n_batches; /* waiting requests for batches; as many free processes are kept for them */
    int closing;
    struct pstk_error broken; /* code < 0: reason why no process can be started */
};

/* ---- the program ------------------------------------------------------------------------------
 */

static void texts_free(char *const *texts)
{
    free((void *)(uintptr_t)texts);
}

/* Copy a list of texts that ends with NULL to one block of memory. Returns NULL if there is no
 * memory. */
static char *const *texts_copy(const char *const *texts)
{
    size_t n = 0, size = 0;
    for (; texts[n]; n++)
        size += strlen(texts[n]) + 1;
    char **copy = malloc((n + 1) * sizeof *copy + size);
    if (!copy)
        return NULL;
    char *to = (char *)(copy + n + 1);
    for (size_t k = 0; k < n; k++) {
        const size_t length = strlen(texts[k]) + 1;
        memcpy(to, texts[k], length);
        copy[k] = to;
        to += length;
    }
    copy[n] = NULL;
    return copy;
}

static int is_list(const char *const *texts)
{
    uint32_t n = 0;
    while (n < MAX_TEXTS && texts[n])
        n++;
    return n < MAX_TEXTS;
}

int pstk__process_pool_check(const struct pstk_processes *processes, uint32_t i,
                             struct pstk_error *err)
{
#define FAIL(member, ...)                                                                          \
    pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, "outputs[%u].processes." member, i, __VA_ARGS__)
    if (processes->size < sizeof *processes)
        return FAIL("size: value is %u; must be sizeof(struct pstk_processes), %zu",
                    processes->size, sizeof *processes);
    if (processes->n_processes > MAX_PROCESSES)
        return FAIL("n_processes: value is %u; must be at most %u", processes->n_processes,
                    MAX_PROCESSES);
    if (!processes->arguments || !processes->arguments[0] || !is_list(processes->arguments))
        return FAIL("arguments: must be the path of a program and at most %u arguments, then NULL",
                    MAX_TEXTS);
    if (processes->environment && !is_list(processes->environment))
        return FAIL("environment: must be at most %u texts, then NULL", MAX_TEXTS);
    if (!processes->job && processes->job_size > 0)
        return FAIL("job: value is NULL; must be %llu bytes (job_size)",
                    (unsigned long long)processes->job_size);
    if (processes->start_timeout_ns > INT64_MAX)
        return FAIL("start_timeout_ns: value is %llu; must be below 2^63",
                    (unsigned long long)processes->start_timeout_ns);
    return 0;
#undef FAIL
}

/* ---- the supervisor ---------------------------------------------------------------------------
 */

/* Return the first process in this state, or n. The caller holds the lock. */
static uint32_t find(const struct pstk__process_pool *pool, enum state state)
{
    uint32_t i = 0;
    while (i < pool->n && pool->states[i] != state)
        i++;
    return i;
}

/* Wake all waiters. The caller holds the lock. */
static void wake_all(struct pstk__process_pool *pool)
{
    pthread_cond_broadcast(&pool->changed);
    pthread_cond_broadcast(&pool->freed);
    pthread_cond_broadcast(&pool->given);
}

/* Start a process. The caller holds the lock, which is released meanwhile: nobody else uses a
 * process that is WANTED. */
static void start(struct pstk__process_pool *pool, uint32_t i)
{
    pthread_mutex_unlock(&pool->lock);
    const int rc = pstk__worker_process_start(&pool->processes[i], &pool->program);
    pthread_mutex_lock(&pool->lock);
    pool->states[i] = STARTED;
    if (rc < 0) {
        pstk__fail_errno(&pool->broken, -rc, PSTK_STAGE_OPEN,
                         "%s: a process of %s could not be started", pool->whose,
                         pool->program.arguments[0]);
        pool->broken.code = PSTK_ECANCELED;
    }
    wake_all(pool);
}

static void *supervise(void *user)
{
    struct pstk__process_pool *pool = user;
    pthread_setname_np(pthread_self(), "pstk-process");
    pthread_mutex_lock(&pool->lock);
    while (!pool->closing) {
        const uint32_t i = find(pool, WANTED);
        if (i < pool->n && pool->broken.code == 0)
            start(pool, i);
        else
            pthread_cond_wait(&pool->changed, &pool->lock);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

/* Start the supervisor with all signals blocked: they are for the program's own threads. */
static int start_supervisor(struct pstk__process_pool *pool, struct pstk_error *err)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    const int rc = pthread_create(&pool->supervisor, NULL, supervise, pool);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pool->supervisor_runs = rc == 0;
    return rc == 0 ? 0 : pstk__fail_errno(err, rc, PSTK_STAGE_OPEN, "could not start a thread");
}

/* ---- open and close --------------------------------------------------------------------------
 */

static int open_pool(struct pstk__process_pool *pool,
                     const struct pstk__process_pool_config *config)
{
    pool->processes = calloc(config->n_processes, sizeof *pool->processes);
    pool->states = calloc(config->n_processes, sizeof *pool->states);
    pool->free = calloc(config->n_processes, sizeof *pool->free);
    if (!pool->processes || !pool->states || !pool->free)
        return -ENOMEM;
    pool->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (pool->wake < 0)
        return -errno;
    for (uint32_t i = 0; i < config->n_processes; i++) {
        pool->n = i + 1;
        pool->states[i] = WANTED;
        pool->free[pool->n_free++] = i;
        const int rc =
            pstk__worker_process_open(&pool->processes[i], config->data_size, config->row_size);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int open_program(struct pstk__process_program *program,
                        const struct pstk_processes *processes)
{
    program->arguments = texts_copy(processes->arguments);
    program->environment = processes->environment ? texts_copy(processes->environment) : NULL;
    if (!program->arguments || (processes->environment && !program->environment))
        return -ENOMEM;
    program->job = pstk__process_file("penstock-job", processes->job, processes->job_size);
    return program->job < 0 ? program->job : 0;
}

int pstk__process_pool_open(struct pstk__process_pool **out,
                            const struct pstk__process_pool_config *config, struct pstk_error *err)
{
    *out = NULL;
    struct pstk__process_pool *pool = calloc(1, sizeof *pool);
    if (!pool)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for processes");
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->freed, NULL);
    pthread_cond_init(&pool->given, NULL);
    pthread_cond_init(&pool->changed, NULL);
    pstk_error_init(&pool->broken, sizeof pool->broken);
    pool->program.job = pool->wake = -1;
    snprintf(pool->whose, sizeof pool->whose, "%s", config->whose);
    pool->start_timeout_ns = config->processes->start_timeout_ns;
    pool->data_size = config->data_size;
    pool->row_size = config->row_size;
    int rc = open_program(&pool->program, config->processes);
    if (rc == 0)
        rc = open_pool(pool, config);
    if (rc < 0)
        rc =
            pstk__fail_errno(err, -rc, PSTK_STAGE_OPEN, "no memory or files for %u processes of %s",
                             config->n_processes, config->whose);
    else
        rc = start_supervisor(pool, err);
    if (rc < 0) {
        pstk__process_pool_close(pool);
        return rc;
    }
    *out = pool;
    return 0;
}

void pstk__process_pool_stop(struct pstk__process_pool *pool)
{
    const uint64_t one = 1;
    if (!pool)
        return;
    pthread_mutex_lock(&pool->lock);
    pool->closing = 1;
    wake_all(pool);
    pthread_mutex_unlock(&pool->lock);
    if (pool->wake >= 0 && write(pool->wake, &one, sizeof one) != sizeof one)
        return; /* it is readable already */
}

void pstk__process_pool_close(struct pstk__process_pool *pool)
{
    if (!pool)
        return;
    pstk__process_pool_stop(pool);
    if (pool->supervisor_runs)
        pthread_join(pool->supervisor, NULL);
    for (uint32_t i = 0; i < pool->n; i++)
        pstk__worker_process_close(&pool->processes[i]);
    if (pool->wake >= 0)
        close(pool->wake);
    if (pool->program.job >= 0)
        close(pool->program.job);
    texts_free(pool->program.arguments);
    texts_free(pool->program.environment);
    free(pool->processes);
    free(pool->states);
    free(pool->free);
    pthread_cond_destroy(&pool->freed);
    pthread_cond_destroy(&pool->given);
    pthread_cond_destroy(&pool->changed);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}

uint64_t pstk__process_pool_memory(const struct pstk__process_pool *pool)
{
    return pool->n * (pool->processes[0].data_pages + pool->processes[0].row_pages);
}

/* ---- rows ------------------------------------------------------------------------------------
 */

static int canceled(struct pstk_error *err)
{
    return pstk__fail(err, PSTK_ECANCELED, PSTK_STAGE_OPEN, "the loader is being closed");
}

/* Wait for a free process, or the end. The caller holds the lock. Requests for rows leave one
 * process free for each waiting batch, which is older: otherwise a batch could wait long and delay
 * all later batches. */
static void wait_free(struct pstk__process_pool *pool, uint32_t is_batch)
{
    pool->n_batches += is_batch;
    while (!pool->closing && pool->broken.code == 0 &&
           pool->n_free <= (is_batch ? 0 : pool->n_batches))
        pthread_cond_wait(is_batch ? &pool->given : &pool->freed, &pool->lock);
    pool->n_batches -= is_batch;
}

/* Take a free process, and wait until it is started. The caller holds the process until `give`. */
static int take(struct pstk__process_pool *pool, uint32_t is_batch, uint32_t *i,
                struct pstk_error *err)
{
    int rc = 0;
    pthread_mutex_lock(&pool->lock);
    wait_free(pool, is_batch);
    if (pool->n_free > 0)
        *i = pool->free[--pool->n_free];
    else
        *i = pool->n; /* closing or broken */
    while (!pool->closing && pool->broken.code == 0 && pool->states[*i] == WANTED)
        pthread_cond_wait(&pool->changed, &pool->lock);
    if (pool->closing)
        rc = canceled(err);
    else if (pool->broken.code < 0)
        rc = pstk__fail_copy(err, &pool->broken);
    if (rc < 0 && *i < pool->n)
        pool->free[pool->n_free++] = *i; /* nobody waits for it: all other requests fail, too */
    pthread_mutex_unlock(&pool->lock);
    return rc;
}

/* Give a process back. If it has ended, the supervisor starts another in its place. */
static void give(struct pstk__process_pool *pool, uint32_t i)
{
    const int has_process = pool->processes[i].pid != 0;
    pthread_mutex_lock(&pool->lock);
    pool->states[i] = has_process ? STARTED : WANTED;
    pool->free[pool->n_free++] = i;
    pthread_cond_signal(pool->n_free <= pool->n_batches ? &pool->given : &pool->freed);
    if (!has_process)
        pthread_cond_broadcast(&pool->changed);
    pthread_mutex_unlock(&pool->lock);
}

/* Record that a process did not become ready. The pool is then broken, because no other process
 * would become ready. */
static int not_ready(struct pstk__process_pool *pool, struct pstk__worker_process *process,
                     enum pstk__worker_process_result result, struct pstk_error *err)
{
    char how[128];
    if (result == PSTK__WORKER_PROCESS_CANCELED)
        return canceled(err);
    pstk__worker_process_end(process, result == PSTK__WORKER_PROCESS_LATE ? 0 : END_MS, how);
    pthread_mutex_lock(&pool->lock);
    if (pool->broken.code == 0 && result == PSTK__WORKER_PROCESS_REFUSED)
        pstk__fail(&pool->broken, PSTK_ECANCELED, PSTK_STAGE_OPEN, "%s: a process cannot work: %s",
                   pool->whose, process->answer.text);
    else if (pool->broken.code == 0 && result == PSTK__WORKER_PROCESS_LATE)
        pstk__fail(&pool->broken, PSTK_ECANCELED, PSTK_STAGE_OPEN,
                   "%s: a process was not ready %.3g s after its start, the limit "
                   "(start_timeout), and was killed",
                   pool->whose, (double)pool->start_timeout_ns / 1e9);
    else if (pool->broken.code == 0)
        pstk__fail(&pool->broken, PSTK_ECANCELED, PSTK_STAGE_OPEN,
                   "%s: a process %s before it was ready", pool->whose, how);
    pstk__fail_copy(err, &pool->broken);
    wake_all(pool);
    pthread_mutex_unlock(&pool->lock);
    return PSTK_ECANCELED;
}

/* Report why there are no rows, and end the process unless it has answered or the pool is being
 * closed. */
static int no_rows(struct pstk__worker_process *process,
                   const struct pstk__process_request *request,
                   enum pstk__worker_process_result result, struct pstk_error *err)
{
    char how[128];
    if (result == PSTK__WORKER_PROCESS_CANCELED)
        return canceled(err);
    if (result == PSTK__WORKER_PROCESS_REFUSED)
        return pstk__fail(err, PSTK_ECANCELED, PSTK_STAGE_DECODE, "%s", process->answer.text);
    pstk__worker_process_end(process, result == PSTK__WORKER_PROCESS_LATE ? 0 : END_MS, how);
    if (result == PSTK__WORKER_PROCESS_LATE)
        return pstk__fail(err, PSTK_ECANCELED, PSTK_STAGE_DECODE,
                          "the process took longer than the timeout of %.3g s, and was killed",
                          (double)request->timeout_ns / 1e9);
    return pstk__fail(err, PSTK_ECANCELED, PSTK_STAGE_DECODE,
                      "the process %s while it made the row%s", how, request->is_batch ? "s" : "");
}

/* Send a request to a process. *sent 0: the process had ended before; the result is ECANCELED. */
static int ask(struct pstk__process_pool *pool, struct pstk__worker_process *process,
               struct pstk__process_request *request, int *sent, struct pstk_error *err)
{
    *sent = 1;
    enum pstk__worker_process_result result =
        pstk__worker_process_ready(process, pool->start_timeout_ns, pool->wake);
    if (result != PSTK__WORKER_PROCESS_DONE)
        return not_ready(pool, process, result, err);
    result = pstk__worker_process_ask(process, &request->head, request->data, request->rows,
                                      request->timeout_ns, pool->wake, sent);
    return result == PSTK__WORKER_PROCESS_DONE ? 0 : no_rows(process, request, result, err);
}

/* If a process ended while it was idle, the request is sent to a second one: the sample is not at
 * fault. */
int pstk__process_pool_ask(struct pstk__process_pool *pool, struct pstk__process_request *request,
                           struct pstk_error *err)
{
    int rc, sent = 0;
    const uint64_t size = request->head.data_size;
    assert(request->head.row_size <= pool->row_size);
    if (size > pool->data_size)
        return pstk__fail(err, PSTK_EFBIG, PSTK_STAGE_DECODE,
                          "has %llu bytes; must have at most %llu", (unsigned long long)size,
                          (unsigned long long)pool->data_size);
    for (int tries = 0; tries < 2 && !sent; tries++) {
        uint32_t i;
        rc = take(pool, request->is_batch, &i, err);
        if (rc < 0)
            return rc;
        rc = ask(pool, &pool->processes[i], request, &sent, err);
        give(pool, i);
    }
    return rc;
}
