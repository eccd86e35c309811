/* SPDX-License-Identifier: Apache-2.0 */
/*
 * penstock/export.h - give a data set back in the format of another library.
 *
 *   struct pstk_export_settings s = {.size = sizeof s, .target = PSTK_EXPORT_WEBDATASET,
 *                                    .data = "train", .out = "tars"};
 *   struct pstk_export_result result = {.size = sizeof result};
 *   if (pstk_export(&s, &result, &err) < 0) ...
 *
 * Images come back byte for byte as they were packed. Three counters of the result name those that
 * do not: JPEGs that are an equivalent file, decoded pixels that became a PNG file, and files
 * whose name had to change. All other values keep their numbers and bytes, except that bfloat16
 * becomes float32, without loss. A field that the target cannot hold is an error before anything
 * is written.
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
    /* image files in class folders, or below the paths that a text field has; other fields in
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
    /* the directory to make; its parent exists */
    const char *out;
    /* names of the fields to export. default: NULL, all */
    const char *const *fields;
    uint32_t n_fields;
    /* threads that read, check and rebuild samples; the files do not depend on them. default: 0,
     * one */
    uint32_t n_threads;
    /* FOLDER: the image field. default: NULL, the only one */
    const char *image;
    /* FOLDER: the field of whole numbers that count the class names, which become folders.
     * default: NULL, the only scalar of whole numbers, if the data set has class names */
    const char *label;
    /* FOLDER, WEBDATASET: the text field that has file names or keys; "": samples are numbered.
     * default: NULL, the text field `key`, `__key__`, `file_name` or `path`: the first
     * that there is */
    const char *key;
    /* subset of the samples to export (subset.h), in the order of the data set or of a list.
     * default: NULL, all */
    const struct pstk_subset *subset;
    /* WEBDATASET, TFRECORD, MDS: bytes; a shard is closed before it has more, but has one sample at
     * least. default: 0, 256 MiB, of MDS 64 MiB */
    uint64_t shard_size;
    /* 1: replace `out` if it is an empty directory, or an export to which nobody added a file and
     * of which nobody changed one. default: 0 */
    uint32_t overwrite;
    /* must be 0 */
    uint32_t reserved;
    /* gets samples, on the caller's thread, at the end and every 20 ms or so; a non-zero result
     * stops. default: NULL, for none */
    pstk_progress_fn on_progress;
    void *user;
    /* settings for reading a data set of another format (foreign.h). default: NULL, as found */
    const struct pstk_foreign *foreign;
};

/* The result of an export. */
struct pstk_export_result {
    /* sizeof(struct pstk_export_result), set by the caller */
    uint32_t size;
    /* 1: an export was stopped here before; its files were removed */
    uint32_t had_leftovers;
    uint64_t n_samples;
    /* 0 of targets without shards */
    uint64_t n_shards;
    /* files, without penstock-export.json */
    uint64_t n_files;
    /* total size of these files */
    uint64_t bytes;
    /* values of image and mask fields, and items of their lists */
    uint64_t n_images;
    /* JPEGs among them that are another file than the packed one, with the same coefficients and
     * markers (PSTK_CODEC_PLANES) */
    uint64_t n_equivalent;
    /* images among them that were stored as pixels, and are PNG files of the same pixels */
    uint64_t n_encoded;
    /* FOLDER, WEBDATASET: samples whose file or key has another name than the key field says, or
     * whose folder has another name than the class: it came twice, lacks the suffix of its image,
     * or cannot be a file's or a key in the target (control characters, a leading dot, a folder
     * that is another sample's file) */
    uint64_t n_renamed;
    /* PNG files among them that packing made anew from the rows of a damaged file
     * (PSTK_DAMAGED_ACCEPT), so that they are not the original */
    uint64_t n_remade;
    /* FOLDER without metadata.jsonl: files that readers of image folders leave out, penstock's own,
     * too. They lie next to folders of images, or their names end in .jfif or .jpe. key "" numbers
     * all files, so that none is left out */
    uint64_t n_left_out;
    /* FOLDER: samples whose class has another number for readers of the folder, penstock too: they
     * number the classes that have samples, by their sorted names. Names stay as they are */
    uint64_t n_renumbered;
};

/* Export a data set. Fills *result, which may be NULL, up to its size.
 * EINVAL: a wrong setting; or a field that the target cannot hold, and nothing was written. EEXIST:
 * there is something at `out`, and overwrite is 0; or it is no export; or somebody added or changed
 * a file there. EBUSY: another export is at work there. EBADMSG: a damaged sample, which err names.
 * ENOSPC, EIO, ...: a file cannot be written. ECANCELED: on_progress stopped the export.
 * After any failure except that of the last sync `out` is as it was, and nothing lies next to it. A
 * process that is killed leaves the directory `.tmp-NAME` next to `out`, which the next export to
 * `out` removes. */
PSTK_API int pstk_export(const struct pstk_export_settings *s, struct pstk_export_result *result,
                         struct pstk_error *err);

#ifdef __cplusplus
}
#endif
#endif
