/* SPDX-License-Identifier: Apache-2.0 */
/*
 * penstock/format.h - data sets on disk: describe, write, merge, look into, verify.
 *
 * A data set is a directory: `manifest.json`, which a person can read, and `*.pstk` shards.
 * FORMAT.md has every byte. Records have named fields; sample ids count them from 0 in the order
 * in which they were added, whatever the shards.
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

#define PSTK_FORMAT_VERSION 1
#define PSTK_MAX_FIELDS 64
#define PSTK_MAX_DIMS 8
#define PSTK_MAX_NAME 64 /* bytes of a field name, the terminating 0 included */

/* ---- schema -------------------------------------------------------------------------------- */

enum pstk_field_kind {
    PSTK_FIELD_BYTES = 1,
    PSTK_FIELD_UTF8 = 2,
    PSTK_FIELD_IMAGE = 3,  /* its encoding is written in each record */
    PSTK_FIELD_SCALAR = 4, /* one element of dtype */
    PSTK_FIELD_NDARRAY = 5 /* elements of dtype, C order, little-endian */
};

/* How a field's bytes are stored. A record whose field does not shrink is stored with NONE. */
enum pstk_codec {
    PSTK_CODEC_NONE = 0,
    PSTK_CODEC_ZSTD =
        1, /* one zstd frame, with the shard's dictionary for the field if it has one */
    PSTK_CODEC_PLANES = 2 /* images: a JPEG's quantised coefficients out of their Huffman code, for
                             fast decoding; other encodings, and JPEGs that would not shrink, are
                             stored with NONE. Reading the field gives the file back: the bytes that
                             were added, or, for the few that cannot be rebuilt so, a standard JPEG
                             with the same coefficients and markers (field stats: n_equivalent) */
};

/*
 * One field of the schema. Scalars, and ndarrays of fixed shape without codec of at most 4096
 * bytes, are stored inside the record head, so that reading them needs no other byte of the record.
 * An ndarray with one variable dimension (0 in shape) has its length derived from its size; with
 * several, its bytes begin with n_dims u64, the shape.
 */
struct pstk_field {
    char name[PSTK_MAX_NAME];      /* [A-Za-z0-9_.-]+ */
    uint32_t kind;                 /* enum pstk_field_kind */
    uint32_t dtype;                /* enum pstk_dtype; 0 unless SCALAR or NDARRAY */
    uint32_t codec;                /* enum pstk_codec wished for; SCALAR: NONE */
    int32_t codec_level;           /* ZSTD: level, 0 = 3. PLANES: 1 = a JPEG that cannot be given
                                      back byte for byte is stored with NONE, 0 = planes too */
    uint32_t n_dims;               /* NDARRAY: 1..PSTK_MAX_DIMS; else 0 */
    uint32_t reserved;             /* 0 */
    uint64_t shape[PSTK_MAX_DIMS]; /* elements; 0 = variable */
};

/* ---- writer -------------------------------------------------------------------------------- */

struct pstk_writer; /* opaque; one thread at a time */

struct pstk_writer_settings {
    uint32_t size;                   /* sizeof, set by init */
    uint32_t field_size;             /* sizeof(struct pstk_field), set by init */
    const char *path;                /* directory to make; copies */
    const struct pstk_field *fields; /* copies */
    uint32_t n_fields;
    uint32_t part;       /* this writer is part `part` ... */
    uint32_t n_parts;    /* ... of n_parts (0 = 1), each into its own directory, for merge */
    uint32_t n_threads;  /* compression threads, 0 = 1; the bytes written do not depend on it */
    uint64_t shard_size; /* close a shard before it passes this many bytes; 0 = 256 MiB */
    uint32_t dictionary_size; /* zstd dictionary trained on the first records where their mean is
                                 below 16 KiB: its size in bytes; 0 = 112640; 1 = no dictionary */
    uint32_t overwrite;       /* 1: replace an existing data set when committing */
    const char *note;         /* kept in the manifest for people ("penstock pack ..."), or NULL */
    const char *const *names; /* class names kept in the manifest, or NULL; copies */
    uint64_t n_names;
};

