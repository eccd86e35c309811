/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads take whole shards, in order, at most two a thread ahead of the one being reported. The
 * findings of a thread wait in the slot of its shard. The caller's thread takes them out in the
 * order of the shards, and only that thread calls back. A thread whose slot is full waits until its
 * turn comes: memory stays bounded however much is damaged.
 */
#include "format/pstk/shard_verify.h"

#include "base/crc32c.h"
#include "base/error.h"
#include "base/file.h"
#include "format/pstk/manifest_file.h"
#include "format/pstk/pstk.h"
#include "format/pstk/tally.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLOT_BADS 32 /* damaged places that wait in one slot */
#define MAX_THREADS 1024

/* The whole check. */
struct verify {
    struct pstk__manifest manifest;
    struct pstk__verify_input input;
    struct pstk__verify_found total;
    uint64_t *first; /* owned; input.first */
    uint64_t n_done; /* records that are reported as done */
    pstk_verify_fn on_bad;
    pstk_progress_fn on_progress;
    void *user;
};

/* ---- reporting ------------------------------------------------------------------------------- */

static int report_damage(void *user, const struct pstk_error *bad)
{
    struct verify *verify = user;
    return verify->on_bad ? verify->on_bad(verify->user, bad) : 0;
}

static int report_progress(void *user, uint64_t n)
{
    struct verify *verify = user;
    verify->n_done += n;
    return verify->on_progress
               ? verify->on_progress(verify->user, verify->n_done, verify->manifest.n_samples)
               : 0;
}

static int tell_bad(struct verify *verify, const char *file, struct pstk_error *bad)
{
    pstk__fail_at(bad, bad->code, file, PSTK_NONE, PSTK_NONE, 0);
    verify->total.n_bad++;
    return report_damage(verify, bad) ? PSTK_ECANCELED : 0;
}

/* Damage outside the shards, in the file `file`. */
static int __attribute__((format(printf, 3, 4)))
tell_file(struct verify *verify, const char *file, const char *fmt, ...)
{
    struct pstk_error bad;
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    pstk_error_init(&bad, sizeof bad);
    pstk__fail(&bad, PSTK_EBADMSG, PSTK_STAGE_OPEN, "%s: %s", file, text);
    return tell_bad(verify, file, &bad);
}

static int canceled(struct pstk_error *err)
{
    return pstk__fail(err, PSTK_ECANCELED, PSTK_STAGE_CONSUMER, "verify was stopped by its caller");
}

/* ---- dictionaries ------------------------------------------------------------------------------
 */

static int check_dictionary(struct verify *verify, uint32_t i, struct pstk_error *err)
{
    const struct pstk__manifest_dictionary *dictionary = &verify->manifest.dictionaries[i];
    char path[4096];
    struct pstk_error why;
    void *bytes;
    uint64_t size;
    pstk_error_init(&why, sizeof why);
    int n = snprintf(path, sizeof path, "%s/%s", verify->input.path, dictionary->file);
    if (n < 0 || (size_t)n >= sizeof path)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, "%s: the path is too long",
                          verify->input.path);
    int r = pstk__store_load(verify->input.store, path, PSTK__MAX_DICTIONARY, &bytes, &size, &why);
    if (r == PSTK_ENOMEM || pstk__file_is_refused(why.native))
        return pstk__fail_copy(err, &why); /* the machine's, as with a shard */
    if (r < 0)
        return tell_bad(verify, dictionary->file, &why) < 0 ? canceled(err) : 0;
    uint32_t crc = pstk__crc32c(0, bytes, size);
    if (size != dictionary->bytes)
        r = tell_file(verify, dictionary->file,
                      "the dictionary has %" PRIu64 " bytes, the manifest says %" PRIu64, size,
                      dictionary->bytes);
    else if (crc != dictionary->crc)
        r = tell_file(verify, dictionary->file,
                      "the dictionary has the checksum %08x, the manifest says %08x", crc,
                      dictionary->crc);
    else if ((r = pstk__dictionary_open(&verify->input.dictionaries[i], bytes, size, &why)) < 0)
        r = r == PSTK_ENOMEM ? pstk__fail(err, r, PSTK_STAGE_OPEN, "%s: %s", path, why.message)
                             : tell_file(verify, dictionary->file,
                                         "the dictionary cannot be used: %s", why.message);
    free(bytes);
    return r == PSTK_ECANCELED ? canceled(err) : r;
}

