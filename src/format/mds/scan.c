/* SPDX-License-Identifier: Apache-2.0 */
#include "format/mds/scan.h"

#include "base/error.h"
#include "base/little.h"
#include "format/scan_buffer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SMALL_SAMPLE 65536   /* max mean bytes of samples whose shards are read in full */
#define READ_HEAD 4096       /* bytes of one read in other shards */
#define PROGRESS (16u << 20) /* bytes between two reports */

/* ---- bytes of the shard ---------------------------------------------------------------------- */

struct walk {
    const struct pstk__scan *scan;
    const struct pstk__mds *mds;
    struct pstk_error *err;
    struct pstk__file file;
    struct pstk__scan_buffer offsets, samples;
    uint64_t n;        /* samples */
    uint64_t reported; /* bytes */
};

/* Fail because of damage at byte `at`, in a sample, or in the offsets (sample PSTK_NONE). */
static int fail_at(const struct walk *walk, uint64_t sample, uint64_t at, const char *why)
{
    if (sample == PSTK_NONE)
        pstk__fail(walk->err, PSTK_EBADMSG, PSTK_STAGE_OPEN, "%s: byte %" PRIu64 ": %s",
                   walk->scan->path, at, why);
    else
        pstk__fail(walk->err, PSTK_EBADMSG, PSTK_STAGE_OPEN,
                   "%s: record %" PRIu64 " (byte %" PRIu64 "): %s", walk->scan->path, sample, at,
                   why);
    return pstk__fail_at(walk->err, PSTK_EBADMSG, walk->scan->name, sample, at, 0);
}

/* Return bytes at .. at + size - 1 of the file; NULL: *r is the error. */
static const uint8_t *look(const struct walk *walk, struct pstk__scan_buffer *buffer, uint64_t at,
                           uint64_t size, int *r)
{
    int64_t n;
    const uint8_t *bytes = pstk__scan_buffer_at(buffer, &walk->file, at, size, &n);
    char why[PSTK__WHY];
    *r = bytes   ? 0
         : n < 0 ? pstk__fail_errno(walk->err, (int)-n, PSTK_STAGE_OPEN, "cannot read %s%s",
                                    walk->scan->path, pstk__file_why(&walk->file, (int)-n, why))
                 : fail_at(walk, PSTK_NONE, at + (uint64_t)n,
                           "the file ends here: it was cut while it was read; open it again");
    return bytes;
}

static int offset_of(struct walk *walk, uint64_t i, uint64_t *offset)
{
    int r;
    const uint8_t *at = look(walk, &walk->offsets, 4 + 4 * i, 4, &r);
    *offset = at ? pstk__get32(at) : 0;
    return r;
}

static void walk_close(struct walk *walk)
{
    pstk__file_end(&walk->file);
    pstk__scan_buffer_close(&walk->offsets);
    pstk__scan_buffer_close(&walk->samples);
}

/* Compare the shard's size with its size in index.json. */
static int check_size(const struct walk *walk)
{
    char why[160];
    const struct pstk__mds_shard *shard = &walk->mds->shards[walk->scan->number];
    const uint64_t size = walk->scan->size;
    if (size != shard->size) {
        snprintf(why, sizeof why,
                 "the file ends here; index.json gives it %" PRIu64
                 " bytes: it is cut short or was changed; copy it again",
                 shard->size);
        return fail_at(walk, PSTK_NONE, size, why);
    }
    if (size < 4 + 4 * (shard->n_samples + 1))
        return fail_at(walk, PSTK_NONE, size,
                       "the file is too short for the offsets of the samples that index.json gives "
                       "it: copy it again");
    return 0;
}

/* Compare the head of the shard with index.json. */
static int check_head(struct walk *walk)
{
    char why[160];
    int r;
    const uint8_t *at = look(walk, &walk->offsets, 0, 4, &r);
    if (!at)
        return r;
    const uint32_t n = pstk__get32(at);
    if (n != walk->n) {
        snprintf(why, sizeof why,
                 "the shard has %u samples; index.json gives it %" PRIu64 ": copy both again", n,
                 walk->n);
        return fail_at(walk, PSTK_NONE, 0, why);
    }
    uint64_t first = 0, end = 0;
    r = offset_of(walk, 0, &first);
    if (r == 0)
        r = offset_of(walk, n, &end);
    if (r < 0)
        return r;
    if (first < 4 + 4 * (walk->n + 1))
        return fail_at(walk, PSTK_NONE, 4, "the first sample begins within the offsets");
    return end == walk->scan->size ? 0
                                   : fail_at(walk, PSTK_NONE, 4 + 4 * walk->n,
                                             "the last offset is not the end of the file");
}

