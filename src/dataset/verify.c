/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pstk_verify: the format's own verify, or, for a format without one, a read of every sample.
 * Threads take blocks of samples in order, at most two blocks a thread ahead of the block being
 * reported. A block keeps what its thread found. The caller's thread reports it in the order of the
 * samples, and only that thread calls back. With one thread, the caller's thread does both.
 */
#include "dataset/dataset.h"

#include "base/clock.h"
#include "base/error.h"
#include "record/field.h"
#include "record/value.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define TICK_NS 20000000u /* time between two reports of progress */

#define BLOCK 64 /* samples */
#define MAX_THREADS 1024

/* A block of samples, and the bad ones found in it. */
struct block {
    struct pstk_error bads[BLOCK];
    uint32_t n_bads;
    int result; /* 0, or why reading stopped before the end */
    struct pstk_error error;
    int done; /* with several threads, guarded by crew.lock */
};

struct verify {
    const struct pstk__verify_request *request;
    struct pstk_dataset *dataset; /* owned */
    uint64_t n_samples, n_blocks;
    uint64_t n_bad;
    uint64_t n_done;      /* samples reported as done */
    uint64_t reported_ns; /* time of the last report of progress */
};

/* A reader of blocks. tick: `n` more samples are done; returns 1 to stop. Called about every 20
 * ms. */
struct member {
    struct verify *verify;
    struct pstk__room room; /* owned; holds the largest sample */
    int (*tick)(struct member *member, uint64_t n);
    struct crew *crew; /* NULL: it reads alone */
    pthread_t thread;
    int running;
};

/* Compressed values do not come here: a format that has them has a verify of its own. */
static int refuse_memory(void *user, const struct pstk__record *record, uint32_t i,
                         struct pstk__field_memory *out, struct pstk_error *err)
{
    (void)user, (void)out;
    return pstk__record_fail(record, i, PSTK_ENOTSUP, PSTK_STAGE_RECORD, err,
                             "is stored in compressed form");
}

static int check_values(const struct pstk__record *record, struct pstk_error *err)
{
    const struct pstk__field_reading reading = {.max_pixels = UINT64_MAX, .memory = refuse_memory};
    for (uint32_t i = 0; i < record->n_fields; i++) {
        const uint8_t *plain;
        char text[160];
        const int rc = pstk__field_read(record, i, &reading, &plain, err);
        if (rc < 0)
            return rc;
        const char *wrong = pstk__value_check(&record->schema->fields[i], plain,
                                              record->fields[i].plain_size, text);
        if (wrong)
            return pstk__record_fail(record, i, PSTK_EBADMSG, PSTK_STAGE_RECORD, err, "%s", wrong);
    }
    return 0;
}

/* ---- a block: on the thread of its member ---------------------------------------------------- */

/* 0: the sample is right; 1: it is bad, *bad has the reason; < 0: the machine failed, or the data
 * set is gone. */
static int check_sample(struct member *member, uint64_t id, struct pstk_error *bad)
{
    struct pstk__record record;
    uint32_t shard;
    pstk_error_init(bad, sizeof *bad);
    int rc = pstk__dataset_read(member->verify->dataset, id, PSTK__ALL_FIELDS, &member->room,
                                &record, &shard, bad);
    if (rc == 0)
        rc = check_values(&record, bad);
    bad->sample_id = id;
    return rc == PSTK_EBADMSG || rc == PSTK_EIO ? 1 : rc;
}

static void check_block(struct member *member, uint64_t index, struct block *block)
{
    const uint64_t first = index * BLOCK, left = member->verify->n_samples - first;
    const uint64_t n = left < BLOCK ? left : BLOCK;
    uint64_t n_ticked = 0, ticked_ns = pstk__clock_ns();
    block->n_bads = 0;
    block->result = 0;
    for (uint64_t i = 0; i < n; i++) {
        struct pstk_error *bad = &block->bads[block->n_bads];
        const int rc = check_sample(member, first + i, bad);
        if (rc < 0) {
            pstk_error_init(&block->error, sizeof block->error);
            block->result = pstk__fail_copy(&block->error, bad);
            return;
        }
        block->n_bads += (uint32_t)rc;
        const uint64_t now = pstk__clock_ns();
        if (i + 1 < n && now - ticked_ns < TICK_NS)
            continue;
        ticked_ns = now;
        if (member->tick(member, i + 1 - n_ticked))
            block->result = PSTK_ECANCELED;
        n_ticked = i + 1;
        if (block->result < 0)
            return;
    }
}

static int open_room(struct member *member, struct pstk_error *err)
{
    const uint64_t size = pstk__dataset_source(member->verify->dataset)->limits.max_size;
    member->room.size = size;
    member->room.data = malloc(size ? size : 1);
    return member->room.data
               ? 0
               : pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN,
                            "no memory for a sample of %llu bytes%s", (unsigned long long)size,
                            member->crew ? "; use fewer threads" : "");
}

/* ---- reporting: on the caller's thread ------------------------------------------------------- */

