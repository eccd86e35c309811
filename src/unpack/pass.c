/* SPDX-License-Identifier: Apache-2.0 */
#include "unpack/pass.h"

#include "base/crc32c.h"
#include "base/error.h"
#include "unpack/same.h"

#include <inttypes.h>
#include <stdlib.h>

#define READ (256u << 10)   /* bytes of the file at once */
#define PROGRESS (4u << 20) /* bytes of the file between two reports */

/* A file being read through. */
struct run {
    struct pstk__pass *pass; /* borrowed */
    struct pstk_error *err;  /* borrowed */
    const struct pstk__packing *packing;
    struct pstk__unpacker *unpacker;
    struct pstk__points_writer *writer; /* owned, or NULL */
    struct pstk__file file;             /* owned */
    uint8_t *memory;                    /* owned: of the unpacker, then the buffers */
    uint8_t *input, *chunk;
    struct pstk__feed feed;
    uint64_t n_read;   /* bytes of the file */
    uint64_t unpacked; /* bytes in whole chunks */
    uint64_t span;     /* where the last point is, unpacked */
    uint64_t reported; /* bytes of the file */
};

/* The byte of the file that comes next. */
static uint64_t packed_at(const struct run *run)
{
    return run->n_read - run->feed.n_in;
}

static uint64_t unpacked_at(const struct run *run)
{
    return run->unpacked + PSTK__CHUNK - run->feed.n_out;
}

static int fail_byte(const struct run *run, int code, uint64_t at, const char *why,
                     const char *repair)
{
    pstk__fail(run->err, code, PSTK_STAGE_OPEN, "%s: byte %" PRIu64 " of the %s file: %s; %s",
               run->pass->path, at, run->packing->name, why, repair);
    return pstk__fail_at(run->err, code, run->pass->name, PSTK_NONE, at, 0);
}

/* End the chunk that was filled, wholly or in part. */
static int end_chunk(struct run *run)
{
    const uint64_t n = PSTK__CHUNK - run->feed.n_out;
    if (n == 0)
        return 0;
    run->unpacked += n;
    run->feed.out = run->chunk;
    run->feed.n_out = PSTK__CHUNK;
    return pstk__points_writer_chunk(run->writer, pstk__crc32c(0, run->chunk, n), run->err);
}

/* Make a point here, if the last one is far enough. */
static int add_point(struct run *run)
{
    uint8_t window[PSTK__WINDOW];
    struct pstk__restart restart;
    const uint64_t at = unpacked_at(run);
    if (at / PSTK__SPACING == run->span / PSTK__SPACING)
        return 0;
    const int r = end_chunk(run);
    if (r < 0)
        return r;
    run->packing->point(run->unpacker, &restart, window);
    run->span = at;
    return pstk__points_writer_point(run->writer, at, packed_at(run) - (restart.n_bits > 0),
                                     &restart, window, run->err);
}

/* Have bytes of the file in the feed. 1; 0: it ends; <0. */
static int read_more(struct run *run)
{
    const struct pstk__pass *pass = run->pass;
    const uint64_t left = pass->of.size - run->n_read;
    if (run->n_read - run->reported >= PROGRESS || left == 0) {
        const uint64_t n = run->n_read - run->reported;
        run->reported = run->n_read;
        if (n && pass->progress && pass->progress(pass->user, n))
            return PSTK_ECANCELED;
    }
    const int64_t n =
        pstk__file_read(&run->file, run->input, left < READ ? left : READ, run->n_read);
    if (n < 0)
        return pstk__fail_errno(run->err, (int)-n, PSTK_STAGE_OPEN, "cannot read %s", pass->path);
    run->feed.in = run->input;
    run->feed.n_in = (uint64_t)n;
    run->n_read += (uint64_t)n;
    return n > 0;
}

static int check_same(const struct run *run)
{
    const struct pstk__pass *pass = run->pass;
    return pstk__unpack_check_same(&run->file, pass->path, pass->name, pass->of.size,
                                   pass->of.changed_ns, run->err);
}

/* Check that the file may end where it does. */
static int finish(struct run *run)
{
    struct pstk__pass *pass = run->pass;
    const int same = check_same(run);
    if (same < 0)
        return same;
    if (run->n_read != pass->of.size)
        return fail_byte(run, PSTK_EBADMSG, run->n_read,
                         "the file ends here: it was cut while it "
                         "was read",
                         "open it again");
    if (!run->packing->is_complete(run->unpacker))
        return fail_byte(run, PSTK_EBADMSG, run->n_read,
                         "the file ends within compressed bytes: it is cut short",
                         run->packing->repair);
    const int r = end_chunk(run);
    pass->of.unpacked = run->unpacked;
    pass->is_checked = !run->packing->is_checked || run->packing->is_checked(run->unpacker);
    return r < 0 ? r
                 : pstk__points_writer_commit(&run->writer, &pass->of, &pass->points_size,
                                              &pass->head_crc, run->err);
}

static int go_through(struct run *run)
{
    int r =
        pstk__points_writer_point(run->writer, 0, 0, &(struct pstk__restart){0}, NULL, run->err);
    run->packing->begin(run->unpacker);
    run->feed = (struct pstk__feed){.in = run->input, .out = run->chunk, .n_out = PSTK__CHUNK};
    while (r == 0) {
        const char *why;
        const enum pstk__unpacking step = run->packing->step(run->unpacker, &run->feed, 1, &why);
        if (step == PSTK__UNPACK_BAD)
            return fail_byte(run, PSTK_EBADMSG, packed_at(run), why, run->packing->repair);
        if (step == PSTK__UNPACK_LARGE ||
            (run->packing == &pstk__packing_zstd && unpacked_at(run) - run->span > PSTK__SPAN_MAX))
            return 1;
        if (step == PSTK__UNPACK_POINT)
            r = add_point(run);
        else if (run->feed.n_out == 0)
            r = end_chunk(run);
        else if ((r = read_more(run)) == 0)
            return finish(run);
        r = r > 0 ? 0 : r;
    }
    return r;
}

static int open_run(struct run *run)
{
    struct pstk__pass *pass = run->pass;
    const uint64_t size = run->packing->memory();
    run->memory = aligned_alloc(64, size + READ + PSTK__CHUNK);
    run->unpacker = run->memory ? run->packing->init(run->memory, size) : NULL;
    if (!run->unpacker)
        return pstk__fail(run->err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory to unpack %s",
                          pass->path);
    run->input = run->memory + size;
    run->chunk = run->input + READ;
    int r = pass->store->open(pass->store, &run->file, pass->path);
    if (r < 0)
        return pstk__fail_errno(run->err, -r, PSTK_STAGE_OPEN, "cannot open %s", pass->path);
    r = check_same(run);
    if (r == 0)
        r = pstk__points_writer_open(&run->writer, pass->points, run->err);
    return r < 0 ? r : go_through(run);
}

int pstk__pass_run(struct pstk__pass *pass, struct pstk_error *err)
{
    struct run run = {.pass = pass,
                      .err = err,
                      .packing = pstk__packing_of(pass->of.packing),
                      .file = {.fd = -1}};
    const int r = open_run(&run);
    pstk__points_writer_abort(&run.writer);
    pstk__file_end(&run.file);
    free(run.memory);
    return r;
}
