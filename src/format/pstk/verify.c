/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads take whole shards, in order, at most two a thread ahead of the one being reported. What a
 * thread finds waits in its shard's slot; the caller's thread takes it out in the order of the
 * shards, and is the only one that calls back. A thread whose slot is full waits until its turn
 * comes: memory stays bounded however much is damaged.
 */
#include "format/pstk/shard_verify.h"

#include "base/crc32c.h"
#include "base/error.h"
#include "base/file.h"
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

/* ---- telling the caller ------------------------------------------------------------------------
 */

static int tell(void *user, const struct pstk_error *bad)
{
    struct verify *v = user;
    return v->on_bad ? v->on_bad(v->user, bad) : 0;
}

static int tell_progress(void *user, uint64_t n)
{
    struct verify *v = user;
    v->n_done += n;
    return v->on_progress ? v->on_progress(v->user, v->n_done, v->manifest.n_samples) : 0;
}

static int tell_bad(struct verify *v, const char *file, struct pstk_error *bad)
{
    pstk__fail_at(bad, bad->code, file, PSTK_NONE, PSTK_NONE, 0);
    v->total.n_bad++;
    return tell(v, bad) ? PSTK_ECANCELED : 0;
}

/* Damage outside the shards, in the file `file`. */
static int __attribute__((format(printf, 3, 4)))
tell_file(struct verify *v, const char *file, const char *fmt, ...)
{
    struct pstk_error bad;
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    pstk_error_init(&bad, sizeof bad);
    pstk__fail(&bad, PSTK_EBADMSG, PSTK_STAGE_OPEN, "%s: %s", file, text);
    return tell_bad(v, file, &bad);
}

static int canceled(struct pstk_error *err)
{
    return pstk__fail(err, PSTK_ECANCELED, PSTK_STAGE_CONSUMER, "verify was stopped by its caller");
}

/* ---- dictionaries ------------------------------------------------------------------------------
 */

static int check_dictionary(struct verify *v, uint32_t i, struct pstk_error *err)
{
    const struct pstk__manifest_dictionary *d = &v->manifest.dictionaries[i];
    char path[4096];
    struct pstk_error why;
    void *bytes;
    uint64_t size;
    pstk_error_init(&why, sizeof why);
    int n = snprintf(path, sizeof path, "%s/%s", v->input.path, d->file);
    if (n < 0 || (size_t)n >= sizeof path)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, "%s: the path is too long",
                          v->input.path);
    int r = pstk__file_load(path, PSTK__MAX_DICTIONARY, &bytes, &size, &why);
    if (r == PSTK_ENOMEM || pstk__file_is_refused(why.native))
        return pstk__fail_copy(err, &why); /* the machine's, as with a shard */
    if (r < 0)
        return tell_bad(v, d->file, &why) < 0 ? canceled(err) : 0;
    uint32_t crc = pstk__crc32c(0, bytes, size);
    if (size != d->bytes)
        r = tell_file(v, d->file,
                      "the dictionary has %" PRIu64 " bytes, the manifest says %" PRIu64, size,
                      d->bytes);
    else if (crc != d->crc)
        r = tell_file(v, d->file, "the dictionary has the checksum %08x, the manifest says %08x",
                      crc, d->crc);
    else if ((r = pstk__dictionary_open(&v->input.dictionaries[i], bytes, size, &why)) < 0)
        r = r == PSTK_ENOMEM
                ? pstk__fail(err, r, PSTK_STAGE_OPEN, "%s: %s", path, why.message)
                : tell_file(v, d->file, "the dictionary cannot be used: %s", why.message);
    free(bytes);
    return r == PSTK_ECANCELED ? canceled(err) : r;
}

/* ---- opening, closing
 * ---------------------------------------------------------------------------- */

static int open_input(struct verify *v, const char *path, int decode, struct pstk_error *err)
{
    struct pstk__manifest *m = &v->manifest;
    int r = pstk__manifest_load(m, path, err);
    if (r < 0)
        return r;
    if (m->n_samples == 0 && m->n_parts == 1)
        return pstk__fail(err, PSTK_ENODATA, PSTK_STAGE_OPEN,
                          "%s is empty: a data set of 0 samples", path);
    v->input.path = path;
    v->input.manifest = m;
    v->input.decode = decode;
    pstk__manifest_limits(m, &v->input.limits);
    v->first = calloc((size_t)m->n_shards + 1, sizeof *v->first);
    v->input.dictionaries = calloc((size_t)m->n_dictionaries + 1, sizeof *v->input.dictionaries);
    if (!v->first || !v->input.dictionaries)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "%s: out of memory", path);
    v->input.first = v->first;
    for (uint32_t i = 0; i < m->n_shards; i++)
        v->first[i + 1] = v->first[i] + m->shards[i].n_records;
    return 0;
}

