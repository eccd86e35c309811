/* SPDX-License-Identifier: Apache-2.0 */
#include "file.h"

#include "../error.h"
#include "../jpeg/coefficients.h"
#include "read.h"
#include "write.h"

#include <penstock/penstock.h>
#include <stdlib.h>
#include <string.h>

#define SKELETON_LEVEL 9 /* of zstd: some 600 bytes, most of which the dictionary has */

/* What most files begin with, as zstd's raw dictionary for skeletons: the start, a JFIF segment,
 * and the Huffman tables of ITU T.81, K.3 to K.6. Part of the format. */
static const uint8_t common[] = {
    0xff, 0xd8, 0xff, 0xe0, 0x00, 0x10, 0x4a, 0x46, 0x49, 0x46, 0x00, 0x01, 0x01, 0x00, 0x00, 0x01,
    0x00, 0x01, 0x00, 0x00, 0xff, 0xc4, 0x00, 0x1f, 0x00, 0x00, 0x01, 0x05, 0x01, 0x01, 0x01, 0x01,
    0x01, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06,
    0x07, 0x08, 0x09, 0x0a, 0x0b, 0xff, 0xc4, 0x00, 0xb5, 0x10, 0x00, 0x02, 0x01, 0x03, 0x03, 0x02,
    0x04, 0x03, 0x05, 0x05, 0x04, 0x04, 0x00, 0x00, 0x01, 0x7d, 0x01, 0x02, 0x03, 0x00, 0x04, 0x11,
    0x05, 0x12, 0x21, 0x31, 0x41, 0x06, 0x13, 0x51, 0x61, 0x07, 0x22, 0x71, 0x14, 0x32, 0x81, 0x91,
    0xa1, 0x08, 0x23, 0x42, 0xb1, 0xc1, 0x15, 0x52, 0xd1, 0xf0, 0x24, 0x33, 0x62, 0x72, 0x82, 0x09,
    0x0a, 0x16, 0x17, 0x18, 0x19, 0x1a, 0x25, 0x26, 0x27, 0x28, 0x29, 0x2a, 0x34, 0x35, 0x36, 0x37,
    0x38, 0x39, 0x3a, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48, 0x49, 0x4a, 0x53, 0x54, 0x55, 0x56, 0x57,
    0x58, 0x59, 0x5a, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68, 0x69, 0x6a, 0x73, 0x74, 0x75, 0x76, 0x77,
    0x78, 0x79, 0x7a, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8a, 0x92, 0x93, 0x94, 0x95, 0x96,
    0x97, 0x98, 0x99, 0x9a, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9, 0xaa, 0xb2, 0xb3, 0xb4,
    0xb5, 0xb6, 0xb7, 0xb8, 0xb9, 0xba, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7, 0xc8, 0xc9, 0xca, 0xd2,
    0xd3, 0xd4, 0xd5, 0xd6, 0xd7, 0xd8, 0xd9, 0xda, 0xe1, 0xe2, 0xe3, 0xe4, 0xe5, 0xe6, 0xe7, 0xe8,
    0xe9, 0xea, 0xf1, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8, 0xf9, 0xfa, 0xff, 0xc4, 0x00, 0x1f,
    0x01, 0x00, 0x03, 0x01, 0x01, 0x01, 0x01, 0x01, 0x01, 0x01, 0x01, 0x01, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0xff, 0xc4, 0x00,
    0xb5, 0x11, 0x00, 0x02, 0x01, 0x02, 0x04, 0x04, 0x03, 0x04, 0x07, 0x05, 0x04, 0x04, 0x00, 0x01,
    0x02, 0x77, 0x00, 0x01, 0x02, 0x03, 0x11, 0x04, 0x05, 0x21, 0x31, 0x06, 0x12, 0x41, 0x51, 0x07,
    0x61, 0x71, 0x13, 0x22, 0x32, 0x81, 0x08, 0x14, 0x42, 0x91, 0xa1, 0xb1, 0xc1, 0x09, 0x23, 0x33,
    0x52, 0xf0, 0x15, 0x62, 0x72, 0xd1, 0x0a, 0x16, 0x24, 0x34, 0xe1, 0x25, 0xf1, 0x17, 0x18, 0x19,
    0x1a, 0x26, 0x27, 0x28, 0x29, 0x2a, 0x35, 0x36, 0x37, 0x38, 0x39, 0x3a, 0x43, 0x44, 0x45, 0x46,
    0x47, 0x48, 0x49, 0x4a, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58, 0x59, 0x5a, 0x63, 0x64, 0x65, 0x66,
    0x67, 0x68, 0x69, 0x6a, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78, 0x79, 0x7a, 0x82, 0x83, 0x84, 0x85,
    0x86, 0x87, 0x88, 0x89, 0x8a, 0x92, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99, 0x9a, 0xa2, 0xa3,
    0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9, 0xaa, 0xb2, 0xb3, 0xb4, 0xb5, 0xb6, 0xb7, 0xb8, 0xb9, 0xba,
    0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7, 0xc8, 0xc9, 0xca, 0xd2, 0xd3, 0xd4, 0xd5, 0xd6, 0xd7, 0xd8,
    0xd9, 0xda, 0xe2, 0xe3, 0xe4, 0xe5, 0xe6, 0xe7, 0xe8, 0xe9, 0xea, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6,
    0xf7, 0xf8, 0xf9, 0xfa,
};

