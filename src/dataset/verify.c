/* SPDX-License-Identifier: Apache-2.0 */
/* pstk_verify: calls the format's own verify, or reads every value once in a parallel map. The
 * map's jobs, in this order: blocks of samples, whole fields that have a checksum, files with a
 * listed hash, files whose copy is read (store check). A data set too damaged to open is salvaged
 * (format.h): its files are reported, and the remaining samples are read. */
#include "dataset/dataset.h"

#include "base/clock.h"
#include "base/crc32c.h"
#include "base/parallel_map.h"
#include "base/error.h"
#include "base/hash.h"
#include "dataset/checksums.h"
#include "dataset/numbered.h"
#include "dataset/verify_whole.h"
#include "image/decoder.h"
#include "record/field.h"
#include "record/translate.h"
#include "record/value.h"

#include <penstock/foreign.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TICK_NS 20000000u /* time between two reports of progress */
#define IN_HOLE 2         /* result of check_sample: counted in pstk_verify_report.n_holes */
#define BLOCK 64          /* samples in a block */
#define ROOMS_SIZE (UINT64_C(512) << 20) /* bytes of all buffers; one may be larger */

struct verify {
    const struct pstk__verify_request *request;
    struct pstk_dataset *dataset; /* owned */
    uint64_t n_samples;
    uint64_t n_blocks; /* jobs that read samples; they come first */
    uint64_t loose;    /* set of the fields whose values are read sample by sample */
    uint32_t n_whole;  /* fields that are read whole */
    uint32_t whole[PSTK_MAX_FIELDS];
    uint64_t n_hashed; /* files that are read whole for their hash; their jobs follow */
    uint64_t n_copied; /* files whose copy may be read; their jobs come last */
    uint64_t n_bad;
    uint64_t n_done;      /* progress; n_samples for the loose fields, for each whole field, for the
                             hashes and for the copies */
    uint64_t reported_ns; /* time of the last report of progress */
    char last_file[768];  /* last reported message about a whole file */
    uint64_t n_holes;     /* samples that have bytes in a hole */
    char first_hole[256]; /* position of the first hole */
    int is_salvaged;      /* 1: the data set was salvaged from a damaged one */
    struct pstk__checksums *kept;          /* checksums to compare with, or NULL; owned */
    struct pstk__checksums_writer *writer; /* receiver of new checksums, or NULL; borrowed */
    int has_run;                           /* 1: the map was started */
    int code;                              /* error of adding a checksum, or 0 */
    struct pstk_error *err;                /* receives the message of that error */
};

/* The result of a job: the checksums of a block, if they are made. */
struct block {
    uint32_t n;
    uint32_t crcs[BLOCK];
};

/* The state of a thread of the map. */
struct member {
    const struct verify *verify;
    struct pstk__room room;           /* buffer for the largest sample, or for a piece; owned */
    struct pstk__room plain;          /* buffer for the largest value; owned */
    struct pstk__verify_whole whole;  /* reads its pieces into `room` */
    struct pstk__checksums_page page; /* page of the kept checksums */
};

/* Find memory for a value that is translated to be checked, one at a time (pstk__field_memory_fn).
 * Compressed values are refused: a format that has them has its own verify. */
static int find_memory(void *user, const struct pstk__record *record, uint32_t i,
                       struct pstk__field_memory *out, struct pstk_error *err)
{
    const struct member *member = user;
    const uint32_t size = record->fields[i].plain_size;
    if (!pstk__codec_is_foreign(record->fields[i].codec))
        return pstk__record_fail(record, i, PSTK_ENOTSUP, PSTK_STAGE_RECORD, err,
                                 "is stored in compressed form");
    if (size > member->plain.size)
        return pstk__record_fail(record, i, PSTK_EFBIG, PSTK_STAGE_RECORD, err,
                                 "has %u bytes, more than the index says of any value", size);
    *out = (struct pstk__field_memory){.plain = member->plain.data};
    return 0;
}