static void close_input(struct verify *v)
{
    for (uint32_t i = 0; v->input.dictionaries && i < v->manifest.n_dictionaries; i++)
        if (v->input.dictionaries[i])
            pstk__dictionary_close(v->input.dictionaries[i]);
    free(v->input.dictionaries);
    free(v->first);
    pstk__manifest_free(&v->manifest);
}

static void join(struct verify *v, const struct pstk__verify_found *found)
{
    v->total.n_bad += found->n_bad;
    pstk__identity_join(&v->total.identity, &found->identity);
    pstk__tally_join(v->total.stats, found->stats, v->manifest.schema.n_fields);
}

/* ---- one thread -------------------------------------------------------------------------------
 */

static int verify_alone(struct verify *v, struct pstk_error *err)
{
    const struct pstk__verify_sink sink = {.bad = tell, .progress = tell_progress, .user = v};
    struct pstk__verify_found *found = malloc(sizeof *found);
    struct pstk__shard_verifier *shard = NULL;
    int r = found ? 0 : pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "out of memory");
    if (r == 0)
        r = pstk__shard_verifier_open(&shard, &v->input, err);
    for (uint32_t i = 0; r == 0 && i < v->manifest.n_shards; i++) {
        r = pstk__shard_verifier_run(shard, i, &sink, found, err);
        if (r == 0)
            join(v, found);
    }
    pstk__shard_verifier_close(shard);
    free(found);
    return r;
}

/* ---- several threads ----------------------------------------------------------------------------
 */

/* What is found in one shard, on its way to the caller. All guarded by crew.lock, but found, which
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
    struct slot *slots; /* owned; shard s uses slots[s % n_slots] */
    uint32_t n_slots;
    uint32_t turn;       /* shard being reported; guarded by lock */
    uint32_t next;       /* shard to be taken; turn <= next <= turn + n_slots; guarded by lock */
    uint64_t n_progress; /* records done and not yet told; guarded by lock */
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
    struct member *m = user;
    struct crew *c = m->crew;
    pthread_mutex_lock(&c->lock);
    while (m->slot->n_bads == SLOT_BADS && !c->stop)
        pthread_cond_wait(&c->room, &c->lock);
    int stop = c->stop;
    if (!stop)
        m->slot->bads[m->slot->n_bads++] = *bad;
    pthread_cond_signal(&c->news);
    pthread_mutex_unlock(&c->lock);
    return stop;
}

static int queue_progress(void *user, uint64_t n)
{
    struct member *m = user;
    struct crew *c = m->crew;
    pthread_mutex_lock(&c->lock);
    int stop = c->stop;
    c->n_progress += n;
    c->has_progress = 1;
    pthread_cond_signal(&c->news);
    pthread_mutex_unlock(&c->lock);
    return stop;
}