/* Open a walk. Call walk_close even after a failure. */
static int walk_open(struct walk *walk, const struct pstk__scan *scan, struct pstk_error *err)
{
    *walk = (struct walk){.scan = scan, .mds = scan->own, .err = err, .file = {.fd = -1}};
    walk->n = walk->mds->shards[scan->number].n_samples;
    const int is_small = walk->n == 0 || scan->size / walk->n <= SMALL_SAMPLE;
    if (pstk__scan_buffer_open(&walk->offsets, PSTK__SCAN_BUFFER_SIZE) < 0 ||
        pstk__scan_buffer_open(&walk->samples, is_small ? PSTK__SCAN_BUFFER_SIZE : READ_HEAD) < 0)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory to index %s", scan->path);
    int r = check_size(walk);
    if (r < 0)
        return r;
    r = scan->store->open(scan->store, &walk->file, scan->path);
    if (r < 0)
        return pstk__store_fail_open(scan->store, -r, PSTK_STAGE_OPEN, scan->path, err);
    return check_head(walk);
}

/* ---- a sample -------------------------------------------------------------------------------- */

struct sample {
    uint64_t number, begin, size;
    struct pstk__mds_offsets offsets;
};

/* Read the offsets of sample i, and its head. */
static int read_sample(struct walk *walk, uint64_t i, struct sample *sample)
{
    const struct pstk__mds_columns *columns = &walk->mds->columns;
    const uint32_t head = pstk__mds_head(columns);
    uint64_t end = 0;
    int r = offset_of(walk, i, &sample->begin);
    if (r == 0)
        r = offset_of(walk, i + 1, &end);
    if (r < 0)
        return r;
    sample->number = i;
    if (end <= sample->begin || end > walk->scan->size)
        return fail_at(walk, i, 4 + 4 * (i + 1), "its offsets do not rise: copy the file again");
    sample->size = end - sample->begin;
    if (sample->size < head)
        return fail_at(walk, i, sample->begin, "it is too short for the sizes of its values");
    const uint8_t *at = head ? look(walk, &walk->samples, sample->begin, head, &r) : NULL;
    if (r < 0)
        return r;
    pstk__mds_find_offsets(&sample->offsets, columns, at);
    if (sample->offsets.begin[columns->n] == sample->size)
        return 0;
    char why[160];
    snprintf(why, sizeof why,
             "its values add up to %" PRIu64 " bytes; the sample has %" PRIu64
             ": copy the file again",
             sample->offsets.begin[columns->n], sample->size);
    return fail_at(walk, i, sample->begin, why);
}

/* Return the bytes of a sample's value in column c. */
static uint64_t size_of(const struct sample *sample, uint32_t c)
{
    return sample->offsets.begin[c + 1] - sample->offsets.begin[c];
}

/* Return the first bytes of a value, and set *n to their number, at most `most`. NULL: *r is the
 * error. */
static const uint8_t *look_at_value(struct walk *walk, const struct sample *sample, uint32_t c,
                                    uint64_t most, uint64_t *n, int *r)
{
    *n = size_of(sample, c) < most ? size_of(sample, c) : most;
    return look(walk, &walk->samples, sample->begin + sample->offsets.begin[c], *n, r);
}

/* ---- fields ---------------------------------------------------------------------------------- */

static int is_wanted(const struct pstk_foreign *wanted, const char *name)
{
    for (uint32_t i = 0; wanted && i < wanted->n_fields; i++)
        if (strcmp(wanted->fields[i].name, name) == 0)
            return 1;
    return 0;
}

/* Refuse a data set without a readable field. */
static int fail_fields(const struct walk *walk)
{
    return pstk__fail(walk->err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                      "%s: column '%s' and all others are pickles, or have unknown encodings; "
                      "penstock never loads a pickle: name a column in fields to read its bytes, "
                      "or write the data set again with other encodings",
                      walk->scan->path, walk->mds->columns.at[0].field.name);
}