/* Decode an image in full. */
static int check_image(const struct pstk__record *record, uint32_t i, const uint8_t *plain,
                       struct pstk_error *err)
{
    struct pstk_error why;
    uint32_t damaged = PSTK_DAMAGE_NONE;
    pstk_error_init(&why, sizeof why);
    const int rc = pstk_image_check_damaged(plain, record->fields[i].plain_size, PSTK__MAX_PIXELS,
                                            &damaged, &why);
    if (damaged != PSTK_DAMAGE_NONE && record->accepts_damaged)
        return 0;
    return rc < 0 ? pstk__record_fail(record, i, rc, PSTK_STAGE_DECODE, err, "%.400s", why.message)
                  : 0;
}

static int check_values(const struct member *member, const struct pstk__record *record,
                        uint64_t fields, struct pstk_error *err)
{
    const struct pstk__field_reading reading = {
        .max_pixels = UINT64_MAX, .memory = find_memory, .user = (void *)(uintptr_t)member};
    for (uint32_t i = 0; i < record->n_fields; i++) {
        const struct pstk_field *field = &record->schema->fields[i];
        const uint8_t *plain;
        char text[160];
        if (!(fields >> i & 1))
            continue;
        const int rc = pstk__field_read(record, i, &reading, &plain, err);
        if (rc < 0)
            return rc;
        const char *wrong = pstk__value_check(field, plain, record->fields[i].plain_size, text);
        if (wrong)
            return pstk__record_fail(record, i, PSTK_EBADMSG, PSTK_STAGE_RECORD, err, "%s", wrong);
        if (member->verify->request->decode && field->kind == PSTK_FIELD_IMAGE) {
            const int bad = check_image(record, i, plain, err);
            if (bad < 0)
                return bad;
        }
    }
    return 0;
}

/* ---- a block --------------------------------------------------------------------------------- */

/* A sample that was read. */
struct sample {
    uint64_t id;
    struct pstk__record record;
    struct pstk__extent extents[PSTK_MAX_FIELDS]; /* bytes in the buffer, one after another */
    uint32_t n_extents;
};

static uint32_t crc_of(const struct member *member, const struct sample *sample)
{
    const struct pstk__source *source = pstk__dataset_source(member->verify->dataset);
    uint32_t crc = 0;
    for (uint32_t i = 0; i < sample->n_extents; i++)
        if (pstk__checksums_count(source, &sample->extents[i]))
            crc = pstk__crc32c(crc, sample->extents[i].data, sample->extents[i].size);
    return crc;
}

/* Fail because the sample's bytes differ from those whose checksum was kept. */
static int fail_changed(const struct member *member, const struct sample *sample, uint32_t crc,
                        uint32_t kept, struct pstk_error *bad)
{
    const struct pstk__source *source = pstk__dataset_source(member->verify->dataset);
    const struct pstk__extent *first = &sample->extents[0];
    char buffer[PSTK__MAX_SHOWN];
    const char *name = pstk__source_file_name(source, first->file, buffer);
    uint64_t begin = first->offset, end = begin + first->size;
    uint32_t n_files = 1;
    for (uint32_t i = 1; i < sample->n_extents; i++) {
        const struct pstk__extent *extent = &sample->extents[i];
        if (!pstk__checksums_count(source, extent) || extent->size == 0)
            continue;
        n_files += extent->file != first->file;
        if (extent->file != first->file)
            continue;
        begin = extent->offset < begin ? extent->offset : begin;
        end = extent->offset + extent->size > end ? extent->offset + extent->size : end;
    }
    pstk__fail(bad, PSTK_EBADMSG, PSTK_STAGE_RECORD,
               "%s: record %llu (bytes %llu to %llu%s): the CRC32C of its bytes is %08x; must be "
               "%08x, the checksum that was kept: the bytes were damaged, or changed in place; "
               "copy the file again",
               name, (unsigned long long)first->record, (unsigned long long)begin,
               (unsigned long long)(end - (end > begin)), n_files > 1 ? ", and other files" : "",
               crc, kept);
    return pstk__fail_at(bad, PSTK_EBADMSG, name, first->record, begin, end - begin);
}

