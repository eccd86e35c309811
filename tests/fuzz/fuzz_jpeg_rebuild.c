/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_jpeg_rebuild: a JPEG file to coefficients and back. Bytes that begin like a file are one:
 * what our own reader takes is what libjpeg reads, what is read can be rebuilt, and what was told
 * to be exact is. Other bytes are a damaged record: eight that say how to rebuild, what
 * coefficients there are and how much room, then a skeleton. No input may crash, hang, write past
 * the output, leave the arena used, need more than the stated scratch, or fail with a code outside
 * the contract.
 */
#include "image/jpeg/choose.h"
#include "image/jpeg/header.h"
#include "image/jpeg/plain.h"
#include "image/jpeg/rebuild.h"
#include "image/jpeg/segment.h"

#include <stdio.h>
#include <jpeglib.h>
#include <stdlib.h>
#include <string.h>

#define MAX_PIXELS 16384u /* 128 x 128: keeps a run short, and large images refused */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int fact)
{
    if (!fact)
        abort();
}

static void open_arena(struct pstk__arena *arena, uint64_t size)
{
    require(pstk__arena_open(arena, (size_t)size) == 0);
}

/* Rebuild into memory of exactly `capacity` bytes; equal to `file` when that is given. */
static void rebuild(const struct pstk__jpeg_image *image, uint64_t capacity, const uint8_t *file,
                    uint64_t file_size)
{
    struct pstk__arena arena;
    struct pstk_error err;
    uint64_t size = 1;
    uint8_t *out = malloc(capacity ? (size_t)capacity : 1);
    require(out != NULL);
    pstk_error_init(&err, sizeof err);
    open_arena(&arena, pstk__jpeg_rebuild_scratch(&image->frame, image->skeleton_size));
    int r = pstk__jpeg_image_rebuild(image, out, capacity, &size, &arena, &err);
    require(r == 0 || r == PSTK_EBADMSG);
    require(r == 0 ? size <= capacity : size == 0 && err.code == r && err.message[0] != 0);
    require(arena.used == 0);
    require(!file || (r == 0 && size == file_size && memcmp(out, file, (size_t)size) == 0));
    pstk__arena_close(&arena);
    free(out);
}

/* ---- a file --------------------------------------------------------------------------------- */

/* The standard file of an image has its coefficients where there are samples. */
static void check_standard(const struct pstk__jpeg_image *image, const uint8_t *file, uint64_t size)
{
    struct pstk__jpeg_image other;
    struct pstk__arena arena;
    open_arena(&arena, pstk__jpeg_image_scratch(&image->frame, size));
    require(pstk__jpeg_image_read(&other, file, size, MAX_PIXELS, &arena, NULL) == 0);
    require(other.frame.color == image->frame.color);
    for (uint32_t i = 0; i < image->frame.n_components; i++) {
        const struct pstk__jpeg_component *a = &image->frame.component[i];
        const struct pstk__jpeg_component *b = &other.frame.component[i];
        require(a->across == b->across && a->down == b->down && a->stride == b->stride);
        require(memcmp(a->quant, b->quant, sizeof a->quant) == 0);
        for (uint32_t y = 0; y < a->down; y++) {
            size_t at = (size_t)y * a->stride * 64;
            require(memcmp(image->blocks[i] + at, other.blocks[i] + at, a->across * 128u) == 0);
        }
    }
    pstk__arena_close(&arena);
}

static void say_nothing(j_common_ptr c)
{
    (void)c;
}

/* Is the file one that our own reader takes? */
static int is_plain(const uint8_t *data, size_t size)
{
    struct pstk__jpeg_plain *plain = malloc(sizeof *plain);
    require(plain != NULL);
    const int is = pstk__jpeg_plain_open(plain, data, size) && pstk__jpeg_plain_check(plain);
    free(plain);
    return is;
}

/* libjpeg reads the same coefficients and tables. It ends the program where it refuses the file. */
static void check_library(const struct pstk__jpeg_image *image, const uint8_t *data, size_t size)
{
    struct jpeg_decompress_struct c = {0};
    struct jpeg_error_mgr errors;
    c.err = jpeg_std_error(&errors);
    errors.output_message = say_nothing;
    jpeg_create_decompress(&c);
    jpeg_mem_src(&c, data, size);
    while (jpeg_read_header(&c, FALSE) == JPEG_HEADER_TABLES_ONLY)
        continue;
    jvirt_barray_ptr *arrays = jpeg_read_coefficients(&c);
    for (uint32_t i = 0; i < image->frame.n_components; i++) {
        const struct pstk__jpeg_component *component = &image->frame.component[i];
        const JQUANT_TBL *quant = c.comp_info[i].quant_table;
        require(!quant || memcmp(component->quant, quant->quantval, sizeof component->quant) == 0);
        for (uint32_t y = 0; y < component->rows; y++) {
            JBLOCKROW row = *c.mem->access_virt_barray((j_common_ptr)&c, arrays[i], y, 1, FALSE);
            const size_t n = (size_t)component->stride * 64;
            require(memcmp(row, image->blocks[i] + y * n, n * sizeof *image->blocks[i]) == 0);
        }
    }
    jpeg_destroy_decompress(&c);
}

