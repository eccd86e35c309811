/* SPDX-License-Identifier: Apache-2.0 */
#include "store/unpack/whole.h"

#include "base/error.h"
#include "store/unpack/input.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define PIECE (256u << 10) /* bytes of a piece, unpacked */

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
    struct pstk__unpack_input input;
    uint8_t *memory; /* memory of the input, then of a piece, which io.out points into; owned */
    uint8_t *piece;
    uint64_t n_made; /* bytes unpacked so far */
};

static int fail_memory(const struct pstk__whole_job *job, struct pstk_error *err)
{
    return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory to unpack %s", job->path);
}

static int fail_large(const struct run *run, const char *why)
{
    return pstk__unpack_input_fail(&run->input, PSTK_ENOTSUP, why, run->whole->smaller, run->err);
}

static int fail_byte(const struct run *run, const char *why)
{
    return pstk__unpack_input_fail(&run->input, PSTK_EBADMSG, why, run->whole->repair, run->err);
}

static int fail_size(const struct run *run)
{
    char why[120];
    snprintf(why, sizeof why, "it unpacks to %s %" PRIu64 " bytes that its data set states",
             run->n_made > run->job->unpacked ? "more than the" : "fewer than the",
             run->job->unpacked);
    return fail_byte(run, why);
}

/* Pass on the unpacked bytes. */
static int give(struct run *run)
{
    struct pstk__whole_job *job = run->job;
    const uint64_t n = PIECE - run->input.io.n_out;
    run->input.io.out = run->piece;
    run->input.io.n_out = PIECE;
    run->n_made += n;
    if (run->n_made > job->unpacked)
        return fail_size(run);
    return n && job->take ? job->take(job->take_user, run->piece, n, run->err) : 0;
}

static int finish(struct run *run)
{
    struct pstk__whole_job *job = run->job;
    int r = pstk__unpack_input_end(&run->input, run->err);
    if (r < 0)
        return r;
    if (!run->whole->is_complete(run->stream))
        return fail_byte(run, "the file ends within compressed bytes: it is cut short");
    r = give(run);
    if (r == 0 && job->unpacked != PSTK_NONE && run->n_made != job->unpacked)
        return fail_size(run);
    job->unpacked = run->n_made;
    job->is_checked = run->whole->is_checked && run->whole->is_checked(run->stream);
    return r;
}

static int go_through(struct run *run)
{
    struct pstk__unpack_io *io = &run->input.io;
    int r = 0;
    *io = (struct pstk__unpack_io){.in = run->input.buffer, .out = run->piece, .n_out = PIECE};
    while (r == 0) {
        const char *why;
        const enum pstk__unpacking step = run->whole->step(run->stream, io, &why);
        if (step == PSTK__UNPACK_MEMORY)
            return fail_memory(run->job, run->err);
        if (step == PSTK__UNPACK_BAD)
            return fail_byte(run, why);
        if (step == PSTK__UNPACK_LARGE)
            return fail_large(run, why);
        if (io->n_out == 0)
            r = give(run);
        else if ((r = pstk__unpack_input_more(&run->input, run->err)) == 0)
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
    run->memory = malloc(PSTK__UNPACK_READ + PIECE);
    run->stream = run->memory ? run->whole->open(job->size, job->unpacked) : NULL;
    if (!run->stream)
        return fail_memory(job, run->err);
    run->input.buffer = run->memory;
    run->piece = run->memory + PSTK__UNPACK_READ;
    const int r = pstk__unpack_input_open(&run->input, job->store, run->err);
    return r < 0 ? r : go_through(run);
}

int pstk__whole_unpack(struct pstk__whole_job *job, struct pstk_error *err)
{
    const struct pstk__whole *whole = pstk__whole_of(job->packing);
    struct run run = {.job = job,
                      .err = err,
                      .whole = whole,
                      .input = {.path = job->path,
                                .name = job->name,
                                .packing = whole->name,
                                .size = job->size,
                                .changed_ns = job->changed_ns,
                                .progress = job->progress,
                                .user = job->user,
                                .file = {.fd = -1}}};
    const int r = open_run(&run);
    if (run.stream)
        run.whole->close(run.stream);
    pstk__file_end(&run.input.file);
    free(run.memory);
    return r;
}
