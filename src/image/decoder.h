/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image/decoder: the contract of the image decoders. A decoder passes the rows of a box of a coded
 * image to a sink, top to bottom, identical to the same box of a full decode by Pillow
 * (Image.open(f).convert("L"), "RGB" or "RGBA"). image.c lists the decoders and holds their states.
 *
 * A decode reads no further than the last row of its box, so it does not see damage below. A box
 * that ends at the image's last row sees all damage. So does pstk_image_check, which packing calls,
 * except damage to the tRNS chunk of a PNG: only sinks of 4 channels read it.
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
    /* number of channels of the coded image, from its header */
    uint8_t channels;
    uint8_t bit_depth;   /* bits of a sample */
    uint8_t has_palette; /* 1: samples are indices of a palette */
};

/* A box of an image as coded: pixels [left, left + width) x [top, top + height). Not empty. */
struct pstk__box {
    uint32_t left, top, width, height;
};

/* Receive the rows of a box, in order, one or more a call: n_rows rows of box.width * channels
 * bytes, `stride` bytes apart, borrowed for the call. It must not read beyond them, nor allocate
 * from the decoder's arena, which decode resets. */
struct pstk__row_sink {
    void (*rows)(void *user, const uint8_t *pixels, uint64_t stride, uint32_t n_rows);
    void *user;
    uint32_t channels; /* bytes of a pixel: 1 gray (L24, or the file's own), 3 RGB, 4 RGBA (the
                          file's alpha, or 255) */
};

struct pstk__image_decoder;

/* An image to decode. All pointers borrow. */
struct pstk__coded {
    const struct pstk__image_decoder *decoder;
    const void *data;
    uint64_t size;
    const struct pstk__image_info *info; /* the header's values, as the record has them */
};

/*
 * One decoder: an entry of image.c's list. A state belongs to one thread, and only that thread
 * calls decode with it. probe and scratch are pure; any thread may call them.
 */
struct pstk__image_decoder {
    uint32_t encoding;              /* enum pstk_encoding */
    enum pstk__signature signature; /* signature of the files that probe reads; NONE: it reads no
                                       files */
    const char *name;
    /* Read only the header. EBADMSG: damaged or another encoding; ENOTSUP; EFBIG: more than
     * max_pixels pixels. */
    int (*probe)(const void *data, uint64_t size, uint64_t max_pixels,
                 struct pstk__image_info *info, struct pstk_error *err);
    /* Create the state of one thread, with kernels of an ISA (enum pstk_kernels; AUTO: the best
     * that run here; ENOTSUP). Borrows the arena as long as it lives. Returns owned; *out is NULL
     * on failure. */
    int (*open)(void **out, struct pstk__arena *arena, uint32_t isa, struct pstk_error *err);
    /* Free a state, which may be NULL. NULL: open owns nothing. */
    void (*close)(void *state);
    /* Return the bytes of arena that decoding takes in addition to open, for images up to this size
     * and of at most max_pixels pixels. An upper bound, derived in a comment. */
    uint64_t (*scratch)(uint32_t max_width, uint32_t max_height, uint64_t max_pixels);
    /* Decode a box. EBADMSG: the header differs from the record, or the library warns of damaged
     * pixels (truncated data, ...); EINVAL: see check_box. Allocates only from the state's arena,
     * and gives all of it back; never calls malloc. */
    int (*decode)(void *state, const struct pstk__coded *image, const struct pstk__box *box,
                  const struct pstk__row_sink *sink, struct pstk_error *err);
};

/* Check a decode: every decoder begins with this. 0, or EINVAL when the box is not inside the
 * image, or no decoder gives the sink's channels. */
int pstk__image_check_box(const struct pstk__coded *image, const struct pstk__box *box,
                          const struct pstk__row_sink *sink, struct pstk_error *err);
/* Check a size: 0, EBADMSG for no pixels, or EFBIG for more than max_pixels. */
int pstk__image_check_size(const char *name, uint32_t width, uint32_t height, uint64_t max_pixels,
                           struct pstk_error *err);
#endif