static void *run_member(void *arg)
{
    struct member *m = arg;
    struct crew *c = m->crew;
    const struct pstk__verify_sink sink = {.bad = queue_bad, .progress = queue_progress, .user = m};
    uint32_t n_shards = c->verify->manifest.n_shards;
    pthread_mutex_lock(&c->lock);
    for (;;) {
        while (!c->stop && c->next < n_shards && c->next - c->turn >= c->n_slots)
            pthread_cond_wait(&c->room, &c->lock);
        if (c->stop || c->next == n_shards)
            break;
        uint32_t shard = c->next++;
        m->slot = &c->slots[shard % c->n_slots];
        pthread_mutex_unlock(&c->lock);
        pstk_error_init(&m->slot->error, sizeof m->slot->error);
        int r =
            pstk__shard_verifier_run(m->verifier, shard, &sink, &m->slot->found, &m->slot->error);
        pthread_mutex_lock(&c->lock);
        m->slot->result = r;
        m->slot->done = 1;
        pthread_cond_signal(&c->news);
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

/* Hand on what waits in a slot. Enters and leaves with the lock held, not holding it in callbacks.
 */
static int tell_slot(struct crew *c, struct slot *slot, struct pstk_error *copy)
{
    uint32_t n = slot->n_bads;
    int r = 0;
    memcpy(copy, slot->bads, n * sizeof *copy);
    slot->n_bads = 0;
    pthread_cond_broadcast(&c->room);
    pthread_mutex_unlock(&c->lock);
    for (uint32_t i = 0; r == 0 && i < n; i++)
        r = tell(c->verify, &copy[i]);
    pthread_mutex_lock(&c->lock);
    return r;
}

static int tell_crew_progress(struct crew *c)
{
    uint64_t n = c->n_progress;
    c->n_progress = 0;
    c->has_progress = 0;
    pthread_mutex_unlock(&c->lock);
    int r = tell_progress(c->verify, n);
    pthread_mutex_lock(&c->lock);
    return r;
}

/* Report one shard to its end. The lock is held. 1: its slot is done; 0: the caller said stop. */
static int report_shard(struct crew *c, struct slot *slot, struct pstk_error *copy)
{
    for (;;) {
        int stop = 0;
        if (slot->n_bads)
            stop = tell_slot(c, slot, copy);
        else if (c->has_progress)
            stop = tell_crew_progress(c);
        else if (slot->done)
            return 1;
        else
            pthread_cond_wait(&c->news, &c->lock);
        if (stop)
            return 0;
    }
}

static int report(struct crew *c, struct pstk_error *err)
{
    struct pstk_error *copy = malloc(SLOT_BADS * sizeof *copy);
    int r = copy ? 0 : pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "out of memory");
    pthread_mutex_lock(&c->lock);
    for (uint32_t i = 0; r == 0 && i < c->verify->manifest.n_shards; i++) {
        struct slot *slot = &c->slots[i % c->n_slots];
        if (!report_shard(c, slot, copy))
            r = canceled(err);
        else if (slot->result < 0)
            r = pstk__fail_copy(err, &slot->error);
        else
            join(c->verify, &slot->found);
        slot->done = 0;
        c->turn++;
        pthread_cond_broadcast(&c->room);
    }
    c->stop = 1;
    pthread_cond_broadcast(&c->room);
    pthread_mutex_unlock(&c->lock);
    free(copy);
    return r;
}

/* The threads are the library's: a signal of the program must not be handled in one of them. */
static int start_members(struct crew *c, struct member *members, uint32_t n, struct pstk_error *err)
{
    sigset_t all, old;
    int r = 0, native = 0;
    for (uint32_t i = 0; r == 0 && i < n; i++) {
        members[i].crew = c;
        r = pstk__shard_verifier_open(&members[i].verifier, &c->verify->input, err);
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
                                     "verify thread cannot be started; choose fewer n_threads")
                  : 0;
}

static void stop_members(struct crew *c, struct member *members, uint32_t n)
{
    pthread_mutex_lock(&c->lock);
    c->stop = 1;
    pthread_cond_broadcast(&c->room);
    pthread_mutex_unlock(&c->lock);
    for (uint32_t i = 0; i < n; i++) {
        if (members[i].running)
            pthread_join(members[i].thread, NULL);
        pstk__shard_verifier_close(members[i].verifier);
    }
}

static int run_crew(struct crew *c, uint32_t n_threads, struct pstk_error *err)
{
    struct member *members = calloc(n_threads, sizeof *members);
    c->slots = calloc(c->n_slots, sizeof *c->slots);
    int r = 0;
    if (!members || !c->slots)
        r = pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "out of memory; use fewer threads");
    if (r == 0) {
        r = start_members(c, members, n_threads, err);
        if (r == 0)
            r = report(c, err);
        stop_members(c, members, n_threads);
    }
    free(c->slots);
    free(members);
    return r;
}

static int verify_together(struct verify *v, uint32_t n_threads, struct pstk_error *err)
{
    struct crew c = {.verify = v, .n_slots = n_threads * 2};
    if (pthread_mutex_init(&c.lock, NULL) != 0)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no lock to be had");
    int has_room = pthread_cond_init(&c.room, NULL) == 0;
    int has_news = pthread_cond_init(&c.news, NULL) == 0;
    int r = has_room && has_news
                ? run_crew(&c, n_threads, err)
                : pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no condition to be had");
    if (has_news)
        pthread_cond_destroy(&c.news);
    if (has_room)
        pthread_cond_destroy(&c.room);
    pthread_mutex_destroy(&c.lock);
    return r;
}

