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
/* Bytes of a field name, with the terminating 0. */
#define PSTK_MAX_NAME 64
/* Bytes of a column name, with the terminating 0. */
#define PSTK_MAX_COLUMN_NAME 80
/* Bytes of a sentence about files that are left out, with the terminating 0. */
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
     * (gray or with a palette, whose numbers it keeps) or PIXELS. It has the width and height of
     * the image that it belongs to */
    PSTK_FIELD_MASK = 6,
    /* An array with a meaning, of shape {0, 4}: boxes in an image, in a format of enum
     * pstk_box_format */
    PSTK_FIELD_BOXES = 7,
    /* An array of shape {0, k, 3}: x, y and visibility (0 absent, 1 hidden, 2 visible) of k points;
     * or {0, k, 2}: x and y */
    PSTK_FIELD_KEYPOINTS = 8,
    /* An array of shape {0, 2}: corners of polygons, x and y. Fields with `splits` say which belong
     * together. */
    PSTK_FIELD_POLYGONS = 9,
    /* An array of U32, of shape {0}: masks as runs, COCO's uncompressed counts. They are lengths of
     * runs of 0 and 1 in turn, 0 first, down the columns of an image. A field with `splits` says
     * which belong to one mask; without it they are one mask. */
    PSTK_FIELD_RLE = 10,
    /* Lists; pstk_list_build makes their bytes, pstk_list_read takes them apart. A list of texts */
    PSTK_FIELD_UTF8_LIST = 11,
    /* a list of images, each with its encoding */
    PSTK_FIELD_IMAGE_LIST = 12,
    /* a list of byte strings */
    PSTK_FIELD_BYTES_LIST = 13,
    /* a list of masks: PNG files of one channel, whose samples are class numbers; with a palette,
     * too */
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
    /* fractions of the image's width and height; of a dtype that has fractions */
    PSTK_COORDINATES_UNIT = 2,
};

/* The encoding of a field's bytes in a shard. A value that would not shrink is stored with NONE. */
enum pstk_codec {
    PSTK_CODEC_NONE = 0,
    /* one zstd frame, with the shard's dictionary for the field if it has one */
    PSTK_CODEC_ZSTD = 1,
    /* Images: re-encodes a JPEG's quantised coefficients, without loss, in a code that decodes
     * several times faster. Images of other encodings, and JPEGs that would not shrink, are stored
     * with NONE. Reading the field gives the file back, byte for byte. A few files cannot be
     * rebuilt so: their readers get a standard JPEG with the same coefficients and markers, which
     * the field statistics count in n_equivalent. */
    PSTK_CODEC_PLANES = 2,
};

/* Why a writer stores an image as it came (codec NONE) in a field whose codec is PLANES. */
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
 * of at most 4096 bytes: to read them takes no other byte of the record. The size of an ndarray
 * with one variable dimension (0 in shape) gives its length. With several variable dimensions the
 * bytes begin with the shape, n_dims u64. BOXES, KEYPOINTS, POLYGONS and RLE are such arrays, of
 * the shapes that enum pstk_field_kind has.
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
     * of rows, or of items. For lists, and for arrays whose first dimension alone is variable. */
    char rows[PSTK_MAX_NAME];
    /* name of an axis, or "". The values are lengths, which split the rows of that axis and add up
     * to their number: how many points each polygon has, how many polygons each object. For
     * NDARRAYs of integers of shape {0}; at most one for each axis. */
    char splits[PSTK_MAX_NAME];
    /* enum pstk_box_format; BOXES: not NONE; else NONE */
    uint32_t box_format;
    /* enum pstk_coordinates; BOXES, KEYPOINTS, POLYGONS: not NONE; else NONE */
    uint32_t coordinates;
};

/* ---- writer -------------------------------------------------------------------------------- */

struct pstk_writer; /* opaque */

/* The caller's function, called in add and commit, on their caller's thread, in the order of
 * sample_id, often long after that record was added. `passthrough` is an enum pstk_passthrough. It
 * must not call the writer. */
typedef void (*pstk_passthrough_fn)(void *user, uint64_t sample_id, uint32_t field,
                                    uint32_t passthrough);

struct pstk_writer_settings {
    /* sizeof(struct pstk_writer_settings), set by init */
    uint32_t size;
    /* sizeof(struct pstk_field), set by init */
    uint32_t field_size;
    /* the directory to make; copies */
    const char *path;
    /* n_fields of them; copies */
    const struct pstk_field *fields;
    uint32_t n_fields;

