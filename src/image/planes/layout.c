/* SPDX-License-Identifier: Apache-2.0 */
#include "image/planes/layout.h"

#include "base/error.h"
#include "image/jpeg/coefficients.h"
#include "base/little.h"
#include "image/planes/quant.h"

#include <string.h>

/* ---- contexts ------------------------------------------------------------------------------- */

/*
 * Sixths of a bit by which the mean logarithm of a value's magnitude falls along the zigzag order.
 * It rises by half a bit with each map byte of its block. Measured over photographs at qualities 50
 * to 98.
 */
static const uint8_t depth[64] = {
    0,  0,  0,  2,  2,  2,  4,  4,  4,  4,  5,  5,  5,  5,  9,  9,  9,  9,  9,  9,  9,  9,
    9,  9,  9,  11, 11, 11, 13, 13, 13, 13, 13, 13, 13, 13, 15, 15, 15, 15, 15, 15, 15, 15,
    15, 15, 15, 15, 15, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16,
};

static uint32_t level(uint32_t count, uint32_t z)
{
    const uint32_t rise = 2 * count + 6, fall = depth[z];
    const uint32_t l = rise > fall ? (rise - fall) / 3 : 0;
    return l < PSTK__N_LEVELS ? l : PSTK__N_LEVELS - 1;
}

uint32_t pstk__planes_map_context(uint32_t chroma, uint32_t byte)
{
    return PSTK__CONTEXT_MAP + (chroma ? 15 - byte : byte);
}

uint32_t pstk__planes_value_context(uint32_t chroma, uint32_t count, uint32_t z)
{
    const uint32_t l = level(count, z);
    return PSTK__CONTEXT_VALUE + (chroma ? 15 - l : l);
}

void pstk__planes_value_tables(uint8_t tables[9][64], uint32_t chroma,
                               const uint8_t number[PSTK__N_CONTEXTS])
{
    for (uint32_t count = 1; count <= 8; count++)
        for (uint32_t z = 1; z < 64; z++)
            tables[count][z] = number[pstk__planes_value_context(chroma, count, z)];
}

enum pstk__model_order pstk__planes_context_order(uint32_t context)
{
    return context >= PSTK__CONTEXT_VALUE && context < PSTK__CONTEXT_DC_HIGH ? PSTK__MODEL_SIGNED
                                                                             : PSTK__MODEL_PLAIN;
}

/* ---- geometry ------------------------------------------------------------------------------- */

uint32_t pstk__planes_mcu_rows(const struct pstk__jpeg_frame *f)
{
    return f->n_components == 1 ? f->component[0].rows : f->component[0].rows / f->component[0].v;
}

static uint32_t row_step(const struct pstk__jpeg_frame *f, uint32_t c)
{
    return f->n_components == 1 ? 1 : f->component[c].v;
}

uint32_t pstk__planes_mcu_row_blocks(const struct pstk__jpeg_frame *f)
{
    uint32_t n = 0;
    for (uint32_t c = 0; c < f->n_components; c++)
        n += f->component[c].stride * row_step(f, c);
    return n;
}

void pstk__planes_strip_rows(const struct pstk__planes_header *h, uint32_t strip, uint32_t c,
                             uint32_t *begin, uint32_t *end)
{
    const uint32_t rows = h->frame.component[c].rows;
    const uint32_t height = h->strip_height * row_step(&h->frame, c);
    *begin = strip * height;
    *end = rows - *begin < height ? rows : *begin + height;
}

uint32_t pstk__planes_strip_blocks(const struct pstk__planes_header *h, uint32_t strip,
                                   uint32_t *n_luma)
{
    uint32_t n = 0;
    for (uint32_t c = 0; c < h->frame.n_components; c++) {
        uint32_t begin, end;
        pstk__planes_strip_rows(h, strip, c, &begin, &end);
        n += (end - begin) * h->frame.component[c].stride;
        *n_luma = c == 0 ? n : *n_luma;
    }
    return n;
}

/* ---- the list of strips --------------------------------------------------------------------- */

struct pstk__planes_entry pstk__planes_entry_read(const struct pstk__planes_header *h,
                                                  uint32_t strip)
{
    const uint8_t *p = h->list + PSTK__PLANES_ENTRY_SIZE * (size_t)strip;
    return (struct pstk__planes_entry){.size = pstk__get32(p), .n_values = pstk__get32(p + 4)};
}