/* ---- encoding ------------------------------------------------------------------------------- */

struct pstk__planes_encoder {
    struct pstk__arena arena;                   /* owned; opened anew where an image needs more */
    struct pstk__encoder *zstd;                 /* owned; for skeletons */
    struct pstk__decoder *decoder;              /* owned memory; for the check */
    const struct pstk__planes_kernels *kernels; /* chosen once: asking the CPU is slow in a VM */
};

int pstk__planes_encoder_open(struct pstk__planes_encoder **out, struct pstk_error *err)
{
    struct pstk__planes_encoder *e = calloc(1, sizeof *e);
    *out = NULL;
    if (e == NULL)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_WRITE, "no memory for an encoder of planes");
    int rc = pstk__encoder_open(&e->zstd, SKELETON_LEVEL, common, sizeof common, err);
    e->kernels = pstk__planes_kernels(PSTK_VARIANT_AUTO);
    void *memory = aligned_alloc(64, pstk__decoder_size());
    e->decoder = pstk__decoder_init(memory, pstk__decoder_size());
    if (rc == 0 && e->decoder == NULL)
        rc = pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_WRITE, "no memory for an encoder of planes");
    if (e->decoder == NULL)
        free(memory);
    if (rc < 0)
        pstk__planes_encoder_close(e);
    else
        *out = e;
    return rc;
}

void pstk__planes_encoder_close(struct pstk__planes_encoder *e)
{
    if (e == NULL)
        return;
    pstk__arena_close(&e->arena);
    pstk__encoder_close(e->zstd);
    free(e->decoder);
    free(e);
}

/* An empty arena of at least this size. */
static int reserve(struct pstk__planes_encoder *e, uint64_t size, struct pstk_error *err)
{
    if (e->arena.size > 0)
        pstk__arena_reset(&e->arena, 0);
    pstk__arena_trim(&e->arena, 64u << 20);
    if (size <= e->arena.size)
        return 0;
    pstk__arena_close(&e->arena);
    if (pstk__arena_open(&e->arena, size) == 0)
        return 0;
    return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_WRITE,
                      "no memory (%llu bytes) to take a JPEG file apart", (unsigned long long)size);
}

/* Decode what was written, and compare: coefficients and skeleton, from which the file was rebuilt
 * already. 0: equal. */
static int check(struct pstk__planes_encoder *e, const struct pstk__jpeg_image *image,
                 const uint8_t *stored, uint64_t size, struct pstk_error *err)
{
    struct pstk__arena *arena = &e->arena;
    const struct pstk__jpeg_frame *f = &image->frame;
    const struct pstk__image_info info = {.width = f->width, .height = f->height};
    struct pstk__planes_reader *reader = pstk__arena_get(arena, sizeof *reader);
    uint8_t *skeleton = pstk__arena_get(arena, image->skeleton_size + 1);
    int16_t *blocks[PSTK__JPEG_MAX_COMPONENTS] = {NULL};
    for (uint32_t c = 0; c < f->n_components; c++) {
        blocks[c] = pstk__arena_get(arena, 128ull * f->component[c].rows * f->component[c].stride);
        if (blocks[c] == NULL)
            return PSTK_ENOMEM;
    }
    if (reader == NULL || skeleton == NULL)
        return PSTK_ENOMEM;
    int rc = pstk__planes_open(reader, stored, size, &info, e->kernels, arena, err);
    if (rc == 0)
        rc = pstk__planes_expand(reader, blocks, err);
    if (rc == 0)
        rc = pstk__codec_decode_prefixed(e->decoder, common, sizeof common, reader->header.skeleton,
                                         reader->header.skeleton_size, skeleton,
                                         image->skeleton_size, err);
    int same = rc == 0 && memcmp(skeleton, image->skeleton, image->skeleton_size) == 0;
    for (uint32_t c = 0; c < f->n_components && same; c++)
        same = memcmp(blocks[c], image->blocks[c],
                      128ull * f->component[c].rows * f->component[c].stride) == 0;
    return same ? 0
                : pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_WRITE,
                             "planes differ from the file they were made of; suspect the "
                             "machine's memory");
}

