/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image: decoders by encoding, behind one table. L2. A decoder gives the rows of a box of the image
 * as packed RGB, top to bottom, identical to the same box of a full decode by Pillow
 * (Image.open(f).convert("RGB")).
 *
 * A box decode reads no further than the box's last row: damage below it goes unseen. A box that
 * ends at the image's last row sees all, and so does pstk_image_check, which packing calls.
 */
#ifndef PSTK_IMAGE_H
#define PSTK_IMAGE_H

#include "base/arena.h"
#include <penstock/penstock.h>

#define PSTK__MAX_PIXELS 178956970u /* Pillow's decompression bomb limit */

struct pstk__image_info {
    uint32_t encoding; /* enum pstk_encoding */
    uint32_t width;    /* pixels, as coded */
    uint32_t height;
    uint32_t orientation; /* EXIF, 1..8; 1 when there is none */
};

/* Pixels [left, left + width) x [top, top + height) of an image as coded. Not empty. */
struct pstk__box {
    uint32_t left, top, width, height;
};

/* Takes the rows of a box, in order, one or more a call: n_rows rows of box.width * 3 bytes,
 * `stride` bytes apart, borrowed for the call; nothing is read beyond them. It may not allocate
 * from the decoder's arena: decode gives back what was allocated since its start. */
struct pstk__row_sink {
    void (*rows)(void *user, const uint8_t *rgb, uint64_t stride, uint32_t n_rows);
    void *user;
};

struct pstk__image_state; /* one worker's decoders, made once */

/* One decoder. */
struct pstk__image_decoder {
    uint32_t encoding;
    const char *name;
    /* Read the header alone. Pure. EBADMSG: not this encoding or damaged; ENOTSUP; EFBIG: more than
     * max_pixels pixels. */
    int (*probe)(const void *data, uint64_t size, uint64_t max_pixels,
                 struct pstk__image_info *info, struct pstk_error *err);
    /* Decode a box. `info` is what the record says; a header that differs is EBADMSG, and so is any
     * warning of the library that means damaged pixels (truncated data, ...); EINVAL: the box does
     * not lie in the image. Allocates from the state's arena only, and gives all of it back. */
    int (*decode)(struct pstk__image_state *state, const void *data, uint64_t size,
                  const struct pstk__image_info *info, const struct pstk__box *box,
                  const struct pstk__row_sink *sink, struct pstk_error *err);
};

/* The decoder of an encoding, NULL when there is none. */
const struct pstk__image_decoder *pstk__image_decoder(uint32_t encoding);
/* The decoder of JPEGs stored as coefficient planes: it takes the stored bytes. */
extern const struct pstk__image_decoder pstk__image_planes;
/* Find the encoding by the first bytes (JPEG: Pillow's rules) and probe. */
int pstk__image_probe(const void *data, uint64_t size, uint64_t max_pixels,
                      struct pstk__image_info *info, struct pstk_error *err);

/* Bytes of arena that decoding images up to this size may need beyond what open took: progressive
 * and interlaced images are held whole. An upper bound, derived in a comment; no image has more
 * than max_pixels, so a wide one and a high one do not add up to a huge one. */
uint64_t pstk__image_scratch_within(uint32_t max_width, uint32_t max_height, uint64_t max_pixels);
/* The same for one image of this size. */
uint64_t pstk__image_scratch(uint32_t width, uint32_t height);
/* Make a worker's decoders, with kernels of a variant (enum pstk_variant; AUTO: the best that runs
 * here; ENOTSUP); borrows the arena for its life. Returns owned. After this, decode never calls
 * malloc. */
int pstk__image_state_open(struct pstk__image_state **out, struct pstk__arena *arena,
                           uint32_t variant, struct pstk_error *err);
void pstk__image_state_close(struct pstk__image_state *s);
/* "libjpeg-turbo 2.1.5" or the like. Static storage. */
const char *pstk__image_library(void);

/* ---- between image.c and the decoders ------------------------------------------------------- */

struct pstk__jpeg;   /* a libjpeg object and what it needs, in jpeg/decode.c */
struct pstk__planes; /* a reader of planes, in planes/decode.c */

struct pstk__image_state {
    struct pstk__arena *arena;   /* borrowed */
    struct pstk__jpeg *jpeg;     /* owned */
    struct pstk__planes *planes; /* owned */
};

extern const struct pstk__image_decoder pstk__image_jpeg;
extern const struct pstk__image_decoder pstk__image_png;
extern const struct pstk__image_decoder pstk__image_pixels;

/* Make the libjpeg object, reused from image to image. Returns owned. */
int pstk__jpeg_open(struct pstk__jpeg **out, struct pstk__arena *arena, struct pstk_error *err);
void pstk__jpeg_close(struct pstk__jpeg *j);
uint64_t pstk__jpeg_scratch(uint32_t max_width, uint32_t max_height, uint64_t max_pixels);
const char *pstk__jpeg_library(void);
int pstk__planes_state_open(struct pstk__planes **out, uint32_t variant, struct pstk_error *err);
void pstk__planes_state_close(struct pstk__planes *p);
uint64_t pstk__planes_scratch(uint32_t max_width, uint32_t max_height);
uint64_t pstk__png_scratch(uint32_t max_width, uint32_t max_height, uint64_t max_pixels);

/* Orientation in a TIFF structure as Exif has it (from its byte order mark on); 1 when there is
 * none or it is damaged. Pure. */
uint32_t pstk__image_orientation(const uint8_t *tiff, uint64_t size);
/* Checks that every decoder begins with: 0, or EINVAL when the box does not lie in the image. */
int pstk__image_check_box(const struct pstk__image_info *info, const struct pstk__box *box,
                          struct pstk_error *err);
/* 0, EBADMSG for no pixels, or EFBIG for more than max_pixels. */
int pstk__image_check_size(const char *name, uint32_t width, uint32_t height, uint64_t max_pixels,
                           struct pstk_error *err);
#endif
