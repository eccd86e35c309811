/* SPDX-License-Identifier: Apache-2.0 */
#include "base/parallel_map.h"

#include "base/error.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLOT_BADS 32 /* findings that one slot holds */
#define MAX_THREADS 1024

static int canceled(const struct pstk__parallel_map *work, struct pstk_error *err)
{
    return pstk__fail(err, PSTK_ECANCELED, PSTK_STAGE_CONSUMER, "%s was stopped by its caller",
                      work->what);
}

static int no_memory(struct pstk_error *err)
{
    return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "out of memory");
}

static void join(const struct pstk__parallel_map *work, const void *result)
{
    if (work->join)
        work->join(work->user, result);
}

static int open_state(const struct pstk__parallel_map *work, void **state, struct pstk_error *err)
{
    if (work->open)
        return work->open(work->user, state, err);
    *state = work->user;
    return 0;
}

static void close_state(const struct pstk__parallel_map *work, void *state)
{
    if (work->open)
        work->close(state);
}

/* ---- one thread ------------------------------------------------------------------------------ */

static int run_alone(const struct pstk__parallel_map *work, struct pstk_error *err)
{
    const struct pstk__map_sink sink = {
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

/* The findings of one job, on their way to the caller. map.lock guards all members, except that
 * only the job's thread writes error and the job's result, until done. */
struct slot {
    struct pstk_error bads[SLOT_BADS];
    uint32_t n_bads;
    int done;
    int result; /* return value of run */
    struct pstk_error error;
};

struct map {
    const struct pstk__parallel_map *work;
    struct slot *slots;      /* owned; job i uses slots[i % n_slots] */
    unsigned char *results;  /* owned; one for each slot */
    struct pstk_error *copy; /* owned; SLOT_BADS findings, used by the caller's thread */
    struct member *members;  /* owned */
    uint32_t n_slots, n_members;
    uint64_t turn;       /* job being reported; guarded by lock */
    uint64_t next;       /* job to be taken; turn <= next <= turn + n_slots; guarded by lock */
    uint64_t n_progress; /* units done and not yet reported; guarded by lock */
    int has_progress;    /* 1: a job reported progress, perhaps of 0 units; guarded by lock */
    int stop;            /* 1: the map ends early; guarded by lock */
    pthread_mutex_t lock;
    pthread_cond_t room; /* turn, stop changed, or a slot's bads were taken */
    pthread_cond_t news; /* a slot or n_progress changed */
};

struct member {
    struct map *map;
    struct slot *slot; /* slot of the current job */
    void *state;       /* owned */
    pthread_t thread;
    int running;
};

/* Put a finding into the slot of the thread's job. On a thread of the map, without the lock. */
static int queue_bad(void *user, const struct pstk_error *bad)
{
    struct member *member = user;
    struct map *map = member->map;
    pthread_mutex_lock(&map->lock);
    while (member->slot->n_bads == SLOT_BADS && !map->stop)
        pthread_cond_wait(&map->room, &map->lock);
    const int stop = map->stop;
    if (!stop)
        member->slot->bads[member->slot->n_bads++] = *bad;
    pthread_cond_signal(&map->news);
    pthread_mutex_unlock(&map->lock);
    return stop;
}

static int queue_progress(void *user, uint64_t n)
{
    struct member *member = user;
    struct map *map = member->map;
    pthread_mutex_lock(&map->lock);
    const int stop = map->stop;
    map->n_progress += n;
    map->has_progress = 1;
    pthread_cond_signal(&map->news);
    pthread_mutex_unlock(&map->lock);
    return stop;
}

static void *result_of(struct map *map, uint64_t job)
{
    return map->results + job % map->n_slots * map->work->result_size;
}

static void *run_member(void *arg)
{
    struct member *member = arg;
    struct map *map = member->map;
    const struct pstk__parallel_map *work = map->work;
    const struct pstk__map_sink sink = {
        .bad = queue_bad, .progress = queue_progress, .user = member};
    pthread_mutex_lock(&map->lock);
    for (;;) {
        while (!map->stop && map->next < work->n_jobs && map->next - map->turn >= map->n_slots)
            pthread_cond_wait(&map->room, &map->lock);
        if (map->stop || map->next == work->n_jobs)
            break;
        const uint64_t job = map->next++;
        struct slot *slot = member->slot = &map->slots[job % map->n_slots];
        pthread_mutex_unlock(&map->lock);
        pstk_error_init(&slot->error, sizeof slot->error);
        const int r = work->run(member->state, job, &sink, result_of(map, job), &slot->error);
        pthread_mutex_lock(&map->lock);
        slot->result = r;
        slot->done = 1;
        pthread_cond_signal(&map->news);
    }
    pthread_mutex_unlock(&map->lock);
    return NULL;
}

/* Report the findings that wait in a slot. On the caller's thread, with the lock; callbacks run
 * without it. 1: the caller stopped the map. */
static int report_bads(struct map *map, struct slot *slot)
{
    const uint32_t n = slot->n_bads;
    int stop = 0;
    memcpy(map->copy, slot->bads, n * sizeof *map->copy);
    slot->n_bads = 0;
    pthread_cond_broadcast(&map->room);
    pthread_mutex_unlock(&map->lock);
    for (uint32_t i = 0; !stop && i < n; i++)
        stop = map->work->bad(map->work->user, &map->copy[i]) != 0;
    pthread_mutex_lock(&map->lock);
    return stop;
}

/* Report the progress since the last report, as report_bads reports findings. */
static int report_progress(struct map *map)
{
    const uint64_t n = map->n_progress;
    map->n_progress = 0;
    map->has_progress = 0;
    pthread_mutex_unlock(&map->lock);
    const int stop = map->work->progress(map->work->user, n) != 0;
    pthread_mutex_lock(&map->lock);
    return stop;
}

/* Report all of one job, with the lock. 1: its slot is done; 0: the caller stopped the map. */
static int report_job(struct map *map, struct slot *slot)
{
    for (;;) {
        int stop = 0;
        if (slot->n_bads)
            stop = report_bads(map, slot);
        else if (map->has_progress)
            stop = report_progress(map);
        else if (slot->done)
            return 1;
        else
            pthread_cond_wait(&map->news, &map->lock);
        if (stop)
            return 0;
    }
}

static int report(struct map *map, struct pstk_error *err)
{
    int r = 0;
    pthread_mutex_lock(&map->lock);
    for (uint64_t i = 0; r == 0 && i < map->work->n_jobs; i++) {
        struct slot *slot = &map->slots[i % map->n_slots];
        if (!report_job(map, slot)) {
            r = canceled(map->work, err);
            break; /* its job may be done, or yet be */
        }
        if (slot->result < 0)
            r = pstk__fail_copy(err, &slot->error);
        else
            join(map->work, result_of(map, i));
        slot->done = 0;
        map->turn++;
        pthread_cond_broadcast(&map->room);
    }
    pthread_mutex_unlock(&map->lock);
    return r;
}

/* The library owns these threads: none of them may handle a signal of the program. */
static int start_members(struct map *map, struct pstk_error *err)
{
    sigset_t all, old;
    char name[16];
    int r = 0, native = 0;
    snprintf(name, sizeof name, "pstk-%s", map->work->what);
    for (uint32_t i = 0; r == 0 && i < map->n_members; i++) {
        map->members[i].map = map;
        r = open_state(map->work, &map->members[i].state, err);
    }
    sigfillset(&all);
    if (r == 0 && pthread_sigmask(SIG_SETMASK, &all, &old) != 0)
        r = pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, "signals cannot be masked");
    if (r < 0)
        return r;
    for (uint32_t i = 0; native == 0 && i < map->n_members; i++) {
        struct member *member = &map->members[i];
        native = pthread_create(&member->thread, NULL, run_member, member);
        member->running = native == 0;
        if (native == 0)
            (void)pthread_setname_np(member->thread, name); /* for people only */
    }
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL); /* cannot fail: it succeeded above */
    return native ? pstk__fail_errno(err, native, PSTK_STAGE_OPEN,
                                     "cannot start a %s thread; lower n_threads", map->work->what)
                  : 0;
}