/* The image is taken apart, and how it can be rebuilt is known: `out` has the plain file. */
static int write_planes(struct pstk__planes_encoder *e, const struct pstk__jpeg_image *image,
                        uint64_t capacity, struct pstk__planes_file *out, struct pstk_error *err)
{
    struct pstk__arena *arena = &e->arena;
    const uint64_t bound = pstk__encoder_bound(image->skeleton_size);
    uint8_t *skeleton = pstk__arena_get(arena, bound);
    uint8_t *stored = pstk__arena_get(arena, capacity);
    if (skeleton == NULL || stored == NULL)
        return PSTK_ENOMEM;
    const int64_t skeleton_size =
        pstk__encoder_encode(e->zstd, image->skeleton, image->skeleton_size, skeleton, bound, err);
    if (skeleton_size < 0)
        return (int)skeleton_size;
    const struct pstk__planes_source source = {.kernels = e->kernels,
                                               .image = image,
                                               .skeleton = skeleton,
                                               .skeleton_size = (uint64_t)skeleton_size};
    const int64_t size = pstk__planes_write(&source, stored, capacity, arena, err);
    if (size <= 0)
        return (int)size;
    out->stored = stored;
    out->stored_size = (uint64_t)size;
    const int rc = check(e, image, stored, out->stored_size, err);
    return rc < 0 ? rc : 1;
}

static int encode(struct pstk__planes_encoder *e, const void *data, uint64_t size, int exact_only,
                  struct pstk__planes_file *out, struct pstk_error *err)
{
    struct pstk__arena *arena = &e->arena;
    struct pstk__jpeg_image image;
    uint64_t plain_size = 0;
    int exact = 0;
    int rc = pstk__jpeg_image_read(&image, data, size, UINT64_MAX, arena, err);
    if (rc < 0 || image.smoothed || pstk__jpeg_backend_check(&image.frame, err) < 0)
        return rc == PSTK_ENOMEM ? rc : 0;
    uint8_t *plain = pstk__arena_get(arena, pstk__jpeg_rebuild_bound(&image));
    if (plain == NULL)
        return PSTK_ENOMEM;
    rc = pstk__jpeg_image_choose(&image, data, size, plain, &plain_size, &exact, arena, err);
    if (rc < 0)
        return rc == PSTK_ENOMEM ? rc : 0;
    if (exact_only && !exact)
        return 0;
    *out =
        (struct pstk__planes_file){.plain = plain, .plain_size = plain_size, .equivalent = !exact};
    return write_planes(e, &image, size - 1, out, err);
}

/* Memory for all that encode does with an image; the file's frame is read first to know it. */
static int measure(const void *data, uint64_t size, uint64_t *memory)
{
    struct pstk__image_info info;
    struct pstk__jpeg_frame f = {.n_components = 4};
    if (size < 1 || pstk__image_jpeg.probe(data, size, UINT64_MAX, &info, NULL) < 0)
        return -1;
    f.width = info.width;
    f.height = info.height;
    /* The worst frame for memory: four components at full size, of 4 x 4 blocks a MCU. */
    for (uint32_t c = 0; c < 4; c++)
        f.component[c].h = f.component[c].v = 4;
    pstk__jpeg_frame_layout(&f);
    const uint64_t blocks = 4ull * f.component[0].rows * f.component[0].stride;
    *memory = pstk__jpeg_image_scratch(&f, size) + pstk__planes_write_scratch(&f) +
              pstk__planes_read_scratch(f.width, f.height) + 128 * blocks /* the check's */ +
              512 * blocks + 16 * size /* a rebuilt file: its bound, for one of this frame */ +
              sizeof(struct pstk__planes_reader) + 4096;
    return 0;
}

