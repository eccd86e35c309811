/* SPDX-License-Identifier: Apache-2.0 */
/*
 * penstock/annotations.h - annotations of images in formats of other projects: COCO's JSON files
 * and Pascal VOC's folders; and masks of objects, from the polygons and the runs of COCO's files.
 *
 * Annotations become records. Field 0 is the image, named jpg, which the program adds itself. These
 * functions describe the fields after it, and give their values for an image.
 *
 *   struct pstk_annotations_settings s;
 *   pstk_annotations_settings_init(&s, sizeof s);
 *   s.format = PSTK_ANNOTATIONS_COCO; s.path = "instances_train2017.json";
 *   struct pstk_annotations *a;
 *   if (pstk_annotations_open(&a, &s, &err) < 0) ...
 *   for (uint32_t f = 0; f < info.n_fields; f++)
 *       pstk_annotations_get_field(a, f, &fields[1 + f]);
 *   for (uint64_t i = 0; i < info.n_images; i++) {
 *       values[0] = the bytes of the file pstk_annotations_file(a, i);
 *       pstk_annotations_read(a, i, values + 1, info.n_fields, &err);
 *       for (uint32_t f = n = 0; f < info.n_fields; f++)
 *           n += pstk_annotations_get_pixels(a, f, &pixels[n]); // .size is set
 *       pstk_writer_add_pixels(w, values, 1 + info.n_fields, pixels, n, &err);
 *   }
 *
 * A mask has height x width bytes, rows from top to bottom, each byte 0 or 1. Every mask equals,
 * byte for byte, the one that pycocotools decodes.
 *
 *   uint8_t *mask = malloc((size_t)height * width);
 *   if (pstk_polygon_mask(points, n_points, n_polygons, height, width, mask, &err) < 0) ...
 */
#ifndef PENSTOCK_ANNOTATIONS_H
#define PENSTOCK_ANNOTATIONS_H

#include <penstock/format.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- masks --------------------------------------------------------------------------------- */

/* Largest side of a mask, pixels. */
#define PSTK_MAX_MASK_SIDE 65535

/* Parse COCO's compressed counts, a text of `size` bytes. Writes at most `room` runs to counts, and
 * their number to *n, which never exceeds size. The text has 5 bits a character, and differences
 * from the run before the last one. borrows. EBADMSG: it is not such a text; the message has the
 * byte. EINVAL: there are more runs than room. */
PSTK_API int pstk_rle_parse(const char *text, uint64_t size, uint32_t *counts, uint64_t room,
                            uint64_t *n, struct pstk_error *err);
/* Decode n runs of 0 and 1 in turn, 0 first, down the columns of an image, to height x width bytes.
 * These are COCO's uncompressed counts, and the values of PSTK_FIELD_RLE fields. borrows. EBADMSG:
 * the sum of the runs differs from height x width. EINVAL: height or width is 0 or above
 * PSTK_MAX_MASK_SIDE. */
PSTK_API int pstk_rle_decode(const uint32_t *counts, uint64_t n, uint32_t height, uint32_t width,
                             uint8_t *mask, struct pstk_error *err);
/* Draw the union of n_polygons polygons, height x width bytes. Polygon i has n_points[i] corners,
 * each an x and a y of `points`, in pixels; they follow those of polygon i - 1. The rule is that of
 * COCO's rleFrPoly: the boundary is walked in steps of a fifth of a pixel, and a pixel is inside if
 * the column through its centre crosses the boundary an odd number of times above it. A polygon may
 * leave the image, cross itself, or have fewer than 3 corners. borrows. EBADMSG: a coordinate is
 * not finite or beyond 1048576. EINVAL: as pstk_rle_decode. */
PSTK_API int pstk_polygon_mask(const double *points, const uint32_t *n_points, uint32_t n_polygons,
                               uint32_t height, uint32_t width, uint8_t *mask,
                               struct pstk_error *err);

/* ---- annotations --------------------------------------------------------------------------- */

struct pstk_annotations; /* opaque */

enum pstk_annotations_format {
    /* a JSON file of COCO: objects (instances, person_keypoints), captions, or panoptic */
    PSTK_ANNOTATIONS_COCO = 1,
    /* a folder of Pascal VOC, with the folders Annotations and JPEGImages */
    PSTK_ANNOTATIONS_VOC = 2,
};

/* Settings for reading annotations. Fill the struct with pstk_annotations_settings_init; then set
 * format and path. */
struct pstk_annotations_settings {
    /* sizeof(struct pstk_annotations_settings), set by init */
    uint32_t size;
    /* enum pstk_annotations_format */
    uint32_t format;
    /* path of the file, or of the folder; copies */
    const char *path;
    /* 1: leave out images without annotations. default: 0, their records have no rows */
    uint32_t skip_empty;
    /* VOC: number that is subtracted from xmin and ymin, 0 or 1. VOC counts pixels from 1, and xmax
     * and ymax are the last pixels of the object. With 1 subtracted, boxes have the coordinates of
     * enum pstk_coordinates. default: 1 */
    uint32_t voc_offset;
    /* VOC: NAME: only the images that ImageSets/Main/NAME.txt lists, in its order; a NAME with a
     * slash replaces Main, too (Segmentation/train). copies. default: NULL, the files of
     * Annotations by name */
    const char *image_set;
    /* called now and then by open; n_done and n_total are bytes of COCO's file, or numbers of VOC's
     * files. default: NULL, for none */
    pstk_progress_fn on_progress;
    void *user;
    /* panoptic COCO: the folder of the PNG files. copies. default: NULL, `path` without its .json
     */
    const char *panoptic_masks;
    /* 1: leave out malformed entries and count them. COCO: objects, captions, and entries of
     * 'images', whose annotations are then left out and counted, too. VOC: objects; or an XML file
     * with its image, if all its objects or the file itself is malformed. The image of a malformed
     * panoptic annotation stays, and pstk_annotations_read fails with EBADMSG. Annotations that
     * contradict one another in kind or in number of keypoints are never left out: open fails with
     * EBADMSG. default: 0, open fails with EBADMSG */
    uint32_t skip_bad;
};

