/* SPDX-License-Identifier: Apache-2.0 */
/*
 * penstock/foreign.h - data sets of other formats, read in place.
 *
 * The path of such a data set is a file, a folder, or a pattern: "shards/{000..127}.tar",
 * "shards/train-*.tar"; or a folder of images, in class folders or flat. Its files do not list
 * where their samples begin. The first pstk_open or pstk_dataset_open reads through them, or lists
 * the images, and keeps what it finds in an index: in the folder `.penstock` next to the data or,
 * if no file can be made there, in cache_path. A disk that fills up is an error. Later opens read
 * the index alone. An index is built again once a name, a size or a time of change differs; of
 * images, the time of a folder.
 *
 * Files may be compressed: archives (.tar.gz, .tgz, .tar.zst), TFRecords of gzip, and shards of
 * MosaicML streaming. The first open also finds the points at which unpacking can begin, and keeps
 * them next to the index. Files without points that are near enough are unpacked once into the
 * cache.
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
     * copies. The shape {n} of `tokens` in Megatron's files makes samples of n tokens, which
     * overlap by one, and a field `starts`: the places in them where documents begin. default:
     * NULL, none */
    const struct pstk_field *fields;
    uint32_t n_fields;
    /* threads that build an index. default: auto, the cores that this process may use */
    uint32_t n_threads;
    /* folder for indexes of data whose own folder cannot be written to; made if it is missing, with
     * the folder that it is in; copies. default: NULL, none */
    const char *cache_path;
    /* called now and then while an index is built, or while another process builds it, with bytes
     * of files, and a total of 0 where that is not known yet; a non-zero result ends the open with
     * ECANCELED. Thread: the caller's. default: NULL
     */
    pstk_progress_fn on_progress;
    /* the first argument of on_progress; the caller's */
    void *user;
    /* bytes that entries of the cache in cache_path may take, those of all data sets and processes
     * together: files that are unpacked once and then read. What was used least recently leaves
     * first. At least 1 MiB. default: auto, half of what the disk has free when the cache is
     * opened, entries included */
    uint64_t cache_size;
};

/* Open a data set as pstk_dataset_open does; foreign: borrows, or NULL for its defaults. */
PSTK_API int pstk_dataset_open_foreign(struct pstk_dataset **out, const char *path,
                                       const struct pstk_foreign *foreign, struct pstk_error *err);

/* Return the name of the record format at a path, "pstk", "tar", ..., without opening the data set;
 * NULL: no format knows it, and *err (may be NULL) has the reason. Static storage. */
PSTK_API const char *pstk_find_format(const char *path, struct pstk_error *err);

/* What pstk_verify_data checks. Zero it and set size. */
struct pstk_verify_settings {
    /* sizeof(struct pstk_verify_settings), set by the caller */
    uint32_t size;
    /* 1: also decode every image in full. default: 0 */
    uint32_t decode;
    /* default: 0, one */
    uint32_t n_threads;
    /* must be 0 */
    uint32_t reserved;
    /* the data set; borrows */
    const char *path;
    /* as of pstk_dataset_open_foreign; borrows. default: NULL */
    const struct pstk_foreign *foreign;
    /* as of pstk_verify. default: NULL, for none */
    pstk_verify_fn on_bad;
    pstk_progress_fn on_progress;
    /* the first argument of both; the caller's */
    void *user;
};

/* Check a data set as pstk_verify does. If the data set has another format, it reads every sample
 * and checks what that format can: headers, checksums if it has some, and that no field is missing.
 */
PSTK_API int64_t pstk_verify_data(const struct pstk_verify_settings *s, struct pstk_error *err);

/* The cache in a folder, pstk_foreign.cache_path. Zero it and set size. */
struct pstk_cache_info {
    /* sizeof(struct pstk_cache_info), set by the caller */
    uint32_t size;
    /* 0 */
    uint32_t reserved;
    /* complete entries, and bytes of their files */
    uint64_t n_entries;
    uint64_t bytes;
    /* entries that are being written, or that a process left that was killed, and their bytes */
    uint64_t n_writing;
    uint64_t writing_bytes;
    /* indexes of data sets, and bytes of their files, which cache_size does not limit */
    uint64_t n_indexes;
    uint64_t index_bytes;
    /* bytes that entries may have: cache_size, or what it is if it is auto. PSTK_NONE: auto, and
     * there is no such folder */
    uint64_t max_bytes;
    /* bytes that the disk has free. PSTK_NONE: there is no such folder */
    uint64_t free_bytes;
};

/* Look at the cache in a folder, which need not exist; nothing is made there. cache_size: as in
 * pstk_foreign. EPERM: it is another user's, or others can write to it; other errors as of a path.
 */
PSTK_API int pstk_cache_get_info(const char *cache_path, uint64_t cache_size,
                                 struct pstk_cache_info *info, struct pstk_error *err);
/* Remove all entries and indexes of the cache in a folder. What is being written stays, and data
 * sets that are open stay readable. removed (may be NULL): the entries and indexes that were
 * removed, and their bytes, with size set by the caller. EBUSY: another process has the folder
 * locked. */
PSTK_API int pstk_cache_clear(const char *cache_path, struct pstk_cache_info *removed,
                              struct pstk_error *err);

#ifdef __cplusplus
}
#endif

#endif
