/* SPDX-License-Identifier: Apache-2.0 */
/*
 * penstock/format.h - data sets on disk: describe, write, merge, look into, verify.
 *
 * A data set is a directory. This library writes `manifest.json`, which a person can read, and
 * `*.pstk` shards; FORMAT.md describes every byte, README.md the other formats that it reads.
 * Records have named fields. Sample ids count records from 0 in the order of their addition,
 * whatever the shards.
 *
 *   struct pstk_field fields[] = {{.name = "jpg", .kind = PSTK_FIELD_IMAGE},
 *                                 {.name = "cls", .kind = PSTK_FIELD_SCALAR, .dtype = PSTK_I64}};
 *   struct pstk_writer_settings s;
 *   pstk_writer_settings_init(&s, sizeof s);
 *   s.path = "train"; s.fields = fields; s.n_fields = 2;
 *   struct pstk_writer *w;
 *   if (pstk_writer_open(&w, &s, &err) < 0) ...
 *   struct pstk_value v[] = {{jpeg, jpeg_size}, {&label, 8}};
 *   pstk_writer_add(w, v, 2, &err);                       // any number of times
 *   pstk_writer_commit(&w, &err);                         // only now does the data set exist
 */
#ifndef PENSTOCK_FORMAT_H
#define PENSTOCK_FORMAT_H

#include <penstock/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PSTK_FORMAT_VERSION 2
#define PSTK_MAX_FIELDS 64
#define PSTK_MAX_DIMS 8
/* Size of a field name, bytes, with the terminating 0. */
#define PSTK_MAX_NAME 64
/* Size of a column name, bytes, with the terminating 0. */
#define PSTK_MAX_COLUMN_NAME 80
/* Size of a sentence about files that are left out, bytes, with the terminating 0. */
#define PSTK_LEFT_OUT_SIZE 512

/* ---- schema -------------------------------------------------------------------------------- */

enum pstk_field_kind {
    PSTK_FIELD_BYTES = 1,
    PSTK_FIELD_UTF8 = 2,
    /* each record has its encoding */
    PSTK_FIELD_IMAGE = 3,
    /* one element of dtype */
    PSTK_FIELD_SCALAR = 4,
    /* elements of dtype, C order, little-endian */
    PSTK_FIELD_NDARRAY = 5,
    /* an image of one channel, whose samples are class numbers; each record has its encoding, PNG
     * (gray or with a palette, whose numbers it keeps) or PIXELS. It is as wide and as high as the
     * image that it belongs to */
    PSTK_FIELD_MASK = 6,
    /* An array with a meaning, of shape {0, 4}: boxes in an image, in a format of enum
     * pstk_box_format */
    PSTK_FIELD_BOXES = 7,
    /* An array of shape {0, k, 3}: x, y and visibility (0 absent, 1 hidden, 2 visible) of k points;
     * or {0, k, 2}: x and y */
    PSTK_FIELD_KEYPOINTS = 8,
    /* An array of shape {0, 2}: corners of polygons, x and y. Fields with `splits` give the number
     * of corners of each polygon. */
    PSTK_FIELD_POLYGONS = 9,
    /* An array of U32, of shape {0}: masks as runs, COCO's uncompressed counts. They are lengths of
     * runs of 0 and 1 in turn, 0 first, down the columns of an image. A field with `splits` gives
     * the number of runs of each mask; without it they are one mask. */
    PSTK_FIELD_RLE = 10,
    /* Lists; pstk_list_build makes their bytes, pstk_list_read takes them apart. A list of texts */
    PSTK_FIELD_UTF8_LIST = 11,
    /* a list of images, each with its encoding */
    PSTK_FIELD_IMAGE_LIST = 12,
    /* a list of byte strings */
    PSTK_FIELD_BYTES_LIST = 13,
    /* a list of masks: PNG files of one channel or with a palette, whose samples are class numbers
     */
    PSTK_FIELD_MASK_LIST = 14,
};

/* The meaning of the four numbers of a box. */
enum pstk_box_format {
    /* the field has no boxes */
    PSTK_BOX_FORMAT_NONE = 0,
    /* left, top, right, bottom */
    PSTK_BOX_FORMAT_XYXY = 1,
    /* left, top, width, height */
    PSTK_BOX_FORMAT_XYWH = 2,
    /* x and y of the centre, width, height */
    PSTK_BOX_FORMAT_CXCYWH = 3,
};

/* The unit of coordinates. (0, 0) is the outer corner of the top left pixel of the image as it is
 * coded, before its EXIF orientation; x goes to the right, y down. So pixel centres lie at .5, and
 * the bottom right corner is (width, height) or (1, 1). The library does not check that coordinates
 * lie within the image. */