    /* number of this writer's part, below n_parts. default: 0 */
    uint32_t part;
    /* parts of the data set, each in its own directory, for pstk_merge. default: 0, one part */
    uint32_t n_parts;
    /* compression threads; the written bytes do not depend on them. default: 0, one */
    uint32_t n_threads;
    /* bytes; the writer closes a shard before it has more. default: 0, 256 MiB */
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

    /* called for each image that is stored as it came though its field's codec is PLANES.
     * default: NULL, for none */
    pstk_passthrough_fn on_passthrough;
    /* passed to on_passthrough; the caller's */
    void *on_passthrough_user;

    /* a part of unknown number: what an engine's task writes when nobody knows yet how many parts
     * there will be, or in which order. 32 lower-case hex digits, the same in all parts of a pack:
     * a random number, made by the program that drives it. With n_parts > 1: the id of the pack
     * that a numbered part is of; merging refuses parts that differ in it. With pack_id and
     * neither, the writer can only commit parts, and takes none of another pack; copies. default:
     * NULL */
    const char *pack_id;
    /* the task's name within the pack, 1 to 200 of [A-Za-z0-9_.:=/-]; copies. part and n_parts are
     * 0. default: NULL, not a part of unknown number */
    const char *task;
    /* number of the attempt at the task; the attempts at one task are different parts with the same
     * records, and only one of them can be merged. default: 0 */
    uint32_t attempt;
    /* 1: no side columns. default: 0, those of enum pstk_column_fact, 1 to 8 bytes a record each */
    uint32_t columns;
};

/* How a writer treats a damaged image, one that pstk_image_check_damaged calls damaged.
 * (pstk_convert and pstk_foreign use it for images that they decode.) */
enum pstk_damaged {
    /* The writer reads only the header: whoever adds the image has checked it, or reads what a
     * damaged one costs from verification and loaders. */
    PSTK_DAMAGED_UNCHECKED = 0,
    /* The writer decodes the image, on the thread of the caller. It stores a damaged JPEG as it
     * came, and marks it: readers decode it whole, by libjpeg's guesses, to the pixels that Pillow
     * has. Of a PNG whose fault comes after its rows it stores a whole file with these rows, which
     * pstk_writer_n_remade counts. An image that is not damaged is stored as ever; one that Pillow
     * refuses is EBADMSG. */
    PSTK_DAMAGED_ACCEPT = 1,
};

/* One value of a record: bytes in the form of the field's kind. */
struct pstk_value {
    /* borrows */
    const void *data;
    /* bytes */
    uint64_t size;
    /* enum pstk_damaged: treatment of a damaged JPEG in an image field. default: 0 */
    uint32_t damaged;
    /* must be 0 */
    uint32_t reserved;
};

/* Describes a value that is a decoded image: rows from top to bottom without padding, in them the
 * channels of each pixel, one after another. */
struct pstk_pixels {
    /* sizeof(struct pstk_pixels), set by the caller, in each element of an array */
    uint32_t size;
    /* number of the image field that has the value */
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
/* Append one record of n_values values, in schema order; copies. The writer probes images: a value
 * without the header of a JPEG or PNG file is EBADMSG, and the record is not added (for decoded
 * pixels see pstk_writer_add_pixels). After any error except EBADMSG, EINVAL and EFBIG only
 * pstk_writer_abort may follow. Thread: one at a time per writer, also below. */
PSTK_API int pstk_writer_add(struct pstk_writer *w, const struct pstk_value *values,
                             uint32_t n_values, struct pstk_error *err);
/* Append one record some of whose images are decoded, as pstk_writer_add does. Each of the n_pixels
 * elements describes the image of another field. EINVAL: the size of a value differs from its
 * description. */
PSTK_API int pstk_writer_add_pixels(struct pstk_writer *w, const struct pstk_value *values,
                                    uint32_t n_values, const struct pstk_pixels *pixels,
                                    uint32_t n_pixels, struct pstk_error *err);
/* Return the number of PNG files among the added values that the writer made anew from their rows
 * (PSTK_DAMAGED_ACCEPT). */
PSTK_API uint64_t pstk_writer_n_remade(const struct pstk_writer *w);
/* Return the number of files of a killed writer that open removed: this writer started over. */
PSTK_API uint64_t pstk_writer_n_leftovers(const struct pstk_writer *w);
/* Return the number of added records. */
PSTK_API uint64_t pstk_writer_n_samples(const struct pstk_writer *w);
/* Finish: flush, fsync, rename, manifest last. Frees and nulls *w, also on failure. A failure after
 * the manifest got its name leaves a whole data set, which may not survive a power failure: that is
 * one in the last sync, or in the removal of the replaced data set. EINVAL: the writer has no
 * record and is not a part; the path is then as it was. */
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
    /* n_parts paths: parts 0 to n - 1 of n, in any order; or parts of unknown number, whose order
     * is that of the list */
    const char *const *parts;
    /* the directory to make */
    const char *out;
    /* refuse parts that are not of this pack; 32 lower-case hex digits. default: NULL, of any */
    const char *pack_id;
    /* 1: the last step replaces a data set at `out` and keeps other files there. Before it, and
     * after any failure before it, `out` is as it was. default: 0 */
    uint32_t overwrite;
    uint32_t reserved;
    /* gets bytes of shards after each file and each piece of a copy, the last time just before the
     * commit. If it stops the merge, the result is ECANCELED, and `out` is as it was. default:
     * NULL */
    pstk_progress_fn on_progress;
    void *user;
};

