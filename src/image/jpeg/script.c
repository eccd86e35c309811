/* SPDX-License-Identifier: Apache-2.0 */
#include "image/jpeg/script.h"

#include "base/error.h"

#include <string.h>

#define MAX_BLOCKS_IN_MCU 10u /* ITU T.81, B.2.3 */

static int damaged(struct pstk_error *err, const char *what)
{
    return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_DECODE, "JPEG skeleton: %s", what);
}

/* Set the defaults at the start of an image. */
static void set_defaults(struct pstk__jpeg_script *script)
{
    script->restart_interval = 0;
    memset(script->dc_conditioning, 0x10, sizeof script->dc_conditioning);
    memset(script->ac_conditioning, 5, sizeof script->ac_conditioning);
}

void pstk__jpeg_script_init(struct pstk__jpeg_script *script)
{
    static const struct pstk__huffman_spec none;
    script->sof = script->n_scans = 0;
    script->scan = (struct pstk__jpeg_scan){0};
    for (int i = 0; i < 4; i++) {
        pstk__huffman_init(&script->dc[i], i < 2 ? pstk__huffman_standard(0, i) : &none);
        pstk__huffman_init(&script->ac[i], i < 2 ? pstk__huffman_standard(1, i) : &none);
    }
    set_defaults(script);
}

int pstk__jpeg_script_is_arithmetic(const struct pstk__jpeg_script *script)
{
    return script->sof == PSTK__JPEG_SOF9 || script->sof == PSTK__JPEG_SOF10;
}

static int apply_huffman(struct pstk__jpeg_script *script, const uint8_t *body, uint32_t size,
                         struct pstk_error *err)
{
    struct pstk__huffman_spec spec;
    while (size > sizeof spec.counts) {
        uint32_t n = 0, number = body[0] & 15u;
        for (uint32_t i = 0; i < sizeof spec.counts; i++)
            n += body[1 + i];
        if (number > 3 || body[0] > 0x1f || n > sizeof spec.symbols || n > size - 17)
            return damaged(err, "a Huffman table is out of bounds");
        memset(&spec, 0, sizeof spec);
        memcpy(spec.counts, body + 1, sizeof spec.counts);
        memcpy(spec.symbols, body + 17, n);
        pstk__huffman_init(body[0] & 0x10 ? &script->ac[number] : &script->dc[number], &spec);
        body += 17 + n;
        size -= 17 + n;
    }
    return size == 0 ? 0 : damaged(err, "a Huffman table is cut short");
}

static int apply_conditioning(struct pstk__jpeg_script *script, const uint8_t *body, uint32_t size,
                              struct pstk_error *err)
{
    for (uint32_t i = 0; i + 1 < size; i += 2) {
        if (body[i] > 31)
            return damaged(err, "arithmetic conditioning is out of bounds");
        if (body[i] > 15)
            script->ac_conditioning[body[i] - 16] = body[i + 1];
        else if ((body[i + 1] & 15) <= body[i + 1] >> 4)
            script->dc_conditioning[body[i]] = body[i + 1];
        else
            return damaged(err, "arithmetic conditioning is out of bounds");
    }
    return 0;
}

static int apply_frame(struct pstk__jpeg_script *script, const struct pstk__jpeg_segment *segment,
                       const struct pstk__jpeg_frame *f, struct pstk_error *err)
{
    const uint8_t *b = segment->body;
    if (script->sof != 0)
        return damaged(err, "two frame headers");
    if (segment->size < 6 || b[0] != 8 || ((uint32_t)b[1] << 8 | b[2]) != f->height ||
        ((uint32_t)b[3] << 8 | b[4]) != f->width || b[5] != f->n_components ||
        segment->size < 6 + 3 * f->n_components)
        return damaged(err, "its frame header does not match the image");
    for (uint32_t i = 0; i < f->n_components; i++) {
        const struct pstk__jpeg_component *component = &f->component[i];
        if (b[6 + 3 * i] != component->id || b[7 + 3 * i] != (component->h << 4 | component->v))
            return damaged(err, "its components do not match the image");
    }
    script->sof = segment->marker;
    return 0;
}

