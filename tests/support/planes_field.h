/* SPDX-License-Identifier: Apache-2.0 */
/*
 * planes_field: images of random coefficients, and their fields as planes, for the tests of what
 * reads and writes those. Memory of exactly the size that is promised: a sanitizer sees a read or a
 * write beyond it.
 */
#ifndef PSTK_TEST_PLANES_FIELD_H
#define PSTK_TEST_PLANES_FIELD_H

#include "image/jpeg/zigzag.h"
#include "support/exact_arena.h"
#include "image/jpeg/coefficients.h"
#include "image/planes/read.h"
#include "image/planes/write.h"

#include <penstock/penstock.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Coefficients of an image. */
enum field_kind {
    FIELD_ZERO,   /* none */
    FIELD_PHOTO,  /* as photographs have them */
    FIELD_SMALL,  /* dense, in a byte; around the escape, too */
    FIELD_WIDE,   /* all outside a byte */
    FIELD_WILD,   /* any 16 bits, the extremes often */
    FIELD_RARE,   /* many equal, a few that no other is like */
    N_FIELD_KINDS /* kinds */
};

struct field_spec {
    uint32_t width, height;
    uint32_t color; /* enum pstk__jpeg_color */
    uint8_t h[4], v[4];
    uint32_t kind; /* enum field_kind */
};

static uint64_t field_state = 88172645463325252ull;

/* Lanes of the coder that fields are written with; 0: the writer chooses. */
static uint32_t field_lanes;

/* 1: fields may be written with built-in tables. */
static uint32_t field_has_sets;

static struct pstk__planes_set *field_sets(void)
{
    static struct pstk__planes_set sets[PSTK__PLANES_N_SETS];
    if (sets[0].cost[0][0] == 0)
        pstk__planes_sets_init(sets);
    return field_has_sets ? sets : NULL;
}

static uint32_t field_draw(uint32_t below)
{
    field_state ^= field_state << 13;
    field_state ^= field_state >> 7;
    field_state ^= field_state << 17;
    return (uint32_t)(field_state >> 33) % below;
}

static uint32_t field_components(uint32_t color)
{
    return color == PSTK__JPEG_GRAY                             ? 1
           : color == PSTK__JPEG_YCC || color == PSTK__JPEG_RGB ? 3
                                                                : 4;
}

/* Any, of up to these sides. */
__attribute__((unused)) static struct field_spec field_draw_spec(uint32_t max_width,
                                                                 uint32_t max_height)
{
    struct field_spec s = {.width = 1 + field_draw(max_width),
                           .height = 1 + field_draw(max_height)};
    s.color = PSTK__JPEG_GRAY + field_draw(5);
    s.kind = field_draw(N_FIELD_KINDS);
    for (int c = 0; c < 4; c++) {
        s.h[c] = (uint8_t)(1 + field_draw(4));
        s.v[c] = (uint8_t)(1 + field_draw(4));
    }
    return s;
}

/* ---- images --------------------------------------------------------------------------------- */

static int16_t field_wild(void)
{
    static const int16_t corner[] = {-32768, -32767, 32767, -129, -128, -127, 127, 128, 129, 255};
    return field_draw(2) ? corner[field_draw(sizeof corner / sizeof *corner)]
                         : (int16_t)(uint16_t)field_draw(65536);
}

static int16_t field_value(uint32_t kind, uint32_t k)
{
    const int16_t sign = field_draw(2) ? 1 : -1;
    switch (kind) {
    case FIELD_PHOTO:
        return field_draw(4 + k / 2) ? 0
                                     : (int16_t)(sign * (int)(1 + field_draw(1 + 40 / (k + 1))));
    case FIELD_SMALL:
        return (int16_t)(sign * (int)(field_draw(8) ? field_draw(20) : 124 + field_draw(8)));
    case FIELD_WIDE:
        return (int16_t)(sign * (int)(128 + field_draw(2000)));
    case FIELD_WILD:
        return field_draw(3) ? 0 : field_wild();
    case FIELD_RARE:
        return field_draw(3000) ? (int16_t)(field_draw(3) == 0)
                                : (int16_t)(sign * (int)field_draw(128));
    default:
        return 0;
    }
}

