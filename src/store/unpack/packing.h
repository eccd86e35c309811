/* SPDX-License-Identifier: Apache-2.0 */
/*
 * packing: the table of compression formats with random access, and the unpacking of one stream. An
 * entry recognises files by their first bytes, and unpacks in memory of a fixed size, without
 * allocating.
 */
#ifndef PSTK_UNPACK_PACKING_H
#define PSTK_UNPACK_PACKING_H

#include <penstock/types.h>

#define PSTK__DICTIONARY 32768 /* max bytes before a point that gzip may copy from */

/* A stream that is being unpacked; each entry defines its own struct. */
struct pstk__unpacker;

/* Input to unpack, and room for the output; a step advances both. */
struct pstk__unpack_io {
    const uint8_t *in;
    uint64_t n_in;
    uint8_t *out;
    uint64_t n_out;
};

enum pstk__unpacking {
    PSTK__UNPACK_MORE,   /* the input is empty or the output is full */
    PSTK__UNPACK_POINT,  /* all unpacked bytes are in the output, and reading may begin here */
    PSTK__UNPACK_LARGE,  /* the stream takes more memory than random reading may have */
    PSTK__UNPACK_MEMORY, /* out of memory; only entries of whole.h return it */
    PSTK__UNPACK_BAD,    /* the last bytes are damaged: *why, static storage */
};

/* The state needed to begin unpacking at a point. */
struct pstk__restart {
    uint32_t n_bits; /* number of last bits of the byte before that belong to the point, 0 to 7 */
    uint32_t dictionary_size; /* bytes, at most PSTK__DICTIONARY */
};

struct pstk__packing {
    const char *name;    /* "gzip" */
    const char *endings; /* endings of such files' names, each with a space before it */
    const char *repair;  /* advice about damage, for messages */
    /* 1: the first bytes belong to such a file. n: number of bytes, at least 4. */
    int (*begins)(const uint8_t *head, uint64_t n);
    /* memory: bytes of an unpacker. init: make an unpacker in such memory, 64-byte aligned,
     * borrowed for its life; NULL: the memory is too small. No close is needed. */
    uint64_t (*memory)(void);
    struct pstk__unpacker *(*init)(void *memory, uint64_t size);
    /* Prepare for the begin of the file, or of a part that needs no bytes before it. */
    void (*begin)(struct pstk__unpacker *unpacker);
    /* Prepare for a point; if it has bits, the input begins with the byte that contains them. -1:
     * the dictionary is unusable. */
    int (*resume)(struct pstk__unpacker *unpacker, const struct pstk__restart *restart,
                  const uint8_t *dictionary);
    /* Unpack further. is_whole: the file is read from its begin, so check its checksums, and stop
     * at points. */
    enum pstk__unpacking (*step)(struct pstk__unpacker *unpacker, struct pstk__unpack_io *io,
                                 int is_whole, const char **why);
    /* After PSTK__UNPACK_POINT: set the state needed to begin here. */
    void (*point)(const struct pstk__unpacker *unpacker, struct pstk__restart *restart,
                  uint8_t dictionary[PSTK__DICTIONARY]);
    /* 1: the file may end here. */
    int (*is_complete)(const struct pstk__unpacker *unpacker);
    /* 1: all bytes unpacked since begin have checksums in the file. NULL: always 1. */
    int (*is_checked)(const struct pstk__unpacker *unpacker);
};

extern const struct pstk__packing pstk__packing_gzip;
extern const struct pstk__packing pstk__packing_zstd;

/* Return entry `number` of the list, 1 to PSTK__N_PACKINGS; 0: NULL, for a file that is not
 * compressed. */
#define PSTK__N_PACKINGS 2
const struct pstk__packing *pstk__packing_of(uint32_t number);
/* Find the packing of a file by its first bytes. Returns its number; 0: not compressed. */
uint32_t pstk__packing_find(const uint8_t *head, uint64_t n);
/* Find the packing of a file by its name. Returns its number; 0: none. */
uint32_t pstk__packing_named(const char *name);

/* Compress and unpack a dictionary with deflate. Both return the number of bytes made, or 0: they
 * do not fit. */
uint32_t pstk__dictionary_pack(uint8_t *to, uint32_t max, const uint8_t *dictionary, uint32_t size);
/* unpacker: one of gzip; afterwards it has no position. */
uint32_t pstk__dictionary_unpack(struct pstk__unpacker *unpacker, uint8_t *to, uint32_t max,
                                 const uint8_t *packed, uint32_t size);

#endif
