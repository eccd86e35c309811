/* SPDX-License-Identifier: Apache-2.0 */
/*
 * planes/layout: the layout of a field stored as coefficient planes (FORMAT.md, "Planes"): the
 * header, and the contexts whose symbols share a table. Pure.
 *
 * An image is cut into strips of whole MCU rows. Each strip decodes by itself. It holds the
 * coefficients of its blocks as seven runs of byte symbols. One rANS coder codes the runs, one
 * after another:
 *
 *   counts   number of map bytes of a block: the bytes of its 64-bit map of non-zero AC
 *            coefficients (in zigzag order; bit 0, the DC, is clear) up to the last one; 0..8
 *   maps     those bytes
 *   values   the AC coefficients that are not zero, in zigzag order; -128: the next wide value
 *   dc high, dc low   difference to the DC of the block before, zigzag-coded to 16 bits
 *   wide high, wide low   the wide values, zigzag-coded to 16 bits: those outside -127..127, and
 *             those that the writer considered too rare for a table
 */
#ifndef PSTK_PLANES_LAYOUT_H
#define PSTK_PLANES_LAYOUT_H

#include "image/jpeg/frame.h"
#include "image/planes/model.h"
#include "image/planes/quant.h"

#include <penstock/types.h>

#define PSTK__PLANES_VERSION 2
#define PSTK__PLANES_HEADER_SIZE 32 /* bytes before the components */
#define PSTK__PLANES_WIDE (-128)    /* a value that stands for the next wide value */

/*
 * Contexts, by number. Luma is the first component; all others are chroma. Neighbours are similar,
 * so that they may share a table.
 */
enum pstk__planes_context {
    PSTK__CONTEXT_COUNT = 0,      /* luma, chroma */
    PSTK__CONTEXT_MAP = 2,        /* luma byte 0..7, chroma byte 7..0 */
    PSTK__CONTEXT_VALUE = 18,     /* luma level 0..7, chroma level 7..0 */
    PSTK__CONTEXT_DC_HIGH = 34,   /* luma, chroma */
    PSTK__CONTEXT_DC_LOW = 36,    /* high byte 0: luma, chroma; else: luma, chroma */
    PSTK__CONTEXT_WIDE_HIGH = 40, /* luma, chroma */
    PSTK__CONTEXT_WIDE_LOW = 42,  /* luma, chroma */
    PSTK__N_CONTEXTS = 44,
};
#define PSTK__N_LEVELS 8
/* Bytes of the bits at the start of the models, one for each context: 1 if it shares the table of
 * the context before it. */
#define PSTK__PLANES_JOINED_SIZE ((PSTK__N_CONTEXTS + 7) / 8)
/* Largest number of tables of an image; the tables of two images fit the shared memory of a GPU's
 * multiprocessor. */
#define PSTK__PLANES_MAX_TABLES 24
/* Bytes of the bits after them, in an image with a built-in set, one for each table: 1 if the image
 * has the table, 0 if it is the set's. */
#define PSTK__PLANES_OWN_SIZE (PSTK__PLANES_MAX_TABLES / 8)
#define PSTK__PLANES_N_SETS 4 /* sets of tables built into the format (sets.h) */

/* Return the context of a map byte, and of a value at position z (1..63) of the zigzag order in a
 * block with `count` map bytes (1..8). chroma: 0 or 1. */
uint32_t pstk__planes_map_context(uint32_t chroma, uint32_t byte);
uint32_t pstk__planes_value_context(uint32_t chroma, uint32_t count, uint32_t z);

/* Fill in number[c] for the context c of each count and position; count 0 and position 0 have none.
 */
void pstk__planes_value_tables(uint8_t tables[9][64], uint32_t chroma,
                               const uint8_t number[PSTK__N_CONTEXTS]);

/* Return the order in which the table of a context lists its symbols. */
enum pstk__model_order pstk__planes_context_order(uint32_t context);

static inline uint32_t pstk__zigzag16(int16_t v)
{
    return (uint16_t)((uint16_t)v << 1 ^ (uint16_t)(v < 0 ? 0xffff : 0));
}

static inline int16_t pstk__unzigzag16(uint32_t z)
{
    return (int16_t)(uint16_t)(z >> 1 ^ (0u - (z & 1)));
}

