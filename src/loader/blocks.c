/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/blocks.h"

#include "base/error.h"

#include <stddef.h>
#include <stdlib.h>

#define FLIGHT_BYTES                                                                               \
    (64u << 20) /* bytes in flight; more would only delay rows that are read by themselves */
#define SWEEP_FRAMES 16u /* frames that a sweep checks, one sweep for each block that begins */
#define SMALL_BLOCK                                                                                \
    (1u << 20) /* bytes; reading such a block takes hardly longer than reading one row */

_Static_assert(sizeof(struct pstk__row_io) <= PSTK__BLOCK_ROW, "footprint.h counts on it");
_Static_assert(sizeof(struct pstk__extent) + sizeof(struct pstk__span_io) <= PSTK__BLOCK_EXTENT,
               "footprint.h counts on it");

enum block_state { BLOCK_FREE, BLOCK_PLANNED, BLOCK_BARE, BLOCK_READING, BLOCK_READY };

/* A block in the line of blocks of the order, or a free frame. */
struct pstk__block {
    struct pstk__fetch fetch;
    uint64_t epoch, line;      /* epoch of the block, and its number in the line of blocks */
    uint64_t first;            /* index of its first sample */
    uint64_t until;            /* position in the epoch from which on no row needs the block */
    uint64_t generation;       /* generation of the rows that used or asked for the block last */
    uint64_t n_tasks;          /* number of the last task of the lane that uses the block, plus 1 */
    uint64_t memory_size;      /* bytes at `memory` */
    uint64_t issued_ns;        /* time at which it got its memory; 0 without a trace */
    uint8_t *memory;           /* owned by the heap, set from READING on */
    uint32_t state;            /* enum block_state */
    struct pstk__block *chain; /* next block in the same bucket of the table */
    struct pstk__block *next;  /* next block in `coming`, or next free frame */
};

/* A way that this rank reads, and the next window to request. */
struct way {
    int is_begun;           /* 0: no row of this generation has reached the way */
    uint64_t epoch, window; /* next window to request */
    uint64_t at_epoch, at;  /* sample of the way that triggers the request for that window */
};

/* Blocks of a window that were requested; `blocks` holds those not yet begun. */
struct request {
    uint64_t epoch, until;
    struct pstk__interleave_blocks blocks;
};

struct pstk__blocks {
    struct pstk__lane *lane;
    uint32_t n_ways,
        n_shared; /* ways that this rank reads; greatest common divisor of the ways and world */
    uint64_t ahead;
    uint64_t block; /* samples of the largest block */
    int is_small;   /* 1: a row whose block was never requested requests it and waits */
    uint64_t generation;
    uint64_t now_epoch, now;  /* position of the newest batch */
    struct way *ways;         /* n_ways, owned */
    struct request *requests; /* a ring of n_requests, owned */
    uint64_t first_request, last_request, n_requests;

    struct pstk__block *frames; /* n_frames, owned */
    uint32_t n_frames,
        hand; /* number of frames; hand: next frame to search for a block that may leave */
    struct pstk__row_io *rows; /* rows, extents and spans of all frames, owned */
    struct pstk__extent *extents;
    struct pstk__span_io *spans;
    struct pstk__block **table; /* n_buckets, a power of two */
    uint32_t n_buckets;
    struct pstk__block *free;
    struct pstk__block *coming,
        **end; /* blocks begun but not wholly queued, in the order in which they began */
    struct pstk__heap heap;
    struct pstk__span_limits limits;
    uint64_t n_flight; /* bytes being read */

    struct pstk__task **tasks; /* listed tasks, a ring of n_ring, a power of two; owned */
    uint64_t n_ring, n_listed,
        n_finished; /* tasks ever listed; all tasks below n_finished are finished */
    uint64_t searched_at,
        searched_finished; /* `now` and n_finished at the last search that found no block to free */
};

/* ---- open, close ---------------------------------------------------------------------------- */

static uint64_t power_of_two(uint64_t n)
{
    uint64_t power = 1;
    while (power < n)
        power *= 2;
    return power;
}

