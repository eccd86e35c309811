/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block_rows: the coefficients of a JPEG, as libjpeg reads them, and a source that gives them as
 * packed rows of blocks, for the tests of what lies behind it. Every row is packed anew, into
 * memory of exactly its size: a sanitizer sees what is read beyond it or after its time.
 */
#ifndef PSTK_TEST_BLOCK_ROWS_H
#define PSTK_TEST_BLOCK_ROWS_H

#include "base/error.h"
#include "image/jpeg/backend.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <jpeglib.h>

struct block_rows {
    struct pstk__jpeg_frame frame;
    /* rows * stride blocks of 64 coefficients a component, natural order */
    int16_t *blocks[PSTK__JPEG_MAX_COMPONENTS];

    /* the row that was given last, by component; NULL before the first */
    struct pstk__block_row given[PSTK__JPEG_MAX_COMPONENTS];
    uint32_t row[PSTK__JPEG_MAX_COMPONENTS], first[PSTK__JPEG_MAX_COMPONENTS];
    uint32_t n_calls;
    uint32_t n_misused; /* calls that backend.h rules out */
    uint32_t fail_at;   /* the call, from 1, that fails with EBADMSG; 0 none */
};

/* ---- reading -------------------------------------------------------------------------------- */

struct block_errors {
    struct jpeg_error_mgr pub; /* first: libjpeg gives back a pointer to it */
    jmp_buf escape;
};

static void block_error_exit(j_common_ptr c)
{
    struct block_errors *e = (struct block_errors *)(void *)c->err;
    longjmp(e->escape, 1);
}

static void block_error_silent(j_common_ptr c)
{
    (void)c;
}

static uint32_t block_color(int jpeg_color_space)
{
    switch (jpeg_color_space) {
    case JCS_GRAYSCALE:
        return PSTK__JPEG_GRAY;
    case JCS_YCbCr:
        return PSTK__JPEG_YCC;
    case JCS_RGB:
        return PSTK__JPEG_RGB;
    case JCS_CMYK:
        return PSTK__JPEG_CMYK;
    case JCS_YCCK:
        return PSTK__JPEG_YCCK;
    default:
        return 0;
    }
}

static void block_rows_frame(struct pstk__jpeg_frame *f, j_decompress_ptr c)
{
    *f = (struct pstk__jpeg_frame){.width = c->image_width,
                                   .height = c->image_height,
                                   .n_components = (uint32_t)c->num_components,
                                   .color = block_color(c->jpeg_color_space)};
    for (uint32_t i = 0; i < f->n_components; i++) {
        const jpeg_component_info *info = &c->comp_info[i];
        struct pstk__jpeg_component *to = &f->component[i];
        to->id = (uint8_t)info->component_id;
        to->h = (uint8_t)info->h_samp_factor;
        to->v = (uint8_t)info->v_samp_factor;
        memcpy(to->quant, info->quant_table->quantval, sizeof to->quant);
    }
    pstk__jpeg_frame_layout(f);
}

static void block_rows_read(struct block_rows *b, j_decompress_ptr c)
{
    jvirt_barray_ptr *arrays = jpeg_read_coefficients(c);
    block_rows_frame(&b->frame, c);
    for (uint32_t i = 0; i < b->frame.n_components; i++) {
        const struct pstk__jpeg_component *k = &b->frame.component[i];
        const size_t row_size = (size_t)k->stride * sizeof(JBLOCK);
        b->blocks[i] = calloc(k->rows, row_size);
        if (b->blocks[i] == NULL || c->comp_info[i].width_in_blocks != k->across ||
            c->comp_info[i].height_in_blocks != k->down)
            c->err->error_exit((j_common_ptr)c);
        for (uint32_t y = 0; y < k->down; y++) {
            JBLOCKARRAY row = c->mem->access_virt_barray((j_common_ptr)c, arrays[i], y, 1, FALSE);
            memcpy(b->blocks[i] + (size_t)y * k->stride * 64, row[0],
                   (size_t)k->across * sizeof(JBLOCK));
        }
    }
}

static int block_rows_guarded(struct block_rows *b, j_decompress_ptr c, const uint8_t *file,
                              size_t size, struct block_errors *errors)
{
    if (setjmp(errors->escape))
        return -1;
    jpeg_create_decompress(c);
    jpeg_mem_src(c, file, size);
    jpeg_read_header(c, TRUE);
    block_rows_read(b, c);
    return errors->pub.num_warnings ? -1 : 0;
}

static void block_rows_close(struct block_rows *b);