/* One value of a record: bytes in the form that the field's kind says. */
struct pstk_value {
    const void *data; /* borrows */
    uint64_t size;    /* bytes */
};

/* Fill `s` with defaults. `size` is sizeof *s. */
PSTK_API void pstk_writer_settings_init(struct pstk_writer_settings *s, uint32_t size);
/* Begin a data set. Returns owned in *out; on failure *out is NULL. What is written lies in
 * files with temporary names until commit. EEXIST: the path holds a data set and !overwrite. */
PSTK_API int pstk_writer_open(struct pstk_writer **out, const struct pstk_writer_settings *s,
                              struct pstk_error *err);
/* Append one record of `n_values` values, in schema order; they are copied. Image values are
 * probed: what is no JPEG or PNG header (or, for raw pixels, see pstk_writer_add_pixels) is
 * EBADMSG, and the record is not added. After any error but EBADMSG, EINVAL and EFBIG only abort
 * may follow. */
PSTK_API int pstk_writer_add(struct pstk_writer *w, const struct pstk_value *values,
                             uint32_t n_values, struct pstk_error *err);
/* The same for records whose field number `field` holds decoded RGB pixels of height x width x 3.
 */
PSTK_API int pstk_writer_add_pixels(struct pstk_writer *w, const struct pstk_value *values,
                                    uint32_t n_values, uint32_t field, uint32_t height,
                                    uint32_t width, struct pstk_error *err);
/* Return the number of files of a writer that was killed in this directory that open removed: this
 * one started over. */
PSTK_API uint64_t pstk_writer_n_leftovers(const struct pstk_writer *w);
/* Return the number of records added. */
PSTK_API uint64_t pstk_writer_n_samples(const struct pstk_writer *w);
/* Finish: flush, fsync, rename, manifest last. Frees and nulls *w on success and on failure. A
 * failure after the manifest has its name (the last sync, the removal of what was replaced) leaves
 * a whole data set, which may not survive a power failure. EINVAL: no record was added, and it is
 * no part; what stood there stays. */
PSTK_API int pstk_writer_commit(struct pstk_writer **w, struct pstk_error *err);
/* Give up: remove what was written, free, null *w. NULL is fine. */
PSTK_API void pstk_writer_abort(struct pstk_writer **w);

/* Join parts (data sets of the same schema, part 0..n-1 of n, in any order) into the data set
 * `out`: shards are hard-linked, or copied where linking is refused; sample ids are those of a
 * single pack, the note is that of part 0. The parts stay, and may be removed after. overwrite !=
 * 0: a data set at `out` is replaced, by the last step; other files there stay. Until then, and
 * after any failure before it, what stood at `out` is as it was. EEXIST: it holds a data set and
 * !overwrite. EBUSY: a writer is at work there. EINVAL: parts that do not belong together, or `out`
 * is one of them, or has files that a part's symbolic links lead to. EBADMSG: a part is damaged, or
 * changed meanwhile. */
PSTK_API int pstk_merge(const char *const *parts, uint32_t n_parts, const char *out, int overwrite,
                        struct pstk_error *err);

/* Called now and then by work that lasts, in the caller's thread; a non-zero result stops it. */
typedef int (*pstk_progress_fn)(void *user, uint64_t n_done, uint64_t n_total);

/* The same as pstk_merge for a program that shows how far it is, or that a signal may stop:
 * on_progress is called with bytes of shards, after each file and each piece of a copy, the last
 * time just before the commit. Where it stops the merge, the result is ECANCELED, and what stood at
 * `out` is as it was. */
PSTK_API int pstk_merge_watched(const char *const *parts, uint32_t n_parts, const char *out,
                                int overwrite, pstk_progress_fn on_progress, void *user,
                                struct pstk_error *err);