/* Compare the sample's CRC with its kept checksum. */
static int compare(struct member *member, const struct sample *sample, uint32_t crc,
                   struct pstk_error *bad)
{
    uint32_t kept;
    const int rc = pstk__checksums_get(member->verify->kept, sample->id, &member->page, &kept, bad);
    return rc < 0 || kept == crc ? rc : fail_changed(member, sample, crc, kept, bad);
}

/* Return 1 if the sample has bytes in a hole of a file; *found names the position, with code 0. A
 * hole is not damage: a sparse copy makes holes of zeros that were written. Formats without an
 * index are left out: numpy.memmap leaves holes in arrays. */
static int find_hole(const struct member *member, const struct sample *sample,
                     struct pstk_error *found)
{
    struct pstk_dataset *dataset = member->verify->dataset;
    const struct pstk__source *source = pstk__dataset_source(dataset);
    for (uint32_t i = 0; source->format->index && i < sample->n_extents; i++) {
        const struct pstk__extent *extent = &sample->extents[i];
        uint64_t begin, end;
        if (!pstk__checksums_count(source, extent) ||
            !pstk__dataset_find_hole(dataset, extent, &begin, &end))
            continue;
        char buffer[PSTK__MAX_SHOWN];
        pstk__fail(found, PSTK_OK, PSTK_STAGE_RECORD, "%.80s, record %llu, bytes %llu to %llu",
                   pstk__source_file_name(source, extent->file, buffer),
                   (unsigned long long)extent->record, (unsigned long long)begin,
                   (unsigned long long)(end - 1));
        return 1;
    }
    return 0;
}

/* Check the sample's kept checksum or, without one, holes: reading a sample checks neither. Returns
 * 0, IN_HOLE or a negative result. */
static int check_bytes_of(struct member *member, const struct sample *sample, uint32_t *crc,
                          struct pstk_error *bad)
{
    const struct verify *verify = member->verify;
    const struct pstk__source *source = pstk__dataset_source(verify->dataset);
    if (source->format->checksum != PSTK__CHECKSUM_NONE)
        return 0;
    if (verify->kept || verify->writer)
        *crc = crc_of(member, sample);
    if (verify->kept)
        return compare(member, sample, *crc, bad);
    return find_hole(member, sample, bad) ? IN_HOLE : 0;
}

/* Check a sample. Returns 0: it is right; 1: it is bad, with the reason in *bad; IN_HOLE: it is
 * right, and *bad, with code 0, names a hole; < 0: reading failed for another reason than damage.
 */
static int check_sample(struct member *member, uint64_t id, uint32_t *crc, struct pstk_error *bad)
{
    const struct verify *verify = member->verify;
    struct sample sample = {.id = id};
    uint32_t shard;
    pstk_error_init(bad, sizeof *bad);
    int rc =
        pstk__dataset_read_extents(verify->dataset, id, verify->loose, &member->room,
                                   sample.extents, &sample.n_extents, &sample.record, &shard, bad);
    if (rc == 0)
        rc = check_values(member, &sample.record, verify->loose, bad);
    if (rc == 0)
        rc = check_bytes_of(member, &sample, crc, bad);
    bad->sample_id = id;
    return pstk__verify_is_damage(rc, bad) ? 1 : rc;
}