/* Count `n` more samples as done; report progress at the end and about every 20 ms. 1: the caller
 * wants no more. */
static int report_progress(struct verify *verify, uint64_t n)
{
    const struct pstk__verify_request *verify_request = verify->request;
    const uint64_t now = pstk__clock_ns();
    verify->n_done += n;
    if (!verify_request->on_progress ||
        (verify->n_done < verify->n_samples && now - verify->reported_ns < TICK_NS))
        return 0;
    verify->reported_ns = now;
    return verify_request->on_progress(verify_request->user, verify->n_done, verify->n_samples);
}

static int canceled(struct pstk_error *err)
{
    return pstk__fail(err, PSTK_ECANCELED, PSTK_STAGE_CONSUMER, "verify was stopped by its caller");
}

/* Report a block that is done. A block that on_progress stopped is not reported. */
static int report_block(struct verify *verify, const struct block *block, struct pstk_error *err)
{
    const struct pstk__verify_request *verify_request = verify->request;
    if (block->result == PSTK_ECANCELED)
        return canceled(err);
    for (uint32_t i = 0; i < block->n_bads; i++) {
        verify->n_bad++;
        if (verify_request->on_bad && verify_request->on_bad(verify_request->user, &block->bads[i]))
            return canceled(err);
    }
    return block->result < 0 ? pstk__fail_copy(err, &block->error) : 0;
}

/* ---- one thread ------------------------------------------------------------------------------ */

static int tick_alone(struct member *member, uint64_t n)
{
    return report_progress(member->verify, n);
}

static int verify_alone(struct verify *verify, struct pstk_error *err)
{
    struct member member = {.verify = verify, .tick = tick_alone};
    struct block *block = malloc(sizeof *block);
    int rc = block ? open_room(&member, err)
                   : pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "out of memory");
    for (uint64_t i = 0; rc == 0 && i < verify->n_blocks; i++) {
        check_block(&member, i, block);
        rc = report_block(verify, block, err);
    }
    free(member.room.data);
    free(block);
    return rc;
}

/* ---- several threads ------------------------------------------------------------------------- */

/* The lock guards all except `blocks`. A block belongs to its member until it is done, then to the
 * caller's thread until its turn is over. turn <= next <= turn + n_slots. */
struct crew {
    struct verify *verify;
    struct block *blocks;   /* owned, n_slots; block i is blocks[i % n_slots] */
    struct member *members; /* owned, n_members */
    uint32_t n_slots, n_members;
    uint64_t turn;   /* block being reported */
    uint64_t next;   /* next block to take */
    uint64_t n_done; /* samples done and not yet reported */
    int has_tick;    /* 1: a member ticked */
    int stop;
    pthread_mutex_t lock;
    pthread_cond_t room; /* turn or stop changed */
    pthread_cond_t news; /* a block is done, or a member ticked */
};

/* On a member's thread, without the lock. */
static int tick_together(struct member *member, uint64_t n)
{
    struct crew *crew = member->crew;
    pthread_mutex_lock(&crew->lock);
    crew->n_done += n;
    crew->has_tick = 1;
    const int stop = crew->stop;
    pthread_cond_signal(&crew->news);
    pthread_mutex_unlock(&crew->lock);
    return stop;
}

static void *run_member(void *arg)
{
    struct member *member = arg;
    struct crew *crew = member->crew;
    pthread_mutex_lock(&crew->lock);
    for (;;) {
        while (!crew->stop && crew->next < crew->verify->n_blocks &&
               crew->next - crew->turn >= crew->n_slots)
            pthread_cond_wait(&crew->room, &crew->lock);
        if (crew->stop || crew->next == crew->verify->n_blocks)
            break;
        const uint64_t index = crew->next++;
        struct block *block = &crew->blocks[index % crew->n_slots];
        pthread_mutex_unlock(&crew->lock);
        check_block(member, index, block);
        pthread_mutex_lock(&crew->lock);
        block->done = 1;
        pthread_cond_signal(&crew->news);
    }
    pthread_mutex_unlock(&crew->lock);
    return NULL;
}

/* Wait for a block, and report progress meanwhile. On the caller's thread; called and left with the
 * lock held, which callbacks run without. */
static int await_block(struct crew *crew, const struct block *block, struct pstk_error *err)
{
    int stop = 0;
    while (!stop && (!block->done || crew->has_tick)) {
        if (!crew->has_tick) {
            pthread_cond_wait(&crew->news, &crew->lock);
            continue;
        }
        const uint64_t n = crew->n_done;
        crew->n_done = 0;
        crew->has_tick = 0;
        pthread_mutex_unlock(&crew->lock);
        stop = report_progress(crew->verify, n);
        pthread_mutex_lock(&crew->lock);
    }
    return stop ? canceled(err) : 0;
}

