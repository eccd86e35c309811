/* SPDX-License-Identifier: Apache-2.0 */
#include "format/megatron/scan.h"

#include "base/crc32c.h"
#include "base/error.h"
#include "base/little.h"
#include "format/megatron/idx.h"
#include "format/megatron/megatron.h"
#include "format/scan_buffer.h"

#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROGRESS (16u << 20) /* bytes between two reports */

/* ---- bytes of the .idx ----------------------------------------------------------------------- */

struct walk {
    const struct pstk__scan *scan; /* scan of the .bin */
    struct pstk_error *err;
    char path[PATH_MAX]; /* path of the .idx */
    const char *name;    /* displayed name of the .idx, as scan->name */
    struct pstk__file file;
    struct pstk__megatron_idx idx;
    struct pstk__scan_buffer lengths, pointers, boundaries;
    uint64_t item; /* bytes of a token */
    uint64_t reported;
};

static int fail_at(const struct walk *walk, uint64_t at, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Fail because of damage at a byte of the .idx. */
static int fail_at(const struct walk *walk, uint64_t at, const char *fmt, ...)
{
    char what[320];
    va_list args;
    va_start(args, fmt);
    if (vsnprintf(what, sizeof what, fmt, args) < 0)
        what[0] = 0;
    va_end(args);
    pstk__fail(walk->err, PSTK_EBADMSG, PSTK_STAGE_OPEN, "%s: byte %" PRIu64 ": %s", walk->path, at,
               what);
    return pstk__fail_at(walk->err, PSTK_EBADMSG, walk->name, PSTK_NONE, at, 0);
}

/* Read a number of `size` bytes, 4 or 8, at byte `at`; negative ones are above 2^63. */
static int number_at(const struct walk *walk, struct pstk__scan_buffer *buffer, uint64_t at,
                     uint64_t size, uint64_t *number)
{
    int64_t n;
    const uint8_t *bytes = pstk__scan_buffer_at(buffer, &walk->file, at, size, &n);
    *number = 0;
    if (!bytes && n < 0)
        return pstk__fail_errno(walk->err, (int)-n, PSTK_STAGE_OPEN, "cannot read %s", walk->path);
    if (!bytes)
        return fail_at(walk, at + (uint64_t)n,
                       "the file ends here: it was cut while it was read; open it again");
    *number = size == 4 ? (uint64_t)(int64_t)(int32_t)pstk__get32(bytes) : pstk__get64(bytes);
    return 0;
}

static void walk_close(struct walk *walk)
{
    pstk__file_end(&walk->file);
    pstk__scan_buffer_close(&walk->lengths);
    pstk__scan_buffer_close(&walk->pointers);
    pstk__scan_buffer_close(&walk->boundaries);
}

/* Check that the first boundary is 0, and that the last one is the number of sequences. */
static int check_boundaries(struct walk *walk)
{
    const struct pstk__megatron_idx *idx = &walk->idx;
    const uint64_t last = idx->boundaries + 8 * (idx->n_boundaries - 1);
    uint64_t number;
    int r = number_at(walk, &walk->boundaries, last, 8, &number);
    if (r == 0 && number != idx->n_sequences)
        r = fail_at(walk, last,
                    "the last boundary of documents is %" PRIu64 "; must be %" PRIu64
                    ", the number of sequences",
                    number, idx->n_sequences);
    if (r == 0)
        r = number_at(walk, &walk->boundaries, idx->boundaries, 8, &number);
    if (r == 0 && number != 0)
        r = fail_at(walk, idx->boundaries,
                    "the first boundary of documents is %" PRIu64 "; must be 0", number);
    return r;
}

/* Open a walk. Call walk_close even after a failure. */
static int walk_open(struct walk *walk, const struct pstk__scan *scan, struct pstk_error *err)
{
    char text[160];
    uint64_t size, at;
    int64_t changed_ns, n;
    *walk = (struct walk){.scan = scan, .err = err, .file = {.fd = -1}};
    memcpy(walk->path, scan->path, strlen(scan->path) + 1); /* fits: scan->path has the same size */
    memcpy(walk->path + strlen(walk->path) - 4, ".idx", 4);
    walk->name = walk->path + strlen(walk->path) - strlen(scan->name);
    if (pstk__scan_buffer_open(&walk->lengths, PSTK__SCAN_BUFFER_SIZE) < 0 ||
        pstk__scan_buffer_open(&walk->pointers, PSTK__SCAN_BUFFER_SIZE) < 0 ||
        pstk__scan_buffer_open(&walk->boundaries, PSTK__SCAN_BUFFER_SIZE) < 0)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory to index %s", scan->path);
    int r = scan->store->open(scan->store, &walk->file, walk->path);
    if (r == 0)
        r = scan->store->stat(&walk->file, &size, &changed_ns);
    if (r < 0)
        return pstk__fail_errno(err, -r, PSTK_STAGE_OPEN, "cannot open %s", walk->path);
    const uint64_t most = size < PSTK__MEGATRON_HEAD ? size : PSTK__MEGATRON_HEAD;
    const uint8_t *head = pstk__scan_buffer_at(&walk->lengths, &walk->file, 0, most, &n);
    if (!head)
        return fail_at(walk, 0, "the file cannot be read: it was cut while it was read");
    const char *wrong = pstk__megatron_idx_parse(&walk->idx, head, most, size, &at, text);
    if (wrong)
        return fail_at(walk, at, "%s", wrong);
    walk->item = pstk_dtype_size(walk->idx.dtype);
    return check_boundaries(walk);
}

/* ---- sequences and documents ----------------------------------------------------------------- */

/* Read sequence i, which begins at *at, and set *at to its end. */
static int read_sequence(struct walk *walk, uint64_t i, uint64_t *at)
{
    uint64_t length, begin = 0;
    const uint64_t size = walk->scan->size;
    int r = number_at(walk, &walk->lengths, walk->idx.lengths + 4 * i, 4, &length);
    if (r == 0)
        r = number_at(walk, &walk->pointers, walk->idx.pointers + 8 * i, 8, &begin);
    if (r < 0)
        return r;
    if (length > INT32_MAX)
        return fail_at(walk, walk->idx.lengths + 4 * i,
                       "sequence %" PRIu64 " has %" PRId64 " tokens; must be 0 or more", i,
                       (int64_t)length);
    if (begin != *at)
        return fail_at(walk, walk->idx.pointers + 8 * i,
                       "sequence %" PRIu64 " begins at byte %" PRIu64
                       " of the .bin; must be %" PRIu64
                       ", where the one before ends: copy both files again, or write them again",
                       i, begin, *at);
    if (length * walk->item > size - begin)
        return fail_at(walk, walk->idx.lengths + 4 * i,
                       "sequence %" PRIu64 " has the bytes %" PRIu64 " to %" PRIu64
                       " of the .bin, which has %" PRIu64 ": is it cut short? copy both again",
                       i, begin, begin + length * walk->item, size);
    *at = begin + length * walk->item;
    return 0;
}

/* The documents in order. */
struct documents {
    uint64_t number;     /* number of the next document */
    uint64_t sequence;   /* first sequence of the next document */
    uint64_t begin, end; /* bytes of the last document in the .bin */
};

/* Step to the next document. 1: there is one; 0: no more; <0. */
static int next_document(struct walk *walk, struct documents *documents)
{
    uint64_t until;
    if (documents->number + 1 >= walk->idx.n_boundaries)
        return 0;
    const uint64_t at = walk->idx.boundaries + 8 * (documents->number + 1);
    int r = number_at(walk, &walk->boundaries, at, 8, &until);
    if (r < 0)
        return r;
    if (until < documents->sequence || until > walk->idx.n_sequences)
        return fail_at(walk, at,
                       "document %" PRIu64 " ends before sequence %" PRIu64
                       "; must be from %" PRIu64 " to %" PRIu64,
                       documents->number, until, documents->sequence, walk->idx.n_sequences);
    documents->begin = documents->end;
    for (uint64_t i = documents->sequence; r == 0 && i < until; i++)
        r = read_sequence(walk, i, &documents->end);
    if (r < 0)
        return r;
    documents->sequence = until;
    documents->number++;
    return 1;
}

/* Check that the .bin ends after the last document. */
static int check_end(struct walk *walk, const struct documents *documents)
{
    if (documents->end == walk->scan->size)
        return 0;
    return fail_at(walk, walk->idx.boundaries,
                   "the last sequence ends at byte %" PRIu64 " of the .bin, which has %" PRIu64
                   ": are the files of one pair? copy both again",
                   documents->end, walk->scan->size);
}

static int no_memory(const struct walk *walk)
{
    return pstk__fail(walk->err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for the index of %s",
                      walk->scan->path);
}

/* Report the progress up to byte `at` of the .bin. */
static int report(struct walk *walk, uint64_t at, uint64_t least)
{
    if (!walk->scan->progress || at < walk->reported + least)
        return 0;
    const uint64_t n = at - walk->reported;
    walk->reported = at;
    return walk->scan->progress(walk->scan->user, n) ? PSTK_ECANCELED : 0;
}

static void add_value(struct pstk__index_field *field, uint64_t size)
{
    field->n++;
    field->bytes += size;
    field->max_size = size > field->max_size ? size : field->max_size;
    field->max_plain = size > field->max_plain ? size : field->max_plain;
}

static int add_row(struct walk *walk, struct pstk__index_rows *rows, const uint64_t *cells)
{
    return pstk__index_rows_add(rows, cells) < 0 ? no_memory(walk) : 0;
}

static int scan_documents(struct walk *walk, struct pstk__index_rows *rows,
                          struct pstk__inferred_schema *found)
{
    struct documents documents = {0};
    int r;
    while ((r = next_document(walk, &documents)) > 0) {
        const uint64_t size = documents.end - documents.begin;
        const uint64_t cells[PSTK__MEGATRON_NUMBERS] = {documents.begin, size};
        if (size > UINT32_MAX)
            return pstk__fail(walk->err, PSTK_EFBIG, PSTK_STAGE_OPEN,
                              "%s: document %" PRIu64 " has 4 GiB or more; must be less: name a "
                              "fixed shape for tokens",
                              walk->path, documents.number - 1);
        add_value(&found->fields[0], size);
        found->max_record = found->fields[0].max_size;
        r = add_row(walk, rows, cells);
        if (r == 0)
            r = report(walk, documents.end, PROGRESS);
        if (r < 0)
            return r;
    }
    return r < 0 ? r : check_end(walk, &documents);
}

/* ---- samples of a length --------------------------------------------------------------------- */

/* A scan for samples of a fixed length, which counts tokens of the file. */
struct samples {
    struct walk *walk;
    struct pstk__index_rows *rows;
    struct pstk__inferred_schema *found;
    uint64_t length;
    uint64_t begin;    /* first token of the current sample */
    uint64_t n_starts; /* documents that begin in it so far */
    uint64_t max_starts;
    uint8_t *value; /* a CRC and n_starts positions, owned */
};

static int add_start(struct samples *samples, uint64_t token)
{
    if (samples->n_starts == samples->max_starts) {
        const uint64_t max = samples->max_starts ? 2 * samples->max_starts : 1024;
        uint8_t *value = realloc(samples->value, PSTK__MEGATRON_VALUE_HEAD + 4 * max);
        if (!value)
            return no_memory(samples->walk);
        samples->value = value;
        samples->max_starts = max;
    }
    pstk__put32(samples->value + PSTK__MEGATRON_VALUE_HEAD + 4 * samples->n_starts++,
                (uint32_t)(token - samples->begin));
    return 0;
}

/* End the current sample, and begin the next one with its last token. */
static int end_sample(struct samples *samples, int last_is_start)
{
    struct walk *walk = samples->walk;
    const uint64_t size = samples->length * walk->item;
    const uint64_t places = 4 * samples->n_starts;
    uint64_t cells[PSTK__MEGATRON_NUMBERS] = {samples->begin * walk->item, size, 0,
                                              PSTK__MEGATRON_VALUE_HEAD + places};
    pstk__put32(samples->value,
                pstk__crc32c(0, samples->value + PSTK__MEGATRON_VALUE_HEAD, places));
    if (pstk__index_rows_value(samples->rows, samples->value, PSTK__MEGATRON_VALUE_HEAD + places,
                               &cells[PSTK__MEGATRON_VALUE]) < 0)
        return no_memory(walk);
    add_value(&samples->found->fields[0], size);
    add_value(&samples->found->fields[1], PSTK__MEGATRON_VALUE_HEAD + places);
    samples->found->max_record =
        samples->found->fields[0].max_size + samples->found->fields[1].max_size;
    int r = add_row(walk, samples->rows, cells);
    samples->begin += samples->length - 1;
    samples->n_starts = 0;
    if (r == 0 && last_is_start)
        r = add_start(samples, samples->begin);
    return r < 0 ? r : report(walk, samples->begin * walk->item, PROGRESS);
}

/* Advance to the begin of a document, or to the end of the file (is_end), and end the samples
 * before it. */
static int reach(struct samples *samples, uint64_t token, int is_end)
{
    int r = 0;
    while (r == 0 && samples->begin + samples->length - 1 < token)
        r = end_sample(samples, 0);
    if (r < 0 || is_end)
        return r;
    r = add_start(samples, token);
    /* The sample's last token is here: a document that begins with it has tokens. */
    if (r == 0 && samples->begin + samples->length - 1 == token)
        r = end_sample(samples, 1);
    return r;
}

static int scan_samples(struct samples *samples)
{
    struct walk *walk = samples->walk;
    struct documents documents = {0};
    int r;
    samples->value = malloc(PSTK__MEGATRON_VALUE_HEAD);
    if (!samples->value)
        return no_memory(walk);
    while ((r = next_document(walk, &documents)) > 0) {
        if (documents.end > documents.begin)
            r = reach(samples, documents.begin / walk->item, 0);
        if (r < 0)
            return r;
    }
    if (r == 0)
        r = check_end(walk, &documents);
    return r < 0 ? r : reach(samples, documents.end / walk->item, 1);
}

/* ---- the scanner ----------------------------------------------------------------------------- */

int pstk__megatron_infer(const struct pstk__scan *scan, const struct pstk_foreign *wanted,
                         struct pstk__inferred_schema *found, struct pstk_error *err)
{
    (void)wanted;
    const struct pstk__megatron *own = scan->own;
    struct walk *walk = malloc(sizeof *walk);
    if (!walk)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory to index %s", scan->path);
    const int r = walk_open(walk, scan, err);
    found->n_fields = r < 0 ? 0 : own->length ? 2 : 1;
    found->fields[0] = (struct pstk__index_field){.field = {.name = PSTK__MEGATRON_TOKENS,
                                                            .kind = PSTK_FIELD_NDARRAY,
                                                            .dtype = walk->idx.dtype,
                                                            .n_dims = 1,
                                                            .shape = {own->length}}};
    found->fields[1] = (struct pstk__index_field){.field = {.name = PSTK__MEGATRON_STARTS,
                                                            .kind = PSTK_FIELD_NDARRAY,
                                                            .dtype = PSTK_I32,
                                                            .n_dims = 1}};
    walk_close(walk);
    free(walk);
    return r;
}

int pstk__megatron_scan(const struct pstk__scan *scan, struct pstk__index_rows *rows,
                        struct pstk__inferred_schema *found, struct pstk_error *err)
{
    const struct pstk__megatron *own = scan->own;
    struct walk *walk = malloc(sizeof *walk);
    rows->n_columns = own->length ? PSTK__MEGATRON_NUMBERS : PSTK__MEGATRON_VALUE;
    if (!walk)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory to index %s", scan->path);
    struct samples samples = {.walk = walk, .rows = rows, .found = found, .length = own->length};
    int r = walk_open(walk, scan, err);
    if (r == 0 && walk->idx.dtype != found->fields[0].field.dtype)
        r = fail_at(walk, 17,
                    "its tokens are %s; those of the first file are %s: open them as two "
                    "data sets",
                    pstk_dtype_name(walk->idx.dtype),
                    pstk_dtype_name(found->fields[0].field.dtype));
    if (r == 0)
        r = own->length ? scan_samples(&samples) : scan_documents(walk, rows, found);
    if (r == 0)
        r = report(walk, scan->size, 1);
    walk_close(walk);
    free(samples.value);
    free(walk);
    return r;
}
