/* SPDX-License-Identifier: Apache-2.0 */
/*
 * planes/file: between a JPEG file's bytes and the bytes of a field stored as planes. Packing
 * checks its own work: what it stores has been decoded again and compared.
 */
#ifndef PSTK_PLANES_FILE_H
#define PSTK_PLANES_FILE_H

#include "base/arena.h"
#include "base/codec.h"

#include <penstock/format.h>

/* One thread's encoder; allocates. */
struct pstk__planes_encoder;
int pstk__planes_encoder_open(struct pstk__planes_encoder **out, struct pstk_error *err);
void pstk__planes_encoder_close(struct pstk__planes_encoder *encoder);

/* What became of a file; the bytes are borrowed until the next encode. */
struct pstk__planes_file {
    const uint8_t *stored;
    uint64_t stored_size;
    const uint8_t *plain; /* what decoding the field gives back: the file itself, or, */
    uint64_t plain_size;
    uint32_t equivalent; /* 1: another file of the same coefficients and markers */
    uint32_t kept;       /* enum pstk_kept, where the file stays as it is; else 0 */
};

/* Take a JPEG file to planes. 1: done. 0: it stays as it is, for the reason in out->kept. ENOMEM.
 */
int pstk__planes_encode(struct pstk__planes_encoder *encoder, const void *data, uint64_t size,
                        int exact_only, struct pstk__planes_file *out, struct pstk_error *err);

/* A field stored as planes, with what its record says of the image and of the file. */
struct pstk__planes_field {
    const void *data; /* borrowed */
    uint64_t size;
    uint32_t width, height;
    uint64_t plain_size; /* bytes of the file */
};

/* Give back a file of exactly plain_size bytes, to `out`. EBADMSG, ENOTSUP, ENOMEM; a message that
 * names no place. Memory from the arena, given back. */
int pstk__planes_decode(struct pstk__decoder *decoder, const struct pstk__planes_field *field,
                        uint8_t *out, struct pstk__arena *arena, struct pstk_error *err);
/* Bytes of arena that decode takes at most for images of up to these sides, of at most max_pixels,
 * whose files have at most plain_size bytes. */
uint64_t pstk__planes_decode_scratch(uint32_t width, uint32_t height, uint64_t max_pixels,
                                     uint64_t plain_size);

#endif