void pstk__planes_entry_write(uint8_t *list, uint32_t strip, struct pstk__planes_entry entry)
{
    uint8_t *p = list + PSTK__PLANES_ENTRY_SIZE * (size_t)strip;
    pstk__put32(p, entry.size);
    pstk__put32(p + 4, entry.n_values);
}

/* ---- reading -------------------------------------------------------------------------------- */

static int bad(struct pstk_error *err, const char *what)
{
    return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_DECODE, "planes: %s", what);
}

/* Bytes not yet read, and the start of the field. */
struct rest {
    const uint8_t *begin, *at;
    uint64_t size;
};

static const uint8_t *take(struct rest *rest, uint64_t n)
{
    if (n > rest->size)
        return NULL;
    const uint8_t *p = rest->at;
    rest->at += n;
    rest->size -= n;
    return p;
}

/* Take the zero bytes up to a multiple of 4 in the field. Returns -1 when a byte is missing or not
 * zero. */
static int take_padding(struct rest *rest)
{
    const uint64_t n = -(uint64_t)(rest->at - rest->begin) & 3;
    const uint8_t *p = take(rest, n);
    uint32_t other = 0;
    for (uint64_t i = 0; p && i < n; i++)
        other |= p[i];
    return p && other == 0 ? 0 : -1;
}

static int read_quant(uint16_t quant[64], struct rest *rest)
{
    const uint32_t n = pstk__quant_read(quant, rest->at, rest->size);
    return n > 0 && take(rest, n) ? 0 : -1;
}

static int read_quants(struct pstk__jpeg_frame *f, const uint8_t *components, uint32_t n_quant,
                       struct rest *rest, struct pstk_error *err)
{
    uint16_t quant[4][64];
    for (uint32_t i = 0; i < n_quant; i++)
        if (read_quant(quant[i], rest) < 0)
            return bad(err, "bad quantisation table");
    for (uint32_t i = 0; i < f->n_components; i++)
        memcpy(f->component[i].quant, quant[components[4 * i + 2]], sizeof quant[0]);
    return 0;
}

static int read_components(struct pstk__jpeg_frame *f, const uint8_t *p, uint32_t n_quant,
                           struct pstk_error *err)
{
    for (uint32_t i = 0; i < f->n_components; i++, p += 4) {
        struct pstk__jpeg_component *component = &f->component[i];
        component->id = p[0];
        component->h = p[1] & 15;
        component->v = p[1] >> 4;
        if (component->h < 1 || component->h > 4 || component->v < 1 || component->v > 4)
            return bad(err, "sampling factor that is not 1 to 4");
        if (p[2] >= n_quant || p[3] != 0)
            return bad(err, "component without a quantisation table");
    }
    pstk__jpeg_frame_layout(f);
    return 0;
}

/* Check that the strips make up the image, and that their memory is within the bound. */
static int check_strips(const struct pstk__planes_header *h, struct pstk_error *err)
{
    const uint32_t rows = pstk__planes_mcu_rows(&h->frame);
    const uint64_t blocks = (uint64_t)h->strip_height * pstk__planes_mcu_row_blocks(&h->frame);
    if (h->strip_height == 0 || h->strip_height > rows ||
        h->n_strips != (rows + h->strip_height - 1) / h->strip_height)
        return bad(err, "strips that do not make up the image");
    if (h->strip_height > 1 && blocks > PSTK__PLANES_STRIP_BLOCKS)
        return bad(err, "strips of too many blocks");
    return 0;
}

/* Read the list of strips. No strip may have more values than its blocks can have, which also
 * bounds a reader's memory. */
static int read_list(struct pstk__planes_header *h, struct rest *rest, struct pstk_error *err)
{
    h->list = take(rest, PSTK__PLANES_ENTRY_SIZE * (uint64_t)h->n_strips);
    if (!h->list)
        return bad(err, "shorter than its list of strips");
    for (uint32_t i = 0; i < h->n_strips; i++) {
        const struct pstk__planes_entry entry = pstk__planes_entry_read(h, i);
        uint32_t n_luma;
        if (entry.n_values >
            (uint64_t)PSTK__PLANES_MAX_VALUES * pstk__planes_strip_blocks(h, i, &n_luma))
            return pstk__fail(err, PSTK_EBADMSG, PSTK_STAGE_DECODE,
                              "planes: strip %u of %u has more values than its blocks can have", i,
                              h->n_strips);
        h->strips_size += pstk__planes_padded(entry.size);
    }
    return 0;
}

