/* SPDX-License-Identifier: Apache-2.0 */
#include "base/crew.h"

#include "base/error.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLOT_BADS 32 /* findings that wait in one slot */
#define MAX_THREADS 1024

static int canceled(const struct pstk__crew_work *work, struct pstk_error *err)
{
    return pstk__fail(err, PSTK_ECANCELED, PSTK_STAGE_CONSUMER, "%s was stopped by its caller",
                      work->what);
}

static int no_memory(struct pstk_error *err)
{
    return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "out of memory");
}

static void join(const struct pstk__crew_work *work, const void *result)
{
    if (work->join)
        work->join(work->user, result);
}

static int open_state(const struct pstk__crew_work *work, void **state, struct pstk_error *err)
{
    if (work->open)
        return work->open(work->user, state, err);
    *state = work->user;
    return 0;
}

static void close_state(const struct pstk__crew_work *work, void *state)
{
    if (work->open)
        work->close(state);
}

/* ---- one thread ------------------------------------------------------------------------------ */

static int run_alone(const struct pstk__crew_work *work, struct pstk_error *err)
{
    const struct pstk__crew_sink sink = {
        .bad = work->bad, .progress = work->progress, .user = work->user};
    void *state = NULL, *result = malloc(work->result_size + 1);
    int r = result ? open_state(work, &state, err) : no_memory(err);
    for (uint64_t i = 0; r == 0 && i < work->n_jobs; i++) {
        r = work->run(state, i, &sink, result, err);
        if (r == 0)
            join(work, result);
    }
    close_state(work, state);
    free(result);
    return r == PSTK_ECANCELED ? canceled(work, err) : r;
}

/* ---- several threads ------------------------------------------------------------------------- */

/* The findings of one job, on their way to the caller. crew.lock guards all of it; the thread of
 * the job alone writes error and the job's result, until done. */
struct slot {
    struct pstk_error bads[SLOT_BADS];
    uint32_t n_bads;
    int done;
    int result; /* of run */
    struct pstk_error error;
};

struct crew {
    const struct pstk__crew_work *work;
    struct slot *slots;      /* owned; job i uses slots[i % n_slots] */
    unsigned char *results;  /* owned; of each slot */
    struct pstk_error *copy; /* owned; SLOT_BADS of them, of the caller's thread */
    struct member *members;  /* owned */
    uint32_t n_slots, n_members;
    uint64_t turn;       /* job being reported; guarded by lock */
    uint64_t next;       /* job to be taken; turn <= next <= turn + n_slots; guarded by lock */
    uint64_t n_progress; /* done and not yet reported; guarded by lock */
    int has_progress;    /* 1: a job came some way, if not by one; guarded by lock */
    int stop;            /* guarded by lock */
    pthread_mutex_t lock;
    pthread_cond_t room; /* turn, stop changed, or a slot's bads were taken */
    pthread_cond_t news; /* a slot or n_progress changed */
};

struct member {
    struct crew *crew;
    struct slot *slot; /* of the job at hand */
    void *state;       /* owned */
    pthread_t thread;
    int running;
};

/* The sink of a member's thread; without the lock. */
static int queue_bad(void *user, const struct pstk_error *bad)
{
    struct member *member = user;
    struct crew *crew = member->crew;
    pthread_mutex_lock(&crew->lock);
    while (member->slot->n_bads == SLOT_BADS && !crew->stop)
        pthread_cond_wait(&crew->room, &crew->lock);
    const int stop = crew->stop;
    if (!stop)
        member->slot->bads[member->slot->n_bads++] = *bad;
    pthread_cond_signal(&crew->news);
    pthread_mutex_unlock(&crew->lock);
    return stop;
}

static int queue_progress(void *user, uint64_t n)
{
    struct member *member = user;
    struct crew *crew = member->crew;
    pthread_mutex_lock(&crew->lock);
    const int stop = crew->stop;
    crew->n_progress += n;
    crew->has_progress = 1;
    pthread_cond_signal(&crew->news);
    pthread_mutex_unlock(&crew->lock);
    return stop;
}