/* Commit parts, joined as by pstk_merge, in place of records of the writer's own, of which it may
 * have none: who packs in parts holds the data set's directory by a writer meanwhile, and gives it
 * out of hand only with the whole in it. The parts have the writer's fields and names; the note is
 * the writer's, or else the first part's. EINVAL: it has records, or is a part itself. Frees and
 * nulls *w on success and on failure. */
PSTK_API int pstk_writer_commit_parts(struct pstk_writer **w, const char *const *parts,
                                      uint32_t n_parts, struct pstk_error *err);

/* Check that bytes are a whole image that this library decodes without any warning: read all of
 * it. Fills *width and *height (may be NULL) in pixels. 0, EBADMSG, ENOTSUP or EFBIG. */
PSTK_API int pstk_image_check(const void *data, uint64_t size, uint64_t max_pixels, uint32_t *width,
                              uint32_t *height, struct pstk_error *err);
/* Return 1 when bytes are a PNG file whose pixels are numbers of a palette's colours (colour type
 * 3), else 0; reads the header alone. Such files are often masks: their numbers are class ids,
 * which a loader's images do not keep: they have the palette's colours, resized bilinearly.
 * borrows. */
PSTK_API int pstk_image_is_palette(const void *data, uint64_t size);

/* Return the name for people of the image format that a file's first bytes (64 are enough) belong
 * to: "JPEG", "PNG", "WebP", "TIFF", ...; NULL: no image that is known. Static storage. *packed
 * (may be NULL) becomes 1 where data sets hold such files, else 0. Nothing is decoded. */
PSTK_API const char *pstk_image_format(const void *data, uint64_t size, int *packed);

/* What pstk_image_convert makes of an image; zeroed but for size. Set shorter_side for pixels, or
 * max_side, quality or both for a JPEG. */
struct pstk_convert {
    uint32_t size;         /* sizeof, set by the caller */
    uint32_t shorter_side; /* pixels: RGB of height x width x 3 bytes. A longer shorter side becomes
                              this one, the other side is cut off to a whole number, as
                              torchvision's Resize has it; a smaller image keeps its size */
    uint32_t max_side;     /* pixels: a longer side beyond this becomes it, and both are rounded, at
                              least to 1; a smaller image keeps its size */
    uint32_t quality;      /* of the JPEG, 1..100, 4:2:0, by the standard tables. 0: an image that
                              max_side lets keep its size is not re-encoded, others get 90 */
    uint64_t max_pixels;   /* of the image given; 0: 178956970, Pillow's limit */
};

/* Make other bytes of an image, with loss: decoded in full (no warning passes), as RGB, resized as
 * Pillow's resize(..., BILINEAR), then left as pixels or encoded as a JPEG as Pillow's
 * save(quality=...). EXIF orientation is not applied: a JPEG says it again, in an Exif segment of
 * its own that has no other tag; pixels lose it. All other metadata is left out.
 * 1: returns owned bytes (free with pstk_free) in *out. 0: nothing is to be done to this image,
 * *out is NULL, and only its header was read (see pstk_image_check). *width and *height (may be
 * NULL) are those of the result. EBADMSG, ENOTSUP, EFBIG, EINVAL, ENOMEM. */
PSTK_API int pstk_image_convert(const void *data, uint64_t size, const struct pstk_convert *how,
                                void **out, uint64_t *out_size, uint32_t *width, uint32_t *height,
                                struct pstk_error *err);

/* ---- looking into a data set --------------------------------------------------------------- */

struct pstk_dataset; /* opaque; any number of threads may call get at once */

struct pstk_dataset_info {
    uint32_t size; /* sizeof, set by the caller */
    uint32_t n_fields;
    uint64_t n_samples;
    uint64_t n_shards;
    uint64_t bytes;   /* all shards and dictionaries */
    uint64_t n_names; /* class names */
    uint32_t format_version;
    uint32_t reserved;
    char identity[40]; /* hex digest of schema and content; the same for any sharding */
};

