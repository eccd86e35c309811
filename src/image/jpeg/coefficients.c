/* SPDX-License-Identifier: Apache-2.0 */
#include "image/jpeg/coefficients.h"

#include "base/error.h"
#include "image/decoder.h"
#include "image/jpeg/header.h"
#include "image/jpeg/library.h"
#include "image/jpeg/plain.h"
#include "image/jpeg/segment.h"

#include <string.h>

_Static_assert(sizeof(JBLOCK) == 128, "libjpeg's coefficients are ours");

/* A file being read. */
struct reader {
    struct pstk__jpeg_guard guard; /* first: libjpeg's callbacks find the reader through it */
    struct jpeg_decompress_struct cinfo;
    void (*count_scans)(j_common_ptr cinfo); /* the guard's progress monitor */
    const struct pstk__jpeg_header *header;
    struct pstk__jpeg_image *image;
    struct pstk__arena *arena;
    const uint8_t *data;
    uint64_t size;
};

/* Accept the end of input after the last row of a file of one scan, as decoding does. */
static void on_progress(j_common_ptr cinfo)
{
    struct reader *reader = cinfo->client_data;
    j_decompress_ptr c = &reader->cinfo;
    reader->count_scans(cinfo);
    if (!jpeg_has_multiple_scans(c) && c->input_iMCU_row >= c->total_iMCU_rows)
        reader->guard.finishing = 1;
}

/* ---- under the guard: 0, or a code with the guard's text written ---------------------------- */

static int refuse(struct reader *reader, int code, const char *why)
{
    snprintf(reader->guard.text, sizeof reader->guard.text, "%s", why);
    return code;
}