/* Join parts of one schema into a data set. Shards are hard-linked, or copied if the file system
 * refuses links. Sample ids are those of a single pack; the note is that of the first part. The
 * parts stay, and may be removed afterwards.
 * EEXIST: `out` holds a data set, and overwrite is 0. EBUSY: a writer is at work there. EINVAL: the
 * parts do not belong together (two attempts at one task do not, either), or `out` is one of them,
 * or holds files that a part's symbolic links lead to. EBADMSG: a part is damaged, or changed
 * meanwhile. */
PSTK_API int pstk_merge(const struct pstk_merge_settings *s, struct pstk_error *err);
/* Commit parts, joined as by pstk_merge, in place of the writer's own records. A program that packs
 * in parts holds the data set's directory by such a writer until the whole is in it. The writer may
 * have no records; the parts have its fields and names. The note is the writer's, or else the first
 * part's. A writer with a task becomes that task's part. Frees and nulls *w, also on failure.
 * EINVAL: the writer has records, or is a numbered part; or it has a pack_id and no task, and a
 * part is of another pack. */
PSTK_API int pstk_writer_commit_parts(struct pstk_writer **w, const char *const *parts,
                                      uint32_t n_parts, struct pstk_error *err);

/* ---- lists --------------------------------------------------------------------------------- */

