/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg_subject: a JPEG file taken apart into coefficients and skeleton and put together again, with
 * memory of exactly the stated sizes, beside what libjpeg reads from it.
 */
#ifndef PSTK_TEST_JPEG_SUBJECT_H
#define PSTK_TEST_JPEG_SUBJECT_H

#include "base/arena.h"
#include "image/image.h"
#include "image/jpeg/choose.h"
#include "image/jpeg/rebuild.h"
#include "support/jpeg_writer.h"

/* ---- one file, taken apart and put together ------------------------------------------------- */

struct subject {
    const uint8_t *file;
    size_t size;
    struct pstk__arena arena;
    struct pstk__jpeg_image image;
    uint8_t *out; /* output of choose, to be freed */
    uint64_t out_size;
    int exact;
    struct pstk_error err;
};

static void subject_close(struct subject *s)
{
    free(s->out);
    pstk__arena_close(&s->arena);
    *s = (struct subject){0};
}

/* Arena for the file by the stated bound, and what is in it made visible. */
static int subject_open(struct subject *s, const uint8_t *file, size_t size)
{
    struct pstk__image_info info;
    *s = (struct subject){.file = file, .size = size};
    pstk_error_init(&s->err, sizeof s->err);
    if (pstk__image_probe(file, size, PSTK__MAX_PIXELS, &info, &s->err) < 0)
        return s->err.code;
    struct pstk__jpeg_frame frame = {.width = info.width, .height = info.height, .n_components = 4};
    size_t scratch = (size_t)pstk__jpeg_image_scratch(&frame, size);
    if (pstk__arena_open(&s->arena, scratch) < 0)
        return -1;
    size_t n = scratch < 1u << 17 ? scratch : 1u << 17;
    void *p = pstk__arena_get(&s->arena, n);
    if (p)
        memset(p, 0xa5, n);
    pstk__arena_reset(&s->arena, 0);
    return 0;
}

static int read_subject(struct subject *s)
{
    pstk__arena_reset(&s->arena, 0);
    return pstk__jpeg_image_read(&s->image, s->file, s->size, PSTK__MAX_PIXELS, &s->arena, &s->err);
}

static int choose_subject(struct subject *s)
{
    free(s->out);
    s->out = malloc((size_t)pstk__jpeg_rebuild_bound(&s->image));
    if (!s->out)
        return -1;
    return pstk__jpeg_image_choose(&s->image, s->file, s->size, s->out, &s->out_size, &s->exact,
                                   &s->arena, &s->err);
}

/* Rebuild with an arena and an output of exactly the stated sizes. Returns the file, to be freed.
 */
static uint8_t *rebuild(const struct pstk__jpeg_image *image, uint64_t capacity, uint64_t *size,
                        int *result)
{
    struct pstk__arena arena;
    struct pstk_error err;
    uint64_t scratch = pstk__jpeg_rebuild_scratch(&image->frame, image->skeleton_size);
    uint8_t *out = malloc((size_t)capacity + 1);
    pstk_error_init(&err, sizeof err);
    *size = 0;
    *result = -1;
    if (!out || pstk__arena_open(&arena, (size_t)scratch) < 0)
        return out;
    *result = pstk__jpeg_image_rebuild(image, out, capacity, size, &arena, &err);
    if (arena.used != 0 || (*result < 0 && (*size != 0 || err.code != *result)))
        *result = -1;
    pstk__arena_close(&arena);
    return out;
}

/* ---- libjpeg as the reference --------------------------------------------------------------- */

struct reference {
    struct jpeg_decompress_struct c;
    struct jpeg_error_mgr errors;
    jvirt_barray_ptr *arrays;
};

static void say_nothing(j_common_ptr c)
{
    (void)c;
}

static void reference_open(struct reference *r, const uint8_t *file, size_t size)
{
    memset(r, 0, sizeof *r);
    r->c.err = jpeg_std_error(&r->errors);
    r->errors.output_message = say_nothing;
    jpeg_create_decompress(&r->c);
    jpeg_mem_src(&r->c, file, size);
    while (jpeg_read_header(&r->c, FALSE) == JPEG_HEADER_TABLES_ONLY)
        continue;
    r->arrays = jpeg_read_coefficients(&r->c);
}

/* Blocks that differ from libjpeg's; all of them, or those that hold samples. */
static uint32_t n_other_blocks(struct reference *r, const struct pstk__jpeg_image *image, int all)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < image->frame.n_components; i++) {
        const struct pstk__jpeg_component *c = &image->frame.component[i];
        uint32_t across = all ? c->stride : c->across, down = all ? c->rows : c->down;
        for (uint32_t y = 0; y < down; y++) {
            JBLOCKROW row =
                *r->c.mem->access_virt_barray((j_common_ptr)&r->c, r->arrays[i], y, 1, FALSE);
            for (uint32_t x = 0; x < across; x++)
                n += memcmp(row[x], image->blocks[i] + ((size_t)y * c->stride + x) * 64,
                            sizeof(JBLOCK)) != 0;
        }
    }
    return n;
}