static void stop_members(struct map *map)
{
    pthread_mutex_lock(&map->lock);
    map->stop = 1;
    pthread_cond_broadcast(&map->room);
    pthread_mutex_unlock(&map->lock);
    for (uint32_t i = 0; i < map->n_members; i++) {
        if (map->members[i].running)
            pthread_join(map->members[i].thread, NULL);
        close_state(map->work, map->members[i].state);
    }
}

/* Drop results of jobs after the one that ended the map. No thread of the map runs any more. */
static void drop_results(struct map *map)
{
    for (uint32_t i = 0; map->work->drop && i < map->n_slots; i++)
        if (map->slots[i].done && map->slots[i].result == 0)
            map->work->drop(result_of(map, i));
}

static int run_map(struct map *map, struct pstk_error *err)
{
    map->members = calloc(map->n_members, sizeof *map->members);
    map->slots = calloc(map->n_slots, sizeof *map->slots);
    map->results = malloc(map->n_slots * map->work->result_size + 1);
    map->copy = malloc(SLOT_BADS * sizeof *map->copy);
    int r = 0;
    if (!map->members || !map->slots || !map->results || !map->copy)
        r = no_memory(err);
    if (r == 0) {
        r = start_members(map, err);
        if (r == 0)
            r = report(map, err);
        stop_members(map);
        drop_results(map);
    }
    free(map->copy);
    free(map->results);
    free(map->slots);
    free(map->members);
    return r;
}

/* Append advice to an error of memory: each thread has memory of its own, so fewer threads may have
 * enough. */
static int advise(struct pstk_error *err, int r)
{
    if (r == PSTK_ENOMEM && err) {
        const size_t n = strlen(err->message);
        snprintf(err->message + n, sizeof err->message - n, "; lower n_threads");
    }
    return r;
}

static int run_together(const struct pstk__parallel_map *work, uint32_t n_threads,
                        struct pstk_error *err)
{
    struct map map = {.work = work, .n_members = n_threads, .n_slots = 2 * n_threads};
    if (pthread_mutex_init(&map.lock, NULL) != 0)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "cannot make a lock");
    const int has_room = pthread_cond_init(&map.room, NULL) == 0;
    const int has_news = pthread_cond_init(&map.news, NULL) == 0;
    const int r = has_room && has_news ? advise(err, run_map(&map, err))
                                       : pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN,
                                                    "cannot make a condition variable");
    if (has_news)
        pthread_cond_destroy(&map.news);
    if (has_room)
        pthread_cond_destroy(&map.room);
    pthread_mutex_destroy(&map.lock);
    return r;
}

int pstk__parallel_map_run(const struct pstk__parallel_map *work, struct pstk_error *err)
{
    uint64_t n = work->n_threads < MAX_THREADS ? work->n_threads : MAX_THREADS;
    n = n < work->n_jobs ? n : work->n_jobs;
    return n <= 1 ? run_alone(work, err) : run_together(work, (uint32_t)n, err);
}
