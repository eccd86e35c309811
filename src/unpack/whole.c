/* SPDX-License-Identifier: Apache-2.0 */
#include "unpack/whole.h"

#include "base/error.h"
#include "unpack/same.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define READ (256u << 10)   /* bytes of the file at once */
#define PIECE (256u << 10)  /* unpacked bytes at once */
#define PROGRESS (4u << 20) /* bytes of the file between two reports */

static const struct pstk__whole *const wholes[] = {[2] = &pstk__whole_zstd,
                                                   [PSTK__WHOLE_BZIP2] = &pstk__whole_bzip2,
                                                   [PSTK__WHOLE_BROTLI] = &pstk__whole_brotli,
                                                   [PSTK__WHOLE_SNAPPY] = &pstk__whole_snappy};

const struct pstk__whole *pstk__whole_of(uint32_t number)
{
    return number >= 2 && number <= PSTK__N_WHOLE ? wholes[number] : NULL;
}

struct run {
    struct pstk__whole_job *job; /* borrowed */
    struct pstk_error *err;      /* borrowed */
    const struct pstk__whole *whole;
    struct pstk__whole_stream *stream; /* owned */
    struct pstk__file file;            /* owned */
    uint8_t *memory;                   /* owned: READ bytes, then PIECE */
    struct pstk__feed feed;
    uint64_t n_read, n_made, reported;
};

static int fail_memory(const struct pstk__whole_job *job, struct pstk_error *err)
{
    return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory to unpack %s", job->path);
}

static int fail_byte(const struct run *run, int code, const char *why)
{
    const uint64_t at = run->n_read - run->feed.n_in;
    pstk__fail(run->err, code, PSTK_STAGE_OPEN, "%s: byte %" PRIu64 " of the %s file: %s; %s",
               run->job->path, at, run->whole->name, why, run->whole->repair);
    return pstk__fail_at(run->err, code, run->job->name, PSTK_NONE, at, 0);
}

static int fail_size(const struct run *run)
{
    char why[120];
    snprintf(
        why, sizeof why, "it unpacks to %s %" PRIu64 " bytes, the number that is stated for it",
        run->n_made > run->job->unpacked ? "more than the" : "fewer than the", run->job->unpacked);
    return fail_byte(run, PSTK_EBADMSG, why);
}

/* Hand on what was unpacked. */
static int give(struct run *run)
{
    struct pstk__whole_job *job = run->job;
    uint8_t *piece = run->memory + READ;
    const uint64_t n = PIECE - run->feed.n_out;
    run->feed.out = piece;
    run->feed.n_out = PIECE;
    run->n_made += n;
    if (run->n_made > job->unpacked)
        return fail_size(run);
    return n && job->take ? job->take(job->take_user, piece, n, run->err) : 0;
}

/* Have bytes of the file in the feed. 1; 0: it ends; <0. */
static int read_more(struct run *run)
{
    const struct pstk__whole_job *job = run->job;
    const uint64_t left = job->size - run->n_read;
    if (run->n_read - run->reported >= PROGRESS || left == 0) {
        const uint64_t n = run->n_read - run->reported;
        run->reported = run->n_read;
        if (n && job->progress && job->progress(job->user, n))
            return PSTK_ECANCELED;
    }
    const int64_t n =
        pstk__file_read(&run->file, run->memory, left < READ ? left : READ, run->n_read);
    if (n < 0)
        return pstk__fail_errno(run->err, (int)-n, PSTK_STAGE_OPEN, "cannot read %s", job->path);
    run->feed.in = run->memory;
    run->feed.n_in = (uint64_t)n;
    run->n_read += (uint64_t)n;
    return n > 0;
}

static int finish(struct run *run)
{
    const struct pstk__whole_job *job = run->job;
    const int same = pstk__unpack_check_same(&run->file, job->path, job->name, job->size,
                                             job->changed_ns, run->err);
    if (same < 0)
        return same;
    if (run->n_read != run->job->size)
        return fail_byte(run, PSTK_EBADMSG, "the file ends here: it was cut while it was read");
    if (!run->whole->is_complete(run->stream))
        return fail_byte(run, PSTK_EBADMSG,
                         "the file ends within compressed bytes: it is cut short");
    const int r = give(run);
    if (r == 0 && run->job->unpacked != PSTK_NONE && run->n_made != run->job->unpacked)
        return fail_size(run);
    run->job->unpacked = run->n_made;
    run->job->is_checked = run->whole->is_checked && run->whole->is_checked(run->stream);
    return r;
}

static int go_through(struct run *run)
{
    int r = 0;
    run->feed = (struct pstk__feed){.in = run->memory, .out = run->memory + READ, .n_out = PIECE};
    while (r == 0) {
        const char *why;
        const enum pstk__unpacking step = run->whole->step(run->stream, &run->feed, &why);
        if (step == PSTK__UNPACK_MEMORY)
            return fail_memory(run->job, run->err);
        if (step == PSTK__UNPACK_BAD || step == PSTK__UNPACK_LARGE)
            return fail_byte(run, step == PSTK__UNPACK_BAD ? PSTK_EBADMSG : PSTK_ENOTSUP, why);
        if (run->feed.n_out == 0)
            r = give(run);
        else if ((r = read_more(run)) == 0)
            return finish(run);
        r = r > 0 ? 0 : r;
    }
    return r;
}

static int open_run(struct run *run)
{
    const struct pstk__whole_job *job = run->job;
    if (run->whole->missing)
        return pstk__fail(
            run->err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
            "%s is compressed by %s, which this build of penstock cannot read: install "
            "%s and build again",
            job->path, run->whole->name, run->whole->missing);
    run->memory = malloc(READ + PIECE);
    run->stream = run->memory ? run->whole->open(job->size, job->unpacked) : NULL;
    if (!run->stream)
        return fail_memory(job, run->err);
    int r = job->store->open(job->store, &run->file, job->path);
    if (r < 0)
        return pstk__fail_errno(run->err, -r, PSTK_STAGE_OPEN, "cannot open %s", job->path);
    r = pstk__unpack_check_same(&run->file, job->path, job->name, job->size, job->changed_ns,
                                run->err);
    return r < 0 ? r : go_through(run);
}

int pstk__whole_unpack(struct pstk__whole_job *job, struct pstk_error *err)
{
    struct run run = {
        .job = job, .err = err, .whole = pstk__whole_of(job->packing), .file = {.fd = -1}};
    const int r = open_run(&run);
    if (run.stream)
        run.whole->close(run.stream);
    pstk__file_end(&run.file);
    free(run.memory);
    return r;
}