static int read_sections(struct pstk__planes_header *h, const uint8_t *p, struct rest *rest,
                         struct pstk_error *err)
{
    h->models_size = pstk__get32(p + 20);
    h->skeleton_size = pstk__get32(p + 24);
    h->skeleton_plain_size = pstk__get32(p + 28);
    h->models = take(rest, h->models_size);
    if (h->models && take_padding(rest) < 0)
        return bad(err, "bytes that are not zero after its models");
    h->strips = h->models ? take(rest, h->strips_size) : NULL;
    h->skeleton = h->strips ? take(rest, h->skeleton_size) : NULL;
    if (!h->skeleton || rest->size != 0)
        return bad(err, "sizes in its header do not add up to its own size");
    return 0;
}

/* Read the parts after the header, in their order. */
static int read_parts(struct pstk__planes_header *h, const uint8_t *p, struct rest *rest,
                      struct pstk_error *err)
{
    const uint8_t *components = take(rest, 4 * h->frame.n_components);
    if (!components)
        return bad(err, "shorter than its header");
    int rc = read_components(&h->frame, components, p[9], err);
    if (rc == 0)
        rc = check_strips(h, err);
    if (rc == 0)
        rc = read_list(h, rest, err);
    if (rc == 0)
        rc = read_quants(&h->frame, components, p[9], rest, err);
    return rc < 0 ? rc : read_sections(h, p, rest, err);
}

int pstk__planes_header_read(struct pstk__planes_header *h, const void *data, uint64_t size,
                             struct pstk_error *err)
{
    struct rest rest = {.begin = data, .at = data, .size = size};
    const uint8_t *p = take(&rest, PSTK__PLANES_HEADER_SIZE);

    memset(h, 0, sizeof *h);
    if (!p)
        return bad(err, "shorter than its header");
    if (p[0] != PSTK__PLANES_VERSION)
        return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_DECODE,
                          "planes of version %u; this library reads version %u", p[0],
                          PSTK__PLANES_VERSION);
    struct pstk__jpeg_frame *f = &h->frame;
    f->n_components = p[1];
    f->color = p[2];
    h->orientation = p[3];
    f->width = pstk__get16(p + 4);
    f->height = pstk__get16(p + 6);
    h->rebuild = p[8];
    h->n_lanes = p[10];
    h->set = p[11];
    h->parameters = pstk__get32(p + 12);
    h->strip_height = pstk__get16(p + 16);
    h->n_strips = pstk__get16(p + 18);
    if (f->n_components == 0 || f->n_components != pstk__jpeg_color_components(f->color) ||
        f->width == 0 || f->height == 0)
        return bad(err, "impossible number of components, colour or size");
    if (h->orientation < 1 || h->orientation > 8 || h->rebuild < PSTK__JPEG_REBUILD_SCANS ||
        h->rebuild > PSTK__JPEG_REBUILD_LIBRARY || p[9] < 1 || p[9] > 4 ||
        (h->n_lanes != PSTK__RANS_FEW_LANES && h->n_lanes != PSTK__RANS_SOME_LANES &&
         h->n_lanes != PSTK__RANS_LANES))
        return bad(err, "impossible header");
    if (h->set > PSTK__PLANES_N_SETS)
        return pstk__fail(err, PSTK_ENOTSUP, PSTK_STAGE_DECODE,
                          "planes with built-in tables %u; this library has sets 1 to %u of them",
                          h->set, PSTK__PLANES_N_SETS);
    return read_parts(h, p, &rest, err);
}

/* ---- models --------------------------------------------------------------------------------- */

/* Number the tables of the contexts from one bit for each context: 1 if it shares the table of the
 * context before. Returns the same as pstk__planes_models_read. */
static int number_tables(struct pstk__planes_models *models, const uint8_t *joined)
{
    uint32_t n = 0;
    if (!joined || (joined[0] & 1) || joined[PSTK__PLANES_JOINED_SIZE - 1] >> PSTK__N_CONTEXTS % 8)
        return -1;
    for (uint32_t c = 0; c < PSTK__N_CONTEXTS; c++) {
        const uint32_t is_first = !(joined[c / 8] >> c % 8 & 1);
        if (is_first && n < PSTK__PLANES_MAX_TABLES)
            models->first[n] = (uint8_t)c;
        n += is_first;
        models->table[c] = (uint8_t)(n - 1);
    }
    models->n = n;
    return n > PSTK__PLANES_MAX_TABLES ? (int)n : 0;
}

