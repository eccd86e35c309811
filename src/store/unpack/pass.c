/* SPDX-License-Identifier: Apache-2.0 */
#include "store/unpack/pass.h"

#include "base/crc32c.h"
#include "base/error.h"
#include "store/unpack/input.h"

#include <stdlib.h>

/* The state of one pass. */
struct run {
    struct pstk__pass *pass; /* borrowed */
    struct pstk_error *err;  /* borrowed */
    const struct pstk__packing *packing;
    struct pstk__unpacker *unpacker;
    struct pstk__access_points_writer *writer; /* owned, or NULL */
    struct pstk__unpack_input input;
    uint8_t *memory;   /* memory of the unpacker, then of the input, then of a chunk; owned */
    uint8_t *chunk;    /* the chunk that input.io.out points into */
    uint64_t unpacked; /* unpacked bytes in the chunks that have ended */
    uint64_t span;     /* unpacked position of the last point */
};

static uint64_t unpacked_at(const struct run *run)
{
    return run->unpacked + PSTK__CHUNK - run->input.io.n_out;
}

static int fail_damage(const struct run *run, const char *why)
{
    return pstk__unpack_input_fail(&run->input, PSTK_EBADMSG, why, run->packing->repair, run->err);
}

/* End a chunk that is full or partly filled. */
static int end_chunk(struct run *run)
{
    const uint64_t n = PSTK__CHUNK - run->input.io.n_out;
    if (n == 0)
        return 0;
    run->unpacked += n;
    run->input.io.out = run->chunk;
    run->input.io.n_out = PSTK__CHUNK;
    return pstk__access_points_writer_chunk(run->writer, pstk__crc32c(0, run->chunk, n), run->err);
}

/* Make a point here, unless the last point is too near. */
static int add_point(struct run *run)
{
    uint8_t dictionary[PSTK__DICTIONARY];
    struct pstk__restart restart;
    const uint64_t at = unpacked_at(run);
    if (at / PSTK__SPACING == run->span / PSTK__SPACING)
        return 0;
    const int r = end_chunk(run);
    if (r < 0)
        return r;
    run->packing->point(run->unpacker, &restart, dictionary);
    run->span = at;
    return pstk__access_points_writer_point(
        run->writer, at, pstk__unpack_input_at(&run->input) - (restart.n_bits > 0), &restart,
        dictionary, run->err);
}

/* Check that the file is complete, and write its access points. */
static int finish(struct run *run)
{
    struct pstk__pass *pass = run->pass;
    int r = pstk__unpack_input_end(&run->input, run->err);
    if (r < 0)
        return r;
    if (!run->packing->is_complete(run->unpacker))
        return fail_damage(run, "the file ends within compressed bytes: it is cut short");
    r = end_chunk(run);
    pass->of.unpacked = run->unpacked;
    pass->is_checked = !run->packing->is_checked || run->packing->is_checked(run->unpacker);
    return r < 0 ? r
                 : pstk__access_points_writer_commit(&run->writer, &pass->of, &pass->points_size,
                                                     &pass->head_crc, run->err);
}

static int go_through(struct run *run)
{
    struct pstk__unpack_io *io = &run->input.io;
    int r = pstk__access_points_writer_point(run->writer, 0, 0, &(struct pstk__restart){0}, NULL,
                                             run->err);
    run->packing->begin(run->unpacker);
    *io =
        (struct pstk__unpack_io){.in = run->input.buffer, .out = run->chunk, .n_out = PSTK__CHUNK};
    while (r == 0) {
        const char *why;
        const enum pstk__unpacking step = run->packing->step(run->unpacker, io, 1, &why);
        if (step == PSTK__UNPACK_BAD)
            return fail_damage(run, why);
        if (step == PSTK__UNPACK_LARGE ||
            (run->packing == &pstk__packing_zstd && unpacked_at(run) - run->span > PSTK__SPAN_MAX))
            return 1;
        if (step == PSTK__UNPACK_POINT)
            r = add_point(run);
        else if (io->n_out == 0)
            r = end_chunk(run);
        else if ((r = pstk__unpack_input_more(&run->input, run->err)) == 0)
            return finish(run);
        r = r > 0 ? 0 : r;
    }
    return r;
}

static int open_run(struct run *run)
{
    struct pstk__pass *pass = run->pass;
    const uint64_t size = run->packing->memory();
    run->memory = aligned_alloc(64, size + PSTK__UNPACK_READ + PSTK__CHUNK);
    run->unpacker = run->memory ? run->packing->init(run->memory, size) : NULL;
    if (!run->unpacker)
        return pstk__fail(run->err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory to unpack %s",
                          pass->path);
    run->input.buffer = run->memory + size;
    run->chunk = run->input.buffer + PSTK__UNPACK_READ;
    int r = pstk__unpack_input_open(&run->input, pass->store, run->err);
    if (r == 0)
        r = pstk__access_points_writer_open(&run->writer, pass->points_dir, pass->points, run->err);
    return r < 0 ? r : go_through(run);
}

int pstk__pass_run(struct pstk__pass *pass, struct pstk_error *err)
{
    const struct pstk__packing *packing = pstk__packing_of(pass->of.packing);
    struct run run = {.pass = pass,
                      .err = err,
                      .packing = packing,
                      .input = {.path = pass->path,
                                .name = pass->name,
                                .packing = packing->name,
                                .size = pass->of.size,
                                .changed_ns = pass->of.changed_ns,
                                .progress = pass->progress,
                                .user = pass->user,
                                .file = {.fd = -1}}};
    const int r = open_run(&run);
    pstk__access_points_writer_abort(&run.writer);
    pstk__file_end(&run.input.file);
    free(run.memory);
    return r;
}
