/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checksums: a CRC32C of each sample's bytes, for a data set whose format has no checksums. They
 * are kept in a file of their own, next to the data set's index or where an index would lie. The
 * file has the layout of an index (store/index/index.h): a table of one column, in segments. verify
 * makes the file and compares with it. It fits the data set while the names, sizes and times of the
 * data set's files, and the rows of its index, are unchanged.
 */
#ifndef PSTK_CHECKSUMS_H
#define PSTK_CHECKSUMS_H

#include "format/format.h"
#include "store/index/location.h"

#define PSTK__CHECKSUMS_SEGMENT (1u << 20) /* samples; a table each, which bounds memory */

struct pstk__checksums; /* opened; read-only, for any number of threads */

/* A page of the checksums in memory. One thread. */
struct pstk__checksums_page {
    uint64_t offset; /* offset in the file, bytes; 0: no page */
    _Alignas(64) uint8_t bytes[PSTK__PAGE_SIZE];
};

/* Return the fields whose bytes count: all fields without a checksum. 0: every field has one, and
 * no checksums are kept. */
uint64_t pstk__checksums_fields(const struct pstk__source *source);
/* Return 1 if the bytes of the extent belong to the data set; 0 if they belong to its index, which
 * has its own checksums. */
static inline int pstk__checksums_count(const struct pstk__source *source,
                                        const struct pstk__extent *extent)
{
    return !source->format->index || extent->file != source->n_files - 1;
}

/* Open the checksums that fit the data set. *out NULL: there are none; `note` then says why
 * existing checksums cannot be used, or is empty. Returns owned. */
#define PSTK__CHECKSUMS_NOTE 320 /* bytes */
int pstk__checksums_find(struct pstk__checksums **out, const struct pstk__source *source,
                         const struct pstk_foreign *foreign, char note[PSTK__CHECKSUMS_NOTE],
                         struct pstk_error *err);
void pstk__checksums_close(struct pstk__checksums *checksums);
/* Return in *crc the checksum of sample id < n_samples. EBADMSG: its page is damaged. Never
 * allocates. */
int pstk__checksums_get(const struct pstk__checksums *checksums, uint64_t id,
                        struct pstk__checksums_page *page, uint32_t *crc, struct pstk_error *err);

/* ---- making them ---- */

/* The receiver of checksums that are being made. */
struct pstk__checksums_writer;
/* Add the checksum of the next sample. Thread: the one on which `make` runs. */
int pstk__checksums_add(struct pstk__checksums_writer *writer, uint32_t crc,
                        struct pstk_error *err);
/* Report that n_done of n_total samples are done, to waiting processes and to work.progress.
 * Returns the result of work.progress. Call it now and then on the thread of `make`, even if no
 * checksum was added. */
int pstk__checksums_report(const struct pstk__checksums_writer *writer, uint64_t n_done,
                           uint64_t n_total);

/* The callbacks that make checksums. */
struct pstk__checksums_work {
    /* Add the checksums of all samples, in their order. It is called a second time if a folder has
     * no room for the file. */
    int (*make)(void *user, struct pstk__checksums_writer *writer, struct pstk_error *err);
    /* Called with the number of samples done, by this process or by another that this one waits
     * for. A non-zero result ends the wait with ECANCELED. */
    pstk_progress_fn progress;
    void *user; /* argument of both functions */
};

/* Open the checksums that fit the data set, or make them. */
int pstk__checksums_make(struct pstk__checksums **out, const struct pstk__source *source,
                         const struct pstk_foreign *foreign,
                         const struct pstk__checksums_work *work, struct pstk_error *err);

#endif
