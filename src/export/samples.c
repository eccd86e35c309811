/* SPDX-License-Identifier: Apache-2.0 */
#include "export/samples.h"

#include "base/cast.h"
#include "base/clock.h"
#include "base/parallel_map.h"
#include "base/error.h"
#include "export/array.h"
#include "base/bytes.h"
#include "image/png/encode.h"
#include "image/png/remake.h"
#include "record/field.h"
#include "record/list.h"
#include "record/value.h"

#include <stdlib.h>
#include <string.h>

#define TICK_NS 20000000u                /* time between two reports of progress */
#define BLOCK_SIZE (UINT64_C(1) << 20)   /* approximate bytes of the values in a block */
#define MAX_BLOCK 64                     /* maximum samples of a block */
#define ROOMS_SIZE (UINT64_C(512) << 20) /* bytes of all buffers; one may be larger */
#define MAX_THREADS 1024

/* The values of a run of samples. A job fills it, then the caller's thread takes it. */
struct block {
    struct pstk__bytes bytes;          /* values, one after another; owned */
    uint64_t *begins;                  /* offset of each value in `bytes`; owned */
    struct pstk__export_value *values; /* value of sample i, field k at i * n_fields + k; owned */
    uint64_t ids[MAX_BLOCK];
    uint64_t n; /* samples */
    struct pstk__samples_counts counts;
};

struct reading {
    struct pstk__samples *samples;
    uint64_t fields;      /* set of field numbers in the schema */
    uint64_t block_size;  /* samples in a block */
    struct block *blocks; /* owned; a job uses blocks[job % n_blocks] */
    uint32_t n_blocks;    /* at least the map's slots, two for each thread (parallel_map.h) */
    int result;           /* first failure of `take` */
    struct pstk_error error;
    uint64_t n_taken; /* samples that were taken */
    uint64_t reported_ns;
};

/* The state of a thread. */
struct member {
    struct reading *reading;
    struct pstk__room room; /* buffer for the largest sample; owned */
    void *decoder_memory;   /* owned */
    struct pstk__decoder *decoder;
    struct pstk__arena scratch;
    const struct pstk__dictionary *dictionary; /* dictionary of the field being read */
    void *plain;                               /* destination of its decompression */
};

/* ---- one value: on a thread of the map ------------------------------------------------------ */

static int no_memory(const struct pstk__record *record, uint32_t number, struct pstk_error *err)
{
    return pstk__record_fail(record, number, PSTK_ENOMEM, PSTK_STAGE_RECORD, err,
                             "no memory for %u bytes", record->fields[number].plain_size);
}

static int find_memory(void *user, const struct pstk__record *record, uint32_t number,
                       struct pstk__field_memory *out, struct pstk_error *err)
{
    struct member *member = user;
    const uint64_t size = pstk__field_scratch(&record->fields[number]);
    if (size > member->scratch.size) {
        pstk__arena_close(&member->scratch);
        if (pstk__arena_open(&member->scratch, size) < 0)
            return no_memory(record, number, err);
    }
    *out = (struct pstk__field_memory){.decoder = member->decoder,
                                       .dictionary = member->dictionary,
                                       .scratch = &member->scratch,
                                       .plain = member->plain};
    return 0;
}

/* Replace the pixels from `begin` to the end of the block by a PNG file. */
static int encode_pixels(struct block *block, uint64_t begin, const struct pstk__record *record,
                         uint32_t number, struct pstk_error *err)
{
    const struct pstk__image_info info = pstk__field_image(&record->fields[number]);
    struct pstk_error why;
    uint64_t size;
    void *file;
    pstk_error_init(&why, sizeof why);
    const int r = pstk__png_encode(block->bytes.data + begin, block->bytes.size - begin, &info,
                                   &file, &size, &why);
    if (r < 0)
        return pstk__record_fail(record, number, r, PSTK_STAGE_RECORD, err, "%s", why.message);
    block->bytes.size = begin;
    pstk__bytes_put(&block->bytes, file, size);
    free(file);
    block->counts.n_encoded++;
    return block->bytes.failed ? no_memory(record, number, err) : 0;
}

