/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/decoder: what every image decoder is given and gives. A decoder gives the rows of a box of
 * a coded image, top to bottom, identical to the same box of a full decode by Pillow
 * (Image.open(f).convert("L"), "RGB" or "RGBA"). image.c lists the decoders and holds their states.
 *
 * A box decode reads no further than the box's last row: damage below it goes unseen. A box that
 * ends at the image's last row sees all, and so does pstk_image_check, which packing calls, except
 * the tRNS chunk of a PNG: it is read for sinks of 4 channels alone.
 */
#ifndef PSTK_IMAGE_DECODER_H
#define PSTK_IMAGE_DECODER_H

#include "base/arena.h"
#include "base/signature.h"

#include <penstock/types.h>

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

/* Takes the rows of a box, in order, one or more a call: n_rows rows of box.width * channels bytes,
 * `stride` bytes apart, borrowed for the call; nothing is read beyond them. It may not allocate
 * from the decoder's arena: decode gives back all that was allocated since its start. */
struct pstk__row_sink {
    void (*rows)(void *user, const uint8_t *pixels, uint64_t stride, uint32_t n_rows);
    void *user;
    uint32_t channels; /* bytes a pixel: 1 gray (L24, or the file's own), 3 RGB, or 4 RGBA, with
                          the file's alpha, 255 where it has none */
};

struct pstk__image_decoder;

/* An image to decode. All is borrowed. */
struct pstk__coded {
    const struct pstk__image_decoder *decoder;
    const void *data;
    uint64_t size;
    const struct pstk__image_info *info; /* what the record says of it */
};

/*
 * One decoder: an entry of image.c's list. A state belongs to one thread, which alone calls decode
 * with it; probe and scratch are pure and may be called by any thread.
 */
struct pstk__image_decoder {
    uint32_t encoding;              /* enum pstk_encoding */
    enum pstk__signature signature; /* of the files that probe takes; NONE: there are none */
    const char *name;
    /* Read the header alone. EBADMSG: not this encoding or damaged; ENOTSUP; EFBIG: more than
     * max_pixels pixels. */
    int (*probe)(const void *data, uint64_t size, uint64_t max_pixels,
                 struct pstk__image_info *info, struct pstk_error *err);
    /* Make one thread's state, with kernels of a variant (enum pstk_kernels; AUTO: the best that
     * runs here; ENOTSUP). Borrows the arena for its life. Returns owned; *out is NULL on failure.
     */
    int (*open)(void **out, struct pstk__arena *arena, uint32_t variant, struct pstk_error *err);
    /* NULL: open owns nothing. The state may be NULL. */
    void (*close)(void *state);
    /* Bytes of arena that decoding an image up to this size and of at most max_pixels pixels takes
     * beyond what open took. An upper bound, derived in a comment. */
    uint64_t (*scratch)(uint32_t max_width, uint32_t max_height, uint64_t max_pixels);
    /* Decode a box. A header that differs from the record is EBADMSG, and so is any warning of the
     * library that means damaged pixels (truncated data, ...); EINVAL: see check_box. Allocates
     * from the state's arena only, and gives all of it back; never calls malloc. */
    int (*decode)(void *state, const struct pstk__coded *image, const struct pstk__box *box,
                  const struct pstk__row_sink *sink, struct pstk_error *err);
};

/* The check that every decode begins with: 0, or EINVAL when the box does not lie in the image or
 * the sink takes rows of channels that no decoder gives. */
int pstk__image_check_box(const struct pstk__coded *image, const struct pstk__box *box,
                          const struct pstk__row_sink *sink, struct pstk_error *err);
/* 0, EBADMSG for no pixels, or EFBIG for more than max_pixels. */
int pstk__image_check_size(const char *name, uint32_t width, uint32_t height, uint64_t max_pixels,
                           struct pstk_error *err);
#endif
