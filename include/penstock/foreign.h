/* SPDX-License-Identifier: Apache-2.0 */
/*
 * penstock/foreign.h - data sets of other formats, read in place.
 *
 * The path of such a data set is one of these:
 * - a file, a folder, or a pattern: "shards/{000..127}.tar", "shards/train-*.tar"
 * - a folder of images, in class folders or flat
 * - a table of images, with their paths, labels and more columns: CSV, TSV or JSON lines; or a
 *   folder with a metadata.csv or metadata.jsonl that has a column file_name
 *
 * Its files do not list where their samples begin. The first pstk_open or pstk_dataset_open reads
 * through them, or lists the images, and saves an index. The index lies in the folder `.penstock`
 * next to the data. It lies in cache_path if no file can be made there, the disk is full, that
 * folder is a link or another user's, or another user has an index there locked. ENOSPC: both are
 * full. Later opens read the index alone. An index is built again once a name, a size or a time of
 * change differs: for images the time of a folder, for a table its own.
 *
 * Files may be compressed: archives (.tar.gz, .tgz, .tar.zst), TFRecords of gzip, and shards of
 * MosaicML streaming. The first open also finds access points, at which unpacking can begin, and
 * saves them next to the index. Files whose access points are too far apart are unpacked once into
 * the cache.
 */
#ifndef PENSTOCK_FOREIGN_H
#define PENSTOCK_FOREIGN_H

#include <penstock/format.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Largest number of suffixes of a struct pstk_first_of. */
#define PSTK_MAX_FIRST_OF 8

/* The dot of a member's file name that separates the sample's key from the suffix; the suffix names
 * the field. */
enum pstk_split_at {
    /* the first dot, as in WebDataset. ENOTSUP if the names show that another dot is meant: the
     * part between the first and the last dot differs from sample to sample, but not within one; or
     * it is numbered, and there is one sample, or no suffix is on more than half of the samples */
    PSTK_SPLIT_AUTO = 0,
    /* the first dot: "a/b.seg.png" has the key "a/b" and the suffix "seg.png" */
    PSTK_SPLIT_FIRST = 1,
    /* the last dot: "a/b.seg.png" has the key "a/b.seg" and the suffix "png" */
    PSTK_SPLIT_LAST = 2,
};

/* A field of tar archives whose value is one of several members: the sample's first one of these
 * suffixes. */
struct pstk_first_of {
    /* name of the field; copies */
    const char *name;
    /* 2 to PSTK_MAX_FIRST_OF suffixes in lower case with ; between them, in the order of
     * preference: "jpg;png"; copies. The first one gives the type; all must have one type, unless
     * `fields` gives the field another. No two lists share a suffix. */
    const char *suffixes;
};

/* The value of a field in records of TFRecord files that lack the field's feature, as the
 * default_value of TensorFlow's FixedLenFeature. */
struct pstk_default {
    /* name of the field; copies */
    const char *name;
    /* the value, as pstk_dataset_get returns it: elements in little endian, text, or bytes; copies
     */
    const void *data;
    /* bytes of the value */
    uint64_t size;
};

/* Receives a sentence for people; borrows it. */
typedef void (*pstk_wait_fn)(void *user, const char *text);

/* Settings for reading a data set of another format. Penstock's own format ignores them. Zero the
 * struct and set size and field_size. */