static int allocate(struct pstk__blocks *b)
{
    const uint64_t block = b->block, n_rows = b->n_frames * block,
                   n_extents = n_rows * b->lane->pipeline->n_extents;
    b->ways = calloc(b->n_ways, sizeof *b->ways);
    b->requests = calloc(b->n_requests, sizeof *b->requests);
    b->frames = calloc(b->n_frames, sizeof *b->frames);
    b->rows = calloc(n_rows, sizeof *b->rows);
    b->extents = calloc(n_extents, sizeof *b->extents);
    b->spans = calloc(n_extents, sizeof *b->spans);
    b->table = calloc(b->n_buckets, sizeof *b->table);
    b->tasks = calloc(b->n_ring, sizeof *b->tasks);
    if (!b->ways || !b->requests || !b->frames || !b->rows || !b->extents || !b->spans ||
        !b->table || !b->tasks)
        return PSTK_ENOMEM;
    for (uint64_t i = 0; i < n_rows; i++)
        b->rows[i].extents = b->extents + i * b->lane->pipeline->n_extents;
    for (uint32_t i = b->n_frames; i > 0; i--) {
        struct pstk__block *frame = &b->frames[i - 1];
        frame->fetch.rows = b->rows + (i - 1) * block;
        frame->fetch.spans = b->spans + (i - 1) * block * b->lane->pipeline->n_extents;
        frame->next = b->free;
        b->free = frame;
    }
    return 0;
}

int pstk__blocks_open(struct pstk__blocks **out, struct pstk__lane *lane,
                      const struct pstk__blocks_footprint *need, void *memory,
                      struct pstk_error *err)
{
    const struct pstk__pipeline *pipeline = lane->pipeline;
    struct pstk__blocks *b = *out = calloc(1, sizeof *b);
    int r = b ? 0 : PSTK_ENOMEM;
    if (r == 0) {
        const struct pstk__interleave *interleave = &pipeline->stream.picks.shape.interleave;
        b->lane = lane;
        b->n_ways = need->n_ways;
        b->n_shared = interleave->ways / need->n_ways;
        b->ahead = need->ahead;
        b->block = interleave->block < interleave->n ? interleave->block : interleave->n;
        b->is_small = pstk__source_mean_read(pipeline->source, pipeline->fields) <=
                      SMALL_BLOCK / interleave->block;
        b->generation = UINT64_MAX;
        b->n_frames = need->n_frames;
        b->n_requests = 4 * (uint64_t)need->n_ways + 4;
        b->n_buckets = (uint32_t)power_of_two(2 * (uint64_t)need->n_frames);
        b->n_ring = power_of_two(4 * (uint64_t)lane->n_tasks);
        b->end = &b->coming;
        b->searched_at = UINT64_MAX;
        b->limits = lane->span_limits;
        b->limits.memory =
            need->memory / 2; /* one block may be the whole data set: see footprint.c */
        r = allocate(b);
    }
    if (r == 0 && pstk__heap_open(&b->heap, memory, need->memory, need->n_frames) < 0)
        r = PSTK_ENOMEM;
    return r == 0 ? 0
                  : pstk__fail(err, r, PSTK_STAGE_OPEN, "no memory for %u blocks", need->n_frames);
}

void pstk__blocks_close(struct pstk__blocks *b)
{
    if (!b)
        return;
    pstk__heap_close(&b->heap);
    free(b->tasks);
    free(b->table);
    free(b->spans);
    free(b->extents);
    free(b->rows);
    free(b->frames);
    free(b->requests);
    free(b->ways);
    free(b);
}

/* ---- tasks that use blocks ------------------------------------------------------------------ */

/* Count the oldest tasks that are finished. */
static void note_finished(struct pstk__blocks *b)
{
    while (b->n_finished < b->n_listed) {
        struct pstk__task *oldest = b->tasks[b->n_finished & (b->n_ring - 1)];
        /* Acquire pairs with the release in finish_task: the worker no longer reads the blocks. */
        if (atomic_load_explicit(&oldest->finished, memory_order_acquire) <= b->n_finished)
            break;
        b->n_finished++;
    }
}

