/* SPDX-License-Identifier: Apache-2.0 */
/*
 * planes/file: converts a JPEG file to a field stored as planes, and back. Packing checks its own
 * work: it decodes what it stores and compares.
 */
#ifndef PSTK_PLANES_FILE_H
#define PSTK_PLANES_FILE_H

#include "base/arena.h"
#include "base/codec.h"

#include <penstock/format.h>

/* The encoder of one thread. It allocates. */
struct pstk__planes_encoder;
int pstk__planes_encoder_open(struct pstk__planes_encoder **out, struct pstk_error *err);
void pstk__planes_encoder_close(struct pstk__planes_encoder *encoder);

/* The result of an encode. Its bytes are borrowed until the next encode. */
struct pstk__planes_file {
    const uint8_t *stored;
    uint64_t stored_size;
    const uint8_t *plain; /* the file that decoding gives back: the original, or, */
    uint64_t plain_size;
    uint32_t equivalent;  /* when this is 1, another file with the same coefficients and markers */
    uint32_t passthrough; /* enum pstk_passthrough: reason for storing the file unchanged; else 0 */
};

/* Encode a JPEG file as planes. Returns 1: done. 0: the file is stored unchanged, for the reason in
 * out->passthrough. ENOMEM. */
int pstk__planes_encode(struct pstk__planes_encoder *encoder, const void *data, uint64_t size,
                        int exact_only, struct pstk__planes_file *out, struct pstk_error *err);

/* A field stored as planes, and the size of its image and file, from its record. */
struct pstk__planes_field {
    const void *data; /* borrowed */
    uint64_t size;
    uint32_t width, height;
    uint64_t plain_size; /* bytes of the file */
};

/* Rebuild the JPEG file, of exactly plain_size bytes, in `out`. EBADMSG, ENOTSUP, ENOMEM; the
 * message names no location. Takes memory from the arena and gives it back. */
int pstk__planes_decode(struct pstk__decoder *decoder, const struct pstk__planes_field *field,
                        uint8_t *out, struct pstk__arena *arena, struct pstk_error *err);
/* Return the largest number of arena bytes that decode takes, for images up to these sides, of at
 * most max_pixels, whose files have at most plain_size bytes. */
uint64_t pstk__planes_decode_scratch(uint32_t width, uint32_t height, uint64_t max_pixels,
                                     uint64_t plain_size);

#endif
