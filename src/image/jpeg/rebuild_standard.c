/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rebuilding as a standard JPEG: sequential Huffman coding with optimal tables, one scan where its
 * units have no more than ten blocks, else one a component. It decodes to the same coefficients,
 * hence to the same pixels: quantisation, sampling, component ids and the order of what stands
 * before the first scan (that decides on the colours) are kept, all APPn and COM segments too.
 */
#include "image/jpeg/splice.h"

#include "base/error.h"
#include "image/jpeg/zigzag.h"

#include <string.h>

#define MAX_BLOCKS_IN_MCU 10u

struct standard {
    struct pstk__jpeg_attempt *attempt;
    struct pstk__jpeg_counts counts;
    struct pstk__huffman_spec dc[2], ac[2];
    uint8_t quant_table[PSTK__JPEG_MAX_COMPONENTS]; /* of each component */
    uint32_t n_quant_tables;
    int is_interleaved;
};

/* A segment under construction. */
struct body {
    uint32_t n;
    uint8_t bytes[1200]; /* enough for four tables of 128 or of 272 bytes and their heads */
};

static void add(struct body *b, uint32_t byte)
{
    b->bytes[b->n++] = (uint8_t)byte;
}

static int put_segment(struct standard *s, uint32_t marker, const struct body *b,
                       struct pstk_error *err)
{
    const uint8_t head[4] = {0xff, (uint8_t)marker, (uint8_t)((b->n + 2) >> 8),
                             (uint8_t)(b->n + 2)};
    int r = pstk__jpeg_put(s->attempt, head, sizeof head, err);
    return r == 0 ? pstk__jpeg_put(s->attempt, b->bytes, b->n, err) : r;
}

/* The first component is luma or the only one, the fourth is coded as it; the others as chroma. */
static uint8_t table_of(uint32_t component)
{
    return component == 1 || component == 2;
}

/* The scan that begins with component i. */
static struct pstk__jpeg_scan scan_of(const struct standard *s, uint32_t i)
{
    struct pstk__jpeg_scan scan = {.last = 63};
    scan.n_components = s->is_interleaved ? s->attempt->image->frame.n_components : 1;
    for (uint32_t k = 0; k < scan.n_components; k++) {
        scan.component[k] = (uint8_t)(i + k);
        scan.dc_table[k] = scan.ac_table[k] = table_of(i + k);
    }
    return scan;
}

/* ---- tables --------------------------------------------------------------------------------- */

static void share_quant_tables(struct standard *s)
{
    const struct pstk__jpeg_frame *f = &s->attempt->image->frame;
    s->n_quant_tables = 0;
    for (uint32_t i = 0; i < f->n_components; i++) {
        uint32_t k = 0;
        while (k < i && memcmp(f->component[k].quant, f->component[i].quant,
                               sizeof f->component[i].quant) != 0)
            k++;
        s->quant_table[i] = k < i ? s->quant_table[k] : (uint8_t)s->n_quant_tables++;
    }
}

static int is_wide(const uint16_t quant[64])
{
    for (uint32_t i = 0; i < 64; i++)
        if (quant[i] > 255)
            return 1;
    return 0;
}

static int put_quant_tables(struct standard *s, struct pstk_error *err)
{
    const struct pstk__jpeg_frame *f = &s->attempt->image->frame;
    struct body b = {.n = 0};
    for (uint32_t i = 0, n = 0; i < f->n_components; i++) {
        const uint16_t *quant = f->component[i].quant;
        int wide = is_wide(quant);
        if (s->quant_table[i] < n)
            continue; /* written already */
        add(&b, (wide ? 0x10u : 0u) | n++);
        for (uint32_t z = 0; z < 64; z++) {
            if (wide)
                add(&b, quant[pstk__zigzag[z]] >> 8);
            add(&b, quant[pstk__zigzag[z]]);
        }
    }
    return put_segment(s, PSTK__JPEG_DQT, &b, err);
}

/* Baseline decoders take 8-bit quantisation and coefficients of 10 bits, differences of 11. */
static int is_baseline(const struct standard *s)
{
    const struct pstk__jpeg_frame *f = &s->attempt->image->frame;
    for (uint32_t i = 0; i < f->n_components; i++)
        if (is_wide(f->component[i].quant))
            return 0;
    for (uint32_t t = 0; t < 2; t++)
        for (uint32_t i = 0; i < 256; i++)
            if ((s->counts.dc[t][i] > 0 && i > 11) || (s->counts.ac[t][i] > 0 && (i & 15) > 10))
                return 0;
    return 1;
}

static int put_frame(struct standard *s, struct pstk_error *err)
{
    const struct pstk__jpeg_frame *f = &s->attempt->image->frame;
    struct body b = {.n = 0};
    add(&b, 8);
    add(&b, f->height >> 8);
    add(&b, f->height);
    add(&b, f->width >> 8);
    add(&b, f->width);
    add(&b, f->n_components);
    for (uint32_t i = 0; i < f->n_components; i++) {
        add(&b, f->component[i].id);
        add(&b, (uint32_t)f->component[i].h << 4 | f->component[i].v);
        add(&b, s->quant_table[i]);
    }
    return put_segment(s, is_baseline(s) ? PSTK__JPEG_SOF0 : PSTK__JPEG_SOF1, &b, err);
}

static void add_huffman(struct body *b, uint32_t number, const struct pstk__huffman_spec *spec)
{
    add(b, number);
    for (uint32_t i = 0; i < 16; i++)
        add(b, spec->counts[i]);
    for (uint32_t i = 0; i < pstk__huffman_n_codes(spec); i++)
        add(b, spec->symbols[i]);
}