int pstk__blocks_have_room(struct pstk__blocks *b)
{
    note_finished(b);
    return b->n_listed - b->n_finished < b->n_ring;
}

void pstk__blocks_list(struct pstk__blocks *b, struct pstk__task *task)
{
    task->number = b->n_listed;
    b->tasks[b->n_listed++ & (b->n_ring - 1)] = task;
}

/* ---- the table of blocks -------------------------------------------------------------------- */

static struct pstk__block **bucket_of(const struct pstk__blocks *b, uint64_t epoch, uint64_t line)
{
    const uint64_t mixed = (line ^ epoch << 40) * 0x9E3779B97F4A7C15u;
    return &b->table[mixed >> 32 & (b->n_buckets - 1)];
}

static struct pstk__block *look_up(const struct pstk__blocks *b, uint64_t epoch, uint64_t line)
{
    struct pstk__block *block = *bucket_of(b, epoch, line);
    while (block && (block->line != line || block->epoch != epoch))
        block = block->chain;
    return block;
}

static void set_free(struct pstk__blocks *b, struct pstk__block *block)
{
    struct pstk__block **link = bucket_of(b, block->epoch, block->line);
    while (*link != block)
        link = &(*link)->chain;
    *link = block->chain;
    if (block->memory)
        pstk__heap_put(&b->heap, block->memory, block->memory_size);
    block->memory = NULL;
    block->state = BLOCK_FREE;
    block->next = b->free;
    b->free = block;
}

/* Return 1 if no row will need the block: its windows are past, or no row asked for it since a
 * seek. */
static int is_past(const struct pstk__blocks *b, const struct pstk__block *block)
{
    return block->generation != b->generation || block->epoch < b->now_epoch ||
           (block->epoch == b->now_epoch && block->until <= b->now);
}

/* Free one block that no row and no task needs. Returns 0 if there is none. */
static int evict(struct pstk__blocks *b)
{
    note_finished(b);
    if (b->searched_at == b->now && b->searched_finished == b->n_finished)
        return 0;
    for (uint32_t i = 0; i < b->n_frames; i++) {
        struct pstk__block *block = &b->frames[b->hand];
        b->hand = b->hand + 1 < b->n_frames ? b->hand + 1 : 0;
        if (block->state == BLOCK_READY && block->n_tasks <= b->n_finished && is_past(b, block)) {
            set_free(b, block);
            return 1;
        }
    }
    b->searched_at = b->now;
    b->searched_finished = b->n_finished;
    return 0;
}

/* Free blocks whose rows are all past, among the next SWEEP_FRAMES frames, as each block begins.
 * Early reuse keeps the memory in the caches, and touches no more memory than the current windows
 * need. Blocks from before a seek stay until their room is needed. */
static void sweep(struct pstk__blocks *b)
{
    note_finished(b);
    for (uint32_t i = 0; i < SWEEP_FRAMES && i < b->n_frames; i++) {
        struct pstk__block *block = &b->frames[b->hand];
        b->hand = b->hand + 1 < b->n_frames ? b->hand + 1 : 0;
        if (block->state == BLOCK_READY && block->generation == b->generation &&
            block->n_tasks <= b->n_finished && is_past(b, block))
            set_free(b, block);
    }
}