/* One item of a value of a list field. */
struct pstk_list_item {
    /* borrows; of pstk_list_read: a place in the list */
    const void *data;
    /* bytes */
    uint64_t size;
    /* Images; 0 for others. pstk_list_build reads these from a file's header, unless encoding is
     * PSTK_ENCODING_PIXELS. enum pstk_encoding */
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
 * EBADMSG: an image that cannot be read, or a file that is not a mask. EINVAL: a text that is not
 * UTF-8, or pixels that are not a mask. EFBIG, ENOMEM. */
PSTK_API int pstk_list_build(uint32_t kind, const struct pstk_list_item *items, uint64_t n,
                             void **data, uint64_t *size, struct pstk_error *err);
/* Take the value of a list field apart, checked: return the number of its items, and fill the first
 * n_items of `items` (NULL if n_items is 0), as far as there are so many. data: borrows; the items
 * point into it. EBADMSG: it is not such a list. */
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
/* How Pillow treats a damaged image. */
enum pstk_damage {
    /* the file is whole, or Pillow refuses it */
    PSTK_DAMAGE_NONE = 0,
    /* a JPEG of which libjpeg guesses what is missing */
    PSTK_DAMAGE_GUESSED = 1,
    /* a PNG whose rows are whole, with a fault after them or in a checksum of them; no animation */
    PSTK_DAMAGE_REMADE = 2,
};

/* Check as pstk_image_check does with the same result, and find out what Pillow makes of a damaged
 * file. *damaged becomes an enum pstk_damage: not NONE only if the result is EBADMSG, and Pillow
 * loads the file without an exception. borrows. */
PSTK_API int pstk_image_check_damaged(const void *data, uint64_t size, uint64_t max_pixels,
                                      uint32_t *damaged, struct pstk_error *err);
/* Return 1 if bytes are a PNG file with a palette (colour type 3), else 0. Reads only the header.
 * Such a file is often a mask, whose numbers are class ids. A loader's images do not keep them:
 * they have the palette's colours, resized bilinearly. borrows. */
PSTK_API int pstk_image_is_palette(const void *data, uint64_t size);

/* Return the name of an image format by a file's first bytes (64 are enough): "JPEG", "PNG",
 * "WebP", "TIFF", ...; NULL: an unknown format. Static storage. *packed (may be NULL) becomes 1 if
 * data sets can hold such files, else 0. Decodes nothing. borrows. */
PSTK_API const char *pstk_image_format(const void *data, uint64_t size, int *packed);

/* Find out whether a writer would store an image file as planes, in a field of that codec_level, by
 * doing so: it takes as long as packing the image. *passthrough becomes 0 if it would, else why it
 * would not, an enum pstk_passthrough. borrows. 0; or ENOMEM, EINVAL. EBADMSG: the planes do not
 * give back what they were made of; suspect the machine's memory. */
PSTK_API int pstk_image_passthrough(const void *data, uint64_t size, int32_t codec_level,
                                    uint32_t *passthrough, struct pstk_error *err);

/* Settings of pstk_image_convert. Zero the struct and set size; then set shorter_side for pixels,
 * or max_side, quality or both for a JPEG. */
struct pstk_convert {
    /* sizeof(struct pstk_convert), set by the caller */
    uint32_t size;
    /* pixels, for RGB of height x width x 3 bytes. A longer shorter side becomes this one, and the
     * other side is rounded down, as by torchvision's Resize; a smaller image keeps its size */
    uint32_t shorter_side;
    /* pixels; a longer side beyond this becomes it. Both sides are rounded, to at least 1; a
     * smaller image keeps its size */
    uint32_t max_side;
    /* quality of the JPEG, 1 to 100, 4:2:0, by the standard tables. 0: an image whose size max_side
     * keeps is not re-encoded, others get 90 */
    uint32_t quality;
    /* pixels of the given image. default: 0, 178956970, Pillow's limit */
    uint64_t max_pixels;
    /* enum pstk_damaged. PSTK_DAMAGED_ACCEPT: convert a damaged image, too, as Pillow loads it. The
     * result is not damaged. default: 0, refuse it */
    uint32_t damaged;
    /* must be 0 */
    uint32_t reserved;
};

/* Make other bytes of an image, with loss: decode all of it to RGB, where a warning is an error;
 * resize as Pillow's resize(..., BILINEAR); then return the pixels, or encode a JPEG as Pillow's
 * save(quality=...). It does not apply the EXIF orientation: a JPEG gets an Exif segment with that
 * tag alone, pixels lose it. All other metadata is left out. borrows.
 * (how->damaged permits warnings.)
 * 1: returns owned bytes in *out (free with pstk_free). 0: this image needs no change; *out is
 * NULL, and only the header was read (see pstk_image_check). *width and *height (may be NULL) are
 * those of the result, in pixels. EBADMSG, ENOTSUP, EFBIG, EINVAL, ENOMEM. */
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
    /* 0: the format has none */
    uint32_t format_version;
    uint32_t reserved;
    /* hex digest of schema and content; the same for any sharding */
    char identity[40];
    /* name of the record format: "pstk" */
    char format[16];
    /* 1: checksums cover every byte, and every read checks them; 2: each field has one over all its
     * values, or each file, which pstk_verify alone checks; 3: the format has none, but
     * pstk_verify_data kept them next to the index, and alone compares; 0: there are none, or not
     * for all fields */
    uint32_t has_checksums;
    /* files that hold samples */
    uint32_t n_files;
    /* a folder of images that is read in place: images next to its class folders, which are no
     * samples, as torchvision's ImageFolder leaves them out. Of folders of tar archives, TFRecord
     * files, Megatron-LM's pairs or arrays: as left_out says. Of other formats 0. Of a mixture: of
     * all data sets */
    uint64_t n_left_out;
    /* files of the format that lie in the folders right below, or whose names are not quite as
     * those that are read: a sentence that names the first one and what opens it; "": there are
     * none. Of a mixture: that of the first data set that has one */
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
    /* records by enum pstk_encoding; those of FORMAT.md that are reserved have room */
    uint64_t n_encoding[16];
    /* records by enum pstk_codec */
    uint64_t n_codec[8];
    /* records with PLANES that give back another file than the added one, with the same
     * coefficients and markers */
    uint64_t n_equivalent;
    /* records with a damaged JPEG: Pillow loads it by guessing, and loaders show it so */
    uint64_t n_damaged;
    /* TFRecord files: records without the field. Their value is its default
     * (pstk_foreign.defaults), or empty if the field is variable; else they are errors. Of other
     * formats 0 */
    uint64_t n_absent;
};