/* ---- opening, closing
 * ---------------------------------------------------------------------------- */

static int open_input(struct verify *verify, const struct pstk__verify_request *verify_request,
                      struct pstk_error *err)
{
    struct pstk__manifest *m = &verify->manifest;
    const char *path = verify_request->path;
    int r = pstk__manifest_load(m, verify_request->store, path, err);
    if (r < 0)
        return r;
    if (m->n_samples == 0 && m->n_parts == 1)
        return pstk__fail(err, PSTK_ENODATA, PSTK_STAGE_OPEN,
                          "%s is empty: a data set of 0 samples", path);
    verify->input.path = path;
    verify->input.store = verify_request->store;
    verify->input.manifest = m;
    verify->input.decode = (int)verify_request->decode;
    pstk__manifest_limits(m, &verify->input.limits);
    verify->first = calloc((size_t)m->n_shards + 1, sizeof *verify->first);
    verify->input.dictionaries =
        calloc((size_t)m->n_dictionaries + 1, sizeof *verify->input.dictionaries);
    if (!verify->first || !verify->input.dictionaries)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "%s: out of memory", path);
    verify->input.first = verify->first;
    for (uint32_t i = 0; i < m->n_shards; i++)
        verify->first[i + 1] = verify->first[i] + m->shards[i].n_records;
    return 0;
}

static void close_input(struct verify *verify)
{
    for (uint32_t i = 0; verify->input.dictionaries && i < verify->manifest.n_dictionaries; i++)
        if (verify->input.dictionaries[i])
            pstk__dictionary_close(verify->input.dictionaries[i]);
    free(verify->input.dictionaries);
    free(verify->first);
    pstk__manifest_free(&verify->manifest);
}

static void join(struct verify *verify, const struct pstk__verify_found *found)
{
    verify->total.n_bad += found->n_bad;
    pstk__identity_join(&verify->total.identity, &found->identity);
    pstk__tally_join(verify->total.stats, found->stats, verify->manifest.schema.n_fields);
}

/* ---- one thread -------------------------------------------------------------------------------
 */

static int verify_alone(struct verify *verify, struct pstk_error *err)
{
    const struct pstk__verify_sink sink = {
        .bad = report_damage, .progress = report_progress, .user = verify};
    struct pstk__verify_found *found = malloc(sizeof *found);
    struct pstk__shard_verifier *shard = NULL;
    int r = found ? 0 : pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "out of memory");
    if (r == 0)
        r = pstk__shard_verifier_open(&shard, &verify->input, err);
    for (uint32_t i = 0; r == 0 && i < verify->manifest.n_shards; i++) {
        r = pstk__shard_verifier_run(shard, i, &sink, found, err);
        if (r == 0)
            join(verify, found);
    }
    pstk__shard_verifier_close(shard);
    free(found);
    return r;
}

/* ---- several threads ----------------------------------------------------------------------------
 */

/* The findings in one shard, on their way to the caller. crew.lock guards all except found, which
 * belongs to the thread until done. */
struct slot {
    struct pstk_error bads[SLOT_BADS];
    uint32_t n_bads;
    int done;
    int result;
    struct pstk_error error; /* of result */
    struct pstk__verify_found found;
};