/* Begin a block in a free frame. Returns NULL if no frame can be freed. */
static struct pstk__block *begin(struct pstk__blocks *b, uint64_t epoch, uint64_t line,
                                 uint64_t until)
{
    sweep(b);
    if (!b->free && !evict(b))
        return NULL;
    struct pstk__block *block = b->free, **location = bucket_of(b, epoch, line);
    b->free = block->next;
    block->epoch = epoch;
    block->line = line;
    block->until = until;
    block->generation = b->generation;
    block->n_tasks = block->memory_size = 0;
    block->state = BLOCK_PLANNED;
    block->chain = *location;
    *location = block;
    block->next = NULL;
    *b->end = block;
    b->end = &block->next;
    struct pstk__fetch *fetch = &block->fetch;
    *fetch = (struct pstk__fetch){.rows = fetch->rows, .spans = fetch->spans};
    pstk__windowed_block(&pstk__picker_order(&b->lane->picker, epoch)->windowed, line,
                         &block->first, &fetch->n_rows);
    for (uint32_t i = 0; i < fetch->n_rows; i++) {
        struct pstk__row_io *io = &fetch->rows[i];
        io->pick.id = pstk__pick_id(b->lane->picker.plan, block->first + i);
        io->page = NULL;
        io->block = NULL;
        io->slow = 0;
    }
    return block;
}

/* ---- reading ahead -------------------------------------------------------------------------- */

/* Return the position in the epoch at which a window ends. */
static uint64_t end_of(const struct pstk__windowed *order, uint32_t way, uint64_t window)
{
    uint64_t first, n;
    pstk__windowed_span(order, way, window, &first, &n);
    return (first + n) * order->interleave.ways;
}

static void ask(struct pstk__blocks *b, uint64_t epoch, uint32_t way, uint64_t window)
{
    const struct pstk__windowed *order = &pstk__picker_order(&b->lane->picker, epoch)->windowed;
    if (b->last_request - b->first_request == b->n_requests)
        return; /* the rows of the window are read by themselves */
    b->requests[b->last_request++ % b->n_requests] =
        (struct request){.epoch = epoch,
                         .until = end_of(order, way, window),
                         .blocks = pstk__windowed_blocks(order, way, window)};
}

/* Set the window that follows `window`, and the sample that triggers its request. */
static void set_next(struct pstk__blocks *b, struct way *state, uint32_t way, uint64_t epoch,
                     uint64_t window)
{
    const struct pstk__windowed *order = &pstk__picker_order(&b->lane->picker, epoch)->windowed;
    uint64_t first = pstk__windowed_way(order, way), n;
    state->at_epoch = epoch;
    if (window + 1 < pstk__windowed_n_windows(order, way)) {
        state->epoch = epoch;
        state->window = window + 1;
        pstk__windowed_span(order, way, window + 1, &first, &n);
    } else {
        state->epoch = epoch + 1;
        state->window = 0;
    }
    state->at = first > b->ahead ? first - b->ahead : 0;
}

/* Request the windows that are due when a row reaches sample i of a way. */
static void reach(struct pstk__blocks *b, uint64_t epoch,
                  const struct pstk__interleave_location *location, uint64_t i)
{
    struct way *state = &b->ways[location->way / b->n_shared];
    if (!state->is_begun) {
        uint64_t first, n;
        pstk__windowed_span(&pstk__picker_order(&b->lane->picker, epoch)->windowed, location->way,
                            location->window, &first, &n);
        if (b->is_small || 2 * (first + n - i) >= n)
            ask(b, epoch, location->way, location->window);
        set_next(b, state, location->way, epoch, location->window);
        state->is_begun = 1;
    }
    while (epoch > state->at_epoch || (epoch == state->at_epoch && i >= state->at)) {
        ask(b, state->epoch, location->way, state->window);
        set_next(b, state, location->way, state->epoch, state->window);
    }
}

/* Begin the requested blocks, while there is room. Returns 1 if one was begun. */
static int begin_asked(struct pstk__blocks *b)
{
    int progress = 0;
    while (b->first_request < b->last_request && b->n_flight < FLIGHT_BYTES) {
        struct request *request = &b->requests[b->first_request % b->n_requests];
        for (; request->blocks.first <= request->blocks.last; request->blocks.first++) {
            struct pstk__block *block = look_up(b, request->epoch, request->blocks.first);
            if (block) {
                block->generation = b->generation;
                block->until = block->until > request->until ? block->until : request->until;
            } else if (b->n_flight >= FLIGHT_BYTES ||
                       !begin(b, request->epoch, request->blocks.first, request->until)) {
                return progress;
            } else {
                progress = 1;
            }
        }
        b->first_request++;
    }
    return progress;
}