static void *result_of(struct crew *crew, uint64_t job)
{
    return crew->results + job % crew->n_slots * crew->work->result_size;
}

static void *run_member(void *arg)
{
    struct member *member = arg;
    struct crew *crew = member->crew;
    const struct pstk__crew_work *work = crew->work;
    const struct pstk__crew_sink sink = {
        .bad = queue_bad, .progress = queue_progress, .user = member};
    pthread_mutex_lock(&crew->lock);
    for (;;) {
        while (!crew->stop && crew->next < work->n_jobs && crew->next - crew->turn >= crew->n_slots)
            pthread_cond_wait(&crew->room, &crew->lock);
        if (crew->stop || crew->next == work->n_jobs)
            break;
        const uint64_t job = crew->next++;
        struct slot *slot = member->slot = &crew->slots[job % crew->n_slots];
        pthread_mutex_unlock(&crew->lock);
        pstk_error_init(&slot->error, sizeof slot->error);
        const int r = work->run(member->state, job, &sink, result_of(crew, job), &slot->error);
        pthread_mutex_lock(&crew->lock);
        slot->result = r;
        slot->done = 1;
        pthread_cond_signal(&crew->news);
    }
    pthread_mutex_unlock(&crew->lock);
    return NULL;
}

/* Hand on the findings that wait in a slot. On the caller's thread, with the lock; callbacks run
 * without it. 1: the caller said stop. */
static int report_bads(struct crew *crew, struct slot *slot)
{
    const uint32_t n = slot->n_bads;
    int stop = 0;
    memcpy(crew->copy, slot->bads, n * sizeof *crew->copy);
    slot->n_bads = 0;
    pthread_cond_broadcast(&crew->room);
    pthread_mutex_unlock(&crew->lock);
    for (uint32_t i = 0; !stop && i < n; i++)
        stop = crew->work->bad(crew->work->user, &crew->copy[i]) != 0;
    pthread_mutex_lock(&crew->lock);
    return stop;
}

/* As report_bads. */
static int report_progress(struct crew *crew)
{
    const uint64_t n = crew->n_progress;
    crew->n_progress = 0;
    crew->has_progress = 0;
    pthread_mutex_unlock(&crew->lock);
    const int stop = crew->work->progress(crew->work->user, n) != 0;
    pthread_mutex_lock(&crew->lock);
    return stop;
}

/* Report one job to its end, with the lock. 1: its slot is done; 0: the caller said stop. */
static int report_job(struct crew *crew, struct slot *slot)
{
    for (;;) {
        int stop = 0;
        if (slot->n_bads)
            stop = report_bads(crew, slot);
        else if (crew->has_progress)
            stop = report_progress(crew);
        else if (slot->done)
            return 1;
        else
            pthread_cond_wait(&crew->news, &crew->lock);
        if (stop)
            return 0;
    }
}

static int report(struct crew *crew, struct pstk_error *err)
{
    int r = 0;
    pthread_mutex_lock(&crew->lock);
    for (uint64_t i = 0; r == 0 && i < crew->work->n_jobs; i++) {
        struct slot *slot = &crew->slots[i % crew->n_slots];
        if (!report_job(crew, slot)) {
            r = canceled(crew->work, err);
            break; /* its job may be done, or yet be */
        }
        if (slot->result < 0)
            r = pstk__fail_copy(err, &slot->error);
        else
            join(crew->work, result_of(crew, i));
        slot->done = 0;
        crew->turn++;
        pthread_cond_broadcast(&crew->room);
    }
    pthread_mutex_unlock(&crew->lock);
    return r;
}