struct crew {
    struct verify *verify;
    struct slot *slots; /* owned; shard i uses slots[i % n_slots] */
    uint32_t n_slots;
    uint32_t turn;       /* shard being reported; guarded by lock */
    uint32_t next;       /* shard to be taken; turn <= next <= turn + n_slots; guarded by lock */
    uint64_t n_progress; /* records done and not yet reported; guarded by lock */
    int has_progress;    /* 1: a thread came some way, if not a record; guarded by lock */
    int stop;            /* guarded by lock */
    pthread_mutex_t lock;
    pthread_cond_t room; /* turn, stop changed, or a slot's bads were taken */
    pthread_cond_t news; /* a slot or n_progress changed */
};

struct member {
    struct crew *crew;
    struct slot *slot;                     /* of the shard at hand */
    struct pstk__shard_verifier *verifier; /* owned */
    pthread_t thread;
    int running;
};

static int queue_bad(void *user, const struct pstk_error *bad)
{
    struct member *member = user;
    struct crew *crew = member->crew;
    pthread_mutex_lock(&crew->lock);
    while (member->slot->n_bads == SLOT_BADS && !crew->stop)
        pthread_cond_wait(&crew->room, &crew->lock);
    int stop = crew->stop;
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
    int stop = crew->stop;
    crew->n_progress += n;
    crew->has_progress = 1;
    pthread_cond_signal(&crew->news);
    pthread_mutex_unlock(&crew->lock);
    return stop;
}

static void *run_member(void *arg)
{
    struct member *member = arg;
    struct crew *crew = member->crew;
    const struct pstk__verify_sink sink = {
        .bad = queue_bad, .progress = queue_progress, .user = member};
    uint32_t n_shards = crew->verify->manifest.n_shards;
    pthread_mutex_lock(&crew->lock);
    for (;;) {
        while (!crew->stop && crew->next < n_shards && crew->next - crew->turn >= crew->n_slots)
            pthread_cond_wait(&crew->room, &crew->lock);
        if (crew->stop || crew->next == n_shards)
            break;
        uint32_t shard = crew->next++;
        member->slot = &crew->slots[shard % crew->n_slots];
        pthread_mutex_unlock(&crew->lock);
        pstk_error_init(&member->slot->error, sizeof member->slot->error);
        int r = pstk__shard_verifier_run(member->verifier, shard, &sink, &member->slot->found,
                                         &member->slot->error);
        pthread_mutex_lock(&crew->lock);
        member->slot->result = r;
        member->slot->done = 1;
        pthread_cond_signal(&crew->news);
    }
    pthread_mutex_unlock(&crew->lock);
    return NULL;
}

/* Hand on the findings that wait in a slot. The caller holds the lock; callbacks run without it.
 */
static int tell_slot(struct crew *crew, struct slot *slot, struct pstk_error *copy)
{
    uint32_t n = slot->n_bads;
    int r = 0;
    memcpy(copy, slot->bads, n * sizeof *copy);
    slot->n_bads = 0;
    pthread_cond_broadcast(&crew->room);
    pthread_mutex_unlock(&crew->lock);
    for (uint32_t i = 0; r == 0 && i < n; i++)
        r = report_damage(crew->verify, &copy[i]);
    pthread_mutex_lock(&crew->lock);
    return r;
}

static int tell_crew_progress(struct crew *crew)
{
    uint64_t n = crew->n_progress;
    crew->n_progress = 0;
    crew->has_progress = 0;
    pthread_mutex_unlock(&crew->lock);
    int r = report_progress(crew->verify, n);
    pthread_mutex_lock(&crew->lock);
    return r;
}