/* Convert the bfloat16 elements at the end of the block to float32. */
static int widen(struct block *block, uint64_t begin, const struct pstk_field *field)
{
    const uint64_t at = begin + pstk__array_head(field), n = (block->bytes.size - at) / 2;
    if (!n || !pstk__bytes_room(&block->bytes, 2 * n))
        return n ? PSTK_ENOMEM : 0;
    uint8_t *data = block->bytes.data + at;
    for (uint64_t i = n; i-- > 0;) { /* from the end: the result overlaps elements not yet read */
        float value;
        pstk__cast(&value, PSTK_F32, data + 2 * i, PSTK_BF16);
        memcpy(data + 4 * i, &value, sizeof value);
    }
    return 0;
}

static void count_images(struct block *block, const struct pstk_field *field, uint64_t begin,
                         const struct pstk__field_view *view)
{
    struct pstk__list list;
    char wrong[160];
    if (field->kind == PSTK_FIELD_IMAGE || field->kind == PSTK_FIELD_MASK) {
        block->counts.n_images++;
        block->counts.n_equivalent += (view->flags & PSTK__FIELD_EQUIVALENT) != 0;
        block->counts.n_remade +=
            view->encoding == PSTK_ENCODING_PNG &&
            pstk__png_is_remade(block->bytes.data + begin, block->bytes.size - begin);
    } else if (field->kind == PSTK_FIELD_IMAGE_LIST || field->kind == PSTK_FIELD_MASK_LIST) {
        pstk__list_begin(&list, field->kind, block->bytes.data + begin, block->bytes.size - begin,
                         wrong);
        block->counts.n_images += list.n;
    }
}

/* Append a value to the block. */
static int read_value(struct member *member, struct block *block, struct pstk__record *record,
                      uint32_t number, struct pstk_error *err)
{
    const struct pstk_field *field = &record->schema->fields[number];
    const struct pstk__field_view *view = &record->fields[number];
    const struct pstk__field_reading reading = {
        .max_pixels = PSTK__MAX_PIXELS, .memory = find_memory, .user = member};
    const uint64_t begin = block->bytes.size;
    const uint8_t *plain;
    char text[160];
    member->plain = pstk__bytes_room(&block->bytes, view->plain_size);
    if (block->bytes.failed)
        return no_memory(record, number, err);
    int r = pstk__field_read(record, number, &reading, &plain, err);
    if (r < 0)
        return r;
    if (plain != member->plain && view->plain_size)
        memcpy(member->plain, plain, view->plain_size);
    const char *wrong =
        pstk__value_check(field, view->plain_size ? member->plain : "", view->plain_size, text);
    if (wrong)
        return pstk__record_fail(record, number, PSTK_EBADMSG, PSTK_STAGE_RECORD, err, "%s", wrong);
    count_images(block, field, begin, view);
    if (view->encoding == PSTK_ENCODING_PIXELS)
        return encode_pixels(block, begin, record, number, err);
    if (field->dtype == PSTK_BF16 && widen(block, begin, field) < 0)
        return no_memory(record, number, err);
    return 0;
}

/* ---- a block: a job of the map -------------------------------------------------------------- */