static void field_fill(struct pstk__jpeg_image *image, uint32_t kind)
{
    for (uint32_t c = 0; c < image->frame.n_components; c++) {
        const struct pstk__jpeg_component *k = &image->frame.component[c];
        int16_t *block = image->blocks[c];
        for (size_t n = (size_t)k->rows * k->stride; n > 0; n--, block += 64) {
            const uint32_t last = kind == FIELD_WIDE || kind == FIELD_RARE ? 63 : field_draw(64);
            for (uint32_t z = 0; z <= last; z++)
                block[pstk__zigzag[z]] = field_value(kind, z);
            if (kind == FIELD_PHOTO)
                block[0] = (int16_t)((int)field_draw(400) - 200);
        }
    }
}

/* An image of random coefficients and tables. Close it. */
static void field_image(struct pstk__jpeg_image *image, const struct field_spec *s)
{
    struct pstk__jpeg_frame *f = &image->frame;
    *image = (struct pstk__jpeg_image){.orientation = 1 + field_draw(8),
                                       .skeleton_size = field_draw(1000),
                                       .rebuild = 1 + field_draw(2),
                                       .parameters = field_draw(1u << 31)};
    f->width = s->width;
    f->height = s->height;
    f->color = s->color;
    f->n_components = field_components(s->color);
    for (uint32_t c = 0; c < f->n_components; c++) {
        struct pstk__jpeg_component *k = &f->component[c];
        const uint32_t same = field_draw(c + 1), most = field_draw(2) ? 255 : 65535;
        k->id = (uint8_t)field_draw(256);
        k->h = s->h[c];
        k->v = s->v[c];
        for (uint32_t i = 0; i < 64; i++)
            k->quant[i] = same < c ? f->component[same].quant[i] : (uint16_t)(1 + field_draw(most));
    }
    pstk__jpeg_frame_layout(f);
    for (uint32_t c = 0; c < f->n_components; c++) {
        image->blocks[c] = calloc((size_t)f->component[c].rows * f->component[c].stride, 128);
        if (image->blocks[c] == NULL)
            abort();
    }
    field_fill(image, s->kind);
}

static void field_image_close(struct pstk__jpeg_image *image)
{
    for (uint32_t c = 0; c < PSTK__JPEG_MAX_COMPONENTS; c++)
        free(image->blocks[c]);
    *image = (struct pstk__jpeg_image){.skeleton = NULL};
}

/* ---- fields --------------------------------------------------------------------------------- */

/* Write an image to out[0, capacity) with a skeleton of this size, within exactly the promised
 * scratch. What pstk__planes_write returned. */
static int64_t field_write_to(const struct pstk__jpeg_image *image, uint32_t skeleton_size,
                              uint8_t *out, uint64_t capacity, int fill)
{
    uint8_t skeleton[256];
    static struct pstk__arena arena;
    const struct pstk__planes_source source = {.n_lanes = field_lanes,
                                               .sets = field_sets(),
                                               .image = image,
                                               .skeleton = skeleton,
                                               .skeleton_size = skeleton_size};
    for (uint32_t i = 0; i < skeleton_size; i++)
        skeleton[i] = (uint8_t)(i * 7 + 1);
    exact_arena_open(&arena, pstk__planes_write_scratch(&image->frame), fill);
    const int64_t size = pstk__planes_write(&source, out, capacity, &arena, NULL);
    if (arena.used != 0)
        abort();
    return size;
}

/* More bytes than an image's field can take: 200 symbols of at most 16 bits a block (write.c), two
 * bytes for each; strips' states and sizes, and the head. */