struct pstk_annotations_info {
    /* sizeof(struct pstk_annotations_info), set by the caller */
    uint32_t size;
    /* fields of a record, without the image */
    uint32_t n_fields;
    uint64_t n_images;
    /* annotations of the images that n_images counts: objects, captions, or segments */
    uint64_t n_objects;
    /* classes */
    uint64_t n_names;
    /* images without annotations; with skip_empty they are not in n_images */
    uint64_t n_empty;
    /* boxes, in the images read so far, that leave their image by more than the rounding of VOC's
     * and COCO's files (1 pixel). They are kept as they are */
    uint64_t n_outside;
    /* boxes, in the images read so far, without width or height. They are kept as they are */
    uint64_t n_flat;
    /* with skip_bad: annotations, and entries of COCO's 'images', that were left out */
    uint64_t n_bad;
    /* message about the first entry that was left out; lives as long as the annotations. NULL: none
     * was */
    const char *bad;
    /* boxes, in the images read so far, that have fractions and lie in the first pixel of their
     * image, as boxes in fractions of its width and height do. They are kept as they are */
    uint64_t n_fractions;
    /* VOC with voc_offset 1: boxes, in the images read so far, that begin in pixel 0 (xmin or ymin
     * is at least 0 and below 1), as in files that count from 0. They are kept as they are */
    uint64_t n_from_zero;
    /* VOC without image_set: JPEG and PNG files, in JPEGImages and its folders, whose name no XML
     * file has. They are no images of the data set */
    uint64_t n_without_xml;
    /* VOC without image_set: XML files that are not read: in folders of Annotations, or not ending
     * in .xml (.XML) */
    uint64_t n_xml_not_read;
};

/* Fill `s` with defaults. `size` is sizeof *s. */
PSTK_API void pstk_annotations_settings_init(struct pstk_annotations_settings *s, uint32_t size);
/* Read and check all annotations once, and note their places in the file. Returns owned in *out; on
 * failure *out is NULL. Memory: 40 bytes for each annotation of COCO, some 100 for each image, and
 * at most 16 MiB of text and its tree for the largest single annotation; never the file. EBADMSG:
 * an entry is malformed; the message names file, byte (line of XML) and member. ENOENT, EACCES,
 * EIO: the file, or the folder of panoptic masks, cannot be read. EINVAL: a setting is wrong, as
 * panoptic_masks with a file that is not panoptic. ENOTSUP: the library was built without XML.
 * ECANCELED: on_progress stopped it. ENOMEM. */
PSTK_API int pstk_annotations_open(struct pstk_annotations **out,
                                   const struct pstk_annotations_settings *s,
                                   struct pstk_error *err);
/* Close and null *a; NULL is fine. */
PSTK_API void pstk_annotations_close(struct pstk_annotations **a);
/* Copy the counts of the annotations to *info, up to its size. */
PSTK_API int pstk_annotations_get_info(const struct pstk_annotations *a,
                                       struct pstk_annotations_info *info);
/* Copy field `i` of the records to *field; field 0 is the first one after the image. EINVAL: there
 * is no such field. */
PSTK_API int pstk_annotations_get_field(const struct pstk_annotations *a, uint32_t i,
                                        struct pstk_field *field);
/* Return the path of image i's file: below the folder of the images (COCO), or below the folder of
 * VOC. It never leaves that folder. NULL: there is no such image. It lives as long as a. */
PSTK_API const char *pstk_annotations_file(const struct pstk_annotations *a, uint64_t i);
/* Copy out the size that the annotations give image i, in pixels; 0 and 0 where they give none.
 * Compare it with the file's size, since boxes on an image of another size are wrong. Either
 * pointer may be NULL. EINVAL: there is no such image. */
PSTK_API int pstk_annotations_get_size(const struct pstk_annotations *a, uint64_t i,
                                       uint32_t *width, uint32_t *height);
/* Return the name of class c; labels are numbers of classes: COCO's categories by id, VOC's names
 * in alphabetical order. NULL: there is no such class. It lives as long as a. */
PSTK_API const char *pstk_annotations_name(const struct pstk_annotations *a, uint64_t c);
/* Return COCO's category id of class c; -1 for VOC, or where there is no such class. */
PSTK_API int64_t pstk_annotations_category(const struct pstk_annotations *a, uint64_t c);
/* Read the annotations of image i: fill n_values values, one for each field in its order. They
 * point into memory of `a` that the next read reuses. Thread: one at a time. EIO: the file changed
 * meanwhile. EBADMSG: the runs of a mask, or a panoptic PNG file, have another size than the image;
 * the PNG file is missing, damaged, or has an id that no segment has. EINVAL, ENOMEM. */
PSTK_API int pstk_annotations_read(struct pstk_annotations *a, uint64_t i,
                                   struct pstk_value *values, uint32_t n_values,
                                   struct pstk_error *err);
/* Describe the value of field f of the image that was read last, for pstk_writer_add_pixels. Only
 * masks of panoptic COCO are decoded pixels. The caller sets pixels->size; pixels->field becomes 1
 * + f. Returns 1; 0: the value is not pixels, and *pixels is unchanged; EINVAL: there is no such
 * field. */
PSTK_API int pstk_annotations_get_pixels(const struct pstk_annotations *a, uint32_t f,
                                         struct pstk_pixels *pixels);

#ifdef __cplusplus
}
#endif
#endif