enum pstk_coordinates {
    /* the field has no coordinates */
    PSTK_COORDINATES_NONE = 0,
    PSTK_COORDINATES_PIXELS = 1,
    /* fractions of the image's width and height, in a floating-point dtype */
    PSTK_COORDINATES_UNIT = 2,
};

/* The encoding of a field's bytes in a shard. A value that would not shrink is stored with NONE. */
enum pstk_codec {
    PSTK_CODEC_NONE = 0,
    /* one zstd frame, with the shard's dictionary for the field if it has one */
    PSTK_CODEC_ZSTD = 1,
    /* Images: re-encodes a JPEG's quantised coefficients, without loss, in a code that decodes
     * several times faster. Images of other encodings, and JPEGs that would not shrink, are stored
     * with NONE. Reading the field gives the file back, byte for byte. For a few files that is
     * impossible: their readers get a standard JPEG with the same coefficients and markers, and the
     * field statistics count them in n_equivalent. */
    PSTK_CODEC_PLANES = 2,
};

/* The reason why a writer stores an image unchanged (codec NONE) in a field whose codec is PLANES.
 */
enum pstk_passthrough {
    /* a PNG file, or pixels */
    PSTK_PASSTHROUGH_NOT_JPEG = 1,
    /* planes would not be smaller than the file */
    PSTK_PASSTHROUGH_NO_GAIN = 2,
    /* a progressive JPEG that lacks bits of some coefficients: decoders smooth its blocks, and
     * planes have no such step */
    PSTK_PASSTHROUGH_INCOMPLETE = 3,
    /* a JPEG whose colours, sampling or number of scans planes lack */
    PSTK_PASSTHROUGH_UNUSUAL = 4,
    /* a JPEG whose coefficients cannot all be read */
    PSTK_PASSTHROUGH_DAMAGED = 5,
    /* codec_level 1, and planes would not give the file back byte for byte */
    PSTK_PASSTHROUGH_NOT_EXACT = 6,
};

/*
 * One field of the schema. The record head holds scalars, and ndarrays of fixed shape without codec
 * of at most 4096 bytes: reading them takes no other byte of the record. The size of an ndarray
 * with one variable dimension (0 in shape) gives its length. With several variable dimensions the
 * bytes begin with the shape, n_dims u64. BOXES, KEYPOINTS, POLYGONS and RLE are such arrays, of
 * the shapes in enum pstk_field_kind.
 */
struct pstk_field {
    /* [A-Za-z0-9_.-]+ */
    char name[PSTK_MAX_NAME];
    /* enum pstk_field_kind */
    uint32_t kind;
    /* enum pstk_dtype; 0 except for SCALAR and arrays */
    uint32_t dtype;
    /* enum pstk_codec to try; SCALAR, IMAGE_LIST, MASK_LIST: NONE */
    uint32_t codec;
    /* ZSTD: level; 0: 3. PLANES: 1: store a JPEG with NONE if it cannot be rebuilt byte for byte;
     * 0: store its planes */
    int32_t codec_level;
    /* arrays: 1 to PSTK_MAX_DIMS; else 0 */
    uint32_t n_dims;
    /* must be 0 */
    uint32_t reserved;
    /* elements; 0: variable */
    uint64_t shape[PSTK_MAX_DIMS];

    /* name of the IMAGE field that the values belong to: MASK, BOXES, KEYPOINTS, POLYGONS, RLE,
     * MASK_LIST; else "" */
    char of[PSTK_MAX_NAME];
    /* name of an axis, [A-Za-z0-9_.-]+, or "". In a record, fields of one axis have equal numbers
     * of rows, or of items. For lists, and for arrays whose only variable dimension is the first.
     */
    char rows[PSTK_MAX_NAME];
    /* name of an axis, or "". The values are lengths, which split the rows of that axis and add up
     * to their number: corners of each polygon, polygons of each object. For NDARRAYs of integers
     * of shape {0}; at most one for each axis. */
    char splits[PSTK_MAX_NAME];
    /* enum pstk_box_format; BOXES: not NONE; else NONE */
    uint32_t box_format;
    /* enum pstk_coordinates; BOXES, KEYPOINTS, POLYGONS: not NONE; else NONE */
    uint32_t coordinates;
};

/* ---- writer -------------------------------------------------------------------------------- */

struct pstk_writer; /* opaque */

/* The caller's function. pstk_writer_add and pstk_writer_commit call it on the thread of their
 * caller, in the order of sample_id, often long after that record was added. `passthrough` is an
 * enum pstk_passthrough. It must not call the writer. */
typedef void (*pstk_passthrough_fn)(void *user, uint64_t sample_id, uint32_t field,
                                    uint32_t passthrough);