static uint32_t color_of(J_COLOR_SPACE space)
{
    switch (space) {
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

static int read_frame(struct reader *reader)
{
    const struct jpeg_decompress_struct *cinfo = &reader->cinfo;
    struct pstk__jpeg_frame *f = &reader->image->frame;

    f->width = cinfo->image_width;
    f->height = cinfo->image_height;
    f->n_components = (uint32_t)cinfo->num_components;
    f->color = color_of(cinfo->jpeg_color_space);
    if (f->width != reader->header->width || f->height != reader->header->height ||
        f->n_components != reader->header->n_components)
        return refuse(reader, PSTK_EBADMSG, "the frame header differs from the first one found");
    if (f->color == 0 || f->n_components > PSTK__JPEG_MAX_COMPONENTS)
        return refuse(reader, PSTK_ENOTSUP, "colours of an unknown kind are not supported");
    for (uint32_t i = 0; i < f->n_components; i++) {
        f->component[i].id = (uint8_t)cinfo->comp_info[i].component_id;
        f->component[i].h = (uint8_t)cinfo->comp_info[i].h_samp_factor;
        f->component[i].v = (uint8_t)cinfo->comp_info[i].v_samp_factor;
    }
    pstk__jpeg_frame_layout(f);
    for (uint32_t i = 0; i < f->n_components; i++)
        if (f->max_h % f->component[i].h != 0 || f->max_v % f->component[i].v != 0)
            return refuse(reader, PSTK_ENOTSUP, "fractional sampling is not supported");
    return 0;
}

static void copy_quant(struct pstk__jpeg_component *component, const JQUANT_TBL *table)
{
    for (uint32_t k = 0; k < 64; k++)
        component->quant[k] = table ? table->quantval[k] : 1;
}

/* Copy the tables that libjpeg saved when each component's first scan began. A component without a
 * scan has no table, and no coefficients that a table could change. */
static void read_quant(struct reader *reader)
{
    for (uint32_t i = 0; i < reader->image->frame.n_components; i++)
        copy_quant(&reader->image->frame.component[i], reader->cinfo.comp_info[i].quant_table);
}

/* Read the coefficients by our own reader. Returns 1: done; 0: the file is not plain, or damaged.
 * The tables are those defined before the one scan. */
static int read_plain(struct reader *reader)
{
    struct pstk__jpeg_frame *f = &reader->image->frame;
    struct pstk__arena *arena = reader->arena;
    const size_t before = arena->used;
    int is_read = 1;
    for (uint32_t i = 0; i < f->n_components; i++) {
        const struct pstk__jpeg_component *component = &f->component[i];
        reader->image->blocks[i] =
            pstk__arena_get(arena, (size_t)component->rows * component->stride * sizeof(JBLOCK));
        is_read = is_read && reader->image->blocks[i];
    }
    const size_t after = arena->used;
    struct pstk__jpeg_plain *plain = pstk__arena_get(arena, sizeof *plain);
    is_read = is_read && plain && pstk__jpeg_plain_open(plain, reader->data, reader->size) &&
              pstk__jpeg_plain_read(plain, reader->image->blocks);
    pstk__arena_reset(arena, is_read ? after : before);
    for (uint32_t i = 0; is_read && i < f->n_components; i++)
        copy_quant(&f->component[i],
                   reader->cinfo.quant_tbl_ptrs[reader->cinfo.comp_info[i].quant_tbl_no]);
    return is_read;
}

static JBLOCKROW row_of(struct reader *reader, jvirt_barray_ptr array, uint32_t row)
{
    j_decompress_ptr cinfo = &reader->cinfo;
    return *cinfo->mem->access_virt_barray((j_common_ptr)cinfo, array, row, 1, FALSE);
}

/* Use the array in place if its rows are contiguous, as our memory manager makes them; otherwise
 * copy. libjpeg rounds the rows of a file with one component up to its sampling factors. */
static int take_blocks(struct reader *reader, uint32_t i, jvirt_barray_ptr array)
{
    const struct pstk__jpeg_component *component = &reader->image->frame.component[i];
    JBLOCKROW first = row_of(reader, array, 0);
    int is_whole = 1;

    for (uint32_t y = 1; is_whole && y < component->rows; y++)
        is_whole = row_of(reader, array, y) == first + (size_t)y * component->stride;
    reader->image->blocks[i] = first[0];
    if (is_whole)
        return 0;
    size_t size = (size_t)component->stride * sizeof(JBLOCK);
    uint8_t *copy = pstk__arena_get(reader->arena, size * component->rows);
    if (!copy)
        return refuse(reader, PSTK_ENOMEM, "no scratch memory for the coefficients");
    for (uint32_t y = 0; y < component->rows; y++)
        memcpy(copy + y * size, row_of(reader, array, y), size);
    reader->image->blocks[i] = (int16_t *)(void *)copy;
    return 0;
}

static int read_file(void *user)
{
    struct reader *reader = user;
    j_decompress_ptr cinfo = &reader->cinfo;
    while (jpeg_read_header(cinfo, FALSE) == JPEG_HEADER_TABLES_ONLY)
        continue;
    int result = read_frame(reader);
    if (result < 0 || read_plain(reader))
        return result;
    jvirt_barray_ptr *arrays = jpeg_read_coefficients(cinfo);
    if (!arrays) { /* the input ended at a position where it may end */
        cinfo->unread_marker = JPEG_EOI;
        arrays = jpeg_read_coefficients(cinfo);
    }
    read_quant(reader);
    reader->image->smoothed = (uint32_t)pstk__jpeg_is_incomplete(cinfo);
    for (uint32_t i = 0; result == 0 && i < reader->image->frame.n_components; i++)
        result = take_blocks(reader, i, arrays[i]);
    return result;
}

/* ---- the file's other bytes ----------------------------------------------------------------- */

static int read_skeleton(struct reader *reader, const uint8_t *data, uint64_t size)
{
    struct pstk__jpeg_walk walk = {.data = data, .size = size};
    struct pstk__jpeg_segment segment;
    uint8_t *out = pstk__arena_get(reader->arena, (size_t)size);
    uint64_t n = 0, n_copied = 0;
    if (!out)
        return refuse(reader, PSTK_ENOMEM, "no scratch memory for the markers");
    while (pstk__jpeg_walk_next(&walk, &segment)) {
        if (segment.marker != PSTK__JPEG_SOS)
            continue;
        memcpy(out + n, data + n_copied, (size_t)(segment.end - n_copied));
        n += segment.end - n_copied;
        n_copied = walk.at = pstk__jpeg_scan_end(data, size, segment.end);
    }
    memcpy(out + n, data + n_copied, (size_t)(size - n_copied));
    reader->image->skeleton = out;
    reader->image->skeleton_size = n + size - n_copied;
    return 0;
}

/* ---- reading -------------------------------------------------------------------------------- */

static int read_image(struct reader *reader, const void *data, uint64_t size,
                      struct pstk_error *err)
{
    struct pstk__jpeg_guard *guard = &reader->guard;
    pstk__jpeg_guard_init(guard, reader->arena);
    if (pstk__jpeg_open_decompress(guard, &reader->cinfo) != 0)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_DECODE, "libjpeg cannot start: %s",
                          guard->text);
    reader->count_scans = guard->progress.progress_monitor;
    guard->progress.progress_monitor = on_progress;
    pstk__jpeg_begin(guard, &reader->cinfo, data, size);
    int result = pstk__jpeg_guarded(guard, read_file, reader);
    if (result == 0)
        result = read_skeleton(reader, data, size);
    return result == 0 ? 0 : pstk__jpeg_report(guard, result, size, err);
}

int pstk__jpeg_image_read(struct pstk__jpeg_image *image, const void *data, uint64_t size,
                          uint64_t max_pixels, struct pstk__arena *arena, struct pstk_error *err)
{
    struct pstk__jpeg_header header;
    *image = (struct pstk__jpeg_image){0};
    int result = pstk__jpeg_header_read(&header, data, size, err);
    if (result == 0)
        result = pstk__image_check_size("JPEG", header.width, header.height, max_pixels, err);
    if (result < 0)
        return result;
    struct reader reader = {
        .header = &header, .image = image, .arena = arena, .data = data, .size = size};
    image->orientation = pstk__jpeg_orientation(&header, data);
    result = read_image(&reader, data, size, err);
    pstk__jpeg_close_decompress(&reader.guard, &reader.cinfo);
    return result;
}
