/* SPDX-License-Identifier: Apache-2.0 */
/*
 * packing: the table of ways to compress a file, and one stream being unpacked. An entry knows its
 * first bytes, and steps through its bytes in memory of a fixed size: nothing is allocated.
 */
#ifndef PSTK_UNPACK_PACKING_H
#define PSTK_UNPACK_PACKING_H

#include <penstock/types.h>

#define PSTK__DICTIONARY 32768 /* bytes before a point that gzip may copy from */

/* A stream being unpacked: an entry's own. */
struct pstk__unpacker;

/* Bytes to unpack and room for what they give; a step advances both. */
struct pstk__unpack_io {
    const uint8_t *in;
    uint64_t n_in;
    uint8_t *out;
    uint64_t n_out;
};

enum pstk__unpacking {
    PSTK__UNPACK_MORE,   /* in is empty or out is full */
    PSTK__UNPACK_POINT,  /* all that was unpacked is in out, and reading may begin here */
    PSTK__UNPACK_LARGE,  /* it takes more memory than random reading may have */
    PSTK__UNPACK_MEMORY, /* there is no memory to go on: of whole.h alone */
    PSTK__UNPACK_BAD,    /* damage in the last bytes: *why, static storage */
};

/* Where unpacking can begin. */
struct pstk__restart {
    uint32_t n_bits; /* the last so many bits of the byte before belong to what follows, 0 to 7 */
    uint32_t dictionary_size; /* bytes, at most PSTK__DICTIONARY */
};

struct pstk__packing {
    const char *name;    /* "gzip" */
    const char *endings; /* of names of such files, each with a space before it */
    const char *repair;  /* what to do about damage, for messages */
    /* 1: a file begins so. n: bytes, at least 4. */
    int (*begins)(const uint8_t *head, uint64_t n);
    /* Bytes that an unpacker takes; it lies in memory of that size, 64-byte aligned, borrowed for
     * its life. init: NULL where that is too small. Nothing needs closing. */
    uint64_t (*memory)(void);
    struct pstk__unpacker *(*init)(void *memory, uint64_t size);
    /* At the begin of the file, or of a part of it that needs no bytes before it. */
    void (*begin)(struct pstk__unpacker *unpacker);
    /* At a point; if it has bits, in begins with the byte that they are in. -1: the dictionary does
     * not do. */
    int (*resume)(struct pstk__unpacker *unpacker, const struct pstk__restart *restart,
                  const uint8_t *dictionary);
    /* Go on. is_whole: the file is read from its begin on: check what checksums it has, and stop at
     * points. */
    enum pstk__unpacking (*step)(struct pstk__unpacker *unpacker, struct pstk__unpack_io *io,
                                 int is_whole, const char **why);
    /* After PSTK__UNPACK_POINT: what beginning here takes. */
    void (*point)(const struct pstk__unpacker *unpacker, struct pstk__restart *restart,
                  uint8_t dictionary[PSTK__DICTIONARY]);
    /* 1: the file may end here. */
    int (*is_complete)(const struct pstk__unpacker *unpacker);
    /* 1: all that was unpacked since begin has checksums in the file. NULL: it always has. */
    int (*is_checked)(const struct pstk__unpacker *unpacker);
};

extern const struct pstk__packing pstk__packing_gzip;
extern const struct pstk__packing pstk__packing_zstd;

/* The list: entry n, 1 to PSTK__N_PACKINGS. 0 is a file that is not compressed: NULL. */
#define PSTK__N_PACKINGS 2
const struct pstk__packing *pstk__packing_of(uint32_t number);
/* The number of what a file is compressed by: by its first bytes; 0: it is not. */
uint32_t pstk__packing_find(const uint8_t *head, uint64_t n);
/* The same by its name. */
uint32_t pstk__packing_named(const char *name);

/* The deflate coding of dictionaries. Both return the bytes that they made, or 0: they do not fit.
 */
uint32_t pstk__dictionary_pack(uint8_t *to, uint32_t max, const uint8_t *dictionary, uint32_t size);
/* By an unpacker of gzip, which is then at no place. */
uint32_t pstk__dictionary_unpack(struct pstk__unpacker *unpacker, uint8_t *to, uint32_t max,
                                 const uint8_t *packed, uint32_t size);

#endif
