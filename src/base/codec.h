/* SPDX-License-Identifier: Apache-2.0 */
/*
 * codec: compresses and decompresses stored bytes; the only user of zstd. planes/file handles
 * fields stored as planes.
 */
#ifndef PSTK_CODEC_H
#define PSTK_CODEC_H

#include <penstock/format.h>

struct pstk__dictionary; /* a digested zstd dictionary for decoding, shared between threads */

/* Digest a dictionary, whose bytes are copied. *out is owned. */
int pstk__dictionary_open(struct pstk__dictionary **out, const void *data, uint64_t size,
                          struct pstk_error *err);
void pstk__dictionary_close(struct pstk__dictionary *dictionary);

/* A thread's decoder, in `memory` of pstk__decoder_size() bytes, 64-byte aligned, borrowed for its
 * life. It never allocates. NULL when the memory is too small. */
struct pstk__decoder;
uint64_t pstk__decoder_size(void);
struct pstk__decoder *pstk__decoder_init(void *memory, uint64_t size);

/* Return "none", "zstd", "planes", or "?". */
const char *pstk__codec_name(uint32_t codec);
/* Return 1 when this build knows the codec. */
int pstk__codec_known(uint32_t codec);
/* Decode `size` stored bytes (none, zstd) into exactly plain_size bytes at `out`. dictionary may be
 * NULL. 0, EBADMSG or ENOTSUP, with a message without a location, which the caller adds. */
int pstk__codec_decode(struct pstk__decoder *decoder, uint32_t codec,
                       const struct pstk__dictionary *dictionary, const void *data, uint64_t size,
                       void *out, uint64_t plain_size, struct pstk_error *err);

/* Decode one zstd frame that was encoded with `prefix` as its raw dictionary: bytes that the
 * content probably shares. Errors are those of pstk__codec_decode. */
int pstk__codec_decode_prefixed(struct pstk__decoder *decoder, const void *prefix,
                                uint64_t prefix_size, const void *data, uint64_t size, void *out,
                                uint64_t plain_size, struct pstk_error *err);

/* A thread's encoder, for the writer; it allocates. */
struct pstk__encoder;
int pstk__encoder_open(struct pstk__encoder **out, int level, const void *dictionary,
                       uint64_t dictionary_size, struct pstk_error *err);
void pstk__encoder_close(struct pstk__encoder *encoder);
/* Return the largest encoded size of `size` bytes. */
uint64_t pstk__encoder_bound(uint64_t size);
/* Encode into out; returns the stored size, or <0. */
int64_t pstk__encoder_encode(struct pstk__encoder *encoder, const void *data, uint64_t size,
                             void *out, uint64_t out_size, struct pstk_error *err);
/* Encode a frame for pstk__codec_decode_prefixed. The encoder was opened without a dictionary. */
int64_t pstk__encoder_encode_prefixed(struct pstk__encoder *encoder, const void *prefix,
                                      uint64_t prefix_size, const void *data, uint64_t size,
                                      void *out, uint64_t out_size, struct pstk_error *err);
/* Train a dictionary of at most `capacity` bytes on samples laid end to end. *size: its size, 0
 * when no dictionary helps these samples. 0 or ENOMEM. */
int pstk__dictionary_train(void *out, uint64_t capacity, const void *samples, const size_t *sizes,
                           uint32_t n, uint64_t *size, struct pstk_error *err);

#endif
