/* SPDX-License-Identifier: Apache-2.0 */
/*
 * planes/read: decodes strips of planes on demand, and passes them on as rows of blocks. Hostile
 * bytes give EBADMSG: every strip must use exactly its own bytes, and end in the state in which
 * coding began. That does not replace a checksum, which the record has.
 */
#ifndef PSTK_PLANES_READ_H
#define PSTK_PLANES_READ_H

#include "base/arena.h"
#include "image/jpeg/backend.h"
#include "image/planes/kernels.h"
#include "image/planes/layout.h"

/* The beginning of a row of blocks in its strip. */
struct pstk__strip_row {
    uint32_t block; /* index in maps and dc */
    uint32_t value;
    uint32_t wide;
};

/* A decoded strip. */
struct pstk__strip {
    uint32_t number; /* UINT32_MAX: no strip */
    uint64_t *maps;  /* by block: components, rows, columns */
    int16_t *dc;
    int8_t *values; /* 64 readable bytes after the last */
    int16_t *wide;
    struct pstk__strip_row *rows; /* rows of all components, one after another, and one more */
};

/* A thread's decoding tables: those of the open image, then those of the built-in sets, which are
 * filled in when an image first uses them. One unused table follows each set's, because filling a
 * table may write past it. `number` begins as 0. Kernels read slots of table 0 for lanes that have
 * no symbol, whatever these slots hold. */
#define PSTK__PLANES_TABLES_STEP (PSTK__PLANES_MAX_TABLES + 1)
struct pstk__planes_tables {
    const struct pstk__planes_kernels *kernels; /* kernels of all readers with these tables */
    uint8_t number[PSTK__PLANES_N_SETS][PSTK__N_CONTEXTS]; /* table of each context; 0: not filled
                                                              in */
    struct pstk__rans_table table[(1 + PSTK__PLANES_N_SETS) * PSTK__PLANES_TABLES_STEP];
};

struct pstk__planes_reader {
    struct pstk__planes_header header;
    const struct pstk__planes_kernels *kernels;
    const struct pstk__rans_table *tables; /* tables of the struct above */
    uint8_t table[PSTK__N_CONTEXTS];       /* number of each context's table */
    uint8_t value_tables[2][9][64];        /* indexed by chroma, count, zigzag place */
    uint8_t map_tables[2][8];              /* indexed by chroma, byte */
    uint64_t *offsets; /* offsets of the strips from the first one, and the end; in the arena */
    struct pstk__strip strips[2]; /* strip s is in strips[s % 2], because upsampling asks for a row
                                     of the next strip before the last row of this one */
    uint8_t *counts;              /* scratch for one strip; in the arena */
    uint8_t *bytes;
    uint8_t *numbers; /* table numbers */
};

/* Open a field's bytes, which are borrowed, as are the tables: only one reader at a time is open
 * with them. Takes memory from the arena; resetting gives it back. EBADMSG (also when the image's
 * size is not that of info), ENOTSUP, ENOMEM. */
int pstk__planes_open(struct pstk__planes_reader *reader, const void *data, uint64_t size,
                      const struct pstk__image_info *info, struct pstk__planes_tables *tables,
                      struct pstk__arena *arena, struct pstk_error *err);
/* Return columns [first, first + n) of a row of blocks: the `row` of a struct pstk__block_source
 * whose user is a reader. */
int pstk__planes_row(void *user, uint32_t component, uint32_t row, uint32_t first, uint32_t n,
                     struct pstk__block_row *out, struct pstk_error *err);
/* Expand all coefficients of all components to blocks[c] (rows * stride * 64, natural order). */
int pstk__planes_expand(struct pstk__planes_reader *reader, int16_t *const blocks[4],
                        struct pstk_error *err);
/* Return the largest number of arena bytes that open takes for images up to these sides. Derived in
 * a comment. */
uint64_t pstk__planes_read_scratch(uint32_t max_width, uint32_t max_height);

#endif