struct pstk_writer_settings {
    /* sizeof(struct pstk_writer_settings), set by init */
    uint32_t size;
    /* sizeof(struct pstk_field), set by init */
    uint32_t field_size;
    /* path of the directory to make; copies */
    const char *path;
    /* n_fields of them; copies */
    const struct pstk_field *fields;
    uint32_t n_fields;

    /* number of this writer's part, below n_parts. default: 0 */
    uint32_t part;
    /* number of parts of the data set, each in its own directory, for pstk_merge. default: 0, one
     * part */
    uint32_t n_parts;
    /* compression threads; the written bytes do not depend on them. default: 0, one */
    uint32_t n_threads;
    /* bytes; the writer closes a shard before it would exceed them. default: 0, 256 MiB */
    uint64_t shard_size;
    /* bytes of a zstd dictionary, trained on the first records if their mean is below 16 KiB; 1: no
     * dictionary. default: 0, 112640 */
    uint32_t dictionary_size;
    /* 1: the commit replaces an existing data set. default: 0 */
    uint32_t overwrite;

    /* text for people in the manifest ("penstock pack ..."); copies. default: NULL */
    const char *note;
    /* n_names class names in the manifest; copies. default: NULL */
    const char *const *names;
    uint64_t n_names;

    /* called for each image that is stored unchanged though its field's codec is PLANES. default:
     * NULL, for none */
    pstk_passthrough_fn on_passthrough;
    /* passed to on_passthrough; the caller's */
    void *on_passthrough_user;

    /* id of a pack: 32 lower-case hex digits, the same in all its parts. The program that drives
     * the pack draws it at random. It makes a part of unknown number, for an engine's task that
     * runs before the number or the order of parts is known. With n_parts > 1: the pack that a
     * numbered part belongs to; merging refuses parts that differ in it. With neither a task nor
     * n_parts, the writer can only commit parts, and refuses parts of another pack. copies.
     * default: NULL */
    const char *pack_id;
    /* name of the task within the pack, 1 to 200 of [A-Za-z0-9_.:=/-]; copies. part and n_parts are
     * then 0. default: NULL, not a part of unknown number */
    const char *task;
    /* number of the attempt at the task. Attempts at one task are different parts with the same
     * records, and only one of them can be merged. default: 0 */
    uint32_t attempt;
    /* 1: the writer makes no side columns. default: 0, those of enum pstk_column_fact, 1 to 8 bytes
     * a record each */
    uint32_t columns;
};

/* Treatment of a damaged image, one that pstk_image_check_damaged calls damaged. (pstk_convert and
 * pstk_foreign use it for images that they decode.) */
enum pstk_damaged {
    /* The writer reads only the header: the program has checked the image, or leaves it to
     * verification and loaders to find damage. */
    PSTK_DAMAGED_UNCHECKED = 0,
    /* The writer decodes the image, on the caller's thread. It stores a damaged JPEG unchanged, and
     * marks it: readers decode it whole, by libjpeg's guesses, to the pixels that Pillow has. Of a
     * PNG whose fault comes after its rows it stores a whole file with these rows, which
     * pstk_writer_n_remade counts. It stores an undamaged image as ever; EBADMSG: Pillow refuses
     * the image. */
    PSTK_DAMAGED_ACCEPT = 1,
};

/* One value of a record: bytes in the layout of the field's kind. */
struct pstk_value {
    /* borrows */
    const void *data;
    /* bytes */
    uint64_t size;
    /* enum pstk_damaged: treatment of a damaged image in an image field. default: 0 */
    uint32_t damaged;
    /* must be 0 */
    uint32_t reserved;
};

/* The description of a value that is a decoded image: rows from top to bottom without padding, in
 * them the channels of each pixel, one after another. */
struct pstk_pixels {
    /* sizeof(struct pstk_pixels), set by the caller, in each element of an array */
    uint32_t size;
    /* number of the image field that the value belongs to */
    uint32_t field;
    /* pixels */
    uint32_t height;
    /* pixels */
    uint32_t width;
    /* 1 gray, 3 RGB, 4 RGBA */
    uint32_t channels;
    /* bits of a sample: 8, or 16 (u16, little-endian) */
    uint32_t bit_depth;
};

/* Fill `s` with defaults. `size` is sizeof *s. */
PSTK_API void pstk_writer_settings_init(struct pstk_writer_settings *s, uint32_t size);
/* Begin a data set. Returns owned in *out; on failure *out is NULL. Until the commit the files have
 * temporary names. EEXIST: the path holds a data set, and overwrite is 0. */
PSTK_API int pstk_writer_open(struct pstk_writer **out, const struct pstk_writer_settings *s,
                              struct pstk_error *err);
/* Append one record of n_values values, in schema order; copies. The writer reads the headers of
 * images. EBADMSG: a value has no header of a JPEG or PNG file, and the record is not added (for
 * decoded pixels see pstk_writer_add_pixels). After any error except EBADMSG, EINVAL and EFBIG only
 * pstk_writer_abort may follow. Thread: one at a time per writer, also for the functions below. */
