/* SPDX-License-Identifier: Apache-2.0 */
#include "image/image.h"

#include "base/error.h"
#include "image/jpeg/damaged.h"
#include "image/jpeg/decode.h"
#include "image/pixels.h"
#include "image/planes/decode.h"
#include "image/png/decode.h"

#include <stdlib.h>

/* Among the decoders of an encoding the first decodes undamaged files. */
static const struct pstk__image_decoder *const decoders[] = {
    &pstk__image_jpeg,   &pstk__image_png,     &pstk__image_pixels,
    &pstk__image_planes, &pstk__image_damaged, &pstk__image_png_damaged};

#define N_DECODERS (sizeof decoders / sizeof decoders[0])

struct pstk__image_state {
    void *states[N_DECODERS]; /* owned; a state for the decoder at the same index; NULL: not open */
};

const struct pstk__image_decoder *pstk__image_decoder(uint32_t encoding)
{
    for (size_t i = 0; i < N_DECODERS; i++)
        if (decoders[i]->encoding == encoding)
            return decoders[i];
    return NULL;
}

const struct pstk__image_decoder *pstk__image_damaged_decoder(uint32_t encoding)
{
    return encoding == PSTK_ENCODING_JPEG  ? &pstk__image_damaged
           : encoding == PSTK_ENCODING_PNG ? &pstk__image_png_damaged
                                           : NULL;
}

int pstk__image_probe(const void *data, uint64_t size, uint64_t max_pixels,
                      struct pstk__image_info *info, struct pstk_error *err)
{
    const char *name;
    const enum pstk__signature signature = pstk__signature_find(data, size, &name);
    if (signature == PSTK__SIGNATURE_NONE)
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_DECODE,
                          "its %llu bytes begin neither as a JPEG nor as a PNG file",
                          (unsigned long long)size);
    for (size_t i = 0; i < N_DECODERS; i++)
        if (decoders[i]->signature == signature)
            return decoders[i]->probe(data, size, max_pixels, info, err);
    return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_DECODE,
                      "the file has the format %s; only JPEG and PNG are packed (convert it)",
                      name);
}

uint64_t pstk__image_scratch_within(uint32_t max_width, uint32_t max_height, uint64_t max_pixels)
{
    /* One image is decoded at a time, and its memory is given back, so the largest bound is
     * enough. */
    uint64_t most = 0;
    for (size_t i = 0; i < N_DECODERS; i++) {
        const uint64_t size = decoders[i]->scratch(max_width, max_height, max_pixels);
        most = size > most ? size : most;
    }
    return most;
}

uint64_t pstk__image_scratch(uint32_t width, uint32_t height)
{
    return pstk__image_scratch_within(width, height, (uint64_t)width * height);
}

int pstk__image_state_open(struct pstk__image_state **out, struct pstk__arena *arena, uint32_t isa,
                           struct pstk_error *err)
{
    *out = NULL;
    struct pstk__image_state *state = calloc(1, sizeof *state);
    if (!state)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for an image decoder");
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < N_DECODERS; i++)
        rc = decoders[i]->open(&state->states[i], arena, isa, err);
    if (rc < 0) {
        pstk__image_state_close(state);
        return rc;
    }
    *out = state;
    return 0;
}

void pstk__image_state_close(struct pstk__image_state *state)
{
    if (!state)
        return;
    for (size_t i = N_DECODERS; i-- > 0;)
        if (decoders[i]->close)
            decoders[i]->close(state->states[i]);
    free(state);
}

int pstk__image_decode(struct pstk__image_state *state, const struct pstk__coded *image,
                       const struct pstk__box *box, const struct pstk__row_sink *sink,
                       struct pstk_error *err)
{
    size_t i = 0;
    while (i < N_DECODERS && decoders[i] != image->decoder)
        i++;
    if (i == N_DECODERS)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_DECODE, "the decoder is not in the list");
    return decoders[i]->decode(state->states[i], image, box, sink, err);
}

const char *pstk__image_library(void)
{
    return pstk__jpeg_library();
}