static int report_blocks(struct crew *crew, struct pstk_error *err)
{
    int rc = 0;
    pthread_mutex_lock(&crew->lock);
    for (uint64_t i = 0; rc == 0 && i < crew->verify->n_blocks; i++) {
        struct block *block = &crew->blocks[i % crew->n_slots];
        rc = await_block(crew, block, err);
        if (rc < 0)
            break;
        pthread_mutex_unlock(&crew->lock);
        rc = report_block(crew->verify, block, err);
        pthread_mutex_lock(&crew->lock);
        block->done = 0;
        crew->turn++;
        pthread_cond_broadcast(&crew->room);
    }
    crew->stop = 1;
    pthread_cond_broadcast(&crew->room);
    pthread_mutex_unlock(&crew->lock);
    return rc;
}

/* Start the threads with all signals masked: no handler of the program may run in a thread of the
 * library. */
static int start_members(struct crew *crew, struct pstk_error *err)
{
    sigset_t all, old;
    int rc = 0, native = 0;
    for (uint32_t i = 0; rc == 0 && i < crew->n_members; i++) {
        crew->members[i].verify = crew->verify;
        crew->members[i].crew = crew;
        crew->members[i].tick = tick_together;
        rc = open_room(&crew->members[i], err);
    }
    sigfillset(&all);
    if (rc == 0 && pthread_sigmask(SIG_SETMASK, &all, &old) != 0)
        rc = pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, "signals cannot be masked");
    if (rc < 0)
        return rc;
    for (uint32_t i = 0; native == 0 && i < crew->n_members; i++) {
        struct member *member = &crew->members[i];
        native = pthread_create(&member->thread, NULL, run_member, member);
        member->running = native == 0;
        if (native == 0)
            (void)pthread_setname_np(member->thread, "pstk-verify"); /* for people only */
    }
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL); /* cannot fail: it succeeded above */
    return native ? pstk__fail_errno(err, native, PSTK_STAGE_OPEN,
                                     "cannot start a verify thread; lower n_threads")
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
        free(crew->members[i].room.data);
    }
}

static int run_crew(struct crew *crew, struct pstk_error *err)
{
    crew->members = calloc(crew->n_members, sizeof *crew->members);
    crew->blocks = calloc(crew->n_slots, sizeof *crew->blocks);
    int rc = 0;
    if (!crew->members || !crew->blocks)
        rc = pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "out of memory; lower n_threads");
    if (rc == 0) {
        rc = start_members(crew, err);
        if (rc == 0)
            rc = report_blocks(crew, err);
        stop_members(crew);
    }
    free(crew->members);
    free(crew->blocks);
    return rc;
}

static int verify_together(struct verify *verify, uint32_t n_threads, struct pstk_error *err)
{
    struct crew crew = {.verify = verify, .n_members = n_threads, .n_slots = 2 * n_threads};
    int native = pthread_mutex_init(&crew.lock, NULL);
    if (native)
        return pstk__fail_errno(err, native, PSTK_STAGE_OPEN, "verify cannot make a lock");
    native = pthread_cond_init(&crew.room, NULL);
    const int has_room = native == 0;
    if (native == 0)
        native = pthread_cond_init(&crew.news, NULL);
    const int rc = native
                       ? pstk__fail_errno(err, native, PSTK_STAGE_OPEN, "verify cannot make a lock")
                       : run_crew(&crew, err);
    if (native == 0)
        pthread_cond_destroy(&crew.news);
    if (has_room)
        pthread_cond_destroy(&crew.room);
    pthread_mutex_destroy(&crew.lock);
    return rc;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static int64_t verify_samples(const struct pstk__verify_request *verify_request,
                              struct pstk_error *err)
{
    struct verify verify = {.request = verify_request};
    int rc = pstk_dataset_open(&verify.dataset, verify_request->path, err);
    if (rc == 0) {
        verify.n_samples = pstk__dataset_source(verify.dataset)->n_samples;
        verify.n_blocks = (verify.n_samples + BLOCK - 1) / BLOCK;
        uint64_t n = verify_request->n_threads;
        n = n < MAX_THREADS ? n : MAX_THREADS;
        n = n < verify.n_blocks ? n : verify.n_blocks;
        rc = n <= 1 ? verify_alone(&verify, err) : verify_together(&verify, (uint32_t)n, err);
    }
    pstk_dataset_close(&verify.dataset);
    return rc < 0 ? rc : verify.n_bad < INT32_MAX ? (int64_t)verify.n_bad : INT32_MAX;
}

int64_t pstk_verify(const char *path, int decode, uint32_t n_threads, pstk_verify_fn on_bad,
                    pstk_progress_fn on_progress, void *user, struct pstk_error *err)
{
    if (!path || !*path)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "path: value is empty; must be the path of a data set");
    const struct pstk__verify_request verify_request = {.store = pstk__store_of(path),
                                                        .path = path,
                                                        .decode = decode != 0,
                                                        .n_threads = n_threads,
                                                        .on_bad = on_bad,
                                                        .on_progress = on_progress,
                                                        .user = user};
    const struct pstk__format *format;
    const int rc = pstk__format_find(&format, verify_request.store, path, err);
    if (rc < 0)
        return rc;
    return format->verify ? format->verify(&verify_request, err)
                          : verify_samples(&verify_request, err);
}