/* Read a file. 0, or -1 when libjpeg has anything against it. */
static int block_rows_open(struct block_rows *b, const uint8_t *file, size_t size)
{
    struct jpeg_decompress_struct c;
    struct block_errors errors;
    *b = (struct block_rows){.n_calls = 0};
    memset(&c, 0, sizeof c);
    c.err = jpeg_std_error(&errors.pub);
    errors.pub.error_exit = block_error_exit;
    errors.pub.output_message = block_error_silent;
    const int r = block_rows_guarded(b, &c, file, size, &errors);
    jpeg_destroy_decompress(&c);
    if (r < 0)
        block_rows_close(b);
    return r;
}

/* ---- giving --------------------------------------------------------------------------------- */

static void block_row_free(struct pstk__block_row *r)
{
    free((void *)(uintptr_t)r->maps);
    free((void *)(uintptr_t)r->dc);
    free((void *)(uintptr_t)r->values);
    free((void *)(uintptr_t)r->wide);
    *r = (struct pstk__block_row){.n_blocks = 0};
}

static void block_rows_close(struct block_rows *b)
{
    for (int i = 0; i < PSTK__JPEG_MAX_COMPONENTS; i++) {
        free(b->blocks[i]);
        block_row_free(&b->given[i]);
    }
    *b = (struct block_rows){.n_calls = 0};
}

/* Begin with the next box. */
__attribute__((unused)) static void block_rows_rewind(struct block_rows *b)
{
    for (int i = 0; i < PSTK__JPEG_MAX_COMPONENTS; i++)
        block_row_free(&b->given[i]);
    b->n_calls = 0;
}

/* Zigzag place to natural place, walked: up and to the right, then down and to the left. */
static void block_rows_zigzag(uint8_t natural[64])
{
    for (uint8_t z = 0, x = 0, y = 0; z < 64; z++) {
        natural[z] = (uint8_t)(8 * y + x);
        if ((x + y) % 2 == 0) {
            y = (uint8_t)(x == 7 ? y + 1 : y - (y > 0));
            x = (uint8_t)(x + (x < 7));
        } else {
            x = (uint8_t)(y == 7 ? x + 1 : x - (x > 0));
            y = (uint8_t)(y + (y < 7));
        }
    }
}

/* Pack n blocks. Memory of the row's own. 0, or -1 without memory. */
static int block_row_pack(struct pstk__block_row *row, const int16_t *blocks, uint32_t n)
{
    uint8_t natural[64];
    uint64_t *maps = calloc(n, sizeof *maps);
    int16_t *dc = malloc(n * sizeof *dc);
    int8_t *values = malloc((size_t)n * 63 + 64);
    int16_t *wide = malloc((size_t)n * 63 * sizeof *wide + 1);
    size_t n_values = 0, n_wide = 0;
    *row = (struct pstk__block_row){maps, dc, values, wide, n};
    if (maps == NULL || dc == NULL || values == NULL || wide == NULL)
        return -1;
    block_rows_zigzag(natural);
    for (uint32_t i = 0; i < n; i++, blocks += 64) {
        dc[i] = blocks[0];
        for (int z = 1; z < 64; z++) {
            const int16_t v = blocks[natural[z]];
            const int is_wide = v < -127 || v > 127;
            if (v == 0)
                continue;
            maps[i] |= 1ull << z;
            values[n_values++] = (int8_t)(is_wide ? -128 : v);
            if (is_wide)
                wide[n_wide++] = v;
        }
    }
    memset(values + n_values, 0x80, 64);
    values = realloc(values, n_values + 64);
    wide = realloc(wide, n_wide * sizeof *wide + 1);
    row->values = values;
    row->wide = wide;
    return values == NULL || wide == NULL ? -1 : 0;
}

static int block_rows_give(void *user, uint32_t component, uint32_t row, uint32_t first, uint32_t n,
                           struct pstk__block_row *out, struct pstk_error *err)
{
    struct block_rows *b = user;
    const struct pstk__jpeg_component *c = &b->frame.component[component];
    struct pstk__block_row *given = &b->given[component];
    b->n_calls++;
    if (b->n_calls == b->fail_at)
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_DECODE, "row %u fails", row);
    const int is_first = given->maps == NULL;
    if (component >= b->frame.n_components || row >= c->down || n == 0 || first >= c->across ||
        n > c->across - first ||
        (!is_first &&
         (row < b->row[component] || first != b->first[component] || n != given->n_blocks))) {
        b->n_misused++;
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_DECODE, "misused");
    }
    block_row_free(given);
    b->row[component] = row;
    b->first[component] = first;
    if (block_row_pack(given, b->blocks[component] + ((size_t)row * c->stride + first) * 64, n) < 0)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_DECODE, "no memory");
    *out = *given;
    return 0;
}

/* The source; borrows b. Rewind between boxes. */
__attribute__((unused)) static struct pstk__block_source block_rows_source(struct block_rows *b)
{
    return (struct pstk__block_source){.row = block_rows_give, .user = b};
}

#endif