/* The threads are the library's: a signal of the program must not be handled in one of them. */
static int start_members(struct crew *crew, struct pstk_error *err)
{
    sigset_t all, old;
    char name[16];
    int r = 0, native = 0;
    snprintf(name, sizeof name, "pstk-%s", crew->work->what);
    for (uint32_t i = 0; r == 0 && i < crew->n_members; i++) {
        crew->members[i].crew = crew;
        r = open_state(crew->work, &crew->members[i].state, err);
    }
    sigfillset(&all);
    if (r == 0 && pthread_sigmask(SIG_SETMASK, &all, &old) != 0)
        r = pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, "signals cannot be masked");
    if (r < 0)
        return r;
    for (uint32_t i = 0; native == 0 && i < crew->n_members; i++) {
        struct member *member = &crew->members[i];
        native = pthread_create(&member->thread, NULL, run_member, member);
        member->running = native == 0;
        if (native == 0)
            (void)pthread_setname_np(member->thread, name); /* for people only */
    }
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL); /* cannot fail: it succeeded above */
    return native ? pstk__fail_errno(err, native, PSTK_STAGE_OPEN,
                                     "cannot start a %s thread; lower n_threads", crew->work->what)
                  : 0;
}

static void stop_members(struct crew *crew)
{
    pthread_mutex_lock(&crew->lock);
    crew->stop = 1;
    pthread_cond_broadcast(&crew->room);
    pthread_mutex_unlock(&crew->lock);
    for (uint32_t i = 0; i < crew->n_members; i++) {
        if (crew->members[i].running)
            pthread_join(crew->members[i].thread, NULL);
        close_state(crew->work, crew->members[i].state);
    }
}

/* Jobs may have been done after the one that ended the work. No member runs any more. */
static void drop_results(struct crew *crew)
{
    for (uint32_t i = 0; crew->work->drop && i < crew->n_slots; i++)
        if (crew->slots[i].done && crew->slots[i].result == 0)
            crew->work->drop(result_of(crew, i));
}

static int run_crew(struct crew *crew, struct pstk_error *err)
{
    crew->members = calloc(crew->n_members, sizeof *crew->members);
    crew->slots = calloc(crew->n_slots, sizeof *crew->slots);
    crew->results = malloc(crew->n_slots * crew->work->result_size + 1);
    crew->copy = malloc(SLOT_BADS * sizeof *crew->copy);
    int r = 0;
    if (!crew->members || !crew->slots || !crew->results || !crew->copy)
        r = no_memory(err);
    if (r == 0) {
        r = start_members(crew, err);
        if (r == 0)
            r = report(crew, err);
        stop_members(crew);
        drop_results(crew);
    }
    free(crew->copy);
    free(crew->results);
    free(crew->slots);
    free(crew->members);
    return r;
}

/* Each thread has memory of its own: what one of several lacks may be enough for fewer. */
static int advise(struct pstk_error *err, int r)
{
    if (r == PSTK_ENOMEM && err) {
        const size_t n = strlen(err->message);
        snprintf(err->message + n, sizeof err->message - n, "; lower n_threads");
    }
    return r;
}

static int run_together(const struct pstk__crew_work *work, uint32_t n_threads,
                        struct pstk_error *err)
{
    struct crew crew = {.work = work, .n_members = n_threads, .n_slots = 2 * n_threads};
    if (pthread_mutex_init(&crew.lock, NULL) != 0)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "cannot make a lock");
    const int has_room = pthread_cond_init(&crew.room, NULL) == 0;
    const int has_news = pthread_cond_init(&crew.news, NULL) == 0;
    const int r = has_room && has_news ? advise(err, run_crew(&crew, err))
                                       : pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN,
                                                    "cannot make a condition variable");
    if (has_news)
        pthread_cond_destroy(&crew.news);
    if (has_room)
        pthread_cond_destroy(&crew.room);
    pthread_mutex_destroy(&crew.lock);
    return r;
}

int pstk__crew_run(const struct pstk__crew_work *work, struct pstk_error *err)
{
    uint64_t n = work->n_threads < MAX_THREADS ? work->n_threads : MAX_THREADS;
    n = n < work->n_jobs ? n : work->n_jobs;
    return n <= 1 ? run_alone(work, err) : run_together(work, (uint32_t)n, err);
}