/* Report one shard to its end. The lock is held. 1: its slot is done; 0: the caller said stop. */
static int report_shard(struct crew *crew, struct slot *slot, struct pstk_error *copy)
{
    for (;;) {
        int stop = 0;
        if (slot->n_bads)
            stop = tell_slot(crew, slot, copy);
        else if (crew->has_progress)
            stop = tell_crew_progress(crew);
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
    struct pstk_error *copy = malloc(SLOT_BADS * sizeof *copy);
    int r = copy ? 0 : pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "out of memory");
    pthread_mutex_lock(&crew->lock);
    for (uint32_t i = 0; r == 0 && i < crew->verify->manifest.n_shards; i++) {
        struct slot *slot = &crew->slots[i % crew->n_slots];
        if (!report_shard(crew, slot, copy))
            r = canceled(err);
        else if (slot->result < 0)
            r = pstk__fail_copy(err, &slot->error);
        else
            join(crew->verify, &slot->found);
        slot->done = 0;
        crew->turn++;
        pthread_cond_broadcast(&crew->room);
    }
    crew->stop = 1;
    pthread_cond_broadcast(&crew->room);
    pthread_mutex_unlock(&crew->lock);
    free(copy);
    return r;
}

/* The threads are the library's: a signal of the program must not be handled in one of them. */
static int start_members(struct crew *crew, struct member *members, uint32_t n,
                         struct pstk_error *err)
{
    sigset_t all, old;
    int r = 0, native = 0;
    for (uint32_t i = 0; r == 0 && i < n; i++) {
        members[i].crew = crew;
        r = pstk__shard_verifier_open(&members[i].verifier, &crew->verify->input, err);
    }
    sigfillset(&all);
    if (r == 0 && pthread_sigmask(SIG_SETMASK, &all, &old) != 0)
        r = pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, "signals cannot be masked");
    if (r < 0)
        return r;
    for (uint32_t i = 0; native == 0 && i < n; i++) {
        native = pthread_create(&members[i].thread, NULL, run_member, &members[i]);
        members[i].running = native == 0;
        if (native == 0)
            (void)pthread_setname_np(members[i].thread, "pstk-verify"); /* for people only */
    }
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL); /* cannot fail: it succeeded above */
    return native ? pstk__fail_errno(err, native, PSTK_STAGE_OPEN,
                                     "cannot start a verify thread; lower n_threads")
                  : 0;
}

static void stop_members(struct crew *crew, struct member *members, uint32_t n)
{
    pthread_mutex_lock(&crew->lock);
    crew->stop = 1;
    pthread_cond_broadcast(&crew->room);
    pthread_mutex_unlock(&crew->lock);
    for (uint32_t i = 0; i < n; i++) {
        if (members[i].running)
            pthread_join(members[i].thread, NULL);
        pstk__shard_verifier_close(members[i].verifier);
    }
}

static int run_crew(struct crew *crew, uint32_t n_threads, struct pstk_error *err)
{
    struct member *members = calloc(n_threads, sizeof *members);
    crew->slots = calloc(crew->n_slots, sizeof *crew->slots);
    int r = 0;
    if (!members || !crew->slots)
        r = pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "out of memory; lower n_threads");
    if (r == 0) {
        r = start_members(crew, members, n_threads, err);
        if (r == 0)
            r = report(crew, err);
        stop_members(crew, members, n_threads);
    }
    free(crew->slots);
    free(members);
    return r;
}

static int verify_together(struct verify *verify, uint32_t n_threads, struct pstk_error *err)
{
    struct crew crew = {.verify = verify, .n_slots = n_threads * 2};
    if (pthread_mutex_init(&crew.lock, NULL) != 0)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "cannot make a lock");
    int has_room = pthread_cond_init(&crew.room, NULL) == 0;
    int has_news = pthread_cond_init(&crew.news, NULL) == 0;
    int r = has_room && has_news
                ? run_crew(&crew, n_threads, err)
                : pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "cannot make a condition variable");
    if (has_news)
        pthread_cond_destroy(&crew.news);
    if (has_room)
        pthread_cond_destroy(&crew.room);
    pthread_mutex_destroy(&crew.lock);
    return r;
}

/* ---- the manifest against what was found -------------------------------------------------------
 */