PSTK_API int pstk_writer_add(struct pstk_writer *w, const struct pstk_value *values,
                             uint32_t n_values, struct pstk_error *err);
/* Append one record with decoded images, as pstk_writer_add does. Each of the n_pixels elements
 * describes the image of another field. EINVAL: the size of a value differs from its description.
 */
PSTK_API int pstk_writer_add_pixels(struct pstk_writer *w, const struct pstk_value *values,
                                    uint32_t n_values, const struct pstk_pixels *pixels,
                                    uint32_t n_pixels, struct pstk_error *err);
/* Return the number of PNG files among the added values that the writer made anew from their rows
 * (PSTK_DAMAGED_ACCEPT). */
PSTK_API uint64_t pstk_writer_n_remade(const struct pstk_writer *w);
/* Return the number of files of a killed writer that pstk_writer_open removed before it began anew.
 */
PSTK_API uint64_t pstk_writer_n_leftovers(const struct pstk_writer *w);
/* Return the number of added records. */
PSTK_API uint64_t pstk_writer_n_samples(const struct pstk_writer *w);
/* Finish: flush, fsync, rename, manifest last. Frees and nulls *w, also on failure. A failure after
 * the manifest has its name, in the last sync or in removing the replaced data set, leaves a whole
 * data set, which may not survive a power failure. EINVAL: the writer has no record and is not a
 * part; the path is then unchanged. */
PSTK_API int pstk_writer_commit(struct pstk_writer **w, struct pstk_error *err);
/* Give up: remove the written files, free, null *w. NULL is fine. */
PSTK_API void pstk_writer_abort(struct pstk_writer **w);

/* Called now and then by long work. A non-zero result stops it. Thread: the caller's. */
typedef int (*pstk_progress_fn)(void *user, uint64_t n_done, uint64_t n_total);

/* Settings of pstk_merge. Zero the struct and set size. All pointers: borrows. */
struct pstk_merge_settings {
    /* sizeof(struct pstk_merge_settings), set by the caller */
    uint32_t size;
    uint32_t n_parts;
    /* n_parts paths: parts 0 to n - 1 of n, in any order; or parts of unknown number, whose
     * records follow each other in this order */
    const char *const *parts;
    /* path of the directory to make */
    const char *out;
    /* id of the pack that all parts must belong to, 32 lower-case hex digits. default: NULL, any
     * pack */
    const char *pack_id;
    /* 1: the last step replaces a data set at `out` and keeps other files there. Until then, and
     * after an earlier failure, `out` is unchanged. default: 0 */
    uint32_t overwrite;
    uint32_t reserved;
    /* gets bytes of shards after each file and each piece of a copy, the last time just before the
     * commit. If it stops the merge, the result is ECANCELED, and `out` is unchanged. default: NULL
     */
    pstk_progress_fn on_progress;
    void *user;
};

/* Join parts of one schema into a data set. Shards are hard-linked, or copied if the file system
 * refuses links. Sample ids are those of a single pack; the note is that of the first part. The
 * parts stay, and may be removed afterwards. EEXIST: `out` holds a data set, and overwrite is 0.
 * EBUSY: a writer is at work there. EINVAL: the parts do not belong together, as two attempts at
 * one task do not; or `out` is one of them, or holds files that a part's symbolic links lead to.
 * EBADMSG: a part is damaged, or changed meanwhile. */
PSTK_API int pstk_merge(const struct pstk_merge_settings *s, struct pstk_error *err);
/* Commit parts, joined as by pstk_merge, in place of the writer's own records. A program that packs
 * in parts keeps the data set's directory locked by such a writer until the whole is in it. The
 * writer has no records; the parts have its fields and names. The note is the writer's, or else the
 * first part's. A writer with a task becomes that task's part. Frees and nulls *w, also on failure.
 * EINVAL: the writer has records, or is a numbered part; or it has a pack_id and no task, and a
 * part is of another pack. */
PSTK_API int pstk_writer_commit_parts(struct pstk_writer **w, const char *const *parts,
                                      uint32_t n_parts, struct pstk_error *err);

/* ---- lists --------------------------------------------------------------------------------- */

/* One item of a value of a list field. */
struct pstk_list_item {
    /* borrows; from pstk_list_read: a pointer into the list */
    const void *data;
    /* bytes */
    uint64_t size;
    /* Members of images; 0 for others. pstk_list_build reads them from a file's header, unless
     * encoding is PSTK_ENCODING_PIXELS. enum pstk_encoding */
    uint32_t encoding;
    /* pixels */
    uint32_t width;
    /* pixels */
    uint32_t height;
    /* samples of a pixel */
    uint32_t channels;
    /* bits of a sample */
    uint32_t bit_depth;
    /* 1: samples are numbers of a palette's colours */
    uint32_t has_palette;
};

