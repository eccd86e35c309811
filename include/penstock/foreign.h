/* SPDX-License-Identifier: Apache-2.0 */
/*
 * penstock/foreign.h - data sets of other formats, read in place.
 *
 * The path of such a data set is a file, a folder, or a pattern: "shards/{000..127}.tar",
 * "shards/train-*.tar"; or a folder of images, in class folders or flat; or a table of images, with
 * their paths, labels and more columns: CSV, TSV or JSON lines, or a folder with a metadata.csv or
 * metadata.jsonl that has a column file_name. Its files do not list where their samples begin. The
 * first pstk_open or pstk_dataset_open reads through them, or lists the images, and keeps what it
 * finds in an index: in the folder `.penstock` next to the data; or in cache_path, if no file can
 * be made there, the disk is full, that folder is a link or another user's, or another user has an
 * index there locked. ENOSPC: both are full. Later opens read the index alone. An
 * index is built again once a name, a size or a time of change differs; of images, the time of a
 * folder, and of a table, its own.
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

/* Suffixes of a struct pstk_first_of, at most. */
#define PSTK_MAX_FIRST_OF 8

/* The dot of a member's file name that parts the sample's key from the suffix, which is the field.
 */
enum pstk_split_at {
    /* the first dot, as WebDataset does it; but ENOTSUP if the names say that another dot is meant:
     * what stands between the first and the last dot differs, but not within a sample; or it is
     * numbered, and there is one sample, or no suffix is on more than half of the samples */
    PSTK_SPLIT_AUTO = 0,
    /* the first dot: of "a/b.seg.png" the key is "a/b", and the suffix "seg.png" */
    PSTK_SPLIT_FIRST = 1,
    /* the last dot: the key is "a/b.seg", and the suffix "png" */
    PSTK_SPLIT_LAST = 2,
};

/* A field of tar archives that is one of several members: the first of these suffixes that a sample
 * has. */
struct pstk_first_of {
    /* name of the field; copies */
    const char *name;
    /* 2 to PSTK_MAX_FIRST_OF suffixes in lower case with ; between them, in the order of
     * preference: "jpg;png"; copies. The first one gives the type; all must be of one type, unless
     * `fields` gives the field another. A suffix is in one list alone. */
    const char *suffixes;
};

/* The value of a field of TFRecord files in records without the field's feature, as the
 * default_value of TensorFlow's FixedLenFeature. */
struct pstk_default {
    /* name of the field; copies */
    const char *name;
    /* the value, as pstk_dataset_get returns it: elements in little endian, text, or bytes; copies
     */
    const void *data;
    /* bytes of it */
    uint64_t size;
};

/* Receives a sentence for people; borrows it. */
typedef void (*pstk_wait_fn)(void *user, const char *text);

/* Settings for reading a data set of another format. A data set in penstock's own format ignores
 * it. Zero it and set size and field_size. */