static uint64_t field_bound(const struct pstk__jpeg_frame *f)
{
    uint64_t blocks = 0;
    for (uint32_t c = 0; c < f->n_components; c++)
        blocks += (uint64_t)f->component[c].rows * f->component[c].stride;
    return 400 * blocks + 300ull * pstk__planes_mcu_rows(f) + 20000;
}

/* Return an image's field, in memory of its size, to be freed. NULL: it cannot be written. */
static uint8_t *field_write(const struct pstk__jpeg_image *image, uint32_t skeleton_size,
                            uint64_t *size)
{
    const uint64_t bound = field_bound(&image->frame);
    uint8_t *room = malloc(bound), *field = NULL;
    const int64_t n = room ? field_write_to(image, skeleton_size, room, bound, 0xa5) : -1;
    *size = n > 0 ? (uint64_t)n : 0;
    if (n > 0)
        field = malloc(*size);
    if (field != NULL)
        memcpy(field, room, *size);
    free(room);
    return field;
}

/* ---- readers -------------------------------------------------------------------------------- */

/* A field that is read by an ISA, within exactly the promised scratch. Static: all zeros before
 * the first open; the arena stays mapped for the next. */
struct field_reader {
    struct pstk__arena arena;
    struct pstk__planes_reader planes;
    struct pstk__planes_tables tables;
    int16_t *blocks[PSTK__JPEG_MAX_COMPONENTS];
};

/* Open; the size that the record says is given. Close it in any case. */
static int field_open(struct field_reader *r, const uint8_t *field, uint64_t size, uint32_t width,
                      uint32_t height, uint32_t isa, struct pstk_error *err)
{
    const struct pstk__image_info info = {.width = width, .height = height};
    memset(&r->planes, 0xa5, sizeof r->planes);
    exact_arena_open(&r->arena, pstk__planes_read_scratch(width, height), 0xa5);
    r->tables.kernels = pstk__planes_kernels(isa);
    return pstk__planes_open(&r->planes, field, size, &info, &r->tables, &r->arena, err);
}

/* All coefficients of an opened field, in memory of their size. */
static int field_expand(struct field_reader *r, struct pstk_error *err)
{
    const struct pstk__jpeg_frame *f = &r->planes.header.frame;
    for (uint32_t c = 0; c < f->n_components; c++) {
        const size_t size = (size_t)128 * f->component[c].rows * f->component[c].stride;
        r->blocks[c] = malloc(size);
        if (r->blocks[c] == NULL)
            abort();
        memset(r->blocks[c], 0xa5, size);
    }
    return pstk__planes_expand(&r->planes, r->blocks, err);
}

static void field_close(struct field_reader *r)
{
    for (uint32_t c = 0; c < PSTK__JPEG_MAX_COMPONENTS; c++) {
        free(r->blocks[c]);
        r->blocks[c] = NULL;
    }
}

/* Return whether the coefficients are those. */
static int field_has(const struct field_reader *r, int16_t *const blocks[4])
{
    const struct pstk__jpeg_frame *f = &r->planes.header.frame;
    int same = 1;
    for (uint32_t c = 0; c < f->n_components && same; c++)
        same = memcmp(r->blocks[c], blocks[c],
                      (size_t)128 * f->component[c].rows * f->component[c].stride) == 0;
    return same;
}

/* ---- an image and its field ------------------------------------------------------------------ */

/* And where things lie in it. */
struct field_subject {
    struct pstk__jpeg_image image;
    uint8_t *field;
    uint64_t size;
    struct pstk__planes_header header;
};

__attribute__((unused)) static int field_subject_open(struct field_subject *s,
                                                      const struct field_spec *spec)
{
    field_image(&s->image, spec);
    s->field = field_write(&s->image, 20, &s->size);
    return s->field ? pstk__planes_header_read(&s->header, s->field, s->size, NULL) : -1;
}

__attribute__((unused)) static void field_subject_close(struct field_subject *s)
{
    field_image_close(&s->image);
    free(s->field);
}

#endif
