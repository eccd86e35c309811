/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rebuild as a standard JPEG: sequential Huffman coding with optimal tables, in one scan if an MCU
 * has at most ten blocks, otherwise in one for each component. It decodes to the same coefficients,
 * and so to the same pixels: quantisation, sampling, component ids and the order of segments before
 * the first scan (which decides on the colours) are the same. All APPn and COM segments are kept.
 */
#include "image/jpeg/rebuild_standard.h"

#include "base/error.h"
#include "image/jpeg/zigzag.h"

#include <string.h>

#define MAX_BLOCKS_IN_MCU 10u

struct standard {
    struct pstk__jpeg_attempt *attempt;
    struct pstk__jpeg_counts counts;
    struct pstk__huffman_spec dc[2], ac[2];
    uint8_t quant_table[PSTK__JPEG_MAX_COMPONENTS]; /* number of each component's table */
    uint32_t n_quant_tables;
    int is_interleaved;
};

/* A segment being written. */
struct body {
    uint32_t n;
    uint8_t bytes[1200]; /* enough for four tables of 128 or of 272 bytes and their heads */
};

static void add(struct body *body, uint32_t byte)
{
    body->bytes[body->n++] = (uint8_t)byte;
}

static int put_segment(struct standard *standard, uint32_t marker, const struct body *body,
                       struct pstk_error *err)
{
    const uint8_t head[4] = {0xff, (uint8_t)marker, (uint8_t)((body->n + 2) >> 8),
                             (uint8_t)(body->n + 2)};
    int r = pstk__jpeg_put(standard->attempt, head, sizeof head, err);
    return r == 0 ? pstk__jpeg_put(standard->attempt, body->bytes, body->n, err) : r;
}

/* Return a component's Huffman table. The first component is luma or the only one, and the fourth
 * is coded like it; the others are chroma. */
static uint8_t table_of(uint32_t component)
{
    return component == 1 || component == 2;
}

/* Return the scan that begins with component i. */
static struct pstk__jpeg_scan scan_of(const struct standard *standard, uint32_t i)
{
    struct pstk__jpeg_scan scan = {.last = 63};
    scan.n_components = standard->is_interleaved ? standard->attempt->image->frame.n_components : 1;
    for (uint32_t k = 0; k < scan.n_components; k++) {
        scan.component[k] = (uint8_t)(i + k);
        scan.dc_table[k] = scan.ac_table[k] = table_of(i + k);
    }
    return scan;
}

/* ---- tables --------------------------------------------------------------------------------- */

static void share_quant_tables(struct standard *standard)
{
    const struct pstk__jpeg_frame *f = &standard->attempt->image->frame;
    standard->n_quant_tables = 0;
    for (uint32_t i = 0; i < f->n_components; i++) {
        uint32_t k = 0;
        while (k < i && memcmp(f->component[k].quant, f->component[i].quant,
                               sizeof f->component[i].quant) != 0)
            k++;
        standard->quant_table[i] =
            k < i ? standard->quant_table[k] : (uint8_t)standard->n_quant_tables++;
    }
}

static int is_wide(const uint16_t quant[64])
{
    for (uint32_t i = 0; i < 64; i++)
        if (quant[i] > 255)
            return 1;
    return 0;
}

static int put_quant_tables(struct standard *standard, struct pstk_error *err)
{
    const struct pstk__jpeg_frame *f = &standard->attempt->image->frame;
    struct body body = {.n = 0};
    for (uint32_t i = 0, n = 0; i < f->n_components; i++) {
        const uint16_t *quant = f->component[i].quant;
        int wide = is_wide(quant);
        if (standard->quant_table[i] < n)
            continue; /* already written */
        add(&body, (wide ? 0x10u : 0u) | n++);
        for (uint32_t z = 0; z < 64; z++) {
            if (wide)
                add(&body, quant[pstk__zigzag[z]] >> 8);
            add(&body, quant[pstk__zigzag[z]]);
        }
    }
    return put_segment(standard, PSTK__JPEG_DQT, &body, err);
}

/* Return 1 when a baseline decoder can read it: 8-bit quantisation, coefficients of 10 bits,
 * differences of 11. */
static int is_baseline(const struct standard *standard)
{
    const struct pstk__jpeg_frame *f = &standard->attempt->image->frame;
    for (uint32_t i = 0; i < f->n_components; i++)
        if (is_wide(f->component[i].quant))
            return 0;
    for (uint32_t t = 0; t < 2; t++)
        for (uint32_t i = 0; i < 256; i++)
            if ((standard->counts.dc[t][i] > 0 && i > 11) ||
                (standard->counts.ac[t][i] > 0 && (i & 15) > 10))
                return 0;
    return 1;
}

static int put_frame(struct standard *standard, struct pstk_error *err)
{
    const struct pstk__jpeg_frame *f = &standard->attempt->image->frame;
    struct body body = {.n = 0};
    add(&body, 8);
    add(&body, f->height >> 8);
    add(&body, f->height);
    add(&body, f->width >> 8);
    add(&body, f->width);
    add(&body, f->n_components);
    for (uint32_t i = 0; i < f->n_components; i++) {
        add(&body, f->component[i].id);
        add(&body, (uint32_t)f->component[i].h << 4 | f->component[i].v);
        add(&body, standard->quant_table[i]);
    }
    return put_segment(standard, is_baseline(standard) ? PSTK__JPEG_SOF0 : PSTK__JPEG_SOF1, &body,
                       err);
}

static void add_huffman(struct body *body, uint32_t number, const struct pstk__huffman_spec *spec)
{
    add(body, number);
    for (uint32_t i = 0; i < 16; i++)
        add(body, spec->counts[i]);
    for (uint32_t i = 0; i < pstk__huffman_n_codes(spec); i++)
        add(body, spec->symbols[i]);
}

