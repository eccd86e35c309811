/* SPDX-License-Identifier: Apache-2.0 */
#include "store/unpack/span.h"

#include "base/crc32c.h"

#include <errno.h>
#include <string.h>

#define BUFFER (PSTK__SPAN_CHUNKS * (uint64_t)PSTK__CHUNK)
#define INPUT (64u << 10) /* bytes of the file in one read; at least PSTK__DICTIONARY */

_Static_assert(INPUT >= PSTK__DICTIONARY && BUFFER >= PSTK__DICTIONARY,
               "a dictionary is unpacked in them");

uint64_t pstk__span_memory(uint32_t packings)
{
    uint64_t size = BUFFER + INPUT;
    for (uint32_t i = 1; i <= PSTK__N_PACKINGS; i++)
        size += packings >> i & 1 ? pstk__packing_of(i)->memory() : 0;
    return size;
}

int pstk__span_init(struct pstk__span *span, uint8_t *memory, uint32_t packings)
{
    *span = (struct pstk__span){.buffer = memory, .input = memory + BUFFER};
    memory += BUFFER + INPUT;
    for (uint32_t i = 1; i <= PSTK__N_PACKINGS; i++) {
        if (!(packings >> i & 1))
            continue;
        const struct pstk__packing *packing = pstk__packing_of(i);
        span->unpackers[i - 1] = packing->init(memory, packing->memory());
        if (!span->unpackers[i - 1])
            return PSTK_ENOMEM;
        memory += packing->memory();
    }
    return 0;
}

static int fail_points(struct pstk__damage *damage, const char *why)
{
    *damage = (struct pstk__damage){.why = why, .in_points = 1};
    return -EBADMSG;
}

/* Read the dictionary of the point into the buffer. */
static int load_dictionary(struct pstk__span *span, const struct pstk__access_points *points,
                           struct pstk__damage *damage)
{
    const uint32_t size = span->point.restart.dictionary_size, kept = span->point.dictionary_kept;
    const int r = pstk__access_points_dictionary(points, &span->point, span->input);
    if (r < 0)
        return r == -EBADMSG ? fail_points(damage, "a dictionary of it") : r;
    if (kept == size)
        memcpy(span->buffer, span->input, size);
    else if (pstk__dictionary_unpack(span->unpackers[0], span->buffer, size, span->input, kept) !=
             size)
        return fail_points(damage, "a dictionary of it");
    return 0;
}

int pstk__span_begin(struct pstk__span *span, const struct pstk__access_points *points,
                     struct pstk__damage *damage)
{
    const struct pstk__packing *packing = pstk__packing_of(points->of.packing);
    struct pstk__unpacker *unpacker = span->unpackers[points->of.packing - 1];
    span->begin = span->end = span->point.begin;
    span->packed = span->point.packed;
    span->io = (struct pstk__unpack_io){.in = span->input};
    if (span->point.restart.dictionary_size && packing == &pstk__packing_gzip) {
        const int r = load_dictionary(span, points, damage);
        if (r < 0)
            return r;
    }
    return packing->resume(unpacker, &span->point.restart, span->buffer) < 0
               ? fail_points(damage, "a point of it")
               : 0;
}

void pstk__span_continue(struct pstk__span *span, const struct pstk__access_point *point)
{
    span->point = *point;
    span->begin = span->end = point->begin;
}

/* Read more bytes of the file into the input. */
static int read_more(struct pstk__span *span, const struct pstk__access_points *points,
                     const struct pstk__file *file, struct pstk__damage *damage)
{
    const uint64_t left = points->of.size - span->packed;
    const int64_t n = pstk__file_read(file, span->input, left < INPUT ? left : INPUT, span->packed);
    if (n < 0)
        return (int)n;
    if (n == 0) {
        *damage = (struct pstk__damage){.packed = span->packed, .why = "the file ends too early"};
        return -EBADMSG;
    }
    span->io.in = span->input;
    span->io.n_in = (uint64_t)n;
    span->packed += (uint64_t)n;
    return 0;
}

/* Unpack n bytes into `to`. */
static int unpack(struct pstk__span *span, const struct pstk__access_points *points,
                  const struct pstk__file *file, uint8_t *to, uint64_t n,
                  struct pstk__damage *damage)
{
    const struct pstk__packing *packing = pstk__packing_of(points->of.packing);
    struct pstk__unpacker *unpacker = span->unpackers[points->of.packing - 1];
    span->io.out = to;
    span->io.n_out = n;
    while (span->io.n_out) {
        const char *why;
        const enum pstk__unpacking step = packing->step(unpacker, &span->io, 0, &why);
        if (step == PSTK__UNPACK_BAD || step == PSTK__UNPACK_LARGE) {
            *damage = (struct pstk__damage){.packed = span->packed - span->io.n_in, .why = why};
            return -EBADMSG;
        }
        const int r =
            span->io.n_out && span->io.n_in == 0 ? read_more(span, points, file, damage) : 0;
        if (r < 0)
            return r;
    }
    return 0;
}

/* Unpack the next chunk, and check it. */
static int add_chunk(struct pstk__span *span, const struct pstk__access_points *points,
                     const struct pstk__file *file, struct pstk__damage *damage)
{
    const uint64_t left = span->point.end - span->end;
    const uint64_t n = left < PSTK__CHUNK ? left : PSTK__CHUNK;
    if (span->end - span->begin + n > BUFFER)
        span->begin = span->end;
    uint8_t *to = span->buffer + (span->end - span->begin);
    uint32_t crc;
    int r = unpack(span, points, file, to, n, damage);
    if (r < 0)
        return r;
    r = pstk__access_points_crc(
        points, span->point.chunk + (span->end - span->point.begin) / PSTK__CHUNK, &crc);
    if (r < 0)
        return r == -EBADMSG ? fail_points(damage, "a checksum in it") : r;
    if (crc != pstk__crc32c(0, to, n)) {
        *damage = (struct pstk__damage){
            .packed = span->packed - span->io.n_in,
            .why =
                "the checksum of the bytes before this one differs from that of the first reading"};
        return -EBADMSG;
    }
    span->end += n;
    return 0;
}

int64_t pstk__span_read(struct pstk__span *span, const struct pstk__access_points *points,
                        const struct pstk__file *file, void *to, uint64_t size, uint64_t offset,
                        struct pstk__damage *damage)
{
    const uint64_t left = span->point.end - offset;
    const uint64_t wanted = offset + (size < left ? size : left);
    while (span->end < wanted) {
        /* Keep the chunks that have wanted bytes. */
        if (span->end > offset && span->end - span->begin + PSTK__CHUNK > BUFFER)
            break;
        const int r = add_chunk(span, points, file, damage);
        if (r < 0)
            return r;
    }
    const uint64_t n = (span->end < wanted ? span->end : wanted) - offset;
    memcpy(to, span->buffer + (offset - span->begin), n);
    return (int64_t)n;
}
