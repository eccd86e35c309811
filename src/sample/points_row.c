/* SPDX-License-Identifier: Apache-2.0 */
#include "sample/points_row.h"

#include "record/coordinates.h"

#define CHUNK 64u /* points moved together */

/* The values that all points of a sample share. */
struct moving {
    const struct pstk__points_source *source;
    const struct pstk__output *o;
    double in[2], out[2]; /* pixels in one unit of x and y, as stored and as written */
    double shift;         /* from stored pixels to those of the library */
    int mirrors;
};

static struct moving moving_of(const struct pstk__points_source *source,
                               const struct pstk__output *o)
{
    struct pstk__view view;
    struct moving m = {.source = source, .o = o, .in = {1, 1}, .out = {1, 1}};
    m.mirrors = pstk__image_ops_mirrors(source->image_ops, &view);
    m.shift = o->settings.follow.at_centers ? 0.5 : 0;
    if (source->field->coordinates == PSTK_COORDINATES_UNIT) {
        m.in[0] = source->image.width;
        m.in[1] = source->image.height;
    }
    if (o->settings.follow.coordinates == PSTK_COORDINATES_UNIT) {
        m.out[0] = view.width;
        m.out[1] = view.height;
    }
    return m;
}

static void write_point(const struct moving *m, const struct pstk__point *p, double visibility,
                        float out[3])
{
    const int is_absent = visibility == 0;
    out[0] = is_absent ? 0 : (float)((p->x - m->shift) / m->out[0]);
    out[1] = is_absent ? 0 : (float)((p->y - m->shift) / m->out[1]);
    out[2] = (float)visibility;
}

/* Write points [first, first + n) of a row whose numbers begin at `data`. */
static void write_chunk(const struct moving *m, const uint8_t *data, uint32_t first, uint32_t n,
                        float *row)
{
    const struct pstk_field *field = m->source->field;
    const uint32_t size = pstk_dtype_size(field->dtype), width = (uint32_t)field->shape[2];
    struct pstk__point points[CHUNK];
    double visibility[CHUNK];
    uint8_t is_outside[CHUNK];
    for (uint32_t j = 0; j < n; j++) {
        const uint8_t *at = data + (uint64_t)(first + j) * width * size;
        points[j].x = pstk__coordinate(at, field->dtype) * m->in[0] + m->shift;
        points[j].y = pstk__coordinate(at + size, field->dtype) * m->in[1] + m->shift;
        visibility[j] = width == 3 ? pstk__coordinate(at + 2ull * size, field->dtype) : 2;
    }
    struct pstk__moved_points moved = {.points = points, .is_outside = is_outside, .n = n};
    pstk__image_ops_move_points(m->source->image_ops, &moved);
    for (uint32_t j = 0; j < n; j++) {
        const int is_nowhere = points[j].x != points[j].x;
        const uint32_t to =
            m->mirrors && m->o->follow.partners ? m->o->follow.partners[first + j] : first + j;
        if (is_nowhere || (is_outside[j] && !m->o->settings.follow.keep_outside))
            visibility[j] = 0;
        write_point(m, &points[j], visibility[j], row + 3ull * to);
    }
}

uint32_t pstk__keypoints_write(const struct pstk__points_source *source,
                               const struct pstk__output *o, float *out)
{
    const struct moving m = moving_of(source, o);
    const uint32_t n_points = (uint32_t)source->field->shape[1];
    const uint64_t row_size =
        n_points * source->field->shape[2] * pstk_dtype_size(source->field->dtype);
    uint32_t n = 0;
    for (uint64_t i = 0; i < source->size / row_size; i++) {
        if (source->boxes && source->boxes->boxes[i].is_dropped)
            continue;
        for (uint32_t first = 0; first < n_points; first += CHUNK)
            write_chunk(&m, (const uint8_t *)source->data + i * row_size, first,
                        n_points - first < CHUNK ? n_points - first : CHUNK,
                        out + 3ull * n_points * n);
        n++;
    }
    return n;
}

/* ---- polygons -------------------------------------------------------------------------------- */

static void write_corners(const struct moving *m, uint64_t first, uint32_t n, float *out)
{
    const struct pstk_field *field = m->source->field;
    const uint32_t size = pstk_dtype_size(field->dtype);
    const uint8_t *at = (const uint8_t *)m->source->data + 2 * first * size;
    struct pstk__point points[CHUNK];
    uint8_t is_outside[CHUNK];
    for (uint32_t j = 0; j < n; j++, at += 2ull * size) {
        points[j].x = pstk__coordinate(at, field->dtype) * m->in[0];
        points[j].y = pstk__coordinate(at + size, field->dtype) * m->in[1];
    }
    struct pstk__moved_points moved = {.points = points, .is_outside = is_outside, .n = n};
    pstk__image_ops_move_points(m->source->image_ops, &moved);
    for (uint32_t j = 0; j < n; j++) {
        out[2 * j] = (float)(points[j].x / m->out[0]);
        out[2 * j + 1] = (float)(points[j].y / m->out[1]);
    }
}

void pstk__corners_write(const struct pstk__points_source *source, const struct pstk__output *o,
                         uint64_t first, uint64_t n, float *out)
{
    const struct moving m = moving_of(source, o);
    for (uint64_t done = 0; done < n; done += CHUNK)
        write_corners(&m, first + done, n - done < CHUNK ? (uint32_t)(n - done) : CHUNK,
                      out + 2 * done);
}