static void check_file(const uint8_t *data, size_t size)
{
    struct pstk__jpeg_header header;
    struct pstk__jpeg_image image;
    struct pstk__arena arena;
    struct pstk_error err;
    uint64_t out_size;
    int exact;

    if (pstk__jpeg_header_read(&header, data, size, NULL) < 0 ||
        (uint64_t)header.width * header.height > MAX_PIXELS)
        return;
    const struct pstk__jpeg_frame sides = {
        .width = header.width, .height = header.height, .n_components = header.n_components};
    pstk_error_init(&err, sizeof err);
    open_arena(&arena, pstk__jpeg_image_scratch(&sides, size));
    int r = pstk__jpeg_image_read(&image, data, size, MAX_PIXELS, &arena, &err);
    require(r == 0 || r == PSTK_EBADMSG || r == PSTK_ENOTSUP || r == PSTK_EFBIG);
    require(r == 0 || (err.code == r && err.message[0] != 0));
    if (r == 0) {
        if (is_plain(data, size))
            check_library(&image, data, size);
        uint64_t bound = pstk__jpeg_rebuild_bound(&image);
        uint8_t *out = malloc((size_t)bound);
        require(out != NULL);
        r = pstk__jpeg_image_choose(&image, data, size, out, &out_size, &exact, &arena, &err);
        require(r == 0 || r == PSTK_EBADMSG);
        if (r == 0 && exact)
            rebuild(&image, size, data, size);
        else if (r == 0)
            check_standard(&image, out, out_size);
        free(out);
    }
    pstk__arena_close(&arena);
}

/* ---- a damaged record ----------------------------------------------------------------------- */

/* The frame that the skeleton's own header tells: a record that contradicts it is refused early. */
static int find_frame(struct pstk__jpeg_frame *f, const uint8_t *skeleton, size_t size)
{
    struct pstk__jpeg_walk walk = {.data = skeleton, .size = size};
    struct pstk__jpeg_segment s;
    while (pstk__jpeg_walk_next(&walk, &s)) {
        uint32_t m = s.marker;
        if (!(m >= 0xc0 && m <= 0xc2) && m != 0xc9 && m != 0xca)
            continue;
        if (s.size < 6 || (s.body[5] != 1 && s.body[5] != 3 && s.body[5] != 4) ||
            s.size < 6 + 3u * s.body[5])
            return 0;
        *f = (struct pstk__jpeg_frame){.width = (uint32_t)s.body[3] << 8 | s.body[4],
                                       .height = (uint32_t)s.body[1] << 8 | s.body[2],
                                       .n_components = s.body[5],
                                       .color = PSTK__JPEG_YCC};
        for (uint32_t i = 0; i < f->n_components; i++) {
            f->component[i].id = s.body[6 + 3 * i];
            f->component[i].h = s.body[7 + 3 * i] >> 4;
            f->component[i].v = s.body[7 + 3 * i] & 15;
            if (f->component[i].h < 1 || f->component[i].h > 4 || f->component[i].v < 1 ||
                f->component[i].v > 4)
                return 0;
            for (uint32_t k = 0; k < 64; k++)
                f->component[i].quant[k] = (uint16_t)(1 + k * s.body[8 + 3 * i]);
        }
        pstk__jpeg_frame_layout(f);
        return f->width > 0 && f->height > 0 && (uint64_t)f->width * f->height <= MAX_PIXELS;
    }
    return 0;
}

/* Coefficients of up to 16 bits, more or fewer of them 0. */
static void fill_blocks(int16_t *blocks, size_t n, const uint8_t control[8])
{
    uint32_t state = (uint32_t)control[3] << 8 | control[4] | 1;
    for (size_t i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        uint32_t value = state >> 16;
        int is_zero = (state >> 5 & 0xff) < control[5];
        blocks[i] = is_zero ? 0 : (int16_t)(uint16_t)((int16_t)value >> (control[6] & 15));
    }
}

static void check_record(const uint8_t *data, size_t size)
{
    struct pstk__jpeg_image image = {.rebuild = data[0] & 3, .parameters = data[1] & 3};
    int16_t *blocks[PSTK__JPEG_MAX_COMPONENTS] = {NULL};
    const uint8_t *skeleton = data + 8;
    if (!find_frame(&image.frame, skeleton, size - 8))
        return;
    for (uint32_t i = 0; i < image.frame.n_components; i++) {
        const struct pstk__jpeg_component *c = &image.frame.component[i];
        size_t n = (size_t)c->stride * c->rows * 64;
        blocks[i] = malloc(n * sizeof *blocks[i]);
        require(blocks[i] != NULL);
        fill_blocks(blocks[i], n, data);
        image.blocks[i] = blocks[i];
    }
    image.skeleton = malloc(size - 8 + 1);
    require(image.skeleton != NULL);
    memcpy(image.skeleton, skeleton, size - 8);
    image.skeleton_size = size - 8;
    rebuild(&image, data[7] == 0 ? pstk__jpeg_rebuild_bound(&image) : (uint64_t)data[7] * 64, NULL,
            0);
    free(image.skeleton);
    for (uint32_t i = 0; i < image.frame.n_components; i++)
        free(blocks[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size >= 3 && memcmp(data, "\xff\xd8\xff", 3) == 0)
        check_file(data, size);
    else if (size > 8)
        check_record(data, size);
    return 0;
}
