/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gzip: files of one or more members (RFC 1952) of deflate blocks (RFC 1951). A point is the begin
 * of a member, or the begin of a block with the 32 KiB before it: the method of examples/zran.c of
 * zlib, by Mark Adler. This file parses the members' headers and trailers, so that a point may lie
 * in any member.
 */
#include "store/unpack/packing.h"

#include "base/little.h"

#include <string.h>
#include <zlib.h>

/* Memory that zlib's inflate allocates: its state and a window. 44 KiB by zlib's documentation;
 * forks of it take more. */
#define ARENA (128u << 10)

enum { FLAG_CRC = 2, FLAG_EXTRA = 4, FLAG_NAME = 8, FLAG_COMMENT = 16, FLAGS_RESERVED = 0xe0 };

/* The part of a member that is parsed next. */
enum part { HEAD, EXTRA_SIZE, EXTRA, NAME, COMMENT, HEAD_CRC, BODY, TRAILER, PADDING };

struct pstk__unpacker {
    z_stream zlib;
    uint64_t used;  /* bytes of the arena */
    enum part part; /* current part of the member */
    uint32_t n;     /* bytes in `bytes`, or bytes of EXTRA that are left */
    uint8_t bytes[10];
    uint32_t flags;    /* flags of the member */
    uint32_t head_crc; /* CRC-32 of the member's header so far */
    uint32_t crc;      /* CRC-32 of its unpacked bytes so far */
    uint32_t size;     /* number of these bytes, modulo 2^32 */
    uint32_t n_bits;   /* bits of the next byte that are taken first */
    uint32_t n_members;
    _Alignas(64) uint8_t arena[ARENA];
};

static int gzip_begins(const uint8_t *head, uint64_t n)
{
    return n >= 3 && head[0] == 0x1f && head[1] == 0x8b && head[2] == 8;
}

static uint64_t gzip_memory(void)
{
    return (sizeof(struct pstk__unpacker) + 63) / 64 * 64;
}

static voidpf take(voidpf user, uInt n, uInt size)
{
    struct pstk__unpacker *gzip = user;
    const uint64_t bytes = ((uint64_t)n * size + 63) / 64 * 64;
    if (bytes > ARENA - gzip->used)
        return Z_NULL;
    gzip->used += bytes;
    return gzip->arena + gzip->used - bytes;
}

static void give_back(voidpf user, voidpf address)
{
    (void)user, (void)address; /* the arena lives as long as the stream */
}

static struct pstk__unpacker *gzip_init(void *memory, uint64_t size)
{
    if (size < gzip_memory() || (uintptr_t)memory % 64 != 0)
        return NULL;
    struct pstk__unpacker *gzip = memory;
    memset(gzip, 0, sizeof *gzip - ARENA);
    gzip->zlib.zalloc = take;
    gzip->zlib.zfree = give_back;
    gzip->zlib.opaque = gzip;
    static const uint8_t zeros[256];
    /* A first dictionary makes zlib allocate its window now. */
    return inflateInit2(&gzip->zlib, -15) == Z_OK &&
                   inflateSetDictionary(&gzip->zlib, zeros, sizeof zeros) == Z_OK
               ? gzip
               : NULL;
}

static void begin_member(struct pstk__unpacker *gzip)
{
    gzip->part = HEAD;
    gzip->n = 0;
    gzip->head_crc = gzip->crc = gzip->size = 0;
    gzip->n_bits = 0;
}

static void gzip_begin(struct pstk__unpacker *gzip)
{
    begin_member(gzip);
    gzip->n_members = 0;
}

static int gzip_resume(struct pstk__unpacker *gzip, const struct pstk__restart *restart,
                       const uint8_t *dictionary)
{
    gzip_begin(gzip);
    if (restart->dictionary_size == 0)
        return 0;
    gzip->part = BODY;
    gzip->n_bits = restart->n_bits;
    return inflateReset(&gzip->zlib) == Z_OK &&
                   inflateSetDictionary(&gzip->zlib, dictionary, restart->dictionary_size) == Z_OK
               ? 0
               : -1;
}

/* ---- a member's header and trailer ----------------------------------------------------------- */

/* Go on to the next part after `part` that the member's flags announce. */
static void go_on(struct pstk__unpacker *gzip, enum part part)
{
    gzip->n = 0;
    if (part == EXTRA_SIZE && !(gzip->flags & FLAG_EXTRA))
        part = NAME;
    if (part == NAME && !(gzip->flags & FLAG_NAME))
        part = COMMENT;
    if (part == COMMENT && !(gzip->flags & FLAG_COMMENT))
        part = HEAD_CRC;
    if (part == HEAD_CRC && !(gzip->flags & FLAG_CRC))
        part = BODY;
    if (part == BODY)
        inflateReset(&gzip->zlib); /* cannot fail: the stream was set up before */
    gzip->part = part;
}

/* 1: the gathered bytes may be the begin of a member. */
static int is_magic(const struct pstk__unpacker *gzip)
{
    return gzip->bytes[0] == 0x1f && (gzip->n < 2 || gzip->bytes[1] == 0x8b);
}