static int check_block(struct member *member, uint64_t block, const struct pstk__map_sink *sink,
                       struct block *result, struct pstk_error *err)
{
    const uint64_t first = block * BLOCK, left = member->verify->n_samples - first;
    const uint64_t n = left < BLOCK ? left : BLOCK;
    uint64_t n_ticked = 0, ticked_ns = pstk__clock_ns();
    for (uint64_t i = 0; i < n; i++) {
        struct pstk_error bad;
        uint32_t crc = 0;
        const int rc = check_sample(member, first + i, &crc, &bad);
        if (member->verify->writer)
            result->crcs[result->n++] = crc;
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

/* ---- the map -------------------------------------------------------------------------------- */

static int run_job(void *state, uint64_t job, const struct pstk__map_sink *sink, void *result,
                   struct pstk_error *err)
{
    struct member *member = state;
    const struct verify *verify = member->verify;
    if (verify->writer)
        ((struct block *)result)->n = 0;
    if (job < verify->n_blocks)
        return check_block(member, job, sink, result, err);
    job -= verify->n_blocks;
    if (job < verify->n_whole)
        return pstk__verify_field(&member->whole, verify->whole[job], sink, err);
    job -= verify->n_whole;
    return job < verify->n_hashed
               ? pstk__verify_hash(&member->whole, (uint32_t)job, sink, err)
               : pstk__verify_copy(&member->whole, (uint32_t)(job - verify->n_hashed), sink, err);
}

static void close_member(void *state)
{
    struct member *member = state;
    if (member) {
        free(member->room.data);
        free(member->plain.data);
    }
    free(member);
}

/* Return the bytes of a thread's buffer. */
static uint64_t room_size(const struct verify *verify)
{
    const uint64_t sample =
        verify->loose ? pstk__dataset_source(verify->dataset)->limits.max_size : 0;
    const uint64_t piece = verify->n_whole || verify->n_hashed ? PSTK__VERIFY_PIECE : 0;
    return sample > piece ? sample : piece;
}

static int open_member(void *user, void **state, struct pstk_error *err)
{
    const struct verify *verify = user;
    const struct pstk__source *source = pstk__dataset_source(verify->dataset);
    const uint64_t size = room_size(verify);
    uint64_t plain = 0;
    for (uint32_t i = 0; i < source->schema.n_fields; i++)
        plain = source->limits.max_plain[i] > plain ? source->limits.max_plain[i] : plain;
    struct member *member = *state = calloc(1, sizeof *member);
    if (!member)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "out of memory");
    *member = (struct member){.verify = verify,
                              .room = {.size = size, .data = malloc(size + 1)},
                              .plain = {.size = plain, .data = malloc(plain + 1)}};
    member->whole.source = source;
    member->whole.piece = member->room.data;
    pstk__crc32_init(&member->whole.crc32);
    return member->room.data && member->plain.data
               ? 0
               : pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN,
                            "no memory for a sample of %llu bytes", (unsigned long long)size);
}

/* ---- reporting: on the caller's thread ------------------------------------------------------- */

/* Return 1 if the damage concerns a whole file and was reported with the previous sample: many
 * samples may lie in one file. */
static int is_reported(struct verify *verify, const struct pstk_error *bad)
{
    if (bad->stage != PSTK_STAGE_SHARD)
        return 0;
    if (strcmp(verify->last_file, bad->message) == 0)
        return 1;
    snprintf(verify->last_file, sizeof verify->last_file, "%.767s", bad->message);
    return 0;
}

static int report_damage(void *user, const struct pstk_error *bad)
{
    struct verify *verify = user;
    if (bad->code == PSTK_OK) {
        if (verify->n_holes++ == 0)
            snprintf(verify->first_hole, sizeof verify->first_hole, "%.255s", bad->message);
        return 0;
    }
    if (is_reported(verify, bad))
        return 0;
    verify->n_bad++;
    return verify->request->on_bad ? verify->request->on_bad(verify->request->user, bad) : 0;
}

/* Report progress in samples to the caller. Also `progress` of checksums.h. */
static int report_done(void *user, uint64_t n_done, uint64_t n_total)
{
    const struct pstk__verify_request *request = ((const struct verify *)user)->request;
    return request->on_progress ? request->on_progress(request->user, n_done, n_total) : 0;
}

/* Count n more samples, and report progress every TICK_NS and at the end. Processes that wait for
 * the checksums see the progress of all kinds of jobs. */
static int report_progress(void *user, uint64_t n)
{
    struct verify *verify = user;
    const uint64_t now = pstk__clock_ns();
    const uint64_t n_parts =
        verify->n_whole + (verify->n_blocks > 0) + (verify->n_hashed > 0) + (verify->n_copied > 0);
    verify->n_done += n;
    if (verify->code < 0)
        return 1;
    if (verify->n_done < verify->n_samples * n_parts && now - verify->reported_ns < TICK_NS)
        return 0;
    verify->reported_ns = now;
    const uint64_t n_done = verify->n_done / n_parts;
    return verify->writer ? pstk__checksums_report(verify->writer, n_done, verify->n_samples)
                          : report_done(verify, n_done, verify->n_samples);
}

