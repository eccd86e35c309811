/* SPDX-License-Identifier: Apache-2.0 */
/*
 * penstock/export.h - give a data set back in the format of another library.
 *
 *   struct pstk_export_settings s = {.size = sizeof s, .target = PSTK_EXPORT_WEBDATASET,
 *                                    .data = "train", .out = "tars"};
 *   struct pstk_export_result result = {.size = sizeof result};
 *   if (pstk_export(&s, &result, &err) < 0) ...
 *
 * Images come back byte for byte as they were packed. Three counters of the result name the
 * exceptions: JPEGs that become an equivalent file, decoded pixels that become a PNG file, and
 * files whose name has to change. All other values keep their numbers and bytes, except that
 * bfloat16 becomes float32, without loss. A field that the target cannot hold is an error before
 * anything is written.
 *
 * The library writes the files into a directory of another name next to `out`, and renames it as
 * the last step. The file penstock-export.json in it has the identity of the data set, the fields,
 * the class names, and a digest of the names and sizes of all other files.
 */
#ifndef PENSTOCK_EXPORT_H
#define PENSTOCK_EXPORT_H

#include <penstock/foreign.h>
#include <penstock/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct pstk_subset;

enum pstk_export_target {
    /* image files in class folders, or at the paths of a text field; other fields in
     * metadata.jsonl, a JSON object a line, as Hugging Face's imagefolder reads it */
    PSTK_EXPORT_FOLDER = 1,
    /* 000000.tar, ...: plain tar; a member for each field, KEY.jpg, KEY.cls, ..., or KEY.FIELD.txt
     */
    PSTK_EXPORT_WEBDATASET = 2,
    /* 00000-of-00002.tfrecord, ...: tf.train.Example; a feature for each field */
    PSTK_EXPORT_TFRECORD = 3,
    /* index.json and shard.00000.mds, ...: MosaicML Streaming's format, without compression */
    PSTK_EXPORT_MDS = 4,
    /* FIELD.npy for each field: scalars, and arrays of fixed shape */
    PSTK_EXPORT_NPY = 5,
};

/* Settings of an export. Zero the struct; set size, target, data and out. All pointers: borrows. */
struct pstk_export_settings {
    /* sizeof(struct pstk_export_settings), set by the caller */
    uint32_t size;
    /* enum pstk_export_target */
    uint32_t target;
    /* path of the data set, of any format that pstk_dataset_open opens */
    const char *data;
    /* path of the directory to make; its parent exists */
    const char *out;
    /* names of the fields to export. default: NULL, all */
    const char *const *fields;
    uint32_t n_fields;
    /* threads that read, check and rebuild samples; the files do not depend on them. default: 0,
     * one */
    uint32_t n_threads;
    /* FOLDER: name of the image field. default: NULL, the only one */
    const char *image;
    /* FOLDER: name of a field of whole numbers, which are numbers of class names; the names become
     * folders. default: NULL, the only scalar of whole numbers, if the data set has class names */
    const char *label;
    /* FOLDER, WEBDATASET: name of the text field that has file names or keys; "": numbers of
     * samples. default: NULL, the first text field of `key`, `__key__`, `file_name` and `path` */
    const char *key;
    /* subset of the samples to export (subset.h), in the order of the data set or of a list.
     * default: NULL, all */
    const struct pstk_subset *subset;
    /* WEBDATASET, TFRECORD, MDS: largest size of a shard, bytes, unless one sample alone exceeds
     * it. default: 0, 256 MiB, for MDS 64 MiB */
    uint64_t shard_size;
    /* 1: replace `out` if it is an empty directory, or an export that is unchanged since. default:
     * 0 */
    uint32_t overwrite;
    /* must be 0 */
    uint32_t reserved;
    /* gets the number of samples done, on the caller's thread, at the end and every 20 ms or so; a
     * non-zero result stops the export. default: NULL, for none */
    pstk_progress_fn on_progress;
    void *user;
    /* settings for reading a data set of another format (foreign.h). default: NULL, as found */
    const struct pstk_foreign *foreign;
};

/* The result of an export. */
struct pstk_export_result {
    /* sizeof(struct pstk_export_result), set by the caller */
    uint32_t size;
    /* 1: an earlier export was stopped here; its files were removed */
    uint32_t had_leftovers;
    uint64_t n_samples;
    /* shards; 0 for targets without shards */
    uint64_t n_shards;
    /* files, without penstock-export.json */
    uint64_t n_files;
    /* total size of these files */
    uint64_t bytes;
    /* values of image and mask fields, and items of their lists */
    uint64_t n_images;
    /* part of n_images: JPEGs that differ from the packed file, with the same coefficients and
     * markers (PSTK_CODEC_PLANES) */
    uint64_t n_equivalent;
    /* part of n_images: images that were stored as pixels, and become PNG files of the same pixels
     */
    uint64_t n_encoded;
    /* FOLDER, WEBDATASET: samples whose file or key differs from the name in the key field, or
     * whose folder differs from the class name. The name came twice, lacks the suffix of its image,
     * or cannot name a file or a key in the target (control characters, a leading dot, a folder
     * that is another sample's file) */
    uint64_t n_renamed;
    /* part of n_images: PNG files that packing made anew from the rows of a damaged file
     * (PSTK_DAMAGED_ACCEPT); they differ from the original */
    uint64_t n_remade;
    /* FOLDER without metadata.jsonl: files that readers of image folders leave out, penstock's own,
     * too. They lie next to folders of images, or their names end in .jfif or .jpe. With key "" the
     * files are numbered, and none is left out */
    uint64_t n_left_out;
    /* FOLDER: samples whose class has another number for readers of the folder, penstock's own,
     * too: these number the classes that have samples, by their sorted names. Names stay as they
     * are */
    uint64_t n_renumbered;
};

/* Export a data set. Fills *result, which may be NULL, up to its size. EINVAL: a setting is wrong,
 * or the target cannot hold a field; nothing was written. EEXIST: `out` exists and overwrite is 0;
 * or it is no export; or its files changed since. EBUSY: another export is at work there. EBADMSG:
 * a damaged sample, which err names. ENOSPC, EIO, ...: a file cannot be written. ECANCELED:
 * on_progress stopped the export. After any failure except that of the last sync `out` is
 * unchanged, and nothing lies next to it. A killed process leaves the directory `.tmp-NAME` next to
 * `out`, which the next export to `out` removes. */
PSTK_API int pstk_export(const struct pstk_export_settings *s, struct pstk_export_result *result,
                         struct pstk_error *err);

#ifdef __cplusplus
}
#endif
#endif