/* ---- rows ----------------------------------------------------------------------------------- */

/* Begin a generation: after a seek, the rows are of another stream. Blocks stay until their room is
 * needed. */
static void begin_generation(struct pstk__blocks *b, uint64_t generation)
{
    b->generation = generation;
    b->first_request = b->last_request;
    for (uint32_t i = 0; i < b->n_ways; i++)
        b->ways[i].is_begun = 0;
}

/* Return the extents of a row of a block. */
static struct pstk__extent *extents_of(const struct pstk__blocks *b,
                                       const struct pstk__block *block, uint32_t row)
{
    const uint64_t i = (uint64_t)(block - b->frames) * b->block + row;
    return &b->extents[i * b->lane->pipeline->n_extents];
}

/* Prefetch the data that resolve will copy: planning wrote it long ago. */
static void prefetch(const struct pstk__blocks *b, const struct pstk__block *block, uint32_t row)
{
    const struct pstk__extent *extents = extents_of(b, block, row);
    __builtin_prefetch(extents);
    __builtin_prefetch((const char *)(extents + 1) - 1);
}

void pstk__blocks_find(struct pstk__blocks *b, const struct pstk__task *task, uint64_t k,
                       struct pstk__row_io *io)
{
    const struct pstk__slot *slot = task->slot;
    const struct pstk__interleave *interleave = &b->lane->pipeline->stream.picks.shape.interleave;
    const uint64_t epoch = slot->batch.epoch;
    struct pstk__interleave_location location;
    const struct pstk__windowed *order = &pstk__picker_order(&b->lane->picker, epoch)->windowed;
    pstk__windowed_line(order, k, &location);
    if (b->generation != slot->generation)
        begin_generation(b, slot->generation);
    b->now_epoch = epoch;
    b->now = slot->batch.position;
    /* Rows that pad the last batch come from the begin of the epoch, perhaps from ways of other
     * ranks. */
    if (k >= slot->batch.position)
        reach(b, epoch, &location, k / interleave->ways);
    struct pstk__block *block = look_up(b, epoch, location.line);
    if (!block && b->is_small)
        block = begin(b, epoch, location.line, end_of(order, location.way, location.window));
    uint64_t first = 0;
    uint32_t n;
    if (block)
        first = block->first;
    else
        pstk__windowed_block(order, location.line, &first, &n);
    pstk__picker_index(&b->lane->picker, epoch, first + location.row, &io->pick);
    io->block = block;
    io->row = location.row;
    if (block) {
        block->n_tasks = task->number + 1;
        block->generation = b->generation;
        prefetch(b, block, location.row);
    }
}

int pstk__blocks_resolve(struct pstk__blocks *b, struct pstk__row_io *io)
{
    struct pstk__block *block = io->block;
    if (!block)
        return 1;
    if (block->state == BLOCK_PLANNED || block->state == BLOCK_READING)
        return 0;
    /* Locate the row again: the block's data about it has left the cache long ago. */
    const struct pstk__source *source = b->lane->pipeline->source;
    const struct pstk__extent *from = extents_of(b, block, io->row);
    source->format->locate(source, io->pick.id, &io->at);
    io->slow = block->fetch.has_slow ? block->fetch.rows[io->row].slow : 0;
    for (uint32_t i = 0; i < b->lane->pipeline->n_extents; i++)
        io->extents[i] = from[i];
    if (block->state == BLOCK_BARE)
        io->block = NULL;
    return 1;
}

/* ---- blocks on their way -------------------------------------------------------------------- */

/* Find the extents of a block's rows; the block pins at most one page at a time. Returns 1 once all
 * are known. */