struct pstk_foreign {
    /* sizeof(struct pstk_foreign), set by the caller */
    uint32_t size;
    /* sizeof(struct pstk_field), set by the caller */
    uint32_t field_size;
    /* fields that replace those found in the first records, in kind, dtype or shape; copies. The
     * shape {n} of `tokens` in Megatron's files makes samples of n tokens, which overlap by one,
     * and a field `starts`: the positions in them where documents begin. `__key__` of tar archives,
     * utf8 or bytes, is the key of a sample; it is a field only if it is listed here. default:
     * NULL, none */
    const struct pstk_field *fields;
    uint32_t n_fields;
    /* threads that build an index. default: auto, the cores that this process may use */
    uint32_t n_threads;
    /* folder for indexes of data whose own folder is not writable. The library makes it and its
     * parent if they are missing. copies. default: NULL, none */
    const char *cache_path;
    /* called now and then while this process or another one builds an index, with bytes of files,
     * and a total of 0 while that is unknown; a non-zero result ends the open with ECANCELED.
     * Thread: the caller's. default: NULL */
    pstk_progress_fn on_progress;
    /* the first argument of on_progress and on_wait; the caller's */
    void *user;
    /* limit on the bytes of cache entries in cache_path, those of all data sets and processes
     * together: files that are unpacked once and then read. The least recently used entry is
     * removed first. The limit counts files in the folder: a removed entry that a data set still
     * has open takes disk space until it is closed. A data set keeps at most half of RLIMIT_NOFILE
     * files open, and at most 16384. So the disk needs space for the entries that an epoch reads,
     * too; without it, reads fail with ENOSPC. At least 1 MiB. default: auto, half of the disk's
     * free space when the cache is opened, entries included */
    uint64_t cache_size;
    /* folder that the paths in a table of images are relative to; other formats ignore it; copies.
     * default: NULL, the table's own folder */
    const char *root_path;
    /* fields of tar archives whose value is one of several members; copies. Penstock's own format
     * ignores them, except that the data set must have fields of these names. ENOTSUP with other
     * formats. default: NULL, none */
    const struct pstk_first_of *first_of;
    uint32_t n_first_of;
    /* enum pstk_split_at: end of the key and begin of the suffix in the name of a member of a tar
     * archive. PSTK_SPLIT_LAST: ENOTSUP with other formats. default: PSTK_SPLIT_AUTO */
    uint32_t split_at;
    /* called once for each index that another process builds, after a wait of one second: the text
     * names the process, its host and its lock file. The wait ends when the index is complete; with
     * ETIMEDOUT if the other process makes no progress for a minute. Thread: the caller's. default:
     * NULL */
    pstk_wait_fn on_wait;
    /* 1: in a folder of images every JPEG and PNG file is a sample, found by its first bytes,
     * whatever its name (x.jfif, or no suffix). The first open then reads the first bytes of all
     * such files. ENOTSUP with other formats except penstock's own. default: 0 */
    uint32_t by_content;
    uint32_t n_defaults;
    /* values of fields in records of TFRecord files that lack them; copies. Such a field is a
     * scalar, an array of fixed shape, bytes or utf8, else ENOTSUP; the value has the field's size,
     * else EINVAL. A feature without a list, Feature{}, is absent, too; one with an empty list is
     * not. pstk_field_stats.n_absent counts the records. Penstock's own format ignores them;
     * ENOTSUP with other formats. default: NULL, none: a record that lacks a field is an error of
     * the field, unless the field is variable, and so empty */
    const struct pstk_default *defaults;
    /* enum pstk_damaged of files that are read in place. PSTK_DAMAGED_ACCEPT: an image that does
     * not decode without a fault is decoded as Pillow loads it, if it loads it: a JPEG by libjpeg's
     * guesses, a PNG whose fault comes after its rows. A batch's n_damaged_images counts such rows;
     * a cropped one only where decoding reached the fault. default: 0, it is a bad sample */
    uint32_t damaged;
    /* must be 0 */
    uint32_t reserved;
};

/* Return the name of the record format at a path, "pstk", "tar", ..., without opening the data set.
 * NULL: *err (may be NULL) has the reason. ENOENT, ENOTSUP: no format knows it. Other errors: the
 * format is unknown, because a file that decides is unreadable, or two formats or tables claim the
 * path. Static storage. */
PSTK_API const char *pstk_find_format(const char *path, struct pstk_error *err);

/* The way in which pstk_verify_data used the checksums of samples. */
enum pstk_verify_checksums {
    /* the format has no checksums, and no saved ones were usable: see pstk_verify_report.note */
    PSTK_VERIFY_WITHOUT = 0,
    /* the format has its own checksums, and the library checked them */
    PSTK_VERIFY_OWN = 1,
    /* the library compared every sample with its saved checksum */
    PSTK_VERIFY_COMPARED = 2,
    /* the library computed checksums and saved them for later calls */
    PSTK_VERIFY_KEPT = 3,
};

/* The result of pstk_verify_data. Zero the struct and set size. */
struct pstk_verify_report {
    /* sizeof(struct pstk_verify_report), set by the caller */
    uint32_t size;
    /* enum pstk_verify_checksums */
    uint32_t checksums;
    /* files that hold samples, unreadable ones included; 0 for penstock's own format */
    uint64_t n_files;
    /* samples that were read, damaged or not; 0 for penstock's own format */
    uint64_t n_samples;
    /* damaged places */
    uint64_t n_bad;
    /* samples with bytes in a hole of a sparse file. They are not counted as damage: the bytes of a
     * hole read as 0, whether a copy made the hole of written zeros or was broken off. 0 for
     * formats with checksums, and where saved ones were compared */
    uint64_t n_holes;
    /* text for people: why existing checksums were not used or could not be saved; hashes that this
     * build lacks; the holes. Or empty */
    char note[640];
};

