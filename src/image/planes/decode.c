/* SPDX-License-Identifier: Apache-2.0 */
/* planes/decode: the image decoder of fields stored as planes: strips, then the back end. */
#include "base/error.h"
#include "image/image.h"
#include "image/planes/read.h"

#include <stdlib.h>

/* A worker's reader and the kernels of its variant. */
struct pstk__planes {
    struct pstk__planes_reader reader;
    const struct pstk__jpeg_kernels *kernels;
    const struct pstk__planes_kernels *planes_kernels;
};

int pstk__planes_state_open(struct pstk__planes **out, uint32_t variant, struct pstk_error *err)
{
    struct pstk__planes *p = calloc(1, sizeof *p);
    *out = p;
    if (p == NULL)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_OPEN, "no memory for a decoder of planes");
    p->kernels = pstk__jpeg_kernels(variant);
    p->planes_kernels = pstk__planes_kernels(variant);
    if (p->kernels != NULL && p->planes_kernels != NULL)
        return 0;
    pstk__planes_state_close(p);
    *out = NULL;
    return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_OPEN, "this CPU lacks the variant asked for");
}

void pstk__planes_state_close(struct pstk__planes *p)
{
    free(p);
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
                                          .orientation = h.orientation};
    return rc;
}

static int decode(struct pstk__planes *p, const void *data, uint64_t size,
                  const struct pstk__image_info *info, const struct pstk__box *box,
                  const struct pstk__row_sink *sink, struct pstk__arena *arena,
                  struct pstk_error *err)
{
    const struct pstk__jpeg_frame *f = &p->reader.header.frame;
    const struct pstk__block_source source = {.row = pstk__planes_row, .user = &p->reader};
    const struct pstk__backend_config config = {
        .frame = f, .kernels = p->kernels, .source = &source, .box = box, .sink = sink};

    int rc = pstk__planes_open(&p->reader, data, size, info, p->planes_kernels, arena, err);
    if (rc == 0)
        rc = pstk__jpeg_backend_check(f, err);
    return rc < 0 ? rc : pstk__jpeg_backend_rows(&config, arena, err);
}

static int planes_decode(struct pstk__image_state *state, const void *data, uint64_t size,
                         const struct pstk__image_info *info, const struct pstk__box *box,
                         const struct pstk__row_sink *sink, struct pstk_error *err)
{
    const size_t mark = state->arena->used;
    int rc = pstk__image_check_box(info, box, err);
    if (rc == 0)
        rc = decode(state->planes, data, size, info, box, sink, state->arena, err);
    pstk__arena_reset(state->arena, mark);
    return rc;
}

uint64_t pstk__planes_scratch(uint32_t max_width, uint32_t max_height)
{
    return pstk__planes_read_scratch(max_width, max_height) + pstk__jpeg_backend_scratch(max_width);
}

const struct pstk__image_decoder pstk__image_planes = {
    .encoding = PSTK_ENCODING_JPEG,
    .name = "planes",
    .probe = planes_probe,
    .decode = planes_decode,
};