/* Make the value of a list field, for struct pstk_value, from its n items. `kind` is the field's.
 * Returns owned bytes in *data (free with pstk_free), and their number in *size. items: borrows.
 * EBADMSG: an image is unreadable, or a file is not a mask. EINVAL: a text is not UTF-8, or pixels
 * are not a mask. EFBIG, ENOMEM. */
PSTK_API int pstk_list_build(uint32_t kind, const struct pstk_list_item *items, uint64_t n,
                             void **data, uint64_t *size, struct pstk_error *err);
/* Check the value of a list field and return the number of its items; fill at most the first
 * n_items of `items` (NULL if n_items is 0). data: borrows; the items point into it. EBADMSG: the
 * value is not such a list. */
PSTK_API int64_t pstk_list_read(uint32_t kind, const void *data, uint64_t size,
                                struct pstk_list_item *items, uint64_t n_items,
                                struct pstk_error *err);

/* ---- images -------------------------------------------------------------------------------- */

/* Check that bytes are a whole image that this library decodes to RGB without a warning: decode all
 * of it. It does not check the alpha of a PNG's tRNS chunk. As Pillow does, an output of 4 channels
 * refuses a chunk that is too short for a colour. It also refuses one of more than 256 bytes for a
 * palette, unless one of the first 256 bytes is 0 and all others are 255. *width and *height (may
 * be NULL) become the image's, in pixels. borrows. 0, EBADMSG, ENOTSUP or EFBIG. */
PSTK_API int pstk_image_check(const void *data, uint64_t size, uint64_t max_pixels, uint32_t *width,
                              uint32_t *height, struct pstk_error *err);
/* Pillow's treatment of a damaged image. */
enum pstk_damage {
    /* the file is whole, or Pillow refuses it */
    PSTK_DAMAGE_NONE = 0,
    /* a JPEG whose missing parts libjpeg guesses */
    PSTK_DAMAGE_GUESSED = 1,
    /* a PNG whose rows are whole, with a fault after them or in one of their checksums; no
     * animation */
    PSTK_DAMAGE_REMADE = 2,
};

/* Check as pstk_image_check does, with the same result, and find out how Pillow treats a damaged
 * file. *damaged becomes an enum pstk_damage: not NONE only if the result is EBADMSG, and Pillow
 * loads the file without an exception. borrows. */
PSTK_API int pstk_image_check_damaged(const void *data, uint64_t size, uint64_t max_pixels,
                                      uint32_t *damaged, struct pstk_error *err);
/* Return 1 if bytes are a PNG file with a palette (colour type 3), else 0. Reads only the header.
 * Such a file is often a mask, whose numbers are class ids. A loader's images lose them: they have
 * the palette's colours, resized bilinearly. borrows. */
PSTK_API int pstk_image_is_palette(const void *data, uint64_t size);

/* Return the name of an image format by a file's first bytes (64 are enough): "JPEG", "PNG",
 * "WebP", "TIFF", ...; NULL: an unknown format. Static storage. *packed (may be NULL) becomes 1 if
 * data sets can hold such files, else 0. Decodes nothing. borrows. */
PSTK_API const char *pstk_image_format(const void *data, uint64_t size, int *packed);

/* Find out whether a writer would store an image file as planes, in a field of that codec_level. It
 * makes the planes, which takes as long as packing the image. *passthrough becomes 0 if the writer
 * would, else the reason, an enum pstk_passthrough. borrows. 0; or ENOMEM, EINVAL. EBADMSG: the
 * planes do not give back their source; suspect the machine's memory. */
PSTK_API int pstk_image_passthrough(const void *data, uint64_t size, int32_t codec_level,
                                    uint32_t *passthrough, struct pstk_error *err);

/* Settings of pstk_image_convert. Zero the struct and set size; then set shorter_side for pixels,
 * or max_side, quality or both for a JPEG. */
struct pstk_convert {
    /* sizeof(struct pstk_convert), set by the caller */
    uint32_t size;
    /* length of the shorter side, pixels, for RGB of height x width x 3 bytes. A longer shorter
     * side becomes this one, and the other side is rounded down, as in torchvision's Resize; a
     * smaller image keeps its size */
    uint32_t shorter_side;
    /* limit on the longer side, pixels. Both sides of a larger image shrink and are rounded, to at
     * least 1; a smaller image keeps its size */
    uint32_t max_side;
    /* quality of the JPEG, 1 to 100, 4:2:0, by the standard tables. 0: an image within max_side is
     * not re-encoded, others get 90 */
    uint32_t quality;
    /* limit on the pixels of the given image. default: 0, 178956970, Pillow's limit */
    uint64_t max_pixels;
    /* enum pstk_damaged. PSTK_DAMAGED_ACCEPT: convert a damaged image, too, as Pillow loads it; the
     * result is whole. default: 0, refuse it */
    uint32_t damaged;
    /* must be 0 */
    uint32_t reserved;
};