static int is_frame_of(const struct pstk__jpeg_frame *f, const struct jpeg_decompress_struct *c)
{
    static const J_COLOR_SPACE spaces[] = {
        [PSTK__JPEG_GRAY] = JCS_GRAYSCALE, [PSTK__JPEG_YCC] = JCS_YCbCr, [PSTK__JPEG_RGB] = JCS_RGB,
        [PSTK__JPEG_CMYK] = JCS_CMYK,      [PSTK__JPEG_YCCK] = JCS_YCCK,
    };
    if (f->width != c->image_width || f->height != c->image_height ||
        f->n_components != (uint32_t)c->num_components || f->color > PSTK__JPEG_YCCK ||
        spaces[f->color] != c->jpeg_color_space)
        return 0;
    for (uint32_t i = 0; i < f->n_components; i++) {
        const struct pstk__jpeg_component *a = &f->component[i];
        const jpeg_component_info *b = &c->comp_info[i];
        if (a->id != b->component_id || a->h != b->h_samp_factor || a->v != b->v_samp_factor ||
            a->across != b->width_in_blocks || a->down != b->height_in_blocks ||
            (b->quant_table && memcmp(a->quant, b->quant_table->quantval, sizeof a->quant) != 0))
            return 0;
    }
    return 1;
}

/* Is the image what libjpeg reads from a file? */
static int is_image_of(const struct pstk__jpeg_image *image, const uint8_t *file, size_t size,
                       int all_blocks)
{
    struct reference r;
    reference_open(&r, file, size);
    int is = is_frame_of(&image->frame, &r.c) && n_other_blocks(&r, image, all_blocks) == 0;
    jpeg_destroy_decompress(&r.c);
    return is;
}

/* Return all rows as libjpeg gives them, to be freed; one datastream of tables may stand before. */
static uint8_t *pixels_of(const uint8_t *file, size_t size, size_t *n)
{
    struct jpeg_decompress_struct c;
    struct jpeg_error_mgr errors;
    memset(&c, 0, sizeof c);
    c.err = jpeg_std_error(&errors);
    errors.output_message = say_nothing;
    jpeg_create_decompress(&c);
    jpeg_mem_src(&c, file, size);
    while (jpeg_read_header(&c, FALSE) == JPEG_HEADER_TABLES_ONLY)
        continue;
    jpeg_start_decompress(&c);
    size_t stride = (size_t)c.output_width * (size_t)c.output_components;
    uint8_t *pixels = malloc(stride * c.output_height);
    while (pixels && c.output_scanline < c.output_height) {
        uint8_t *row = pixels + c.output_scanline * stride;
        jpeg_read_scanlines(&c, &row, 1);
    }
    *n = stride * c.output_height;
    jpeg_destroy_decompress(&c);
    return pixels;
}

static int has_same_pixels(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size)
{
    size_t n, m;
    uint8_t *one = pixels_of(a, a_size, &n), *other = pixels_of(b, b_size, &m);
    int is = one && other && n == m && memcmp(one, other, n) == 0;
    free(one);
    free(other);
    return is;
}

/* ---- what must hold of a file --------------------------------------------------------------- */

/* Rebuilding with an output of just the file's size, or a byte less. */
static int is_rebuilt(const struct subject *s)
{
    uint64_t size;
    int r, r2;
    uint8_t *out = rebuild(&s->image, s->size, &size, &r);
    int is = r == 0 && size == s->size && memcmp(out, s->file, s->size) == 0;
    free(out);
    out = rebuild(&s->image, s->size - 1, &size, &r2);
    free(out);
    return is && r2 == PSTK_EBADMSG;
}

/* The standard file of the image has its pixels and coefficients, and can itself be rebuilt. */
static int has_standard(const struct subject *s)
{
    struct pstk__jpeg_image image = s->image;
    struct subject other;
    uint64_t size;
    int r;
    image.rebuild = PSTK__JPEG_REBUILD_STANDARD;
    image.parameters = 0;
    uint8_t *file = rebuild(&image, pstk__jpeg_rebuild_bound(&image), &size, &r);
    if (r < 0)
        return 0;
    int is = is_image_of(&image, file, (size_t)size, 0);
    is = is && (image.smoothed || has_same_pixels(s->file, s->size, file, (size_t)size));
    is = is && subject_open(&other, file, (size_t)size) == 0 && read_subject(&other) == 0 &&
         choose_subject(&other) == 0 && other.exact &&
         other.image.rebuild == PSTK__JPEG_REBUILD_SCANS;
    subject_close(&other);
    free(file);
    return is;
}

/* ---- files being put together --------------------------------------------------------------- */

static const struct jpeg_spec plain = {
    .width = 75, .height = 61, .n_components = 3, .h = 2, .v = 2, .interleaved = 1};

/* A file being put together. */
struct bytes {
    uint8_t *data;
    size_t size;
};

static void append(struct bytes *b, const void *data, size_t size)
{
    b->data = realloc(b->data, b->size + size + 1);
    memcpy(b->data + b->size, data, size);
    b->size += size;
}

/* The first place at or behind `at` of a marker. */
static size_t find_marker(const uint8_t *file, size_t size, size_t at, uint8_t marker)
{
    for (; at + 1 < size; at++)
        if (file[at] == 0xff && file[at + 1] == marker)
            return at;
    return size;
}

/* The file with bytes put in before the first `marker`. */
static struct bytes insert(const uint8_t *file, size_t size, uint8_t marker, const void *data,
                           size_t n)
{
    struct bytes b = {0};
    size_t at = find_marker(file, size, 2, marker);
    append(&b, file, at);
    append(&b, data, n);
    append(&b, file + at, size - at);
    return b;
}

static const char exif[] = "\xff\xe1\x00\x22"
                           "Exif\0\0II\x2a\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0"
                           "\0\0\0\0";
static const char comment[] = "\xff\xfe\x00\x07hello";
static const char profile[] = "\xff\xe2\x00\x14ICC_PROFILE\0\x01\x01zzzz";

#endif
