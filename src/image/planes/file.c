/* SPDX-License-Identifier: Apache-2.0 */
#include "image/planes/file.h"

#include "base/error.h"
#include "image/jpeg/choose.h"
#include "image/jpeg/header.h"
#include "image/jpeg/rebuild.h"
#include "image/planes/read.h"
#include "image/planes/skeleton.h"
#include "image/planes/write.h"

#include <penstock/penstock.h>
#include <stdlib.h>
#include <string.h>

/* ---- decoding ------------------------------------------------------------------------------- */

static int no_memory(struct pstk_error *err)
{
    return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_RECORD,
                      "a JPEG stored as planes needs more memory than its size allows for");
}

/* Set up an image in the arena: header, and room for skeleton and blocks. */
static int read_image(struct pstk__jpeg_image *image, const struct pstk__planes_header *h,
                      uint64_t plain_size, struct pstk__arena *arena, struct pstk_error *err)
{
    if (h->skeleton_plain_size > plain_size)
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_RECORD,
                          "planes: the markers have more bytes than the file");
    *image = (struct pstk__jpeg_image){.frame = h->frame,
                                       .orientation = h->orientation,
                                       .skeleton_size = h->skeleton_plain_size,
                                       .rebuild = h->rebuild,
                                       .parameters = h->parameters};
    image->skeleton = pstk__arena_get(arena, h->skeleton_plain_size + 1);
    int missing = !image->skeleton;
    for (uint32_t c = 0; c < h->frame.n_components; c++) {
        const struct pstk__jpeg_component *comp = &h->frame.component[c];
        image->blocks[c] = pstk__arena_get(arena, 128ull * comp->rows * comp->stride);
        missing |= !image->blocks[c];
    }
    return missing ? no_memory(err) : 0;
}

/* The resources that decoding a field needs. */
struct means {
    struct pstk__decoder *zstd;
    struct pstk__planes_tables *tables;
    struct pstk__arena *arena;
};

static int decode_file(const struct means *means, const struct pstk__planes_field *field,
                       uint8_t *out, struct pstk_error *err)
{
    const struct pstk__image_info info = {.width = field->width, .height = field->height};
    struct pstk__arena *arena = means->arena;
    struct pstk__planes_reader *reader = pstk__arena_get(arena, sizeof *reader);
    struct pstk__jpeg_image image;
    uint64_t n = 0;
    int rc = reader ? pstk__planes_open(reader, field->data, field->size, &info, means->tables,
                                        arena, err)
                    : no_memory(err);
    if (rc == 0)
        rc = read_image(&image, &reader->header, field->plain_size, arena, err);
    if (rc == 0)
        rc = pstk__skeleton_decode(means->zstd, &image.frame, reader->header.skeleton,
                                   reader->header.skeleton_size, image.skeleton,
                                   image.skeleton_size, err);
    if (rc == 0)
        rc = pstk__planes_expand(reader, image.blocks, err);
    if (rc == 0)
        rc = pstk__jpeg_image_rebuild(&image, out, field->plain_size, &n, arena, err);
    if (rc == 0 && n != field->plain_size)
        rc = pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_RECORD,
                        "planes give a file of %llu bytes, not %llu", (unsigned long long)n,
                        (unsigned long long)field->plain_size);
    return rc;
}

int pstk__planes_decode(struct pstk__decoder *decoder, const struct pstk__planes_field *field,
                        uint8_t *out, struct pstk__arena *arena, struct pstk_error *err)
{
    const size_t mark = arena->used;
    struct pstk__planes_tables *tables = pstk__arena_get(arena, sizeof *tables);
    const struct means means = {.zstd = decoder, .tables = tables, .arena = arena};
    if (!tables)
        return no_memory(err);
    memset(tables->number, 0, sizeof tables->number);
    tables->kernels = pstk__planes_kernels(PSTK_KERNELS_AUTO);
    const int rc = decode_file(&means, field, out, err);
    pstk__arena_reset(arena, mark);
    return rc;
}

/*
 * Return the bytes for the coefficients of n components: side / 8 rounded up, and at most 3 more to
 * a multiple of a factor, in both directions, 128 bytes a block. (w/8 + 4)(h/8 + 4) = w h / 64 + (w
 * + h) / 2 + 16, where w h is at most max_pixels.
 */
static uint64_t coefficients_size(uint32_t width, uint32_t height, uint64_t max_pixels, uint64_t n)
{
    const uint64_t all = ((uint64_t)width / 8 + 4) * ((uint64_t)height / 8 + 4);
    const uint64_t bound = max_pixels / 64 + ((uint64_t)width + height) / 2 + 18;
    return n * (128 * (all < bound ? all : bound) + 64);
}

