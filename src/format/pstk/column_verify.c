/* SPDX-License-Identifier: Apache-2.0 */
#include "format/pstk/column_verify.h"

#include "base/crc32c.h"
#include "base/error.h"
#include "base/file.h"
#include "format/pstk/column_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The values of a page that follow from the records. */
struct expected {
    uint32_t crc; /* CRC of the values of its intact records, in order */
    uint32_t n;   /* number of these records */
};

/* A column that follows from the records, with its expected values. */
struct followed {
    struct pstk__derived_column derived;
    struct expected *pages; /* pages of the shard, up to the last one with an intact record; owned
                             */
    uint64_t n_pages, capacity;
};

struct pstk__column_verifier {
    const struct pstk__store *store;
    const char *path;
    const struct pstk__manifest *manifest;
    struct followed *columns; /* one for each column of the manifest, owned */
    uint8_t *buffer;          /* owned; PSTK__COLUMN_READ bytes */
    uint32_t shard;
    const struct pstk__column_sink *sink;
    struct pstk_error bad; /* damage to report */
};

void pstk__column_verifier_close(struct pstk__column_verifier *verifier)
{
    if (!verifier)
        return;
    for (uint32_t i = 0; verifier->columns && i < verifier->manifest->n_columns; i++)
        free(verifier->columns[i].pages);
    free(verifier->columns);
    free(verifier->buffer);
    free(verifier);
}

static int no_memory(struct pstk_error *err)
{
    return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_READ, "out of memory to check columns");
}

int pstk__column_verifier_open(struct pstk__column_verifier **out, const struct pstk__store *store,
                               const char *path, const struct pstk__manifest *manifest,
                               struct pstk_error *err)
{
    *out = NULL;
    if (manifest->n_columns == 0)
        return 0;
    struct pstk__column_verifier *verifier = calloc(1, sizeof *verifier);
    if (!verifier)
        return no_memory(err);
    verifier->store = store;
    verifier->path = path;
    verifier->manifest = manifest;
    verifier->columns = calloc(manifest->n_columns, sizeof *verifier->columns);
    verifier->buffer = aligned_alloc(64, PSTK__COLUMN_READ);
    if (!verifier->columns || !verifier->buffer) {
        pstk__column_verifier_close(verifier);
        return no_memory(err);
    }
    for (uint32_t i = 0; i < manifest->n_columns; i++) {
        const struct pstk__manifest_column *column = &manifest->columns[i];
        verifier->columns[i].derived = (struct pstk__derived_column){
            .field = column->field, .fact = column->fact, .dtype = column->dtype};
    }
    *out = verifier;
    return 0;
}

/* ---- what the records give --------------------------------------------------------------------
 */

void pstk__column_verifier_begin(struct pstk__column_verifier *verifier, uint32_t shard)
{
    verifier->shard = shard;
    for (uint32_t i = 0; i < verifier->manifest->n_columns; i++)
        verifier->columns[i].n_pages = 0;
}

/* Return the expected values of a page, and grow the list as needed, so that the manifest's numbers
 * reserve no memory. NULL: out of memory. */
static struct expected *find_page(struct followed *column, uint64_t page)
{
    if (page >= column->capacity) {
        const uint64_t capacity = 2 * page + 64;
        struct expected *pages = reallocarray(column->pages, capacity, sizeof *pages);
        if (!pages)
            return NULL;
        column->pages = pages;
        column->capacity = capacity;
    }
    for (; column->n_pages <= page; column->n_pages++)
        column->pages[column->n_pages] = (struct expected){0};
    return &column->pages[page];
}

int pstk__column_verifier_add(struct pstk__column_verifier *verifier, uint64_t record,
                              const struct pstk__field_view *views, struct pstk_error *err)
{
    for (uint32_t i = 0; i < verifier->manifest->n_columns; i++) {
        struct followed *column = &verifier->columns[i];
        const uint32_t dtype = column->derived.dtype;
        uint8_t value[8];
        if (column->derived.fact == PSTK_COLUMN_ADDED)
            continue;
        struct expected *page = find_page(column, record / pstk__column_per_page(dtype));
        if (!page)
            return no_memory(err);
        pstk__column_fact_value(&verifier->manifest->schema, &column->derived, views, value);
        page->crc = pstk__crc32c(page->crc, value, pstk_dtype_size(dtype));
        page->n++;
    }
    return 0;
}

/* ---- the files --------------------------------------------------------------------------------
 */

/* Hand verifier->bad, which concerns the file `name`, to the sink. */
static int report(struct pstk__column_verifier *verifier, const char *name)
{
    struct pstk_error *bad = &verifier->bad;
    snprintf(bad->shard, sizeof bad->shard, "%s", name);
    return verifier->sink->bad(verifier->sink->user, bad) ? PSTK_ECANCELED : 0;
}