static int read_sample(struct member *member, struct block *block, uint64_t i,
                       struct pstk_error *err)
{
    const struct pstk__samples *samples = member->reading->samples;
    const struct pstk__export *e = samples->export;
    const struct pstk__source *source = pstk__dataset_source(samples->dataset);
    struct pstk__record record;
    uint32_t shard;
    int r = pstk__dataset_read(samples->dataset, block->ids[i], member->reading->fields,
                               &member->room, &record, &shard, err);
    for (uint32_t k = 0; r == 0 && k < e->n_fields; k++) {
        const uint32_t number = e->numbers[k];
        const uint64_t at = i * e->n_fields + k, begin = block->bytes.size;
        member->dictionary = pstk__source_dictionary(source, shard, number);
        r = read_value(member, block, &record, number, err);
        block->begins[at] = begin;
        const uint32_t encoding = record.fields[number].encoding;
        const int is_pixels = encoding == PSTK_ENCODING_PIXELS;
        block->values[at] = (struct pstk__export_value){
            .size = block->bytes.size - begin,
            .encoding = is_pixels ? PSTK_ENCODING_PNG : encoding,
            .is_encoded = (uint32_t)is_pixels,
        };
    }
    if (r < 0 && err)
        err->sample_id = block->ids[i];
    return r;
}

static int find_ids(const struct reading *reading, uint64_t first, struct block *block)
{
    if (reading->samples->members)
        return pstk_members_ids(reading->samples->members, first, block->n, block->ids);
    for (uint64_t i = 0; i < block->n; i++)
        block->ids[i] = first + i;
    return 0;
}

/* Fill the block of a job. No other thread uses it until the caller's thread has taken it. */
static int read_block(void *state, uint64_t job, const struct pstk__map_sink *sink, void *result,
                      struct pstk_error *err)
{
    struct member *member = state;
    struct reading *reading = member->reading;
    struct block *block = &reading->blocks[job % reading->n_blocks];
    const uint64_t first = job * reading->block_size;
    const uint64_t left = reading->samples->export->n_samples - first;
    uint64_t ticked_ns = pstk__clock_ns();
    (void)result;
    pstk__bytes_clear(&block->bytes);
    block->counts = (struct pstk__samples_counts){0};
    block->n = left < reading->block_size ? left : reading->block_size;
    int r = find_ids(reading, first, block);
    for (uint64_t i = 0; r == 0 && i < block->n; i++) {
        r = read_sample(member, block, i, err);
        const uint64_t now = pstk__clock_ns();
        if (r < 0 || (i + 1 < block->n && now - ticked_ns < TICK_NS))
            continue;
        ticked_ns = now;
        if (sink->progress(sink->user, 0))
            return PSTK_ECANCELED;
    }
    return r;
}

static void close_member(void *state)
{
    struct member *member = state;
    if (!member)
        return;
    pstk__arena_close(&member->scratch);
    free(member->decoder_memory);
    free(member->room.data);
    free(member);
}

static int open_member(void *user, void **state, struct pstk_error *err)
{
    struct reading *reading = user;
    const uint64_t size =
        pstk__source_max_read(pstk__dataset_source(reading->samples->dataset), reading->fields);
    const uint64_t decoder_size = pstk__decoder_size();
    struct member *member = *state = calloc(1, sizeof *member);
    if (!member)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "out of memory");
    member->reading = reading;
    member->room = (struct pstk__room){.size = size, .data = malloc(size + 1)};
    member->decoder_memory = aligned_alloc(64, decoder_size);
    member->decoder =
        member->decoder_memory ? pstk__decoder_init(member->decoder_memory, decoder_size) : NULL;
    return member->room.data && member->decoder
               ? 0
               : pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN,
                            "no memory for a sample of %llu bytes", (unsigned long long)size);
}

/* ---- taking: on the caller's thread ---------------------------------------------------------- */

/* Pass the samples of the next block to `take`. */
static void take_block(void *user, const void *unused)
{
    struct reading *reading = user;
    struct pstk__samples *samples = reading->samples;
    const uint32_t n_fields = samples->export->n_fields;
    const uint64_t job = reading->n_taken / reading->block_size;
    struct block *block = &reading->blocks[job % reading->n_blocks];
    (void)unused;
    for (uint64_t i = 0; i < block->n * n_fields; i++)
        block->values[i].data =
            block->bytes.data ? block->bytes.data + block->begins[i] : (const uint8_t *)"";
    for (uint64_t i = 0; reading->result == 0 && i < block->n; i++) {
        const struct pstk__export_sample sample = {.number = reading->n_taken++,
                                                   .id = block->ids[i],
                                                   .values = block->values + i * n_fields};
        reading->result = samples->take(samples->user, &sample, &reading->error);
    }
    samples->counts.n_images += block->counts.n_images;
    samples->counts.n_equivalent += block->counts.n_equivalent;
    samples->counts.n_remade += block->counts.n_remade;
    samples->counts.n_encoded += block->counts.n_encoded;
}