int pstk__planes_encode(struct pstk__planes_encoder *e, const void *data, uint64_t size,
                        int exact_only, struct pstk__planes_file *out, struct pstk_error *err)
{
    uint64_t memory = 0;
    if (measure(data, size, &memory) < 0)
        return 0;
    const int rc = reserve(e, memory, err);
    return rc < 0 ? rc : encode(e, data, size, exact_only, out, err);
}

/* ---- decoding ------------------------------------------------------------------------------- */

/* Expand and decompress all that a rebuild takes. */
static int read_image(struct pstk__jpeg_image *image, struct pstk__decoder *d, const void *data,
                      uint64_t size, uint64_t plain_size, struct pstk__arena *arena,
                      struct pstk_error *err)
{
    struct pstk__planes_reader *reader = pstk__arena_get(arena, sizeof *reader);
    struct pstk__planes_header h;
    int rc = reader != NULL ? pstk__planes_header_read(&h, data, size, err) : PSTK_ENOMEM;
    if (rc < 0)
        return rc;
    if (h.skeleton_plain_size > plain_size)
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_RECORD,
                          "planes: more bytes of markers than the file has");
    *image = (struct pstk__jpeg_image){.frame = h.frame,
                                       .orientation = h.orientation,
                                       .skeleton_size = h.skeleton_plain_size,
                                       .rebuild = h.rebuild,
                                       .parameters = h.parameters};
    image->skeleton = pstk__arena_get(arena, h.skeleton_plain_size + 1);
    for (uint32_t c = 0; c < h.frame.n_components; c++) {
        const struct pstk__jpeg_component *comp = &h.frame.component[c];
        image->blocks[c] = pstk__arena_get(arena, 128ull * comp->rows * comp->stride);
        if (image->blocks[c] == NULL)
            return PSTK_ENOMEM;
    }
    if (image->skeleton == NULL)
        return PSTK_ENOMEM;
    const struct pstk__image_info info = {.width = h.frame.width, .height = h.frame.height};
    rc = pstk__codec_decode_prefixed(d, common, sizeof common, h.skeleton, h.skeleton_size,
                                     image->skeleton, h.skeleton_plain_size, err);
    if (rc == 0)
        rc = pstk__planes_open(reader, data, size, &info, pstk__planes_kernels(PSTK_VARIANT_AUTO),
                               arena, err);
    return rc < 0 ? rc : pstk__planes_expand(reader, image->blocks, err);
}

int pstk__planes_decode(struct pstk__decoder *d, const void *data, uint64_t size, uint8_t *out,
                        uint64_t plain_size, struct pstk__arena *arena, struct pstk_error *err)
{
    const size_t mark = arena->used;
    struct pstk__jpeg_image image;
    uint64_t n = 0;
    int rc = read_image(&image, d, data, size, plain_size, arena, err);
    if (rc == 0)
        rc = pstk__jpeg_image_rebuild(&image, out, plain_size, &n, arena, err);
    pstk__arena_reset(arena, mark);
    if (rc == PSTK_ENOMEM)
        return pstk__fail(err, rc, PSTK_STAGE_RECORD,
                          "planes need more scratch memory than the "
                          "image's size allows for");
    if (rc == 0 && n != plain_size)
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_RECORD,
                          "planes give a file of %llu bytes, not %llu", (unsigned long long)n,
                          (unsigned long long)plain_size);
    return rc;
}

uint64_t pstk__planes_decode_scratch(uint32_t width, uint32_t height, uint64_t plain_size)
{
    struct pstk__jpeg_frame f = {.width = width, .height = height, .n_components = 4};
    for (uint32_t c = 0; c < 4; c++)
        f.component[c].h = f.component[c].v = 4;
    pstk__jpeg_frame_layout(&f);
    return pstk__planes_read_scratch(width, height) +
           4 * (128ull * f.component[0].rows * f.component[0].stride + 64) +
           pstk__jpeg_rebuild_scratch(&f, plain_size) + plain_size +
           sizeof(struct pstk__planes_reader) + 4096;
}