struct pstk_foreign {
    /* sizeof(struct pstk_foreign), set by the caller */
    uint32_t size;
    /* sizeof(struct pstk_field), set by the caller */
    uint32_t field_size;
    /* fields whose kind, dtype or shape is this, in place of the one found in the first records;
     * copies. The shape {n} of `tokens` in Megatron's files makes samples of n tokens, which
     * overlap by one, and a field `starts`: the places in them where documents begin. Of tar
     * archives `__key__`, utf8 or bytes, is the key of a sample, if it is asked for here. default:
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
    /* the first argument of on_progress and on_wait; the caller's */
    void *user;
    /* bytes that entries of the cache in cache_path may take, those of all data sets and processes
     * together: files that are unpacked once and then read. What was used least recently leaves
     * first. It bounds what lies in the folder: an entry that leaves while a data set has it open
     * takes its room on the disk until it is closed, and a data set keeps as many files open as
     * half of RLIMIT_NOFILE, at most 16384. So the disk needs room for what an epoch reads, too;
     * where it has none, reads fail with ENOSPC. At least 1 MiB. default: auto, half of what the
     * disk has free when the cache is opened, entries included */
    uint64_t cache_size;
    /* folder below which the paths lie that a table of images has; other formats ignore it; copies.
     * default: NULL, the table's own folder */
    const char *root_path;
    /* fields of tar archives that are one of several members; copies. A data set in penstock's own
     * format ignores them, except that it must have fields of these names; of others ENOTSUP.
     * default: NULL, none */
    const struct pstk_first_of *first_of;
    uint32_t n_first_of;
    /* enum pstk_split_at: where the name of a member of a tar archive ends, and its suffix begins.
     * PSTK_SPLIT_LAST: of other formats ENOTSUP. default: PSTK_SPLIT_AUTO */
    uint32_t split_at;
    /* called once for each index that another process builds and this one has waited for a second:
     * the text names the process, its host and the file of its lock. The wait ends when the index
     * is there; with ETIMEDOUT if the other process makes no progress for a minute. Thread: the
     * caller's. default: NULL */
    pstk_wait_fn on_wait;
    /* 1: of a folder of images every JPEG and PNG file is a sample, found by its first bytes, also
     * those whose names are not an image's (x.jfif, or no suffix). The first open then reads the
     * first bytes of all such files. Of other formats except penstock's own ENOTSUP. default: 0 */
    uint32_t by_content;
    uint32_t n_defaults;
    /* values of fields of TFRecord files in records without them; copies. A field with one is a
     * scalar, an array of fixed shape, bytes or utf8, else ENOTSUP; the value is of its size, else
     * EINVAL. A feature without a list, Feature{}, is absent, too; one with a list of no values is
     * not. pstk_field_stats.n_absent counts the records. A data set in penstock's own format
     * ignores them; of other formats ENOTSUP. default: NULL, none: such records are errors of the
     * field, unless it is variable, and so empty */
    const struct pstk_default *defaults;
    /* enum pstk_damaged, of files that are read in place. PSTK_DAMAGED_ACCEPT: an image that does
     * not decode without a fault is decoded as Pillow loads it, if it loads it: a JPEG by libjpeg's
     * guesses, a PNG whose fault comes after its rows. A batch's n_damaged_images counts such rows,
     * of a crop only where decoding came as far as the fault. default: 0, it is a bad sample */
    uint32_t damaged;
    /* must be 0 */
    uint32_t reserved;
};

/* Return the name of the record format at a path, "pstk", "tar", ..., without opening the data set.
 * NULL: *err (may be NULL) has the reason. ENOENT, ENOTSUP: no format knows it. Other errors: it
 * cannot be known, because what decides cannot be read, or two formats or tables claim the path.
 * Static storage. */
PSTK_API const char *pstk_find_format(const char *path, struct pstk_error *err);

/* The way in which pstk_verify_data used the checksums of samples. */
enum pstk_verify_checksums {
    /* the format has none, and none were kept that could be used: pstk_verify_report.note */
    PSTK_VERIFY_WITHOUT = 0,
    /* the format has its own, which were checked */
    PSTK_VERIFY_OWN = 1,
    /* the library compared every sample with its kept checksum */
    PSTK_VERIFY_COMPARED = 2,
    /* the library computed checksums and keeps them from now on */
    PSTK_VERIFY_KEPT = 3,
};

/* The result of pstk_verify_data. Zero the struct and set size. */
struct pstk_verify_report {
    /* sizeof(struct pstk_verify_report), set by the caller */
    uint32_t size;
    /* enum pstk_verify_checksums */
    uint32_t checksums;
    /* files that hold samples, those among them that cannot be read; of penstock's own format 0 */
    uint64_t n_files;
    /* samples that were read, damaged or not; of penstock's own format 0 */
    uint64_t n_samples;
    /* damaged places */
    uint64_t n_bad;
    /* samples with bytes in a hole of a sparse file, which are no damage by themselves: all bytes
     * of a hole are read as 0, whether a program wrote zeros and a copy made the hole of them, or a
     * copy was broken off. Of formats with checksums, and where kept ones were compared, 0 */
    uint64_t n_holes;
    /* why checksums that lie there were not used, or could not be kept; hashes that this build does
     * not know; the holes; or empty */
    char note[640];
};