/* ---- the manifest against what was found -------------------------------------------------------
 */

/* One number of a field. */
static int compare(struct verify *v, uint32_t i, const char *key, uint64_t said, uint64_t found)
{
    if (said == found)
        return 0;
    return tell_file(v, PSTK__MANIFEST_FILE,
                     "%s of field %s is %" PRIu64 ", the records have %" PRIu64, key,
                     v->manifest.schema.fields[i].name, said, found);
}

static int compare_field(struct verify *v, uint32_t i)
{
    const struct pstk_field_stats *a = &v->manifest.stats[i], *b = &v->total.stats[i];
    int is_image = v->manifest.schema.fields[i].kind == PSTK_FIELD_IMAGE;
    int r = compare(v, i, "max_stored", a->max_stored_size, b->max_stored_size);
    if (r == 0)
        r = compare(v, i, "max_plain", a->max_plain_size, b->max_plain_size);
    if (r == 0)
        r = compare(v, i, "stored_bytes", a->stored_bytes, b->stored_bytes);
    if (r == 0)
        r = compare(v, i, "plain_bytes", a->plain_bytes, b->plain_bytes);
    if (r == 0 && is_image)
        r = compare(v, i, "max_width", a->max_width, b->max_width);
    if (r == 0 && is_image)
        r = compare(v, i, "max_height", a->max_height, b->max_height);
    for (uint32_t k = 0; r == 0 && k < 8; k++)
        r = compare(v, i, "encodings", a->n_encoding[k], b->n_encoding[k]);
    for (uint32_t k = 0; r == 0 && k < 4; k++)
        r = compare(v, i, "codecs", a->n_codec[k], b->n_codec[k]);
    if (r == 0 && is_image)
        r = compare(v, i, "equivalent", a->n_equivalent, b->n_equivalent);
    return r;
}

static int compare_manifest(struct verify *v, struct pstk_error *err)
{
    char identity[40];
    int r = 0;
    for (uint32_t i = 0; r == 0 && i < v->manifest.schema.n_fields; i++)
        r = compare_field(v, i);
    pstk__identity_text(&v->total.identity, v->manifest.schema.crc, identity);
    if (r == 0 && strcmp(identity, v->manifest.identity) != 0)
        r = tell_file(v, PSTK__MANIFEST_FILE, "its identity is %s, that of the records %s",
                      v->manifest.identity, identity);
    return r < 0 ? canceled(err) : 0;
}

static int verify_all(struct verify *v, uint32_t n_threads, struct pstk_error *err)
{
    uint32_t n_shards = v->manifest.n_shards;
    int r = 0;
    for (uint32_t i = 0; r == 0 && i < v->manifest.n_dictionaries; i++)
        r = check_dictionary(v, i, err);
    if (r < 0)
        return r;
    n_threads = n_threads < n_shards ? n_threads : n_shards;
    n_threads = n_threads < MAX_THREADS ? n_threads : MAX_THREADS;
    r = n_threads <= 1 ? verify_alone(v, err) : verify_together(v, n_threads, err);
    /* Sums over damaged shards would only say once more that they are damaged. */
    return r < 0 || v->total.n_bad ? r : compare_manifest(v, err);
}

int64_t pstk_verify(const char *path, int decode, uint32_t n_threads, pstk_verify_fn on_bad,
                    pstk_progress_fn on_progress, void *user, struct pstk_error *err)
{
    if (!path || !*path)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN, "path is empty: name a data set");
    struct verify *v = calloc(1, sizeof *v);
    if (!v)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "%s: out of memory", path);
    v->on_bad = on_bad;
    v->on_progress = on_progress;
    v->user = user;
    int r = open_input(v, path, decode != 0, err);
    if (r == 0)
        r = verify_all(v, n_threads, err);
    uint64_t n_bad = v->total.n_bad;
    close_input(v);
    free(v);
    return r < 0 ? r : n_bad < INT32_MAX ? (int64_t)n_bad : INT32_MAX;
}
