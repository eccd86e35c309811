/* SPDX-License-Identifier: Apache-2.0 */
#include "process/desks.h"

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

#define END_MS 2000 /* patience with a process whose socket has ended */
#define MAX_PROCESSES 4096u
#define MAX_TEXTS 65536u /* arguments, or variables */
#define WHOSE_SIZE 201u

enum state {
    WANTED = 1, /* the keeper shall start a process */
    STARTED,    /* the holder of the desk may use it */
};

/* Members after `lock` are under it, except that the holder of a desk has what its struct holds. */
struct pstk__desks {
    struct pstk__desk_program program; /* owned, with its texts */
    uint64_t start_timeout_ns;
    uint64_t data_size, row_size;
    char whose[WHOSE_SIZE];
    uint32_t n;
    struct pstk__desk *desks; /* n, owned */
    int wake;                 /* event file, owned: readable once closing; -1: none */
    pthread_t keeper;
    int keeper_runs; /* it was started, and not joined */

    pthread_mutex_t lock;
    pthread_cond_t freed;   /* a desk: one waiter may go on */
    pthread_cond_t given;   /* a desk, to those who ask for batches */
    pthread_cond_t changed; /* a state, closing or broken */
    enum state *states;     /* n, owned */
    uint32_t *free;         /* stack of n_free desks, owned */
    uint32_t n_free;
    uint32_t n_batches; /* that wait for a desk: as many of the free ones are theirs */
    int closing;
    struct pstk_error broken; /* code < 0: no process can be started, and why */
};

/* ---- the program ------------------------------------------------------------------------------
 */

static void texts_free(char *const *texts)
{
    free((void *)(uintptr_t)texts);
}

/* Copy a list of texts that ends with NULL to one block of memory. NULL: no memory. */
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

int pstk__desks_check(const struct pstk_processes *processes, uint32_t i, struct pstk_error *err)
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

/* ---- the keeper -------------------------------------------------------------------------------
 */

/* With the lock: a desk in this state, or n. */
static uint32_t find(const struct pstk__desks *desks, enum state state)
{
    uint32_t i = 0;
    while (i < desks->n && desks->states[i] != state)
        i++;
    return i;
}

/* With the lock: let all that wait look again. */
static void wake_all(struct pstk__desks *desks)
{
    pthread_cond_broadcast(&desks->changed);
    pthread_cond_broadcast(&desks->freed);
    pthread_cond_broadcast(&desks->given);
}

/* Start a process, without the lock: nobody else touches a desk that is WANTED. */
static void start(struct pstk__desks *desks, uint32_t i)
{
    pthread_mutex_unlock(&desks->lock);
    const int rc = pstk__desk_start(&desks->desks[i], &desks->program);
    pthread_mutex_lock(&desks->lock);
    desks->states[i] = STARTED;
    if (rc < 0) {
        pstk__fail_errno(&desks->broken, -rc, PSTK_STAGE_OPEN,
                         "%s: a process of %s could not be started", desks->whose,
                         desks->program.arguments[0]);
        desks->broken.code = PSTK_ECANCELED;
    }
    wake_all(desks);
}

static void *keep(void *user)
{
    struct pstk__desks *desks = user;
    pthread_setname_np(pthread_self(), "pstk-desks");
    pthread_mutex_lock(&desks->lock);
    while (!desks->closing) {
        const uint32_t i = find(desks, WANTED);
        if (i < desks->n && desks->broken.code == 0)
            start(desks, i);
        else
            pthread_cond_wait(&desks->changed, &desks->lock);
    }
    pthread_mutex_unlock(&desks->lock);
    return NULL;
}

/* It takes no signals: they are for the program's own threads. */
static int start_keeper(struct pstk__desks *desks, struct pstk_error *err)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    const int rc = pthread_create(&desks->keeper, NULL, keep, desks);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    desks->keeper_runs = rc == 0;
    return rc == 0 ? 0 : pstk__fail_errno(err, rc, PSTK_STAGE_OPEN, "could not start a thread");
}

/* ---- open and close --------------------------------------------------------------------------
 */