static const char *head_wrong(const struct pstk__unpacker *gzip)
{
    const uint8_t *head = gzip->bytes;
    if (!is_magic(gzip))
        return gzip->n_members ? "the bytes after the last gzip member are not a gzip member"
                               : "it does not begin as a gzip file does";
    if (head[2] != 8 || head[3] & FLAGS_RESERVED)
        return "the header of a gzip member has a method or flags that RFC 1952 does not know";
    return NULL;
}

static const char *trailer_wrong(const struct pstk__unpacker *gzip)
{
    if (pstk__get32(gzip->bytes) != gzip->crc)
        return "the CRC-32 of a gzip member does not match its bytes";
    return pstk__get32(gzip->bytes + 4) != gzip->size
               ? "the size at the end of a gzip member does not match its bytes"
               : NULL;
}

/* Gather up to `wanted` bytes. 1: all of them are there. */
static int gather(struct pstk__unpacker *gzip, struct pstk__unpack_io *io, uint32_t wanted)
{
    while (gzip->n < wanted && io->n_in) {
        gzip->bytes[gzip->n++] = *io->in++;
        io->n_in--;
    }
    return gzip->n == wanted;
}

static void add_to_head(struct pstk__unpacker *gzip, const uint8_t *bytes, uint64_t n)
{
    if (gzip->flags & FLAG_CRC)
        gzip->head_crc = (uint32_t)crc32(gzip->head_crc, bytes, (uInt)n);
}

/* Skip a text that a zero ends. 1: it has ended. */
static int pass_text(struct pstk__unpacker *gzip, struct pstk__unpack_io *io)
{
    const uint8_t *zero = memchr(io->in, 0, io->n_in);
    const uint64_t n = zero ? (uint64_t)(zero - io->in) + 1 : io->n_in;
    add_to_head(gzip, io->in, n);
    io->in += n;
    io->n_in -= n;
    return zero != NULL;
}

static int pass_extra(struct pstk__unpacker *gzip, struct pstk__unpack_io *io)
{
    const uint64_t n = gzip->n < io->n_in ? gzip->n : io->n_in;
    add_to_head(gzip, io->in, n);
    io->in += n;
    io->n_in -= n;
    gzip->n -= (uint32_t)n;
    return gzip->n == 0;
}

/* Skip the zeros that may follow the last member. */
static const char *pass_padding(struct pstk__unpack_io *io)
{
    while (io->n_in && *io->in == 0) {
        io->in++;
        io->n_in--;
    }
    return io->n_in ? "the bytes after the last gzip member are not a gzip member" : NULL;
}

/* Parse bytes outside of the body. 1: the next part begins; 0: the input is empty; -1: *why. */
static int frame_step(struct pstk__unpacker *gzip, struct pstk__unpack_io *io, int is_whole,
                      const char **why)
{
    if (io->n_in == 0)
        return 0;
    switch (gzip->part) {
    case HEAD:
        if (gzip->n == 0 && gzip->n_members && *io->in == 0) {
            gzip->part = PADDING;
            return 1;
        }
        if (!gather(gzip, io, 10) && is_magic(gzip))
            return 0;
        *why = head_wrong(gzip);
        gzip->flags = gzip->bytes[3];
        add_to_head(gzip, gzip->bytes, 10);
        go_on(gzip, EXTRA_SIZE);
        return *why ? -1 : 1;
    case EXTRA_SIZE:
        if (!gather(gzip, io, 2))
            return 0;
        add_to_head(gzip, gzip->bytes, 2);
        gzip->n = pstk__get16(gzip->bytes);
        gzip->part = EXTRA;
        if (gzip->n == 0)
            go_on(gzip, NAME);
        return 1;
    case EXTRA:
        if (!pass_extra(gzip, io))
            return 0;
        go_on(gzip, NAME);
        return 1;
    case NAME:
    case COMMENT:
        if (!pass_text(gzip, io))
            return 0;
        go_on(gzip, gzip->part + 1);
        return 1;
    case HEAD_CRC:
        if (!gather(gzip, io, 2))
            return 0;
        if (pstk__get16(gzip->bytes) != (gzip->head_crc & 0xffff))
            *why = "the checksum of the header of a gzip member is wrong";
        go_on(gzip, BODY);
        return *why ? -1 : 1;
    case TRAILER:
        if (!gather(gzip, io, 8))
            return 0;
        *why = is_whole ? trailer_wrong(gzip) : NULL;
        gzip->n_members += gzip->n_members < UINT32_MAX;
        begin_member(gzip);
        return *why ? -1 : 1;
    case PADDING:
        *why = pass_padding(io);
        return *why ? -1 : 0;
    case BODY:
        break;
    }
    return 0;
}

/* ---- a member's blocks ----------------------------------------------------------------------- */

