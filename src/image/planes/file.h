/* SPDX-License-Identifier: Apache-2.0 */
/*
 * planes/file: between a JPEG file's bytes and the bytes of a field stored as planes. L2. Packing
 * checks its own work: what it stores has been decoded again and compared.
 */
#ifndef PSTK_PLANES_FILE_H
#define PSTK_PLANES_FILE_H

#include "base/arena.h"
#include "base/codec.h"

/* One thread's encoder; allocates. */
struct pstk__planes_encoder;
int pstk__planes_encoder_open(struct pstk__planes_encoder **out, struct pstk_error *err);
void pstk__planes_encoder_close(struct pstk__planes_encoder *e);

/* What became of a file; the bytes are borrowed until the next encode. */
struct pstk__planes_file {
    const uint8_t *stored;
    uint64_t stored_size;
    const uint8_t *plain; /* what decoding the field gives back: the file itself, or, */
    uint64_t plain_size;
    uint32_t equivalent; /* 1: another file of the same coefficients and markers */
};

/* Take a JPEG file to planes. 1: done. 0: it stays as it is: it would not shrink, or is of a kind
 * that planes cannot stand for (block smoothing, bad data, ...), or, with exact_only, cannot be
 * given back byte for byte. ENOMEM. */
int pstk__planes_encode(struct pstk__planes_encoder *e, const void *data, uint64_t size,
                        int exact_only, struct pstk__planes_file *out, struct pstk_error *err);

/* Give back a file of exactly plain_size bytes from the field of an image of width x height.
 * EBADMSG, ENOTSUP, ENOMEM; a message that names no place. Memory from the arena, given back. */
int pstk__planes_decode(struct pstk__decoder *d, const void *data, uint64_t size, uint32_t width,
                        uint32_t height, uint8_t *out, uint64_t plain_size,
                        struct pstk__arena *arena, struct pstk_error *err);
/* Bytes of arena that decode takes at most for images of up to these sides, of at most max_pixels,
 * whose files have at most plain_size bytes. */
uint64_t pstk__planes_decode_scratch(uint32_t width, uint32_t height, uint64_t max_pixels,
                                     uint64_t plain_size);

#endif