/* Convert an image, with loss: decode all of it to RGB, where a warning is an error unless
 * how->damaged permits it; resize as Pillow's resize(..., BILINEAR); then return the pixels, or
 * encode a JPEG as Pillow's save(quality=...). It does not apply the EXIF orientation: a JPEG gets
 * an Exif segment with that tag alone, pixels lose it. All other metadata is left out. borrows. 1:
 * returns owned bytes in *out (free with pstk_free). 0: this image needs no change; *out is NULL,
 * and only the header was read (see pstk_image_check). *width and *height (may be NULL) are those
 * of the result, in pixels. EBADMSG, ENOTSUP, EFBIG, EINVAL, ENOMEM. */
PSTK_API int pstk_image_convert(const void *data, uint64_t size, const struct pstk_convert *how,
                                void **out, uint64_t *out_size, uint32_t *width, uint32_t *height,
                                struct pstk_error *err);

/* ---- looking into a data set --------------------------------------------------------------- */

struct pstk_dataset; /* opaque */
struct pstk_foreign; /* foreign.h */

struct pstk_dataset_info {
    /* sizeof(struct pstk_dataset_info), set by the caller */
    uint32_t size;
    uint32_t n_fields;
    uint64_t n_samples;
    uint64_t n_shards;
    /* bytes of all shards and dictionaries */
    uint64_t bytes;
    /* class names */
    uint64_t n_names;
    /* version of the format; 0: the format has none */
    uint32_t format_version;
    uint32_t reserved;
    /* hex digest of schema and content; the same for any sharding */
    char identity[40];
    /* name of the record format: "pstk" */
    char format[16];
    /* 1: checksums cover every byte, and every read checks them. 2: there is one for each file, or
     * for all values of a field; only pstk_verify checks it. 3: the format has none, but
     * pstk_verify_data saved some next to the index, and only it compares them. 0: there are none,
     * or not for all fields */
    uint32_t has_checksums;
    /* files that hold samples */
    uint32_t n_files;
    /* files that are left out. A folder of images that is read in place: images next to its class
     * folders, which torchvision's ImageFolder leaves out, too. Folders of tar archives, TFRecord
     * files, Megatron-LM's pairs or arrays: see left_out. Other formats: 0. A mixture: the sum over
     * its data sets */
    uint64_t n_left_out;
    /* sentence about files of the format that lie one folder further down, or whose names differ a
     * little from those that are read; it names the first one and the path that opens it. "": there
     * are none. A mixture: the sentence of the first data set that has one */
    char left_out[PSTK_LEFT_OUT_SIZE];
};

/* Maxima and sums of a field over all records. */
struct pstk_field_stats {
    /* sizeof(struct pstk_field_stats), set by the caller */
    uint32_t size;
    /* pixels; images only */
    uint32_t max_width;
    /* pixels; images only */
    uint32_t max_height;
    uint32_t reserved;
    /* bytes of one value as stored */
    uint64_t max_stored_size;
    /* bytes of one value decompressed */
    uint64_t max_plain_size;
    /* sum of all values as stored */
    uint64_t stored_bytes;
    /* sum of all values decompressed */
    uint64_t plain_bytes;
    /* records by enum pstk_encoding; the reserved encodings of FORMAT.md have room */
    uint64_t n_encoding[16];
    /* records by enum pstk_codec */
    uint64_t n_codec[8];
    /* records with PLANES whose file differs from the added one, with the same coefficients and
     * markers */
    uint64_t n_equivalent;
    /* records with a damaged JPEG, which Pillow and loaders decode by libjpeg's guesses */
    uint64_t n_damaged;
    /* TFRecord files: records without the field. Their value is its default
     * (pstk_foreign.defaults), or empty if the field is variable; else they are errors. Other
     * formats: 0 */
    uint64_t n_absent;
};

/* The description of one value in a record's head. */
struct pstk_value_info {
    /* sizeof(struct pstk_value_info), set by the caller */
    uint32_t size;
    /* enum pstk_encoding; NONE except for images */
    uint32_t encoding;
    /* pixels, from the file's header, before EXIF orientation; images only, else 0 */
    uint32_t width;
    /* pixels, from the file's header, before EXIF orientation; images only, else 0 */
    uint32_t height;
    /* enum pstk_codec of this value */
    uint32_t codec;
    /* 1: the file read differs from the added one (PSTK_CODEC_PLANES); else 0 */
    uint32_t equivalent;
    /* size as stored, bytes */
    uint64_t stored_size;
    /* channels, from the file's header; 1 for a palette; images only, else 0 */
    uint32_t channels;
    /* bits of a sample, from the file's header; images only, else 0 */
    uint32_t bit_depth;
    /* 1: samples are indices into a palette, as often in a mask; else 0 */
    uint32_t has_palette;
    /* 1: a damaged JPEG, which Pillow loads by libjpeg's guesses; else 0 */
    uint32_t damaged;
    /* 1: the record has no such field: the value is a default, or empty; else 0 */
    uint32_t absent;
    uint32_t reserved;
};

