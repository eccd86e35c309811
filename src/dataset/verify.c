/* SPDX-License-Identifier: Apache-2.0 */
/* pstk_verify: what the format has for it, or else every sample read once, by a crew whose jobs are
 * blocks of samples. */
#include "dataset/dataset.h"

#include "base/clock.h"
#include "base/crew.h"
#include "base/error.h"
#include "record/field.h"
#include "record/value.h"

#include <stdlib.h>
#include <string.h>

#define TICK_NS 20000000u                /* between two reports of progress */
#define BLOCK 64                         /* samples */
#define ROOMS_SIZE (UINT64_C(512) << 20) /* bytes of all threads' rooms; one room may be larger */

struct verify {
    const struct pstk__verify_request *request;
    struct pstk_dataset *dataset; /* owned */
    uint64_t n_samples;
    uint64_t n_bad;
    uint64_t n_done;      /* samples reported as done */
    uint64_t reported_ns; /* time of the last report of progress */
};

/* Who reads blocks. */
struct member {
    const struct verify *verify;
    struct pstk__room room; /* owned; for the largest sample */
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

/* ---- a block: a job of the crew ---------------------------------------------------------------
 */

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
    /* Of a data set with a file a sample, one file may be gone. */
    if (rc == PSTK_ENOENT && bad->stage == PSTK_STAGE_SHARD &&
        pstk__dataset_source(member->verify->dataset)->format->has_file_each)
        return 1;
    return rc == PSTK_EBADMSG || rc == PSTK_EIO ? 1 : rc;
}

static int check_block(void *state, uint64_t block, const struct pstk__crew_sink *sink,
                       void *result, struct pstk_error *err)
{
    struct member *member = state;
    const uint64_t first = block * BLOCK, left = member->verify->n_samples - first;
    const uint64_t n = left < BLOCK ? left : BLOCK;
    uint64_t n_ticked = 0, ticked_ns = pstk__clock_ns();
    (void)result;
    for (uint64_t i = 0; i < n; i++) {
        struct pstk_error bad;
        const int rc = check_sample(member, first + i, &bad);
        if (rc < 0)
            return pstk__fail_copy(err, &bad);
        if (rc > 0 && sink->bad(sink->user, &bad))
            return PSTK_ECANCELED;
        const uint64_t now = pstk__clock_ns();
        if (i + 1 < n && now - ticked_ns < TICK_NS)
            continue;
        ticked_ns = now;
        if (sink->progress(sink->user, i + 1 - n_ticked))
            return PSTK_ECANCELED;
        n_ticked = i + 1;
    }
    return 0;
}

static void close_member(void *state)
{
    struct member *member = state;
    if (member)
        free(member->room.data);
    free(member);
}

static int open_member(void *user, void **state, struct pstk_error *err)
{
    const struct verify *verify = user;
    const uint64_t size = pstk__dataset_source(verify->dataset)->limits.max_size;
    struct member *member = *state = calloc(1, sizeof *member);
    if (!member)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "out of memory");
    *member = (struct member){.verify = verify, .room = {.size = size, .data = malloc(size + 1)}};
    return member->room.data
               ? 0
               : pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN,
                            "no memory for a sample of %llu bytes", (unsigned long long)size);
}

/* ---- reporting: on the caller's thread ------------------------------------------------------- */

static int report_damage(void *user, const struct pstk_error *bad)
{
    struct verify *verify = user;
    verify->n_bad++;
    return verify->request->on_bad ? verify->request->on_bad(verify->request->user, bad) : 0;
}

/* `n` more samples are done: report it, at the end or now and then. */
static int report_progress(void *user, uint64_t n)
{
    struct verify *verify = user;
    const struct pstk__verify_request *verify_request = verify->request;
    const uint64_t now = pstk__clock_ns();
    verify->n_done += n;
    if (!verify_request->on_progress ||
        (verify->n_done < verify->n_samples && now - verify->reported_ns < TICK_NS))
        return 0;
    verify->reported_ns = now;
    return verify_request->on_progress(verify_request->user, verify->n_done, verify->n_samples);
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* Each thread has room for the largest sample: fewer threads where samples are large. */
static uint32_t threads_within(const struct verify *verify, uint32_t n_threads)
{
    const uint64_t size = pstk__dataset_source(verify->dataset)->limits.max_size;
    const uint64_t most = size > 0 ? ROOMS_SIZE / size : n_threads;
    return most < 1 ? 1 : most < n_threads ? (uint32_t)most : n_threads;
}

static int64_t verify_samples(const struct pstk__verify_request *verify_request,
                              struct pstk_error *err)
{
    struct verify verify = {.request = verify_request};
    int rc = pstk_dataset_open(&verify.dataset, verify_request->path, err);
    if (rc == 0) {
        verify.n_samples = pstk__dataset_source(verify.dataset)->n_samples;
        const struct pstk__crew_work work = {.what = "verify",
                                             .n_jobs = (verify.n_samples + BLOCK - 1) / BLOCK,
                                             .n_threads =
                                                 threads_within(&verify, verify_request->n_threads),
                                             .user = &verify,
                                             .open = open_member,
                                             .close = close_member,
                                             .run = check_block,
                                             .bad = report_damage,
                                             .progress = report_progress};
        rc = pstk__crew_run(&work, err);
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