/* The parsed header. Pointers point into the field's bytes. */
struct pstk__planes_header {
    struct pstk__jpeg_frame frame;
    uint32_t orientation;  /* EXIF, 1..8 */
    uint32_t rebuild;      /* enum pstk__jpeg_rebuild: SCANS or LIBRARY */
    uint32_t parameters;   /* parameters of the rebuild */
    uint32_t n_lanes;      /* lanes of the rANS coder: 4, 16 or 64 */
    uint32_t set;          /* set of built-in tables: 1..PSTK__PLANES_N_SETS; 0: none */
    uint32_t strip_height; /* MCU rows of a strip; the last one may have fewer */
    uint32_t n_strips;
    const uint8_t *list;   /* list of the strips; n_strips entries */
    const uint8_t *models; /* zero bytes follow, up to a multiple of 4 in the field */
    uint64_t models_size;
    const uint8_t *strips;   /* each followed by zero bytes up to a multiple of 4 */
    uint64_t strips_size;    /* bytes, these zero bytes included */
    const uint8_t *skeleton; /* one zstd frame */
    uint64_t skeleton_size;
    uint64_t skeleton_plain_size;
};

/* An entry of the list of strips. */
struct pstk__planes_entry {
    uint32_t size;     /* bytes of the strip, without the zero bytes after it */
    uint32_t n_values; /* AC coefficients that are not 0; at most 63 for each of its blocks */
};
#define PSTK__PLANES_ENTRY_SIZE 8

struct pstk__planes_entry pstk__planes_entry_read(const struct pstk__planes_header *h,
                                                  uint32_t strip);
void pstk__planes_entry_write(uint8_t *list, uint32_t strip, struct pstk__planes_entry entry);

/* Return the size including the zero bytes after it. */
static inline uint64_t pstk__planes_padded(uint64_t size)
{
    return (size + 3) & ~3ull;
}

/* The models of an image or of a built-in set, taken apart. */
struct pstk__planes_models {
    uint32_t n;                                   /* tables */
    uint8_t table[PSTK__N_CONTEXTS];              /* number of each context's table */
    uint8_t first[PSTK__PLANES_MAX_TABLES];       /* the first context of each table */
    const uint8_t *data[PSTK__PLANES_MAX_TABLES]; /* NULL: the set's table for that context */
    uint16_t size[PSTK__PLANES_MAX_TABLES];
};

/* Take models apart; check all except the tables themselves. is_mixed: the image has a set, and
 * models of its own. Returns 0; -1: damaged; or the number of tables, when it is more than an image
 * may have. */
int pstk__planes_models_read(struct pstk__planes_models *models, const uint8_t *data, uint64_t size,
                             int is_mixed);

/* Parse and check the header and the list of strips, sizes against `size`. Decoding a strip checks
 * the zero bytes after it. EBADMSG, ENOTSUP. */
int pstk__planes_header_read(struct pstk__planes_header *h, const void *data, uint64_t size,
                             struct pstk_error *err);
/* Write the header and the components to `out`, with the sizes in `h`; returns their size. The
 * caller writes the list of strips and the quantisation tables after them. */
#define PSTK__PLANES_MAX_HEAD (PSTK__PLANES_HEADER_SIZE + 16)
uint32_t pstk__planes_header_write(uint8_t out[PSTK__PLANES_MAX_HEAD],
                                   const struct pstk__planes_header *h);
/* Write each different quantisation table of the components once; returns their size. */
#define PSTK__PLANES_MAX_QUANT (4 * PSTK__QUANT_MAX_SIZE)
uint32_t pstk__planes_quant_write(uint8_t out[PSTK__PLANES_MAX_QUANT],
                                  const struct pstk__jpeg_frame *f);

/* Return the MCU rows of an image, and the blocks of all components in one of them. */
uint32_t pstk__planes_mcu_rows(const struct pstk__jpeg_frame *f);
uint32_t pstk__planes_mcu_row_blocks(const struct pstk__jpeg_frame *f);
/* Largest number of blocks of a strip of more than one MCU row; this bounds a reader's memory. */
#define PSTK__PLANES_STRIP_BLOCKS 16384u

/* Set rows [*begin, *end) of blocks of component c in a strip. */
void pstk__planes_strip_rows(const struct pstk__planes_header *h, uint32_t strip, uint32_t c,
                             uint32_t *begin, uint32_t *end);
/* Return the blocks of all components in a strip. *n_luma: the blocks of the first component. */
uint32_t pstk__planes_strip_blocks(const struct pstk__planes_header *h, uint32_t strip,
                                   uint32_t *n_luma);
#define PSTK__PLANES_MAX_VALUES 63 /* largest number of values of a block */

#endif