/* Read the sizes of the tables that the image has. All sizes are checked before any table is read,
 * so the tables could be read in any order. */
static int find_tables(struct pstk__planes_models *models, uint32_t own, struct rest *rest)
{
    const uint32_t n_own = (uint32_t)__builtin_popcount(own);
    const uint8_t *sizes = own >> models->n ? NULL : take(rest, 2 * n_own);
    for (uint32_t i = 0; sizes && i < models->n; i++) {
        models->data[i] = NULL;
        if (!(own >> i & 1))
            continue;
        models->size[i] = pstk__get16(sizes);
        models->data[i] = take(rest, models->size[i]);
        if (!models->data[i])
            return -1;
        sizes += 2;
    }
    return sizes && rest->size == 0 ? 0 : -1;
}

int pstk__planes_models_read(struct pstk__planes_models *models, const uint8_t *data, uint64_t size,
                             int is_mixed)
{
    struct rest rest = {.begin = data, .at = data, .size = size};
    const int rc = number_tables(models, take(&rest, PSTK__PLANES_JOINED_SIZE));
    if (rc != 0)
        return rc;
    if (!is_mixed)
        return find_tables(models, (1u << models->n) - 1, &rest);
    const uint8_t *own = take(&rest, PSTK__PLANES_OWN_SIZE);
    return own ? find_tables(models, own[0] | own[1] << 8 | (uint32_t)own[2] << 16, &rest) : -1;
}

/* ---- writing -------------------------------------------------------------------------------- */

/* Number the different quantisation tables in the order of the components: `number` by component,
 * `owner` (the first component with the table) by table. Returns the number of tables. */
static uint32_t number_quants(const struct pstk__jpeg_frame *f, uint8_t number[4], uint8_t owner[4])
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->n_components; i++) {
        uint32_t q = 0;
        while (q < n && memcmp(f->component[i].quant, f->component[owner[q]].quant,
                               sizeof f->component[i].quant) != 0)
            q++;
        number[i] = (uint8_t)q;
        if (q == n)
            owner[n++] = (uint8_t)i;
    }
    return n;
}

uint32_t pstk__planes_quant_write(uint8_t out[PSTK__PLANES_MAX_QUANT],
                                  const struct pstk__jpeg_frame *f)
{
    uint8_t number[4], owner[4];
    const uint32_t n = number_quants(f, number, owner);
    uint32_t size = 0;
    for (uint32_t i = 0; i < n; i++)
        size += pstk__quant_write(out + size, f->component[owner[i]].quant);
    return size;
}

uint32_t pstk__planes_header_write(uint8_t out[PSTK__PLANES_MAX_HEAD],
                                   const struct pstk__planes_header *h)
{
    const struct pstk__jpeg_frame *f = &h->frame;
    uint8_t *p = out + PSTK__PLANES_HEADER_SIZE, number[4], owner[4];

    memset(out, 0, PSTK__PLANES_HEADER_SIZE);
    out[0] = PSTK__PLANES_VERSION;
    out[1] = (uint8_t)f->n_components;
    out[2] = (uint8_t)f->color;
    out[3] = (uint8_t)h->orientation;
    pstk__put16(out + 4, (uint16_t)f->width);
    pstk__put16(out + 6, (uint16_t)f->height);
    out[8] = (uint8_t)h->rebuild;
    out[9] = (uint8_t)number_quants(f, number, owner);
    out[10] = (uint8_t)h->n_lanes;
    out[11] = (uint8_t)h->set;
    pstk__put32(out + 12, h->parameters);
    pstk__put16(out + 16, (uint16_t)h->strip_height);
    pstk__put16(out + 18, (uint16_t)h->n_strips);
    pstk__put32(out + 20, (uint32_t)h->models_size);
    pstk__put32(out + 24, (uint32_t)h->skeleton_size);
    pstk__put32(out + 28, (uint32_t)h->skeleton_plain_size);
    for (uint32_t i = 0; i < f->n_components; i++, p += 4) {
        const struct pstk__jpeg_component *component = &f->component[i];
        p[0] = component->id;
        p[1] = (uint8_t)(component->h | component->v << 4);
        p[2] = number[i];
        p[3] = 0;
    }
    return (uint32_t)(p - out);
}