/* Find a component that the scan does not have yet. */
static int find_component(const struct pstk__jpeg_frame *f, const struct pstk__jpeg_scan *scan,
                          uint32_t id)
{
    for (uint32_t i = 0; i < f->n_components; i++)
        if (f->component[i].id == id && !memchr(scan->component, (int)i, scan->n_components))
            return (int)i;
    return -1;
}

/* Read the components of a scan. */
static int read_components(struct pstk__jpeg_scan *scan, const uint8_t *b, uint32_t n,
                           const struct pstk__jpeg_frame *f, struct pstk_error *err)
{
    uint32_t n_blocks = 0;
    for (uint32_t i = 0; i < n; i++) {
        int found = find_component(f, scan, b[2 * i]);
        if (found < 0)
            return damaged(err, "a scan has a component that the frame lacks");
        scan->component[i] = (uint8_t)found;
        scan->dc_table[i] = b[2 * i + 1] >> 4;
        scan->ac_table[i] = b[2 * i + 1] & 15;
        scan->n_components++;
        n_blocks += (uint32_t)f->component[found].h * f->component[found].v;
    }
    if (n > 1 && n_blocks > MAX_BLOCKS_IN_MCU)
        return damaged(err, "a scan has more than ten blocks in a unit");
    return 0;
}

static int apply_scan(struct pstk__jpeg_script *script, const struct pstk__jpeg_segment *segment,
                      const struct pstk__jpeg_frame *f, struct pstk_error *err)
{
    const uint8_t *b = segment->body;
    uint32_t n = segment->size > 0 ? b[0] : 0;
    struct pstk__jpeg_scan scan = {.restart_interval = script->restart_interval, .last = 63};

    if (script->sof == 0)
        return damaged(err, "a scan without a frame header before it");
    if (n < 1 || n > f->n_components || segment->size < 4 + 2 * n)
        return damaged(err, "a scan header is damaged");
    if (++script->n_scans > PSTK__JPEG_MAX_SCANS)
        return damaged(err, "too many scans");
    int r = read_components(&scan, b + 1, n, f, err);
    if (r < 0)
        return r;
    scan.progressive = script->sof == PSTK__JPEG_SOF2 || script->sof == PSTK__JPEG_SOF10;
    if (scan.progressive) { /* the bytes mean nothing in sequential files, and are ignored */
        const uint8_t *p = b + 1 + 2 * n;
        scan.first = p[0];
        scan.last = p[1];
        scan.high = p[2] >> 4;
        scan.low = p[2] & 15;
        /* libjpeg's conditions; DC and AC never share a scan */
        if (scan.first > scan.last || scan.last > 63 || (scan.first == 0 && scan.last != 0) ||
            (scan.first > 0 && n != 1) || scan.low > 13 ||
            (scan.high != 0 && scan.low != scan.high - 1))
            return damaged(err, "a progressive scan's parameters are out of bounds");
    }
    script->scan = scan;
    return 1;
}

int pstk__jpeg_script_apply(struct pstk__jpeg_script *script,
                            const struct pstk__jpeg_segment *segment,
                            const struct pstk__jpeg_frame *frame, struct pstk_error *err)
{
    switch (segment->marker) {
    case PSTK__JPEG_SOI:
        set_defaults(script);
        return 0;
    case PSTK__JPEG_SOF0:
    case PSTK__JPEG_SOF1:
    case PSTK__JPEG_SOF2:
    case PSTK__JPEG_SOF9:
    case PSTK__JPEG_SOF10:
        return apply_frame(script, segment, frame, err);
    case PSTK__JPEG_DHT:
        return apply_huffman(script, segment->body, segment->size, err);
    case PSTK__JPEG_DAC:
        return apply_conditioning(script, segment->body, segment->size, err);
    case PSTK__JPEG_DRI:
        if (segment->size < 2)
            return damaged(err, "a restart interval is cut short");
        script->restart_interval = (uint32_t)segment->body[0] << 8 | segment->body[1];
        return 0;
    case PSTK__JPEG_SOS:
        return apply_scan(script, segment, frame, err);
    default:
        return 0;
    }
}
