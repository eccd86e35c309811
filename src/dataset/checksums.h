/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checksums: a CRC32C of each sample's bytes, of a data set whose format has none, kept in a file
 * of its own: next to the index of the data set, or where an index would lie. The file has the
 * layout of an index (store/index/index.h): a table of one column, in segments. verify makes it and
 * compares with it; it fits the data set as long as names, sizes and times of its files, and the
 * rows of its index, are those of the day on which it was made.
 */
#ifndef PSTK_CHECKSUMS_H
#define PSTK_CHECKSUMS_H

#include "format/format.h"
#include "store/index/location.h"

#define PSTK__CHECKSUMS_SEGMENT (1u << 20) /* samples: each has a table, so memory is bounded */

struct pstk__checksums; /* opened; read-only, for any number of threads */

/* A page of it in memory. One thread. */
struct pstk__checksums_page {
    uint64_t offset; /* bytes; 0: none */
    _Alignas(64) uint8_t bytes[PSTK__PAGE_SIZE];
};

/* The fields whose bytes count: those without a checksum. 0: all have one, and nothing is kept. */
uint64_t pstk__checksums_fields(const struct pstk__source *source);
/* 1: bytes of the extent are the data set's; 0: they are those of its index, which checks them. */
static inline int pstk__checksums_count(const struct pstk__source *source,
                                        const struct pstk__extent *extent)
{
    return !source->format->index || extent->file != source->n_files - 1;
}

/* Open those that fit. *out NULL: there are none, and `note` says why those that are there cannot
 * be used, or is empty. Returns owned. */
#define PSTK__CHECKSUMS_NOTE 320 /* bytes */
int pstk__checksums_find(struct pstk__checksums **out, const struct pstk__source *source,
                         const struct pstk_foreign *foreign, char note[PSTK__CHECKSUMS_NOTE],
                         struct pstk_error *err);
void pstk__checksums_close(struct pstk__checksums *checksums);
/* The checksum of sample id < n_samples. EBADMSG: its page is damaged. Never allocates. */
int pstk__checksums_get(const struct pstk__checksums *checksums, uint64_t id,
                        struct pstk__checksums_page *page, uint32_t *crc, struct pstk_error *err);

/* ---- making them ---- */

/* Where they are put. */
struct pstk__checksums_writer;
/* Add that of the next sample; on the thread that make runs on. */
int pstk__checksums_add(struct pstk__checksums_writer *writer, uint32_t crc,
                        struct pstk_error *err);
/* Report how many samples of how many are done: to those who wait, and to work.progress, whose
 * result it returns. On the thread that make runs on, now and then, whatever is added meanwhile. */
int pstk__checksums_report(const struct pstk__checksums_writer *writer, uint64_t n_done,
                           uint64_t n_total);

/* How they are made. */
struct pstk__checksums_work {
    /* Add all, in the order of samples. It may be called a second time, where a folder has no
     * room. */
    int (*make)(void *user, struct pstk__checksums_writer *writer, struct pstk_error *err);
    /* Called with samples while they are made, by this process or by another that this one waits
     * for; a non-zero result ends the wait with ECANCELED. */
    pstk_progress_fn progress;
    void *user; /* of both */
};

/* Open those that fit, or make them. */
int pstk__checksums_make(struct pstk__checksums **out, const struct pstk__source *source,
                         const struct pstk_foreign *foreign,
                         const struct pstk__checksums_work *work, struct pstk_error *err);

#endif