static int plan(struct pstk__blocks *b, struct pstk__block *block, int *progress)
{
    struct pstk__fetch *fetch = &block->fetch;
    for (; fetch->n_planned < fetch->n_rows; fetch->n_planned++) {
        struct pstk__row_io *io = &fetch->rows[fetch->n_planned];
        enum pstk__row_plan r = PSTK__ROW_KNOWN;
        if (!io->page)
            r = pstk__fetch_plan_row(b->lane, io, io->pick.id);
        /* Rows hold every page frame, and no read is in flight whose end would free one. */
        if (r == PSTK__ROW_LATER && b->lane->n_in_flight == 0)
            io->slow = 1;
        else if (r == PSTK__ROW_LATER || !pstk__fetch_resolve_row(b->lane, io))
            return 0;
        fetch->has_slow |= io->slow;
        *progress = 1;
    }
    return 1;
}

/* Give a block memory, and free past blocks for it if needed. Returns 0 if there is not enough. */
static int location(struct pstk__blocks *b, struct pstk__block *block)
{
    struct pstk__fetch *fetch = &block->fetch;
    do
        block->memory = pstk__heap_get(&b->heap, fetch->memory_size);
    while (!block->memory && evict(b));
    if (!block->memory)
        return 0;
    block->memory_size = fetch->memory_size;
    pstk__fetch_place(b->lane, fetch, block->memory, 0);
    block->issued_ns = pstk__ring_now(b->lane->ring);
    b->n_flight += block->memory_size;
    block->state = BLOCK_READING;
    return 1;
}

static void trace_block(const struct pstk__blocks *b, const struct pstk__block *block)
{
    const struct pstk__event event = {.begin_ns = block->issued_ns,
                                      .end_ns = pstk__clock_ns(),
                                      .seq = PSTK__TRACE_UNKNOWN,
                                      .epoch = block->epoch,
                                      .index = block->line,
                                      .kind = PSTK__EVENT_BLOCK,
                                      .n_rows = block->fetch.n_rows};
    pstk__ring_add(b->lane->ring, &event);
}

static void set_ready(struct pstk__blocks *b, struct pstk__block *block)
{
    if (block->state == BLOCK_READING)
        b->n_flight -= block->memory_size;
    if (b->lane->ring && block->state == BLOCK_READING && block->fetch.n_spans)
        trace_block(b, block);
    block->state = BLOCK_READY;
}

/* Take a block to its next states. Returns 1 once it needs no further call. */
static int advance(struct pstk__blocks *b, struct pstk__block *block, int *progress)
{
    struct pstk__fetch *fetch = &block->fetch;
    if (block->state == BLOCK_PLANNED) {
        if (!plan(b, block, progress))
            return 0;
        pstk__fetch_lay_out(b->lane, fetch, &b->limits);
        block->state = BLOCK_BARE;
    }
    if (block->state == BLOCK_BARE && fetch->memory_size == 0)
        block->state = BLOCK_READING; /* all rows take the slow path */
    if (block->state == BLOCK_BARE) {
        if (is_past(b, block) && block->n_tasks <= b->n_finished) {
            set_free(b, block);
            return 1;
        }
        if (!location(b, block))
            return 0;
        *progress = 1;
    }
    const uint32_t before = fetch->next_span;
    const int all = pstk__fetch_queue(b->lane, fetch);
    *progress |= fetch->next_span != before;
    if (all && pstk__fetch_is_done(fetch))
        set_ready(b, block);
    *progress |= all;
    return all;
}

int pstk__blocks_advance(struct pstk__blocks *b)
{
    int progress = begin_asked(b);
    struct pstk__block **link = &b->coming;
    while (*link) {
        struct pstk__block *block = *link, *next = block->next;
        if (advance(b, block, &progress))
            *link = next;
        else
            link = &block->next;
    }
    b->end = link;
    return progress;
}

void pstk__blocks_span_done(struct pstk__blocks *b, struct pstk__span_io *span_io)
{
    struct pstk__fetch *fetch = span_io->fetch;
    pstk__fetch_span_done(b->lane, span_io);
    if (pstk__fetch_is_done(fetch)) {
        char *at = (char *)fetch;
        set_ready(b, (struct pstk__block *)(void *)(at - offsetof(struct pstk__block, fetch)));
    }
}