/* Return a frame of this size, for the bounds of jpeg/coefficients, which assume the largest
 * anyway. */
static struct pstk__jpeg_frame frame_of(uint32_t width, uint32_t height, uint32_t n)
{
    struct pstk__jpeg_frame f = {.width = width, .height = height, .n_components = n};
    for (uint32_t c = 0; c < n; c++)
        f.component[c].h = f.component[c].v = 1;
    pstk__jpeg_frame_layout(&f);
    return f;
}

uint64_t pstk__planes_decode_scratch(uint32_t width, uint32_t height, uint64_t max_pixels,
                                     uint64_t plain_size)
{
    const struct pstk__jpeg_frame f = frame_of(width, height, 4);
    return pstk__planes_read_scratch(width, height) +
           coefficients_size(width, height, max_pixels, 4) +
           pstk__jpeg_rebuild_scratch(&f, plain_size) + plain_size +
           sizeof(struct pstk__planes_reader) + sizeof(struct pstk__planes_tables) + 4096;
}

/* ---- encoding ------------------------------------------------------------------------------- */

struct pstk__planes_encoder {
    struct pstk__arena arena;          /* owned; replaced by a larger one when an image needs it */
    struct pstk__encoder *zstd;        /* owned; for skeletons */
    struct pstk__decoder *decoder;     /* owned; for the check */
    struct pstk__planes_tables tables; /* their kernels are chosen once: CPUID is slow in a VM */
    struct pstk__planes_set sets[PSTK__PLANES_N_SETS];
};

int pstk__planes_encoder_open(struct pstk__planes_encoder **out, struct pstk_error *err)
{
    struct pstk__planes_encoder *encoder = calloc(1, sizeof *encoder);
    *out = NULL;
    if (!encoder)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_WRITE, "no memory for an encoder of planes");
    int rc = pstk__encoder_open(&encoder->zstd, PSTK__SKELETON_LEVEL, NULL, 0, err);
    encoder->tables.kernels = pstk__planes_kernels(PSTK_KERNELS_AUTO);
    pstk__planes_sets_init(encoder->sets);
    void *memory = aligned_alloc(64, pstk__decoder_size());
    encoder->decoder = pstk__decoder_init(memory, pstk__decoder_size());
    if (rc == 0 && !encoder->decoder)
        rc = pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_WRITE, "no memory for an encoder of planes");
    if (!encoder->decoder)
        free(memory);
    if (rc < 0)
        pstk__planes_encoder_close(encoder);
    else
        *out = encoder;
    return rc;
}

void pstk__planes_encoder_close(struct pstk__planes_encoder *encoder)
{
    if (!encoder)
        return;
    pstk__arena_close(&encoder->arena);
    pstk__encoder_close(encoder->zstd);
    free(encoder->decoder);
    free(encoder);
}

/* Empty the arena, and give it at least this size. */
static int reserve(struct pstk__planes_encoder *encoder, uint64_t size, struct pstk_error *err)
{
    if (encoder->arena.size > 0)
        pstk__arena_reset(&encoder->arena, 0);
    pstk__arena_trim(&encoder->arena, 64u << 20);
    if (size <= encoder->arena.size)
        return 0;
    pstk__arena_close(&encoder->arena);
    if (pstk__arena_open(&encoder->arena, size) == 0)
        return 0;
    return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_WRITE,
                      "no memory (%llu bytes) to take a JPEG file apart", (unsigned long long)size);
}

/* Decode the written field and compare. Returns 1 when it gives out->plain, 0 when not. ENOMEM. */
static int check(struct pstk__planes_encoder *encoder, const struct pstk__jpeg_frame *frame,
                 const struct pstk__planes_file *file, struct pstk_error *err)
{
    const struct means means = {
        .zstd = encoder->decoder, .tables = &encoder->tables, .arena = &encoder->arena};
    const struct pstk__planes_field field = {.data = file->stored,
                                             .size = file->stored_size,
                                             .width = frame->width,
                                             .height = frame->height,
                                             .plain_size = file->plain_size};
    uint8_t *plain = pstk__arena_get(&encoder->arena, file->plain_size);
    if (!plain)
        return no_memory(err);
    const int rc = decode_file(&means, &field, plain, err);
    if (rc == PSTK_ENOMEM)
        return rc;
    return rc == 0 && memcmp(plain, file->plain, file->plain_size) == 0;
}

/* The result of writing a field. */
enum written {
    NOT_SMALLER = 0, /* no field: the file is stored unchanged */
    GIVES_BACK = 1,  /* it decodes to out->plain */
    GIVES_OTHER = 2  /* it decodes to other bytes */
};