/* Settings of pstk_verify_data. Zero the struct and set size. */
struct pstk_verify_settings {
    /* sizeof(struct pstk_verify_settings), set by the caller */
    uint32_t size;
    /* 1: also decode every image in full. default: 0 */
    uint32_t decode;
    /* default: 0, one */
    uint32_t n_threads;
    /* 1: if the format has no checksums, keep a CRC32C of each sample's bytes in a file next to the
     * index, or in cache_path. Later calls compare every sample with it, whatever this is, as long
     * as names, sizes and times of the files stay; until then none replaces it. It is an act of
     * this call, so it is set here, not in pstk_foreign: opening a data set never makes checksums,
     * and no batch checks them. default: 0 */
    uint32_t keep_checksums;
    /* the data set; borrows */
    const char *path;
    /* settings for a data set of another format, as in pstk_dataset_open; borrows. default: NULL */
    const struct pstk_foreign *foreign;
    /* callbacks, as in pstk_verify. default: NULL, for none */
    pstk_verify_fn on_bad;
    pstk_progress_fn on_progress;
    /* the first argument of both; the caller's */
    void *user;
    /* filled, if the result is not negative; borrows. default: NULL */
    struct pstk_verify_report *report;
};

/* Check a data set as pstk_verify does. If the data set has another format, it reads every sample
 * and checks what that format can: headers, checksums if it has some or they were kept, and that no
 * field is missing; it counts samples in holes of sparse files. A file that is missing,
 * unreadable or damaged is one damaged place, and verify goes on with the next. Where samples are
 * found by an index, nothing after the first damage of such a file can be trusted: the samples
 * before it are checked, too. Fields are those of the first file that is whole. Shards that the
 * names of the others count ("-00003-of-00010"), but that are not there, are damaged places where
 * the path is a folder or has * or ?. */
PSTK_API int64_t pstk_verify_data(const struct pstk_verify_settings *s, struct pstk_error *err);

/* Find what a program's environment says of the cache, for cache_path and cache_size of struct
 * pstk_foreign. environment: "NAME=value" texts with NULL at the end. path[path_size] (may be NULL)
 * becomes $PENSTOCK_CACHE, or penstock in $XDG_CACHE_HOME, or ~/.cache/penstock; "": no variable
 * names a folder, or the path is too long. *cache_size (may be NULL) becomes the bytes of
 * $PENSTOCK_CACHE_SIZE, such as 500M or 2T, powers of 1024; 0: it is not set. EINVAL: it is no such
 * size, or less than 1M. Thread: any. */
PSTK_API int pstk_find_cache(const char *const *environment, char *path, uint64_t path_size,
                             uint64_t *cache_size, struct pstk_error *err);

/* The cache in a folder, pstk_foreign.cache_path. Zero it and set size. */
struct pstk_cache_info {
    /* sizeof(struct pstk_cache_info), set by the caller */
    uint32_t size;
    /* 0 */
    uint32_t reserved;
    /* complete entries, and bytes of their files */
    uint64_t n_entries;
    uint64_t bytes;
    /* entries and indexes that are being written, or that a process left that was killed, and their
     * bytes */
    uint64_t n_writing;
    uint64_t writing_bytes;
    /* indexes of data sets, with the points at which compressed files are entered, and rewritten
     * Parquet tables; and bytes of their files, which cache_size does not limit */
    uint64_t n_indexes;
    uint64_t index_bytes;
    /* files of checksums that pstk_verify_data kept (keep_checksums), and their bytes, which
     * cache_size does not limit. They are the only record of what the data was when they were made
     */
    uint64_t n_checksums;
    uint64_t checksum_bytes;
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
/* Remove all entries, indexes and rewritten tables of the cache in a folder, and what killed
 * processes left. with_checksums: 1: and the checksums that pstk_verify_data kept; else 0. Files
 * that penstock did not write stay, whatever their names are, and so does what is being written.
 * Data sets that are open stay readable, except compressed files whose points were removed, and
 * Parquet tables: reads of those fail, and the data set must be opened again. removed (may be
 * NULL): the entries, indexes and checksums that were removed, and their bytes, with size set by
 * the caller. EBUSY: another process has the folder locked; EPERM: as of pstk_cache_get_info,
 * nothing was removed, or what could be was, and the message says how many files could not. */
PSTK_API int pstk_cache_clear(const char *cache_path, uint32_t with_checksums,
                              struct pstk_cache_info *removed, struct pstk_error *err);

#ifdef __cplusplus
}
#endif

#endif