/* Compare a page with the values that follow from the records. */
static int compare(struct pstk__column_verifier *verifier, uint32_t i,
                   const struct pstk__column_page *page, const void *values)
{
    const struct followed *column = &verifier->columns[i];
    const uint64_t first = (uint64_t)page->page * pstk__column_per_page(column->derived.dtype);
    if (page->page >= column->n_pages || column->pages[page->page].n != page->n ||
        column->pages[page->page].crc == pstk__crc32c(0, values, (uint64_t)page->n * page->size))
        return 0;
    pstk__fail(&verifier->bad, PSTK_EBADMSG, PSTK_STAGE_SHARD,
               "%s: page %u, records %" PRIu64 " to %" PRIu64
               ": some values differ from those in the records (%s of field %s)",
               page->file, page->page, first, first + page->n - 1,
               pstk__column_fact_name(column->derived.fact),
               verifier->manifest->schema.fields[column->derived.field].name);
    pstk__fail_at(&verifier->bad, PSTK_EBADMSG, page->file, PSTK_NONE,
                  (1 + (uint64_t)page->page) * PSTK__COLUMN_PAGE, PSTK__COLUMN_PAGE);
    return report(verifier, page->file);
}

/* One pass over a file's pages. */
struct pass {
    const struct pstk__column_file *file;
    uint32_t i;   /* number of the column */
    uint32_t crc; /* CRC of the page CRCs so far */
    int n_bad;    /* 1: a page was damaged, so crc is invalid */
};

static int check_page(struct pstk__column_verifier *verifier, struct pass *pass, uint64_t page,
                      const uint8_t *bytes)
{
    const struct pstk__column_page location =
        pstk__column_page_of(&pass->file->header, pass->file->name, page);
    const void *values;
    if (pstk__column_page_check(&location, bytes, &values, &verifier->bad) < 0) {
        pass->n_bad = 1;
        return report(verifier, pass->file->name);
    }
    pass->crc = pstk__column_pages_crc(pass->crc, pstk__column_page_crc(bytes));
    return compare(verifier, pass->i, &location, values);
}

static int check_pages(struct pstk__column_verifier *verifier, struct pass *pass)
{
    const uint64_t n = pass->file->header.n_pages;
    int r = 0;
    for (uint64_t page = 0; r == 0 && page < n;) {
        const int64_t got =
            pstk__column_file_pages(pass->file, page, n, verifier->buffer, &verifier->bad);
        if (got < 0) {
            pass->n_bad = 1;
            return report(verifier, pass->file->name);
        }
        for (int64_t k = 0; r == 0 && k < got; k++)
            r = check_page(verifier, pass, page++, verifier->buffer + k * PSTK__COLUMN_PAGE);
        if (r == 0 && verifier->sink->tick(verifier->sink->user))
            r = PSTK_ECANCELED;
    }
    return r;
}

/* Check the values of the header that concern the whole file. */
static int check_header(struct pstk__column_verifier *verifier, const struct pass *pass,
                        const uint32_t *tag)
{
    const struct pstk__column_header *h = &pass->file->header;
    const char *name = pass->file->name;
    if (tag && h->tag != *tag)
        pstk__fail(&verifier->bad, PSTK_EBADMSG, PSTK_STAGE_SHARD,
                   "%s: its header has the tag %08x, its shard %08x", name, h->tag, *tag);
    else if (!pass->n_bad && pass->crc != h->pages_crc)
        pstk__fail(&verifier->bad, PSTK_EBADMSG, PSTK_STAGE_SHARD,
                   "%s: its pages have the checksum %08x, its header says %08x", name, pass->crc,
                   h->pages_crc);
    else
        return 0;
    pstk__fail_at(&verifier->bad, PSTK_EBADMSG, name, PSTK_NONE, 0, PSTK__COLUMN_PAGE);
    return report(verifier, name);
}

static int check_column(struct pstk__column_verifier *verifier, uint32_t i, const uint32_t *tag,
                        struct pstk_error *err)
{
    const struct pstk__column_location location = {.store = verifier->store,
                                                   .path = verifier->path,
                                                   .manifest = verifier->manifest,
                                                   .column = i,
                                                   .shard = verifier->shard};
    struct pstk__column_file file;
    struct pass pass = {.file = &file, .i = i};
    if (pstk__column_file_open(&file, &location, &verifier->bad) < 0)
        return pstk__file_is_refused(verifier->bad.native)
                   ? pstk__fail_copy(err,
                                     &verifier->bad) /* an error of the machine, as with a shard */
                   : report(verifier, file.name);
    int r = check_pages(verifier, &pass);
    if (r == 0)
        r = check_header(verifier, &pass, tag);
    pstk__column_file_close(&file);
    return r;
}

int pstk__column_verifier_run(struct pstk__column_verifier *verifier, const uint32_t *tag,
                              const struct pstk__column_sink *sink, struct pstk_error *err)
{
    int r = 0;
    verifier->sink = sink;
    for (uint32_t i = 0; r == 0 && i < verifier->manifest->n_columns; i++) {
        pstk_error_init(&verifier->bad, sizeof verifier->bad);
        r = check_column(verifier, i, tag, err);
    }
    return r;
}