/* Write the field for out->plain in less than `capacity` bytes, and check it. Returns enum written,
 * or ENOMEM. */
static int write_planes(struct pstk__planes_encoder *encoder, const struct pstk__jpeg_image *image,
                        uint64_t capacity, struct pstk__planes_file *out, struct pstk_error *err)
{
    struct pstk__arena *arena = &encoder->arena;
    uint8_t *skeleton = pstk__arena_get(arena, pstk__skeleton_bound(image->skeleton_size));
    uint8_t *stored = pstk__arena_get(arena, capacity);
    if (!skeleton || !stored)
        return no_memory(err);
    const int64_t skeleton_size = pstk__skeleton_encode(
        encoder->zstd, &image->frame, image->skeleton, image->skeleton_size, skeleton, err);
    if (skeleton_size < 0)
        return (int)skeleton_size;
    const struct pstk__planes_source source = {.kernels = encoder->tables.kernels,
                                               .sets = encoder->sets,
                                               .image = image,
                                               .skeleton = skeleton,
                                               .skeleton_size = (uint64_t)skeleton_size};
    const int64_t size = pstk__planes_write(&source, stored, capacity - 1, arena, err);
    if (size <= 0)
        return size < 0 ? (int)size : NOT_SMALLER;
    out->stored = stored;
    out->stored_size = (uint64_t)size;
    const int rc = check(encoder, &image->frame, out, err);
    return rc < 0 ? rc : rc == 1 ? GIVES_BACK : GIVES_OTHER;
}

/* Return the reason for storing a file unchanged, when its coefficients cannot be read; `code` is
 * the reader's result. */
static uint32_t reason_of(int code)
{
    return code == PSTK_ENOTSUP || code == PSTK_EFBIG ? PSTK_PASSTHROUGH_UNUSUAL
                                                      : PSTK_PASSTHROUGH_DAMAGED;
}

/* Read a file's coefficients. Returns 0 when planes can hold them, enum pstk_passthrough when not,
 * or ENOMEM. */
static int read_file(struct pstk__planes_encoder *encoder, const void *data, uint64_t size,
                     struct pstk__jpeg_image *image, struct pstk_error *err)
{
    struct pstk_error why;
    pstk_error_init(&why, sizeof why);
    const int rc =
        pstk__jpeg_image_read(image, data, size, PSTK__MAX_PIXELS, &encoder->arena, &why);
    if (rc == PSTK_ENOMEM)
        return no_memory(err);
    if (rc < 0)
        return (int)reason_of(rc);
    if (image->smoothed)
        return PSTK_PASSTHROUGH_INCOMPLETE;
    return pstk__jpeg_backend_check(&image->frame, &why) < 0 ? PSTK_PASSTHROUGH_UNUSUAL : 0;
}

/* The file that can be rebuilt from a JPEG file's coefficients. */
enum rebuilt {
    AS_NOTHING = 0,   /* no file */
    AS_ITSELF = 1,    /* the file itself, byte for byte */
    AS_EQUIVALENT = 2 /* another file with the same coefficients and markers */
};

/* Find the file that can be rebuilt; out->plain is that file. Returns enum rebuilt, or ENOMEM. */
static int choose(struct pstk__planes_encoder *encoder, const void *data, uint64_t size,
                  struct pstk__jpeg_image *image, struct pstk__planes_file *out,
                  struct pstk_error *err)
{
    struct pstk_error why;
    int exact = 0;
    uint8_t *plain = pstk__arena_get(&encoder->arena, pstk__jpeg_rebuild_bound(image));
    pstk_error_init(&why, sizeof why);
    const int rc = plain ? pstk__jpeg_image_choose(image, data, size, plain, &out->plain_size,
                                                   &exact, &encoder->arena, &why)
                         : PSTK_ENOMEM;
    out->plain = plain;
    if (rc == PSTK_ENOMEM)
        return no_memory(err);
    return rc < 0 ? AS_NOTHING : exact ? AS_ITSELF : AS_EQUIVALENT;
}

/* Replace a file by the equivalent one in out->plain, which must rebuild to itself. Returns enum
 * rebuilt, or ENOMEM. */
static int replace(struct pstk__planes_encoder *encoder, struct pstk__jpeg_image *image,
                   struct pstk__planes_file *out, struct pstk_error *err)
{
    out->equivalent = 1;
    const int rc = read_file(encoder, out->plain, out->plain_size, image, err);
    return rc == 0  ? choose(encoder, out->plain, out->plain_size, image, out, err)
           : rc > 0 ? AS_NOTHING
                    : rc;
}