static int put_huffman(struct standard *s, struct pstk_error *err)
{
    struct body b = {.n = 0};
    uint32_t n = s->attempt->image->frame.n_components > 1 ? 2 : 1;
    for (uint32_t i = 0; i < n; i++) {
        add_huffman(&b, i, &s->dc[i]);
        add_huffman(&b, 0x10 | i, &s->ac[i]);
    }
    return put_segment(s, PSTK__JPEG_DHT, &b, err);
}

/* ---- the file ------------------------------------------------------------------------------- */

/* Count all scans and make their tables. */
static int prepare(struct standard *s, struct pstk_error *err)
{
    struct pstk__jpeg_attempt *a = s->attempt;
    const struct pstk__jpeg_frame *f = &a->image->frame;
    uint32_t n_blocks = 0;
    for (uint32_t i = 0; i < f->n_components; i++)
        n_blocks += (uint32_t)f->component[i].h * f->component[i].v;
    s->is_interleaved = f->n_components == 1 || n_blocks <= MAX_BLOCKS_IN_MCU;
    share_quant_tables(s);
    memset(&s->counts, 0, sizeof s->counts);
    for (uint32_t i = 0; i < f->n_components;) {
        const struct pstk__jpeg_scan scan = scan_of(s, i);
        int r = pstk__jpeg_scan_count(f, a->blocks, &scan, &s->counts);
        if (r < 0)
            return pstk__fail(err, r, PSTK_STAGE_DECODE,
                              "JPEG: a coefficient of -32768 cannot be coded in one scan");
        i += scan.n_components;
    }
    pstk__jpeg_script_init(&a->script);
    for (uint32_t t = 0; t < 2; t++) {
        pstk__huffman_optimal(&s->dc[t], s->counts.dc[t]);
        pstk__huffman_optimal(&s->ac[t], s->counts.ac[t]);
        pstk__huffman_init(&a->script.dc[t], &s->dc[t]);
        pstk__huffman_init(&a->script.ac[t], &s->ac[t]);
    }
    return 0;
}

static int put_scans(struct standard *s, struct pstk_error *err)
{
    struct pstk__jpeg_attempt *a = s->attempt;
    int r = 0;
    for (uint32_t i = 0; r == 0 && i < a->image->frame.n_components;) {
        a->script.scan = scan_of(s, i);
        struct body b = {.n = 0};
        add(&b, a->script.scan.n_components);
        for (uint32_t k = 0; k < a->script.scan.n_components; k++) {
            add(&b, a->image->frame.component[i + k].id);
            add(&b, table_of(i + k) * 0x11u);
        }
        add(&b, 0);
        add(&b, 63);
        add(&b, 0);
        r = put_segment(s, PSTK__JPEG_SOS, &b, err);
        if (r == 0)
            r = pstk__jpeg_put_scan(a, err);
        i += a->script.scan.n_components;
    }
    return r;
}

static int put_image(struct standard *s, struct pstk_error *err)
{
    int r = put_quant_tables(s, err);
    if (r == 0)
        r = put_frame(s, err);
    if (r == 0)
        r = put_huffman(s, err);
    return r == 0 ? put_scans(s, err) : r;
}

/* SOI and EOI before the image are those of datastreams of tables only: an SOI takes back what the
 * application segments before it said about colours, so that they stay where they are. */
static int is_kept(const struct pstk__jpeg_segment *segment, int has_image)
{
    uint32_t marker = segment->marker;
    return (marker >= PSTK__JPEG_APP0 && marker <= PSTK__JPEG_APP15) || marker == PSTK__JPEG_COM ||
           marker == PSTK__JPEG_EOI || (marker == PSTK__JPEG_SOI && !has_image);
}

static int put_file(struct standard *s, struct pstk_error *err)
{
    struct pstk__jpeg_attempt *a = s->attempt;
    struct pstk__jpeg_walk walk = {.data = a->image->skeleton, .size = a->image->skeleton_size};
    struct pstk__jpeg_segment segment;
    int has_image = 0, r = 0;

    while (r == 0 && pstk__jpeg_walk_next(&walk, &segment)) {
        if (a->at == a->out && segment.marker != PSTK__JPEG_SOI)
            break;
        if (is_kept(&segment, has_image))
            r = pstk__jpeg_put(a, walk.data + segment.begin, segment.end - segment.begin, err);
        else if (segment.marker == PSTK__JPEG_SOS && !has_image++)
            r = put_image(s, err);
    }
    if (r < 0)
        return r;
    if (!has_image)
        return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_DECODE,
                          "JPEG skeleton without a start of image or without a scan");
    if (walk.has_ended)
        return pstk__jpeg_put(a, walk.data + walk.at, walk.size - walk.at, err);
    const uint8_t end[2] = {0xff, PSTK__JPEG_EOI};
    return pstk__jpeg_put(a, end, sizeof end, err);
}

int pstk__jpeg_rebuild_standard(struct pstk__jpeg_attempt *a, struct pstk_error *err)
{
    struct standard *s = pstk__arena_get(a->arena, sizeof *s);
    if (!s)
        return pstk__fail(err, PSTK_ENOMEM, PSTK_STAGE_DECODE,
                          "JPEG: no scratch memory for a standard file");
    s->attempt = a;
    int r = prepare(s, err);
    return r == 0 ? put_file(s, err) : r;
}