static int open_desks(struct pstk__desks *desks, const struct pstk__desks_config *config)
{
    desks->desks = calloc(config->n_processes, sizeof *desks->desks);
    desks->states = calloc(config->n_processes, sizeof *desks->states);
    desks->free = calloc(config->n_processes, sizeof *desks->free);
    if (!desks->desks || !desks->states || !desks->free)
        return -ENOMEM;
    desks->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (desks->wake < 0)
        return -errno;
    for (uint32_t i = 0; i < config->n_processes; i++) {
        desks->n = i + 1;
        desks->states[i] = WANTED;
        desks->free[desks->n_free++] = i;
        const int rc = pstk__desk_open(&desks->desks[i], config->data_size, config->row_size);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int open_program(struct pstk__desk_program *program, const struct pstk_processes *processes)
{
    program->arguments = texts_copy(processes->arguments);
    program->environment = processes->environment ? texts_copy(processes->environment) : NULL;
    if (!program->arguments || (processes->environment && !program->environment))
        return -ENOMEM;
    program->job = pstk__desk_file("penstock-job", processes->job, processes->job_size);
    return program->job < 0 ? program->job : 0;
}

int pstk__desks_open(struct pstk__desks **out, const struct pstk__desks_config *config,
                     struct pstk_error *err)
{
    *out = NULL;
    struct pstk__desks *desks = calloc(1, sizeof *desks);
    if (!desks)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for processes");
    pthread_mutex_init(&desks->lock, NULL);
    pthread_cond_init(&desks->freed, NULL);
    pthread_cond_init(&desks->given, NULL);
    pthread_cond_init(&desks->changed, NULL);
    pstk_error_init(&desks->broken, sizeof desks->broken);
    desks->program.job = desks->wake = -1;
    snprintf(desks->whose, sizeof desks->whose, "%s", config->whose);
    desks->start_timeout_ns = config->processes->start_timeout_ns;
    desks->data_size = config->data_size;
    desks->row_size = config->row_size;
    int rc = open_program(&desks->program, config->processes);
    if (rc == 0)
        rc = open_desks(desks, config);
    if (rc < 0)
        rc =
            pstk__fail_errno(err, -rc, PSTK_STAGE_OPEN, "no memory or files for %u processes of %s",
                             config->n_processes, config->whose);
    else
        rc = start_keeper(desks, err);
    if (rc < 0) {
        pstk__desks_close(desks);
        return rc;
    }
    *out = desks;
    return 0;
}

void pstk__desks_stop(struct pstk__desks *desks)
{
    const uint64_t one = 1;
    if (!desks)
        return;
    pthread_mutex_lock(&desks->lock);
    desks->closing = 1;
    wake_all(desks);
    pthread_mutex_unlock(&desks->lock);
    if (desks->wake >= 0 && write(desks->wake, &one, sizeof one) != sizeof one)
        return; /* it is readable already */
}

void pstk__desks_close(struct pstk__desks *desks)
{
    if (!desks)
        return;
    pstk__desks_stop(desks);
    if (desks->keeper_runs)
        pthread_join(desks->keeper, NULL);
    for (uint32_t i = 0; i < desks->n; i++)
        pstk__desk_close(&desks->desks[i]);
    if (desks->wake >= 0)
        close(desks->wake);
    if (desks->program.job >= 0)
        close(desks->program.job);
    texts_free(desks->program.arguments);
    texts_free(desks->program.environment);
    free(desks->desks);
    free(desks->states);
    free(desks->free);
    pthread_cond_destroy(&desks->freed);
    pthread_cond_destroy(&desks->given);
    pthread_cond_destroy(&desks->changed);
    pthread_mutex_destroy(&desks->lock);
    free(desks);
}

uint64_t pstk__desks_memory(const struct pstk__desks *desks)
{
    return desks->n * (desks->desks[0].data_pages + desks->desks[0].row_pages);
}

/* ---- rows ------------------------------------------------------------------------------------
 */

static int canceled(struct pstk_error *err)
{
    return pstk__fail(err, PSTK_ECANCELED, PSTK_STAGE_OPEN, "the loader is being closed");
}

/* With the lock: wait for a free desk, or the end. Rows leave as many desks free as batches wait:
 * a batch that waited for luck would hold up all that follow. */
static void wait_free(struct pstk__desks *desks, uint32_t is_batch)
{
    desks->n_batches += is_batch;
    while (!desks->closing && desks->broken.code == 0 &&
           desks->n_free <= (is_batch ? 0 : desks->n_batches))
        pthread_cond_wait(is_batch ? &desks->given : &desks->freed, &desks->lock);
    desks->n_batches -= is_batch;
}

/* Take a desk with a process. The caller holds it until give. */
static int take(struct pstk__desks *desks, uint32_t is_batch, uint32_t *i, struct pstk_error *err)
{
    int rc = 0;
    pthread_mutex_lock(&desks->lock);
    wait_free(desks, is_batch);
    if (desks->n_free > 0)
        *i = desks->free[--desks->n_free];
    else
        *i = desks->n; /* closing or broken */
    while (!desks->closing && desks->broken.code == 0 && desks->states[*i] == WANTED)
        pthread_cond_wait(&desks->changed, &desks->lock);
    if (desks->closing)
        rc = canceled(err);
    else if (desks->broken.code < 0)
        rc = pstk__fail_copy(err, &desks->broken);
    if (rc < 0 && *i < desks->n)
        desks->free[desks->n_free++] = *i; /* the others fail, too: nobody waits for it */
    pthread_mutex_unlock(&desks->lock);
    return rc;
}

/* Give a desk back; another process is started if it has none. */
static void give(struct pstk__desks *desks, uint32_t i)
{
    const int has_process = desks->desks[i].pid != 0;
    pthread_mutex_lock(&desks->lock);
    desks->states[i] = has_process ? STARTED : WANTED;
    desks->free[desks->n_free++] = i;
    pthread_cond_signal(desks->n_free <= desks->n_batches ? &desks->given : &desks->freed);
    if (!has_process)
        pthread_cond_broadcast(&desks->changed);
    pthread_mutex_unlock(&desks->lock);
}

/* A process did not become ready: no other would. */
static int not_ready(struct pstk__desks *desks, struct pstk__desk *desk,
                     enum pstk__desk_result result, struct pstk_error *err)
{
    char how[128];
    if (result == PSTK__DESK_CANCELED)
        return canceled(err);
    pstk__desk_end(desk, result == PSTK__DESK_LATE ? 0 : END_MS, how);
    pthread_mutex_lock(&desks->lock);
    if (desks->broken.code == 0 && result == PSTK__DESK_REFUSED)
        pstk__fail(&desks->broken, PSTK_ECANCELED, PSTK_STAGE_OPEN, "%s: a process cannot work: %s",
                   desks->whose, desk->answer.text);
    else if (desks->broken.code == 0 && result == PSTK__DESK_LATE)
        pstk__fail(&desks->broken, PSTK_ECANCELED, PSTK_STAGE_OPEN,
                   "%s: a process was not ready %.3g s after its start, the limit "
                   "(start_timeout), and was killed",
                   desks->whose, (double)desks->start_timeout_ns / 1e9);
    else if (desks->broken.code == 0)
        pstk__fail(&desks->broken, PSTK_ECANCELED, PSTK_STAGE_OPEN,
                   "%s: a process %s before it was ready", desks->whose, how);
    pstk__fail_copy(err, &desks->broken);
    wake_all(desks);
    pthread_mutex_unlock(&desks->lock);
    return PSTK_ECANCELED;
}

/* Report why there are no rows. The process is ended unless it answered. */
static int no_rows(struct pstk__desk *desk, const struct pstk__errand *errand,
                   enum pstk__desk_result result, struct pstk_error *err)
{
    char how[128];
    if (result == PSTK__DESK_CANCELED)
        return canceled(err);
    if (result == PSTK__DESK_REFUSED)
        return pstk__fail(err, PSTK_ECANCELED, PSTK_STAGE_DECODE, "%s", desk->answer.text);
    pstk__desk_end(desk, result == PSTK__DESK_LATE ? 0 : END_MS, how);
    if (result == PSTK__DESK_LATE)
        return pstk__fail(err, PSTK_ECANCELED, PSTK_STAGE_DECODE,
                          "the process took longer than the timeout of %.3g s, and was killed",
                          (double)errand->timeout_ns / 1e9);
    return pstk__fail(err, PSTK_ECANCELED, PSTK_STAGE_DECODE,
                      "the process %s while it made the row%s", how, errand->is_batch ? "s" : "");
}

/* Ask a desk. *sent: 0, and the result is ECANCELED: the process had ended before. */
static int ask(struct pstk__desks *desks, struct pstk__desk *desk, struct pstk__errand *errand,
               int *sent, struct pstk_error *err)
{
    *sent = 1;
    enum pstk__desk_result result = pstk__desk_ready(desk, desks->start_timeout_ns, desks->wake);
    if (result != PSTK__DESK_DONE)
        return not_ready(desks, desk, result, err);
    result = pstk__desk_ask(desk, &errand->request, errand->data, errand->rows, errand->timeout_ns,
                            desks->wake, sent);
    return result == PSTK__DESK_DONE ? 0 : no_rows(desk, errand, result, err);
}

/* A process that ended while it was idle is no fault of the sample: the next one gets it. */
int pstk__desks_ask(struct pstk__desks *desks, struct pstk__errand *errand, struct pstk_error *err)
{
    int rc, sent = 0;
    const uint64_t size = errand->request.data_size;
    assert(errand->request.row_size <= desks->row_size);
    if (size > desks->data_size)
        return pstk__fail(err, PSTK_EFBIG, PSTK_STAGE_DECODE,
                          "has %llu bytes where %llu are the most", (unsigned long long)size,
                          (unsigned long long)desks->data_size);
    for (int tries = 0; tries < 2 && !sent; tries++) {
        uint32_t i;
        rc = take(desks, errand->is_batch, &i, err);
        if (rc < 0)
            return rc;
        rc = ask(desks, &desks->desks[i], errand, &sent, err);
        give(desks, i);
    }
    return rc;
}