/* The description of one value in a record's head. */
struct pstk_value_info {
    /* sizeof(struct pstk_value_info), set by the caller */
    uint32_t size;
    /* enum pstk_encoding; NONE except for images */
    uint32_t encoding;
    /* pixels, by the file's header, before EXIF orientation; images only, else 0 */
    uint32_t width;
    /* pixels, in the same way */
    uint32_t height;
    /* enum pstk_codec of this value */
    uint32_t codec;
    /* 1: reading gives back another file than the added one (PSTK_CODEC_PLANES); else 0 */
    uint32_t equivalent;
    /* bytes, as stored */
    uint64_t stored_size;
    /* samples of a pixel, by the file's header; 1 for a palette; images only, else 0 */
    uint32_t channels;
    /* bits of a sample, in the same way */
    uint32_t bit_depth;
    /* 1: samples are numbers of a palette's colours, as often in a mask; else 0 */
    uint32_t has_palette;
    /* 1: a damaged JPEG, which Pillow loads by guessing; else 0 */
    uint32_t damaged;
    /* 1: the record has no such field: the value is a default, or empty; else 0 */
    uint32_t absent;
    uint32_t reserved;
};

/* Open a data set for reading single records. Returns owned. foreign: how one of another format is
 * read (foreign.h); borrows; NULL: as found. The first read from a shard opens it. Opening takes at
 * most 4 times the manifest's bytes and 64 MiB, and the bytes of each dictionary and 32 KiB; and
 * time in proportion to them. */
PSTK_API int pstk_dataset_open(struct pstk_dataset **out, const char *path,
                               const struct pstk_foreign *foreign, struct pstk_error *err);
/* Close and null *d; NULL is fine. Thread: one, after all calls that use d. */
PSTK_API void pstk_dataset_close(struct pstk_dataset **d);
/* Copy what is known of the data set to *info, up to its size. Where that has n_left_out, each call
 * looks for such files: two listings of the folder, and of at most 64 below it. */
PSTK_API int pstk_dataset_get_info(const struct pstk_dataset *d, struct pstk_dataset_info *info);
/* Copy field `i` of the schema and its statistics (either may be NULL). */
PSTK_API int pstk_dataset_get_field(const struct pstk_dataset *d, uint32_t i,
                                    struct pstk_field *field, struct pstk_field_stats *stats);
/* Return class name i, or NULL. It lives as long as d. */
PSTK_API const char *pstk_dataset_name(const struct pstk_dataset *d, uint64_t i);
/* Read one field of one record, checked and decompressed. Returns owned bytes in *data (free with
 * pstk_free) and their number in *size. *info (may be NULL; set info->size) is of the same reading.
 * ENOENT: the data set was replaced or removed meanwhile, and with it the record's shard: open it
 * again. EBADMSG: damage, or an array that changed meanwhile. EFBIG: an image of over 178956970
 * pixels that is stored compressed; a loader reads it if max_pixels permits. */
PSTK_API int pstk_dataset_get(struct pstk_dataset *d, uint64_t sample_id, uint32_t field,
                              void **data, uint64_t *size, struct pstk_value_info *info,
                              struct pstk_error *err);
/* Decode a mask that pstk_dataset_get read, *info of the same reading: to its samples as they are
 * coded, height x width numbers in rows from top to bottom. Gray of few bits is not scaled, and
 * numbers of a palette's colours stay these numbers. Returns owned bytes in *samples (free with
 * pstk_free); *dtype becomes PSTK_U8, or PSTK_U16 of 16 bits. data, info: borrows. EBADMSG: damage.
 * EINVAL: the value is no mask. EFBIG, ENOMEM. */
PSTK_API int pstk_mask_decode(const void *data, uint64_t size, const struct pstk_value_info *info,
                              void **samples, uint32_t *dtype, struct pstk_error *err);