/* Take the checksums of a block, in the order of blocks; stop at the first bad sample. */
static void join_block(void *user, const void *result)
{
    struct verify *verify = user;
    const struct block *block = result;
    for (uint32_t i = 0; i < block->n && verify->code == 0 && verify->n_bad == 0; i++)
        verify->code = pstk__checksums_add(verify->writer, block->crcs[i], verify->err);
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* Limit the number of threads so that their buffers fit in ROOMS_SIZE. */
static uint32_t threads_within(const struct verify *verify, uint32_t n_threads)
{
    const uint64_t size = room_size(verify);
    const uint64_t most = size > 0 ? ROOMS_SIZE / size : n_threads;
    return most < 1 ? 1 : most < n_threads ? (uint32_t)most : n_threads;
}

/* Divide the fields into those read whole and those read sample by sample, and count the jobs. */
static void divide(struct verify *verify)
{
    const struct pstk__source *source = pstk__dataset_source(verify->dataset);
    verify->n_samples = source->n_samples;
    verify->loose = PSTK__ALL_FIELDS;
    for (uint32_t i = 0; i < source->schema.n_fields; i++)
        if (pstk__source_cover(source, i)) {
            verify->whole[verify->n_whole++] = i;
            verify->loose &= ~(UINT64_C(1) << i);
        }
    if (verify->n_whole == source->schema.n_fields)
        verify->loose = 0;
    verify->n_copied = source->store->check ? source->n_shards : 0;
    verify->n_blocks = verify->loose ? (verify->n_samples + BLOCK - 1) / BLOCK : 0;
}

/* Append a sentence to the report's note. */
static void __attribute__((format(printf, 2, 3)))
add_note(struct pstk_verify_report *report, const char *fmt, ...)
{
    va_list args;
    size_t n = strlen(report->note);
    if (n > 0)
        n += (size_t)snprintf(report->note + n, sizeof report->note - n, "; ");
    if (n >= sizeof report->note)
        return;
    va_start(args, fmt);
    vsnprintf(report->note + n, sizeof report->note - n, fmt, args);
    va_end(args);
}

/* Find the files that are read for their hashes. Returns 1 if every file has a hash that is
 * checked. */
static int find_hashes(struct verify *verify)
{
    const struct pstk__source *source = pstk__dataset_source(verify->dataset);
    struct pstk_verify_report *report = verify->request->report;
    const char *unknown = NULL;
    uint64_t n_known = 0;
    for (uint32_t i = 0; source->format->file_hash && i < source->n_shards; i++) {
        const char *digits, *name = source->format->file_hash(source, i, &digits);
        const int is_known = name && pstk__hash_is_known(name);
        n_known += (uint64_t)is_known;
        unknown = name && !is_known ? name : unknown;
    }
    if (unknown)
        add_note(report,
                 "the data set lists hashes of its files by %.32s, which this build of penstock "
                 "does not know: they were not checked",
                 unknown);
    verify->n_hashed = n_known ? source->n_shards : 0;
    return n_known && n_known == source->n_shards;
}

/* Read everything once, in a parallel map. */
static int run(struct verify *verify, struct pstk_error *err)
{
    const struct pstk__parallel_map work = {
        .what = "verify",
        .n_jobs = verify->n_blocks + verify->n_whole + verify->n_hashed + verify->n_copied,
        .n_threads = threads_within(verify, verify->request->n_threads),
        .result_size = verify->writer ? sizeof(struct block) : 0,
        .user = verify,
        .open = open_member,
        .close = close_member,
        .run = run_job,
        .join = verify->writer ? join_block : NULL,
        .bad = report_damage,
        .progress = report_progress};
    verify->has_run = 1;
    verify->n_done = 0;
    verify->n_holes = 0;
    return pstk__parallel_map_run(&work, err);
}

/* Implement `make` of checksums.h. */
static int make_checksums(void *user, struct pstk__checksums_writer *writer, struct pstk_error *err)
{
    struct verify *verify = user;
    verify->writer = writer;
    verify->code = 0;
    verify->err = err;
    const int rc = run(verify, err);
    verify->writer = NULL;
    if (verify->code < 0)
        return verify->code; /* its message was written before the map stopped */
    return rc < 0 ? rc : verify->n_bad > 0 ? PSTK_EBADMSG : 0;
}

/* Make and keep checksums, because none fit. */
static int keep(struct verify *verify, struct pstk_error *err)
{
    struct pstk_verify_report *report = verify->request->report;
    const struct pstk__checksums_work work = {
        .make = make_checksums, .progress = report_done, .user = verify};
    const int rc = pstk__checksums_make(&verify->kept, pstk__dataset_source(verify->dataset),
                                        verify->request->foreign, &work, err);
    if (rc == PSTK_EBADMSG && verify->has_run && verify->n_bad > 0) {
        snprintf(report->note, sizeof report->note,
                 "no new checksums were kept, because the data is damaged");
        return 0;
    }
    if (rc < 0)
        return rc;
    if (verify->has_run) {
        report->checksums = PSTK_VERIFY_KEPT;
        report->note[0] = 0;
        find_hashes(verify); /* note again the hashes that were not checked */
        return 0;
    }
    report->checksums = PSTK_VERIFY_COMPARED; /* another process has made them in the meantime */
    return run(verify, err);
}

/* Read the data set, or the remainder of a damaged one, and compare with existing checksums. */
static int check_all(struct verify *verify, struct pstk_error *err)
{
    const struct pstk__verify_request *request = verify->request;
    const struct pstk__source *source = pstk__dataset_source(verify->dataset);
    struct pstk_verify_report *report = request->report;
    divide(verify);
    report->n_samples = verify->n_samples;
    report->n_files = source->format->index && !source->format->has_file_each ? source->n_shards
                      : source->format->has_file_each                         ? source->n_samples
                                                                              : source->n_files;
    if (pstk__checksums_fields(source) == 0) {
        report->checksums = PSTK_VERIFY_OWN;
        if (!verify->is_salvaged)
            find_hashes(verify);
        return run(verify, err);
    }
    if (verify->is_salvaged) {
        snprintf(report->note, sizeof report->note,
                 "verify checked each damaged file only up to its first damage, because nothing "
                 "after it can be trusted; no checksums were %s",
                 request->keep_checksums ? "kept" : "compared");
        return run(verify, err);
    }
    int rc = pstk__checksums_find(&verify->kept, source, request->foreign, report->note, err);
    if (rc < 0)
        return rc;
    const int has_hashes = find_hashes(verify);
    if (!verify->kept && request->keep_checksums)
        return keep(verify, err);
    report->checksums = verify->kept ? PSTK_VERIFY_COMPARED
                        : has_hashes ? PSTK_VERIFY_OWN
                                     : PSTK_VERIFY_WITHOUT;
    return run(verify, err);
}

/* Open the data set; if files are damaged, report them and open the remainder. Returns 0 without a
 * data set if nothing remains. */
static int open_any(struct verify *verify, struct pstk_error *err)
{
    const struct pstk__verify_request *request = verify->request;
    const struct pstk__salvage salvage = {.bad = report_damage, .user = verify};
    struct pstk__source *source;
    const int rc = pstk_dataset_open(&verify->dataset, request->path, request->foreign, err);
    if (rc != PSTK_EBADMSG && rc != PSTK_EIO && rc != PSTK_ENOENT && rc != PSTK_EACCES &&
        rc != PSTK_EPERM)
        return rc;
    struct pstk_error why;
    pstk_error_init(&why, sizeof why);
    verify->is_salvaged = 1;
    const int salvaged =
        pstk__source_salvage(&source, request->path, request->foreign, &salvage, &why);
    if (salvaged == 0 && verify->n_bad == 0) {
        pstk__source_close(
            source); /* the second attempt found no damage; return the first failure */
        return rc;
    }
    if (salvaged == 0)
        return pstk__dataset_of(&verify->dataset, source, err);
    if (salvaged == PSTK_ECANCELED || salvaged == PSTK_ENOMEM)
        return pstk__fail_copy(err, &why);
    if (salvaged != PSTK_EBADMSG && salvaged != PSTK_ENODATA) /* otherwise nothing is left */
        add_note(request->report, "the rest of the data set was not checked: %.500s", why.message);
    return verify->n_bad > 0 ? 0 : rc; /* the first error is about the whole data set */
}

/* Report holes, after the other notes. */
static void note_holes(const struct verify *verify)
{
    struct pstk_verify_report *report = verify->request->report;
    report->n_holes = verify->n_holes;
    if (verify->n_holes == 0)
        return;
    add_note(report,
             "%llu sample%s in holes of sparse files, whose bytes all read as 0 (the first in %s); "
             "if the data should have no holes, a copy was interrupted: copy the file again",
             (unsigned long long)verify->n_holes,
             verify->n_holes == 1 ? " has bytes" : "s have bytes", verify->first_hole);
}

static int64_t verify_values(const struct pstk__verify_request *request, struct pstk_error *err)
{
    struct verify verify = {.request = request};
    int rc = open_any(&verify, err);
    if (rc == 0 && verify.dataset)
        rc = check_all(&verify, err);
    if (rc == 0 && verify.dataset)
        rc = pstk__numbered_check(pstk__dataset_source(verify.dataset), request->path,
                                  report_damage, &verify, err);
    note_holes(&verify);
    pstk__checksums_close(verify.kept);
    pstk_dataset_close(&verify.dataset);
    return rc < 0 ? rc : verify.n_bad < INT32_MAX ? (int64_t)verify.n_bad : INT32_MAX;
}

int64_t pstk_verify_data(const struct pstk_verify_settings *s, struct pstk_error *err)
{
    if (!s || s->size != sizeof *s)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "settings: size is not set, or is that of another version; set it by "
                          "sizeof");
    if (!s->path || !*s->path)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "path: value is empty; must be the path of a data set");
    if (s->report && s->report->size != sizeof *s->report)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_OPEN,
                          "settings.report: size is not set, or is that of another version; set it "
                          "by sizeof");
    struct pstk_verify_report report = {.size = sizeof report};
    const struct pstk__verify_request verify_request = {.store = pstk__store_of(s->path),
                                                        .path = s->path,
                                                        .foreign = s->foreign,
                                                        .decode = s->decode != 0,
                                                        .keep_checksums = s->keep_checksums != 0,
                                                        .n_threads = s->n_threads,
                                                        .on_bad = s->on_bad,
                                                        .on_progress = s->on_progress,
                                                        .user = s->user,
                                                        .report = &report};
    const struct pstk__format *format;
    const struct pstk__opening opening = {
        .store = verify_request.store, .path = s->path, .foreign = s->foreign};
    int rc = pstk__foreign_check(s->foreign, err);
    if (rc == 0)
        rc = pstk__format_find_as(&format, &opening, err);
    if (rc < 0)
        return rc;
    if (format->verify)
        report.checksums = PSTK_VERIFY_OWN;
    const int64_t n_bad =
        format->verify ? format->verify(&verify_request, err) : verify_values(&verify_request, err);
    report.n_bad = n_bad > 0 ? (uint64_t)n_bad : 0;
    if (s->report && n_bad >= 0)
        *s->report = report;
    return n_bad;
}

int64_t pstk_verify(const char *path, int decode, uint32_t n_threads, pstk_verify_fn on_bad,
                    pstk_progress_fn on_progress, void *user, struct pstk_error *err)
{
    const struct pstk_verify_settings s = {.size = sizeof s,
                                           .decode = decode != 0,
                                           .n_threads = n_threads,
                                           .path = path,
                                           .on_bad = on_bad,
                                           .on_progress = on_progress,
                                           .user = user};
    return pstk_verify_data(&s, err);
}