/* Open a data set for reading single records. Returns owned. foreign: settings for a data set of
 * another format (foreign.h); borrows; NULL: defaults. The first read from a shard opens it.
 * Opening takes at most 64 MiB and 4 times the manifest's bytes, and for each dictionary its bytes
 * and 32 KiB; and time in proportion to them. */
PSTK_API int pstk_dataset_open(struct pstk_dataset **out, const char *path,
                               const struct pstk_foreign *foreign, struct pstk_error *err);
/* Close and null *d; NULL is fine. Thread: one, after all calls that use d. */
PSTK_API void pstk_dataset_close(struct pstk_dataset **d);
/* Copy the facts about the data set to *info, up to its size. If that reaches n_left_out, each call
 * looks for such files: it lists the folder twice, and at most 64 folders below it. */
PSTK_API int pstk_dataset_get_info(const struct pstk_dataset *d, struct pstk_dataset_info *info);
/* Copy field `i` of the schema and its statistics (either may be NULL). EINVAL: there is no such
 * field. */
PSTK_API int pstk_dataset_get_field(const struct pstk_dataset *d, uint32_t i,
                                    struct pstk_field *field, struct pstk_field_stats *stats);
/* Return class name i; NULL: there is none. It lives as long as d. */
PSTK_API const char *pstk_dataset_name(const struct pstk_dataset *d, uint64_t i);
/* Read one field of one record, checked and decompressed. Returns owned bytes in *data (free with
 * pstk_free) and their number in *size. *info (may be NULL; set info->size) describes the value of
 * this call. ENOENT: the data set was replaced or removed meanwhile, and with it the record's
 * shard: open it again. EBADMSG: damage, or an array that changed meanwhile. EFBIG: an image of
 * over 178956970 pixels that is stored compressed; a loader reads it if max_pixels permits. */
PSTK_API int pstk_dataset_get(struct pstk_dataset *d, uint64_t sample_id, uint32_t field,
                              void **data, uint64_t *size, struct pstk_value_info *info,
                              struct pstk_error *err);
/* Decode a mask that pstk_dataset_get read with *info: to its samples, unscaled, height x width
 * numbers in rows from top to bottom. Gray of few bits and indices into a palette stay as they are.
 * Returns owned bytes in *samples (free with pstk_free); *dtype becomes PSTK_U8, or PSTK_U16 for 16
 * bits. data, info: borrows. EBADMSG: damage. EINVAL: the value is no mask. EFBIG, ENOMEM. */
PSTK_API int pstk_mask_decode(const void *data, uint64_t size, const struct pstk_value_info *info,
                              void **samples, uint32_t *dtype, struct pstk_error *err);
/* Free bytes that a function of this header returned owned; NULL is fine. */
PSTK_API void pstk_free(void *data);
/* Copy out the description of one value in the record's head, without reading the value: the same
 * *info (set info->size) as that of pstk_dataset_get. */
PSTK_API int pstk_dataset_look(struct pstk_dataset *d, uint64_t sample_id, uint32_t field,
                               struct pstk_value_info *info, struct pstk_error *err);

/* ---- side columns -------------------------------------------------------------------------- */

/*
 * A column has one scalar for each record, in files of its own next to the shards. Programs read a
 * range of it without reading records: to select samples, to weigh them, to sort them by length. A
 * writer makes the columns of enum pstk_column_fact; pstk_column_add adds others. Columns do not
 * change the identity, and reading records never needs them.
 */

/* The fact about a field that a column holds. */
enum pstk_column_fact {
    /* none: pstk_column_add added the column */
    PSTK_COLUMN_ADDED = 0,
    /* the value of a SCALAR field; named like the field */
    PSTK_COLUMN_VALUE = 1,
    /* plain bytes of a value, u32; named FIELD.size. For fields whose values vary in size, except
     * those with LENGTH */
    PSTK_COLUMN_SIZE = 2,
    /* length of the one variable dimension of an array, u32; named FIELD.length */
    PSTK_COLUMN_LENGTH = 3,
    /* pixels of an image, u32; named FIELD.width */
    PSTK_COLUMN_WIDTH = 4,
    /* pixels of an image, u32; named FIELD.height */
    PSTK_COLUMN_HEIGHT = 5,
};