/* What a field's records reach at most, and sum to; for sizing and for reports. */
struct pstk_field_stats {
    uint32_t size;       /* sizeof, set by the caller */
    uint32_t max_width;  /* pixels; images only */
    uint32_t max_height; /* pixels; images only */
    uint32_t reserved;
    uint64_t max_stored_size; /* bytes of one value as stored */
    uint64_t max_plain_size;  /* bytes of one value decompressed */
    uint64_t stored_bytes;    /* sum */
    uint64_t plain_bytes;     /* sum */
    uint64_t n_encoding[8];   /* records by enum pstk_encoding */
    uint64_t n_codec[4];      /* records by enum pstk_codec */
    uint64_t n_equivalent;    /* of those with PLANES: how many give back another file, with the
                                 same coefficients and markers, than was added */
};

/* What the record says of one value. Of images width and height, whatever their encoding: those of
 * the file's header, before EXIF orientation. */
struct pstk_value_info {
    uint32_t size;        /* sizeof, set by the caller */
    uint32_t encoding;    /* enum pstk_encoding; NONE but for images */
    uint32_t width;       /* pixels; images only, else 0 */
    uint32_t height;      /* pixels; images only, else 0 */
    uint32_t codec;       /* enum pstk_codec with which this value is stored */
    uint32_t equivalent;  /* 1: another file, with the same coefficients and markers, than was added
                             (PSTK_CODEC_PLANES); else 0 */
    uint64_t stored_size; /* bytes, as stored */
};

/* Open a data set for reading single records. Returns owned. Shards are opened when they are first
 * read from. Opening takes at most 4 times the manifest's bytes and 64 MiB, and for each dictionary
 * its bytes and 32 KiB; and time in proportion to them. */
PSTK_API int pstk_dataset_open(struct pstk_dataset **out, const char *path, struct pstk_error *err);
/* Close and null; NULL is fine. */
PSTK_API void pstk_dataset_close(struct pstk_dataset **d);
/* Copy out what is known of the data set. */
PSTK_API int pstk_dataset_get_info(const struct pstk_dataset *d, struct pstk_dataset_info *info);
/* Copy out field `i` of the schema and its statistics (either may be NULL). */
PSTK_API int pstk_dataset_get_field(const struct pstk_dataset *d, uint32_t i,
                                    struct pstk_field *field, struct pstk_field_stats *stats);
/* Class name i, or NULL; lives as long as d. */
PSTK_API const char *pstk_dataset_name(const struct pstk_dataset *d, uint64_t i);
/* Read one field of one record, checked and decompressed. Returns owned bytes in *data (free with
 * pstk_free) and their size in bytes; *info (may be NULL; info->size set) is of the same reading.
 * ENOENT: the data set was replaced or removed while it was open, and the record's shard with it:
 * open it again. EBADMSG: damage. EFBIG: an image of over 178956970 pixels that is stored
 * compressed; a loader reads it where max_pixels allows. */
PSTK_API int pstk_dataset_get(struct pstk_dataset *d, uint64_t sample_id, uint32_t field,
                              void **data, uint64_t *size, struct pstk_value_info *info,
                              struct pstk_error *err);
PSTK_API void pstk_free(void *data);

/* Called for each damaged place that verify finds, in order; `bad->message` says what. A non-zero
 * result stops verify, which returns ECANCELED. */
typedef int (*pstk_verify_fn)(void *user, const struct pstk_error *bad);

/* Read and check every byte of a data set: manifest, headers, index pages, heads, fields, padding,
 * decompression; with `decode` != 0 also decode every image in full. Returns the number of damaged
 * places (0 = whole, at most INT32_MAX), or a negative error when it cannot be read as a data set.
 * n_threads 0 is 1. on_progress is called every 20 ms or so, also when n_done is as it was. Between
 * two calls verify reads 1 MiB, or checks, decompresses or decodes one value. */
PSTK_API int64_t pstk_verify(const char *path, int decode, uint32_t n_threads,
                             pstk_verify_fn on_bad, pstk_progress_fn on_progress, void *user,
                             struct pstk_error *err);

#ifdef __cplusplus
}
#endif
#endif