int pstk__mds_infer(const struct pstk__scan *scan, const struct pstk_foreign *wanted,
                    struct pstk__inferred_schema *found, struct pstk_error *err)
{
    struct walk walk;
    struct sample sample;
    const struct pstk__mds_columns *columns = &((const struct pstk__mds *)scan->own)->columns;
    found->n_fields = 0;
    int r = walk_open(&walk, scan, err);
    if (r == 0 && walk.n > 0)
        r = read_sample(&walk, 0, &sample);
    for (uint32_t c = 0; r == 0 && walk.n > 0 && c < columns->n; c++) {
        const struct pstk__mds_column *column = &columns->at[c];
        char text[160];
        uint64_t n;
        if (column->field.kind == 0 && !is_wanted(wanted, column->field.name))
            continue;
        const uint8_t *at = look_at_value(&walk, &sample, c, PSTK__MDS_ARRAY_HEAD, &n, &r);
        const char *wrong = at ? pstk__mds_describe(&found->fields[found->n_fields], column, at, n,
                                                    size_of(&sample, c), text)
                               : NULL;
        found->n_fields++;
        if (wrong) {
            char why[240];
            snprintf(why, sizeof why, "field %s %s", column->field.name, wrong);
            r = fail_at(&walk, 0, sample.begin + sample.offsets.begin[c], why);
        }
    }
    if (r == 0 && walk.n > 0 && found->n_fields == 0)
        r = fail_fields(&walk);
    walk_close(&walk);
    if (r < 0)
        found->n_fields = 0; /* the next file may be intact */
    return r;
}

/* ---- samples --------------------------------------------------------------------------------- */

/* Add a value to the statistics of its field. */
static int add_value(struct walk *walk, const struct sample *sample, uint32_t c,
                     struct pstk__index_field *field)
{
    const uint64_t size = size_of(sample, c);
    uint64_t n_items = 0;
    if (field->coding == PSTK__MDS_IMAGES || field->coding == PSTK__MDS_IMAGE_LIST) {
        const uint64_t from = field->coding == PSTK__MDS_IMAGE_LIST ? 4 : 0;
        uint64_t n;
        int r;
        const uint8_t *at = look_at_value(walk, sample, c, from + 4, &n, &r);
        if (!at)
            return r;
        n_items = n == from + 4 ? pstk__get32(at + from) : 0;
        if (n_items > size / 4)
            return fail_at(walk, sample->number, sample->begin + sample->offsets.begin[c] + from,
                           "a list has fewer bytes than the sizes of its items take");
    }
    const uint64_t plain = pstk__mds_plain_size(field, size, n_items);
    if (plain > UINT32_MAX)
        return fail_at(walk, sample->number, sample->begin + sample->offsets.begin[c],
                       "a value takes 4 GiB or more in memory; must be less: split it");
    field->n++;
    field->bytes += size;
    field->max_size = size > field->max_size ? size : field->max_size;
    field->max_plain = plain > field->max_plain ? plain : field->max_plain;
    return 0;
}

static int add_sample(struct walk *walk, const struct sample *sample, struct pstk__index_rows *rows,
                      struct pstk__inferred_schema *found)
{
    const struct pstk__mds_columns *columns = &walk->mds->columns;
    uint64_t cells[PSTK__INDEX_TABLE_MAX_COLUMNS] = {
        [PSTK__MDS_BEGIN] = sample->begin, [PSTK__MDS_SIZE] = sample->size};
    uint32_t k = PSTK__MDS_SIZES, f = 0;
    int r = 0;
    for (uint32_t c = 0; r == 0 && c < columns->n; c++) {
        if (columns->at[c].is_variable)
            cells[k++] = size_of(sample, c);
        /* Fields have the order of their columns. */
        if (f < found->n_fields &&
            strcmp(found->fields[f].field.name, columns->at[c].field.name) == 0)
            r = add_value(walk, sample, c, &found->fields[f++]);
    }
    if (sample->size > found->max_record)
        found->max_record = sample->size;
    if (r == 0 && pstk__index_rows_add(rows, cells) < 0)
        r = pstk__fail(walk->err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for the index of %s",
                       walk->scan->path);
    return r;
}

/* Report the progress up to byte `at`, if at least `least` bytes are not reported yet. */
static int report(struct walk *walk, uint64_t at, uint64_t least)
{
    if (!walk->scan->progress || at - walk->reported < least)
        return 0;
    const uint64_t n = at - walk->reported;
    walk->reported = at;
    return walk->scan->progress(walk->scan->user, n) ? PSTK_ECANCELED : 0;
}

int pstk__mds_scan(const struct pstk__scan *scan, struct pstk__index_rows *rows,
                   struct pstk__inferred_schema *found, struct pstk_error *err)
{
    struct walk walk;
    struct sample sample;
    int r = walk_open(&walk, scan, err);
    rows->n_columns = PSTK__MDS_SIZES + walk.mds->columns.n_variable;
    for (uint64_t i = 0; r == 0 && i < walk.n; i++) {
        r = read_sample(&walk, i, &sample);
        if (r == 0)
            r = add_sample(&walk, &sample, rows, found);
        if (r == 0)
            r = report(&walk, sample.begin + sample.size, PROGRESS);
    }
    if (r == 0)
        r = report(&walk, scan->size, 1);
    walk_close(&walk);
    return r;
}