/* Inflate bytes of the body. -1: *why; 1: the last block has ended; 0: it has not. */
static int inflate_step(struct pstk__unpacker *gzip, struct pstk__unpack_io *io, int is_whole,
                        const char **why)
{
    z_stream *zlib = &gzip->zlib;
    const uint32_t n_in = io->n_in < 1u << 30 ? (uint32_t)io->n_in : 1u << 30;
    const uint32_t n_out = io->n_out < 1u << 30 ? (uint32_t)io->n_out : 1u << 30;
    zlib->next_in = (z_const Bytef *)(uintptr_t)io->in; /* zlib only reads it */
    zlib->avail_in = n_in;
    zlib->next_out = io->out;
    zlib->avail_out = n_out;
    const int r = inflate(zlib, is_whole ? Z_BLOCK : Z_SYNC_FLUSH);
    const uint32_t made = n_out - zlib->avail_out;
    if (is_whole && made)
        gzip->crc = (uint32_t)crc32(gzip->crc, io->out, made);
    gzip->size += made;
    io->in += n_in - zlib->avail_in;
    io->n_in -= n_in - zlib->avail_in;
    io->out += made;
    io->n_out -= made;
    if (r == Z_OK || r == Z_BUF_ERROR)
        return 0;
    if (r == Z_STREAM_END)
        return 1;
    *why = zlib->msg ? zlib->msg : "its bytes do not inflate";
    return -1;
}

/* Take the bits before the first whole byte. 1: done. */
static int prime(struct pstk__unpacker *gzip, struct pstk__unpack_io *io)
{
    if (gzip->n_bits == 0)
        return 1;
    if (io->n_in == 0)
        return 0;
    inflatePrime(&gzip->zlib, (int)gzip->n_bits, *io->in >> (8 - gzip->n_bits));
    io->in++;
    io->n_in--;
    gzip->n_bits = 0;
    return 1;
}

static enum pstk__unpacking gzip_step(struct pstk__unpacker *gzip, struct pstk__unpack_io *io,
                                      int is_whole, const char **why)
{
    *why = NULL;
    for (;;) {
        if (gzip->part != BODY) {
            const int was_trailer = gzip->part == TRAILER;
            const int r = frame_step(gzip, io, is_whole, why);
            if (r <= 0)
                return r < 0 ? PSTK__UNPACK_BAD : PSTK__UNPACK_MORE;
            if (is_whole && was_trailer)
                return PSTK__UNPACK_POINT;
            continue;
        }
        if (!prime(gzip, io))
            return PSTK__UNPACK_MORE;
        const int r = inflate_step(gzip, io, is_whole, why);
        if (r < 0)
            return PSTK__UNPACK_BAD;
        if (r > 0) {
            gzip->part = TRAILER;
            gzip->n = 0;
            continue;
        }
        /* zlib's data_type: 128 at the end of a block; 64 added in the last one. */
        if (is_whole && gzip->size && (gzip->zlib.data_type & 0xc0) == 0x80)
            return PSTK__UNPACK_POINT;
        if (io->n_in == 0 || io->n_out == 0)
            return PSTK__UNPACK_MORE;
    }
}

static void gzip_point(const struct pstk__unpacker *gzip, struct pstk__restart *restart,
                       uint8_t dictionary[PSTK__DICTIONARY])
{
    *restart = (struct pstk__restart){0};
    if (gzip->part != BODY)
        return;
    uInt size = 0;
    z_stream *zlib = (z_stream *)(uintptr_t)&gzip->zlib; /* zlib only reads it */
    inflateGetDictionary(zlib, dictionary, &size);
    restart->dictionary_size = size;
    restart->n_bits = (uint32_t)zlib->data_type & 7;
}

static int gzip_is_complete(const struct pstk__unpacker *gzip)
{
    return gzip->n_members > 0 && (gzip->part == PADDING || (gzip->part == HEAD && gzip->n == 0));
}

const struct pstk__packing pstk__packing_gzip = {
    .name = "gzip",
    .endings = " .gz .tgz",
    .repair = "copy it again, and check it by gzip -t",
    .begins = gzip_begins,
    .memory = gzip_memory,
    .init = gzip_init,
    .begin = gzip_begin,
    .resume = gzip_resume,
    .step = gzip_step,
    .point = gzip_point,
    .is_complete = gzip_is_complete,
};

/* ---- dictionaries ---------------------------------------------------------------------------- */

uint32_t pstk__dictionary_pack(uint8_t *to, uint32_t max, const uint8_t *dictionary, uint32_t size)
{
    z_stream zlib = {.next_in = (z_const Bytef *)(uintptr_t)dictionary,
                     .avail_in = size,
                     .next_out = to,
                     .avail_out = max};
    if (deflateInit2(&zlib, 1, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return 0;
    const int r = deflate(&zlib, Z_FINISH);
    deflateEnd(&zlib);
    return r == Z_STREAM_END ? max - zlib.avail_out : 0;
}

uint32_t pstk__dictionary_unpack(struct pstk__unpacker *gzip, uint8_t *to, uint32_t max,
                                 const uint8_t *packed, uint32_t size)
{
    z_stream *zlib = &gzip->zlib;
    if (inflateReset(zlib) != Z_OK)
        return 0;
    zlib->next_in = (z_const Bytef *)(uintptr_t)packed;
    zlib->avail_in = size;
    zlib->next_out = to;
    zlib->avail_out = max;
    return inflate(zlib, Z_FINISH) == Z_STREAM_END ? max - zlib->avail_out : 0;
}
