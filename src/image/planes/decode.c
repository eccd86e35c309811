/* SPDX-License-Identifier: Apache-2.0 */
/* planes/decode: decodes fields stored as planes: first strips, then the JPEG back end. */
#include "image/planes/decode.h"

#include "base/error.h"
#include "image/planes/read.h"

#include <stdlib.h>

/* The reader of one thread, and the kernels of its ISA. */
struct state {
    struct pstk__planes_reader reader;
    const struct pstk__jpeg_kernels *kernels;
    struct pstk__planes_tables tables;
    struct pstk__arena *arena; /* borrowed */
};

static int planes_open(void **out, struct pstk__arena *arena, uint32_t isa, struct pstk_error *err)
{
    *out = NULL;
    struct state *state = calloc(1, sizeof *state);
    if (!state)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for a decoder of planes");
    state->arena = arena;
    state->kernels = pstk__jpeg_kernels(isa);
    state->tables.kernels = pstk__planes_kernels(isa);
    if (!state->kernels || !state->tables.kernels) {
        free(state);
        return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN,
                          "kernels: this CPU lacks the kernels that were requested");
    }
    *out = state;
    return 0;
}

static int planes_probe(const void *data, uint64_t size, uint64_t max_pixels,
                        struct pstk__image_info *info, struct pstk_error *err)
{
    struct pstk__planes_header h;
    int rc = pstk__planes_header_read(&h, data, size, err);
    if (rc == 0)
        rc = pstk__image_check_size("planes", h.frame.width, h.frame.height, max_pixels, err);
    if (rc == 0)
        *info = (struct pstk__image_info){.encoding = PSTK_ENCODING_JPEG,
                                          .width = h.frame.width,
                                          .height = h.frame.height,
                                          .orientation = h.orientation,
                                          .channels = (uint8_t)h.frame.n_components,
                                          .bit_depth = 8};
    return rc;
}

static int planes_decode(void *state, const struct pstk__coded *image, const struct pstk__box *box,
                         const struct pstk__row_sink *sink, struct pstk_error *err)
{
    struct state *s = state;
    const size_t mark = s->arena->used;
    const struct pstk__jpeg_frame *f = &s->reader.header.frame;
    const struct pstk__block_source source = {.row = pstk__planes_row, .user = &s->reader};
    const struct pstk__backend_config config = {
        .frame = f, .kernels = s->kernels, .source = &source, .box = box, .sink = sink};

    int rc = pstk__image_check_box(image, box, sink, err);
    if (rc == 0)
        rc = pstk__planes_open(&s->reader, image->data, image->size, image->info, &s->tables,
                               s->arena, err);
    if (rc == 0)
        rc = pstk__jpeg_backend_check(f, err);
    if (rc == 0)
        rc = pstk__jpeg_backend_rows(&config, s->arena, err);
    pstk__arena_reset(s->arena, mark);
    return rc;
}

/* Return the bytes for the reader's strips and the back end's rows. */
static uint64_t planes_scratch(uint32_t max_width, uint32_t max_height, uint64_t max_pixels)
{
    (void)max_pixels;
    return pstk__planes_read_scratch(max_width, max_height) + pstk__jpeg_backend_scratch(max_width);
}

const struct pstk__image_decoder pstk__image_planes = {
    .encoding = PSTK_ENCODING_JPEG,
    .name = "planes",
    .probe = planes_probe,
    .open = planes_open,
    .close = free,
    .scratch = planes_scratch,
    .decode = planes_decode,
};