/* One number of a field. */
static int compare(struct verify *verify, uint32_t i, const char *key, uint64_t said,
                   uint64_t found)
{
    if (said == found)
        return 0;
    return tell_file(verify, PSTK__MANIFEST_FILE,
                     "%s of field %s is %" PRIu64 ", but the records have %" PRIu64, key,
                     verify->manifest.schema.fields[i].name, said, found);
}

static int compare_field(struct verify *verify, uint32_t i)
{
    const struct pstk_field_stats *a = &verify->manifest.stats[i], *b = &verify->total.stats[i];
    int is_image = verify->manifest.schema.fields[i].kind == PSTK_FIELD_IMAGE;
    int r = compare(verify, i, "max_stored", a->max_stored_size, b->max_stored_size);
    if (r == 0)
        r = compare(verify, i, "max_plain", a->max_plain_size, b->max_plain_size);
    if (r == 0)
        r = compare(verify, i, "stored_bytes", a->stored_bytes, b->stored_bytes);
    if (r == 0)
        r = compare(verify, i, "plain_bytes", a->plain_bytes, b->plain_bytes);
    if (r == 0 && is_image)
        r = compare(verify, i, "max_width", a->max_width, b->max_width);
    if (r == 0 && is_image)
        r = compare(verify, i, "max_height", a->max_height, b->max_height);
    for (uint32_t k = 0; r == 0 && k < 8; k++)
        r = compare(verify, i, "encodings", a->n_encoding[k], b->n_encoding[k]);
    for (uint32_t k = 0; r == 0 && k < 4; k++)
        r = compare(verify, i, "codecs", a->n_codec[k], b->n_codec[k]);
    if (r == 0 && is_image)
        r = compare(verify, i, "equivalent", a->n_equivalent, b->n_equivalent);
    return r;
}

static int compare_manifest(struct verify *verify, struct pstk_error *err)
{
    char identity[40];
    int r = 0;
    for (uint32_t i = 0; r == 0 && i < verify->manifest.schema.n_fields; i++)
        r = compare_field(verify, i);
    pstk__identity_text(&verify->total.identity, verify->manifest.schema.crc, identity);
    if (r == 0 && strcmp(identity, verify->manifest.identity) != 0)
        r = tell_file(verify, PSTK__MANIFEST_FILE,
                      "its identity is %s, but that of the records is %s",
                      verify->manifest.identity, identity);
    return r < 0 ? canceled(err) : 0;
}

static int verify_all(struct verify *verify, uint32_t n_threads, struct pstk_error *err)
{
    uint32_t n_shards = verify->manifest.n_shards;
    int r = 0;
    for (uint32_t i = 0; r == 0 && i < verify->manifest.n_dictionaries; i++)
        r = check_dictionary(verify, i, err);
    if (r < 0)
        return r;
    n_threads = n_threads < n_shards ? n_threads : n_shards;
    n_threads = n_threads < MAX_THREADS ? n_threads : MAX_THREADS;
    r = n_threads <= 1 ? verify_alone(verify, err) : verify_together(verify, n_threads, err);
    /* Sums over damaged shards would only report the same damage again. */
    return r < 0 || verify->total.n_bad ? r : compare_manifest(verify, err);
}

int64_t pstk__pstk_verify(const struct pstk__verify_request *verify_request, struct pstk_error *err)
{
    struct verify *verify = calloc(1, sizeof *verify);
    if (!verify)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "%s: out of memory",
                          verify_request->path);
    verify->on_bad = verify_request->on_bad;
    verify->on_progress = verify_request->on_progress;
    verify->user = verify_request->user;
    int r = open_input(verify, verify_request, err);
    if (r == 0)
        r = verify_all(verify, verify_request->n_threads, err);
    uint64_t n_bad = verify->total.n_bad;
    close_input(verify);
    free(verify);
    return r < 0 ? r : n_bad < INT32_MAX ? (int64_t)n_bad : INT32_MAX;
}