/* Free bytes that a function of this header returned owned; NULL is fine. */
PSTK_API void pstk_free(void *data);
/* Copy out what the record says of one value, without reading the value: the same *info (set
 * info->size) as that of pstk_dataset_get. */
PSTK_API int pstk_dataset_look(struct pstk_dataset *d, uint64_t sample_id, uint32_t field,
                               struct pstk_value_info *info, struct pstk_error *err);

/* ---- side columns -------------------------------------------------------------------------- */

/*
 * A column has one scalar for each record, in files of its own next to the shards. Programs read a
 * range of it without reading records: to select samples, to weigh them, to sort them by length. A
 * writer makes the columns of enum pstk_column_fact; pstk_column_add adds others. Columns are no
 * part of the identity. Reading records never needs them.
 */

/* The fact about a field that a column holds. */
enum pstk_column_fact {
    /* none: pstk_column_add added the column */
    PSTK_COLUMN_ADDED = 0,
    /* the value of a SCALAR field; named like the field */
    PSTK_COLUMN_VALUE = 1,
    /* plain bytes of a value, u32; named FIELD.size. Of fields whose values vary in size, except
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
/* Copy what the manifest says of column i to *info, up to its size. EINVAL: there is no such
 * column. */
PSTK_API int pstk_dataset_get_column_info(const struct pstk_dataset *d, uint32_t i,
                                          struct pstk_column_info *info);
/* Read the values of samples first .. first + n - 1 into out, of out_size bytes, in the column's
 * dtype. Reads and checks the header and the pages that have them; takes 256 KiB of memory. n may
 * be 0. ENOENT: there is no such column, or its file is missing, or the data set was replaced
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
    /* [A-Za-z0-9_.-], 1 to 79 of them; borrows */
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
 * manifest, as the last step. The identity stays, and so do open loaders; a data set that is open
 * sees the column when it is opened again. Takes 512 KiB of memory. on_progress (may be NULL) gets
 * values; if it stops, the result is ECANCELED, and the data set is as it was.
 * EINVAL: a name that no column may have, as many values as there are not samples, a NaN. EEXIST:
 * there is such a column, and overwrite is 0. EBUSY: a writer is at work there. ENOTSUP: a file
 * whose array no column can have, or a data set of another format. */
PSTK_API int pstk_column_add(const char *path, const struct pstk_new_column *column,
                             pstk_progress_fn on_progress, void *user, struct pstk_error *err);
/* Remove a column: replace the manifest, then remove the files. ENOENT: there is no such column. */
PSTK_API int pstk_column_remove(const char *path, const char *name, struct pstk_error *err);

/* ---- verification -------------------------------------------------------------------------- */

/* Called for each damaged place that pstk_verify finds, in order; `bad->message` describes it. A
 * non-zero result stops pstk_verify, which returns ECANCELED. Thread: the caller's. */
typedef int (*pstk_verify_fn)(void *user, const struct pstk_error *bad);

/* Open every file of a data set, and check its size and header against what open read: much faster
 * than pstk_verify, which reads them whole. on_bad (may be NULL) is called for each file that is
 * missing, unreadable or another; a non-zero result ends the check, which returns ECANCELED.
 * Of a folder of images it opens the first image of each folder alone. Return the number of such
 * files, at most INT32_MAX, or EINVAL. */
PSTK_API int64_t pstk_dataset_check(struct pstk_dataset *d, pstk_verify_fn on_bad, void *user,
                                    struct pstk_error *err);

/* Read and check every byte of a data set: manifest, headers, index pages, heads, fields, padding
 * and decompression; with decode != 0 also decode every image in full. Return the number of damaged
 * places (0: whole; at most INT32_MAX), or a negative error if the path cannot be read as a data
 * set. n_threads 0 is 1.
 * on_progress is called every 20 ms or so, even if n_done did not change. Between two calls the
 * work is at most to read 1 MiB, or to check, decompress or decode one value. If the format has no
 * checksums of samples (pstk_dataset_info), it reads every sample and finds the unreadable ones; a
 * field with a checksum over all its values is one damaged place, if that is wrong. */
PSTK_API int64_t pstk_verify(const char *path, int decode, uint32_t n_threads,
                             pstk_verify_fn on_bad, pstk_progress_fn on_progress, void *user,
                             struct pstk_error *err);

#ifdef __cplusplus
}
#endif
#endif