/* Store the file unchanged, for this reason. */
static int keep(struct pstk__planes_file *out, uint32_t passthrough)
{
    *out = (struct pstk__planes_file){.passthrough = passthrough};
    return 0;
}

/* Encode a file that its Huffman tables did not rebuild: as itself, as an equivalent file, or not
 * as planes. Returns 1: as planes; 0: not; or an error. */
static int encode_otherwise(struct pstk__planes_encoder *encoder, const void *data, uint64_t size,
                            int exact_only, struct pstk__jpeg_image *image,
                            struct pstk__planes_file *out, struct pstk_error *err)
{
    int rebuilt = choose(encoder, data, size, image, out, err);
    if (rebuilt == AS_EQUIVALENT && !exact_only)
        rebuilt = replace(encoder, image, out, err);
    if (rebuilt != AS_ITSELF)
        return rebuilt < 0
                   ? rebuilt
                   : keep(out, exact_only ? PSTK_PASSTHROUGH_NOT_EXACT : PSTK_PASSTHROUGH_DAMAGED);
    const int written = write_planes(encoder, image, size, out, err);
    if (written == GIVES_OTHER)
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_WRITE,
                          "planes do not reproduce the file that they were made from; the "
                          "machine's memory may be faulty");
    return written == NOT_SMALLER ? keep(out, PSTK_PASSTHROUGH_NO_GAIN) : written < 0 ? written : 1;
}

/* Encode a file. Nearly every file is rebuilt by its Huffman tables, with ones as padding bits. So
 * try that first; the check of the field shows whether it holds. */
static int encode(struct pstk__planes_encoder *encoder, const void *data, uint64_t size,
                  int exact_only, struct pstk__planes_file *out, struct pstk_error *err)
{
    struct pstk__jpeg_image image;
    int rc = read_file(encoder, data, size, &image, err);
    if (rc != 0)
        return rc < 0 ? rc : keep(out, (uint32_t)rc);
    image.rebuild = PSTK__JPEG_REBUILD_SCANS;
    image.parameters = 0;
    *out = (struct pstk__planes_file){.plain = data, .plain_size = size};
    const size_t mark = encoder->arena.used;
    rc = write_planes(encoder, &image, size, out, err);
    if (rc == NOT_SMALLER)
        return keep(out, PSTK_PASSTHROUGH_NO_GAIN);
    if (rc != GIVES_OTHER)
        return rc;
    pstk__arena_reset(&encoder->arena, mark);
    return encode_otherwise(encoder, data, size, exact_only, &image, out, err);
}

/* Compute the memory for encoding an image of these sides: taking its file apart and rebuilding it,
 * perhaps twice, writing the planes and decoding them. EBADMSG, ENOTSUP, EFBIG. */
static int measure(const void *data, uint64_t size, uint64_t *memory)
{
    struct pstk__jpeg_header h;
    const int rc = size < 1 ? PSTK_EBADMSG : pstk__jpeg_header_read(&h, data, size, NULL);
    if (rc < 0)
        return rc;
    if ((uint64_t)h.width * h.height > PSTK__MAX_PIXELS)
        return PSTK_EFBIG;
    struct pstk__jpeg_frame f = frame_of(h.width, h.height, h.n_components);
    for (uint32_t c = 0; c < f.n_components; c++)
        f.component[c].h = f.component[c].v = 4; /* the longest strip that one MCU row can be */
    pstk__jpeg_frame_layout(&f);
    const uint64_t coefficients = coefficients_size(h.width, h.height, UINT64_MAX, h.n_components);
    /* A rebuilt file has at most the bytes of its coefficients (4 each, and stuffing) and its
     * skeleton. */
    const uint64_t rebuilt = 4 * coefficients + 4 * size + 65536;
    *memory = 2 * (pstk__jpeg_image_scratch(&f, rebuilt) + coefficients + rebuilt) +
              pstk__planes_write_scratch(&f) + 3 * size + 65536 +
              pstk__planes_decode_scratch(h.width, h.height, UINT64_MAX, rebuilt);
    return 0;
}

int pstk__planes_encode(struct pstk__planes_encoder *encoder, const void *data, uint64_t size,
                        int exact_only, struct pstk__planes_file *out, struct pstk_error *err)
{
    uint64_t memory = 0;
    *out = (struct pstk__planes_file){0};
    int rc = measure(data, size, &memory);
    if (rc < 0)
        return keep(out, reason_of(rc));
    rc = reserve(encoder, memory, err);
    return rc < 0 ? rc : encode(encoder, data, size, exact_only, out, err);
}