static int put_huffman(struct standard *standard, struct pstk_error *err)
{
    struct body body = {.n = 0};
    uint32_t n = standard->attempt->image->frame.n_components > 1 ? 2 : 1;
    for (uint32_t i = 0; i < n; i++) {
        add_huffman(&body, i, &standard->dc[i]);
        add_huffman(&body, 0x10 | i, &standard->ac[i]);
    }
    return put_segment(standard, PSTK__JPEG_DHT, &body, err);
}

/* ---- the file ------------------------------------------------------------------------------- */

/* Count the symbols of all scans and make their tables. */
static int prepare(struct standard *standard, struct pstk_error *err)
{
    struct pstk__jpeg_attempt *attempt = standard->attempt;
    const struct pstk__jpeg_frame *f = &attempt->image->frame;
    uint32_t n_blocks = 0;
    for (uint32_t i = 0; i < f->n_components; i++)
        n_blocks += (uint32_t)f->component[i].h * f->component[i].v;
    standard->is_interleaved = f->n_components == 1 || n_blocks <= MAX_BLOCKS_IN_MCU;
    share_quant_tables(standard);
    memset(&standard->counts, 0, sizeof standard->counts);
    for (uint32_t i = 0; i < f->n_components;) {
        const struct pstk__jpeg_scan scan = scan_of(standard, i);
        int r = pstk__jpeg_scan_count(f, attempt->blocks, &scan, &standard->counts);
        if (r < 0)
            return pstk__fail(err, r, PSTK_STAGE_DECODE,
                              "JPEG: a coefficient of -32768 cannot be coded in one scan");
        i += scan.n_components;
    }
    pstk__jpeg_script_init(&attempt->script);
    for (uint32_t t = 0; t < 2; t++) {
        pstk__huffman_optimal(&standard->dc[t], standard->counts.dc[t]);
        pstk__huffman_optimal(&standard->ac[t], standard->counts.ac[t]);
        pstk__huffman_init(&attempt->script.dc[t], &standard->dc[t]);
        pstk__huffman_init(&attempt->script.ac[t], &standard->ac[t]);
    }
    return 0;
}

static int put_scans(struct standard *standard, struct pstk_error *err)
{
    struct pstk__jpeg_attempt *attempt = standard->attempt;
    int r = 0;
    for (uint32_t i = 0; r == 0 && i < attempt->image->frame.n_components;) {
        attempt->script.scan = scan_of(standard, i);
        struct body body = {.n = 0};
        add(&body, attempt->script.scan.n_components);
        for (uint32_t k = 0; k < attempt->script.scan.n_components; k++) {
            add(&body, attempt->image->frame.component[i + k].id);
            add(&body, table_of(i + k) * 0x11u);
        }
        add(&body, 0);
        add(&body, 63);
        add(&body, 0);
        r = put_segment(standard, PSTK__JPEG_SOS, &body, err);
        if (r == 0)
            r = pstk__jpeg_put_scan(attempt, err);
        i += attempt->script.scan.n_components;
    }
    return r;
}

static int put_image(struct standard *standard, struct pstk_error *err)
{
    int r = put_quant_tables(standard, err);
    if (r == 0)
        r = put_frame(standard, err);
    if (r == 0)
        r = put_huffman(standard, err);
    return r == 0 ? put_scans(standard, err) : r;
}

/* Return 1 to copy the segment. SOI and EOI before the image delimit datastreams of tables only. An
 * SOI cancels the colours that earlier application segments define, so these segments keep their
 * order. */
static int is_kept(const struct pstk__jpeg_segment *segment, int has_image)
{
    uint32_t marker = segment->marker;
    return (marker >= PSTK__JPEG_APP0 && marker <= PSTK__JPEG_APP15) || marker == PSTK__JPEG_COM ||
           marker == PSTK__JPEG_EOI || (marker == PSTK__JPEG_SOI && !has_image);
}

static int put_file(struct standard *standard, struct pstk_error *err)
{
    struct pstk__jpeg_attempt *attempt = standard->attempt;
    struct pstk__jpeg_walk walk = {.data = attempt->image->skeleton,
                                   .size = attempt->image->skeleton_size};
    struct pstk__jpeg_segment segment;
    int has_image = 0, r = 0;

    while (r == 0 && pstk__jpeg_walk_next(&walk, &segment)) {
        if (attempt->at == attempt->out && segment.marker != PSTK__JPEG_SOI)
            break;
        if (is_kept(&segment, has_image))
            r = pstk__jpeg_put(attempt, walk.data + segment.begin, segment.end - segment.begin,
                               err);
        else if (segment.marker == PSTK__JPEG_SOS && !has_image++)
            r = put_image(standard, err);
    }
    if (r < 0)
        return r;
    if (!has_image)
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_DECODE,
                          "JPEG skeleton without a start of image or without a scan");
    if (walk.has_ended)
        return pstk__jpeg_put(attempt, walk.data + walk.at, walk.size - walk.at, err);
    const uint8_t end[2] = {0xff, PSTK__JPEG_EOI};
    return pstk__jpeg_put(attempt, end, sizeof end, err);
}

int pstk__jpeg_rebuild_standard(struct pstk__jpeg_attempt *attempt, struct pstk_error *err)
{
    struct standard *standard = pstk__arena_get(attempt->arena, sizeof *standard);
    if (!standard)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_DECODE,
                          "JPEG: no scratch memory for a standard file");
    standard->attempt = attempt;
    int r = prepare(standard, err);
    return r == 0 ? put_file(standard, err) : r;
}