/* Settings of pstk_verify_data. Zero the struct and set size. */
struct pstk_verify_settings {
    /* sizeof(struct pstk_verify_settings), set by the caller */
    uint32_t size;
    /* 1: also decode every image in full. default: 0 */
    uint32_t decode;
    /* threads that read and check. default: 0, one */
    uint32_t n_threads;
    /* 1: if the format has no checksums, save a CRC32C of each sample's bytes in a file next to the
     * index, or in cache_path. Later calls compare every sample with it, with or without this
     * member, as long as names, sizes and times of the files stay; until then no call replaces it.
     * It is a member here, not in pstk_foreign: opening a data set never makes checksums, and no
     * batch checks them. default: 0 */
    uint32_t keep_checksums;
    /* path of the data set; borrows */
    const char *path;
    /* settings for a data set of another format, as in pstk_dataset_open; borrows. default: NULL */
    const struct pstk_foreign *foreign;
    /* callbacks, as in pstk_verify. default: NULL, none */
    pstk_verify_fn on_bad;
    pstk_progress_fn on_progress;
    /* the first argument of both; the caller's */
    void *user;
    /* report to fill, if the result is not negative; borrows. default: NULL */
    struct pstk_verify_report *report;
};

/* Check a data set as pstk_verify does. In another format it reads every sample and checks what
 * that format can show: headers, its own or saved checksums, and that no field is missing; it
 * counts samples in holes of sparse files. A missing, unreadable or damaged file is one damaged
 * place, and verify goes on with the next file. Where an index locates the samples, nothing after
 * the first damage of such a file can be trusted: the samples before it are checked, too. The
 * fields are those of the first undamaged file. Shards that the names of others count
 * ("-00003-of-00010") are damaged places if they are missing and the path is a folder or has * or
 * ?. Returns as pstk_verify does. */
PSTK_API int64_t pstk_verify_data(const struct pstk_verify_settings *s, struct pstk_error *err);

/* Find what a program's environment says of the cache, for cache_path and cache_size of struct
 * pstk_foreign. environment: "NAME=value" texts with NULL at the end. path[path_size] (may be NULL)
 * becomes $PENSTOCK_CACHE, or penstock in $XDG_CACHE_HOME, or ~/.cache/penstock; "": no variable
 * names a folder, or the path is too long. *cache_size (may be NULL) becomes the bytes of
 * $PENSTOCK_CACHE_SIZE, such as 500M or 2T, powers of 1024; 0: it is not set, or 0. EINVAL: it is
 * no such size, or above 0 and less than 1M. Thread: any. */
PSTK_API int pstk_find_cache(const char *const *environment, char *path, uint64_t path_size,
                             uint64_t *cache_size, struct pstk_error *err);

/* The cache in a folder, pstk_foreign.cache_path. Zero it and set size. */
struct pstk_cache_info {
    /* sizeof(struct pstk_cache_info), set by the caller */
    uint32_t size;
    /* 0 */
    uint32_t reserved;
    /* complete entries, and the bytes of their files */
    uint64_t n_entries;
    uint64_t bytes;
    /* entries and indexes that a process is writing, or that a killed process left, and their bytes
     */
    uint64_t n_writing;
    uint64_t writing_bytes;
    /* indexes of data sets, access points of compressed files and rewritten Parquet tables; and the
     * bytes of their files, which cache_size does not limit */
    uint64_t n_indexes;
    uint64_t index_bytes;
    /* files of checksums that pstk_verify_data saved (keep_checksums), and their bytes, which
     * cache_size does not limit. They are the only record of the data at that time */
    uint64_t n_checksums;
    uint64_t checksum_bytes;
    /* limit on the bytes of entries: cache_size, or the automatic value. PSTK_NONE: it is
     * automatic, and the folder does not exist */
    uint64_t max_bytes;
    /* free bytes of the disk. PSTK_NONE: the folder does not exist */
    uint64_t free_bytes;
};

/* Fill *info with the cache in a folder, which need not exist; nothing is written. cache_size: as
 * in pstk_foreign. EPERM: the folder belongs to another user, or others can write to it; other
 * errors are the system's for the path. */
PSTK_API int pstk_cache_get_info(const char *cache_path, uint64_t cache_size,
                                 struct pstk_cache_info *info, struct pstk_error *err);
/* Remove all entries, indexes and rewritten tables of the cache in a folder, and the files of
 * killed processes. with_checksums: 1: also the checksums that pstk_verify_data saved; else 0.
 * Files that penstock did not write stay, whatever their names, and so do files being written. Open
 * data sets stay readable, except compressed files whose access points were removed, and Parquet
 * tables: reads of those fail, and the data set must be opened again. removed (may be NULL; the
 * caller sets size): the removed entries, indexes and checksums, and their bytes. EBUSY: another
 * process has the folder locked. EPERM: as pstk_cache_get_info, and nothing was removed; or some
 * files could not be removed, and the message has their number. */
PSTK_API int pstk_cache_clear(const char *cache_path, uint32_t with_checksums,
                              struct pstk_cache_info *removed, struct pstk_error *err);

#ifdef __cplusplus
}
#endif

#endif