/* Report the number of samples taken, every TICK_NS. Returns non-zero to stop. */
static int report_progress(void *user, uint64_t n)
{
    struct reading *reading = user;
    const struct pstk_export_settings *s = reading->samples->export->settings;
    const uint64_t now = pstk__clock_ns();
    (void)n;
    if (reading->result < 0)
        return 1;
    if (!s->on_progress || now - reading->reported_ns < TICK_NS)
        return 0;
    reading->reported_ns = now;
    return s->on_progress(s->user, reading->n_taken, reading->samples->export->n_samples);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void close_blocks(struct reading *reading)
{
    for (uint32_t i = 0; reading->blocks && i < reading->n_blocks; i++) {
        pstk__bytes_free(&reading->blocks[i].bytes);
        free(reading->blocks[i].begins);
        free(reading->blocks[i].values);
    }
    free(reading->blocks);
}

static int open_blocks(struct reading *reading, struct pstk_error *err)
{
    const uint64_t n = reading->block_size * reading->samples->export->n_fields;
    int found = 1;
    reading->blocks = calloc(reading->n_blocks, sizeof *reading->blocks);
    for (uint32_t i = 0; reading->blocks && found && i < reading->n_blocks; i++) {
        struct block *block = &reading->blocks[i];
        block->begins = calloc(n, sizeof *block->begins);
        block->values = calloc(n, sizeof *block->values);
        found = block->begins && block->values;
    }
    return reading->blocks && found
               ? 0
               : pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "out of memory");
}

/* Limit the number of threads so that their buffers, each for the largest sample, fit in
 * ROOMS_SIZE. */
static uint32_t threads_within(uint64_t sample_size, uint32_t n_threads)
{
    const uint64_t most = sample_size > 0 ? ROOMS_SIZE / sample_size : n_threads;
    const uint64_t n = most < n_threads ? most : n_threads;
    return n < 1 ? 1 : n < MAX_THREADS ? (uint32_t)n : MAX_THREADS;
}

int pstk__samples_read(struct pstk__samples *samples, struct pstk_error *err)
{
    const struct pstk__export *e = samples->export;
    const struct pstk__source *source = pstk__dataset_source(samples->dataset);
    struct reading reading = {.samples = samples};
    for (uint32_t k = 0; k < e->n_fields; k++)
        reading.fields |= UINT64_C(1) << e->numbers[k];
    const uint64_t mean = pstk__source_mean_read(source, reading.fields) + 1;
    const uint64_t n = BLOCK_SIZE / mean;
    const uint32_t n_threads =
        threads_within(pstk__source_max_read(source, reading.fields), samples->n_threads);
    reading.block_size = n < 1 ? 1 : n < MAX_BLOCK ? n : MAX_BLOCK;
    reading.n_blocks = 2 * n_threads;
    pstk_error_init(&reading.error, sizeof reading.error);
    const struct pstk__parallel_map work = {.what = "export",
                                            .n_jobs = (e->n_samples + reading.block_size - 1) /
                                                      reading.block_size,
                                            .n_threads = n_threads,
                                            .user = &reading,
                                            .open = open_member,
                                            .close = close_member,
                                            .run = read_block,
                                            .join = take_block,
                                            .progress = report_progress};
    int r = open_blocks(&reading, err);
    if (r == 0)
        r = pstk__parallel_map_run(&work, err);
    if (reading.result < 0) /* the map reports it as a stop */
        r = pstk__fail_copy(err, &reading.error);
    close_blocks(&reading);
    return r;
}