struct pstk_column_info {
    /* sizeof(struct pstk_column_info), set by the caller */
    uint32_t size;
    /* enum pstk_dtype */
    uint32_t dtype;
    /* enum pstk_column_fact */
    uint32_t fact;
    /* number of the field; ADDED: 0 */
    uint32_t field;
    /* bytes of all files of the column */
    uint64_t bytes;
    /* [A-Za-z0-9_.-]+ */
    char name[PSTK_MAX_COLUMN_NAME];
};

/* Return the number of columns; 0 also for formats that have none. */
PSTK_API uint32_t pstk_dataset_n_columns(const struct pstk_dataset *d);
/* Copy column i's entry in the manifest to *info, up to its size. EINVAL: there is no such column.
 */
PSTK_API int pstk_dataset_get_column_info(const struct pstk_dataset *d, uint32_t i,
                                          struct pstk_column_info *info);
/* Read the values of samples first .. first + n - 1 into out, of out_size bytes, in the column's
 * dtype. It reads and checks the header and the pages of these values; takes 256 KiB of memory. n
 * may be 0. ENOENT: there is no such column, or its file is missing, or the data set was replaced
 * meanwhile. EBADMSG: damage. */
PSTK_API int pstk_dataset_read_column(struct pstk_dataset *d, const char *name, uint64_t first,
                                      uint64_t n, void *out, uint64_t out_size,
                                      struct pstk_error *err);

/* A column to add. Zero it and set size; then set name, and either dtype, values and n, or file. */
struct pstk_new_column {
    /* sizeof(struct pstk_new_column), set by the caller */
    uint32_t size;
    /* enum pstk_dtype of the values */
    uint32_t dtype;
    /* name of the column, 1 to 79 characters of [A-Za-z0-9_.-]; borrows */
    const char *name;
    /* n values, one for each sample in order; borrows */
    const void *values;
    uint64_t n;
    /* path of a .npy file with an array of one dimension, in place of values; borrows */
    const char *file;
    /* 1: replace a column of that name. default: 0 */
    uint32_t overwrite;
    uint32_t reserved;
};

/* Add a column to a data set, or to a part: write its files next to the shards, then replace the
 * manifest, as the last step. The identity stays, and open loaders go on; an open data set has the
 * column after it is opened again. Takes 512 KiB of memory. on_progress (may be NULL) gets values;
 * if it stops, the result is ECANCELED, and the data set is unchanged. EINVAL: no column may have
 * the name, the number of values differs from that of samples, or a value is NaN. EEXIST: there is
 * such a column, and overwrite is 0. EBUSY: a writer is at work there. ENOTSUP: no column can have
 * the file's array, or the data set has another format. */
PSTK_API int pstk_column_add(const char *path, const struct pstk_new_column *column,
                             pstk_progress_fn on_progress, void *user, struct pstk_error *err);
/* Remove a column: replace the manifest, then remove the files. ENOENT: there is no such column. */
PSTK_API int pstk_column_remove(const char *path, const char *name, struct pstk_error *err);

/* ---- verification -------------------------------------------------------------------------- */

/* Called for each damaged place that pstk_verify finds, in order; `bad->message` describes it. A
 * non-zero result stops pstk_verify, which returns ECANCELED. Thread: the caller's. */
typedef int (*pstk_verify_fn)(void *user, const struct pstk_error *bad);

/* Open every file of a data set, and compare its size and header with those at open: much faster
 * than pstk_verify, which reads whole files. on_bad (may be NULL) is called for each file that is
 * missing, unreadable or different; a non-zero result ends the check, which returns ECANCELED. In a
 * folder of images it opens only the first image of each folder. Returns the number of such files,
 * at most INT32_MAX, or EINVAL. */
PSTK_API int64_t pstk_dataset_check(struct pstk_dataset *d, pstk_verify_fn on_bad, void *user,
                                    struct pstk_error *err);

/* Read and check every byte of a data set: manifest, headers, index pages, heads, fields, padding
 * and decompression; with decode != 0 also decode every image in full. Returns the number of
 * damaged places (0: whole; at most INT32_MAX), or a negative error if the path cannot be read as a
 * data set. n_threads 0 is 1. on_progress is called every 20 ms or so, even if n_done did not
 * change. Between two calls the work is at most to read 1 MiB, or to check, decompress or decode
 * one value. If the format has no checksums of samples (pstk_dataset_info), it reads every sample
 * and finds the unreadable ones. A wrong checksum over all values of a field is one damaged place.
 */
PSTK_API int64_t pstk_verify(const char *path, int decode, uint32_t n_threads,
                             pstk_verify_fn on_bad, pstk_progress_fn on_progress, void *user,
                             struct pstk_error *err);

#ifdef __cplusplus
}
#endif
#endif
