/* SPDX-License-Identifier: Apache-2.0 */
/*
 * penstock/foreign.h - data sets of other formats, read in place.
 *
 * The path of such a data set is a file, a folder, or a pattern: "shards/{000..127}.tar",
 * "shards/train-*.tar"; or a folder of images, in class folders or flat. Its files do not list
 * where their samples begin. The first pstk_open or pstk_dataset_open reads through them, or lists
 * the images, and keeps what it finds in an index: in the folder `.penstock` next to the data or,
 * if that cannot be written, in cache_path. Later opens read the index alone. An index is built
 * again once a name, a size or a time of change differs; of images, the time of a folder.
 */
#ifndef PENSTOCK_FOREIGN_H
#define PENSTOCK_FOREIGN_H

#include <penstock/format.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How a data set of another format is read. A data set in penstock's own format ignores it. Zero it
 * and set size and field_size. */
struct pstk_foreign {
    /* sizeof(struct pstk_foreign), set by the caller */
    uint32_t size;
    /* sizeof(struct pstk_field), set by the caller */
    uint32_t field_size;
    /* fields whose kind, dtype or shape is this, in place of the one found in the first records;
     * copies. default: NULL, none */
    const struct pstk_field *fields;
    uint32_t n_fields;
    /* threads that build an index. default: auto, the cores that this process may use */
    uint32_t n_threads;
    /* folder for indexes of data whose own folder cannot be written to; made if it is missing, but
     * not its parent; copies. default: NULL, none */
    const char *cache_path;
    /* called now and then while an index is built, or while another process builds it, with bytes
     * of files, and a total of 0 where that is not known yet; a non-zero result ends the open with
     * ECANCELED. Thread: the caller's. default: NULL
     */
    pstk_progress_fn on_progress;
    /* the first argument of on_progress; the caller's */
    void *user;
};

/* Open a data set as pstk_dataset_open does; foreign: borrows, or NULL for its defaults. */
PSTK_API int pstk_dataset_open_foreign(struct pstk_dataset **out, const char *path,
                                       const struct pstk_foreign *foreign, struct pstk_error *err);

#ifdef __cplusplus
}
#endif

#endif
